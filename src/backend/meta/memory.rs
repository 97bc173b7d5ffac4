//! Memory on several devices: a buffer of one buffer for each.

use super::parts::{self, Lack, Parts};
use super::split;
use super::{access, Meta};
use crate::backend::{tensor_data, Buffer, Buft};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the addresses of tensors begin that are on several devices: nobody may follow them.
pub(super) const BASE: usize = 1 << 60;

/// What the buffer's functions work on.
pub(super) struct Memory {
    pub meta: &'static Meta,
    /// One for each device.
    pub buffers: Vec<Buffer>,
    /// Where the parts of tensors lie that were placed together, bytes from the start of each buffer; of the others by their address.
    pub placed: HashMap<*const ggml_tensor, Vec<usize>>,
    pub parts: HashMap<*const ggml_tensor, Parts>,
}

/// A buffer's memory, and the number that no other buffer has.
struct Shared {
    serial: u64,
    memory: Mutex<Memory>,
}

/// The number of the buffer that a tensor is in; 0 for another kind.
pub(super) fn serial_of(t: &ggml_tensor) -> u64 {
    tensor_data::buffer_of(t).filter(|&b| is_meta(b)).map_or(0, |b| shared(b).serial)
}

fn shared(buffer: Buffer) -> &'static Shared {
    // SAFETY: the context of these buffers, which live while they are used.
    unsafe { &*buffer.context().cast::<Shared>() }
}

static FREE: unsafe extern "C" fn(ggml_backend_buffer_t) = free;

const IFACE: ggml_backend_buffer_i = ggml_backend_buffer_i {
    free_buffer: None,
    get_base: Some(base),
    init_tensor: Some(init),
    memset_tensor: Some(access::memset),
    set_tensor: Some(access::set),
    get_tensor: Some(access::get),
    set_tensor_2d: None,
    get_tensor_2d: None,
    cpy_tensor: None,
    clear: Some(clear),
    reset: Some(reset),
};

/// Whether a buffer is one of these.
pub fn is_meta(buffer: Buffer) -> bool {
    buffer.iface().free_buffer.is_some_and(|f| std::ptr::fn_addr_eq(f, FREE))
}

/// The buffers that one of these is made of.
pub fn for_each(buffer: Buffer, visit: impl FnMut(Buffer)) {
    if is_meta(buffer) {
        let buffers = lock(buffer).buffers.clone();
        buffers.into_iter().for_each(visit);
    }
}

pub(super) fn lock(buffer: Buffer) -> MutexGuard<'static, Memory> {
    shared(buffer).memory.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new(buft: Buft, memory: Memory, size: usize) -> Buffer {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let context = Box::into_raw(Box::new(Shared { serial, memory: Mutex::new(memory) }));
    Buffer::new(buft, ggml_backend_buffer_i { free_buffer: Some(FREE), ..IFACE }, context.cast(), size)
}

/// A buffer with as many bytes on each device.
fn alloc(buft: Buft, meta: &'static Meta, size: usize) -> Option<Buffer> {
    let buffers = take(meta, |_| size)?;
    Some(new(buft, Memory { meta, buffers, placed: HashMap::new(), parts: HashMap::new() }, size))
}

/// Buffers of the given sizes, all of them or none.
fn take(meta: &Meta, size: impl Fn(usize) -> usize) -> Option<Vec<Buffer>> {
    let mut buffers = Vec::new();
    for (i, buft) in meta.bufts().enumerate() {
        match buft.alloc(size(i)) {
            Some(buffer) => buffers.push(buffer),
            None => {
                // SAFETY: made here, and known to nobody.
                buffers.into_iter().for_each(|b: Buffer| unsafe { b.free() });
                return None;
            }
        }
    }
    Some(buffers)
}

/// Where tensors come to lie.
struct Layout {
    /// By tensor: bytes from the start of each device's buffer.
    offsets: HashMap<*const ggml_tensor, Vec<usize>>,
    /// The tensors, and bytes from where the whole buffer starts.
    places: Vec<(*mut ggml_tensor, usize)>,
    /// Bytes of each device's buffer.
    sizes: Vec<usize>,
    /// Bytes of the whole.
    whole: usize,
}

