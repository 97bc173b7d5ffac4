//! Scratch memory that grows and is kept: aligned to cache lines, never initialised, failure is an answer.

use std::alloc::{alloc, dealloc, Layout};
use std::ptr::NonNull;

/// Bytes that scratch memory is aligned to.
pub const ALIGN: usize = 64;

/// A block of scratch memory.
pub struct Scratch {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: the block belongs to this value alone.
unsafe impl Send for Scratch {}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { ptr: NonNull::dangling(), len: 0 }
    }
}

impl Scratch {
    /// Makes room for `len` bytes; what was there is lost. False: the memory is not to be had.
    #[must_use]
    pub fn reserve(&mut self, len: usize) -> bool {
        if len <= self.len {
            return true;
        }
        let Ok(layout) = Layout::from_size_align(len, ALIGN) else { return false };
        *self = Scratch::default();
        // SAFETY: the size is not zero, since it is above `self.len`.
        let Some(ptr) = NonNull::new(unsafe { alloc(layout) }) else { return false };
        self.ptr = ptr;
        self.len = len;
        true
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: allocated in `reserve` with this layout.
            unsafe { dealloc(self.ptr.as_ptr(), Layout::from_size_align_unchecked(self.len, ALIGN)) }
        }
    }
}
