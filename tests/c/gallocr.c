/* Graph allocators: sizes, plans that follow the graph, inputs and outputs, memory that cannot be had. */
#include "fake_device.h"

static struct ggml_context * ctx;
static ggml_backend_t        cpu;

static struct ggml_cgraph * graph_of(struct ggml_tensor * t) {
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 32, false);
    ggml_set_output(t);
    ggml_build_forward_expand(g, t);
    return g;
}

static struct ggml_tensor * input(int64_t n) {
    struct ggml_tensor * x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    ggml_set_input(x);
    return x;
}

static void sizes(void) {
    ggml_gallocr_t       a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * t = input(1000);
    for (int i = 0; i < 10; i++) {
        t = ggml_relu(ctx, ggml_scale(ctx, t, 2)); /* in place all the way */
    }
    struct ggml_cgraph * g = graph_of(t);
    CHECK(ggml_gallocr_get_buffer_size(a, 0) == 0, "nothing reserved: size 0");
    size_t size = 1;
    ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &size);
    CHECK(size >= 4000 && size <= 12200, "a chain in place needs little: %zu", size);
    CHECK(t->data == NULL && ggml_gallocr_get_buffer_size(a, 0) == 0, "asking for the size allocates nothing");
    CHECK(ggml_gallocr_reserve(a, g), "reserve");
    CHECK(ggml_gallocr_get_buffer_size(a, 0) == size && t->data == NULL, "reserve keeps to the size, tensors are not touched");
    CHECK(ggml_gallocr_alloc_graph(a, g) && t->data != NULL && t->buffer != NULL, "alloc");
    CHECK(ggml_gallocr_get_buffer_size(a, 0) == size, "alloc needs no more");
    CHECK(ggml_gallocr_get_buffer_size(a, 1) == 0 && ggml_gallocr_get_buffer_size(a, -1) == 0, "buffers out of range");
    ggml_gallocr_free(a);
    ggml_reset(ctx);
    CHECK(ggml_op_can_inplace(GGML_OP_ADD) && !ggml_op_can_inplace(GGML_OP_MUL_MAT) && !ggml_op_can_inplace((enum ggml_op) 9999), "which operators can be in place");
}

/* Case 20 of the public reports: the same operators and sizes, other edges. */
static void other_edges(void) {
    enum { N = 1024 };
    ggml_gallocr_t shared = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    float          in[N], want[N], got[N];
    for (int i = 0; i < N; i++) {
        in[i] = (float) (i % 17) - 8;
    }
    for (int round = 0; round < 4; round++) {
        struct ggml_tensor * x  = input(N);
        struct ggml_tensor * n1 = ggml_sqr(ctx, x);
        const bool           b  = round % 2;
        struct ggml_tensor * n2 = ggml_scale(ctx, b ? x : n1, 3);
        struct ggml_tensor * n3 = b ? ggml_add(ctx, n1, n2) : ggml_add(ctx, n2, n1);
        struct ggml_cgraph * g  = graph_of(n3);
        CHECK(ggml_gallocr_alloc_graph(shared, g), "other edges: alloc %d", round);
        ggml_backend_tensor_set(x, in, 0, sizeof in);
        CHECK(ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS, "other edges: compute %d", round);
        ggml_backend_tensor_get(n3, got, 0, sizeof got);
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            want[i] = in[i] * in[i] + 3 * (b ? in[i] : in[i] * in[i]);
            wrong += got[i] != want[i];
        }
        CHECK(wrong == 0, "other edges: graph %c, %d of %d wrong", b ? 'B' : 'A', wrong, N);
        ggml_reset(ctx);
    }
    ggml_gallocr_free(shared);
}

