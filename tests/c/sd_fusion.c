/* The fusion RMS_NORM, MUL, sd.rope_apply.v1 in the scheduler: what is fused and what is not (EXT-40 to EXT-44, EXT-49), and that the
 * result is what the single nodes give, bit for bit. Both are held to the formula in f64. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

#define RULE "sd.rms_norm_mul_rope.cpu"
#define ROPE "sd.rope_apply.cpu"

enum { OUT = 4, BYTES = 1 << 16 };

static struct ggml_context * ctx;
static ggml_backend_t        cpu;
static ggml_backend_dev_t    dev;

/* The graph at hand. */
static struct {
    struct ggml_tensor *x, *w, *pe;       /* filled before each computation */
    struct ggml_tensor *norm, *mul, *y;
    struct ggml_tensor * out[OUT];        /* compared */
    bool                 interleaved;
    int64_t              place[3];        /* of x, pe, w in the program's own memory, bytes; 0: the scheduler's */
    int64_t              at;              /* of y */
    bool                 views_last;      /* views of the weight and of pe are nodes where they are first read */
} k;

static struct ggml_tensor * new4(int64_t a, int64_t b, int64_t c, int64_t d) {
    return ggml_new_tensor_4d(ctx, GGML_TYPE_F32, a, b, c, d);
}

static void result(struct ggml_tensor * t) {
    ggml_set_output(t);
    for (int i = 0; i < OUT; i++) {
        if (!k.out[i]) {
            k.out[i] = t;
            return;
        }
    }
}

/* x, pe, and the norm of x */
static void begin(int64_t d, int64_t heads, int64_t tokens, int64_t batch, int64_t pairs, bool interleaved) {
    k.interleaved = interleaved;
    k.x           = k.x ? k.x : new4(d, heads, tokens, batch);
    k.pe          = k.pe ? k.pe : new4(2, 2, pairs, tokens);
    k.norm        = ggml_rms_norm(ctx, k.x, 1e-6f);
}
static void weight(bool inplace) {
    k.w   = k.w ? k.w : ggml_new_tensor_1d(ctx, GGML_TYPE_F32, k.x->ne[0]);
    k.mul = inplace ? ggml_mul_inplace(ctx, k.norm, k.w) : ggml_mul(ctx, k.norm, k.w);
}
static void rope(void) { result(k.y = ggml_rope_apply(ctx, k.mul, k.pe, k.interleaved)); }
static void chain(int64_t d, int64_t heads, int64_t tokens, int64_t batch, int64_t pairs, bool interleaved, bool inplace) {
    begin(d, heads, tokens, batch, pairs, interleaved);
    weight(inplace);
    rope();
}

/* fused */

