/* The int8 layers of stable-diffusion.cpp, call by call, with ggml.h and the headers of backends alone: the first builder registers the
 * operators. Results are held to the formulas, bit by bit. sd_client_cpp.cpp is the same file as C++. */
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ggml_tensor *  tensor_t;
typedef struct ggml_context * context_t;

static int failures, errors;

static bool check(bool ok, const char * format, ...) {
    va_list args;
    printf(ok ? "ok " : "not ok ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(ok ? "\n" : ": does not hold\n");
    failures += !ok;
    return ok;
}
static void log_line(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) {
        errors++;
        fputs(text, stderr);
    }
}

static ggml_backend_t cpu;
static context_t      params, work; /* weights and inputs; the graph */

/* The types that programs have written down for these functions. */
static void declarations(void) {
    tensor_t (*quantize)(context_t, tensor_t, int)                                                         = ggml_quantize_i8_convrot;
    tensor_t (*linear)(context_t, tensor_t, tensor_t, tensor_t, tensor_t, int)                             = ggml_mul_mat_i8_tensorwise;
    tensor_t (*linear4)(context_t, tensor_t, tensor_t, tensor_t, tensor_t, tensor_t, tensor_t, int, int)   = ggml_mul_mat_w4_convrot;
    tensor_t (*rope)(context_t, tensor_t, tensor_t, bool)                                                  = ggml_rope_apply;
    tensor_t (*sage)(context_t, tensor_t, tensor_t, tensor_t, float, enum ggml_sage_attn_mode)             = ggml_sage_attn;
    tensor_t (*sol)(context_t, tensor_t, tensor_t, tensor_t, float, float)                                 = ggml_sol_attn;
    check(quantize && linear && linear4 && rope && sage && sol, "functions");
    check(GGML_TYPE_F8_E4M3 == 43 && GGML_TYPE_F8_E5M2 == 44 && GGML_TYPE_COUNT == 45, "formats");
    check(GGML_SAGE_ATTN_AUTO == 0 && GGML_SAGE_ATTN_2 == 1 && GGML_SAGE_ATTN_2_PLUS_PLUS == 2, "ways of attention");
    check(GGML_W4_CONVROT_KIND_W4A4 == 1 && GGML_W4_CONVROT_KIND_W4A8 == 2, "kinds of 4-bit weights");
    check(GGML_MAX_NAME >= 128, "names as long as the client asserts");
}

/* One layer as the client's helper makes it. `x`: F32, or packed where `factor` is 1. */
static tensor_t helper(context_t ctx, tensor_t x, tensor_t w, tensor_t scales, tensor_t bias, int group, float factor) {
    const bool plain = factor == 1.0f;
    if (!plain) {
        x = ggml_scale(ctx, x, factor);
    }
    const int64_t d1 = x->ne[1], d2 = x->ne[2], d3 = x->ne[3];
    const bool    flat = d2 * d3 > 1024;
    if (flat) {
        x = ggml_reshape_2d(ctx, x, x->ne[0], d1 * d2 * d3);
    }
    tensor_t y = ggml_mul_mat_i8_tensorwise(ctx, w, x, scales, plain ? bias : NULL, group);
    if (y && flat) {
        y = ggml_reshape_4d(ctx, y, y->ne[0], d1, d2, d3);
    }
    if (y && !plain) {
        y = ggml_scale(ctx, y, 1.0f / factor);
        y = bias ? ggml_add_inplace(ctx, y, bias) : y;
    }
    return y;
}

/* Numbers */

static uint32_t seed = 7;
static float    uniform(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float) (seed >> 8) / 8388608.0f - 1.0f;
}

static tensor_t input(const char * name, enum ggml_type type, int64_t a, int64_t b, int64_t c, int64_t d) {
    return ggml_set_name(ggml_new_tensor_4d(params, type, a, b, c, d), name);
}
/* Random numbers into a tensor that has memory; the same into new host memory. */
static void * fill(tensor_t t) {
    char * host = (char *) malloc(ggml_nbytes(t));
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        const float v = uniform();
        if (t->type == GGML_TYPE_I8) {
            ((int8_t *) host)[i] = (int8_t) (127 * v);
        } else {
            ((float *) host)[i] = v;
        }
    }
    ggml_backend_tensor_set(t, host, 0, ggml_nbytes(t));
    return host;
}

