/* Backward passes: accumulators, reset, names, and what is refused; a graph that is refused stays as it was. */
#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-graph.h"

static struct ggml_context * ctx;

static struct ggml_context * make(size_t size) { return ggml_init((struct ggml_init_params){ size, NULL, false }); }

static struct ggml_tensor * vec(const char * name, int n, float first) {
    struct ggml_tensor * t = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n), name);
    for (int i = 0; i < n; i++) {
        ggml_set_f32_1d(t, i, first + (float) i);
    }
    return t;
}

static struct ggml_tensor * param(const char * name, int n, float first) {
    struct ggml_tensor * t = vec(name, n, first);
    ggml_set_param(t);
    return t;
}

static struct ggml_cgraph * graph_of(struct ggml_tensor * y, size_t size) {
    struct ggml_tensor * loss = ggml_set_name(ggml_sum(ctx, y), "loss");
    ggml_set_loss(loss);
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, size, true);
    ggml_build_forward_expand(g, loss);
    return g;
}

static void frame(void) {
    struct ggml_tensor * x = param("x", 4, 1);
    struct ggml_tensor * c = vec("c", 4, 10);
    struct ggml_tensor * y = ggml_set_name(ggml_mul(ctx, x, c), "y");
    struct ggml_cgraph * g = graph_of(y, 64);
    struct ggml_tensor * loss = ggml_graph_node(g, -1);
    int before = ggml_graph_n_nodes(g);
    ggml_build_backward_expand(ctx, g, NULL);
    CHECK(ggml_graph_n_nodes(g) > before, "the graph grew");
    struct ggml_tensor * grad = ggml_graph_get_grad(g, x), * of_loss = ggml_graph_get_grad_acc(g, loss);
    CHECK(grad && grad->type == GGML_TYPE_F32 && ggml_are_same_shape(grad, x), "a gradient like its parameter");
    CHECK(strcmp(ggml_get_name(grad), "grad for x") == 0, "its name");
    CHECK(ggml_graph_get_grad_acc(g, x) == NULL, "no accumulator unless one is given");
    CHECK(of_loss && ggml_graph_get_grad(g, loss) == of_loss, "the loss has one");
    CHECK(ggml_graph_get_grad(g, c) == NULL, "none for a constant");
    ggml_graph_reset(g);
    CHECK(ggml_get_f32_1d(of_loss, 0) == 1, "reset: the gradient of the loss is 1");
    CHECK(ggml_graph_compute_with_ctx(ctx, g, 1) == GGML_STATUS_SUCCESS, "compute");
    CHECK(ggml_get_f32_1d(grad, 0) == 10 && ggml_get_f32_1d(grad, 3) == 13, "the gradient");

    /* a copy has the gradients too, and can go on */
    struct ggml_cgraph * copy = ggml_graph_dup(ctx, g, true);
    CHECK(ggml_graph_get_grad(copy, x) == grad && ggml_graph_get_grad_acc(copy, loss) == of_loss, "a copy has the gradients");

    /* moments */
    struct ggml_tensor * m = vec("m", 4, 5), * v = vec("v", 4, 6), * p = vec("p", 7, 0);
    ggml_build_forward_expand(copy, ggml_opt_step_adamw(ctx, x, grad, m, v, p));
    ggml_graph_reset(copy);
    CHECK(ggml_get_f32_1d(m, 2) == 0 && ggml_get_f32_1d(v, 3) == 0, "reset: moments are 0");
}

