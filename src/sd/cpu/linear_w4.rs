//! The linear layer of 4-bit weights. W4A4: a block of weights becomes 8-bit integers, then it is the product of those. W4A8: a row of
//! weights becomes F32; sums are made in the order of the elements, in F32, one addend after the other.

use super::dot::Dot;
use super::product::{numbers, Activations, Product};
use super::Level;
use crate::sd::api::ggml_get_type_traits;
use crate::sd::check;
use crate::sd::convrot::Packed;
use crate::sd::kernel::{room, Kernel, Run, Shared, Stop};
use crate::sd::linear_w4::{self as op, BLOCK, F8_E4M3, W4A4};
use crate::sd::operator::{Check, Node};
use ggml_oxide_abi::GGML_STATUS_FAILED;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.linear_w4_convrot.cpu`.
pub struct Linear;

/// Rows of activations that are summed at the same time.
const LANES: usize = 8;

impl Kernel for Linear {
    type Op = op::Linear;
    const NAME: &'static CStr = c"sd.linear_w4_convrot.cpu";

    fn supports(node: &Node<Self::Op>) -> Check {
        check::cpu_group(node.attrs.group)
    }

    /// Sums of activations.
    fn workspace(node: &Node<Self::Op>) -> Check<usize> {
        let rows = usize::try_from(shape::nrows(node.dst)).ok();
        rows.and_then(|r| r.checked_mul(4)).ok_or_else(|| "the workspace is larger than memory can be".into())
    }

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let (k, r) = (node.src(1).ne[0] as usize, shape::nrows(node.dst) as usize);
        let q = Shared::of(node.src(1));
        let scales = q.at(Packed::new(k as i64, r as i64).map_or(0, |p| p.scales));
        let x = Activations { q, scales, sums: run.scratch(4 * r)?, rows: r };
        let attrs = &node.attrs;
        // SAFETY: the caller's promise; shapes are those that `infer` has checked.
        unsafe {
            let table = numbers(node.src(2));
            let weight_scale = (attrs.kind == W4A4).then_some(table);
            let bias = attrs.bias().map(|i| numbers(node.src(i)));
            let product = Product { x, weight_scale, bias, dst, k, n: node.dst.ne[0] as usize };
            match attrs.relative() {
                None => integers(node, run, &product),
                Some((rel, channel)) => {
                    floats(node, run, &product, Shared::of(node.src(rel)), numbers(node.src(channel)))
                }
            }
        }
    }
}

/// # Safety
/// As [`Kernel::execute`].
unsafe fn integers(node: &Node<op::Linear>, run: &Run, product: &Product) -> Result<(), Stop> {
    let (k, w) = (product.k, Shared::of(node.src(0)));
    let dot = Dot::new(Level::best());
    // SAFETY: the caller's promise.
    unsafe { product.x.sum(run, k) }?;
    run.try_parallel(|ith, nth| {
        let mut unpacked: Vec<i8> = Vec::new();
        let mut held = 0..0;
        for piece in product.pieces(ith, nth) {
            let ns = piece.0.clone();
            if held != ns {
                unpacked.clear();
                unpacked.try_reserve_exact(ns.len() * k).ok()?;
                // SAFETY: the caller's promise: rows of half as many bytes.
                let bytes =
                    unsafe { std::slice::from_raw_parts(w.at(k / 2 * ns.start).cast::<i8>(), k / 2 * ns.len()) };
                unpacked.extend(bytes.iter().flat_map(|&b| [b << 4 >> 4, b >> 4]));
                held = ns;
            }
            // SAFETY: the caller's promise.
            unsafe { product.piece(dot, Shared(unpacked.as_mut_ptr().cast()), &piece) };
        }
        Some(())
    })
}

/// # Safety
/// As [`Kernel::execute`].
unsafe fn floats(
    node: &Node<op::Linear>,
    run: &Run,
    product: &Product,
    rel: Shared,
    channel: &[f32],
) -> Result<(), Stop> {
    let (k, w) = (product.k, Shared::of(node.src(0)));
    let blocks = k / BLOCK as usize;
    // SAFETY: the caller's promise.
    let codebook = unsafe { numbers(node.src(2)) };
    // SAFETY: traits live for ever.
    let decode = unsafe { ggml_get_type_traits(F8_E4M3).as_ref() }.and_then(|t| t.to_float);
    let Some(decode) = decode else {
        return Err(Stop::Failed(GGML_STATUS_FAILED, "there is no decoder of F8_E4M3".into()));
    };
    run.try_parallel(|ith, nth| {
        let (mut weights, mut factors) = (room::<f32>(k)?, room::<f32>(blocks)?);
        for (ns, rs) in product.pieces(ith, nth) {
            for n in ns {
                // SAFETY: the caller's promise: row `n` of each.
                let bytes = unsafe {
                    decode(rel.at(blocks * n).cast(), factors.as_mut_ptr(), blocks as i64);
                    std::slice::from_raw_parts(w.at(k / 2 * n).cast::<u8>(), k / 2)
                };
                for ((weights, bytes), factor) in weights.chunks_exact_mut(16).zip(bytes.chunks_exact(8)).zip(&factors)
                {
                    let factor = channel[n] * factor;
                    let table: [f32; 16] = std::array::from_fn(|c| codebook[c] * factor);
                    for (pair, b) in weights.chunks_exact_mut(2).zip(bytes) {
                        (pair[0], pair[1]) = (table[usize::from(b & 15)], table[usize::from(b >> 4)]);
                    }
                }
                for r in rs.clone().step_by(LANES) {
                    let rows = LANES.min(rs.end - r);
                    // SAFETY: the caller's promise; rows beyond the last are the last again, and thrown away.
                    let x: [&[i8]; LANES] = std::array::from_fn(|i| unsafe {
                        std::slice::from_raw_parts(product.x.q.at(k * (r + i.min(rows - 1))).cast::<i8>(), k)
                    });
                    let mut sums = [0f32; LANES];
                    for (i, w) in weights.iter().enumerate() {
                        for (sum, x) in sums.iter_mut().zip(&x) {
                            *sum += w * f32::from(x[i]);
                        }
                    }
                    for (i, sum) in sums[..rows].iter().enumerate() {
                        // SAFETY: the caller's promise.
                        unsafe { product.store(r + i, n, &[*sum]) };
                    }
                }
            }
        }
        Some(())
    })
}
