/* EXT-46, EXT-47: ggml_gallocr_set_skipped_tensors. Inner results of steps that run as one get no memory; what they are computed
 * from stays until the last of their readers was computed. */
#include "fake_device.h"
#include <math.h>

enum { N = 256 };

static struct ggml_context * ctx;

static struct ggml_tensor * input(int64_t n) {
    struct ggml_tensor * x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    ggml_set_input(x);
    return x;
}

static struct ggml_cgraph * graph_of(struct ggml_tensor * t) {
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 64, false);
    ggml_set_output(t);
    ggml_build_forward_expand(g, t);
    return g;
}

/* Element i of t; where t has no memory, computed from what its node reads. */
static float at(const struct ggml_tensor * t, int i, bool compute) {
    if (!compute && t->data) {
        return ((const float *) t->data)[i];
    }
    const struct ggml_tensor * a = t->src[0];
    switch (t->op) {
        case GGML_OP_SQR: return at(a, i, false) * at(a, i, false);
        case GGML_OP_SCALE: return at(a, i, false) * ((const float *) t->op_params)[0];
        case GGML_OP_ADD: return at(a, i, false) + at(t->src[1], i, false);
        case GGML_OP_MUL: return at(a, i, false) * at(t->src[1], i, false);
        case GGML_OP_RESHAPE: return at(a, i, false);
        default: return NAN;
    }
}

static bool is_skipped(const struct ggml_tensor * t) { return t && t->data == NULL; }

/* Runs the graph as a fusing backend would. A step that computes skipped tensors too writes before it reads, as it may. */
static void run(struct ggml_cgraph * g) {
    for (int n = 0; n < ggml_graph_n_nodes(g); n++) {
        struct ggml_tensor * t = ggml_graph_node(g, n);
        if (t->data == NULL || t->op == GGML_OP_RESHAPE) {
            continue;
        }
        float out[N];
        if (is_skipped(t->src[0]) || is_skipped(t->src[1])) {
            memset(t->data, 0xff, sizeof out);
        }
        for (int i = 0; i < N; i++) {
            out[i] = at(t, i, true);
        }
        memcpy(t->data, out, sizeof out);
    }
}

static void fill(struct ggml_tensor * x) {
    for (int i = 0; i < N; i++) {
        ((float *) x->data)[i] = (float) (i % 17) - 8;
    }
}

static void sizes(void) {
    ggml_gallocr_t       a    = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * x    = input(100);
    struct ggml_tensor * big  = ggml_repeat_4d(ctx, x, 100, 1000, 1, 1);
    struct ggml_tensor * more = ggml_concat(ctx, big, big, 1);
    struct ggml_tensor * y    = ggml_sum_rows(ctx, more);
    struct ggml_cgraph * g    = graph_of(y);
    struct ggml_tensor * set[2] = { big, more };
    size_t               full = 0, one = 0, two = 0;
    ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &full);
    CHECK(full >= 3 * 400000, "EXT-47: all have memory: %zu bytes", full);
    CHECK(ggml_gallocr_set_skipped_tensors(a, set, 1), "EXT-47: set_skipped_tensors");
    ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &one);
    CHECK(one >= 2 * 400000 && one <= full - 390000, "EXT-47: one skipped: %zu bytes", one);
    CHECK(ggml_gallocr_set_skipped_tensors(a, set, 2), "EXT-47: set_skipped_tensors of two");
    ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &two);
    CHECK(two < 10000, "EXT-47: two skipped: %zu bytes", two);
    CHECK(ggml_gallocr_reserve(a, g) && ggml_gallocr_get_buffer_size(a, 0) == two, "EXT-47: reserve keeps to that size");
    CHECK(ggml_gallocr_alloc_graph(a, g), "EXT-47: alloc");
    CHECK(x->data && x->buffer && y->data && y->buffer, "EXT-47: the others have data");
    CHECK(!big->data && !big->buffer && !more->data && !more->buffer, "EXT-47: skipped tensors have none");
    CHECK(big->op == GGML_OP_REPEAT && more->src[0] == big && more->ne[1] == 2000, "EXT-47: metadata and edges are as they were");
    CHECK(ggml_gallocr_get_buffer_size(a, 0) == two, "EXT-47: alloc needs no more");
    /* the set is replaced, not added to */
    CHECK(ggml_gallocr_set_skipped_tensors(a, NULL, 0) && ggml_gallocr_alloc_graph(a, g) && big->data && more->data, "EXT-47: no set: all have data");
    ggml_gallocr_free(a);
    ggml_reset(ctx);
}

