//! What a kernel of this folder is, and how it becomes one of `ggml-ext.h`.

use super::api;
use super::operator::{Check, Node, Operator};
use crate::capi::guard;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a kernel ends early.
pub enum Stop {
    /// The status of a service, as the abort callback's.
    Status(ggml_status),
    /// A failure of its own, in words.
    Failed(ggml_status, String),
}

/// A kernel for single nodes of one operator on the CPU. Results have the same bits for any number of threads.
pub trait Kernel: 'static {
    /// What it computes.
    type Op: Operator;
    /// Its name on the device.
    const NAME: &'static CStr;
    /// What it cannot compute besides what cannot be built.
    fn supports(_node: &Node<Self::Op>) -> Check {
        Ok(())
    }
    /// Bytes of scratch memory.
    fn workspace(_node: &Node<Self::Op>) -> Check<usize> {
        Ok(0)
    }
    /// Computes the node into `dst`, which overlaps no source.
    ///
    /// # Safety
    /// Tensors have their data, and `dst` has as many bytes as the result.
    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop>;
}

/// One execution.
pub struct Run {
    backend: ggml_backend_t,
    workspace: *mut u8,
    workspace_size: usize,
}

/// An address that threads share; they write to places of their own.
#[derive(Clone, Copy)]
pub struct Shared(pub *mut u8);
// SAFETY: users of the address keep their places apart.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Where a tensor's data begin.
    pub fn of(t: &ggml_tensor) -> Self {
        Shared(t.data.cast())
    }

    /// So many bytes further on.
    pub fn at(self, bytes: usize) -> Self {
        Shared(self.0.wrapping_add(bytes))
    }

    /// As a pointer to elements.
    pub fn cast<T>(self) -> *mut T {
        self.0.cast()
    }
}

impl Run {
    /// That of the library.
    ///
    /// # Safety
    /// It is one.
    pub unsafe fn of(run: &ggml_ext_run) -> Self {
        let workspace = match run.workspace.is_null() {
            true => std::ptr::null_mut(),
            // SAFETY: the library's buffer.
            false => unsafe { api::ggml_backend_buffer_get_base(run.workspace) },
        };
        let workspace_size = if workspace.is_null() { 0 } else { run.workspace_size };
        Run { backend: run.backend, workspace: workspace.cast(), workspace_size }
    }

    /// Runs `f(ith, nth)` on each of the backend's threads. The abort callback is asked first.
    pub fn parallel(&self, f: impl Fn(usize, usize) + Sync) -> Result<(), Stop> {
        self.try_parallel(|ith, nth| {
            f(ith, nth);
            Some(())
        })
    }

    /// The same; `None`: there was no memory for a few rows.
    pub fn try_parallel<F: Fn(usize, usize) -> Option<()> + Sync>(&self, f: F) -> Result<(), Stop> {
        let job = Job { f: &f, fault: AtomicBool::new(false), no_memory: AtomicBool::new(false) };
        let data = std::ptr::from_ref(&job).cast_mut().cast::<c_void>();
        // SAFETY: the service is back when all threads are, and the job lives until then.
        let status = unsafe { api::ggml_ext_cpu_parallel_v1(self.backend, Some(task::<F>), data) };
        if status != GGML_STATUS_SUCCESS {
            return Err(Stop::Status(status));
        }
        if job.fault.load(Ordering::Acquire) {
            return Err(Stop::Failed(GGML_STATUS_FAILED, "a fault inside the kernel".into()));
        }
        match job.no_memory.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Stop::Failed(GGML_STATUS_ALLOC_FAILED, "there is no memory for a few rows".into())),
        }
    }

    /// The scratch memory, when there are as many bytes.
    pub fn scratch(&self, bytes: usize) -> Result<Shared, Stop> {
        match bytes <= self.workspace_size && (bytes == 0 || !self.workspace.is_null()) {
            true => Ok(Shared(self.workspace)),
            false => {
                let text = format!("{bytes} bytes of scratch memory are needed, {} are there", self.workspace_size);
                Err(Stop::Failed(GGML_STATUS_FAILED, text))
            }
        }
    }
}

struct Job<'a, F> {
    f: &'a F,
    fault: AtomicBool,
    no_memory: AtomicBool,
}

unsafe extern "C" fn task<F: Fn(usize, usize) -> Option<()> + Sync>(ith: c_int, nth: c_int, data: *mut c_void) {
    // SAFETY: what `try_parallel` handed over.
    let job = unsafe { &*data.cast::<Job<F>>() };
    let run = || (job.f)(ith.max(0) as usize, nth.max(1) as usize);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Some(())) => {}
        Ok(None) => job.no_memory.store(true, Ordering::Release),
        Err(_) => job.fault.store(true, Ordering::Release),
    }
}

/// `n` zeros; `None`: there is no memory for them.
pub fn room<T: Clone + Default>(n: usize) -> Option<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n).ok()?;
    v.resize(n, T::default());
    Some(v)
}

/// The share of `n` pieces that is thread `ith`'s.
pub fn part(n: usize, ith: usize, nth: usize) -> std::ops::Range<usize> {
    n * ith / nth..n * (ith + 1) / nth
}

/// A kernel as it is registered.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The operator.
    pub op: &'static CStr,
    /// The kernel.
    pub name: &'static CStr,
    /// Its description.
    pub desc: fn() -> ggml_ext_kernel_desc,
}

