//! Entry points of ggml.h that concern the process: time, versions, files, the log.

use crate::entry;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};
use std::io::Write;

impl crate::capi::Fallback for ggml_unary_op {
    fn fallback() -> Self {
        GGML_UNARY_OP_COUNT
    }
}
impl crate::capi::Fallback for ggml_glu_op {
    fn fallback() -> Self {
        GGML_GLU_OP_COUNT
    }
}
impl crate::capi::Fallback for ggml_prec {
    fn fallback() -> Self {
        GGML_PREC_UNDEFINED
    }
}

const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
const COMMIT: &[u8] = match option_env!("GGML_BUILD_COMMIT") {
    Some(text) => text.as_bytes(),
    None => b"unknown\0",
};

/// Where log lines go while no callback is set.
unsafe extern "C" fn log_to_stderr(_level: ggml_log_level, text: *const c_char, _user_data: *mut c_void) {
    if !text.is_null() {
        // SAFETY: the contract of `ggml_log_callback`: a zero-terminated text.
        let text = unsafe { std::ffi::CStr::from_ptr(text) };
        // nobody can be told that the log is closed
        let _ = std::io::stderr().write_all(text.to_bytes());
    }
}

/// Nanoseconds of a clock that only goes forward.
#[cfg(unix)]
fn clock_ns() -> i128 {
    read_clock(libc::CLOCK_MONOTONIC)
}
/// Nanoseconds of processor time that the process has used.
#[cfg(unix)]
fn process_ns() -> i128 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}
#[cfg(unix)]
fn read_clock(id: libc::clockid_t) -> i128 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec to be written to.
    unsafe { libc::clock_gettime(id, &mut now) };
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
/// Nanoseconds of a clock that only goes forward.
#[cfg(not(unix))]
fn clock_ns() -> i128 {
    use std::{sync::LazyLock, time::Instant};
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as i128
}
/// As [`clock_ns`]: there is no other clock that every system has.
#[cfg(not(unix))]
fn process_ns() -> i128 {
    clock_ns()
}

entry! {
    /// Sets where log lines go, from any thread; NULL: standard error.
    pub fn ggml_log_set(log_callback: ggml_log_callback, user_data: *mut c_void) {
        crate::log::set(log_callback, user_data);
    }
    /// Where log lines go, and what is handed along. The callback is never NULL.
    pub fn ggml_log_get(log_callback: *mut ggml_log_callback, user_data: *mut *mut c_void) {
        let (callback, data) = crate::log::get();
        if let Some(out) = log_callback.as_mut() {
            *out = Some(callback.unwrap_or(log_to_stderr));
        }
        if let Some(out) = user_data.as_mut() {
            *out = data;
        }
    }
    /// Version of the interface.
    pub fn ggml_version() -> *const c_char {
        VERSION.as_ptr().cast()
    }
    /// Source state that the library was built from, or "unknown".
    pub fn ggml_commit() -> *const c_char {
        COMMIT.as_ptr().cast()
    }
    /// Not needed: the clock needs no preparation.
    pub fn ggml_time_init() {}
    /// Milliseconds of a clock that only goes forward.
    pub fn ggml_time_ms() -> i64 {
        (clock_ns() / 1_000_000) as i64
    }
    /// Microseconds of a clock that only goes forward.
    pub fn ggml_time_us() -> i64 {
        (clock_ns() / 1_000) as i64
    }
    /// Processor time of the process in units of `ggml_cycles_per_ms`.
    pub fn ggml_cycles() -> i64 {
        (process_ns() / 1_000) as i64
    }
    /// Units of `ggml_cycles` in a millisecond.
    pub fn ggml_cycles_per_ms() -> i64 {
        1000
    }
    /// Whether two guids are equal.
    pub fn ggml_guid_matches(guid_a: ggml_guid_t, guid_b: ggml_guid_t) -> bool {
        guid_a.as_ref().zip(guid_b.as_ref()).is_some_and(|(a, b)| a == b)
    }
    /// Opens a file; the path is UTF-8 on every system. NULL as `fopen` answers it.
    pub fn ggml_fopen(fname: *const c_char, mode: *const c_char) -> *mut libc::FILE {
        if fname.is_null() || mode.is_null() {
            crate::error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_fopen: the path or the mode is NULL");
            return std::ptr::null_mut();
        }
        libc::fopen(fname, mode)
    }
}
