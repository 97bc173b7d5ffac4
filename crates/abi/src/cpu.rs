//! Structures of ggml-cpu.h.

use crate::*;
use core::ffi::{c_int, c_void};

/// What `ggml_graph_compute` needs besides the graph.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_cplan {
    /// Bytes of scratch memory that the graph needs.
    pub work_size: usize,
    /// The scratch memory; the caller provides it when `work_size` is not zero.
    pub work_data: *mut u8,
    /// Threads to use.
    pub n_threads: c_int,
    /// Pool to run on; NULL: a pool for this call.
    pub threadpool: *mut ggml_threadpool,
    /// Asked before each node.
    pub abort_callback: ggml_abort_callback,
    /// Handed to `abort_callback`.
    pub abort_callback_data: *mut c_void,
    /// Use the plain kernels.
    pub use_ref: bool,
}

/// Dot product of `nrc` rows of `n` elements each: `s` gets the results, strides in bytes.
pub type ggml_vec_dot_t = Option<
    unsafe extern "C" fn(
        n: c_int,
        s: *mut f32,
        bs: usize,
        x: *const c_void,
        bx: usize,
        y: *const c_void,
        by: usize,
        nrc: c_int,
    ),
>;

/// What the CPU backend can do with a format.
#[repr(C)]
pub struct ggml_type_traits_cpu {
    /// Encoder, or NULL.
    pub from_float: ggml_from_float_t,
    /// Dot product with a row of `vec_dot_type`, or NULL.
    pub vec_dot: ggml_vec_dot_t,
    /// Format of the other operand.
    pub vec_dot_type: ggml_type,
    /// Rows that one call of `vec_dot` may take.
    pub nrows: i64,
}
// SAFETY: the pointers are to functions.
unsafe impl Sync for ggml_type_traits_cpu {}
