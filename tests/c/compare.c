/* A graph copied to another backend, and two backends compared node by node. */
#include "check.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

static int seen, equal;

static bool compare(int index, struct ggml_tensor * a, struct ggml_tensor * b, void * data) {
    (void) index;
    float x[64], y[64];
    const size_t n = ggml_nbytes(a) < sizeof x ? ggml_nbytes(a) : sizeof x;
    ggml_backend_tensor_get(a, x, 0, n);
    ggml_backend_tensor_get(b, y, 0, n);
    seen++;
    equal += memcmp(x, y, n) == 0;
    return data == NULL;
}

int main(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params) { 1u << 20, NULL, true });
    ggml_backend_t first = ggml_backend_cpu_init(), second = ggml_backend_cpu_init();
    struct ggml_tensor * a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 6);
    struct ggml_tensor * b = ggml_sqr(ctx, ggml_transpose(ctx, a));
    struct ggml_tensor * c = ggml_add(ctx, b, b);
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_set_name(c, "result");
    ggml_build_forward_expand(graph, c);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, first);
    float values[48];
    for (int i = 0; i < 48; i++) {
        values[i] = (float) (i - 20);
    }
    ggml_backend_tensor_set(a, values, 0, sizeof values);

    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(second, graph);
    CHECK(copy.graph != NULL && ggml_graph_n_nodes(copy.graph) == ggml_graph_n_nodes(graph), "graph_copy: as many nodes");
    CHECK(ggml_backend_graph_compute(first, graph) == GGML_STATUS_SUCCESS, "the original runs");
    CHECK(ggml_backend_graph_compute(second, copy.graph) == GGML_STATUS_SUCCESS, "the copy runs");
    struct ggml_tensor * copied = ggml_graph_get_tensor(copy.graph, "result");
    CHECK(copied != NULL && copied != c && copied->data != c->data, "graph_copy: storage of its own");
    float x[48], y[48];
    ggml_backend_tensor_get(c, x, 0, sizeof x);
    ggml_backend_tensor_get(copied, y, 0, sizeof y);
    CHECK(memcmp(x, y, sizeof x) == 0 && x[0] == 2.0f * 20.0f * 20.0f, "graph_copy: the same values");
    ggml_backend_graph_copy_free(copy);

    CHECK(ggml_backend_compare_graph_backend(first, second, graph, compare, NULL, NULL, 0), "compare_graph_backend");
    CHECK(seen > 0 && seen == equal, "compare: %d nodes seen, %d equal", seen, equal);
    seen = 0;
    ggml_backend_compare_graph_backend(first, second, graph, compare, &seen, NULL, 0);
    CHECK(seen == 1, "compare: the callback ends it (%d seen)", seen);

    ggml_backend_buffer_free(buffer);
    ggml_backend_free(first);
    ggml_backend_free(second);
    ggml_free(ctx);
    return check_done();
}
