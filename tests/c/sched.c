/* The scheduler with a device of our own beside the CPU. */
#include "fake_device.h"

static struct ggml_context * ctx;
static ggml_backend_t        cpu;
static struct fake           dev;
static ggml_backend_t        gpu;

enum { N = 64 };

struct job {
    struct ggml_tensor * x, * w, * a, * b, * c, * y;
    struct ggml_cgraph * graph;
};

/* y = sum_rows(sqrt(x*x) * 3) + w, in steps that can be spread */
static struct job build(void) {
    struct job j;
    j.x = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, 4), "x");
    j.w = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, 4), "w");
    ggml_set_input(j.x);
    ggml_set_input(j.w);
    j.a = ggml_set_name(ggml_sqr(ctx, j.x), "a");
    j.b = ggml_set_name(ggml_sqrt(ctx, j.a), "b");
    j.c = ggml_set_name(ggml_sum_rows(ctx, ggml_scale(ctx, j.b, 3)), "c");
    j.y = ggml_set_name(ggml_add(ctx, j.c, j.w), "y");
    ggml_set_output(j.y);
    j.graph = ggml_new_graph_custom(ctx, 64, false);
    ggml_build_forward_expand(j.graph, j.y);
    return j;
}

static void feed(struct job * j, float s) {
    float x[4 * N], w[4] = { 1, 2, 3, 4 };
    for (int i = 0; i < 4 * N; i++) {
        x[i] = s * (float) (i % 7 - 3);
    }
    ggml_backend_tensor_set(j->x, x, 0, sizeof x);
    ggml_backend_tensor_set(j->w, w, 0, sizeof w);
}

static bool right(struct job * j, float s) {
    float y[4];
    ggml_backend_tensor_get(j->y, y, 0, sizeof y);
    for (int r = 0; r < 4; r++) {
        double want = r + 1;
        for (int i = 0; i < N; i++) {
            want += 3 * s * abs((r * N + i) % 7 - 3);
        }
        if (!(y[r] > want - 0.01 && y[r] < want + 0.01)) {
            printf("# row %d: %g, not %g\n", r, y[r], want);
            return false;
        }
    }
    return true;
}

static ggml_backend_sched_t sched_of(bool parallel) {
    ggml_backend_t list[2] = { gpu, cpu };
    return ggml_backend_sched_new(list, NULL, 2, 64, parallel, false);
}

/* Case 22 of the public reports: the same graph again and again. */
static void again(void) {
    ggml_backend_sched_t s = sched_of(false);
    CHECK(s && ggml_backend_sched_get_n_backends(s) == 2 && ggml_backend_sched_get_backend(s, 0) == gpu && ggml_backend_sched_get_backend(s, 1) == cpu, "two backends");
    CHECK(ggml_backend_sched_get_backend(s, 2) == NULL && ggml_backend_sched_get_backend(s, -1) == NULL, "no third");
    CHECK(ggml_backend_sched_get_n_copies(s) == 1, "one copy");
    CHECK(ggml_backend_sched_get_buffer_type(s, gpu) == &dev.buft && ggml_backend_sched_get_buffer_type(s, cpu) == ggml_backend_cpu_buffer_type(), "buffer types");
    struct job j = build();
    ggml_backend_sched_set_tensor_backend(s, j.a, cpu);
    ggml_backend_sched_set_tensor_backend(s, j.b, gpu);
    ggml_backend_sched_set_tensor_backend(s, j.y, cpu);
    CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "alloc");
    CHECK(ggml_backend_sched_get_tensor_backend(s, j.a) == cpu && ggml_backend_sched_get_tensor_backend(s, j.b) == gpu && ggml_backend_sched_get_tensor_backend(s, j.y) == cpu, "pinned tensors stay");
    CHECK(ggml_backend_sched_get_n_splits(s) >= 3, "%d splits", ggml_backend_sched_get_n_splits(s));
    for (int i = 1; i <= 3; i++) {
        feed(&j, (float) i);
        CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS, "compute %d", i);
        CHECK(right(&j, (float) i), "compute %d: result", i);
    }
    /* and with a reset between, as clients do */
    for (int i = 4; i <= 6; i++) {
        ggml_backend_sched_reset(s);
        ggml_reset(ctx);
        j = build();
        ggml_backend_sched_set_tensor_backend(s, i % 2 ? j.a : j.b, gpu);
        ggml_backend_sched_set_tensor_backend(s, i % 2 ? j.b : j.a, cpu);
        CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "round %d: alloc", i);
        feed(&j, (float) i);
        CHECK(ggml_backend_sched_graph_compute_async(s, j.graph) == GGML_STATUS_SUCCESS, "round %d: compute", i);
        ggml_backend_sched_synchronize(s);
        CHECK(right(&j, (float) i), "round %d: result", i);
    }
    ggml_backend_sched_free(s);
    CHECK(dev.n_live == 0, "buffers are freed");
    ggml_reset(ctx);
}

