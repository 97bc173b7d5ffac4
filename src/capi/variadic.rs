//! Keeps the C file's functions (`src/c/variadic.c`) in the library: nothing in Rust calls them.

use ggml_oxide_abi::*;
use std::ffi::{c_char, c_int};

extern "C" {
    fn ggml_abort(file: *const c_char, line: c_int, fmt: *const c_char, ...) -> !;
    fn ggml_format_name(tensor: *mut ggml_tensor, fmt: *const c_char, ...) -> *mut ggml_tensor;
    fn ggml_log_internal(level: ggml_log_level, fmt: *const c_char, ...);
    fn ggml_set_abort_callback(callback: ggml_abort_callback_t) -> ggml_abort_callback_t;
}
#[used]
static ABORT: unsafe extern "C" fn(*const c_char, c_int, *const c_char, ...) -> ! = ggml_abort;
#[used]
static FORMAT_NAME: unsafe extern "C" fn(*mut ggml_tensor, *const c_char, ...) -> *mut ggml_tensor = ggml_format_name;
#[used]
static SET_CALLBACK: unsafe extern "C" fn(ggml_abort_callback_t) -> ggml_abort_callback_t = ggml_set_abort_callback;
#[used]
static LOG: unsafe extern "C" fn(ggml_log_level, *const c_char, ...) = ggml_log_internal;