impl Entry {
    /// That of `K`.
    pub const fn of<K: Kernel>() -> Self {
        Entry {
            op: K::Op::NAME,
            name: K::NAME,
            desc: || ggml_ext_kernel_desc {
                struct_size: size_of::<ggml_ext_kernel_desc>(),
                name: K::NAME.as_ptr(),
                op: GGML_OP_CUSTOM,
                op_name: K::Op::NAME.as_ptr(),
                priority: 0,
                match_op: GGML_OP_NONE,
                user_data: std::ptr::null_mut(),
                supports: Some(supports::<K>),
                preferred: None,
                prepare: Some(prepare::<K>),
                execute: Some(execute::<K>),
                destroy: None,
                r#match: None,
                optimize: None,
                scope: std::ptr::null_mut(),
            },
        }
    }
}

/// The node of a step of one.
///
/// # Safety
/// The step is the library's, for a node of the operator.
unsafe fn node<'a, K: Kernel>(step: *const ggml_ext_step) -> Check<Node<'a, K::Op>> {
    // SAFETY: the caller's promise.
    unsafe { Node::read(&**(*step).nodes) }
}

unsafe extern "C" fn supports<K: Kernel>(step: *const ggml_ext_step, _: *mut c_void) -> bool {
    guard("supports", || {
        // SAFETY: the library's step.
        let answer = unsafe { node::<K>(step) }.and_then(|node| K::supports(&node));
        answer.map_or_else(|text| api::refuse(&text), |()| true)
    })
}

/// Where `dst` goes first when it lies over a source, in the workspace behind `own` bytes, and bytes of that in all.
pub fn places(own: usize, dst: &ggml_tensor, overlap: bool) -> Check<(usize, usize)> {
    let large = || "the workspace is larger than memory can be".to_string();
    let at = own.checked_next_multiple_of(64).ok_or_else(large)?;
    let result = if overlap { shape::nbytes(dst) } else { 0 };
    Ok((at, at.checked_add(result).ok_or_else(large)?))
}

/// What `prepare` answers: bytes of the workspace, or why not.
///
/// # Safety
/// The structure is the library's.
pub unsafe fn prepared(out: *mut ggml_ext_prepared, places: Check<(usize, usize)>) -> ggml_status {
    match places {
        Ok((_, bytes)) => {
            // SAFETY: the caller's promise.
            unsafe { (*out).workspace_size = bytes };
            GGML_STATUS_SUCCESS
        }
        Err(text) => {
            api::refuse(&text);
            GGML_STATUS_FAILED
        }
    }
}

/// Computes `dst` by `f`, which has `own` bytes of the workspace to itself; a result that lies over a source is computed in the
/// workspace and copied.
///
/// # Safety
/// The tensor has its data. `f` is given memory for the bytes of it.
pub unsafe fn apart(
    run: &Run,
    dst: &ggml_tensor,
    own: usize,
    overlap: bool,
    f: impl FnOnce(Shared) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let to = Shared::of(dst);
    if !overlap {
        return f(to);
    }
    let (at, size) = places(own, dst, overlap).map_err(|text| Stop::Failed(GGML_STATUS_FAILED, text))?;
    let aside = run.scratch(size)?.at(at);
    f(aside)?;
    let bytes = shape::nbytes(dst);
    run.parallel(|ith, nth| {
        let mine = part(bytes, ith, nth);
        // SAFETY: the result's bytes, each of one thread; the workspace has as many behind those of the kernel.
        unsafe { to.at(mine.start).0.copy_from_nonoverlapping(aside.at(mine.start).0, mine.len()) };
    })
}

/// Elements of an F32 tensor lie where the processor takes them.
pub fn aligned(t: &ggml_tensor) -> Check {
    match t.r#type == GGML_TYPE_F32 && (!t.data.addr().is_multiple_of(4) || t.nb.iter().any(|nb| nb % 4 != 0)) {
        true => Err(format!("elements of '{}' do not lie at multiples of 4 bytes", shape::name(t))),
        false => Ok(()),
    }
}

/// Computes the node.
///
/// # Safety
/// Tensors have their data.
unsafe fn compute<K: Kernel>(node: &Node<K::Op>, run: &Run, overlap: bool) -> Result<(), Stop> {
    let failed = |text: String| Stop::Failed(GGML_STATUS_FAILED, text);
    node.srcs().iter().chain([&node.dst]).try_for_each(|t| aligned(t)).map_err(failed)?;
    let own = K::workspace(node).map_err(failed)?;
    // SAFETY: the caller's promise.
    unsafe { apart(run, node.dst, own, overlap, |dst| K::execute(node, run, dst)) }
}

unsafe extern "C" fn prepare<K: Kernel>(
    step: *const ggml_ext_step,
    out: *mut ggml_ext_prepared,
    _: *mut c_void,
) -> ggml_status {
    guard("prepare", || {
        // SAFETY: the library's step and structure.
        unsafe {
            let overlap = (*step).overlap != 0;
            prepared(out, node::<K>(step).and_then(|node| places(K::workspace(&node)?, node.dst, overlap)))
        }
    })
}

unsafe extern "C" fn execute<K: Kernel>(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    guard("execute", || {
        // SAFETY: the library's run, and its step.
        let (run, node, overlap) = unsafe { (&*run, node::<K>((*run).step), (*(*run).step).overlap != 0) };
        let node = node.map_err(|text| Stop::Failed(GGML_STATUS_FAILED, text));
        // SAFETY: the library gives tensors with their data.
        status(node.and_then(|node| unsafe { compute::<K>(&node, &Run::of(run), overlap) }))
    })
}

/// What `execute` answers.
pub fn status(result: Result<(), Stop>) -> ggml_status {
    match result {
        Ok(()) => GGML_STATUS_SUCCESS,
        Err(Stop::Status(status)) => status,
        Err(Stop::Failed(status, text)) => {
            api::refuse(&text);
            status
        }
    }
}
