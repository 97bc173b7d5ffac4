//! Placing tensors in buffers, and moving bytes in and out of them.
//!
//! Offsets and sizes are bytes of a tensor's storage, strides included: on a view with gaps a range crosses the gaps. A range
//! that leaves the tensor is refused with an error and nothing is moved.

use super::{Backend, Buffer};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;

/// Rows of bytes at equal distances; `n` = 1 is a plain range.
#[derive(Clone, Copy)]
pub struct Rows {
    /// Bytes before the first row in the tensor.
    pub offset: usize,
    /// Bytes of a row.
    pub size: usize,
    /// Rows.
    pub n: usize,
    /// Bytes between rows in the tensor.
    pub stride_tensor: usize,
    /// Bytes between rows in the caller's memory.
    pub stride_data: usize,
}

impl Rows {
    /// `size` bytes at `offset`.
    pub fn range(offset: usize, size: usize) -> Self {
        Rows { offset, size, n: 1, stride_tensor: size, stride_data: size }
    }
    fn end(&self) -> Option<usize> {
        let last = self.n.checked_sub(1)?.checked_mul(self.stride_tensor)?;
        last.checked_add(self.offset)?.checked_add(self.size)
    }
    fn is_empty(&self) -> bool {
        self.size == 0 || self.n == 0
    }
}

/// The buffer that holds `t`: its own, or for a view that of its storage.
pub fn buffer_of(t: &ggml_tensor) -> Option<Buffer> {
    // SAFETY: a view's storage outlives it; a tensor's buffer outlives the tensor's use.
    unsafe { Buffer::from_raw(t.view_src.as_ref().map_or(t.buffer, |storage| storage.buffer)) }
}

/// The buffer of a tensor that can be accessed as `rows` says, or why it cannot.
fn ready(call: &str, t: &ggml_tensor, rows: &Rows) -> Result<Buffer, Error> {
    let name = || shape::name(t);
    let fault = |text: String| Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text));
    let Some(buffer) = buffer_of(t) else { return fault(format!("{call}: tensor '{}' is in no buffer", name())) };
    if t.data.is_null() {
        return fault(format!("{call}: tensor '{}' has no data", name()));
    }
    let size = shape::nbytes(t);
    match rows.end() {
        Some(end) if end <= size => Ok(buffer),
        _ => Err(Error::argument(format!(
            "{call}: {} rows of {} bytes at offset {} leave tensor '{}' of {size} bytes",
            rows.n,
            rows.size,
            rows.offset,
            name()
        ))),
    }
}

/// As [`ready`] for pointers from a caller; `None` when there is nothing to move, or reported when it cannot be.
///
/// # Safety
/// `t` is NULL or live.
unsafe fn target<'a>(
    call: &str,
    t: *const ggml_tensor,
    data: *const c_void,
    rows: &Rows,
) -> Option<(Buffer, &'a ggml_tensor)> {
    if rows.is_empty() {
        return None;
    }
    if data.is_null() {
        null(call);
        return None;
    }
    // SAFETY: the caller's promise.
    let Some(tensor) = (unsafe { t.as_ref() }) else {
        null(call);
        return None;
    };
    ready(call, tensor, rows).map_err(|e| error::report_at(&e, t)).ok().map(|buffer| (buffer, tensor))
}

/// Moves rows with the function for all of them at once, or one by one: `one(offset in the tensor, offset in the data)`. False
/// when there is neither function.
fn moved(rows: &Rows, all: Option<impl FnOnce()>, one: Option<impl Fn(usize, usize)>) -> bool {
    match (all, one) {
        (Some(all), _) if rows.n > 1 => all(),
        (_, Some(one)) => (0..rows.n).for_each(|i| one(rows.offset + i * rows.stride_tensor, i * rows.stride_data)),
        _ => return false,
    }
    true
}

/// Writes into `t`.
///
/// # Safety
/// `t` is NULL or live; `data` has the rows that `rows` describes.
pub unsafe fn set(call: &str, t: *mut ggml_tensor, data: *const c_void, rows: Rows) {
    // SAFETY: the caller's promise.
    let Some((buffer, tensor)) = (unsafe { target(call, t, data, &rows) }) else { return };
    let (b, iface) = (buffer.as_raw(), buffer.iface());
    let Rows { offset, size, n, stride_tensor, stride_data } = rows;
    // SAFETY: the rows lie in the tensor, `data` is as the caller promises.
    let all =
        iface.set_tensor_2d.map(|f| move || unsafe { f(b, t, data, offset, size, n, stride_tensor, stride_data) });
    // SAFETY: as above.
    let one = iface.set_tensor.map(|f| move |at, from| unsafe { f(b, t, data.byte_add(from), at, size) });
    if !moved(&rows, all, one) {
        unsupported(call, tensor);
    }
}

