//! The graph as the allocator sees it: the nodes of all splits, before each split its inputs, and nodes that only say that
//! something must stay.

use super::copies::Copies;
use super::split::{GraphInput, Split};
use crate::alloc::room;
use crate::error::Error;
use crate::graph;
use ggml_oxide_abi::*;
use std::collections::{HashMap, TryReserveError};
use std::ptr::null_mut;

/// By node: tensors that must stay allocated until it was computed.
pub type Keep = HashMap<*mut ggml_tensor, Vec<*mut ggml_tensor>>;

/// Nodes and leafs, and the buffer of each.
#[derive(Default)]
pub struct Layout {
    nodes: Vec<*mut ggml_tensor>,
    leafs: Vec<*mut ggml_tensor>,
    /// By node.
    pub node_buffers: Vec<i32>,
    /// By leaf.
    pub leaf_buffers: Vec<i32>,
    /// The leafs begin with groups of this many copies of one tensor, the one that this graph uses first.
    pub copies: usize,
    /// How many such groups.
    pub groups: usize,
}

impl Layout {
    fn node(&mut self, t: *mut ggml_tensor, buffer: i32) -> Result<(), TryReserveError> {
        room::push(&mut self.nodes, t)?;
        room::push(&mut self.node_buffers, buffer)
    }

    fn leaf(&mut self, t: *mut ggml_tensor, buffer: i32) -> Result<(), TryReserveError> {
        room::push(&mut self.leafs, t)?;
        room::push(&mut self.leaf_buffers, buffer)
    }

    /// Lays the splits out. `home` says where a tensor of the client's graph lies.
    ///
    /// # Safety
    /// All tensors are live.
    pub unsafe fn new(
        graph: &ggml_cgraph,
        splits: &[Split],
        inputs: &[GraphInput],
        current: usize,
        keep: &Keep,
        copies: &mut Copies,
        home: impl Fn(*mut ggml_tensor) -> i32,
    ) -> Result<Self, Error> {
        let n: usize = splits.iter().map(|s| s.graph.n_nodes.max(0) as usize + 2 * s.inputs.len()).sum();
        let m = graph.n_leafs.max(0) as usize;
        let mut all = Layout {
            nodes: room::list(n)?,
            node_buffers: room::list(n)?,
            leafs: room::list(m)?,
            leaf_buffers: room::list(m)?,
            ..Layout::default()
        };
        for split in splits {
            for input in &split.inputs {
                // the original stays until it was copied, and the copy is there from the start of the split
                // SAFETY: the caller's promise.
                let marker = unsafe { copies.marker(&[input.original]) }?;
                all.node(marker, input.home)?;
                all.node(input.copies[current], split.backend)?;
            }
            // SAFETY: the caller's promise.
            for &node in unsafe { graph::nodes(&split.graph) } {
                all.node(node, home(node))?;
                if keep.is_empty() {
                    continue;
                }
                for reads in keep.get(&node).into_iter().flat_map(|k| k.chunks(GGML_MAX_SRC)) {
                    // SAFETY: the caller's promise.
                    let marker = unsafe { copies.marker(reads) }?;
                    all.node(marker, split.backend)?;
                }
            }
        }
        all.copies = splits
            .iter()
            .flat_map(|s| &s.inputs)
            .map(|i| i.copies.len())
            .chain(inputs.iter().map(|i| i.copies.len()))
            .max()
            .unwrap_or(1);
        if all.copies > 1 {
            // Every copy has its place, used by this graph or not. Which one is used does not show in the shape of the graph, so
            // that one plan serves for all.
            let here = splits.iter().flat_map(|s| s.inputs.iter().map(|i| (s.backend, &i.copies)));
            for (buffer, copies) in inputs.iter().map(|i| (i.home, &i.copies)).chain(here) {
                all.groups += 1;
                for k in 0..copies.len() {
                    all.leaf(copies[(current + k) % copies.len()], buffer)?;
                }
            }
        }
        // SAFETY: the caller's promise.
        for &leaf in unsafe { graph::checked_leafs(graph) }.unwrap_or(&[]) {
            all.leaf(leaf, home(leaf))?;
        }
        Ok(all)
    }

    /// The copies of group `i`, the used one first.
    pub fn group(&self, i: usize) -> &[*mut ggml_tensor] {
        &self.leafs[i * self.copies..(i + 1) * self.copies]
    }

    /// As a graph; it lives as long as the layout is left alone.
    pub fn graph(&mut self) -> ggml_cgraph {
        ggml_cgraph {
            size: 0,
            n_nodes: self.nodes.len() as i32,
            n_leafs: self.leafs.len() as i32,
            nodes: self.nodes.as_mut_ptr(),
            grads: null_mut(),
            grad_accs: null_mut(),
            leafs: self.leafs.as_mut_ptr(),
            use_counts: null_mut(),
            visited_hash_set: ggml_hash_set { size: 0, used: null_mut(), keys: null_mut() },
            order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
            uid: 0,
        }
    }
}
