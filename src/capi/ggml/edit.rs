//! Changes to a node that exists: parameters and late sources.

use crate::error::{self, Error};
use crate::tensor::{is_poisoned, norm};
use ggml_oxide_abi::*;

/// The node to be changed. `None`: NULL, which is reported, or a stand-in, whose failure was reported before.
///
/// # Safety
/// `a` is NULL or a live tensor that nobody else uses.
pub unsafe fn edit<'a>(call: &str, a: *mut ggml_tensor) -> Option<&'a mut ggml_tensor> {
    // SAFETY: the contract above.
    let tensor = unsafe { a.as_mut() };
    if tensor.is_none() {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: the tensor is NULL"));
    }
    tensor.filter(|t| !is_poisoned(t))
}

fn check_op(call: &str, a: &ggml_tensor, ops: &[ggml_op]) -> bool {
    let known = ops.contains(&a.op);
    if !known {
        let text = format!("{call}: '{}' is a node of {:?}, not of {ops:?}", ggml_oxide_shape::name(a), a.op);
        error::report_at(&Error::argument(text), a);
    }
    known
}

/// Sets a slot of `op_params` of a node of one of `ops`.
///
/// # Safety
/// As for [`edit`].
pub unsafe fn set_param(call: &str, a: *mut ggml_tensor, ops: &[ggml_op], slot: usize, value: i32) {
    // SAFETY: the contract above.
    if let Some(a) = unsafe { edit(call, a) } {
        if check_op(call, a, ops) {
            a.op_params[slot] = value;
        }
    }
}

/// A slot of `op_params` of a node of one of `ops`; 0 for others.
///
/// # Safety
/// As for [`edit`].
pub unsafe fn get_param(call: &str, a: *const ggml_tensor, ops: &[ggml_op], slot: usize) -> i32 {
    // SAFETY: the contract above; nothing is written.
    match unsafe { edit(call, a.cast_mut()) } {
        Some(a) if check_op(call, a, ops) => a.op_params[slot],
        _ => 0,
    }
}

/// Makes `sinks` source `slot` of a node of `op`; NULL takes it away.
///
/// # Safety
/// As for [`edit`]; `sinks` is NULL or a live tensor.
pub unsafe fn set_sinks(call: &str, a: *mut ggml_tensor, op: ggml_op, slot: usize, sinks: *mut ggml_tensor) {
    // SAFETY: the contract above.
    let Some(a) = (unsafe { edit(call, a) }) else {
        return;
    };
    if sinks.is_null() {
        a.src[slot] = sinks;
        return;
    }
    if !check_op(call, a, &[op]) {
        return;
    }
    // SAFETY: the contract above; source 0 of such a node is there.
    let (first, given) = unsafe { (&*a.src[0], &*sinks) };
    let fits = match a.src[slot].is_null() {
        true => norm::sinks(first, given),
        false => Err(Error::argument("the node has sinks already")),
    };
    match fits {
        Ok(()) => a.src[slot] = sinks,
        Err(error) => error::report_at(&error.within(call), a),
    }
}