/// Reads from `t`.
///
/// # Safety
/// `t` is NULL or live; `data` has room for the rows that `rows` describes.
pub unsafe fn get(call: &str, t: *const ggml_tensor, data: *mut c_void, rows: Rows) {
    // SAFETY: the caller's promise.
    let Some((buffer, tensor)) = (unsafe { target(call, t, data, &rows) }) else { return };
    let (b, iface) = (buffer.as_raw(), buffer.iface());
    let Rows { offset, size, n, stride_tensor, stride_data } = rows;
    // SAFETY: the rows lie in the tensor, `data` is as the caller promises.
    let all =
        iface.get_tensor_2d.map(|f| move || unsafe { f(b, t, data, offset, size, n, stride_tensor, stride_data) });
    // SAFETY: as above.
    let one = iface.get_tensor.map(|f| move |at, to| unsafe { f(b, t, data.byte_add(to), at, size) });
    if !moved(&rows, all, one) {
        unsupported(call, tensor);
    }
}

/// As [`set`], in the order of `backend`'s stream where it has asynchronous writes.
///
/// # Safety
/// As [`set`]; `data` stays until the backend was synchronised.
pub unsafe fn set_async(call: &str, backend: Backend, t: *mut ggml_tensor, data: *const c_void, rows: Rows) {
    // SAFETY: the caller's promise.
    if unsafe { target(call, t, data, &rows) }.is_none() {
        return;
    }
    let (b, iface) = (backend.as_raw(), backend.iface());
    let Rows { offset, size, n, stride_tensor, stride_data } = rows;
    let all =
        // SAFETY: the rows lie in the tensor, `data` is as the caller promises.
        iface.set_tensor_2d_async.map(|f| move || unsafe { f(b, t, data, offset, size, n, stride_tensor, stride_data) });
    // SAFETY: as above.
    let one = iface.set_tensor_async.map(|f| move |at, from| unsafe { f(b, t, data.byte_add(from), at, size) });
    if !moved(&rows, all, one) {
        // SAFETY: the caller's promise.
        unsafe { set(call, t, data, rows) }
    }
}

/// As [`get`], in the order of `backend`'s stream where it has asynchronous reads.
///
/// # Safety
/// As [`get`]; `data` stays until the backend was synchronised.
pub unsafe fn get_async(call: &str, backend: Backend, t: *const ggml_tensor, data: *mut c_void, rows: Rows) {
    // SAFETY: the caller's promise.
    if unsafe { target(call, t, data, &rows) }.is_none() {
        return;
    }
    let (b, iface) = (backend.as_raw(), backend.iface());
    let Rows { offset, size, n, stride_tensor, stride_data } = rows;
    let all =
        // SAFETY: the rows lie in the tensor, `data` is as the caller promises.
        iface.get_tensor_2d_async.map(|f| move || unsafe { f(b, t, data, offset, size, n, stride_tensor, stride_data) });
    // SAFETY: as above.
    let one = iface.get_tensor_async.map(|f| move |at, to| unsafe { f(b, t, data.byte_add(to), at, size) });
    if !moved(&rows, all, one) {
        // SAFETY: the caller's promise.
        unsafe { get(call, t, data, rows) }
    }
}

/// Sets bytes of `t`.
///
/// # Safety
/// Tensors are NULL or live.
pub unsafe fn memset(call: &str, t: *mut ggml_tensor, value: u8, offset: usize, size: usize) {
    if size == 0 {
        return;
    }
    // SAFETY: the caller hands over NULL or a live tensor.
    let Some(tensor) = (unsafe { t.as_ref() }) else { return null(call) };
    match ready(call, tensor, &Rows::range(offset, size)) {
        Err(e) => error::report_at(&e, t),
        Ok(buffer) => match buffer.iface().memset_tensor {
            // SAFETY: the range lies in the tensor.
            Some(f) => unsafe { f(buffer.as_raw(), t, value, offset, size) },
            None => unsupported(call, tensor),
        },
    }
}

/// Two tensors of the same layout, and where they are.
struct Pair<'a> {
    from: &'a ggml_tensor,
    src_buffer: Buffer,
    to: &'a ggml_tensor,
    dst_buffer: Buffer,
    rows: Rows,
}

/// `src` and `dst`, when all of the one can be copied to the other; `None`, reported, when not.
///
/// # Safety
/// Tensors are NULL, or live as long as the result.
unsafe fn pair<'a>(call: &str, src: *const ggml_tensor, dst: *mut ggml_tensor) -> Option<Pair<'a>> {
    // SAFETY: the caller's promise.
    let (Some(from), Some(to)) = (unsafe { src.as_ref() }, unsafe { dst.as_ref() }) else {
        null(call);
        return None;
    };
    if from.r#type != to.r#type || from.ne != to.ne || from.nb != to.nb {
        let (a, b) = (shape::name(from), shape::name(to));
        error::report_at(&Error::shape(format!("{call}: '{a}' and '{b}' must have the same layout")), dst);
        return None;
    }
    let rows = Rows::range(0, shape::nbytes(from));
    match (ready(call, from, &rows), ready(call, to, &rows)) {
        (Ok(src_buffer), Ok(dst_buffer)) => Some(Pair { from, src_buffer, to, dst_buffer, rows }),
        (Err(e), _) | (_, Err(e)) => {
            error::report_at(&e, dst);
            None
        }
    }
}

