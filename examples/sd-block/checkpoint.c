/* The two files: seeded random weights as F32, and in the format int8_tensorwise with rotated rows. */
#include "model.h"
#include "safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(struct weight * list, int * n, const char * prefix, const char * name, enum kind kind, int64_t k, int64_t rows, float mean,
                float spread) {
    struct weight * w = &list[(*n)++];
    snprintf(w->name, sizeof w->name, "%.31s%.63s", prefix, name);
    w->kind   = kind;
    w->k      = k;
    w->n      = rows;
    w->mean   = mean;
    w->spread = spread;
}

/* A matrix keeps the size of numbers: spread 1 / sqrt(K). */
static void matrix(struct weight * list, int * n, const char * prefix, const char * name, enum kind kind, int64_t k, int64_t rows) {
    char full[64];
    snprintf(full, sizeof full, "%.50s.weight", name);
    add(list, n, prefix, full, kind, k, rows, 0, 1 / sqrtf((float) k));
}

static void bias(struct weight * list, int * n, const char * prefix, const char * name, int64_t k) {
    char full[64];
    snprintf(full, sizeof full, "%.50s.bias", name);
    add(list, n, prefix, full, VECTOR, k, 1, 0, 0.1f);
}

static void norm(struct weight * list, int * n, const char * prefix, const char * name, int64_t k) {
    add(list, n, prefix, name, VECTOR, k, 1, 1, 0.2f);
}

static void block(const struct config * c, struct weight * list, int * n, const char * kind, int i, bool modulated) {
    char p[32];
    snprintf(p, sizeof p, "%.16s.%d.", kind, i);
    matrix(list, n, p, "attention.qkv", INT8_MATRIX, c->width, 3 * c->width);
    matrix(list, n, p, "attention.out", INT8_MATRIX, c->width, c->width);
    norm(list, n, p, "attention.q_norm.weight", HEAD);
    norm(list, n, p, "attention.k_norm.weight", HEAD);
    matrix(list, n, p, "feed_forward.w1", INT8_MATRIX, c->width, c->inner);
    matrix(list, n, p, "feed_forward.w2", INT8_MATRIX, c->inner, c->width);
    matrix(list, n, p, "feed_forward.w3", INT8_MATRIX, c->width, c->inner);
    norm(list, n, p, "attention_norm1.weight", c->width);
    norm(list, n, p, "attention_norm2.weight", c->width);
    norm(list, n, p, "ffn_norm1.weight", c->width);
    norm(list, n, p, "ffn_norm2.weight", c->width);
    if (modulated) {
        matrix(list, n, p, "adaLN_modulation.0", FLOAT_MATRIX, c->adaln, 4 * c->width);
        bias(list, n, p, "adaLN_modulation.0", 4 * c->width);
    }
}

int model_weights(const struct config * c, struct weight list[MAX_WEIGHTS]) {
    int n = 0;
    matrix(list, &n, "", "x_embedder", FLOAT_MATRIX, PATCH, c->width);
    bias(list, &n, "", "x_embedder", c->width);
    norm(list, &n, "", "cap_embedder.0.weight", c->text_width);
    matrix(list, &n, "", "cap_embedder.1", FLOAT_MATRIX, c->text_width, c->width);
    bias(list, &n, "", "cap_embedder.1", c->width);
    matrix(list, &n, "", "t_embedder.mlp.0", FLOAT_MATRIX, TIME, c->time_hidden);
    bias(list, &n, "", "t_embedder.mlp.0", c->time_hidden);
    matrix(list, &n, "", "t_embedder.mlp.2", FLOAT_MATRIX, c->time_hidden, c->adaln);
    bias(list, &n, "", "t_embedder.mlp.2", c->adaln);
    for (int i = 0; i < c->refiners; i++) {
        block(c, list, &n, "context_refiner", i, false);
        block(c, list, &n, "noise_refiner", i, true);
    }
    for (int i = 0; i < c->layers; i++) {
        block(c, list, &n, "layers", i, true);
    }
    matrix(list, &n, "", "final_layer.adaLN_modulation.1", FLOAT_MATRIX, c->adaln, c->width);
    bias(list, &n, "", "final_layer.adaLN_modulation.1", c->width);
    matrix(list, &n, "", "final_layer.linear", FLOAT_MATRIX, c->width, PATCH);
    bias(list, &n, "", "final_layer.linear", PATCH);
    return n;
}

/* numbers */

