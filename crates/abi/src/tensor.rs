//! Structures of ggml.h.

use crate::*;
use core::ffi::{c_char, c_int, c_void};

/// How `ggml_init` makes a context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_init_params {
    /// Bytes of the arena.
    pub mem_size: usize,
    /// The arena, aligned to 16 bytes and owned by the caller; NULL: the context allocates its own.
    pub mem_buffer: *mut c_void,
    /// Tensors get no data from the arena: a buffer will hold it.
    pub no_alloc: bool,
}

/// A tensor, and a node of a graph when it has an operator. All dimensions are low to high.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_tensor {
    /// Format of the elements.
    pub r#type: ggml_type,
    /// The buffer that holds the data; NULL while unallocated, or when the context's arena holds it.
    pub buffer: *mut ggml_backend_buffer,
    /// Elements in each dimension.
    pub ne: [i64; GGML_MAX_DIMS],
    /// Bytes from one element (dimension 0: from one block) to the next.
    pub nb: [usize; GGML_MAX_DIMS],
    /// What computes it.
    pub op: ggml_op,
    /// Parameters of the operator.
    pub op_params: [i32; GGML_N_OP_PARAMS],
    /// Bits of `ggml_tensor_flag`.
    pub flags: i32,
    /// What it is computed from.
    pub src: [*mut ggml_tensor; GGML_MAX_SRC],
    /// The tensor whose storage this one views; never a view itself.
    pub view_src: *mut ggml_tensor,
    /// Bytes from the start of `view_src`'s data.
    pub view_offs: usize,
    /// First element, in the address space of the buffer.
    pub data: *mut c_void,
    /// Zero-terminated name.
    pub name: [c_char; GGML_MAX_NAME],
    /// For the backend that holds the tensor.
    pub extra: *mut c_void,
    /// Keeps the size a multiple of 16.
    pub padding: [c_char; 8],
}

const _: () = assert!(core::mem::size_of::<ggml_tensor>() == 272 + GGML_MAX_NAME);
const _: () = assert!(core::mem::offset_of!(ggml_tensor, name) == 256);

/// One of the objects of a context; opaque.
#[repr(C)]
pub struct ggml_object {
    _opaque: [u8; 0],
}

/// An arena of tensors and graphs; opaque.
#[repr(C)]
pub struct ggml_context {
    _opaque: [u8; 0],
}

/// Asked before each node; true stops the computation with `GGML_STATUS_ABORTED`.
pub type ggml_abort_callback = Option<unsafe extern "C" fn(data: *mut c_void) -> bool>;
/// Takes a log line.
pub type ggml_log_callback =
    Option<unsafe extern "C" fn(level: ggml_log_level, text: *const c_char, user_data: *mut c_void)>;
/// Takes the text of `ggml_abort` in the place of standard error.
pub type ggml_abort_callback_t = Option<unsafe extern "C" fn(error_message: *const c_char)>;

/// Decodes `k` elements.
pub type ggml_to_float_t = Option<unsafe extern "C" fn(x: *const c_void, y: *mut f32, k: i64)>;
/// Encodes `k` elements.
pub type ggml_from_float_t = Option<unsafe extern "C" fn(x: *const f32, y: *mut c_void, k: i64)>;

/// An operator of the caller's with one source: thread `ith` of `nth` computes its share of `dst`.
pub type ggml_custom1_op_t = Option<
    unsafe extern "C" fn(dst: *mut ggml_tensor, a: *const ggml_tensor, ith: c_int, nth: c_int, userdata: *mut c_void),
>;
/// As [`ggml_custom1_op_t`], with two sources.
pub type ggml_custom2_op_t = Option<
    unsafe extern "C" fn(
        dst: *mut ggml_tensor,
        a: *const ggml_tensor,
        b: *const ggml_tensor,
        ith: c_int,
        nth: c_int,
        userdata: *mut c_void,
    ),
>;
/// As [`ggml_custom1_op_t`], with three sources.
pub type ggml_custom3_op_t = Option<
    unsafe extern "C" fn(
        dst: *mut ggml_tensor,
        a: *const ggml_tensor,
        b: *const ggml_tensor,
        c: *const ggml_tensor,
        ith: c_int,
        nth: c_int,
        userdata: *mut c_void,
    ),
>;
/// As [`ggml_custom1_op_t`]; the sources are in `dst->src`.
pub type ggml_custom_op_t =
    Option<unsafe extern "C" fn(dst: *mut ggml_tensor, ith: c_int, nth: c_int, userdata: *mut c_void)>;

/// Facts about a format.
#[repr(C)]
pub struct ggml_type_traits {
    /// Name as files and logs spell it.
    pub type_name: *const c_char,
    /// Elements of a block.
    pub blck_size: i64,
    /// Blocks that are stored interleaved; zero for none.
    pub blck_size_interleave: i64,
    /// Bytes of a block.
    pub type_size: usize,
    /// Whether blocks share a scale.
    pub is_quantized: bool,
    /// Decoder, or NULL.
    pub to_float: ggml_to_float_t,
    /// Encoder that defines the format's values, or NULL.
    pub from_float_ref: ggml_from_float_t,
}
// SAFETY: the pointers are to static strings and functions.
unsafe impl Sync for ggml_type_traits {}

/// Sixteen bytes that name a kind of backend.
pub type ggml_guid = [u8; 16];
/// Points to a guid.
pub type ggml_guid_t = *mut ggml_guid;
/// IEEE half precision, as its bits.
pub type ggml_fp16_t = u16;

/// The upper half of an IEEE single.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_bf16_t {
    /// The bits.
    pub bits: u16,
}

/// How a pool of threads is made.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_threadpool_params {
    /// Cores the threads may use; all false: any.
    pub cpumask: [bool; GGML_MAX_N_THREADS],
    /// Threads.
    pub n_threads: c_int,
    /// Scheduling priority.
    pub prio: ggml_sched_priority,
    /// How long a waiting thread spins: 0 not at all, 100 long.
    pub poll: u32,
    /// One core for each thread.
    pub strict_cpu: bool,
    /// Start paused.
    pub paused: bool,
}

/// A pool of threads; opaque.
#[repr(C)]
pub struct ggml_threadpool {
    _opaque: [u8; 0],
}
/// Handle of a pool.
pub type ggml_threadpool_t = *mut ggml_threadpool;