/* A row, rotated and rounded; its scale. */
static float round_row(const float * x, int64_t k, int group, int8_t * q) {
    float * v    = (float *) malloc(sizeof(float) * (size_t) k);
    float   root = 1, largest = 0;
    for (int g = group; g > 1; g /= 4) {
        root /= 2;
    }
    for (int64_t i = 0; i < k; i++) {
        v[i] = x[i] * root;
    }
    for (int s = 1; s < group; s *= 4) {
        for (int64_t i = 0; i < k; i++) {
            if (i / s % 4 == 0) {
                const float a = v[i], b = v[i + s], c = v[i + 2 * s], d = v[i + 3 * s];
                v[i]         = a + b + c - d;
                v[i + s]     = a + b - c + d;
                v[i + 2 * s] = a - b + c + d;
                v[i + 3 * s] = -a + b + c + d;
            }
        }
    }
    for (int64_t i = 0; i < k; i++) {
        largest = fabsf(v[i]) > largest ? fabsf(v[i]) : largest;
    }
    const float scale = largest / 127.0f, inverse = scale == 0 ? 0 : 1.0f / scale;
    for (int64_t i = 0; i < k; i++) {
        const float r = rintf(v[i] * inverse);
        q[i]          = (int8_t) (r > 127 ? 127 : r < -127 ? -127 : r);
    }
    free(v);
    return scale;
}

/* What a layer gives, by the formulas; `factor` and `bias` as the helper applies them. */
static float * formula(const float * x, int64_t rows, int64_t k, const int8_t * w, int64_t n, const float * scales, const float * bias, int group, float factor) {
    float *  y     = (float *) malloc(sizeof(float) * (size_t) (rows * n));
    float *  moved = (float *) malloc(sizeof(float) * (size_t) k);
    int8_t * q     = (int8_t *) malloc((size_t) k);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) {
            moved[i] = factor == 1.0f ? x[r * k + i] : x[r * k + i] * factor;
        }
        const float scale = round_row(moved, k, group, q);
        for (int64_t o = 0; o < n; o++) {
            int32_t sum = 0;
            for (int64_t i = 0; i < k; i++) {
                sum += q[i] * w[o * k + i];
            }
            float v = (float) sum;
            v *= scale;
            v *= scales[o];
            v = factor == 1.0f ? v : v * (1.0f / factor);
            if (bias) {
                v += bias[o];
            }
            y[r * n + o] = v;
        }
    }
    free(q);
    free(moved);
    return y;
}

/* One graph as the client runs it: allocated by a graph allocator, on one backend. */
static bool run(struct ggml_cgraph * graph) {
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        if (!ggml_backend_supports_op(cpu, ggml_graph_node(graph, i))) {
            return false;
        }
    }
    ggml_gallocr_t alloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu));
    bool           ok    = ggml_gallocr_reserve(alloc, graph) && ggml_gallocr_alloc_graph(alloc, graph);
    ok                   = ok && ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS;
    /* results are read before the memory goes */
    for (int i = 0; ok && i < ggml_graph_n_nodes(graph); i++) {
        tensor_t t = ggml_graph_node(graph, i);
        if (t->flags & GGML_TENSOR_FLAG_OUTPUT) {
            t->extra = malloc(ggml_nbytes(t));
            ggml_backend_tensor_get(t, t->extra, 0, ggml_nbytes(t));
        }
    }
    ggml_gallocr_free(alloc);
    return ok;
}
static tensor_t output(struct ggml_cgraph * graph, tensor_t t) {
    ggml_set_output(t);
    ggml_build_forward_expand(graph, t);
    return t;
}
static bool same(tensor_t t, const float * want) {
    const bool ok = t->extra && memcmp(t->extra, want, ggml_nbytes(t)) == 0;
    free(t->extra);
    t->extra = NULL;
    return ok;
}

enum { K = 512, N = 24, RANK = 4 };

