/* Two blocks of a diffusion transformer by ggml-sd.h's operators, 256 channels: what comes out against the same rounding by ggml's own
 * operators and against F32, fused and not, on 1 to 3 threads; the explained plan and the counters. examples/sd-block is the large one. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

enum { D = 128, HEADS = 2, WIDTH = D * HEADS, INNER = 768, TOKENS = 21, LAYERS = 2, LINEARS = 7, GROUP = 256, RULES = 5, NODES = 1024 };

static const char * const rules[RULES] = { "sd.rms_norm_mul_rope.cpu", "sd.rms_norm_mul_convrot.cpu", "sd.linear_swiglu_convrot.cpu", "sd.modulate_convrot.cpu",
                                           "sd.swiglu_convrot.cpu" };

static ggml_backend_t cpu;

/* the model */

enum { Q, K, V, OUT, GATE, UP, DOWN };
static const int shapes[LINEARS][2] = { { WIDTH, WIDTH }, { WIDTH, WIDTH }, { WIDTH, WIDTH }, { WIDTH, WIDTH }, { WIDTH, INNER }, { WIDTH, INNER }, { INNER, WIDTH } };

struct linear {
    struct ggml_tensor *f32, *i8, *scale, *rounded; /* rounded: i8 times scale */
};
static struct {
    struct ggml_context * ctx;
    struct linear         linear[LAYERS][LINEARS];
    struct ggml_tensor *  norms[LAYERS][4], *head_norms[LAYERS][2], *mods[LAYERS]; /* mods: scale, gate, scale, gate */
    struct ggml_tensor *  x, *pe, *hadamard;
} m;

static uint32_t state = 7;
static float number(void) {
    state = state * 1664525 + 1013904223;
    return (float) (state >> 8) / 8388608 - 1;
}

/* Fills with mean + spread * (-1 to 1). */
static void random_numbers(struct ggml_tensor * t, float mean, float spread) {
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        const float v = mean + spread * number();
        ggml_backend_tensor_set(t, &v, (size_t) i * sizeof v, sizeof v);
    }
}

/* Times the Kronecker power of the 4 by 4 matrix, over its root. */
static void rotate(const float * from, float * to) {
    for (int i = 0; i < GROUP; i++) {
        double sum = 0;
        for (int j = 0; j < GROUP; j++) {
            int sign = 1;
            for (int a = i, b = j, d = 0; d < 4; d++, a /= 4, b /= 4) {
                sign = a % 4 + b % 4 == 3 ? -sign : sign;
            }
            sum += sign * (double) from[j];
        }
        to[i] = (float) (sum / 16);
    }
}

static void fill_linear(struct linear * l, int k, int n) {
    float  row[INNER], turned[INNER];
    int8_t q[INNER];
    random_numbers(l->f32, 0, 1.7f / sqrtf((float) k));
    for (int r = 0; r < n; r++) {
        float most = 0;
        ggml_backend_tensor_get(l->f32, row, (size_t) (r * k) * sizeof *row, (size_t) k * sizeof *row);
        for (int i = 0; i < k; i += GROUP) {
            rotate(row + i, turned + i);
        }
        for (int i = 0; i < k; i++) {
            most = fmaxf(most, fabsf(turned[i]));
        }
        const float scale = most / 127;
        for (int i = 0; i < k; i++) {
            q[i]   = (int8_t) rintf(turned[i] / scale);
            row[i] = (float) q[i] * scale;
        }
        ggml_backend_tensor_set(l->i8, q, (size_t) (r * k), (size_t) k);
        ggml_backend_tensor_set(l->scale, &scale, (size_t) r * sizeof scale, sizeof scale);
        ggml_backend_tensor_set(l->rounded, row, (size_t) (r * k) * sizeof *row, (size_t) k * sizeof *row);
    }
}

