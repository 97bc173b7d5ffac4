/* ggml-graph.h and graphs that a program put together itself, by the layout of the private header: views, borrowed sets, none at all. */
#include "graph_public.h"
#include "ggml/src/ggml-impl.h"

static struct model m;

/* A view as stable-diffusion.cpp makes one. */
static struct ggml_cgraph part(struct ggml_cgraph * g, int from, int to) {
    struct ggml_cgraph view = {
        0, to - from, 0, g->nodes + from, NULL, NULL, NULL, g->use_counts, g->visited_hash_set, g->order, 0,
    };
    return view;
}

static bool unchanged(const struct ggml_cgraph * g, const struct ggml_cgraph * was, const uint8_t * bits, const int32_t * counts) {
    const struct ggml_hash_set * set = &g->visited_hash_set;
    bool same = g->size == was->size && g->n_nodes == was->n_nodes && g->n_leafs == was->n_leafs && g->order == was->order && g->uid == was->uid &&
                memcmp(set->used, bits, set->size / 8) == 0;
    for (size_t i = 0; same && i < set->size; i++) {
        same = !ggml_bitset_get(set->used, i) || g->use_counts[i] == counts[i];
    }
    return same;
}

static void views(struct ggml_context * ctx) {
    const int          n    = ggml_graph_n_nodes(m.graph);
    const int          at   = model_index(&m, m.shared), to = model_index(&m, m.first) + 1;
    struct ggml_cgraph view = part(m.graph, at, to), bare = { .n_nodes = to - at, .nodes = m.graph->nodes + at };
    CHECK(ggml_graph_n_leafs(&view) == 0 && !ggml_graph_leaf(&view, 0), "GRA-1: a view has no leafs");
    CHECK_ERROR(CHECK(!ggml_graph_append_leaf(&view, m.x), "GRA-1: a view takes no leaf"), GGML_EXT_CODE_OUT_OF_MEMORY, "GRA-1: append to a view", "'x'");
    CHECK(!ggml_graph_append_leaf(&bare, m.x) && bare.n_leafs == 0, "GRA-1: a graph of nodes alone takes no leaf");
    CHECK(ggml_graph_use_count(&view, m.shared) == 2, "GRA-1: a view counts consumers outside it");
    CHECK(ggml_graph_use_count(&bare, m.shared) == -1, "GRA-1: a graph without counts has no record");

    /* a mapped copy of a view */
    struct ggml_tensor * from[MAX], * to_list[MAX], * miss = m.x;
    int                  n_pairs = 0;
    for (int i = 0; i < n; i++) {
        from[n_pairs]      = ggml_graph_node(m.graph, i);
        to_list[n_pairs++] = ggml_dup_tensor(ctx, ggml_graph_node(m.graph, i));
    }
    struct ggml_cgraph * copy = ggml_new_graph_custom(ctx, (size_t) n, false);
    CHECK(ggml_graph_copy_mapped(&view, copy, from, to_list, n_pairs, &miss) && !miss, "GRA-2: a mapped copy of a view");
    CHECK(copy->n_nodes == to - at && copy->n_leafs == 0 && copy->nodes[0] == to_list[at] && copy->size == n, "GRA-2: of a view: its nodes");
    CHECK(ggml_graph_use_count(copy, to_list[at]) == 2, "GRA-2: of a view: consumers outside it count");
    CHECK(ggml_graph_use_count(copy, m.shared->src[1] == from[at - 1] ? to_list[at - 1] : NULL) == 1, "GRA-2: of a view: what it reads has its count");
    CHECK(ggml_graph_copy_mapped(&bare, copy, from, to_list, n_pairs, NULL) && copy->n_nodes == to - at, "GRA-2: of nodes alone");
    CHECK(ggml_graph_use_count(copy, to_list[at]) == -1, "GRA-2: of nodes alone: no counts to keep");
    CHECK(ggml_graph_copy_mapped(&view, copy, from + at, to_list + at, to - at, NULL), "GRA-2: of a view: only its nodes need partners");

    /* refused: the destination is as before, to the bit */
    const struct ggml_cgraph was    = *copy;
    const size_t             slots  = copy->visited_hash_set.size;
    uint8_t *                bits   = malloc(slots / 8);
    int32_t *                counts = malloc(slots * sizeof *counts);
    memcpy(bits, copy->visited_hash_set.used, slots / 8);
    memcpy(counts, copy->use_counts, slots * sizeof *counts);
    CHECK(!ggml_graph_copy_mapped(m.graph, copy, from, to_list, n_pairs, &miss) && miss == ggml_graph_leaf(m.graph, 0), "GRA-2: a leaf is missing");
    CHECK(unchanged(copy, &was, bits, counts), "GRA-2: refused: the destination has the same bits");
    CHECK(!ggml_graph_copy_mapped(&view, copy, from, to_list, at + 1, &miss) && miss == from[at + 1], "GRA-2: of a view: a node is missing");
    CHECK(unchanged(copy, &was, bits, counts), "GRA-2: refused again: the same bits");
    free(bits);
    free(counts);

    /* destinations that are none */
    CHECK_ERROR(ggml_graph_copy_mapped(m.graph, &view, from, to_list, n_pairs, NULL), GGML_EXT_CODE_NONE, "GRA-2: onto a view", "ggml_graph_copy_mapped");
    struct ggml_cgraph view2 = part(copy, 0, 2);
    CHECK(!ggml_graph_copy_mapped(&view, &view2, from, to_list, n_pairs, NULL) && view2.n_nodes == 2, "GRA-2: onto a view of another graph");
    struct ggml_cgraph alias = *m.graph;
    CHECK(!ggml_graph_copy_mapped(&view, &alias, from, to_list, n_pairs, NULL) && ggml_graph_use_count(m.graph, m.shared) == 2, "GRA-2: onto a graph with the source's set");

    /* counts */
    struct ggml_cgraph made = { .size = 8, .n_nodes = 1, .nodes = m.graph->nodes + at };
    CHECK_ERROR(ggml_graph_copy_use_counts(m.graph, &made), GGML_EXT_CODE_BAD_ARGUMENT, "GRA-3: counts for a graph without a set", "ggml_graph_copy_use_counts");
    CHECK(!ggml_graph_copy_use_counts(&made, copy), "GRA-3: counts of a graph without a set");
    CHECK(ggml_graph_copy_use_counts(m.graph, &view), "GRA-3: a view of the original has its counts");
    CHECK(!ggml_graph_copy_use_counts(copy, &view), "GRA-3: a view of another has none of its own");
    struct ggml_cgraph * s = ggml_new_graph_custom(ctx, 8, false);
    ggml_graph_add_node(s, m.shared);
    CHECK(ggml_graph_copy_use_counts(&view, s) && ggml_graph_use_count(s, m.shared) == 2, "GRA-3: counts of a view are those of the whole");
}

