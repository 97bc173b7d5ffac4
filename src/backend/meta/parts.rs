//! The parts of tensors on the devices: made from what a tensor is and from the parts of what it reads and views, when they are needed.

use super::memory::{is_meta, lock, serial_of, BASE};
use super::rules;
use super::split::{self, Cut, Slice, Split};
use super::Meta;
use crate::backend::{tensor_data, Buffer};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A tensor's parts.
pub struct Parts {
    /// What the tensor was when they were made.
    of: Key,
    /// How it is divided, sums being made.
    pub split: Split,
    /// Its result is a sum over the devices.
    pub sum: bool,
    /// One tensor for each device.
    tensors: Vec<ggml_tensor>,
}

impl Parts {
    /// They are made again when they are next needed, in their places.
    pub fn forget(&mut self) {
        self.of.shape.0 = GGML_TYPE_COUNT;
    }

    /// Where they are. They stay there as long as their buffer.
    pub fn places(&mut self) -> Vec<*mut ggml_tensor> {
        let first = self.tensors.as_mut_ptr();
        (0..self.tensors.len()).map(|device| first.wrapping_add(device)).collect()
    }
}

/// What the parts of a tensor depend on.
#[derive(PartialEq)]
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

/// Why a tensor has no parts.
pub enum Lack {
    /// It, or what it is computed from, has no memory yet.
    Early,
    /// It cannot be divided so.
    Rule(Error),
}

impl From<Error> for Lack {
    fn from(rule: Error) -> Self {
        Lack::Rule(rule)
    }
}

fn rule(t: &ggml_tensor, why: &str) -> Error {
    let text = format!("{} ({}): {why}", shape::name(t), shape::op_name(t.op));
    Error::new(GGML_EXT_CODE_NO_KERNEL, text)
}

/// How the application wants a tensor divided.
pub(super) fn ask(meta: &Meta, t: &ggml_tensor) -> Result<Split, Error> {
    let devices = meta.devices.len();
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
            let ne = t.ne[axis];
            let block = if axis == 0 { shape::blck_size(t.r#type).max(1) as i64 } else { 1 };
            let given = || state.nr[..segments].iter().zip(state.ne.chunks_exact(devices));
            if given().any(|(_, each)| each.iter().any(|&n| n < 0 || n % block != 0 || n > ne)) {
                let why = "the application divides it into pieces that are negative, too long or no whole blocks";
                return Err(rule(t, why));
            }
            let once = |each: &[i64]| each.iter().map(|&n| i128::from(n)).sum::<i128>();
            let all: i128 = given().map(|(&times, each)| i128::from(times) * once(each)).sum();
            if all != i128::from(ne) {
                let why = format!("the application's pieces are {all} long in all, dimension {axis} is {ne}");
                return Err(rule(t, &why));
            }
            let mut pieces = Vec::new();
            for (&times, each) in given().filter(|(_, each)| once(each) > 0) {
                for _ in 0..times {
                    pieces.extend(each.iter().copied().enumerate());
                }
            }
            Ok(Split::Along(Cut::new(axis, pieces)))
        }
        _ => Err(rule(t, "the application gives no division of it")),
    }
}

