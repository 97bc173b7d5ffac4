//! Tensors that are no operator's result.

use super::build::place;
use super::context::Context;
use super::spec::NodeSpec;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::ptr::null_mut;

/// The rule of `ggml_new_tensor`: 1 to 4 dimensions, those left out are 1.
pub fn leaf(ty: ggml_type, ne: &[i64]) -> Result<NodeSpec, Error> {
    if ne.is_empty() || ne.len() > GGML_MAX_DIMS {
        return Err(Error::argument(format!(
            "{} dimensions were asked for, 1 to {GGML_MAX_DIMS} can be had",
            ne.len()
        )));
    }
    let mut all = [1; GGML_MAX_DIMS];
    all[..ne.len()].copy_from_slice(ne);
    Ok(NodeSpec::new(GGML_OP_NONE, ty, all))
}

/// The rule of `ggml_dup_tensor`: format and shape of `a`, contiguous.
pub fn dup_tensor(a: &ggml_tensor) -> NodeSpec {
    NodeSpec::like(GGML_OP_NONE, a).keeping(0)
}

/// The rule of `ggml_view_tensor`: all of `a` as it lies, named "x (view)".
pub fn view_tensor(a: &ggml_tensor) -> NodeSpec {
    NodeSpec::over(GGML_OP_NONE, a, 0).keeping(0)
}

/// A tensor of format `ty` and shape `ne` (1 to 4 dimensions). Its data lie in the arena unless the context is `no_alloc`.
/// Poisoned when the shape or format cannot be or the context is full.
pub fn new_tensor(ctx: &mut Context, call: &str, ty: ggml_type, ne: &[i64]) -> *mut ggml_tensor {
    if let Some(mut maker) = ctx.maker.take() {
        let tensor = maker(ctx, call, ty, ne);
        ctx.maker = Some(maker);
        return tensor;
    }
    // SAFETY: no sources.
    unsafe { place(ctx, call, leaf(ty, ne), &[null_mut(); GGML_MAX_SRC]) }
}
