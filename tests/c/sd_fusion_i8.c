/* Fusions that end in sd.quantize_i8_convrot.v1: the bits of the single nodes (EXT-49) in every form, what is not fused (EXT-41 to EXT-43),
 * results over what is read, numbers of threads; each rule under ggml_ext_check. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

#define SWIGLU "sd.swiglu_convrot.cpu"
#define MODULATE "sd.modulate_convrot.cpu"
#define NORM "sd.rms_norm_mul_convrot.cpu"
#define GATED "sd.linear_swiglu_convrot.cpu"

enum { INPUTS = 8, RULES = 4, NODES = 256 };

static ggml_backend_t cpu;

/* The graph at hand. */
static struct {
    struct ggml_context * ctx;
    struct ggml_tensor *  in[INPUTS]; /* filled, by number */
    int                   n_in;
    struct ggml_tensor *  also;       /* a second result */
    float                 spread;     /* of the numbers */
} k;

static struct ggml_tensor * in(int64_t a, int64_t b, int64_t c, int64_t d) {
    struct ggml_tensor * t = ggml_new_tensor_4d(k.ctx, GGML_TYPE_F32, a, b, c, d);
    ggml_set_input(t);
    return k.in[k.n_in++] = t;
}
static struct ggml_tensor * weights(int64_t k_, int64_t n) {
    struct ggml_tensor * t = ggml_new_tensor_2d(k.ctx, GGML_TYPE_I8, k_, n);
    ggml_set_input(t);
    return k.in[k.n_in++] = t;
}
static struct ggml_tensor * quantised(struct ggml_tensor * x, int group) { return ggml_quantize_i8_convrot(k.ctx, x, group); }

/* A number for each index, evenly spread. */
static float number(int64_t i, int which) {
    const uint32_t h = (uint32_t) (i + 1) * 2654435761u + (uint32_t) which * 40503u;
    return k.spread * ((float) ((h ^ h >> 15) & 0xffffff) / 8388608 - 1);
}

static bool fill(void) {
    for (int j = 0; j < k.n_in; j++) {
        const int64_t n    = ggml_nelements(k.in[j]);
        float *       data = malloc((size_t) n * sizeof *data + 1);
        for (int64_t i = 0; i < n; i++) {
            if (k.in[j]->type == GGML_TYPE_I8) {
                ((int8_t *) data)[i] = (int8_t) (127 * number(i, j) / k.spread);
            } else {
                data[i] = number(i, j);
            }
        }
        if (k.in[j]->data) {
            ggml_backend_tensor_set(k.in[j], data, 0, ggml_nbytes(k.in[j]));
        }
        free(data);
    }
    return true;
}

static uint64_t launches(const char * rule) {
    GGML_EXT_INIT(ggml_ext_counters, n);
    return ggml_ext_counters(ggml_backend_get_device(cpu), rule, &n) ? n.ran : 0;
}

/* The bytes of the results; NULL: it failed. `size`: how many. */
static char * compute(struct ggml_tensor * (*build)(void), const char * forbid, int threads, size_t * size, size_t * memory) {
    const struct ggml_init_params params = { NODES * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true };
    const float                   spread = k.spread;
    memset(&k, 0, sizeof k);
    k.spread = spread;
    k.ctx    = ggml_init(params);
    setenv("GGML_EXT_FORBID", forbid, 1);
    struct ggml_tensor * out   = build();
    struct ggml_cgraph * graph = ggml_new_graph(k.ctx);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, NODES, false, false);
    char *               bytes = NULL;
    ggml_backend_cpu_set_n_threads(cpu, threads);
    if (out) {
        ggml_set_output(out);
        ggml_build_forward_expand(graph, out);
        if (k.also) {
            ggml_set_output(k.also);
            ggml_build_forward_expand(graph, k.also);
        }
        if (ggml_backend_sched_alloc_graph(sched, graph) && fill() && ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS) {
            const size_t more = k.also ? ggml_nbytes(k.also) : 0;
            *size             = ggml_nbytes(out) + more;
            *memory           = ggml_backend_sched_get_buffer_size(sched, cpu);
            bytes             = malloc(*size + 1);
            ggml_backend_tensor_get(out, bytes, 0, ggml_nbytes(out));
            if (more) {
                ggml_backend_tensor_get(k.also, bytes + ggml_nbytes(out), 0, more);
            }
        }
    }
    ggml_backend_sched_free(sched);
    ggml_free(k.ctx);
    unsetenv("GGML_EXT_FORBID");
    return bytes;
}

