//! The layout of a graph and its hash set. Clients of the private header read and build these.

use crate::*;
use core::ffi::c_int;

/// One word of a bit set.
pub type ggml_bitset_t = u32;

/// Open-addressed set of tensors by address, linear probing from `(address >> 4) % size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_hash_set {
    /// Slots.
    pub size: usize,
    /// Which slots are taken, one bit each.
    pub used: *mut ggml_bitset_t,
    /// The tensors; only taken slots are defined.
    pub keys: *mut *mut ggml_tensor,
}

c_enum! {
/// Which source is visited first when a graph grows.
pub enum ggml_cgraph_eval_order {
    GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT = 0,
    GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT = 1,
    GGML_CGRAPH_EVAL_ORDER_COUNT = 2,
}
}

/// A graph: nodes in the order in which they run, leafs that only hold data.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_cgraph {
    /// Room for nodes, and for leafs; zero in a view.
    pub size: c_int,
    /// Nodes in use.
    pub n_nodes: c_int,
    /// Leafs in use.
    pub n_leafs: c_int,
    /// Tensors that are computed.
    pub nodes: *mut *mut ggml_tensor,
    /// Gradients by hash slot, or NULL.
    pub grads: *mut *mut ggml_tensor,
    /// Accumulators of gradients by hash slot, or NULL.
    pub grad_accs: *mut *mut ggml_tensor,
    /// Tensors that are not computed.
    pub leafs: *mut *mut ggml_tensor,
    /// How many times each tensor is a source, by hash slot.
    pub use_counts: *mut i32,
    /// The tensors that the graph has seen.
    pub visited_hash_set: ggml_hash_set,
    /// Which source is visited first.
    pub order: ggml_cgraph_eval_order,
    /// Equal non-zero values promise equal graphs.
    pub uid: u64,
}

const _: () = assert!(core::mem::size_of::<ggml_cgraph>() == 96);
