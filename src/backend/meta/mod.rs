//! A device made of several: tensors are divided along an axis, each device computes with its part, and sums over the devices are
//! made by the host. How weights are divided, the application says; what becomes of it through the graph, the rules here.
//!
//! - [`split`]: pieces along an axis, and what views make of them: numbers only.
//! - [`rules`]: what each operator makes of them.
//! - [`memory`]: buffers over the devices' own; [`parts`]: of the tensors in them.
//! - [`access`]: bytes to and from tensors.
//! - [`stream`]: a graph for each device, and the sums.

mod access;
mod memory;
mod parts;
mod rules;
mod split;
mod stream;
#[cfg(test)]
mod tests;

pub use memory::{for_each, is_meta as is_meta_buffer};
pub use stream::{backends_of, is_meta as is_meta_backend};

use super::handle::text;
use super::{Buft, Device};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void, CString};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// What a device of several is. It lives as long as the process.
pub struct Meta {
    device: ggml_backend_device,
    buft: ggml_backend_buffer_type,
    devices: Vec<Device>,
    get_split_state: ggml_backend_meta_get_split_state_t,
    user_data: *mut c_void,
    name: CString,
    description: CString,
}

// SAFETY: nothing of it changes once it is made; the callback's pointer is only handed back to it.
unsafe impl Sync for Meta {}
// SAFETY: as above.
unsafe impl Send for Meta {}

static ALL: Mutex<Vec<&'static Meta>> = Mutex::new(Vec::new());

/// The device over `devices`, 1 to [`GGML_BACKEND_META_MAX_DEVICES`], whose long-lived tensors the callback divides; the same
/// for the same arguments.
pub fn device(
    devices: Vec<Device>,
    get_split_state: ggml_backend_meta_get_split_state_t,
    user_data: *mut c_void,
) -> Result<ggml_backend_dev_t, Error> {
    if let Some(bare) = devices.iter().find(|d| d.buft().is_none()) {
        return Err(Error::new(GGML_EXT_CODE_BACKEND, format!("device '{}' has no memory", bare.name())));
    }
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |m: &&&'static Meta| {
        m.devices == devices
            && m.user_data == user_data
            && m.get_split_state.map(|f| f as usize) == get_split_state.map(|f| f as usize)
    };
    if let Some(meta) = all.iter().find(same) {
        return Ok(std::ptr::from_ref(&meta.device).cast_mut());
    }
    let joined = |of: fn(Device) -> String| {
        let list: Vec<String> = devices.iter().map(|&d| of(d)).collect();
        error::c_string(&format!("Meta({})", list.join(",")))
    };
    let name = joined(|d| d.name().to_owned());
    let description = joined(|d| text(d.description_ptr()).to_owned());
    let meta: &'static mut Meta = Box::leak(Box::new(Meta {
        device: ggml_backend_device { iface: DEVICE, reg: null_mut(), context: null_mut() },
        buft: ggml_backend_buffer_type { iface: memory::BUFT, device: null_mut(), context: null_mut() },
        devices,
        get_split_state,
        user_data,
        name,
        description,
    }));
    let context = std::ptr::from_mut(meta).cast::<c_void>();
    meta.device.context = context;
    meta.buft.context = context;
    meta.buft.device = &raw mut meta.device;
    all.push(meta);
    Ok(std::ptr::from_ref(&meta.device).cast_mut())
}

impl Meta {
    /// The memory of each of its devices.
    fn bufts(&self) -> impl Iterator<Item = Buft> + '_ {
        self.devices.iter().filter_map(|d| d.buft())
    }
}

/// Whether a buffer type is that of such a device.
pub fn is_meta_buft(buft: Buft) -> bool {
    buft.device().is_some_and(|d| of(d.as_raw()).is_some_and(|m| std::ptr::eq(&raw const m.buft, buft.as_raw())))
}

/// What a device is, when it is one of these.
fn of(device: ggml_backend_dev_t) -> Option<&'static Meta> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().copied().find(|m| std::ptr::eq(&raw const m.device, device))
}

const DEVICE: ggml_backend_device_i = ggml_backend_device_i {
    get_name: Some(name),
    get_description: Some(description),
    get_memory: Some(get_memory),
    get_type: Some(kind),
    get_props: Some(props),
    init_backend: Some(init_backend),
    get_buffer_type: Some(buffer_type),
    get_host_buffer_type: None,
    buffer_from_host_ptr: None,
    supports_op: Some(supports_op),
    supports_buft: Some(supports_buft),
    offload_op: None,
    event_new: None,
    event_free: None,
    event_synchronize: None,
};

/// # Safety
/// A device made by [`device`].
unsafe fn meta(dev: ggml_backend_dev_t) -> &'static Meta {
    // SAFETY: the caller's promise.
    unsafe { &*(*dev).context.cast::<Meta>() }
}

// The functions of the table: called with a device made by `device`.
unsafe extern "C" fn name(dev: ggml_backend_dev_t) -> *const c_char {
    // SAFETY: see above.
    unsafe { meta(dev) }.name.as_ptr()
}
unsafe extern "C" fn description(dev: ggml_backend_dev_t) -> *const c_char {
    // SAFETY: see above.
    unsafe { meta(dev) }.description.as_ptr()
}
unsafe extern "C" fn get_memory(dev: ggml_backend_dev_t, free: *mut usize, total: *mut usize) {
    // SAFETY: see above.
    let all = unsafe { meta(dev) }.devices.iter().map(|d| d.memory());
    let sum = all.fold((0usize, 0usize), |a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)));
    // SAFETY: NULL or a place for one number.
    unsafe {
        if let Some(free) = free.as_mut() {
            *free = sum.0;
        }
        if let Some(total) = total.as_mut() {
            *total = sum.1;
        }
    }
}
unsafe extern "C" fn kind(_: ggml_backend_dev_t) -> ggml_backend_dev_type {
    GGML_BACKEND_DEVICE_TYPE_META
}
unsafe extern "C" fn props(dev: ggml_backend_dev_t, out: *mut ggml_backend_dev_props) {
    // SAFETY: NULL or a structure to fill in.
    let Some(out) = (unsafe { out.as_mut() }) else { return };
    // SAFETY: see above.
    unsafe {
        (out.name, out.description, out.r#type) = (name(dev), description(dev), kind(dev));
        get_memory(dev, &mut out.memory_free, &mut out.memory_total);
    }
    out.device_id = std::ptr::null();
    out.caps = ggml_backend_dev_caps::default();
}
unsafe extern "C" fn init_backend(dev: ggml_backend_dev_t, params: *const c_char) -> ggml_backend_t {
    // SAFETY: see above.
    unsafe { stream::new(dev, meta(dev), params) }
}
unsafe extern "C" fn buffer_type(dev: ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
    // SAFETY: see above.
    std::ptr::from_ref(&unsafe { meta(dev) }.buft).cast_mut()
}
unsafe extern "C" fn supports_op(dev: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
    // SAFETY: see above; the node is NULL or live.
    unsafe { op.as_ref().is_some_and(|op| meta(dev).devices.iter().all(|d| d.supports_op(op))) }
}
unsafe extern "C" fn supports_buft(dev: ggml_backend_dev_t, buft: ggml_backend_buffer_type_t) -> bool {
    // Of these devices alone: a part of another division would not fit.
    // SAFETY: see above.
    let own = unsafe { meta(dev) };
    // SAFETY: NULL or a live buffer type.
    let other = unsafe { buft.as_ref() }.and_then(|b| of(b.device));
    other.is_some_and(|other| other.devices == own.devices)
}
