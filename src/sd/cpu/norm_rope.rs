//! RMS_NORM, MUL by a weight for each channel, `sd.rope_apply.v1`: one launch.
//!
//! Each step is rounded as the single nodes round it, in their order: the bits are the same.

use super::native;
use super::product::numbers;
use super::rope_apply::turn;
use super::view::View;
use crate::capi::guard;
use crate::sd::api;
use crate::sd::kernel::{aligned, apart, places, prepared, status, Entry, Run, Shared, Stop};
use crate::sd::operator::{Check, Node, Operator};
use crate::sd::rope_apply::RopeApply;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr};

const NAME: &CStr = c"sd.rms_norm_mul_rope.cpu";

/// The rule.
pub const RULE: Entry = Entry {
    op: RopeApply::NAME,
    name: NAME,
    desc: || ggml_ext_kernel_desc {
        struct_size: size_of::<ggml_ext_kernel_desc>(),
        name: NAME.as_ptr(),
        op: GGML_OP_NONE,
        op_name: std::ptr::null(),
        priority: 0,
        match_op: GGML_OP_RMS_NORM,
        user_data: std::ptr::null_mut(),
        supports: Some(supports),
        preferred: None,
        prepare: Some(prepare),
        execute: Some(execute),
        destroy: None,
        r#match: Some(matches),
        optimize: None,
        scope: std::ptr::null_mut(),
    },
};

unsafe extern "C" fn matches(graph: *mut ggml_cgraph, first: c_int, _: *mut c_void) -> c_int {
    guard("match", || {
        // SAFETY: the library's graph; numbers of nodes that are there.
        unsafe {
            if first < 0 || first > api::ggml_graph_n_nodes(graph) - 3 {
                return 0;
            }
            let [norm, mul, rope] = [0, 1, 2].map(|i| api::ggml_graph_node(graph, first + i));
            let name = api::ggml_ext_op_name(rope);
            let rope_apply = !name.is_null() && CStr::from_ptr(name) == RopeApply::NAME;
            // the other operand of each comes from outside: these nodes get no memory
            let chain = (*mul).op == GGML_OP_MUL && (*mul).src[0] == norm && rope_apply && (*rope).src[0] == mul;
            let outside = (*mul).src[1] != norm && ![norm, mul].contains(&(*rope).src[1]);
            if chain && outside {
                3
            } else {
                0
            }
        }
    })
}

/// The nodes of a match.
struct Chain<'a> {
    norm: &'a ggml_tensor,
    mul: &'a ggml_tensor,
    rope: Node<'a, RopeApply>,
}

impl<'a> Chain<'a> {
    /// # Safety
    /// The step is the library's, of a match.
    unsafe fn of(step: *const ggml_ext_step) -> Check<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let nodes = std::slice::from_raw_parts((*step).nodes, 3);
            Ok(Chain { norm: &*nodes[0], mul: &*nodes[1], rope: Node::read(&*nodes[2])? })
        }
    }

    fn x(&self) -> &'a ggml_tensor {
        // SAFETY: RMS_NORM has a source.
        unsafe { &*self.norm.src[0] }
    }

    fn weight(&self) -> &'a ggml_tensor {
        // SAFETY: MUL has two sources.
        unsafe { &*self.mul.src[1] }
    }

    fn eps(&self) -> f32 {
        shape::param_f32(self.norm, 0)
    }
}

fn check(chain: &Chain) -> Check {
    let (x, weight) = (chain.x(), chain.weight());
    if x.r#type != GGML_TYPE_F32 || weight.r#type != GGML_TYPE_F32 {
        return Err("x and the weight must be F32".into());
    }
    if weight.ne != [x.ne[0], 1, 1, 1] || !shape::is_contiguous(weight) {
        return Err("the weight must have a number for each channel, side by side".into());
    }
    if chain.eps().is_nan() || chain.eps() < 0.0 {
        return Err(format!("eps is {}, it must not be negative", chain.eps()));
    }
    match x.ne == chain.norm.ne && x.ne == chain.mul.ne {
        true => Ok(()),
        false => Err("shapes of the nodes differ".into()),
    }
}

unsafe extern "C" fn supports(step: *const ggml_ext_step, _: *mut c_void) -> bool {
    guard("supports", || {
        // SAFETY: the library's step, of a match.
        match unsafe { Chain::of(step) }.and_then(|chain| check(&chain)) {
            Ok(()) => true,
            Err(text) => api::refuse(&text),
        }
    })
}

unsafe extern "C" fn prepare(step: *const ggml_ext_step, out: *mut ggml_ext_prepared, _: *mut c_void) -> ggml_status {
    guard("prepare", || {
        // SAFETY: the library's step, of a match, and structure.
        unsafe {
            let overlap = (*step).overlap != 0;
            prepared(out, Chain::of(step).and_then(|chain| places(0, chain.rope.dst, overlap)))
        }
    })
}

unsafe extern "C" fn execute(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    guard("execute", || {
        // SAFETY: the library's run of a match; tensors but inner nodes have their data.
        status(unsafe {
            Chain::of((*run).step)
                .and_then(|chain| {
                    [chain.x(), chain.weight(), chain.rope.src(1), chain.rope.dst].into_iter().try_for_each(aligned)?;
                    Ok(chain)
                })
                .map_err(|text| Stop::Failed(GGML_STATUS_FAILED, text))
                .and_then(|chain| {
                    let (overlap, run) = ((*(*run).step).overlap != 0, Run::of(&*run));
                    apart(&run, chain.rope.dst, 0, overlap, |dst| compute(&chain, &run, dst))
                })
        })
    })
}

/// # Safety
/// Tensors but inner nodes have their data, and `dst` has as many bytes as the result.
unsafe fn compute(chain: &Chain, run: &Run, dst: Shared) -> Result<(), Stop> {
    if shape::is_empty(chain.rope.dst) {
        return Ok(());
    }
    let (x, eps) = (View::of(chain.x()), chain.eps());
    // SAFETY: the caller's promise.
    unsafe {
        let weight = numbers(chain.weight());
        turn(&chain.rope, run, dst, |i, row| {
            x.copy(i, row);
            let factor = native::rms_factor(row, eps);
            native::scale(row, factor, weight);
        })
    }
}
