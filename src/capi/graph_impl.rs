//! Entry points of the private header, which programs that build graphs of their own include.

use super::graph::{or_report, some};
use crate::entry;
use crate::graph::{access, hash, memory};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// Nodes `i0` up to but not including `i1`, sharing the graph's arrays.
    pub fn ggml_graph_view(cgraph: *mut ggml_cgraph, i0: c_int, i1: c_int) -> ggml_cgraph {
        or_report("ggml_graph_view", some(cgraph).map(|graph| memory::view(graph, i0, i1)))
    }

    /// A number that no graph had before.
    pub fn ggml_graph_next_uid() -> u64 {
        crate::graph::next_uid()
    }

    /// Whether the `count` nodes have the given operators and only the `num_outputs` outputs are used outside them.
    pub fn ggml_can_fuse_subgraph_ext(
        cgraph: *const ggml_cgraph,
        node_idxs: *const c_int,
        count: c_int,
        ops: *const ggml_op,
        outputs: *const c_int,
        num_outputs: c_int,
    ) -> bool {
        if cgraph.is_null() || node_idxs.is_null() || ops.is_null() || outputs.is_null() || count < 0 || num_outputs < 1 {
            return false;
        }
        let n = count as usize;
        access::can_fuse(
            &*cgraph,
            std::slice::from_raw_parts(node_idxs, n),
            std::slice::from_raw_parts(ops, n),
            std::slice::from_raw_parts(outputs, num_outputs as usize),
        )
    }

    /// Slots of a hash set with room for `min_sz` tensors; 0 when there can be no such set.
    pub fn ggml_hash_size(min_sz: usize) -> usize {
        hash::size_for(min_sz).unwrap_or(0)
    }

    /// A hash set with room for `size` tensors, freed by `ggml_hash_set_free`. Its size is 0 when there is no memory.
    pub fn ggml_hash_set_new(size: usize) -> ggml_hash_set {
        hash::new_set(size)
    }

    /// Frees what `ggml_hash_set_new` made.
    pub fn ggml_hash_set_free(hash_set: *mut ggml_hash_set) {
        if let Some(set) = hash_set.as_mut() {
            hash::free_set(set);
        }
    }

    /// Empties a hash set.
    pub fn ggml_hash_set_reset(hash_set: *mut ggml_hash_set) {
        if let Some(set) = hash_set.as_mut() {
            hash::clear(set);
        }
    }
}
