//! Computing on several devices: each its part, up to where a sum over them is due.

use super::memory;
use super::parts::{self, Lack, Parts};
use super::Meta;
use crate::backend::cpu::BUSY;
use crate::backend::{tensor_data, Backend, NO_FUNCTIONS};
use crate::error::{self, Error};
use crate::graph;
use crate::tensor::Context;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::{Mutex, TryLockError};

const CALL: &str = "ggml_backend_graph_compute";

static mut GUID: ggml_guid =
    [0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x6f, 0x78, 0x69, 0x64, 0x65, 0x2d, 0x6d, 0x65, 0x74, 0x61, 0x01];

const IFACE: ggml_backend_i = ggml_backend_i {
    get_name: Some(name),
    free: Some(free),
    synchronize: Some(synchronize),
    graph_compute: Some(graph_compute),
    ..NO_FUNCTIONS
};

/// What a backend keeps.
struct Stream {
    meta: &'static Meta,
    /// One for each device.
    backends: Vec<Backend>,
    /// Taken while it computes.
    work: Mutex<Work>,
}

/// What one computation at a time uses.
#[derive(Default)]
struct Work {
    /// The graphs that the devices compute; they may do so until the next ones.
    #[allow(clippy::vec_box)]
    graphs: Vec<Box<Context>>,
    /// Memory for sums.
    sum: Vec<f32>,
    addend: Vec<f32>,
}

/// A new backend: one on each device, with the parameters. NULL, reported, when a device gives none.
///
/// # Safety
/// `params` is NULL or a C string; `dev` is the device of `meta`.
pub unsafe fn new(dev: ggml_backend_dev_t, meta: &'static Meta, params: *const c_char) -> ggml_backend_t {
    let mut stream = Stream { meta, backends: Vec::new(), work: Mutex::default() };
    for device in &meta.devices {
        // SAFETY: the caller's promise.
        match unsafe { device.init(params) } {
            Some(backend) => stream.backends.push(backend),
            None => {
                // SAFETY: made here, and known to nobody.
                stream.backends.into_iter().for_each(|b| unsafe { b.free() });
                return null_mut();
            }
        }
    }
    let context = Box::into_raw(Box::new(stream)).cast();
    Box::into_raw(Box::new(ggml_backend { guid: &raw mut GUID, iface: IFACE, device: dev, context }))
}

/// Whether a backend is one of these.
pub fn is_meta(backend: Backend) -> bool {
    std::ptr::eq(backend.guid(), &raw mut GUID)
}

/// The backends that one of these is made of; none for another.
pub fn backends_of(backend: Backend) -> Vec<Backend> {
    if is_meta(backend) {
        // SAFETY: the context of these backends.
        unsafe { (*(*backend.as_raw()).context.cast::<Stream>()).backends.clone() }
    } else {
        Vec::new()
    }
}

/// # Safety
/// A backend made by [`new`].
unsafe fn stream<'a>(backend: ggml_backend_t) -> &'a Stream {
    // SAFETY: the caller's promise.
    unsafe { &*(*backend).context.cast::<Stream>() }
}

// The functions of the table: called with a backend made by `new`.
unsafe extern "C" fn name(backend: ggml_backend_t) -> *const c_char {
    // SAFETY: see above.
    unsafe { stream(backend) }.meta.name.as_ptr()
}
unsafe extern "C" fn free(backend: ggml_backend_t) {
    // SAFETY: see above; nobody uses it any more.
    unsafe {
        let backend = Box::from_raw(backend);
        let stream = Box::from_raw(backend.context.cast::<Stream>());
        stream.backends.iter().for_each(|b| b.synchronize());
        stream.backends.iter().for_each(|b| b.free());
    }
}
unsafe extern "C" fn synchronize(backend: ggml_backend_t) {
    // SAFETY: see above.
    unsafe { stream(backend) }.backends.iter().for_each(|b| b.synchronize());
}
unsafe extern "C" fn graph_compute(backend: ggml_backend_t, graph: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: see above; the graph is live.
    let result = unsafe {
        match graph.as_ref() {
            Some(graph) => stream(backend).compute(graph),
            None => Err(Error::null("graph")),
        }
    };
    match result {
        Ok(status) => status,
        Err(e) => {
            let e = e.within(CALL);
            error::report(&e);
            e.status
        }
    }
}

/// A node's part on each device.
struct Step {
    node: *mut ggml_tensor,
    parts: Vec<*mut ggml_tensor>,
    sum: bool,
    /// How often it is a source.
    uses: i32,
}