static uint64_t next(uint64_t * state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The sum of four even numbers: mean 0, variance 1, hardly to be told from a normal distribution. */
static float normal(uint64_t * state) {
    const uint64_t r   = next(state);
    const int      sum = (int) ((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48)) - 2 * 0xffff;
    return (float) sum * (1.7320508f / 65536);
}

static uint64_t start(const struct config * c, const char * name) {
    uint64_t state = c->seed;
    for (; *name; name++) {
        state = (state ^ (unsigned char) *name) * 0x100000001b3u;
    }
    return state;
}

void rotate(float * row, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        row[i] *= 1 / 16.0f; /* 1 / sqrt(256) */
    }
    for (int64_t s = 1; s < GROUP; s *= 4) {
        for (int64_t i = 0; i < k; i += 4 * s) {
            for (int64_t j = i; j < i + s; j++) {
                const float a = row[j], b = row[j + s], c = row[j + 2 * s], d = row[j + 3 * s];
                row[j]         = a + b + c - d;
                row[j + s]     = a + b - c + d;
                row[j + 2 * s] = a - b + c + d;
                row[j + 3 * s] = -a + b + c + d;
            }
        }
    }
}

static float quantise(const float * row, int8_t * q, int64_t k) {
    float most = 0;
    for (int64_t i = 0; i < k; i++) {
        most = fabsf(row[i]) > most ? fabsf(row[i]) : most;
    }
    const float scale = most / 127;
    for (int64_t i = 0; i < k; i++) {
        q[i] = (int8_t) (scale > 0 ? fmaxf(-127, fminf(127, rintf(row[i] / scale))) : 0);
    }
    return scale;
}

/* files */

#define STORED "{\"format\": \"int8_tensorwise\", \"convrot\": true, \"convrot_groupsize\": 256}"

static struct st_tensor * declare(struct st_tensor * t, const struct weight * w, const char * end, const char * type, int64_t n, int64_t k) {
    const int stem = (int) strlen(w->name) - (int) strlen("weight");
    memset(t, 0, sizeof *t);
    if (end) {
        snprintf(t->name, sizeof t->name, "%.*s%.30s", stem, w->name, end);
    } else {
        snprintf(t->name, sizeof t->name, "%.95s", w->name);
    }
    snprintf(t->type, sizeof t->type, "%.7s", type);
    t->n_dims   = k ? 2 : 1;
    t->shape[0] = n;
    t->shape[1] = k;
    return t + 1;
}

static bool write_weight(const struct config * c, const struct weight * w, struct st_file * f32, struct st_file * int8, float * row,
                         int8_t * q) {
    float *  scales = malloc((size_t) w->n * sizeof *scales);
    uint64_t state  = start(c, w->name);
    bool     ok     = scales != NULL;
    for (int64_t n = 0; ok && n < w->n; n++) {
        for (int64_t i = 0; i < w->k; i++) {
            row[i] = w->mean + w->spread * normal(&state);
        }
        ok = st_write(f32, row, (size_t) w->k * sizeof *row);
        if (w->kind != INT8_MATRIX) {
            ok = ok && st_write(int8, row, (size_t) w->k * sizeof *row);
            continue;
        }
        rotate(row, w->k);
        scales[n] = quantise(row, q, w->k);
        ok        = ok && st_write(int8, q, (size_t) w->k);
    }
    if (w->kind == INT8_MATRIX) {
        ok = ok && st_write(int8, scales, (size_t) w->n * sizeof *scales) && st_write(int8, STORED, sizeof STORED - 1);
    }
    free(scales);
    return ok;
}

bool checkpoint_write(const struct config * c, const char * f32_path, const char * int8_path) {
    static struct weight    list[MAX_WEIGHTS];
    static struct st_tensor plain[MAX_WEIGHTS], stored[3 * MAX_WEIGHTS];
    const int               n = model_weights(c, list);
    struct st_tensor *      p = plain, *s = stored;
    for (int i = 0; i < n; i++) {
        const struct weight * w = &list[i];
        const bool            v = w->kind == VECTOR;
        p = declare(p, w, NULL, "F32", v ? w->k : w->n, v ? 0 : w->k);
        s = declare(s, w, NULL, w->kind == INT8_MATRIX ? "I8" : "F32", v ? w->k : w->n, v ? 0 : w->k);
        if (w->kind == INT8_MATRIX) {
            s = declare(s, w, "weight_scale", "F32", w->n, 1);
            s = declare(s, w, "comfy_quant", "U8", sizeof STORED - 1, 0);
        }
    }
    const size_t   widest = (size_t) (c->inner + c->width + c->text_width + c->time_hidden + 4 * c->adaln);
    float *        row    = malloc(4 * widest * sizeof *row);
    int8_t *       q      = malloc(4 * widest);
    struct st_file f32 = { 0 }, int8 = { 0 };
    bool           ok  = row && q && st_create(&f32, f32_path, plain, (int) (p - plain))
           && st_create(&int8, int8_path, stored, (int) (s - stored));
    for (int i = 0; ok && i < n; i++) {
        ok = write_weight(c, &list[i], &f32, &int8, row, q);
    }
    ok = ok && st_finish(&f32) && st_finish(&int8);
    st_close(&f32);
    st_close(&int8);
    free(row);
    free(q);
    return ok;
}
