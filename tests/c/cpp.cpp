// The C++ side: the headers compile as C++17, and the owning pointers of ggml-cpp.h free what they hold.
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml-ext.h"
#include "ggml-graph.h"
#include "ggml-opt.h"
#include "ggml-backend-impl.h"
#include "ggml/src/ggml-impl.h"

#include <cstdio>
#include <utility>
#include <vector>

static int failures;
static void check(bool ok, const char * name) {
    std::printf("%s %s%s\n", ok ? "ok" : "not ok", name, ok ? "" : ": does not hold");
    failures += !ok;
}

// Registration, use and release with the structures as C++17 makes them and with lambdas as callbacks.
static void extensions(ggml_backend_t cpu) {
    const ggml_backend_dev_t device = ggml_backend_get_device(cpu);
    const ggml_ext_scope_t   scope  = ggml_ext_scope_new();
    GGML_EXT_INIT(ggml_ext_op_desc, op);
    op.name      = "test.negate.v1";
    op.attr_size = sizeof(float);
    op.scope     = scope;
    op.infer     = [](ggml_tensor * const * src, int n_src, const void *, ggml_ext_output * out, void *) {
        for (int i = 0; n_src == 1 && i < GGML_MAX_DIMS; i++) {
            out->ne[i] = src[0]->ne[i];
        }
        return n_src == 1 || ggml_ext_refuse("one source");
    };
    check(op.struct_size == sizeof op && op.user_data == nullptr && ggml_ext_register_op(&op), "C++: an operator");
    GGML_EXT_INIT(ggml_ext_kernel_desc, kernel);
    kernel.name     = "test.negate";
    kernel.op       = GGML_OP_CUSTOM;
    kernel.op_name  = op.name;
    kernel.scope    = scope;
    kernel.supports = [](const ggml_ext_step * step, void *) { return step->n_nodes == 1 && step->n_srcs == 1; };
    kernel.prepare  = [](const ggml_ext_step *, ggml_ext_prepared * out, void *) {
        out->workspace_size = 64;
        return GGML_STATUS_SUCCESS;
    };
    kernel.execute = [](const ggml_ext_run * run, void *) {
        ggml_tensor * node = run->step->nodes[0];
        float         factor;
        if (!run->workspace || !ggml_ext_op_attrs(node, &factor, sizeof factor)) {
            return GGML_STATUS_FAILED;
        }
        for (int64_t i = 0; i < ggml_nelements(node); i++) {
            static_cast<float *>(node->data)[i] = factor * static_cast<const float *>(node->src[0]->data)[i];
        }
        return GGML_STATUS_SUCCESS;
    };
    check(kernel.match == nullptr && ggml_ext_register_kernel_ex(device, &kernel, GGML_EXT_KERNEL_DETERMINISTIC), "C++: a kernel");
    {
        ggml_context_ptr ctx{ ggml_init({ 1 << 16, nullptr, true }) };
        ggml_tensor *    x      = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, 4);
        const float      factor = -2;
        ggml_tensor *    y      = ggml_ext_op_create(ctx.get(), op.name, &x, 1, &factor, sizeof factor);
        ggml_cgraph *    graph  = ggml_new_graph_custom(ctx.get(), 8, false);
        ggml_build_forward_expand(graph, y);
        ggml_backend_buffer_ptr buffer{ ggml_backend_alloc_ctx_tensors(ctx.get(), cpu) };
        float                   data[4] = { 1, 2, 3, 4 };
        ggml_backend_tensor_set(x, data, 0, sizeof data);
        check(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "C++: a node is computed");
        ggml_backend_tensor_get(y, data, 0, sizeof data);
        check(data[0] == -2 && data[3] == -8, "C++: its result");
    }
    GGML_EXT_INIT(ggml_ext_counters, counters);
    check(ggml_ext_counters(device, kernel.name, &counters) && counters.ran == 1, "C++: counters");
    check(ggml_ext_scope_release(scope), "C++: the scope is released");
    GGML_EXT_INIT(ggml_ext_error, error);
    check(!ggml_ext_counters(device, kernel.name, &counters) && ggml_ext_last_error(&error) && error.code == GGML_EXT_CODE_UNKNOWN_NAME,
          "C++: the last error");
}

int main() {
    ggml_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    ggml_backend_ptr cpu{ ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr) };
    check(cpu != nullptr, "backend");
    {
        ggml_context_ptr ctx{ ggml_init({ 1 << 16, nullptr, true }) };
        ggml_tensor *    a = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, 8);
        ggml_set_input(a);
        ggml_tensor * b = ggml_sqr(ctx.get(), a);
        ggml_set_output(b);
        ggml_cgraph * graph = ggml_new_graph_custom(ctx.get(), 8, false);
        ggml_build_forward_expand(graph, b);
        ggml_gallocr_ptr galloc{ ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu.get())) };
        check(ggml_gallocr_alloc_graph(galloc.get(), graph), "graph allocator");
        std::vector<float> numbers(8, 3.0f);
        ggml_backend_tensor_set(a, numbers.data(), 0, ggml_nbytes(a));
        check(ggml_backend_graph_compute(cpu.get(), graph) == GGML_STATUS_SUCCESS, "compute");
        ggml_backend_tensor_get(b, numbers.data(), 0, ggml_nbytes(b));
        check(numbers[7] == 9.0f, "result");
    }
    {
        ggml_context_ptr        ctx{ ggml_init({ 1 << 16, nullptr, true }) };
        ggml_tensor *           t = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, 8);
        ggml_backend_buffer_ptr buffer{ ggml_backend_alloc_ctx_tensors(ctx.get(), cpu.get()) };
        check(buffer && t->data, "buffer");
        ggml_backend_buffer_ptr moved = std::move(buffer);
        check(!buffer && moved, "buffer moved");
        gguf_context_ptr file{ gguf_init_empty() };
        gguf_set_val_u32(file.get(), "key", 7);
        check(gguf_find_key(file.get(), "key") == 0, "gguf");
    }
    {
        ggml_backend_t         list[] = { cpu.get() };
        ggml_backend_sched_ptr sched{ ggml_backend_sched_new(list, nullptr, 1, 16, false, false) };
        check(sched != nullptr, "scheduler");
        ggml_backend_event_ptr event{ ggml_backend_event_new(ggml_backend_get_device(cpu.get())) };
        check(event == nullptr, "no event");
    }
    // what C++ clients do with enumerations and initialisers
    ggml_init_params params = { /*.mem_size =*/ ggml_tensor_overhead() * 4, /*.mem_buffer =*/ nullptr, /*.no_alloc =*/ true };
    ggml_context_ptr small{ ggml_init(params) };
    check(small != nullptr && ggml_type_name(GGML_TYPE_F16) != nullptr, "C++ initialisers");
    check(sizeof(ggml_cgraph) == 96 && GGML_PAD(33, 32) == 64, "C++ sees the same layout");
    const ggml_tensor * t = ggml_new_tensor_2d(small.get(), GGML_TYPE_F32, 3, 5);
    GGML_TENSOR_LOCALS(int64_t, ne, t, ne);
    check(ne0 == 3 && ne1 == 5 && ne2 == 1 && ne3 == 1, "GGML_TENSOR_LOCALS");
    extensions(cpu.get());
    return failures != 0;
}
