//! Pools of threads as C code holds them.

use crate::error::{self, Error};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::Pool;

/// A new pool; NULL, reported, when the parameters make no sense or the system has no more threads.
///
/// # Safety
/// `params` is NULL or points to live parameters.
pub unsafe fn create(params: *const ggml_threadpool_params) -> ggml_threadpool_t {
    const CALL: &str = "ggml_threadpool_new";
    // SAFETY: the caller's promise.
    let Some(params) = (unsafe { params.as_ref() }) else {
        error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{CALL}: params must not be NULL"));
        return std::ptr::null_mut();
    };
    if params.n_threads < 1 || params.n_threads as usize > GGML_MAX_N_THREADS {
        let text = format!("{CALL}: n_threads is {}, must be 1 to {GGML_MAX_N_THREADS}", params.n_threads);
        error::report(&Error::argument(text));
        return std::ptr::null_mut();
    }
    match Pool::with_params(params) {
        Ok(pool) => Box::into_raw(Box::new(pool)).cast(),
        Err(text) => {
            error::fail(GGML_EXT_CODE_OUT_OF_MEMORY, format!("{CALL}: {text}"));
            std::ptr::null_mut()
        }
    }
}

/// The pool behind a handle.
///
/// # Safety
/// `raw` is NULL or came from [`create`] and was not freed.
pub unsafe fn get<'a>(raw: ggml_threadpool_t) -> Option<&'a Pool> {
    // SAFETY: the caller's promise.
    unsafe { raw.cast::<Pool>().as_ref() }
}

/// Ends the pool's threads.
///
/// # Safety
/// As [`get`]; nothing uses the pool any more.
pub unsafe fn free(raw: ggml_threadpool_t) {
    if !raw.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(raw.cast::<Pool>()) });
    }
}
