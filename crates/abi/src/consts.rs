//! Numeric constants of ggml.h.
//!
//! The header tool takes the values from here; the text around them is in `tools/headers`.

use core::ffi::c_int;

/// Dimensions of a tensor.
pub const GGML_MAX_DIMS: usize = 4;
/// Sources of a node.
pub const GGML_MAX_SRC: usize = 10;
/// Bytes of operator parameters in a node.
pub const GGML_MAX_OP_PARAMS: usize = 64;
/// The same, counted in 32-bit words.
pub const GGML_N_OP_PARAMS: usize = 16;
/// Threads of a pool.
pub const GGML_MAX_N_THREADS: usize = 512;
/// Threads that `ggml_graph_plan` uses when the caller gives none.
pub const GGML_DEFAULT_N_THREADS: c_int = 4;
/// Nodes that `ggml_new_graph` has room for.
pub const GGML_DEFAULT_GRAPH_SIZE: usize = 2048;
/// Alignment of objects and of tensor data in a context, bytes.
pub const GGML_MEM_ALIGN: usize = 16;
/// Bytes of a tensor's name with its terminating zero, chosen when the library is built.
pub const GGML_MAX_NAME: usize = parse(env!("GGML_MAX_NAME"));

/// Tasks of a custom operator: as many as there are threads.
pub const GGML_N_TASKS_MAX: c_int = -1;

/// `ggml_rope_ext` modes: adjacent pairs.
pub const GGML_ROPE_TYPE_NORMAL: c_int = 0;
/// Pairs half a row apart.
pub const GGML_ROPE_TYPE_NEOX: c_int = 2;
/// Several position streams, in sections.
pub const GGML_ROPE_TYPE_MROPE: c_int = 8;
/// Two position streams, for images.
pub const GGML_ROPE_TYPE_VISION: c_int = 24;
/// Several position streams, interleaved.
pub const GGML_ROPE_TYPE_IMROPE: c_int = 40;
/// Position streams of a multi-section rope.
pub const GGML_MROPE_SECTIONS: usize = 4;

const _: () = assert!(GGML_N_OP_PARAMS * 4 == GGML_MAX_OP_PARAMS);

const fn parse(text: &str) -> usize {
    let (bytes, mut i, mut n) = (text.as_bytes(), 0, 0);
    while i < bytes.len() {
        n = n * 10 + (bytes[i] - b'0') as usize;
        i += 1;
    }
    n
}
