/* Questions about tensors, time and the machine. */
#include "check.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"

static void layouts(struct ggml_context * ctx) {
    struct ggml_tensor * t = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 8, 6, 4, 2);
    struct ggml_tensor * transposed = ggml_transpose(ctx, t);
    struct ggml_tensor * channels   = ggml_permute(ctx, t, 2, 0, 1, 3); /* stored CxWxHxN, seen as WxHxCxN */
    struct ggml_tensor * rows       = ggml_view_2d(ctx, t, 4, 6, t->nb[1], 0);
    struct ggml_tensor * planes     = ggml_view_3d(ctx, t, 8, 3, 4, t->nb[1], t->nb[2], 0);
    struct ggml_tensor * one        = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);

    CHECK(ggml_nrows(t) == 48 && ggml_element_size(t) == 4, "nrows, element_size");
    CHECK(ggml_get_data(t) == t->data && ggml_get_data_f32(t) == (float *) t->data, "get_data");
    CHECK(!ggml_is_transposed(t) && ggml_is_transposed(transposed), "is_transposed");
    CHECK(!ggml_is_permuted(t) && ggml_is_permuted(transposed), "is_permuted");
    CHECK(ggml_is_scalar(one) && !ggml_is_scalar(t), "is_scalar");
    CHECK(ggml_is_vector(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3)) && !ggml_is_vector(t), "is_vector");
    CHECK(ggml_is_matrix(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 2)) && !ggml_is_matrix(t), "is_matrix");
    CHECK(ggml_is_3d(ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 3, 2, 5)) && !ggml_is_3d(t), "is_3d");
    CHECK(ggml_is_contiguous_0(t) && !ggml_is_contiguous_0(rows), "is_contiguous_0");
    CHECK(ggml_is_contiguous_1(t) && ggml_is_contiguous_1(rows), "is_contiguous_1: rows may have gaps");
    CHECK(!ggml_is_contiguous_1(planes) && ggml_is_contiguous_2(planes), "is_contiguous_2: planes may have gaps");
    CHECK(ggml_is_contiguous_to_1(rows) && !ggml_is_contiguous_to_2(rows), "is_contiguous_to_1, to_2");
    CHECK(ggml_is_contiguous_to_2(planes) && !ggml_is_contiguous_to_3(planes) && ggml_is_contiguous_to_3(t), "is_contiguous_to_3");
    CHECK(ggml_is_contiguously_allocated(transposed) && !ggml_is_contiguously_allocated(rows), "is_contiguously_allocated");
    CHECK(ggml_is_contiguous_channels(channels) && !ggml_is_contiguous_channels(t), "is_contiguous_channels");
    CHECK(ggml_is_contiguous_rows(rows) && !ggml_is_contiguous_rows(transposed), "is_contiguous_rows");
    CHECK(ggml_are_same_shape(t, ggml_dup_tensor(ctx, t)) && !ggml_are_same_shape(t, rows), "are_same_shape");
    CHECK(ggml_are_same_stride(t, ggml_dup_tensor(ctx, t)) && !ggml_are_same_stride(t, transposed), "are_same_stride");
}

static void time_goes_on(void) {
    ggml_time_init();
    const int64_t us = ggml_time_us(), ms = ggml_time_ms(), cycles = ggml_cycles();
    while (ggml_time_us() - us < 2000) {
    }
    CHECK(ggml_time_ms() >= ms + 1, "time_ms");
    CHECK(ggml_cycles() > cycles, "cycles");
    CHECK(ggml_cycles_per_ms() > 0, "cycles_per_ms");
    FILE * file = ggml_fopen("/nowhere/at/all", "rb");
    CHECK(file == NULL, "fopen of what is not there");
}

