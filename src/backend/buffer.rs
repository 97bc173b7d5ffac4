//! Pieces of memory.

use super::handle::handle;
use super::Buft;
use ggml_oxide_abi::*;
use std::ffi::c_void;

handle! {
    /// A piece of a device's memory.
    Buffer(ggml_backend_buffer)
}

impl Buffer {
    /// A buffer with the given functions, `context` and size; freed with [`Buffer::free`].
    pub fn new(buft: Buft, iface: ggml_backend_buffer_i, context: *mut c_void, size: usize) -> Self {
        Self(
            Box::leak(Box::new(ggml_backend_buffer {
                iface,
                buft: buft.as_raw(),
                context,
                size,
                usage: GGML_BACKEND_BUFFER_USAGE_ANY,
            }))
            .into(),
        )
    }

    /// A buffer without memory.
    pub fn empty(buft: Buft) -> Self {
        Self::new(buft, super::host::NO_MEMORY, std::ptr::null_mut(), 0)
    }

    /// Frees it and its memory.
    ///
    /// # Safety
    /// Nothing uses the buffer or its handle any more.
    pub unsafe fn free(self) {
        if let Some(f) = self.get().iface.free_buffer {
            // SAFETY: the table's functions take the handle they came with.
            unsafe { f(self.as_raw()) }
        }
        // SAFETY: buffers are made by `new` alone (modules call it through `ggml_backend_buffer_init`).
        drop(unsafe { Box::from_raw(self.as_raw()) });
    }

    /// Its kind of memory.
    pub fn buft(self) -> Option<Buft> {
        // SAFETY: a buffer's type outlives the buffer.
        unsafe { Buft::from_raw(self.get().buft) }
    }

    /// Bytes.
    pub fn size(self) -> usize {
        self.get().size
    }

    /// Address of its first byte; NULL when it has no memory.
    pub fn base(self) -> *mut c_void {
        if self.size() == 0 {
            return std::ptr::null_mut();
        }
        // SAFETY: as `free`.
        self.get().iface.get_base.map_or(std::ptr::null_mut(), |f| unsafe { f(self.as_raw()) })
    }

    /// What it holds.
    pub fn usage(self) -> ggml_backend_buffer_usage {
        self.get().usage
    }

    /// Says what it holds; buffers inside a multi-buffer follow.
    pub fn set_usage(self, usage: ggml_backend_buffer_usage) {
        // SAFETY: the handle is valid; the field is written through the raw pointer, no reference to it is held.
        unsafe { (*self.as_raw()).usage = usage };
        super::host::for_each_part(self, |part| part.set_usage(usage));
        super::meta::for_each(self, |part| part.set_usage(usage));
    }

    /// Whether its addresses are the host's.
    pub fn is_host(self) -> bool {
        self.buft().is_some_and(Buft::is_host)
    }

    /// Prepares a tensor that was placed in it.
    ///
    /// # Safety
    /// The tensor is live.
    pub unsafe fn init_tensor(self, tensor: *mut ggml_tensor) -> ggml_status {
        // SAFETY: as `free`; the caller hands over a live tensor.
        self.get().iface.init_tensor.map_or(GGML_STATUS_SUCCESS, |f| unsafe { f(self.as_raw(), tensor) })
    }

    /// Sets every byte.
    pub fn clear(self, value: u8) {
        if self.size() > 0 {
            if let Some(f) = self.get().iface.clear {
                // SAFETY: as `free`.
                unsafe { f(self.as_raw(), value) }
            }
        }
    }

    /// Forgets what [`Buffer::init_tensor`] made.
    pub fn reset(self) {
        if let Some(f) = self.get().iface.reset {
            // SAFETY: as `free`.
            unsafe { f(self.as_raw()) }
        }
    }

    /// Its functions.
    pub fn iface(self) -> ggml_backend_buffer_i {
        self.get().iface
    }

    /// What its functions work on.
    pub fn context(self) -> *mut c_void {
        self.get().context
    }
}
