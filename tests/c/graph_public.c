/* GRA-1 to GRA-4: with ggml-graph.h a program measures a graph, cuts it into segments and watches it run without any private header.
 * Results are compared bit for bit with one run of the whole graph. */
#include "graph_public.h"

#ifdef GGML_IMPL_H
#    error "public headers only"
#endif

static struct model m;
static uint8_t *    want; /* the plain result */

/* A mapping of everything that a graph reaches, as a program makes one. */
struct mapping {
    struct ggml_context * ctx;
    struct ggml_tensor *  from[MAX];
    struct ggml_tensor *  to[MAX];
    int                   n;
};

static struct ggml_tensor * partner(const struct mapping * map, const struct ggml_tensor * t) {
    for (int i = 0; i < map->n; i++) {
        if (map->from[i] == t) {
            return map->to[i];
        }
    }
    return NULL;
}

static void reach(struct mapping * map, struct ggml_tensor * t) {
    if (!t || partner(map, t)) {
        return;
    }
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        reach(map, t->src[i]);
    }
    reach(map, t->view_src);
    struct ggml_tensor * copy = ggml_dup_tensor(map->ctx, t);
    *copy                     = *t;
    if (!is_weight(&m, t)) {
        copy->data   = NULL;
        copy->buffer = NULL;
    }
    map->from[map->n] = t;
    map->to[map->n++] = copy;
}

static struct mapping mapping_of(struct ggml_cgraph * g) {
    struct mapping map = { .ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true }) };
    for (int i = 0; i < ggml_graph_n_leafs(g); i++) {
        reach(&map, ggml_graph_leaf(g, i));
    }
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        reach(&map, ggml_graph_node(g, i));
    }
    for (int i = 0; i < map.n; i++) {
        struct ggml_tensor * t = map.to[i];
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            t->src[k] = partner(&map, t->src[k]);
        }
        t->view_src = partner(&map, t->view_src);
    }
    return map;
}

/* All members alike; padding may be anything. */
static bool same_tensor(const struct ggml_tensor * a, const struct ggml_tensor * b) {
#define SAME(member) (memcmp(&a->member, &b->member, sizeof a->member) == 0)
    return SAME(type) && SAME(buffer) && SAME(ne) && SAME(nb) && SAME(op) && SAME(op_params) && SAME(flags) && SAME(src) && SAME(view_src) &&
           SAME(view_offs) && SAME(data) && SAME(name) && SAME(extra);
#undef SAME
}

