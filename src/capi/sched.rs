//! Entry points of the scheduler in ggml-backend.h.

use super::graph::or_report;
use super::Fallback;
use crate::backend::{Backend, Buffer, Buft};
use crate::entry;
use crate::error::Error;
use crate::sched::{compare, Sched};
use crate::tensor::Context;
use ggml_oxide_abi::*;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

impl Fallback for ggml_backend_graph_copy {
    fn fallback() -> Self {
        ggml_backend_graph_copy {
            buffer: null_mut(),
            ctx_allocated: null_mut(),
            ctx_unallocated: null_mut(),
            graph: null_mut(),
        }
    }
}

/// What a `ggml_backend_sched_t` points to.
struct Handle {
    /// A call is under way. Callbacks run inside of calls: they find the scheduler taken.
    busy: AtomicBool,
    /// Constant facts, which callbacks may ask for.
    backends: Vec<Backend>,
    n_copies: usize,
    sched: UnsafeCell<Sched>,
}

/// A scheduler in use by this call.
pub(super) struct InUse<'a>(&'a Handle);

impl std::ops::Deref for InUse<'_> {
    type Target = Sched;
    fn deref(&self) -> &Sched {
        // SAFETY: `some` gave the scheduler to this call alone.
        unsafe { &*self.0.sched.get() }
    }
}

impl std::ops::DerefMut for InUse<'_> {
    fn deref_mut(&mut self) -> &mut Sched {
        // SAFETY: as above.
        unsafe { &mut *self.0.sched.get() }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

unsafe fn handle<'a>(sched: ggml_backend_sched_t) -> Result<&'a Handle, Error> {
    // SAFETY: the contract of the entry points: a handle is what `ggml_backend_sched_new` made.
    unsafe { sched.cast::<Handle>().as_ref() }.ok_or_else(|| Error::null("scheduler"))
}

/// The scheduler, for this call alone. An error when a call is under way: a callback came back, or another thread is in it.
pub(super) unsafe fn some<'a>(sched: ggml_backend_sched_t) -> Result<InUse<'a>, Error> {
    // SAFETY: the contract of the entry points.
    let handle = unsafe { handle(sched) }?;
    if handle.busy.swap(true, Ordering::Acquire) {
        let text = "the scheduler is at work: a callback, or another thread, must not use it meanwhile";
        return Err(Error::new(GGML_EXT_CODE_RE_ENTERED, text));
    }
    Ok(InUse(handle))
}

unsafe fn backend(backend: ggml_backend_t) -> Result<Backend, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { Backend::from_raw(backend) }.ok_or_else(|| Error::null("backend"))
}

/// The status for a computation that did not begin or broke off.
fn status(call: &str, result: Result<ggml_status, Error>) -> ggml_status {
    match result {
        Ok(status) => status,
        Err(e) => {
            let status = e.status;
            or_report::<()>(call, Err(e));
            status
        }
    }
}

unsafe fn new(
    backends: *mut ggml_backend_t,
    bufts: *mut ggml_backend_buffer_type_t,
    n_backends: c_int,
    parallel: bool,
    op_offload: bool,
) -> Result<ggml_backend_sched_t, Error> {
    let n = usize::try_from(n_backends).unwrap_or(0);
    if backends.is_null() {
        return Err(Error::null("list of backends"));
    }
    // SAFETY: the contract of the entry points.
    unsafe {
        let list: Option<Vec<_>> = (0..n).map(|i| Backend::from_raw(*backends.add(i))).collect();
        let list = list.ok_or_else(|| Error::null("backend"))?;
        let memory = match bufts.is_null() {
            true => None,
            false => {
                let list: Option<Vec<_>> = (0..n).map(|i| Buft::from_raw(*bufts.add(i))).collect();
                Some(list.ok_or_else(|| Error::null("buffer type"))?)
            }
        };
        let sched = Sched::new(&list, memory.as_deref(), parallel, op_offload)?;
        let (busy, n_copies) = (AtomicBool::new(false), sched.n_copies());
        let handle = Handle { busy, backends: list, n_copies, sched: UnsafeCell::new(sched) };
        Ok(Box::into_raw(Box::new(handle)).cast())
    }
}

