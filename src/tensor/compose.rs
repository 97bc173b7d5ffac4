//! Builders that make several nodes: convolutions as a gather and a matrix product, and the sorted top.
//!
//! The first step that fails ends a builder: its stand-in is the result, and no later step reports a failure of its own.
//!
//! # Safety of every function
//! `ctx` is NULL or a live context that nobody else uses; the sources are NULL or live tensors.
#![allow(clippy::missing_safety_doc)]

use super::conv::{self, Axis};
use super::{build::node, copy, is_poisoned, matmul, product, reduce, view, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;

type Ctx = *mut ggml_context;
type T = *mut ggml_tensor;

/// A tensor, or the stand-in for one that could not be built.
type Step = Result<T, T>;

fn done(step: Step) -> T {
    step.unwrap_or_else(|stand_in| stand_in)
}

/// [`node`] as a step.
unsafe fn step<const N: usize>(
    ctx: Ctx,
    call: &str,
    sources: [T; N],
    rule: impl FnOnce([&ggml_tensor; N]) -> Result<NodeSpec, Error>,
) -> Step {
    // SAFETY: the contract at the head of the module.
    unsafe {
        let t = node(ctx, call, sources, [], |sources, []| rule(sources));
        match t.as_ref().is_some_and(|t| !is_poisoned(t)) {
            true => Ok(t),
            false => Err(t),
        }
    }
}

/// The shape of `t`; one element for NULL, which the first step refuses.
unsafe fn ne(t: T) -> [i64; GGML_MAX_DIMS] {
    // SAFETY: the contract at the head of the module.
    unsafe { t.as_ref() }.map_or([1; GGML_MAX_DIMS], |t| t.ne)
}

unsafe fn reshape(ctx: Ctx, call: &str, a: T, ne: [i64; GGML_MAX_DIMS]) -> Step {
    // SAFETY: the contract at the head of the module.
    unsafe { step(ctx, call, [a], |[a]| view::reshape(a, ne)) }
}

unsafe fn mul_mat(ctx: Ctx, call: &str, a: T, b: T) -> Step {
    // SAFETY: the contract at the head of the module.
    unsafe { step(ctx, call, [a, b], |[a, b]| matmul::mul_mat(a, b)) }
}

/// `a` with dimensions 2 and 3 swapped, in new memory.
unsafe fn swap_23(ctx: Ctx, call: &str, a: T) -> Step {
    // SAFETY: the contract at the head of the module.
    unsafe {
        let a = step(ctx, call, [a], |[a]| view::permute(a, [0, 1, 3, 2]))?;
        step(ctx, call, [a], |[a]| copy::cont(a, None))
    }
}

/// Format of the gathered picture: that of half precision, but full precision beside a bf16 kernel.
unsafe fn gathered(kernel: T) -> ggml_type {
    // SAFETY: the contract at the head of the module.
    match unsafe { kernel.as_ref() } {
        Some(kernel) if kernel.r#type == GGML_TYPE_BF16 => GGML_TYPE_F32,
        _ => GGML_TYPE_F16,
    }
}

const UNUSED: Axis = Axis { s: 0, p: 0, d: 0 };

/// Kernel `a` [K, IC, OC], signal `b` [L, IC, N] give [OL, OC, N].
pub unsafe fn conv_1d(ctx: Ctx, call: &str, a: T, b: T, x: Axis) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let ty = gathered(a);
        let cols = step(ctx, call, [a, b], |[a, b]| conv::im2col_1d(a, b, x, UNUSED, ty))?;
        let (c, k) = (ne(cols), ne(a));
        let right = reshape(ctx, call, a, [product(&[k[0], k[1]]), k[2], 1, 1])?;
        let left = reshape(ctx, call, cols, [c[0], product(&[c[2], c[1]]), 1, 1])?;
        let out = mul_mat(ctx, call, left, right)?;
        if c[2] == 1 {
            return reshape(ctx, call, out, [c[1], k[2], 1, 1]);
        }
        // signals lie inside channels
        let out = reshape(ctx, call, out, [c[1], c[2], k[2], 1])?;
        let out = step(ctx, call, [out], |[a]| view::permute(a, [0, 2, 1, 3]))?;
        step(ctx, call, [out], |[a]| copy::cont(a, None))
    };
    done(build())
}

