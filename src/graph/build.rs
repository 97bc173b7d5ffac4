//! Growing a graph: depth first from a result, sources in order, each tensor once; the stack is on the heap, so depth is no limit.

use super::hash::{self, Found};
use super::mark_incomplete;
use crate::error::Error;
use crate::tensor::set_name;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashSet;

/// Adds `root` and everything that it is computed from and that `graph` has not seen. `compute`: and marks all of it to be computed.
///
/// What does not fit is refused, and the graph is marked: computing it fails.
///
/// # Safety
/// The graph's arrays are as large as it says and nobody else uses it; `root` is NULL or live, and so is all that it is computed from.
pub unsafe fn expand(graph: &mut ggml_cgraph, root: *mut ggml_tensor, compute: bool) -> Result<(), Error> {
    let result = if root.is_null() {
        Err(Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the tensor is NULL"))
    } else {
        // SAFETY: the caller's promise.
        unsafe { Walk { graph, compute, stack: Vec::new(), again: HashSet::new() }.run(root) }
    };
    if result.is_err() {
        mark_incomplete(graph);
    }
    result
}

/// A tensor whose sources are being visited.
struct Frame {
    tensor: *mut ggml_tensor,
    next: usize,
    /// The graph sees it for the first time: its sources are counted and it is added after them. Otherwise only the mark is handed on.
    first: bool,
}

struct Walk<'a> {
    graph: &'a mut ggml_cgraph,
    compute: bool,
    stack: Vec<Frame>,
    /// Tensors without operator, which carry no mark, that were visited again: once is enough.
    again: HashSet<*mut ggml_tensor>,
}

impl Walk<'_> {
    unsafe fn run(&mut self, root: *mut ggml_tensor) -> Result<(), Error> {
        // SAFETY: the promise of `expand`; sources of live tensors are live.
        unsafe {
            self.enter(root)?;
            while let Some(frame) = self.stack.last_mut() {
                let (tensor, first, i) = (frame.tensor, frame.first, frame.next);
                if i == GGML_MAX_SRC {
                    self.stack.pop();
                    if first {
                        self.append(tensor)?;
                    }
                    continue;
                }
                frame.next += 1;
                let right_to_left = self.graph.order.0 & !super::INCOMPLETE == GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT.0;
                let src = (&(*tensor).src)[if first && right_to_left { GGML_MAX_SRC - 1 - i } else { i }];
                if src.is_null() || !first && (*src).flags & GGML_TENSOR_FLAG_COMPUTE.0 != 0 {
                    continue;
                }
                let slot = self.enter(src)?;
                if first && !self.graph.use_counts.is_null() {
                    *self.graph.use_counts.add(slot) += 1;
                }
            }
        }
        Ok(())
    }

    /// Comes to `tensor`; its sources follow if there is anything to do there. Its slot in the hash set.
    unsafe fn enter(&mut self, tensor: *mut ggml_tensor) -> Result<usize, Error> {
        // SAFETY: the promise of `expand`.
        unsafe {
            let has_op = (*tensor).op != GGML_OP_NONE;
            if has_op && self.compute {
                (*tensor).flags |= GGML_TENSOR_FLAG_COMPUTE.0;
            }
            let (slot, first) = match hash::find(&self.graph.visited_hash_set, tensor) {
                Found::Slot(slot) => (slot, false),
                Found::Free(slot) => {
                    hash::take(&mut self.graph.visited_hash_set, slot, tensor);
                    if !self.graph.use_counts.is_null() {
                        *self.graph.use_counts.add(slot) = 0;
                    }
                    (slot, true)
                }
                Found::Full => return Err(self.full(tensor)),
            };
            let revisit = || self.compute && (has_op || (*tensor).src.iter().any(|s| !s.is_null()));
            if first || revisit() && (has_op || self.again.insert(tensor)) {
                // grows with the graph's depth
                self.stack.try_reserve(1).map_err(|_| Error::memory("no memory to walk the graph"))?;
                self.stack.push(Frame { tensor, next: 0, first });
            }
            Ok(slot)
        }
    }

    /// Puts `tensor` behind what is there already.
    unsafe fn append(&mut self, tensor: *mut ggml_tensor) -> Result<(), Error> {
        let graph = &mut *self.graph;
        // SAFETY: the promise of `expand`; the index is below the graph's room.
        unsafe {
            let t = &mut *tensor;
            let leaf = t.op == GGML_OP_NONE && t.flags & GGML_TENSOR_FLAG_PARAM.0 == 0;
            let (list, n, prefix) = if leaf {
                (graph.leafs, &mut graph.n_leafs, b"leaf_")
            } else {
                (graph.nodes, &mut graph.n_nodes, b"node_")
            };
            if *n >= graph.size || *n < 0 || list.is_null() {
                return Err(self.full(tensor));
            }
            if t.name[0] == 0 {
                let mut digits = [0; 10];
                set_name(t, [prefix, decimal(*n as u32, &mut digits)]);
            }
            *list.add(*n as usize) = tensor;
            *n += 1;
        }
        Ok(())
    }

    unsafe fn full(&self, tensor: *mut ggml_tensor) -> Error {
        // SAFETY: the promise of `expand`.
        let name = shape::name(unsafe { &*tensor });
        Error::memory(format!(
            "the graph has room for {} nodes and as many leafs and cannot take tensor '{name}'",
            self.graph.size
        ))
    }
}

/// `n` in decimal, in the end of `digits`.
fn decimal(mut n: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &digits[at..];
        }
    }
}

/// Appends `tensor` as it stands: not looked for, not counted.
///
/// # Safety
/// As [`expand`].
pub unsafe fn add_node(graph: &mut ggml_cgraph, tensor: *mut ggml_tensor) -> Result<(), Error> {
    let room = graph.n_nodes >= 0 && graph.n_nodes < graph.size && !graph.nodes.is_null();
    if tensor.is_null() || !room {
        mark_incomplete(graph);
        return Err(match tensor.is_null() {
            true => Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the tensor is NULL"),
            false => Error::memory(format!("the graph has room for {} nodes and is full", graph.size)),
        });
    }
    // SAFETY: the index is below the graph's room.
    unsafe { *graph.nodes.add(graph.n_nodes as usize) = tensor };
    graph.n_nodes += 1;
    Ok(())
}
