/* Small graphs of single operators, computed on any backend, and their comparison. */
#ifndef GRAPHS_H
#define GRAPHS_H

#include "nmse.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <stdint.h>

typedef struct ggml_context * ctx_t;
typedef struct ggml_tensor *  tensor_t;

/* Integers below n as contents of an i32 or i64 tensor; n = 0: 0, 1, 2, and so on. */
static tensor_t indices(tensor_t t, int n) {
    ggml_format_name(t, "below %d", n);
    return t;
}
static tensor_t t1(ctx_t c, enum ggml_type y, int64_t a) { return ggml_new_tensor_1d(c, y, a); }
static tensor_t t2(ctx_t c, enum ggml_type y, int64_t a, int64_t b) { return ggml_new_tensor_2d(c, y, a, b); }
static tensor_t t3(ctx_t c, enum ggml_type y, int64_t a, int64_t b, int64_t d) { return ggml_new_tensor_3d(c, y, a, b, d); }
static tensor_t t4(ctx_t c, enum ggml_type y, int64_t a, int64_t b, int64_t d, int64_t e) { return ggml_new_tensor_4d(c, y, a, b, d, e); }

#define F32 GGML_TYPE_F32
#define F16 GGML_TYPE_F16
#define I32 GGML_TYPE_I32

struct op_case {
    const char * name;
    tensor_t (*build)(ctx_t);
    double limit; /* normalised mean squared error between two implementations */
};