/* x, w -> a -> [s1 -> reshape -> s2 -> y] -> z; s1, the reshape and s2 are computed by y. */
static void chains(void) {
    for (int round = 0; round < 8; round++) {
        ggml_gallocr_t       g_a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
        struct ggml_tensor * x   = input(N);
        struct ggml_tensor * w   = ggml_sqr(ctx, x);
        struct ggml_tensor * a   = ggml_scale(ctx, w, 0.5f);
        struct ggml_tensor * s1  = ggml_mul(ctx, a, w);
        struct ggml_tensor * v   = ggml_reshape_2d(ctx, s1, N / 4, 4);
        struct ggml_tensor * s2  = ggml_scale(ctx, v, 3);
        struct ggml_tensor * y   = ggml_add(ctx, s2, round % 2 ? ggml_reshape_2d(ctx, a, N / 4, 4) : s2);
        struct ggml_tensor * z   = ggml_add(ctx, y, ggml_scale(ctx, y, 2));
        struct ggml_cgraph * g   = graph_of(z);
        /* a view may be named or not: it has no memory either way */
        struct ggml_tensor * set[3] = { s1, round & 2 ? v : s2, s2 };
        CHECK(ggml_gallocr_set_skipped_tensors(g_a, set, 3), "EXT-46: set %d", round);
        if (round & 4) {
            CHECK(ggml_gallocr_reserve(g_a, g), "EXT-46: reserve %d", round);
        }
        CHECK(ggml_gallocr_alloc_graph(g_a, g), "EXT-46: alloc %d", round);
        CHECK(!s1->data && !s2->data && !v->data && !s1->buffer && !s2->buffer && !v->buffer, "EXT-46: skipped tensors and their view have no data %d", round);
        fill(x);
        run(g);
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            const float in = (float) (i % 17) - 8, q = in * in, s = 0.5f * q * q * 3, add = round % 2 ? 0.5f * q : s;
            wrong += ((float *) z->data)[i] != (s + add) * 3;
        }
        CHECK(wrong == 0, "EXT-46: what skipped tensors are computed from is there when it is read %d: %d of %d wrong", round, wrong, N);
        ggml_gallocr_free(g_a);
        ggml_reset(ctx);
    }
}

/* Case 20 of the public reports, with skipped tensors: one allocator, the same operators and sizes, other edges, other sets. */
static void other_edges(void) {
    ggml_gallocr_t shared = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    for (int round = 0; round < 24; round++) {
        const bool           b   = round % 2;
        struct ggml_tensor * x   = input(N);
        struct ggml_tensor * n1  = ggml_sqr(ctx, x);
        struct ggml_tensor * n2  = ggml_scale(ctx, b ? x : n1, 3);
        struct ggml_tensor * n3  = b ? ggml_add(ctx, n1, n2) : ggml_add(ctx, n2, n1);
        struct ggml_cgraph * g   = graph_of(n3);
        struct ggml_tensor * set[2];
        int                  n   = 0;
        const int            sel = round / 3 % 4; /* none, n1, n2, both; each after both graphs */
        if (sel & 1) set[n++] = n1;
        if (sel & 2) set[n++] = n2;
        CHECK(ggml_gallocr_set_skipped_tensors(shared, set, n) && ggml_gallocr_alloc_graph(shared, g), "case 20, skipped: alloc %d", round);
        CHECK((n1->data == NULL) == (sel & 1) && (n2->data == NULL) == (sel >> 1), "case 20, skipped: the set is followed %d", round);
        fill(x);
        run(g);
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            const float in = (float) (i % 17) - 8;
            wrong += ((float *) n3->data)[i] != in * in + 3 * (b ? in : in * in);
        }
        CHECK(wrong == 0, "case 20, skipped: graph %c, set %d: %d of %d wrong", b ? 'B' : 'A', sel, wrong, N);
        ggml_reset(ctx);
    }
    ggml_gallocr_free(shared);
}