entry! {
    /// A scheduler over `n_backends` backends, the first of highest priority, the last that of the host. `bufts`: the memory that each
    /// works in, NULL for their own. `parallel`: graphs may run one behind the other, with copies of their inputs. `op_offload`: backends
    /// may take operators whose weights lie with the host. `graph_size` is a hint. Freed by `ggml_backend_sched_free`.
    pub fn ggml_backend_sched_new(
        backends: *mut ggml_backend_t,
        bufts: *mut ggml_backend_buffer_type_t,
        n_backends: c_int,
        graph_size: usize,
        parallel: bool,
        op_offload: bool,
    ) -> ggml_backend_sched_t {
        let _ = graph_size;
        or_report("ggml_backend_sched_new", new(backends, bufts, n_backends, parallel, op_offload))
    }

    /// Frees a scheduler and its buffers; the backends stay. NULL is ignored.
    pub fn ggml_backend_sched_free(sched: ggml_backend_sched_t) {
        if !sched.is_null() && or_report("ggml_backend_sched_free", some(sched).map(|_| true)) {
            drop(Box::from_raw(sched.cast::<Handle>()));
        }
    }

    /// Writes to `sizes`, for each backend, the bytes of the buffer that `ggml_backend_sched_reserve` would allocate; zeros on failure.
    pub fn ggml_backend_sched_reserve_size(sched: ggml_backend_sched_t, measure_graph: *mut ggml_cgraph, sizes: *mut usize) {
        or_report("ggml_backend_sched_reserve_size", some(sched).and_then(|mut s| {
            if sizes.is_null() {
                return Err(Error::null("list of sizes"));
            }
            sizes.write_bytes(0, s.backends().len());
            let found = s.sizes(measure_graph)?;
            sizes.copy_from(found.as_ptr(), found.len());
            Ok(())
        }))
    }

    /// Allocates buffers for `measure_graph`, whose tensors get no places. False: the memory cannot be had.
    pub fn ggml_backend_sched_reserve(sched: ggml_backend_sched_t, measure_graph: *mut ggml_cgraph) -> bool {
        or_report("ggml_backend_sched_reserve", some(sched).and_then(|mut s| s.reserve(measure_graph)).map(|()| true))
    }

    /// Backends of the scheduler.
    pub fn ggml_backend_sched_get_n_backends(sched: ggml_backend_sched_t) -> c_int {
        or_report("ggml_backend_sched_get_n_backends", handle(sched).map(|h| h.backends.len() as c_int))
    }

    /// Backend number `i`, or NULL for a number out of range.
    pub fn ggml_backend_sched_get_backend(sched: ggml_backend_sched_t, i: c_int) -> ggml_backend_t {
        or_report("ggml_backend_sched_get_backend", handle(sched).and_then(|h| {
            let found = usize::try_from(i).ok().and_then(|i| h.backends.get(i));
            found.map(|b| b.as_raw()).ok_or_else(|| Error::argument(format!("there is no backend {i}")))
        }))
    }

    /// Splits of the last graph.
    pub fn ggml_backend_sched_get_n_splits(sched: ggml_backend_sched_t) -> c_int {
        or_report("ggml_backend_sched_get_n_splits", some(sched).map(|s| s.n_splits() as c_int))
    }

    /// Copies of the inputs: 1, or more for a parallel scheduler.
    pub fn ggml_backend_sched_get_n_copies(sched: ggml_backend_sched_t) -> c_int {
        or_report("ggml_backend_sched_get_n_copies", handle(sched).map(|h| h.n_copies as c_int))
    }

    /// The memory that `backend` works in.
    pub fn ggml_backend_sched_get_buffer_type(sched: ggml_backend_sched_t, backend: ggml_backend_t) -> ggml_backend_buffer_type_t {
        or_report("ggml_backend_sched_get_buffer_type", some(sched).and_then(|s| {
            let number = s.number_of(self::backend(backend)?)?;
            Ok(s.buft(number).map_or(null_mut(), Buft::as_raw))
        }))
    }

    /// Bytes of the buffer for graphs on `backend`; 0 when it shares that of an earlier one.
    pub fn ggml_backend_sched_get_buffer_size(sched: ggml_backend_sched_t, backend: ggml_backend_t) -> usize {
        or_report("ggml_backend_sched_get_buffer_size", some(sched).and_then(|s| {
            let number = s.number_of(self::backend(backend)?)?;
            Ok(s.buffer_size(number))
        }))
    }

    /// Lets `node` be computed by `backend`, until the next reset.
    pub fn ggml_backend_sched_set_tensor_backend(sched: ggml_backend_sched_t, node: *mut ggml_tensor, backend: ggml_backend_t) {
        or_report("ggml_backend_sched_set_tensor_backend", some(sched).and_then(|mut s| {
            let number = s.number_of(self::backend(backend)?)?;
            if node.is_null() {
                return Err(Error::null("tensor"));
            }
            s.pin(node, number);
            Ok(())
        }))
    }

    /// The backend of `node` in the graph at hand, or NULL.
    pub fn ggml_backend_sched_get_tensor_backend(sched: ggml_backend_sched_t, node: *mut ggml_tensor) -> ggml_backend_t {
        or_report("ggml_backend_sched_get_tensor_backend", some(sched).map(|s| s.backend_of(node).map_or(null_mut(), Backend::as_raw)))
    }

    /// Splits a graph without allocating it. Nodes read copies afterwards where they cannot reach their sources.
    pub fn ggml_backend_sched_split_graph(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) {
        or_report("ggml_backend_sched_split_graph", some(sched).and_then(|mut s| s.split(graph)))
    }

    /// Splits a graph and gives its tensors their places. Reset the scheduler between graphs.
    pub fn ggml_backend_sched_alloc_graph(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) -> bool {
        or_report("ggml_backend_sched_alloc_graph", some(sched).and_then(|mut s| s.prepare(graph)).map(|()| true))
    }

    /// Computes a graph, which is split and allocated first unless it was, and waits for it.
    pub fn ggml_backend_sched_graph_compute(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) -> ggml_status {
        const CALL: &str = "ggml_backend_sched_graph_compute";
        status(CALL, some(sched).and_then(|mut s| {
            let result = s.compute_async(graph);
            s.synchronize();
            result
        }))
    }

    /// As `ggml_backend_sched_graph_compute`, without waiting: results are there after `ggml_backend_sched_synchronize`.
    pub fn ggml_backend_sched_graph_compute_async(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) -> ggml_status {
        status("ggml_backend_sched_graph_compute_async", some(sched).and_then(|mut s| s.compute_async(graph)))
    }

    /// Waits for all backends.
    pub fn ggml_backend_sched_synchronize(sched: ggml_backend_sched_t) {
        or_report("ggml_backend_sched_synchronize", some(sched).map(|mut s| s.synchronize()))
    }

    /// Forgets the graph at hand and the backends chosen for tensors. Tensors of that graph have no data any more.
    pub fn ggml_backend_sched_reset(sched: ggml_backend_sched_t) {
        or_report("ggml_backend_sched_reset", some(sched).map(|mut s| s.reset()))
    }

    /// Sets who is asked about each node before it is computed, and shown those it wants to see; NULL: nobody.
    pub fn ggml_backend_sched_set_eval_callback(
        sched: ggml_backend_sched_t,
        callback: ggml_backend_sched_eval_callback,
        user_data: *mut c_void,
    ) {
        or_report("ggml_backend_sched_set_eval_callback", some(sched).map(|mut s| s.set_callback(callback, user_data)))
    }

    /// A copy of a graph, whose tensors have their data, in the memory of `backend`. Its buffer is NULL when it cannot be made.
    pub fn ggml_backend_graph_copy(backend: ggml_backend_t, graph: *mut ggml_cgraph) -> ggml_backend_graph_copy {
        or_report("ggml_backend_graph_copy", self::backend(backend).and_then(|b| {
            let copy = compare::copy_to(b, graph.as_ref().ok_or_else(|| Error::null("graph"))?)?;
            Ok(ggml_backend_graph_copy {
                buffer: copy.buffer.as_raw(),
                ctx_allocated: copy.owners.into_raw(),
                ctx_unallocated: copy.views.into_raw(),
                graph: copy.graph,
            })
        }))
    }

    /// Frees a copy of a graph.
    pub fn ggml_backend_graph_copy_free(copy: ggml_backend_graph_copy) {
        if let Some(buffer) = Buffer::from_raw(copy.buffer) {
            buffer.free();
        }
        drop((Context::from_raw(copy.ctx_allocated), Context::from_raw(copy.ctx_unallocated)));
    }

    /// Computes `graph` on `backend1` and a copy of it on `backend2`, and shows both results of each node, or, after the whole graph
    /// ran, of the `num_test_nodes` nodes in `test_nodes`. False: it could not be copied or computed.
    pub fn ggml_backend_compare_graph_backend(
        backend1: ggml_backend_t,
        backend2: ggml_backend_t,
        graph: *mut ggml_cgraph,
        callback: ggml_backend_eval_callback,
        user_data: *mut c_void,
        test_nodes: *const *const ggml_tensor,
        num_test_nodes: usize,
    ) -> bool {
        or_report("ggml_backend_compare_graph_backend", backend(backend1).and_then(|one| {
            let two = backend(backend2)?;
            let graph = graph.as_mut().ok_or_else(|| Error::null("graph"))?;
            let callback = callback.ok_or_else(|| Error::null("callback"))?;
            let wanted = match num_test_nodes {
                0 => &[],
                _ if test_nodes.is_null() => return Err(Error::null("list of nodes")),
                n => std::slice::from_raw_parts(test_nodes, n),
            };
            compare::compare(one, two, graph, wanted, |i, a, b| callback(i, a, b, user_data))?;
            Ok(true)
        }))
    }
}
