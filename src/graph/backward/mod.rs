//! Backward passes: nodes that compute the gradients of a loss, added to the graph that computes the loss. Imports:
//! [`crate::error`], [`crate::tensor`], [`super`].
//!
//! - [`frame`]: handles of tensors, gradients by hash slot, and the one way in which nodes are made here.
//! - [`maker`]: shorthands for the operators that gradients are made of.
//! - [`needs`]: which nodes depend on a parameter; which sources do not count.
//! - [`rules`]: from an operator to its rule; one file for each family: [`arithmetic`], [`unary`], [`gated`], [`reduce`], [`norm`],
//!   [`matmul`], [`views`], [`window`] (convolution, pooling, rotary embedding).
//!
//! Conventions: a gradient is f32, contiguous, and has the shape of what it is for; it may be a node of the forward pass's own, or the same
//! tensor for several. Where there is an accumulator, gradients are added to it in place, so it sums up passes until it is zeroed. All
//! nodes are made before the graph is touched: a graph that cannot be differentiated, or has no room, stays as it was.

mod arithmetic;
mod frame;
mod gated;
mod maker;
mod matmul;
mod needs;
mod norm;
mod reduce;
mod rules;
mod saved;
mod unary;
mod views;
mod window;

use super::{access, build};
use crate::error::Error;
use crate::tensor::Context;
use frame::{Frame, Tensor};
use ggml_oxide_abi::*;
use saved::Saved;

/// Adds to `graph` the nodes that compute the gradients of its losses with respect to its parameters and to all between. `accs`: one
/// accumulator or NULL for each node, in order; shorter lists are continued with NULL. Losses without one get theirs from `ctx`.
///
/// # Safety
/// The graph's arrays are as large as it says, its tensors and the accumulators are live, and nobody else uses them.
pub unsafe fn expand(ctx: &mut Context, graph: &mut ggml_cgraph, accs: &[*mut ggml_tensor]) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let nodes = unsafe { access::checked_nodes(graph) }?;
    if nodes.is_empty() {
        return Err(Error::argument("the graph has no nodes"));
    }
    if graph.grads.is_null() || graph.grad_accs.is_null() {
        return Err(Error::argument(
            "the graph has no room for gradients: make it with ggml_new_graph_custom and grads",
        ));
    }
    // SAFETY: the caller's promise.
    if let Some(fault) = unsafe { access::fault(graph) } {
        return Err(fault);
    }
    let mut handles: Vec<Tensor> = Vec::new();
    handles.try_reserve_exact(nodes.len())?;
    // SAFETY: as above: the handles are used no longer than the graph's tensors live.
    handles.extend(nodes.iter().filter_map(|&t| unsafe { Tensor::new(t) }));
    let nodes = handles;
    let mut frame = Frame::new(ctx, graph.visited_hash_set)?;
    // SAFETY: as above.
    needs::mark(&mut frame, &nodes, |i| accs.get(i).and_then(|&t| unsafe { Tensor::new(t) }))?;
    for &node in nodes.iter().rev() {
        rules::pass(&mut frame, node).map_err(|e| at(node, e))?;
    }
    let (gradients, made) = frame.done();

    // SAFETY: the caller's promise; what was made is live as long as its context.
    unsafe {
        let saved = Saved::of(graph)?;
        for t in made {
            if let Err(e) = build::expand(graph, t.as_ptr(), true) {
                saved.restore(graph);
                return Err(e);
            }
        }
        for (i, g) in gradients.iter().enumerate() {
            *graph.grads.add(i) = g.grad.map_or(std::ptr::null_mut(), Tensor::as_ptr);
            *graph.grad_accs.add(i) = g.acc.map_or(std::ptr::null_mut(), Tensor::as_ptr);
        }
    }
    Ok(())
}

/// The error with its node.
fn at(node: Tensor, e: Error) -> Error {
    let op = match node.op {
        GGML_OP_UNARY => format!("{:?}", ggml_unary_op(node.op_params[0])),
        GGML_OP_GLU => format!("{:?}", ggml_glu_op(node.op_params[0])),
        op => format!("{op:?}"),
    };
    let op =
        op.trim_start_matches("GGML_").replacen("UNARY_OP_", "", 1).replacen("GLU_OP_", "", 1).replacen("OP_", "", 1);
    Error { node: node.as_ptr(), ..e.within(&format!("node '{}' ({op})", ggml_oxide_shape::name(&node))) }
}