static void plain(void) { chain(64, 3, 5, 1, 32, true, false); }
static void halves(void) { chain(64, 3, 5, 1, 32, false, false); }
static void inplace(void) { chain(64, 3, 5, 1, 32, true, true); }
static void partial(void) { chain(128, 3, 5, 1, 48, true, true); }
static void partial_halves(void) { chain(128, 3, 5, 1, 48, false, false); }
static void batches(void) { chain(64, 3, 5, 4, 32, true, true); }
static void batches_halves(void) { chain(64, 3, 5, 4, 30, false, true); }
static void one(void) { chain(2, 1, 1, 1, 1, true, false); }
static void nothing_turned(void) {
    k.x = new4(8, 2, 3, 1);
    k.pe = new4(2, 2, 0, 3);
    chain(8, 2, 3, 1, 0, false, false);
}
static void permuted_x(void) {
    k.x = ggml_permute(ctx, new4(64, 5, 3, 2), 0, 2, 1, 3);
    chain(64, 3, 5, 2, 32, true, true);
}
static void transposed_x(void) {
    k.x = ggml_permute(ctx, new4(3, 64, 5, 2), 1, 0, 2, 3);
    chain(64, 3, 5, 2, 32, false, true);
}
static void part_of_rows(void) {
    struct ggml_tensor * all = new4(192, 3, 5, 2);
    k.x = ggml_view_4d(ctx, all, 64, 3, 5, 2, all->nb[1], all->nb[2], all->nb[3], 64 * sizeof(float));
    chain(64, 3, 5, 2, 32, true, true);
}
static void transposed_pe(void) {
    k.pe = ggml_permute(ctx, new4(32, 5, 2, 2), 2, 3, 0, 1);
    chain(64, 3, 5, 1, 32, true, false);
}
static void part_of_weights(void) {
    k.w = ggml_view_1d(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 200), 64, 17 * sizeof(float));
    halves();
}
static void result_read_later(void) {
    plain();
    result(ggml_scale(ctx, k.y, 2));
}
static void two_chains_share_pe(void) {
    struct ggml_tensor * w = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64);
    k.w = w;
    plain();
    struct ggml_tensor * q = k.y;
    result(ggml_rope_apply(ctx, ggml_mul_inplace(ctx, ggml_rms_norm(ctx, k.x, 1e-6f), w), k.pe, true));
    k.y = q;
}
/* the result lies over what is read: x, all of it and in part, pe, the weight */
static void place(int64_t x, int64_t pe, int64_t w, int64_t y, bool interleaved) {
    k.place[0] = x;
    k.place[1] = pe;
    k.place[2] = w;
    k.at       = y;
    chain(64, 3, 5, 2, 30, interleaved, true);
}
static void over_x(void) { place(4096, 20000, 40000, 4096, true); }
static void over_x_halves(void) { place(4096, 20000, 40000, 4096, false); }
static void over_part_of_x(void) { place(4096, 20000, 40000, 4096 + 1028, true); }
static void before_x(void) { place(4096, 20000, 40000, 4096 - 260, false); }
static void over_pe(void) { place(4096, 20000, 40000, 20000, true); }
static void over_part_of_pe(void) { place(4096, 20000, 40000, 20000 - 1000, false); }
static void over_weight(void) { place(4096, 20000, 40000, 40000 - 512, true); }
static void beside(void) { place(4100, 20004, 40004, 50004, true); }

/* not fused */

static void norm_read(void) {
    plain();
    result(ggml_scale(ctx, k.norm, 2));
}
static void mul_read(void) {
    plain();
    result(ggml_scale(ctx, k.mul, 2));
}
static void norm_output(void) {
    plain();
    result(k.norm);
}
static void mul_output(void) {
    plain();
    result(k.mul);
}
static void view_of_norm(void) {
    plain();
    result(ggml_scale(ctx, ggml_view_1d(ctx, k.norm, 7, 4), 2));
}
static void view_of_mul(void) {
    plain();
    result(ggml_scale(ctx, ggml_reshape_1d(ctx, k.mul, ggml_nelements(k.mul)), 2));
}
static void reshape_between(void) {
    begin(64, 3, 5, 1, 32, true);
    weight(false);
    k.mul = ggml_reshape_4d(ctx, k.mul, 64, 3, 5, 1);
    rope();
}
static void norm_inplace(void) {
    k.x = ggml_scale(ctx, new4(64, 3, 5, 1), 1);
    k.interleaved = true;
    k.pe   = new4(2, 2, 32, 5);
    k.norm = ggml_rms_norm_inplace(ctx, k.x, 1e-6f);
    k.x    = k.x->src[0];
    k.w    = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64);
    weight(false);
    rope();
}
static void weight_first(void) {
    begin(64, 3, 5, 1, 32, true);
    k.w   = new4(64, 3, 5, 1);
    k.mul = ggml_mul(ctx, k.w, k.norm);
    rope();
}
static void one_weight(void) {
    k.w = new4(1, 1, 1, 1);
    plain();
}
static void weight_by_head(void) {
    k.w = new4(64, 3, 1, 1);
    plain();
}
static void weight_by_token(void) {
    k.w = new4(64, 1, 5, 1);
    plain();
}
static void whole_weight(void) {
    k.w = new4(64, 3, 5, 1);
    plain();
}
static void half_weight(void) {
    k.w = new4(32, 1, 1, 1);
    plain();
}
static void weight_with_gaps(void) {
    struct ggml_tensor * all = new4(3, 64, 1, 1);
    k.w = ggml_permute(ctx, ggml_view_2d(ctx, all, 1, 64, all->nb[1], 4), 1, 0, 2, 3);
    plain();
}
static void view_between(void) {
    k.views_last = true;
    transposed_pe();
}
/* what reads what gets no memory, twice */
static void norm_by_itself(void) {
    begin(64, 1, 1, 1, 32, true);
    k.mul = ggml_mul(ctx, k.norm, k.norm);
    rope();
}
static void turned_by_itself(void) {
    k.x = new4(2, 2, 1, 1);
    begin(2, 2, 1, 1, 1, true);
    weight(false);
    k.pe = k.mul;
    rope();
    k.pe = NULL;
}
static void turned_by_norm(void) {
    k.x = new4(2, 2, 1, 1);
    begin(2, 2, 1, 1, 1, true);
    weight(false);
    k.pe = k.norm;
    rope();
    k.pe = NULL;
}
static void no_norm(void) {
    k.x = new4(64, 3, 5, 1);
    k.interleaved = true;
    k.pe   = new4(2, 2, 32, 5);
    k.norm = ggml_l2_norm(ctx, k.x, 1e-6f);
    weight(false);
    rope();
}
static void add_for_mul(void) {
    begin(64, 3, 5, 1, 32, true);
    k.w   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64);
    k.mul = ggml_add(ctx, k.norm, k.w);
    rope();
}
static void other_operator(void) {
    begin(64, 3, 5, 1, 32, true);
    weight(false);
    k.pe = NULL;
    result(k.y = ggml_sd_modulate(ctx, k.mul, NULL, k.mul));
}

