/* Times of stable-diffusion.cpp's linear layer in 8 bits against this library's q8_0 and f16 products of the same shapes and against
 * what the processor can do, and of the quantisation against copying. The best of several runs of each, taken in turn. */
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "roof.h"

static ggml_backend_t cpu;
static int            threads = 2, rounds = 9, failed;
static double         peak, copying, reading; /* Mop/s, MB/s: as much per microsecond */

/* What is asked for. */
static const double MIN_Q8_0 = 1.5, MIN_ROOF = 0.6, MIN_COPY = 0.5;

enum { MAX = 4 };

struct set {
    int                   n;
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_cgraph *  graph[MAX];
    double                best[MAX];
};

static void open_set(struct set * s) {
    memset(s, 0, sizeof *s);
    s->ctx = ggml_init((struct ggml_init_params){ .mem_size = 8 << 20, .no_alloc = true });
}
static void add(struct set * s, struct ggml_tensor * out) {
    struct ggml_cgraph * g = ggml_new_graph(s->ctx);
    ggml_build_forward_expand(g, out);
    s->graph[s->n++] = g;
}
static void run(struct set * s, int times) {
    s->buffer = ggml_backend_alloc_ctx_tensors(s->ctx, cpu);
    if (!s->buffer) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    for (struct ggml_tensor * t = ggml_get_first_tensor(s->ctx); t; t = ggml_get_next_tensor(s->ctx, t)) {
        if (t->op != GGML_OP_NONE) {
            continue;
        }
        if (t->type == GGML_TYPE_F32) {
            for (int64_t i = 0; i < ggml_nelements(t); i++) {
                ((float *) t->data)[i] = (float) ((i * 7919) % 2003) * 1e-3f - 1;
            }
        } else {
            memset(t->data, 0x11, ggml_nbytes(t));
        }
    }
    for (int r = 0; r < times; r++) {
        for (int i = 0; i < s->n; i++) {
            const int64_t start = ggml_time_us();
            if (ggml_backend_graph_compute(cpu, s->graph[i]) != GGML_STATUS_SUCCESS) {
                fprintf(stderr, "graph %d failed\n", i);
                exit(1);
            }
            const double us = (double) (ggml_time_us() - start);
            s->best[i]      = r == 0 || us < s->best[i] ? us : s->best[i];
        }
    }
    ggml_backend_buffer_free(s->buffer);
    ggml_free(s->ctx);
}

/* A target: a ratio and what it should be at least. */
static void target(const char * name, double is, double least) {
    const bool ok = is >= least;
    failed += !ok;
    printf("    %s %s: %.2f, at least %.2f is asked for\n", ok ? "pass" : "fail", name, is, least);
}

static void linear(int64_t k, int64_t n, int64_t m) {
    struct set s;
    open_set(&s);
    struct ggml_tensor * x = ggml_new_tensor_2d(s.ctx, GGML_TYPE_F32, k, m);
    struct ggml_tensor * v = ggml_new_tensor_1d(s.ctx, GGML_TYPE_F32, n);
    struct ggml_tensor * w = ggml_new_tensor_2d(s.ctx, GGML_TYPE_I8, k, n);
    add(&s, ggml_mul_mat_i8_tensorwise(s.ctx, w, x, v, v, 256));
    add(&s, ggml_mul_mat(s.ctx, ggml_new_tensor_2d(s.ctx, GGML_TYPE_Q8_0, k, n), x));
    add(&s, ggml_mul_mat(s.ctx, ggml_new_tensor_2d(s.ctx, GGML_TYPE_F16, k, n), x));
    /* short ones are disturbed more often */
    run(&s, m <= 64 ? 5 * rounds : rounds);
    const double ops = 2.0 * (double) k * (double) n * (double) m, rate = ops / s.best[0], q8_0 = s.best[1] / s.best[0];
    printf("%5d x %5d, M %4d: %8.0f us, %6.1f Gop/s", (int) k, (int) n, (int) m, s.best[0], rate / 1e3);
    if (peak > 0) {
        printf(" = %2.0f %% of the roof (q8_0 %2.0f %%)", 100 * rate / peak, 100 * ops / s.best[1] / peak);
    }
    printf(", %.2f times q8_0, %.2f times f16", q8_0, s.best[2] / s.best[0]);
    if (m == 1) {
        const double speed = (double) (k * n) / s.best[0];
        printf("; weights %.1f GB/s = %.0f %% of reading", speed / 1e3, 100 * speed / reading);
    }
    printf("\n");
    if (m == 1) {
        target("against q8_0", q8_0, 1);
    } else {
        if (m >= 1024) {
            target("against q8_0", q8_0, MIN_Q8_0);
        }
        if (peak > 0) {
            target("share of the roof", rate / peak, MIN_ROOF);
        }
    }
    fflush(stdout);
}

static void quantise(int64_t k, int64_t m) {
    struct set s;
    open_set(&s);
    add(&s, ggml_quantize_i8_convrot(s.ctx, ggml_new_tensor_2d(s.ctx, GGML_TYPE_F32, k, m), 256));
    run(&s, 5 * rounds);
    const double speed = 5.0 * (double) (k * m) / s.best[0];
    printf("quantisation of %5d, M %4d: %8.0f us, %.1f GB/s = %.0f %% of copying\n", (int) k, (int) m, s.best[0], speed / 1e3, 100 * speed / copying);
    if (m >= 1024) {
        target("share of copying", speed / copying, MIN_COPY);
    }
    fflush(stdout);
}

int main(int argc, char ** argv) {
    bool check = false;
    int  given = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0) {
            check = true;
        } else if (given++ == 0) {
            threads = atoi(argv[i]);
        } else {
            rounds = atoi(argv[i]);
        }
    }
    threads = threads < 1 ? 1 : threads;
    rounds  = rounds < 1 ? 1 : rounds;
    cpu     = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, threads);
    const char *    name;
    const roof_work work = roof_products(&name);
    const size_t    size = (64u << 20) / (size_t) (threads > 8 ? 8 : threads);
    peak                 = work ? roof(work, threads, 0, 5 * rounds) : 0;
    copying              = roof(roof_copy, threads, size, 2 * rounds);
    reading              = roof(roof_read, threads, size, 2 * rounds);
    printf("%d threads: products (%s) %.1f Gop/s, of one alone %.1f; copying %.1f GB/s read and written, reading %.1f GB/s\n", threads, name, peak / 1e3,
           (work ? roof(work, 1, 0, 5 * rounds) : 0) / 1e3, copying / 1e3, reading / 1e3);
    const int64_t shapes[][2] = { { 3072, 3072 }, { 3072, 12288 }, { 12288, 3072 } }, rows[] = { 1, 64, 1024 };
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            linear(shapes[i][0], shapes[i][1], rows[j]);
        }
    }
    for (int i = 0; i < 3; i++) {
        quantise(3072, rows[i]);
        quantise(12288, rows[i]);
    }
    ggml_backend_free(cpu);
    printf("%d targets missed\n", failed);
    return check && failed ? 1 : 0;
}
