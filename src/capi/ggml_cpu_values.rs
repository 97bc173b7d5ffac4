//! Entry points of ggml-cpu.h that read and write single numbers of tensors in host memory.
//!
//! Formats: f32, f16, bf16, i32, i16, i8. Another format, a tensor without data, or an index outside the tensor is an error: nothing
//! is written, and 0 is read.

use crate::entry;
use crate::error::{self, Error};
use crate::tensor::{context, is_poisoned, new_tensor, show};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types::float;
use std::ffi::c_int;

/// A number that goes into or comes out of a tensor.
trait Number: Copy {
    fn from_f32(x: f32) -> Self;
    fn from_i32(x: i32) -> Self;
    fn to_f32(self) -> f32;
    fn to_i32(self) -> i32;
}
impl Number for f32 {
    fn from_f32(x: f32) -> Self {
        x
    }
    fn from_i32(x: i32) -> Self {
        x as f32
    }
    fn to_f32(self) -> f32 {
        self
    }
    fn to_i32(self) -> i32 {
        self as i32
    }
}
impl Number for i32 {
    fn from_f32(x: f32) -> Self {
        x as i32
    }
    fn from_i32(x: i32) -> Self {
        x
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
    fn to_i32(self) -> i32 {
        self
    }
}

/// The tensor, if single numbers of it can be reached.
///
/// # Safety
/// `t` is NULL or a live tensor.
unsafe fn reach<'a>(call: &str, t: *const ggml_tensor) -> Option<&'a ggml_tensor> {
    // SAFETY: the contract above.
    let Some(t) = (unsafe { t.as_ref() }) else {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: the tensor is NULL"));
        return None;
    };
    if is_poisoned(t) {
        return None;
    }
    let known = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_I16, GGML_TYPE_I8];
    if !known.contains(&t.r#type) {
        error::report_at(&Error::argument(format!("{call}: {}: no numbers of this format", show("tensor", t))), t);
        return None;
    }
    if t.data.is_null() {
        let text = format!("{call}: {} has no data", show("tensor", t));
        error::report_at(&Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text), t);
        return None;
    }
    Some(t)
}

/// Address of the element at `index`.
fn element(call: &str, t: &ggml_tensor, index: [i64; GGML_MAX_DIMS]) -> Option<*mut u8> {
    if (0..GGML_MAX_DIMS).any(|i| !(0..t.ne[i]).contains(&index[i])) {
        let text = format!("{call}: index {index:?} is outside {}", show("tensor", t));
        error::report_at(&Error::argument(text), t);
        return None;
    }
    let offset =
        (0..GGML_MAX_DIMS).fold(0, |sum: usize, i| sum.wrapping_add((index[i] as usize).wrapping_mul(t.nb[i])));
    Some(t.data.cast::<u8>().wrapping_add(offset))
}

/// Coordinates of element number `i`; outside the tensor when there is none.
fn coordinates(t: &ggml_tensor, i: c_int) -> [i64; GGML_MAX_DIMS] {
    let mut rest = i64::from(i);
    let mut at = [0; GGML_MAX_DIMS];
    for (at, &n) in at.iter_mut().zip(&t.ne).take(GGML_MAX_DIMS - 1) {
        *at = rest.checked_rem(n).unwrap_or(-1);
        rest = rest.checked_div(n).unwrap_or(-1);
    }
    at[GGML_MAX_DIMS - 1] = rest;
    at
}

