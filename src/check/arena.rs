//! Memory for a case: every tensor in a place of its own with guard bytes around it, and scratch memory with guard bytes around that.

use crate::backend::{host, tensor_data, Backend, Buffer};
use crate::error::Error;
use crate::tensor::blank;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Guard bytes on either side of a tensor.
const GUARD: usize = 512;
/// Guard bytes in front of the first tensor and behind the last.
const EDGE: usize = 4096;
const CALL: &str = "ggml_ext_check";

/// What memory holds before a run, but for the inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Zeros where results and scratch are, large numbers around.
    Clean,
    /// This byte everywhere.
    Poison(u8),
}

impl Fill {
    /// Guard byte number `i`.
    fn guard(self, i: usize) -> u8 {
        match self {
            // as a number of any format: large, or none
            Fill::Clean => 0x70 | (i.wrapping_mul(7) ^ i >> 5) as u8 & 0xf,
            Fill::Poison(byte) => byte,
        }
    }

    fn inner(self) -> u8 {
        match self {
            Fill::Clean => 0,
            Fill::Poison(byte) => byte,
        }
    }
}

/// A tensor's place.
#[derive(Clone, Copy)]
pub struct Region {
    /// Bytes from the start.
    pub start: usize,
    /// Bytes of the tensor.
    pub len: usize,
    /// Bytes that the buffer wants for it.
    pub room: usize,
    /// Whose.
    pub tensor: *mut ggml_tensor,
}

/// Reads or writes all of a buffer.
///
/// # Safety
/// The buffer is live; `bytes` has as many bytes as it, or fewer.
unsafe fn whole(buffer: Buffer, bytes: *mut u8, n: usize, write: bool) {
    let mut all = blank();
    all.r#type = GGML_TYPE_I8;
    all.ne[0] = n as i64;
    all.nb = [1, n, n, n];
    (all.buffer, all.data) = (buffer.as_raw(), buffer.base());
    let rows = tensor_data::Rows::range(0, n);
    // SAFETY: the caller's promise; the tensor covers bytes of the buffer.
    unsafe {
        match write {
            true => tensor_data::set(CALL, &mut all, bytes.cast::<c_void>(), rows),
            false => tensor_data::get(CALL, &all, bytes.cast::<c_void>(), rows),
        }
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::memory(format!("no memory for the {bytes} bytes of a case"))
}

/// A buffer for the tensors of a case.
pub struct Arena {
    buffer: Buffer,
    /// By place.
    pub regions: Vec<Region>,
    views: Vec<*mut ggml_tensor>,
    size: usize,
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena's own; its tensors are used no more.
        unsafe { self.buffer.free() }
    }
}

impl Arena {
    /// Places `owners`, and then `views` of them; a view of what has no memory gets none. `over`: a node that is placed where a source
    /// of it is.
    ///
    /// # Safety
    /// The tensors are live, have no memory, and are used no more when the arena goes.
    pub unsafe fn new(
        backend: Backend,
        owners: &[*mut ggml_tensor],
        views: &[*mut ggml_tensor],
        over: Option<(*mut ggml_tensor, *mut ggml_tensor)>,
    ) -> Result<Self, Error> {
        let buft =
            backend.buft().ok_or_else(|| Error::argument(format!("backend '{}' has no memory", backend.name())))?;
        let align = buft.alignment().max(64);
        let mut regions = Vec::new();
        let mut at = EDGE.next_multiple_of(align);
        for &tensor in owners.iter().filter(|&&t| over.is_none_or(|(node, _)| node != t)) {
            // SAFETY: the caller's promise.
            let t = unsafe { &*tensor };
            let (len, room) = (shape::nbytes(t), buft.alloc_size(t).max(shape::nbytes(t)));
            regions.push(Region { start: at, len, room, tensor });
            let end = at.checked_add(room).and_then(|end| end.checked_add(GUARD)?.checked_next_multiple_of(align));
            at = end.filter(|&end| end < isize::MAX as usize / 2).ok_or_else(|| no_memory(room))?;
        }
        let size = at + EDGE;
        let buffer = buft.alloc(size).ok_or_else(|| no_memory(size))?;
        buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        let arena = Arena { buffer, regions, views: views.to_vec(), size };
        // SAFETY: the caller's promise.
        unsafe { arena.place(over) }.map(|()| arena)
    }

