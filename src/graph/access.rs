//! Reading a graph, whoever made it.

use ggml_oxide_abi::*;

/// The nodes in the order in which they run.
///
/// # Safety
/// The graph's arrays are as long as it says and outlive the result.
pub unsafe fn nodes(graph: &ggml_cgraph) -> &[*mut ggml_tensor] {
    match usize::try_from(graph.n_nodes) {
        // SAFETY: the caller's promise.
        Ok(n) if n > 0 && !graph.nodes.is_null() => unsafe { std::slice::from_raw_parts(graph.nodes, n) },
        _ => &[],
    }
}

/// Whether the graph says how often its tensors are used. One that a caller put together may not.
pub fn has_use_counts(graph: &ggml_cgraph) -> bool {
    let set = &graph.visited_hash_set;
    !graph.use_counts.is_null() && set.size > 0 && !set.used.is_null() && !set.keys.is_null()
}

/// How many times `t` is a source of the graph's nodes; 0 for a tensor that the graph has not seen.
///
/// # Safety
/// As [`nodes`], for the hash set and the counts.
pub unsafe fn use_count(graph: &ggml_cgraph, t: *const ggml_tensor) -> i32 {
    if !has_use_counts(graph) {
        return 0;
    }
    let set = &graph.visited_hash_set;
    let first = (t as usize >> 4) % set.size;
    for slot in (first..set.size).chain(0..first) {
        // SAFETY: the slot is below the set's size, which its arrays and the counts have.
        unsafe {
            if *set.used.add(slot / 32) >> (slot % 32) & 1 == 0 {
                return 0;
            }
            if std::ptr::eq(*set.keys.add(slot), t) {
                return *graph.use_counts.add(slot);
            }
        }
    }
    0
}
