//! Placing tensors one behind the other: into a given buffer, or all tensors of a context into as many buffers as they need.

use super::room;
use crate::backend::{host, tensor_data, Buffer, Buft};
use crate::error::Error;
use crate::tensor::Context;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::TryReserveError;

/// Bytes from `base + offset` to the next multiple of `alignment`.
fn gap(base: usize, offset: usize, alignment: usize) -> usize {
    base.wrapping_add(offset).wrapping_neg() & (alignment - 1)
}

/// An allocator at the start of `buffer`.
pub fn begin(buffer: Buffer) -> ggml_tallocr {
    let alignment = buffer.buft().map_or(1, Buft::alignment);
    let base = buffer.base();
    ggml_tallocr { buffer: buffer.as_raw(), base, alignment, offset: gap(base.addr(), 0, alignment) }
}

/// Places `tensor` behind what was placed before.
///
/// # Safety
/// `at` was made by [`begin`]; its buffer and `tensor` are live.
pub unsafe fn place(at: &mut ggml_tallocr, tensor: *mut ggml_tensor) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let (buffer, t) = unsafe { (Buffer::from_raw(at.buffer), tensor.as_ref()) };
    let (Some(buffer), Some(t)) = (buffer, t) else {
        return Err(Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the buffer or the tensor is NULL"));
    };
    let alignment = at.alignment.max(1);
    let need = buffer.buft().map_or(usize::MAX, |b| b.alloc_size(t));
    let end = need.checked_next_multiple_of(alignment).and_then(|size| at.offset.checked_add(size));
    let Some(end) = end.filter(|&end| end <= buffer.size()) else {
        let left = buffer.size().saturating_sub(at.offset);
        return Err(Error::memory(format!(
            "tensor '{}' needs {need} bytes, {left} are left in the buffer",
            shape::name(t)
        )));
    };
    // SAFETY: the caller's promise.
    let status = unsafe { tensor_data::place(buffer, tensor, at.base.wrapping_byte_add(at.offset)) };
    if status != GGML_STATUS_SUCCESS {
        return Err(Error::new(GGML_EXT_CODE_BACKEND, format!("the buffer cannot take tensor '{}'", shape::name(t))));
    }
    at.offset = end;
    Ok(())
}

/// A run of tensors that share a buffer of `size` bytes.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    size: usize,
    first: usize,
    last: usize,
}

/// Which tensors go to which buffer: in order, a new buffer where the next tensor would pass `max` bytes. `sizes` are aligned.
fn parts(sizes: &[usize], max: usize) -> Result<Option<Vec<Part>>, TryReserveError> {
    let mut parts = Vec::new();
    let (mut size, mut first) = (0usize, 0);
    for (i, &more) in sizes.iter().enumerate() {
        let Some(sum) = size.checked_add(more) else { return Ok(None) };
        if size > 0 && sum > max {
            room::push(&mut parts, Part { size, first, last: i })?;
            (size, first) = (more, i);
        } else {
            size = sum;
        }
    }
    if size > 0 {
        room::push(&mut parts, Part { size, first, last: sizes.len() })?;
    }
    Ok(Some(parts))
}

unsafe fn plan(tensors: &[*mut ggml_tensor], buft: Buft) -> Result<Vec<Part>, Error> {
    let alignment = buft.alignment();
    let mut sizes = room::list(tensors.len())?;
    for &t in tensors {
        // SAFETY: the callers promise live tensors.
        let t = unsafe { &*t };
        let new = t.data.is_null() && t.buffer.is_null() && t.view_src.is_null();
        let size = if new { buft.alloc_size(t).checked_next_multiple_of(alignment) } else { Some(0) };
        sizes.push(
            size.ok_or_else(|| Error::memory(format!("tensor '{}' is larger than memory can be", shape::name(t))))?,
        );
    }
    parts(&sizes, buft.max_size())?.ok_or_else(|| Error::memory("all tensors together are larger than memory can be"))
}

/// Bytes that [`alloc`] would allocate.
///
/// # Safety
/// The tensors are live.
pub unsafe fn size(tensors: &mut [*mut ggml_tensor], buft: Buft) -> Result<usize, Error> {
    if let Some(size) = buft.alloc_size_n(tensors) {
        return Ok(size);
    }
    // SAFETY: the caller's promise.
    let parts = unsafe { plan(tensors, buft) }?;
    let sum = parts.iter().try_fold(0usize, |sum, p| sum.checked_add(p.size));
    sum.ok_or_else(|| Error::memory("all tensors together are larger than memory can be"))
}

