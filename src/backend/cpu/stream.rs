//! A backend on the CPU: threads, scratch memory and an abort callback, kept from graph to graph.

use super::threadpool;
use crate::error::{self, Error};
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::exec::Abort;
use ggml_oxide_cpu::{Calls, Executor, GraphRef, Pool, Stop};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a CPU backend keeps. Callbacks of a graph that it computes may come back to it: what was set then counts from the next
/// graph on, and a second computation is refused.
pub struct Cpu {
    settings: Mutex<Settings>,
    busy: AtomicBool,
    work: UnsafeCell<Working>,
}

// SAFETY: `work` is used by whoever turned `busy` on.
unsafe impl Sync for Cpu {}

#[derive(Clone, Copy)]
struct Settings {
    n_threads: usize,
    /// Threads that the application lent.
    lent: ggml_threadpool_t,
    abort: Option<Abort>,
    /// Compute by the portable functions, node by node.
    plain: bool,
}

/// What one computation at a time uses.
struct Working {
    /// Threads of its own, made when a graph first needs them.
    own: Option<Pool>,
    executor: Executor,
}

/// The backend while it computes.
pub(super) struct Busy<'a> {
    cpu: &'a Cpu,
    settings: Settings,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.cpu.busy.store(false, Ordering::Release);
    }
}

static mut GUID: ggml_guid =
    [0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x6f, 0x78, 0x69, 0x64, 0x65, 0x2d, 0x63, 0x70, 0x75, 0x00, 0x01];

const IFACE: ggml_backend_i = ggml_backend_i {
    get_name: Some(name),
    free: Some(free),
    graph_plan_create: Some(super::plan::create),
    graph_plan_free: Some(super::plan::free),
    graph_plan_update: Some(super::plan::update),
    graph_plan_compute: Some(super::plan::compute),
    graph_compute: Some(graph_compute),
    ..crate::backend::NO_FUNCTIONS
};

impl Cpu {
    /// A new backend; freed through its table.
    pub fn new_backend() -> ggml_backend_t {
        let n_threads = super::DEFAULT_N_THREADS as usize;
        let cpu = Box::new(Cpu {
            settings: Mutex::new(Settings { n_threads, lent: std::ptr::null_mut(), abort: None, plain: false }),
            busy: AtomicBool::new(false),
            work: UnsafeCell::new(Working { own: None, executor: Executor::new() }),
        });
        Box::into_raw(Box::new(ggml_backend {
            guid: &raw mut GUID,
            iface: IFACE,
            device: super::device_ptr(),
            context: Box::into_raw(cpu).cast(),
        }))
    }

    /// What `backend` keeps; `None` when it is not one of ours.
    ///
    /// # Safety
    /// `backend` is NULL, or live during the reference's life.
    pub unsafe fn of<'a>(backend: ggml_backend_t) -> Option<&'a Cpu> {
        // SAFETY: the caller's promise; the context of our own backends is a `Cpu`.
        unsafe {
            let backend = backend.as_ref()?;
            let ours = std::ptr::eq(backend.guid, &raw mut GUID);
            if ours {
                backend.context.cast::<Cpu>().as_ref()
            } else {
                None
            }
        }
    }

    fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the number of threads, 1 to `GGML_MAX_N_THREADS`.
    pub fn set_n_threads(&self, n: usize) {
        let n = n.clamp(1, GGML_MAX_N_THREADS);
        self.set(|s| s.n_threads = n);
        if let Some(busy) = self.begin() {
            // SAFETY: `busy`; no other reference is alive on this thread.
            let own = unsafe { &mut (*busy.cpu.work.get()).own };
            own.take_if(|pool| pool.n_threads() != n);
        }
    }

    /// Uses the application's pool, or for NULL its own again. The former pool is paused.
    ///
    /// # Safety
    /// `pool` is NULL, or live until another one is set and no graph that was begun before is being computed.
    pub unsafe fn set_threadpool(&self, pool: ggml_threadpool_t) {
        let mut former = std::ptr::null_mut();
        self.set(|s| former = std::mem::replace(&mut s.lent, pool));
        if pool != former {
            // SAFETY: the promise for the pool set before.
            if let Some(former) = unsafe { threadpool::get(former) } {
                former.pause();
            }
        }
    }

