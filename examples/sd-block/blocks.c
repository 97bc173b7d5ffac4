/* The graphs: one description of the model, whose steps are made of ggml-sd.h's operators or of ggml's own. */
#include "ggml-cpu.h"
#include "model.h"

#include <math.h>
#include <string.h>

#define EPS 1e-5f

static bool int8(const struct builder * b) { return b->form == INT8 || b->form == CHECK; }

/* What several linear layers read: as it is, quantised once for all of them, and rounded by ggml's own operators. */
struct activation {
    struct ggml_tensor * x, *packed, *rounded;
};

/* Rotated in groups, then each row to a whole number of 127ths of its largest magnitude. */
static struct ggml_tensor * rounded(struct builder * b, struct ggml_tensor * x) {
    struct ggml_context * ctx = b->ctx;
    const int64_t         k = x->ne[0], n = ggml_nrows(x);
    struct ggml_tensor *  v    = ggml_mul_mat(ctx, b->m->hadamard, ggml_reshape_2d(ctx, x, GROUP, k / GROUP * n));
    v                          = ggml_reshape_2d(ctx, v, k, n);
    struct ggml_tensor * scale = ggml_pool_1d(ctx, ggml_abs(ctx, v), GGML_OP_POOL_MAX, (int) k, (int) k, 0);
    scale                      = ggml_scale(ctx, ggml_reshape_2d(ctx, scale, 1, n), 1.0f / 127);
    return ggml_mul(ctx, ggml_round(ctx, ggml_div(ctx, v, scale)), scale);
}

static struct activation activation(struct builder * b, struct ggml_tensor * x) {
    struct activation a = { .x = x };
    if (int8(b)) {
        a.packed = ggml_quantize_i8_convrot(b->ctx, x, GROUP);
    }
    if (b->form == ROUND || b->form == CHECK) {
        a.rounded = rounded(b, x);
    }
    return a;
}

static struct ggml_tensor * linear(struct builder * b, const struct linear * l, struct activation a) {
    struct ggml_context * ctx = b->ctx;
    struct ggml_tensor *  int8 = NULL, *round = NULL, *plain = NULL;
    if (a.packed) {
        int8 = ggml_mul_mat_i8_tensorwise(ctx, l->i8, a.packed, l->scale, NULL, GROUP);
    }
    if (a.rounded) {
        round = ggml_mul_mat(ctx, l->rounded, a.rounded);
    }
    if (b->form == PLAIN || b->form == CHECK) {
        plain = ggml_mul_mat(ctx, l->f32, a.x);
    }
    if (b->form == CHECK && b->n_probes < MAX_PROBES) {
        b->probes[b->n_probes++] = (struct probe){ l, a.x, a.packed, int8, round, plain };
    }
    return b->form == PLAIN ? plain : b->form == ROUND ? round : int8;
}

/* A layer that the file has as F32. */
static struct ggml_tensor * float_linear(struct builder * b, const struct linear * l, struct ggml_tensor * x) {
    return ggml_add(b->ctx, ggml_mul_mat(b->ctx, l->f32, x), l->bias);
}

static struct ggml_tensor * norm(struct builder * b, struct ggml_tensor * x, struct ggml_tensor * weight) {
    return ggml_mul(b->ctx, ggml_rms_norm(b->ctx, x, EPS), weight);
}

static struct ggml_tensor * modulate(struct builder * b, struct ggml_tensor * x, struct ggml_tensor * scale) {
    return int8(b) ? ggml_sd_modulate(b->ctx, x, NULL, scale) : ggml_add(b->ctx, x, ggml_mul(b->ctx, x, scale));
}

/* [D, heads, tokens] to [D, tokens, heads], each pair of channels times the matrix of its position. */
static struct ggml_tensor * rope(struct builder * b, struct ggml_tensor * x, struct ggml_tensor * pe) {
    struct ggml_context * ctx = b->ctx;
    if (int8(b)) {
        return ggml_rope_apply(ctx, x, pe, /* interleaved */ true);
    }
    const int64_t        heads = x->ne[1], n = x->ne[2];
    struct ggml_tensor * y = ggml_reshape_4d(ctx, ggml_cont(ctx, ggml_permute(ctx, x, 0, 2, 1, 3)), 2, PAIRS, n, heads);
    struct ggml_tensor * m   = ggml_cont(ctx, ggml_permute(ctx, pe, 1, 0, 2, 3)); /* [row, column, pairs, tokens] */
    struct ggml_tensor * sum = NULL;
    for (size_t i = 0; i < 2; i++) {
        struct ggml_tensor * column = ggml_cont(ctx, ggml_view_3d(ctx, m, 2, PAIRS, n, m->nb[2], m->nb[3], i * m->nb[1]));
        struct ggml_tensor * one    = ggml_view_4d(ctx, y, 1, PAIRS, n, heads, y->nb[1], y->nb[2], y->nb[3], i * y->nb[0]);
        struct ggml_tensor * part   = ggml_mul(ctx, ggml_repeat(ctx, one, y), column);
        sum                         = sum ? ggml_add(ctx, sum, part) : part;
    }
    return ggml_reshape_3d(ctx, sum, HEAD, n, heads);
}

