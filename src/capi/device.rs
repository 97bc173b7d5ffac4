//! Entry points of ggml-backend.h for devices and the registry.

use super::backend::handle;
use crate::backend::{registry, Backend, Device, Reg};
use crate::entry;
use crate::error::{self, Error};
use crate::ext;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void, CStr};
use std::path::PathBuf;
use std::ptr::null_mut;

/// Text of a C string; `None` for NULL or what is not UTF-8.
///
/// # Safety
/// `text` is NULL or a C string that lives through the caller.
unsafe fn str_of<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// As [`str_of`], as a path.
///
/// # Safety
/// As [`str_of`].
unsafe fn path_of(text: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller's promise.
    unsafe { str_of(text) }.filter(|p| !p.is_empty()).map(PathBuf::from)
}

/// Whether the device or a registration on it computes `op`, with the switches in the environment as they are now.
pub(super) fn asked(device: Device, op: &ggml_tensor) -> bool {
    if ext::registry::any_kernel() {
        ext::policy::refresh();
    }
    ext::supports_op(device, op)
}

fn unload(reg: Reg) -> Result<(), Error> {
    registry().may_unload(reg)?;
    ext::registry::release(ext::registry::What::Devices(&registry().devices_of(reg)))?;
    registry().unload(reg)
}

fn device_raw(device: Option<Device>) -> ggml_backend_dev_t {
    device.map_or(null_mut(), Device::as_raw)
}
fn reg_raw(reg: Option<Reg>) -> ggml_backend_reg_t {
    reg.map_or(null_mut(), Reg::as_raw)
}
fn backend_raw(backend: Option<Backend>) -> ggml_backend_t {
    backend.map_or(null_mut(), Backend::as_raw)
}