/// Depthwise: kernel `a` [K, 1, C], signal `b` [L, C, N]; the result is [OL, C, 1], so N must be 1.
pub unsafe fn conv_1d_dw(ctx: Ctx, call: &str, a: T, b: T, x: Axis) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let (ty, s) = (gathered(a), ne(b));
        let b = reshape(ctx, call, b, [s[0], 1, s[1], s[2]])?;
        let cols = step(ctx, call, [a, b], |[a, b]| conv::im2col_1d(a, b, x, UNUSED, ty))?;
        let out = mul_mat(ctx, call, cols, a)?;
        let o = ne(out);
        reshape(ctx, call, out, [o[0], o[2], 1, 1])
    };
    done(build())
}

/// Kernel `a` [KW, KH, IC, OC], picture `b` [W, H, IC, N] give [OW, OH, OC, N].
pub unsafe fn conv_2d(ctx: Ctx, call: &str, a: T, b: T, x: Axis, y: Axis) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let ty = gathered(a);
        let cols = step(ctx, call, [a, b], |[a, b]| conv::im2col_2d(a, b, x, y, ty))?;
        let (c, k) = (ne(cols), ne(a));
        let right = reshape(ctx, call, a, [product(&k[..3]), k[3], 1, 1])?;
        let left = reshape(ctx, call, cols, [c[0], product(&[c[3], c[2], c[1]]), 1, 1])?;
        let out = mul_mat(ctx, call, left, right)?;
        let out = reshape(ctx, call, out, [c[1], c[2], c[3], k[3]])?;
        swap_23(ctx, call, out)
    };
    done(build())
}

/// Depthwise: kernel `a` [KW, KH, 1, C], picture `b` [W, H, C, N] give [OW, OH, C, N].
pub unsafe fn conv_2d_dw(ctx: Ctx, call: &str, a: T, b: T, x: Axis, y: Axis) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let (ty, k, s) = (gathered(a), ne(a), ne(b));
        let kernel = reshape(ctx, call, a, [k[0], k[1], 1, product(&[k[2], k[3]])])?;
        let planes = reshape(ctx, call, b, [s[0], s[1], 1, product(&[s[2], s[3]])])?;
        let cols = step(ctx, call, [kernel, planes], |[a, b]| conv::im2col_2d(a, b, x, y, ty))?;
        let c = ne(cols);
        let right = reshape(ctx, call, cols, [c[0], product(&[c[2], c[1]]), s[2], s[3]])?;
        let k = ne(kernel);
        let left = reshape(ctx, call, kernel, [product(&[k[0], k[1]]), k[2], k[3], 1])?;
        let out = mul_mat(ctx, call, left, right)?;
        reshape(ctx, call, out, [c[1], c[2], s[2], s[3]])
    };
    done(build())
}

/// Kernel `a` [KW, KH, KD, IC*OC], volume `b` [W, H, D, IC*N] give [OW, OH, OD, OC*N].
pub unsafe fn conv_3d(ctx: Ctx, call: &str, a: T, b: T, ic: i64, axes: [Axis; 3]) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let ty = gathered(a);
        let cols = step(ctx, call, [a, b], |[a, b]| conv::im2col_3d(a, b, ic, axes, ty))?;
        let (c, k, s) = (ne(cols), ne(a), ne(b));
        // a kernel that `ic` does not divide is refused by the reshape; an empty batch has no depth to be found
        let (oc, n) = (k[3].checked_div(ic).unwrap_or(0), s[3].checked_div(ic).unwrap_or(0));
        let od = c[3].checked_div(n).unwrap_or(0);
        let right = reshape(ctx, call, a, [product(&[k[0], k[1], k[2], ic]), oc, 1, 1])?;
        let left = reshape(ctx, call, cols, [c[0], product(&[c[3], c[2], c[1]]), 1, 1])?;
        let out = mul_mat(ctx, call, left, right)?;
        let out = reshape(ctx, call, out, [product(&[c[1], c[2]]), od, n, oc])?;
        let out = swap_23(ctx, call, out)?;
        reshape(ctx, call, out, [c[1], c[2], od, product(&[oc, n])])
    };
    done(build())
}

/// The first `k` of each row of a descending sort: i32 [k, ne1, ne2, ne3], a view.
pub unsafe fn argsort_top_k(ctx: Ctx, call: &str, a: T, k: i32) -> T {
    // SAFETY: the contract at the head of the module.
    let build = || unsafe {
        let all = step(ctx, call, [a], |[a]| {
            reduce::check_k(a, k)?;
            reduce::argsort(a, GGML_SORT_ORDER_DESC)
        })?;
        step(ctx, call, [all], |[all]| {
            let [_, ne1, ne2, ne3] = all.ne;
            view::view(all, &[k.into(), ne1, ne2, ne3], &all.nb[1..], 0)
        })
    };
    done(build())
}
