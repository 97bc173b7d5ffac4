//! Kinds of memory.

use super::handle::{handle, text};
use super::{Buffer, Device};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, c_int};

handle! {
    /// A kind of memory of a device.
    Buft(ggml_backend_buffer_type)
}

impl Buft {
    /// Its name, as a C string; an empty one where the table has none.
    pub fn name_ptr(self) -> *const c_char {
        // SAFETY: the table's functions take the handle they came with.
        self.get().iface.get_name.map_or(c"".as_ptr(), |f| unsafe { f(self.as_raw()) })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        text(self.name_ptr())
    }

    /// A buffer of at least `size` bytes. Size 0 gives a buffer without memory. `None`, reported: the memory cannot be had.
    pub fn alloc(self, size: usize) -> Option<Buffer> {
        if size == 0 {
            return Some(Buffer::empty(self));
        }
        let Some(alloc) = self.get().iface.alloc_buffer else {
            error::fail(GGML_EXT_CODE_BACKEND, format!("buffer type '{}' cannot allocate", self.name()));
            return None;
        };
        // SAFETY: the table's functions take the handle they came with; the result is NULL or a live buffer.
        let buffer = unsafe { Buffer::from_raw(alloc(self.as_raw(), size)) };
        if buffer.is_none() {
            error::report(&Error::memory(format!("buffer type '{}' cannot allocate {size} bytes", self.name())));
        }
        buffer
    }

    /// One buffer for tensors that belong together, where the buffer type offers that.
    pub fn alloc_n(self, tensors: &mut [*mut ggml_tensor]) -> Option<Option<Buffer>> {
        let alloc = self.get().iface.alloc_buffer_n?;
        // SAFETY: as `alloc`; the slice outlives the call.
        Some(unsafe { Buffer::from_raw(alloc(self.as_raw(), tensors.as_mut_ptr(), tensors.len() as c_int)) })
    }

    /// Alignment of tensors in it, bytes; a power of two.
    pub fn alignment(self) -> usize {
        // SAFETY: as `name`.
        let alignment = self.get().iface.get_alignment.map_or(1, |f| unsafe { f(self.as_raw()) });
        if alignment.is_power_of_two() {
            alignment
        } else {
            alignment.max(1).next_power_of_two()
        }
    }

    /// Bytes that one buffer may have.
    pub fn max_size(self) -> usize {
        // SAFETY: as `name`.
        self.get().iface.get_max_size.map_or(usize::MAX, |f| unsafe { f(self.as_raw()) })
    }

    /// Bytes that a tensor takes in it.
    pub fn alloc_size(self, tensor: &ggml_tensor) -> usize {
        match self.get().iface.get_alloc_size {
            // SAFETY: as `name`; the tensor is only read.
            Some(f) => unsafe { f(self.as_raw(), tensor) },
            None => shape::nbytes(tensor),
        }
    }

    /// Bytes that tensors which belong together take, where the buffer type says so.
    pub fn alloc_size_n(self, tensors: &mut [*mut ggml_tensor]) -> Option<usize> {
        let size = self.get().iface.get_alloc_size_n?;
        // SAFETY: as `alloc_n`.
        Some(unsafe { size(self.as_raw(), tensors.as_mut_ptr(), tensors.len() as c_int) })
    }

    /// Whether its addresses are the host's and it uses the standard layout.
    pub fn is_host(self) -> bool {
        // SAFETY: as `name`.
        self.get().iface.is_host.is_some_and(|f| unsafe { f(self.as_raw()) })
    }

    /// The device it belongs to; `None`: memory of the host.
    pub fn device(self) -> Option<Device> {
        // SAFETY: a buffer type's device lives as long as the buffer type.
        unsafe { Device::from_raw(self.get().device) }
    }
}