entry! {
    /// Short name of a device.
    pub fn ggml_backend_dev_name(device: ggml_backend_dev_t) -> *const c_char {
        handle!(Device, device, "ggml_backend_dev_name").map_or(std::ptr::null(), Device::name_ptr)
    }
    /// What a device is.
    pub fn ggml_backend_dev_description(device: ggml_backend_dev_t) -> *const c_char {
        handle!(Device, device, "ggml_backend_dev_description").map_or(std::ptr::null(), Device::description_ptr)
    }
    /// Memory of a device, bytes: free now, in all.
    pub fn ggml_backend_dev_memory(device: ggml_backend_dev_t, free: *mut usize, total: *mut usize) {
        let memory = handle!(Device, device, "ggml_backend_dev_memory").map_or((0, 0), Device::memory);
        if let Some(free) = free.as_mut() {
            *free = memory.0;
        }
        if let Some(total) = total.as_mut() {
            *total = memory.1;
        }
    }
    /// Kind of a device.
    pub fn ggml_backend_dev_type(device: ggml_backend_dev_t) -> ggml_backend_dev_type {
        handle!(Device, device, "ggml_backend_dev_type").map_or(GGML_BACKEND_DEVICE_TYPE_CPU, Device::kind)
    }
    /// All facts about a device.
    pub fn ggml_backend_dev_get_props(device: ggml_backend_dev_t, props: *mut ggml_backend_dev_props) {
        if let (Some(device), Some(props)) = (handle!(Device, device, "ggml_backend_dev_get_props"), props.as_mut()) {
            *props = device.props();
        }
    }
    /// The registry entry that a device came with.
    pub fn ggml_backend_dev_backend_reg(device: ggml_backend_dev_t) -> ggml_backend_reg_t {
        reg_raw(handle!(Device, device, "ggml_backend_dev_backend_reg").and_then(Device::reg))
    }
    /// A new backend on a device, or NULL with an error. `params` depends on the device and may be NULL.
    pub fn ggml_backend_dev_init(device: ggml_backend_dev_t, params: *const c_char) -> ggml_backend_t {
        backend_raw(handle!(Device, device, "ggml_backend_dev_init").and_then(|d| d.init(params)))
    }
    /// Memory of a device.
    pub fn ggml_backend_dev_buffer_type(device: ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
        let buft = handle!(Device, device, "ggml_backend_dev_buffer_type").and_then(Device::buft);
        buft.map_or(null_mut(), |b| b.as_raw())
    }
    /// Memory of the host that a device reaches fast; NULL where there is no such.
    pub fn ggml_backend_dev_host_buffer_type(device: ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
        let buft = handle!(Device, device, "ggml_backend_dev_host_buffer_type").and_then(Device::host_buft);
        buft.map_or(null_mut(), |b| b.as_raw())
    }
    /// A buffer over the caller's memory, or NULL with an error where the device cannot use that.
    pub fn ggml_backend_dev_buffer_from_host_ptr(device: ggml_backend_dev_t, ptr: *mut c_void, size: usize, max_tensor_size: usize) -> ggml_backend_buffer_t {
        let device = handle!(Device, device, "ggml_backend_dev_buffer_from_host_ptr");
        let buffer = device.and_then(|d| d.buffer_from_host_ptr(ptr, size, max_tensor_size));
        buffer.map_or(null_mut(), |b| b.as_raw())
    }
    /// Whether a device can compute the node. Yes means that computing it gives the right result on this very layout.
    pub fn ggml_backend_dev_supports_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
        let op = op.as_ref();
        handle!(Device, device, "ggml_backend_dev_supports_op").is_some_and(|d| op.is_some_and(|op| asked(d, op)))
    }
    /// Whether a device can use such memory.
    pub fn ggml_backend_dev_supports_buft(device: ggml_backend_dev_t, buft: ggml_backend_buffer_type_t) -> bool {
        let buft = crate::backend::Buft::from_raw(buft);
        handle!(Device, device, "ggml_backend_dev_supports_buft").is_some_and(|d| buft.is_some_and(|b| d.supports_buft(b)))
    }
    /// Whether a node is worth moving its weights to the device.
    pub fn ggml_backend_dev_offload_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
        let op = op.as_ref();
        handle!(Device, device, "ggml_backend_dev_offload_op").is_some_and(|d| op.is_some_and(|op| d.offload_op(op)))
    }

    /// Name of a registry entry.
    pub fn ggml_backend_reg_name(reg: ggml_backend_reg_t) -> *const c_char {
        handle!(Reg, reg, "ggml_backend_reg_name").map_or(std::ptr::null(), Reg::name_ptr)
    }
    /// How many devices a registry entry has.
    pub fn ggml_backend_reg_dev_count(reg: ggml_backend_reg_t) -> usize {
        handle!(Reg, reg, "ggml_backend_reg_dev_count").map_or(0, Reg::device_count)
    }
    /// Device number `index` of a registry entry; NULL when there is no such.
    pub fn ggml_backend_reg_dev_get(reg: ggml_backend_reg_t, index: usize) -> ggml_backend_dev_t {
        device_raw(handle!(Reg, reg, "ggml_backend_reg_dev_get").and_then(|r| r.device(index)))
    }
    /// A function that not every backend has, by name; NULL when this one has not.
    pub fn ggml_backend_reg_get_proc_address(reg: ggml_backend_reg_t, name: *const c_char) -> *mut c_void {
        match Reg::from_raw(reg) {
            Some(reg) if !name.is_null() => reg.proc_address(CStr::from_ptr(name)),
            _ => null_mut(),
        }
    }

    /// Adds a registry entry and its devices.
    pub fn ggml_backend_register(reg: ggml_backend_reg_t) {
        if let Some(reg) = handle!(Reg, reg, "ggml_backend_register") {
            registry().add(reg);
        }
    }
    /// Adds a device.
    pub fn ggml_backend_device_register(device: ggml_backend_dev_t) {
        if let Some(device) = handle!(Device, device, "ggml_backend_device_register") {
            registry().add_device(device);
        }
    }
    /// How many registry entries there are.
    pub fn ggml_backend_reg_count() -> usize {
        registry().regs().len()
    }
    /// Registry entry number `index`; NULL when there is no such.
    pub fn ggml_backend_reg_get(index: usize) -> ggml_backend_reg_t {
        reg_raw(registry().reg(index))
    }
    /// The registry entry of that name, in any case of letters; NULL when there is none.
    pub fn ggml_backend_reg_by_name(name: *const c_char) -> ggml_backend_reg_t {
        reg_raw(str_of(name).and_then(|name| registry().reg_by_name(name)))
    }
    /// How many devices there are.
    pub fn ggml_backend_dev_count() -> usize {
        registry().device_count()
    }
    /// Device number `index`; NULL when there is no such.
    pub fn ggml_backend_dev_get(index: usize) -> ggml_backend_dev_t {
        device_raw(registry().device(index))
    }
    /// The device of that name, in any case of letters; NULL when there is none.
    pub fn ggml_backend_dev_by_name(name: *const c_char) -> ggml_backend_dev_t {
        device_raw(str_of(name).and_then(|name| registry().device_by_name(name)))
    }
    /// The first device of a kind; NULL when there is none.
    pub fn ggml_backend_dev_by_type(r#type: ggml_backend_dev_type) -> ggml_backend_dev_t {
        device_raw(registry().device_by_kind(r#type))
    }
    /// A backend on the device of that name; NULL when there is no such device or it refuses.
    pub fn ggml_backend_init_by_name(name: *const c_char, params: *const c_char) -> ggml_backend_t {
        backend_raw(str_of(name).and_then(|name| registry().device_by_name(name)).and_then(|d| d.init(params)))
    }
    /// A backend on the first device of a kind; NULL when there is none or it refuses.
    pub fn ggml_backend_init_by_type(r#type: ggml_backend_dev_type, params: *const c_char) -> ggml_backend_t {
        backend_raw(registry().device_by_kind(r#type).and_then(|d| d.init(params)))
    }
    /// A backend on a GPU, else on an integrated GPU, else on the CPU.
    pub fn ggml_backend_init_best() -> ggml_backend_t {
        backend_raw(registry().init_best())
    }
    /// Loads a backend module and registers it; NULL with an error when it cannot be used.
    pub fn ggml_backend_load(path: *const c_char) -> ggml_backend_reg_t {
        let Some(path) = path_of(path) else {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_backend_load: no path");
            return null_mut();
        };
        match registry().load(&path) {
            Ok(reg) => reg.as_raw(),
            Err(e) => {
                error::report(&e);
                null_mut()
            }
        }
    }
    /// Unregisters an entry and unloads its module. Nothing of it may be in use. Kernels and rules registered on its devices are
    /// released; while a scheduler's plan uses one of them, the module stays, with an error.
    pub fn ggml_backend_unload(reg: ggml_backend_reg_t) {
        if let Some(Err(e)) = handle!(Reg, reg, "ggml_backend_unload").map(unload) {
            error::report(&e.within("ggml_backend_unload"));
        }
    }
    /// Loads the known backend modules beside the program and in the current folder, and the one in the environment variable
    /// GGML_BACKEND_PATH. The CPU is built in.
    pub fn ggml_backend_load_all() {
        registry().load_all(None);
    }
    /// As `ggml_backend_load_all`, from one folder.
    pub fn ggml_backend_load_all_from_path(dir_path: *const c_char) {
        registry().load_all(path_of(dir_path).as_deref());
    }
}
