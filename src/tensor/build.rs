//! Makes nodes: the one place where a rule's answer gets memory in a context.

use super::context::Context;
use super::poison;
use super::spec::{Naming, NodeSpec, Place};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, CStr};
use std::ptr::null_mut;

/// Makes the node that `rule` answers from the required sources and the optional ones behind them, which keep their slots. `call`
/// opens every error text.
///
/// NULL only for a NULL context; a poisoned tensor when a required source is NULL or poisoned or when the rule is broken.
///
/// # Safety
/// `ctx` is NULL or a live context that nobody else uses; the sources are NULL or live tensors.
pub unsafe fn node<const N: usize, const M: usize>(
    ctx: *mut ggml_context,
    call: &str,
    required: [*mut ggml_tensor; N],
    optional: [*mut ggml_tensor; M],
    rule: impl FnOnce([&ggml_tensor; N], [Option<&ggml_tensor>; M]) -> Result<NodeSpec, Error>,
) -> *mut ggml_tensor {
    // SAFETY: the contract above.
    let Some(ctx) = (unsafe { context(ctx, call) }) else {
        return null_mut();
    };
    let mut src = [null_mut(); GGML_MAX_SRC];
    src[..N].copy_from_slice(&required);
    src[N..N + M].copy_from_slice(&optional);
    // SAFETY: the contract above.
    if let Err(tensor) = unsafe { screen(ctx, call, &src[..N], &src[N..N + M]) } {
        return tensor;
    }
    // SAFETY: `screen` refused NULL.
    let spec = rule(required.map(|t| unsafe { &*t }), optional.map(|t| unsafe { t.as_ref() }));
    // SAFETY: the contract above.
    unsafe { place(ctx, call, spec, &src) }
}

/// The context behind `ctx`; an error is reported for NULL.
///
/// # Safety
/// As for [`Context::from_ptr`].
pub unsafe fn context<'a>(ctx: *mut ggml_context, call: &str) -> Option<&'a mut Context> {
    // SAFETY: the contract above.
    let context = unsafe { Context::from_ptr(ctx) };
    if context.is_none() {
        crate::error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: the context is NULL"));
    }
    context
}

