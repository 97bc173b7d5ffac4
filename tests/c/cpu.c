/* The CPU backend: threads, pools, abort callback, plans, and the same bytes from any number of threads. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <pthread.h>

enum { K = 160, M = 96, N = 37 };

struct job {
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *  out;
    struct ggml_cgraph *  graph;
};

/* A few operators that share rows, reduce and multiply, on numbers of every size. */
static struct job build(void) {
    struct job           j;
    j.ctx                  = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    struct ggml_tensor * w = ggml_new_tensor_2d(j.ctx, GGML_TYPE_F32, K, M);
    struct ggml_tensor * h = ggml_new_tensor_2d(j.ctx, GGML_TYPE_F16, K, M);
    struct ggml_tensor * q = ggml_new_tensor_2d(j.ctx, GGML_TYPE_Q8_0, K, M);
    struct ggml_tensor * x = ggml_new_tensor_2d(j.ctx, GGML_TYPE_F32, K, N);
    struct ggml_tensor * s = ggml_add(j.ctx, ggml_add(j.ctx, ggml_mul_mat(j.ctx, w, x), ggml_mul_mat(j.ctx, h, x)), ggml_mul_mat(j.ctx, q, x));
    s                      = ggml_soft_max(j.ctx, ggml_scale(j.ctx, ggml_rms_norm(j.ctx, ggml_gelu(j.ctx, s), 1e-6f), 3));
    s                      = ggml_concat(j.ctx, ggml_cont(j.ctx, ggml_transpose(j.ctx, s)), ggml_cont(j.ctx, ggml_transpose(j.ctx, ggml_norm(j.ctx, s, 1e-5f))), 0);
    j.out                  = ggml_add(j.ctx, s, ggml_sum(j.ctx, s));
    j.graph                = ggml_new_graph_custom(j.ctx, 64, false);
    ggml_build_forward_expand(j.graph, j.out);
    j.buffer = ggml_backend_alloc_ctx_tensors_from_buft(j.ctx, ggml_backend_cpu_buffer_type());
    float * numbers = malloc(sizeof *numbers * K * M);
    for (int i = 0; i < K * M; i++) {
        numbers[i] = (float) ((i * 7919 % 2003) - 1001) / 700.0f * (i % 11 == 0 ? 1e-4f : 1.0f);
    }
    ggml_backend_tensor_set(w, numbers, 0, ggml_nbytes(w));
    ggml_backend_tensor_set(x, numbers + 100, 0, ggml_nbytes(x));
    uint8_t * encoded = malloc(ggml_nbytes(w));
    ggml_fp32_to_fp16_row(numbers, (ggml_fp16_t *) encoded, K * M);
    ggml_backend_tensor_set(h, encoded, 0, ggml_nbytes(h));
    ggml_quantize_chunk(GGML_TYPE_Q8_0, numbers, encoded, 0, M, K, NULL);
    ggml_backend_tensor_set(q, encoded, 0, ggml_nbytes(q));
    free(encoded);
    free(numbers);
    return j;
}

static void clear(struct job * j) { ggml_backend_tensor_memset(j->out, 0xFF, 0, ggml_nbytes(j->out)); }

static void end(struct job * j) {
    ggml_backend_buffer_free(j->buffer);
    ggml_free(j->ctx);
}

static bool finite(struct job * j) {
    const float * v = j->out->data;
    for (int64_t i = 0; i < ggml_nelements(j->out); i++) {
        if (!(v[i] - v[i] == 0)) {
            return false;
        }
    }
    return true;
}