#define MUL_MAT(id, type) static tensor_t mul_mat_##id(ctx_t c) { return ggml_mul_mat(c, t3(c, type, 256, 48, 2), t4(c, F32, 256, 7, 2, 2)); }
MUL_MAT(f32, F32)
MUL_MAT(f16, F16)
MUL_MAT(bf16, GGML_TYPE_BF16)
MUL_MAT(q4_0, GGML_TYPE_Q4_0)
MUL_MAT(q8_0, GGML_TYPE_Q8_0)
MUL_MAT(q4_K, GGML_TYPE_Q4_K)
MUL_MAT(q6_K, GGML_TYPE_Q6_K)
static tensor_t mul_mat_wide(ctx_t c) { return ggml_mul_mat(c, t2(c, GGML_TYPE_Q4_0, 512, 96), t2(c, F32, 512, 80)); }
static tensor_t mul_mat_id(ctx_t c) { return ggml_mul_mat_id(c, t3(c, F16, 64, 40, 4), t3(c, F32, 64, 2, 9), indices(t2(c, I32, 2, 9), 4)); }
static tensor_t add(ctx_t c) { return ggml_add(c, t4(c, F32, 33, 7, 3, 2), t3(c, F32, 33, 1, 3)); }
static tensor_t chain(ctx_t c) {
    tensor_t a = t2(c, F32, 64, 20);
    return ggml_add(c, ggml_mul(c, ggml_sub(c, a, ggml_sqr(c, a)), t1(c, F32, 64)), ggml_scale(c, a, 0.25f));
}
static tensor_t soft_max(ctx_t c) { return ggml_soft_max_ext(c, t3(c, F32, 65, 9, 4), t2(c, F16, 65, 9), 0.3f, 2.0f); }
static tensor_t rope(ctx_t c) { return ggml_rope_ext(c, t4(c, F32, 64, 4, 11, 2), indices(t1(c, I32, 11), 0), NULL, 64, GGML_ROPE_TYPE_NEOX, 512, 1e4f, 0.7f, 0.5f, 1.1f, 32, 1); }
static tensor_t rope_pairs(ctx_t c) { return ggml_rope(c, t4(c, F32, 64, 4, 11, 1), indices(t1(c, I32, 11), 0), 32, 0); }
static tensor_t attention(ctx_t c) {
    return ggml_flash_attn_ext(c, t4(c, F32, 64, 9, 8, 1), t4(c, F16, 64, 96, 2, 1), t4(c, F16, 64, 96, 2, 1), t4(c, F16, 96, 9, 1, 1), 0.125f, 0, 0);
}
static tensor_t attention_q8(ctx_t c) {
    return ggml_flash_attn_ext(c, t4(c, F32, 64, 5, 4, 2), t4(c, GGML_TYPE_Q8_0, 64, 64, 4, 2), t4(c, GGML_TYPE_Q8_0, 64, 64, 4, 2), NULL, 0.125f, 0, 0);
}
static tensor_t conv_2d(ctx_t c) { return ggml_conv_2d(c, t4(c, F16, 3, 3, 8, 16), t4(c, F32, 17, 13, 8, 2), 2, 1, 1, 1, 1, 1); }
static tensor_t conv_2d_direct(ctx_t c) { return ggml_conv_2d_direct(c, t4(c, F32, 3, 3, 8, 16), t4(c, F32, 17, 13, 8, 2), 1, 1, 1, 1, 1, 1); }
static tensor_t conv_transpose(ctx_t c) { return ggml_conv_transpose_2d_p0(c, t4(c, F16, 2, 2, 8, 4), t4(c, F32, 9, 7, 4, 1), 2); }
static tensor_t norm(ctx_t c) { return ggml_norm(c, t3(c, F32, 96, 5, 2), 1e-5f); }
static tensor_t rms_norm(ctx_t c) { return ggml_mul(c, ggml_rms_norm(c, t2(c, F32, 96, 5), 1e-6f), t1(c, F32, 96)); }
static tensor_t group_norm(ctx_t c) { return ggml_group_norm(c, t3(c, F32, 9, 7, 32), 8, 1e-5f); }
static tensor_t get_rows(ctx_t c) { return ggml_get_rows(c, t2(c, GGML_TYPE_Q4_K, 256, 20), indices(t1(c, I32, 7), 20)); }
static tensor_t set_rows(ctx_t c) { return ggml_set_rows(c, t2(c, F16, 64, 7), t2(c, F32, 64, 7), indices(t1(c, GGML_TYPE_I64, 7), 0)); }
static tensor_t gelu(ctx_t c) { return ggml_gelu(c, t2(c, F32, 100, 3)); }
static tensor_t silu(ctx_t c) { return ggml_silu(c, t2(c, F32, 100, 3)); }
static tensor_t swiglu(ctx_t c) { return ggml_swiglu(c, t2(c, F32, 100, 3)); }
static tensor_t permute(ctx_t c) { return ggml_cont(c, ggml_permute(c, t4(c, F32, 7, 6, 5, 3), 2, 0, 1, 3)); }
static tensor_t cpy(ctx_t c) { return ggml_cpy(c, t2(c, F32, 64, 5), t2(c, F16, 64, 5)); }
static tensor_t concat(ctx_t c) { return ggml_concat(c, t3(c, F32, 9, 5, 2), t3(c, F32, 9, 3, 2), 1); }
static tensor_t sum_rows(ctx_t c) { return ggml_sum_rows(c, t3(c, F32, 99, 5, 2)); }
static tensor_t argsort(ctx_t c) { return ggml_argsort(c, t2(c, F32, 60, 4), GGML_SORT_ORDER_DESC); }
static tensor_t upscale(ctx_t c) { return ggml_upscale(c, t3(c, F32, 9, 7, 3), 2, GGML_SCALE_MODE_BILINEAR); }
static tensor_t pool(ctx_t c) { return ggml_pool_2d(c, t3(c, F32, 12, 10, 3), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0); }
static tensor_t timestep(ctx_t c) { return ggml_timestep_embedding(c, t1(c, F32, 5), 64, 10000); }

static const struct op_case op_cases[] = {
    { "MUL_MAT f32", mul_mat_f32, 1e-9 },       { "MUL_MAT f16", mul_mat_f16, 1e-6 },   { "MUL_MAT bf16", mul_mat_bf16, 1e-4 },
    { "MUL_MAT q4_0", mul_mat_q4_0, 5e-4 },     { "MUL_MAT q8_0", mul_mat_q8_0, 5e-4 }, { "MUL_MAT q4_K", mul_mat_q4_K, 5e-4 },
    { "MUL_MAT q6_K", mul_mat_q6_K, 5e-4 },     { "MUL_MAT wide", mul_mat_wide, 5e-4 }, { "MUL_MAT_ID", mul_mat_id, 1e-6 },
    { "ADD", add, 0 },                          { "a chain", chain, 1e-12 },            { "SOFT_MAX", soft_max, 1e-9 },
    { "ROPE neox, YaRN", rope, 1e-9 },          { "ROPE", rope_pairs, 1e-9 },           { "FLASH_ATTN_EXT f16", attention, 1e-5 },
    { "FLASH_ATTN_EXT q8_0", attention_q8, 5e-4 }, { "IM2COL", conv_2d, 1e-6 },         { "CONV_2D", conv_2d_direct, 1e-9 },
    { "CONV_TRANSPOSE_2D", conv_transpose, 1e-6 }, { "NORM", norm, 1e-9 },              { "RMS_NORM", rms_norm, 1e-9 },
    { "GROUP_NORM", group_norm, 1e-9 },         { "GET_ROWS q4_K", get_rows, 0 },       { "SET_ROWS", set_rows, 0 },
    { "GELU", gelu, 1e-6 },                     { "SILU", silu, 1e-9 },                 { "SWIGLU", swiglu, 1e-9 },
    { "PERMUTE, CONT", permute, 0 },            { "CPY f16", cpy, 0 },                  { "CONCAT", concat, 0 },
    { "SUM_ROWS", sum_rows, 1e-9 },             { "ARGSORT", argsort, 0 },              { "UPSCALE", upscale, 1e-9 },
    { "POOL_2D", pool, 1e-9 },                  { "TIMESTEP_EMBEDDING", timestep, 1e-9 },
};
#define N_OP_CASES (sizeof op_cases / sizeof *op_cases)