/// Refuses sources that nothing can be built on; the error is the poisoned result.
///
/// # Safety
/// The sources are NULL or live tensors.
pub unsafe fn screen(
    ctx: &mut Context,
    call: &str,
    required: &[*mut ggml_tensor],
    optional: &[*mut ggml_tensor],
) -> Result<(), *mut ggml_tensor> {
    if let Some(i) = required.iter().position(|t| t.is_null()) {
        let error = Error::new(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: source {i} is NULL"));
        return Err(ctx.reject([1; GGML_MAX_DIMS], &error));
    }
    for &t in required.iter().chain(optional) {
        // SAFETY: NULL or live, by the contract above.
        if let Some(t) = unsafe { t.as_ref() }.filter(|t| poison::is_poisoned(t)) {
            // SAFETY: a poisoned tensor of this library's; its context is alive since the tensor is.
            let cause = unsafe { poison::cause(t) }.unwrap_or(c"a source could not be built").to_owned();
            // The failure was reported where it happened.
            return Err(ctx.poisoned([1; GGML_MAX_DIMS], &cause));
        }
    }
    Ok(())
}

/// Gives `spec` memory in `ctx` and the sources `src`.
///
/// # Safety
/// The sources are NULL or live tensors; those that `spec` names are not NULL.
pub unsafe fn place(
    ctx: &mut Context,
    call: &str,
    spec: Result<NodeSpec, Error>,
    src: &[*mut ggml_tensor; GGML_MAX_SRC],
) -> *mut ggml_tensor {
    let ne = spec.as_ref().map_or([1; GGML_MAX_DIMS], |spec| spec.ne);
    // SAFETY: the contract above.
    match spec.and_then(|spec| unsafe { materialise(ctx, &spec, src) }) {
        Ok(tensor) => tensor,
        Err(error) => ctx.reject(ne, &error.within(call)),
    }
}

/// The node of `spec`, or why it cannot be had.
///
/// # Safety
/// As for [`place`].
pub unsafe fn materialise(
    ctx: &mut Context,
    spec: &NodeSpec,
    src: &[*mut ggml_tensor; GGML_MAX_SRC],
) -> Result<*mut ggml_tensor, Error> {
    let (nb, bytes) = spec.layout()?;
    // SAFETY: the contract above.
    let storage = unsafe { storage(spec, &nb, src) }?;
    let extra = if ctx.no_alloc { 0 } else { bytes };
    let tensor = ctx.alloc_tensor(extra)?.as_ptr();
    // SAFETY: just made; the data lie behind it in the same object.
    unsafe {
        let t = &mut *tensor;
        t.r#type = spec.ty;
        t.ne = spec.ne;
        t.nb = nb;
        t.op = spec.op;
        t.op_params = spec.params;
        let kept = spec.n_src.min(GGML_MAX_SRC);
        t.src[..kept].copy_from_slice(&src[..kept]);
        if let Some(i) = spec.self_src {
            t.src[i] = tensor;
        }
        match storage {
            Some(view) => {
                t.view_src = view.root;
                t.view_offs = view.offs;
                t.data = view.data.cast();
            }
            None if extra > 0 => t.data = tensor.add(1).cast(),
            None => {}
        }
        rename(t, spec.naming, src);
    }
    Ok(tensor)
}

struct View {
    root: *mut ggml_tensor,
    offs: usize,
    data: *mut u8,
}

/// The storage that a view looks at: the owner of the memory, never a view itself.
///
/// # Safety
/// As for [`place`].
unsafe fn storage(
    spec: &NodeSpec,
    nb: &[usize; GGML_MAX_DIMS],
    src: &[*mut ggml_tensor; GGML_MAX_SRC],
) -> Result<Option<View>, Error> {
    let (of, offs, checked) = match spec.place {
        Place::Own => return Ok(None),
        Place::View { of, offs } => (of, offs, true),
        Place::Alias { of } => (of, 0, false),
    };
    // SAFETY: the spec names sources that are there; `view_src` of a live tensor is NULL or live.
    let (a, root) = unsafe {
        let a = &*src[of];
        (a, if a.view_src.is_null() { src[of] } else { a.view_src })
    };
    let base = if a.view_src.is_null() { 0 } else { a.view_offs };
    // SAFETY: as above.
    let (room, data) = unsafe { (shape::nbytes(&*root), (*root).data.cast::<u8>()) };
    let offs = base.checked_add(offs).filter(|&offs| !checked || spec.fits(nb, offs, room)).ok_or_else(|| {
        Error::shape(format!(
            "a view {} with strides {nb:?} at offset {offs} leaves {}, whose storage has {room} bytes",
            super::spec::dims(&spec.ne),
            super::spec::show("source", a),
        ))
    })?;
    let data = if data.is_null() { data } else { data.wrapping_add(offs) };
    Ok(Some(View { root, offs, data }))
}

/// # Safety
/// As for [`place`].
unsafe fn rename(t: &mut ggml_tensor, naming: Naming, src: &[*mut ggml_tensor; GGML_MAX_SRC]) {
    // SAFETY: the naming names sources that are there, and none of them is `t`.
    let name = |i: usize| unsafe { &(*src[i]).name };
    match naming {
        Naming::Blank => {}
        Naming::After { of, word } => set_name(t, [name_bytes(name(of)), b" (", word.as_bytes(), b")"]),
        Naming::Copy if name(1)[0] == 0 => set_name(t, [name_bytes(name(0)), b" (copy)"]),
        Naming::Copy => set_name(t, [name_bytes(name(1)), b" (copy of ", name_bytes(name(0)), b")"]),
    }
}

/// A name without its zero, which a tensor of the application's own may lack.
pub fn name_bytes(name: &[c_char; GGML_MAX_NAME]) -> &[u8] {
    // SAFETY: `c_char` and `u8` have one layout, and every value is one of both.
    let bytes = unsafe { &*(name as *const [c_char; GGML_MAX_NAME]).cast::<[u8; GGML_MAX_NAME]>() };
    &bytes[..bytes.iter().position(|&b| b == 0).unwrap_or(GGML_MAX_NAME)]
}

/// Names `t` with the parts in a row, cut to what fits with a terminating zero.
pub fn set_name<const N: usize>(t: &mut ggml_tensor, parts: [&[u8]; N]) {
    let mut n = 0;
    for &byte in parts.iter().copied().flatten().take(GGML_MAX_NAME - 1) {
        t.name[n] = byte as c_char;
        n += 1;
    }
    t.name[n] = 0;
}

/// Names `t`, cut to what fits.
pub fn set_name_c(t: &mut ggml_tensor, name: &CStr) {
    set_name(t, [name.to_bytes()]);
}