static struct ggml_cgraph * five(struct ggml_tensor ** t) {
    t[0] = input(N);
    for (int i = 1; i < 5; i++) {
        t[i] = ggml_scale(ctx, t[i - 1], 2);
    }
    return graph_of(t[4]);
}

/* An allocator of two buffers says when its plan is for another graph. */
static void plans(void) {
    struct fake f;
    fake_make(&f, "other");
    ggml_backend_buffer_type_t types[2] = { ggml_backend_cpu_buffer_type(), &f.buft };
    ggml_gallocr_t             a        = ggml_gallocr_new_n(types, 2);
    struct ggml_tensor *       t[5], *set[2];
    struct ggml_cgraph *       g = five(t);
    set[0] = t[2], set[1] = t[3];
    CHECK(ggml_gallocr_set_skipped_tensors(a, set, 2) && ggml_gallocr_reserve_n(a, g, NULL, NULL) && ggml_gallocr_alloc_graph(a, g), "plans: reserve and alloc");
    CHECK(ggml_gallocr_alloc_graph(a, g) && !t[2]->data, "plans: the same graph again");
    for (int round = 0; round < 3; round++) {
        g = five(t); /* all at new addresses */
        set[0] = t[3], set[1] = t[2];
        CHECK(ggml_gallocr_set_skipped_tensors(a, set, 2) && ggml_gallocr_alloc_graph(a, g), "plans: the same positions skipped: the plan is kept %d", round);
        CHECK(!t[2]->data && !t[3]->data && t[4]->data, "plans: the same positions have no data %d", round);
    }
    bool good = true;
    g         = five(t);
    set[0] = t[1], set[1] = t[2];
    ggml_gallocr_set_skipped_tensors(a, set, 2);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_NONE, "plans: other positions", "reserve");
    CHECK(!good && !t[4]->data, "plans: other positions need another plan");
    set[0] = t[2];
    ggml_gallocr_set_skipped_tensors(a, set, 1);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_NONE, "plans: one of them only", "reserve");
    CHECK(!good, "plans: fewer positions need another plan");
    ggml_gallocr_set_skipped_tensors(a, NULL, 0);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_NONE, "plans: none of them", "reserve");
    CHECK(!good, "plans: no positions need another plan");
    CHECK(ggml_gallocr_reserve_n(a, g, NULL, NULL), "plans: reserve without a set");
    set[0] = t[2], set[1] = t[3];
    ggml_gallocr_set_skipped_tensors(a, set, 2);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_NONE, "plans: a set after the reserve", "reserve");
    CHECK(!good, "plans: a plan without skipped tensors is not for a graph with them");
    ggml_gallocr_free(a);
    ggml_reset(ctx);
}