static void sizes(void) {
    ggml_backend_sched_t s = sched_of(false);
    struct job           j = build();
    size_t               want[2] = { 99, 99 };
    const int            before = dev.n_alloc;
    ggml_backend_sched_reserve_size(s, j.graph, want);
    CHECK(dev.n_alloc == before && want[0] + want[1] >= 4 * N * 4, "sizes %zu %zu, nothing allocated", want[0], want[1]);
    CHECK(ggml_backend_sched_get_buffer_size(s, gpu) == 0 && ggml_backend_sched_get_buffer_size(s, cpu) == 0, "nothing yet");
    CHECK(ggml_backend_sched_reserve(s, j.graph), "reserve");
    CHECK(ggml_backend_sched_get_buffer_size(s, gpu) == want[0] && ggml_backend_sched_get_buffer_size(s, cpu) == want[1], "reserve keeps to the sizes");
    CHECK(j.x->data == NULL && j.y->data == NULL, "reserve places no tensor");
    const int reserved = dev.n_alloc;
    ggml_reset(ctx);
    j = build();
    CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "alloc after reserve");
    CHECK(dev.n_alloc == reserved, "alloc after reserve needs no more memory");
    feed(&j, 1);
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 1), "compute after reserve");
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
}

/* Operators that the device has not go to the CPU. */
static void unsupported(void) {
    dev.only_op            = GGML_OP_SQRT;
    ggml_backend_sched_t s = sched_of(false);
    struct job           j = build();
    CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "one operator on the device: alloc");
    const int before = dev.n_compute;
    feed(&j, 2);
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 2), "one operator on the device: result");
    CHECK(ggml_backend_sched_get_tensor_backend(s, j.a) == cpu && ggml_backend_sched_get_tensor_backend(s, j.y) == cpu, "the rest runs on the CPU");
    CHECK(dev.n_compute >= before, "device graphs: %d", dev.n_compute - before);
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
    /* weights on the device: their operator goes there, once it has it */
    s                        = sched_of(false);
    struct ggml_tensor * w   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    ggml_backend_buffer_t b  = ggml_backend_alloc_ctx_tensors_from_buft(ctx, &dev.buft);
    ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_tensor_memset(w, 0, 0, 128);
    struct ggml_tensor * x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 2);
    ggml_set_input(x);
    struct ggml_tensor * m = ggml_mul_mat(ctx, w, x);
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
    ggml_set_output(m);
    ggml_build_forward_expand(g, m);
    CHECK(ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_get_tensor_backend(s, m) == cpu, "weights on a device without the operator");
    ggml_backend_tensor_memset(x, 0, 0, 64);
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS, "and it computes");
    ggml_backend_sched_free(s);
    dev.only_op = GGML_OP_COUNT;
    s           = sched_of(false);
    g           = ggml_new_graph_custom(ctx, 16, false);
    x           = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 2);
    ggml_set_input(x);
    m           = ggml_mul_mat(ctx, w, x);
    ggml_build_forward_expand(g, m);
    CHECK(ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_get_tensor_backend(s, m) == gpu, "weights draw the operator to their device");
    ggml_backend_sched_free(s);
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
}

struct seen {
    int  asked, shown, stop_at;
    char last[GGML_MAX_NAME];
    float value;
};
static bool watch(struct ggml_tensor * t, bool ask, void * data) {
    struct seen * s = data;
    if (ask) {
        s->asked++;
        return strcmp(t->name, "b") == 0 || strcmp(t->name, "c") == 0;
    }
    s->shown++;
    snprintf(s->last, sizeof s->last, "%s", t->name);
    ggml_backend_tensor_get(t, &s->value, 0, sizeof s->value);
    return s->shown != s->stop_at;
}

static void callback(void) {
    ggml_backend_sched_t s    = sched_of(false);
    struct job           j    = build();
    struct seen          seen = { .stop_at = 0 };
    ggml_backend_sched_set_tensor_backend(s, j.b, gpu);
    ggml_backend_sched_set_eval_callback(s, watch, &seen);
    ggml_backend_sched_alloc_graph(s, j.graph);
    feed(&j, 1);
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 1), "callback: compute");
    CHECK(seen.asked >= 3 && seen.shown == 2 && strcmp(seen.last, "c") == 0, "callback: asked %d, shown %d", seen.asked, seen.shown);
    CHECK(seen.value > 300 && seen.value < 340, "callback: data can be read (%g)", seen.value);
    seen = (struct seen){ .stop_at = 1 };
    const float keep[4] = { 0 };
    ggml_backend_tensor_set(j.y, keep, 0, sizeof keep);
    const enum ggml_status status = ggml_backend_sched_graph_compute(s, j.graph);
    CHECK(status == GGML_STATUS_SUCCESS && seen.shown >= 1, "callback: stops (status %d, shown %d)", status, seen.shown);
    ggml_backend_sched_set_eval_callback(s, NULL, NULL);
    feed(&j, 3);
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 3), "callback: taken away");
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
}