/* computing */

static char memory[1 << 17];

/* `exact`: squares whose sums are exact in every order. Numbers of either sign. */
static void fill(struct ggml_tensor * t, int seed, bool exact) {
    static float v[BYTES / 4];
    unsigned     state = (unsigned) seed * 2654435761u + 1;
    const int64_t n = (int64_t) (ggml_nbytes(t) / 4);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        v[i]  = exact ? (float) ((int) (state >> 24) % 49 - 24) * 0.125f : (float) (state >> 8) * 0x1p-22f - 2;
    }
    ggml_backend_tensor_set(t, v, 0, (size_t) n * 4);
}

static float at(const struct ggml_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const struct ggml_tensor * root = t->view_src ? t->view_src : t;
    float x;
    ggml_backend_tensor_get(root, &x, (size_t) ((char *) t->data - (char *) root->data) + (size_t) i0 * t->nb[0] + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3], 4);
    return x;
}

/* Element [i, token, row] of the result by the formula in f64. */
static double formula(int64_t i, int64_t t, int64_t row) {
    const int64_t d = k.x->ne[0], heads = k.x->ne[1], pairs = k.pe->ne[2], head = row % heads, b = row / heads;
    double        squares = 0, v[2];
    for (int64_t c = 0; c < d; c++) {
        squares += (double) at(k.x, c, head, t, b) * at(k.x, c, head, t, b);
    }
    const double factor = 1 / sqrt(squares / (double) d + (double) 1e-6f);
    const int64_t j     = k.interleaved ? i / 2 : i % (pairs ? pairs : 1);
    const bool    tail  = i >= 2 * pairs, second = k.interleaved ? i % 2 : i >= pairs;
    const int64_t c[2]  = { tail ? i : k.interleaved ? 2 * j : j, tail ? i : k.interleaved ? 2 * j + 1 : j + pairs };
    for (int e = 0; e < 2; e++) {
        v[e] = at(k.x, c[e], head, t, b) * factor * at(k.w, c[e], 0, 0, 0);
    }
    if (tail) {
        return v[0];
    }
    const double m00 = at(k.pe, 0, 0, j, t), m10 = at(k.pe, 1, 0, j, t), m01 = at(k.pe, 0, 1, j, t), m11 = at(k.pe, 1, 1, j, t);
    const double p = second ? m01 : m00;
    const double q = k.interleaved ? (second ? m11 : m10) : (second ? m00 : -m01);
    return v[0] * p + v[1] * q;
}

static struct ggml_ext_counters counters(const char * name) {
    GGML_EXT_INIT(ggml_ext_counters, c);
    ggml_ext_counters(dev, name, &c);
    return c;
}

static bool explained(ggml_backend_sched_t s, const char * text) {
    static char all[1 << 16];
    ggml_ext_explain(s, GGML_EXT_EXPLAIN_TEXT, all, sizeof all);
    return strstr(all, text) != NULL;
}

