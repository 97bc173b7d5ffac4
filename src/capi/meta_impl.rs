//! Entry points of ggml-backend-impl.h for devices made of several.

use crate::backend::{meta, Backend, Buffer, Buft};
use crate::entry;
use crate::error::{self, Error};
use ggml_oxide_abi::*;
use std::ptr::null_mut;

entry! {
    /// Whether a backend is on a device of `ggml_backend_meta_device`.
    pub fn ggml_backend_is_meta(backend: ggml_backend_t) -> bool {
        Backend::from_raw(backend).is_some_and(meta::is_meta_backend)
    }
    /// Whether a buffer is memory of such a device.
    pub fn ggml_backend_buffer_is_meta(buf: ggml_backend_buffer_t) -> bool {
        Buffer::from_raw(buf).is_some_and(meta::is_meta_buffer)
    }
    /// Whether a buffer type is that of such a device.
    pub fn ggml_backend_buft_is_meta(buft: ggml_backend_buffer_type_t) -> bool {
        Buft::from_raw(buft).is_some_and(meta::is_meta_buft)
    }
    /// How many backends such a backend is made of; 0 for another.
    pub fn ggml_backend_meta_n_backends(meta_backend: ggml_backend_t) -> usize {
        Backend::from_raw(meta_backend).map_or(0, |b| meta::backends_of(b).len())
    }
    /// One of the backends that such a backend is made of, or NULL.
    pub fn ggml_backend_meta_simple_backend(meta_backend: ggml_backend_t, index: usize) -> ggml_backend_t {
        let backends = Backend::from_raw(meta_backend).map(meta::backends_of).unwrap_or_default();
        backends.get(index).map_or(null_mut(), |b| b.as_raw())
    }
    /// As `ggml_backend_buffer_set_usage` for the buffers that such a buffer is made of. An error for another one.
    pub fn ggml_backend_meta_buffer_set_usage(buffer: ggml_backend_buffer_t, usage: ggml_backend_buffer_usage) {
        match Buffer::from_raw(buffer).filter(|&b| meta::is_meta_buffer(b)) {
            Some(buffer) => meta::for_each(buffer, |b| b.set_usage(usage)),
            None => error::report(&Error::argument("ggml_backend_meta_buffer_set_usage: not a buffer over several devices")),
        }
    }
}