static ggml_backend_buffer_t load(void) {
    const struct ggml_init_params params = { 256 * ggml_tensor_overhead(), NULL, true };
    m.ctx = ggml_init(params);
    for (int i = 0; i < LAYERS; i++) {
        for (int j = 0; j < LINEARS; j++) {
            struct linear * l = &m.linear[i][j];
            l->f32     = ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, shapes[j][0], shapes[j][1]);
            l->rounded = ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, shapes[j][0], shapes[j][1]);
            l->i8      = ggml_new_tensor_2d(m.ctx, GGML_TYPE_I8, shapes[j][0], shapes[j][1]);
            l->scale   = ggml_new_tensor_1d(m.ctx, GGML_TYPE_F32, shapes[j][1]);
        }
        for (int j = 0; j < 4; j++) {
            m.norms[i][j] = ggml_new_tensor_1d(m.ctx, GGML_TYPE_F32, WIDTH);
        }
        m.head_norms[i][0] = ggml_new_tensor_1d(m.ctx, GGML_TYPE_F32, D);
        m.head_norms[i][1] = ggml_new_tensor_1d(m.ctx, GGML_TYPE_F32, D);
        m.mods[i]          = ggml_new_tensor_1d(m.ctx, GGML_TYPE_F32, 4 * WIDTH);
    }
    m.x        = ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, WIDTH, TOKENS);
    m.pe       = ggml_new_tensor_4d(m.ctx, GGML_TYPE_F32, 2, 2, D / 2, TOKENS);
    m.hadamard = ggml_new_tensor_2d(m.ctx, GGML_TYPE_F32, GROUP, GROUP);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(m.ctx, cpu);
    for (int i = 0; buffer && i < LAYERS; i++) {
        for (int j = 0; j < LINEARS; j++) {
            fill_linear(&m.linear[i][j], shapes[j][0], shapes[j][1]);
        }
        for (int j = 0; j < 4; j++) {
            random_numbers(m.norms[i][j], 1, 0.3f);
        }
        random_numbers(m.head_norms[i][0], 1, 0.3f);
        random_numbers(m.head_norms[i][1], 1, 0.3f);
        random_numbers(m.mods[i], 0, 0.9f);
    }
    random_numbers(m.x, 0, 1.7f);
    for (int t = 0; t < TOKENS * D / 2; t++) {
        const float angle = (float) (t / (D / 2)) / powf(256, (float) (t % (D / 2)) / (D / 2));
        const float at[4] = { cosf(angle), -sinf(angle), sinf(angle), cosf(angle) };
        ggml_backend_tensor_set(m.pe, at, (size_t) t * sizeof at, sizeof at);
    }
    for (int i = 0; i < GROUP; i++) {
        float one[GROUP] = { 0 }, row[GROUP];
        one[i] = 1;
        rotate(one, row);
        ggml_backend_tensor_set(m.hadamard, row, (size_t) i * sizeof row, sizeof row);
    }
    return buffer;
}

/* graphs: by ggml-sd.h; by ggml's own operators in F32; by those with the rounding to 8 bits; the first with the others beside it */

enum form { INT8, PLAIN, ROUND, BESIDE };

static struct {
    struct ggml_context * ctx;
    enum form             form;
    struct ggml_tensor *  int8[LAYERS * LINEARS], *plain[LAYERS * LINEARS], *round[LAYERS * LINEARS];
    int                   n;
} b;

static struct ggml_tensor * rounded(struct ggml_tensor * x) {
    const int64_t        k = x->ne[0], n = x->ne[1];
    struct ggml_tensor * v = ggml_mul_mat(b.ctx, m.hadamard, ggml_reshape_2d(b.ctx, x, GROUP, k / GROUP * n));
    v                      = ggml_reshape_2d(b.ctx, v, k, n);
    struct ggml_tensor * s = ggml_pool_1d(b.ctx, ggml_abs(b.ctx, v), GGML_OP_POOL_MAX, (int) k, (int) k, 0);
    s                      = ggml_scale(b.ctx, ggml_reshape_2d(b.ctx, s, 1, n), 1.0f / 127);
    return ggml_mul(b.ctx, ggml_round(b.ctx, ggml_div(b.ctx, v, s)), s);
}

