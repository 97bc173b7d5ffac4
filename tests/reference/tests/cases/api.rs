//! Builders that the harness has no declaration of.

use reference::*;
use std::ffi::c_int;

#[allow(missing_docs)]
// SAFETY: the signatures are those of ggml.h.
unsafe extern "C" {
    pub safe fn ggml_set_param(tensor: T);
    pub safe fn ggml_set_output(tensor: T);
    pub safe fn ggml_set_input(tensor: T);
    pub safe fn ggml_gallocr_new(buft: ggml_backend_buffer_type_t) -> ggml_gallocr_t;
    pub safe fn ggml_gallocr_free(galloc: ggml_gallocr_t);
    pub safe fn ggml_gallocr_alloc_graph(galloc: ggml_gallocr_t, graph: *mut ggml_cgraph) -> bool;
    pub safe fn ggml_backend_cpu_buffer_type() -> ggml_backend_buffer_type_t;
    pub safe fn ggml_graph_plan(graph: *const ggml_cgraph, n_threads: c_int, pool: *mut ggml_threadpool) -> ggml_cplan;
    pub safe fn ggml_graph_compute(graph: *mut ggml_cgraph, plan: *mut ggml_cplan) -> ggml_status;
    pub safe fn ggml_threadpool_params_default(n_threads: c_int) -> ggml_threadpool_params;
    pub safe fn ggml_threadpool_new(params: *mut ggml_threadpool_params) -> *mut ggml_threadpool;
    pub safe fn ggml_threadpool_free(pool: *mut ggml_threadpool);
}
