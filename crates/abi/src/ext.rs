//! Structures of ggml-ext.h.

use crate::*;
use core::ffi::c_char;

c_enum! {
/// What kind of rule was broken.
pub enum ggml_ext_code {
    /// Nothing failed yet on this thread.
    GGML_EXT_CODE_NONE = 0,
    /// A required pointer was NULL.
    GGML_EXT_CODE_NULL_ARGUMENT = 1,
    /// A value is outside what the function takes.
    GGML_EXT_CODE_BAD_ARGUMENT = 2,
    /// Shapes, strides or formats that the operator cannot take.
    GGML_EXT_CODE_BAD_SHAPE = 3,
    /// Memory, or room in a context or graph, ran out.
    GGML_EXT_CODE_OUT_OF_MEMORY = 4,
    /// No kernel takes the node.
    GGML_EXT_CODE_NO_KERNEL = 5,
    /// A tensor without data was to be computed or copied.
    GGML_EXT_CODE_NOT_ALLOCATED = 6,
    /// A file breaks its format.
    GGML_EXT_CODE_BAD_FILE = 7,
    /// The operating system refused.
    GGML_EXT_CODE_IO = 8,
    /// A backend reported a failure, or a module cannot be used.
    GGML_EXT_CODE_BACKEND = 9,
    /// A fault of the library itself; the call had no effect that can be relied on.
    GGML_EXT_CODE_INTERNAL = 10,
}
}

/// The last failure on a thread.
#[repr(C)]
pub struct ggml_ext_error {
    /// Bytes of this structure, set by the caller; members beyond it are not written.
    pub struct_size: usize,
    /// A `ggml_ext_code`.
    pub code: i32,
    /// One sentence: what failed, where, which rule. Valid until the next failing call on this thread.
    pub text: *const c_char,
    /// The registration concerned, or NULL.
    pub registration: *const c_char,
    /// The tensor concerned, or NULL; to be compared, not read: it may be gone.
    pub node: *const ggml_tensor,
}