/// A tensor that is the part `s` of `t`, without storage and sources.
pub(super) fn cut_out(t: &ggml_tensor, s: &Slice) -> ggml_tensor {
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
pub unsafe fn with<R>(t: *const ggml_tensor, f: impl FnOnce(&mut Parts) -> R) -> Result<R, Lack> {
    // SAFETY: the caller's promise.
    let tensor = unsafe { &*t };
    let buffer = tensor_data::buffer_of(tensor).filter(|_| !tensor.data.is_null()).ok_or(Lack::Early)?;
    if !is_meta(buffer) {
        return Err(rule(tensor, "it is not in memory of these devices").into());
    }
    // SAFETY: as above.
    let key = unsafe { Key::of(tensor) };
    if let Some(parts) = lock(buffer).parts.get_mut(&t).filter(|p| p.of == key) {
        return Ok(f(parts));
    }
    // SAFETY: as above.
    let mut parts = unsafe { make(buffer, tensor, key) }?;
    let mut memory = lock(buffer);
    // The parts stay where they were: other tensors' parts have them as sources.
    if let Some(mut former) = memory.parts.remove(&t) {
        former.tensors.copy_from_slice(&parts.tensors);
        parts.tensors = former.tensors;
    }
    Ok(f(memory.parts.entry(t).or_insert(parts)))
}

/// How a tensor is divided, and where its parts are.
///
/// # Safety
/// As [`with`].
unsafe fn divided(t: *const ggml_tensor) -> Result<(Split, Vec<*mut ggml_tensor>), Lack> {
    // SAFETY: the caller's promise.
    unsafe { with(t, |p| (p.split.clone(), p.places())) }
}

/// # Safety
/// As [`with`].
unsafe fn make(buffer: Buffer, t: &ggml_tensor, key: Key) -> Result<Parts, Lack> {
    let (meta, buffers, placed) = {
        let memory = lock(buffer);
        (memory.meta, memory.buffers.clone(), memory.placed.get(&std::ptr::from_ref(t)).cloned())
    };
    let n = buffers.len();
    // What it reads, and what it views.
    let mut sources: [rules::Source; GGML_MAX_SRC] = Default::default();
    let mut source_parts: [Vec<*mut ggml_tensor>; GGML_MAX_SRC] = Default::default();
    if t.op != GGML_OP_NONE {
        for (i, &s) in t.src.iter().enumerate() {
            // SAFETY: the caller's promise.
            if let Some(live) = unsafe { s.as_ref() } {
                // SAFETY: as above.
                let (split, parts) = unsafe { divided(s) }?;
                (sources[i], source_parts[i]) = (Some((live, split)), parts);
            }
        }
    }
    // SAFETY: as above.
    let root = unsafe { t.view_src.as_ref() };
    let (root_split, root_parts) = match root {
        // SAFETY: as above.
        Some(root) => unsafe { divided(root) }.map(|(split, parts)| (Some(split), parts))?,
        None => (None, Vec::new()),
    };
    // What the operator gives.
    let (mut split, mut sum) = (None, false);
    if t.op != GGML_OP_NONE && !shape::is_view(t.op) {
        match rules::result(t, &sources).map_err(|why| rule(t, why))? {
            rules::Result::Is(is) => split = Some(is),
            rules::Result::Sum => {
                if t.r#type != GGML_TYPE_F32 || root.is_some() {
                    return Err(rule(t, "a sum over devices must be f32 in memory of its own").into());
                }
                (split, sum) = (Some(Split::Mirrored), true);
            }
        }
    }
    // Where it lies.
    let mut slices = Vec::new();
    if let (Some(root), Some(root_split)) = (root, root_split) {
        let (is, parts) = match root_split {
            Split::Along(cut) => {
                let (cut, parts) = split::view(root, &cut, t, n).map_err(|why| rule(t, why))?;
                (Split::Along(cut), parts)
            }
            Split::Mirrored => (Split::Mirrored, vec![Slice { ne: t.ne, nb: t.nb, offset: t.view_offs }; n]),
        };
        if split.as_ref().is_some_and(|s| *s != is) {
            return Err(rule(t, "its result is divided otherwise than the memory that it goes to").into());
        }
        (split, slices) = (Some(is), parts);
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
        match root_parts.get(device) {
            Some(&storage) => {
                part.view_src = storage;
                part.view_offs = s.offset;
                // SAFETY: a part of a live tensor.
                (part.buffer, part.data) = unsafe { ((*storage).buffer, (*storage).data.wrapping_byte_add(s.offset)) };
            }
            None => {
                let own = placed.as_ref().map(|offsets| offsets[device]);
                let offset = own.unwrap_or((t.data as usize).wrapping_sub(BASE));
                part.buffer = buffers[device].as_raw();
                part.data = match buffers[device].base() {
                    // A device without a part of anything.
                    base if base.is_null() => std::ptr::without_provenance_mut(64),
                    base => base.wrapping_byte_add(offset),
                };
            }
        }
        let mut empty = shape::nelements(&part) == 0;
        for (i, parts) in source_parts.iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
            part.src[i] = parts[device];
            let divided = matches!(sources[i], Some((_, Split::Along(_))));
            // SAFETY: a part of a live tensor.
            empty |= divided && shape::nelements(unsafe { &*parts[device] }) == 0;
        }
        if empty {
            part.flags &= !GGML_TENSOR_FLAG_COMPUTE.0;
        }
        if shape::nelements(&part) != 0 {
            if let Some(buffer) = tensor_data::buffer_of(&part) {
                // SAFETY: the part is live, and lies in the buffer.
                if unsafe { buffer.init_tensor(&mut part) } != GGML_STATUS_SUCCESS {
                    return Err(rule(t, "a device cannot prepare its part").into());
                }
            }
        }
        tensors.push(part);
    }
    Ok(Parts { of: key, split, sum, tensors })
}
