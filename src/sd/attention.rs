//! `sd.sage_attn.v1` and `sd.sol_attn.v1`: attention with quantised, or partly summarised, keys. There are kernels for NVIDIA's devices
//! alone: elsewhere such nodes can be built and are supported by no device.

use super::check;
use super::operator::{Attrs, Check, Operator, Shape};
use ggml_oxide_abi::*;
use std::ffi::CStr;

/// Attention with 8-bit queries and keys; sources q, k (F32), v (F16).
pub struct Sage;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SageAttrs {
    /// Of the products of queries and keys.
    pub scale: f32,
    /// A `ggml_sage_attn_mode`.
    pub mode: i32,
}

// SAFETY: numbers, without gaps.
unsafe impl Attrs for SageAttrs {}

fn scale(scale: f32) -> Check {
    match scale.is_finite() && scale > 0.0 {
        true => Ok(()),
        false => Err(format!("the scale is {scale}, it must be finite and above 0")),
    }
}

impl Operator for Sage {
    const NAME: &'static CStr = c"sd.sage_attn.v1";
    type Attrs = SageAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &SageAttrs) -> Check<Shape> {
        let &[q, k, v] = src else { return Err(format!("there must be three sources, there are {}", src.len())) };
        check::contiguous(q, GGML_TYPE_F32, "q")?;
        check::contiguous(k, GGML_TYPE_F32, "k")?;
        check::contiguous(v, GGML_TYPE_F16, "v")?;
        if q.ne[0] != k.ne[0] {
            return Err(format!("q has {} channels, k {}", q.ne[0], k.ne[0]));
        }
        if k.ne != v.ne {
            return Err(format!("k is {:?}, v {:?}: they must be the same", k.ne, v.ne));
        }
        if k.ne[2] == 0 || q.ne[2] % k.ne[2] != 0 {
            return Err(format!("{} heads of q cannot be divided among {} of k", q.ne[2], k.ne[2]));
        }
        if q.ne[3] != k.ne[3] {
            return Err(format!("q has {} batches, k {}", q.ne[3], k.ne[3]));
        }
        scale(attrs.scale)?;
        if ![GGML_SAGE_ATTN_AUTO, GGML_SAGE_ATTN_2, GGML_SAGE_ATTN_2_PLUS_PLUS].iter().any(|m| m.0 == attrs.mode) {
            return Err(format!("there is no mode {}", attrs.mode));
        }
        Ok((GGML_TYPE_F32, [q.ne[0], q.ne[2], q.ne[1], q.ne[3]]))
    }
}

/// Attention that looks at blocks of keys closely where it matters; sources q, k, v, F32 of the same shape.
pub struct Sol;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SolAttrs {
    /// Of the products of queries and keys.
    pub scale: f32,
    /// How far above the mean a block must be, in standard deviations.
    pub tau: f32,
}

// SAFETY: numbers, without gaps.
unsafe impl Attrs for SolAttrs {}

impl Operator for Sol {
    const NAME: &'static CStr = c"sd.sol_attn.v1";
    type Attrs = SolAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &SolAttrs) -> Check<Shape> {
        let &[q, k, v] = src else { return Err(format!("there must be three sources, there are {}", src.len())) };
        for (t, what) in [(q, "q"), (k, "k"), (v, "v")] {
            check::contiguous(t, GGML_TYPE_F32, what)?;
            if t.ne != q.ne {
                return Err(format!("{what} is {:?}, q {:?}: they must be the same", t.ne, q.ne));
            }
        }
        if q.ne[0] != 128 {
            return Err(format!("heads have {} channels, they must have 128", q.ne[0]));
        }
        if q.ne[1] == 0 {
            return Err("there must be a token".into());
        }
        scale(attrs.scale)?;
        if !attrs.tau.is_finite() {
            return Err(format!("tau is {}, it must be finite", attrs.tau));
        }
        Ok((GGML_TYPE_F32, [q.ne[0], q.ne[2], q.ne[1], q.ne[3]]))
    }
}
