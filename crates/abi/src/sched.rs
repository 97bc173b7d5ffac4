//! Structures of ggml-backend.h: the scheduler.

use crate::*;
use core::ffi::c_void;

/// Runs graphs on several backends; opaque.
#[repr(C)]
pub struct ggml_backend_sched {
    _opaque: [u8; 0],
}
/// Handle of a scheduler.
pub type ggml_backend_sched_t = *mut ggml_backend_sched;

/// Called by the scheduler: with `ask` to learn whether the caller wants to see `t`; without, to show it. False stops.
pub type ggml_backend_sched_eval_callback =
    Option<unsafe extern "C" fn(t: *mut ggml_tensor, ask: bool, user_data: *mut c_void) -> bool>;