static void leafs(void) {
    struct ggml_cgraph * g = m.graph;
    const int            n = ggml_graph_n_leafs(g);
    CHECK(n == 8, "GRA-1: leafs: %d", n);
    bool known = true, has_x = false;
    for (int i = 0; i < n; i++) {
        struct ggml_tensor * t = ggml_graph_leaf(g, i);
        has_x |= t == m.x;
        known &= t && t->op == GGML_OP_NONE && (t == m.x || is_weight(&m, t)) && ggml_graph_leaf(g, i - n) == t;
    }
    CHECK(known && has_x, "GRA-1: each leaf, from both ends");
    check_log_errors = 0;
    CHECK(!ggml_graph_leaf(g, n) && !ggml_graph_leaf(g, -n - 1) && !ggml_graph_leaf(g, INT32_MIN) && !ggml_graph_leaf(g, INT32_MAX), "GRA-1: no such leaf");
    CHECK(check_log_errors == 4, "GRA-1: no such leaf: each is an error");
    CHECK_ERROR(ggml_graph_n_leafs(NULL), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: leafs of NULL", "ggml_graph_n_leafs");
    CHECK_ERROR(ggml_graph_leaf(NULL, 0), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: leaf of NULL", "ggml_graph_leaf");

    struct ggml_cgraph * s = ggml_new_graph_custom(m.ctx, 2, false);
    CHECK(ggml_graph_append_leaf(s, m.out) && ggml_graph_append_leaf(s, m.out), "GRA-1: append: as it stands, again too");
    CHECK(ggml_graph_n_leafs(s) == 2 && ggml_graph_leaf(s, 1) == m.out && ggml_graph_n_nodes(s) == 0, "GRA-1: append: no traversal");
    CHECK(ggml_graph_use_count(s, m.out) == -1, "GRA-1: append: no record");
    bool done = true;
    CHECK_ERROR(done = ggml_graph_append_leaf(s, m.x), GGML_EXT_CODE_OUT_OF_MEMORY, "GRA-1: append: full", "ggml_graph_append_leaf", "'x'", "2 leafs");
    CHECK(!done && ggml_graph_n_leafs(s) == 2 && ggml_graph_leaf(s, -1) == m.out, "GRA-1: append: a full graph is as before");
    CHECK(ggml_backend_graph_compute(m.cpu, s) == GGML_STATUS_SUCCESS, "GRA-1: append: a refusal does not spoil the graph");
    CHECK_ERROR(done = ggml_graph_append_leaf(s, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: append NULL", "ggml_graph_append_leaf");
    CHECK_ERROR(done = ggml_graph_append_leaf(NULL, m.x), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: append to NULL", "ggml_graph_append_leaf");
    ggml_graph_clear(s);
    CHECK(ggml_graph_n_leafs(s) == 0 && !ggml_graph_leaf(s, -1), "GRA-1: an empty graph");

    CHECK(ggml_graph_use_count(g, m.alone) == 1 && ggml_graph_use_count(g, m.shared) == 2 && ggml_graph_use_count(g, m.out) == 0, "GRA-1: recorded use counts");
    CHECK(ggml_graph_use_count(g, m.x) == 1, "GRA-1: recorded use count of a leaf");
    struct ggml_tensor * other = ggml_sqr(m.ctx, m.x);
    CHECK(ggml_graph_use_count(g, other) == -1, "GRA-1: no record of a foreign tensor");
    CHECK_ERROR(CHECK(ggml_graph_use_count(g, NULL) == -1, "GRA-1: use count of NULL"), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: use count of NULL", "ggml_graph_use_count");
    CHECK_ERROR(CHECK(ggml_graph_use_count(NULL, m.x) == -1, "GRA-1: use count in NULL"), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-1: use count in NULL", "ggml_graph_use_count");
}

static void mapped(void) {
    struct ggml_cgraph *     g    = m.graph;
    const int                n    = ggml_graph_n_nodes(g);
    struct mapping           map  = mapping_of(g);
    struct ggml_tensor *     was  = malloc((size_t) map.n * sizeof *was);
    struct ggml_cgraph *     copy = ggml_new_graph_custom(map.ctx, (size_t) n, false);
    struct ggml_tensor *     miss = m.x;
    for (int i = 0; i < map.n; i++) {
        was[i] = *map.from[i];
    }
    CHECK(ggml_graph_copy_mapped(g, copy, map.from, map.to, map.n, &miss) && miss == NULL, "GRA-2: mapped copy of %d tensors", map.n);
    bool same = ggml_graph_n_nodes(copy) == n && ggml_graph_n_leafs(copy) == ggml_graph_n_leafs(g);
    for (int i = 0; same && i < n; i++) {
        same = ggml_graph_node(copy, i) == partner(&map, ggml_graph_node(g, i));
    }
    for (int i = 0; same && i < ggml_graph_n_leafs(g); i++) {
        same = ggml_graph_leaf(copy, i) == partner(&map, ggml_graph_leaf(g, i));
    }
    CHECK(same, "GRA-2: nodes and leafs in the order of the original");
    for (int i = 0; i < map.n; i++) {
        same &= ggml_graph_use_count(copy, map.to[i]) == ggml_graph_use_count(g, map.from[i]);
        same &= ggml_graph_use_count(copy, map.from[i]) == -1;
    }
    CHECK(same, "GRA-2: consumer counts of the original");

    /* measuring */
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(m.cpu);
    ggml_gallocr_t measure = ggml_gallocr_new(buft), real = ggml_gallocr_new(buft), run = ggml_gallocr_new(buft);
    size_t         size = 0, sched_size = 0;
    ggml_gallocr_reserve_n_size(measure, copy, NULL, NULL, &size);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&m.cpu, &buft, 1, MAX, false, false);
    ggml_backend_sched_reserve_size(sched, copy, &sched_size);
    ggml_backend_sched_free(sched);
    same = true;
    for (int i = 0; i < map.n; i++) {
        same &= same_tensor(&was[i], map.from[i]);
    }
    CHECK(same, "GRA-4: measuring leaves the tensors of the original alone");
    CHECK(ggml_gallocr_alloc_graph(real, g) && size > 0 && ggml_gallocr_get_buffer_size(real, 0) == size, "GRA-4: measured %zu bytes, what the graph takes", size);
    CHECK(sched_size == size, "GRA-4: measured by the scheduler: %zu bytes", sched_size);
    forget(&m);
    ggml_gallocr_free(real);

    /* and running */
    CHECK(ggml_gallocr_alloc_graph(run, copy), "GRA-2: the copy gets storage of its own");
    fill(partner(&map, m.x), 99);
    CHECK(ggml_backend_graph_compute(m.cpu, copy) == GGML_STATUS_SUCCESS, "GRA-2: the copy runs");
    CHECK(has_bytes(partner(&map, m.out), want) && m.out->data == NULL, "GRA-2: bits of the plain run");
    ggml_gallocr_free(run);
    ggml_gallocr_free(measure);
    free(was);
    ggml_free(map.ctx);
}

struct state {
    int nodes, leafs, count;
    struct ggml_tensor * node, * leaf;
};

static struct state state_of(struct ggml_cgraph * g) {
    struct state s = { ggml_graph_n_nodes(g), ggml_graph_n_leafs(g), ggml_graph_use_count(g, m.shared), ggml_graph_node(g, 0), ggml_graph_leaf(g, 0) };
    return s;
}

static bool as_before(struct ggml_cgraph * g, const struct state * was) {
    const struct state is = state_of(g);
    return is.nodes == was->nodes && is.leafs == was->leafs && is.count == was->count && is.node == was->node && is.leaf == was->leaf;
}

#define REFUSED(dst, from, to, n, code, tensor, name, ...)                                                         \
    do {                                                                                                           \
        struct ggml_tensor * miss = m.x;                                                                           \
        bool                 done = true;                                                                          \
        CHECK_ERROR(done = ggml_graph_copy_mapped(m.graph, dst, from, to, n, &miss), code, name, __VA_ARGS__);     \
        CHECK(!done && miss == (tensor), name ": names the tensor");                                               \
        CHECK(as_before(dst, &was), name ": the destination is as before");                                        \
    } while (0)

static void bad_mappings(void) {
    const char *         call = "ggml_graph_copy_mapped";
    struct mapping       map  = mapping_of(m.graph), bad = map;
    struct ggml_cgraph * dst  = ggml_new_graph_custom(map.ctx, MAX, false);
    ggml_build_forward_expand(dst, m.first); /* it holds something */
    struct state was = state_of(dst);
    int          leaf = -1, node = -1;
    for (int i = 0; i < map.n; i++) {
        leaf = map.from[i] == m.x ? i : leaf;
        node = map.from[i] == m.out ? i : node;
    }
    bad.from[node] = bad.to[node] = map.to[leaf == 0 ? 1 : 0]; /* foreign to the graph */
    bad.to[leaf == 0 ? 1 : 0] = map.to[node];
    REFUSED(dst, bad.from, bad.to, map.n, GGML_EXT_CODE_BAD_ARGUMENT, m.out, "GRA-2: a node without partner", call, "'out'", "no partner");
    bad            = map;
    bad.from[leaf] = bad.from[map.n - 1];
    bad.to[leaf]   = bad.to[map.n - 1];
    REFUSED(dst, bad.from, bad.to, map.n - 1, GGML_EXT_CODE_BAD_ARGUMENT, m.x, "GRA-2: a leaf without partner", call, "leaf 'x'");
    bad          = map;
    bad.to[node] = map.to[leaf];
    REFUSED(dst, bad.from, bad.to, map.n, GGML_EXT_CODE_BAD_ARGUMENT, map.from[leaf > node ? leaf : node], "GRA-2: one copy for two", call, "another tensor");
    bad                = map;
    bad.from[bad.n]    = m.x;
    bad.to[bad.n]      = m.x;
    REFUSED(dst, bad.from, bad.to, map.n + 1, GGML_EXT_CODE_BAD_ARGUMENT, m.x, "GRA-2: two copies of one", call, "an earlier pair");
    bad          = map;
    bad.to[node] = NULL;
    REFUSED(dst, bad.from, bad.to, map.n, GGML_EXT_CODE_NULL_ARGUMENT, m.out, "GRA-2: a copy is NULL", call, "'out'");
    bad            = map;
    bad.from[node] = NULL;
    REFUSED(dst, bad.from, bad.to, map.n, GGML_EXT_CODE_NULL_ARGUMENT, NULL, "GRA-2: an original is NULL", call, "NULL");
    REFUSED(dst, NULL, map.to, map.n, GGML_EXT_CODE_NULL_ARGUMENT, NULL, "GRA-2: no list of originals", call, "originals");
    REFUSED(dst, map.from, NULL, map.n, GGML_EXT_CODE_NULL_ARGUMENT, NULL, "GRA-2: no list of copies", call, "copies");
    REFUSED(dst, map.from, map.to, -1, GGML_EXT_CODE_BAD_ARGUMENT, NULL, "GRA-2: -1 pairs", call);
    REFUSED(dst, NULL, NULL, 0, GGML_EXT_CODE_BAD_ARGUMENT, ggml_graph_node(m.graph, 0), "GRA-2: no pairs", call, "no partner");
    dst = ggml_new_graph_custom(map.ctx, (size_t) ggml_graph_n_nodes(m.graph) - 1, false);
    ggml_build_forward_expand(dst, ggml_graph_node(m.graph, 0));
    was = state_of(dst);
    REFUSED(dst, map.from, map.to, map.n, GGML_EXT_CODE_OUT_OF_MEMORY, NULL, "GRA-2: no room", call, "room");

    bool done = true;
    CHECK_ERROR(done = ggml_graph_copy_mapped(NULL, dst, map.from, map.to, map.n, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-2: no source", call, "source");
    CHECK(!done && as_before(dst, &was), "GRA-2: no source: the destination is as before");
    CHECK_ERROR(done = ggml_graph_copy_mapped(m.graph, NULL, map.from, map.to, map.n, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-2: no destination", call, "destination");
    was = state_of(m.graph);
    CHECK_ERROR(done = ggml_graph_copy_mapped(m.graph, m.graph, map.from, map.to, map.n, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "GRA-2: onto itself", call);
    CHECK(!done && as_before(m.graph, &was), "GRA-2: onto itself: it is as before");
    ggml_free(map.ctx);
}

/* Runs the graph from `from` to the end in the order of the ranges; the input is set first. */
static bool in_ranges(const int * cuts, int n_cuts, bool async) {
    fill(m.x, 99);
    ggml_backend_tensor_memset(m.out, 0xEE, 0, ggml_nbytes(m.out));
    bool ok   = true;
    int  from = 0;
    for (int i = 0; i <= n_cuts; i++) {
        const int to = i < n_cuts ? cuts[i] : ggml_graph_n_nodes(m.graph);
        ok &= (async ? ggml_backend_graph_compute_range_async : ggml_backend_graph_compute_range)(m.cpu, m.graph, from, to) == GGML_STATUS_SUCCESS;
        from = to;
    }
    ggml_backend_synchronize(m.cpu);
    return ok && has_bytes(m.out, want);
}

static void ranges(void) {
    const int      n      = ggml_graph_n_nodes(m.graph);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(m.cpu));
    CHECK(ggml_gallocr_alloc_graph(galloc, m.graph), "GRA-3: ranges: allocated once");
    CHECK(in_ranges(NULL, 0, false), "GRA-3: all nodes as one range");
    bool ok = true;
    int  each[MAX];
    for (int i = 0; i <= n; i++) {
        each[i] = i;
        ok &= CHECK(in_ranges(&i, 1, i % 2), "GRA-3: two ranges, cut at node %d", i);
    }
    CHECK(in_ranges(each, n, false) && in_ranges(each, n, true), "GRA-3: node by node");
    const int thirds[] = { n / 3, n / 3, n * 2 / 3 };
    CHECK(in_ranges(thirds, 3, true), "GRA-3: an empty range between others");

    const char * call = "ggml_backend_graph_compute_range";
    const int    bad[][2] = { { -1, 2 }, { 2, 1 }, { 0, n + 1 }, { n + 1, n + 1 }, { INT32_MIN, INT32_MAX }, { 0, -1 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum ggml_status status = GGML_STATUS_SUCCESS;
        ggml_backend_tensor_memset(m.out, 0xEE, 0, ggml_nbytes(m.out));
        CHECK_ERROR(status = ggml_backend_graph_compute_range(m.cpu, m.graph, bad[i][0], bad[i][1]), GGML_EXT_CODE_BAD_ARGUMENT, "GRA-3: no such range", call);
        CHECK(status == GGML_STATUS_FAILED && ((uint8_t *) m.out->data)[0] == 0xEE, "GRA-3: nodes %d to %d: nothing runs", bad[i][0], bad[i][1]);
        CHECK(ggml_backend_graph_compute_range_async(m.cpu, m.graph, bad[i][0], bad[i][1]) == GGML_STATUS_FAILED, "GRA-3: nodes %d to %d, async", bad[i][0], bad[i][1]);
    }
    CHECK_ERROR(ggml_backend_graph_compute_range(NULL, m.graph, 0, 1), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-3: no backend", call);
    CHECK_ERROR(ggml_backend_graph_compute_range(m.cpu, NULL, 0, 1), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-3: no graph", call);
    ggml_gallocr_free(galloc);
    forget(&m);
    enum ggml_status status = GGML_STATUS_SUCCESS;
    CHECK_ERROR(status = ggml_backend_graph_compute_range(m.cpu, m.graph, 0, 1), GGML_EXT_CODE_NONE, "GRA-3: tensors without storage", "memory");
    CHECK(status == GGML_STATUS_FAILED, "GRA-3: tensors without storage: a status");
}

/* Each tensor has storage of its own, so what a fused kernel leaves out can be seen. */
static void fusion(void) {
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(m.ctx, m.cpu);
    const int             n      = ggml_graph_n_nodes(m.graph);
    int                   each[MAX];
    for (int i = 0; i < n; i++) {
        each[i] = i;
    }
#define FRESH(t) ggml_backend_tensor_memset(t, 0xA5, 0, ggml_nbytes(t))
    FRESH(m.alone);
    CHECK(in_ranges(each, n, false), "GRA-3: fusion: node by node");
    uint8_t * patches = bytes(m.alone), * two = bytes(m.shared);
    FRESH(m.alone);
    FRESH(m.shared);
    CHECK(in_ranges(NULL, 0, false), "GRA-3: fusion: the whole");
    uint8_t * fused = bytes(m.alone);
    CHECK(memcmp(fused, patches, ggml_nbytes(m.alone)) != 0, "GRA-3: fusion: patches with one reader are not written");
    CHECK(has_bytes(m.shared, two), "GRA-3: fusion: patches with two readers are");

    /* the first convolution in a range */
    int last = model_index(&m, m.alone);
    while (ggml_graph_node(m.graph, last)->op != GGML_OP_UNARY) {
        last++;
    }
    FRESH(m.alone);
    CHECK(ggml_backend_graph_compute_range(m.cpu, m.graph, 0, last) == GGML_STATUS_SUCCESS && has_bytes(m.alone, fused), "GRA-3: fusion: a range fuses what the whole fuses");
    /* the second reader lies outside the range */
    FRESH(m.shared);
    CHECK(ggml_backend_graph_compute_range(m.cpu, m.graph, 0, model_index(&m, m.first) + 1) == GGML_STATUS_SUCCESS && has_bytes(m.shared, two), "GRA-3: fusion: a range keeps what is read outside it");

    /* the same as a segment */
    struct ggml_cgraph * s = ggml_new_graph_custom(m.ctx, MAX, false);
    for (int i = 0; i < last; i++) {
        ggml_graph_add_node(s, ggml_graph_node(m.graph, i));
    }
    FRESH(m.alone);
    CHECK(ggml_backend_graph_compute(m.cpu, s) == GGML_STATUS_SUCCESS && has_bytes(m.alone, patches), "GRA-3: fusion: a segment without counts fuses nothing");
    CHECK(ggml_graph_copy_use_counts(m.graph, s) && ggml_graph_use_count(s, m.alone) == 1, "GRA-3: counts for a segment");
    FRESH(m.alone);
    CHECK(ggml_backend_graph_compute(m.cpu, s) == GGML_STATUS_SUCCESS && has_bytes(m.alone, fused), "GRA-3: fusion: with counts it fuses what the whole fuses");
    /* a segment that counted for itself does not see the second reader */
    struct ggml_cgraph * own = ggml_new_graph_custom(m.ctx, MAX, false);
    ggml_build_forward_expand(own, m.first);
    CHECK(ggml_graph_use_count(own, m.shared) == 1, "GRA-3: counts of its own: one reader");
    FRESH(m.shared);
    CHECK(ggml_backend_graph_compute(m.cpu, own) == GGML_STATUS_SUCCESS && !has_bytes(m.shared, two), "GRA-3: fusion: by counts of its own the patches are lost");
    CHECK(ggml_graph_copy_use_counts(m.graph, own) && ggml_graph_use_count(own, m.shared) == 2, "GRA-3: counts of the original in their place");
    FRESH(m.shared);
    CHECK(ggml_backend_graph_compute(m.cpu, own) == GGML_STATUS_SUCCESS && has_bytes(m.shared, two), "GRA-3: fusion: by the counts of the original they are kept");
#undef FRESH
    free(patches);
    free(fused);
    free(two);
    ggml_backend_buffer_free(buffer);
    forget(&m);
}

static void bad_counts(void) {
    const char *         call = "ggml_graph_copy_use_counts";
    struct ggml_cgraph * s    = ggml_new_graph_custom(m.ctx, 4, false);
    struct ggml_tensor * mine = ggml_set_name(ggml_sqr(m.ctx, m.shared), "mine");
    bool                 done = true;
    ggml_graph_add_node(s, m.shared);
    ggml_graph_add_node(s, mine);
    ggml_graph_append_leaf(s, mine);
    CHECK_ERROR(done = ggml_graph_copy_use_counts(m.graph, s), GGML_EXT_CODE_BAD_ARGUMENT, "GRA-3: a foreign node", call, "'mine'");
    CHECK(!done && ggml_graph_use_count(s, m.shared) == -1 && ggml_graph_use_count(s, mine) == -1, "GRA-3: a foreign node: no counts");
    ggml_graph_clear(s);
    ggml_graph_add_node(s, m.shared);
    ggml_graph_append_leaf(s, mine);
    CHECK(ggml_graph_copy_use_counts(m.graph, s) && ggml_graph_use_count(s, m.shared) == 2 && ggml_graph_use_count(s, mine) == -1, "GRA-3: a foreign leaf has no count");
    CHECK_ERROR(done = ggml_graph_copy_use_counts(NULL, s), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-3: counts of NULL", call, "original");
    CHECK_ERROR(done = ggml_graph_copy_use_counts(m.graph, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "GRA-3: counts for NULL", call, "segment");
    CHECK(ggml_graph_copy_use_counts(s, s), "GRA-3: a graph has its own counts");
}

/* A graph in segments, each with an allocator of its own; what a later one reads is carried over in a buffer. */
struct carried {
    struct ggml_tensor * t;
    uint8_t *            data;
};

static struct ggml_tensor * root(struct ggml_tensor * t) { return t->view_src ? t->view_src : t; }

/* Whether a node at or behind `from` reads `t` or a view of it. */
static bool read_from(const struct ggml_tensor * t, int from) {
    for (int i = from; i < ggml_graph_n_nodes(m.graph); i++) {
        const struct ggml_tensor * node = ggml_graph_node(m.graph, i);
        for (int k = 0; k < GGML_MAX_SRC; k++) {
            if (node->src[k] && root(node->src[k]) == t) {
                return true;
            }
        }
    }
    return false;
}

static bool is_in(struct ggml_cgraph * g, const struct ggml_tensor * t) {
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        if (ggml_graph_node(g, i) == t) {
            return true;
        }
    }
    for (int i = 0; i < ggml_graph_n_leafs(g); i++) {
        if (ggml_graph_leaf(g, i) == t) {
            return true;
        }
    }
    return false;
}

static bool segment(int from, int to, struct ggml_tallocr * carry) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    struct ggml_cgraph *  s   = ggml_new_graph_custom(ctx, MAX, false);
    struct carried        keep[MAX];
    int                   n_keep = 0;
    bool                  ok     = true;
    for (int i = from; i < to; i++) {
        ggml_graph_add_node(s, ggml_graph_node(m.graph, i));
    }
    for (int i = from; i < to; i++) {
        struct ggml_tensor * t = ggml_graph_node(m.graph, i);
        for (int k = -1; k < GGML_MAX_SRC; k++) {
            struct ggml_tensor * src = k < 0 ? t->view_src : t->src[k];
            for (; src; src = src->view_src) {
                ok &= is_in(s, src) || ggml_graph_append_leaf(s, src);
            }
        }
        if (!t->view_src && to < ggml_graph_n_nodes(m.graph) && read_from(t, to)) {
            t->flags |= GGML_TENSOR_FLAG_OUTPUT;
            keep[n_keep++].t = t;
        }
    }
    ok &= ggml_graph_copy_use_counts(m.graph, s);
    for (int i = from; i < to; i++) {
        ok &= ggml_graph_use_count(s, ggml_graph_node(s, i - from)) == ggml_graph_use_count(m.graph, ggml_graph_node(m.graph, i));
    }
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(m.cpu));
    ok &= ggml_gallocr_alloc_graph(galloc, s);
    ok &= ggml_backend_graph_compute(m.cpu, s) == GGML_STATUS_SUCCESS;
    if (to == ggml_graph_n_nodes(m.graph)) {
        ok &= has_bytes(m.out, want);
    }
    for (int i = 0; i < n_keep; i++) {
        keep[i].data = bytes(keep[i].t);
    }
    for (int i = from; i < to; i++) {
        ggml_graph_node(m.graph, i)->data   = NULL;
        ggml_graph_node(m.graph, i)->buffer = NULL;
    }
    ggml_gallocr_free(galloc);
    for (int i = 0; i < n_keep; i++) {
        ok &= ggml_tallocr_alloc(carry, keep[i].t) == GGML_STATUS_SUCCESS;
        ggml_backend_tensor_set(keep[i].t, keep[i].data, 0, ggml_nbytes(keep[i].t));
        free(keep[i].data);
        keep[i].t->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
    }
    for (int i = from; i < to; i++) {
        struct ggml_tensor * t = ggml_graph_node(m.graph, i);
        if (t->view_src && t->view_src->data) {
            ok &= ggml_backend_view_init(t) == GGML_STATUS_SUCCESS;
        }
    }
    ggml_free(ctx);
    return ok;
}

static bool in_segments(const int * cuts, int n_cuts) {
    ggml_backend_buffer_t buffer = ggml_backend_alloc_buffer(m.cpu, 1 << 20);
    struct ggml_tallocr   carry  = ggml_tallocr_new(buffer);
    bool                  ok     = ggml_tallocr_alloc(&carry, m.x) == GGML_STATUS_SUCCESS;
    int                   from   = 0;
    fill(m.x, 99);
    for (int i = 0; i <= n_cuts; i++) {
        const int to = i < n_cuts ? cuts[i] : ggml_graph_n_nodes(m.graph);
        ok &= segment(from, to, &carry);
        from = to;
    }
    forget(&m);
    ggml_backend_buffer_free(buffer);
    return ok;
}

static void segments(void) {
    const int n = ggml_graph_n_nodes(m.graph);
    int       each[MAX];
    for (int i = 1; i < n; i++) {
        each[i - 1] = i;
        CHECK(in_segments(&i, 1), "GRA-4: two segments, cut at node %d: bits of the plain run", i);
    }
    const int three[] = { n / 4, n / 2 };
    CHECK(in_segments(three, 2), "GRA-4: three segments");
    CHECK(in_segments(each, n - 1), "GRA-4: a segment for each node");
}

/* What a callback saw, one after the other. */
struct seen {
    uint8_t data[1 << 20];
    size_t  used;
    int     asked, shown, stop_at;
};

static bool watch(struct ggml_tensor * t, bool ask, void * user_data) {
    struct seen * seen = user_data;
    if (ask) {
        seen->asked++;
        return t == m.alone || t == m.shared || t == m.out || strcmp(t->name, "s1") == 0 || strcmp(t->name, "softmax") == 0;
    }
    ggml_backend_tensor_get(t, seen->data + seen->used, 0, ggml_nbytes(t));
    seen->used += ggml_nbytes(t);
    return ++seen->shown != seen->stop_at;
}

/* An evaluation callback as a program has one: ranges that end where it wants to look. */
static enum ggml_status evaluate(ggml_backend_sched_eval_callback callback, void * user_data) {
    const int n = ggml_graph_n_nodes(m.graph);
    for (int from = 0, to; from < n; from = to) {
        bool look = false;
        for (to = from; to < n && !look; to++) {
            look = callback(ggml_graph_node(m.graph, to), true, user_data);
        }
        const enum ggml_status status = ggml_backend_graph_compute_range_async(m.cpu, m.graph, from, to);
        ggml_backend_synchronize(m.cpu);
        if (status != GGML_STATUS_SUCCESS) {
            return status;
        }
        if (look && !callback(ggml_graph_node(m.graph, to - 1), false, user_data)) {
            return GGML_STATUS_ABORTED;
        }
    }
    return GGML_STATUS_SUCCESS;
}

static void callbacks(void) {
    struct seen *        ours = calloc(1, sizeof *ours), * theirs = calloc(1, sizeof *theirs);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&m.cpu, NULL, 1, MAX, false, false);
    ggml_backend_sched_set_eval_callback(sched, watch, theirs);
    bool ok = ggml_backend_sched_alloc_graph(sched, m.graph);
    fill(m.x, 99);
    ok &= ggml_backend_sched_graph_compute(sched, m.graph) == GGML_STATUS_SUCCESS && has_bytes(m.out, want);
    CHECK(ok && theirs->shown == 5, "GRA-4: the scheduler's own callback saw %d results", theirs->shown);
    ggml_backend_sched_free(sched);
    forget(&m);

    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(m.cpu));
    ok = ggml_gallocr_alloc_graph(galloc, m.graph);
    fill(m.x, 99);
    CHECK(ok && evaluate(watch, ours) == GGML_STATUS_SUCCESS && has_bytes(m.out, want), "GRA-4: a callback over ranges: bits of the plain run");
    CHECK(ours->asked == ggml_graph_n_nodes(m.graph) && ours->shown == 5, "GRA-4: asked about each node, shown what it wanted");
    CHECK(ours->used == theirs->used && memcmp(ours->data, theirs->data, ours->used) == 0, "GRA-4: it saw the bits that the scheduler's saw");
    memset(ours, 0, sizeof *ours);
    ours->stop_at = 2;
    fill(m.x, 99);
    CHECK(evaluate(watch, ours) == GGML_STATUS_ABORTED && ours->shown == 2, "GRA-4: a callback stops the run");
    ggml_gallocr_free(galloc);
    forget(&m);
    free(ours);
    free(theirs);
}

int main(void) {
    check_quiet();
    m = model_new();
    CHECK(m.cpu && m.buffer && m.alone && ggml_graph_n_nodes(m.graph) > 30, "a graph of %d nodes", ggml_graph_n_nodes(m.graph));
    want = plain_run(&m);
    leafs();
    mapped();
    bad_mappings();
    ranges();
    fusion();
    bad_counts();
    segments();
    callbacks();
    free(want);
    model_free(&m);
    return check_done();
}