static void inputs_and_outputs(void) {
    ggml_gallocr_t       a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * x = input(256);
    struct ggml_tensor * y = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 256); /* no flag */
    ggml_set_input(y);
    struct ggml_tensor * early = ggml_sqr(ctx, x);
    ggml_set_output(early);
    struct ggml_tensor * t = early;
    for (int i = 0; i < 8; i++) {
        t = ggml_add(ctx, ggml_scale(ctx, t, 0.5f), y);
    }
    struct ggml_cgraph * g = graph_of(t);
    CHECK(ggml_gallocr_alloc_graph(a, g), "inputs: alloc");
    float in[256], out[256];
    for (int i = 0; i < 256; i++) {
        in[i] = (float) i;
    }
    ggml_backend_tensor_set(x, in, 0, sizeof in);
    ggml_backend_tensor_memset(y, 0, 0, sizeof in);
    for (int round = 0; round < 2; round++) {
        ggml_backend_tensor_set(x, in, 0, sizeof in);
        ggml_backend_tensor_memset(y, 0, 0, sizeof in);
        CHECK(ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS, "inputs: compute");
        ggml_backend_tensor_get(early, out, 0, sizeof out);
        CHECK(out[255] == 255.0f * 255 && out[3] == 9, "an output early in the graph is kept");
        ggml_backend_tensor_get(t, out, 0, sizeof out);
        CHECK(out[255] == 255.0f * 255 / 256 && out[16] == 1, "the last one is right");
    }
    ggml_gallocr_free(a);
    ggml_reset(ctx);
}

static void many_buffers(void) {
    struct fake f;
    fake_make(&f, "second");
    ggml_backend_buffer_type_t types[3] = { ggml_backend_cpu_buffer_type(), &f.buft, ggml_backend_cpu_buffer_type() };
    ggml_gallocr_t             a        = ggml_gallocr_new_n(types, 3);
    struct ggml_tensor *       x        = input(100);
    struct ggml_tensor *       u        = ggml_sqr(ctx, x);
    struct ggml_tensor *       v        = ggml_sum_rows(ctx, u); /* never in place */
    struct ggml_cgraph *       g        = graph_of(v);
    bool                       done     = true;
    CHECK_ERROR(done = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_NONE, "several buffers want a reserve first", "reserve");
    CHECK(!done, "several buffers want a reserve first: false");
    const int nodes[2] = { 1, 0 }, leafs[1] = { 1 };
    size_t    size[3] = { 9, 9, 9 };
    ggml_gallocr_reserve_n_size(a, g, nodes, leafs, size);
    CHECK(size[0] > 0 && size[1] > 0, "sizes by buffer: %zu %zu %zu", size[0], size[1], size[2]);
    CHECK(f.n_alloc == 0, "sizes: nothing is allocated");
    CHECK(ggml_gallocr_reserve_n(a, g, nodes, leafs) && f.n_live == 1, "reserve_n");
    CHECK(ggml_gallocr_alloc_graph(a, g), "alloc after reserve_n");
    CHECK(x->buffer->buft == &f.buft && u->buffer->buft == &f.buft && v->buffer->buft == types[0], "tensors lie where they were sent");
    CHECK(ggml_gallocr_get_buffer_size(a, 2) == 0, "a buffer type named twice is one memory");
    const int wrong[2] = { 3, 0 }, negative[2] = { 0, -7 };
    CHECK(!ggml_gallocr_reserve_n(a, g, wrong, leafs), "no such buffer");
    CHECK(!ggml_gallocr_reserve_n(a, g, negative, leafs), "a negative buffer");
    ggml_gallocr_free(a);
    CHECK(f.n_live == 0, "all freed");
    types[1] = NULL;
    CHECK_ERROR(a = ggml_gallocr_new_n(types, 3), GGML_EXT_CODE_NONE, "a buffer type that is NULL", "ggml_gallocr_new_n");
    CHECK(a == NULL && ggml_gallocr_new_n(NULL, 1) == NULL && ggml_gallocr_new_n(types, 0) == NULL && ggml_gallocr_new_n(types, -1) == NULL, "no buffer types");
    ggml_reset(ctx);
}