/* With the rule, on 1 to 3 threads, and without it: the same bytes, and launches where there must be some. */
static void twice(const char * rule, const char * name, struct ggml_tensor * (*build)(void), bool fused) {
    static const char * const rules[RULES] = { SWIGLU, MODULATE, NORM, GATED };
    size_t                    size = 0, memory = 0;
    char                      others[128] = "", all[256];
    for (int i = 0; i < RULES; i++) {
        if (strcmp(rules[i], rule) != 0) {
            strcat(strcat(others, others[0] ? "," : ""), rules[i]);
        }
    }
    snprintf(all, sizeof all, "%.127s,%.63s", others, rule);
    char * want = compute(build, all, 2, &size, &memory);
    if (!CHECK(want, "%s: %s: computed", rule, name)) {
        return;
    }
    for (int threads = 1; threads <= 3; threads++) {
        size_t         have_size = 0, less = 0;
        const uint64_t before = launches(rule);
        char *         have   = compute(build, others, threads, &have_size, &less);
        const uint64_t ran    = launches(rule) - before;
        CHECK(have && have_size == size && memcmp(want, have, size) == 0, "EXT-49: %s: %s: the same bits, %d threads", rule, name, threads);
        CHECK(ran == fused, "%s: %s: %s", rule, name, fused ? "fused" : "not fused");
        CHECK(fused || less == memory, "EXT-47: %s: %s: every node has its memory", rule, name);
        free(have);
    }
    free(want);
}

/* SwiGLU */

static struct ggml_tensor * split(void) {
    struct ggml_tensor * gate = in(512, 7, 1, 1);
    return quantised(ggml_swiglu_split(k.ctx, gate, in(512, 7, 1, 1)), 256);
}
static struct ggml_tensor * split_small(void) {
    struct ggml_tensor * gate = in(20, 3, 2, 2);
    return quantised(ggml_swiglu_split(k.ctx, gate, in(20, 3, 2, 2)), 4);
}
static struct ggml_tensor * packed(void) { return quantised(ggml_swiglu(k.ctx, in(512, 5, 2, 1)), 64); }
static struct ggml_tensor * swapped(void) { return quantised(ggml_swiglu_swapped(k.ctx, in(512, 5, 2, 1)), 256); }
static struct ggml_tensor * rows_apart(void) {
    struct ggml_tensor * all = in(600, 5, 3, 1);
    return quantised(ggml_swiglu_split(k.ctx, ggml_view_3d(k.ctx, all, 256, 5, 3, all->nb[1], all->nb[2], 40),
                                       ggml_view_3d(k.ctx, all, 256, 5, 3, all->nb[1], all->nb[2], 300 * 4)),
                     256);
}
static struct ggml_tensor * itself(void) {
    struct ggml_tensor * x = in(64, 5, 1, 1);
    return quantised(ggml_swiglu_split(k.ctx, x, x), 16);
}
/* a row for each number: its scale tells the bits of what was computed */
static struct ggml_tensor * each_number(void) {
    struct ggml_tensor * gate = in(1, 100000, 1, 1);
    return quantised(ggml_swiglu_split(k.ctx, gate, in(1, 100000, 1, 1)), 1);
}
static struct ggml_tensor * glu_read_by_another(void) {
    struct ggml_tensor * y = ggml_swiglu(k.ctx, in(512, 5, 1, 1));
    k.also                 = ggml_scale(k.ctx, y, 2);
    return quantised(y, 256);
}
static struct ggml_tensor * glu_is_output(void) {
    k.also = ggml_swiglu(k.ctx, in(512, 5, 1, 1));
    return quantised(k.also, 256);
}
static struct ggml_tensor * glu_read_through_view(void) {
    struct ggml_tensor * y = ggml_swiglu(k.ctx, in(512, 5, 1, 1));
    k.also                 = ggml_scale(k.ctx, ggml_view_1d(k.ctx, y, 30, 64), 2);
    return quantised(y, 256);
}
static struct ggml_tensor * geglu(void) { return quantised(ggml_geglu(k.ctx, in(512, 5, 1, 1)), 256); }
static struct ggml_tensor * quantised_twice(void) {
    struct ggml_tensor * y = ggml_swiglu(k.ctx, in(512, 5, 1, 1));
    k.also                 = quantised(y, 64);
    return quantised(y, 256);
}

/* modulation */

