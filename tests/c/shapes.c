/* Impossible shapes for every family of builders: an error that names the call, a stand-in, and a graph that fails with the
 * first cause and leaves the process alive. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

static struct ggml_context * ctx;
static ggml_backend_t        cpu;

static void fails_with(struct ggml_tensor * t, const char * name, const char * call) {
    struct ggml_cgraph * graph = ggml_new_graph_custom(ctx, 16, false);
    /* two more nodes on it, one of them with a sound second source: the cause stays the first one */
    struct ggml_tensor * one = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_tensor * u   = ggml_add(ctx, ggml_sqr(ctx, t), one);
    ggml_set_output(u);
    ggml_build_forward_expand(graph, u);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    ggml_gallocr_alloc_graph(galloc, graph); /* may refuse: what counts is that computing does */
    CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_FAILED, "%s: computing fails", name);
    CHECK(strstr(check_error_text(), call) != NULL, "%s: computing names %s", name, call);
    CHECK(ggml_graph_compute_with_ctx(NULL, graph, 2) == GGML_STATUS_FAILED, "%s: computing without a backend fails", name);
    ggml_gallocr_free(galloc);
}

#define BAD(name, call, expr)                                                        \
    do {                                                                             \
        check_log_errors       = 0;                                                  \
        struct ggml_tensor * t_ = (expr);                                            \
        CHECK(check_log_errors > 0, "%s: reported", name);                           \
        CHECK(strstr(check_error_text(), call) != NULL, "%s: names %s", name, call); \
        if (CHECK(t_ != NULL, "%s: a stand-in", name)) {                             \
            fails_with(t_, name, call);                                              \
        }                                                                            \
        ggml_reset(ctx);                                                             \
    } while (0)

#define F(n, ...) ggml_new_tensor(ctx, GGML_TYPE_F32, n, (const int64_t[]){ __VA_ARGS__ })
#define T(type, n, ...) ggml_new_tensor(ctx, GGML_TYPE_##type, n, (const int64_t[]){ __VA_ARGS__ })

static void tensors(void) {
    BAD("no dimension", "ggml_new_tensor", F(0, 1));
    BAD("five dimensions", "ggml_new_tensor", F(5, 1, 1, 1, 1, 1));
    BAD("minus two dimensions", "ggml_new_tensor", F(-2, 1));
    BAD("negative size", "ggml_new_tensor_1d", ggml_new_tensor_1d(ctx, GGML_TYPE_F32, -1));
    BAD("least size", "ggml_new_tensor_1d", ggml_new_tensor_1d(ctx, GGML_TYPE_F32, INT64_MIN));
    BAD("product overflows", "ggml_new_tensor_4d", ggml_new_tensor_4d(ctx, GGML_TYPE_I8, INT64_MAX, 2, 1, 1));
    BAD("product overflows behind a zero", "ggml_new_tensor_4d", ggml_new_tensor_4d(ctx, GGML_TYPE_F64, INT64_MAX, INT64_MAX, INT64_MAX, 3));
    BAD("bytes overflow", "ggml_new_tensor_2d", ggml_new_tensor_2d(ctx, GGML_TYPE_F32, (int64_t) 1 << 32, (int64_t) 1 << 30));
    BAD("no such type", "ggml_new_tensor_1d", ggml_new_tensor_1d(ctx, (enum ggml_type) 1000, 4));
    BAD("type of a withdrawn format", "ggml_new_tensor_1d", ggml_new_tensor_1d(ctx, (enum ggml_type) 4, 32));
    BAD("no whole block", "ggml_new_tensor_1d", ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 33));
    BAD("no whole superblock", "ggml_new_tensor_2d", ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_K, 128, 4));
    BAD("nothing to copy the shape of", "ggml_dup_tensor", ggml_dup_tensor(ctx, NULL));
    BAD("NULL source", "ggml_sqr", ggml_sqr(ctx, NULL));
}

