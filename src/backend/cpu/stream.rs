//! A backend on the CPU: threads, scratch memory and an abort callback, kept from graph to graph.

use super::threadpool;
use crate::error::{self, Error};
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::exec::Abort;
use ggml_oxide_cpu::{Executor, GraphRef, Pool, Stop};
use std::ffi::{c_char, c_void};

/// What a CPU backend keeps.
pub struct Cpu {
    n_threads: usize,
    /// Threads of its own, made when a graph first needs them.
    own: Option<Pool>,
    /// Threads that the application lent.
    lent: ggml_threadpool_t,
    executor: Executor,
    abort: Option<Abort>,
}

static mut GUID: ggml_guid =
    [0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x6f, 0x78, 0x69, 0x64, 0x65, 0x2d, 0x63, 0x70, 0x75, 0x00, 0x01];

const IFACE: ggml_backend_i = ggml_backend_i {
    get_name: Some(name),
    free: Some(free),
    set_tensor_async: None,
    get_tensor_async: None,
    set_tensor_2d_async: None,
    get_tensor_2d_async: None,
    cpy_tensor_async: None,
    synchronize: None,
    graph_plan_create: None,
    graph_plan_free: None,
    graph_plan_update: None,
    graph_plan_compute: None,
    graph_compute: Some(graph_compute),
    event_record: None,
    event_wait: None,
    graph_optimize: None,
};

impl Cpu {
    /// A new backend; freed through its table.
    pub fn new_backend() -> ggml_backend_t {
        let cpu = Box::new(Cpu {
            n_threads: super::DEFAULT_N_THREADS as usize,
            own: None,
            lent: std::ptr::null_mut(),
            executor: Executor::new(),
            abort: None,
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
    /// `backend` is NULL or live, and nothing else uses it during the reference's life.
    pub unsafe fn of<'a>(backend: ggml_backend_t) -> Option<&'a mut Cpu> {
        // SAFETY: the caller's promise; the context of our own backends is a `Cpu`.
        unsafe {
            let backend = backend.as_ref()?;
            let ours = std::ptr::eq(backend.guid, &raw mut GUID);
            if ours {
                backend.context.cast::<Cpu>().as_mut()
            } else {
                None
            }
        }
    }

    /// Sets the number of threads, 1 to `GGML_MAX_N_THREADS`.
    pub fn set_n_threads(&mut self, n: usize) {
        let n = n.clamp(1, GGML_MAX_N_THREADS);
        if n != self.n_threads {
            self.n_threads = n;
            self.own = None;
        }
    }

    /// Uses the application's pool, or for NULL its own again. The former pool is paused.
    ///
    /// # Safety
    /// `pool` is NULL or live until another one is set.
    pub unsafe fn set_threadpool(&mut self, pool: ggml_threadpool_t) {
        if pool != self.lent {
            // SAFETY: the promise for the pool set before.
            if let Some(former) = unsafe { threadpool::get(self.lent) } {
                former.pause();
            }
        }
        self.lent = pool;
    }

    /// Asks `callback` before each node.
    pub fn set_abort(&mut self, callback: ggml_abort_callback, data: *mut c_void) {
        self.abort = callback.map(|f| (f, data));
    }

    fn compute(&mut self, graph: *mut ggml_cgraph) -> ggml_status {
        // SAFETY: `set_threadpool`'s promise.
        let lent = unsafe { threadpool::get(self.lent) };
        let pool = match (lent, &mut self.own) {
            (Some(pool), _) => pool,
            (None, Some(pool)) => &*pool,
            (None, own @ None) => match Pool::new(self.n_threads) {
                Ok(pool) => own.insert(pool),
                Err(text) => {
                    error::fail(GGML_EXT_CODE_OUT_OF_MEMORY, format!("ggml_backend_graph_compute: {text}"));
                    return GGML_STATUS_ALLOC_FAILED;
                }
            },
        };
        // SAFETY: the caller of `graph_compute` hands over a live graph whose tensors are live.
        unsafe { compute(&mut self.executor, pool, self.n_threads, self.abort, graph, None) }
    }
}

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
    let Some(g) = (unsafe { graph.as_ref() }) else {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_backend_graph_compute: the graph must not be NULL");
        return GGML_STATUS_FAILED;
    };
    // SAFETY: as above.
    let uses = |t: *const ggml_tensor| unsafe { graph::use_count(g, t) };
    // SAFETY: as above.
    let nodes = unsafe { graph::nodes(g) };
    let uses: Option<&dyn Fn(*const ggml_tensor) -> i32> = if graph::has_use_counts(g) { Some(&uses) } else { None };
    match executor.compute(&GraphRef { nodes, uses }, pool, n_threads, abort, work) {
        Ok(()) => GGML_STATUS_SUCCESS,
        Err(stop) => failed(stop),
    }
}

/// Reports why a graph stopped, and answers with its status.
pub fn failed(stop: Stop) -> ggml_status {
    match stop {
        Stop::Aborted => GGML_STATUS_ABORTED,
        Stop::NoMemory(bytes) => {
            error::report(&Error::memory(format!(
                "ggml_backend_graph_compute: no memory for {bytes} bytes of scratch"
            )));
            GGML_STATUS_ALLOC_FAILED
        }
        Stop::Failed { node, text } => {
            // SAFETY: a node of the caller's graph, or NULL; it and its sources are live.
            let code = if unsafe { lacks_data(node) } { GGML_EXT_CODE_NOT_ALLOCATED } else { GGML_EXT_CODE_NO_KERNEL };
            let error = Error::new(code, format!("ggml_backend_graph_compute: {text}"));
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
    // SAFETY: made by `new_backend`; nothing uses it any more.
    unsafe {
        let backend = Box::from_raw(backend);
        drop(Box::from_raw(backend.context.cast::<Cpu>()));
    }
}

unsafe extern "C" fn graph_compute(backend: ggml_backend_t, graph: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: called with a backend made by `new_backend`, from one thread at a time.
    unsafe { Cpu::of(backend) }.map_or(GGML_STATUS_FAILED, |cpu| cpu.compute(graph))
}
