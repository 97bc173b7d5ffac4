//! The CPU: registry entry, device, and backends on it. Kernels are in the crate `ggml-oxide-cpu`.

mod features;
pub mod numa;
mod parallel;
mod plan;
mod stream;
pub mod threadpool;

pub use features::has;
pub use parallel::parallel;
pub use stream::{compute, compute_calls, failed, Cpu, BUSY};

use super::{host, Reg};
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::OnceLock;

struct Shared<T>(T);
// SAFETY: the tables are constants that hold pointers to constants.
unsafe impl<T> Sync for Shared<T> {}

static REG: Shared<ggml_backend_reg> = Shared(ggml_backend_reg {
    api_version: GGML_BACKEND_API_VERSION,
    iface: ggml_backend_reg_i {
        get_name: Some(reg_name),
        get_device_count: Some(device_count),
        get_device: Some(device),
        get_proc_address: Some(proc_address),
    },
    context: std::ptr::null_mut(),
});

static DEVICE: Shared<ggml_backend_device> = Shared(ggml_backend_device {
    iface: ggml_backend_device_i {
        get_name: Some(device_name),
        get_description: Some(description),
        get_memory: Some(memory),
        get_type: Some(kind),
        get_props: Some(props),
        init_backend: Some(init_backend),
        get_buffer_type: Some(buffer_type),
        get_host_buffer_type: None,
        buffer_from_host_ptr: Some(buffer_from_host_ptr),
        supports_op: Some(supports_op),
        supports_buft: Some(supports_buft),
        offload_op: None,
        event_new: None,
        event_free: None,
        event_synchronize: None,
    },
    reg: std::ptr::from_ref(&REG.0).cast_mut(),
    context: std::ptr::null_mut(),
});

/// The CPU's registry entry.
pub fn reg() -> Reg {
    // SAFETY: a static; nothing writes through the handle.
    unsafe { Reg::from_raw(std::ptr::from_ref(&REG.0).cast_mut()) }
        .unwrap_or_else(|| unreachable!("a static has an address"))
}

pub(super) fn device_ptr() -> ggml_backend_dev_t {
    std::ptr::from_ref(&DEVICE.0).cast_mut()
}

unsafe extern "C" fn reg_name(_: ggml_backend_reg_t) -> *const c_char {
    c"CPU".as_ptr()
}
unsafe extern "C" fn device_count(_: ggml_backend_reg_t) -> usize {
    1
}
unsafe extern "C" fn device(_: ggml_backend_reg_t, index: usize) -> ggml_backend_dev_t {
    if index == 0 {
        device_ptr()
    } else {
        std::ptr::null_mut()
    }
}

unsafe extern "C" fn proc_address(_: ggml_backend_reg_t, name: *const c_char) -> *mut c_void {
    use crate::capi::cpu as entry;
    if name.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller hands over a C string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"ggml_backend_set_n_threads" => entry::ggml_backend_cpu_set_n_threads as *mut c_void,
        b"ggml_backend_set_abort_callback" => entry::ggml_backend_cpu_set_abort_callback as *mut c_void,
        b"ggml_backend_cpu_set_threadpool" => entry::ggml_backend_cpu_set_threadpool as *mut c_void,
        b"ggml_backend_cpu_set_use_ref" => entry::ggml_backend_cpu_set_use_ref as *mut c_void,
        b"ggml_backend_cpu_numa_init" => entry::ggml_numa_init as *mut c_void,
        b"ggml_backend_cpu_is_numa" => entry::ggml_is_numa as *mut c_void,
        b"ggml_threadpool_new" => entry::ggml_threadpool_new as *mut c_void,
        b"ggml_threadpool_free" => entry::ggml_threadpool_free as *mut c_void,
        b"ggml_ext_cpu_parallel_v1" => crate::capi::ext_cpu::ggml_ext_cpu_parallel_v1 as *mut c_void,
        b"ggml_backend_get_features" => features::list as *mut c_void,
        b"ggml_backend_dev_get_extra_bufts" => extra_bufts as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}

/// There is no memory but the plain one.
unsafe extern "C" fn extra_bufts(_: ggml_backend_dev_t) -> *mut ggml_backend_buffer_type_t {
    static NONE: Shared<[ggml_backend_buffer_type_t; 1]> = Shared([std::ptr::null_mut()]);
    NONE.0.as_ptr().cast_mut()
}

unsafe extern "C" fn device_name(_: ggml_backend_dev_t) -> *const c_char {
    c"CPU".as_ptr()
}

unsafe extern "C" fn description(_: ggml_backend_dev_t) -> *const c_char {
    static MODEL: OnceLock<CString> = OnceLock::new();
    let model = MODEL.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split_once(':'));
        crate::error::c_string(line.map_or("CPU", |(_, name)| name.trim()))
    });
    model.as_ptr()
}

unsafe extern "C" fn memory(_: ggml_backend_dev_t, free: *mut usize, total: *mut usize) {
    // SAFETY: sysconf only reads its argument.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGE_SIZE)) };
    let bytes = usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(page).unwrap_or(0));
    // "Free" has no clear meaning for memory that the system shares out as it is used: all of it counts.
    // SAFETY: NULL or a place for one number.
    unsafe {
        if let Some(free) = free.as_mut() {
            *free = bytes;
        }
        if let Some(total) = total.as_mut() {
            *total = bytes;
        }
    }
}

unsafe extern "C" fn kind(_: ggml_backend_dev_t) -> ggml_backend_dev_type {
    GGML_BACKEND_DEVICE_TYPE_CPU
}

unsafe extern "C" fn props(dev: ggml_backend_dev_t, out: *mut ggml_backend_dev_props) {
    // SAFETY: the caller hands over NULL or a structure to fill in.
    let Some(out) = (unsafe { out.as_mut() }) else { return };
    // SAFETY: functions of this table.
    unsafe {
        out.name = device_name(dev);
        out.description = description(dev);
        memory(dev, &mut out.memory_free, &mut out.memory_total);
    }
    out.r#type = GGML_BACKEND_DEVICE_TYPE_CPU;
    out.device_id = std::ptr::null();
    out.caps = ggml_backend_dev_caps { buffer_from_host_ptr: true, mmap_support: true, ..Default::default() };
}

unsafe extern "C" fn init_backend(_: ggml_backend_dev_t, _params: *const c_char) -> ggml_backend_t {
    Cpu::new_backend()
}

unsafe extern "C" fn buffer_type(_: ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
    host::buffer_type_cpu().as_raw()
}

unsafe extern "C" fn buffer_from_host_ptr(
    _: ggml_backend_dev_t,
    ptr: *mut c_void,
    size: usize,
    _max_tensor_size: usize,
) -> ggml_backend_buffer_t {
    host::from_ptr(ptr, size).map_or(std::ptr::null_mut(), |b| b.as_raw())
}

unsafe extern "C" fn supports_op(_: ggml_backend_dev_t, op: *const ggml_tensor) -> bool {
    // SAFETY: the caller hands over NULL or a live node.
    unsafe { op.as_ref() }.is_some_and(ggml_oxide_cpu::supports_op)
}

unsafe extern "C" fn supports_buft(_: ggml_backend_dev_t, buft: ggml_backend_buffer_type_t) -> bool {
    // SAFETY: the caller hands over NULL or a live buffer type.
    unsafe { super::Buft::from_raw(buft) }.is_some_and(super::Buft::is_host)
}

/// Threads of a CPU backend that nobody set.
pub const DEFAULT_N_THREADS: c_int = GGML_DEFAULT_N_THREADS;