static void broken(void) {
    struct ggml_cgraph none = { 0 };
    CHECK(ggml_graph_n_leafs(&none) == 0 && !ggml_graph_leaf(&none, 0) && !ggml_graph_append_leaf(&none, m.x), "GRA-1: an empty structure");
    CHECK(ggml_backend_graph_compute_range(m.cpu, &none, 0, 0) == GGML_STATUS_SUCCESS, "GRA-3: the empty range of an empty structure");
    CHECK(ggml_backend_graph_compute_range(m.cpu, &none, 0, 1) == GGML_STATUS_FAILED, "GRA-3: a node of an empty structure");
    struct ggml_cgraph lies = { .size = 9, .n_nodes = 3, .n_leafs = 3 };
    CHECK(ggml_graph_n_leafs(&lies) == 0 && !ggml_graph_leaf(&lies, 1) && !ggml_graph_append_leaf(&lies, m.x), "GRA-1: leafs in no list");
    CHECK(ggml_backend_graph_compute_range(m.cpu, &lies, 1, 2) == GGML_STATUS_FAILED, "GRA-3: nodes in no list");
    CHECK(!ggml_graph_copy_use_counts(m.graph, &lies), "GRA-3: counts for nodes in no list");
    struct ggml_tensor * x[1] = { m.x }, * miss = NULL;
    CHECK(!ggml_graph_copy_mapped(&lies, m.graph, x, x, 1, &miss) && !miss, "GRA-2: nodes in no list");
    lies.n_nodes = lies.n_leafs = -1;
    CHECK(ggml_graph_n_leafs(&lies) == 0 && !ggml_graph_append_leaf(&lies, m.x), "GRA-1: less than no leafs");
    CHECK(ggml_backend_graph_compute_range(m.cpu, &lies, -1, -1) == GGML_STATUS_FAILED, "GRA-3: less than no nodes");
    struct ggml_tensor * gap[2] = { m.shared, NULL };
    struct ggml_cgraph   holes  = { .size = 2, .n_nodes = 2, .n_leafs = 2, .nodes = gap, .leafs = gap };
    CHECK(ggml_graph_leaf(&holes, 0) == m.shared && !ggml_graph_leaf(&holes, 1), "GRA-1: a leaf is NULL");
    CHECK(ggml_backend_graph_compute_range(m.cpu, &holes, 1, 2) == GGML_STATUS_FAILED, "GRA-3: a node is NULL");
    CHECK(!ggml_graph_copy_use_counts(m.graph, &holes), "GRA-3: counts for a node that is NULL");
}

/* Ranges of graphs by hand: with the counts of the original, and with none. */
static void ranges(void) {
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(m.cpu));
    uint8_t *      want   = plain_run(&m);
    CHECK(ggml_gallocr_alloc_graph(galloc, m.graph), "GRA-3: allocated");
    const int          n        = ggml_graph_n_nodes(m.graph);
    struct ggml_cgraph kinds[2] = { part(m.graph, 0, n), { .n_nodes = n, .nodes = m.graph->nodes } };
    for (int k = 0; k < 2; k++) {
        fill(m.x, 99);
        ggml_backend_tensor_memset(m.out, 0xEE, 0, ggml_nbytes(m.out));
        bool ok = true;
        for (int i = 0; i < n; i += 5) {
            ok &= ggml_backend_graph_compute_range(m.cpu, &kinds[k], i, i + 5 < n ? i + 5 : n) == GGML_STATUS_SUCCESS;
        }
        CHECK(ok && has_bytes(m.out, want), "GRA-3: ranges of a graph made by hand, %s", k ? "nodes alone" : "borrowed counts");
    }
    ggml_gallocr_free(galloc);
    forget(&m);
    free(want);
}

int main(void) {
    check_quiet();
    m                         = model_new();
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    views(ctx);
    broken();
    ranges();
    ggml_free(ctx);
    model_free(&m);
    return check_done();
}