static void elementwise(void) {
    BAD("add", "ggml_add", ggml_add(ctx, F(2, 3, 5), F(2, 5, 3)));
    BAD("add: larger second", "ggml_add", ggml_add(ctx, F(1, 3), F(1, 6)));
    BAD("add NULL", "ggml_add", ggml_add(ctx, F(1, 3), NULL));
    BAD("sub", "ggml_sub", ggml_sub(ctx, F(2, 3, 5), F(2, 3, 4)));
    BAD("mul", "ggml_mul", ggml_mul(ctx, F(4, 2, 2, 2, 3), F(4, 2, 2, 2, 2)));
    BAD("div", "ggml_div", ggml_div(ctx, F(1, 3), F(1, 2)));
    BAD("div_inplace", "ggml_div_inplace", ggml_div_inplace(ctx, F(1, 3), F(1, 2)));
    BAD("add by nothing", "ggml_add", ggml_add(ctx, F(1, 3), F(1, 0)));
    BAD("add1", "ggml_add1", ggml_add1(ctx, F(1, 3), F(1, 2)));
    BAD("add_cast", "ggml_add_cast", ggml_add_cast(ctx, T(F16, 1, 4), F(1, 3), GGML_TYPE_F32));
    BAD("add_id", "ggml_add_id", ggml_add_id(ctx, F(3, 4, 2, 3), F(2, 5, 6), T(I32, 2, 2, 3)));
    BAD("add_id: no indices", "ggml_add_id", ggml_add_id(ctx, F(3, 4, 2, 3), F(2, 4, 6), F(2, 2, 3)));
    BAD("acc", "ggml_acc", ggml_acc(ctx, F(2, 4, 4), F(2, 4, 4), 16, 64, 64, 16));
    BAD("set", "ggml_set", ggml_set(ctx, F(2, 4, 4), F(1, 4), 16, 64, 64, 61));
    BAD("set: huge offset", "ggml_set", ggml_set_1d(ctx, F(2, 4, 4), F(1, 4), SIZE_MAX));
    BAD("set_2d: huge stride", "ggml_set_2d", ggml_set_2d(ctx, F(2, 4, 4), F(2, 2, 2), SIZE_MAX / 2, 0));
    BAD("unary: no such function", "ggml_unary", ggml_unary(ctx, F(1, 3), (enum ggml_unary_op) 99));
    BAD("glu: no such function", "ggml_glu", ggml_glu(ctx, F(2, 4, 2), (enum ggml_glu_op) -1, false));
    BAD("glu_split", "ggml_geglu_split", ggml_geglu_split(ctx, F(2, 4, 2), F(2, 4, 3)));
    BAD("swiglu_oai", "ggml_swiglu_oai", ggml_swiglu_oai(ctx, F(2, 4, 2), F(2, 4, 3), 1.0f, 1.0f));
    BAD("scale of integers", "ggml_scale", ggml_scale(ctx, ggml_transpose(ctx, F(2, 4, 3)), 2.0f));
    BAD("fill of a type", "ggml_fill", ggml_fill(ctx, T(Q4_0, 1, 32), 1.0f));
    BAD("clamp of nothing", "ggml_clamp", ggml_clamp(ctx, NULL, 0, 1));
    BAD("tri", "ggml_tri", ggml_tri(ctx, F(2, 4, 3), GGML_TRI_TYPE_LOWER));
    BAD("diag", "ggml_diag", ggml_diag(ctx, F(2, 4, 3)));
}

static void layouts(void) {
    BAD("reshape", "ggml_reshape", ggml_reshape_2d(ctx, F(1, 12), 5, 2));
    BAD("reshape: overflow", "ggml_reshape", ggml_reshape_4d(ctx, F(1, 12), (int64_t) 1 << 32, (int64_t) 1 << 32, 1, 12));
    BAD("reshape: negative", "ggml_reshape", ggml_reshape_2d(ctx, F(1, 12), -3, -4));
    BAD("reshape of no contiguous", "ggml_reshape", ggml_reshape_1d(ctx, ggml_transpose(ctx, F(2, 3, 4)), 12));
    BAD("permute: an axis twice", "ggml_permute", ggml_permute(ctx, F(2, 3, 4), 0, 0, 1, 2));
    BAD("permute: no such axis", "ggml_permute", ggml_permute(ctx, F(2, 3, 4), 0, 1, 2, 4));
    BAD("permute: negative axis", "ggml_permute", ggml_permute(ctx, F(2, 3, 4), -1, 1, 2, 3));
    BAD("view", "ggml_view_2d", ggml_view_2d(ctx, F(1, 12), 4, 4, 16, 0));
    BAD("view: half a block", "ggml_view_1d", ggml_view_1d(ctx, T(Q8_0, 1, 64), 16, 0));
    BAD("view of a poisoned", "ggml_new_tensor_1d", ggml_view_1d(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, -7), 1, 0));
    BAD("cont", "ggml_cont_2d", ggml_cont_2d(ctx, F(1, 12), 5, 2));
    BAD("cpy", "ggml_cpy", ggml_cpy(ctx, F(1, 12), F(1, 11)));
    BAD("cast to no type", "ggml_cast", ggml_cast(ctx, F(1, 12), (enum ggml_type) 77));
    BAD("cast to blocks", "ggml_cast", ggml_cast(ctx, F(1, 12), GGML_TYPE_Q4_0));
    BAD("repeat", "ggml_repeat", ggml_repeat(ctx, F(1, 12), F(1, 13)));
    BAD("repeat_4d", "ggml_repeat_4d", ggml_repeat_4d(ctx, F(1, 12), 13, 1, 1, 1));
    BAD("concat", "ggml_concat", ggml_concat(ctx, F(2, 3, 4), F(2, 4, 3), 0));
    BAD("concat: no such dimension", "ggml_concat", ggml_concat(ctx, F(2, 3, 4), F(2, 3, 4), 4));
    BAD("concat: negative dimension", "ggml_concat", ggml_concat(ctx, F(2, 3, 4), F(2, 3, 4), -1));
    BAD("concat: two types", "ggml_concat", ggml_concat(ctx, F(2, 3, 4), T(F16, 2, 3, 4), 0));
    BAD("pad: negative", "ggml_pad", ggml_pad(ctx, F(2, 3, 4), -4, 0, 0, 0));
    BAD("pad_reflect", "ggml_pad_reflect_1d", ggml_pad_reflect_1d(ctx, F(2, 3, 4), 3, 0));
    BAD("roll", "ggml_roll", ggml_roll(ctx, F(2, 3, 4), 3, 0, 0, 0));
    BAD("get_rows", "ggml_get_rows", ggml_get_rows(ctx, F(3, 3, 4, 2), T(I32, 2, 5, 3)));
    BAD("get_rows by numbers", "ggml_get_rows", ggml_get_rows(ctx, F(2, 3, 4), F(1, 5)));
    BAD("set_rows", "ggml_set_rows", ggml_set_rows(ctx, F(2, 3, 4), F(2, 4, 2), T(I64, 1, 2)));
    BAD("interpolate", "ggml_interpolate", ggml_interpolate(ctx, F(2, 3, 4), -6, 4, 1, 1, GGML_SCALE_MODE_NEAREST));
    BAD("interpolate: no such mode", "ggml_interpolate", ggml_interpolate(ctx, F(2, 3, 4), 6, 8, 1, 1, 77));
    BAD("upscale by 0", "ggml_upscale", ggml_upscale(ctx, F(2, 3, 4), -1, GGML_SCALE_MODE_NEAREST));
    BAD("upscale: overflow", "ggml_upscale", ggml_upscale(ctx, F(4, 1 << 20, 1 << 20, 1 << 10, 1), INT32_MAX, GGML_SCALE_MODE_NEAREST));
    BAD("arange without end", "ggml_arange", ggml_arange(ctx, 0, 1, 0));
    BAD("arange of too many", "ggml_arange", ggml_arange(ctx, 0, 1e38f, 1e-38f));
    BAD("arange backwards", "ggml_arange", ggml_arange(ctx, 0, -5, 1));
    BAD("timestep_embedding", "ggml_timestep_embedding", ggml_timestep_embedding(ctx, F(1, 3), -1, 10000));
}

