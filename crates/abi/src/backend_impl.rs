//! Structures of ggml-backend-impl.h: the tables of functions that a backend module fills in. Our own devices are built of
//! the same structures: the library sees no difference.

use crate::*;
use core::ffi::{c_char, c_int, c_void};

/// Version of the interface of backend modules: value of `ggml_backend_reg.api_version`.
pub const GGML_BACKEND_API_VERSION: c_int = 3;

/// A kind of memory of a device.
#[repr(C)]
pub struct ggml_backend_buffer_type {
    /// Functions.
    pub iface: ggml_backend_buffer_type_i,
    /// The device it belongs to; NULL: memory of the host.
    pub device: ggml_backend_dev_t,
    /// For the functions.
    pub context: *mut c_void,
}

/// Functions of a buffer type; those marked optional may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_buffer_type_i {
    pub get_name: Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t) -> *const c_char>,
    pub alloc_buffer:
        Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t>,
    /// Optional: one buffer for tensors that belong together.
    pub alloc_buffer_n: Option<
        unsafe extern "C" fn(
            buft: ggml_backend_buffer_type_t,
            tensors: *mut *mut ggml_tensor,
            n_tensors: c_int,
        ) -> ggml_backend_buffer_t,
    >,
    pub get_alignment: Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t) -> usize>,
    /// Optional: no limit.
    pub get_max_size: Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t) -> usize>,
    /// Optional: the size of the data.
    pub get_alloc_size:
        Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t, tensor: *const ggml_tensor) -> usize>,
    /// Optional: the sum of the single sizes.
    pub get_alloc_size_n: Option<
        unsafe extern "C" fn(
            buft: ggml_backend_buffer_type_t,
            tensors: *mut *mut ggml_tensor,
            n_tensors: c_int,
        ) -> usize,
    >,
    /// Optional: not host memory.
    pub is_host: Option<unsafe extern "C" fn(buft: ggml_backend_buffer_type_t) -> bool>,
}

/// Functions of a buffer; those marked optional may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_buffer_i {
    /// Optional.
    pub free_buffer: Option<unsafe extern "C" fn(buffer: ggml_backend_buffer_t)>,
    pub get_base: Option<unsafe extern "C" fn(buffer: ggml_backend_buffer_t) -> *mut c_void>,
    /// Optional.
    pub init_tensor:
        Option<unsafe extern "C" fn(buffer: ggml_backend_buffer_t, tensor: *mut ggml_tensor) -> ggml_status>,
    pub memset_tensor: Option<
        unsafe extern "C" fn(
            buffer: ggml_backend_buffer_t,
            tensor: *mut ggml_tensor,
            value: u8,
            offset: usize,
            size: usize,
        ),
    >,
    pub set_tensor: Option<
        unsafe extern "C" fn(
            buffer: ggml_backend_buffer_t,
            tensor: *mut ggml_tensor,
            data: *const c_void,
            offset: usize,
            size: usize,
        ),
    >,
    pub get_tensor: Option<
        unsafe extern "C" fn(
            buffer: ggml_backend_buffer_t,
            tensor: *const ggml_tensor,
            data: *mut c_void,
            offset: usize,
            size: usize,
        ),
    >,
    /// Optional: row by row.
    pub set_tensor_2d: Option<
        unsafe extern "C" fn(
            buffer: ggml_backend_buffer_t,
            tensor: *mut ggml_tensor,
            data: *const c_void,
            offset: usize,
            size: usize,
            n_copies: usize,
            stride_tensor: usize,
            stride_data: usize,
        ),
    >,
    /// Optional: row by row.
    pub get_tensor_2d: Option<
        unsafe extern "C" fn(
            buffer: ggml_backend_buffer_t,
            tensor: *const ggml_tensor,
            data: *mut c_void,
            offset: usize,
            size: usize,
            n_copies: usize,
            stride_tensor: usize,
            stride_data: usize,
        ),
    >,
    /// Optional: false means that the library copies through the host.
    pub cpy_tensor: Option<
        unsafe extern "C" fn(buffer: ggml_backend_buffer_t, src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool,
    >,
    pub clear: Option<unsafe extern "C" fn(buffer: ggml_backend_buffer_t, value: u8)>,
    /// Optional: forget what `init_tensor` made.
    pub reset: Option<unsafe extern "C" fn(buffer: ggml_backend_buffer_t)>,
}

