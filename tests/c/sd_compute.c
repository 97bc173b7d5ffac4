/* Computing the operators of ggml-sd.h, one node at a time: a result over each of its sources (EXT-44), addresses, any number of threads,
 * cancelling at every question (SRV-1). Each case is held to the same node with everything apart, whose numbers
 * tests/reference/tests/sd holds to the formulas; nothing but the result is written. */
#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

enum { SIZE = 1 << 17, MAX = 1 << 15, SRCS = 6, OPS = 10, F8_E4M3 = 43, K = 64, T = 9 };

/* Rows of weights and of activations: few of them, and more, which other code may take. */
static int N, M;

static struct ggml_context * ctx;
static ggml_backend_t        cpu;
static char                  room[SIZE + 64], before[SIZE + 64];
static char *                memory; /* a multiple of 64 */
static ggml_backend_buffer_t buffer;

static struct ggml_tensor *src[SRCS], *packed;
static int n_src;

static struct ggml_tensor * leaf(enum ggml_type type, int64_t a, int64_t b, int64_t c, int64_t d) {
    return src[n_src++] = ggml_new_tensor_4d(ctx, type, a, b, c, d);
}
static struct ggml_tensor * f32(int64_t a, int64_t b) { return leaf(GGML_TYPE_F32, a, b, 1, 1); }

static const char * const NAMES[OPS] = {
    "SD-3", "SD-2, F32", "SD-2, packed", "SD-2, scaled", "SD-4, W4A4", "SD-4, W4A8", "SD-5", "SD-1, neighbours", "SD-1, halves in part", "SD-1, strided",
};

/* A node whose sources are leafs. */
static struct ggml_tensor * build(int op) {
    ggml_reset(ctx);
    memset(src, 0, sizeof src);
    n_src  = 0;
    packed = NULL;
    struct { int32_t group, form, has, reserved; int64_t rows[3]; } i8 = { 16, 1, 3, 0, { M, 1, 1 } };
    struct { int32_t group, kind, has_bias, reserved; int64_t rows[3]; } w4 = { 16, op == 4 ? 1 : 2, 1, 0, { M, 1, 1 } };
    const int64_t padded = (M + 3) / 4 * 4 + (4 * M + K - 1) / K;
    struct ggml_tensor *w, *x, *s;
    switch (op) {
    case 0: return ggml_quantize_i8_convrot(ctx, f32(K, M), 64);
    case 1:
        w = leaf(GGML_TYPE_I8, K, N, 1, 1), x = f32(K, M), s = f32(N, 1);
        return ggml_mul_mat_i8_tensorwise(ctx, w, x, s, f32(N, 1), 64);
    case 2:
        leaf(GGML_TYPE_I8, K, N, 1, 1), packed = leaf(GGML_TYPE_I8, K, padded, 1, 1), f32(N, 1), f32(N, 1);
        return ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, n_src, &i8, sizeof i8);
    case 3:
        w = leaf(GGML_TYPE_I8, K, N, 1, 1), x = leaf(GGML_TYPE_I8, K, M, 1, 1), s = f32(N, 1);
        return ggml_mul_mat_i8_tensorwise_scaled(ctx, w, x, s, f32(N, 1), 0, f32(M, 1));
    case 4:
        leaf(GGML_TYPE_I8, K / 2, N, 1, 1), packed = leaf(GGML_TYPE_I8, K, padded, 1, 1), f32(N, 1), f32(N, 1);
        return ggml_ext_op_create(ctx, "sd.linear_w4_convrot.v1", src, n_src, &w4, sizeof w4);
    case 5:
        leaf(GGML_TYPE_I8, K / 2, N, 1, 1), packed = leaf(GGML_TYPE_I8, K, padded, 1, 1), f32(16, 1), f32(N, 1);
        leaf((enum ggml_type) F8_E4M3, K / 16, N, 1, 1), f32(N, 1);
        return ggml_ext_op_create(ctx, "sd.linear_w4_convrot.v1", src, n_src, &w4, sizeof w4);
    case 6: x = leaf(GGML_TYPE_F32, K, 5, 3, 2), s = leaf(GGML_TYPE_F32, K, 1, 3, 1); return ggml_sd_modulate(ctx, x, leaf(GGML_TYPE_F32, K, 5, 1, 1), s);
    case 7: x = leaf(GGML_TYPE_F32, K, 3, T, 2); return ggml_rope_apply(ctx, x, leaf(GGML_TYPE_F32, 2, 2, K / 2, T), true);
    case 8: x = leaf(GGML_TYPE_F32, K, 3, T, 2); return ggml_rope_apply(ctx, x, leaf(GGML_TYPE_F32, 2, 2, 20, T), false);
    default:
        x = leaf(GGML_TYPE_F32, T, K, 2, 3), s = leaf(GGML_TYPE_F32, 20, T, 2, 2);
        return ggml_rope_apply(ctx, ggml_permute(ctx, x, 2, 0, 3, 1), ggml_permute(ctx, s, 2, 3, 0, 1), true);
    }
}