static struct ggml_tensor * scale_and_shift(void) {
    struct ggml_tensor *x = in(256, 5, 2, 1), *scale = in(256, 1, 2, 1);
    return quantised(ggml_sd_modulate(k.ctx, x, in(256, 1, 2, 1), scale), 256);
}
static struct ggml_tensor * scale_alone(void) {
    struct ggml_tensor * x = in(256, 5, 2, 1);
    return quantised(ggml_sd_modulate(k.ctx, x, NULL, in(256, 1, 1, 1)), 16);
}
static struct ggml_tensor * one_for_all_channels(void) {
    struct ggml_tensor *x = in(64, 5, 2, 1), *scale = in(1, 5, 1, 1);
    return quantised(ggml_sd_modulate(k.ctx, x, in(64, 1, 1, 1), scale), 64);
}
static struct ggml_tensor * permuted(void) {
    struct ggml_tensor * x = ggml_permute(k.ctx, in(5, 64, 2, 1), 1, 0, 2, 3);
    struct ggml_tensor * m = in(64 * 4, 1, 1, 1);
    return quantised(ggml_sd_modulate(k.ctx, x, ggml_view_1d(k.ctx, m, 64, 64 * 4), ggml_view_1d(k.ctx, m, 64, 128 * 4)), 64);
}
static struct ggml_tensor * modulated_is_output(void) {
    struct ggml_tensor * x = in(64, 5, 2, 1);
    k.also                 = ggml_sd_modulate(k.ctx, x, NULL, in(64, 1, 1, 1));
    return quantised(k.also, 64);
}

/* the norm */

static struct ggml_tensor * norm(struct ggml_tensor * x, bool inplace) {
    struct ggml_tensor *y = ggml_rms_norm(k.ctx, x, 1e-5f), *w = in(x->ne[0], 1, 1, 1);
    return inplace ? ggml_mul_inplace(k.ctx, y, w) : ggml_mul(k.ctx, y, w);
}
static struct ggml_tensor * norm_alone(void) { return quantised(norm(in(1280, 5, 2, 1), false), 256); }
static struct ggml_tensor * norm_inplace(void) { return quantised(norm(in(1280, 5, 2, 1), true), 256); }
static struct ggml_tensor * norm_modulated(void) {
    struct ggml_tensor *x = norm(in(3840, 5, 1, 1), false), *scale = in(3840, 1, 1, 1);
    return quantised(ggml_sd_modulate(k.ctx, x, in(3840, 1, 1, 1), scale), 256);
}
/* what makes the scale is between MUL and the modulation when the graph is built */
static struct ggml_tensor * norm_scale_between(void) {
    struct ggml_tensor *x = norm(in(256, 5, 1, 1), true), *m = ggml_mul_mat(k.ctx, in(32, 1024, 1, 1), in(32, 1, 1, 1));
    return quantised(ggml_sd_modulate(k.ctx, x, NULL, ggml_view_1d(k.ctx, m, 256, 512 * 4)), 256);
}
static struct ggml_tensor * norm_odd_rows(void) { return quantised(norm(in(1100, 3, 1, 1), false), 4); }
static struct ggml_tensor * norm_one_row(void) { return quantised(norm(in(64, 1, 1, 1), false), 64); }
static struct ggml_tensor * norm_times_itself(void) {
    struct ggml_tensor * y = ggml_rms_norm(k.ctx, in(64, 1, 1, 1), 1e-5f);
    return quantised(ggml_mul(k.ctx, y, y), 64);
}
static struct ggml_tensor * norm_weight_of_rows(void) {
    struct ggml_tensor * y = ggml_rms_norm(k.ctx, in(64, 3, 1, 1), 1e-5f);
    return quantised(ggml_mul(k.ctx, y, in(64, 3, 1, 1)), 64);
}
static struct ggml_tensor * modulated_by_itself(void) {
    struct ggml_tensor * y = norm(in(64, 3, 1, 1), false);
    return quantised(ggml_sd_modulate(k.ctx, y, NULL, y), 64);
}
static struct ggml_tensor * norm_is_output(void) {
    struct ggml_tensor * y = ggml_rms_norm(k.ctx, in(64, 3, 1, 1), 1e-5f);
    k.also                 = y;
    return quantised(ggml_mul(k.ctx, y, in(64, 1, 1, 1)), 64);
}

/* two layers and their gate; the result of a layer that reads it comes out, or its integers */

