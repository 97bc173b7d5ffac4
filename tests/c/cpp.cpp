// The C++ side: the headers compile as C++17, and the owning pointers of ggml-cpp.h free what they hold.
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml-ext.h"
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
    return failures != 0;
}
