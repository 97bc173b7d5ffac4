/* The 8-bit floats of stable-diffusion.cpp's ggml: names, files, every code through each way out of the format, products with them as
 * they are and by way of BF16, and what refuses to write them. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "gguf.h"

#include <math.h>

static const enum ggml_type  both[]   = { GGML_TYPE_F8_E4M3, GGML_TYPE_F8_E5M2 };
static const enum ggml_type  floats[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
static ggml_backend_t        cpu;
static struct ggml_context * ctx;

#define NAME(t) ggml_type_name(t)

/* The number that a code stands for, and whether it is none. */
static double value(enum ggml_type type, int code, bool * nan) {
    const int digits = type == GGML_TYPE_F8_E4M3 ? 3 : 2, bias = type == GGML_TYPE_F8_E4M3 ? 7 : 15;
    const int e = (code & 127) >> digits, m = code & ((1 << digits) - 1);
    *nan         = type == GGML_TYPE_F8_E4M3 ? (code & 127) == 127 : e == 31 && m;
    double size  = e == 0 ? ldexp(m, 1 - bias - digits) : ldexp((1 << digits) + m, e - bias - digits);
    if (type == GGML_TYPE_F8_E5M2 && e == 31) {
        size = INFINITY;
    }
    return code & 128 ? -size : size;
}

/* The same as bits of a float of 32 or 16 bits. */
static uint32_t bits(enum ggml_type type, double v) {
    const float f = (float) v;
    uint32_t    u;
    memcpy(&u, &f, 4);
    if (type == GGML_TYPE_F32) {
        return u;
    }
    if (type == GGML_TYPE_BF16) {
        return u >> 16; /* of numbers with so few digits the rest is 0 */
    }
    if (f == 0 || isinf(f)) {
        return (u >> 16 & 0x8000) | (f == 0 ? 0 : 0x7c00);
    }
    int          e;
    const double m = frexp(fabs(v), &e); /* v = m 2^e, m from 0.5 */
    const double k = e > -14 ? (m * 2 - 1) * 1024 + (e - 1 + 15) * 1024.0 : ldexp(fabs(v), 24);
    return (u >> 16 & 0x8000) | (uint32_t) k;
}

/* Elements of `t` that are not codes `order[i]` of `type` to the bit. */
static int wrong(const struct ggml_tensor * t, enum ggml_type type, const uint8_t * order, int n) {
    int             bad  = 0;
    const size_t    size = ggml_type_size(t->type);
    const uint8_t * at   = (const uint8_t *) t->data;
    for (int i = 0; i < n; i++) {
        uint32_t have = 0;
        bool     nan;
        memcpy(&have, at + (size_t) i * size, size);
        const double   want = value(type, order[i], &nan);
        const uint32_t sign = 1u << (8 * size - 1), inf = bits(t->type, INFINITY);
        bad += nan ? (have & ~sign) <= inf || (have & sign) != (order[i] & 128 ? sign : 0) : have != bits(t->type, want);
    }
    return bad;
}

static bool compute(struct ggml_tensor * t) {
    struct ggml_cgraph * g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, t);
    return ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS;
}

