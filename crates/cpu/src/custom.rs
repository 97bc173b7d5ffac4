//! Operators of the caller's: a C function in the node's parameters, called once for each of its tasks.

use crate::node::{src, Node};
use crate::table::{no_work, OpEntry};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::ffi::{c_int, c_void};

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
