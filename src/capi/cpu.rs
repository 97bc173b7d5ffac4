//! Entry points of ggml-cpu.h: the CPU backend, pools of threads, graphs computed without a backend.

use crate::backend::cpu::{self, threadpool, Cpu};
use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Executor, Pool};
use std::ffi::{c_int, c_void};

impl super::Fallback for ggml_cplan {
    fn fallback() -> Self {
        ggml_cplan {
            work_size: 0,
            work_data: std::ptr::null_mut(),
            n_threads: 0,
            threadpool: std::ptr::null_mut(),
            abort_callback: None,
            abort_callback_data: std::ptr::null_mut(),
            use_ref: false,
        }
    }
}

impl super::Fallback for ggml_threadpool_params {
    fn fallback() -> Self {
        default_params(1)
    }
}

fn default_params(n_threads: c_int) -> ggml_threadpool_params {
    ggml_threadpool_params {
        cpumask: [false; GGML_MAX_N_THREADS],
        n_threads,
        prio: GGML_SCHED_PRIO_NORMAL,
        poll: 50,
        strict_cpu: false,
        paused: false,
    }
}

/// What a CPU backend keeps, or an error that names the call.
///
/// # Safety
/// As [`Cpu::of`].
unsafe fn cpu_of<'a>(backend: ggml_backend_t, call: &str) -> Option<&'a Cpu> {
    // SAFETY: the caller's promise.
    let cpu = unsafe { Cpu::of(backend) };
    if cpu.is_none() {
        error::report(&Error::argument(format!("{call}: not a CPU backend of this library")));
    }
    cpu
}

