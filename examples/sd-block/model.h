/* A diffusion transformer of Z-Image's form: its weights, in two files and in memory. */
#ifndef MODEL_H
#define MODEL_H

#include "ggml-backend.h"
#include "ggml-ext.h"
#include "ggml.h"

#include <stdbool.h>
#include <stdint.h>

enum { HEAD = 128, PAIRS = HEAD / 2, PATCH = 64, TIME = 256, GROUP = 256, MAX_LAYERS = 32, MAX_WEIGHTS = 16 * MAX_LAYERS + 32 };

struct config {
    int64_t  width, inner, text_width; /* channels: of a token, inside the feed-forward part, of the text's embedding */
    int64_t  time_hidden, adaln;       /* channels of the step's embedding: hidden, and as blocks read it */
    int      layers, refiners;         /* blocks on all tokens; on text and on picture before them, each */
    int      rows, columns, text;      /* tokens of the picture, and of the text */
    uint64_t seed;
};

static inline int64_t config_heads(const struct config * c) { return c->width / HEAD; }
static inline int     config_tokens(const struct config * c) { return c->rows * c->columns + c->text; }

/* what the files have */

enum kind { VECTOR, FLOAT_MATRIX, INT8_MATRIX };

struct weight {
    char      name[96];
    enum kind kind;
    int64_t   k, n;         /* columns and rows; a vector has k elements */
    float     mean, spread; /* of the random numbers */
};

int  model_weights(const struct config * c, struct weight list[MAX_WEIGHTS]);
bool checkpoint_write(const struct config * c, const char * f32_path, const char * int8_path);

/* Rotates a row in groups of GROUP, in place: the file's weights are rotated as activations are. */
void rotate(float * row, int64_t k);

/* what is in memory */

struct linear {
    char                 name[96];
    struct ggml_tensor * f32;     /* [K, N] of the F32 file */
    struct ggml_tensor * i8;      /* [K, N], rotated, NULL: this layer is not stored in 8 bits */
    struct ggml_tensor * scale;   /* [N] */
    struct ggml_tensor * rounded; /* [K, N]: i8 times scale, as F32 */
    struct ggml_tensor * bias;    /* [N] or NULL */
};

struct block {
    bool                 modulated;
    struct linear        q, k, v, out, w1, w2, w3, adaln;
    struct ggml_tensor * q_norm, *k_norm, *attention_norm1, *attention_norm2, *ffn_norm1, *ffn_norm2;
};

struct model {
    struct config         config;
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct linear         x_embedder, cap_embedder, t_in, t_out, final_linear, final_adaln;
    struct ggml_tensor *  cap_norm, *hadamard;
    struct block          context_refiner[MAX_LAYERS], noise_refiner[MAX_LAYERS], layers[MAX_LAYERS];
    /* what goes in */
    struct ggml_tensor * picture, *text, *step, *pe, *x; /* x: tokens for a block by itself */
};

/* Reads both files. False, with a line on stderr: one is not as it must be. */
bool model_load(struct model * m, const struct config * c, ggml_backend_t backend, const char * f32_path, const char * int8_path);
void model_free(struct model * m);

/* An error of the library's, on stderr; false. */
bool failed(const char * what);

/* graphs */

enum form {
    INT8,  /* ggml-sd.h's operators */
    PLAIN, /* F32, ggml's own operators */
    ROUND, /* ggml's own operators, with weights and activations rounded to 8 bits */
    CHECK, /* INT8, and beside each linear layer what PLAIN and ROUND make of the same input */
};

enum { MAX_PROBES = 8 * MAX_LAYERS, MAX_STAGES = 3 * MAX_LAYERS + 4 };

/* A linear layer under CHECK. */
struct probe {
    const struct linear * layer;
    struct ggml_tensor *  x, *packed, *int8, *round, *plain;
};

struct builder {
    const struct model *  m;
    struct ggml_context * ctx;
    enum form             form;
    int                   n_probes, n_stages;
    struct probe          probes[MAX_PROBES];
    struct ggml_tensor *  stages[MAX_STAGES]; /* the result of each block, and the last one */
    char                  stage_names[MAX_STAGES][32];
};

/* A step of the whole model; one block on `m->x`. NULL: a node could not be built. */
struct ggml_tensor * build_model(struct builder * b);
struct ggml_tensor * build_block(struct builder * b);

/* Builds, places, and computes; results that were marked as outputs are there until `run_free`. */
struct run {
    struct builder        b;
    ggml_backend_sched_t  sched;
    struct ggml_cgraph *  graph;
    struct ggml_tensor *  result;
};
bool run_new(struct run * r, const struct model * m, ggml_backend_t backend, enum form form, bool whole);
bool run_compute(struct run * r);
void run_free(struct run * r);

/* The plan and the counters of a block, on stdout; false: something is not as it must be. */
bool bench_block(const struct model * m, ggml_backend_t backend, int rounds);

#endif
