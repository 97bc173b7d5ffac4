//! The log callback. Without one, lines go to standard error.

use crate::error::c_string;
use ggml_oxide_abi::*;
use std::ffi::c_void;
use std::io::Write;
use std::sync::RwLock;

struct Sink {
    callback: ggml_log_callback,
    user_data: *mut c_void,
}
// SAFETY: the pointer is only handed back to the caller's callback, which by contract may be called from any thread.
unsafe impl Send for Sink {}
// SAFETY: as above; the sink itself is only read.
unsafe impl Sync for Sink {}

static SINK: RwLock<Sink> = RwLock::new(Sink { callback: None, user_data: std::ptr::null_mut() });

/// Sets where log lines go; `None`: standard error.
pub fn set(callback: ggml_log_callback, user_data: *mut c_void) {
    let mut sink = SINK.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    *sink = Sink { callback, user_data };
}

/// The callback in force (`None`: standard error) and its data.
pub fn get() -> (ggml_log_callback, *mut c_void) {
    let sink = SINK.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    (sink.callback, sink.user_data)
}

/// Logs `text`; a newline is added.
pub fn line(level: ggml_log_level, text: &str) {
    let (callback, user_data) = get();
    match callback {
        Some(callback) => {
            let text = c_string(&format!("{text}\n"));
            // SAFETY: the callback takes a level, a zero-terminated text that lives through the call, and its own data.
            unsafe { callback(level, text.as_ptr(), user_data) }
        }
        None if level == GGML_LOG_LEVEL_DEBUG => {}
        // Not eprintln, which panics when standard error takes nothing (a full disk, a closed pipe).
        None => {
            let _ = std::io::stderr().write_all(format!("ggml: {text}\n").as_bytes());
        }
    }
}
