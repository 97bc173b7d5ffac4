/* Computing with tensors that have no data, and graphs that were built badly: a status and a text, and the process goes on. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

int main(void) {
    check_quiet();
    ggml_backend_t        cpu   = ggml_backend_cpu_init();
    struct ggml_context * ctx   = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    struct ggml_tensor *  a     = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64), "weights");
    struct ggml_tensor *  b     = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64);
    struct ggml_tensor *  sum   = ggml_set_name(ggml_add(ctx, a, b), "total");
    struct ggml_cgraph *  graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, sum);

    enum ggml_status status = GGML_STATUS_SUCCESS;
    CHECK_ERROR(status = ggml_backend_graph_compute(cpu, graph), GGML_EXT_CODE_NONE, "compute: nothing is allocated", "ggml_backend_graph_compute");
    CHECK(status == GGML_STATUS_FAILED, "compute: nothing is allocated: failed");
    CHECK(strstr(check_error_text(), "weights") || strstr(check_error_text(), "total"), "compute: nothing is allocated: names a tensor (%s)", check_error_text());
    CHECK(check_error_code() == GGML_EXT_CODE_NOT_ALLOCATED, "compute: nothing is allocated: the code says so (%d)", check_error_code());
    CHECK_ERROR(status = ggml_graph_compute_with_ctx(ctx, graph, 1), GGML_EXT_CODE_NONE, "compute_with_ctx: nothing is allocated", "");
    CHECK(status == GGML_STATUS_FAILED, "compute_with_ctx: nothing is allocated: failed");
    struct ggml_cplan plan = ggml_graph_plan(graph, 2, NULL);
    uint8_t *         work = plan.work_size ? malloc(plan.work_size) : NULL;
    plan.work_data         = work;
    CHECK(ggml_graph_compute(graph, &plan) == GGML_STATUS_FAILED, "graph_compute: nothing is allocated");
    free(work);

    float numbers[64] = { 0 };
    CHECK_ERROR(ggml_backend_tensor_set(a, numbers, 0, sizeof numbers), GGML_EXT_CODE_NOT_ALLOCATED, "set without data", "weights");
    CHECK_ERROR(ggml_backend_tensor_get(a, numbers, 0, sizeof numbers), GGML_EXT_CODE_NOT_ALLOCATED, "get without data", "weights");
    CHECK_ERROR(ggml_backend_tensor_memset(a, 0, 0, 4), GGML_EXT_CODE_NOT_ALLOCATED, "memset without data", "weights");
    CHECK_ERROR(ggml_backend_tensor_copy(a, b), GGML_EXT_CODE_NOT_ALLOCATED, "copy without data", "ggml_backend_tensor_copy");
    CHECK_ERROR(ggml_set_zero(a), GGML_EXT_CODE_NONE, "set_zero without data", "weights");
    CHECK_ERROR(ggml_set_f32(a, 1), GGML_EXT_CODE_NONE, "set_f32 without data", "ggml_set_f32");
    CHECK_ERROR(ggml_set_f32_1d(a, 0, 1), GGML_EXT_CODE_NONE, "set_f32_1d without data", "ggml_set_f32_1d");
    CHECK_ERROR(ggml_get_f32_1d(a, 0), GGML_EXT_CODE_NONE, "get_f32_1d without data", "ggml_get_f32_1d");
    struct ggml_tensor * view = ggml_view_1d(ctx, a, 4, 0);
    CHECK_ERROR(status = ggml_backend_view_init(view), GGML_EXT_CODE_NOT_ALLOCATED, "view of a tensor without data", "weights");
    CHECK(status == GGML_STATUS_FAILED, "view of a tensor without data: failed");

    /* one source only has data */
    ggml_backend_buffer_t buffer = ggml_backend_alloc_buffer(cpu, 4096);
    struct ggml_tallocr   place  = ggml_tallocr_new(buffer);
    CHECK(ggml_tallocr_alloc(&place, a) == GGML_STATUS_SUCCESS, "one source is placed");
    CHECK(ggml_tallocr_alloc(&place, sum) == GGML_STATUS_SUCCESS, "the result is placed");
    ggml_backend_buffer_clear(buffer, 0);
    CHECK_ERROR(status = ggml_backend_graph_compute(cpu, graph), GGML_EXT_CODE_NOT_ALLOCATED, "compute: one source without data", "total");
    CHECK(status == GGML_STATUS_FAILED, "compute: one source without data: failed");
    CHECK(ggml_tallocr_alloc(&place, b) == GGML_STATUS_SUCCESS, "the other source is placed");
    CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "the same graph runs once all is there");

    /* a graph that lost nodes for lack of room */
    struct ggml_cgraph * tiny = ggml_new_graph_custom(ctx, 1, false);
    CHECK_ERROR(ggml_build_forward_expand(tiny, ggml_sqr(ctx, ggml_sqrt(ctx, sum))), GGML_EXT_CODE_OUT_OF_MEMORY, "graph without room", "ggml_build_forward_expand");
    CHECK_ERROR(status = ggml_backend_graph_compute(cpu, tiny), GGML_EXT_CODE_NONE, "graph without room: computing", "room");
    CHECK(status == GGML_STATUS_FAILED, "graph without room: computing fails");
    struct ggml_cgraph * zero = ggml_new_graph_custom(ctx, 0, false);
    CHECK(zero != NULL && ggml_graph_size(zero) == 0, "graph of size 0");
    CHECK(ggml_backend_graph_compute(cpu, zero) == GGML_STATUS_SUCCESS, "graph of size 0 without nodes runs");
    CHECK_ERROR(ggml_build_forward_expand(zero, sum), GGML_EXT_CODE_OUT_OF_MEMORY, "graph of size 0 takes nothing", "");
    CHECK(ggml_backend_graph_compute(cpu, zero) == GGML_STATUS_FAILED, "graph of size 0 that lost a node");

    /* a shape that was changed after building */
    struct ggml_tensor * c = ggml_mul(ctx, a, b);
    CHECK(ggml_tallocr_alloc(&place, c) == GGML_STATUS_SUCCESS, "a third is placed");
    c->ne[0] = 1000000000;
    struct ggml_cgraph * wrong = ggml_new_graph(ctx);
    ggml_build_forward_expand(wrong, c);
    CHECK_ERROR(status = ggml_backend_graph_compute(cpu, wrong), GGML_EXT_CODE_NONE, "shape changed behind the builder's back", "");
    CHECK(status == GGML_STATUS_FAILED, "shape changed behind the builder's back: failed");
    c->ne[0] = 64;
    c->op    = (enum ggml_op) 4711;
    CHECK(ggml_backend_graph_compute(cpu, wrong) == GGML_STATUS_FAILED, "an operator that there is not");
    c->op   = GGML_OP_MUL;
    c->type = (enum ggml_type) 4711;
    CHECK(ggml_backend_graph_compute(cpu, wrong) == GGML_STATUS_FAILED, "a type that there is not");
    c->type   = GGML_TYPE_F32;
    c->src[1] = NULL;
    CHECK(ggml_backend_graph_compute(cpu, wrong) == GGML_STATUS_FAILED, "a source that is missing");
    c->src[1] = b;
    CHECK(ggml_backend_graph_compute(cpu, wrong) == GGML_STATUS_SUCCESS, "and sound again");

    ggml_backend_buffer_free(buffer);
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