/* Case 23 of the public reports: memory that cannot be had at call k. */
static void failing(void) {
    for (int k = 1; k <= 6; k++) {
        struct fake f, h;
        fake_make(&f, "failing");
        fake_make(&h, "failing too");
        f.fail_alloc_at = k;
        h.fail_alloc_at = k > 3 ? k - 3 : 0;
        ggml_backend_buffer_type_t types[2] = { &f.buft, &h.buft };
        ggml_gallocr_t             a        = ggml_gallocr_new_n(types, 2);
        struct ggml_tensor *       x        = input(100);
        struct ggml_tensor *       v        = ggml_sum_rows(ctx, ggml_sqr(ctx, x));
        struct ggml_cgraph *       g        = graph_of(v);
        const int                  nodes[2] = { 0, 1 }, leafs[1] = { 0 };
        int                        refused  = 0;
        bool                       done     = false;
        for (int i = 0; i < 4; i++) {
            check_log_errors = 0;
            done             = ggml_gallocr_reserve_n(a, g, nodes, leafs);
            refused += !done;
            CHECK(done || (check_log_errors > 0 && check_error_code() == GGML_EXT_CODE_OUT_OF_MEMORY), "failing at %d: reported", k);
        }
        CHECK(done, "failing at %d: a later reserve succeeds", k);
        CHECK(refused == (k == 1) + (k == 4), "failing at %d: refused %d times", k, refused);
        CHECK(ggml_gallocr_alloc_graph(a, g), "failing at %d: alloc", k);
        /* a larger graph needs new buffers */
        struct ggml_tensor * y = input(5000);
        struct ggml_cgraph * l = graph_of(ggml_sum_rows(ctx, ggml_sqr(ctx, y)));
        f.n_alloc              = 0;
        f.fail_alloc_at        = 1;
        CHECK(!ggml_gallocr_reserve_n(a, l, nodes, leafs), "failing at %d: growing fails", k);
        f.fail_alloc_at = 0;
        CHECK(!ggml_gallocr_alloc_graph(a, l) || y->data != NULL, "failing at %d: no graph is left half allocated", k);
        CHECK(ggml_gallocr_reserve_n(a, l, nodes, leafs) && ggml_gallocr_alloc_graph(a, l), "failing at %d: growing succeeds later", k);
        ggml_gallocr_free(a);
        CHECK(f.n_live == 0 && h.n_live == 0, "failing at %d: nothing is lost", k);
        ggml_reset(ctx);
    }
    /* one buffer: alloc_graph does the reserving */
    struct fake f;
    fake_make(&f, "single");
    f.fail_alloc_at     = 1;
    ggml_gallocr_t       a = ggml_gallocr_new(&f.buft);
    struct ggml_tensor * v = ggml_sqr(ctx, input(10));
    struct ggml_cgraph * g = graph_of(v);
    CHECK(!ggml_gallocr_alloc_graph(a, g) && v->data == NULL, "one buffer: alloc fails");
    CHECK(ggml_backend_graph_compute(cpu, g) == GGML_STATUS_FAILED, "one buffer: computing after that fails");
    CHECK(ggml_gallocr_alloc_graph(a, g) && v->data != NULL, "one buffer: the next alloc succeeds");
    ggml_gallocr_free(a);

    /* preparation of a tensor that fails */
    for (int k = 1; k <= 3; k++) {
        fake_make(&f, "init");
        f.fail_init_at = k;
        a              = ggml_gallocr_new(&f.buft);
        g              = graph_of(ggml_sqr(ctx, input(10)));
        bool done      = ggml_gallocr_alloc_graph(a, g);
        CHECK(done == (k > f.n_init), "preparing tensor %d fails: %d", k, done);
        ggml_gallocr_free(a);
        CHECK(f.n_live == 0, "preparing tensor %d fails: nothing is lost", k);
    }
    ggml_reset(ctx);

    /* tensors of a context, in several buffers of a limited size */
    for (int k = 0; k <= 5; k++) {
        fake_make(&f, "limited");
        f.max_size               = 4096;
        f.fail_alloc_at          = k;
        struct ggml_tensor * t[5];
        for (int i = 0; i < 5; i++) {
            t[i] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 700);
        }
        CHECK(ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, &f.buft) >= 5 * 2800, "context: size");
        ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(ctx, &f.buft);
        bool                  all = true, none = true;
        for (int i = 0; i < 5; i++) {
            all  = all && t[i]->data && t[i]->buffer;
            none = none && !t[i]->data && !t[i]->buffer;
        }
        CHECK(k == 0 ? b && all : !b && none && f.n_live == 0, "context: allocation %d fails", k);
        if (b) {
            CHECK(ggml_backend_buffer_get_size(b) >= 5 * 2800 && f.n_live == 5, "context: one handle for five buffers");
            ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
            CHECK(t[4]->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS, "context: usage of all of them");
            ggml_backend_buffer_clear(b, 1);
            CHECK(((uint8_t *) t[4]->data)[0] == 1, "context: clear all of them");
        }
        ggml_backend_buffer_free(b);
        CHECK(f.n_live == 0, "context: nothing is lost");
        ggml_reset(ctx);
    }
    /* a tensor larger than the limit */
    fake_make(&f, "limited");
    f.max_size = 4096;
    ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10000);
    CHECK_ERROR(CHECK(!ggml_backend_alloc_ctx_tensors_from_buft(ctx, &f.buft), "a tensor above the limit: NULL"), GGML_EXT_CODE_NONE, "a tensor above the limit", "");
    ggml_reset(ctx);
    CHECK(ggml_backend_alloc_ctx_tensors_from_buft(ctx, &f.buft) == NULL, "a context without tensors: NULL");
}

