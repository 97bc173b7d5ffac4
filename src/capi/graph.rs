//! Entry points on graphs.

use crate::backend::tensor_data;
use crate::entry;
use crate::error::{self, Error};
use crate::graph::{access, backward, build, memory};
use crate::tensor::context;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, c_int, CStr};
use std::ptr::null_mut;

use super::Fallback;

impl Fallback for ggml_cgraph {
    fn fallback() -> Self {
        ggml_cgraph {
            size: 0,
            n_nodes: 0,
            n_leafs: 0,
            nodes: null_mut(),
            grads: null_mut(),
            grad_accs: null_mut(),
            leafs: null_mut(),
            use_counts: null_mut(),
            visited_hash_set: Fallback::fallback(),
            order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
            uid: 0,
        }
    }
}

impl Fallback for ggml_hash_set {
    fn fallback() -> Self {
        ggml_hash_set { size: 0, used: null_mut(), keys: null_mut() }
    }
}

/// The value, or the failing answer with the error reported under the call's name.
pub(crate) fn or_report<T: Fallback>(call: &str, result: Result<T, Error>) -> T {
    result.unwrap_or_else(|e| {
        error::report(&e.within(call));
        T::fallback()
    })
}

/// The graph, or an error that says that there is none.
pub(crate) unsafe fn some<'a>(graph: *const ggml_cgraph) -> Result<&'a ggml_cgraph, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { graph.as_ref() }.ok_or_else(no_graph)
}

/// As [`some`], to change it.
unsafe fn some_mut<'a>(graph: *mut ggml_cgraph) -> Result<&'a mut ggml_cgraph, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { graph.as_mut() }.ok_or_else(no_graph)
}

fn no_graph() -> Error {
    Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the graph is NULL")
}

unsafe fn set_all(t: *mut ggml_tensor, value: Option<f32>) {
    // SAFETY: the contract of the entry points.
    unsafe {
        let Some(tensor) = t.as_ref() else { return };
        let n = shape::nbytes(tensor);
        if n == 0 {
            return;
        }
        let bytes = value.unwrap_or(0.0).to_ne_bytes();
        match value {
            _ if tensor.buffer.is_null() && tensor.data.is_null() => {
                let text = format!("ggml_graph_reset: tensor '{}' has no data", shape::name(tensor));
                error::report_at(&Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text), t);
            }
            Some(_) if tensor.r#type != GGML_TYPE_F32 || !shape::is_scalar(tensor) => {
                error::report_at(&Error::shape("ggml_graph_reset: the gradient of a loss must be one f32"), t);
            }
            Some(_) if tensor.buffer.is_null() => tensor.data.cast::<u8>().copy_from(bytes.as_ptr(), 4),
            Some(_) => tensor_data::set("ggml_graph_reset", t, bytes.as_ptr().cast(), tensor_data::Rows::range(0, 4)),
            None if tensor.buffer.is_null() => tensor.data.cast::<u8>().write_bytes(0, n),
            None => tensor_data::memset("ggml_graph_reset", t, 0, 0, n),
        }
    }
}