static char last_explained[1 << 16];

/* Computes what `build` makes `times` times; results of each go to `have`. How often the rule ran, or -1. */
static int run(void (*build)(void), bool fused, bool exact, char have[OUT][BYTES], size_t * size) {
    if (fused) {
        unsetenv("GGML_EXT_FORBID");
    } else {
        setenv("GGML_EXT_FORBID", RULE, 1);
    }
    ggml_reset(ctx);
    memset(&k, 0, sizeof k);
    build();
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 32, false);
    for (int i = 0; i < 2 && !k.views_last; i++) {
        struct ggml_tensor * first = i ? k.w : k.pe;
        if (first && first->view_src) {
            ggml_build_forward_expand(g, first);
        }
    }
    for (int i = 0; i < OUT && k.out[i]; i++) {
        ggml_build_forward_expand(g, k.out[i]);
    }
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, sizeof memory);
    char *                base   = memory + (64 - (size_t) memory % 64) % 64;
    struct ggml_tensor *  own[]  = { k.x, k.pe, k.w };
    for (int i = 0; i < 3; i++) {
        if (k.place[i]) {
            ggml_backend_tensor_alloc(buffer, own[i], base + k.place[i]);
        }
    }
    if (k.at) {
        ggml_backend_tensor_alloc(buffer, k.y, base + k.at);
    }
    ggml_backend_sched_t s    = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    bool                 good = ggml_backend_sched_alloc_graph(s, g);
    const uint64_t       ran = counters(RULE).ran, nodes = counters(RULE).fused_nodes, ropes = counters(ROPE).ran;
    *size = ggml_backend_sched_get_buffer_size(s, cpu);
    memset(have, 0, OUT * BYTES);
    for (int time = 0; good && time < 2; time++) {
        for (int i = 0; i < 3; i++) {
            if (own[i]) {
                fill(own[i], i + 1, exact);
            }
        }
        good = ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS;
        for (int i = 0; good && i < OUT && k.out[i]; i++) {
            ggml_backend_tensor_get(k.out[i], have[i], 0, ggml_nbytes(k.out[i]));
        }
    }
    ggml_ext_explain(s, GGML_EXT_EXPLAIN_TEXT, last_explained, sizeof last_explained);
    const int times = (int) (counters(RULE).ran - ran);
    good = good && counters(RULE).fused_nodes - nodes == 3 * (uint64_t) times && explained(s, fused && times ? RULE : "");
    if (good && times && k.out[1] == NULL) {
        /* EXT-47: no memory, and no launch of its own */
        good = !k.norm->data && !k.mul->data && !k.norm->buffer && !k.mul->buffer && counters(ROPE).ran == ropes;
    }
    ggml_backend_sched_free(s);
    ggml_backend_buffer_free(buffer);
    return good ? times : -1;
}

/* The result against the formula. The inputs are those that were there before. */
static bool right(char have[OUT][BYTES]) {
    const float * h = (const float *) have[0];
    if (k.at || k.w->ne[0] != k.x->ne[0] || ggml_nelements(k.w) != k.w->ne[0] || k.out[1]) {
        return true;
    }
    for (int64_t row = 0, n = 0; row < k.y->ne[2]; row++) {
        for (int64_t t = 0; t < k.y->ne[1]; t++) {
            for (int64_t i = 0; i < k.y->ne[0]; i++, n++) {
                const double f = formula(i, t, row);
                if (!(fabs(f - h[n]) <= 1e-5 * fmax(1, fabs(f)))) {
                    printf("# element %d %d %d: %g, formula %g\n", (int) i, (int) t, (int) row, (double) h[n], f);
                    return false;
                }
            }
        }
    }
    return true;
}

static char want[OUT][BYTES], have[OUT][BYTES];

