/* What the programs of ggml-opt.h share: backends, small models, data. */
#ifndef OPT_H
#define OPT_H

#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"

#include <math.h>

static ggml_backend_t       backends[2];
static ggml_backend_sched_t sched;

static CHECK_UNUSED void opt_start(int n_backends) {
    for (int i = 0; i < n_backends; i++) {
        backends[i] = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(backends[i], 2);
    }
    sched = ggml_backend_sched_new(backends, NULL, n_backends, GGML_DEFAULT_GRAPH_SIZE, false, true);
}

static CHECK_UNUSED void opt_end(int n_backends) {
    ggml_backend_sched_free(sched);
    for (int i = 0; i < n_backends; i++) {
        ggml_backend_free(backends[i]);
    }
}

/* A number from -1 to 1, the same in each run. */
static CHECK_UNUSED float opt_number(unsigned i) {
    i = i * 2654435761u + 12345u;
    i ^= i >> 15;
    i *= 2246822519u;
    i ^= i >> 13;
    return (float) (i % 20001u) / 10000.0f - 1.0f;
}

enum model_kind { LINEAR, CLASSES };
enum { N_DATA = 48, N_IN = 2, N_HIDDEN = 8, N_CLASSES = 3 };

/* LINEAR: y = W x + b, one number. CLASSES: two layers, scores of three classes. */
struct model {
    enum model_kind kind;
    struct ggml_context * ctx_static, * ctx_compute;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor * inputs, * params[4], * outputs;
    int n_params;
};

static CHECK_UNUSED struct ggml_context * opt_compute_context(void) {
    const size_t size = GGML_DEFAULT_GRAPH_SIZE * ggml_tensor_overhead() + 3 * ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, true);
    return ggml_init((struct ggml_init_params){ size, NULL, true });
}

static CHECK_UNUSED struct ggml_tensor * model_outputs(struct model * m, struct ggml_context * ctx) {
    struct ggml_tensor * y = ggml_add(ctx, ggml_mul_mat(ctx, m->params[0], m->inputs), m->params[1]);
    if (m->kind == CLASSES) {
        y = ggml_add(ctx, ggml_mul_mat(ctx, m->params[2], ggml_silu(ctx, y)), m->params[3]);
    }
    return ggml_set_name(y, "outputs");
}

static CHECK_UNUSED void model_reset(struct model * m) {
    for (int p = 0; p < m->n_params; p++) {
        float x[64];
        int64_t n = ggml_nelements(m->params[p]);
        for (int64_t i = 0; i < n; i++) {
            x[i] = 0.5f * opt_number((unsigned) (p * 1000 + i));
        }
        ggml_backend_tensor_set(m->params[p], x, 0, (size_t) n * sizeof(float));
    }
}

static CHECK_UNUSED struct model model_make(enum model_kind kind, int batch) {
    struct model m = { kind, NULL, NULL, NULL, NULL, { NULL }, NULL, kind == LINEAR ? 2 : 4 };
    m.ctx_static = ggml_init((struct ggml_init_params){ 8 * ggml_tensor_overhead(), NULL, true });
    m.ctx_compute = opt_compute_context();
    int hidden = kind == LINEAR ? 1 : N_HIDDEN;
    m.inputs = ggml_set_name(ggml_new_tensor_2d(m.ctx_static, GGML_TYPE_F32, N_IN, batch), "inputs");
    m.params[0] = ggml_set_name(ggml_new_tensor_2d(m.ctx_static, GGML_TYPE_F32, N_IN, hidden), "w1");
    m.params[1] = ggml_set_name(ggml_new_tensor_1d(m.ctx_static, GGML_TYPE_F32, hidden), "b1");
    if (kind == CLASSES) {
        m.params[2] = ggml_set_name(ggml_new_tensor_2d(m.ctx_static, GGML_TYPE_F32, hidden, N_CLASSES), "w2");
        m.params[3] = ggml_set_name(ggml_new_tensor_1d(m.ctx_static, GGML_TYPE_F32, N_CLASSES), "b2");
    }
    for (int p = 0; p < m.n_params; p++) {
        ggml_set_param(m.params[p]);
    }
    m.buffer = ggml_backend_alloc_ctx_tensors(m.ctx_static, backends[0]);
    model_reset(&m);
    m.outputs = model_outputs(&m, m.ctx_compute);
    return m;
}

static CHECK_UNUSED void model_free(struct model * m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->ctx_static);
    ggml_free(m->ctx_compute);
}

/* LINEAR: 2 x0 - 3 x1 + 0.5. CLASSES: which of three sectors a point lies in. */
static CHECK_UNUSED ggml_opt_dataset_t model_data(enum model_kind kind, int shard) {
    int ne_label = kind == LINEAR ? 1 : N_CLASSES;
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, N_IN, ne_label, N_DATA, shard);
    float * x = ggml_get_data_f32(ggml_opt_dataset_data(d)), * y = ggml_get_data_f32(ggml_opt_dataset_labels(d));
    for (int i = 0; i < N_DATA; i++, x += N_IN, y += ne_label) {
        x[0] = opt_number((unsigned) (2 * i + 77));
        x[1] = opt_number((unsigned) (2 * i + 78));
        if (kind == LINEAR) {
            y[0] = 2 * x[0] - 3 * x[1] + 0.5f;
            continue;
        }
        int class = x[0] > 0.3f ? 0 : x[1] > 0 ? 1 : 2;
        for (int k = 0; k < N_CLASSES; k++) {
            y[k] = k == class;
        }
    }
    return d;
}

static CHECK_UNUSED struct ggml_opt_optimizer_params fast(void * userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(userdata);
    p.adamw.alpha = 0.05f;
    p.sgd.alpha = 0.2f;
    return p;
}

static CHECK_UNUSED struct ggml_opt_params model_params(struct model * m, enum ggml_opt_optimizer_type optimizer) {
    struct ggml_opt_params p = ggml_opt_default_params(sched, m->kind == LINEAR ? GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR : GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    p.ctx_compute = m->ctx_compute;
    p.inputs = m->inputs;
    p.outputs = m->outputs;
    p.get_opt_pars = fast;
    p.optimizer = optimizer;
    return p;
}

static CHECK_UNUSED void model_get(struct model * m, float * out) {
    for (int p = 0; p < m->n_params; p++) {
        ggml_backend_tensor_get(m->params[p], out, 0, ggml_nbytes(m->params[p]));
        out += ggml_nelements(m->params[p]);
    }
}

static CHECK_UNUSED int model_size(const struct model * m) { return m->kind == LINEAR ? N_IN + 1 : N_IN * N_HIDDEN + N_HIDDEN + N_HIDDEN * N_CLASSES + N_CLASSES; }

#endif
