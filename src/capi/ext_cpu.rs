//! Entry points of ggml-ext.h: services of the CPU. Programs that load the library late find them by
//! `ggml_backend_reg_get_proc_address`.

use crate::backend::cpu;
use crate::entry;
use ggml_oxide_abi::*;
use std::ffi::c_void;

entry! {
    /// Runs `task(ith, nth, user_data)` on each thread of a CPU backend, `ith` from 0 (the calling thread) to `nth - 1`, all at the same
    /// time, and returns when all are done. In `execute` these are the threads that compute the graph, so no second pool is made; they
    /// call nothing of the backend while they run the task. Outside of any computation they are those the backend is set to. The
    /// backend's abort callback is asked first: when it says stop, no task runs and the answer is `GGML_STATUS_ABORTED`.
    /// `GGML_STATUS_FAILED` with an error: `task` is NULL, `backend` is no CPU backend of this library, or it computes and the call does
    /// not come from the thread that is in `execute`; a task cannot share out again.
    pub fn ggml_ext_cpu_parallel_v1(backend: ggml_backend_t, task: ggml_ext_cpu_task_t, user_data: *mut c_void) -> ggml_status {
        cpu::parallel(backend, task, user_data)
    }
}
