//! Structures of ggml-alloc.h.

use crate::*;
use core::ffi::c_void;

/// Handle of a buffer type.
pub type ggml_backend_buffer_type_t = *mut ggml_backend_buffer_type;
/// Handle of a buffer.
pub type ggml_backend_buffer_t = *mut ggml_backend_buffer;
/// Handle of a backend (a stream of work on a device).
pub type ggml_backend_t = *mut ggml_backend;

/// Places tensors in a buffer one behind the other.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_tallocr {
    /// Where.
    pub buffer: ggml_backend_buffer_t,
    /// Start of the buffer.
    pub base: *mut c_void,
    /// Alignment of the buffer, bytes.
    pub alignment: usize,
    /// Bytes used.
    pub offset: usize,
}

/// Allocates graphs; opaque.
#[repr(C)]
pub struct ggml_gallocr {
    _opaque: [u8; 0],
}
/// Handle of a graph allocator.
pub type ggml_gallocr_t = *mut ggml_gallocr;
