/* Registrations of ggml-sd.h under ggml_ext_check: each against the same from ggml's operators, the rotation after a norm against its
 * single nodes (EXT-49; the other fusions: sd_fusion_i8.c), on views, gaps, empty tensors, NaN, guard bytes, numbers of threads. */
#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

static struct ggml_tensor * f32(struct ggml_context * ctx, int64_t a, int64_t b, int64_t c, int64_t d) {
    return ggml_new_tensor_4d(ctx, GGML_TYPE_F32, a, b, c, d);
}

/* modulation */

static struct ggml_tensor * build_modulate(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    const int64_t n = 16 + (int64_t) seed;
    struct ggml_tensor *x = f32(ctx, n, 7, 2, 1), *shift = f32(ctx, n, 1, 2, 1), *scale = f32(ctx, n, 1, 2, 1);
    return ggml_sd_modulate(ctx, x, shift, scale);
}
static struct ggml_tensor * compose_modulate(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) n;
    (void) seed;
    (void) data;
    return ggml_add(ctx, ggml_add(ctx, in[0], ggml_mul(ctx, in[0], in[2])), in[1]);
}

/* rotation */

static struct ggml_tensor * build_rope(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t d = 2 * (8 + (int64_t) seed);
    struct ggml_tensor *a = f32(ctx, d, 3, 5, 2), *pe = f32(ctx, 2, 2, d / 2, 5);
    return ggml_rope_apply(ctx, a, pe, data != NULL);
}
/* halves: x0 c - x1 s, x0 s + x1 c */
static struct ggml_tensor * compose_halves(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) n;
    (void) seed;
    (void) data;
    struct ggml_tensor * x = ggml_cont(ctx, ggml_permute(ctx, in[0], 0, 2, 1, 3));
    struct ggml_tensor * m = ggml_cont(ctx, ggml_permute(ctx, in[1], 2, 3, 0, 1)); /* [pairs, tokens, column, row] */
    const int64_t        p = m->ne[0], t = m->ne[1];
    if (x->ne[0] != 2 * p) {
        return NULL;
    }
    struct ggml_tensor * c  = ggml_cont(ctx, ggml_view_2d(ctx, m, p, t, m->nb[1], 0));
    struct ggml_tensor * s  = ggml_cont(ctx, ggml_view_2d(ctx, m, p, t, m->nb[1], m->nb[3]));
    struct ggml_tensor * x0 = ggml_cont(ctx, ggml_view_4d(ctx, x, p, t, x->ne[2], x->ne[3], x->nb[1], x->nb[2], x->nb[3], 0));
    struct ggml_tensor * x1 = ggml_cont(ctx, ggml_view_4d(ctx, x, p, t, x->ne[2], x->ne[3], x->nb[1], x->nb[2], x->nb[3], (size_t) p * 4));
    struct ggml_tensor * y0 = ggml_sub(ctx, ggml_mul(ctx, x0, c), ggml_mul(ctx, x1, s));
    struct ggml_tensor * y1 = ggml_add(ctx, ggml_mul(ctx, x0, s), ggml_mul(ctx, x1, c));
    struct ggml_tensor * y  = ggml_concat(ctx, y0, y1, 0);
    return ggml_reshape_3d(ctx, y, 2 * p, t, y->ne[2] * y->ne[3]);
}

