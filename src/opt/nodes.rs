//! Making tensors and nodes where a failure is an error of the call's.

use crate::error::Error;
use crate::tensor::{self, materialise, name_bytes, set_name, Context, NodeSpec};
use ggml_oxide_abi::*;

/// The node that a shape rule answered, from `sources`.
///
/// # Safety
/// The sources are live, and as many as the rule looked at.
pub unsafe fn make(
    ctx: &mut Context,
    spec: Result<NodeSpec, Error>,
    sources: &[*mut ggml_tensor],
) -> Result<*mut ggml_tensor, Error> {
    let mut src = [std::ptr::null_mut(); GGML_MAX_SRC];
    src[..sources.len()].copy_from_slice(sources);
    // SAFETY: the caller's promise.
    unsafe { materialise(ctx, &spec?, &src) }
}

/// An f32 tensor of the shape of `like`, called `parts`.
///
/// # Safety
/// `like` is live.
pub unsafe fn state<const N: usize>(
    ctx: &mut Context,
    like: *mut ggml_tensor,
    parts: [&[u8]; N],
) -> Result<*mut ggml_tensor, Error> {
    // SAFETY: the caller's promise; no sources.
    unsafe {
        let t = make(ctx, tensor::new::leaf(GGML_TYPE_F32, &(*like).ne), &[])?;
        set_name(&mut *t, parts);
        Ok(t)
    }
}

/// The name of `t` without the zero.
///
/// # Safety
/// `t` is live as long as the name is used.
pub unsafe fn name<'a>(t: *const ggml_tensor) -> &'a [u8] {
    // SAFETY: the caller's promise.
    name_bytes(unsafe { &(*t).name })
}
