//! Operators of the caller's: a C function in the node's parameters, called once for each of its tasks.
//!
//! The operators of ggml-ext.h are nodes of the same kind whose function is [`marker`]: it tells them apart and is never called.

use crate::entry::{no_work, OpEntry};
use crate::node::{src, Node, FLAG_POISONED};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// `ggml_map_custom1` to `3` and `ggml_custom_4d`.
pub const CUSTOM: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks, run };

/// The C structure { function, int, pointer } at the front of the parameters.
#[repr(C)]
#[derive(Clone, Copy)]
struct Params {
    function: usize,
    n_tasks: c_int,
    user_data: *mut c_void,
}

const _: () = assert!(size_of::<Params>() <= GGML_MAX_OP_PARAMS);

fn params(op: &ggml_tensor) -> Params {
    // SAFETY: the parameters have the bytes, and any bytes make the structure; it is only followed in `run`.
    unsafe { op.op_params.as_ptr().cast::<Params>().read_unaligned() }
}

/// How often [`marker`] was called.
static MARKER_CALLS: AtomicUsize = AtomicUsize::new(0);

/// The function of a node of ggml-ext.h. Its address is what counts. Code that takes the node for an ordinary custom operator may
/// call it: nothing is written to `dst`, and [`marker_calls`] counts the call.
///
/// # Safety
/// Nothing is required: no argument is looked at.
#[inline(never)]
pub unsafe extern "C" fn marker(_dst: *mut ggml_tensor, _ith: c_int, _nth: c_int, _userdata: *mut c_void) {
    // The counter is this function's alone, so no linker finds another function with the same body to share an address with.
    MARKER_CALLS.fetch_add(1, Ordering::Relaxed);
}

/// Calls of [`marker`] in this process: nodes of ggml-ext.h that some other code took for its own and left uncomputed.
pub fn marker_calls() -> usize {
    MARKER_CALLS.load(Ordering::Relaxed)
}

/// Whether a custom operator's function, as bits, is [`marker`].
pub fn is_marker(function_bits: usize) -> bool {
    function_bits == marker as *const () as usize
}

/// Whether `op` is an operator of ggml-ext.h.
pub fn is_extension(op: &ggml_tensor) -> bool {
    op.op == GGML_OP_CUSTOM && op.flags & FLAG_POISONED == 0 && is_marker(params(op).function)
}

/// The record of a node for which [`is_extension`] holds: what its builder stored as the user data.
pub fn extension_record(op: &ggml_tensor) -> *mut c_void {
    params(op).user_data
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let sources = match op.op {
        GGML_OP_MAP_CUSTOM1 => 1,
        GGML_OP_MAP_CUSTOM2 => 2,
        GGML_OP_MAP_CUSTOM3 => 3,
        _ => 0,
    };
    (0..sources).try_for_each(|i| src(op, i).map(|_| ()))?;
    let p = params(op);
    if p.function == 0 {
        return Err("the callback is NULL");
    }
    if is_marker(p.function) {
        return Err("it is an operator of ggml-ext.h, and no kernel for it is registered on this device");
    }
    if p.n_tasks != GGML_N_TASKS_MAX && p.n_tasks < 1 {
        return Err("the number of tasks must be -1 or at least 1");
    }
    Ok(())
}

fn tasks(op: &ggml_tensor, nth: usize) -> usize {
    usize::try_from(params(op).n_tasks).map_or(nth, |n| n.min(nth))
}

fn run(node: &Node, team: &Team) {
    let p = params(node.dst);
    let n = tasks(node.dst, team.nth());
    if team.ith() >= n {
        return;
    }
    let (ith, nth) = (team.ith() as c_int, n as c_int);
    let dst = std::ptr::from_ref(node.dst).cast_mut();
    let [a, b, c] = [0, 1, 2].map(|i| node.dst.src[i].cast_const());
    // SAFETY: the builder stored a function of the operator's own type, which is the caller's to answer for; `supports` saw that
    // it is not NULL.
    unsafe {
        match node.dst.op {
            GGML_OP_MAP_CUSTOM1 => {
                let f: ggml_custom1_op_t = std::mem::transmute(p.function);
                f.into_iter().for_each(|f| f(dst, a, ith, nth, p.user_data));
            }
            GGML_OP_MAP_CUSTOM2 => {
                let f: ggml_custom2_op_t = std::mem::transmute(p.function);
                f.into_iter().for_each(|f| f(dst, a, b, ith, nth, p.user_data));
            }
            GGML_OP_MAP_CUSTOM3 => {
                let f: ggml_custom3_op_t = std::mem::transmute(p.function);
                f.into_iter().for_each(|f| f(dst, a, b, c, ith, nth, p.user_data));
            }
            _ => {
                let f: ggml_custom_op_t = std::mem::transmute(p.function);
                f.into_iter().for_each(|f| f(dst, ith, nth, p.user_data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: ggml_op, function: usize, record: *mut c_void) -> ggml_tensor {
        // SAFETY: all zero bits are a tensor.
        let mut t: ggml_tensor = unsafe { std::mem::zeroed() };
        (t.op, t.ne, t.nb) = (op, [1; 4], [4; 4]);
        let p = Params { function, n_tasks: 1, user_data: record };
        // SAFETY: the parameters have the room (asserted above).
        unsafe { t.op_params.as_mut_ptr().cast::<Params>().write_unaligned(p) };
        t
    }

    /// EXT-7
    #[test]
    fn a_node_of_the_extension_interface_is_told_apart_and_refused() {
        unsafe extern "C" fn ordinary(_: *mut ggml_tensor, _: c_int, _: c_int, _: *mut c_void) {}
        let (ours, record) = (marker as *const () as usize, 0x1234_5678usize as *mut c_void);
        let t = node(GGML_OP_CUSTOM, ours, record);
        assert!(is_extension(&t) && is_marker(ours) && extension_record(&t) == record);
        assert!(crate::refusal(&t).is_some_and(|rule| rule.contains("operator of ggml-ext.h")));

        let other = ordinary as *const () as usize;
        let t = node(GGML_OP_CUSTOM, other, record);
        assert!(!is_extension(&t) && !is_marker(other) && !is_marker(0));
        assert_eq!(crate::refusal(&t), None);

        let mut poisoned = node(GGML_OP_CUSTOM, ours, record);
        poisoned.flags |= FLAG_POISONED;
        assert!(!is_extension(&poisoned) && crate::refusal(&poisoned).is_some());

        let source = node(GGML_OP_NONE, 0, record);
        let mut map = node(GGML_OP_MAP_CUSTOM1, ours, record);
        map.src[0] = std::ptr::from_ref(&source).cast_mut();
        assert!(!is_extension(&map) && crate::refusal(&map).is_some(), "the marker would be called");
    }

    #[test]
    fn the_marker_writes_nothing() {
        let before = marker_calls();
        // SAFETY: it looks at no argument.
        unsafe { marker(std::ptr::null_mut(), 0, 1, std::ptr::null_mut()) };
        assert_eq!(marker_calls(), before + 1);
    }
}
