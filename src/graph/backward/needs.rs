//! Which tensors want a gradient: parameters, losses, and what lies between.

use super::frame::{Frame, Tensor};
use crate::error::Error;
use crate::tensor::show;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Whether source `i` of `node` cannot change the result, or not smoothly.
pub fn ignores(node: Tensor, i: usize) -> bool {
    match (node.op, i) {
        // only the shape of source 0 counts
        (GGML_OP_IM2COL | GGML_OP_IM2COL_BACK | GGML_OP_IM2COL_3D | GGML_OP_FILL, 0) => true,
        // written over, or indices and positions
        (GGML_OP_CPY | GGML_OP_GET_ROWS | GGML_OP_GET_ROWS_BACK | GGML_OP_ROPE | GGML_OP_ROPE_BACK, 1) => true,
        (GGML_OP_ADD_ID, 2) => true,
        // constant but for jumps
        (GGML_OP_UNARY, _) => matches!(
            ggml_unary_op(node.op_params[0]),
            GGML_UNARY_OP_SGN
                | GGML_UNARY_OP_STEP
                | GGML_UNARY_OP_FLOOR
                | GGML_UNARY_OP_CEIL
                | GGML_UNARY_OP_ROUND
                | GGML_UNARY_OP_TRUNC
        ),
        (GGML_OP_ARGMAX | GGML_OP_ARGSORT | GGML_OP_TOP_K | GGML_OP_COUNT_EQUAL, _) => true,
        _ => false,
    }
}

fn is_integer(t: Tensor) -> bool {
    matches!(t.r#type, GGML_TYPE_I8 | GGML_TYPE_I16 | GGML_TYPE_I32 | GGML_TYPE_I64)
}

fn is_float(t: Tensor) -> bool {
    matches!(t.r#type, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16)
}

/// Whether `node` may look at the memory of another tensor: it leaves the values there alone, or overwrites only what is ignored.
fn keeps_its_source(node: Tensor) -> bool {
    matches!(
        node.op,
        GGML_OP_CPY | GGML_OP_SET_ROWS | GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE
    ) || node.view_src.is_null()
}

/// Marks what wants a gradient, in the order of the graph, and places accumulators: `acc` by number of the node.
pub fn mark(frame: &mut Frame, nodes: &[Tensor], acc: impl Fn(usize) -> Option<Tensor>) -> Result<(), Error> {
    let has = |flag: ggml_tensor_flag| nodes.iter().any(|t| t.flags & flag.0 != 0);
    if !has(GGML_TENSOR_FLAG_PARAM) {
        return Err(Error::argument("the graph has no parameter: mark one with ggml_set_param before it is built"));
    }
    if !has(GGML_TENSOR_FLAG_LOSS) {
        return Err(Error::argument("the graph has no loss: mark one with ggml_set_loss"));
    }
    for (i, &node) in nodes.iter().enumerate() {
        if is_integer(node) {
            continue;
        }
        mark_one(frame, node, acc(i)).map_err(|e| super::at(node, e))?;
    }
    Ok(())
}

fn mark_one(frame: &mut Frame, node: Tensor, acc: Option<Tensor>) -> Result<(), Error> {
    let loss = node.flags & GGML_TENSOR_FLAG_LOSS.0 != 0;
    let mut needed = loss || node.flags & GGML_TENSOR_FLAG_PARAM.0 != 0;
    for i in 0..GGML_MAX_SRC {
        let Some(src) = node.src(i).filter(|&src| !ignores(node, i) && frame.needs(src)) else { continue };
        if !is_float(src) {
            return Err(Error::shape(format!("{} must be f32, f16 or bf16 to have a gradient", show("source", &src))));
        }
        needed = true;
    }
    if !needed {
        return Ok(());
    }
    if !keeps_its_source(node) {
        return Err(Error::argument("it is written over its source, whose values the gradient would need"));
    }
    let acc = match acc {
        Some(acc) if acc.r#type != GGML_TYPE_F32 || !shape::same_shape(&acc, &node) || !shape::is_contiguous(&acc) => {
            return Err(Error::shape(format!(
                "{} must be contiguous f32 of the shape of {}",
                show("accumulator", &acc),
                show("node", &node)
            )));
        }
        // the gradient of a loss is given from outside
        None if loss => Some(frame.leaf(node)?),
        acc => acc,
    };
    let gradient = frame.of_mut(node).ok_or_else(|| Error::argument("the graph's hash set does not have it"))?;
    (gradient.needed, gradient.acc, gradient.grad) = (true, acc, acc);
    Ok(())
}