entry! {
    /// Parameters of a pool of `n_threads` threads without wishes.
    pub fn ggml_threadpool_params_default(n_threads: c_int) -> ggml_threadpool_params {
        default_params(n_threads)
    }
    /// As `ggml_threadpool_params_default`, in place.
    pub fn ggml_threadpool_params_init(p: *mut ggml_threadpool_params, n_threads: c_int) {
        if let Some(p) = p.as_mut() {
            *p = default_params(n_threads);
        }
    }
    /// Whether two pools would be alike.
    pub fn ggml_threadpool_params_match(p0: *const ggml_threadpool_params, p1: *const ggml_threadpool_params) -> bool {
        match (p0.as_ref(), p1.as_ref()) {
            (Some(a), Some(b)) => {
                (a.n_threads, a.prio, a.poll, a.strict_cpu) == (b.n_threads, b.prio, b.poll, b.strict_cpu) && a.cpumask == b.cpumask
            }
            _ => false,
        }
    }
    /// A pool of threads, or NULL with an error.
    pub fn ggml_threadpool_new(params: *mut ggml_threadpool_params) -> *mut ggml_threadpool {
        threadpool::create(params)
    }
    /// Ends a pool's threads; NULL is no change. No backend may use the pool any more.
    pub fn ggml_threadpool_free(threadpool: *mut ggml_threadpool) {
        threadpool::free(threadpool);
    }
    /// Threads of a pool.
    pub fn ggml_threadpool_get_n_threads(threadpool: *mut ggml_threadpool) -> c_int {
        threadpool::get(threadpool).map_or(0, |pool| pool.n_threads() as c_int)
    }
    /// Lets a pool's threads sleep until the next graph.
    pub fn ggml_threadpool_pause(threadpool: *mut ggml_threadpool) {
        if let Some(pool) = threadpool::get(threadpool) {
            pool.pause();
        }
    }
    /// Wakes a pool.
    pub fn ggml_threadpool_resume(threadpool: *mut ggml_threadpool) {
        if let Some(pool) = threadpool::get(threadpool) {
            pool.resume();
        }
    }

    /// What computing the graph needs. `n_threads` below 1 means the pool's number, without a pool 4.
    pub fn ggml_graph_plan(cgraph: *const ggml_cgraph, n_threads: c_int, threadpool: *mut ggml_threadpool) -> ggml_cplan {
        use super::Fallback;
        let n = match (n_threads, threadpool::get(threadpool)) {
            (n, _) if n >= 1 => n.min(GGML_MAX_N_THREADS as c_int),
            (_, Some(pool)) => pool.n_threads() as c_int,
            (_, None) => GGML_DEFAULT_N_THREADS,
        };
        let mut plan = ggml_cplan { n_threads: n, threadpool, ..ggml_cplan::fallback() };
        if let Some(graph) = cgraph.as_ref() {
            let nodes = crate::graph::nodes(graph);
            plan.work_size = ggml_oxide_cpu::work_size(&ggml_oxide_cpu::GraphRef { nodes, uses: None }, n as usize);
        }
        plan
    }
    /// Computes a graph on the CPU with a plan of `ggml_graph_plan`. Where the plan has a work size, the caller provides the memory.
    pub fn ggml_graph_compute(cgraph: *mut ggml_cgraph, cplan: *mut ggml_cplan) -> ggml_status {
        let Some(plan) = cplan.as_ref() else {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_graph_compute: cplan must not be NULL");
            return GGML_STATUS_FAILED;
        };
        if plan.n_threads < 1 || (plan.work_size > 0 && plan.work_data.is_null()) {
            error::report(&Error::argument("ggml_graph_compute: the plan needs at least one thread, and memory for its work size"));
            return GGML_STATUS_FAILED;
        }
        let made;
        let pool = match threadpool::get(plan.threadpool) {
            Some(pool) => pool,
            None => match Pool::new(plan.n_threads as usize) {
                Ok(pool) => {
                    made = pool;
                    &made
                }
                Err(text) => {
                    error::report(&Error::memory(format!("ggml_graph_compute: {text}")));
                    return GGML_STATUS_ALLOC_FAILED;
                }
            },
        };
        let work = (plan.work_size > 0).then(|| std::slice::from_raw_parts_mut(plan.work_data, plan.work_size));
        let abort = plan.abort_callback.map(|f| (f, plan.abort_callback_data));
        let mut executor = Executor::new();
        executor.set_plain(plan.use_ref);
        cpu::compute(&mut executor, pool, plan.n_threads as usize, abort, cgraph, work)
    }
    /// Computes a graph on the CPU. `ctx` is not needed and may be NULL.
    pub fn ggml_graph_compute_with_ctx(ctx: *mut ggml_context, cgraph: *mut ggml_cgraph, n_threads: c_int) -> ggml_status {
        let _ = ctx;
        match Pool::new(n_threads.max(1) as usize) {
            Ok(pool) => cpu::compute(&mut Executor::new(), &pool, pool.n_threads(), None, cgraph, None),
            Err(text) => {
                error::report(&Error::memory(format!("ggml_graph_compute_with_ctx: {text}")));
                GGML_STATUS_ALLOC_FAILED
            }
        }
    }

    /// Prepares the CPU's tables. Not needed: they are prepared on first use.
    pub fn ggml_cpu_init() {}
    /// A CPU backend with 4 threads.
    pub fn ggml_backend_cpu_init() -> ggml_backend_t {
        Cpu::new_backend()
    }
    /// Whether a backend is one of this library on the CPU.
    pub fn ggml_backend_is_cpu(backend: ggml_backend_t) -> bool {
        Cpu::of(backend).is_some()
    }
    /// Sets the threads of a CPU backend, 1 to 512; results do not depend on it.
    pub fn ggml_backend_cpu_set_n_threads(backend_cpu: ggml_backend_t, n_threads: c_int) {
        if let Some(cpu) = cpu_of(backend_cpu, "ggml_backend_cpu_set_n_threads") {
            cpu.set_n_threads(n_threads.max(1) as usize);
        }
    }
    /// Lends a CPU backend a pool; NULL takes it back. The pool stays the caller's.
    pub fn ggml_backend_cpu_set_threadpool(backend_cpu: ggml_backend_t, threadpool: ggml_threadpool_t) {
        if let Some(cpu) = cpu_of(backend_cpu, "ggml_backend_cpu_set_threadpool") {
            cpu.set_threadpool(threadpool);
        }
    }
    /// Sets what is asked before each node; when it answers true the computation ends with `GGML_STATUS_ABORTED`.
    pub fn ggml_backend_cpu_set_abort_callback(backend_cpu: ggml_backend_t, abort_callback: ggml_abort_callback, abort_callback_data: *mut c_void) {
        if let Some(cpu) = cpu_of(backend_cpu, "ggml_backend_cpu_set_abort_callback") {
            cpu.set_abort(abort_callback, abort_callback_data);
        }
    }
    /// Computes by portable code, each node by itself, from the next graph on: slower, and with results that the fast code is held
    /// against. False: as fast as the machine can.
    pub fn ggml_backend_cpu_set_use_ref(backend_cpu: ggml_backend_t, use_ref: bool) {
        if let Some(cpu) = cpu_of(backend_cpu, "ggml_backend_cpu_set_use_ref") {
            cpu.set_plain(use_ref);
        }
    }
    /// Finds out about the machine's memory, once for the process. Threads and results do not depend on it; where they run is
    /// said when the process is started, or by a pool's `cpumask`.
    pub fn ggml_numa_init(numa: ggml_numa_strategy) {
        if !(0..GGML_NUMA_STRATEGY_COUNT.0).contains(&numa.0) {
            error::report(&Error::argument(format!("ggml_numa_init: there is no strategy {}", numa.0)));
        } else if !cpu::numa::init(numa) {
            crate::log::line(GGML_LOG_LEVEL_WARN, "ggml_numa_init: it was called before; nothing changes");
        }
    }
    /// Whether `ggml_numa_init` found memory that is near to some processors only.
    pub fn ggml_is_numa() -> bool {
        cpu::numa::several()
    }
    /// The CPU's registry entry.
    pub fn ggml_backend_cpu_reg() -> ggml_backend_reg_t {
        cpu::reg().as_raw()
    }
}

