//! The functions that the tests call, as a C program sees them.

use ggml as _;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_int, c_void};

extern "C" {
    pub fn ggml_init(params: ggml_init_params) -> *mut ggml_context;
    pub fn ggml_free(ctx: *mut ggml_context);
    pub fn ggml_new_tensor_1d(ctx: *mut ggml_context, ty: ggml_type, ne0: i64) -> *mut ggml_tensor;
    pub fn ggml_set_input(t: *mut ggml_tensor);
    pub fn ggml_set_output(t: *mut ggml_tensor);
    pub fn ggml_mul(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor;
    pub fn ggml_add(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor;
    pub fn ggml_new_graph(ctx: *mut ggml_context) -> *mut ggml_cgraph;
    pub fn ggml_build_forward_expand(graph: *mut ggml_cgraph, t: *mut ggml_tensor);
    pub fn ggml_graph_n_nodes(graph: *mut ggml_cgraph) -> c_int;
    pub fn ggml_graph_node(graph: *mut ggml_cgraph, i: c_int) -> *mut ggml_tensor;

    pub fn ggml_backend_dev_by_type(kind: ggml_backend_dev_type) -> ggml_backend_dev_t;
    pub fn ggml_backend_dev_init(device: ggml_backend_dev_t, params: *const c_char) -> ggml_backend_t;
    pub fn ggml_backend_dev_supports_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool;
    pub fn ggml_backend_cpu_set_n_threads(backend: ggml_backend_t, n: c_int);
    pub fn ggml_backend_free(backend: ggml_backend_t);
    pub fn ggml_backend_buffer_get_base(buffer: ggml_backend_buffer_t) -> *mut c_void;
    pub fn ggml_backend_tensor_set(t: *mut ggml_tensor, data: *const c_void, offset: usize, size: usize);
    pub fn ggml_backend_tensor_get(t: *const ggml_tensor, data: *mut c_void, offset: usize, size: usize);

    pub fn ggml_backend_sched_new(
        backends: *mut ggml_backend_t,
        bufts: *mut ggml_backend_buffer_type_t,
        n: c_int,
        size: usize,
        parallel: bool,
        op_offload: bool,
    ) -> ggml_backend_sched_t;
    pub fn ggml_backend_sched_free(sched: ggml_backend_sched_t);
    pub fn ggml_backend_sched_reset(sched: ggml_backend_sched_t);
    pub fn ggml_backend_sched_alloc_graph(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) -> bool;
    pub fn ggml_backend_sched_graph_compute(sched: ggml_backend_sched_t, graph: *mut ggml_cgraph) -> ggml_status;

    pub fn ggml_ext_last_error(out: *mut ggml_ext_error) -> bool;
    pub fn ggml_ext_register_op(desc: *const ggml_ext_op_desc) -> bool;
    pub fn ggml_ext_op_create(
        ctx: *mut ggml_context,
        name: *const c_char,
        src: *const *mut ggml_tensor,
        n_src: c_int,
        attrs: *const c_void,
        attr_size: usize,
    ) -> *mut ggml_tensor;
    pub fn ggml_ext_register_kernel(device: ggml_backend_dev_t, desc: *const ggml_ext_kernel_desc) -> bool;
    pub fn ggml_ext_release(device: ggml_backend_dev_t, name: *const c_char) -> bool;
    pub fn ggml_ext_scope_new() -> ggml_ext_scope_t;
    pub fn ggml_ext_scope_release(scope: ggml_ext_scope_t) -> bool;
    pub fn ggml_ext_dev_supports_native_op(device: ggml_backend_dev_t, op: *const ggml_tensor) -> bool;
}
