/* A graph to cut, copy and measure: convolutions that the CPU backend fuses, patches with two readers, views, a softmax. It is built
 * with public headers only. */
#ifndef GRAPH_PUBLIC_H
#define GRAPH_PUBLIC_H

#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-graph.h"

enum { W = 10, H = 6, MAX = 256 };

struct model {
    struct ggml_context * weights;
    struct ggml_context * ctx;
    ggml_backend_t        cpu;
    ggml_backend_buffer_t buffer; /* of the weights */
    struct ggml_cgraph *  graph;
    struct ggml_tensor *  x;      /* input */
    struct ggml_tensor *  alone;  /* patches with one reader */
    struct ggml_tensor *  shared; /* patches with two readers */
    struct ggml_tensor *  first;  /* the product of the first reader */
    struct ggml_tensor *  out;
};

static CHECK_UNUSED void fill(struct ggml_tensor * t, uint32_t seed) {
    const size_t n    = ggml_nbytes(t);
    uint8_t *    data = malloc(n + 8);
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        seed          = seed * 1664525u + 1013904223u;
        const float v = (float) (seed >> 8) / (1 << 23) - 1;
        if (t->type == GGML_TYPE_F16) {
            ((ggml_fp16_t *) data)[i] = ggml_fp32_to_fp16(v * 0.25f);
        } else {
            ((float *) data)[i] = v;
        }
    }
    ggml_backend_tensor_set(t, data, 0, n);
    free(data);
}

static CHECK_UNUSED struct model model_new(void) {
    struct model m = { 0 };
    m.cpu          = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    m.weights      = ggml_init((struct ggml_init_params){ 64 * ggml_tensor_overhead(), NULL, true });
    m.ctx          = ggml_init((struct ggml_init_params){ 4 << 20, NULL, true });
    struct ggml_context * c  = m.ctx;
    struct ggml_tensor *  k1 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F16, 3, 3, 4, 8);
    struct ggml_tensor *  k2 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F16, 3, 3, 8, 8);
    struct ggml_tensor *  b1 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F32, 1, 1, 8, 1);
    struct ggml_tensor *  b2 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F32, 1, 1, 8, 1);
    struct ggml_tensor *  k3 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F32, 3, 3, 8, 5);
    struct ggml_tensor *  k4 = ggml_new_tensor_4d(m.weights, GGML_TYPE_F32, 3, 3, 8, 5);
    struct ggml_tensor *  w  = ggml_new_tensor_2d(m.weights, GGML_TYPE_F32, 5, 7);
    m.buffer                 = ggml_backend_alloc_ctx_tensors(m.weights, m.cpu);
    uint32_t seed            = 1;
    for (struct ggml_tensor * t = ggml_get_first_tensor(m.weights); t; t = ggml_get_next_tensor(m.weights, t)) {
        fill(t, seed++);
    }

    m.x = ggml_set_name(ggml_new_tensor_4d(c, GGML_TYPE_F32, W, H, 4, 1), "x");
    ggml_set_input(m.x);
    struct ggml_tensor * c1 = ggml_add(c, ggml_conv_2d(c, k1, m.x, 1, 1, 1, 1, 1, 1), b1);
    struct ggml_tensor * s1 = ggml_set_name(ggml_silu(c, c1), "s1");
    struct ggml_tensor * c2 = ggml_add(c, ggml_conv_2d(c, k2, s1, 1, 1, 1, 1, 1, 1), b2);
    struct ggml_tensor * r  = ggml_set_name(ggml_add(c, c2, c1), "residual");
    m.shared = ggml_set_name(ggml_im2col(c, k3, r, 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32), "shared");
    m.first  = ggml_mul_mat(c, ggml_reshape_2d(c, m.shared, 72, W * H), ggml_reshape_2d(c, k3, 72, 5));
    ggml_set_name(m.first, "first");
    struct ggml_tensor * m2 = ggml_mul_mat(c, ggml_reshape_2d(c, m.shared, 72, W * H), ggml_reshape_2d(c, k4, 72, 5));
    struct ggml_tensor * a  = ggml_add(c, m.first, ggml_silu(c, m2));                /* [W * H, 5] */
    struct ggml_tensor * v  = ggml_view_2d(c, a, 40, 5, a->nb[1], 8 * sizeof(float)); /* [40, 5] */
    struct ggml_tensor * p  = ggml_cont(c, ggml_transpose(c, v));                    /* [5, 40] */
    p                       = ggml_set_name(ggml_soft_max(c, p), "softmax");
    m.out                   = ggml_set_name(ggml_mul_mat(c, w, ggml_scale(c, p, 2)), "out");
    ggml_set_output(m.out);
    m.graph = ggml_new_graph_custom(c, MAX, false);
    ggml_build_forward_expand(m.graph, m.out);
    for (int i = 0; i < ggml_graph_n_nodes(m.graph) && !m.alone; i++) {
        struct ggml_tensor * t = ggml_graph_node(m.graph, i);
        m.alone                = t->op == GGML_OP_IM2COL ? t : NULL;
    }
    return m;
}

static CHECK_UNUSED void model_free(struct model * m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_backend_free(m->cpu);
    ggml_free(m->ctx);
    ggml_free(m->weights);
}

static CHECK_UNUSED int model_index(const struct model * m, const struct ggml_tensor * t) {
    for (int i = 0; i < ggml_graph_n_nodes(m->graph); i++) {
        if (ggml_graph_node(m->graph, i) == t) {
            return i;
        }
    }
    return -1;
}

static CHECK_UNUSED bool is_weight(const struct model * m, const struct ggml_tensor * t) { return t->buffer == m->buffer && !t->view_src; }

/* The tensors of the graph have no storage any more; weights keep theirs. */
static CHECK_UNUSED void forget(const struct model * m) {
    for (struct ggml_tensor * t = ggml_get_first_tensor(m->ctx); t; t = ggml_get_next_tensor(m->ctx, t)) {
        t->data   = NULL;
        t->buffer = NULL;
    }
}

/* All bytes of a tensor, for free(). */
static CHECK_UNUSED uint8_t * bytes(const struct ggml_tensor * t) {
    uint8_t * data = calloc(ggml_nbytes(t), 1);
    ggml_backend_tensor_get(t, data, 0, ggml_nbytes(t));
    return data;
}

static CHECK_UNUSED bool has_bytes(const struct ggml_tensor * t, const uint8_t * want) {
    uint8_t *  have = bytes(t);
    const bool same = memcmp(have, want, ggml_nbytes(t)) == 0;
    free(have);
    return same;
}

/* The result of one run of the whole graph. */
static CHECK_UNUSED uint8_t * plain_run(const struct model * m) {
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(m->cpu));
    const bool     placed = ggml_gallocr_alloc_graph(galloc, m->graph);
    fill(m->x, 99);
    const enum ggml_status status = ggml_backend_graph_compute(m->cpu, m->graph);
    CHECK(placed && status == GGML_STATUS_SUCCESS, "the plain run");
    uint8_t * out = bytes(m->out);
    ggml_gallocr_free(galloc);
    forget(m);
    return out;
}

#endif
