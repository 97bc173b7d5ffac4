//! Work of an extension on a backend's own threads.

use super::stream::{Cpu, BUSY};
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::lead::{self, Refused};
use std::ffi::{c_int, c_void};

const CALL: &str = "ggml_ext_cpu_parallel_v1";

fn failed(code: ggml_ext_code, text: &str) -> ggml_status {
    error::report(&Error::new(code, format!("{CALL}: {text}")));
    GGML_STATUS_FAILED
}

/// Runs `task(ith, nth, user_data)` on all threads of the backend, `ith` 0 on the calling one, and returns when all are done. In a
/// call of a graph that the backend computes on this thread, those are the threads of that graph; while it computes nothing, those
/// it is set to. Its abort callback is asked first. Otherwise, as from within a task: an error.
///
/// # Safety
/// `backend` is NULL or live. `task` may be called with these arguments from several threads at once.
pub unsafe fn parallel(backend: ggml_backend_t, task: ggml_ext_cpu_task_t, user_data: *mut c_void) -> ggml_status {
    let Some(task) = task else { return failed(GGML_EXT_CODE_NULL_ARGUMENT, "task must not be NULL") };
    // SAFETY: the caller's promise.
    let Some(cpu) = (unsafe { Cpu::of(backend) }) else {
        return failed(GGML_EXT_CODE_BAD_ARGUMENT, "not a CPU backend of this library");
    };
    let data = user_data.expose_provenance();
    let task = |ith: usize, nth: usize| {
        // SAFETY: the caller's promise; the number of threads is at most GGML_MAX_N_THREADS.
        unsafe { task(ith as c_int, nth as c_int, std::ptr::with_exposed_provenance_mut(data)) }
    };
    let done = if lead::leads(cpu.executor()) {
        lead::parallel(&task)
    } else {
        let Some(mut busy) = cpu.begin() else { return failed(GGML_EXT_CODE_RE_ENTERED, BUSY) };
        // SAFETY: the callback takes the argument that it was set with.
        if busy.abort().is_some_and(|(callback, data)| unsafe { callback(data) }) {
            return GGML_STATUS_ABORTED;
        }
        match busy.parts(CALL) {
            Ok((pool, n, _)) => lead::on_pool(pool, n, &task),
            Err(status) => return status,
        }
    };
    match done {
        Ok(()) => GGML_STATUS_SUCCESS,
        Err(Refused::Aborted) => GGML_STATUS_ABORTED,
        Err(Refused::Outside) => {
            failed(GGML_EXT_CODE_RE_ENTERED, "the backend computes a node that is not an extension's on this thread")
        }
        Err(Refused::Nested) => {
            failed(GGML_EXT_CODE_RE_ENTERED, "the calling thread runs a task, or a graph, on these threads already")
        }
        Err(Refused::Panicked) => failed(GGML_EXT_CODE_CALLBACK, "a task panicked"),
    }
}