    /// Asks `callback` before each node.
    pub fn set_abort(&self, callback: ggml_abort_callback, data: *mut c_void) {
        self.set(|s| s.abort = callback.map(|f| (f, data)));
    }

    /// Computes by the portable functions, node by node, from the next graph on; or as fast as the machine can again.
    pub fn set_plain(&self, plain: bool) {
        self.set(|s| s.plain = plain);
    }

    /// Makes the backend the calling thread's; `None` while it computes.
    pub(super) fn begin(&self) -> Option<Busy<'_>> {
        let free = self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then(|| Busy { cpu: self, settings: self.settings() })
    }

    /// Where the executor is, as [`ggml_oxide_cpu::lead::leads`] takes it.
    pub(super) fn executor(&self) -> *const Executor {
        // SAFETY: an address is taken; nothing is read.
        unsafe { &raw const (*self.work.get()).executor }
    }
}

impl Busy<'_> {
    /// Whether [`Cpu::set_plain`] was set when the computation began.
    pub(super) fn plain(&self) -> bool {
        self.settings.plain
    }

    /// The callback that was set when the computation began.
    pub(super) fn abort(&self) -> Option<Abort> {
        self.settings.abort
    }

    /// The threads to compute on, how many of them, and the executor; an error, reported under the name of the call, when the
    /// system gives no threads.
    pub(super) fn parts(&mut self, call: &str) -> Result<(&Pool, usize, &mut Executor), ggml_status> {
        // SAFETY: `busy` is ours, and the reference ends before this borrow of it does.
        let work = unsafe { &mut *self.cpu.work.get() };
        let n = self.settings.n_threads;
        work.executor.set_plain(self.settings.plain);
        // SAFETY: `set_threadpool`'s promise.
        if let Some(lent) = unsafe { threadpool::get(self.settings.lent) } {
            return Ok((lent, n, &mut work.executor));
        }
        let pool = match work.own.take_if(|pool| pool.n_threads() == n) {
            Some(pool) => work.own.insert(pool),
            None => match Pool::new(n) {
                Ok(pool) => work.own.insert(pool),
                Err(text) => {
                    error::fail(GGML_EXT_CODE_OUT_OF_MEMORY, format!("{call}: {text}"));
                    return Err(GGML_STATUS_ALLOC_FAILED);
                }
            },
        };
        Ok((pool, n, &mut work.executor))
    }
}

/// Computes a graph in which `calls` stand for some of the nodes; a failure is reported. `None`, and nothing is done, when the
/// backend is not one of ours. While a call runs, the backend can be asked and set, and
/// [`parallel`](super::parallel::parallel) shares the call's work.
///
/// # Safety
/// `backend` is NULL or live. `graph` is NULL or live, and so are its tensors and, but for nodes of calls, their storage.
pub unsafe fn compute_calls(backend: ggml_backend_t, graph: *const ggml_cgraph, calls: Calls) -> Option<ggml_status> {
    // SAFETY: the caller's promise.
    let cpu = unsafe { Cpu::of(backend) }?;
    let Some(mut busy) = cpu.begin() else {
        error::fail(GGML_EXT_CODE_RE_ENTERED, format!("{CALL}: {BUSY}"));
        return Some(GGML_STATUS_FAILED);
    };
    let abort = busy.abort();
    Some(match busy.parts(CALL) {
        // SAFETY: the caller's promise.
        Ok((pool, n, executor)) => unsafe { run(executor, calls, pool, n, abort, graph, None) },
        Err(status) => status,
    })
}

const CALL: &str = "ggml_backend_graph_compute";
/// Why a second computation is refused.
pub const BUSY: &str =
    "the backend is computing; neither a callback of what it computes nor another thread can begin more";

/// Computes a graph on `pool`; a failure is reported.
///
/// # Safety
/// `graph` is NULL or live, and so are its tensors and their storage.
pub unsafe fn compute(
    executor: &mut Executor,
    pool: &Pool,
    n_threads: usize,
    abort: Option<Abort>,
    graph: *const ggml_cgraph,
    work: Option<&mut [u8]>,
) -> ggml_status {
    // SAFETY: the caller's promise.
    unsafe { run(executor, Calls::NONE, pool, n_threads, abort, graph, work) }
}

