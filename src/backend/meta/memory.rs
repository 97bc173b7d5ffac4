//! Memory on several devices: a buffer of one buffer for each, and the parts of the tensors in it.

use super::rules;
use super::split::{self, Cut, Slice, Split};
use super::{access, bufts_of, devices_of, Meta};
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
const BASE: usize = 1 << 60;

/// A tensor's parts.
pub struct Parts {
    /// What the tensor was when they were made.
    of: Key,
    /// How it is divided, sums being made.
    pub split: Split,
    /// Its result is a sum over the devices.
    pub sum: bool,
    /// One tensor for each device.
    pub tensors: Vec<ggml_tensor>,
}

/// What the parts of a tensor depend on.
#[derive(Clone, PartialEq)]
struct Key {
    shape: (ggml_type, [i64; GGML_MAX_DIMS], [usize; GGML_MAX_DIMS]),
    op: (ggml_op, [i32; GGML_N_OP_PARAMS], i32),
    src: [*mut ggml_tensor; GGML_MAX_SRC],
    storage: (*mut ggml_tensor, usize, *mut c_void),
    /// The data of the sources, and which buffer it is in.
    sources: [(*mut c_void, u64); GGML_MAX_SRC],
    root: u64,
}

impl Key {
    /// # Safety
    /// The tensor and its sources are live.
    unsafe fn of(t: &ggml_tensor) -> Key {
        Key {
            shape: (t.r#type, t.ne, t.nb),
            op: (t.op, t.op_params, t.flags),
            src: t.src,
            storage: (t.view_src, t.view_offs, t.data),
            // SAFETY: the caller's promise.
            sources: t.src.map(|s| unsafe { s.as_ref() }.map_or((null_mut(), 0), |s| (s.data, serial_of(s)))),
            // SAFETY: as above.
            root: unsafe { t.view_src.as_ref() }.map_or(0, serial_of),
        }
    }
}

/// What the buffer's functions work on.
pub struct Memory {
    meta: &'static Meta,
    /// One for each device.
    buffers: Vec<Buffer>,
    /// Where the parts of tensors lie that were placed together, bytes from the start of each buffer; of the others by their address.
    placed: HashMap<*const ggml_tensor, Vec<usize>>,
    parts: HashMap<*const ggml_tensor, Parts>,
}

/// A buffer's memory, and the number that no other buffer has.
struct Shared {
    serial: u64,
    memory: Mutex<Memory>,
}

/// The number of the buffer that a tensor is in; 0 for another kind.
fn serial_of(t: &ggml_tensor) -> u64 {
    tensor_data::buffer_of(t).filter(|&b| is_meta(b)).map_or(0, |b| shared(b).serial)
}

fn shared(buffer: Buffer) -> &'static Shared {
    // SAFETY: the context of these buffers, which live while they are used.
    unsafe { &*buffer.context().cast::<Shared>() }
}

/// Why a tensor has no parts.
pub enum Lack {
    /// It, or what it is computed from, has no memory yet.
    Early,
    /// It cannot be divided so.
    Rule(Error),
}

