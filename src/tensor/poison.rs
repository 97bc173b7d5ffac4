//! The mark of a tensor that could not be built. It stands in for the result, so that a caller that checks nothing goes on
//! living; whatever is built on it is poisoned too, and computing it fails with the first cause.

use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr};

/// Bit of `ggml_tensor.flags`: this tensor stands in for one that could not be built.
pub const POISONED: i32 = 1 << 30;

/// Where in `op_params` the address of the cause lies: the last eight bytes, low half first.
const SLOT: usize = GGML_MAX_OP_PARAMS / 4 - 2;

/// Whether `t` stands in for a tensor that could not be built.
pub fn is_poisoned(t: &ggml_tensor) -> bool {
    t.flags & POISONED != 0
}

/// Why `t` could not be built; `None` when it is sound.
///
/// # Safety
/// `t` was made by this library, and the context that made it is alive and was not reset.
pub unsafe fn cause(t: &ggml_tensor) -> Option<&CStr> {
    if !is_poisoned(t) || t.op != GGML_OP_CUSTOM {
        return None;
    }
    let low = t.op_params[SLOT] as u32 as u64;
    let high = t.op_params[SLOT + 1] as u32 as u64;
    let text = (low | high << 32) as usize as *const c_char;
    // SAFETY: `mark` stored the address of a zero-terminated text that lives as long as the context.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Makes `t` a stand-in of shape `ne`, with `cause` as the reason.
pub(super) fn mark(t: &mut ggml_tensor, ne: [i64; GGML_MAX_DIMS], cause: *const c_char) {
    t.r#type = GGML_TYPE_F32;
    t.ne = ne;
    t.nb = ggml_oxide_shape::contiguous_strides(GGML_TYPE_F32, &ne).unwrap_or_default();
    t.op = GGML_OP_CUSTOM;
    t.flags = POISONED;
    // Exposed: the address is turned back into a pointer by `cause`.
    let address = cause.expose_provenance() as u64;
    t.op_params[SLOT] = address as u32 as i32;
    t.op_params[SLOT + 1] = (address >> 32) as u32 as i32;
}

/// The shape that a stand-in takes when `ne` was asked for: `ne` if a tensor of 32-bit numbers could have it, else one element.
pub(super) fn shape_or_one(ne: [i64; GGML_MAX_DIMS]) -> [i64; GGML_MAX_DIMS] {
    let sound = ggml_oxide_shape::checked_nelements(&ne).is_some()
        && ggml_oxide_shape::contiguous_strides(GGML_TYPE_F32, &ne).is_some();
    if sound {
        ne
    } else {
        [1; GGML_MAX_DIMS]
    }
}