static void accumulators(void) {
    struct ggml_tensor * x = param("x", 3, 1), * z = param("z", 3, 2);
    struct ggml_cgraph * g = graph_of(ggml_mul(ctx, x, z), 64);
    struct ggml_tensor * acc[64] = { NULL };
    int n = ggml_graph_n_nodes(g), at = -1;
    for (int i = 0; i < n; i++) {
        at = ggml_graph_node(g, i) == x ? i : at;
    }
    acc[at] = vec("mine", 3, 0);
    ggml_build_backward_expand(ctx, g, acc);
    CHECK(ggml_graph_get_grad_acc(g, x) == acc[at] && ggml_graph_get_grad_acc(g, z) == NULL, "the given one and no other");
    ggml_graph_reset(g);
    for (int i = 1; i <= 3; i++) {
        CHECK(ggml_graph_compute_with_ctx(ctx, g, 1) == GGML_STATUS_SUCCESS, "pass %d", i);
        CHECK(ggml_get_f32_1d(acc[at], 1) == 3.0f * (float) i, "pass %d adds up: %g", i, (double) ggml_get_f32_1d(acc[at], 1));
        CHECK(ggml_get_f32_1d(ggml_graph_get_grad(g, z), 1) == 2, "pass %d: without one nothing adds up", i);
    }
    CHECK(strcmp(ggml_get_name(acc[at]), "mine") == 0, "an accumulator keeps its name");
    ggml_graph_reset(g);
    CHECK(ggml_get_f32_1d(acc[at], 1) == 0, "reset: 0");
}

/* What must not change. */
struct state {
    int nodes, leafs, uses;
    enum ggml_status status;
    float loss;
};

static struct state state_of(struct ggml_cgraph * g, struct ggml_tensor * x) {
    struct state s = { ggml_graph_n_nodes(g), ggml_graph_n_leafs(g), ggml_graph_use_count(g, x), GGML_STATUS_FAILED, 0 };
    s.status = ggml_graph_compute_with_ctx(ctx, g, 1);
    s.loss = ggml_get_f32_1d(ggml_graph_node(g, -1), 0);
    return s;
}

static bool same(struct state a, struct state b) {
    return a.nodes == b.nodes && a.leafs == b.leafs && a.uses == b.uses && a.status == b.status && a.loss == b.loss;
}

static void refused(const char * name, struct ggml_cgraph * g, struct ggml_tensor * x, struct ggml_tensor ** accs, int code, const char * a, const char * b, const char * c) {
    struct state before = state_of(g, x);
    CHECK(before.status == GGML_STATUS_SUCCESS, "%s: computes before", name);
    CHECK_ERROR(ggml_build_backward_expand(ctx, g, accs), code, name, a, b, c);
    CHECK(same(before, state_of(g, x)), "%s: the graph is as before", name);
    CHECK(ggml_graph_get_grad(g, x) == NULL, "%s: no gradients", name);
}