/* EXT-49: `fused` is what must become of the chains, of which there are `n`; unfused gives the same. */
static void same(const char * name, void (*build)(void), int n, const char * why) {
    size_t size[2];
    for (int exact = 1; exact >= 0; exact--) {
        const int without = run(build, false, exact, want, &size[0]);
        const int with    = run(build, true, exact, have, &size[1]);
        CHECK(without == 0 && with == 2 * n, "%s: %s fused (%d and %d launches)", name, n ? "is" : "is not", without, with);
        if (why) {
            CHECK(strstr(last_explained, why), "%s: explained by '%s'", name, why);
        }
        CHECK(memcmp(want, have, sizeof want) == 0, "%s: EXT-49: bit for bit", name);
        /* the inputs have no memory of their own any more where the scheduler gave it: look at them anew */
        if (n && !exact && !k.at) {
            k.place[0] = 1024, k.place[1] = 1024 + 40000, k.place[2] = 1024 + 80000;
            ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, sizeof memory);
            struct ggml_tensor *  own[]  = { k.x, k.pe, k.w };
            for (int i = 0; i < 3; i++) {
                struct ggml_tensor * root = own[i]->view_src ? own[i]->view_src : own[i];
                root->buffer = own[i]->buffer = NULL;
                root->data = own[i]->data = NULL;
                ggml_backend_tensor_alloc(buffer, root, memory + k.place[i]);
                if (root != own[i]) {
                    ggml_backend_view_init(own[i]);
                }
                fill(own[i], i + 1, false);
            }
            CHECK(right(have), "%s: within 1e-5 of the formula", name);
            ggml_backend_buffer_free(buffer);
        }
    }
}

/* EXT-49: any number of threads, the same bits. */
static void threads(void) {
    static const int counts[] = { 1, 2, 3, 4, 7 };
    size_t size;
    for (int which = 0; which < 2; which++) {
        void (*const build)(void) = which ? over_part_of_x : batches;
        for (int i = 0; i < 5; i++) {
            ggml_backend_cpu_set_n_threads(cpu, counts[i]);
            const int ran = run(build, true, false, i ? have : want, &size);
            CHECK(ran == 2 && (i == 0 || memcmp(want, have, sizeof want) == 0), "EXT-49: %d threads, %s", counts[i], which ? "the result over x" : "batches");
        }
    }
    ggml_backend_cpu_set_n_threads(cpu, 2);
}

/* EXT-49: the memory of the chain. */
static void saves(void) {
    size_t size[2];
    const bool ran = run(batches, false, false, want, &size[0]) == 0 && run(batches, true, false, have, &size[1]) == 2;
    CHECK(ran && size[1] <= size[0], "EXT-47: the fusion needs no more memory than the nodes (%zu, %zu)", size[1], size[0]);
    CHECK(strstr(last_explained, "skipped") || strstr(last_explained, "no memory"), "EXT-47: the explanation says what has no memory");
}

static int  asked, stop_at;
static bool stop(void * data) {
    (void) data;
    return ++asked == stop_at;
}