/// One buffer with room for all tensors that have no storage, which get their addresses in it; views follow what they view.
/// `None`: there was nothing to allocate. On failure nothing is left allocated, and the tensors are as they were.
///
/// # Safety
/// The tensors, and what they view, are live.
pub unsafe fn alloc(tensors: &mut [*mut ggml_tensor], buft: Buft) -> Result<Option<Buffer>, Error> {
    if let Some(buffer) = buft.alloc_n(tensors) {
        return match buffer {
            None => Err(Error::memory(format!(
                "buffer type '{}' gives no memory for {} tensors",
                buft.name(),
                tensors.len()
            ))),
            some => Ok(some),
        };
    }
    // SAFETY: the caller's promise.
    let parts = unsafe { plan(tensors, buft) }?;
    let mut done = Undo { placed: room::list(tensors.len())?, buffers: room::list(parts.len())? };
    for part in &parts {
        let buffer = buft.alloc(part.size).ok_or_else(|| {
            Error::memory(format!("buffer type '{}' does not give {} bytes for tensors", buft.name(), part.size))
        })?;
        done.buffers.push(buffer);
        let mut at = begin(buffer);
        for &tensor in &tensors[part.first..part.last] {
            // SAFETY: the caller's promise.
            unsafe {
                let t = &*tensor;
                if t.data.is_null() && t.buffer.is_null() && t.view_src.is_null() {
                    done.placed.push(tensor);
                    place(&mut at, tensor)?;
                }
            }
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    for &tensor in tensors.iter() {
        // SAFETY: the caller's promise.
        unsafe {
            let t = &*tensor;
            let view_of_placed = t.view_src.as_ref().is_some_and(|s| !s.buffer.is_null() && !s.data.is_null());
            if t.buffer.is_null() && view_of_placed {
                done.placed.push(tensor);
                if tensor_data::place_view(tensor) != GGML_STATUS_SUCCESS {
                    return Err(Error::new(
                        GGML_EXT_CODE_BACKEND,
                        format!("the buffer cannot take view '{}'", shape::name(t)),
                    ));
                }
            }
        }
    }
    let buffers = done.keep();
    Ok(if buffers.len() == 1 { buffers.first().copied() } else { host::multi(buffers) })
}

/// Takes everything back when it is dropped before [`Undo::keep`].
struct Undo {
    placed: Vec<*mut ggml_tensor>,
    buffers: Vec<Buffer>,
}

impl Undo {
    fn keep(mut self) -> Vec<Buffer> {
        self.placed.clear();
        std::mem::take(&mut self.buffers)
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for &t in &self.placed {
            // SAFETY: live tensors, by the promise of `alloc`; they had no storage before.
            unsafe { ((*t).data, (*t).buffer) = (std::ptr::null_mut(), std::ptr::null_mut()) }
        }
        for buffer in self.buffers.drain(..) {
            // SAFETY: made in `alloc`; no tensor points into it any more.
            unsafe { buffer.free() }
        }
    }
}

/// The tensors of a context, which must leave allocation to buffers.
pub fn tensors_of(ctx: &Context) -> Result<Vec<*mut ggml_tensor>, Error> {
    if !ctx.no_alloc {
        return Err(Error::argument("the context holds the data of its tensors itself: make it with no_alloc"));
    }
    let mut list = Vec::new();
    for t in ctx.tensors() {
        room::push(&mut list, t)?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_cut_into_buffers_in_order() {
        let part = |size, first, last| Part { size, first, last };
        assert_eq!(parts(&[32, 0, 64, 32], 96), Ok(Some(vec![part(96, 0, 3), part(32, 3, 4)])));
        assert_eq!(
            parts(&[128, 32], 64),
            Ok(Some(vec![part(128, 0, 1), part(32, 1, 2)])),
            "one above the limit stands alone"
        );
        assert_eq!(parts(&[0, 0], 64), Ok(Some(vec![])));
        assert_eq!(parts(&[usize::MAX - 31, 64], usize::MAX), Ok(None));
    }

    #[test]
    fn gaps_to_the_next_aligned_address() {
        assert_eq!([gap(0, 0, 32), gap(8, 0, 32), gap(8, 24, 32), gap(33, 0, 1)], [0, 24, 0, 0]);
    }
}
