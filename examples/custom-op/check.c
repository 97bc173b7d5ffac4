/* Each registration in a small graph, which ggml_ext_check computes with views, gaps, empty tensors, NaN, guard bytes, other numbers of
 * threads, and with and without somebody who needs what a fusion leaves out. All that an author gives is the graph. */
#include "check.h"
#include "example.h"

#include <math.h>
#include <stdio.h>

/* Other seeds, other shapes. */
static struct ggml_tensor * matrix(struct ggml_context * ctx, uint64_t seed) {
    return ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 16 + (int64_t) seed, 60 + 7 * (int64_t) seed);
}

static struct ggml_tensor * build_softclip(struct ggml_context * ctx, uint64_t seed, void * user_data) {
    (void) user_data;
    return example_softclip(ctx, matrix(ctx, seed), 1.5f, 0.01f);
}

/* An operator of our own has no native code to be compared with: the same from operators of ggml's. */
static struct ggml_tensor * compose_softclip(struct ggml_context * ctx, struct ggml_tensor * const * inputs, int n_inputs, uint64_t seed,
                                             void * user_data) {
    (void) n_inputs;
    (void) seed;
    (void) user_data;
    struct ggml_tensor * x        = inputs[0];
    struct ggml_tensor * channels = ggml_cont(ctx, ggml_transpose(ctx, x));
    struct ggml_tensor * mean     = ggml_mean(ctx, ggml_sqr(ctx, channels)); /* [1, channels] */
    struct ggml_tensor * limit    = ggml_clamp(ctx, ggml_scale(ctx, ggml_sqrt(ctx, mean), 1.5f), 0.01f, INFINITY);
    limit                         = ggml_reshape_1d(ctx, limit, x->ne[0]);
    return ggml_mul(ctx, ggml_tanh(ctx, ggml_div(ctx, x, limit)), limit);
}

static struct ggml_tensor * build_silu(struct ggml_context * ctx, uint64_t seed, void * user_data) {
    (void) user_data;
    return ggml_silu(ctx, matrix(ctx, seed));
}

static struct ggml_tensor * build_blend(struct ggml_context * ctx, uint64_t seed, void * user_data) {
    (void) user_data;
    struct ggml_tensor * x = matrix(ctx, seed), *g = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, x->ne[0]);
    struct ggml_tensor * y = matrix(ctx, seed), *h = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, x->ne[0]);
    return ggml_add(ctx, ggml_mul(ctx, x, g), ggml_mul(ctx, y, h));
}

static bool check(ggml_backend_t cpu, const char * name, const struct ggml_ext_check_params * params) {
    GGML_EXT_INIT(ggml_ext_check_report, report);
    const bool ok = ggml_ext_check(cpu, name, params, &report);
    printf("-- check of %s: %u cases, %u passed, %u failed, %u not applicable, %u noted\n", name, report.n_cases, report.n_passed,
           report.n_failed, report.n_not_applicable, report.n_noted);
    if (!ok) {
        GGML_EXT_INIT(ggml_ext_error, error);
        fprintf(stderr, "%s\n", ggml_ext_last_error(&error) ? error.text : "no reason is known");
    }
    return ok;
}

bool check_all(ggml_backend_t cpu) {
    GGML_EXT_INIT(ggml_ext_check_params, softclip);
    softclip.build     = build_softclip;
    softclip.reference = compose_softclip;
    softclip.max_nmse  = 1e-11; /* sums are rounded in another order */
    GGML_EXT_INIT(ggml_ext_check_params, silu);
    silu.build    = build_silu;
    silu.max_nmse = 1e-12; /* against the device's own SILU, with another exponential */
    GGML_EXT_INIT(ggml_ext_check_params, blend);
    blend.build = build_blend; /* max_nmse 0: fused equals unfused, bit for bit */
    return check(cpu, EXAMPLE_SOFTCLIP_CPU, &softclip) && check(cpu, EXAMPLE_SILU_CPU, &silu) && check(cpu, EXAMPLE_BLEND_CPU, &blend);
}