/* neighbours: x0 m00 + x1 m10, x0 m01 + x1 m11 */
static struct ggml_tensor * compose_neighbours(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) n;
    (void) seed;
    (void) data;
    struct ggml_tensor * x = ggml_cont(ctx, ggml_permute(ctx, in[0], 0, 2, 1, 3));
    const int64_t        p = in[1]->ne[2], t = in[1]->ne[3];
    if (x->ne[0] != 2 * p) {
        return NULL;
    }
    struct ggml_tensor *r = ggml_reshape_4d(ctx, x, 2, p, t, x->ne[2] * x->ne[3]), *v[2], *m[4];
    for (int i = 0; i < 2; i++) {
        v[i] = ggml_cont(ctx, ggml_view_4d(ctx, r, 1, p, t, r->ne[3], r->nb[1], r->nb[2], r->nb[3], (size_t) i * 4));
    }
    for (int i = 0; i < 4; i++) {
        struct ggml_tensor * one = ggml_view_4d(ctx, in[1], 1, 1, p, t, in[1]->nb[1], in[1]->nb[2], in[1]->nb[3], (size_t) i * 4);
        m[i] = ggml_reshape_4d(ctx, ggml_cont(ctx, one), 1, p, t, 1);
    }
    struct ggml_tensor * y0 = ggml_add(ctx, ggml_mul(ctx, v[0], m[0]), ggml_mul(ctx, v[1], m[1]));
    struct ggml_tensor * y1 = ggml_add(ctx, ggml_mul(ctx, v[0], m[2]), ggml_mul(ctx, v[1], m[3]));
    struct ggml_tensor * y  = ggml_concat(ctx, y0, y1, 0);
    return ggml_reshape_3d(ctx, y, 2 * p, t, r->ne[3]);
}

/* linear layers: against F32, with the error that rounding activations to 8 bits makes; activations are turned by 4 */

enum { FORM_F32, FORM_PACKED, FORM_SCALED, K = 64 };

/* weights of all values; scales of 8 bits that are numbers between 0.1 and 1.9 */
static bool fill(const struct ggml_tensor * t, int index, uint64_t seed, void * to, size_t size, void * data) {
    (void) data;
    unsigned state = (unsigned) seed * 2654435761u + (unsigned) index;
    for (size_t i = 0; i < size && t->type != GGML_TYPE_F32; i++) {
        state = state * 1664525u + 1013904223u;
        ((unsigned char *) to)[i] = (unsigned char) (t->type == GGML_TYPE_I8 ? state >> 24 : 0x20 + (state >> 24) % 32);
    }
    return t->type != GGML_TYPE_F32;
}

static struct ggml_tensor * turned(struct ggml_context * ctx, struct ggml_tensor * x) {
    struct ggml_tensor *h = ggml_reshape_3d(ctx, ggml_scale(ctx, x, 0.5f), 4, x->ne[0] / 4, ggml_nrows(x)), *v[4], *y[4];
    for (int i = 0; i < 4; i++) {
        v[i] = ggml_cont(ctx, ggml_view_3d(ctx, h, 1, h->ne[1], h->ne[2], h->nb[1], h->nb[2], (size_t) i * 4));
    }
    struct ggml_tensor * sum = ggml_add(ctx, v[0], v[1]);
    y[0] = ggml_sub(ctx, ggml_add(ctx, sum, v[2]), v[3]);
    y[1] = ggml_add(ctx, ggml_sub(ctx, sum, v[2]), v[3]);
    y[2] = ggml_add(ctx, ggml_add(ctx, ggml_sub(ctx, v[0], v[1]), v[2]), v[3]);
    y[3] = ggml_add(ctx, ggml_add(ctx, ggml_sub(ctx, v[1], v[0]), v[2]), v[3]);
    struct ggml_tensor * all = ggml_concat(ctx, ggml_concat(ctx, y[0], y[1], 0), ggml_concat(ctx, y[2], y[3], 0), 0);
    return ggml_reshape_4d(ctx, all, x->ne[0], x->ne[1], x->ne[2], x->ne[3]);
}

