//! What ggml-graph.h offers to programs that keep off the layout of a graph: leafs, recorded consumer counts, copies of a graph over
//! other tensors, segments, ranges. Imports: [`crate::error`], [`super`].
//!
//! Counts decide what a backend may fuse: a result that one node of a part reads may have more readers in the whole. So a part runs
//! rightly only with the counts of the graph that it is a part of; that is what [`map`], [`counts`] and [`range`] keep.
//!
//! - [`pairs`]: which tensor stands for which; addresses only, nothing is followed.
//! - [`map`]: the same graph over other tensors.
//! - [`counts`]: the counts of a graph for a segment of it.

mod counts;
mod map;
mod pairs;
#[cfg(test)]
mod tests;

pub use counts::copy_use_counts;
pub use map::copy_mapped;

use super::hash::{self, Found};
use super::{has_use_counts, view};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

/// Why nothing was changed, and the tensor concerned (NULL: none in particular).
#[derive(Debug)]
pub struct Refused {
    /// The reason.
    pub error: Error,
    /// The tensor.
    pub tensor: *mut ggml_tensor,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused { error, tensor: null_mut() }
    }
}

impl Refused {
    fn at(tensor: *mut ggml_tensor, error: Error) -> Self {
        Refused { error, tensor }
    }
}

/// Name of a tensor for a text.
///
/// # Safety
/// `t` is live.
unsafe fn name(t: *const ggml_tensor) -> String {
    // SAFETY: the caller's promise.
    shape::name(unsafe { &*t })
}

fn leafs_of(graph: &ggml_cgraph) -> Result<usize, Error> {
    match usize::try_from(graph.n_leafs) {
        Ok(n) if n == 0 || !graph.leafs.is_null() => Ok(n),
        _ => Err(Error::argument(format!(
            "the graph says that it has {} leafs in a list that is NULL or shorter",
            graph.n_leafs
        ))),
    }
}

/// Leafs in the graph.
pub fn n_leafs(graph: &ggml_cgraph) -> Result<i32, Error> {
    leafs_of(graph).map(|_| graph.n_leafs)
}

/// Leaf `i`, or for negative `i` the one that far from the end.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn leaf(graph: &ggml_cgraph, i: i32) -> Result<*mut ggml_tensor, Error> {
    let n = leafs_of(graph)?;
    let at = if i < 0 { i64::from(i) + n as i64 } else { i64::from(i) };
    match usize::try_from(at) {
        // SAFETY: the caller's promise; the index is below the number of leafs.
        Ok(at) if at < n => Some(unsafe { *graph.leafs.add(at) })
            .filter(|t| !t.is_null())
            .ok_or_else(|| Error::argument(format!("leaf {i} of the graph is NULL"))),
        _ => Err(Error::argument(format!("the graph has {n} leafs, there is no leaf {i}"))),
    }
}

/// Appends `tensor` to the leafs as it stands: not looked for, not recorded, its sources not visited. A graph that refuses is as before.
///
/// # Safety
/// The graph's arrays are as large as it says and nobody else uses it; `tensor` is NULL or live.
pub unsafe fn append_leaf(graph: &mut ggml_cgraph, tensor: *mut ggml_tensor) -> Result<(), Error> {
    if tensor.is_null() {
        return Err(Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the leaf is NULL"));
    }
    if graph.n_leafs < 0 || graph.n_leafs >= graph.size || graph.leafs.is_null() {
        // SAFETY: the caller's promise.
        let name = unsafe { name(tensor) };
        return Err(Error::memory(format!(
            "the graph has room for {} leafs, has {} and cannot take leaf '{name}'",
            graph.size.max(0),
            graph.n_leafs
        )));
    }
    // SAFETY: the index is below the graph's room.
    unsafe { *graph.leafs.add(graph.n_leafs as usize) = tensor };
    graph.n_leafs += 1;
    Ok(())
}

/// How many times `tensor` was counted as a source; `None` when the graph has no record of it.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn recorded(graph: &ggml_cgraph, tensor: *const ggml_tensor) -> Option<i32> {
    if !has_use_counts(graph) {
        return None;
    }
    // SAFETY: the caller's promise.
    match unsafe { hash::find(&graph.visited_hash_set, tensor) } {
        // SAFETY: a count for each slot.
        Found::Slot(i) => Some(unsafe { *graph.use_counts.add(i) }),
        _ => None,
    }
}

/// Nodes `i0` up to but not including `i1` as a graph with the counts of the whole. Unlike [`view`], bounds are not cut to what there is.
pub fn range(graph: &ggml_cgraph, i0: i32, i1: i32) -> Result<ggml_cgraph, Error> {
    if graph.n_nodes < 0 || graph.n_nodes > 0 && graph.nodes.is_null() {
        return Err(Error::argument(format!(
            "the graph says that it has {} nodes in a list that is NULL or shorter",
            graph.n_nodes
        )));
    }
    if i0 < 0 || i1 < i0 || i1 > graph.n_nodes {
        return Err(Error::argument(format!("{i0} to {i1} is no range of the {} nodes of the graph", graph.n_nodes)));
    }
    Ok(view(graph, i0, i1))
}

/// Whether writing to `a` would change `b`.
fn shares(a: &ggml_cgraph, b: &ggml_cgraph) -> bool {
    let lists = [(a.nodes, b.nodes), (a.leafs, b.leafs), (a.visited_hash_set.keys, b.visited_hash_set.keys)];
    lists.iter().any(|(a, b)| !a.is_null() && a == b)
        || !a.use_counts.is_null() && a.use_counts == b.use_counts
        || !a.visited_hash_set.used.is_null() && a.visited_hash_set.used == b.visited_hash_set.used
}
