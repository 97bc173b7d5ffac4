/* Times of stable-diffusion.cpp's linear layer in 8 bits against this library's q8_0 and f16 products of the same shapes, and of the
 * quantisation against copying. One line per shape; the best of several runs of each, taken in turn. */
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX512VNNI__)
#    include <immintrin.h>
#endif

static ggml_backend_t cpu;
static int            threads = 2, rounds = 5;

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
static void run(struct set * s) {
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
    for (int r = 0; r < rounds; r++) {
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

static void linear(int64_t k, int64_t n, int64_t m) {
    struct set s;
    open_set(&s);
    struct ggml_tensor * x = ggml_new_tensor_2d(s.ctx, GGML_TYPE_F32, k, m);
    struct ggml_tensor * v = ggml_new_tensor_1d(s.ctx, GGML_TYPE_F32, n);
    struct ggml_tensor * q = ggml_quantize_i8_convrot(s.ctx, x, 256);
    struct ggml_tensor * w = ggml_new_tensor_2d(s.ctx, GGML_TYPE_I8, k, n);
    add(&s, ggml_mul_mat_i8_tensorwise(s.ctx, w, x, v, v, 256));
    add(&s, ggml_mul_mat(s.ctx, ggml_new_tensor_2d(s.ctx, GGML_TYPE_Q8_0, k, n), x));
    add(&s, ggml_mul_mat(s.ctx, ggml_new_tensor_2d(s.ctx, GGML_TYPE_F16, k, n), x));
    add(&s, q);
    run(&s);
    const double ops = 2.0 * (double) k * (double) n * (double) m;
    printf("%6d x %6d, M %5d: i8 %9.0f us (%6.1f Gop/s), %.2f times q8_0, %.2f times f16; quantisation %6.1f GB/s\n", (int) k, (int) n, (int) m,
           s.best[0], ops / s.best[0] / 1e3, s.best[1] / s.best[0], s.best[2] / s.best[0], 5.0 * (double) (k * m) / s.best[3] / 1e3);
}

/* Operations per second of one core that only multiplies. */
static void roof(void) {
#if defined(__AVX512VNNI__)
    __m512i acc[16], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
    for (int i = 0; i < 16; i++) {
        acc[i] = _mm512_set1_epi32(i);
    }
    double best = 0;
    for (int r = 0; r < 5; r++) {
        const int64_t start = ggml_time_us();
        for (int i = 0; i < 2000000; i++) {
            for (int j = 0; j < 16; j++) {
                acc[j] = _mm512_dpbusd_epi32(acc[j], a, b);
            }
            __asm__ volatile("" : "+v"(a), "+v"(b));
        }
        const double rate = 2000000.0 * 16 * 128 / (double) (ggml_time_us() - start) / 1e3;
        best              = rate > best ? rate : best;
    }
    for (int i = 1; i < 16; i++) {
        acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    }
    volatile int sum = _mm512_reduce_add_epi32(acc[0]);
    (void) sum;
    printf("VNNI, one core: %.1f Gop/s\n", best);
#else
    printf("VNNI: this program is not built for it\n");
#endif
}

static void copying(void) {
    const size_t size = 256u << 20;
    char *       a = malloc(size), *b = malloc(size);
    if (!a || !b) {
        exit(1);
    }
    memset(a, 1, size);
    double best = 0;
    for (int r = 0; r < 4; r++) {
        memset(b, r, 1);
        const int64_t start = ggml_time_us();
        memcpy(b, a, size);
        const double rate = 2.0 * (double) size / (double) (ggml_time_us() - start) / 1e3;
        best              = rate > best ? rate : best;
    }
    printf("memcpy, one core: %.1f GB/s read and written\n", best);
    free(a);
    free(b);
}

int main(int argc, char ** argv) {
    if (argc > 1) {
        threads = atoi(argv[1]);
    }
    if (argc > 2) {
        rounds = atoi(argv[2]);
    }
    cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, threads);
    printf("%d threads\n", threads);
    roof();
    copying();
    const int64_t shapes[][2] = { { 3072, 3072 }, { 3072, 12288 }, { 12288, 3072 } }, rows[] = { 1, 64, 1024 };
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            linear(shapes[i][0], shapes[i][1], rows[j]);
        }
    }
    ggml_backend_free(cpu);
    return 0;
}
