//! Entry points of ggml-backend-impl.h, for those who make devices of their own.

use crate::backend::{host, tensor_data, Buffer, Buft};
use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use std::ffi::c_void;

entry! {
    /// A buffer of `size` bytes with the given functions and `context`, freed by `ggml_backend_buffer_free`. NULL with an error
    /// when `buft` is NULL.
    pub fn ggml_backend_buffer_init(
        buft: ggml_backend_buffer_type_t,
        iface: ggml_backend_buffer_i,
        context: *mut c_void,
        size: usize,
    ) -> ggml_backend_buffer_t {
        match Buft::from_raw(buft) {
            Some(buft) => Buffer::new(buft, iface, context, size).as_raw(),
            None => {
                error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_backend_buffer_init: the buffer type must not be NULL");
                std::ptr::null_mut()
            }
        }
    }

    /// Copies `src` to `dst` by the function of `dst`'s buffer. False: it has none, or cannot, or the tensors do not match;
    /// `ggml_backend_tensor_copy` finds another way. (Modules: RPC, whose server copies for its clients.)
    pub fn ggml_backend_buffer_copy_tensor(src: *const ggml_tensor, dst: *mut ggml_tensor) -> bool {
        tensor_data::copy_by_buffer("ggml_backend_buffer_copy_tensor", src, dst)
    }

    /// Whether a node of the operator may need more memory than its data on some device: `get_alloc_size` of a buffer type may
    /// only answer more than `ggml_nbytes` for these, and a device that is far away need only be asked about them.
    /// (Modules: RPC.)
    pub fn ggml_op_alloc_size_may_expand(op: ggml_op) -> bool {
        matches!(
            op,
            GGML_OP_FLASH_ATTN_EXT | GGML_OP_MUL_MAT | GGML_OP_MUL_MAT_ID | GGML_OP_CUMSUM | GGML_OP_ARGSORT | GGML_OP_TOP_K
        )
    }

    /// One buffer of `n_buffers`, which it owns from now on: freed, cleared and reset together. NULL with an error when there are
    /// none, or one is NULL.
    pub fn ggml_backend_multi_buffer_alloc_buffer(buffers: *mut ggml_backend_buffer_t, n_buffers: usize) -> ggml_backend_buffer_t {
        let raw = if buffers.is_null() { &[][..] } else { std::slice::from_raw_parts(buffers, n_buffers) };
        let parts: Option<Vec<Buffer>> = raw.iter().map(|&b| Buffer::from_raw(b)).collect();
        match parts.and_then(host::multi) {
            Some(buffer) => buffer.as_raw(),
            None => {
                error::report(&Error::argument("ggml_backend_multi_buffer_alloc_buffer: there must be buffers, none of them NULL"));
                std::ptr::null_mut()
            }
        }
    }
    /// Whether `ggml_backend_multi_buffer_alloc_buffer` made the buffer.
    pub fn ggml_backend_buffer_is_multi_buffer(buffer: ggml_backend_buffer_t) -> bool {
        Buffer::from_raw(buffer).is_some_and(host::is_multi)
    }
    /// As `ggml_backend_buffer_set_usage` for the buffers that a buffer is made of. An error for another one.
    pub fn ggml_backend_multi_buffer_set_usage(buffer: ggml_backend_buffer_t, usage: ggml_backend_buffer_usage) {
        match Buffer::from_raw(buffer).filter(|&b| host::is_multi(b)) {
            Some(buffer) => buffer.set_usage(usage),
            None => error::report(&Error::argument("ggml_backend_multi_buffer_set_usage: not a buffer made of several")),
        }
    }
}