/* `n` linear layers on one activation. */
static void linears(struct linear * l, int n, struct ggml_tensor * x, struct ggml_tensor ** y) {
    const bool           int8 = b.form == INT8 || b.form == BESIDE;
    struct ggml_tensor * packed = int8 ? ggml_quantize_i8_convrot(b.ctx, x, GROUP) : NULL;
    struct ggml_tensor * steps  = b.form == ROUND || b.form == BESIDE ? rounded(x) : NULL;
    for (int i = 0; i < n; i++) {
        struct ggml_tensor * a = packed ? ggml_mul_mat_i8_tensorwise(b.ctx, l[i].i8, packed, l[i].scale, NULL, GROUP) : NULL;
        struct ggml_tensor * r = steps ? ggml_mul_mat(b.ctx, l[i].rounded, steps) : NULL;
        struct ggml_tensor * p = b.form == PLAIN || b.form == BESIDE ? ggml_mul_mat(b.ctx, l[i].f32, x) : NULL;
        if (b.form == BESIDE) {
            b.int8[b.n] = a, b.round[b.n] = r, b.plain[b.n++] = p;
        }
        y[i] = b.form == PLAIN ? p : b.form == ROUND ? r : a;
    }
}

static struct ggml_tensor * norm(struct ggml_tensor * x, struct ggml_tensor * w) { return ggml_mul(b.ctx, ggml_rms_norm(b.ctx, x, 1e-5f), w); }

static struct ggml_tensor * mod(int layer, int i) { return ggml_view_1d(b.ctx, m.mods[layer], WIDTH, (size_t) i * WIDTH * sizeof(float)); }

static struct ggml_tensor * modulated(struct ggml_tensor * x, struct ggml_tensor * scale) {
    const bool int8 = b.form == INT8 || b.form == BESIDE;
    return int8 ? ggml_sd_modulate(b.ctx, x, NULL, scale) : ggml_add(b.ctx, x, ggml_mul(b.ctx, x, scale));
}

static struct ggml_tensor * rope(struct ggml_tensor * x) {
    if (b.form == INT8 || b.form == BESIDE) {
        return ggml_rope_apply(b.ctx, x, m.pe, true);
    }
    struct ggml_tensor * y = ggml_cont(b.ctx, ggml_permute(b.ctx, x, 0, 2, 1, 3));
    struct ggml_tensor * t = ggml_cont(b.ctx, ggml_permute(b.ctx, m.pe, 1, 0, 2, 3)); /* [row, column, pairs, tokens] */
    struct ggml_tensor * sum = NULL;
    y = ggml_reshape_4d(b.ctx, y, 2, D / 2, TOKENS, HEADS);
    for (size_t i = 0; i < 2; i++) {
        struct ggml_tensor * column = ggml_cont(b.ctx, ggml_view_3d(b.ctx, t, 2, D / 2, TOKENS, t->nb[2], t->nb[3], i * t->nb[1]));
        struct ggml_tensor * one    = ggml_view_4d(b.ctx, y, 1, D / 2, TOKENS, HEADS, y->nb[1], y->nb[2], y->nb[3], i * y->nb[0]);
        struct ggml_tensor * part   = ggml_mul(b.ctx, ggml_repeat(b.ctx, one, y), column);
        sum                         = sum ? ggml_add(b.ctx, sum, part) : part;
    }
    return ggml_reshape_3d(b.ctx, sum, D, TOKENS, HEADS);
}

static struct ggml_tensor * attend(struct ggml_tensor ** qkv, int layer) {
    struct ggml_tensor * h[3];
    for (int i = 0; i < 3; i++) {
        h[i] = ggml_reshape_3d(b.ctx, qkv[i], D, HEADS, TOKENS);
        h[i] = i < 2 ? rope(norm(h[i], m.head_norms[layer][i])) : h[i];
    }
    struct ggml_tensor * p = ggml_soft_max_ext(b.ctx, ggml_mul_mat(b.ctx, h[1], h[0]), NULL, 1 / sqrtf(D), 0);
    struct ggml_tensor * y = ggml_mul_mat(b.ctx, ggml_cont(b.ctx, ggml_permute(b.ctx, h[2], 1, 2, 0, 3)), p);
    return ggml_reshape_2d(b.ctx, ggml_cont(b.ctx, ggml_permute(b.ctx, y, 0, 2, 1, 3)), WIDTH, TOKENS);
}

