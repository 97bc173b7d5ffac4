//! Shape rules of losses and of the steps of optimizers.

use super::spec::{require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// CROSS_ENTROPY_LOSS of logits `a` and labels `b`, equal in shape: one element of the format of `a`.
pub fn cross_entropy_loss(a: &ggml_tensor, b: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(shape::same_shape(a, b), "{} and {} must have one shape", show("logits", a), show("labels", b));
    Ok(NodeSpec::new(GGML_OP_CROSS_ENTROPY_LOSS, a.r#type, [1; GGML_MAX_DIMS]))
}

/// CROSS_ENTROPY_LOSS_BACK: gradient `grad`, one element, back to the logits.
pub fn cross_entropy_loss_back(
    grad: &ggml_tensor,
    logits: &ggml_tensor,
    labels: &ggml_tensor,
) -> Result<NodeSpec, Error> {
    require!(shape::is_scalar(grad), "{} must have one element", show("gradient", grad));
    require!(
        shape::same_shape(logits, labels),
        "{} and {} must have one shape",
        show("logits", logits),
        show("labels", labels)
    );
    Ok(NodeSpec::like(GGML_OP_CROSS_ENTROPY_LOSS_BACK, logits))
}

/// What the steps of optimizers share: `a` is a parameter of the shape of all `states`, `params` are `n` numbers.
fn step(
    op: ggml_op,
    a: &ggml_tensor,
    states: &[(&str, &ggml_tensor)],
    params: &ggml_tensor,
    n: i64,
) -> Result<NodeSpec, Error> {
    require!(a.flags & GGML_TENSOR_FLAG_PARAM.0 != 0, "{} must be a parameter (ggml_set_param)", show("src0", a));
    for (role, state) in states {
        require!(shape::same_shape(a, state), "{} must have the shape of {}", show(role, state), show("src0", a));
    }
    require!(
        params.r#type == GGML_TYPE_F32 && shape::nelements(params) == n,
        "{} must be {n} f32 numbers",
        show("params", params)
    );
    Ok(NodeSpec::over(op, a, 0))
}

/// OPT_STEP_ADAMW over parameter `a`; the first and second moment `m` and `v` are written too. `params`: 7 numbers.
pub fn adamw(
    a: &ggml_tensor,
    grad: &ggml_tensor,
    m: &ggml_tensor,
    v: &ggml_tensor,
    params: &ggml_tensor,
) -> Result<NodeSpec, Error> {
    step(GGML_OP_OPT_STEP_ADAMW, a, &[("gradient", grad), ("m", m), ("v", v)], params, 7)
}

/// OPT_STEP_SGD over parameter `a`. `params`: 2 numbers.
pub fn sgd(a: &ggml_tensor, grad: &ggml_tensor, params: &ggml_tensor) -> Result<NodeSpec, Error> {
    step(GGML_OP_OPT_STEP_SGD, a, &[("gradient", grad)], params, 2)
}