static void products(void) {
    BAD("mul_mat", "ggml_mul_mat", ggml_mul_mat(ctx, F(2, 3, 4), F(2, 4, 3)));
    BAD("mul_mat: batches", "ggml_mul_mat", ggml_mul_mat(ctx, F(3, 3, 4, 2), F(3, 3, 4, 3)));
    BAD("mul_mat: transposed", "ggml_mul_mat", ggml_mul_mat(ctx, ggml_transpose(ctx, F(2, 4, 3)), F(2, 3, 2)));
    BAD("mul_mat: overflow", "ggml_mul_mat", ggml_mul_mat(ctx, F(2, 0, (int64_t) 1 << 40), F(2, 0, (int64_t) 1 << 40)));
    BAD("mul_mat_id", "ggml_mul_mat_id", ggml_mul_mat_id(ctx, F(3, 4, 5, 6), F(3, 4, 2, 3), F(2, 2, 3)));
    BAD("mul_mat_id: rows", "ggml_mul_mat_id", ggml_mul_mat_id(ctx, F(3, 4, 5, 6), F(3, 3, 2, 3), T(I32, 2, 2, 3)));
    BAD("flash_attn", "ggml_flash_attn_ext", ggml_flash_attn_ext(ctx, F(4, 8, 4, 3, 1), F(4, 8, 6, 2, 1), F(4, 8, 6, 2, 1), NULL, 1, 0, 0));
    BAD("flash_attn: head size", "ggml_flash_attn_ext", ggml_flash_attn_ext(ctx, F(4, 8, 4, 2, 1), F(4, 9, 6, 2, 1), F(4, 8, 6, 2, 1), NULL, 1, 0, 0));
    BAD("flash_attn: mask", "ggml_flash_attn_ext", ggml_flash_attn_ext(ctx, F(4, 8, 4, 2, 1), F(4, 8, 6, 2, 1), F(4, 8, 6, 2, 1), T(F16, 2, 5, 4), 1, 0, 0));
    BAD("flash_attn: NULL", "ggml_flash_attn_ext", ggml_flash_attn_ext(ctx, F(4, 8, 4, 2, 1), NULL, F(4, 8, 6, 2, 1), NULL, 1, 0, 0));
    BAD("soft_max mask", "ggml_soft_max_ext", ggml_soft_max_ext(ctx, F(2, 4, 4), F(2, 3, 4), 1, 0));
    BAD("soft_max slopes without mask", "ggml_soft_max_ext", ggml_soft_max_ext(ctx, F(2, 4, 4), NULL, 1, 8));
    BAD("rope", "ggml_rope", ggml_rope(ctx, F(3, 8, 2, 3), T(I32, 1, 2), 8, 0));
    BAD("rope: odd", "ggml_rope", ggml_rope(ctx, F(3, 8, 2, 3), T(I32, 1, 3), 7, 0));
    BAD("rope: more than a row", "ggml_rope", ggml_rope(ctx, F(3, 8, 2, 3), T(I32, 1, 3), 16, 0));
    BAD("rope: positions", "ggml_rope", ggml_rope(ctx, F(3, 8, 2, 3), F(1, 3), 8, 0));
    BAD("rope_multi", "ggml_rope_multi", ggml_rope_multi(ctx, F(3, 8, 2, 3), T(I32, 1, 3), NULL, 4, (int[]){ 1, 1, 1, 1 }, GGML_ROPE_TYPE_MROPE, 0, 1e4f, 1, 0, 1, 0, 0));
    BAD("group_norm", "ggml_group_norm", ggml_group_norm(ctx, F(3, 4, 4, 8), 0, 1e-5f));
    BAD("argsort of integers", "ggml_top_k", ggml_top_k(ctx, F(1, 4), 5));
    BAD("top_k of -1", "ggml_argsort_top_k", ggml_argsort_top_k(ctx, F(1, 4), -1));
    BAD("argmax", "ggml_argmax", ggml_argmax(ctx, F(3, 4, 2, 2)));
    BAD("count_equal", "ggml_count_equal", ggml_count_equal(ctx, T(I32, 1, 4), T(I32, 1, 5)));
    BAD("sum of NULL", "ggml_sum", ggml_sum(ctx, NULL));
}

