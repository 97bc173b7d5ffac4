/* Both files into memory. */
#include "model.h"
#include "safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool failed(const char * what) {
    struct ggml_ext_error error = { .struct_size = sizeof error };
    fprintf(stderr, "%s failed: %s\n", what, ggml_ext_last_error(&error) ? error.text : "no reason is known");
    return false;
}

static bool bad(const char * name, const char * what) {
    fprintf(stderr, "%s: %s\n", name, what);
    return false;
}

/* What is to be read into which tensor, when there is memory. */
struct fill {
    struct ggml_tensor *     to;
    const struct st_file *   file;
    const struct st_tensor * from;
    uint64_t                 offset;
};

struct loader {
    struct model * m;
    struct st_file f32, int8;
    struct fill    fills[8 * MAX_WEIGHTS];
    int            n;
    bool           ok;
};

/* A tensor of the file, of which rows from `row` on are wanted: [k, rows], [rows] where k is 1, or `k` elements where `rows` is 0. */
static struct ggml_tensor * part(struct loader * l, const struct st_file * file, const char * name, enum ggml_type type, int64_t k,
                                 int64_t row, int64_t rows) {
    const struct st_tensor * t       = st_find(file, name);
    const char *             st_type = type == GGML_TYPE_F32 ? "F32" : "I8";
    if (!t || strcmp(t->type, st_type) != 0) {
        l->ok = bad(name, t ? "has another type" : "is not in the file");
        return NULL;
    }
    const bool shape = rows ? t->n_dims == 2 && t->shape[1] == k && t->shape[0] >= row + rows : t->n_dims == 1 && t->shape[0] == k;
    if (!shape) {
        l->ok = bad(name, "has another shape");
        return NULL;
    }
    struct ggml_tensor * to = rows && k > 1 ? ggml_new_tensor_2d(l->m->ctx, type, k, rows) : ggml_new_tensor_1d(l->m->ctx, type, k == 1 ? rows : k);
    if (!to || l->n == (int) (sizeof l->fills / sizeof *l->fills)) {
        l->ok = failed("loading");
        return NULL;
    }
    ggml_set_name(to, name);
    l->fills[l->n++] = (struct fill){ to, file, t, (uint64_t) (row * k) * ggml_type_size(type) };
    return to;
}

static struct ggml_tensor * vector(struct loader * l, const char * prefix, const char * name, int64_t k) {
    char full[128];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return part(l, &l->f32, full, GGML_TYPE_F32, k, 0, 0);
}

/* How a module is stored, by the text in the file. */
static bool stored_as_int8(struct loader * l, const char * name) {
    char full[128], text[256] = "";
    snprintf(full, sizeof full, "%.95s.comfy_quant", name);
    const struct st_tensor * t = st_find(&l->int8, full);
    if (!t) {
        return false;
    }
    if (strcmp(t->type, "U8") != 0 || t->size >= sizeof text || !st_read(&l->int8, t, 0, text, t->size)) {
        l->ok = bad(full, "cannot be read");
        return false;
    }
    if (!strstr(text, "\"int8_tensorwise\"") || !strstr(text, "\"convrot\": true") || !strstr(text, "\"convrot_groupsize\": 256")) {
        l->ok = bad(full, "is not int8_tensorwise with groups of 256");
        return false;
    }
    return true;
}

/* Rows from `row` on of a linear layer. */
static void linear(struct loader * l, struct linear * to, const char * prefix, const char * name, int64_t k, int64_t row, int64_t rows,
                   bool bias) {
    char full[96], text[128];
    snprintf(full, sizeof full, "%.31s%.63s", prefix, name);
    snprintf(text, sizeof text, "%.95s.weight", full);
    to->f32 = part(l, &l->f32, text, GGML_TYPE_F32, k, row, rows);
    if (stored_as_int8(l, full)) {
        to->i8 = part(l, &l->int8, text, GGML_TYPE_I8, k, row, rows);
        snprintf(text, sizeof text, "%.95s.weight_scale", full);
        to->scale   = part(l, &l->int8, text, GGML_TYPE_F32, 1, row, rows);
        to->rounded = ggml_new_tensor_2d(l->m->ctx, GGML_TYPE_F32, k, rows);
        l->ok       = l->ok && to->rounded && k % GROUP == 0;
    }
    if (bias) {
        to->bias = vector(l, full, ".bias", rows);
    }
    snprintf(to->name, sizeof to->name, "%.95s", full);
}