/* q, k: [D, tokens, heads], v: [D, heads, tokens]. Result: [D * heads, tokens]. Keys and values in F16 but for PLAIN, as
 * applications do it. */
static struct ggml_tensor * attend(struct builder * b, struct ggml_tensor * q, struct ggml_tensor * k, struct ggml_tensor * v) {
    struct ggml_context * ctx   = b->ctx;
    const float           scale = 1 / sqrtf(HEAD);
    const int64_t         n = q->ne[1], width = HEAD * q->ne[2];
    if (b->form != PLAIN) {
        struct ggml_tensor * y = ggml_flash_attn_ext(ctx, q, ggml_cast(ctx, k, GGML_TYPE_F16),
                                                     ggml_cast(ctx, ggml_permute(ctx, v, 0, 2, 1, 3), GGML_TYPE_F16), NULL, scale, 0, 0);
        ggml_flash_attn_ext_set_prec(y, GGML_PREC_F32);
        return ggml_reshape_2d(ctx, y, width, n);
    }
    struct ggml_tensor * p = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), NULL, scale, 0);
    struct ggml_tensor * y = ggml_mul_mat(ctx, ggml_cont(ctx, ggml_permute(ctx, v, 1, 2, 0, 3)), p);
    return ggml_reshape_2d(ctx, ggml_cont(ctx, ggml_permute(ctx, y, 0, 2, 1, 3)), width, n);
}

static struct ggml_tensor * heads(struct builder * b, struct ggml_tensor * x) {
    return ggml_reshape_3d(b->ctx, x, HEAD, x->ne[0] / HEAD, x->ne[1]);
}

static struct ggml_tensor * attention(struct builder * b, const struct block * w, struct ggml_tensor * x, struct ggml_tensor * pe) {
    const struct activation a = activation(b, x);
    struct ggml_tensor *    q = rope(b, norm(b, heads(b, linear(b, &w->q, a)), w->q_norm), pe);
    struct ggml_tensor *    k = rope(b, norm(b, heads(b, linear(b, &w->k, a)), w->k_norm), pe);
    struct ggml_tensor *    v = heads(b, linear(b, &w->v, a));
    return linear(b, &w->out, activation(b, attend(b, q, k, v)));
}

static struct ggml_tensor * feed_forward(struct builder * b, const struct block * w, struct ggml_tensor * x) {
    const struct activation a    = activation(b, x);
    struct ggml_tensor *    gate = linear(b, &w->w1, a);
    struct ggml_tensor *    up   = linear(b, &w->w3, a);
    return linear(b, &w->w2, activation(b, ggml_swiglu_split(b->ctx, gate, up)));
}

/* Part `i` of the four that a block's modulation has. */
static struct ggml_tensor * chunk(struct builder * b, struct ggml_tensor * mods, int i) {
    const int64_t n = mods->ne[0] / 4;
    return ggml_view_1d(b->ctx, mods, n, (size_t) (i * n) * mods->nb[0]);
}

static struct ggml_tensor * block(struct builder * b, const struct block * w, const char * name, struct ggml_tensor * x,
                                  struct ggml_tensor * pe, struct ggml_tensor * step) {
    struct ggml_context * ctx  = b->ctx;
    struct ggml_tensor *  mods = w->modulated ? float_linear(b, &w->adaln, step) : NULL;
    for (int part = 0; part < 2; part++) {
        struct ggml_tensor * y = norm(b, x, part ? w->ffn_norm1 : w->attention_norm1);
        y                      = mods ? modulate(b, y, chunk(b, mods, 2 * part)) : y;
        y                      = part ? feed_forward(b, w, y) : attention(b, w, y, pe);
        y                      = norm(b, y, part ? w->ffn_norm2 : w->attention_norm2);
        y                      = mods ? ggml_mul(ctx, y, ggml_tanh(ctx, chunk(b, mods, 2 * part + 1))) : y;
        x                      = ggml_add(ctx, y, x);
    }
    ggml_set_name(x, name);
    if (b->n_stages < MAX_STAGES) {
        snprintf(b->stage_names[b->n_stages], sizeof *b->stage_names, "%s", name);
        b->stages[b->n_stages++] = x;
    }
    return x;
}