static void convolutions(void) {
    BAD("im2col: stride 0", "ggml_im2col", ggml_im2col(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 2, 1), 0, 1, 0, 0, 1, 1, true, GGML_TYPE_F32));
    BAD("im2col: channels", "ggml_im2col", ggml_im2col(ctx, T(F16, 4, 3, 3, 3, 4), F(4, 8, 8, 2, 1), 1, 1, 0, 0, 1, 1, true, GGML_TYPE_F32));
    BAD("im2col: kernel larger than picture", "ggml_im2col", ggml_im2col(ctx, T(F16, 4, 9, 9, 2, 4), F(4, 8, 8, 2, 1), 1, 1, 0, 0, 1, 1, true, GGML_TYPE_F32));
    BAD("im2col: overflow", "ggml_im2col", ggml_im2col(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 2, 1), 1, 1, INT32_MAX, INT32_MAX, 1, 1, true, GGML_TYPE_F32));
    BAD("im2col: dilation", "ggml_im2col", ggml_im2col(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 2, 1), 1, 1, 0, 0, INT32_MAX, 1, true, GGML_TYPE_F32));
    BAD("conv_1d", "ggml_conv_1d", ggml_conv_1d(ctx, T(F16, 3, 3, 2, 4), F(2, 8, 3), 1, 0, 1));
    BAD("conv_2d", "ggml_conv_2d", ggml_conv_2d(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 3, 1), 1, 1, 0, 0, 1, 1));
    BAD("conv_2d: negative padding", "ggml_conv_2d", ggml_conv_2d(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 2, 1), 1, 1, -9, 0, 1, 1));
    BAD("conv_2d_direct", "ggml_conv_2d_direct", ggml_conv_2d_direct(ctx, T(F16, 4, 3, 3, 2, 4), F(4, 8, 8, 3, 1), 1, 1, 0, 0, 1, 1));
    BAD("conv_2d_dw", "ggml_conv_2d_dw", ggml_conv_2d_dw_direct(ctx, F(4, 3, 3, 2, 4), F(4, 8, 8, 4, 1), 1, 1, 0, 0, 1, 1));
    BAD("conv_3d", "ggml_conv_3d", ggml_conv_3d(ctx, T(F16, 4, 3, 3, 3, 8), F(4, 8, 8, 8, 2), 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
    BAD("conv_3d_direct", "ggml_conv_3d_direct", ggml_conv_3d_direct(ctx, T(F16, 4, 3, 3, 3, 8), F(4, 8, 8, 8, 2), 1, 1, 1, 0, 0, 0, 1, 1, 1, 3, 1, 4));
    BAD("im2col_3d", "ggml_im2col_3d", ggml_im2col_3d(ctx, T(F16, 4, 3, 3, 3, 8), F(4, 8, 8, 8, 2), -2, 1, 1, 1, 0, 0, 0, 1, 1, 1, GGML_TYPE_F32));
    BAD("conv_transpose_1d", "ggml_conv_transpose_1d", ggml_conv_transpose_1d(ctx, T(F16, 3, 3, 4, 2), F(2, 8, 3), 1, 0, 1));
    BAD("conv_transpose_1d: padding", "ggml_conv_transpose_1d", ggml_conv_transpose_1d(ctx, T(F16, 3, 3, 4, 2), F(2, 8, 2), 1, 1, 1));
    BAD("conv_transpose_2d", "ggml_conv_transpose_2d_p0", ggml_conv_transpose_2d_p0(ctx, T(F16, 4, 2, 2, 4, 3), F(4, 8, 8, 2, 1), 2));
    BAD("conv_transpose_2d: stride 0", "ggml_conv_transpose_2d_p0", ggml_conv_transpose_2d_p0(ctx, T(F16, 4, 2, 2, 4, 2), F(4, 8, 8, 2, 1), 0));
    BAD("pool_1d: stride 0", "ggml_pool_1d", ggml_pool_1d(ctx, F(1, 8), GGML_OP_POOL_MAX, 2, 0, 0));
    BAD("pool_2d: window", "ggml_pool_2d", ggml_pool_2d(ctx, F(2, 4, 4), GGML_OP_POOL_MAX, 5, 5, 1, 1, 0, 0));
    BAD("pool_2d: no such", "ggml_pool_2d", ggml_pool_2d(ctx, F(2, 4, 4), (enum ggml_op_pool) 9, 2, 2, 1, 1, 0, 0));
    BAD("pool_2d: padding", "ggml_pool_2d", ggml_pool_2d(ctx, F(2, 4, 4), GGML_OP_POOL_AVG, 2, 2, 1, 1, 1e30f, 0));
}

static void sequences(void) {
    BAD("ssm_conv", "ggml_ssm_conv", ggml_ssm_conv(ctx, F(3, 2, 6, 2), F(2, 4, 6)));
    BAD("ssm_conv: channels", "ggml_ssm_conv", ggml_ssm_conv(ctx, F(3, 8, 6, 2), F(2, 4, 5)));
#define SCAN(s, x, dt, a, b, c, ids, k) ggml_ssm_scan(ctx, s, x, dt, a, b, c, ids, k)
    BAD("ssm_scan: no state kept", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), F(2, 1, 6), F(4, 16, 2, 5, 3), F(4, 16, 2, 5, 3), T(I32, 1, 3), 0));
    BAD("ssm_scan: overflow", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), F(2, 1, 6), F(4, 16, 2, 5, 3), F(4, 16, 2, 5, 3), T(I32, 1, 3), INT64_MAX));
    BAD("ssm_scan: states of mamba 1", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), F(2, 16, 6), F(4, 16, 2, 5, 3), F(4, 16, 2, 5, 3), T(I32, 1, 3), 2));
    BAD("ssm_scan: groups", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), F(2, 1, 6), F(4, 16, 4, 5, 3), F(4, 16, 4, 5, 3), T(I32, 1, 3), 1));
    BAD("ssm_scan: ids", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), F(2, 1, 6), F(4, 16, 2, 5, 3), F(4, 16, 2, 5, 3), F(1, 3), 1));
    BAD("ssm_scan: NULL", "ggml_ssm_scan", SCAN(F(4, 16, 4, 6, 7), F(4, 4, 6, 5, 3), F(3, 6, 5, 3), NULL, F(4, 16, 2, 5, 3), F(4, 16, 2, 5, 3), T(I32, 1, 3), 1));
    BAD("rwkv_wkv6", "ggml_rwkv_wkv6", ggml_rwkv_wkv6(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 9), F(2, 8, 3), F(3, 8, 3, 10), F(2, 192, 2)));
    BAD("rwkv_wkv6: first", "ggml_rwkv_wkv6", ggml_rwkv_wkv6(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(2, 8, 2), F(3, 8, 3, 10), F(2, 192, 2)));
    BAD("rwkv_wkv6: sequences", "ggml_rwkv_wkv6", ggml_rwkv_wkv6(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(2, 8, 3), F(3, 8, 3, 10), F(2, 192, 3)));
    BAD("rwkv_wkv7: state", "ggml_rwkv_wkv7", ggml_rwkv_wkv7(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(2, 190, 2)));
    BAD("rwkv_wkv7", "ggml_rwkv_wkv7", ggml_rwkv_wkv7(ctx, F(3, 7, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(2, 192, 2)));
    BAD("gated_linear_attn", "ggml_gated_linear_attn", ggml_gated_linear_attn(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 2, 10), F(3, 8, 3, 10), F(2, 192, 2), 1));
    BAD("gated_linear_attn: no sequence", "ggml_gated_linear_attn", ggml_gated_linear_attn(ctx, F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(3, 8, 3, 10), F(2, 192, 0), 1));