/// # Safety
/// As [`alloc_n`].
unsafe fn lay_out(meta: &Meta, tensors: &[*mut ggml_tensor]) -> Result<Layout, Error> {
    let bufts: Vec<Buft> = meta.bufts().collect();
    let mut l = Layout { offsets: HashMap::new(), places: Vec::new(), sizes: vec![0; bufts.len()], whole: 0 };
    for &t in tensors {
        // SAFETY: the caller's promise.
        let tensor = unsafe { &*t };
        if !tensor.view_src.is_null() || !tensor.data.is_null() {
            continue;
        }
        let too_large =
            || Error::memory(format!("'{}' and what lies before it are too large", shape::name(tensor))).at(t);
        let split = parts::ask(meta, tensor).map_err(|e| e.at(t))?;
        let mut offsets = Vec::with_capacity(bufts.len());
        for (device, buft) in bufts.iter().enumerate() {
            let part = split::slice(tensor, &split, device).map(|s| parts::cut_out(tensor, &s));
            let bytes = part.as_ref().filter(|p| shape::nelements(p) > 0).map_or(0, |p| buft.alloc_size(p));
            let start = l.sizes[device].checked_next_multiple_of(buft.alignment()).ok_or_else(too_large)?;
            offsets.push(start);
            l.sizes[device] = start.checked_add(bytes).ok_or_else(too_large)?;
        }
        l.offsets.insert(t, offsets);
        l.places.push((t, l.whole));
        let end = l.whole.checked_add(shape::nbytes(tensor)).and_then(|end| end.checked_next_multiple_of(64));
        l.whole = end.filter(|&end| end < BASE).ok_or_else(too_large)?;
    }
    Ok(l)
}

/// A buffer for tensors that belong together: on each device as many bytes as their parts take there. A failure is reported.
///
/// # Safety
/// The tensors are live and have no memory.
unsafe fn alloc_n(buft: Buft, meta: &'static Meta, tensors: &[*mut ggml_tensor]) -> Option<Buffer> {
    // SAFETY: the caller's promise.
    let layout = unsafe { lay_out(meta, tensors) }.map_err(|e| error::report(&e)).ok()?;
    let buffers = take(meta, |i| layout.sizes[i])?;
    let memory = Memory { meta, buffers, placed: layout.offsets, parts: HashMap::new() };
    let buffer = new(buft, memory, layout.whole.max(1));
    let mut ok = true;
    for &(t, at) in &layout.places {
        // SAFETY: the caller's promise.
        unsafe {
            (*t).buffer = buffer.as_raw();
            (*t).data = std::ptr::without_provenance_mut(BASE + at);
            ok &= buffer.init_tensor(t) == GGML_STATUS_SUCCESS;
        }
    }
    for &t in tensors {
        // SAFETY: as above.
        unsafe {
            if (*t).data.is_null() && (*t).view_src.as_ref().is_some_and(|s| !s.data.is_null()) {
                ok &= tensor_data::place_view(t) == GGML_STATUS_SUCCESS;
            }
        }
    }
    if !ok {
        for &t in tensors {
            // SAFETY: as above.
            unsafe {
                if (*t).buffer == buffer.as_raw() {
                    ((*t).buffer, (*t).data) = (null_mut(), null_mut());
                }
            }
        }
        // SAFETY: nobody knows it any more.
        unsafe { buffer.free() };
        return None;
    }
    Some(buffer)
}

unsafe extern "C" fn free(buffer: ggml_backend_buffer_t) {
    // SAFETY: called with a buffer of `new` that nobody uses any more.
    unsafe {
        let shared = Box::from_raw((*buffer).context.cast::<Shared>());
        let memory = shared.memory.into_inner().unwrap_or_else(PoisonError::into_inner);
        memory.buffers.into_iter().for_each(|b| b.free());
    }
}