static void layers(int64_t d1, int64_t d2, int64_t d3, int group) {
    const int64_t rows = d1 * d2 * d3;
    struct ggml_init_params small;
    memset(&small, 0, sizeof small);
    small.mem_size = ggml_tensor_overhead() * 64 + ggml_graph_overhead();
    small.no_alloc = true;
    params         = ggml_init(small);
    work           = ggml_init(small);
    tensor_t x = input("x", GGML_TYPE_F32, K, d1, d2, d3), w[3], s[3], b[3];
    for (int i = 0; i < 3; i++) {
        w[i] = input("weight", GGML_TYPE_I8, K, N, 1, 1);
        b[i] = input("bias", GGML_TYPE_F32, N, 1, 1, 1);
        /* as a checkpoint has it, [N, 1] for torch, and flattened */
        s[i] = i == 1 ? input("scale", GGML_TYPE_F32, 1, N, 1, 1) : input("scale", GGML_TYPE_F32, N, 1, 1, 1);
    }
    tensor_t down = input("down", GGML_TYPE_F32, K, RANK, 1, 1), up = input("up", GGML_TYPE_F32, RANK, N, 1, 1);
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(params, cpu);
    ggml_backend_buffer_set_usage(memory, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    float * hx = (float *) fill(x), *hs[3], *hb[3];
    int8_t * hw[3];
    for (int i = 0; i < 3; i++) {
        hw[i] = (int8_t *) fill(w[i]);
        hs[i] = (float *) fill(s[i]);
        hb[i] = (float *) fill(b[i]);
    }
    free(fill(down));
    free(fill(up));

    struct ggml_cgraph * graph = ggml_new_graph(work);
    errors                     = 0;
    /* three layers on one rounded activation, one of them with a delta from the activation as it was */
    tensor_t packed = group ? ggml_quantize_i8_convrot(work, x, group) : x, y[3], z;
    check(packed && (!group || packed->op == GGML_OP_CUSTOM), "group %d, [%d,%d,%d]: activation", group, (int) d1, (int) d2, (int) d3);
    for (int i = 0; i < 3; i++) {
        y[i] = helper(work, packed, w[i], i == 1 ? ggml_reshape_1d(work, s[i], N) : s[i], i == 2 ? NULL : b[i], group, 1.0f);
        if (!check(y[i] && y[i]->type == GGML_TYPE_F32 && y[i]->ne[0] == N && y[i]->ne[1] == d1 && y[i]->ne[2] == d2 && y[i]->ne[3] == d3, "layer %d", i)) {
            return;
        }
        output(graph, y[i]);
    }
    tensor_t delta = ggml_mul_mat(work, up, ggml_mul_mat(work, down, x));
    tensor_t lora  = output(graph, ggml_add(work, y[0], delta));
    output(graph, delta);
    /* one on F32, and one with a factor */
    tensor_t direct = output(graph, helper(work, x, w[0], s[0], b[0], group, 1.0f));
    z               = output(graph, helper(work, x, w[1], s[1], b[1], group, 1.0f / 128));
    check(z->ne[1] == d1 && z->ne[2] == d2 && z->ne[3] == d3, "with a factor: shape");
    int custom = 0;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        custom += ggml_graph_node(graph, i)->op == GGML_OP_CUSTOM;
    }
    check(custom == 5 + (group != 0), "%d nodes: the activation is rounded once", custom);
    check(run(graph) && errors == 0, "computed");

    const float * before = (const float *) delta->extra;
    for (int i = 0; i < 3; i++) {
        float * want = formula(hx, rows, K, hw[i], N, hs[i], i == 2 ? NULL : hb[i], group, 1.0f);
        check(same(y[i], want), "layer %d: the formula's bits", i);
        if (i == 0) {
            check(same(direct, want), "on F32: the formula's bits");
            for (int64_t e = 0; before && e < rows * N; e++) {
                want[e] += before[e];
            }
            check(same(lora, want), "with a delta: the formula's bits");
        }
        free(want);
    }
    float * want = formula(hx, rows, K, hw[1], N, hs[1], hb[1], group, 1.0f / 128);
    check(same(z, want), "with a factor: the formula's bits");
    free(want);
    free(delta->extra);
    for (int i = 0; i < 3; i++) {
        free(hw[i]);
        free(hs[i]);
        free(hb[i]);
    }
    free(hx);
    ggml_backend_buffer_free(memory);
    ggml_free(work);
    ggml_free(params);
}

/* The client asks before it uses an attention of its own, and takes another where the answer is no. */
static void attention(void) {
    struct ggml_init_params small;
    memset(&small, 0, sizeof small);
    small.mem_size = ggml_tensor_overhead() * 16;
    small.no_alloc = true;
    context_t ctx  = ggml_init(small);
    tensor_t  q = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 64, 32, 4, 1), k = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 64, 48, 4, 1), v = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 64, 48, 4, 1);
    tensor_t  node = ggml_sage_attn(ctx, q, k, v, 0.125f, GGML_SAGE_ATTN_AUTO);
    check(node && node->ne[0] == 64 && node->ne[1] == 4 && node->ne[2] == 32 && !ggml_backend_supports_op(cpu, node), "sage attention: a node that the CPU refuses");
    ggml_free(ctx);
}

int main(void) {
    ggml_log_set(log_line, NULL);
    ggml_backend_load_all();
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    declarations();
    layers(7, 1, 1, 256);
    layers(1, 1, 1, 256);
    layers(7, 1, 1, 0);
    layers(5, 3, 2, 64);
    layers(1, 5, 205, 256); /* more than 1024 matrices: flattened */
    layers(1, 5, 205, 0);
    attention();
    ggml_backend_free(cpu);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
