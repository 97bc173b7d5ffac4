//! New graphs, copies and views.

use super::hash::{self, Found};
use super::{access, is_incomplete, mark_incomplete};
use crate::error::Error;
use crate::tensor::{Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use std::mem::size_of;
use std::ptr::null_mut;

const POINTER: usize = size_of::<*mut ggml_tensor>();

/// Offsets of a graph's arrays from its start, bytes.
struct Parts {
    slots: usize,
    nodes: usize,
    leafs: usize,
    use_counts: usize,
    keys: usize,
    grads: usize,
    grad_accs: usize,
    used: usize,
    total: usize,
}

fn parts(size: usize, grads: bool) -> Option<Parts> {
    i32::try_from(size).ok()?;
    let slots = hash::size_for(size.checked_mul(2)?)?;
    let mut at = size_of::<ggml_cgraph>();
    let mut take = |n: usize, each: usize| {
        let start = at.checked_next_multiple_of(each)?;
        at = start.checked_add(n.checked_mul(each)?)?;
        Some(start)
    };
    let n_grads = if grads { slots } else { 0 };
    let nodes = take(size, POINTER)?;
    let leafs = take(size, POINTER)?;
    let use_counts = take(slots, 4)?;
    let keys = take(slots, POINTER)?;
    let (grads, grad_accs) = (take(n_grads, POINTER)?, take(n_grads, POINTER)?);
    let used = take(hash::words(slots), 4)?;
    Some(Parts { slots, nodes, leafs, use_counts, keys, grads, grad_accs, used, total: at })
}

/// Bytes that a graph with room for `size` nodes takes from a context; `usize::MAX` when there is no such graph.
pub fn overhead(size: usize, grads: bool) -> usize {
    let header = TENSOR_OVERHEAD - size_of::<ggml_tensor>();
    let bytes = parts(size, grads).and_then(|p| p.total.checked_next_multiple_of(GGML_MEM_ALIGN)?.checked_add(header));
    bytes.unwrap_or(usize::MAX)
}

/// A graph in `ctx` with room for `size` nodes and as many leafs.
pub fn new(ctx: &mut Context, size: usize, grads: bool) -> Result<*mut ggml_cgraph, Error> {
    let p = parts(size, grads).ok_or_else(|| Error::argument(format!("a graph cannot have room for {size} nodes")))?;
    let start = ctx.alloc_object(GGML_OBJECT_TYPE_GRAPH, p.total)?.as_ptr();
    // SAFETY: the object has `total` bytes and all parts lie in it, each aligned to its elements.
    unsafe {
        let tensors = |at: usize| start.add(at).cast::<*mut ggml_tensor>();
        let graph = start.cast::<ggml_cgraph>();
        graph.write(ggml_cgraph {
            size: size as i32,
            n_nodes: 0,
            n_leafs: 0,
            nodes: tensors(p.nodes),
            grads: if grads { tensors(p.grads) } else { null_mut() },
            grad_accs: if grads { tensors(p.grad_accs) } else { null_mut() },
            leafs: tensors(p.leafs),
            use_counts: start.add(p.use_counts).cast(),
            visited_hash_set: ggml_hash_set { size: p.slots, used: start.add(p.used).cast(), keys: tensors(p.keys) },
            order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
            uid: 0,
        });
        hash::clear(&mut (*graph).visited_hash_set);
        if grads {
            tensors(p.grads).write_bytes(0, p.slots);
            tensors(p.grad_accs).write_bytes(0, p.slots);
        }
        Ok(graph)
    }
}

/// Nodes `i0..i1` of `graph`, sharing its arrays; bounds are cut to what there is.
pub fn view(graph: &ggml_cgraph, i0: i32, i1: i32) -> ggml_cgraph {
    let i0 = i0.clamp(0, graph.n_nodes.max(0));
    let i1 = i1.clamp(i0, graph.n_nodes.max(0));
    ggml_cgraph {
        size: 0,
        n_nodes: i1 - i0,
        n_leafs: 0,
        nodes: graph.nodes.wrapping_add(i0 as usize),
        grads: null_mut(),
        grad_accs: null_mut(),
        leafs: null_mut(),
        uid: 0,
        ..*graph
    }
}

/// Empties a graph.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn clear(graph: &mut ggml_cgraph) {
    graph.n_nodes = 0;
    graph.n_leafs = 0;
    graph.order.0 &= !super::INCOMPLETE;
    // SAFETY: the caller's promise.
    unsafe { hash::clear(&mut graph.visited_hash_set) }
}

/// Makes `dst` the same graph as `src`.
///
/// # Safety
/// Both graphs' arrays are as large as they say; they are two graphs.
pub unsafe fn copy(src: &ggml_cgraph, dst: &mut ggml_cgraph) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let (nodes, leafs) = unsafe { (access::checked_nodes(src)?, access::checked_leafs(src)?) };
    let room = dst.size.max(0) as usize;
    if room < nodes.len() || room < leafs.len() || dst.visited_hash_set.size < src.visited_hash_set.size {
        return Err(Error::argument(format!(
            "a graph with room for {room} nodes and {} tensors cannot hold {} nodes, {} leafs and a set of {}",
            dst.visited_hash_set.size,
            nodes.len(),
            leafs.len(),
            src.visited_hash_set.size
        )));
    }
    if !src.grads.is_null() && (dst.grads.is_null() || dst.grad_accs.is_null()) {
        return Err(Error::argument("the source graph has gradients, the destination has no room for them"));
    }
    // SAFETY: sizes were checked; the arrays are as large as the graphs say.
    unsafe {
        clear(dst);
        dst.nodes.copy_from(nodes.as_ptr(), nodes.len());
        if !leafs.is_empty() {
            dst.leafs.copy_from(leafs.as_ptr(), leafs.len());
        }
        dst.n_nodes = nodes.len() as i32;
        dst.n_leafs = leafs.len() as i32;
        dst.order = src.order;
        let set = src.visited_hash_set;
        let whole = !set.used.is_null() && !set.keys.is_null();
        for i in (0..set.size).filter(|i| whole && *set.used.add(i / 32) >> (i % 32) & 1 == 1) {
            if let Found::Free(at) = hash::find(&dst.visited_hash_set, *set.keys.add(i)) {
                hash::take(&mut dst.visited_hash_set, at, *set.keys.add(i));
                if !src.use_counts.is_null() && !dst.use_counts.is_null() {
                    *dst.use_counts.add(at) = *src.use_counts.add(i);
                }
            }
        }
        if !dst.grads.is_null() {
            dst.grads.write_bytes(0, dst.visited_hash_set.size);
            dst.grad_accs.write_bytes(0, dst.visited_hash_set.size);
        }
        if !src.grads.is_null() {
            for &node in nodes {
                if let (Found::Slot(from), Found::Slot(to)) =
                    (hash::find(&set, node), hash::find(&dst.visited_hash_set, node))
                {
                    *dst.grads.add(to) = *src.grads.add(from);
                    *dst.grad_accs.add(to) = *src.grad_accs.add(from);
                }
            }
        }
    }
    if is_incomplete(src) {
        mark_incomplete(dst);
    }
    Ok(())
}