#define DELTA(q, k, v, g, beta, state, n) ggml_gated_delta_net(ctx, q, k, v, g, beta, state, n)
    BAD("gated_delta_net: no state kept", "ggml_gated_delta_net", DELTA(F(3, 16, 2, 5), F(3, 16, 2, 5), F(3, 16, 4, 5), F(3, 1, 4, 5), F(3, 1, 4, 5), F(3, 16, 16, 4), 0));
    BAD("gated_delta_net: heads", "ggml_gated_delta_net", DELTA(F(3, 16, 3, 5), F(3, 16, 2, 5), F(3, 16, 4, 5), F(3, 1, 4, 5), F(3, 1, 4, 5), F(3, 16, 16, 4), 1));
    BAD("gated_delta_net: gate", "ggml_gated_delta_net", DELTA(F(3, 16, 2, 5), F(3, 16, 2, 5), F(3, 16, 4, 5), F(3, 2, 4, 5), F(3, 1, 4, 5), F(3, 16, 16, 4), 1));
    BAD("gated_delta_net: beta", "ggml_gated_delta_net", DELTA(F(3, 16, 2, 5), F(3, 16, 2, 5), F(3, 16, 4, 5), F(3, 1, 4, 5), F(3, 1, 4, 6), F(3, 16, 16, 4), 1));
    BAD("gated_delta_net: state", "ggml_gated_delta_net", DELTA(F(3, 16, 2, 5), F(3, 16, 2, 5), F(3, 16, 4, 5), F(3, 1, 4, 5), F(3, 1, 4, 5), F(3, 16, 8, 4), 1));
    BAD("solve_tri: not square", "ggml_solve_tri", ggml_solve_tri(ctx, F(2, 4, 5), F(2, 3, 5), true, true, false));
    BAD("solve_tri: rows", "ggml_solve_tri", ggml_solve_tri(ctx, F(2, 4, 4), F(2, 3, 5), true, true, false));
    BAD("solve_tri: upper", "ggml_solve_tri", ggml_solve_tri(ctx, F(2, 4, 4), F(2, 3, 4), true, false, false));
    BAD("solve_tri: ones", "ggml_solve_tri", ggml_solve_tri(ctx, F(2, 4, 4), F(2, 3, 4), true, true, true));
    BAD("lightning_indexer", "ggml_lightning_indexer", ggml_lightning_indexer(ctx, F(3, 8, 4, 5), F(3, 8, 2, 9), F(2, 4, 5), T(F16, 2, 9, 5)));
    BAD("lightning_indexer: mask", "ggml_lightning_indexer", ggml_lightning_indexer(ctx, F(3, 8, 4, 5), F(3, 8, 1, 9), F(2, 4, 5), F(2, 9, 5)));
    BAD("lightning_indexer: weights", "ggml_lightning_indexer", ggml_lightning_indexer(ctx, F(3, 8, 4, 5), F(3, 8, 1, 9), F(2, 5, 5), T(F16, 2, 9, 5)));
    BAD("dsv4_hc_comb: streams", "ggml_dsv4_hc_comb", ggml_dsv4_hc_comb(ctx, F(2, 15, 7), F(1, 3), F(1, 15), 1e-6f, 3));
    BAD("dsv4_hc_comb: iterations", "ggml_dsv4_hc_comb", ggml_dsv4_hc_comb(ctx, F(2, 24, 7), F(1, 3), F(1, 24), 1e-6f, 0));
    BAD("dsv4_hc_pre", "ggml_dsv4_hc_pre", ggml_dsv4_hc_pre(ctx, F(3, 6, 4, 7), F(2, 4, 6)));
    BAD("dsv4_hc_pre_gated", "ggml_dsv4_hc_pre_gated", ggml_dsv4_hc_pre_gated(ctx, F(3, 6, 4, 7), F(2, 4, 7), 1));
    BAD("dsv4_hc_post", "ggml_dsv4_hc_post", ggml_dsv4_hc_post(ctx, F(2, 6, 7), F(3, 6, 4, 8), F(2, 4, 7), NULL));
    BAD("dsv4_hc_post: comb", "ggml_dsv4_hc_post", ggml_dsv4_hc_post(ctx, F(2, 6, 7), F(3, 6, 4, 7), F(2, 4, 7), F(3, 4, 3, 7)));
    BAD("win_part of 0", "ggml_win_part", ggml_win_part(ctx, F(3, 5, 9, 4), 0));
    BAD("win_part of f16", "ggml_win_part", ggml_win_part(ctx, T(F16, 3, 5, 9, 4), 4));
    BAD("win_unpart: windows", "ggml_win_unpart", ggml_win_unpart(ctx, F(4, 5, 4, 4, 2), 9, 4, 4));
    BAD("win_unpart of -1", "ggml_win_unpart", ggml_win_unpart(ctx, F(4, 5, 4, 4, 2), 9, 4, -1));
    BAD("get_rel_pos", "ggml_get_rel_pos", ggml_get_rel_pos(ctx, T(F16, 2, 5, 7), 3, 4));
    BAD("get_rel_pos: rows", "ggml_get_rel_pos", ggml_get_rel_pos(ctx, T(F16, 2, 5, 8), 4, 4));
    BAD("add_rel_pos", "ggml_add_rel_pos", ggml_add_rel_pos(ctx, F(3, 8, 10, 2), F(4, 3, 2, 5, 2), F(4, 3, 2, 5, 2)));
    BAD("add_rel_pos_inplace", "ggml_add_rel_pos_inplace", ggml_add_rel_pos_inplace(ctx, F(3, 9, 10, 2), F(4, 3, 2, 5, 2), F(4, 3, 5, 2, 2)));
    BAD("col2im_1d: channels", "ggml_col2im_1d", ggml_col2im_1d(ctx, F(2, 12, 5), 2, 5, 0));
    BAD("col2im_1d: stride 0", "ggml_col2im_1d", ggml_col2im_1d(ctx, F(2, 12, 5), 0, 3, 0));
    BAD("col2im_1d: padding", "ggml_col2im_1d", ggml_col2im_1d(ctx, F(2, 12, 5), 2, 3, 6));
}