/// A piece of a device's memory.
#[repr(C)]
pub struct ggml_backend_buffer {
    /// Functions.
    pub iface: ggml_backend_buffer_i,
    /// Kind of memory.
    pub buft: ggml_backend_buffer_type_t,
    /// For the functions.
    pub context: *mut c_void,
    /// Bytes.
    pub size: usize,
    /// What it holds.
    pub usage: ggml_backend_buffer_usage,
}

/// How a backend's `graph_optimize` tells the allocator that a tensor must live longer.
#[repr(C)]
pub struct ggml_backend_graph_optimize_params {
    /// Keep `tensor` allocated until `until` was computed.
    pub add_alloc_dep:
        Option<unsafe extern "C" fn(user_data: *mut c_void, tensor: *mut ggml_tensor, until: *mut ggml_tensor)>,
    /// For `add_alloc_dep`.
    pub user_data: *mut c_void,
}

/// Functions of a backend; those marked optional may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_i {
    pub get_name: Option<unsafe extern "C" fn(backend: ggml_backend_t) -> *const c_char>,
    pub free: Option<unsafe extern "C" fn(backend: ggml_backend_t)>,
    /// Optional.
    pub set_tensor_async: Option<
        unsafe extern "C" fn(
            backend: ggml_backend_t,
            tensor: *mut ggml_tensor,
            data: *const c_void,
            offset: usize,
            size: usize,
        ),
    >,
    /// Optional.
    pub get_tensor_async: Option<
        unsafe extern "C" fn(
            backend: ggml_backend_t,
            tensor: *const ggml_tensor,
            data: *mut c_void,
            offset: usize,
            size: usize,
        ),
    >,
    /// Optional.
    pub set_tensor_2d_async: Option<
        unsafe extern "C" fn(
            backend: ggml_backend_t,
            tensor: *mut ggml_tensor,
            data: *const c_void,
            offset: usize,
            size: usize,
            n_copies: usize,
            stride_tensor: usize,
            stride_data: usize,
        ),
    >,
    /// Optional.
    pub get_tensor_2d_async: Option<
        unsafe extern "C" fn(
            backend: ggml_backend_t,
            tensor: *const ggml_tensor,
            data: *mut c_void,
            offset: usize,
            size: usize,
            n_copies: usize,
            stride_tensor: usize,
            stride_data: usize,
        ),
    >,
    /// Optional: false means that the library synchronises and copies.
    pub cpy_tensor_async: Option<
        unsafe extern "C" fn(
            backend_src: ggml_backend_t,
            backend_dst: ggml_backend_t,
            src: *const ggml_tensor,
            dst: *mut ggml_tensor,
        ) -> bool,
    >,
    /// Optional: nothing to wait for.
    pub synchronize: Option<unsafe extern "C" fn(backend: ggml_backend_t)>,
    /// Optional.
    pub graph_plan_create:
        Option<unsafe extern "C" fn(backend: ggml_backend_t, cgraph: *const ggml_cgraph) -> ggml_backend_graph_plan_t>,
    /// Optional.
    pub graph_plan_free: Option<unsafe extern "C" fn(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t)>,
    /// Optional.
    pub graph_plan_update: Option<
        unsafe extern "C" fn(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t, cgraph: *const ggml_cgraph),
    >,
    /// Optional.
    pub graph_plan_compute:
        Option<unsafe extern "C" fn(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t) -> ggml_status>,
    pub graph_compute: Option<unsafe extern "C" fn(backend: ggml_backend_t, cgraph: *mut ggml_cgraph) -> ggml_status>,
    /// Optional.
    pub event_record: Option<unsafe extern "C" fn(backend: ggml_backend_t, event: ggml_backend_event_t)>,
    /// Optional.
    pub event_wait: Option<unsafe extern "C" fn(backend: ggml_backend_t, event: ggml_backend_event_t)>,
    /// Optional: may reorder the nodes.
    pub graph_optimize: Option<
        unsafe extern "C" fn(
            backend: ggml_backend_t,
            cgraph: *mut ggml_cgraph,
            params: *mut ggml_backend_graph_optimize_params,
        ),
    >,
}