entry! {
    /// A graph in `ctx` with room for `GGML_DEFAULT_GRAPH_SIZE` nodes and as many leafs. NULL when the context is full.
    pub fn ggml_new_graph(ctx: *mut ggml_context) -> *mut ggml_cgraph {
        const CALL: &str = "ggml_new_graph";
        context(ctx, CALL).map_or(null_mut(), |ctx| or_report(CALL, memory::new(ctx, GGML_DEFAULT_GRAPH_SIZE, false)))
    }

    /// A graph in `ctx` with room for `size` nodes and as many leafs, and for gradients if `grads`. NULL when the context is full.
    pub fn ggml_new_graph_custom(ctx: *mut ggml_context, size: usize, grads: bool) -> *mut ggml_cgraph {
        const CALL: &str = "ggml_new_graph_custom";
        context(ctx, CALL).map_or(null_mut(), |ctx| or_report(CALL, memory::new(ctx, size, grads)))
    }

    /// A copy of `cgraph` in `ctx`, with room for gradients if it has such or `force_grads`. NULL when the context is full.
    pub fn ggml_graph_dup(ctx: *mut ggml_context, cgraph: *mut ggml_cgraph, force_grads: bool) -> *mut ggml_cgraph {
        const CALL: &str = "ggml_graph_dup";
        context(ctx, CALL).map_or(null_mut(), |ctx| or_report(CALL, some(cgraph).and_then(|src| {
            let size = src.size.max(src.n_nodes).max(src.n_leafs).max(0) as usize;
            let copy = memory::new(ctx, size, force_grads || !src.grads.is_null())?;
            memory::copy(src, &mut *copy)?;
            Ok(copy)
        })))
    }

    /// Makes `dst` the same graph as `src`; `dst` must have room for it.
    pub fn ggml_graph_cpy(src: *mut ggml_cgraph, dst: *mut ggml_cgraph) {
        if !std::ptr::eq(src, dst) {
            or_report("ggml_graph_cpy", some(src).and_then(|src| memory::copy(src, some_mut(dst)?)))
        }
    }

    /// Zeroes the gradients and the optimiser's moments; the gradient of a loss becomes 1. The graph must have gradients.
    pub fn ggml_graph_reset(cgraph: *mut ggml_cgraph) {
        or_report("ggml_graph_reset", some(cgraph).and_then(|graph| {
            if graph.grads.is_null() {
                return Err(Error::argument("the graph has no gradients"));
            }
            for &node in access::checked_nodes(graph)? {
                if (*node).op == GGML_OP_OPT_STEP_ADAMW {
                    set_all((&(*node).src)[2], None);
                    set_all((&(*node).src)[3], None);
                }
                let loss = (*node).flags & GGML_TENSOR_FLAG_LOSS.0 != 0;
                set_all(access::grad_acc(graph, node), loss.then_some(1.0));
            }
            Ok(())
        }))
    }

    /// Empties a graph; its room stays.
    pub fn ggml_graph_clear(cgraph: *mut ggml_cgraph) {
        or_report("ggml_graph_clear", some_mut(cgraph).map(|graph| memory::clear(graph)))
    }

    /// Adds `tensor` and what it is computed from, each tensor once, sources before results. A tensor that finds no room is an error,
    /// and computing the graph then fails.
    pub fn ggml_build_forward_expand(cgraph: *mut ggml_cgraph, tensor: *mut ggml_tensor) {
        or_report("ggml_build_forward_expand", some_mut(cgraph).and_then(|graph| build::expand(graph, tensor, true)))
    }

    /// Adds the nodes that compute the gradients of the losses (`ggml_set_loss`) with respect to the parameters (`ggml_set_param`) and to
    /// all between. The graph must be made with `grads`, hold the forward pass, and have room. Gradients are f32 and contiguous;
    /// `ggml_graph_get_grad` finds them.
    ///
    /// `grad_accs`: NULL, or for each node of the graph NULL or a contiguous f32 tensor of its shape, to which its gradient is added,
    /// pass by pass. A loss without one gets one in `ctx`. Zero them and set that of the loss to 1 with `ggml_graph_reset`.
    ///
    /// An operator without gradient between a parameter and a loss, a node written over its source, or a full graph or context
    /// is an error, and the graph is as before.
    pub fn ggml_build_backward_expand(ctx: *mut ggml_context, cgraph: *mut ggml_cgraph, grad_accs: *mut *mut ggml_tensor) {
        const CALL: &str = "ggml_build_backward_expand";
        let Some(ctx) = context(ctx, CALL) else { return };
        or_report(CALL, some_mut(cgraph).and_then(|graph| {
            let n = if grad_accs.is_null() { 0 } else { graph.n_nodes.max(0) as usize };
            let accs = if n == 0 { &[] } else { std::slice::from_raw_parts(grad_accs, n) };
            backward::expand(ctx, graph, accs)
        }))
    }

    /// As `ggml_build_forward_expand`, but the nodes are not marked to be computed: they only fix an order.
    pub fn ggml_build_forward_order(cgraph: *mut ggml_cgraph, tensor: *mut ggml_tensor) {
        or_report("ggml_build_forward_order", some_mut(cgraph).and_then(|graph| build::expand(graph, tensor, false)))
    }

    /// Adds all `n_tensors` tensors, of which only number `idx` is computed, so that graphs that differ in the choice have one shape.
    /// The chosen one; NULL for an index out of range.
    pub fn ggml_build_forward_select(
        cgraph: *mut ggml_cgraph,
        tensors: *mut *mut ggml_tensor,
        n_tensors: c_int,
        idx: c_int,
    ) -> *mut ggml_tensor {
        or_report("ggml_build_forward_select", some_mut(cgraph).and_then(|graph| {
            if tensors.is_null() || idx < 0 || idx >= n_tensors {
                return Err(Error::argument(format!("there is no tensor {idx} among {n_tensors}")));
            }
            let tensors = std::slice::from_raw_parts(tensors, n_tensors as usize);
            for (i, &tensor) in tensors.iter().enumerate() {
                build::expand(graph, tensor, i == idx as usize)?;
            }
            Ok(tensors[idx as usize])
        }))
    }

    /// Nodes that the graph has room for.
    pub fn ggml_graph_size(cgraph: *mut ggml_cgraph) -> c_int {
        or_report("ggml_graph_size", some(cgraph).map(|graph| graph.size))
    }

    /// Nodes in the graph.
    pub fn ggml_graph_n_nodes(cgraph: *mut ggml_cgraph) -> c_int {
        or_report("ggml_graph_n_nodes", some(cgraph).map(|graph| graph.n_nodes))
    }

    /// Node `i`; -1 is the last one. NULL for an index out of range.
    pub fn ggml_graph_node(cgraph: *mut ggml_cgraph, i: c_int) -> *mut ggml_tensor {
        or_report("ggml_graph_node", some(cgraph).and_then(|graph| access::node(graph, i)))
    }

    /// All nodes, in the order in which they run.
    pub fn ggml_graph_nodes(cgraph: *mut ggml_cgraph) -> *mut *mut ggml_tensor {
        or_report("ggml_graph_nodes", some(cgraph).map(|graph| graph.nodes))
    }

    /// Appends `tensor` as it stands; what it is computed from is not looked at.
    pub fn ggml_graph_add_node(cgraph: *mut ggml_cgraph, tensor: *mut ggml_tensor) {
        or_report("ggml_graph_add_node", some_mut(cgraph).and_then(|graph| build::add_node(graph, tensor)))
    }

    /// Bytes that `ggml_new_graph` takes from a context.
    pub fn ggml_graph_overhead() -> usize {
        memory::overhead(GGML_DEFAULT_GRAPH_SIZE, false)
    }

    /// Bytes that `ggml_new_graph_custom` takes from a context; `SIZE_MAX` when there can be no such graph.
    pub fn ggml_graph_overhead_custom(size: usize, grads: bool) -> usize {
        memory::overhead(size, grads)
    }

    /// The leaf or node of that name, or NULL.
    pub fn ggml_graph_get_tensor(cgraph: *const ggml_cgraph, name: *const c_char) -> *mut ggml_tensor {
        or_report("ggml_graph_get_tensor", some(cgraph).and_then(|graph| {
            if name.is_null() {
                return Err(Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the name is NULL"));
            }
            Ok(access::by_name(graph, CStr::from_ptr(name).to_bytes()))
        }))
    }

    /// The gradient of `node`, or NULL.
    pub fn ggml_graph_get_grad(cgraph: *const ggml_cgraph, node: *const ggml_tensor) -> *mut ggml_tensor {
        or_report("ggml_graph_get_grad", some(cgraph).map(|graph| access::grad(graph, node)))
    }

    /// The tensor in which the gradient of `node` is summed up, or NULL.
    pub fn ggml_graph_get_grad_acc(cgraph: *const ggml_cgraph, node: *const ggml_tensor) -> *mut ggml_tensor {
        or_report("ggml_graph_get_grad_acc", some(cgraph).map(|graph| access::grad_acc(graph, node)))
    }

    /// Writes the graph to the log.
    pub fn ggml_graph_print(cgraph: *const ggml_cgraph) {
        or_report("ggml_graph_print", some(cgraph).map(|graph| access::print(graph)))
    }
}