/* A graph with sizes 0 and views of views. */
static void odd_graphs(void) {
    ggml_gallocr_t       a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * x = input(0);
    struct ggml_tensor * y = ggml_add(ctx, ggml_scale(ctx, x, 2), x);
    struct ggml_cgraph * g = graph_of(y);
    CHECK(ggml_gallocr_alloc_graph(a, g) && ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS, "no elements");
    x                      = input(64);
    struct ggml_tensor * v = ggml_view_1d(ctx, ggml_view_1d(ctx, ggml_sqr(ctx, x), 32, 128), 16, 64);
    struct ggml_tensor * w = ggml_scale(ctx, v, 2);
    g                      = graph_of(w);
    float in[64], out[16];
    for (int i = 0; i < 64; i++) {
        in[i] = (float) i;
    }
    CHECK(ggml_gallocr_alloc_graph(a, g), "views of views");
    ggml_backend_tensor_set(x, in, 0, sizeof in);
    CHECK(ggml_backend_graph_compute(cpu, g) == GGML_STATUS_SUCCESS, "views of views: compute");
    ggml_backend_tensor_get(w, out, 0, sizeof out);
    CHECK(out[0] == 2 * 48 * 48 && out[15] == 2 * 63 * 63, "views of views: result");
    struct ggml_cgraph * empty = ggml_new_graph_custom(ctx, 4, false);
    CHECK(ggml_gallocr_alloc_graph(a, empty) && ggml_gallocr_reserve(a, empty), "an empty graph");
    ggml_gallocr_free(a);
    /* tensors larger than memory */
    a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    g = graph_of(ggml_sqr(ctx, input((int64_t) 1 << 55)));
    CHECK(!ggml_gallocr_reserve(a, g), "more than memory");
    size_t size = 1;
    g           = graph_of(ggml_concat(ctx, ggml_sqr(ctx, input((int64_t) 1 << 60)), input((int64_t) 1 << 60), 0));
    ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &size);
    CHECK(!ggml_gallocr_reserve(a, g), "more than an address can say (size %zu)", size);
    ggml_gallocr_free(a);
    ggml_reset(ctx);
}

static void linear(void) {
    struct ggml_tensor *  t[4];
    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 100);
    struct ggml_tallocr   p = ggml_tallocr_new(b);
    CHECK(p.buffer == b && p.alignment == ggml_backend_buffer_get_alignment(b) && p.base == ggml_backend_buffer_get_base(b), "tallocr");
    for (int i = 0; i < 4; i++) {
        t[i] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 5);
    }
    CHECK(ggml_tallocr_alloc(&p, t[0]) == GGML_STATUS_SUCCESS && ggml_tallocr_alloc(&p, t[1]) == GGML_STATUS_SUCCESS, "two fit");
    CHECK((char *) t[1]->data - (char *) t[0]->data == (ptrdiff_t) p.alignment, "side by side, aligned");
    CHECK_ERROR(CHECK(ggml_tallocr_alloc(&p, t[0]) != GGML_STATUS_SUCCESS, "twice is refused"), GGML_EXT_CODE_NONE, "twice", "");
    ggml_tallocr_alloc(&p, t[2]);
    enum ggml_status s = GGML_STATUS_SUCCESS;
    const size_t offset = p.offset;
    CHECK_ERROR(s = ggml_tallocr_alloc(&p, t[3]), GGML_EXT_CODE_NONE, "no room", "ggml_tallocr_alloc");
    CHECK(s == GGML_STATUS_ALLOC_FAILED && t[3]->data == NULL && t[3]->buffer == NULL && p.offset == offset, "no room: left as it was");
    ggml_backend_buffer_free(b);
    p = ggml_tallocr_new(NULL);
    CHECK(ggml_tallocr_alloc(&p, t[3]) != GGML_STATUS_SUCCESS, "no buffer");
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    cpu = ggml_backend_cpu_init();
    sizes();
    other_edges();
    inputs_and_outputs();
    many_buffers();
    failing();
    odd_graphs();
    linear();
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
