/* Operators of the caller's: called once for each task, with the node, its sources and the caller's data. */
#include "check.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <stdatomic.h>

#define N 1000

static atomic_int calls;

static void part(int64_t n, int ith, int nth, int64_t * from, int64_t * to) {
    *from = n * ith / nth;
    *to   = n * (ith + 1) / nth;
}

static void add_scaled(struct ggml_tensor * dst, const struct ggml_tensor * const * src, int n_src, int ith, int nth, void * data) {
    int64_t from, to;
    atomic_fetch_add(&calls, 1);
    part(ggml_nelements(dst), ith, nth, &from, &to);
    for (int64_t i = from; i < to; i++) {
        float sum = 0;
        for (int s = 0; s < n_src; s++) {
            sum += ((const float *) src[s]->data)[i] * (float) (s + 1);
        }
        ((float *) dst->data)[i] = sum * *(const float *) data;
    }
}

static void one(struct ggml_tensor * dst, const struct ggml_tensor * a, int ith, int nth, void * data) {
    const struct ggml_tensor * src[] = { a };
    add_scaled(dst, src, 1, ith, nth, data);
}

static void two(struct ggml_tensor * dst, const struct ggml_tensor * a, const struct ggml_tensor * b, int ith, int nth, void * data) {
    const struct ggml_tensor * src[] = { a, b };
    add_scaled(dst, src, 2, ith, nth, data);
}

static void three(struct ggml_tensor * dst, const struct ggml_tensor * a, const struct ggml_tensor * b, const struct ggml_tensor * c,
                  int ith, int nth, void * data) {
    const struct ggml_tensor * src[] = { a, b, c };
    add_scaled(dst, src, 3, ith, nth, data);
}

static void any(struct ggml_tensor * dst, int ith, int nth, void * data) {
    const struct ggml_tensor * src[] = { dst->src[0], dst->src[1] };
    add_scaled(dst, src, 2, ith, nth, data);
}

static struct ggml_context * ctx;
static struct ggml_tensor *  in[3];
static float                 factor = 0.5f;

/* in[k][i] = i + k */
static void fill(void) {
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++) {
            ((float *) in[k]->data)[i] = (float) (i + k);
        }
    }
}

static void run(const char * name, struct ggml_tensor * t, int n_src, int n_tasks, int n_threads) {
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    fill();
    ggml_build_forward_expand(graph, t);
    atomic_store(&calls, 0);
    CHECK(ggml_graph_compute_with_ctx(ctx, graph, n_threads) == GGML_STATUS_SUCCESS, "%s, %d threads", name, n_threads);
    const int expected = n_tasks < 0 || n_tasks > n_threads ? n_threads : n_tasks;
    CHECK(atomic_load(&calls) == expected, "%s, %d threads: %d calls for %d", name, n_threads, atomic_load(&calls), expected);
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int k = 0; k < n_src; k++) {
            sum += (float) (i + k) * (float) (k + 1);
        }
        wrong += ((float *) t->data)[i] != sum * factor;
    }
    CHECK(wrong == 0, "%s, %d threads: values (%d wrong)", name, n_threads, wrong);
}

int main(void) {
    ctx = ggml_init((struct ggml_init_params) { 16u << 20, NULL, false });
    for (int k = 0; k < 3; k++) {
        in[k] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    }
    for (int n = 1; n <= 3; n++) {
        run("map_custom1", ggml_map_custom1(ctx, in[0], one, GGML_N_TASKS_MAX, &factor), 1, -1, n);
        run("map_custom1_inplace", ggml_map_custom1_inplace(ctx, in[0], one, 1, &factor), 1, 1, n);
        run("map_custom2", ggml_map_custom2(ctx, in[0], in[1], two, 2, &factor), 2, 2, n);
        run("map_custom2_inplace", ggml_map_custom2_inplace(ctx, in[0], in[1], two, 1, &factor), 2, 1, n);
        run("map_custom3", ggml_map_custom3(ctx, in[0], in[1], in[2], three, GGML_N_TASKS_MAX, &factor), 3, -1, n);
        run("map_custom3_inplace", ggml_map_custom3_inplace(ctx, in[0], in[1], in[2], three, 1, &factor), 3, 1, n);
        struct ggml_tensor * args[] = { in[0], in[1] };
        run("custom_4d", ggml_custom_4d(ctx, GGML_TYPE_F32, N, 1, 1, 1, args, 2, any, GGML_N_TASKS_MAX, &factor), 2, -1, n);
        run("custom_inplace", ggml_custom_inplace(ctx, in[0], &in[1], 1, any, 1, &factor), 2, 1, n);
    }
    ggml_free(ctx);
    return check_done();
}