static uint32_t dice(uint32_t * state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Fills in an input by its type and, for integers, its name. */
static void fill(tensor_t t, uint32_t seed) {
    const int64_t n    = ggml_nelements(t);
    const size_t  size = ggml_nbytes(t);
    void *        data = calloc(1, size);
    int           below = 0;
    if (t->type == I32 || t->type == GGML_TYPE_I64) {
        sscanf(t->name, "below %d", &below);
        for (int64_t i = 0; i < n; i++) {
            int64_t v = below ? (int64_t) (dice(&seed) % (uint32_t) below) : i;
            /* experts of one token differ */
            if (below && t->ne[1] > 1) {
                v = (i % t->ne[0] + i / t->ne[0]) % below;
            }
            if (t->type == I32) { ((int32_t *) data)[i] = (int32_t) v; } else { ((int64_t *) data)[i] = v; }
        }
    } else {
        float * x = malloc((size_t) n * sizeof *x);
        for (int64_t i = 0; i < n; i++) {
            x[i] = (float) dice(&seed) / (float) (1 << 23) - 1.0f;
        }
        if (t->type == F32) {
            memcpy(data, x, size);
        } else {
            ggml_quantize_chunk(t->type, x, data, 0, n / t->ne[0], t->ne[0], NULL);
        }
        free(x);
    }
    ggml_backend_tensor_set(t, data, 0, size);
    free(data);
}

static void fill_inputs(ctx_t c, uint32_t seed) {
    for (tensor_t t = ggml_get_first_tensor(c); t; t = ggml_get_next_tensor(c, t)) {
        if (t->op == GGML_OP_NONE && !t->view_src) {
            fill(t, seed++);
        }
    }
}

static ctx_t new_context(void) {
    struct ggml_init_params p = { 256 * ggml_tensor_overhead() + ggml_graph_overhead_custom(256, false), NULL, true };
    return ggml_init(p);
}

/* Values of a tensor as floats; the caller frees them. */
static float * floats(tensor_t t) {
    const int64_t n    = ggml_nelements(t);
    float *       out  = malloc((size_t) n * sizeof *out);
    void *        data = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, data, 0, ggml_nbytes(t));
    if (t->type == F32) {
        memcpy(out, data, (size_t) n * sizeof *out);
    } else if (t->type == I32) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = (float) ((int32_t *) data)[i];
        }
    } else {
        ggml_get_type_traits(t->type)->to_float(data, out, n);
    }
    free(data);
    return out;
}

/* Computes a case on the backend; NULL when it does not compute it. */
static float * computed(ggml_backend_t backend, const struct op_case * op, uint32_t seed, int64_t * n) {
    ctx_t                c      = new_context();
    tensor_t             out    = op->build(c);
    struct ggml_cgraph * g      = ggml_new_graph_custom(c, 256, false);
    float *              result = NULL;
    ggml_build_forward_expand(g, out);
    bool can = true;
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        can = can && ggml_backend_supports_op(backend, ggml_graph_node(g, i));
    }
    ggml_backend_buffer_t buffer = can ? ggml_backend_alloc_ctx_tensors(c, backend) : NULL;
    if (buffer) {
        fill_inputs(c, seed);
        if (ggml_backend_graph_compute(backend, g) == GGML_STATUS_SUCCESS) {
            result = floats(out);
            *n     = ggml_nelements(out);
        }
        ggml_backend_buffer_free(buffer);
    }
    ggml_free(c);
    return result;
}

#endif
