/* The CPU backend, and graphs computed without a backend. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_CPU_H
#define GGML_CPU_H

#include "ggml.h"
#include "ggml-backend.h"


/* How threads are spread over memory nodes. */
enum ggml_numa_strategy {
  GGML_NUMA_STRATEGY_DISABLED = 0,
  GGML_NUMA_STRATEGY_DISTRIBUTE = 1,
  GGML_NUMA_STRATEGY_ISOLATE = 2,
  GGML_NUMA_STRATEGY_NUMACTL = 3,
  GGML_NUMA_STRATEGY_MIRROR = 4,
  GGML_NUMA_STRATEGY_COUNT = 5,
};

/* What `ggml_graph_compute` needs besides the graph. */
struct ggml_cplan {
  /* Bytes of scratch memory that the graph needs. */
  size_t work_size;
  /* The scratch memory; the caller provides it when `work_size` is not zero. */
  uint8_t *work_data;
  /* Threads to use. */
  int n_threads;
  /* Pool to run on; NULL: a pool for this call. */
  struct ggml_threadpool *threadpool;
  /* Asked before each node. */
  ggml_abort_callback abort_callback;
  /* Handed to `abort_callback`. */
  void *abort_callback_data;
  /* Use the plain kernels. */
  bool use_ref;
};

/* Dot product of `nrc` rows of `n` elements each: `s` gets the results, strides in bytes. */
typedef void (*ggml_vec_dot_t)(int n, float *s, size_t bs, const void *x, size_t bx, const void *y, size_t by, int nrc);

/* What the CPU backend can do with a format. */
struct ggml_type_traits_cpu {
  /* Encoder, or NULL. */
  ggml_from_float_t from_float;
  /* Dot product with a row of `vec_dot_type`, or NULL. */
  ggml_vec_dot_t vec_dot;
  /* Format of the other operand. */
  enum ggml_type vec_dot_type;
  /* Rows that one call of `vec_dot` may take. */
  int64_t nrows;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Parameters of a pool of `n_threads` threads without wishes. */
struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads);

/* As `ggml_threadpool_params_default`, in place. */
void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);

/* Whether two pools would be alike. */
bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct ggml_threadpool_params *p1);

/* A pool of threads, or NULL with an error. */
struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params);

/* Ends a pool's threads; NULL is no change. No backend may use the pool any more. */
void ggml_threadpool_free(struct ggml_threadpool *threadpool);

/* Threads of a pool. */
int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool);

/* Lets a pool's threads sleep until the next graph. */
void ggml_threadpool_pause(struct ggml_threadpool *threadpool);

/* Wakes a pool. */
void ggml_threadpool_resume(struct ggml_threadpool *threadpool);

/* What computing the graph needs. `n_threads` below 1 means the pool's number, without a pool 4. */
struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads, struct ggml_threadpool *threadpool);

/* Computes a graph on the CPU with a plan of `ggml_graph_plan`. Where the plan has a work size, the caller provides the memory. */
enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph, struct ggml_cplan *cplan);

/* Computes a graph on the CPU. `ctx` is not needed and may be NULL. */
enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph, int n_threads);

/* Prepares the CPU's tables. Not needed: they are prepared on first use. */
void ggml_cpu_init(void);

/* A CPU backend with 4 threads. */
ggml_backend_t ggml_backend_cpu_init(void);

/* Whether a backend is one of this library on the CPU. */
bool ggml_backend_is_cpu(ggml_backend_t backend);

/* Sets the threads of a CPU backend, 1 to 512; results do not depend on it. */
void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads);

/* Lends a CPU backend a pool; NULL takes it back. The pool stays the caller's. */
void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu, ggml_threadpool_t threadpool);

/* Sets what is asked before each node; when it answers true the computation ends with `GGML_STATUS_ABORTED`. */
void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu,
                                         ggml_abort_callback abort_callback,
                                         void *abort_callback_data);

/*
 Computes by portable code, each node by itself, from the next graph on: slower, and with results that the fast code is held
 against. False: as fast as the machine can.
 */
void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref);

/*
 Finds out about the machine's memory, once for the process. Threads and results do not depend on it; where they run is
 said when the process is started, or by a pool's `cpumask`.
 */
void ggml_numa_init(enum ggml_numa_strategy numa);

/* Whether `ggml_numa_init` found memory that is near to some processors only. */
bool ggml_is_numa(void);

/* The CPU's registry entry. */
ggml_backend_reg_t ggml_backend_cpu_reg(void);

/* 1 when the processor has SSE3, else 0. */
int ggml_cpu_has_sse3(void);