/// # Safety
/// As [`compute`]; nodes of calls need no storage.
unsafe fn run(
    executor: &mut Executor,
    calls: Calls,
    pool: &Pool,
    n_threads: usize,
    abort: Option<Abort>,
    graph: *const ggml_cgraph,
    work: Option<&mut [u8]>,
) -> ggml_status {
    // SAFETY: the caller's promise.
    let Some(g) = (unsafe { graph.as_ref() }) else {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: the graph must not be NULL"));
        return GGML_STATUS_FAILED;
    };
    // SAFETY: as above.
    let uses = |t: *const ggml_tensor| unsafe { graph::use_count(g, t) };
    // SAFETY: as above.
    let nodes = unsafe { graph::nodes(g) };
    let uses: Option<&dyn Fn(*const ggml_tensor) -> i32> = if graph::has_use_counts(g) { Some(&uses) } else { None };
    match executor.compute_with(&GraphRef { nodes, uses }, calls, pool, n_threads, abort, work) {
        Ok(()) => GGML_STATUS_SUCCESS,
        Err(stop) => failed(stop),
    }
}

/// Reports why a graph stopped, and answers with its status.
pub fn failed(stop: Stop) -> ggml_status {
    match stop {
        Stop::Aborted => GGML_STATUS_ABORTED,
        Stop::NoMemory(bytes) => {
            error::report(&Error::memory(format!("{CALL}: no memory for {bytes} bytes of scratch")));
            GGML_STATUS_ALLOC_FAILED
        }
        Stop::Entered => {
            error::fail(
                GGML_EXT_CODE_RE_ENTERED,
                format!("{CALL}: the calling thread computes on the same pool of threads already"),
            );
            GGML_STATUS_FAILED
        }
        Stop::Status { node, status, text } => {
            if !text.is_empty() {
                error::report_at(&Error::new(GGML_EXT_CODE_CALLBACK, format!("{CALL}: {text}")), node);
            }
            ggml_status(status)
        }
        Stop::Failed { node, text } => {
            // SAFETY: a node of the caller's graph, or NULL; it and its sources are live.
            let code = if unsafe { lacks_data(node) } { GGML_EXT_CODE_NOT_ALLOCATED } else { GGML_EXT_CODE_NO_KERNEL };
            let error = Error::new(code, format!("{CALL}: {text}"));
            error::report_at(&error, node);
            GGML_STATUS_FAILED
        }
    }
}

/// Whether `node`, or one of its sources, has elements but no data.
///
/// # Safety
/// `node` is NULL or live, and so are its sources.
unsafe fn lacks_data(node: *const ggml_tensor) -> bool {
    // SAFETY: the caller's promise.
    let lacks = |t: *const ggml_tensor| unsafe {
        t.as_ref().is_some_and(|t| {
            t.data.is_null() && !crate::tensor::poison::is_poisoned(t) && ggml_oxide_shape::nbytes(t) > 0
        })
    };
    // SAFETY: as above.
    unsafe { node.as_ref() }.is_some_and(|n| lacks(n) || n.src.iter().any(|&s| lacks(s)))
}

unsafe extern "C" fn name(_: ggml_backend_t) -> *const c_char {
    c"CPU".as_ptr()
}

unsafe extern "C" fn free(backend: ggml_backend_t) {
    // SAFETY: as `graph_compute`.
    if unsafe { Cpu::of(backend) }.is_some_and(|cpu| cpu.busy.load(Ordering::Relaxed)) {
        // From a callback of a graph that it computes, say: better kept for ever than gone under the graph.
        error::fail(GGML_EXT_CODE_RE_ENTERED, "ggml_backend_free: the backend is computing; it is not freed");
        return;
    }
    // SAFETY: made by `new_backend`; nothing uses it any more.
    unsafe {
        let backend = Box::from_raw(backend);
        drop(Box::from_raw(backend.context.cast::<Cpu>()));
    }
}

unsafe extern "C" fn graph_compute(backend: ggml_backend_t, graph: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: called with a backend made by `new_backend` and a live graph.
    unsafe { compute_calls(backend, graph, Calls::NONE) }.unwrap_or(GGML_STATUS_FAILED)
}
