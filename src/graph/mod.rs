//! Graphs: their memory in a context, growing them, reading them. Imports: [`crate::error`], [`crate::tensor`].
//!
//! A `ggml_cgraph` has a public layout: clients build some by hand (room 0, a borrowed hash set, no leafs) and append to others
//! behind our back. So nothing here counts on how a graph was made; whatever it says is checked before it is followed.
//!
//! - [`hash`]: the set of tensors that a graph has seen.
//! - [`build`]: walking from a result to everything it is computed from.
//! - [`backward`]: the nodes that compute gradients.
//! - [`memory`]: new graphs, copies, views.
//! - [`access`]: nodes, names, gradients, printing, faults.
//! - [`dot`]: a graph as a picture.
//! - [`public`]: what ggml-graph.h offers: leafs, counts, mapped copies, segments, ranges.
//! - [`index`]: numbers for tensors, for the planner and the scheduler.

pub mod access;
pub mod backward;
pub mod build;
pub mod dot;
pub mod hash;
pub mod index;
pub mod memory;
pub mod public;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use access::{checked_leafs, checked_nodes, fault, has_use_counts, nodes, use_count};
pub use memory::view;

use ggml_oxide_abi::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bit of `ggml_cgraph.order`: something did not fit while the graph grew, so computing it would compute something else. It lies in
/// `order` because copies and views of a graph carry that along.
const INCOMPLETE: i32 = 1 << 30;

/// A number that no graph had before.
pub fn next_uid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether `graph` lost something while it grew.
pub fn is_incomplete(graph: &ggml_cgraph) -> bool {
    graph.order.0 & INCOMPLETE != 0
}

/// Notes that `graph` lost something.
pub(crate) fn mark_incomplete(graph: &mut ggml_cgraph) {
    graph.order.0 |= INCOMPLETE;
}
