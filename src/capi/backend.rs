//! Entry points of ggml-backend.h but the scheduler's: buffers, tensor data, backends, events.

use crate::backend::tensor_data::{self, Rows};
use crate::backend::{host, Backend, Buffer, Buft, Device, Event};
use crate::entry;
use crate::error;
use crate::ext;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};

/// The handle, or an error that names the call.
macro_rules! handle {
    ($kind:ident, $raw:expr, $call:literal) => {{
        let handle = $kind::from_raw($raw);
        if handle.is_none() {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, concat!($call, ": the handle must not be NULL"));
        }
        handle
    }};
}
pub(super) use handle;

fn raw<T>(handle: Option<T>, as_raw: impl FnOnce(T) -> *mut c_void) -> *mut c_void {
    handle.map_or(std::ptr::null_mut(), as_raw)
}

entry! {
    /// Name of a buffer type.
    pub fn ggml_backend_buft_name(buft: ggml_backend_buffer_type_t) -> *const c_char {
        handle!(Buft, buft, "ggml_backend_buft_name").map_or(std::ptr::null(), Buft::name_ptr)
    }
    /// A buffer of at least `size` bytes, or NULL with an error when it cannot be had. Size 0 gives a buffer without memory.
    pub fn ggml_backend_buft_alloc_buffer(buft: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t {
        raw(handle!(Buft, buft, "ggml_backend_buft_alloc_buffer").and_then(|b| b.alloc(size)), |b| b.as_raw().cast()).cast()
    }
    /// Alignment of tensors in buffers of the type, bytes.
    pub fn ggml_backend_buft_get_alignment(buft: ggml_backend_buffer_type_t) -> usize {
        handle!(Buft, buft, "ggml_backend_buft_get_alignment").map_or(1, Buft::alignment)
    }
    /// Bytes that one buffer of the type may have.
    pub fn ggml_backend_buft_get_max_size(buft: ggml_backend_buffer_type_t) -> usize {
        handle!(Buft, buft, "ggml_backend_buft_get_max_size").map_or(0, Buft::max_size)
    }
    /// Bytes that a tensor takes in a buffer of the type, padding included.
    pub fn ggml_backend_buft_get_alloc_size(buft: ggml_backend_buffer_type_t, tensor: *const ggml_tensor) -> usize {
        let tensor = tensor.as_ref();
        handle!(Buft, buft, "ggml_backend_buft_get_alloc_size").and_then(|b| Some(b.alloc_size(tensor?))).unwrap_or(0)
    }
    /// Whether buffers of the type are host memory in the standard layout.
    pub fn ggml_backend_buft_is_host(buft: ggml_backend_buffer_type_t) -> bool {
        handle!(Buft, buft, "ggml_backend_buft_is_host").is_some_and(Buft::is_host)
    }
    /// The device of a buffer type; NULL: plain memory of the host.
    pub fn ggml_backend_buft_get_device(buft: ggml_backend_buffer_type_t) -> ggml_backend_dev_t {
        let device = handle!(Buft, buft, "ggml_backend_buft_get_device").and_then(Buft::device);
        raw(device, |d| d.as_raw().cast()).cast()
    }

    /// Name of a buffer, which is that of its type.
    pub fn ggml_backend_buffer_name(buffer: ggml_backend_buffer_t) -> *const c_char {
        let buft = handle!(Buffer, buffer, "ggml_backend_buffer_name").and_then(Buffer::buft);
        buft.map_or(std::ptr::null(), Buft::name_ptr)
    }
    /// Frees a buffer and its memory; NULL is no change.
    pub fn ggml_backend_buffer_free(buffer: ggml_backend_buffer_t) {
        if let Some(buffer) = Buffer::from_raw(buffer) {
            buffer.free();
        }
    }
    /// Address of a buffer's first byte; NULL when it has no memory.
    pub fn ggml_backend_buffer_get_base(buffer: ggml_backend_buffer_t) -> *mut c_void {
        raw(handle!(Buffer, buffer, "ggml_backend_buffer_get_base"), Buffer::base)
    }
    /// Bytes of a buffer.
    pub fn ggml_backend_buffer_get_size(buffer: ggml_backend_buffer_t) -> usize {
        handle!(Buffer, buffer, "ggml_backend_buffer_get_size").map_or(0, Buffer::size)
    }
    /// Prepares a tensor whose data lies in the buffer.
    pub fn ggml_backend_buffer_init_tensor(buffer: ggml_backend_buffer_t, tensor: *mut ggml_tensor) -> ggml_status {
        handle!(Buffer, buffer, "ggml_backend_buffer_init_tensor").map_or(GGML_STATUS_FAILED, |b| b.init_tensor(tensor))
    }
    /// Alignment of tensors in the buffer, bytes.
    pub fn ggml_backend_buffer_get_alignment(buffer: ggml_backend_buffer_t) -> usize {
        handle!(Buffer, buffer, "ggml_backend_buffer_get_alignment").and_then(Buffer::buft).map_or(1, Buft::alignment)
    }
    /// Bytes that one buffer of this kind may have.
    pub fn ggml_backend_buffer_get_max_size(buffer: ggml_backend_buffer_t) -> usize {
        handle!(Buffer, buffer, "ggml_backend_buffer_get_max_size").and_then(Buffer::buft).map_or(0, Buft::max_size)
    }
    /// Bytes that a tensor takes in the buffer, padding included.
    pub fn ggml_backend_buffer_get_alloc_size(buffer: ggml_backend_buffer_t, tensor: *const ggml_tensor) -> usize {
        let tensor = tensor.as_ref();
        let buft = handle!(Buffer, buffer, "ggml_backend_buffer_get_alloc_size").and_then(Buffer::buft);
        buft.and_then(|b| Some(b.alloc_size(tensor?))).unwrap_or(0)
    }
    /// Sets every byte of a buffer.
    pub fn ggml_backend_buffer_clear(buffer: ggml_backend_buffer_t, value: u8) {
        if let Some(buffer) = handle!(Buffer, buffer, "ggml_backend_buffer_clear") {
            buffer.clear(value);
        }
    }
    /// Whether a buffer is host memory in the standard layout.
    pub fn ggml_backend_buffer_is_host(buffer: ggml_backend_buffer_t) -> bool {
        handle!(Buffer, buffer, "ggml_backend_buffer_is_host").is_some_and(Buffer::is_host)
    }
    /// Says what a buffer holds; the scheduler keeps weights where they are.
    pub fn ggml_backend_buffer_set_usage(buffer: ggml_backend_buffer_t, usage: ggml_backend_buffer_usage) {
        if let Some(buffer) = handle!(Buffer, buffer, "ggml_backend_buffer_set_usage") {
            buffer.set_usage(usage);
        }
    }
    /// What a buffer holds.
    pub fn ggml_backend_buffer_get_usage(buffer: ggml_backend_buffer_t) -> ggml_backend_buffer_usage {
        handle!(Buffer, buffer, "ggml_backend_buffer_get_usage").map_or(GGML_BACKEND_BUFFER_USAGE_ANY, Buffer::usage)
    }
    /// Kind of memory of a buffer.
    pub fn ggml_backend_buffer_get_type(buffer: ggml_backend_buffer_t) -> ggml_backend_buffer_type_t {
        let buft = handle!(Buffer, buffer, "ggml_backend_buffer_get_type").and_then(Buffer::buft);
        raw(buft, |b| b.as_raw().cast()).cast()
    }
    /// Forgets what was prepared for tensors of the buffer.
    pub fn ggml_backend_buffer_reset(buffer: ggml_backend_buffer_t) {
        if let Some(buffer) = handle!(Buffer, buffer, "ggml_backend_buffer_reset") {
            buffer.reset();
        }
    }

    /// Copies all of `src` to `dst`, of the same layout, between any two buffers: the bytes from the first to the last element, those
    /// in the gaps of a view among them.
    pub fn ggml_backend_tensor_copy(src: *const ggml_tensor, dst: *mut ggml_tensor) {
        tensor_data::copy("ggml_backend_tensor_copy", src, dst);
    }

    /// Sixteen bytes that name a backend's kind.
    pub fn ggml_backend_guid(backend: ggml_backend_t) -> ggml_guid_t {
        handle!(Backend, backend, "ggml_backend_guid").map_or(std::ptr::null_mut(), Backend::guid)
    }
    /// Name of a backend.
    pub fn ggml_backend_name(backend: ggml_backend_t) -> *const c_char {
        // Upstream answers "NULL" for no backend, and logs print it.
        Backend::from_raw(backend).map_or(c"NULL".as_ptr(), Backend::name_ptr)
    }
    /// Frees a backend; NULL is no change. Its buffers stay.
    pub fn ggml_backend_free(backend: ggml_backend_t) {
        if let Some(backend) = Backend::from_raw(backend) {
            backend.free();
        }
    }
    /// The memory that a backend works in.
    pub fn ggml_backend_get_default_buffer_type(backend: ggml_backend_t) -> ggml_backend_buffer_type_t {
        let buft = handle!(Backend, backend, "ggml_backend_get_default_buffer_type").and_then(Backend::buft);
        raw(buft, |b| b.as_raw().cast()).cast()
    }
    /// A buffer of a backend's memory, or NULL with an error when it cannot be had.
    pub fn ggml_backend_alloc_buffer(backend: ggml_backend_t, size: usize) -> ggml_backend_buffer_t {
        raw(handle!(Backend, backend, "ggml_backend_alloc_buffer").and_then(|b| b.alloc(size)), |b| b.as_raw().cast()).cast()
    }
    /// Alignment of tensors in a backend's memory, bytes.
    pub fn ggml_backend_get_alignment(backend: ggml_backend_t) -> usize {
        handle!(Backend, backend, "ggml_backend_get_alignment").and_then(Backend::buft).map_or(1, Buft::alignment)
    }
    /// Bytes that one buffer of a backend may have.
    pub fn ggml_backend_get_max_size(backend: ggml_backend_t) -> usize {
        handle!(Backend, backend, "ggml_backend_get_max_size").and_then(Backend::buft).map_or(0, Buft::max_size)
    }

    /// As `ggml_backend_tensor_set`, in the order of the backend's work; `data` stays until the backend was synchronised.
    pub fn ggml_backend_tensor_set_async(backend: ggml_backend_t, tensor: *mut ggml_tensor, data: *const c_void, offset: usize, size: usize) {
        if let Some(backend) = handle!(Backend, backend, "ggml_backend_tensor_set_async") {
            tensor_data::set_async("ggml_backend_tensor_set_async", backend, tensor, data, Rows::range(offset, size));
        }
    }
    /// As `ggml_backend_tensor_get`, in the order of the backend's work; `data` is filled when the backend was synchronised.
    pub fn ggml_backend_tensor_get_async(backend: ggml_backend_t, tensor: *const ggml_tensor, data: *mut c_void, offset: usize, size: usize) {
        if let Some(backend) = handle!(Backend, backend, "ggml_backend_tensor_get_async") {
            tensor_data::get_async("ggml_backend_tensor_get_async", backend, tensor, data, Rows::range(offset, size));
        }
    }
    /// As `ggml_backend_tensor_set_2d`, in the order of the backend's work.
    pub fn ggml_backend_tensor_set_2d_async(backend: ggml_backend_t, tensor: *mut ggml_tensor, data: *const c_void, offset: usize, size: usize, n_copies: usize, stride_tensor: usize, stride_data: usize) {
        if let Some(backend) = handle!(Backend, backend, "ggml_backend_tensor_set_2d_async") {
            let rows = Rows { offset, size, n: n_copies, stride_tensor, stride_data };
            tensor_data::set_async("ggml_backend_tensor_set_2d_async", backend, tensor, data, rows);
        }
    }
    /// As `ggml_backend_tensor_get_2d`, in the order of the backend's work.
    pub fn ggml_backend_tensor_get_2d_async(backend: ggml_backend_t, tensor: *const ggml_tensor, data: *mut c_void, offset: usize, size: usize, n_copies: usize, stride_tensor: usize, stride_data: usize) {
        if let Some(backend) = handle!(Backend, backend, "ggml_backend_tensor_get_2d_async") {
            let rows = Rows { offset, size, n: n_copies, stride_tensor, stride_data };
            tensor_data::get_async("ggml_backend_tensor_get_2d_async", backend, tensor, data, rows);
        }
    }
    /// Writes `size` bytes at `offset` of the tensor's storage. A range that leaves the tensor moves nothing and is an error.
    pub fn ggml_backend_tensor_set(tensor: *mut ggml_tensor, data: *const c_void, offset: usize, size: usize) {
        tensor_data::set("ggml_backend_tensor_set", tensor, data, Rows::range(offset, size));
    }
    /// Reads `size` bytes at `offset` of the tensor's storage. A range that leaves the tensor moves nothing and is an error.
    pub fn ggml_backend_tensor_get(tensor: *const ggml_tensor, data: *mut c_void, offset: usize, size: usize) {
        tensor_data::get("ggml_backend_tensor_get", tensor, data, Rows::range(offset, size));
    }
    /// Writes `n_copies` pieces of `size` bytes, `stride_tensor` bytes apart in the tensor and `stride_data` in `data`.
    pub fn ggml_backend_tensor_set_2d(tensor: *mut ggml_tensor, data: *const c_void, offset: usize, size: usize, n_copies: usize, stride_tensor: usize, stride_data: usize) {
        let rows = Rows { offset, size, n: n_copies, stride_tensor, stride_data };
        tensor_data::set("ggml_backend_tensor_set_2d", tensor, data, rows);
    }
    /// Reads `n_copies` pieces of `size` bytes, `stride_tensor` bytes apart in the tensor and `stride_data` in `data`.
    pub fn ggml_backend_tensor_get_2d(tensor: *const ggml_tensor, data: *mut c_void, offset: usize, size: usize, n_copies: usize, stride_tensor: usize, stride_data: usize) {
        let rows = Rows { offset, size, n: n_copies, stride_tensor, stride_data };
        tensor_data::get("ggml_backend_tensor_get_2d", tensor, data, rows);
    }
    /// Sets `size` bytes at `offset` of the tensor's storage.
    pub fn ggml_backend_tensor_memset(tensor: *mut ggml_tensor, value: u8, offset: usize, size: usize) {
        tensor_data::memset("ggml_backend_tensor_memset", tensor, value, offset, size);
    }

    /// Waits for all work of a backend.
    pub fn ggml_backend_synchronize(backend: ggml_backend_t) {
        if let Some(backend) = handle!(Backend, backend, "ggml_backend_synchronize") {
            backend.synchronize();
        }
    }
    /// Computes a graph whose tensors are allocated, and waits. A node that cannot be computed is `GGML_STATUS_FAILED`, and the
    /// error names it; then no node has run, or a prefix has when only the data could tell.
    pub fn ggml_backend_graph_compute(backend: ggml_backend_t, cgraph: *mut ggml_cgraph) -> ggml_status {
        handle!(Backend, backend, "ggml_backend_graph_compute").map_or(GGML_STATUS_FAILED, |backend| {
            let status = ext::compute_async(backend, cgraph);
            backend.synchronize();
            status
        })
    }
    /// As `ggml_backend_graph_compute`, without waiting where the backend works on its own.
    pub fn ggml_backend_graph_compute_async(backend: ggml_backend_t, cgraph: *mut ggml_cgraph) -> ggml_status {
        handle!(Backend, backend, "ggml_backend_graph_compute_async").map_or(GGML_STATUS_FAILED, |b| ext::compute_async(b, cgraph))
    }
    /// Whether the backend's device can compute the node.
    pub fn ggml_backend_supports_op(backend: ggml_backend_t, op: *const ggml_tensor) -> bool {
        let op = op.as_ref();
        handle!(Backend, backend, "ggml_backend_supports_op").and_then(Backend::device).is_some_and(|d| op.is_some_and(|op| super::device::asked(d, op)))
    }
    /// Whether the backend's device can use such memory.
    pub fn ggml_backend_supports_buft(backend: ggml_backend_t, buft: ggml_backend_buffer_type_t) -> bool {
        let buft = Buft::from_raw(buft);
        handle!(Backend, backend, "ggml_backend_supports_buft").is_some_and(|b| buft.is_some_and(|t| b.supports_buft(t)))
    }
    /// Whether the node is worth moving its weights to the backend's device.
    pub fn ggml_backend_offload_op(backend: ggml_backend_t, op: *const ggml_tensor) -> bool {
        let op = op.as_ref();
        handle!(Backend, backend, "ggml_backend_offload_op").is_some_and(|b| op.is_some_and(|op| b.offload_op(op)))
    }
    /// Copies `src` to `dst` behind the work of `backend_src` and before further work of `backend_dst`.
    pub fn ggml_backend_tensor_copy_async(backend_src: ggml_backend_t, backend_dst: ggml_backend_t, src: *const ggml_tensor, dst: *mut ggml_tensor) {
        let from = handle!(Backend, backend_src, "ggml_backend_tensor_copy_async");
        let to = handle!(Backend, backend_dst, "ggml_backend_tensor_copy_async");
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_async(from, src, dst);
        }
    }
    /// The device that a backend runs on.
    pub fn ggml_backend_get_device(backend: ggml_backend_t) -> ggml_backend_dev_t {
        let device = Backend::from_raw(backend).and_then(Backend::device);
        raw(device, |d| d.as_raw().cast()).cast()
    }

    /// A new event; NULL where the device has none.
    pub fn ggml_backend_event_new(device: ggml_backend_dev_t) -> ggml_backend_event_t {
        raw(Device::from_raw(device).and_then(Event::new), |e| e.as_raw().cast()).cast()
    }
    /// Frees an event; NULL is no change.
    pub fn ggml_backend_event_free(event: ggml_backend_event_t) {
        if let Some(event) = Event::from_raw(event) {
            event.free();
        }
    }
    /// Marks the event as reached when the backend's work so far is done.
    pub fn ggml_backend_event_record(event: ggml_backend_event_t, backend: ggml_backend_t) {
        let event = handle!(Event, event, "ggml_backend_event_record");
        if let (Some(event), Some(backend)) = (event, handle!(Backend, backend, "ggml_backend_event_record")) {
            backend.record(event);
        }
    }
    /// Waits until the event is reached.
    pub fn ggml_backend_event_synchronize(event: ggml_backend_event_t) {
        if let Some(event) = handle!(Event, event, "ggml_backend_event_synchronize") {
            event.synchronize();
        }
    }
    /// Holds further work of the backend until the event is reached.
    pub fn ggml_backend_event_wait(backend: ggml_backend_t, event: ggml_backend_event_t) {
        let event = handle!(Event, event, "ggml_backend_event_wait");
        if let (Some(event), Some(backend)) = (event, handle!(Backend, backend, "ggml_backend_event_wait")) {
            backend.wait(event);
        }
    }

    /// Places an unallocated tensor at `addr` inside a buffer.
    pub fn ggml_backend_tensor_alloc(buffer: ggml_backend_buffer_t, tensor: *mut ggml_tensor, addr: *mut c_void) -> ggml_status {
        handle!(Buffer, buffer, "ggml_backend_tensor_alloc").map_or(GGML_STATUS_FAILED, |b| tensor_data::place(b, tensor, addr))
    }
    /// Gives a view the storage of what it views.
    pub fn ggml_backend_view_init(tensor: *mut ggml_tensor) -> ggml_status {
        tensor_data::place_view(tensor)
    }
    /// A buffer over `size` bytes of the caller's memory, aligned to 32 bytes; freeing the buffer leaves the memory alone.
    pub fn ggml_backend_cpu_buffer_from_ptr(ptr: *mut c_void, size: usize) -> ggml_backend_buffer_t {
        raw(host::from_ptr(ptr, size), |b| b.as_raw().cast()).cast()
    }
    /// Memory of the host.
    pub fn ggml_backend_cpu_buffer_type() -> ggml_backend_buffer_type_t {
        host::buffer_type_cpu().as_raw()
    }
}
