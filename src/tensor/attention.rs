//! Shape rule of attention in one node.

use super::matmul;
use super::spec::{divides, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Sources of an attention.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// [d, queries, heads, batch].
    pub q: &'a ggml_tensor,
    /// [d, keys, key heads, batch].
    pub k: &'a ggml_tensor,
    /// [dv, keys, value heads, batch]: not transposed.
    pub v: &'a ggml_tensor,
    /// f16 [>= keys, >= queries, m2, m3], contiguous; heads and batch are multiples of m2 and m3.
    pub mask: Option<&'a ggml_tensor>,
}

/// FLASH_ATTN_EXT: f32 [dv, heads, queries, batch]. A positive `max_bias` needs a mask.
pub fn flash_attn_ext(s: Sources, scale: f32, max_bias: f32, logit_softcap: f32) -> Result<NodeSpec, Error> {
    let Sources { q, k, v, mask } = s;
    matmul::check(["k", "q"], k, q)?;
    require!(
        q.ne[3] == k.ne[3] && q.ne[3] == v.ne[3],
        "{}, {} and {}: ne[3] must be equal",
        show("q", q),
        show("k", k),
        show("v", v)
    );
    require!(k.ne[1] == v.ne[1], "{} and {}: ne[1] must be equal", show("k", k), show("v", v));
    require!(divides(v.ne[2], q.ne[2]), "{} cannot be repeated to the heads of {}", show("v", v), show("q", q));
    if let Some(mask) = mask {
        require!(mask.r#type == GGML_TYPE_F16, "{} must be f16", show("mask", mask));
        require!(shape::is_contiguous(mask), "{} must be contiguous", show("mask", mask));
        require!(
            mask.ne[0] >= k.ne[1] && mask.ne[1] >= q.ne[1],
            "{} must cover the keys of {} and the queries of {}",
            show("mask", mask),
            show("k", k),
            show("q", q)
        );
        require!(
            divides(mask.ne[2], q.ne[2]) && divides(mask.ne[3], q.ne[3]),
            "{} cannot be repeated along dimensions 2 and 3 of {}",
            show("mask", mask),
            show("q", q)
        );
    }
    require!(mask.is_some() || max_bias <= 0.0, "max_bias {max_bias} needs a mask");
    let ne = [v.ne[0], q.ne[2], q.ne[1], q.ne[3]];
    Ok(NodeSpec::new(GGML_OP_FLASH_ATTN_EXT, GGML_TYPE_F32, ne)
        .param_f32(0, scale)
        .param_f32(1, max_bias)
        .param_f32(2, logit_softcap))
}

/// Elements from one of the three gradients in the result of FLASH_ATTN_BACK to the next: each starts at a multiple of 16 bytes.
fn padded(t: &ggml_tensor) -> Option<i64> {
    shape::checked_nelements(&t.ne)?.checked_add(3).map(|n| n / 4 * 4)
}

/// FLASH_ATTN_BACK: gradient `d` [dim, queries, heads, batch] of an attention of `q` [dim, queries, heads, batch] over `k` [dim, keys,
/// k2, batch] and transposed `v` [keys, dim, k2, batch] with scale 1 / sqrt(dim) back to all three: f32, the gradients of q, k and v one
/// after the other, each contiguous and padded to 16 bytes.
pub fn flash_attn_back(
    q: &ggml_tensor,
    k: &ggml_tensor,
    v: &ggml_tensor,
    d: &ggml_tensor,
    masked: bool,
) -> Result<NodeSpec, Error> {
    matmul::check(["k", "q"], k, q)?;
    require!(q.ne[3] == k.ne[3], "{} and {}: ne[3] must be equal", show("q", q), show("k", k));
    require!(
        v.ne == [k.ne[1], k.ne[0], k.ne[2], k.ne[3]],
        "{} must have the dimensions 0 and 1 of {} the other way round, and its others",
        show("v", v),
        show("k", k)
    );
    require!(shape::same_shape(d, q), "{} and {} must have one shape", show("d", d), show("q", q));
    let total = [q, k, v].into_iter().try_fold(0i64, |sum, t| sum.checked_add(padded(t)?));
    let total = total.ok_or_else(|| Error::shape("the gradients have more elements than can be counted"))?;
    Ok(NodeSpec::new(GGML_OP_FLASH_ATTN_BACK, GGML_TYPE_F32, [total, 1, 1, 1]).params([masked.into()]))
}