static void every_code(enum ggml_type type) {
    uint8_t              order[256];
    struct ggml_tensor * a = ggml_new_tensor_2d(ctx, type, 64, 4);
    for (int i = 0; i < 256; i++) {
        order[i] = (uint8_t) (i * 37 + 11); /* each once */
    }
    memcpy(a->data, order, 256);
    for (int i = 0; i < 3; i++) {
        struct ggml_tensor * c = ggml_cast(ctx, a, floats[i]);
        CHECK(compute(c) && c->type == floats[i] && wrong(c, type, order, 256) == 0, "%s: cast to %s", NAME(type), NAME(floats[i]));
        struct ggml_tensor * to = ggml_new_tensor_2d(ctx, floats[i], 64, 4);
        memset(to->data, 0xa5, ggml_nbytes(to));
        c = ggml_cpy(ctx, a, to);
        CHECK(compute(c) && wrong(to, type, order, 256) == 0, "%s: cpy to %s", NAME(type), NAME(floats[i]));
    }
    /* rows 2, 0, 3, 1 and, of a transposed copy, columns */
    struct ggml_tensor * rows = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 4);
    const int32_t        pick[4] = { 2, 0, 3, 1 };
    memcpy(rows->data, pick, sizeof pick);
    uint8_t picked[256];
    for (int i = 0; i < 256; i++) {
        picked[i] = order[pick[i / 64] * 64 + i % 64];
    }
    struct ggml_tensor * r = ggml_get_rows(ctx, a, rows);
    CHECK(compute(r) && r->type == GGML_TYPE_F32 && wrong(r, type, picked, 256) == 0, "%s: get_rows", NAME(type));
    for (int i = 0; i < 256; i++) {
        picked[i] = order[i % 4 * 64 + i / 4];
    }
    r = ggml_cast(ctx, ggml_transpose(ctx, a), GGML_TYPE_F16);
    CHECK(compute(r) && wrong(r, type, picked, 256) == 0, "%s: cast of a transposed view", NAME(type));
    struct ggml_tensor * same = ggml_cont(ctx, ggml_transpose(ctx, a));
    CHECK(compute(same) && same->type == type && memcmp(same->data, picked, 256) == 0, "%s: cont moves bytes", NAME(type));
}

static uint32_t seed = 1;
static float    uniform(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float) (seed >> 8) / 8388608.0f - 1.0f;
}

/* Any code that is a number below 2 in size. */
static void weights(enum ggml_type type, struct ggml_tensor * w) {
    uint8_t * at = (uint8_t *) w->data;
    for (size_t i = 0; i < ggml_nbytes(w); i++) {
        bool nan;
        do {
            seed  = seed * 1664525u + 1013904223u;
            at[i] = (uint8_t) (seed >> 24);
        } while (!(fabs(value(type, at[i], &nan)) < 2) || nan);
    }
}

static double error(const struct ggml_tensor * y, const struct ggml_tensor * z) {
    double d = 0, s = 1e-30;
    for (int64_t i = 0; i < ggml_nelements(y); i++) {
        const double a = ((const float *) y->data)[i], b = ((const float *) z->data)[i];
        d += (a - b) * (a - b);
        s += b * b;
    }
    return d / s;
}

/* Products as they are, and by the cast to BF16 that the client puts before a device that refuses them. */
static void products(enum ggml_type type) {
    const int64_t K = 100, M = 37, N = 21;
    for (int form = 0; form < 4; form++) {
        const enum ggml_type tx = form % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        const int64_t        n  = form / 2 ? 1 : N;
        struct ggml_tensor * w  = ggml_new_tensor_2d(ctx, type, K, M);
        struct ggml_tensor * x  = ggml_new_tensor_3d(ctx, tx, K, n, 2);
        weights(type, w);
        for (int64_t i = 0; i < ggml_nelements(x); i++) {
            const float v = uniform();
            if (tx == GGML_TYPE_F32) {
                ((float *) x->data)[i] = v;
            } else {
                ((ggml_fp16_t *) x->data)[i] = ggml_fp32_to_fp16(v);
            }
        }
        struct ggml_tensor * want = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, M, n, 2);
        for (int64_t r = 0; r < 2 * n; r++) {
            for (int64_t m = 0; m < M; m++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++) {
                    bool         nan;
                    const size_t at = (size_t) (r * K + k);
                    const double v  = tx == GGML_TYPE_F32 ? ((float *) x->data)[at] : ggml_fp16_to_fp32(((ggml_fp16_t *) x->data)[at]);
                    sum += v * value(type, ((uint8_t *) w->data)[m * K + k], &nan);
                }
                ((float *) want->data)[r * M + m] = (float) sum;
            }
        }
        struct ggml_tensor * y = ggml_mul_mat(ctx, w, x);
        CHECK(ggml_backend_supports_op(cpu, y), "%s times %s, %d rows: the CPU says yes", NAME(type), NAME(tx), (int) n);
        CHECK(compute(y) && error(y, want) < 1e-12, "%s times %s, %d rows: %g", NAME(type), NAME(tx), (int) n, error(y, want));
        struct ggml_tensor * z = ggml_mul_mat(ctx, ggml_cast(ctx, w, GGML_TYPE_BF16), x);
        CHECK(compute(z) && error(z, want) < 1e-5, "%s times %s, %d rows, by way of BF16: %g", NAME(type), NAME(tx), (int) n, error(z, want));
    }
}