static unsigned state;
static unsigned next(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static void fill(void) {
    state = 5;
    for (int i = 0; i < n_src; i++) {
        signed char * b = src[i]->data;
        for (size_t j = 0; j < ggml_nbytes(src[i]); j++) {
            b[j] = (signed char) (next() >> 7);
            if (src[i]->type == (enum ggml_type) F8_E4M3 && (b[j] & 127) == 127) {
                b[j] = 9;
            }
        }
        const bool   numbers = src[i]->type == GGML_TYPE_F32;
        const size_t first = numbers ? 0 : src[i] == packed ? K * ((M + 3) / 4 * 4) : SIZE;
        for (size_t j = first; j + 4 <= ggml_nbytes(src[i]); j += 4) {
            const float v = (float) next() * 0x1p-22f - 2;
            memcpy(b + j, &v, 4);
        }
    }
}

/* Places and fills everything: source `i` at 8192 (i + 1) + `off`, `off` + 1 for bytes; the result at `at`. */
static void place(struct ggml_tensor * y, ptrdiff_t at, int off) {
    memset(memory, 0x5A, SIZE);
    for (int i = 0; i < n_src; i++) {
        const int more = src[i]->type == GGML_TYPE_F32 ? off : off / 4;
        ggml_backend_tensor_alloc(buffer, src[i], memory + 8192 * (i + 1) + more);
    }
    for (int i = 0; i < 2; i++) {
        if (y->src[i] && y->src[i]->view_src) {
            ggml_backend_view_init(y->src[i]);
        }
    }
    ggml_backend_tensor_alloc(buffer, y, memory + at);
    fill();
    memcpy(before, memory, SIZE);
}

static bool only_the_result_is_written(const struct ggml_tensor * y) {
    const size_t first = (size_t) ((char *) y->data - memory);
    return memcmp(before, memory, first) == 0 && memcmp(before + first + ggml_nbytes(y), memory + first + ggml_nbytes(y), SIZE - first - ggml_nbytes(y)) == 0;
}

static struct ggml_cgraph * graph_of(struct ggml_tensor * y) {
    struct ggml_cgraph * g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, y);
    return g;
}

static enum { APART = 8192 * (SRCS + 1) } apart = APART;
static char want[MAX];

/* The result with everything apart, one thread. */
static void reference(int op) {
    struct ggml_tensor * y = build(op);
    place(y, apart, 0);
    ggml_backend_cpu_set_n_threads(cpu, 1);
    const bool good = ggml_backend_graph_compute(cpu, graph_of(y)) == GGML_STATUS_SUCCESS && only_the_result_is_written(y);
    CHECK(good && ggml_nbytes(y) <= MAX, "%s: apart", NAMES[op]);
    memcpy(want, y->data, ggml_nbytes(y));
}

/* Whether it is computed rightly there. */
static bool is_right(int op, ptrdiff_t at, int off) {
    struct ggml_tensor * y = build(op);
    place(y, at, off);
    return ggml_backend_graph_compute(cpu, graph_of(y)) == GGML_STATUS_SUCCESS && memcmp(want, y->data, ggml_nbytes(y)) == 0 && only_the_result_is_written(y);
}

static const int THREADS[] = { 1, 2, 3, 4, 7 };

static void over_sources(int op) {
    build(op);
    const int n = n_src;
    for (int i = 0; i < n; i++) {
        static const ptrdiff_t shifts[] = { 0, 4, 64, 260, -4, -64, -260, 1028 };
        int wrong = 0;
        for (size_t t = 0; t < 5; t++) {
            ggml_backend_cpu_set_n_threads(cpu, THREADS[t]);
            for (size_t j = 0; j < sizeof shifts / sizeof *shifts; j++) {
                wrong += !is_right(op, 8192 * (i + 1) + shifts[j], 0);
            }
        }
        CHECK(wrong == 0, "%s, EXT-44: the result over source %d, in whole and in part: %d wrong", NAMES[op], i, wrong);
    }
}

static void threads(int op) {
    for (size_t t = 0; t < 5; t++) {
        ggml_backend_cpu_set_n_threads(cpu, THREADS[t]);
        CHECK(is_right(op, apart, 0), "%s: %d threads, the same bits", NAMES[op], THREADS[t]);
    }
}

