//! Structures of gguf.h.

use crate::*;

/// A gguf file in memory; opaque.
#[repr(C)]
pub struct gguf_context {
    _opaque: [u8; 0],
}

/// How a gguf file is opened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct gguf_init_params {
    /// Make the tensors without reading their data.
    pub no_alloc: bool,
    /// Where to put a new context with the tensors; NULL: none is made.
    pub ctx: *mut *mut ggml_context,
}

/// Reads up to `len` bytes at `offset` into `output` and returns how many were read.
pub type gguf_reader_callback_t = Option<
    unsafe extern "C" fn(
        userdata: *mut core::ffi::c_void,
        output: *mut core::ffi::c_void,
        offset: u64,
        len: usize,
    ) -> usize,
>;
