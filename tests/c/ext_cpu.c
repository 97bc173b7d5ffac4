/* SRV-1, ggml_ext_cpu_parallel_v1: a function on a CPU backend's threads. Outside of computations, in `execute`, and from where it
 * must refuse. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static ggml_ext_cpu_parallel_v1_t parallel;

enum { THREADS = 8 };

/* What a shared task saw. */
struct seen {
    atomic_int ran[THREADS], total, wrong, here;
    int        nth;
};

static void look(int ith, int nth, void * data) {
    struct seen * s = data;
    s->wrong += nth != s->nth || ith < 0 || ith >= nth || ith >= THREADS;
    if (ith >= 0 && ith < THREADS) {
        s->ran[ith]++;
    }
    s->total++;
}

/* Returns once all threads are in the task. */
static void meet(int ith, int nth, void * data) {
    struct seen * s = data;
    look(ith, nth, data);
    s->here++;
    while (s->here < nth) {
        sched_yield();
    }
}

static bool once_each(const struct seen * s) {
    for (int i = 0; i < THREADS; i++) {
        if (s->ran[i] != (i < s->nth)) {
            return false;
        }
    }
    return s->total == s->nth && s->wrong == 0;
}

static void never(int ith, int nth, void * data) {
    (void) ith;
    (void) nth;
    *(atomic_int *) data = 1;
}

/* The call fails with the code, and the task did not run. */
#define REFUSED(backend, code, name, text)                                                            \
    do {                                                                                              \
        atomic_int       ran_   = 0;                                                                  \
        enum ggml_status status_ = GGML_STATUS_SUCCESS;                                               \
        CHECK_ERROR(status_ = parallel(backend, never, &ran_), code, name, "ggml_ext_cpu_parallel_v1", text); \
        CHECK(status_ == GGML_STATUS_FAILED && ran_ == 0, "%s: no task runs", name);                  \
    } while (0)

static int  asked, stop_from;
static bool stop_now(void * data) {
    (void) data;
    return ++asked >= stop_from;
}