static void parallel(void) {
    ggml_backend_sched_t s = sched_of(true);
    CHECK(ggml_backend_sched_get_n_copies(s) > 1, "parallel: %d copies", ggml_backend_sched_get_n_copies(s));
    struct job j = build();
    CHECK(ggml_backend_sched_reserve(s, j.graph), "parallel: reserve");
    for (int i = 1; i <= 9; i++) {
        ggml_backend_sched_reset(s);
        ggml_reset(ctx);
        j = build();
        ggml_backend_sched_set_tensor_backend(s, j.a, gpu);
        ggml_backend_sched_set_tensor_backend(s, j.b, cpu);
        CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "parallel %d: alloc", i);
        feed(&j, (float) i);
        CHECK(ggml_backend_sched_graph_compute_async(s, j.graph) == GGML_STATUS_SUCCESS, "parallel %d: compute", i);
        ggml_backend_sched_synchronize(s);
        CHECK(right(&j, (float) i), "parallel %d: result", i);
    }
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
}

static void failures(void) {
    for (int k = 1; k <= 3; k++) {
        struct job j;
        ggml_backend_sched_t s = sched_of(false);
        j                      = build();
        dev.n_alloc            = 0;
        dev.fail_alloc_at      = k;
        const bool done        = ggml_backend_sched_alloc_graph(s, j.graph);
        CHECK(done == (dev.n_alloc < k), "memory refused at %d: %d", k, done);
        if (!done) {
            CHECK(ggml_backend_sched_graph_compute(s, j.graph) != GGML_STATUS_SUCCESS || right(&j, 0), "memory refused at %d: computing says so", k);
        }
        dev.fail_alloc_at = 0;
        ggml_backend_sched_reset(s);
        ggml_reset(ctx);
        j = build();
        CHECK(ggml_backend_sched_alloc_graph(s, j.graph), "memory refused at %d: fine later", k);
        feed(&j, 1);
        CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 1), "memory refused at %d: result later", k);
        ggml_backend_sched_free(s);
        CHECK(dev.n_live == 0, "memory refused at %d: nothing is lost", k);
        ggml_reset(ctx);
    }
    ggml_backend_sched_t s = sched_of(false);
    struct job           j = build();
    ggml_backend_sched_set_tensor_backend(s, j.b, gpu);
    ggml_backend_sched_alloc_graph(s, j.graph);
    feed(&j, 1);
    dev.n_compute    = 0;
    dev.fail_compute = 1;
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_FAILED, "a device that fails");
    dev.fail_compute = 0;
    feed(&j, 2);
    CHECK(ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && right(&j, 2), "and works again");
    CHECK_ERROR(ggml_backend_sched_set_tensor_backend(s, NULL, gpu), GGML_EXT_CODE_NULL_ARGUMENT, "pin NULL", "ggml_backend_sched_set_tensor_backend");
    ggml_backend_t other = ggml_backend_cpu_init();
    CHECK_ERROR(ggml_backend_sched_set_tensor_backend(s, j.a, other), GGML_EXT_CODE_NONE, "pin to a stranger", "ggml_backend_sched_set_tensor_backend");
    CHECK(ggml_backend_sched_get_buffer_size(s, other) == 0 && ggml_backend_sched_get_buffer_type(s, other) == NULL, "ask for a stranger");
    ggml_backend_free(other);
    ggml_backend_sched_free(s);
    ggml_reset(ctx);

    /* poisoned nodes, and an empty graph */
    s                       = sched_of(false);
    struct ggml_tensor * p  = ggml_add(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3), ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2));
    struct ggml_cgraph * g  = ggml_new_graph_custom(ctx, 8, false);
    ggml_build_forward_expand(g, ggml_sqr(ctx, p));
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_FAILED && strstr(check_error_text(), "ggml_add"), "a poisoned graph");
    ggml_backend_sched_reset(s);
    g = ggml_new_graph_custom(ctx, 8, false);
    CHECK(ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS, "an empty graph");
    ggml_backend_sched_free(s);

    ggml_backend_t list[2] = { gpu, NULL };
    CHECK(!ggml_backend_sched_new(list, NULL, 2, 0, false, false), "a NULL backend");
    CHECK(!ggml_backend_sched_new(NULL, NULL, 2, 0, false, false) && !ggml_backend_sched_new(list, NULL, 0, 0, false, false) && !ggml_backend_sched_new(list, NULL, -5, 0, false, false), "no backends");
    CHECK(!ggml_backend_sched_new(list, NULL, 1, 0, false, false), "without the host's backend at the end");
    ggml_backend_sched_free(NULL);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    fake_make(&dev, "wrapped");
    ggml_backend_register(&dev.reg);
    CHECK(ggml_backend_dev_by_name("WRAPPED") == &dev.device, "a device of our own is registered");
    gpu = ggml_backend_init_by_name("wrapped", NULL);
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    CHECK(gpu != NULL && cpu != NULL && ggml_backend_init_by_name("wrapped", "refuse") == NULL, "backends");
    again();
    sizes();
    unsupported();
    callback();
    parallel();
    failures();
    ggml_backend_free(gpu);
    ggml_backend_free(cpu);
    ggml_backend_unload(&dev.reg);
    CHECK(ggml_backend_dev_by_name("wrapped") == NULL, "and unregistered");
    ggml_free(ctx);
    return check_done();
}