fn rule(t: &ggml_tensor, why: &str) -> Lack {
    let text = format!("{} ({}): {why}", shape::name(t), shape::op_name(t.op));
    Lack::Rule(Error::new(GGML_EXT_CODE_NO_KERNEL, text))
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

fn lock(buffer: Buffer) -> MutexGuard<'static, Memory> {
    shared(buffer).memory.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new(buft: Buft, meta: &'static Meta, buffers: Vec<Buffer>, size: usize) -> Buffer {
    let memory = Memory { meta, buffers, placed: HashMap::new(), parts: HashMap::new() };
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let context = Box::into_raw(Box::new(Shared { serial, memory: Mutex::new(memory) }));
    Buffer::new(buft, ggml_backend_buffer_i { free_buffer: Some(FREE), ..IFACE }, context.cast(), size)
}

/// A buffer with as many bytes on each device.
pub fn alloc(buft: Buft, meta: &'static Meta, size: usize) -> Option<Buffer> {
    let buffers = take(bufts_of(meta), |_| size)?;
    Some(new(buft, meta, buffers, size))
}

/// Buffers of the given sizes, all of them or none.
fn take(bufts: Vec<Buft>, size: impl Fn(usize) -> usize) -> Option<Vec<Buffer>> {
    let mut buffers = Vec::new();
    for (i, buft) in bufts.into_iter().enumerate() {
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

/// A buffer for tensors that belong together: on each device as many bytes as their parts take there.
///
/// # Safety
/// The tensors are live and have no memory.
pub unsafe fn alloc_n(buft: Buft, meta: &'static Meta, tensors: &[*mut ggml_tensor]) -> Option<Buffer> {
    let bufts = bufts_of(meta);
    let mut sizes = vec![0usize; bufts.len()];
    let (mut whole, mut placed) = (0usize, HashMap::new());
    let buffer = new(buft, meta, Vec::new(), 0);
    for &t in tensors {
        // SAFETY: the caller's promise; nothing else refers to the tensor.
        let tensor = unsafe { &mut *t };
        if !tensor.view_src.is_null() || !tensor.data.is_null() {
            continue;
        }
        let split = match ask(meta, tensor) {
            Ok(split) => split,
            Err(Lack::Rule(e)) => {
                error::report_at(&e, t);
                // SAFETY: made here.
                unsafe { buffer.free() };
                return None;
            }
            Err(Lack::Early) => Split::Mirrored,
        };
        let mut offsets = Vec::new();
        for (device, buft) in bufts.iter().enumerate() {
            let part = split::slice(tensor, &split, device).map(|s| cut_out(tensor, &s));
            let bytes = part.as_ref().filter(|p| shape::nelements(p) > 0).map_or(0, |p| buft.alloc_size(p));
            let start = sizes[device].next_multiple_of(buft.alignment());
            offsets.push(start);
            sizes[device] = start + bytes;
        }
        placed.insert(t.cast_const(), (offsets, whole));
        whole = (whole + shape::nbytes(tensor)).next_multiple_of(64);
    }
    let Some(buffers) = take(bufts, |i| sizes[i]) else {
        // SAFETY: made here.
        unsafe { buffer.free() };
        return None;
    };
    // SAFETY: the buffer was made here; the field is written through the raw pointer.
    unsafe { (*buffer.as_raw()).size = whole.max(1) };
    {
        let mut memory = lock(buffer);
        memory.buffers = buffers;
        memory.placed = placed.iter().map(|(&t, (offsets, _))| (t, offsets.clone())).collect();
    }
    let mut ok = true;
    for &t in tensors {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some((_, at)) = placed.get(&t.cast_const()) {
                (*t).buffer = buffer.as_raw();
                (*t).data = (BASE + at) as *mut c_void;
                ok &= buffer.init_tensor(t) == GGML_STATUS_SUCCESS;
            }
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

/// How the application wants a tensor divided.
fn ask(meta: &Meta, t: &ggml_tensor) -> Result<Split, Lack> {
    let devices = devices_of(meta);
    let Some(callback) = meta.get_split_state else { return Ok(Split::Mirrored) };
    // SAFETY: the callback takes a live tensor and the pointer that came with it.
    let state = unsafe { callback(t, meta.user_data) };
    let segments = state.n_segments as usize;
    if segments > state.nr.len() || segments * devices > state.ne.len() {
        return Err(rule(t, "the application divides it into too many segments"));
    }
    match state.axis {
        GGML_BACKEND_SPLIT_AXIS_MIRRORED => Ok(Split::Mirrored),
        // Sums are made where they arise: what is added to one must be whole.
        GGML_BACKEND_SPLIT_AXIS_PARTIAL => Ok(Split::Mirrored),
        axis if (0..GGML_MAX_DIMS as i32).contains(&axis.0) => {
            let axis = axis.0 as usize;
            let mut pieces = Vec::new();
            for (s, &times) in state.nr[..segments].iter().enumerate() {
                let each = &state.ne[s * devices..(s + 1) * devices];
                let block = if axis == 0 { shape::blck_size(t.r#type).max(1) as i64 } else { 1 };
                if each.iter().any(|&n| n < 0 || n % block != 0 || n > t.ne[axis]) || i64::from(times) > t.ne[axis] {
                    return Err(rule(
                        t,
                        "the application divides it into pieces that are negative, too long or no whole blocks",
                    ));
                }
                for _ in 0..times {
                    pieces.extend(each.iter().copied().enumerate());
                }
            }
            let cut = Cut::new(axis, pieces);
            if cut.total() == t.ne[axis] {
                Ok(Split::Along(cut))
            } else {
                Err(rule(
                    t,
                    &format!(
                        "the application's pieces are {} long in all, dimension {axis} is {}",
                        cut.total(),
                        t.ne[axis]
                    ),
                ))
            }
        }
        _ => Err(rule(t, "the application gives no division of it")),
    }
}

/// A tensor that is the part `s` of `t`, without storage and sources.
fn cut_out(t: &ggml_tensor, s: &Slice) -> ggml_tensor {
    ggml_tensor {
        r#type: t.r#type,
        ne: s.ne,
        nb: s.nb,
        op: t.op,
        op_params: t.op_params,
        flags: t.flags,
        name: t.name,
        ..crate::tensor::blank()
    }
}

/// Runs `f` with the parts of `t`, which are made where they are not there or not those of the tensor as it is.
///
/// # Safety
/// The tensor, its sources and their storage are live.
pub unsafe fn with<R>(t: *const ggml_tensor, f: impl FnOnce(&Parts) -> R) -> Result<R, Lack> {
    // SAFETY: the caller's promise.
    let tensor = unsafe { &*t };
    let buffer = tensor_data::buffer_of(tensor).filter(|_| !tensor.data.is_null()).ok_or(Lack::Early)?;
    if !is_meta(buffer) {
        return Err(rule(tensor, "it is not in memory of these devices"));
    }
    // SAFETY: as above.
    let key = unsafe { Key::of(tensor) };
    if !lock(buffer).parts.get(&t).is_some_and(|p| p.of == key) {
        // SAFETY: as above.
        let mut parts = unsafe { make(buffer, tensor, key) }?;
        let mut memory = lock(buffer);
        // The parts stay where they were: other tensors' parts have them as sources.
        if let Some(mut former) = memory.parts.remove(&t) {
            former.tensors.copy_from_slice(&parts.tensors);
            parts.tensors = former.tensors;
        }
        memory.parts.insert(t, parts);
    }
    let memory = lock(buffer);
    memory.parts.get(&t).map(f).ok_or(Lack::Early)
}

/// How the parts of `t` are divided.
///
/// # Safety
/// As [`with`].
pub unsafe fn split_of(t: *const ggml_tensor) -> Result<Split, Lack> {
    // SAFETY: the caller's promise.
    unsafe { with(t, |p| p.split.clone()) }
}

/// # Safety
/// As [`with`].
unsafe fn make(buffer: Buffer, t: &ggml_tensor, key: Key) -> Result<Parts, Lack> {
    let (meta, buffers) = {
        let memory = lock(buffer);
        (memory.meta, memory.buffers.clone())
    };
    let n = buffers.len();
    // SAFETY: the caller's promise.
    let root = unsafe { t.view_src.as_ref() };
    // What the operator gives.
    let (mut split, mut sum) = (None, false);
    let moves_nothing = t.op == GGML_OP_NONE || shape::is_view(t.op);
    if !moves_nothing {
        let mut sources: [rules::Source; GGML_MAX_SRC] = Default::default();
        for (source, &s) in sources.iter_mut().zip(&t.src) {
            // SAFETY: as above.
            if let Some(live) = unsafe { s.as_ref() } {
                // SAFETY: as above.
                *source = Some((live, unsafe { split_of(s) }?));
            }
        }
        match rules::result(t, &sources).map_err(|why| rule(t, why))? {
            rules::Result::Is(is) => split = Some(is),
            rules::Result::Sum => {
                if t.r#type != GGML_TYPE_F32 || root.is_some() {
                    return Err(rule(t, "a sum over devices must be f32 in memory of its own"));
                }
                (split, sum) = (Some(Split::Mirrored), true);
            }
        }
    }
    // Where it lies.
    let mut slices = Vec::new();
    if let Some(root) = root {
        // SAFETY: as above.
        match unsafe { split_of(root) }? {
            Split::Along(cut) => {
                let (cut, parts) = split::view(root, &cut, t, n).map_err(|why| rule(t, why))?;
                let is = Split::Along(cut);
                if split.as_ref().is_some_and(|s| *s != is) {
                    return Err(rule(t, "its result is divided otherwise than the memory that it goes to"));
                }
                (split, slices) = (Some(is), parts);
            }
            whole => {
                if split.as_ref().is_some_and(|s| *s != whole) {
                    return Err(rule(t, "its result is divided, but the memory that it goes to is not"));
                }
                slices = vec![Slice { ne: t.ne, nb: t.nb, offset: t.view_offs }; n];
                split = Some(whole);
            }
        }
    }
    let split = match split {
        Some(split) => split,
        // Inputs of a graph are whole on each; what lives longer is divided as the application says.
        None if buffer.usage() == GGML_BACKEND_BUFFER_USAGE_COMPUTE => Split::Mirrored,
        None => ask(meta, t)?,
    };
    if slices.is_empty() {
        for device in 0..n {
            slices.push(split::slice(t, &split, device).ok_or_else(|| rule(t, "its parts have no size"))?);
        }
    }
    let mut tensors = Vec::with_capacity(n);
    for (device, s) in slices.iter().enumerate() {
        let mut part = cut_out(t, s);
        match root {
            Some(root) => {
                // SAFETY: as above.
                let storage = unsafe { with(root, |p| std::ptr::from_ref(&p.tensors[device]).cast_mut()) }?;
                part.view_src = storage;
                part.view_offs = s.offset;
                // SAFETY: a part of a live tensor.
                (part.buffer, part.data) = unsafe { ((*storage).buffer, (*storage).data.wrapping_byte_add(s.offset)) };
            }
            None => {
                let own = lock(buffer).placed.get(&std::ptr::from_ref(t)).map(|offsets| offsets[device]);
                let offset = own.unwrap_or((t.data as usize).wrapping_sub(BASE));
                part.buffer = buffers[device].as_raw();
                part.data = match buffers[device].base() {
                    // A device without a part of anything.
                    base if base.is_null() => std::ptr::without_provenance_mut(64),
                    base => base.wrapping_byte_add(offset),
                };
            }
        }
        for i in 0..GGML_MAX_SRC {
            let s = t.src[i];
            if s.is_null() || moves_nothing && t.op == GGML_OP_NONE {
                continue;
            }
            // SAFETY: as above.
            let (source, empty) = unsafe {
                with(s, |p| {
                    let part = &p.tensors[device];
                    let none = matches!(p.split, Split::Along(_)) && shape::nelements(part) == 0;
                    (std::ptr::from_ref(part).cast_mut(), none)
                })
            }?;
            part.src[i] = source;
            if empty {
                part.flags &= !GGML_TENSOR_FLAG_COMPUTE.0;
            }
        }
        if shape::nelements(&part) == 0 {
            part.flags &= !GGML_TENSOR_FLAG_COMPUTE.0;
        } else if let Some(buffer) = tensor_data::buffer_of(&part) {
            // SAFETY: the part is live, and lies in the buffer.
            if unsafe { buffer.init_tensor(&mut part) } != GGML_STATUS_SUCCESS {
                return Err(rule(t, "a device cannot prepare its part"));
            }
        }
        tensors.push(part);
    }
    Ok(Parts { of: key, split, sum, tensors })
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
    match unsafe { with(t, |_| ()) } {
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
        // Made again when they are needed, in their places.
        lock(buffer).parts.values_mut().for_each(|p| p.of.shape.0 = GGML_TYPE_COUNT);
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
    bufts_of(unsafe { meta_of(buft) }).into_iter().map(Buft::alignment).max().unwrap_or(1)
}
unsafe extern "C" fn max_size(buft: ggml_backend_buffer_type_t) -> usize {
    // SAFETY: see `meta_of`.
    bufts_of(unsafe { meta_of(buft) }).into_iter().map(Buft::max_size).min().unwrap_or(0)
}
unsafe extern "C" fn alloc_size(buft: ggml_backend_buffer_type_t, t: *const ggml_tensor) -> usize {
    // SAFETY: see `meta_of`; called with a live tensor.
    unsafe { bufts_of(meta_of(buft)).into_iter().map(|b| b.alloc_size(&*t)).max().unwrap_or(0) }
}
