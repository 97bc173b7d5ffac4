/* Registrations of ggml-sd.h under ggml_ext_check: each against the same from ggml's operators, the fusion against its single nodes
 * (EXT-49), on views, gaps, empty tensors, NaN, guard bytes, other numbers of threads. */
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

/* linear layers: against F32, with the error that rounding activations to 8 bits makes */

static struct ggml_tensor * build_linear(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    const int64_t n = 5 + (int64_t) seed;
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, 64, n), *x = f32(ctx, 64, 7, 2, 1), *s = f32(ctx, n, 1, 1, 1), *b = f32(ctx, n, 1, 1, 1);
    return ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 0);
}
static struct ggml_tensor * compose_linear(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) n;
    (void) seed;
    (void) data;
    struct ggml_tensor * y = ggml_mul_mat(ctx, ggml_cast(ctx, in[0], GGML_TYPE_F32), in[1]);
    return ggml_add(ctx, ggml_mul(ctx, y, in[2]), in[3]);
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
static void told(const struct ggml_ext_check_case * done, void * data) {
    (void) data;
    if (done->outcome == GGML_EXT_CHECK_FAILED) {
        printf("# %s, %s: %s\n", what, done->name, done->text);
    }
}

static void check(ggml_backend_t cpu, const char * name, const char * title, struct ggml_ext_check_params params, unsigned least) {
    what           = title;
    params.on_case = told;
    GGML_EXT_INIT(ggml_ext_check_report, report);
    CHECK(ggml_ext_check(cpu, name, &params, &report), "%s", title);
    CHECK(report.n_passed >= least, "%s: %u of %u cases showed something", title, report.n_passed, report.n_cases);
}

int main(void) {
    check_quiet();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, modulate);
    modulate.build     = build_modulate;
    modulate.reference = compose_modulate;
    check(cpu, "sd.modulate.cpu", "SD-5: modulation", modulate, 15);
    GGML_EXT_INIT(ggml_ext_check_params, halves);
    halves.build     = build_rope;
    halves.reference = compose_halves;
    check(cpu, "sd.rope_apply.cpu", "SD-1: rotation of halves", halves, 15);
    GGML_EXT_INIT(ggml_ext_check_params, linear);
    linear.build     = build_linear;
    linear.reference = compose_linear;
    linear.max_nmse  = 1e-3;
    linear.leave_out = "special";
    check(cpu, "sd.linear_i8.cpu", "SD-2: the linear layer", linear, 8);
    GGML_EXT_INIT(ggml_ext_check_params, chain);
    chain.build    = build_chain;
    chain.max_nmse = 1e-12;
    check(cpu, "sd.rms_norm_mul_rope.cpu", "EXT-49: RMS_NORM, MUL, rotation", chain, 15);
    chain.user_data = &chain;
    check(cpu, "sd.rms_norm_mul_rope.cpu", "EXT-49: the same, MUL in place", chain, 15);
    ggml_backend_free(cpu);
    return check_done();
}
