//! The calls of the public interface that these operators are made of.

pub use crate::capi::backend::ggml_backend_buffer_get_base;
pub use crate::capi::device::{
    ggml_backend_dev_backend_reg, ggml_backend_dev_count, ggml_backend_dev_get, ggml_backend_dev_name,
    ggml_backend_dev_type, ggml_backend_reg_get_proc_address,
};
pub use crate::capi::ext::{
    ggml_ext_graph_delay, ggml_ext_last_error, ggml_ext_op_attrs, ggml_ext_op_create, ggml_ext_op_name,
    ggml_ext_refuse, ggml_ext_register_kernel_ex, ggml_ext_register_op,
};

pub use crate::capi::ext_cpu::ggml_ext_cpu_parallel_v1;
pub use crate::capi::ggml::formats::ggml_get_type_traits;
pub use crate::capi::graph::{ggml_graph_n_nodes, ggml_graph_node};

use ggml_oxide_abi::*;
use std::ffi::CString;

/// [`ggml_ext_refuse`] with a text of Rust's.
pub fn refuse(text: &str) -> bool {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: a C string, which is copied.
    unsafe { ggml_ext_refuse(text.as_ptr()) }
}

/// Code of this thread's last failure.
pub fn last_code() -> ggml_ext_code {
    let mut e = ggml_ext_error {
        struct_size: size_of::<ggml_ext_error>(),
        code: GGML_EXT_CODE_NONE.0,
        text: std::ptr::null(),
        registration: std::ptr::null(),
        node: std::ptr::null(),
    };
    // SAFETY: a structure with its size.
    match unsafe { ggml_ext_last_error(&mut e) } {
        true => ggml_ext_code(e.code),
        false => GGML_EXT_CODE_NONE,
    }
}
