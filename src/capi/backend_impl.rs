//! Entry points of ggml-backend-impl.h, for those who make devices of their own.

use crate::backend::{Buffer, Buft};
use crate::entry;
use crate::error;
use ggml_oxide_abi::*;
use std::ffi::c_void;

entry! {
    /// A buffer of `size` bytes with the given functions and `context`, freed by `ggml_backend_buffer_free`. NULL with an error
    /// when `buft` is NULL.
    pub fn ggml_backend_buffer_init(
        buft: ggml_backend_buffer_type_t,
        iface: ggml_backend_buffer_i,
        context: *mut c_void,
        size: usize,
    ) -> ggml_backend_buffer_t {
        match Buft::from_raw(buft) {
            Some(buft) => Buffer::new(buft, iface, context, size).as_raw(),
            None => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_backend_buffer_init: the buffer type must not be NULL");
                std::ptr::null_mut()
            }
        }
    }
}
