//! The C interface, declared as a C program sees it.
//!
//! The functions are the library's exported symbols, so a test reaches nothing that a client could not. They are declared safe:
//! the harness hands over live tensors and contexts only, from one thread at a time.

pub use crate::builders::*;
use ggml as _;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_int, c_void};

/// A tensor's address.
pub type T = *mut ggml_tensor;
/// A context's address.
pub type Ctx = *mut ggml_context;

#[allow(missing_docs)]
// SAFETY: the signatures are those of ggml.h, ggml-alloc.h, ggml-backend.h, ggml-cpu.h and ggml-ext.h.
unsafe extern "C" {
    pub safe fn ggml_init(params: ggml_init_params) -> Ctx;
    pub safe fn ggml_free(ctx: Ctx);
    pub safe fn ggml_reset(ctx: Ctx);
    pub safe fn ggml_tensor_overhead() -> usize;
    pub safe fn ggml_graph_overhead_custom(size: usize, grads: bool) -> usize;
    pub safe fn ggml_new_tensor(ctx: Ctx, r#type: ggml_type, n_dims: c_int, ne: *const i64) -> T;
    pub safe fn ggml_nbytes(tensor: *const ggml_tensor) -> usize;
    pub safe fn ggml_blck_size(r#type: ggml_type) -> i64;
    pub safe fn ggml_type_size(r#type: ggml_type) -> usize;
    pub safe fn ggml_type_name(r#type: ggml_type) -> *const c_char;
    pub safe fn ggml_get_type_traits(r#type: ggml_type) -> *const ggml_type_traits;
    pub safe fn ggml_quantize_chunk(
        r#type: ggml_type,
        src: *const f32,
        dst: *mut c_void,
        start: i64,
        nrows: i64,
        n_per_row: i64,
        imatrix: *const f32,
    ) -> usize;
    pub safe fn ggml_log_set(log_callback: ggml_log_callback, user_data: *mut c_void);
    pub safe fn ggml_new_graph_custom(ctx: Ctx, size: usize, grads: bool) -> *mut ggml_cgraph;
    pub safe fn ggml_build_forward_expand(cgraph: *mut ggml_cgraph, tensor: T);
    pub safe fn ggml_graph_n_nodes(cgraph: *mut ggml_cgraph) -> c_int;
    pub safe fn ggml_graph_node(cgraph: *mut ggml_cgraph, i: c_int) -> T;
    pub safe fn ggml_set_param(tensor: T);
    pub safe fn ggml_set_loss(tensor: T);
    pub safe fn ggml_set_input(tensor: T);
    pub safe fn ggml_set_output(tensor: T);
    pub safe fn ggml_nelements(tensor: *const ggml_tensor) -> i64;
    pub safe fn ggml_is_contiguous(tensor: *const ggml_tensor) -> bool;
    pub safe fn ggml_build_backward_expand(ctx: Ctx, graph: *mut ggml_cgraph, grad_accs: *mut T);
    pub safe fn ggml_graph_reset(graph: *mut ggml_cgraph);
    pub safe fn ggml_graph_get_grad(graph: *const ggml_cgraph, node: *const ggml_tensor) -> T;
    pub safe fn ggml_graph_get_grad_acc(graph: *const ggml_cgraph, node: *const ggml_tensor) -> T;
    pub safe fn ggml_graph_compute_with_ctx(ctx: Ctx, graph: *mut ggml_cgraph, n_threads: c_int) -> ggml_status;
    pub safe fn ggml_graph_plan(graph: *const ggml_cgraph, n_threads: c_int, pool: *mut ggml_threadpool) -> ggml_cplan;
    pub safe fn ggml_graph_compute(graph: *mut ggml_cgraph, plan: *mut ggml_cplan) -> ggml_status;
    pub safe fn ggml_threadpool_params_default(n_threads: c_int) -> ggml_threadpool_params;
    pub safe fn ggml_threadpool_new(params: *mut ggml_threadpool_params) -> *mut ggml_threadpool;
    pub safe fn ggml_threadpool_free(pool: *mut ggml_threadpool);
    pub safe fn ggml_gallocr_new(buft: ggml_backend_buffer_type_t) -> ggml_gallocr_t;
    pub safe fn ggml_gallocr_free(galloc: ggml_gallocr_t);
    pub safe fn ggml_gallocr_alloc_graph(galloc: ggml_gallocr_t, graph: *mut ggml_cgraph) -> bool;
    pub safe fn ggml_backend_cpu_buffer_type() -> ggml_backend_buffer_type_t;
    pub safe fn ggml_backend_cpu_init() -> ggml_backend_t;
    pub safe fn ggml_backend_cpu_set_n_threads(backend: ggml_backend_t, n_threads: c_int);
    pub safe fn ggml_backend_get_device(backend: ggml_backend_t) -> ggml_backend_dev_t;
    pub safe fn ggml_backend_free(backend: ggml_backend_t);
    pub safe fn ggml_backend_dev_supports_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool;
    pub safe fn ggml_backend_graph_compute(backend: ggml_backend_t, cgraph: *mut ggml_cgraph) -> ggml_status;
    pub safe fn ggml_backend_cpu_buffer_from_ptr(ptr: *mut c_void, size: usize) -> ggml_backend_buffer_t;
    pub safe fn ggml_backend_buffer_free(buffer: ggml_backend_buffer_t);
    pub safe fn ggml_backend_tensor_alloc(buffer: ggml_backend_buffer_t, tensor: T, addr: *mut c_void) -> ggml_status;
    pub safe fn ggml_backend_view_init(tensor: T) -> ggml_status;
    pub safe fn ggml_ext_last_error(out: *mut ggml_ext_error) -> bool;
}
