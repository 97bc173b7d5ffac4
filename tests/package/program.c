/* Adds two tensors on the CPU backend. Prints the layout it was compiled for. */
#include <stdio.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "gguf.h"
/* Clients include this one by that path. */
#include "ggml/src/ggml-impl.h"

int main(void) {
    const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
    float z[4] = {0};
    struct ggml_init_params params = {ggml_tensor_overhead() * 8 + ggml_graph_overhead(), NULL, true};
    struct ggml_context * ctx      = ggml_init(params);
    struct ggml_tensor * a         = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * b         = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * sum       = ggml_add(ctx, a, b);
    struct ggml_cgraph * graph     = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, sum);
    if (graph->n_nodes != 1) {
        fprintf(stderr, "the graph has %d nodes\n", graph->n_nodes);
        return 1;
    }

    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    if (cpu == NULL) {
        fprintf(stderr, "no CPU backend\n");
        return 1;
    }
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    ggml_backend_tensor_set(a, x, 0, sizeof x);
    ggml_backend_tensor_set(b, y, 0, sizeof y);
    if (buffer == NULL || ggml_backend_graph_compute(cpu, graph) != GGML_STATUS_SUCCESS) {
        fprintf(stderr, "the graph was not computed\n");
        return 1;
    }
    ggml_backend_tensor_get(sum, z, 0, sizeof z);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(cpu);
    ggml_free(ctx);
    for (int i = 0; i < 4; i++) {
        if (z[i] != x[i] + y[i]) {
            fprintf(stderr, "element %d is %g\n", i, z[i]);
            return 1;
        }
    }
    if (ggml_tensor_overhead() < sizeof(struct ggml_tensor)) {
        fprintf(stderr, "the library's tensors are smaller than the header's\n");
        return 1;
    }
    printf("max_name %d\n", GGML_MAX_NAME);
    return 0;
}
