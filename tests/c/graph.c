/* Graphs: order, uses, views, room. */
#include "check.h"
#include "ggml/src/ggml-impl.h"

static struct ggml_context * ctx;

static int uses(struct ggml_cgraph * g, struct ggml_tensor * t) {
    const size_t i = ggml_hash_find(&g->visited_hash_set, t);
    return i != GGML_HASHSET_FULL && ggml_bitset_get(g->visited_hash_set.used, i) ? g->use_counts[i] : -1;
}

static void order(void) {
    struct ggml_tensor * a = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "a");
    struct ggml_tensor * b = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "b");
    struct ggml_tensor * l = ggml_set_name(ggml_sqr(ctx, a), "l");
    struct ggml_tensor * r = ggml_set_name(ggml_sqrt(ctx, b), "r");
    struct ggml_tensor * s = ggml_set_name(ggml_add(ctx, l, r), "s");
    struct ggml_tensor * u = ggml_set_name(ggml_mul(ctx, s, l), "u");
    struct ggml_cgraph * g = ggml_new_graph(ctx);
    CHECK(g != NULL && ggml_graph_size(g) == GGML_DEFAULT_GRAPH_SIZE && ggml_graph_n_nodes(g) == 0, "new graph");
    CHECK(g->grads == NULL && g->grad_accs == NULL, "no gradients");
    ggml_build_forward_expand(g, u);
    CHECK(ggml_graph_n_nodes(g) == 4 && g->n_leafs == 2, "4 nodes, 2 leafs");
    CHECK(ggml_graph_node(g, 0) == l && ggml_graph_node(g, 1) == r && ggml_graph_node(g, 2) == s && ggml_graph_node(g, 3) == u, "sources first, left to right");
    CHECK(g->leafs[0] == a && g->leafs[1] == b, "leafs in the order of visit");
    CHECK(ggml_graph_node(g, -1) == u && ggml_graph_node(g, -4) == l, "from the end");
    CHECK(ggml_graph_node(g, 4) == NULL && ggml_graph_node(g, -5) == NULL && ggml_graph_node(g, INT32_MIN) == NULL, "out of range");
    CHECK(uses(g, l) == 2 && uses(g, r) == 1 && uses(g, s) == 1 && uses(g, u) == 0 && uses(g, a) == 1, "use counts");
    CHECK(ggml_node_get_use_count(g, 0) == 2 && ggml_node_get_use_count(g, 3) == 0, "use counts by node");
    CHECK(ggml_graph_get_tensor(g, "r") == r && ggml_graph_get_tensor(g, "a") == a && ggml_graph_get_tensor(g, "zz") == NULL, "by name");
    ggml_build_forward_expand(g, u);
    CHECK(ggml_graph_n_nodes(g) == 4, "again is no change");
    struct ggml_tensor * v = ggml_neg(ctx, s);
    ggml_build_forward_expand(g, v);
    CHECK(ggml_graph_n_nodes(g) == 5 && ggml_graph_node(g, 4) == v && uses(g, s) == 2, "one more on top");
    CHECK(ggml_graph_get_grad(g, u) == NULL && ggml_graph_get_grad_acc(g, u) == NULL, "no gradient");
    CHECK(u->flags & GGML_TENSOR_FLAG_COMPUTE, "nodes are marked to be computed");

    /* in the other order */
    struct ggml_cgraph * h = ggml_new_graph_custom(ctx, 16, false);
    h->order               = GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT;
    ggml_build_forward_expand(h, s);
    CHECK(ggml_graph_node(h, 0) == r && ggml_graph_node(h, 1) == l, "right to left");

    /* copies */
    struct ggml_cgraph * d = ggml_graph_dup(ctx, g, false);
    CHECK(d && ggml_graph_n_nodes(d) == 5 && ggml_graph_node(d, 3) == u && uses(d, l) == 2 && d->n_leafs == 2, "dup");
    struct ggml_cgraph * c = ggml_new_graph_custom(ctx, 3000, false);
    ggml_graph_cpy(g, c);
    CHECK(ggml_graph_n_nodes(c) == 5 && ggml_graph_size(c) == 3000 && uses(c, l) == 2, "copy into a larger one");
    struct ggml_cgraph * e = ggml_new_graph_custom(ctx, 3, false);
    CHECK_ERROR(ggml_graph_cpy(g, e), GGML_EXT_CODE_NONE, "copy into one too small", "ggml_graph_cpy");
    ggml_graph_clear(g);
    CHECK(ggml_graph_n_nodes(g) == 0 && g->n_leafs == 0 && uses(g, l) == -1, "clear");
    ggml_build_forward_expand(g, s);
    CHECK(ggml_graph_n_nodes(g) == 3 && uses(g, l) == 1, "used again");

    /* views of a graph */
    struct ggml_cgraph w = ggml_graph_view(d, 1, 3);
    CHECK(w.n_nodes == 2 && ggml_graph_node(&w, 0) == r && ggml_graph_node(&w, -1) == s && w.size == 0 && w.n_leafs == 0, "view");
    CHECK(ggml_node_get_use_count(&w, 0) == 1 && ggml_node_get_use_count(&w, 1) == 2, "view: uses in the whole graph");
    w = ggml_graph_view(d, 3, 3);
    CHECK(w.n_nodes == 0 && ggml_graph_node(&w, 0) == NULL && ggml_graph_node(&w, -1) == NULL, "view of nothing");
    check_log_errors = 0;
    const int ranges[][2] = { { -1, 2 }, { 2, 1 }, { 0, 6 }, { INT32_MIN, INT32_MAX }, { 6, 7 } };
    for (int i = 0; i < 5; i++) {
        w = ggml_graph_view(d, ranges[i][0], ranges[i][1]);
        CHECK(w.n_nodes >= 0 && w.n_nodes <= 5, "view of nodes %d to %d", ranges[i][0], ranges[i][1]);
    }
    CHECK(ggml_graph_next_uid() != ggml_graph_next_uid(), "no number twice");
}

