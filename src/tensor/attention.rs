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