static struct ggml_tensor * gated(struct ggml_tensor * y, int layer, int part, struct ggml_tensor * x) {
    y = ggml_mul(b.ctx, norm(y, m.norms[layer][2 * part + 1]), ggml_tanh(b.ctx, mod(layer, 2 * part + 1)));
    return ggml_add(b.ctx, y, x);
}

static struct ggml_tensor * block(int i, struct ggml_tensor * x) {
    struct linear *      l = m.linear[i];
    struct ggml_tensor * y[3];
    linears(&l[Q], 3, modulated(norm(x, m.norms[i][0]), mod(i, 0)), y);
    linears(&l[OUT], 1, attend(y, i), y);
    x = gated(y[0], i, 0, x);
    linears(&l[GATE], 2, modulated(norm(x, m.norms[i][2]), mod(i, 2)), y);
    linears(&l[DOWN], 1, ggml_swiglu_split(b.ctx, y[0], y[1]), y);
    return gated(y[0], i, 1, x);
}

/* a run */

struct run {
    float  y[WIDTH * TOKENS];
    size_t memory;
    bool   ok;
    char * plan;
    double same[LAYERS * LINEARS], error[LAYERS * LINEARS]; /* BESIDE: against the same rounding, and against F32 */
};

static double apart(const float * a, const float * c, int64_t n) {
    double sum = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ((double) a[i] - c[i]) * ((double) a[i] - c[i]);
        all += (double) c[i] * c[i];
    }
    return sqrt(sum / all);
}

static double tensors_apart(const struct ggml_tensor * s, const struct ggml_tensor * t) {
    static float a[INNER * TOKENS], c[INNER * TOKENS];
    ggml_backend_tensor_get(s, a, 0, ggml_nbytes(s));
    ggml_backend_tensor_get(t, c, 0, ggml_nbytes(t));
    return apart(a, c, ggml_nelements(t));
}

static struct run run(enum form form, const char * forbid, int threads) {
    const struct ggml_init_params params = { NODES * ggml_tensor_overhead() + ggml_graph_overhead_custom(NODES, false), NULL, true };
    struct run                    r      = { .ok = false };
    memset(&b, 0, sizeof b);
    b.form = form;
    b.ctx  = ggml_init(params);
    setenv("GGML_EXT_FORBID", forbid, 1);
    ggml_backend_cpu_set_n_threads(cpu, threads);
    struct ggml_tensor * y = m.x;
    for (int i = 0; i < LAYERS; i++) {
        y = block(i, y);
    }
    struct ggml_cgraph * graph = ggml_new_graph_custom(b.ctx, NODES, false);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, NODES, false, false);
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    for (int i = 0; i < b.n; i++) {
        struct ggml_tensor * all[] = { b.int8[i], b.round[i], b.plain[i] };
        for (int j = 0; j < 3; j++) {
            ggml_set_output(all[j]);
            ggml_build_forward_expand(graph, all[j]);
        }
    }
    r.ok = ggml_backend_sched_alloc_graph(sched, graph) && ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS;
    unsetenv("GGML_EXT_FORBID");
    if (r.ok) {
        ggml_backend_tensor_get(y, r.y, 0, sizeof r.y);
        r.memory         = ggml_backend_sched_get_buffer_size(sched, cpu);
        const size_t len = ggml_ext_explain(sched, GGML_EXT_EXPLAIN_TEXT, NULL, 0) + 1;
        r.plan           = malloc(len);
        ggml_ext_explain(sched, GGML_EXT_EXPLAIN_TEXT, r.plan, len);
        for (int i = 0; i < b.n; i++) {
            r.same[i]  = tensors_apart(b.int8[i], b.round[i]);
            r.error[i] = tensors_apart(b.int8[i], b.plain[i]);
        }
    }
    ggml_backend_sched_free(sched);
    ggml_free(b.ctx);
    return r;
}

/* Numbers from -s to s in steps of s / 127: the error, relative to evenly spread numbers, of rounding one operand. The largest number of
 * a row of 256 and more from a bell curve is between 2 and 5 times the root of the mean square; both operands are rounded. */
static const double least_error = 1.41421356 * 2 / 127 / 3.46410162, most_error = 1.41421356 * 5 / 127 / 3.46410162;

