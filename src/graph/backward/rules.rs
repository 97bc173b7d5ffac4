//! From an operator to its rule.

use super::frame::{Flow, Frame, Node, Tensor};
use super::{arithmetic, gated, matmul, norm, reduce, unary, views, window};
use crate::error::Error;
use ggml_oxide_abi::*;

/// The gradient that source `i` gets from a node.
type Rule = fn(&mut Frame, &Node, usize) -> Result<Flow, Error>;

/// `None`: the operator cannot be differentiated here.
fn rule(op: ggml_op) -> Option<Rule> {
    Some(match op {
        GGML_OP_DUP => arithmetic::dup,
        GGML_OP_ADD => arithmetic::add,
        GGML_OP_ADD1 => arithmetic::add1,
        GGML_OP_ADD_ID => arithmetic::add_id,
        GGML_OP_SUB => arithmetic::sub,
        GGML_OP_MUL => arithmetic::mul,
        GGML_OP_DIV => arithmetic::div,
        GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_SIN | GGML_OP_COS => arithmetic::function,
        GGML_OP_SCALE => arithmetic::scale,
        GGML_OP_CLAMP => arithmetic::clamp,
        GGML_OP_LEAKY_RELU => arithmetic::leaky_relu,
        GGML_OP_UNARY => unary::rule,
        GGML_OP_GLU => gated::rule,
        GGML_OP_SUM | GGML_OP_SUM_ROWS | GGML_OP_REPEAT_BACK => reduce::spread,
        GGML_OP_MEAN => reduce::mean,
        GGML_OP_REPEAT => reduce::repeat,
        GGML_OP_CUMSUM => reduce::cumsum,
        GGML_OP_RMS_NORM => norm::rms_norm,
        GGML_OP_NORM => norm::norm,
        GGML_OP_GROUP_NORM => norm::group_norm,
        GGML_OP_L2_NORM => norm::l2_norm,
        GGML_OP_SOFT_MAX => norm::soft_max,
        GGML_OP_CROSS_ENTROPY_LOSS => norm::cross_entropy_loss,
        GGML_OP_MUL_MAT => matmul::mul_mat,
        GGML_OP_OUT_PROD => matmul::out_prod,
        GGML_OP_ACC => views::acc,
        GGML_OP_SET => views::set,
        GGML_OP_CPY => views::cpy,
        GGML_OP_CONT | GGML_OP_RESHAPE => views::reshape,
        GGML_OP_VIEW => views::view,
        GGML_OP_PERMUTE => views::permute,
        GGML_OP_TRANSPOSE => views::transpose,
        GGML_OP_GET_ROWS => views::get_rows,
        GGML_OP_CONCAT => views::concat,
        GGML_OP_PAD => views::pad,
        GGML_OP_ROLL => views::roll,
        GGML_OP_DIAG => views::diag,
        GGML_OP_DIAG_MASK_INF | GGML_OP_DIAG_MASK_ZERO => views::diag_mask,
        GGML_OP_TRI => views::tri,
        GGML_OP_ROPE => window::rope,
        GGML_OP_IM2COL => window::im2col,
        GGML_OP_POOL_1D => window::pool_1d,
        GGML_OP_POOL_2D => window::pool_2d,
        _ => return None,
    })
}

/// Sends the gradient of `node`, if it has one, on to its sources.
pub fn pass(frame: &mut Frame, node: Tensor) -> Result<(), Error> {
    let Some(grad) = frame.of(node).and_then(|g| g.grad) else { return Ok(()) };
    if node.op == GGML_OP_NONE {
        return Ok(());
    }
    let node = Node { value: node, grad };
    for i in 0..GGML_MAX_SRC {
        // a copy to another format is its own source
        let Some(src) = node.value.src(i).filter(|&src| src != node.value && frame.needs(src)) else { continue };
        if super::needs::ignores(node.value, i) {
            continue;
        }
        let rule = rule(node.value.op).ok_or_else(|| Error::argument("the operator has no gradient"))?;
        let flow = rule(frame, &node, i)?;
        frame.flow(src, flow)?;
    }
    Ok(())
}

/// Answers that source `i` has no gradient.
pub fn none(what: &str, i: usize) -> Result<Flow, Error> {
    Err(Error::argument(format!("source {i}, the {what}, has no gradient")))
}
