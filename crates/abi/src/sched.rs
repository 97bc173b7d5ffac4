//! Structures of ggml-backend.h: the scheduler.

use crate::*;
use core::ffi::c_void;

/// Runs graphs on several backends; opaque.
#[repr(C)]
pub struct ggml_backend_sched {
    _opaque: [u8; 0],
}
/// Handle of a scheduler.
pub type ggml_backend_sched_t = *mut ggml_backend_sched;

/// Called by the scheduler: with `ask` to learn whether the caller wants to see `t`; without, to show it. False stops.
pub type ggml_backend_sched_eval_callback =
    Option<unsafe extern "C" fn(t: *mut ggml_tensor, ask: bool, user_data: *mut c_void) -> bool>;

/// A copy of a graph in the memory of a backend.
#[repr(C)]
pub struct ggml_backend_graph_copy {
    /// Holds the data; NULL: there is no copy.
    pub buffer: ggml_backend_buffer_t,
    /// Holds the tensors with storage of their own, and the graph.
    pub ctx_allocated: *mut ggml_context,
    /// Holds the views.
    pub ctx_unallocated: *mut ggml_context,
    /// The copy.
    pub graph: *mut ggml_cgraph,
}

/// Shown a node computed by one backend and by another. False stops.
pub type ggml_backend_eval_callback = Option<
    unsafe extern "C" fn(
        node_index: core::ffi::c_int,
        t1: *mut ggml_tensor,
        t2: *mut ggml_tensor,
        user_data: *mut c_void,
    ) -> bool,
>;