static struct ggml_tensor * build_linear(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int     form = *(const int *) data;
    const int64_t n    = 5 + (int64_t) seed;
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, K, n);
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, form == FORM_SCALED ? GGML_TYPE_I8 : GGML_TYPE_F32, K, 7, 2);
    struct ggml_tensor *s = f32(ctx, n, 1, 1, 1), *b = f32(ctx, n, 1, 1, 1);
    switch (form) {
    case FORM_F32: return ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 4);
    case FORM_PACKED: return ggml_mul_mat_i8_tensorwise(ctx, w, ggml_quantize_i8_convrot(ctx, x, 4), s, b, 4);
    default: return ggml_mul_mat_i8_tensorwise_scaled(ctx, w, x, s, b, 0, f32(ctx, 14, 1, 1, 1));
    }
}
static struct ggml_tensor * compose_linear(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) n;
    (void) seed;
    const bool           scaled = *(const int *) data == FORM_SCALED;
    struct ggml_tensor * x      = scaled ? ggml_cast(ctx, in[1], GGML_TYPE_F32) : turned(ctx, in[1]);
    struct ggml_tensor * y      = ggml_mul_mat(ctx, ggml_cast(ctx, in[0], GGML_TYPE_F32), x);
    if (scaled) {
        y = ggml_mul(ctx, y, ggml_reshape_3d(ctx, in[4], 1, 7, 2));
    }
    return ggml_add(ctx, ggml_mul(ctx, y, in[2]), in[3]);
}

static struct ggml_tensor * build_w4(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int     kind = *(const int *) data;
    const int64_t n    = 5 + (int64_t) seed;
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, K / 2, n), *x = f32(ctx, K, 7, 2, 1), *b = f32(ctx, n, 1, 1, 1);
    if (kind == GGML_W4_CONVROT_KIND_W4A4) {
        return ggml_mul_mat_w4_convrot(ctx, w, x, f32(ctx, n, 1, 1, 1), NULL, NULL, b, kind, 4);
    }
    struct ggml_tensor *book = f32(ctx, 16, 1, 1, 1), *channel = f32(ctx, n, 1, 1, 1);
    return ggml_mul_mat_w4_convrot(ctx, w, x, book, channel, ggml_new_tensor_2d(ctx, GGML_TYPE_F8_E4M3, K / 16, n), b, kind, 4);
}
/* 1 where x is above `than` */
static struct ggml_tensor * above(struct ggml_context * ctx, struct ggml_tensor * x, float than) {
    return ggml_step(ctx, ggml_scale_bias(ctx, x, 1, -than));
}
static struct ggml_tensor * compose_w4(struct ggml_context * ctx, struct ggml_tensor * const * in, int n_in, uint64_t seed, void * data) {
    (void) n_in;
    (void) seed;
    const bool    book = *(const int *) data == GGML_W4_CONVROT_KIND_W4A8;
    const int64_t n    = in[0]->ne[1];
    struct ggml_tensor * f    = ggml_cast(ctx, in[0], GGML_TYPE_F32);
    struct ggml_tensor * high = ggml_floor(ctx, ggml_scale(ctx, f, 0.0625f)); /* -8 to 7 */
    struct ggml_tensor * low  = ggml_sub(ctx, f, ggml_scale(ctx, high, 16));  /* 0 to 15 */
    if (book) {
        high = ggml_add(ctx, high, ggml_scale(ctx, above(ctx, ggml_neg(ctx, high), 0.5f), 16));
    } else {
        low = ggml_sub(ctx, low, ggml_scale(ctx, above(ctx, low, 7.5f), 16));
    }
    struct ggml_tensor * w = ggml_concat(ctx, ggml_reshape_3d(ctx, low, 1, K / 2, n), ggml_reshape_3d(ctx, high, 1, K / 2, n), 0);
    if (book) {
        struct ggml_tensor * codes = ggml_cast(ctx, ggml_reshape_1d(ctx, w, K * n), GGML_TYPE_I32);
        w = ggml_reshape_3d(ctx, ggml_get_rows(ctx, ggml_reshape_2d(ctx, in[3], 1, 16), codes), 16, K / 16, n);
        w = ggml_mul(ctx, w, ggml_reshape_3d(ctx, ggml_cast(ctx, in[5], GGML_TYPE_F32), 1, K / 16, n));
        w = ggml_mul(ctx, w, ggml_reshape_3d(ctx, in[4], 1, 1, n));
    }
    struct ggml_tensor * y = ggml_mul_mat(ctx, ggml_reshape_2d(ctx, w, K, n), turned(ctx, in[1]));
    return ggml_add(ctx, book ? y : ggml_mul(ctx, y, in[3]), in[2]);
}