    /// Gives the tensors their places.
    ///
    /// # Safety
    /// As [`Arena::new`].
    unsafe fn place(&self, over: Option<(*mut ggml_tensor, *mut ggml_tensor)>) -> Result<(), Error> {
        let failed = |t: &ggml_tensor| {
            Error::new(GGML_EXT_CODE_BACKEND, format!("the buffer does not take tensor '{}'", shape::name(t)))
        };
        // SAFETY: the caller's promise.
        unsafe {
            for r in &self.regions {
                let at = self.buffer.base().wrapping_byte_add(r.start);
                if tensor_data::place(self.buffer, r.tensor, at) != GGML_STATUS_SUCCESS {
                    return Err(failed(&*r.tensor));
                }
            }
            if let Some((node, src)) = over {
                if tensor_data::place(self.buffer, node, (*src).data) != GGML_STATUS_SUCCESS {
                    return Err(failed(&*node));
                }
            }
            for &view in &self.views {
                let held = !(*(*view).view_src).data.is_null();
                if held && tensor_data::place_view(view) != GGML_STATUS_SUCCESS {
                    return Err(failed(&*view));
                }
            }
        }
        Ok(())
    }

    /// Takes the places away again; the memory stays.
    ///
    /// # Safety
    /// The tensors are live.
    pub unsafe fn forget(&self) {
        for &t in self.regions.iter().map(|r| &r.tensor).chain(&self.views) {
            // SAFETY: the caller's promise.
            unsafe { ((*t).buffer, (*t).data) = (null_mut(), null_mut()) };
        }
    }

    /// Bytes from the start of the arena to the first of `t`; `None` when it is not here.
    pub fn offset(&self, t: &ggml_tensor) -> Option<usize> {
        let here = tensor_data::buffer_of(t).is_some_and(|b| b == self.buffer) && !t.data.is_null();
        here.then(|| t.data.addr().wrapping_sub(self.buffer.base().addr())).filter(|&at| at <= self.size)
    }

    /// All bytes as they are before a run, inputs left out.
    pub fn blank(&self, fill: Fill) -> Vec<u8> {
        let mut image: Vec<u8> = (0..self.size).map(|i| fill.guard(i)).collect();
        for r in &self.regions {
            // SAFETY: a tensor of the case.
            let leaf = unsafe { (*r.tensor).op == GGML_OP_NONE };
            // an input may be a part of it: the rest is guard bytes
            if !leaf {
                image[r.start..r.start + r.len].fill(fill.inner());
            }
        }
        image
    }

    /// Sets all bytes.
    pub fn load(&self, image: &mut [u8]) {
        // SAFETY: the arena's own buffer.
        unsafe { whole(self.buffer, image.as_mut_ptr(), image.len().min(self.size), true) }
    }

    /// All bytes.
    pub fn read(&self) -> Vec<u8> {
        let mut image = vec![0; self.size];
        // SAFETY: the arena's own buffer.
        unsafe { whole(self.buffer, image.as_mut_ptr(), self.size, false) }
        image
    }

    /// Says where byte `at` is.
    pub fn describe(&self, at: usize) -> String {
        // SAFETY: tensors of the case.
        let name = |r: &Region| unsafe { shape::name(&*r.tensor) };
        if let Some(r) = self.regions.iter().find(|r| (r.start..r.start + r.len).contains(&at)) {
            return format!("byte {} of the {} bytes of '{}'", at - r.start, r.len, name(r));
        }
        let end = |r: &Region| r.start + r.len;
        let before = self.regions.iter().filter(|r| end(r) <= at).max_by_key(|r| end(r));
        let after = self.regions.iter().filter(|r| r.start > at).min_by_key(|r| r.start);
        match (before, after) {
            (Some(b), Some(a)) if a.start - at <= at - end(b) => {
                format!("the byte {} before '{}'", a.start - at, name(a))
            }
            (None, Some(a)) => format!("the byte {} before '{}'", a.start - at, name(a)),
            (Some(b), _) => format!("the byte {} behind the end of '{}'", at - end(b) + 1, name(b)),
            (None, None) => "a byte of no tensor".into(),
        }
    }
}