static void block(struct loader * l, struct block * b, const char * kind, int i, bool modulated) {
    const struct config * c = &l->m->config;
    char                  p[32];
    snprintf(p, sizeof p, "%.16s.%d.", kind, i);
    b->modulated = modulated;
    linear(l, &b->q, p, "attention.qkv", c->width, 0, c->width, false);
    linear(l, &b->k, p, "attention.qkv", c->width, c->width, c->width, false);
    linear(l, &b->v, p, "attention.qkv", c->width, 2 * c->width, c->width, false);
    linear(l, &b->out, p, "attention.out", c->width, 0, c->width, false);
    linear(l, &b->w1, p, "feed_forward.w1", c->width, 0, c->inner, false);
    linear(l, &b->w2, p, "feed_forward.w2", c->inner, 0, c->width, false);
    linear(l, &b->w3, p, "feed_forward.w3", c->width, 0, c->inner, false);
    b->q_norm          = vector(l, p, "attention.q_norm.weight", HEAD);
    b->k_norm          = vector(l, p, "attention.k_norm.weight", HEAD);
    b->attention_norm1 = vector(l, p, "attention_norm1.weight", c->width);
    b->attention_norm2 = vector(l, p, "attention_norm2.weight", c->width);
    b->ffn_norm1       = vector(l, p, "ffn_norm1.weight", c->width);
    b->ffn_norm2       = vector(l, p, "ffn_norm2.weight", c->width);
    if (modulated) {
        linear(l, &b->adaln, p, "adaLN_modulation.0", c->adaln, 0, 4 * c->width, true);
    }
}

static bool read_fills(struct loader * l) {
    size_t most = 0;
    for (int i = 0; i < l->n; i++) {
        most = ggml_nbytes(l->fills[i].to) > most ? ggml_nbytes(l->fills[i].to) : most;
    }
    void * data = malloc(most);
    bool   ok   = data != NULL;
    for (int i = 0; ok && i < l->n; i++) {
        const struct fill * f    = &l->fills[i];
        const size_t        size = ggml_nbytes(f->to);
        ok = st_read(f->file, f->from, f->offset, data, size);
        if (ok) {
            ggml_backend_tensor_set(f->to, data, 0, size);
        }
    }
    free(data);
    return ok;
}

/* What 8 bits stand for, as F32. */
static bool make_rounded(const struct linear * l) {
    if (!l->i8) {
        return true;
    }
    const int64_t k = l->i8->ne[0], n = l->i8->ne[1];
    int8_t *      q     = malloc((size_t) (k * n));
    float *       scale = malloc((size_t) n * sizeof *scale), *row = malloc((size_t) k * sizeof *row);
    const bool    ok    = q && scale && row;
    if (ok) {
        ggml_backend_tensor_get(l->i8, q, 0, (size_t) (k * n));
        ggml_backend_tensor_get(l->scale, scale, 0, (size_t) n * sizeof *scale);
        for (int64_t r = 0; r < n; r++) {
            for (int64_t i = 0; i < k; i++) {
                row[i] = (float) q[r * k + i] * scale[r];
            }
            ggml_backend_tensor_set(l->rounded, row, (size_t) (r * k) * sizeof *row, (size_t) k * sizeof *row);
        }
    }
    free(q);
    free(scale);
    free(row);
    return ok;
}

static bool make_all_rounded(struct block * b) {
    return make_rounded(&b->q) && make_rounded(&b->k) && make_rounded(&b->v) && make_rounded(&b->out) && make_rounded(&b->w1)
        && make_rounded(&b->w2) && make_rounded(&b->w3);
}

/* Rows of the matrix are what unit vectors are rotated to. */
static void make_hadamard(struct ggml_tensor * t) {
    float row[GROUP];
    for (int i = 0; i < GROUP; i++) {
        memset(row, 0, sizeof row);
        row[i] = 1;
        rotate(row, GROUP);
        ggml_backend_tensor_set(t, row, (size_t) i * sizeof row, sizeof row);
    }
}

/* Positions: text at (1, 0, 0), (2, 0, 0), ...; the picture at (text + 1, row, column). Pairs: 16, 24, 24 for the three. */
static void make_pe(const struct config * c, struct ggml_tensor * pe) {
    static const int axes[] = { 16, 24, 24 };
    for (int t = 0; t < config_tokens(c); t++) {
        const int at     = t - c->text;
        const int pos[3] = { at < 0 ? 1 + t : c->text + 1, at < 0 ? 0 : at / c->columns, at < 0 ? 0 : at % c->columns };
        float     m[PAIRS][4];
        for (int axis = 0, pair = 0; axis < 3; axis++) {
            for (int i = 0; i < axes[axis]; i++, pair++) {
                const float angle = (float) pos[axis] / powf(256, (float) i / (float) axes[axis]);
                m[pair][0] = m[pair][3] = cosf(angle);
                m[pair][2]              = sinf(angle);
                m[pair][1]              = -m[pair][2];
            }
        }
        ggml_backend_tensor_set(pe, m, (size_t) t * sizeof m, sizeof m);
    }
}

