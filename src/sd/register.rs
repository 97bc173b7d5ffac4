//! Registration, on request alone. What an application has registered under one of the names stays its own.

use super::operator::{error, text_of};
use super::{api, cpu, operator};
use crate::error::Error;
use ggml_oxide_abi::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The operators.
const OPS: [operator::Entry; 7] = [
    operator::Entry::of::<super::convrot::Quantize>(),
    operator::Entry::of::<super::linear_i8::Linear>(),
    operator::Entry::of::<super::linear_w4::Linear>(),
    operator::Entry::of::<super::modulate::Modulate>(),
    operator::Entry::of::<super::rope_apply::RopeApply>(),
    operator::Entry::of::<super::attention::Sage>(),
    operator::Entry::of::<super::attention::Sol>(),
];

/// Whose an operator's name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Library,
    Application,
}

struct State {
    ops: [Owner; OPS.len()],
    /// Devices whose kernels are registered, by address, and the names there that were the application's.
    devices: Vec<(usize, Vec<&'static CStr>)>,
}

static STATE: Mutex<State> = Mutex::new(State { ops: [Owner::Nobody; OPS.len()], devices: Vec::new() });
/// Bit `i`: builders may make nodes of operator `i`, and nothing remains to be registered.
static READY: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(OPS.len() < 32);

/// An attempt that failed for another reason than a taken name. The library has reported why.
fn failed(name: &CStr) -> Error {
    error(name, api::last_code(), "it cannot be registered now")
}

fn register_ops(state: &mut State) -> Result<(), Error> {
    for (owner, op) in state.ops.iter_mut().zip(&OPS).filter(|(owner, _)| **owner == Owner::Nobody) {
        // SAFETY: static names and callbacks.
        *owner = match unsafe { api::ggml_ext_register_op(&op.desc()) } {
            true => Owner::Library,
            false if api::last_code() == GGML_EXT_CODE_NAME_TAKEN => Owner::Application,
            false => return Err(failed(op.name)),
        };
    }
    Ok(())
}

/// Whether kernels of this folder can run on the device: it has the CPU's threads to lend.
fn is_ours(device: ggml_backend_dev_t) -> bool {
    // SAFETY: a device; the name is a C string.
    unsafe {
        let reg = api::ggml_backend_dev_backend_reg(device);
        !reg.is_null()
            && api::ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU
            && api::ggml_backend_reg_get_proc_address(reg, c"ggml_ext_cpu_parallel_v1".as_ptr()).cast_const()
                == api::ggml_ext_cpu_parallel_v1 as *const std::ffi::c_void
    }
}

fn register_kernels(state: &mut State, device: ggml_backend_dev_t) -> Result<(), Error> {
    if state.devices.iter().any(|(known, _)| *known == device.addr()) {
        return Ok(());
    }
    let mut taken = Vec::new();
    for kernel in &cpu::KERNELS {
        let own = OPS.iter().zip(&state.ops).any(|(op, owner)| op.name == kernel.op && *owner == Owner::Library);
        // SAFETY: static names and callbacks.
        if own && !unsafe { api::ggml_ext_register_kernel_ex(device, &(kernel.desc)(), FLAGS) } {
            match api::last_code() {
                GGML_EXT_CODE_NAME_TAKEN => taken.push(kernel.name),
                _ => return Err(failed(kernel.name)),
            }
        }
    }
    state.devices.push((device.addr(), taken));
    Ok(())
}

const FLAGS: u32 = GGML_EXT_KERNEL_DETERMINISTIC;

/// Registers the operators, and the kernels of all CPU devices.
fn register_all(state: &mut State) -> Result<(), Error> {
    register_ops(state)?;
    // SAFETY: numbers below the count.
    unsafe {
        for i in 0..api::ggml_backend_dev_count() {
            let device = api::ggml_backend_dev_get(i);
            if !device.is_null() && is_ours(device) {
                register_kernels(state, device)?;
            }
        }
    }
    let ready = state.ops.iter().enumerate().filter(|(_, owner)| **owner == Owner::Library);
    READY.store(ready.map(|(i, _)| 1 << i).sum(), Ordering::Release);
    Ok(())
}

/// The operator `name` is registered, and it is the library's.
pub fn ensure(name: &CStr) -> Result<(), Error> {
    let number = OPS.iter().position(|op| op.name == name).unwrap_or(OPS.len());
    if READY.load(Ordering::Acquire) >> number & 1 == 1 {
        return Ok(());
    }
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    register_all(&mut state)?;
    match state.ops.get(number) {
        Some(Owner::Library) => Ok(()),
        _ => Err(error(name, GGML_EXT_CODE_NAME_TAKEN, TAKEN)),
    }
}

const TAKEN: &str = "the application has an operator of this name of its own, whose nodes ggml_ext_op_create makes";

/// `ggml_sd_register_extensions`. `device`: NULL for all CPU devices.
pub fn register(device: ggml_backend_dev_t) -> Result<(), Error> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if device.is_null() {
        register_all(&mut state)?;
    } else {
        register_ops(&mut state)?;
        if !is_ours(device) {
            // SAFETY: a device has a name.
            let name = unsafe { CStr::from_ptr(api::ggml_backend_dev_name(device)) }.to_string_lossy();
            return Err(Error::new(GGML_EXT_CODE_NO_KERNEL, format!("there are no kernels for device {name}")));
        }
        register_kernels(&mut state, device)?;
    }
    let ops = OPS.iter().zip(&state.ops).filter(|(_, owner)| **owner != Owner::Library).map(|(op, _)| op.name);
    let devices = state.devices.iter().filter(|(at, _)| device.is_null() || *at == device.addr());
    let taken: Vec<&str> = ops.chain(devices.flat_map(|(_, taken)| taken.iter().copied())).map(text_of).collect();
    match taken.first() {
        None => Ok(()),
        Some(first) => {
            let text = format!("left to the application, which has registered them: {}", taken.join(", "));
            Err(Error::new(GGML_EXT_CODE_NAME_TAKEN, text).by(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sd::kernel;

    #[test]
    fn every_kernel_is_for_an_operator() {
        assert!(cpu::KERNELS.iter().all(|k: &kernel::Entry| OPS.iter().any(|op| op.name == k.op)));
    }
}
