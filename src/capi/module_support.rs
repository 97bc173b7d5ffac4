//! What backend modules call beyond the public headers: modules that are built from ggml's own sources import these names and do
//! not load without them. Each says which module needs it.

use crate::entry;
use crate::error::{self, Error};
use std::ffi::c_void;

/// Alignment of [`ggml_aligned_malloc`], bytes: a cache line. Modules place buffers and thread data by it.
const LINE: usize = 64;

entry! {
    /// Memory of `size` bytes, aligned to 64, for `ggml_aligned_free`; NULL for 0 bytes, and with an error when there is none.
    /// (Modules: CPU, zDNN, OpenVINO.)
    pub fn ggml_aligned_malloc(size: usize) -> *mut c_void {
        if size == 0 {
            return std::ptr::null_mut();
        }
        let mut memory = std::ptr::null_mut();
        if libc::posix_memalign(&mut memory, LINE, size) != 0 {
            error::report(&Error::memory(format!("ggml_aligned_malloc: no memory for {size} bytes")));
            return std::ptr::null_mut();
        }
        memory
    }
    /// Frees what `ggml_aligned_malloc` gave; NULL is no change. `size`: as then.
    pub fn ggml_aligned_free(ptr: *mut c_void, size: usize) {
        let _ = size;
        libc::free(ptr);
    }
}