entry! {
    /// 1 when the processor has SSE3, else 0.
    pub fn ggml_cpu_has_sse3() -> c_int {
        c_int::from(cpu::has("SSE3"))
    }
    /// 1 when the processor has SSSE3, else 0.
    pub fn ggml_cpu_has_ssse3() -> c_int {
        c_int::from(cpu::has("SSSE3"))
    }
    /// 1 when the processor has AVX, else 0.
    pub fn ggml_cpu_has_avx() -> c_int {
        c_int::from(cpu::has("AVX"))
    }
    /// 1 when the processor has AVX_VNNI, else 0.
    pub fn ggml_cpu_has_avx_vnni() -> c_int {
        c_int::from(cpu::has("AVX_VNNI"))
    }
    /// 1 when the processor has AVX2, else 0.
    pub fn ggml_cpu_has_avx2() -> c_int {
        c_int::from(cpu::has("AVX2"))
    }
    /// 1 when the processor has F16C, else 0.
    pub fn ggml_cpu_has_f16c() -> c_int {
        c_int::from(cpu::has("F16C"))
    }
    /// 1 when the processor has FMA, else 0.
    pub fn ggml_cpu_has_fma() -> c_int {
        c_int::from(cpu::has("FMA"))
    }
    /// 1 when the processor has BMI2, else 0.
    pub fn ggml_cpu_has_bmi2() -> c_int {
        c_int::from(cpu::has("BMI2"))
    }
    /// 1 when the processor has AVX512, else 0.
    pub fn ggml_cpu_has_avx512() -> c_int {
        c_int::from(cpu::has("AVX512"))
    }
    /// 1 when the processor has AVX512_VBMI, else 0.
    pub fn ggml_cpu_has_avx512_vbmi() -> c_int {
        c_int::from(cpu::has("AVX512_VBMI"))
    }
    /// 1 when the processor has AVX512_VNNI, else 0.
    pub fn ggml_cpu_has_avx512_vnni() -> c_int {
        c_int::from(cpu::has("AVX512_VNNI"))
    }
    /// 1 when the processor has AVX512_BF16, else 0.
    pub fn ggml_cpu_has_avx512_bf16() -> c_int {
        c_int::from(cpu::has("AVX512_BF16"))
    }
    /// 1 when the processor has NEON, else 0.
    pub fn ggml_cpu_has_neon() -> c_int {
        c_int::from(cpu::has("NEON"))
    }
    /// 1 when the processor has ARM_FMA, else 0.
    pub fn ggml_cpu_has_arm_fma() -> c_int {
        c_int::from(cpu::has("ARM_FMA"))
    }
    /// 1 when the processor has FP16_VA, else 0.
    pub fn ggml_cpu_has_fp16_va() -> c_int {
        c_int::from(cpu::has("FP16_VA"))
    }
    /// 1 when the processor has DOTPROD, else 0.
    pub fn ggml_cpu_has_dotprod() -> c_int {
        c_int::from(cpu::has("DOTPROD"))
    }
    /// 1 when the processor has MATMUL_INT8, else 0.
    pub fn ggml_cpu_has_matmul_int8() -> c_int {
        c_int::from(cpu::has("MATMUL_INT8"))
    }
    /// 1 when the processor has SVE, else 0.
    pub fn ggml_cpu_has_sve() -> c_int {
        c_int::from(cpu::has("SVE"))
    }
    /// 1 when the processor has AMX_INT8, else 0.
    pub fn ggml_cpu_has_amx_int8() -> c_int {
        c_int::from(cpu::has("AMX_INT8"))
    }
    /// 1 when the processor has SME, else 0.
    pub fn ggml_cpu_has_sme() -> c_int {
        c_int::from(cpu::has("SME"))
    }
    /// 1 when the processor has SME2, else 0.
    pub fn ggml_cpu_has_sme2() -> c_int {
        c_int::from(cpu::has("SME2"))
    }
    /// 1 when the processor has RISCV_V, else 0.
    pub fn ggml_cpu_has_riscv_v() -> c_int {
        c_int::from(cpu::has("RISCV_V"))
    }
    /// 1 when the processor has VSX, else 0.
    pub fn ggml_cpu_has_vsx() -> c_int {
        c_int::from(cpu::has("VSX"))
    }
    /// 1 when the processor has VXE, else 0.
    pub fn ggml_cpu_has_vxe() -> c_int {
        c_int::from(cpu::has("VXE"))
    }
    /// 1 when the processor has WASM_SIMD, else 0.
    pub fn ggml_cpu_has_wasm_simd() -> c_int {
        c_int::from(cpu::has("WASM_SIMD"))
    }
    /// 0: products of matrices are this library's own, and nothing in it is llamafile's.
    pub fn ggml_cpu_has_llamafile() -> c_int {
        0
    }
    /// Bytes of a vector of SVE; 0 where there is none, and where its kernels are not used.
    pub fn ggml_cpu_get_sve_cnt() -> c_int {
        0
    }
    /// Bytes of a vector of RISC-V's V; 0 where there is none, and where its kernels are not used.
    pub fn ggml_cpu_get_rvv_vlen() -> c_int {
        0
    }
}
