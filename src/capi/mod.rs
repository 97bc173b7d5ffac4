//! The entry points, one module per header; nothing but argument handling lives here. This is the only place where a
//! caller's pointer becomes a reference, and the only one that C code calls.
//!
//! # Safety of every entry point
//! - A pointer is NULL or points to a live object of its type that the library made or whose layout is public.
//! - Objects are not used from two threads at once unless the header says so.
//! - NULL and values out of range are answered with an error ([`crate::error`]), never with an abort.

pub mod alloc;
pub mod backend;
pub mod backend_impl;
pub mod cpu;
pub mod cpu_formats;
pub mod device;
pub mod ext;
pub mod ext_check;
pub mod ext_cpu;
pub mod ext_explain;
pub mod ggml;
pub mod ggml_cpu_values;
pub mod gguf;
pub mod graph;
pub mod graph_impl;
pub mod graph_plan;
pub mod graph_public;
mod layout;
pub mod meta;
pub mod meta_impl;
pub mod module_support;
pub mod opt;
pub mod quants;
pub mod sched;
pub mod threading;
mod variadic;

use ggml_oxide_abi::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// What an entry point answers after a fault inside the library.
pub trait Fallback {
    /// The answer that says "failed" in the function's own terms.
    fn fallback() -> Self;
}

macro_rules! fallback {
    ($($ty:ty => $value:expr),* $(,)?) => { $(impl Fallback for $ty { fn fallback() -> Self { $value } })* };
}
fallback! {
    () => (), bool => false, f32 => 0.0, f64 => 0.0, i8 => 0, i16 => 0, i32 => 0, i64 => 0, u8 => 0, u16 => 0, u32 => 0, u64 => 0,
    usize => 0, ggml_status => GGML_STATUS_FAILED, ggml_type => GGML_TYPE_COUNT,
    ggml_backend_buffer_usage => GGML_BACKEND_BUFFER_USAGE_ANY, ggml_backend_dev_type => GGML_BACKEND_DEVICE_TYPE_CPU,
}
impl<T> Fallback for *mut T {
    fn fallback() -> Self {
        std::ptr::null_mut()
    }
}
impl<T> Fallback for *const T {
    fn fallback() -> Self {
        std::ptr::null()
    }
}

/// Runs the body of an entry point; a panic becomes an error text and the function's failing answer.
pub fn guard<R: Fallback>(name: &'static str, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let cause = panic
            .downcast_ref::<&str>()
            .map(|s| s.to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        crate::error::fail(GGML_EXT_CODE_INTERNAL, format!("{name}: fault inside the library: {cause}"));
        R::fallback()
    })
}

/// Makes a function an entry point: exported with the C calling convention, with a panic boundary around the body.
/// The body may call `unsafe` functions under the contract at the head of this module.
#[macro_export]
macro_rules! entry {
    ($($(#[$meta:meta])* pub fn $name:ident($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => { $(
        $(#[$meta])*
        ///
        /// # Safety
        /// See [`crate::capi`].
        #[no_mangle]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            // The bodies are this crate's own and are written under the contract.
            #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
            // SAFETY: the contract of the entry points, at the head of `crate::capi`.
            $crate::capi::guard(stringify!($name), move || unsafe { $body })
        }
    )* };
}