static void add_node(void) {
    struct ggml_tensor * a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * n = ggml_sqr(ctx, a);
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 2, false);
    ggml_graph_add_node(g, n);
    CHECK(ggml_graph_n_nodes(g) == 1 && g->n_leafs == 0 && ggml_graph_node(g, 0) == n, "add_node takes it as it stands");
    ggml_graph_add_node(g, n);
    CHECK(ggml_graph_n_nodes(g) == 2, "add_node twice");
    CHECK_ERROR(ggml_graph_add_node(g, n), GGML_EXT_CODE_OUT_OF_MEMORY, "add_node without room", "ggml_graph_add_node");
    CHECK(ggml_graph_n_nodes(g) == 2, "add_node without room: nothing is written");
}

static void room(void) {
    const size_t sizes[] = { 0, 1, 2, 7, 100, 2048, 10000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int grads = 0; grads < 2; grads++) {
            const size_t          need = ggml_graph_overhead_custom(sizes[i], grads);
            struct ggml_context * own  = ggml_init((struct ggml_init_params){ need, NULL, true });
            struct ggml_cgraph *  g    = ggml_new_graph_custom(own, sizes[i], grads);
            CHECK(g != NULL && ggml_used_mem(own) == need, "overhead of %zu %d is exact", sizes[i], grads);
            CHECK(ggml_new_graph_custom(own, 0, false) == NULL, "and not more");
            ggml_free(own);
        }
    }
    CHECK(ggml_graph_overhead() == ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, false), "overhead of the default");
    CHECK(ggml_graph_overhead_custom(SIZE_MAX, true) == SIZE_MAX, "overhead of too many");
    CHECK_ERROR(ggml_new_graph_custom(ctx, SIZE_MAX, true), GGML_EXT_CODE_NONE, "graph of too many", "ggml_new_graph_custom");
    CHECK_ERROR(ggml_new_graph_custom(ctx, (size_t) 1 << 31, false), GGML_EXT_CODE_NONE, "graph of 2^31", "ggml_new_graph_custom");
    CHECK_ERROR(ggml_new_graph_custom(ctx, (size_t) 1 << 24, false), GGML_EXT_CODE_OUT_OF_MEMORY, "graph too large for the context", "ggml_new_graph_custom");
}

static void deep(void) {
    /* a chain that recursion would not survive */
    const int             n   = 200000;
    struct ggml_context * big = ggml_init((struct ggml_init_params){ (size_t) (n + 2) * ggml_tensor_overhead() + ggml_graph_overhead_custom(n + 1, false), NULL, true });
    struct ggml_tensor *  t   = ggml_new_tensor_1d(big, GGML_TYPE_F32, 1);
    for (int i = 0; i < n; i++) {
        t = ggml_neg(big, t);
    }
    struct ggml_cgraph * g = ggml_new_graph_custom(big, n + 1, false);
    ggml_build_forward_expand(g, t);
    CHECK(ggml_graph_n_nodes(g) == n && ggml_graph_node(g, -1) == t, "a chain of %d nodes", n);
    ggml_free(big);
}

static void select_and_order(void) {
    struct ggml_tensor * a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * t[3] = { ggml_sqr(ctx, a), ggml_sqrt(ctx, a), ggml_neg(ctx, a) };
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
    CHECK(ggml_build_forward_select(g, t, 3, 1) == t[1] && ggml_graph_n_nodes(g) == 3, "select adds all");
    CHECK((t[1]->flags & GGML_TENSOR_FLAG_COMPUTE) && !(t[0]->flags & GGML_TENSOR_FLAG_COMPUTE), "select computes one");
    CHECK(ggml_build_forward_select(g, t, 3, 3) == NULL && ggml_build_forward_select(g, t, 3, -1) == NULL, "select out of range");
    CHECK(ggml_build_forward_select(g, NULL, 3, 0) == NULL && ggml_build_forward_select(g, t, -1, 0) == NULL, "select of nothing");
    struct ggml_tensor * o = ggml_exp(ctx, a);
    ggml_build_forward_order(g, o);
    CHECK(ggml_graph_node(g, -1) == o && !(o->flags & GGML_TENSOR_FLAG_COMPUTE), "order alone");
}

static void cycle(void) {
    /* a graph that the caller tied into a ring: no endless loop */
    struct ggml_tensor * a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * b = ggml_sqr(ctx, a);
    struct ggml_tensor * c = ggml_sqr(ctx, b);
    b->src[0]              = c;
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
    ggml_build_forward_expand(g, c);
    CHECK(ggml_graph_n_nodes(g) <= 16, "a ring ends");
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    order();
    add_node();
    room();
    select_and_order();
    deep();
    cycle();
    ggml_graph_print(ggml_new_graph_custom(ctx, 4, false));
    ggml_free(ctx);
    return check_done();
}
