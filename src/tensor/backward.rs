//! Shape rules of the operators that take a gradient back through an element-wise function, a normalisation or a gather. Those of
//! convolution, pooling, rope and attention stand beside the operator that they belong to.

use super::spec::{dims, divides, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// A gradient and the source of the operator that it comes through: equal in shape.
fn paired(grad: &ggml_tensor, x: &ggml_tensor) -> Result<(), Error> {
    require!(shape::same_shape(grad, x), "{} and {} must have one shape", show("gradient", grad), show("source", x));
    Ok(())
}

/// SILU_BACK: gradient `grad` of `silu(x)` back to `x`.
pub fn silu(grad: &ggml_tensor, x: &ggml_tensor) -> Result<NodeSpec, Error> {
    paired(grad, x)?;
    Ok(NodeSpec::like(GGML_OP_SILU_BACK, grad))
}

/// RMS_NORM_BACK: gradient `grad` of `rms_norm(x)` back to `x`; `eps` not negative.
pub fn rms_norm(grad: &ggml_tensor, x: &ggml_tensor, eps: f32) -> Result<NodeSpec, Error> {
    paired(grad, x)?;
    require!(eps >= 0.0, "eps {eps} must not be negative");
    Ok(NodeSpec::like(GGML_OP_RMS_NORM_BACK, grad).param_f32(0, eps))
}

/// SOFT_MAX_BACK: gradient `grad` of the softmax `y` back to what was scaled. `max_bias` is kept and changes nothing: a mask is added.
pub fn soft_max(
    grad: &ggml_tensor,
    y: &ggml_tensor,
    scale: f32,
    max_bias: f32,
    inplace: bool,
) -> Result<NodeSpec, Error> {
    paired(grad, y)?;
    Ok(NodeSpec::like_or_over(GGML_OP_SOFT_MAX_BACK, grad, inplace).param_f32(0, scale).param_f32(1, max_bias))
}

/// REPEAT_BACK: the sum of the parts of `a` that a repetition of the shape `ne` filled.
pub fn repeat(a: &ggml_tensor, ne: [i64; GGML_MAX_DIMS]) -> Result<NodeSpec, Error> {
    let fits = match ne.contains(&0) {
        true => shape::is_empty(a),
        false => ne.iter().zip(a.ne).all(|(&small, large)| divides(small, large)),
    };
    require!(fits, "{} cannot be repeated to {}", dims(&ne), show("src0", a));
    Ok(NodeSpec::new(GGML_OP_REPEAT_BACK, a.r#type, ne).keeping(1))
}

/// GET_ROWS_BACK: gradient `grad` [n, r, b2, b3] of rows `ids` i32 [r, b2, b3] back to what they were taken of, `ne` [n, rows, b2, b3]:
/// f32. Rows taken more than once add up.
pub fn get_rows(grad: &ggml_tensor, ids: &ggml_tensor, of: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(ids.r#type == GGML_TYPE_I32, "{} must be i32", show("src1", ids));
    require!(
        grad.ne[1..] == ids.ne[..3] && ids.ne[3] == 1,
        "{} needs an id for each row of {}",
        show("src1", ids),
        show("gradient", grad)
    );
    require!(
        grad.ne[0] == of.ne[0] && grad.ne[2..] == of.ne[2..],
        "{} and {} must be equal but for ne[1]",
        show("gradient", grad),
        show("source", of)
    );
    Ok(NodeSpec::new(GGML_OP_GET_ROWS_BACK, GGML_TYPE_F32, of.ne).keeping(2))
}
