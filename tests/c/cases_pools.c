/* Case 40 of the public reports, llama.cpp#11736, #7993, whisper.cpp#2725: pools that several backends use at once, that change between
   graphs, and that end before those who used them. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>
#include <pthread.h>

enum { N = 64, ROUNDS = 25 };

struct job {
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *  x, * y;
    struct ggml_cgraph *  graph;
};

static struct job build(void) {
    struct job j;
    j.ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    j.x   = ggml_new_tensor_2d(j.ctx, GGML_TYPE_F32, N, N);
    j.y   = ggml_sum_rows(j.ctx, ggml_mul_mat(j.ctx, j.x, ggml_scale(j.ctx, j.x, 2)));
    j.graph = ggml_new_graph_custom(j.ctx, 16, false);
    ggml_build_forward_expand(j.graph, j.y);
    j.buffer = ggml_backend_alloc_ctx_tensors_from_buft(j.ctx, ggml_backend_cpu_buffer_type());
    return j;
}

static void end(struct job * j) {
    ggml_backend_buffer_free(j->buffer);
    ggml_free(j->ctx);
}

static void feed(struct job * j, float s) {
    float x[N * N];
    for (int i = 0; i < N * N; i++) {
        x[i] = s * (float) (i % 5);
    }
    ggml_backend_tensor_set(j->x, x, 0, sizeof x);
    ggml_backend_tensor_memset(j->y, 0xFF, 0, ggml_nbytes(j->y));
}

static bool right(struct job * j, float s) {
    float y[N];
    ggml_backend_tensor_get(j->y, y, 0, sizeof y);
    for (int r = 0; r < N; r++) {
        double want = 0;
        for (int k = 0; k < N; k++) {
            for (int i = 0; i < N; i++) {
                want += 2.0 * s * s * ((r * N + i) % 5) * ((k * N + i) % 5);
            }
        }
        if (!(fabs(y[r] - want) <= 1e-4 * want)) {
            return false;
        }
    }
    return true;
}

struct worker {
    struct ggml_threadpool * pool;
    float                    s;
    int                      fine;
};

static void * work(void * data) {
    struct worker * w   = data;
    struct job      j   = build();
    ggml_backend_t  cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(cpu, w->pool);
    for (int i = 0; i < ROUNDS; i++) {
        feed(&j, w->s);
        w->fine += ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && right(&j, w->s);
        /* the same pool by a plan */
        feed(&j, w->s);
        struct ggml_cplan plan = ggml_graph_plan(j.graph, 0, w->pool);
        plan.work_data         = malloc(plan.work_size + 1);
        w->fine += ggml_graph_compute(j.graph, &plan) == GGML_STATUS_SUCCESS && right(&j, w->s);
        free(plan.work_data);
    }
    ggml_backend_free(cpu);
    end(&j);
    return NULL;
}

static void at_once(const char * name, struct ggml_threadpool * a, struct ggml_threadpool * b) {
    struct worker w[3] = { { a, 1, 0 }, { b, 2, 0 }, { a, 3, 0 } };
    pthread_t     t[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        CHECK(w[i].fine == 2 * ROUNDS, "%s: thread %d: %d of %d graphs", name, i, w[i].fine, 2 * ROUNDS);
    }
}

static struct ggml_threadpool * pool(int n) {
    struct ggml_threadpool_params p = ggml_threadpool_params_default(n);
    p.poll                          = 0;
    return ggml_threadpool_new(&p);
}

static void one_pool_two_backends(void) {
    struct ggml_threadpool * a = pool(3), * b = pool(2);
    at_once("two pools", a, b);
    at_once("one pool", a, a);
    at_once("a pool and none", a, NULL);
    ggml_threadpool_free(a);
    ggml_threadpool_free(b);
}

/* A pool ends; the backend that had it goes on with another one, or its own. */
static void pools_that_end(void) {
    struct job     j   = build();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    bool           all = true;
    for (int i = 0; i < 30; i++) {
        struct ggml_threadpool * a = pool(1 + i % 3), * b = pool(2);
        ggml_backend_cpu_set_threadpool(cpu, a);
        feed(&j, 1);
        all = all && ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && right(&j, 1);
        ggml_backend_cpu_set_threadpool(cpu, i % 2 ? b : NULL);
        ggml_threadpool_free(a);
        feed(&j, 2);
        all = all && ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && right(&j, 2);
        ggml_backend_cpu_set_threadpool(cpu, NULL);
        ggml_threadpool_free(b);
    }
    CHECK(all, "thirty pools that end between graphs");
    /* the backend ends first */
    struct ggml_threadpool * a = pool(2);
    ggml_backend_cpu_set_threadpool(cpu, a);
    feed(&j, 3);
    CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && right(&j, 3), "a pool outlives its backend: before");
    ggml_backend_free(cpu);
    cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(cpu, a);
    feed(&j, 4);
    CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && right(&j, 4), "a pool outlives its backend: after");
    ggml_backend_free(cpu);
    ggml_threadpool_free(a);
    end(&j);
}

int main(void) {
    check_quiet();
    one_pool_two_backends();
    pools_that_end();
    return check_done();
}