/// Copies all of `src` to `dst` by the function of `dst`'s buffer alone; false when it has none, or does not do it.
///
/// # Safety
/// Tensors are NULL or live.
pub unsafe fn copy_by_buffer(call: &str, src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool {
    // SAFETY: the caller's promise.
    let Some(pair) = (unsafe { pair(call, src, dst) }) else { return false };
    let copy = pair.dst_buffer.iface().cpy_tensor;
    // SAFETY: both ranges lie in live tensors of the same layout.
    pair.rows.is_empty() || copy.is_some_and(|f| unsafe { f(pair.dst_buffer.as_raw(), src, dst) })
}

/// Copies all bytes of `src` to `dst`, whose layout is the same, wherever they are. False, reported, when that cannot be done.
///
/// # Safety
/// Tensors are NULL or live.
pub unsafe fn copy(call: &str, src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool {
    if std::ptr::eq(src, dst) {
        return true;
    }
    // SAFETY: the caller's promise.
    let Some(Pair { from, src_buffer, to, dst_buffer, rows }) = (unsafe { pair(call, src, dst) }) else { return false };
    if rows.is_empty() {
        return true;
    }
    // SAFETY: both ranges lie in live tensors of the same size; host data is addressable.
    unsafe {
        if src_buffer.is_host() {
            set(call, dst, from.data, rows);
        } else if dst_buffer.is_host() {
            get(call, src, to.data, rows);
        } else if !dst_buffer.iface().cpy_tensor.is_some_and(|f| f(dst_buffer.as_raw(), src, dst)) {
            let mut bytes = Vec::<u8>::new();
            if bytes.try_reserve_exact(rows.size).is_err() {
                error::report_at(&Error::memory(format!("{call}: no memory for {} bytes in transit", rows.size)), dst);
                return false;
            }
            bytes.resize(rows.size, 0);
            get(call, src, bytes.as_mut_ptr().cast(), rows);
            set(call, dst, bytes.as_ptr().cast(), rows);
        }
    }
    true
}

/// Places `t`, which has no storage yet, at `addr` in `buffer`.
///
/// # Safety
/// Tensors are NULL or live.
pub unsafe fn place(buffer: Buffer, t: *mut ggml_tensor, addr: *mut c_void) -> ggml_status {
    const CALL: &str = "ggml_backend_tensor_alloc";
    // SAFETY: the caller hands over NULL or a live tensor.
    let Some(tensor) = (unsafe { t.as_mut() }) else {
        null(CALL);
        return GGML_STATUS_FAILED;
    };
    let fail = |e: Error| {
        error::report_at(&e, t);
        GGML_STATUS_FAILED
    };
    if !tensor.buffer.is_null() || !tensor.data.is_null() || !tensor.view_src.is_null() {
        return fail(Error::argument(format!("{CALL}: tensor '{}' has storage already", shape::name(tensor))));
    }
    let need = buffer.buft().map_or(0, |b| b.alloc_size(tensor));
    let offset = (addr as usize).checked_sub(buffer.base() as usize);
    if offset.and_then(|o| o.checked_add(need)).is_none_or(|end| end > buffer.size()) {
        return fail(Error::argument(format!(
            "{CALL}: tensor '{}' of {need} bytes at {addr:p} leaves its buffer of {} bytes",
            shape::name(tensor),
            buffer.size()
        )));
    }
    tensor.buffer = buffer.as_raw();
    tensor.data = addr;
    // SAFETY: the caller's promise.
    unsafe { buffer.init_tensor(t) }
}

/// Gives a view the storage of what it views.
///
/// # Safety
/// Tensors are NULL or live.
pub unsafe fn place_view(t: *mut ggml_tensor) -> ggml_status {
    const CALL: &str = "ggml_backend_view_init";
    // SAFETY: the caller hands over NULL or a live tensor, whose storage is live.
    let Some(tensor) = (unsafe { t.as_mut() }) else {
        null(CALL);
        return GGML_STATUS_FAILED;
    };
    // SAFETY: as above.
    let Some(storage) = (unsafe { tensor.view_src.as_ref() }) else {
        error::report_at(&Error::argument(format!("{CALL}: tensor '{}' is no view", shape::name(tensor))), t);
        return GGML_STATUS_FAILED;
    };
    // SAFETY: a tensor's buffer is live while the tensor is used.
    let buffer = unsafe { Buffer::from_raw(storage.buffer) };
    let (Some(buffer), false) = (buffer, storage.data.is_null()) else {
        let text = format!("{CALL}: '{}' views '{}', which is in no buffer", shape::name(tensor), shape::name(storage));
        error::report_at(&Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text), t);
        return GGML_STATUS_FAILED;
    };
    tensor.buffer = storage.buffer;
    tensor.data = storage.data.wrapping_byte_add(tensor.view_offs);
    // SAFETY: the caller's promise.
    unsafe { buffer.init_tensor(t) }
}

fn null(call: &str) {
    error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: tensor and data must not be NULL"));
}

fn unsupported(call: &str, t: &ggml_tensor) {
    error::report_at(
        &Error::new(
            GGML_EXT_CODE_BACKEND,
            format!("{call}: the buffer of tensor '{}' offers no such access", shape::name(t)),
        ),
        t,
    );
}