static void layers(void) {
    struct run r = run(BESIDE, "", 2);
    CHECK(r.ok && b.n == LAYERS * LINEARS, "linear layers computed");
    for (int i = 0; r.ok && i < LAYERS * LINEARS; i++) {
        CHECK(r.same[i] < 1e-3, "layer %d: as the same rounding by ggml's own operators (%.1e)", i, r.same[i]);
        CHECK(r.error[i] > least_error && r.error[i] < most_error, "layer %d: the error is that of rounding (%.2f%%, %.2f%% to %.2f%%)", i,
              100 * r.error[i], 100 * least_error, 100 * most_error);
    }
    free(r.plan);
}

static void blocks(const struct run * int8) {
    struct run   plain = run(PLAIN, "", 2), round = run(ROUND, "", 2);
    const bool   ok    = CHECK(plain.ok && round.ok, "F32 and the same rounding computed");
    const double mine  = ok ? apart(int8->y, plain.y, WIDTH * TOKENS) : 0, same = ok ? apart(round.y, plain.y, WIDTH * TOKENS) : 0;
    CHECK(mine > 0.5 * least_error && mine < 1.15 * same, "blocks: the error is no larger than that of the same rounding (%.2f%%, %.2f%%)", 100 * mine,
          100 * same);
    free(plain.plan);
    free(round.plan);
}

static uint64_t fused(int rule) {
    GGML_EXT_INIT(ggml_ext_counters, n);
    return ggml_ext_counters(ggml_backend_get_device(cpu), rules[rule], &n) && n.errors == 0 ? n.fused_nodes : 0;
}

int main(void) {
    /* nodes that each rule replaces here: 2 ropes of 3, 2 norms with modulations of 4, 1 gate of 4; parts of those nothing */
    static const uint64_t in_a_block[RULES] = { 6, 8, 4, 0, 0 };
    check_quiet();
    cpu = ggml_backend_cpu_init();
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    ggml_backend_buffer_t buffer = load();
    uint64_t              before[RULES];
    for (int i = 0; i < RULES; i++) {
        before[i] = fused(i);
    }
    struct run all = run(INT8, "", 2);
    if (!CHECK(all.ok, "computed")) {
        return check_done();
    }
    for (int i = 0; i < RULES; i++) {
        const uint64_t n = fused(i) - before[i];
        CHECK(n == LAYERS * in_a_block[i], "%s: %d nodes fused by the counters", rules[i], (int) n);
        CHECK((strstr(all.plan, rules[i]) != NULL) == (in_a_block[i] > 0), "%s: the plan tells it", rules[i]);
    }
    CHECK(strstr(all.plan, "no memory") && strstr(all.plan, "sd.linear_i8.v1"), "the plan has nodes without memory, and the operators' names");
    struct run none = run(INT8, "sd.rms_norm_mul_rope.cpu,sd.rms_norm_mul_convrot.cpu,sd.linear_swiglu_convrot.cpu,sd.modulate_convrot.cpu,sd.swiglu_convrot.cpu", 2);
    CHECK(none.ok && memcmp(none.y, all.y, sizeof all.y) == 0, "EXT-49: the same bits without fusions");
    CHECK(none.ok && !strstr(none.plan, "no memory") && none.memory > all.memory, "fusions save memory (%zu, %zu)", none.memory, all.memory);
    struct run half = run(INT8, "sd.rms_norm_mul_convrot.cpu,sd.linear_swiglu_convrot.cpu", 2);
    CHECK(half.ok && strstr(half.plan, rules[3]) && strstr(half.plan, rules[4]) && memcmp(half.y, all.y, sizeof all.y) == 0,
          "EXT-49: the same bits where modulations and gates are fused alone");
    for (int threads = 1; threads <= 3; threads++) {
        struct run r = run(INT8, "", threads);
        CHECK(r.ok && memcmp(r.y, all.y, sizeof all.y) == 0, "the same bits on %d threads", threads);
        free(r.plan);
    }
    layers();
    blocks(&all);
    free(all.plan);
    free(none.plan);
    free(half.plan);
    ggml_backend_buffer_free(buffer);
    ggml_free(m.ctx);
    ggml_backend_free(cpu);
    return check_done();
}