static void outside(ggml_backend_t cpu) {
    for (int n = 1; n <= 5; n += 2) {
        ggml_backend_cpu_set_n_threads(cpu, n);
        for (int i = 0; i < 3; i++) {
            struct seen s = { .nth = n };
            CHECK(parallel(cpu, i == 2 ? meet : look, &s) == GGML_STATUS_SUCCESS && once_each(&s), "outside: %d threads, each once, time %d", n, i);
        }
    }
    struct ggml_threadpool_params p    = ggml_threadpool_params_default(3);
    ggml_threadpool_t             pool = ggml_threadpool_new(&p);
    ggml_backend_cpu_set_threadpool(cpu, pool);
    struct seen s = { .nth = 3 };
    CHECK(parallel(cpu, meet, &s) == GGML_STATUS_SUCCESS && once_each(&s), "outside: a lent pool of 3 under 5 threads");
    ggml_backend_cpu_set_n_threads(cpu, 2);
    struct seen two = { .nth = 2 };
    CHECK(parallel(cpu, meet, &two) == GGML_STATUS_SUCCESS && once_each(&two), "outside: 2 threads of a lent pool of 3");
    ggml_backend_cpu_set_threadpool(cpu, NULL);
    ggml_threadpool_free(pool);

    /* the abort callback */
    for (stop_from = 1; stop_from <= 2; stop_from++) {
        struct seen t = { .nth = 2 };
        asked         = 0;
        ggml_backend_cpu_set_abort_callback(cpu, stop_now, NULL);
        const enum ggml_status status = parallel(cpu, look, &t);
        CHECK(asked == 1, "outside: the abort callback is asked once");
        if (stop_from == 1) {
            CHECK(status == GGML_STATUS_ABORTED && t.total == 0, "outside: aborted, no task runs");
        } else {
            CHECK(status == GGML_STATUS_SUCCESS && once_each(&t), "outside: the abort callback lets it run");
        }
    }
    ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);

    /* arguments */
    REFUSED(NULL, GGML_EXT_CODE_BAD_ARGUMENT, "no backend", "CPU backend");
    struct ggml_backend_device * dev = ggml_backend_get_device(cpu);
    CHECK(dev != NULL, "the CPU has a device");
    enum ggml_status status = GGML_STATUS_SUCCESS;
    CHECK_ERROR(status = parallel(cpu, NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no task", "ggml_ext_cpu_parallel_v1", "task");
    CHECK(status == GGML_STATUS_FAILED, "no task: a status");
    CHECK_ERROR(status = parallel(NULL, NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "nothing at all", "task");
}

/* graphs */

struct job {
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *  x, * y, * out;
    struct ggml_cgraph *  graph;
};

/* x + 1, a node of `make`, + 1 */
static struct job build(struct ggml_tensor * (*make)(struct ggml_context * ctx, struct ggml_tensor * x, void * data), void * data, int64_t n) {
    struct job j;
    j.ctx   = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    j.x     = ggml_new_tensor_1d(j.ctx, GGML_TYPE_F32, n);
    j.y     = make(j.ctx, ggml_scale_bias(j.ctx, j.x, 1, 1), data);
    j.out   = ggml_scale_bias(j.ctx, j.y, 1, 1);
    j.graph = ggml_new_graph_custom(j.ctx, 64, false);
    ggml_build_forward_expand(j.graph, j.out);
    j.buffer = ggml_backend_alloc_ctx_tensors_from_buft(j.ctx, ggml_backend_cpu_buffer_type());
    ggml_backend_tensor_memset(j.x, 0, 0, ggml_nbytes(j.x));
    return j;
}

static void clear(struct job * j) { ggml_backend_tensor_memset(j->out, 0xFF, 0, ggml_nbytes(j->out)); }

static bool all(struct job * j, float want) {
    const float * v = j->out->data;
    for (int64_t i = 0; i < ggml_nelements(j->out); i++) {
        if (v[i] != want) {
            return false;
        }
    }
    return true;
}

static void end(struct job * j) {
    ggml_backend_buffer_free(j->buffer);
    ggml_free(j->ctx);
}

/* an operator whose execute is made to order */

struct order {
    void (*execute)(const struct ggml_ext_run * run, struct order * o);
    enum ggml_status answer;
    int              calls;
    ggml_backend_t   backend, other;
    struct job *     job, * inner;
    atomic_int       refused, wrong;
};

static struct order order;

static bool infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * data) {
    (void) attrs;
    (void) data;
    (void) n_src;
    memcpy(out->ne, src[0]->ne, sizeof out->ne);
    return true;
}

static enum ggml_status execute(const struct ggml_ext_run * run, void * data) {
    struct order *       o   = data;
    struct ggml_tensor * dst = run->step->nodes[0];
    memcpy(dst->data, dst->src[0]->data, ggml_nbytes(dst));
    o->calls++;
    o->answer = GGML_STATUS_SUCCESS;
    o->wrong += run->backend != o->backend;
    if (o->execute) {
        o->execute(run, o);
    }
    return o->answer;
}

static bool supports(const struct ggml_ext_step * step, void * data) {
    (void) data;
    return step->n_nodes == 1 && step->n_srcs == 1;
}

static struct ggml_tensor * ordered(struct ggml_context * ctx, struct ggml_tensor * x, void * data) {
    (void) data;
    struct ggml_tensor * src[1] = { x };
    return ggml_ext_op_create(ctx, "test.ordered.v1", src, 1, NULL, 0);
}

static bool registered(void) {
    struct ggml_ext_op_desc op = { .struct_size = sizeof op, .name = "test.ordered.v1", .infer = infer };
    struct ggml_ext_kernel_desc k = { .struct_size = sizeof k, .name = "test.ordered", .op = GGML_OP_CUSTOM, .op_name = "test.ordered.v1" };
    k.execute   = execute;
    k.user_data = &order;
    k.supports  = supports;
    return ggml_ext_register_op(&op) && ggml_ext_register_kernel(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &k);
}

static enum ggml_status run(struct job * j, void (*what)(const struct ggml_ext_run * run, struct order * o)) {
    order.execute = what;
    order.refused = order.wrong = order.calls = 0;
    clear(j);
    return ggml_backend_graph_compute(order.backend, j->graph);
}

static int run_threads; /* of the graph that runs */

static void share(const struct ggml_ext_run * run, struct order * o) {
    for (int i = 0; i < 5; i++) {
        struct seen s = { .nth = run_threads };
        o->wrong += parallel(run->backend, i % 2 ? meet : look, &s) != GGML_STATUS_SUCCESS || !once_each(&s);
    }
}

/* from a task: again, a graph, another thread's work */
static void busy_task(int ith, int nth, void * data) {
    struct order * o = data;
    atomic_int     ran = 0;
    (void) ith;
    (void) nth;
    o->refused += parallel(o->backend, never, &ran) == GGML_STATUS_FAILED && strstr(check_error_text(), "ggml_ext_cpu_parallel_v1") && ran == 0;
    o->refused += ggml_backend_graph_compute(o->backend, o->inner->graph) == GGML_STATUS_FAILED && check_error_code() == GGML_EXT_CODE_RE_ENTERED;
}

static void nest(const struct ggml_ext_run * run, struct order * o) { o->wrong += parallel(run->backend, busy_task, o) != GGML_STATUS_SUCCESS; }

static void * from_elsewhere(void * data) {
    busy_task(0, 1, data);
    return NULL;
}

static void re_enter(const struct ggml_ext_run * run, struct order * o) {
    pthread_t thread;
    (void) run;
    pthread_create(&thread, NULL, from_elsewhere, o);
    pthread_join(thread, NULL);
    o->refused += ggml_backend_graph_compute(o->backend, o->inner->graph) == GGML_STATUS_FAILED && strstr(check_error_text(), "is computing");
    o->refused += ggml_backend_graph_compute(o->backend, o->job->graph) == GGML_STATUS_FAILED;
    ggml_backend_free(o->backend);
    o->refused += check_error_code() == GGML_EXT_CODE_RE_ENTERED && strstr(check_error_text(), "ggml_backend_free") != NULL;
}

static void settings(const struct ggml_ext_run * run, struct order * o) {
    /* for the next graph */
    ggml_backend_cpu_set_n_threads(run->backend, 3);
    ggml_backend_cpu_set_threadpool(run->backend, NULL);
    ggml_backend_cpu_set_abort_callback(run->backend, NULL, NULL);
    share(run, o);
}

static void on_other(const struct ggml_ext_run * run, struct order * o) {
    clear(o->inner);
    o->wrong += ggml_backend_graph_compute(o->other, o->inner->graph) != GGML_STATUS_SUCCESS || !all(o->inner, 2);
    struct seen s = { .nth = 2 };
    o->wrong += parallel(o->other, meet, &s) != GGML_STATUS_SUCCESS || !once_each(&s);
    share(run, o);
}

static void on_same_threads(const struct ggml_ext_run * run, struct order * o) {
    atomic_int ran = 0;
    o->refused += ggml_backend_graph_compute(o->other, o->inner->graph) == GGML_STATUS_FAILED && check_error_code() == GGML_EXT_CODE_RE_ENTERED;
    o->refused += parallel(o->other, never, &ran) == GGML_STATUS_FAILED && check_error_code() == GGML_EXT_CODE_RE_ENTERED && ran == 0;
    share(run, o);
}

static void aborted(const struct ggml_ext_run * run, struct order * o) {
    atomic_int ran = 0;
    stop_from      = asked + 1;
    o->answer      = parallel(run->backend, never, &ran);
    o->refused += o->answer == GGML_STATUS_ABORTED && ran == 0;
    o->wrong += asked != stop_from;
}

static struct ggml_tensor * same(struct ggml_context * ctx, struct ggml_tensor * x, void * data) {
    (void) data;
    return ggml_scale(ctx, x, 1);
}

static void inside(int64_t elements) {
    struct job     j     = build(ordered, NULL, elements);
    struct job     inner = build(same, NULL, elements);
    ggml_backend_t cpu   = ggml_backend_cpu_init();
    ggml_backend_t other = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(other, 2);
    order = (struct order){ .backend = cpu, .other = other, .job = &j, .inner = &inner };
    const char * size = elements > 1000 ? "large" : "small";
    for (run_threads = 1; run_threads <= 5; run_threads += 2) {
        ggml_backend_cpu_set_n_threads(cpu, run_threads);
#define RAN(what) (run(&j, what) == GGML_STATUS_SUCCESS && order.calls == 1 && order.wrong == 0 && all(&j, 2))
        CHECK(RAN(NULL), "%s, %d threads: a node of an extension", size, run_threads);
        CHECK(RAN(share), "%s, %d threads: in execute, the threads of the graph", size, run_threads);
        CHECK(RAN(nest) && order.refused == 2 * run_threads, "%s, %d threads: nothing from within a task", size, run_threads);
        CHECK(RAN(re_enter) && order.refused == 5, "%s, %d threads: no second computation, no end", size, run_threads);
        CHECK(RAN(on_other), "%s, %d threads: another backend in execute", size, run_threads);
        CHECK(RAN(share), "%s, %d threads: as before", size, run_threads);
    }
    run_threads = 2;
    ggml_backend_cpu_set_n_threads(cpu, 2);
    CHECK(RAN(settings), "%s: settings in execute leave the running graph alone", size);
    run_threads = 3;
    CHECK(RAN(share), "%s: and count from the next graph on", size);
    struct ggml_threadpool_params p    = ggml_threadpool_params_default(3);
    ggml_threadpool_t             pool = ggml_threadpool_new(&p);
    ggml_backend_cpu_set_threadpool(cpu, pool);
    ggml_backend_cpu_set_threadpool(other, pool);
    CHECK(RAN(on_same_threads) && order.refused == 2, "%s: another backend on the same pool is refused in execute", size);
    ggml_backend_cpu_set_threadpool(cpu, NULL);
    ggml_backend_cpu_set_threadpool(other, NULL);
    ggml_threadpool_free(pool);
    for (int n = 1; n <= 3; n += 2) {
        asked     = 0;
        stop_from = 1 << 30;
        ggml_backend_cpu_set_n_threads(cpu, n);
        ggml_backend_cpu_set_abort_callback(cpu, stop_now, NULL);
        CHECK(run(&j, aborted) == GGML_STATUS_ABORTED && order.refused == 1 && order.wrong == 0, "%s, %d threads: the abort callback is asked before tasks", size, n);
        ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);
        run_threads = n;
        CHECK(RAN(share), "%s, %d threads: after an abort", size, n);
    }
    ggml_backend_free(cpu);
    ggml_backend_free(other);
    end(&j);
    end(&inner);
}

