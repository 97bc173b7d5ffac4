//! Tensors that are no operator's result, and the views that other layers make.

use super::build::place;
use super::context::Context;
use super::spec::{NodeSpec, Place};
use crate::error::Error;
use ggml_oxide_abi::*;
use std::ptr::null_mut;

/// The rule of `ggml_new_tensor`: 1 to 4 dimensions, those left out are 1.
pub fn leaf(ty: ggml_type, ne: &[i64]) -> Result<NodeSpec, Error> {
    if ne.is_empty() || ne.len() > GGML_MAX_DIMS {
        return Err(Error::argument(format!("{} dimensions were asked for, 1 to {GGML_MAX_DIMS} can be had", ne.len())));
    }
    let mut all = [1; GGML_MAX_DIMS];
    all[..ne.len()].copy_from_slice(ne);
    Ok(NodeSpec::new(GGML_OP_NONE, ty, all))
}

/// A tensor of format `ty` and shape `ne` (1 to 4 dimensions). Its data lie in the arena unless the context is `no_alloc`.
/// Poisoned when the shape or format cannot be or the context is full.
pub fn new_tensor(ctx: &mut Context, call: &str, ty: ggml_type, ne: &[i64]) -> *mut ggml_tensor {
    // SAFETY: no sources.
    unsafe { place(ctx, call, leaf(ty, ne), &[null_mut(); GGML_MAX_SRC]) }
}

/// A tensor without operator that looks at all of `src`, in its shape and strides; named "x (view)".
///
/// # Safety
/// `src` is a live tensor.
pub unsafe fn view_of(ctx: &mut Context, call: &str, src: *mut ggml_tensor) -> *mut ggml_tensor {
    let mut sources = [null_mut(); GGML_MAX_SRC];
    sources[0] = src;
    // SAFETY: the contract above.
    unsafe {
        let spec = NodeSpec::over(GGML_OP_NONE, &*src, 0);
        debug_assert_eq!(spec.place, Place::Alias { of: 0 });
        let view = place(ctx, call, Ok(spec), &sources);
        // a view that is no node has no sources
        if let Some(view) = view.as_mut() {
            view.src = [null_mut(); GGML_MAX_SRC];
        }
        view
    }
}
