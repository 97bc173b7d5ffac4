//! Who reads what, over a whole graph.

use crate::graph::hash::{self, Found};
use crate::graph::{self, access, index::Index};
use ggml_oxide_abi::*;

/// Consumers of each tensor: what the graph recorded, which knows of those outside a view of a graph, and what is counted over its
/// nodes, which knows of those that were put in by hand.
#[derive(Default)]
pub struct Uses {
    index: Index,
    /// By number: how often it is a source.
    counts: Vec<u32>,
    /// By number: its storage is looked at past the edges of the graph.
    loose: Vec<bool>,
    /// By number: it is a node of the graph more than once.
    repeated: Vec<bool>,
}

impl Uses {
    /// Counts over `graph`; nothing where the graph's lists are not what it says.
    ///
    /// # Safety
    /// The graph's arrays are as large as it says; its tensors are live, and so are their sources and what those view.
    pub unsafe fn of(graph: &ggml_cgraph) -> Uses {
        // SAFETY: the caller's promise, for all of the function.
        unsafe {
            let (nodes, leafs) = (graph::nodes(graph), graph::checked_leafs(graph).unwrap_or(&[]));
            let mut uses = Uses::default();
            let tensors = nodes.len() + nodes.len() / 4;
            uses.index.clear(tensors);
            uses.counts.reserve_exact(tensors);
            uses.loose.reserve_exact(tensors);
            uses.repeated.reserve_exact(tensors);
            for &node in nodes {
                let (number, new) = uses.number(node);
                uses.repeated[number] |= !new;
            }
            let n_nodes = uses.counts.len();
            for (i, &node) in nodes.iter().enumerate() {
                access::fetch_ahead(nodes, i);
                for &src in (*node).src.iter().filter(|s| !s.is_null()) {
                    let (number, new) = uses.number(src);
                    uses.counts[number] = uses.counts[number].saturating_add(1);
                    if new {
                        uses.note(src);
                    }
                }
                if !follows(node) {
                    uses.note(node);
                }
            }
            for &leaf in leafs {
                if uses.number(leaf).1 {
                    uses.note(leaf);
                }
            }
            if graph::has_use_counts(graph) {
                uses.recorded(graph, nodes, n_nodes);
            }
            uses
        }
    }

    /// Adds consumers that only the graph's record knows of. The record lacks those of nodes that the graph was not grown with.
    ///
    /// # Safety
    /// As [`Uses::of`]; tensors below number `n_nodes` are the graph's nodes.
    unsafe fn recorded(&mut self, graph: &ggml_cgraph, nodes: &[*mut ggml_tensor], n_nodes: usize) {
        let mut known = vec![0u32; n_nodes];
        let mut grown = true;
        for (known, &key) in known.iter_mut().zip(self.index.keys()) {
            // SAFETY: the caller's promise; the graph has counts.
            unsafe {
                match hash::find(&graph.visited_hash_set, std::ptr::without_provenance(key)) {
                    Found::Slot(i) => *known = u32::try_from(*graph.use_counts.add(i)).unwrap_or(0),
                    _ => grown = false,
                }
            }
        }
        if !grown {
            for &node in nodes {
                // SAFETY: the caller's promise.
                unsafe {
                    if matches!(hash::find(&graph.visited_hash_set, node), Found::Slot(_)) {
                        continue;
                    }
                    for src in (*node).src.iter().filter_map(|s| self.index.get(s.addr())) {
                        if let Some(count) = known.get_mut(src as usize) {
                            *count = count.saturating_add(1);
                        }
                    }
                }
            }
        }
        for (count, known) in self.counts.iter_mut().zip(known) {
            *count = (*count).max(known);
        }
    }

    /// Counts another consumer of `t`: one that was given a copy in its place.
    pub fn add(&mut self, t: *const ggml_tensor) {
        let (number, _) = self.number(t);
        self.counts[number] = self.counts[number].saturating_add(1);
    }

    /// How often `t` is a source.
    pub fn get(&self, t: *const ggml_tensor) -> u32 {
        self.index.get(t.addr()).map_or(0, |n| self.counts[n as usize])
    }

    /// What is known of `t`: how often it is a source, whether it is [loose](Uses::is_loose), whether it is computed more than once.
    pub(super) fn of_node(&self, t: *const ggml_tensor) -> (u32, bool, bool) {
        let number = self.index.get(t.addr()).map(|n| n as usize);
        number.map_or((0, false, false), |n| (self.counts[n], self.loose[n], self.repeated[n]))
    }

    /// Whether somebody may look at the storage of `t` without the graph having an edge for it.
    pub fn is_loose(&self, t: *const ggml_tensor) -> bool {
        self.index.get(t.addr()).is_some_and(|n| self.loose[n as usize])
    }

    /// Whether `t` is computed more than once.
    pub fn is_repeated(&self, t: *const ggml_tensor) -> bool {
        self.index.get(t.addr()).is_some_and(|n| self.repeated[n as usize])
    }

    fn number(&mut self, t: *const ggml_tensor) -> (usize, bool) {
        let (number, new) = self.index.add(t.addr());
        if new {
            self.counts.push(0);
            self.loose.push(false);
            self.repeated.push(false);
        }
        (number as usize, new)
    }

    /// Notes a view that no edge ties to its storage.
    ///
    /// # Safety
    /// `t` is live, and so is what it views.
    unsafe fn note(&mut self, t: *mut ggml_tensor) {
        // SAFETY: the caller's promise.
        let root = unsafe { access::storage_of(t) }.filter(|&(root, _)| root != t);
        if let Some((root, _)) = root {
            let (number, _) = self.number(root);
            self.loose[number] = true;
        }
    }
}

/// Whether the storage of `node` is its own, or that of one of its sources.
///
/// # Safety
/// The node is live, and so are its sources and what those view.
unsafe fn follows(node: *mut ggml_tensor) -> bool {
    // SAFETY: the caller's promise, for all of the function.
    unsafe {
        if (*node).view_src.is_null() {
            return true;
        }
        let root = |t| access::storage_of(t).map(|(root, _)| root);
        let own = root(node);
        (*node).src.iter().any(|&src| !src.is_null() && src != node && root(src) == own)
    }
}