/* in an ordinary custom operator: its threads are not waiting for more work */

static void custom(struct ggml_tensor * dst, const struct ggml_tensor * a, int ith, int nth, void * data) {
    struct order * o = data;
    (void) nth;
    if (ith == 0) {
        memcpy(dst->data, a->data, ggml_nbytes(dst));
    }
    busy_task(ith, nth, o);
    if (ith == 0) {
        ggml_backend_cpu_set_n_threads(o->backend, 4);
    }
}

static struct ggml_tensor * mapped(struct ggml_context * ctx, struct ggml_tensor * x, void * data) {
    return ggml_map_custom1(ctx, x, custom, *(int *) data, &order);
}

static void in_custom(void) {
    struct job     inner = build(same, NULL, 8);
    ggml_backend_t cpu   = ggml_backend_cpu_init();
    order                = (struct order){ .backend = cpu, .inner = &inner };
    const int tasks[]    = { 1, 2, GGML_N_TASKS_MAX };
    for (int i = 0; i < 3; i++) {
        struct job j = build(mapped, (void *) &tasks[i], 8);
        ggml_backend_cpu_set_n_threads(cpu, 2);
        order.refused = 0;
        CHECK(ggml_backend_graph_compute(cpu, j.graph) == GGML_STATUS_SUCCESS && all(&j, 2), "custom operator of %d tasks: it runs", tasks[i]);
        CHECK(order.refused == (tasks[i] == 1 ? 2 : 4), "custom operator of %d tasks: refused (%d)", tasks[i], order.refused);
        struct seen s = { .nth = 4 };
        CHECK(parallel(cpu, meet, &s) == GGML_STATUS_SUCCESS && once_each(&s), "custom operator of %d tasks: the threads it set", tasks[i]);
        end(&j);
    }
    ggml_backend_free(cpu);
    end(&inner);
}

int main(void) {
    check_quiet();
    ggml_backend_t     cpu = ggml_backend_cpu_init();
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(cpu));
    void *             at  = ggml_backend_reg_get_proc_address(reg, "ggml_ext_cpu_parallel_v1");
    CHECK(at != NULL && (ggml_ext_cpu_parallel_v1_t) at == ggml_ext_cpu_parallel_v1, "found by name, and the library's own");
    CHECK(ggml_backend_reg_get_proc_address(reg, "ggml_ext_cpu_parallel_v2") == NULL, "no other version");
    parallel = (ggml_ext_cpu_parallel_v1_t) at;
    if (!parallel) {
        return check_done();
    }
    outside(cpu);
    ggml_backend_free(cpu);
    in_custom();
    if (CHECK(registered(), "an operator with a kernel")) {
        inside(8);
        inside(20000);
    }
    return check_done();
}