static void same_bytes(void) {
    struct job     j    = build();
    ggml_backend_t cpu  = ggml_backend_cpu_init();
    const size_t   size = ggml_nbytes(j.out);
    uint8_t *      want = malloc(size);
    ggml_backend_cpu_set_n_threads(cpu, 1);
    CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && finite(&j), "one thread");
    memcpy(want, j.out->data, size);
    const int counts[] = { 2, 3, 4, 7, 16, 64 };
    for (int i = 0; i < 6; i++) {
        clear(&j);
        ggml_backend_cpu_set_n_threads(cpu, counts[i]);
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS, "%d threads", counts[i]);
        CHECK(memcmp(want, j.out->data, size) == 0, "%d threads: the same bytes", counts[i]);
        clear(&j);
        struct ggml_cplan plan = ggml_graph_plan(j.graph, counts[i], NULL);
        CHECK(plan.n_threads == counts[i] && plan.threadpool == NULL && plan.abort_callback == NULL, "plan for %d threads", counts[i]);
        uint8_t * work = malloc(plan.work_size + 64);
        memset(work + plan.work_size, 0xA5, 64);
        plan.work_data = work;
        CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_SUCCESS && memcmp(want, j.out->data, size) == 0, "plan for %d threads: the same bytes", counts[i]);
        bool whole = true;
        for (int k = 0; k < 64; k++) {
            whole = whole && work[plan.work_size + k] == 0xA5;
        }
        CHECK(whole, "plan for %d threads: nothing behind the work buffer", counts[i]);
        /* a work buffer that is not aligned */
        clear(&j);
        plan.work_data = work + 1;
        CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_SUCCESS && memcmp(want, j.out->data, size) == 0, "plan for %d threads: work buffer at an odd address", counts[i]);
        free(work);
        clear(&j);
        CHECK(ggml_graph_compute_with_ctx(j.ctx, j.graph, counts[i]) == GGML_STATUS_SUCCESS && memcmp(want, j.out->data, size) == 0, "with_ctx, %d threads: the same bytes", counts[i]);
    }
    const int odd[] = { 0, -1, INT32_MIN, INT32_MAX, 100000 };
    for (int i = 0; i < 5; i++) {
        ggml_backend_cpu_set_n_threads(cpu, odd[i] > 600 ? 4 : odd[i]);
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS, "%d threads asked for", odd[i]);
        const struct ggml_cplan plan = ggml_graph_plan(j.graph, odd[i], NULL);
        CHECK(plan.n_threads >= 1 && plan.n_threads <= GGML_MAX_N_THREADS, "plan for %d threads: %d", odd[i], plan.n_threads);
    }
    struct ggml_cplan plan = ggml_graph_plan(j.graph, 2, NULL);
    if (plan.work_size > 0) {
        CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_FAILED, "no work buffer");
    }
    plan.work_data = malloc(plan.work_size + 1);
    uint8_t * work = plan.work_data;
    plan.n_threads = 0;
    CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_FAILED, "a plan with no thread");
    plan.n_threads = 2;
    plan.work_size = plan.work_size > 16 ? 16 : 0;
    clear(&j);
    const enum ggml_status status = ggml_graph_compute(j.graph, &plan);
    CHECK(status != GGML_STATUS_SUCCESS || memcmp(want, j.out->data, size) == 0, "a work buffer that is too small: status %d", status);
    free(work);
    ggml_backend_free(cpu);
    free(want);
    end(&j);
}

static bool stop_at_third(void * data) { return ++*(int *) data >= 3; }
static bool stop_never(void * data) { ++*(int *) data; return false; }

static void aborting(void) {
    struct job     j   = build();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    for (int n = 1; n <= 4; n += 3) {
        int asked = 0;
        ggml_backend_cpu_set_n_threads(cpu, n);
        ggml_backend_cpu_set_abort_callback(cpu, stop_at_third, &asked);
        clear(&j);
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_ABORTED, "%d threads: aborted", n);
        CHECK(asked >= 3 && !finite(&j), "%d threads: aborted before the end", n);
        asked = 0;
        ggml_backend_cpu_set_abort_callback(cpu, stop_never, &asked);
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && finite(&j) && asked >= 3, "%d threads: asked %d times", n, asked);
        ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);
        asked = 0;
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && asked == 0, "%d threads: taken away", n);
        struct ggml_cplan plan   = ggml_graph_plan(j.graph, n, NULL);
        plan.work_data           = malloc(plan.work_size + 1);
        plan.abort_callback      = stop_at_third;
        plan.abort_callback_data = &asked;
        CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_ABORTED, "%d threads: a plan is aborted", n);
        free(plan.work_data);
    }
    CHECK(strcmp(ggml_status_to_string(GGML_STATUS_ABORTED), ggml_status_to_string(GGML_STATUS_FAILED)) != 0 && ggml_status_to_string((enum ggml_status) 77) != NULL, "statuses have texts");
    ggml_backend_free(cpu);
    end(&j);
}

/* Case 40 of the public reports: pools made and freed in a loop, and several at once. */
static void pools(void) {
    struct job     j   = build();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 3);
    bool all = true;
    for (int i = 0; i < 50; i++) {
        struct ggml_threadpool_params p = ggml_threadpool_params_default(1 + i % 4);
        p.paused                        = i % 3 == 0;
        p.poll                          = (uint32_t) (i % 5) * 25;
        p.prio                          = GGML_SCHED_PRIO_NORMAL;
        struct ggml_threadpool * pool   = ggml_threadpool_new(&p);
        all = all && pool && ggml_threadpool_get_n_threads(pool) == 1 + i % 4;
        if (i % 2) {
            ggml_backend_cpu_set_threadpool(cpu, pool);
            clear(&j);
            all = all && ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && finite(&j);
            if (i % 4 == 1) {
                ggml_threadpool_pause(pool);
                ggml_threadpool_pause(pool);
                all = all && ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS;
                ggml_threadpool_resume(pool);
                ggml_threadpool_resume(pool);
            }
            ggml_backend_cpu_set_threadpool(cpu, NULL);
        }
        ggml_threadpool_free(pool);
    }
    CHECK(all, "fifty pools, one after the other");
    CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS, "and the backend's own again");
    ggml_backend_free(cpu);

    struct ggml_threadpool_params p = ggml_threadpool_params_default(4), q;
    ggml_threadpool_params_init(&q, 4);
    CHECK(ggml_threadpool_params_match(&p, &q) && p.n_threads == 4 && !p.strict_cpu && !p.paused, "parameters match");
    q.poll++;
    CHECK(!ggml_threadpool_params_match(&p, &q), "parameters differ");
    CHECK(!ggml_threadpool_params_match(NULL, &q) && !ggml_threadpool_params_match(&q, NULL), "parameters of NULL");
    ggml_threadpool_params_init(NULL, 4);
    const int bad[] = { 0, -3, GGML_MAX_N_THREADS + 1, INT32_MAX };
    for (int i = 0; i < 4; i++) {
        p.n_threads = bad[i];
        CHECK_ERROR(CHECK(ggml_threadpool_new(&p) == NULL, "a pool of %d threads: NULL", bad[i]), GGML_EXT_CODE_NONE, "a pool of a bad number of threads", "n_threads");
    }
    p            = ggml_threadpool_params_default(2);
    p.cpumask[0] = true;
    p.strict_cpu = true;
    p.prio       = GGML_SCHED_PRIO_REALTIME; /* not granted to everyone: that is no error */
    struct ggml_threadpool * bound = ggml_threadpool_new(&p);
    CHECK(bound != NULL, "a pool bound to a core");
    struct ggml_cplan plan = ggml_graph_plan(j.graph, 0, bound);
    CHECK(plan.n_threads == 2 && plan.threadpool == bound, "a plan takes the pool's threads");
    plan.work_data = malloc(plan.work_size + 1);
    CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_SUCCESS, "a plan on a pool");
    free(plan.work_data);
    plan           = ggml_graph_plan(j.graph, 64, bound);
    plan.work_data = malloc(plan.work_size + 1);
    CHECK(ggml_graph_compute(j.graph, &plan) == GGML_STATUS_SUCCESS, "a plan for more threads than the pool has");
    free(plan.work_data);
    ggml_threadpool_free(bound);
    ggml_threadpool_free(NULL);
    end(&j);
}