/* Even numbers of variance 1. */
static void make_noise(struct ggml_tensor * t, uint64_t seed) {
    uint32_t      state = (uint32_t) seed * 2654435761u + 12345;
    const int64_t n     = ggml_nelements(t);
    for (int64_t i = 0; i < n; i++) {
        state         = state * 1664525 + 1013904223;
        const float x = 3.4641016f * ((float) (state >> 8) / 16777216 - 0.5f);
        ggml_backend_tensor_set(t, &x, (size_t) i * sizeof x, sizeof x);
    }
}

static bool load(struct loader * l, ggml_backend_t backend) {
    struct model *        m = l->m;
    const struct config * c = &m->config;
    const int64_t         n = config_tokens(c);
    linear(l, &m->x_embedder, "", "x_embedder", PATCH, 0, c->width, true);
    m->cap_norm = vector(l, "", "cap_embedder.0.weight", c->text_width);
    linear(l, &m->cap_embedder, "", "cap_embedder.1", c->text_width, 0, c->width, true);
    linear(l, &m->t_in, "", "t_embedder.mlp.0", TIME, 0, c->time_hidden, true);
    linear(l, &m->t_out, "", "t_embedder.mlp.2", c->time_hidden, 0, c->adaln, true);
    linear(l, &m->final_adaln, "", "final_layer.adaLN_modulation.1", c->adaln, 0, c->width, true);
    linear(l, &m->final_linear, "", "final_layer.linear", c->width, 0, PATCH, true);
    for (int i = 0; i < c->refiners; i++) {
        block(l, &m->context_refiner[i], "context_refiner", i, false);
        block(l, &m->noise_refiner[i], "noise_refiner", i, true);
    }
    for (int i = 0; i < c->layers; i++) {
        block(l, &m->layers[i], "layers", i, true);
    }
    m->hadamard = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, GROUP, GROUP);
    m->picture  = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, PATCH, n - c->text);
    m->text     = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, c->text_width, c->text);
    m->step     = ggml_new_tensor_1d(m->ctx, GGML_TYPE_F32, 1);
    m->pe       = ggml_new_tensor_4d(m->ctx, GGML_TYPE_F32, 2, 2, PAIRS, n);
    m->x        = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, c->width, n);
    if (!l->ok) {
        return false;
    }
    m->buffer = ggml_backend_alloc_ctx_tensors(m->ctx, backend);
    if (!m->buffer) {
        return failed("memory for the model");
    }
    ggml_backend_buffer_set_usage(m->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    if (!read_fills(l)) {
        return false;
    }
    bool ok = true;
    for (int i = 0; i < c->refiners; i++) {
        ok = ok && make_all_rounded(&m->context_refiner[i]) && make_all_rounded(&m->noise_refiner[i]);
    }
    for (int i = 0; i < c->layers; i++) {
        ok = ok && make_all_rounded(&m->layers[i]);
    }
    make_hadamard(m->hadamard);
    make_pe(c, m->pe);
    make_noise(m->picture, c->seed);
    make_noise(m->text, c->seed + 1);
    make_noise(m->x, c->seed + 2);
    const float step = 700;
    ggml_backend_tensor_set(m->step, &step, 0, sizeof step);
    return ok;
}

bool model_load(struct model * m, const struct config * c, ggml_backend_t backend, const char * f32_path, const char * int8_path) {
    static struct loader           l;
    const struct ggml_init_params params = { (8 * MAX_WEIGHTS + 16) * ggml_tensor_overhead(), NULL, /* no_alloc */ true };
    memset(m, 0, sizeof *m);
    memset(&l, 0, sizeof l);
    m->config = *c;
    m->ctx    = ggml_init(params);
    l.m       = m;
    l.ok      = m->ctx != NULL;
    const bool ok = l.ok && st_open(&l.f32, f32_path) && st_open(&l.int8, int8_path) && load(&l, backend);
    st_close(&l.f32);
    st_close(&l.int8);
    return ok;
}

void model_free(struct model * m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->ctx);
}
