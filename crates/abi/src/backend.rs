//! Structures of ggml-backend.h.

use crate::*;
use core::ffi::{c_char, c_int, c_void};

/// Handle of an event.
pub type ggml_backend_event_t = *mut ggml_backend_event;
/// Handle of a graph that a backend prepared.
pub type ggml_backend_graph_plan_t = *mut c_void;
/// Handle of a registry entry.
pub type ggml_backend_reg_t = *mut ggml_backend_reg;
/// Handle of a device.
pub type ggml_backend_dev_t = *mut ggml_backend_device;

/// What a device can do.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ggml_backend_dev_caps {
    /// Work runs while the caller goes on.
    pub r#async: bool,
    /// It has pinned host memory.
    pub host_buffer: bool,
    /// It makes buffers of the caller's memory.
    pub buffer_from_host_ptr: bool,
    /// It has events.
    pub events: bool,
    /// Files may be mapped and used in place.
    pub mmap_support: bool,
}

/// Facts about a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_dev_props {
    /// Short name.
    pub name: *const c_char,
    /// What it is.
    pub description: *const c_char,
    /// Bytes free now.
    pub memory_free: usize,
    /// Bytes in all.
    pub memory_total: usize,
    /// Kind.
    pub r#type: ggml_backend_dev_type,
    /// Bus address in lower case, or NULL.
    pub device_id: *const c_char,
    /// What it can do.
    pub caps: ggml_backend_dev_caps,
}

/// A feature of a backend, as text.
#[repr(C)]
pub struct ggml_backend_feature {
    /// Its name; NULL ends an array.
    pub name: *const c_char,
    /// Its value.
    pub value: *const c_char,
}
// SAFETY: the pointers are to static strings.
unsafe impl Sync for ggml_backend_feature {}
// SAFETY: as above.
unsafe impl Send for ggml_backend_feature {}

/// Spreads weights over devices.
pub type ggml_backend_split_buffer_type_t =
    Option<unsafe extern "C" fn(main_device: c_int, tensor_split: *const f32) -> ggml_backend_buffer_type_t>;
/// Sets the number of threads.
pub type ggml_backend_set_n_threads_t = Option<unsafe extern "C" fn(backend: ggml_backend_t, n_threads: c_int)>;
/// More buffer types of a device, NULL-terminated.
pub type ggml_backend_dev_get_extra_bufts_t =
    Option<unsafe extern "C" fn(device: ggml_backend_dev_t) -> *mut ggml_backend_buffer_type_t>;
/// Sets the abort callback.
pub type ggml_backend_set_abort_callback_t = Option<
    unsafe extern "C" fn(
        backend: ggml_backend_t,
        abort_callback: ggml_abort_callback,
        abort_callback_data: *mut c_void,
    ),
>;
/// Features, ended by an entry whose name is NULL.
pub type ggml_backend_get_features_t =
    Option<unsafe extern "C" fn(reg: ggml_backend_reg_t) -> *mut ggml_backend_feature>;