/* SRV-1: the abort callback, at each of its calls. */
static void cancel(void) {
    for (int aliased = 0; aliased < 2; aliased++) {
        ggml_reset(ctx);
        memset(&k, 0, sizeof k);
        unsetenv("GGML_EXT_FORBID");
        void (*const build)(void) = aliased ? over_x : inplace;
        size_t size;
        CHECK(run(build, true, true, want, &size) == 2, "cancelling: fused");
        ggml_backend_cpu_set_abort_callback(cpu, stop, NULL);
        stop_at = asked = 0;
        const int ran = run(build, true, true, have, &size);
        const int all = asked / 2;
        CHECK(ran == 2 && all >= 1 + aliased, "cancelling: asked %d times", all);
        for (stop_at = 1; stop_at <= all; stop_at++) {
            asked = 0;
            struct ggml_cgraph * g;
            ggml_reset(ctx);
            memset(&k, 0, sizeof k);
            build();
            g = ggml_new_graph_custom(ctx, 32, false);
            ggml_build_forward_expand(g, k.y);
            ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, sizeof memory);
            char *                base   = memory + (64 - (size_t) memory % 64) % 64;
            struct ggml_tensor *  own[]  = { k.x, k.pe, k.w };
            for (int i = 0; i < 3 && k.at; i++) {
                ggml_backend_tensor_alloc(buffer, own[i], base + k.place[i]);
            }
            if (k.at) {
                ggml_backend_tensor_alloc(buffer, k.y, base + k.at);
            }
            ggml_backend_sched_t s = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
            bool good = ggml_backend_sched_alloc_graph(s, g);
            for (int time = 0; time < 2; time++) {
                for (int i = 0; i < 3; i++) {
                    fill(own[i], i + 1, true);
                }
                const enum ggml_status status = ggml_backend_sched_graph_compute(s, g);
                good = good && status == (time ? GGML_STATUS_SUCCESS : GGML_STATUS_ABORTED);
            }
            ggml_backend_tensor_get(k.y, have[0], 0, ggml_nbytes(k.y));
            CHECK(good && memcmp(want, have, sizeof want) == 0, "cancelling: stopped at question %d of %d, and right when run again%s", stop_at, all, aliased ? ", the result over x" : "");
            ggml_backend_sched_free(s);
            ggml_backend_buffer_free(buffer);
        }
        ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);
    }
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ .mem_size = 1 << 20, .no_alloc = true });
    cpu = ggml_backend_cpu_init();
    dev = ggml_backend_get_device(cpu);
    ggml_backend_cpu_set_n_threads(cpu, 2);
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    same("neighbours", plain, 1, NULL);
    same("halves", halves, 1, NULL);
    same("MUL in place", inplace, 1, NULL);
    same("a part turned", partial, 1, NULL);
    same("a part turned, halves", partial_halves, 1, NULL);
    same("batches", batches, 1, NULL);
    same("batches, a part turned, halves", batches_halves, 1, NULL);
    same("one pair", one, 1, NULL);
    same("no pair", nothing_turned, 1, NULL);
    same("x permuted", permuted_x, 1, NULL);
    same("x transposed", transposed_x, 1, NULL);
    same("x a part of longer rows", part_of_rows, 1, NULL);
    same("pe permuted", transposed_pe, 1, NULL);
    same("the weight a part of another tensor", part_of_weights, 1, NULL);
    same("the result read later", result_read_later, 1, NULL);
    same("two chains", two_chains_share_pe, 2, NULL);
    same("EXT-44: the result over x", over_x, 1, NULL);
    same("EXT-44: the result over x, halves", over_x_halves, 1, NULL);
    same("EXT-44: the result over the end of x", over_part_of_x, 1, NULL);
    same("EXT-44: the result over the beginning of x", before_x, 1, NULL);
    same("EXT-44: the result over pe", over_pe, 1, NULL);
    same("EXT-44: the result over a part of pe", over_part_of_pe, 1, NULL);
    same("EXT-44: the result over the weight", over_weight, 1, NULL);
    same("addresses that are multiples of 4 alone", beside, 1, NULL);

    same("EXT-41: the norm read elsewhere", norm_read, 0, "read from outside the match");
    same("EXT-41: the product read elsewhere", mul_read, 0, "read from outside the match");
    same("EXT-41: the norm an output", norm_output, 0, "flagged as an output");
    same("EXT-41: the product an output", mul_output, 0, "flagged as an output");
    same("EXT-42: a view of the norm read elsewhere", view_of_norm, 0, "read from outside the match");
    same("EXT-42: a view of the product read elsewhere", view_of_mul, 0, "read from outside the match");
    same("EXT-43: the norm in place", norm_inplace, 0, "writes over storage");
    same("a view between", reshape_between, 0, NULL);
    same("the weight first", weight_first, 0, NULL);
    same("one number as the weight", one_weight, 0, "a number for each channel");
    same("a weight by head", weight_by_head, 0, "a number for each channel");
    same("a weight by token", weight_by_token, 0, "a number for each channel");
    same("a weight by element", whole_weight, 0, "a number for each channel");
    same("a weight that is repeated", half_weight, 0, "a number for each channel");
    same("a weight with gaps", weight_with_gaps, 0, "side by side");
    same("a view of pe between", view_between, 0, NULL);
    same("the norm times itself", norm_by_itself, 0, NULL);
    same("turned by itself", turned_by_itself, 0, NULL);
    same("turned by the norm", turned_by_norm, 0, NULL);
    same("another norm", no_norm, 0, NULL);
    same("a sum in place of the product", add_for_mul, 0, NULL);
    same("another operator at the end", other_operator, 0, NULL);
    threads();
    saves();
    cancel();
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
