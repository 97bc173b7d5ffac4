/* A graph that the client made itself, as stable-diffusion.cpp does: positional initialisation, size 0, the hash set of another
 * graph, handed over by address. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml/src/ggml-impl.h"

static struct ggml_cgraph part(struct ggml_cgraph * g, int from, int to) {
    struct ggml_cgraph view = {
        0, to - from, 0, g->nodes + from, NULL, NULL, NULL, g->use_counts, g->visited_hash_set, g->order, 0,
    };
    return view;
}

int main(void) {
    check_quiet();
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    ggml_backend_t        cpu = ggml_backend_cpu_init();
    struct ggml_tensor *  x   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3);
    ggml_set_output(x);
    struct ggml_tensor *  t   = x;
    struct ggml_tensor *  step[6];
    for (int i = 0; i < 6; i++) {
        step[i] = t = i % 2 ? ggml_scale(ctx, t, 2) : ggml_add(ctx, t, x);
        ggml_set_output(t);
    }
    struct ggml_cgraph * g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, t);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    CHECK(ggml_gallocr_alloc_graph(galloc, g), "allocated");
    const float in[3] = { 1, -2, 0.5f };
    ggml_backend_tensor_set(x, in, 0, sizeof in);

    for (int from = 0; from < 6; from += 2) {
        struct ggml_cgraph p = part(g, from, from + 2);
        CHECK(ggml_backend_graph_compute_async(cpu, &p) == GGML_STATUS_SUCCESS, "part from node %d", from);
        ggml_backend_synchronize(cpu);
    }
    float want = 1, out[3];
    ggml_backend_tensor_get(t, out, 0, sizeof out);
    for (int i = 0; i < 6; i++) {
        want = i % 2 ? want * 2 : want + 1;
    }
    CHECK(out[0] == want && out[1] == -2 * want && out[2] == 0.5f * want, "the parts make the whole: %g", want);

    /* without hash set and counts */
    struct ggml_cgraph bare = { .n_nodes = 6, .nodes = g->nodes };
    ggml_backend_tensor_memset(t, 0, 0, sizeof out);
    CHECK(ggml_backend_graph_compute(cpu, &bare) == GGML_STATUS_SUCCESS, "nodes alone");
    ggml_backend_tensor_get(t, out, 0, sizeof out);
    CHECK(out[0] == want, "nodes alone: the result");
    struct ggml_cgraph none = { 0 };
    CHECK(ggml_backend_graph_compute(cpu, &none) == GGML_STATUS_SUCCESS, "no nodes at all");
    CHECK(ggml_graph_n_nodes(&bare) == 6 && ggml_graph_node(&bare, -1) == t && ggml_graph_size(&bare) == 0, "asked through the interface");
    CHECK(ggml_graph_node(&none, 0) == NULL, "no nodes: no node");
    struct ggml_cplan plan = ggml_graph_plan(&bare, 2, NULL);
    CHECK(plan.n_threads == 2, "planned");
    uint8_t * work = malloc(plan.work_size + 1);
    plan.work_data = work;
    CHECK(ggml_graph_compute(&bare, &plan) == GGML_STATUS_SUCCESS, "computed with a plan");
    free(work);
    CHECK(ggml_graph_compute_with_ctx(ctx, &bare, 2) == GGML_STATUS_SUCCESS, "computed without a backend");

    /* it takes nothing, since it has no room */
    struct ggml_cgraph p = part(g, 0, 2);
    CHECK_ERROR(ggml_build_forward_expand(&p, ggml_sqr(ctx, t)), GGML_EXT_CODE_OUT_OF_MEMORY, "expanding a view", "ggml_build_forward_expand");
    CHECK_ERROR(ggml_graph_add_node(&p, t), GGML_EXT_CODE_OUT_OF_MEMORY, "adding to a view", "ggml_graph_add_node");
    CHECK(ggml_graph_node(g, 2) == step[2], "the graph behind it is as it was");

    /* allocation and scheduling of a client's graph */
    ggml_gallocr_t other = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    struct ggml_tensor * y  = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3);
    struct ggml_tensor * y1 = ggml_sqr(ctx, y);
    struct ggml_tensor * y2 = ggml_add(ctx, y1, y);
    struct ggml_tensor * nodes[2] = { y1, y2 };
    struct ggml_tensor * leafs[1] = { y };
    ggml_set_input(y);
    y1->flags |= GGML_TENSOR_FLAG_COMPUTE;
    y2->flags |= GGML_TENSOR_FLAG_COMPUTE;
    struct ggml_cgraph mine = { .n_nodes = 2, .n_leafs = 1, .nodes = nodes, .leafs = leafs };
    CHECK(ggml_gallocr_alloc_graph(other, &mine), "a client's graph without hash set is allocated");
    ggml_backend_tensor_set(y, in, 0, sizeof in);
    CHECK(ggml_backend_graph_compute(cpu, &mine) == GGML_STATUS_SUCCESS, "and computed");
    ggml_backend_tensor_get(y2, out, 0, sizeof out);
    CHECK(out[0] == 2 && out[1] == 2 && out[2] == 0.75f, "and right: %g %g %g", out[0], out[1], out[2]);

    /* the helpers of the header */
    struct ggml_hash_set set = ggml_hash_set_new(2);
    CHECK(set.size >= 2, "hash set");
    CHECK(ggml_hash_insert(&set, x) < set.size && ggml_hash_insert(&set, x) == GGML_HASHSET_ALREADY_EXISTS && ggml_hash_contains(&set, x), "hash set: insert");
    size_t n = 1;
    struct ggml_tensor * many = calloc(100, sizeof *many);
    for (int i = 0; i < 100 && ggml_hash_insert(&set, many + i) != GGML_HASHSET_FULL; i++) {
        n++;
    }
    CHECK(n == set.size, "hash set: full after %zu", n);
    ggml_hash_set_reset(&set);
    CHECK(!ggml_hash_contains(&set, x), "hash set: reset");
    ggml_hash_set_free(&set);
    free(many);
    set = ggml_hash_set_new(SIZE_MAX);
    CHECK(set.size == 0 && ggml_hash_find(&set, x) == GGML_HASHSET_FULL, "hash set of too many");
    ggml_hash_set_free(&set);

    /* fusing asks about a client's graph too */
    const int          idx[2]  = { 0, 1 };
    const enum ggml_op ops[2]  = { GGML_OP_ADD, GGML_OP_SCALE };
    const int          outs[1] = { 1 };
    p = part(g, 0, 2);
    (void) ggml_can_fuse_subgraph_ext(&p, idx, 2, ops, outs, 1);
    CHECK(!ggml_can_fuse_subgraph_ext(&bare, idx, 2, ops, outs, 1), "no counts, no fusing");

    ggml_gallocr_free(galloc);
    ggml_gallocr_free(other);
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