impl Stream {
    /// # Safety
    /// The graph and its tensors are live.
    unsafe fn compute(&self, graph: &ggml_cgraph) -> Result<ggml_status, Error> {
        let mut work = match self.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(left)) => left.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Error::new(GGML_EXT_CODE_RE_ENTERED, BUSY)),
        };
        self.backends.iter().for_each(|b| b.synchronize());
        work.graphs.clear();
        // SAFETY: the caller's promise.
        let nodes = unsafe { graph::checked_nodes(graph)? };
        let mut steps = Vec::new();
        let counted = graph::has_use_counts(graph);
        for &node in nodes {
            // SAFETY: as above.
            let t = unsafe { &*node };
            let view_elsewhere = || tensor_data::buffer_of(t).is_none_or(|b| !memory::is_meta(b));
            if t.op == GGML_OP_NONE || shape::is_view(t.op) && view_elsewhere() {
                continue;
            }
            // Where it is not known, never 1: then nothing is fused.
            // SAFETY: as above.
            let uses = if counted { unsafe { graph::use_count(graph, node) } } else { 2 };
            let step = |p: &mut Parts| {
                let sum = p.sum && t.flags & GGML_TENSOR_FLAG_COMPUTE.0 != 0;
                Step { node, parts: p.places(), sum, uses }
            };
            // SAFETY: as above.
            steps.push(match unsafe { parts::with(node, step) } {
                Ok(step) => step,
                Err(Lack::Rule(e)) => return Err(e.at(node)),
                Err(Lack::Early) => {
                    let text = format!("{} ({}): it has no memory", shape::name(t), shape::op_name(t.op));
                    return Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text).at(node));
                }
            });
        }
        for some in steps.split_inclusive(|s| s.sum) {
            for (device, backend) in self.backends.iter().enumerate() {
                // SAFETY: the parts of live nodes live in their buffers.
                let (part, context) = unsafe { part_graph(some, device)? };
                work.graphs.push(context);
                // SAFETY: the graph is kept until the next one is computed.
                let status = unsafe { backend.compute_async(part) };
                if status != GGML_STATUS_SUCCESS {
                    self.backends.iter().for_each(|b| b.synchronize());
                    return Ok(status);
                }
            }
            if let Some(last) = some.last().filter(|s| s.sum) {
                self.backends.iter().for_each(|b| b.synchronize());
                // SAFETY: all devices have come so far.
                unsafe { work.add_up(last)? };
            }
        }
        Ok(GGML_STATUS_SUCCESS)
    }
}

/// The graph of a device's parts of some steps, and the context that holds it.
///
/// # Safety
/// As [`Stream::compute`].
unsafe fn part_graph(steps: &[Step], device: usize) -> Result<(*mut ggml_cgraph, Box<Context>), Error> {
    let bytes = graph::memory::overhead(steps.len(), false);
    // SAFETY: a context of its own memory.
    let mut context = unsafe { Context::new(bytes, null_mut(), true)? };
    let made = graph::memory::new(&mut context, steps.len(), false)?;
    // SAFETY: made just now, with room for the steps; the parts live in their buffers.
    unsafe {
        let g = &mut *made;
        for step in steps {
            let part = step.parts[device];
            graph::build::add_node(g, part)?;
            if let graph::hash::Found::Free(slot) = graph::hash::find(&g.visited_hash_set, part) {
                graph::hash::take(&mut g.visited_hash_set, slot, part);
                g.use_counts.add(slot).write(step.uses);
            }
        }
        g.uid = graph::next_uid();
    }
    Ok((made, context))
}

impl Work {
    /// Adds up the parts of a step, in the order of the devices, and hands the sum to all.
    ///
    /// # Safety
    /// The parts are live, and computed.
    unsafe fn add_up(&mut self, step: &Step) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let bytes = shape::nbytes(unsafe { &*step.node });
        let n = bytes / size_of::<f32>();
        for list in [&mut self.sum, &mut self.addend] {
            list.clear();
            let room = list.try_reserve_exact(n);
            room.map_err(|_| Error::memory(format!("no memory for a sum of {n} values over devices")))?;
            list.resize(n, 0.0);
        }
        let rows = || tensor_data::Rows::range(0, bytes);
        let mut first = true;
        for &part in &step.parts {
            // SAFETY: as above.
            if unsafe { (*part).flags } & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
                continue;
            }
            let to = if first { &mut self.sum } else { &mut self.addend };
            // SAFETY: as above.
            unsafe { tensor_data::get(CALL, part, to.as_mut_ptr().cast(), rows()) };
            if !std::mem::take(&mut first) {
                self.sum.iter_mut().zip(&self.addend).for_each(|(s, a)| *s += a);
            }
        }
        for &part in &step.parts {
            // SAFETY: as above.
            unsafe { tensor_data::set(CALL, part, self.sum.as_ptr().cast(), rows()) };
        }
        Ok(())
    }
}
