//! Entry points of ggml-ext.h.

use crate::entry;
use ggml_oxide_abi::*;
use std::mem::offset_of;

entry! {
    /// The last failure on the calling thread. `out->struct_size` is set by the caller; false: nothing failed yet, or `out` is NULL.
    /// The text is valid until the next failing call on this thread.
    pub fn ggml_ext_last_error(out: *mut ggml_ext_error) -> bool {
        if out.is_null() {
            return false;
        }
        // A caller built for an earlier, shorter structure: each member is written only where the structure has it.
        let size = (*out).struct_size;
        crate::error::with_last(|code, text, node| {
            if size >= offset_of!(ggml_ext_error, text) {
                (*out).code = code.0;
            }
            if size >= offset_of!(ggml_ext_error, registration) {
                (*out).text = text.as_ptr();
            }
            if size >= offset_of!(ggml_ext_error, node) {
                (*out).registration = std::ptr::null();
            }
            if size >= size_of::<ggml_ext_error>() {
                (*out).node = node;
            }
        })
        .is_some()
    }
}
