//! Bytes to and from tensors that are divided over devices.

use super::parts::{with, Lack};
use super::split::{Cut, Split};
use crate::backend::tensor_data;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;

/// A run of bytes of the whole tensor that one device has.
struct Run {
    device: usize,
    /// In the caller's data.
    at: usize,
    /// In the device's part.
    to: usize,
    bytes: usize,
}

/// The bytes `offset..offset + size` of `t`, by devices, in order. `None`: a piece ends within a block.
fn runs(t: &ggml_tensor, cut: &Cut, offset: usize, size: usize, mut visit: impl FnMut(Run)) -> Option<()> {
    let step = if cut.axis == 0 { shape::type_size(t.r#type) } else { t.nb[cut.axis] };
    let per_step = if cut.axis == 0 { shape::blck_size(t.r#type) as i64 } else { 1 };
    let bytes = cut.scaled(0, step as i64, per_step)?;
    let chunk = bytes.total() as usize;
    let mut at = offset;
    let devices = 1 + bytes.pieces.iter().map(|p| p.0).max().unwrap_or(0);
    let own: Vec<usize> = (0..devices).map(|device| bytes.on(device) as usize).collect();
    let mut before = vec![0usize; devices];
    while chunk > 0 && at < offset + size {
        let (number, mut within) = (at / chunk, at % chunk);
        before.fill(0);
        for &(device, n) in &bytes.pieces {
            let n = n as usize;
            if within < n && at < offset + size {
                let run = (n - within).min(offset + size - at);
                let to = number * own[device] + before[device] + within;
                visit(Run { device, at: at - offset, to, bytes: run });
                at += run;
                within = 0;
            } else {
                within = within.saturating_sub(n);
            }
            before[device] += n;
        }
    }
    Some(())
}

/// Moves bytes of a tensor; a failure is reported.
unsafe fn access(
    call: &str,
    t: *const ggml_tensor,
    offset: usize,
    size: usize,
    each: impl Fn(*mut ggml_tensor, usize, usize, usize),
    read: bool,
) {
    // SAFETY: called with a live tensor.
    let result = unsafe {
        with(t, |parts| {
            let places = parts.places();
            match &parts.split {
                Split::Mirrored => {
                    let wanted = if read { &places[..1] } else { &places };
                    wanted.iter().for_each(|&part| each(part, 0, offset, size));
                    Ok(())
                }
                Split::Along(cut) if shape::is_contiguous(&*t) => {
                    let visit = |run: Run| each(places[run.device], run.at, run.to, run.bytes);
                    runs(&*t, cut, offset, size, visit).ok_or("a piece ends within a block of its format")
                }
                Split::Along(_) => Err("a view with gaps of what is divided over devices can be read by them only"),
            }
        })
    };
    // SAFETY: as above.
    let tensor = unsafe { &*t };
    match result {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            error::report_at(&Error::argument(format!("{call}: tensor '{}': {why}", shape::name(tensor))), t)
        }
        Err(Lack::Rule(e)) => error::report_at(&e.within(call), t),
        Err(Lack::Early) => {
            let text = format!("{call}: tensor '{}' is computed from what has no memory", shape::name(tensor));
            error::report_at(&Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text), t);
        }
    }
}

/// Writes bytes of a tensor. The functions of a buffer's table: called with a live tensor.
pub unsafe extern "C" fn set(
    _: ggml_backend_buffer_t,
    t: *mut ggml_tensor,
    data: *const c_void,
    offset: usize,
    size: usize,
) {
    const CALL: &str = "ggml_backend_tensor_set";
    let put = |part: *mut ggml_tensor, at: usize, to: usize, bytes: usize| {
        // SAFETY: `data` has `size` bytes, of which the run is a part.
        unsafe { tensor_data::set(CALL, part, data.byte_add(at), tensor_data::Rows::range(to, bytes)) };
    };
    // SAFETY: called with a live tensor, the range having been checked.
    unsafe { access(CALL, t, offset, size, put, false) }
}

/// Reads bytes of a tensor, as [`set`].
pub unsafe extern "C" fn get(
    _: ggml_backend_buffer_t,
    t: *const ggml_tensor,
    data: *mut c_void,
    offset: usize,
    size: usize,
) {
    const CALL: &str = "ggml_backend_tensor_get";
    let take = |part: *mut ggml_tensor, at: usize, from: usize, bytes: usize| {
        // SAFETY: as `set`.
        unsafe { tensor_data::get(CALL, part, data.byte_add(at), tensor_data::Rows::range(from, bytes)) };
    };
    // SAFETY: as `set`.
    unsafe { access(CALL, t, offset, size, take, true) }
}

/// Sets bytes of a tensor, as [`set`].
pub unsafe extern "C" fn memset(_: ggml_backend_buffer_t, t: *mut ggml_tensor, value: u8, offset: usize, size: usize) {
    const CALL: &str = "ggml_backend_tensor_memset";
    let fill = |part: *mut ggml_tensor, _: usize, to: usize, bytes: usize| {
        // SAFETY: as `set`.
        unsafe { tensor_data::memset(CALL, part, value, to, bytes) };
    };
    // SAFETY: as `set`.
    unsafe { access(CALL, t, offset, size, fill, false) }
}