/* Nothing writes these formats: errors, and memory as it was. */
static void not_written(enum ggml_type type) {
    float   x[32] = { 0 };
    uint8_t to[32];
    memset(to, 0xa5, sizeof to);
    CHECK_ERROR(CHECK(ggml_quantize_chunk(type, x, to, 0, 1, 32, NULL) == 0, "%s: quantize_chunk gives 0", NAME(type)), GGML_EXT_CODE_BAD_ARGUMENT, NAME(type),
                NAME(type));
    CHECK(to[0] == 0xa5 && to[31] == 0xa5 && !ggml_quantize_requires_imatrix(type), "%s: nothing is written", NAME(type));
    CHECK(ggml_get_type_traits(type)->from_float_ref == NULL && ggml_get_type_traits(type)->to_float != NULL, "%s: one way only", NAME(type));
    for (int i = 0; i < 3; i++) {
        struct ggml_tensor * a = ggml_new_tensor_1d(ctx, floats[i], 32), *b = ggml_new_tensor_1d(ctx, type, 32);
        memset(a->data, 0, ggml_nbytes(a));
        memset(b->data, 0xa5, 32);
        struct ggml_tensor * c = ggml_cpy(ctx, a, b);
        CHECK(c && !ggml_backend_supports_op(cpu, c) && !compute(c) && ((uint8_t *) b->data)[31] == 0xa5, "%s: not from %s", NAME(type), NAME(floats[i]));
    }
}

/* A file with both: written, read, and the bytes stay. */
static void file(void) {
    struct gguf_context * g = gguf_init_empty();
    for (int i = 0; i < 2; i++) {
        struct ggml_tensor * t = ggml_set_name(ggml_new_tensor_2d(ctx, both[i], 33, 3), NAME(both[i]));
        weights(both[i], t);
        gguf_add_tensor(g, t);
    }
    char path[] = "f8-XXXXXX.gguf";
    int  fd     = mkstemps(path, 5);
    CHECK(fd >= 0 && gguf_write_to_file(g, path, false), "a file of both");
    struct ggml_context * back = NULL;
    struct gguf_context * r    = gguf_init_from_file(path, (struct gguf_init_params){ false, &back });
    if (CHECK(r && back && gguf_get_n_tensors(r) == 2, "read")) {
        for (int i = 0; i < 2; i++) {
            const struct ggml_tensor *a = ggml_get_tensor(ctx, NAME(both[i])), *b = ggml_get_tensor(back, NAME(both[i]));
            CHECK(b && b->type == both[i] && gguf_get_tensor_type(r, i) == both[i] && ggml_nbytes(b) == 99 && memcmp(a->data, b->data, 99) == 0, "%s: of a file", NAME(both[i]));
        }
        gguf_free(r);
        ggml_free(back);
    }
    gguf_free(g);
    remove(path);
}

/* What programs do with GGML_TYPE_COUNT. */
static void count(void) {
    bool seen[GGML_TYPE_COUNT] = { false };
    for (int i = 0; i < 2; i++) {
        switch (both[i]) {
        case GGML_TYPE_F8_E4M3:
        case GGML_TYPE_F8_E5M2: seen[both[i]] = true; break;
        case GGML_TYPE_COUNT:
        default: break;
        }
    }
    CHECK(seen[43] && seen[44] && GGML_TYPE_F8_E4M3 != GGML_TYPE_COUNT, "no format has the number of none");
    int found = 0;
    for (size_t i = 0; i < GGML_TYPE_COUNT; i++) {
        const struct ggml_type_traits * t = ggml_get_type_traits((enum ggml_type) i);
        found += t->to_float && t->type_size && (strcmp(t->type_name, "f8_e4m3") == 0 || strcmp(t->type_name, "f8_e5m2") == 0);
    }
    CHECK(found == 2, "found by name in a loop over formats");
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ .mem_size = 4 << 20 });
    cpu = ggml_backend_cpu_init();
    count();
    for (int i = 0; i < 2; i++) {
        every_code(both[i]);
        products(both[i]);
        not_written(both[i]);
    }
    file();
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
