//! Whether a module is one for this library: built for the same interface, and for tensors of the same size.
//!
//! `GGML_MAX_NAME` moves two things of a tensor only, the member `extra` and the end; every other member lies before the name. There
//! are three ways to learn what a module was built for, from the exact one to the last resort:
//! 1. The header's `GGML_BACKEND_DL_IMPL` gives a module a function `ggml_backend_max_name`, and the header's `ggml_init` is a name
//!    that carries the value.
//! 2. A module of the headers of ggml says nothing. Its own kinds of host memory are asked to prepare a tensor with room around it;
//!    where they write beside `extra`, they have another layout. Memory of a GPU is not: taking some starts the GPU.
//! 3. What remains (docs/modules.md) cannot be told from outside.

use super::{Buft, Device, Reg};
use ggml_oxide_abi::*;
use libloading::Library;
use std::ffi::{c_char, c_int};

/// What the loader said, and what it means where it is about the size of tensors.
pub fn loader_text(text: &str) -> String {
    let value = text.split("ggml_init_for_GGML_MAX_NAME_").nth(1);
    let value: String = value.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    if value.is_empty() {
        text.to_owned()
    } else {
        format!("{}: {text}", other_size(&value))
    }
}

fn other_size(value: impl std::fmt::Display) -> String {
    format!("built for GGML_MAX_NAME {value}, this library for {GGML_MAX_NAME}: their tensors are not alike")
}

/// Checks what the module's symbols tell of the size of tensors.
pub fn names(library: &Library) -> Result<(), String> {
    // SAFETY: the name belongs to a function of this type in every module that has it.
    let value = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"ggml_backend_max_name\0").ok().map(|f| f()) };
    match value {
        Some(value) if value != GGML_MAX_NAME as c_int => Err(other_size(value)),
        _ => Ok(()),
    }
}

/// Checks a module's registry entry.
pub fn entry(reg: Reg) -> Result<(), String> {
    let version = reg.api_version();
    if version != GGML_BACKEND_API_VERSION {
        let whose = match version {
            2 => " (ggml 0.9.5 to 0.21: operators and types have other numbers there)",
            _ => "",
        };
        return Err(format!(
            "built for interface version {version}{whose}, this library has {GGML_BACKEND_API_VERSION} (ggml 0.26)"
        ));
    }
    if let Some(missing) = reg.missing() {
        return Err(format!("its entry leaves out {missing}"));
    }
    let devices = (0..reg.device_count()).filter_map(|i| reg.device(i));
    for device in devices.filter(|d| d.kind() == GGML_BACKEND_DEVICE_TYPE_CPU) {
        if extra_bufts(reg, device).into_iter().any(writes_beside) {
            return Err(format!(
                "built for another GGML_MAX_NAME than {GGML_MAX_NAME}: it prepares tensors of another size"
            ));
        }
    }
    Ok(())
}

/// Kinds of memory that the device has beside its own.
fn extra_bufts(reg: Reg, device: Device) -> Vec<Buft> {
    type List = unsafe extern "C" fn(ggml_backend_dev_t) -> *mut ggml_backend_buffer_type_t;
    let function = reg.proc_address(c"ggml_backend_dev_get_extra_bufts");
    // SAFETY: what a backend gives under this name has this type; NULL is `None`.
    let Some(list) = (unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<List>>(function) }) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    // SAFETY: the list is NULL, or ends with NULL; its members live as long as the device.
    unsafe {
        let mut at = list(device.as_raw());
        while let Some(buft) = at.as_ref().and_then(|&raw| Buft::from_raw(raw)) {
            all.push(buft);
            at = at.add(1);
        }
    }
    all
}

/// Bytes around the tensor: more than any other size of its name would take.
const ROOM: usize = 4096;

#[repr(C)]
struct Roomy {
    tensor: ggml_tensor,
    after: [u8; ROOM],
}

/// Whether preparing a tensor in such memory changes its name, or what lies behind it.
fn writes_beside(buft: Buft) -> bool {
    let (buffer, _) = crate::error::aside(|| buft.alloc(1 << 16));
    let Some(buffer) = buffer.filter(|b| b.iface().init_tensor.is_some()) else { return false };
    let mut probe = Box::new(Roomy { tensor: crate::tensor::blank(), after: [b'x'; ROOM] });
    let tensor = &mut probe.tensor;
    tensor.r#type = GGML_TYPE_Q4_0;
    tensor.ne = [64, 64, 1, 1];
    tensor.nb = [18, 36, 36 * 64, 36 * 64];
    tensor.buffer = buffer.as_raw();
    tensor.data = buffer.base();
    // An empty name, and behind its end something that another layout's `extra` shows on.
    tensor.name = [b'x' as c_char; GGML_MAX_NAME];
    tensor.name[0] = 0;
    let before = (tensor.name, tensor.padding);
    // By a pointer to all of it: what comes may write behind the tensor.
    let whole = &raw mut *probe;
    // SAFETY: the tensor, the first member, is live, lies at the buffer's start and fits in it.
    let _ = unsafe { buffer.init_tensor(whole.cast()) };
    let written = before != (probe.tensor.name, probe.tensor.padding) || probe.after.iter().any(|&b| b != b'x');
    // SAFETY: nothing else knows the buffer.
    unsafe { buffer.free() };
    written
}