static struct ggml_tensor * param(struct ggml_tensor * t) {
    ggml_set_param(t);
    return t;
}

static void training(void) {
    BAD("out_prod", "ggml_out_prod", ggml_out_prod(ctx, F(2, 4, 3), F(2, 5, 4)));
    BAD("out_prod: batches", "ggml_out_prod", ggml_out_prod(ctx, F(3, 4, 3, 2), F(3, 5, 3, 3)));
    BAD("out_prod: transposed", "ggml_out_prod", ggml_out_prod(ctx, ggml_transpose(ctx, F(2, 4, 3)), F(2, 5, 4)));
    BAD("out_prod: overflow", "ggml_out_prod", ggml_out_prod(ctx, F(2, (int64_t) 1 << 40, 0), F(2, (int64_t) 1 << 40, 0)));
    BAD("repeat_back", "ggml_repeat_back", ggml_repeat_back(ctx, F(2, 6, 4), F(2, 4, 4)));
    BAD("repeat_back: larger", "ggml_repeat_back", ggml_repeat_back(ctx, F(1, 6), F(1, 12)));
    BAD("repeat_back to nothing", "ggml_repeat_back", ggml_repeat_back(ctx, F(1, 6), F(1, 0)));
    BAD("silu_back", "ggml_silu_back", ggml_silu_back(ctx, F(2, 6, 4), F(2, 4, 6)));
    BAD("silu_back: NULL", "ggml_silu_back", ggml_silu_back(ctx, F(2, 6, 4), NULL));
    BAD("rms_norm_back", "ggml_rms_norm_back", ggml_rms_norm_back(ctx, F(2, 6, 4), F(2, 6, 1), 1e-6f));
    BAD("rms_norm_back: eps", "ggml_rms_norm_back", ggml_rms_norm_back(ctx, F(2, 6, 4), F(2, 6, 4), -1));
    BAD("soft_max_back", "ggml_soft_max_ext_back", ggml_soft_max_ext_back(ctx, F(2, 6, 4), F(2, 6, 5), 1, 0));
    BAD("soft_max_back inplace", "ggml_soft_max_ext_back_inplace", ggml_soft_max_ext_back_inplace(ctx, F(2, 6, 4), F(2, 3, 4), 1, 0));
    BAD("get_rows_back", "ggml_get_rows_back", ggml_get_rows_back(ctx, F(2, 6, 4), T(I32, 1, 3), F(2, 6, 9)));
    BAD("get_rows_back: rows", "ggml_get_rows_back", ggml_get_rows_back(ctx, F(2, 6, 4), T(I32, 1, 4), F(2, 5, 9)));
    BAD("get_rows_back by numbers", "ggml_get_rows_back", ggml_get_rows_back(ctx, F(2, 6, 4), F(1, 4), F(2, 6, 9)));
    BAD("get_rows_back: batches", "ggml_get_rows_back", ggml_get_rows_back(ctx, F(3, 6, 4, 2), T(I32, 2, 4, 2), F(3, 6, 9, 3)));
    BAD("rope_back", "ggml_rope_ext_back", ggml_rope_ext_back(ctx, F(3, 8, 2, 3), T(I32, 1, 2), NULL, 8, 0, 0, 1e4f, 1, 0, 1, 0, 0));
    BAD("rope_multi_back", "ggml_rope_multi_back", ggml_rope_multi_back(ctx, F(3, 8, 2, 3), T(I32, 1, 3), NULL, 4, (int[]){ 1, 1, 1, 1 }, GGML_ROPE_TYPE_MROPE, 0, 1e4f, 1, 0, 1, 0, 0));
    BAD("rope_custom", "ggml_rope_custom", ggml_rope_custom(ctx, F(3, 8, 2, 3), T(I32, 1, 3), 7, 0, 0, 1e4f, 1, 0, 1, 0, 0));
    BAD("rope_custom_inplace", "ggml_rope_custom_inplace", ggml_rope_custom_inplace(ctx, F(3, 8, 2, 3), T(I32, 1, 2), 8, 0, 0, 1e4f, 1, 0, 1, 0, 0));
    int64_t image[4] = { 8, 8, 2, 1 }, minus[4] = { 8, -8, 2, 1 }, huge[4] = { INT64_MAX, INT64_MAX, 2, 1 };
    BAD("im2col_back", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 18, 6, 5, 1), T(F16, 4, 3, 3, 2, 4), image, 1, 1, 0, 0, 1, 1, true));
    BAD("im2col_back: channels", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 27, 6, 6, 1), T(F16, 4, 3, 3, 3, 4), image, 1, 1, 0, 0, 1, 1, true));
    BAD("im2col_back: stride 0", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 18, 6, 6, 1), T(F16, 4, 3, 3, 2, 4), image, 1, 0, 0, 0, 1, 1, true));
    BAD("im2col_back: negative shape", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 18, 6, 6, 1), T(F16, 4, 3, 3, 2, 4), minus, 1, 1, 0, 0, 1, 1, true));
    BAD("im2col_back: overflow", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 18, 6, 6, 1), T(F16, 4, 3, 3, 2, 4), huge, 1, 1, 0, 0, 1, 1, true));
    BAD("im2col_back: no shape", "ggml_im2col_back", ggml_im2col_back(ctx, F(4, 18, 6, 6, 1), T(F16, 4, 3, 3, 2, 4), NULL, 1, 1, 0, 0, 1, 1, true));
    BAD("im2col_back: a batch in one dimension", "ggml_im2col_back", ggml_im2col_back(ctx, F(3, 24, 6, 2), T(F16, 3, 3, 8, 4), (int64_t[]){ 8, 8, 2, 2 }, 1, 1, 0, 0, 1, 1, false));
    BAD("pool_2d_back", "ggml_pool_2d_back", ggml_pool_2d_back(ctx, F(3, 4, 3, 2), F(3, 8, 8, 2), GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0));
    BAD("pool_2d_back: planes", "ggml_pool_2d_back", ggml_pool_2d_back(ctx, F(3, 4, 4, 3), F(3, 8, 8, 2), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0));
    BAD("pool_2d_back: no such", "ggml_pool_2d_back", ggml_pool_2d_back(ctx, F(3, 4, 4, 2), F(3, 8, 8, 2), (enum ggml_op_pool) 7, 2, 2, 2, 2, 0, 0));
    BAD("pool_2d_back: stride 0", "ggml_pool_2d_back", ggml_pool_2d_back(ctx, F(3, 4, 4, 2), F(3, 8, 8, 2), GGML_OP_POOL_AVG, 2, 2, 0, 2, 0, 0));
    BAD("flash_attn_back", "ggml_flash_attn_back", ggml_flash_attn_back(ctx, F(3, 8, 3, 4), F(3, 8, 5, 2), F(3, 8, 5, 2), F(3, 8, 3, 4), true));
    BAD("flash_attn_back: heads", "ggml_flash_attn_back", ggml_flash_attn_back(ctx, F(3, 8, 3, 3), F(3, 8, 5, 2), F(3, 5, 8, 2), F(3, 8, 3, 3), true));
    BAD("flash_attn_back: gradient", "ggml_flash_attn_back", ggml_flash_attn_back(ctx, F(3, 8, 3, 4), F(3, 8, 5, 2), F(3, 5, 8, 2), F(3, 8, 4, 4), false));
    BAD("cross_entropy_loss", "ggml_cross_entropy_loss", ggml_cross_entropy_loss(ctx, F(2, 8, 3), F(2, 8, 1)));
    BAD("cross_entropy_loss_back: labels", "ggml_cross_entropy_loss_back", ggml_cross_entropy_loss_back(ctx, F(1, 1), F(2, 8, 3), F(2, 8, 1)));
    BAD("cross_entropy_loss_back: gradient", "ggml_cross_entropy_loss_back", ggml_cross_entropy_loss_back(ctx, F(1, 3), F(2, 8, 3), F(2, 8, 3)));
    BAD("opt_step_adamw: no parameter", "ggml_opt_step_adamw", ggml_opt_step_adamw(ctx, F(1, 8), F(1, 8), F(1, 8), F(1, 8), F(1, 7)));
    BAD("opt_step_adamw: gradient", "ggml_opt_step_adamw", ggml_opt_step_adamw(ctx, param(F(1, 8)), F(1, 9), F(1, 8), F(1, 8), F(1, 7)));
    BAD("opt_step_adamw: moment", "ggml_opt_step_adamw", ggml_opt_step_adamw(ctx, param(F(1, 8)), F(1, 8), F(1, 8), F(2, 8, 2), F(1, 7)));
    BAD("opt_step_adamw: numbers", "ggml_opt_step_adamw", ggml_opt_step_adamw(ctx, param(F(1, 8)), F(1, 8), F(1, 8), F(1, 8), F(1, 6)));
    BAD("opt_step_adamw: numbers in half", "ggml_opt_step_adamw", ggml_opt_step_adamw(ctx, param(F(1, 8)), F(1, 8), F(1, 8), F(1, 8), T(F16, 1, 7)));
    BAD("opt_step_sgd: no parameter", "ggml_opt_step_sgd", ggml_opt_step_sgd(ctx, F(1, 8), F(1, 8), F(1, 2)));
    BAD("opt_step_sgd: numbers", "ggml_opt_step_sgd", ggml_opt_step_sgd(ctx, param(F(1, 8)), F(1, 8), F(1, 3)));
}

static void nothing(struct ggml_tensor * dst, int ith, int nth, void * data) { (void) dst; (void) ith; (void) nth; (void) data; }
static void nothing1(struct ggml_tensor * dst, const struct ggml_tensor * a, int ith, int nth, void * data) { (void) a; nothing(dst, ith, nth, data); }

static void customs(void) {
    BAD("custom: no function", "ggml_map_custom1", ggml_map_custom1(ctx, F(1, 3), NULL, 1, NULL));
    BAD("custom: no tasks", "ggml_map_custom1", ggml_map_custom1(ctx, F(1, 3), nothing1, 0, NULL));
    struct ggml_tensor * args[12] = { 0 };
    BAD("custom: too many sources", "ggml_custom_4d", ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, args, 11, nothing, 1, NULL));
    BAD("custom: minus one source", "ggml_custom_4d", ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, args, -1, nothing, 1, NULL));
    BAD("custom: NULL sources", "ggml_custom_4d", ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 2, nothing, 1, NULL));
    BAD("custom: no function", "ggml_custom_inplace", ggml_custom_inplace(ctx, F(1, 3), NULL, 0, NULL, 1, NULL));
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    tensors();
    elementwise();
    layouts();
    products();
    convolutions();
    sequences();
    training();
    customs();
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
