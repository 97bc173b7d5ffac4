//! Entry points of ggml.h: operators of the caller's.

use crate::entry;
use crate::error::Error;
use crate::tensor::misc::Custom;
use crate::tensor::{context, node, place, screen, NodeSpec};
use ggml_oxide_abi::*;
use std::ffi::{c_int, c_void};

/// Makes a node from the `first` sources, which are required, and `n_args` more, which may be NULL; one slot stays free.
unsafe fn build(
    ctx: *mut ggml_context,
    call: &str,
    first: &[*mut ggml_tensor],
    args: *mut *mut ggml_tensor,
    n_args: c_int,
    spec: Result<NodeSpec, Error>,
) -> *mut ggml_tensor {
    // SAFETY: the contract of the entry points: `args` holds `n_args` tensors.
    unsafe {
        let Some(ctx) = context(ctx, call) else {
            return std::ptr::null_mut();
        };
        let room = GGML_MAX_SRC - 1 - first.len();
        let n = usize::try_from(n_args).ok().filter(|&n| n <= room && (n == 0 || !args.is_null()));
        let Some(n) = n else {
            let text = format!("{call}: {n_args} sources in args: 0 to {room} can be had, and args must not be NULL");
            return ctx.reject([1; GGML_MAX_DIMS], &Error::argument(text));
        };
        let mut src = [std::ptr::null_mut(); GGML_MAX_SRC];
        src[..first.len()].copy_from_slice(first);
        if n > 0 {
            src[first.len()..first.len() + n].copy_from_slice(std::slice::from_raw_parts(args, n));
        }
        match screen(ctx, call, first, &src) {
            Ok(()) => place(ctx, call, spec, &src),
            Err(poisoned) => poisoned,
        }
    }
}

entry! {
    /// A node that `fun` computes from one source, in the shape and format of `a`. `n_tasks`: threads that share it, or
    /// `GGML_N_TASKS_MAX`.
    pub fn ggml_map_custom1(ctx: *mut ggml_context, a: *mut ggml_tensor, fun: ggml_custom1_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom1", [a], [], |[a], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM1, a, false))
        })
    }

    /// As `ggml_map_custom1`, written over `a`.
    pub fn ggml_map_custom1_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, fun: ggml_custom1_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom1_inplace", [a], [], |[a], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM1, a, true))
        })
    }

    /// A node that `fun` computes from two sources, in the shape and format of `a`. `n_tasks`: threads that share it, or
    /// `GGML_N_TASKS_MAX`.
    pub fn ggml_map_custom2(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, fun: ggml_custom2_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom2", [a, b], [], |[a, _], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM2, a, false))
        })
    }

    /// As `ggml_map_custom2`, written over `a`.
    pub fn ggml_map_custom2_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, fun: ggml_custom2_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom2_inplace", [a, b], [], |[a, _], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM2, a, true))
        })
    }

    /// A node that `fun` computes from three sources, in the shape and format of `a`. `n_tasks`: threads that share it, or
    /// `GGML_N_TASKS_MAX`.
    pub fn ggml_map_custom3(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, fun: ggml_custom3_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom3", [a, b, c], [], |[a, _, _], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM3, a, false))
        })
    }

    /// As `ggml_map_custom3`, written over `a`.
    pub fn ggml_map_custom3_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, fun: ggml_custom3_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        node(ctx, "ggml_map_custom3_inplace", [a, b, c], [], |[a, _, _], []| {
            custom.into_spec(NodeSpec::like_or_over(GGML_OP_MAP_CUSTOM3, a, true))
        })
    }
}

entry! {
    /// A node of a given format and shape that `fun` computes from up to 9 sources, some of which may be NULL.
    pub fn ggml_custom_4d(ctx: *mut ggml_context, r#type: ggml_type, ne0: i64, ne1: i64, ne2: i64, ne3: i64, args: *mut *mut ggml_tensor, n_args: c_int, fun: ggml_custom_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        let spec = custom.into_spec(NodeSpec::new(GGML_OP_CUSTOM, r#type, [ne0, ne1, ne2, ne3]));
        build(ctx, "ggml_custom_4d", &[], args, n_args, spec)
    }

    /// A node that writes over `a` and that `fun` computes from `a` and up to 8 more sources, some of which may be NULL.
    pub fn ggml_custom_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, args: *mut *mut ggml_tensor, n_args: c_int, fun: ggml_custom_op_t, n_tasks: c_int, userdata: *mut c_void) -> *mut ggml_tensor {
        let custom = Custom { function: fun.map_or(0, |f| f as usize), n_tasks, user_data: userdata.expose_provenance() };
        let over = a.as_ref().map(|a| NodeSpec::over(GGML_OP_CUSTOM, a, 0));
        let spec = custom.into_spec(over.unwrap_or_else(|| NodeSpec::new(GGML_OP_CUSTOM, GGML_TYPE_F32, [1; GGML_MAX_DIMS])));
        build(ctx, "ggml_custom_inplace", &[a], args, n_args, spec)
    }
}