static void addresses(int op) {
    static const int offs[] = { 4, 12, 20, 36, 60 };
    for (size_t j = 0; j < sizeof offs / sizeof *offs; j++) {
        CHECK(is_right(op, apart + offs[j], 0) && is_right(op, apart, offs[j]) && is_right(op, apart + offs[j], 64 - offs[j]), "%s: addresses %d beyond a multiple of 64", NAMES[op], offs[j]);
    }
    for (int which = 0; which < 2; which++) {
        struct ggml_tensor * y = build(op);
        if (which ? y->type != GGML_TYPE_F32 : op == 5) {
            continue;
        }
        place(y, apart + 2 * which, which ? 0 : 2);
        enum ggml_status status = GGML_STATUS_SUCCESS;
        char title[100];
        snprintf(title, sizeof title, "%s: %s at an odd multiple of 2", NAMES[op], which ? "the result" : "numbers");
        CHECK_ERROR(status = ggml_backend_graph_compute(cpu, graph_of(y)), GGML_EXT_CODE_NONE, title, "multiples of 4", "sd.", NULL);
        CHECK(status != GGML_STATUS_SUCCESS && memcmp(before, memory, SIZE) == 0, "%s: a status, and nothing is written", title);
    }
}

static int  asked, stop_at;
static bool stop(void * data) {
    (void) data;
    return ++asked == stop_at;
}

static void cancel(int op, bool over) {
    struct ggml_tensor * y = build(op);
    struct ggml_cgraph * g = graph_of(y);
    const ptrdiff_t      at = over ? 8192 : apart;
    ggml_backend_cpu_set_n_threads(cpu, 2);
    ggml_backend_cpu_set_abort_callback(cpu, stop, NULL);
    place(y, at, 0);
    asked = stop_at = 0;
    const bool ran = ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS;
    const int  all = asked, phases = (op == 1 ? 2 : 1) + over;
    CHECK(ran && all >= phases, "%s%s: asked %d times, %d phases", NAMES[op], over ? ", over a source" : "", all, phases);
    for (stop_at = 1; stop_at <= all; stop_at++) {
        place(y, at, 0);
        asked = 0;
        const bool stopped = ggml_backend_graph_compute(cpu, g) == GGML_STATUS_ABORTED && asked == stop_at && only_the_result_is_written(y);
        place(y, at, 0);
        const bool right = ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS && memcmp(want, y->data, ggml_nbytes(y)) == 0;
        CHECK(stopped && right, "%s%s: stopped at question %d, right when run again", NAMES[op], over ? ", over a source" : "", stop_at);
    }
    ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);
}

/* SD-2, SD-4: what the quantising node gives reaches the product through copies and views; two layers share it. */
static void shared_activation(void) {
    ggml_reset(ctx);
    struct ggml_tensor *x = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, K, 5, 3, 2), *w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, K, N);
    struct ggml_tensor *q = ggml_quantize_i8_convrot(ctx, x, 16), *copies[] = { q, ggml_cont(ctx, q), ggml_dup(ctx, q), ggml_view_tensor(ctx, q), ggml_reshape_2d(ctx, q, q->ne[0], q->ne[1]) };
    struct ggml_tensor * direct = ggml_mul_mat_i8_tensorwise(ctx, w, x, NULL, NULL, 16), *out[5];
    struct ggml_cgraph * g = graph_of(direct);
    for (int i = 0; i < 5; i++) {
        out[i] = ggml_mul_mat_i8_tensorwise(ctx, w, copies[i], NULL, NULL, 16);
        ggml_build_forward_expand(g, out[i]);
    }
    ggml_backend_buffer_t own = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    n_src = 2, src[0] = x, src[1] = w, packed = NULL;
    fill();
    const bool ran = ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS;
    for (int i = 0; i < 5; i++) {
        CHECK(ran && memcmp(out[i]->data, direct->data, ggml_nbytes(direct)) == 0, "SD-2: packed activation %d gives what F32 gives", i);
    }
    ggml_backend_buffer_free(own);
}

int main(void) {
    check_quiet();
    memory = room + (64 - (size_t) room % 64) % 64;
    ctx    = ggml_init((struct ggml_init_params){ .mem_size = 1 << 20, .no_alloc = true });
    cpu    = ggml_backend_cpu_init();
    buffer = ggml_backend_cpu_buffer_from_ptr(memory, SIZE);
    CHECK(ggml_sd_register_extensions(NULL), "registered");
    for (int large = 0; large < 2; large++) {
        N = large ? 37 : 12;
        M = large ? 29 : 9;
        printf("# %d rows of activations\n", M);
        for (int op = 0; op < (large ? 6 : OPS); op++) {
            reference(op);
            threads(op);
            over_sources(op);
            addresses(op);
            cancel(op, false);
            cancel(op, true);
        }
    }
    shared_activation();
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
