//! Entry points of ggml.h: contexts, tensors in them, names and flags.

use super::edit::edit;
use crate::entry;
use crate::error::{self, Error};
use crate::tensor::{context, new, new_tensor, node, set_name_c, Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null_mut;

entry! {
    /// A new context, or NULL with an error: no memory, or a `mem_buffer` that is not aligned to 16 bytes.
    pub fn ggml_init(params: ggml_init_params) -> *mut ggml_context {
        match Context::new(params.mem_size, params.mem_buffer, params.no_alloc) {
            Ok(ctx) => ctx.into_raw(),
            Err(error) => {
                error::report(&error);
                null_mut()
            }
        }
    }
    /// Forgets everything in a context; its memory stays.
    pub fn ggml_reset(ctx: *mut ggml_context) {
        if let Some(ctx) = Context::from_ptr(ctx) {
            ctx.reset();
        }
    }
    /// Frees a context and everything in it. NULL is no change.
    pub fn ggml_free(ctx: *mut ggml_context) {
        drop(Context::from_raw(ctx));
    }
    /// Bytes of the context's memory in use.
    pub fn ggml_used_mem(ctx: *const ggml_context) -> usize {
        context(ctx.cast_mut(), "ggml_used_mem").map_or(0, |ctx| ctx.used())
    }
    /// Whether tensors of the context get no data from its memory.
    pub fn ggml_get_no_alloc(ctx: *mut ggml_context) -> bool {
        context(ctx, "ggml_get_no_alloc").is_some_and(|ctx| ctx.no_alloc)
    }
    /// Sets whether tensors made from now on get no data from the context's memory.
    pub fn ggml_set_no_alloc(ctx: *mut ggml_context, no_alloc: bool) {
        if let Some(ctx) = context(ctx, "ggml_set_no_alloc") {
            ctx.no_alloc = no_alloc;
        }
    }
    /// The context's memory.
    pub fn ggml_get_mem_buffer(ctx: *const ggml_context) -> *mut c_void {
        context(ctx.cast_mut(), "ggml_get_mem_buffer").map_or(null_mut(), |ctx| ctx.buffer().cast())
    }
    /// Bytes of the context's memory.
    pub fn ggml_get_mem_size(ctx: *const ggml_context) -> usize {
        context(ctx.cast_mut(), "ggml_get_mem_size").map_or(0, |ctx| ctx.size())
    }
    /// Bytes of the largest tensor in the context.
    pub fn ggml_get_max_tensor_size(ctx: *const ggml_context) -> usize {
        context(ctx.cast_mut(), "ggml_get_max_tensor_size")
            .map_or(0, |ctx| ctx.tensors().map(|t| ggml_oxide_shape::nbytes(&*t)).max().unwrap_or(0))
    }
    /// Bytes that a tensor takes from a context besides its data.
    pub fn ggml_tensor_overhead() -> usize {
        TENSOR_OVERHEAD
    }
}

entry! {
    /// A tensor of `n_dims` (1 to 4) dimensions `ne`.
    pub fn ggml_new_tensor(ctx: *mut ggml_context, r#type: ggml_type, n_dims: c_int, ne: *const i64) -> *mut ggml_tensor {
        const CALL: &str = "ggml_new_tensor";
        let Some(ctx) = context(ctx, CALL) else {
            return null_mut();
        };
        let n = usize::try_from(n_dims).ok().filter(|n| (1..=GGML_MAX_DIMS).contains(n) && !ne.is_null());
        match n {
            Some(n) => new_tensor(ctx, CALL, r#type, std::slice::from_raw_parts(ne, n)),
            None => {
                let text = format!("{CALL}: {n_dims} dimensions: 1 to {GGML_MAX_DIMS} can be had, and ne must not be NULL");
                ctx.reject([1; GGML_MAX_DIMS], &Error::argument(text))
            }
        }
    }
    /// A tensor of one dimension.
    pub fn ggml_new_tensor_1d(ctx: *mut ggml_context, r#type: ggml_type, ne0: i64) -> *mut ggml_tensor {
        leaf(ctx, "ggml_new_tensor_1d", r#type, &[ne0])
    }
    /// A tensor of two dimensions.
    pub fn ggml_new_tensor_2d(ctx: *mut ggml_context, r#type: ggml_type, ne0: i64, ne1: i64) -> *mut ggml_tensor {
        leaf(ctx, "ggml_new_tensor_2d", r#type, &[ne0, ne1])
    }
    /// A tensor of three dimensions.
    pub fn ggml_new_tensor_3d(ctx: *mut ggml_context, r#type: ggml_type, ne0: i64, ne1: i64, ne2: i64) -> *mut ggml_tensor {
        leaf(ctx, "ggml_new_tensor_3d", r#type, &[ne0, ne1, ne2])
    }
    /// A tensor of four dimensions.
    pub fn ggml_new_tensor_4d(ctx: *mut ggml_context, r#type: ggml_type, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> *mut ggml_tensor {
        leaf(ctx, "ggml_new_tensor_4d", r#type, &[ne0, ne1, ne2, ne3])
    }
    /// `nbytes` bytes of the context's memory, not initialised; NULL with an error when it is full.
    pub fn ggml_new_buffer(ctx: *mut ggml_context, nbytes: usize) -> *mut c_void {
        const CALL: &str = "ggml_new_buffer";
        let Some(ctx) = context(ctx, CALL) else {
            return null_mut();
        };
        match ctx.alloc_object(GGML_OBJECT_TYPE_WORK_BUFFER, nbytes) {
            Ok(memory) => memory.as_ptr().cast(),
            Err(error) => {
                error::report(&error.within(CALL));
                null_mut()
            }
        }
    }
    /// A tensor of the format and shape of `src`.
    pub fn ggml_dup_tensor(ctx: *mut ggml_context, src: *const ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_dup_tensor", [src.cast_mut()], [], |[src], []| Ok(new::dup_tensor(src)))
    }
    /// All of `src` as it lies, under another name; no node.
    pub fn ggml_view_tensor(ctx: *mut ggml_context, src: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_view_tensor", [src], [], |[src], []| Ok(new::view_tensor(src)))
    }
    /// The first tensor of the context, or NULL.
    pub fn ggml_get_first_tensor(ctx: *const ggml_context) -> *mut ggml_tensor {
        context(ctx.cast_mut(), "ggml_get_first_tensor").map_or(null_mut(), |ctx| ctx.first_tensor())
    }
    /// The tensor after `tensor` in the order of making, or NULL.
    pub fn ggml_get_next_tensor(ctx: *const ggml_context, tensor: *mut ggml_tensor) -> *mut ggml_tensor {
        const CALL: &str = "ggml_get_next_tensor";
        if tensor.is_null() {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: the tensor is NULL"));
            return null_mut();
        }
        context(ctx.cast_mut(), CALL).map_or(null_mut(), |ctx| ctx.next_tensor(tensor))
    }
    /// The first tensor of the context with this name, or NULL.
    pub fn ggml_get_tensor(ctx: *mut ggml_context, name: *const c_char) -> *mut ggml_tensor {
        let Some(ctx) = context(ctx, "ggml_get_tensor").filter(|_| !name.is_null()) else {
            return null_mut();
        };
        let name = CStr::from_ptr(name);
        ctx.tensors().find(|&t| CStr::from_ptr((&raw const (*t).name).cast()) == name).unwrap_or(null_mut())
    }
}

/// # Safety
/// As for the entry points.
unsafe fn leaf(ctx: *mut ggml_context, call: &str, ty: ggml_type, ne: &[i64]) -> *mut ggml_tensor {
    // SAFETY: the contract of the entry points.
    match unsafe { context(ctx, call) } {
        Some(ctx) => new_tensor(ctx, call, ty, ne),
        None => null_mut(),
    }
}

entry! {
    /// The tensor's data, or NULL.
    pub fn ggml_get_data(tensor: *const ggml_tensor) -> *mut c_void {
        tensor.as_ref().map_or(null_mut(), |t| t.data)
    }
    /// The data of an f32 tensor; NULL for other formats.
    pub fn ggml_get_data_f32(tensor: *const ggml_tensor) -> *mut f32 {
        tensor.as_ref().filter(|t| t.r#type == GGML_TYPE_F32).map_or(null_mut(), |t| t.data.cast())
    }
    /// The tensor's name; never NULL but for NULL.
    pub fn ggml_get_name(tensor: *const ggml_tensor) -> *const c_char {
        if tensor.is_null() {
            return std::ptr::null();
        }
        (&raw const (*tensor).name).cast()
    }
    /// Names a tensor; the name is cut to `GGML_MAX_NAME - 1` bytes. Answers the tensor.
    pub fn ggml_set_name(tensor: *mut ggml_tensor, name: *const c_char) -> *mut ggml_tensor {
        if tensor.is_null() || name.is_null() {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_set_name: the tensor or the name is NULL");
            return tensor;
        }
        // a name may lie in the tensor itself: it is read before the tensor is borrowed
        let name = CStr::from_ptr(name).to_owned();
        set_name_c(&mut *tensor, &name);
        tensor
    }
    /// Sets all bytes of a tensor to 0, gaps of a view included. One without data is an error. Answers the tensor.
    pub fn ggml_set_zero(tensor: *mut ggml_tensor) -> *mut ggml_tensor {
        const CALL: &str = "ggml_set_zero";
        if let Some(t) = edit(CALL, tensor).filter(|t| !ggml_oxide_shape::is_empty(t)) {
            let size = ggml_oxide_shape::nbytes(t);
            if !t.buffer.is_null() {
                crate::backend::tensor_data::memset(CALL, tensor, 0, 0, size);
            } else if !t.data.is_null() {
                t.data.cast::<u8>().write_bytes(0, size);
            } else {
                let text = format!("{CALL}: {} has no data", crate::tensor::show("tensor", t));
                error::report_at(&Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text), t);
            }
        }
        tensor
    }
    /// Marks a tensor that is no node as an input: it keeps memory of its own from the start.
    pub fn ggml_set_input(tensor: *mut ggml_tensor) {
        set_leaf_flag("ggml_set_input", tensor, GGML_TENSOR_FLAG_INPUT);
    }
    /// Marks a tensor, and the one it views, as an output: its memory is not given to others.
    pub fn ggml_set_output(tensor: *mut ggml_tensor) {
        if let Some(t) = edit("ggml_set_output", tensor) {
            t.flags |= GGML_TENSOR_FLAG_OUTPUT.0;
            // a view's storage is never a view itself
            if let Some(root) = t.view_src.as_mut() {
                root.flags |= GGML_TENSOR_FLAG_OUTPUT.0;
            }
        }
    }
    /// Marks a tensor that is no node as one to be trained.
    pub fn ggml_set_param(tensor: *mut ggml_tensor) {
        set_leaf_flag("ggml_set_param", tensor, GGML_TENSOR_FLAG_PARAM);
    }
    /// Marks an f32 tensor of one element as a loss.
    pub fn ggml_set_loss(tensor: *mut ggml_tensor) {
        const CALL: &str = "ggml_set_loss";
        let Some(t) = edit(CALL, tensor) else {
            return;
        };
        if t.r#type == GGML_TYPE_F32 && ggml_oxide_shape::is_scalar(t) {
            t.flags |= GGML_TENSOR_FLAG_LOSS.0;
        } else {
            let text = format!("{CALL}: {} must be f32 of one element", crate::tensor::show("tensor", t));
            error::report_at(&Error::shape(text), t);
        }
    }
}

/// # Safety
/// As for the entry points.
unsafe fn set_leaf_flag(call: &str, tensor: *mut ggml_tensor, flag: ggml_tensor_flag) {
    // SAFETY: the contract of the entry points.
    let Some(t) = (unsafe { edit(call, tensor) }) else {
        return;
    };
    if t.op == GGML_OP_NONE {
        t.flags |= flag.0;
    } else {
        let text = format!("{call}: '{}' is a node of {:?}", ggml_oxide_shape::name(t), t.op);
        error::report_at(&Error::argument(text), t);
    }
}