static void graphs(struct ggml_context * ctx) {
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    struct ggml_tensor * a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor * b = ggml_sqr(ctx, a);
    ggml_build_forward_expand(graph, b);
    CHECK(ggml_graph_nodes(graph)[0] == b, "graph_nodes");

    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_t other = ggml_backend_cpu_init();
    CHECK(ggml_backend_supports_op(cpu, b), "supports_op");
    CHECK(ggml_backend_supports_buft(cpu, ggml_backend_cpu_buffer_type()), "supports_buft");
    CHECK(!ggml_backend_offload_op(cpu, b), "offload_op");
    CHECK(ggml_backend_buft_get_alloc_size(ggml_backend_cpu_buffer_type(), a) == 16, "buft_get_alloc_size");
    CHECK(ggml_backend_buft_get_device(ggml_backend_cpu_buffer_type()) == NULL, "buft_get_device: the host's own");
    CHECK(strcmp(ggml_backend_dev_name(ggml_backend_get_device(cpu)), "CPU") == 0, "dev_name");
    CHECK(ggml_backend_event_new(ggml_backend_get_device(cpu)) == NULL, "event_new: the CPU has none");
    ggml_backend_event_free(NULL);
    ggml_backend_free(other);
    ggml_backend_free(cpu);
}

static void instruction_sets(void) {
    const struct {
        const char * name;
        int          has;
        int          builtin;
    } sets[] = {
#if defined(__x86_64__)
        { "SSE3", ggml_cpu_has_sse3(), __builtin_cpu_supports("sse3") },
        { "SSSE3", ggml_cpu_has_ssse3(), __builtin_cpu_supports("ssse3") },
        { "AVX", ggml_cpu_has_avx(), __builtin_cpu_supports("avx") },
        { "AVX2", ggml_cpu_has_avx2(), __builtin_cpu_supports("avx2") },
        { "FMA", ggml_cpu_has_fma(), __builtin_cpu_supports("fma") },
        { "BMI2", ggml_cpu_has_bmi2(), __builtin_cpu_supports("bmi2") },
        { "AVX512", ggml_cpu_has_avx512(), __builtin_cpu_supports("avx512f") },
        { "AVX512_VBMI", ggml_cpu_has_avx512_vbmi(), __builtin_cpu_supports("avx512vbmi") },
        { "AVX512_VNNI", ggml_cpu_has_avx512_vnni(), __builtin_cpu_supports("avx512vnni") },
        { "AVX512_BF16", ggml_cpu_has_avx512_bf16(), __builtin_cpu_supports("avx512bf16") },
        { "F16C", ggml_cpu_has_f16c() || !ggml_cpu_has_avx2(), 1 },
        { "AVX_VNNI", ggml_cpu_has_avx_vnni() & ~1, 0 },
        { "NEON", ggml_cpu_has_neon(), 0 },
        { "ARM_FMA", ggml_cpu_has_arm_fma(), 0 },
        { "FP16_VA", ggml_cpu_has_fp16_va(), 0 },
        { "DOTPROD", ggml_cpu_has_dotprod(), 0 },
        { "MATMUL_INT8", ggml_cpu_has_matmul_int8(), 0 },
        { "SVE", ggml_cpu_has_sve() || ggml_cpu_get_sve_cnt(), 0 },
        { "SME", ggml_cpu_has_sme() || ggml_cpu_has_sme2(), 0 },
        { "RISCV_V", ggml_cpu_has_riscv_v() || ggml_cpu_get_rvv_vlen(), 0 },
        { "VSX", ggml_cpu_has_vsx(), 0 },
        { "VXE", ggml_cpu_has_vxe(), 0 },
        { "WASM_SIMD", ggml_cpu_has_wasm_simd(), 0 },
#else
        { "SSE3", ggml_cpu_has_sse3(), 0 },
#endif
        { "AMX_INT8", ggml_cpu_has_amx_int8(), 0 }, /* no kernel here uses it */
        { "LLAMAFILE", ggml_cpu_has_llamafile(), 0 },
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        CHECK((sets[i].has != 0) == (sets[i].builtin != 0), "cpu_has %s", sets[i].name);
    }
}

int main(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params) { 4u << 20, NULL, false });
    layouts(ctx);
    time_goes_on();
    graphs(ctx);
    instruction_sets();
    ggml_free(ctx);
    return check_done();
}
