//! Builders that the harness has no declaration of.

use reference::*;
use std::ffi::c_int;

#[allow(missing_docs)]
// SAFETY: the signatures are those of ggml.h.
unsafe extern "C" {
    pub safe fn ggml_ssm_conv(ctx: Ctx, sx: T, c: T) -> T;
    pub safe fn ggml_ssm_scan(ctx: Ctx, s: T, x: T, dt: T, a: T, b: T, cc: T, ids: T, keep: i64) -> T;
    pub safe fn ggml_rwkv_wkv6(ctx: Ctx, k: T, v: T, r: T, tf: T, td: T, state: T) -> T;
    pub safe fn ggml_gated_linear_attn(ctx: Ctx, k: T, v: T, q: T, g: T, state: T, scale: f32) -> T;
    pub safe fn ggml_rwkv_wkv7(ctx: Ctx, r: T, w: T, k: T, v: T, a: T, b: T, state: T) -> T;
    pub safe fn ggml_gated_delta_net(ctx: Ctx, q: T, k: T, v: T, g: T, beta: T, state: T, keep: i64) -> T;
    pub safe fn ggml_solve_tri(ctx: Ctx, a: T, b: T, left: bool, lower: bool, uni: bool) -> T;
    pub safe fn ggml_win_part(ctx: Ctx, a: T, w: c_int) -> T;
    pub safe fn ggml_win_unpart(ctx: Ctx, a: T, w0: c_int, h0: c_int, w: c_int) -> T;
    pub safe fn ggml_get_rel_pos(ctx: Ctx, a: T, qh: c_int, kh: c_int) -> T;
    pub safe fn ggml_add_rel_pos(ctx: Ctx, a: T, pw: T, ph: T) -> T;
    pub safe fn ggml_add_rel_pos_inplace(ctx: Ctx, a: T, pw: T, ph: T) -> T;
    pub safe fn ggml_lightning_indexer(ctx: Ctx, q: T, k: T, weights: T, mask: T) -> T;
    pub safe fn ggml_dsv4_hc_comb(ctx: Ctx, mixes: T, scale: T, base: T, eps: f32, n_iter: i32) -> T;
    pub safe fn ggml_dsv4_hc_pre(ctx: Ctx, x: T, weights: T) -> T;
    pub safe fn ggml_dsv4_hc_pre_gated(ctx: Ctx, x: T, gate: T, scale: f32) -> T;
    pub safe fn ggml_dsv4_hc_post(ctx: Ctx, x: T, residual: T, post: T, comb: T) -> T;
    pub safe fn ggml_col2im_1d(ctx: Ctx, a: T, s0: c_int, oc: c_int, p0: c_int) -> T;
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