/// # Safety
/// As for [`reach`]; the data are in host memory.
unsafe fn read<N: Number>(
    call: &str,
    t: *const ggml_tensor,
    index: impl FnOnce(&ggml_tensor) -> [i64; GGML_MAX_DIMS],
) -> N {
    // SAFETY: the contract above; `element` is inside the tensor, and strides may leave it at any alignment.
    unsafe {
        let place = reach(call, t).and_then(|t| Some((t.r#type, element(call, t, index(t))?)));
        let Some((ty, at)) = place else {
            return N::from_i32(0);
        };
        match ty {
            GGML_TYPE_F32 => N::from_f32(at.cast::<f32>().read_unaligned()),
            GGML_TYPE_F16 => N::from_f32(float::f16_to_f32(at.cast::<u16>().read_unaligned())),
            GGML_TYPE_BF16 => N::from_f32(float::bf16_to_f32(at.cast::<u16>().read_unaligned())),
            GGML_TYPE_I32 => N::from_i32(at.cast::<i32>().read_unaligned()),
            GGML_TYPE_I16 => N::from_i32(at.cast::<i16>().read_unaligned().into()),
            _ => N::from_i32(at.cast::<i8>().read().into()),
        }
    }
}

/// # Safety
/// `at` is an element of format `ty`, one of those that [`reach`] lets through.
unsafe fn store<N: Number>(ty: ggml_type, at: *mut u8, value: N) {
    // SAFETY: the contract above.
    unsafe {
        match ty {
            GGML_TYPE_F32 => at.cast::<f32>().write_unaligned(value.to_f32()),
            GGML_TYPE_F16 => at.cast::<u16>().write_unaligned(float::f32_to_f16(value.to_f32())),
            GGML_TYPE_BF16 => at.cast::<u16>().write_unaligned(float::f32_to_bf16(value.to_f32())),
            GGML_TYPE_I32 => at.cast::<i32>().write_unaligned(value.to_i32()),
            GGML_TYPE_I16 => at.cast::<i16>().write_unaligned(value.to_i32() as i16),
            _ => at.cast::<i8>().write(value.to_i32() as i8),
        }
    }
}

/// # Safety
/// As for [`read`], and nobody else uses the data.
unsafe fn write<N: Number>(
    call: &str,
    t: *const ggml_tensor,
    index: impl FnOnce(&ggml_tensor) -> [i64; GGML_MAX_DIMS],
    value: N,
) {
    // SAFETY: the contract above.
    unsafe {
        if let Some(t) = reach(call, t) {
            if let Some(at) = element(call, t, index(t)) {
                store(t.r#type, at, value);
            }
        }
    }
}

/// # Safety
/// As for [`write`].
unsafe fn fill<N: Number>(call: &str, t: *mut ggml_tensor, value: N) -> *mut ggml_tensor {
    // SAFETY: the contract above; every index is inside the tensor.
    unsafe {
        let Some(tensor) = reach(call, t).filter(|t| !shape::is_empty(t)) else {
            return t;
        };
        let [n0, n1, n2, n3] = tensor.ne;
        for i3 in 0..n3 {
            for i2 in 0..n2 {
                for i1 in 0..n1 {
                    let Some(row) = element(call, tensor, [0, i1, i2, i3]) else {
                        return t;
                    };
                    for i0 in 0..n0 {
                        store(tensor.r#type, row.wrapping_add((i0 as usize).wrapping_mul(tensor.nb[0])), value);
                    }
                }
            }
        }
    }
    t
}

/// # Safety
/// As for the entry points.
unsafe fn new_number<N: Number>(ctx: *mut ggml_context, call: &str, ty: ggml_type, value: N) -> *mut ggml_tensor {
    // SAFETY: the contract of the entry points.
    unsafe {
        let Some(ctx) = context(ctx, call) else {
            return std::ptr::null_mut();
        };
        if ctx.no_alloc {
            let text = format!("{call}: tensors of this context have no data");
            return ctx.reject([1; GGML_MAX_DIMS], &Error::argument(text));
        }
        let tensor = new_tensor(ctx, call, ty, &[1]);
        fill(call, tensor, value)
    }
}

/// An index as C gives it.
fn nd(i: [c_int; GGML_MAX_DIMS]) -> impl FnOnce(&ggml_tensor) -> [i64; GGML_MAX_DIMS] {
    move |_| i.map(i64::from)
}

/// The number of an element as C gives it.
fn flat(i: c_int) -> impl FnOnce(&ggml_tensor) -> [i64; GGML_MAX_DIMS] {
    move |t| coordinates(t, i)
}

entry! {
    /// A tensor of one i32 number. The context is not `no_alloc`.
    pub fn ggml_new_i32(ctx: *mut ggml_context, value: i32) -> *mut ggml_tensor {
        new_number(ctx, "ggml_new_i32", GGML_TYPE_I32, value)
    }
    /// A tensor of one f32 number. The context is not `no_alloc`.
    pub fn ggml_new_f32(ctx: *mut ggml_context, value: f32) -> *mut ggml_tensor {
        new_number(ctx, "ggml_new_f32", GGML_TYPE_F32, value)
    }
    /// Sets every element to `value`. Answers the tensor.
    pub fn ggml_set_i32(tensor: *mut ggml_tensor, value: i32) -> *mut ggml_tensor {
        fill("ggml_set_i32", tensor, value)
    }
    /// Sets every element to `value`. Answers the tensor.
    pub fn ggml_set_f32(tensor: *mut ggml_tensor, value: f32) -> *mut ggml_tensor {
        fill("ggml_set_f32", tensor, value)
    }
    /// Element number `i`, as a whole number.
    pub fn ggml_get_i32_1d(tensor: *const ggml_tensor, i: c_int) -> i32 {
        read("ggml_get_i32_1d", tensor, flat(i))
    }
    /// Sets element number `i`.
    pub fn ggml_set_i32_1d(tensor: *const ggml_tensor, i: c_int, value: i32) {
        write("ggml_set_i32_1d", tensor, flat(i), value);
    }
    /// The element at an index, as a whole number.
    pub fn ggml_get_i32_nd(tensor: *const ggml_tensor, i0: c_int, i1: c_int, i2: c_int, i3: c_int) -> i32 {
        read("ggml_get_i32_nd", tensor, nd([i0, i1, i2, i3]))
    }
    /// Sets the element at an index.
    pub fn ggml_set_i32_nd(tensor: *const ggml_tensor, i0: c_int, i1: c_int, i2: c_int, i3: c_int, value: i32) {
        write("ggml_set_i32_nd", tensor, nd([i0, i1, i2, i3]), value);
    }
    /// Element number `i`.
    pub fn ggml_get_f32_1d(tensor: *const ggml_tensor, i: c_int) -> f32 {
        read("ggml_get_f32_1d", tensor, flat(i))
    }
    /// Sets element number `i`.
    pub fn ggml_set_f32_1d(tensor: *const ggml_tensor, i: c_int, value: f32) {
        write("ggml_set_f32_1d", tensor, flat(i), value);
    }
    /// The element at an index.
    pub fn ggml_get_f32_nd(tensor: *const ggml_tensor, i0: c_int, i1: c_int, i2: c_int, i3: c_int) -> f32 {
        read("ggml_get_f32_nd", tensor, nd([i0, i1, i2, i3]))
    }
    /// Sets the element at an index.
    pub fn ggml_set_f32_nd(tensor: *const ggml_tensor, i0: c_int, i1: c_int, i2: c_int, i3: c_int, value: f32) {
        write("ggml_set_f32_nd", tensor, nd([i0, i1, i2, i3]), value);
    }
}
