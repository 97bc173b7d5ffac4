//! Devices.

use super::handle::{handle, text};
use super::{Backend, Buffer, Buft, Reg};
use crate::error;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};

handle! {
    /// Something that computes.
    Device(ggml_backend_device)
}

impl Device {
    /// Short name, as a C string.
    pub fn name_ptr(self) -> *const c_char {
        // SAFETY: the table's functions take the handle they came with.
        self.get().iface.get_name.map_or(c"".as_ptr(), |f| unsafe { f(self.as_raw()) })
    }

    /// Short name.
    pub fn name(self) -> &'static str {
        text(self.name_ptr())
    }

    /// What it is, as a C string.
    pub fn description_ptr(self) -> *const c_char {
        // SAFETY: as `name_ptr`.
        self.get().iface.get_description.map_or(c"".as_ptr(), |f| unsafe { f(self.as_raw()) })
    }

    /// Bytes of memory: free now, in all.
    pub fn memory(self) -> (usize, usize) {
        let (mut free, mut total) = (0, 0);
        if let Some(f) = self.get().iface.get_memory {
            // SAFETY: as `name_ptr`; the function writes two numbers.
            unsafe { f(self.as_raw(), &mut free, &mut total) }
        }
        (free, total)
    }

    /// Kind.
    pub fn kind(self) -> ggml_backend_dev_type {
        // SAFETY: as `name_ptr`.
        self.get().iface.get_type.map_or(GGML_BACKEND_DEVICE_TYPE_CPU, |f| unsafe { f(self.as_raw()) })
    }

    /// All facts.
    pub fn props(self) -> ggml_backend_dev_props {
        let mut props = ggml_backend_dev_props {
            name: self.name_ptr(),
            description: self.description_ptr(),
            memory_free: 0,
            memory_total: 0,
            r#type: self.kind(),
            device_id: std::ptr::null(),
            caps: Default::default(),
        };
        if let Some(f) = self.get().iface.get_props {
            // SAFETY: as `name_ptr`; the function fills in the structure.
            unsafe { f(self.as_raw(), &mut props) }
        }
        props
    }

    /// The registry entry it came with.
    pub fn reg(self) -> Option<Reg> {
        // SAFETY: a device's entry lives as long as the device.
        unsafe { Reg::from_raw(self.get().reg) }
    }

    /// A new stream of work. `None`, reported, when the device refuses.
    ///
    /// # Safety
    /// `params` is NULL or a C string.
    pub unsafe fn init(self, params: *const c_char) -> Option<Backend> {
        // SAFETY: as `name_ptr`.
        let backend =
            self.get().iface.init_backend.and_then(|f| unsafe { Backend::from_raw(f(self.as_raw(), params)) });
        if backend.is_none() {
            error::fail(GGML_EXT_CODE_BACKEND, format!("device '{}' gives no backend", self.name()));
        }
        backend
    }

    /// Its kind of memory.
    pub fn buft(self) -> Option<Buft> {
        // SAFETY: as `name_ptr`; buffer types live as long as their device.
        self.get().iface.get_buffer_type.and_then(|f| unsafe { Buft::from_raw(f(self.as_raw())) })
    }

    /// Pinned memory of the host, where it has such.
    pub fn host_buft(self) -> Option<Buft> {
        // SAFETY: as `buft`.
        self.get().iface.get_host_buffer_type.and_then(|f| unsafe { Buft::from_raw(f(self.as_raw())) })
    }

    /// A buffer over the caller's memory.
    ///
    /// # Safety
    /// `ptr` has `size` bytes and outlives the buffer.
    pub unsafe fn buffer_from_host_ptr(self, ptr: *mut c_void, size: usize, max_tensor_size: usize) -> Option<Buffer> {
        let Some(f) = self.get().iface.buffer_from_host_ptr else {
            error::fail(GGML_EXT_CODE_BACKEND, format!("device '{}' cannot use the host's memory", self.name()));
            return None;
        };
        // SAFETY: as `name_ptr`; the memory is as the caller promises.
        unsafe { Buffer::from_raw(f(self.as_raw(), ptr, size, max_tensor_size)) }
    }

    /// Whether its own code can compute the node; [`crate::ext::supports_op`] counts registrations in.
    pub fn supports_op(self, op: &ggml_tensor) -> bool {
        // SAFETY: as `name_ptr`; the node is only read.
        self.get().iface.supports_op.is_some_and(|f| unsafe { f(self.as_raw(), op) })
    }

    /// Whether it can use such memory.
    pub fn supports_buft(self, buft: Buft) -> bool {
        // SAFETY: as `name_ptr`.
        self.get().iface.supports_buft.is_some_and(|f| unsafe { f(self.as_raw(), buft.as_raw()) })
    }

    /// Whether the node is worth moving its weights to the device.
    pub fn offload_op(self, op: &ggml_tensor) -> bool {
        // SAFETY: as `supports_op`.
        self.get().iface.offload_op.is_some_and(|f| unsafe { f(self.as_raw(), op) })
    }

    pub(super) fn iface(self) -> ggml_backend_device_i {
        self.get().iface
    }
}