/// Scratch memory for a plan, exactly as large as it asks for.
pub struct Scratch {
    buffer: Option<Buffer>,
    /// The host's: guard bytes, scratch, guard bytes.
    memory: Vec<u8>,
    start: usize,
    size: usize,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer {
            // SAFETY: the value's own; the plan is not running.
            unsafe { buffer.free() }
        }
    }
}

impl Scratch {
    /// `size` bytes, on `backend`.
    pub fn new(backend: Backend, size: usize) -> Result<Self, Error> {
        let mut scratch = Scratch { buffer: None, memory: Vec::new(), start: 0, size };
        if size == 0 {
            return Ok(scratch);
        }
        let buft = backend.buft().ok_or_else(|| Error::argument("the backend has no memory"))?;
        let bytes = size.checked_add(2 * GUARD + 64).ok_or_else(|| no_memory(size))?;
        let buffer = if buft.is_host() {
            scratch.memory.try_reserve_exact(bytes).map_err(|_| no_memory(bytes))?;
            scratch.memory.resize(bytes, 0);
            let base = scratch.memory.as_mut_ptr();
            scratch.start = base.addr().wrapping_neg() % 64 + GUARD;
            host::from_ptr(base.wrapping_add(scratch.start).cast(), size)
        } else {
            buft.alloc(size + GUARD)
        };
        let buffer = buffer.ok_or_else(|| no_memory(bytes))?;
        buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        scratch.buffer = Some(buffer);
        Ok(scratch)
    }

    /// What the plan is given.
    pub fn buffer(&self) -> Option<Buffer> {
        self.buffer
    }

    fn image(&self, fill: Fill) -> Vec<u8> {
        let n = if self.memory.is_empty() { self.size + GUARD } else { self.memory.len() };
        let scratch = self.start..self.start + self.size;
        (0..n).map(|i| if scratch.contains(&i) { fill.inner() } else { fill.guard(i) }).collect()
    }

    /// Fills it and what is around.
    pub fn load(&mut self, fill: Fill) {
        let mut image = self.image(fill);
        match self.buffer {
            None => {}
            // SAFETY: the value's own buffer, and it has that many bytes.
            Some(buffer) if self.memory.is_empty() => unsafe { whole(buffer, image.as_mut_ptr(), image.len(), true) },
            Some(_) => self.memory.copy_from_slice(&image),
        }
    }

    /// A byte around it that is not as [`Scratch::load`] left it: how far before or behind.
    pub fn damage(&self, fill: Fill) -> Option<String> {
        let buffer = self.buffer?;
        let expected = self.image(fill);
        let mut found = vec![0; expected.len()];
        if self.memory.is_empty() {
            // SAFETY: as `load`.
            unsafe { whole(buffer, found.as_mut_ptr(), found.len(), false) }
        } else {
            // Kernels write through the buffer's address: what is there is read through an address too.
            // SAFETY: the vector has as many bytes.
            unsafe { found.as_mut_ptr().copy_from(std::ptr::from_ref(&self.memory[0]), found.len()) }
        }
        let end = self.start + self.size;
        let at = (0..found.len()).find(|i| !(self.start..end).contains(i) && found[*i] != expected[*i])?;
        Some(match at < self.start {
            true => format!("the byte {} before the {} bytes of scratch", self.start - at, self.size),
            false => format!("the byte {} behind the end of the {} bytes of scratch", at - end + 1, self.size),
        })
    }
}