/* the fusion */

static struct ggml_tensor * build_chain(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t d = 2 * (8 + (int64_t) seed);
    struct ggml_tensor *a = f32(ctx, d, 3, 5, 2), *w = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, d), *pe = f32(ctx, 2, 2, d / 2, 5);
    struct ggml_tensor * norm = ggml_rms_norm(ctx, a, 1e-6f);
    struct ggml_tensor * mul  = data ? ggml_mul_inplace(ctx, norm, w) : ggml_mul(ctx, norm, w);
    return ggml_rope_apply(ctx, mul, pe, true);
}

static const char * what;
static unsigned     shown; /* cases that passed; but for the one that needs malloc's own numbers */
static void told(const struct ggml_ext_check_case * done, void * data) {
    (void) data;
    if (done->outcome == GGML_EXT_CHECK_FAILED) {
        printf("# %s, %s: %s\n", what, done->name, done->text);
    }
    shown += done->outcome == GGML_EXT_CHECK_PASSED && strcmp(done->name, "state") != 0;
}

/* `least`: cases that show something; the others are for fusions, or for what no input can be like. */
static void check(ggml_backend_t cpu, const char * name, const char * title, struct ggml_ext_check_params params, unsigned least) {
    what           = title;
    shown          = 0;
    params.on_case = told;
    GGML_EXT_INIT(ggml_ext_check_report, report);
    CHECK(ggml_ext_check(cpu, name, &params, &report), "%s", title);
    CHECK(shown >= least, "%s: %u of %u cases showed something, %u at least", title, shown, report.n_cases, least);
}

int main(void) {
    check_quiet();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, p);
    p.n_threads = 7;
    p.build     = build_modulate;
    p.reference = compose_modulate;
    check(cpu, "sd.modulate.cpu", "SD-5: modulation", p, 22);
    p.build     = build_rope;
    p.reference = compose_halves;
    check(cpu, "sd.rope_apply.cpu", "SD-1: rotation of halves", p, 21);
    p.reference = compose_neighbours;
    p.user_data = &p;
    check(cpu, "sd.rope_apply.cpu", "SD-1: rotation of neighbours", p, 21);
    p.build     = build_linear;
    p.reference = compose_linear;
    p.fill      = fill;
    p.leave_out = "special";
    int form    = FORM_SCALED;
    p.user_data = &form;
    check(cpu, "sd.linear_i8.cpu", "SD-2: the linear layer, I8", p, 15);
    p.max_nmse = 1e-4;
    form       = FORM_F32;
    check(cpu, "sd.linear_i8.cpu", "SD-2: the linear layer, F32", p, 15);
    form = FORM_PACKED;
    check(cpu, "sd.linear_i8.cpu", "SD-2: the linear layer, packed", p, 15);
    check(cpu, "sd.quantize_i8_convrot.cpu", "SD-3: the packed activation", p, 15);
    int kind    = GGML_W4_CONVROT_KIND_W4A4;
    p.user_data = &kind;
    p.build     = build_w4;
    p.reference = compose_w4;
    check(cpu, "sd.linear_w4_convrot.cpu", "SD-4: W4A4", p, 15);
    kind = GGML_W4_CONVROT_KIND_W4A8;
    check(cpu, "sd.linear_w4_convrot.cpu", "SD-4: W4A8", p, 15);
    GGML_EXT_INIT(ggml_ext_check_params, chain);
    chain.n_threads = 7;
    chain.build     = build_chain;
    check(cpu, "sd.rms_norm_mul_rope.cpu", "EXT-49: RMS_NORM, MUL, rotation", chain, 27);
    chain.user_data = &chain;
    check(cpu, "sd.rms_norm_mul_rope.cpu", "EXT-49: the same, MUL in place", chain, 27);
    ggml_backend_free(cpu);
    return check_done();
}
