//! What growing a graph changes, to take it back.

use crate::error::Error;
use crate::graph::{access, hash};
use ggml_oxide_abi::*;
use std::collections::TryReserveError;

/// A graph before it grew. Its lists and its set only grow, so counts and bits are enough.
pub struct Saved {
    n_nodes: i32,
    n_leafs: i32,
    order: ggml_cgraph_eval_order,
    used: Vec<ggml_bitset_t>,
    use_counts: Vec<i32>,
    /// Of the nodes.
    flags: Vec<i32>,
}

fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(items.len())?;
    list.extend_from_slice(items);
    Ok(list)
}

impl Saved {
    /// `graph` as it is.
    ///
    /// # Safety
    /// The graph's arrays are as large as it says, and its nodes are live.
    pub unsafe fn of(graph: &ggml_cgraph) -> Result<Self, Error> {
        let set = &graph.visited_hash_set;
        let mut flags = Vec::new();
        // SAFETY: the caller's promise.
        unsafe {
            let nodes = access::checked_nodes(graph)?;
            flags.try_reserve_exact(nodes.len())?;
            flags.extend(nodes.iter().map(|&t| (*t).flags));
            let used = match set.used.is_null() {
                true => Vec::new(),
                false => copied(std::slice::from_raw_parts(set.used, hash::words(set.size)))?,
            };
            let use_counts = match graph.use_counts.is_null() {
                true => Vec::new(),
                false => copied(std::slice::from_raw_parts(graph.use_counts, set.size))?,
            };
            let (n_nodes, n_leafs, order) = (graph.n_nodes, graph.n_leafs, graph.order);
            Ok(Saved { n_nodes, n_leafs, order, used, use_counts, flags })
        }
    }

    /// Makes `graph` what it was.
    ///
    /// # Safety
    /// `graph` is the one that this was made of, and only grew meanwhile.
    pub unsafe fn restore(&self, graph: &mut ggml_cgraph) {
        (graph.n_nodes, graph.n_leafs, graph.order) = (self.n_nodes, self.n_leafs, self.order);
        // SAFETY: the caller's promise: the arrays have the sizes that they had.
        unsafe {
            if !self.used.is_empty() {
                graph.visited_hash_set.used.copy_from(self.used.as_ptr(), self.used.len());
            }
            if !self.use_counts.is_empty() {
                graph.use_counts.copy_from(self.use_counts.as_ptr(), self.use_counts.len());
            }
            for (i, &flags) in self.flags.iter().enumerate() {
                (**graph.nodes.add(i)).flags = flags;
            }
        }
    }
}