static struct ggml_tensor * layer(struct ggml_tensor * packed, int64_t n, int group, bool scales) {
    struct ggml_tensor * w = weights(packed->ne[0], n);
    return ggml_mul_mat_i8_tensorwise(k.ctx, w, packed, scales ? in(n, 1, 1, 1) : NULL, scales ? in(n, 1, 1, 1) : NULL, group);
}
static struct ggml_tensor * gated(int64_t width, int64_t rows, int64_t batch, int64_t n, int group, bool scales, bool swapped) {
    struct ggml_tensor *x = quantised(in(width, rows, batch, 1), group), *a = layer(x, n, group, scales), *b = layer(x, n, group, !scales);
    return quantised(swapped ? ggml_swiglu_split(k.ctx, b, a) : ggml_swiglu_split(k.ctx, a, b), group);
}
static struct ggml_tensor * gated_plain(void) { return gated(256, 37, 1, 512, 256, true, false); }
static struct ggml_tensor * gated_many_rows(void) { return gated(256, 690, 3, 256, 64, true, false); }
static struct ggml_tensor * gated_odd(void) { return gated(20, 17, 1, 52, 4, false, false); }
static struct ggml_tensor * gated_unrotated(void) { return gated(33, 16, 2, 35, 1, true, false); }
static struct ggml_tensor * gated_few_rows(void) { return gated(64, 5, 3, 64, 16, true, false); }
static struct ggml_tensor * gated_bias_in_first(void) { return gated(64, 40, 1, 64, 16, false, true); }
static struct ggml_tensor * gated_one_layer_twice(void) {
    struct ggml_tensor * a = layer(quantised(in(64, 20, 1, 1), 16), 64, 16, true);
    return quantised(ggml_swiglu_split(k.ctx, a, a), 16);
}
static struct ggml_tensor * gated_two_activations(void) {
    struct ggml_tensor *a = layer(quantised(in(64, 20, 1, 1), 16), 64, 16, true), *b = layer(quantised(in(64, 20, 1, 1), 16), 64, 16, true);
    return quantised(ggml_swiglu_split(k.ctx, a, b), 16);
}
static struct ggml_tensor * gated_gate_is_output(void) {
    struct ggml_tensor * x = quantised(in(64, 20, 1, 1), 16);
    k.also                 = layer(x, 64, 16, true);
    return quantised(ggml_swiglu_split(k.ctx, k.also, layer(x, 64, 16, true)), 16);
}
static struct ggml_tensor * gated_up_read_by_another(void) {
    struct ggml_tensor *x = quantised(in(64, 20, 1, 1), 16), *a = layer(x, 64, 16, true), *b = layer(x, 64, 16, true);
    k.also = ggml_scale(k.ctx, b, 2);
    return quantised(ggml_swiglu_split(k.ctx, a, b), 16);
}

/* under ggml_ext_check: F32 comes out, since scales lie in the quantised result as bytes */

static struct ggml_tensor * product(struct ggml_context * ctx, struct ggml_tensor * x, int group) {
    struct ggml_tensor * w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, x ? x->ne[0] : 1, 6);
    return ggml_mul_mat_i8_tensorwise(ctx, w, ggml_quantize_i8_convrot(ctx, x, group), NULL, NULL, group);
}
static struct ggml_tensor * check_swiglu(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t        n = 16 * (int64_t) seed;
    struct ggml_tensor * g = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, data ? 2 * n : n, 5, 2);
    if (data) {
        return product(ctx, ggml_swiglu(ctx, g), 16);
    }
    return product(ctx, ggml_swiglu_split(ctx, g, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 5, 2)), 16);
}
static struct ggml_tensor * check_modulate(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t       n = 16 * (int64_t) seed;
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 5, 2), *scale = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 1, 2);
    return product(ctx, ggml_sd_modulate(ctx, x, data ? ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 1, 2) : NULL, scale), 16);
}
static struct ggml_tensor * check_norm(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t       n = 16 * (int64_t) seed;
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 5, 2), *w = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    struct ggml_tensor *y = ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-6f), w);
    return product(ctx, data ? ggml_sd_modulate(ctx, y, NULL, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, n, 1, 2)) : y, 16);
}