static void * one_of_many(void * data) {
    struct ggml_threadpool *      pool = NULL;
    struct ggml_threadpool_params p    = ggml_threadpool_params_default(2);
    struct job                    j    = build();
    ggml_backend_t                cpu  = ggml_backend_cpu_init();
    const long                    mine = *(long *) data;
    long                          fine = 0;
    if (mine % 2) {
        pool = ggml_threadpool_new(&p);
        ggml_backend_cpu_set_threadpool(cpu, pool);
    }
    for (int i = 0; i < 10; i++) {
        clear(&j);
        fine += ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && finite(&j);
        /* an error of this thread is not another's */
        char text[64];
        snprintf(text, sizeof text, "thread-%ld", mine);
        ggml_backend_tensor_set(ggml_set_name(j.out, text), "", SIZE_MAX, 1);
        fine += strstr(check_error_text(), text) != NULL;
    }
    ggml_backend_free(cpu);
    ggml_threadpool_free(pool);
    end(&j);
    return (void *) fine;
}

static void at_once(void) {
    pthread_t threads[4];
    long      numbers[4];
    for (int i = 0; i < 4; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, one_of_many, &numbers[i]);
    }
    for (int i = 0; i < 4; i++) {
        void * fine = NULL;
        pthread_join(threads[i], &fine);
        CHECK((long) fine == 20, "four backends at once: number %d", i);
    }
}

static void values(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, false });
    CHECK(ggml_get_f32_1d(ggml_new_f32(ctx, 1.5f), 0) == 1.5f && ggml_get_i32_1d(ggml_new_i32(ctx, -7), 0) == -7, "one number");
    struct ggml_tensor * t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 2);
    ggml_set_f32(t, 2);
    ggml_set_f32_1d(t, 5, 9);
    CHECK(ggml_get_f32_1d(t, 4) == 2 && ggml_get_f32_nd(t, 2, 1, 0, 0) == 9, "elements");
    ggml_set_f32_nd(t, 0, 1, 0, 0, 4);
    ggml_set_i32_1d(t, 1, 3);
    ggml_set_i32_nd(t, 2, 0, 0, 0, 5);
    CHECK(ggml_get_i32_1d(t, 3) == 4 && ggml_get_f32_1d(t, 1) == 3 && ggml_get_i32_nd(t, 2, 0, 0, 0) == 5, "whole numbers");
    const int outside[] = { 6, -1, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 4; i++) {
        CHECK_ERROR(ggml_set_f32_1d(t, outside[i], 1), GGML_EXT_CODE_NONE, "an element outside", "ggml_set_f32_1d");
        CHECK_ERROR(ggml_get_f32_1d(t, outside[i]), GGML_EXT_CODE_NONE, "an element outside", "ggml_get_f32_1d");
        CHECK_ERROR(ggml_set_f32_nd(t, 0, outside[i], 0, 0, 1), GGML_EXT_CODE_NONE, "an element outside", "ggml_set_f32_nd");
        CHECK_ERROR(ggml_get_i32_nd(t, 0, 0, 0, outside[i]), GGML_EXT_CODE_NONE, "an element outside", "ggml_get_i32_nd");
    }
    CHECK_ERROR(ggml_get_f32_1d(ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 32), 0), GGML_EXT_CODE_NONE, "an element of a block", "ggml_get_f32_1d");
    ggml_free(ctx);
}

int main(void) {
    check_quiet();
    ggml_cpu_init();
    same_bytes();
    aborting();
    pools();
    at_once();
    values();
    return check_done();
}