unsafe extern "C" fn base(_: ggml_backend_buffer_t) -> *mut c_void {
    std::ptr::without_provenance_mut(BASE)
}

unsafe extern "C" fn init(_: ggml_backend_buffer_t, t: *mut ggml_tensor) -> ggml_status {
    // SAFETY: called with a live tensor.
    match unsafe { parts::with(t, |_| ()) } {
        // Parts are made when they are first needed.
        Ok(()) | Err(Lack::Early) => GGML_STATUS_SUCCESS,
        Err(Lack::Rule(e)) => {
            error::report_at(&e, t);
            GGML_STATUS_FAILED
        }
    }
}

unsafe extern "C" fn clear(buffer: ggml_backend_buffer_t, value: u8) {
    // SAFETY: called with a live buffer of `new`.
    if let Some(buffer) = unsafe { Buffer::from_raw(buffer) } {
        for_each(buffer, |b| b.clear(value));
    }
}

unsafe extern "C" fn reset(buffer: ggml_backend_buffer_t) {
    // SAFETY: as `clear`.
    if let Some(buffer) = unsafe { Buffer::from_raw(buffer) } {
        lock(buffer).parts.values_mut().for_each(Parts::forget);
        for_each(buffer, Buffer::reset);
    }
}

/// Functions of the buffer type; their context is the device's.
pub const BUFT: ggml_backend_buffer_type_i = ggml_backend_buffer_type_i {
    get_name: Some(name),
    alloc_buffer: Some(alloc_buffer),
    alloc_buffer_n: Some(alloc_buffer_n),
    get_alignment: Some(alignment),
    get_max_size: Some(max_size),
    get_alloc_size: Some(alloc_size),
    get_alloc_size_n: None,
    // No address of it is the host's.
    is_host: None,
};

/// # Safety
/// A buffer type of a meta device.
unsafe fn meta_of(buft: ggml_backend_buffer_type_t) -> &'static Meta {
    // SAFETY: the caller's promise; devices live as long as the process.
    unsafe { &*(*buft).context.cast::<Meta>() }
}

unsafe extern "C" fn name(buft: ggml_backend_buffer_type_t) -> *const c_char {
    // SAFETY: see `meta_of`.
    unsafe { meta_of(buft) }.name.as_ptr()
}
unsafe extern "C" fn alloc_buffer(buft: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t {
    // SAFETY: see `meta_of`.
    let buffer = unsafe { Buft::from_raw(buft).and_then(|b| alloc(b, meta_of(buft), size)) };
    buffer.map_or(null_mut(), Buffer::as_raw)
}
unsafe extern "C" fn alloc_buffer_n(
    buft: ggml_backend_buffer_type_t,
    tensors: *mut *mut ggml_tensor,
    n: std::ffi::c_int,
) -> ggml_backend_buffer_t {
    if tensors.is_null() || n < 0 {
        return null_mut();
    }
    // SAFETY: see `meta_of`; the caller has `n` tensors.
    let buffer = unsafe {
        let list = std::slice::from_raw_parts(tensors, n as usize);
        Buft::from_raw(buft).and_then(|b| alloc_n(b, meta_of(buft), list))
    };
    buffer.map_or(null_mut(), Buffer::as_raw)
}
unsafe extern "C" fn alignment(buft: ggml_backend_buffer_type_t) -> usize {
    // SAFETY: see `meta_of`.
    unsafe { meta_of(buft) }.bufts().map(Buft::alignment).max().unwrap_or(1)
}
unsafe extern "C" fn max_size(buft: ggml_backend_buffer_type_t) -> usize {
    // SAFETY: see `meta_of`.
    unsafe { meta_of(buft) }.bufts().map(Buft::max_size).min().unwrap_or(0)
}
unsafe extern "C" fn alloc_size(buft: ggml_backend_buffer_type_t, t: *const ggml_tensor) -> usize {
    // SAFETY: see `meta_of`; called with a live tensor.
    unsafe { meta_of(buft).bufts().map(|b| b.alloc_size(&*t)).max().unwrap_or(0) }
}