static struct ggml_tensor * check_gated(struct ggml_context * ctx, uint64_t seed, void * data) {
    const int64_t       n = 16 * (int64_t) seed, width = 32;
    struct ggml_tensor *x = ggml_quantize_i8_convrot(ctx, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, width, 9, 2), 16), *y[2];
    for (int i = 0; i < 2; i++) {
        struct ggml_tensor * w     = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, width, n);
        struct ggml_tensor * scale = data ? ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n) : NULL;
        y[i]                       = ggml_mul_mat_i8_tensorwise(ctx, w, x, scale, NULL, 16);
    }
    return product(ctx, ggml_swiglu_split(ctx, y[0], y[1]), 16);
}

static const char * what;
static void told(const struct ggml_ext_check_case * done, void * data) {
    (void) data;
    if (done->outcome == GGML_EXT_CHECK_FAILED) {
        printf("# %s, %s: %s\n", what, done->name, done->text);
    }
}

static void check(const char * name, struct ggml_tensor * (*build)(struct ggml_context *, uint64_t, void *), bool more) {
    GGML_EXT_INIT(ggml_ext_check_params, params);
    GGML_EXT_INIT(ggml_ext_check_report, report);
    params.build     = build;
    params.user_data = more ? &params : NULL;
    params.on_case   = told;
    what             = name;
    CHECK(ggml_ext_check(cpu, name, &params, &report), "%s: ggml_ext_check, form %d", name, more);
    CHECK(report.n_passed >= 15, "%s: %u of %u cases showed something", name, report.n_passed, report.n_cases);
}

int main(void) {
    check_quiet();
    cpu = ggml_backend_cpu_init();
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    for (int i = 0; i < 3; i++) {
        static const float spreads[] = { 2, 120, 1e-20f };
        k.spread                     = spreads[i];
        twice(SWIGLU, "two tensors", split, true);
        twice(SWIGLU, "each number", each_number, true);
        twice(NORM, "alone", norm_alone, true);
        twice(NORM, "rows that are no whole blocks", norm_odd_rows, true);
        twice(NORM, "with a modulation", norm_modulated, true);
        twice(MODULATE, "scale and shift", scale_and_shift, true);
    }
    k.spread = 3;
    twice(SWIGLU, "small rows", split_small, true);
    twice(SWIGLU, "halves of one tensor", packed, true);
    twice(SWIGLU, "halves swapped", swapped, true);
    twice(SWIGLU, "rows apart", rows_apart, true);
    twice(SWIGLU, "a tensor twice", itself, true);
    twice(SWIGLU, "EXT-41: read by another", glu_read_by_another, false);
    twice(SWIGLU, "EXT-41: an output", glu_is_output, false);
    twice(SWIGLU, "EXT-41: read through a view", glu_read_through_view, false);
    twice(SWIGLU, "EXT-41: quantised twice", quantised_twice, false);
    twice(SWIGLU, "another gate", geglu, false);
    twice(MODULATE, "scale alone", scale_alone, true);
    twice(MODULATE, "a scale for all channels", one_for_all_channels, true);
    twice(MODULATE, "permuted x, parts of a vector", permuted, true);
    twice(MODULATE, "EXT-41: an output", modulated_is_output, false);
    twice(NORM, "MUL in place", norm_inplace, true);
    twice(NORM, "what makes the scale is in between", norm_scale_between, true);
    twice(NORM, "one row", norm_one_row, true);
    twice(NORM, "times itself", norm_times_itself, false);
    twice(NORM, "a weight for each element", norm_weight_of_rows, false);
    twice(NORM, "modulated by itself", modulated_by_itself, false);
    twice(NORM, "EXT-41: the norm is an output", norm_is_output, false);
    twice(GATED, "plain", gated_plain, true);
    twice(GATED, "many rows, batches", gated_many_rows, true);
    twice(GATED, "odd sizes", gated_odd, true);
    twice(GATED, "not rotated", gated_unrotated, true);
    twice(GATED, "the other layer as gate", gated_bias_in_first, true);
    twice(GATED, "few rows", gated_few_rows, false);
    twice(GATED, "one layer twice", gated_one_layer_twice, false);
    twice(GATED, "two activations", gated_two_activations, false);
    twice(GATED, "EXT-41: the gate is an output", gated_gate_is_output, false);
    twice(GATED, "EXT-41: up is read by another", gated_up_read_by_another, false);
    check(GATED, check_gated, false);
    check(GATED, check_gated, true);
    check(SWIGLU, check_swiglu, false);
    check(SWIGLU, check_swiglu, true);
    check(MODULATE, check_modulate, false);
    check(MODULATE, check_modulate, true);
    check(NORM, check_norm, false);
    check(NORM, check_norm, true);
    ggml_backend_free(cpu);
    return check_done();
}