static void refusals(void) {
    const int bad = GGML_EXT_CODE_BAD_ARGUMENT, shape = GGML_EXT_CODE_BAD_SHAPE, full = GGML_EXT_CODE_OUT_OF_MEMORY;
    struct ggml_tensor * x = param("x", 8, 1), * rows = ggml_reshape_2d(ctx, x, 4, 2);

    struct ggml_tensor * y = ggml_set_name(ggml_upscale(ctx, ggml_reshape_4d(ctx, x, 4, 2, 1, 1), 2, GGML_SCALE_MODE_NEAREST), "large");
    refused("no rule", graph_of(y, 64), x, NULL, bad, "ggml_build_backward_expand", "'large' (UPSCALE)", "no gradient");
    y = ggml_set_name(ggml_gelu_erf(ctx, x), "erf");
    refused("no rule for the function", graph_of(y, 64), x, NULL, bad, "'erf'", "GELU_ERF", "no gradient");
    y = ggml_set_name(ggml_glu(ctx, rows, GGML_GLU_OP_GEGLU_ERF, false), "gated");
    refused("no rule for the unit", graph_of(y, 64), x, NULL, bad, "'gated'", "GEGLU_ERF", "no gradient");
    y = ggml_set_name(ggml_sqr_inplace(ctx, ggml_scale(ctx, x, 2)), "over");
    refused("written over its source", graph_of(y, 64), x, NULL, bad, "'over' (SQR)", "written over", "gradient");
    y = ggml_set_name(ggml_soft_max_ext(ctx, ggml_reshape_2d(ctx, vec("q", 8, 0), 4, 2), rows, 1, 0), "soft");
    refused("the mask of a softmax", graph_of(y, 64), x, NULL, bad, "'soft' (SOFT_MAX)", "mask", "no gradient");
    y = ggml_cross_entropy_loss(ctx, ggml_reshape_2d(ctx, vec("logits", 8, 0), 4, 2), ggml_soft_max(ctx, rows));
    refused("labels", graph_of(y, 64), x, NULL, bad, "CROSS_ENTROPY_LOSS", "labels", "no gradient");
    y = ggml_set_name(ggml_view_2d(ctx, x, 4, 2, 8, 0), "sliding");
    refused("rows that overlap", graph_of(ggml_cont(ctx, y), 64), x, NULL, shape, "'sliding' (VIEW)", "overlap", "8");
    y = ggml_set_name(ggml_pad_ext_circular(ctx, rows, 1, 1, 0, 0, 0, 0, 0, 0), "round");
    refused("padding that goes around", graph_of(y, 64), x, NULL, bad, "'round' (PAD)", "around", "no gradient");

    y = ggml_set_name(ggml_pool_1d(ctx, x, GGML_OP_POOL_AVG, 3, 1, 1), "edge");
    refused("averages at an edge", graph_of(y, 64), x, NULL, bad, "'edge' (POOL_1D)", "padded", "no gradient");

    struct ggml_tensor * accs[64] = { NULL };
    struct ggml_cgraph * g = graph_of(ggml_sqr(ctx, x), 64);
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        accs[i] = ggml_graph_node(g, i) == x ? vec("short", 7, 0) : NULL;
    }
    refused("an accumulator of another shape", g, x, accs, shape, "'x'", "'short'", "shape");

    /* x, y, loss and the first gradient fit; the next one, which reads x, does not */
    refused("a full graph", graph_of(ggml_sqr(ctx, x), 4), x, NULL, full, "room for 4", NULL, NULL);

    struct ggml_context * all = ctx;
    ctx = make(4 * ggml_tensor_overhead() + ggml_graph_overhead_custom(64, true) + 1024);
    x = param("x", 8, 1);
    g = graph_of(ggml_sqr(ctx, x), 64);
    int nodes = ggml_graph_n_nodes(g);
    CHECK_ERROR(ggml_build_backward_expand(ctx, g, NULL), full, "a full context", "ggml_build_backward_expand", "context is full");
    CHECK(ggml_graph_n_nodes(g) == nodes && !ggml_graph_get_grad(g, x), "a full context: the graph is as before");
    ggml_free(ctx);
    ctx = all;
}

static void nothing_to_do(void) {
    struct ggml_tensor * x = param("x", 4, 1), * c = vec("c", 4, 1);
    struct ggml_tensor * loss = ggml_sum(ctx, ggml_sqr(ctx, x));
    struct ggml_cgraph * plain = ggml_new_graph_custom(ctx, 64, false), * empty = ggml_new_graph_custom(ctx, 64, true);
    CHECK_ERROR(ggml_build_backward_expand(ctx, empty, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "no nodes", "no nodes");
    ggml_build_forward_expand(empty, loss);
    CHECK_ERROR(ggml_build_backward_expand(ctx, empty, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "no loss", "ggml_set_loss");
    ggml_set_loss(loss);
    ggml_build_forward_expand(plain, loss);
    CHECK_ERROR(ggml_build_backward_expand(ctx, plain, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "no room for gradients", "gradients");
    CHECK_ERROR(ggml_build_backward_expand(ctx, graph_of(ggml_sqr(ctx, c), 64), NULL), GGML_EXT_CODE_BAD_ARGUMENT, "no parameter", "ggml_set_param");
    CHECK_ERROR(ggml_build_backward_expand(NULL, empty, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no context", "context");
    CHECK_ERROR(ggml_build_backward_expand(ctx, NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no graph", "graph");
    CHECK_ERROR(ggml_graph_reset(plain), GGML_EXT_CODE_BAD_ARGUMENT, "reset without gradients", "no gradients");
    struct ggml_cgraph * g = graph_of(ggml_add_inplace(ctx, x, ggml_reshape_2d(ctx, c, 2, 2)), 64);
    CHECK_ERROR(ggml_build_backward_expand(ctx, g, NULL), GGML_EXT_CODE_BAD_SHAPE, "a graph with what could not be built", "ggml_build_backward_expand");
}

int main(void) {
    check_quiet();
    ctx = make(16 << 20);
    frame();
    accumulators();
    refusals();
    nothing_to_do();
    ggml_free(ctx);
    return check_done();
}
