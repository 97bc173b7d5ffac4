//! Shape rules of normalisations and of softmax: the shape of source 0.

use super::spec::{divides, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// NORM, RMS_NORM, L2_NORM: along dimension 0; `eps` not negative.
pub fn rows(op: ggml_op, a: &ggml_tensor, eps: f32, inplace: bool) -> Result<NodeSpec, Error> {
    require!(eps >= 0.0, "eps {eps} must not be negative");
    Ok(NodeSpec::like_or_over(op, a, inplace).param_f32(0, eps))
}

/// GROUP_NORM: over dimensions 0, 1 and a group of dimension 2.
pub fn group_norm(a: &ggml_tensor, n_groups: i32, eps: f32, inplace: bool) -> Result<NodeSpec, Error> {
    require!(n_groups > 0, "{n_groups} groups: there must be at least one");
    require!(eps >= 0.0, "eps {eps} must not be negative");
    Ok(NodeSpec::like_or_over(GGML_OP_GROUP_NORM, a, inplace).params([n_groups]).param_f32(1, eps))
}

/// SOFT_MAX along dimension 0. `mask`: contiguous f16 or f32 [ne0, >= ne1, m2, m3], where ne2 and ne3 are multiples of m2 and m3;
/// it must be there for a positive `max_bias`.
pub fn soft_max(
    a: &ggml_tensor,
    mask: Option<&ggml_tensor>,
    scale: f32,
    max_bias: f32,
    inplace: bool,
) -> Result<NodeSpec, Error> {
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    if let Some(mask) = mask {
        require!(
            mask.r#type == GGML_TYPE_F16 || mask.r#type == GGML_TYPE_F32,
            "{} must be f16 or f32",
            show("mask", mask)
        );
        require!(shape::is_contiguous(mask), "{} must be contiguous", show("mask", mask));
        require!(
            mask.ne[0] == a.ne[0] && mask.ne[1] >= a.ne[1],
            "{} must cover the rows of {}",
            show("mask", mask),
            show("src0", a)
        );
        require!(
            divides(mask.ne[2], a.ne[2]) && divides(mask.ne[3], a.ne[3]),
            "{} cannot be repeated along dimensions 2 and 3 of {}",
            show("mask", mask),
            show("src0", a)
        );
    }
    require!(mask.is_some() || max_bias <= 0.0, "max_bias {max_bias} needs a mask");
    Ok(NodeSpec::like_or_over(GGML_OP_SOFT_MAX, a, inplace).param_f32(0, scale).param_f32(1, max_bias))
}

/// Sinks of a softmax or of an attention: f32, one for each of the `heads`.
pub fn sinks(heads: &ggml_tensor, sinks: &ggml_tensor) -> Result<(), Error> {
    require!(sinks.r#type == GGML_TYPE_F32, "{} must be f32", show("sinks", sinks));
    require!(
        heads.ne[2] == sinks.ne[0],
        "{}: there must be one for each of dimension 2 of {}",
        show("sinks", sinks),
        show("src0", heads)
    );
    Ok(())
}