static struct ggml_tensor * step_embedding(struct builder * b) {
    struct ggml_tensor * t = ggml_timestep_embedding(b->ctx, b->m->step, TIME, 10000);
    return float_linear(b, &b->m->t_out, ggml_silu(b->ctx, float_linear(b, &b->m->t_in, t)));
}

struct ggml_tensor * build_block(struct builder * b) {
    return block(b, &b->m->layers[0], "layers.0", b->m->x, b->m->pe, step_embedding(b));
}

struct ggml_tensor * build_model(struct builder * b) {
    const struct model *  m   = b->m;
    const struct config * c   = &m->config;
    struct ggml_context * ctx = b->ctx;
    char                  name[32];
    struct ggml_tensor *  text    = float_linear(b, &m->cap_embedder, norm(b, m->text, m->cap_norm));
    struct ggml_tensor *  picture = float_linear(b, &m->x_embedder, m->picture);
    struct ggml_tensor *  step    = step_embedding(b);
    struct ggml_tensor *  text_pe = ggml_view_4d(ctx, m->pe, 2, 2, PAIRS, c->text, m->pe->nb[1], m->pe->nb[2], m->pe->nb[3], 0);
    struct ggml_tensor *  rest    = ggml_view_4d(ctx, m->pe, 2, 2, PAIRS, picture->ne[1], m->pe->nb[1], m->pe->nb[2], m->pe->nb[3],
                                                 (size_t) c->text * m->pe->nb[3]);
    for (int i = 0; i < c->refiners; i++) {
        snprintf(name, sizeof name, "context_refiner.%d", i);
        text = block(b, &m->context_refiner[i], name, text, text_pe, NULL);
        snprintf(name, sizeof name, "noise_refiner.%d", i);
        picture = block(b, &m->noise_refiner[i], name, picture, rest, step);
    }
    struct ggml_tensor * x = ggml_concat(ctx, text, picture, 1);
    for (int i = 0; i < c->layers; i++) {
        snprintf(name, sizeof name, "layers.%d", i);
        x = block(b, &m->layers[i], name, x, m->pe, step);
    }
    x = modulate(b, ggml_norm(ctx, x, 1e-6f), float_linear(b, &m->final_adaln, ggml_silu(ctx, step)));
    x = float_linear(b, &m->final_linear, x);
    x = ggml_cont(ctx, ggml_view_2d(ctx, x, PATCH, picture->ne[1], x->nb[1], (size_t) c->text * x->nb[1]));
    snprintf(b->stage_names[b->n_stages], sizeof *b->stage_names, "result");
    b->stages[b->n_stages++] = x;
    return x;
}

enum { NODES = 16384 };

bool run_new(struct run * r, const struct model * m, ggml_backend_t backend, enum form form, bool whole) {
    const struct ggml_init_params params = { NODES * ggml_tensor_overhead() + ggml_graph_overhead_custom(NODES, false), NULL, true };
    memset(r, 0, sizeof *r);
    r->b.m    = m;
    r->b.form = form;
    r->b.ctx  = ggml_init(params);
    r->sched  = ggml_backend_sched_new(&backend, NULL, 1, NODES, false, false);
    r->result = r->b.ctx ? (whole ? build_model(&r->b) : build_block(&r->b)) : NULL;
    r->graph  = r->b.ctx ? ggml_new_graph_custom(r->b.ctx, NODES, false) : NULL;
    if (!r->sched || !r->result || !r->graph) {
        return failed("building the graph");
    }
    for (int i = 0; whole && i < r->b.n_stages; i++) {
        ggml_set_output(r->b.stages[i]);
    }
    ggml_set_output(r->result);
    ggml_build_forward_expand(r->graph, r->result);
    for (int i = 0; i < r->b.n_probes; i++) {
        const struct probe * p     = &r->b.probes[i];
        struct ggml_tensor * all[] = { p->x, p->packed, p->int8, p->round, p->plain };
        for (int j = 0; j < 5; j++) {
            ggml_set_output(all[j]);
            ggml_build_forward_expand(r->graph, all[j]);
        }
    }
    return ggml_backend_sched_alloc_graph(r->sched, r->graph) || failed("ggml_backend_sched_alloc_graph");
}

bool run_compute(struct run * r) {
    return ggml_backend_sched_graph_compute(r->sched, r->graph) == GGML_STATUS_SUCCESS || failed("ggml_backend_sched_graph_compute");
}

void run_free(struct run * r) {
    ggml_backend_sched_free(r->sched);
    ggml_free(r->b.ctx);
    memset(r, 0, sizeof *r);
}