/// A stream of work on a device.
#[repr(C)]
pub struct ggml_backend {
    /// Names the kind of backend.
    pub guid: ggml_guid_t,
    /// Functions.
    pub iface: ggml_backend_i,
    /// Where it runs.
    pub device: ggml_backend_dev_t,
    /// For the functions.
    pub context: *mut c_void,
}

/// A point in a backend's stream.
#[repr(C)]
pub struct ggml_backend_event {
    /// The device it belongs to.
    pub device: *mut ggml_backend_device,
    /// For the device.
    pub context: *mut c_void,
}

/// Functions of a device; those marked optional may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_device_i {
    pub get_name: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> *const c_char>,
    pub get_description: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> *const c_char>,
    pub get_memory: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, free: *mut usize, total: *mut usize)>,
    pub get_type: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> ggml_backend_dev_type>,
    pub get_props: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, props: *mut ggml_backend_dev_props)>,
    pub init_backend: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, params: *const c_char) -> ggml_backend_t>,
    pub get_buffer_type: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> ggml_backend_buffer_type_t>,
    /// Optional.
    pub get_host_buffer_type: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> ggml_backend_buffer_type_t>,
    /// Optional.
    pub buffer_from_host_ptr: Option<
        unsafe extern "C" fn(
            dev: ggml_backend_dev_t,
            ptr: *mut c_void,
            size: usize,
            max_tensor_size: usize,
        ) -> ggml_backend_buffer_t,
    >,
    pub supports_op: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, op: *const ggml_tensor) -> bool>,
    pub supports_buft: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, buft: ggml_backend_buffer_type_t) -> bool>,
    /// Optional: never worth it.
    pub offload_op: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, op: *const ggml_tensor) -> bool>,
    /// Optional.
    pub event_new: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t) -> ggml_backend_event_t>,
    /// Optional.
    pub event_free: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, event: ggml_backend_event_t)>,
    /// Optional.
    pub event_synchronize: Option<unsafe extern "C" fn(dev: ggml_backend_dev_t, event: ggml_backend_event_t)>,
}

/// Something that computes.
#[repr(C)]
pub struct ggml_backend_device {
    /// Functions.
    pub iface: ggml_backend_device_i,
    /// The registry entry it came with.
    pub reg: ggml_backend_reg_t,
    /// For the functions.
    pub context: *mut c_void,
}

/// Functions of a registry entry; those marked optional may be NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_backend_reg_i {
    pub get_name: Option<unsafe extern "C" fn(reg: ggml_backend_reg_t) -> *const c_char>,
    pub get_device_count: Option<unsafe extern "C" fn(reg: ggml_backend_reg_t) -> usize>,
    pub get_device: Option<unsafe extern "C" fn(reg: ggml_backend_reg_t, index: usize) -> ggml_backend_dev_t>,
    /// Optional: functions that are not in every backend, by name.
    pub get_proc_address: Option<unsafe extern "C" fn(reg: ggml_backend_reg_t, name: *const c_char) -> *mut c_void>,
}

/// A family of devices.
#[repr(C)]
pub struct ggml_backend_reg {
    /// `GGML_BACKEND_API_VERSION` of the module.
    pub api_version: c_int,
    /// Functions.
    pub iface: ggml_backend_reg_i,
    /// For the functions.
    pub context: *mut c_void,
}