/* 1 when the processor has SSSE3, else 0. */
int ggml_cpu_has_ssse3(void);

/* 1 when the processor has AVX, else 0. */
int ggml_cpu_has_avx(void);

/* 1 when the processor has AVX_VNNI, else 0. */
int ggml_cpu_has_avx_vnni(void);

/* 1 when the processor has AVX2, else 0. */
int ggml_cpu_has_avx2(void);

/* 1 when the processor has F16C, else 0. */
int ggml_cpu_has_f16c(void);

/* 1 when the processor has FMA, else 0. */
int ggml_cpu_has_fma(void);

/* 1 when the processor has BMI2, else 0. */
int ggml_cpu_has_bmi2(void);

/* 1 when the processor has AVX512, else 0. */
int ggml_cpu_has_avx512(void);

/* 1 when the processor has AVX512_VBMI, else 0. */
int ggml_cpu_has_avx512_vbmi(void);

/* 1 when the processor has AVX512_VNNI, else 0. */
int ggml_cpu_has_avx512_vnni(void);

/* 1 when the processor has AVX512_BF16, else 0. */
int ggml_cpu_has_avx512_bf16(void);

/* 1 when the processor has NEON, else 0. */
int ggml_cpu_has_neon(void);

/* 1 when the processor has ARM_FMA, else 0. */
int ggml_cpu_has_arm_fma(void);

/* 1 when the processor has FP16_VA, else 0. */
int ggml_cpu_has_fp16_va(void);

/* 1 when the processor has DOTPROD, else 0. */
int ggml_cpu_has_dotprod(void);

/* 1 when the processor has MATMUL_INT8, else 0. */
int ggml_cpu_has_matmul_int8(void);

/* 1 when the processor has SVE, else 0. */
int ggml_cpu_has_sve(void);

/* 1 when the processor has AMX_INT8, else 0. */
int ggml_cpu_has_amx_int8(void);

/* 1 when the processor has SME, else 0. */
int ggml_cpu_has_sme(void);

/* 1 when the processor has SME2, else 0. */
int ggml_cpu_has_sme2(void);

/* 1 when the processor has RISCV_V, else 0. */
int ggml_cpu_has_riscv_v(void);

/* 1 when the processor has VSX, else 0. */
int ggml_cpu_has_vsx(void);

/* 1 when the processor has VXE, else 0. */
int ggml_cpu_has_vxe(void);

/* 1 when the processor has WASM_SIMD, else 0. */
int ggml_cpu_has_wasm_simd(void);

/* 0: products of matrices are this library's own, and nothing in it is llamafile's. */
int ggml_cpu_has_llamafile(void);

/* Bytes of a vector of SVE; 0 where there is none, and where its kernels are not used. */
int ggml_cpu_get_sve_cnt(void);

/* Bytes of a vector of RISC-V's V; 0 where there is none, and where its kernels are not used. */
int ggml_cpu_get_rvv_vlen(void);

/*
 What the CPU does with a format: encoder, dot product and the format of its other operand. NULL with an error for an id out of
 range; those of a removed format have no functions. `vec_dot` takes any number of rows, whatever `nrows` says.
 */
const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type);

/* Copies `n` numbers. */
void ggml_cpu_fp32_to_fp32(const float *x, float *y, int64_t n);

/* `n` numbers to whole ones, towards zero; what does not fit becomes the nearest that does, NaN 0. */
void ggml_cpu_fp32_to_i32(const float *x, int32_t *y, int64_t n);

/* `n` numbers of single precision to half. */
void ggml_cpu_fp32_to_fp16(const float *x, ggml_fp16_t *y, int64_t n);

/* `n` numbers of half precision to single. */
void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *x, float *y, int64_t n);

/* `n` numbers of single precision to bf16. */
void ggml_cpu_fp32_to_bf16(const float *x, ggml_bf16_t *y, int64_t n);

/* `n` numbers of bf16 to single precision. */
void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *x, float *y, int64_t n);

/* A tensor of one i32 number. The context is not `no_alloc`. */
struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value);

/* A tensor of one f32 number. The context is not `no_alloc`. */
struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value);

/* Sets every element to `value`. Answers the tensor. */
struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value);

/* Sets every element to `value`. Answers the tensor. */
struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value);

/* Element number `i`, as a whole number. */
int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i);

/* Sets element number `i`. */
void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value);

/* The element at an index, as a whole number. */
int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);

/* Sets the element at an index. */
void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, int32_t value);

/* Element number `i`. */
float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i);

/* Sets element number `i`. */
void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value);

/* The element at an index. */
float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);

/* Sets the element at an index. */
void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, float value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