static void refused(void) {
    ggml_gallocr_t       a = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * t[5];
    struct ggml_cgraph * g    = five(t);
    bool                 good = true;
    size_t               size = 1;
    ggml_set_name(t[4], "the result");
    ggml_gallocr_set_skipped_tensors(a, &t[4], 1);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_BAD_ARGUMENT, "an output is skipped", "the result", "output");
    CHECK(!good && !t[1]->data, "an output is skipped: alloc fails");
    CHECK_ERROR(good = ggml_gallocr_reserve(a, g), GGML_EXT_CODE_BAD_ARGUMENT, "an output is skipped, reserve", "the result", "output");
    CHECK_ERROR(ggml_gallocr_reserve_n_size(a, g, NULL, NULL, &size), GGML_EXT_CODE_BAD_ARGUMENT, "an output is skipped, size", "the result", "output");
    CHECK(!good && size == 0, "an output is skipped: reserve fails");
    ggml_set_name(t[0], "the input");
    ggml_gallocr_set_skipped_tensors(a, &t[0], 1);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_BAD_ARGUMENT, "an input is skipped", "the input", "input");
    CHECK(!good, "an input is skipped: alloc fails");
    /* a view of a skipped tensor has no memory either */
    struct ggml_tensor * s = ggml_set_name(ggml_sqr(ctx, input(N)), "storage");
    struct ggml_tensor * v = ggml_set_name(ggml_reshape_2d(ctx, s, N / 2, 2), "a look at it");
    v->flags |= GGML_TENSOR_FLAG_OUTPUT; /* ggml_set_output marks the storage too */
    g = ggml_new_graph_custom(ctx, 64, false);
    ggml_build_forward_expand(g, v);
    ggml_gallocr_set_skipped_tensors(a, &s, 1);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_BAD_ARGUMENT, "an output views a skipped tensor", "storage", "a look at it", "output");
    CHECK(!good, "an output views a skipped tensor: alloc fails");
    /* nothing can be written into what is not there */
    s                      = ggml_set_name(ggml_sqr(ctx, input(N)), "storage");
    struct ggml_tensor * w = ggml_set_name(ggml_scale_inplace(ctx, s, 2), "the writer");
    g                      = graph_of(ggml_scale(ctx, w, 2));
    ggml_gallocr_set_skipped_tensors(a, &s, 1);
    CHECK_ERROR(good = ggml_gallocr_alloc_graph(a, g), GGML_EXT_CODE_BAD_ARGUMENT, "a node writes into a skipped tensor", "storage", "the writer");
    CHECK(!good, "a node writes into a skipped tensor: alloc fails");
    struct ggml_tensor * both[2] = { s, w };
    CHECK(ggml_gallocr_set_skipped_tensors(a, both, 2) && ggml_gallocr_alloc_graph(a, g) && !s->data && !w->data, "both are skipped: fine");
    /* what has data keeps them */
    ggml_gallocr_set_skipped_tensors(a, NULL, 0);
    g             = five(t);
    float own[N]  = { 1 };
    t[2]->data    = own;
    t[2]->buffer  = ggml_backend_cpu_buffer_from_ptr(own, sizeof own);
    ggml_set_output(t[2]);
    CHECK(ggml_gallocr_set_skipped_tensors(a, &t[2], 1) && ggml_gallocr_alloc_graph(a, g), "a skipped tensor that has data");
    CHECK(t[2]->data == own && t[3]->data && t[1]->data, "a skipped tensor that has data keeps them");
    ggml_backend_buffer_free(t[2]->buffer);
    /* arguments */
    struct ggml_tensor * list[2] = { t[1], NULL };
    CHECK_ERROR(good = ggml_gallocr_set_skipped_tensors(NULL, list, 1), GGML_EXT_CODE_NULL_ARGUMENT, "no allocator", "allocator");
    CHECK(!good, "no allocator: false");
    CHECK_ERROR(good = ggml_gallocr_set_skipped_tensors(a, NULL, 1), GGML_EXT_CODE_NULL_ARGUMENT, "no list", "list");
    CHECK(!good, "no list: false");
    CHECK_ERROR(good = ggml_gallocr_set_skipped_tensors(a, list, -1), GGML_EXT_CODE_BAD_ARGUMENT, "a negative number", "-1");
    CHECK(!good, "a negative number: false");
    CHECK_ERROR(good = ggml_gallocr_set_skipped_tensors(a, list, 2), GGML_EXT_CODE_NULL_ARGUMENT, "a NULL in the list", "tensor 1");
    CHECK(!good, "a NULL in the list: false");
    g = five(t);
    CHECK(ggml_gallocr_alloc_graph(a, g) && t[1]->data && t[2]->data, "after a failure none is skipped");
    ggml_gallocr_free(a);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    sizes();
    chains();
    other_edges();
    plans();
    refused();
    ggml_free(ctx);
    return check_done();
}
