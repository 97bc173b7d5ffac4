/* Tensors, contexts, operators and graphs. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_H
#define GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of a tensor's name with its terminating zero. It decides the size of struct ggml_tensor, so program and library must
 * agree: a program compiled with another value than the library's does not load (the missing symbol names the value). */
#ifndef GGML_MAX_NAME
#    define GGML_MAX_NAME 160
#endif

#define GGML_STRINGIFY_(x) #x
#define GGML_STRINGIFY(x) GGML_STRINGIFY_(x)
#if defined(__ELF__) && defined(__GNUC__)
#    define GGML_LAYOUT_LABEL(name) __asm__(#name "_for_GGML_MAX_NAME_" GGML_STRINGIFY(GGML_MAX_NAME))
#else
#    define GGML_LAYOUT_LABEL(name)
#endif

#define GGML_API extern
#define GGML_BACKEND_API extern

#ifdef __GNUC__
#    define GGML_DEPRECATED(func, hint) func __attribute__((deprecated(hint)))
#    define GGML_ATTRIBUTE_FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))
#else
#    define GGML_DEPRECATED(func, hint) func
#    define GGML_ATTRIBUTE_FORMAT(...)
#endif

#ifdef __cplusplus
#    define GGML_RESTRICT __restrict
#    define GGML_NORETURN [[noreturn]]
#else
#    define GGML_RESTRICT restrict
#    define GGML_NORETURN _Noreturn
#endif

#define GGML_FILE_MAGIC 0x67676d6c
#define GGML_FILE_VERSION 2
#define GGML_QNT_VERSION 2
#define GGML_QNT_VERSION_FACTOR 1000
#define GGML_MAX_PARAMS 2048
#define GGML_EXIT_SUCCESS 0
#define GGML_EXIT_ABORTED 1

#define GGML_UNUSED(x) (void) (x)
#define GGML_UNUSED_VARS(...) do { (void) sizeof((__VA_ARGS__, 0)); } while (0)

/* x rounded up to a multiple of n, a power of two. */
#define GGML_PAD(x, n) (((x) + (n) - 1) & ~((n) - 1))

#ifdef __GNUC__
#    define GGML_UNREACHABLE() __builtin_unreachable()
#else
#    define GGML_UNREACHABLE() ((void) 0)
#endif

/* For the caller's own invariants; the library itself does not abort. */
#define GGML_ABORT(...) ggml_abort(__FILE__, __LINE__, __VA_ARGS__)
#define GGML_ASSERT(x) do { if (!(x)) GGML_ABORT("GGML_ASSERT(%s) failed", #x); } while (0)

/* Copies of the members of an array of a tensor, as constants named prefix0 to prefix3; 0 for a NULL tensor. */
#define GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                          \
    const type prefix##0 = (pointer) ? (type) (pointer)->array[0] : (type) 0;       \
    GGML_UNUSED(prefix##0);
#define GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                          \
    GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                              \
    const type prefix##1 = (pointer) ? (type) (pointer)->array[1] : (type) 0;       \
    GGML_UNUSED(prefix##1);
#define GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                          \
    GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                              \
    const type prefix##2 = (pointer) ? (type) (pointer)->array[2] : (type) 0;       \
    GGML_UNUSED(prefix##2);
#define GGML_TENSOR_LOCALS(type, prefix, pointer, array)                            \
    GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                              \
    const type prefix##3 = (pointer) ? (type) (pointer)->array[3] : (type) 0;       \
    GGML_UNUSED(prefix##3);

struct ggml_object;
struct ggml_context;
struct ggml_cgraph;
struct ggml_backend_buffer;

/* The upper half of an IEEE single. */
typedef struct { uint16_t bits; } ggml_bf16_t;


/* Dimensions of a tensor. */
#define GGML_MAX_DIMS 4

/* Sources of a node. */
#define GGML_MAX_SRC 10

/* Bytes of operator parameters in a node. */
#define GGML_MAX_OP_PARAMS 64

/* The same, counted in 32-bit words. */
#define GGML_N_OP_PARAMS 16

/* Threads of a pool. */
#define GGML_MAX_N_THREADS 512

/* Threads that `ggml_graph_plan` uses when the caller gives none. */
#define GGML_DEFAULT_N_THREADS 4

/* Nodes that `ggml_new_graph` has room for. */
#define GGML_DEFAULT_GRAPH_SIZE 2048

/* Alignment of objects and of tensor data in a context, bytes. */
#define GGML_MEM_ALIGN 16

/* Tasks of a custom operator: as many as there are threads. */
#define GGML_N_TASKS_MAX -1

/* `ggml_rope_ext` modes: adjacent pairs. */
#define GGML_ROPE_TYPE_NORMAL 0

/* Pairs half a row apart. */
#define GGML_ROPE_TYPE_NEOX 2

/* Several position streams, in sections. */
#define GGML_ROPE_TYPE_MROPE 8

/* Two position streams, for images. */
#define GGML_ROPE_TYPE_VISION 24

/* Several position streams, interleaved. */
#define GGML_ROPE_TYPE_IMROPE 40

/* Position streams of a multi-section rope. */
#define GGML_MROPE_SECTIONS 4

/*
 Element and block formats. Values are those of the gguf file format; gaps are formats that were withdrawn. The 8-bit floats are those
 of the ggml that stable-diffusion.cpp brings along, and can only be read.

 So `GGML_TYPE_COUNT` is 2 above upstream's: no format may have the number that programs use for "no format" and for the length of
 their tables. A loop over formats meets two more, with names and sizes, that nothing can be encoded to.
 */
enum ggml_type {
  GGML_TYPE_F32 = 0,
  GGML_TYPE_F16 = 1,
  GGML_TYPE_Q4_0 = 2,
  GGML_TYPE_Q4_1 = 3,
  GGML_TYPE_Q5_0 = 6,
  GGML_TYPE_Q5_1 = 7,
  GGML_TYPE_Q8_0 = 8,
  GGML_TYPE_Q8_1 = 9,
  GGML_TYPE_Q2_K = 10,
  GGML_TYPE_Q3_K = 11,
  GGML_TYPE_Q4_K = 12,
  GGML_TYPE_Q5_K = 13,
  GGML_TYPE_Q6_K = 14,
  GGML_TYPE_Q8_K = 15,
  GGML_TYPE_IQ2_XXS = 16,
  GGML_TYPE_IQ2_XS = 17,
  GGML_TYPE_IQ3_XXS = 18,
  GGML_TYPE_IQ1_S = 19,
  GGML_TYPE_IQ4_NL = 20,
  GGML_TYPE_IQ3_S = 21,
  GGML_TYPE_IQ2_S = 22,
  GGML_TYPE_IQ4_XS = 23,
  GGML_TYPE_I8 = 24,
  GGML_TYPE_I16 = 25,
  GGML_TYPE_I32 = 26,
  GGML_TYPE_I64 = 27,
  GGML_TYPE_F64 = 28,
  GGML_TYPE_IQ1_M = 29,
  GGML_TYPE_BF16 = 30,
  GGML_TYPE_TQ1_0 = 34,
  GGML_TYPE_TQ2_0 = 35,
  GGML_TYPE_MXFP4 = 39,
  GGML_TYPE_NVFP4 = 40,
  GGML_TYPE_Q1_0 = 41,
  GGML_TYPE_Q2_0 = 42,
  GGML_TYPE_F8_E4M3 = 43,
  GGML_TYPE_F8_E5M2 = 44,
  GGML_TYPE_COUNT = 45,
};

/* What a node computes. */
enum ggml_op {
  GGML_OP_NONE = 0,
  GGML_OP_DUP = 1,
  GGML_OP_ADD = 2,
  GGML_OP_ADD_ID = 3,
  GGML_OP_ADD1 = 4,
  GGML_OP_ACC = 5,
  GGML_OP_SUB = 6,
  GGML_OP_MUL = 7,
  GGML_OP_DIV = 8,
  GGML_OP_SQR = 9,
  GGML_OP_SQRT = 10,
  GGML_OP_LOG = 11,
  GGML_OP_SIN = 12,
  GGML_OP_COS = 13,
  GGML_OP_SUM = 14,
  GGML_OP_SUM_ROWS = 15,
  GGML_OP_CUMSUM = 16,
  GGML_OP_MEAN = 17,
  GGML_OP_ARGMAX = 18,
  GGML_OP_COUNT_EQUAL = 19,
  GGML_OP_REPEAT = 20,
  GGML_OP_REPEAT_BACK = 21,
  GGML_OP_CONCAT = 22,
  GGML_OP_SILU_BACK = 23,
  GGML_OP_NORM = 24,
  GGML_OP_RMS_NORM = 25,
  GGML_OP_RMS_NORM_BACK = 26,
  GGML_OP_GROUP_NORM = 27,
  GGML_OP_L2_NORM = 28,
  GGML_OP_MUL_MAT = 29,
  GGML_OP_MUL_MAT_ID = 30,
  GGML_OP_OUT_PROD = 31,
  GGML_OP_SCALE = 32,
  GGML_OP_SET = 33,
  GGML_OP_CPY = 34,
  GGML_OP_CONT = 35,
  GGML_OP_RESHAPE = 36,
  GGML_OP_VIEW = 37,
  GGML_OP_PERMUTE = 38,
  GGML_OP_TRANSPOSE = 39,
  GGML_OP_GET_ROWS = 40,
  GGML_OP_GET_ROWS_BACK = 41,
  GGML_OP_SET_ROWS = 42,
  GGML_OP_DIAG = 43,
  GGML_OP_DIAG_MASK_INF = 44,
  GGML_OP_DIAG_MASK_ZERO = 45,
  GGML_OP_SOFT_MAX = 46,
  GGML_OP_SOFT_MAX_BACK = 47,
  GGML_OP_ROPE = 48,
  GGML_OP_ROPE_BACK = 49,
  GGML_OP_CLAMP = 50,
  GGML_OP_CONV_TRANSPOSE_1D = 51,
  GGML_OP_IM2COL = 52,
  GGML_OP_IM2COL_BACK = 53,
  GGML_OP_IM2COL_3D = 54,
  GGML_OP_COL2IM_1D = 55,
  GGML_OP_CONV_2D = 56,
  GGML_OP_CONV_3D = 57,
  GGML_OP_CONV_2D_DW = 58,
  GGML_OP_CONV_TRANSPOSE_2D = 59,
  GGML_OP_POOL_1D = 60,
  GGML_OP_POOL_2D = 61,
  GGML_OP_POOL_2D_BACK = 62,
  GGML_OP_UPSCALE = 63,
  GGML_OP_PAD = 64,
  GGML_OP_PAD_REFLECT_1D = 65,
  GGML_OP_ROLL = 66,
  GGML_OP_ARANGE = 67,
  GGML_OP_TIMESTEP_EMBEDDING = 68,
  GGML_OP_ARGSORT = 69,
  GGML_OP_TOP_K = 70,
  GGML_OP_LEAKY_RELU = 71,
  GGML_OP_TRI = 72,
  GGML_OP_FILL = 73,
  GGML_OP_FLASH_ATTN_EXT = 74,
  GGML_OP_FLASH_ATTN_BACK = 75,
  GGML_OP_SSM_CONV = 76,
  GGML_OP_SSM_SCAN = 77,
  GGML_OP_WIN_PART = 78,
  GGML_OP_WIN_UNPART = 79,
  GGML_OP_GET_REL_POS = 80,
  GGML_OP_ADD_REL_POS = 81,
  GGML_OP_RWKV_WKV6 = 82,
  GGML_OP_GATED_LINEAR_ATTN = 83,
  GGML_OP_RWKV_WKV7 = 84,
  GGML_OP_SOLVE_TRI = 85,
  GGML_OP_GATED_DELTA_NET = 86,
  GGML_OP_LIGHTNING_INDEXER = 87,
  GGML_OP_DSV4_HC_COMB = 88,
  GGML_OP_DSV4_HC_PRE = 89,
  GGML_OP_DSV4_HC_POST = 90,
  GGML_OP_UNARY = 91,
  GGML_OP_MAP_CUSTOM1 = 92,
  GGML_OP_MAP_CUSTOM2 = 93,
  GGML_OP_MAP_CUSTOM3 = 94,
  GGML_OP_CUSTOM = 95,
  GGML_OP_CROSS_ENTROPY_LOSS = 96,
  GGML_OP_CROSS_ENTROPY_LOSS_BACK = 97,
  GGML_OP_OPT_STEP_ADAMW = 98,
  GGML_OP_OPT_STEP_SGD = 99,
  GGML_OP_GLU = 100,
  GGML_OP_COUNT = 101,
};

/* How a pooling window is reduced. */
enum ggml_op_pool {
  GGML_OP_POOL_MAX = 0,
  GGML_OP_POOL_AVG = 1,
  GGML_OP_POOL_COUNT = 2,
};

/* Which triangle of a matrix is kept. */
enum ggml_tri_type {
  GGML_TRI_TYPE_UPPER_DIAG = 0,
  GGML_TRI_TYPE_UPPER = 1,
  GGML_TRI_TYPE_LOWER_DIAG = 2,
  GGML_TRI_TYPE_LOWER = 3,
};

/* The format of most tensors of a model file. */
enum ggml_ftype {
  GGML_FTYPE_UNKNOWN = -1,
  GGML_FTYPE_ALL_F32 = 0,
  GGML_FTYPE_MOSTLY_F16 = 1,
  GGML_FTYPE_MOSTLY_Q4_0 = 2,
  GGML_FTYPE_MOSTLY_Q4_1 = 3,
  GGML_FTYPE_MOSTLY_Q4_1_SOME_F16 = 4,
  GGML_FTYPE_MOSTLY_Q8_0 = 7,
  GGML_FTYPE_MOSTLY_Q5_0 = 8,
  GGML_FTYPE_MOSTLY_Q5_1 = 9,
  GGML_FTYPE_MOSTLY_Q2_K = 10,
  GGML_FTYPE_MOSTLY_Q3_K = 11,
  GGML_FTYPE_MOSTLY_Q4_K = 12,
  GGML_FTYPE_MOSTLY_Q5_K = 13,
  GGML_FTYPE_MOSTLY_Q6_K = 14,
  GGML_FTYPE_MOSTLY_IQ2_XXS = 15,
  GGML_FTYPE_MOSTLY_IQ2_XS = 16,
  GGML_FTYPE_MOSTLY_IQ3_XXS = 17,
  GGML_FTYPE_MOSTLY_IQ1_S = 18,
  GGML_FTYPE_MOSTLY_IQ4_NL = 19,
  GGML_FTYPE_MOSTLY_IQ3_S = 20,
  GGML_FTYPE_MOSTLY_IQ2_S = 21,
  GGML_FTYPE_MOSTLY_IQ4_XS = 22,
  GGML_FTYPE_MOSTLY_IQ1_M = 23,
  GGML_FTYPE_MOSTLY_BF16 = 24,
  GGML_FTYPE_MOSTLY_MXFP4 = 25,
  GGML_FTYPE_MOSTLY_NVFP4 = 26,
  GGML_FTYPE_MOSTLY_Q1_0 = 27,
  GGML_FTYPE_MOSTLY_Q2_0 = 28,
};

/* The gate of a `GGML_OP_GLU` node. */
enum ggml_glu_op {
  GGML_GLU_OP_REGLU = 0,
  GGML_GLU_OP_GEGLU = 1,
  GGML_GLU_OP_SWIGLU = 2,
  GGML_GLU_OP_SWIGLU_OAI = 3,
  GGML_GLU_OP_GEGLU_ERF = 4,
  GGML_GLU_OP_GEGLU_QUICK = 5,
  GGML_GLU_OP_SWIGLU_CLAMP = 6,
  GGML_GLU_OP_COUNT = 7,
};

/* How `ggml_interpolate` samples. */
enum ggml_scale_mode {
  GGML_SCALE_MODE_NEAREST = 0,
  GGML_SCALE_MODE_BILINEAR = 1,
  GGML_SCALE_MODE_BICUBIC = 2,
  GGML_SCALE_MODE_COUNT = 3,
};

/* Precision asked of an operator's accumulation. */
enum ggml_prec {
  GGML_PREC_UNDEFINED = 0,
  GGML_PREC_DEFAULT = 0,
  GGML_PREC_F32 = 10,
  GGML_PREC_BF16 = 15,
  GGML_PREC_F16 = 20,
  GGML_PREC_Q8 = 30,
  GGML_PREC_Q4 = 40,
};

/* What a caller knows about a matrix multiplication's operands. */
enum ggml_op_hint {
  GGML_HINT_NONE = 0,
  GGML_HINT_SRC0_IS_HADAMARD = 1,
};

/* The function of a `GGML_OP_UNARY` node. */
enum ggml_unary_op {
  GGML_UNARY_OP_ABS = 0,
  GGML_UNARY_OP_SGN = 1,
  GGML_UNARY_OP_NEG = 2,
  GGML_UNARY_OP_STEP = 3,
  GGML_UNARY_OP_TANH = 4,
  GGML_UNARY_OP_ELU = 5,
  GGML_UNARY_OP_RELU = 6,
  GGML_UNARY_OP_SIGMOID = 7,
  GGML_UNARY_OP_GELU = 8,
  GGML_UNARY_OP_GELU_QUICK = 9,
  GGML_UNARY_OP_SILU = 10,
  GGML_UNARY_OP_HARDSWISH = 11,
  GGML_UNARY_OP_HARDSIGMOID = 12,
  GGML_UNARY_OP_EXP = 13,
  GGML_UNARY_OP_EXPM1 = 14,
  GGML_UNARY_OP_SOFTPLUS = 15,
  GGML_UNARY_OP_GELU_ERF = 16,
  GGML_UNARY_OP_XIELU = 17,
  GGML_UNARY_OP_FLOOR = 18,
  GGML_UNARY_OP_CEIL = 19,
  GGML_UNARY_OP_ROUND = 20,
  GGML_UNARY_OP_TRUNC = 21,
  GGML_UNARY_OP_COUNT = 22,
};

/* What a call that can fail answers. */
enum ggml_status {
  GGML_STATUS_ALLOC_FAILED = -2,
  GGML_STATUS_FAILED = -1,
  GGML_STATUS_SUCCESS = 0,
  GGML_STATUS_ABORTED = 1,
};

/* Order of `ggml_argsort`. */
enum ggml_sort_order {
  GGML_SORT_ORDER_ASC = 0,
  GGML_SORT_ORDER_DESC = 1,
};

/* Severity of a log line. */
enum ggml_log_level {
  GGML_LOG_LEVEL_NONE = 0,
  GGML_LOG_LEVEL_DEBUG = 1,
  GGML_LOG_LEVEL_INFO = 2,
  GGML_LOG_LEVEL_WARN = 3,
  GGML_LOG_LEVEL_ERROR = 4,
  GGML_LOG_LEVEL_CONT = 5,
};

/* What an object of a context's arena holds. */
enum ggml_object_type {
  GGML_OBJECT_TYPE_TENSOR = 0,
  GGML_OBJECT_TYPE_GRAPH = 1,
  GGML_OBJECT_TYPE_WORK_BUFFER = 2,
};

/* Bits of `ggml_tensor.flags`. */
enum ggml_tensor_flag {
  GGML_TENSOR_FLAG_INPUT = 1,
  GGML_TENSOR_FLAG_OUTPUT = 2,
  GGML_TENSOR_FLAG_PARAM = 4,
  GGML_TENSOR_FLAG_LOSS = 8,
  GGML_TENSOR_FLAG_COMPUTE = 16,
};

/* Bits that are or-ed to a `ggml_scale_mode`. */
enum ggml_scale_flag {
  GGML_SCALE_FLAG_ALIGN_CORNERS = 256,
  GGML_SCALE_FLAG_ANTIALIAS = 512,
};

/* Scheduling priority of a pool's threads. */
enum ggml_sched_priority {
  GGML_SCHED_PRIO_LOW = -1,
  GGML_SCHED_PRIO_NORMAL = 0,
  GGML_SCHED_PRIO_MEDIUM = 1,
  GGML_SCHED_PRIO_HIGH = 2,
  GGML_SCHED_PRIO_REALTIME = 3,
};

/* An arena of tensors and graphs; opaque. */
struct ggml_context;

/* One of the objects of a context; opaque. */
struct ggml_object;

/* A pool of threads; opaque. */
struct ggml_threadpool;

/* A tensor, and a node of a graph when it has an operator. All dimensions are low to high. */
struct ggml_tensor {
  /* Format of the elements. */
  enum ggml_type type;
  /* The buffer that holds the data; NULL while unallocated, or when the context's arena holds it. */
  struct ggml_backend_buffer *buffer;
  /* Elements in each dimension. */
  int64_t ne[GGML_MAX_DIMS];
  /* Bytes from one element (dimension 0: from one block) to the next. */
  size_t nb[GGML_MAX_DIMS];
  /* What computes it. */
  enum ggml_op op;
  /* Parameters of the operator. */
  int32_t op_params[GGML_N_OP_PARAMS];
  /* Bits of `ggml_tensor_flag`. */
  int32_t flags;
  /* What it is computed from. */
  struct ggml_tensor *src[GGML_MAX_SRC];
  /* The tensor whose storage this one views; never a view itself. */
  struct ggml_tensor *view_src;
  /* Bytes from the start of `view_src`'s data. */
  size_t view_offs;
  /* First element, in the address space of the buffer. */
  void *data;
  /* Zero-terminated name. */
  char name[GGML_MAX_NAME];
  /* For the backend that holds the tensor. */
  void *extra;
  /* Keeps the size a multiple of 16. */
  char padding[8];
};

/* How `ggml_init` makes a context. */
struct ggml_init_params {
  /* Bytes of the arena. */
  size_t mem_size;
  /* The arena, aligned to 16 bytes and owned by the caller; NULL: the context allocates its own. */
  void *mem_buffer;
  /* Tensors get no data from the arena: a buffer will hold it. */
  bool no_alloc;
};

/* An operator of the caller's with one source: thread `ith` of `nth` computes its share of `dst`. */
typedef void (*ggml_custom1_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth, void *userdata);

/* As [`ggml_custom1_op_t`], with two sources. */
typedef void (*ggml_custom2_op_t)(struct ggml_tensor *dst,
                                  const struct ggml_tensor *a,
                                  const struct ggml_tensor *b,
                                  int ith,
                                  int nth,
                                  void *userdata);

/* As [`ggml_custom1_op_t`], with three sources. */
typedef void (*ggml_custom3_op_t)(struct ggml_tensor *dst,
                                  const struct ggml_tensor *a,
                                  const struct ggml_tensor *b,
                                  const struct ggml_tensor *c,
                                  int ith,
                                  int nth,
                                  void *userdata);

/* As [`ggml_custom1_op_t`]; the sources are in `dst->src`. */
typedef void (*ggml_custom_op_t)(struct ggml_tensor *dst, int ith, int nth, void *userdata);

/* IEEE half precision, as its bits. */
typedef uint16_t ggml_fp16_t;

/* Decodes `k` elements. */
typedef void (*ggml_to_float_t)(const void *x, float *y, int64_t k);

/* Encodes `k` elements. */
typedef void (*ggml_from_float_t)(const float *x, void *y, int64_t k);

/* Facts about a format. */
struct ggml_type_traits {
  /* Name as files and logs spell it. */
  const char *type_name;
  /* Elements of a block. */
  int64_t blck_size;
  /* Blocks that are stored interleaved; zero for none. */
  int64_t blck_size_interleave;
  /* Bytes of a block. */
  size_t type_size;
  /* Whether blocks share a scale. */
  bool is_quantized;
  /* Decoder, or NULL. */
  ggml_to_float_t to_float;
  /* Encoder that defines the format's values, or NULL. */
  ggml_from_float_t from_float_ref;
};

/* Takes a log line. */
typedef void (*ggml_log_callback)(enum ggml_log_level level, const char *text, void *user_data);

/* Sixteen bytes that name a kind of backend. */
typedef uint8_t ggml_guid[16];

/* Points to a guid. */
typedef ggml_guid *ggml_guid_t;

/* Asked before each node; true stops the computation with `GGML_STATUS_ABORTED`. */
typedef bool (*ggml_abort_callback)(void *data);

/* Takes the text of `ggml_abort` in the place of standard error. */
typedef void (*ggml_abort_callback_t)(const char *error_message);

/* How a pool of threads is made. */
struct ggml_threadpool_params {
  /* Cores the threads may use; all false: any. */
  bool cpumask[GGML_MAX_N_THREADS];
  /* Threads. */
  int n_threads;
  /* Scheduling priority. */
  enum ggml_sched_priority prio;
  /* How long a waiting thread spins: 0 not at all, 100 long. */
  uint32_t poll;
  /* One core for each thread. */
  bool strict_cpu;
  /* Start paused. */
  bool paused;
};

/* Handle of a pool. */
typedef struct ggml_threadpool *ggml_threadpool_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* `a + b` for each element. `b` is repeated to the shape of `a`, which the result has. */
struct ggml_tensor *ggml_add(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_add`, written over `a`. */
struct ggml_tensor *ggml_add_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a - b` for each element. `b` is repeated to the shape of `a`, which the result has. */
struct ggml_tensor *ggml_sub(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_sub`, written over `a`. */
struct ggml_tensor *ggml_sub_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a * b` for each element. `b` is repeated to the shape of `a`, which the result has. */
struct ggml_tensor *ggml_mul(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_mul`, written over `a`. */
struct ggml_tensor *ggml_mul_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a / b` for each element. `b` is repeated to the shape of `a`, which the result has. */
struct ggml_tensor *ggml_div(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_div`, written over `a`. */
struct ggml_tensor *ggml_div_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a + b` in format `type`, for `a` quantised, f16 or bf16. Rows of `b` are as long as those of `a`. */
struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, enum ggml_type type);

/* `a[:, i, t] + b[:, ids[i, t]]`: `a` [n, used, tokens], `b` [n, rows], `ids` i32 [used, tokens]. */
struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *ids);

/* `a` plus the one element of `b`. */
struct ggml_tensor *ggml_add1(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_add1`, written over `a`. */
struct ggml_tensor *ggml_add1_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a` with `b` added into a window: strides and offset in bytes, below 2^31, inside `a`. Both f32, `a` contiguous. */
struct ggml_tensor *ggml_acc(struct ggml_context *ctx,
                             struct ggml_tensor *a,
                             struct ggml_tensor *b,
                             size_t nb1,
                             size_t nb2,
                             size_t nb3,
                             size_t offset);

/* As `ggml_acc`, written over `a`. */
struct ggml_tensor *ggml_acc_inplace(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     size_t nb1,
                                     size_t nb2,
                                     size_t nb3,
                                     size_t offset);

/* `a` with `b` put into a window: strides and offset in bytes, below 2^31, inside `a`. */
struct ggml_tensor *ggml_set(struct ggml_context *ctx,
                             struct ggml_tensor *a,
                             struct ggml_tensor *b,
                             size_t nb1,
                             size_t nb2,
                             size_t nb3,
                             size_t offset);

/* As `ggml_set`, written over `a`. */
struct ggml_tensor *ggml_set_inplace(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     size_t nb1,
                                     size_t nb2,
                                     size_t nb3,
                                     size_t offset);

/* `ggml_set` with the strides of `a`. */
struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t offset);

/* `ggml_set` with the strides of `a` but for dimension 1. */
struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx,
                                struct ggml_tensor *a,
                                struct ggml_tensor *b,
                                size_t nb1,
                                size_t offset);

/* `ggml_set` with the strides of `a`, written over `a`. */
struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, size_t offset);

/* `ggml_set` with the strides of `a` but for dimension 1, written over `a`. */
struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx,
                                        struct ggml_tensor *a,
                                        struct ggml_tensor *b,
                                        size_t nb1,
                                        size_t offset);

/* `a * s`. `a` has gaps after rows at most. */
struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s);

/* `a * s + b`. `a` has gaps after rows at most. */
struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b);

/* Each element, but not below `min` and not above `max`. */
struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max);

/* `c` in the shape of `a`. `a` contiguous, f32 or f16. */
struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c);

/* `a * s`, written over `a`. `a` has gaps after rows at most. */
struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s);

/* `a * s + b`, written over `a`. `a` has gaps after rows at most. */
struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b);

/* Each element, but not below `min` and not above `max`, written over `a`. */
struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max);

/* `c` in the shape of `a`, written over `a`. `a` contiguous, f32 or f16. */
struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float c);

/* Gradient `a` of `ggml_silu(b)` back to `b`. */
struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* Gradient `a` of `ggml_rms_norm(b, eps)` back to `b`. */
struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float eps);

/*
 Gradient `a` of a softmax `b` back to its source: `scale * b * (a - sum of a * b)` along each row. `scale` and `max_bias` as the
 softmax had them; a mask and its slopes change nothing.
 */
struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx,
                                           struct ggml_tensor *a,
                                           struct ggml_tensor *b,
                                           float scale,
                                           float max_bias);

/* As `ggml_soft_max_ext_back`, written over `a`. */
struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx,
                                                   struct ggml_tensor *a,
                                                   struct ggml_tensor *b,
                                                   float scale,
                                                   float max_bias);

/* The sum of the parts of `a` that have the shape of `b`, whose data are not looked at: a gradient back through `ggml_repeat`. */
struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/*
 Gradient `a` [n, r, b2, b3] of `ggml_get_rows(c, b)` back to `c` [n, rows, b2, b3], whose data are not looked at: f32. `b`: i32
 [r, b2, b3]. Rows that were taken more than once add up; those that were not are 0. An index that is no row fails the graph.
 */
struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx,
                                       struct ggml_tensor *a,
                                       struct ggml_tensor *b,
                                       struct ggml_tensor *c);

/*
 Gradient `a` of `ggml_im2col`, of its result's shape, back to a picture of shape `ne` (4 numbers): f32. `b`: the kernel; the
 others as in `ggml_im2col`.
 */
struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     int64_t *ne,
                                     int s0,
                                     int s1,
                                     int p0,
                                     int p1,
                                     int d0,
                                     int d1,
                                     bool is_2D);

/* Gradient `a` of `ggml_pool_2d(af)` back to `af`: f32. Of equal elements of a window, the first has been its largest. */
struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx,
                                      struct ggml_tensor *a,
                                      struct ggml_tensor *af,
                                      enum ggml_op_pool op,
                                      int k0,
                                      int k1,
                                      int s0,
                                      int s1,
                                      float p0,
                                      float p1);

/*
 Gradient `d` [dim, queries, heads, batch] of an attention back to `q` [dim, queries, heads, batch], `k` [dim, keys, k2, batch] and
 `v` [keys, dim, k2, batch], which is transposed; head h reads k and v of h modulo k2. The attention is softmax(q k / sqrt(dim)) v;
 where `masked`, query i reads the keys up to `keys - queries + i`. The result is f32 [n]: the gradients of `q`, `k` and `v`, each
 contiguous in the shape of its source, and filled up to a multiple of 16 bytes.
 */
struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx,
                                         struct ggml_tensor *q,
                                         struct ggml_tensor *k,
                                         struct ggml_tensor *v,
                                         struct ggml_tensor *d,
                                         bool masked);

/* Gradient `a` of `ggml_rope_ext` with the same arguments back to its source. */
struct ggml_tensor *ggml_rope_ext_back(struct ggml_context *ctx,
                                       struct ggml_tensor *a,
                                       struct ggml_tensor *b,
                                       struct ggml_tensor *c,
                                       int n_dims,
                                       int mode,
                                       int n_ctx_orig,
                                       float freq_base,
                                       float freq_scale,
                                       float ext_factor,
                                       float attn_factor,
                                       float beta_fast,
                                       float beta_slow);

/* Gradient `a` of `ggml_rope_multi` with the same arguments back to its source. */
struct ggml_tensor *ggml_rope_multi_back(struct ggml_context *ctx,
                                         struct ggml_tensor *a,
                                         struct ggml_tensor *b,
                                         struct ggml_tensor *c,
                                         int n_dims,
                                         int *sections,
                                         int mode,
                                         int n_ctx_orig,
                                         float freq_base,
                                         float freq_scale,
                                         float ext_factor,
                                         float attn_factor,
                                         float beta_fast,
                                         float beta_slow);

/* A new context, or NULL with an error: no memory, or a `mem_buffer` that is not aligned to 16 bytes. */
struct ggml_context *ggml_init(struct ggml_init_params params) GGML_LAYOUT_LABEL(ggml_init);

/* Forgets everything in a context; its memory stays. */
void ggml_reset(struct ggml_context *ctx);

/* Frees a context and everything in it. NULL is no change. */
void ggml_free(struct ggml_context *ctx);

/* Bytes of the context's memory in use. */
size_t ggml_used_mem(const struct ggml_context *ctx);

/* Whether tensors of the context get no data from its memory. */
bool ggml_get_no_alloc(struct ggml_context *ctx);

/* Sets whether tensors made from now on get no data from the context's memory. */
void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc);

/* The context's memory. */
void *ggml_get_mem_buffer(const struct ggml_context *ctx);

/* Bytes of the context's memory. */
size_t ggml_get_mem_size(const struct ggml_context *ctx);

/* Bytes of the largest tensor in the context. */
size_t ggml_get_max_tensor_size(const struct ggml_context *ctx);

/* Bytes that a tensor takes from a context besides its data. */
size_t ggml_tensor_overhead(void);

/* A tensor of `n_dims` (1 to 4) dimensions `ne`. */
struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne);

/* A tensor of one dimension. */
struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0);

/* A tensor of two dimensions. */
struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1);

/* A tensor of three dimensions. */
struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2);

/* A tensor of four dimensions. */
struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx,
                                       enum ggml_type type,
                                       int64_t ne0,
                                       int64_t ne1,
                                       int64_t ne2,
                                       int64_t ne3);

/* `nbytes` bytes of the context's memory, not initialised; NULL with an error when it is full. */
void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);

/* A tensor of the format and shape of `src`. */
struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src);

/* All of `src` as it lies, under another name; no node. */
struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);

/* The first tensor of the context, or NULL. */
struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);

/* The tensor after `tensor` in the order of making, or NULL. */
struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor);

/* The first tensor of the context with this name, or NULL. */
struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);

/* The tensor's data, or NULL. */
void *ggml_get_data(const struct ggml_tensor *tensor);

/* The data of an f32 tensor; NULL for other formats. */
float *ggml_get_data_f32(const struct ggml_tensor *tensor);

/* The tensor's name; never NULL but for NULL. */
const char *ggml_get_name(const struct ggml_tensor *tensor);

/* Names a tensor; the name is cut to `GGML_MAX_NAME - 1` bytes. Answers the tensor. */
struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);

/* Sets all bytes of a tensor to 0, gaps of a view included. One without data is an error. Answers the tensor. */
struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);

/* Marks a tensor that is no node as an input: it keeps memory of its own from the start. */
void ggml_set_input(struct ggml_tensor *tensor);

/* Marks a tensor, and the one it views, as an output: its memory is not given to others. */
void ggml_set_output(struct ggml_tensor *tensor);

/* Marks a tensor that is no node as one to be trained. */
void ggml_set_param(struct ggml_tensor *tensor);

/* Marks an f32 tensor of one element as a loss. */
void ggml_set_loss(struct ggml_tensor *tensor);

/*
 The windows of `b` as rows. In two dimensions: kernel `a` [KW, KH, IC, _], picture `b` [W, H, IC, N] give
 `dst_type` [IC*KH*KW, OW, OH, N]. In one: `a` [K, IC, _], `b` [L, IC, N] give [IC*K, OL, N]. s, p, d: stride, zeros on either
 side, dilation.
 */
struct ggml_tensor *ggml_im2col(struct ggml_context *ctx,
                                struct ggml_tensor *a,
                                struct ggml_tensor *b,
                                int s0,
                                int s1,
                                int p0,
                                int p1,
                                int d0,
                                int d1,
                                bool is_2D,
                                enum ggml_type dst_type);

/*
 As `ggml_im2col` in three dimensions: kernel `a` [KW, KH, KD, IC*OC], volume `b` [W, H, D, IC*N] give
 `dst_type` [IC*KD*KH*KW, OW, OH, OD*N].
 */
struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx,
                                   struct ggml_tensor *a,
                                   struct ggml_tensor *b,
                                   int64_t IC,
                                   int s0,
                                   int s1,
                                   int s2,
                                   int p0,
                                   int p1,
                                   int p2,
                                   int d0,
                                   int d1,
                                   int d2,
                                   enum ggml_type dst_type);

/*
 Sums columns back to a signal: contiguous f32, f16 or bf16 `a` [K*oc, T], the `oc` kernels of K taps that each input gives, to
 [(T-1)*s0 + K - 2*p0, oc] in the format of `a`. `s0`: elements from one input to the next; `p0`: elements cut off on either side.
 */
struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0, int oc, int p0);

/* Convolution: kernel `a` [K, IC, OC], signal `b` [L, IC, N] give f32 [OL, OC, N]. Made of `ggml_im2col` and `ggml_mul_mat`. */
struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int p0, int d0);

/* As `ggml_conv_1d` with half the kernel as padding. */
struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s, int d);

/* Depthwise convolution: kernel `a` [K, 1, C], signal `b` [L, C] give f32 [OL, C]. */
struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx,
                                    struct ggml_tensor *a,
                                    struct ggml_tensor *b,
                                    int s0,
                                    int p0,
                                    int d0);

/* As `ggml_conv_1d_dw` with half the kernel as padding. */
struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int s0, int d0);

/*
 Convolution: kernel `a` [KW, KH, IC, OC], picture `b` [W, H, IC, N] give f32 [OW, OH, OC, N]. Made of `ggml_im2col` and
 `ggml_mul_mat`.
 */
struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 struct ggml_tensor *b,
                                 int s0,
                                 int s1,
                                 int p0,
                                 int p1,
                                 int d0,
                                 int d1);

/* As `ggml_conv_2d` with the kernel as stride and no padding. */
struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* As `ggml_conv_2d` with stride 1 and half the kernel as padding. */
struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/*
 Depthwise convolution: kernel `a` [KW, KH, 1, C], picture `b` [W, H, C, N] give f32 [OW, OH, C, N]. Made of `ggml_im2col` and
 `ggml_mul_mat`.
 */
struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx,
                                    struct ggml_tensor *a,
                                    struct ggml_tensor *b,
                                    int s0,
                                    int s1,
                                    int p0,
                                    int p1,
                                    int d0,
                                    int d1);

/*
 Convolution: kernel `a` [KW, KH, KD, IC*OC], volume `b` [W, H, D, IC*N] give f32 [OW, OH, OD, OC*N]. Made of `ggml_im2col_3d`
 and `ggml_mul_mat`.
 */
struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 struct ggml_tensor *b,
                                 int64_t IC,
                                 int s0,
                                 int s1,
                                 int s2,
                                 int p0,
                                 int p1,
                                 int p2,
                                 int d0,
                                 int d1,
                                 int d2);

/* As `ggml_conv_2d` in one node; the result has the format of `b`. */
struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx,
                                        struct ggml_tensor *a,
                                        struct ggml_tensor *b,
                                        int s0,
                                        int s1,
                                        int p0,
                                        int p1,
                                        int d0,
                                        int d1);

/* As `ggml_conv_2d_dw` in one node; the result has the format of `b`, and its channels lie innermost where those of `b` do. */
struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx,
                                           struct ggml_tensor *a,
                                           struct ggml_tensor *b,
                                           int stride0,
                                           int stride1,
                                           int pad0,
                                           int pad1,
                                           int dilation0,
                                           int dilation1);

/* As `ggml_conv_3d` in one node: kernel `a` [KW, KH, KD, c*oc], volume `b` [W, H, D, c*n] give f32 [OW, OH, OD, oc*n]. */
struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx,
                                        struct ggml_tensor *a,
                                        struct ggml_tensor *b,
                                        int s0,
                                        int s1,
                                        int s2,
                                        int p0,
                                        int p1,
                                        int p2,
                                        int d0,
                                        int d1,
                                        int d2,
                                        int n_channels,
                                        int n_batch,
                                        int n_channels_out);

/* Transposed convolution: kernel `a` [K, OC, IC], signal `b` [L, IC] give f32 [(L-1)*s0 + K, OC]. `p0` is 0 and `d0` is 1. */
struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx,
                                           struct ggml_tensor *a,
                                           struct ggml_tensor *b,
                                           int s0,
                                           int p0,
                                           int d0);

/*
 Transposed convolution: kernel `a` [KW, KH, OC, IC], picture `b` [W, H, IC, N] give f32
 [(W-1)*stride + KW, (H-1)*stride + KH, OC, N].
 */
struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int stride);

/* The largest or mean of each window of `k0` elements, `s0` apart, of each row: f32. `p0`: elements added on either side. */
struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op, int k0, int s0, int p0);

/* The largest or mean of each window of `k0` times `k1` elements, `s0` and `s1` apart: f32 [OW, OH, ne2, ne3]. */
struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 enum ggml_op_pool op,
                                 int k0,
                                 int k1,
                                 int s0,
                                 int s1,
                                 float p0,
                                 float p1);

/* Copies `a` into `b`, which has as many elements and any format or layout; the result is a view of `b`. */
struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a` in format `type`, contiguous. */
struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_type type);

/* `a` without gaps. */
struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` without gaps, in a shape with as many elements. */
struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);

/* `a` without gaps, in a shape with as many elements. */
struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1);

/* `a` without gaps, in a shape with as many elements. */
struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2);

/* `a` without gaps, in a shape with as many elements. */
struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 int64_t ne0,
                                 int64_t ne1,
                                 int64_t ne2,
                                 int64_t ne3);

/* `a` repeated to the shape of `b`, whose data are not looked at. */
struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `a` repeated to a shape. */
struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx,
                                   struct ggml_tensor *a,
                                   int64_t ne0,
                                   int64_t ne1,
                                   int64_t ne2,
                                   int64_t ne3);

/* `a` and then `b` along dimension `dim`; all other dimensions and the format are equal. */
struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int dim);

/* Rows by index: `a` [n, rows, a2, a3] and `b` i32 [r, a2, a3] give [n, r, a2, a3], i32 from i32 and else f32. */
struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/*
 Puts rows `b` [n, r, a2, a3], f32 or f16, at the rows `c` i32 or i64 [r, i1, i2] of `a` [n, rows, a2, a3]; a2 and a3 are
 multiples of i1 and i2. The result is a view of `a`.
 */
struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c);

/* [n, 1, a2, a3] on the diagonals of [n, n, a2, a3]. */
struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` with minus infinity in row i after element `n_past + i`. */
struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

/* As `ggml_diag_mask_inf`, written over `a`. */
struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

/* `a` with 0 in row i after element `n_past + i`. */
struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

/* As `ggml_diag_mask_zero`, written over `a`. */
struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

/* One triangle of square f32 matrices, zeros elsewhere. `a` is contiguous. */
struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_tri_type type);

/*
 A node that `fun` computes from one source, in the shape and format of `a`. `n_tasks`: threads that share it, or
 `GGML_N_TASKS_MAX`.
 */
struct ggml_tensor *ggml_map_custom1(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     ggml_custom1_op_t fun,
                                     int n_tasks,
                                     void *userdata);

/* As `ggml_map_custom1`, written over `a`. */
struct ggml_tensor *ggml_map_custom1_inplace(struct ggml_context *ctx,
                                             struct ggml_tensor *a,
                                             ggml_custom1_op_t fun,
                                             int n_tasks,
                                             void *userdata);

/*
 A node that `fun` computes from two sources, in the shape and format of `a`. `n_tasks`: threads that share it, or
 `GGML_N_TASKS_MAX`.
 */
struct ggml_tensor *ggml_map_custom2(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     ggml_custom2_op_t fun,
                                     int n_tasks,
                                     void *userdata);

/* As `ggml_map_custom2`, written over `a`. */
struct ggml_tensor *ggml_map_custom2_inplace(struct ggml_context *ctx,
                                             struct ggml_tensor *a,
                                             struct ggml_tensor *b,
                                             ggml_custom2_op_t fun,
                                             int n_tasks,
                                             void *userdata);

/*
 A node that `fun` computes from three sources, in the shape and format of `a`. `n_tasks`: threads that share it, or
 `GGML_N_TASKS_MAX`.
 */
struct ggml_tensor *ggml_map_custom3(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     struct ggml_tensor *c,
                                     ggml_custom3_op_t fun,
                                     int n_tasks,
                                     void *userdata);

/* As `ggml_map_custom3`, written over `a`. */
struct ggml_tensor *ggml_map_custom3_inplace(struct ggml_context *ctx,
                                             struct ggml_tensor *a,
                                             struct ggml_tensor *b,
                                             struct ggml_tensor *c,
                                             ggml_custom3_op_t fun,
                                             int n_tasks,
                                             void *userdata);

/* A node of a given format and shape that `fun` computes from up to 9 sources, some of which may be NULL. */
struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx,
                                   enum ggml_type type,
                                   int64_t ne0,
                                   int64_t ne1,
                                   int64_t ne2,
                                   int64_t ne3,
                                   struct ggml_tensor **args,
                                   int n_args,
                                   ggml_custom_op_t fun,
                                   int n_tasks,
                                   void *userdata);

/* A node that writes over `a` and that `fun` computes from `a` and up to 8 more sources, some of which may be NULL. */
struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx,
                                        struct ggml_tensor *a,
                                        struct ggml_tensor **args,
                                        int n_args,
                                        ggml_custom_op_t fun,
                                        int n_tasks,
                                        void *userdata);

/* Half precision to single. */
float ggml_fp16_to_fp32(ggml_fp16_t x);

/* Single precision to half, to nearest, ties to even. */
ggml_fp16_t ggml_fp32_to_fp16(float x);

/* `n` numbers of half precision to single. */
void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n);

/* `n` numbers of single precision to half. */
void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n);

/* Single precision to bf16, to nearest, ties to even. */
ggml_bf16_t ggml_fp32_to_bf16(float x);

/* bf16 to single precision. */
float ggml_bf16_to_fp32(ggml_bf16_t x);

/* `n` numbers of bf16 to single precision. */
void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n);

/* `n` numbers of single precision to bf16. */
void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n);

/* As `ggml_fp32_to_bf16_row`: there is one conversion. */
void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n);

/* Facts about a format; NULL with an error for an id out of range. Those of a removed format have size 0. */
const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);

/* Prepares the tables of a quantiser. Not needed: they are prepared on first use. */
void ggml_quantize_init(enum ggml_type type);

/* Frees the tables of all quantisers; no change, since none is held. */
void ggml_quantize_free(void);

/* Whether a format cannot be made without an importance matrix. */
bool ggml_quantize_requires_imatrix(enum ggml_type type);

/*
 Encodes `nrows` rows of `n_per_row` elements from element `start` on, a whole number of rows, of `src` to the same place of
 `dst`. `imatrix`: NULL or a weight for each element of a row. Answers the bytes written; 0 with an error when the format cannot
 be encoded or the numbers do not fit.
 */
size_t ggml_quantize_chunk(enum ggml_type type,
                           const float *src,
                           void *dst,
                           int64_t start,
                           int64_t nrows,
                           int64_t n_per_row,
                           const float *imatrix);

/*
 Whether `nbytes` of a format at `data` are whole blocks whose scales and plain values are all finite; an error says which is
 not, and the log has it too.
 */
bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes);

/* The tensor format of a model file's format; `GGML_TYPE_COUNT` with an error for one that has none. */
enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);

/*
 A gated unit: `f(x) * g`, where `x` and `g` are the halves of each row of `a`, or the other way round if `swapped`.
 [2n, ne1, ne2, ne3] gives [n, ne1, ne2, ne3]. Rows of `a` are packed.
 */
struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_glu_op op, bool swapped);

/* A gated unit of two tensors: `f(a) * b`, of one shape and format. */
struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, enum ggml_glu_op op);

/* `ggml_glu` with relu: the first half of a row is the value. */
struct ggml_tensor *ggml_reglu(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu` with relu: the second half of a row is the value. */
struct ggml_tensor *ggml_reglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu_split` with relu. */
struct ggml_tensor *ggml_reglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `ggml_glu` with gelu: the first half of a row is the value. */
struct ggml_tensor *ggml_geglu(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu` with gelu: the second half of a row is the value. */
struct ggml_tensor *ggml_geglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu_split` with gelu. */
struct ggml_tensor *ggml_geglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `ggml_glu` with silu: the first half of a row is the value. */
struct ggml_tensor *ggml_swiglu(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu` with silu: the second half of a row is the value. */
struct ggml_tensor *ggml_swiglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu_split` with silu. */
struct ggml_tensor *ggml_swiglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `ggml_glu` with gelu by the error function: the first half of a row is the value. */
struct ggml_tensor *ggml_geglu_erf(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu` with gelu by the error function: the second half of a row is the value. */
struct ggml_tensor *ggml_geglu_erf_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu_split` with gelu by the error function. */
struct ggml_tensor *ggml_geglu_erf_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* `ggml_glu` with quick gelu: the first half of a row is the value. */
struct ggml_tensor *ggml_geglu_quick(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu` with quick gelu: the second half of a row is the value. */
struct ggml_tensor *ggml_geglu_quick_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ggml_glu_split` with quick gelu. */
struct ggml_tensor *ggml_geglu_quick_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* Gated unit of two tensors with limits: `x * sigmoid(alpha * x) * (1 + g)`, `x = min(a, limit)`, `g = clamp(b, -limit, limit)`. */
struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx,
                                    struct ggml_tensor *a,
                                    struct ggml_tensor *b,
                                    float alpha,
                                    float limit);

/* `ggml_swiglu_split` with the value not above `limit` and the gate within it. */
struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float limit);

/* f32 `a` with dimensions 0 and 1 `scale_factor` times as large. */
struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a, int scale_factor, enum ggml_scale_mode mode);

/* f32 `a` resized to a shape. */
struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     int ne0,
                                     int ne1,
                                     int ne2,
                                     int ne3,
                                     enum ggml_scale_mode mode);

/* f32 `a` resized to a shape. `mode`: a `ggml_scale_mode` with bits of `ggml_scale_flag`; antialiasing for bilinear only. */
struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     int64_t ne0,
                                     int64_t ne1,
                                     int64_t ne2,
                                     int64_t ne3,
                                     uint32_t mode);

/* `a` with zeros after each dimension. */
struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2, int p3);

/* `a` continued around after each dimension. */
struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2, int p3);

/* `a` with zeros before (lp) and after (rp) each dimension. */
struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 int lp0,
                                 int rp0,
                                 int lp1,
                                 int rp1,
                                 int lp2,
                                 int rp2,
                                 int lp3,
                                 int rp3);

/* `a` continued around before (lp) and after (rp) each dimension. */
struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx,
                                          struct ggml_tensor *a,
                                          int lp0,
                                          int rp0,
                                          int lp1,
                                          int rp1,
                                          int lp2,
                                          int rp2,
                                          int lp3,
                                          int rp3);

/* Contiguous f32 `a`, mirrored at the ends of each row, which are not repeated: `p0` elements before, `p1` after, both below ne0. */
struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1);

/* `a` moved on by a shift along each dimension, and around. Shifts are below the dimension. */
struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0, int shift1, int shift2, int shift3);

/* `start`, `start + step` and on, below `stop`: f32. */
struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop, float step);

/* Sinusoids of each of `timesteps` [n]: f32 [dim, n]; cosines in the first half of a row, sines in the second. */
struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx, struct ggml_tensor *timesteps, int dim, int max_period);

/*
 Matrix product: `a` [k, m, a2, a3], not transposed, and `b` [k, n, b2, b3], b2 and b3 multiples of a2 and a3, give
 f32 [m, n, b2, b3]: the dot products of the rows of `a` and `b`.
 */
struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/*
 Matrix product with the matrices that `ids` picks: `as` [k, m, n_expert], `b` [k, b1, tokens] and `ids` i32 [used, tokens],
 `used` a multiple of b1, give f32 [m, used, tokens].
 */
struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx,
                                    struct ggml_tensor *as,
                                    struct ggml_tensor *b,
                                    struct ggml_tensor *ids);

/*
 `a` [m, k, a2, a3], not transposed, and `b` [n, k, b2, b3], b2 and b3 multiples of a2 and a3, give f32 [m, n, b2, b3]: the sum of
 the products of columns, over k.
 */
struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/*
 Attention in one node: softmax(`scale` * q k + slope * mask) v. `q` [d, queries, heads, batch], `k` [d, keys, k2, batch],
 `v` [dv, keys, v2, batch], heads a multiple of k2 and v2, give f32 [dv, heads, queries, batch]. `mask`: NULL or contiguous
 f16 [>= keys, >= queries, m2, m3], heads and batch multiples of m2 and m3. `max_bias` as in `ggml_soft_max_ext`; a
 `logit_softcap` c other than 0 makes each logit `c * tanh(logit / c)`.
 */
struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx,
                                        struct ggml_tensor *q,
                                        struct ggml_tensor *k,
                                        struct ggml_tensor *v,
                                        struct ggml_tensor *mask,
                                        float scale,
                                        float max_bias,
                                        float logit_softcap);

/*
 Gives an attention sinks: f32, one logit for each head. NULL takes them back. Where they do not fit an error is recorded
 and nothing changes.
 */
void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

/* Sets the precision of a matrix product's sums. */
void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec);

/* Tells something about a matrix product's sources. */
void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint);

/* Sets the precision of an attention's sums. */
void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a, enum ggml_prec prec);

/* The precision of an attention's sums. */
enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a);

/* Tells that an attention has at most `n_kv_max` keys that are not masked; 0: unknown. */
void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max);

/* Sets the precision of a node's sums; false: its operator has no such choice. */
bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec);

/* Sets the precision in which source `idx` of a node may be taken; false: its operator has no such choice for it. */
bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx);

/* Name of a format as files and logs spell it, "NONE" for an unknown one. Never NULL. */
const char *ggml_type_name(enum ggml_type type);

/* Name of an operator, "unknown" for one that there is not. Never NULL. */
const char *ggml_op_name(enum ggml_op op);

/* A short formula of an operator. Never NULL. */
const char *ggml_op_symbol(enum ggml_op op);

/* Name of a unary function. Never NULL. */
const char *ggml_unary_op_name(enum ggml_unary_op op);

/* Name of a gated unit. Never NULL. */
const char *ggml_glu_op_name(enum ggml_glu_op op);

/* Name of a node's operator, of its function for unary and gated ones. Never NULL. */
const char *ggml_op_desc(const struct ggml_tensor *t);

/* The function of a unary node; `GGML_UNARY_OP_COUNT` with an error for others. */
enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor);

/* The function of a gated node; `GGML_GLU_OP_COUNT` with an error for others. */
enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor);

/* What a status means. Never NULL. */
const char *ggml_status_to_string(enum ggml_status status);

/* `(x - mean) / sqrt(variance + eps)` along each row. */
struct ggml_tensor *ggml_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* As `ggml_norm`, written over `a`. */
struct ggml_tensor *ggml_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* `x / sqrt(mean of squares + eps)` along each row. */
struct ggml_tensor *ggml_rms_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* As `ggml_rms_norm`, written over `a`. */
struct ggml_tensor *ggml_rms_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* `x / max(length, eps)` along each row. */
struct ggml_tensor *ggml_l2_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* As `ggml_l2_norm`, written over `a`. */
struct ggml_tensor *ggml_l2_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* `(x - mean) / sqrt(variance + eps)` over dimensions 0 and 1 and each of `n_groups` parts of dimension 2. */
struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps);

/* As `ggml_group_norm`, written over `a`. */
struct ggml_tensor *ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps);

/* Softmax of each row of `a`, which is contiguous. */
struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a);

/*
 Softmax of `a * scale + slope * mask` along each row. `mask`: NULL or contiguous f16 or f32 [ne0, >= ne1, m2, m3], ne2 and ne3
 multiples of m2 and m3. A positive `max_bias` gives each of dimension 2 an ALiBi slope and needs a mask; else the slope is 1.
 */
struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx,
                                      struct ggml_tensor *a,
                                      struct ggml_tensor *mask,
                                      float scale,
                                      float max_bias);

/* As `ggml_soft_max`, written over `a`. */
struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_soft_max_ext`, written over `a`. */
struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx,
                                              struct ggml_tensor *a,
                                              struct ggml_tensor *mask,
                                              float scale,
                                              float max_bias);

/*
 Gives a softmax sinks: f32, one logit for each of dimension 2, that takes part in the sum only. NULL takes them back.
 Where they do not fit an error is recorded and nothing changes.
 */
void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

/* Logs what an object of a context is: kind, place and size. NULL logs nothing. */
void ggml_print_object(const struct ggml_object *obj);

/* Logs all objects of a context. */
void ggml_print_objects(const struct ggml_context *ctx);

/* Writes a graph to a file in Graphviz's language. `gb`: NULL, or a graph whose tensors are drawn in bold. */
void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char *filename);

/* Elements. */
int64_t ggml_nelements(const struct ggml_tensor *tensor);

/* Rows: the product of all dimensions but the first. */
int64_t ggml_nrows(const struct ggml_tensor *tensor);

/* Bytes from the first to the last element. */
size_t ggml_nbytes(const struct ggml_tensor *tensor);

/* As `ggml_nbytes`, rounded up to `GGML_MEM_ALIGN`. */
size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);

/* Elements of a block; 0 for a format that is not known. */
int64_t ggml_blck_size(enum ggml_type type);

/* Bytes of a block; 0 for a format that is not known. */
size_t ggml_type_size(enum ggml_type type);

/* Bytes of `ne` elements in a row, a whole number of blocks; else 0 with an error. */
size_t ggml_row_size(enum ggml_type type, int64_t ne);

/* Bytes of an element; a fraction where blocks are shared. Use `ggml_row_size`. */
double ggml_type_sizef(enum ggml_type type);

/* Bytes of a block of the tensor. */
size_t ggml_element_size(const struct ggml_tensor *tensor);

/* Whether elements of the format share scales. */
bool ggml_is_quantized(enum ggml_type type);

/* Whether dimension 0 has a larger stride than dimension 1. */
bool ggml_is_transposed(const struct ggml_tensor *tensor);

/* Whether strides fall anywhere from a dimension to the next. */
bool ggml_is_permuted(const struct ggml_tensor *tensor);

/* Whether there is no element. */
bool ggml_is_empty(const struct ggml_tensor *tensor);

/* Whether the tensor has its data from another one. */
bool ggml_is_view(const struct ggml_tensor *tensor);

/* Whether there is one element. */
bool ggml_is_scalar(const struct ggml_tensor *tensor);

/* Whether dimensions 1 to 3 are 1. */
bool ggml_is_vector(const struct ggml_tensor *tensor);

/* Whether dimensions 2 and 3 are 1. */
bool ggml_is_matrix(const struct ggml_tensor *tensor);

/* Whether dimension 3 is 1. */
bool ggml_is_3d(const struct ggml_tensor *tensor);

/* Dimensions up to the last that is above 1; 1 for one element. */
int ggml_n_dims(const struct ggml_tensor *tensor);

/* Whether the elements can be walked with one index: no gaps, no permutation. */
bool ggml_is_contiguous(const struct ggml_tensor *tensor);

/* As `ggml_is_contiguous`. */
bool ggml_is_contiguous_0(const struct ggml_tensor *tensor);

/* As `ggml_is_contiguous`, but dimension 1 may have any stride. */
bool ggml_is_contiguous_1(const struct ggml_tensor *tensor);

/* As `ggml_is_contiguous`, but dimensions 1 and 2 may have any stride. */
bool ggml_is_contiguous_2(const struct ggml_tensor *tensor);

/* Whether dimension 0 has no gaps. */
bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor);

/* Whether dimensions 0 and 1 have no gaps. */
bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor);

/* Whether dimensions 0 to 2 have no gaps. */
bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor);

/* Whether the elements fill one piece of memory without gaps, in any order of dimensions. */
bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor);

/* Whether dimension 2 is the innermost in memory, then 0, then 1. */
bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor);

/* Whether the elements of each row lie side by side. */
bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor);

/* Whether all dimensions are equal. */
bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

/* Whether all strides are equal. */
bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

/* Whether `t0` repeated a whole number of times along each dimension gives the shape of `t1`. */
bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

/* Coordinates of element number `i`; NULL where one is not asked for. All are 0 in a tensor without elements. */
void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2, int64_t *i3);

/*
 Convolution of each channel along the tokens of each sequence: `sx` [taps - 1 + tokens, channels, sequences], which starts with the
 inputs before the first token, and `c` [taps, channels] give f32 [channels, tokens, sequences].
 */
struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx,
                                  struct ggml_tensor *sx,
                                  struct ggml_tensor *c);

/*
 Selective scan: with d = log(1 + exp(dt)), token by token `state = state * exp(d * A) + B * (x * d)`, `y = sum of state * C` over
 d_state. `s` [d_state, dim, heads, any] contiguous; `x` [dim, heads, tokens, sequences]; `dt` [heads, tokens, sequences] contiguous;
 `A` [1 or d_state, heads] contiguous; `B`, `C` [d_state, groups, tokens, sequences], heads a multiple of groups, of which each serves
 heads side by side; dimensions 0 and 1 of x, B, C without gaps; `ids` i32 [sequences]: the state of `s` that each sequence starts
 from. The result is f32, one row: y of the shape of x, then `K` times [d_state, dim, heads, sequences], the states after the last
 token, the one before it and so on; what there are too few tokens for is not written. K above 1 needs ne0 of `A` to be 1.
 */
struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx,
                                  struct ggml_tensor *s,
                                  struct ggml_tensor *x,
                                  struct ggml_tensor *dt,
                                  struct ggml_tensor *A,
                                  struct ggml_tensor *B,
                                  struct ggml_tensor *C,
                                  struct ggml_tensor *ids,
                                  int64_t K);

/*
 Linear attention of RWKV 6, token by token and head by head, with states S[i][j]: `y[j] = sum over i of r[i] * (tf[i] * k[i] * v[j] +
 S[i][j])`, then `S[i][j] = S[i][j] * td[i] + k[i] * v[j]`. k, v, r, td [size, heads, tokens], tf [size, heads], `state` with
 size * size * heads elements (j fastest) for each of its dimension 1, the sequences, which share the tokens out evenly in order; all
 contiguous. The result is f32 [size * heads, tokens + size * sequences]: y, then the states after the last token.
 */
struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx,
                                   struct ggml_tensor *k,
                                   struct ggml_tensor *v,
                                   struct ggml_tensor *r,
                                   struct ggml_tensor *tf,
                                   struct ggml_tensor *td,
                                   struct ggml_tensor *state);

/*
 Linear attention with a gate: `S[i][j] = S[i][j] * g[i] + k[i] * v[j]`, then `y[j] = sum over i of scale * q[i] * S[i][j]`. Shapes,
 states and result as for `ggml_rwkv_wkv6`.
 */
struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx,
                                           struct ggml_tensor *k,
                                           struct ggml_tensor *v,
                                           struct ggml_tensor *q,
                                           struct ggml_tensor *g,
                                           struct ggml_tensor *state,
                                           float scale);

/*
 Linear attention of RWKV 7, with states S[i][j], j fastest: `S[i][j] = S[i][j] * w[j] + v[i] * k[j] + b[j] * (sum over m of
 a[m] * S[i][m])`, then `y[i] = sum over j of r[j] * S[i][j]`. Shapes, states and result as for `ggml_rwkv_wkv6`.
 */
struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx,
                                   struct ggml_tensor *r,
                                   struct ggml_tensor *w,
                                   struct ggml_tensor *k,
                                   struct ggml_tensor *v,
                                   struct ggml_tensor *a,
                                   struct ggml_tensor *b,
                                   struct ggml_tensor *state);

/*
 Gated delta rule, with states S[j][i], i fastest: `S[j][i] *= exp(g[i])`, `d[j] = beta * (v[j] - sum over i of S[j][i] * k[i])`,
 `S[j][i] += d[j] * k[i]`, `y[j] = sum over i of S[j][i] * q[i] / sqrt(size)`. All f32: q, k [size, heads_k, tokens, seqs_k],
 v [size, heads, tokens, seqs], rows without gaps; heads a multiple of heads_k, where head h of v goes with head h modulo heads_k,
 seqs one of seqs_k, in order; g [1 or size, heads, tokens, seqs], beta [1, heads, tokens, seqs], state [size, size, heads, seqs],
 contiguous. The result is [size * heads, tokens * seqs + K * size * seqs]: y, then `K` times the states, after the last token, the
 one before it and so on; what there are too few tokens for is not written.
 */
struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx,
                                         struct ggml_tensor *q,
                                         struct ggml_tensor *k,
                                         struct ggml_tensor *v,
                                         struct ggml_tensor *g,
                                         struct ggml_tensor *beta,
                                         struct ggml_tensor *state,
                                         int64_t K);

/*
 The x of a x = b for lower triangular `a` [n, n, b2, b3], of which what is above the diagonal is not read, and `b` [m, n, b2, b3]:
 f32 of the shape of `b`. Both are f32 and contiguous. `left` and `lower` must be true, `uni` false. A zero on the diagonal divides
 by zero.
 */
struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx,
                                   struct ggml_tensor *a,
                                   struct ggml_tensor *b,
                                   bool left,
                                   bool lower,
                                   bool uni);

/* The sum of all elements: one element. */
struct ggml_tensor *ggml_sum(struct ggml_context *ctx, struct ggml_tensor *a);

/* The sum of each row: [1, ne1, ne2, ne3]. */
struct ggml_tensor *ggml_sum_rows(struct ggml_context *ctx, struct ggml_tensor *a);

/* The running sum of each row, f32. */
struct ggml_tensor *ggml_cumsum(struct ggml_context *ctx, struct ggml_tensor *a);

/* The mean of each row: f32 [1, ne1, ne2, ne3]. */
struct ggml_tensor *ggml_mean(struct ggml_context *ctx, struct ggml_tensor *a);

/* The index of the largest element of each row of a matrix: i32 [ne1]. */
struct ggml_tensor *ggml_argmax(struct ggml_context *ctx, struct ggml_tensor *a);

/* How many elements of `a` and `b`, of one shape, are equal: i64, one element. */
struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* The indices that sort each row: i32 of the shape of `a`. */
struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_sort_order order);

/* The indices of the `k` largest of each row, in descending order: i32 [k, ne1, ne2, ne3], a view of the sorted whole. */
struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

/* The indices of the `k` largest of each row, in any order: i32 [k, ne1, ne2, ne3]. */
struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

/*
 Turns pairs of the first `n_dims` elements of each row of `a` [n, heads, tokens, batch] by angles that grow with the position,
 `b` i32 [tokens]. `mode`: one of `GGML_ROPE_TYPE_*`.
 */
struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int n_dims, int mode);

/*
 As `ggml_rope`, with the base of the angles, position scaling and YaRN. `c`: NULL or f32 [>= n_dims / 2], divisors of the
 angles. For the MROPE modes `b` has 4 numbers per token: all of the first stream, all of the second, and so on.
 */
struct ggml_tensor *ggml_rope_ext(struct ggml_context *ctx,
                                  struct ggml_tensor *a,
                                  struct ggml_tensor *b,
                                  struct ggml_tensor *c,
                                  int n_dims,
                                  int mode,
                                  int n_ctx_orig,
                                  float freq_base,
                                  float freq_scale,
                                  float ext_factor,
                                  float attn_factor,
                                  float beta_fast,
                                  float beta_slow);

/* As `ggml_rope_ext` for several position streams: `sections` tells how many pairs follow each of the four. */
struct ggml_tensor *ggml_rope_multi(struct ggml_context *ctx,
                                    struct ggml_tensor *a,
                                    struct ggml_tensor *b,
                                    struct ggml_tensor *c,
                                    int n_dims,
                                    int *sections,
                                    int mode,
                                    int n_ctx_orig,
                                    float freq_base,
                                    float freq_scale,
                                    float ext_factor,
                                    float attn_factor,
                                    float beta_fast,
                                    float beta_slow);

/* As `ggml_rope`, written over `a`. */
struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx,
                                      struct ggml_tensor *a,
                                      struct ggml_tensor *b,
                                      int n_dims,
                                      int mode);

/* As `ggml_rope_ext`, written over `a`. */
struct ggml_tensor *ggml_rope_ext_inplace(struct ggml_context *ctx,
                                          struct ggml_tensor *a,
                                          struct ggml_tensor *b,
                                          struct ggml_tensor *c,
                                          int n_dims,
                                          int mode,
                                          int n_ctx_orig,
                                          float freq_base,
                                          float freq_scale,
                                          float ext_factor,
                                          float attn_factor,
                                          float beta_fast,
                                          float beta_slow);

/* As `ggml_rope_multi`, written over `a`. */
struct ggml_tensor *ggml_rope_multi_inplace(struct ggml_context *ctx,
                                            struct ggml_tensor *a,
                                            struct ggml_tensor *b,
                                            struct ggml_tensor *c,
                                            int n_dims,
                                            int *sections,
                                            int mode,
                                            int n_ctx_orig,
                                            float freq_base,
                                            float freq_scale,
                                            float ext_factor,
                                            float attn_factor,
                                            float beta_fast,
                                            float beta_slow);

/* As `ggml_rope_ext` without divisors, the older name. */
struct ggml_tensor *ggml_rope_custom(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *b,
                                     int n_dims,
                                     int mode,
                                     int n_ctx_orig,
                                     float freq_base,
                                     float freq_scale,
                                     float ext_factor,
                                     float attn_factor,
                                     float beta_fast,
                                     float beta_slow);

/* As `ggml_rope_custom`, written over `a`. */
struct ggml_tensor *ggml_rope_custom_inplace(struct ggml_context *ctx,
                                             struct ggml_tensor *a,
                                             struct ggml_tensor *b,
                                             int n_dims,
                                             int mode,
                                             int n_ctx_orig,
                                             float freq_base,
                                             float freq_scale,
                                             float ext_factor,
                                             float attn_factor,
                                             float beta_fast,
                                             float beta_slow);

/* Writes to `dims` (2 numbers) between which of the `n_dims` YaRN blends from one frequency to the other. */
void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow, float *dims);

/* Leaves the first `n_offs` elements of each row as they are and turns those after them. Not for the vision mode. Answers `a`. */
struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs);

/*
 Scores of keys: `sum over heads of max(q k, 0) * weight`, plus mask. f32 `q` [d, heads, tokens, b], `k` [d, 1, keys, b] of any format,
 f32 `weights` [heads, tokens, 1, b], f16 `mask` [keys, tokens, 1, m], b a multiple of m, give f32 [keys, tokens, 1, b].
 */
struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx,
                                           struct ggml_tensor *q,
                                           struct ggml_tensor *k,
                                           struct ggml_tensor *weights,
                                           struct ggml_tensor *mask);

/*
 Mixing matrices of 4 residual streams: f32 `mixes` [24, tokens], `scale` [>= 3], `base` [24] give f32 [dst 4, src 4, tokens]. Logits
 are `mixes[8 + dst + 4 * src] * scale[2] + base[8 + dst + 4 * src]`; softmax over dst, plus `eps`; then sums over src are divided out,
 and `n_iter` - 1 times sums over dst and sums over src, `eps` added to each sum.
 */
struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx,
                                      struct ggml_tensor *mixes,
                                      struct ggml_tensor *scale,
                                      struct ggml_tensor *base,
                                      float eps,
                                      int32_t n_iter);

/* One stream of several: f32 `x` [n, streams, tokens] and `weights` [streams, tokens] give f32 [n, tokens], the weighted sum. */
struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *weights);

/* As `ggml_dsv4_hc_pre` with weights for each element: the logistic function of f32 `gate`, of the shape of `x`, times `scale`. */
struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx,
                                           struct ggml_tensor *x,
                                           struct ggml_tensor *gate,
                                           float scale);

/*
 Streams for the next layer: `x * post[dst] + sum over src of residual[src] * comb[dst, src]`. f32 `x` [n, tokens], `residual`
 [n, streams, tokens], `post` [streams, tokens], `comb` [dst, src, tokens] or NULL for each stream's own residual, give f32 of the shape
 of `residual`.
 */
struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx,
                                      struct ggml_tensor *x,
                                      struct ggml_tensor *residual,
                                      struct ggml_tensor *post,
                                      struct ggml_tensor *comb);

/* Sets where log lines go, from any thread; NULL: standard error. */
void ggml_log_set(ggml_log_callback log_callback, void *user_data);

/* Where log lines go, and what is handed along. The callback is never NULL. */
void ggml_log_get(ggml_log_callback *log_callback, void **user_data);

/* Version of the interface. */
const char *ggml_version(void);

/* Source state that the library was built from, or "unknown". */
const char *ggml_commit(void);

/* Not needed: the clock needs no preparation. */
void ggml_time_init(void);

/* Milliseconds of a clock that only goes forward. */
int64_t ggml_time_ms(void);

/* Microseconds of a clock that only goes forward. */
int64_t ggml_time_us(void);

/* Processor time of the process in units of `ggml_cycles_per_ms`. */
int64_t ggml_cycles(void);

/* Units of `ggml_cycles` in a millisecond. */
int64_t ggml_cycles_per_ms(void);

/* Whether two guids are equal. */
bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);

/* Opens a file; the path is UTF-8 on every system. NULL as `fopen` answers it. */
FILE *ggml_fopen(const char *fname, const char *mode);

/*
 Cross entropy of the softmax of each row of the logits `a` with the labels `b`, of one shape, averaged over the rows: one element.
 A label of 0 adds nothing, whatever its logit.
 */
struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx,
                                            struct ggml_tensor *a,
                                            struct ggml_tensor *b);

/* Gradient `a`, one element, of `ggml_cross_entropy_loss` back to its logits `b`; `c`: the labels. Right for labels of any sum. */
struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx,
                                                 struct ggml_tensor *a,
                                                 struct ggml_tensor *b,
                                                 struct ggml_tensor *c);

/*
 A step of AdamW over the parameter `a` (`ggml_set_param`); the result is a view of it. `m` and `v` are written over too: with
 `adamw_params` f32 { alpha, beta1, beta2, eps, wd, beta1h, beta2h }, m = beta1 m + (1 - beta1) grad,
 v = beta2 v + (1 - beta2) grad^2, a = (1 - alpha wd) a - alpha m beta1h / (sqrt(v beta2h) + eps).
 */
struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx,
                                        struct ggml_tensor *a,
                                        struct ggml_tensor *grad,
                                        struct ggml_tensor *m,
                                        struct ggml_tensor *v,
                                        struct ggml_tensor *adamw_params);

/*
 A step of gradient descent over the parameter `a` (`ggml_set_param`); the result is a view of it. `sgd_params` f32 { alpha, wd }:
 a = (1 - alpha wd) a - alpha grad.
 */
struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx,
                                      struct ggml_tensor *a,
                                      struct ggml_tensor *grad,
                                      struct ggml_tensor *sgd_params);

/* A copy of `a`, contiguous. */
struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_dup`, written over `a`. */
struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a * a`. */
struct ggml_tensor *ggml_sqr(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_sqr`, written over `a`. */
struct ggml_tensor *ggml_sqr_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The square root of `a`. */
struct ggml_tensor *ggml_sqrt(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_sqrt`, written over `a`. */
struct ggml_tensor *ggml_sqrt_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The natural logarithm of `a`. */
struct ggml_tensor *ggml_log(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_log`, written over `a`. */
struct ggml_tensor *ggml_log_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The sine of `a`, in radians. */
struct ggml_tensor *ggml_sin(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_sin`, written over `a`. */
struct ggml_tensor *ggml_sin_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The cosine of `a`, in radians. */
struct ggml_tensor *ggml_cos(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_cos`, written over `a`. */
struct ggml_tensor *ggml_cos_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The function `op` of each element. Rows of `a` are packed. */
struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op);

/* As `ggml_unary`, written over `a`. */
struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op);

/* The absolute value of `a`. Rows of `a` are packed. */
struct ggml_tensor *ggml_abs(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_abs`, written over `a`. */
struct ggml_tensor *ggml_abs_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* -1, 0 or 1: the sign of `a`. Rows of `a` are packed. */
struct ggml_tensor *ggml_sgn(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_sgn`, written over `a`. */
struct ggml_tensor *ggml_sgn_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `-a`. Rows of `a` are packed. */
struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_neg`, written over `a`. */
struct ggml_tensor *ggml_neg_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* 1 where `a > 0`, else 0. Rows of `a` are packed. */
struct ggml_tensor *ggml_step(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_step`, written over `a`. */
struct ggml_tensor *ggml_step_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* The hyperbolic tangent of `a`. Rows of `a` are packed. */
struct ggml_tensor *ggml_tanh(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_tanh`, written over `a`. */
struct ggml_tensor *ggml_tanh_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` where it is positive, else `e^a - 1`. Rows of `a` are packed. */
struct ggml_tensor *ggml_elu(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_elu`, written over `a`. */
struct ggml_tensor *ggml_elu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` where it is positive, else 0. Rows of `a` are packed. */
struct ggml_tensor *ggml_relu(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_relu`, written over `a`. */
struct ggml_tensor *ggml_relu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `1 / (1 + e^-a)`. Rows of `a` are packed. */
struct ggml_tensor *ggml_sigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_sigmoid`, written over `a`. */
struct ggml_tensor *ggml_sigmoid_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` times the normal distribution function, in the tanh approximation. Rows of `a` are packed. */
struct ggml_tensor *ggml_gelu(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_gelu`, written over `a`. */
struct ggml_tensor *ggml_gelu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` times the normal distribution function, by the error function. Rows of `a` are packed. */
struct ggml_tensor *ggml_gelu_erf(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_gelu_erf`, written over `a`. */
struct ggml_tensor *ggml_gelu_erf_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a * sigmoid(1.702 * a)`. Rows of `a` are packed. */
struct ggml_tensor *ggml_gelu_quick(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_gelu_quick`, written over `a`. */
struct ggml_tensor *ggml_gelu_quick_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a * sigmoid(a)`. Rows of `a` are packed. */
struct ggml_tensor *ggml_silu(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_silu`, written over `a`. */
struct ggml_tensor *ggml_silu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a * min(1, max(0, (a + 3) / 6))`. Rows of `a` are packed. */
struct ggml_tensor *ggml_hardswish(struct ggml_context *ctx, struct ggml_tensor *a);

/* `min(1, max(0, (a + 3) / 6))`. Rows of `a` are packed. */
struct ggml_tensor *ggml_hardsigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

/* `e^a`. Rows of `a` are packed. */
struct ggml_tensor *ggml_exp(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_exp`, written over `a`. */
struct ggml_tensor *ggml_exp_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `e^a - 1`, exact near 0. Rows of `a` are packed. */
struct ggml_tensor *ggml_expm1(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_expm1`, written over `a`. */
struct ggml_tensor *ggml_expm1_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `ln(1 + e^a)`. Rows of `a` are packed. */
struct ggml_tensor *ggml_softplus(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_softplus`, written over `a`. */
struct ggml_tensor *ggml_softplus_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` rounded down. Rows of `a` are packed. */
struct ggml_tensor *ggml_floor(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_floor`, written over `a`. */
struct ggml_tensor *ggml_floor_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` rounded up. Rows of `a` are packed. */
struct ggml_tensor *ggml_ceil(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_ceil`, written over `a`. */
struct ggml_tensor *ggml_ceil_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` rounded to the nearest whole number, halves away from 0. Rows of `a` are packed. */
struct ggml_tensor *ggml_round(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_round`, written over `a`. */
struct ggml_tensor *ggml_round_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` rounded towards 0. Rows of `a` are packed. */
struct ggml_tensor *ggml_trunc(struct ggml_context *ctx, struct ggml_tensor *a);

/* As `ggml_trunc`, written over `a`. */
struct ggml_tensor *ggml_trunc_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* `a` where it is positive, else `a * negative_slope`; written over `a` if `inplace`. */
struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a, float negative_slope, bool inplace);

/* The xIELU function. `alpha_n` and `alpha_p` go through softplus first; `eps` is the least exponent of the negative side. */
struct ggml_tensor *ggml_xielu(struct ggml_context *ctx,
                               struct ggml_tensor *a,
                               float alpha_n,
                               float alpha_p,
                               float beta,
                               float eps);

/* The elements of `a`, contiguous, in the shape of `b`, whose data are not looked at. */
struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* The elements of `a`, contiguous, in a shape with as many. */
struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);

/* The elements of `a`, contiguous, in a shape with as many. */
struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1);

/* The elements of `a`, contiguous, in a shape with as many. */
struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2);

/* The elements of `a`, contiguous, in a shape with as many. */
struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx,
                                    struct ggml_tensor *a,
                                    int64_t ne0,
                                    int64_t ne1,
                                    int64_t ne2,
                                    int64_t ne3);

/* A part of the storage of `a`: elements side by side, from `offset` bytes after the first element of `a`. It stays inside. */
struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, size_t offset);

/* A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside. */
struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 int64_t ne0,
                                 int64_t ne1,
                                 size_t nb1,
                                 size_t offset);

/* A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside. */
struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 int64_t ne0,
                                 int64_t ne1,
                                 int64_t ne2,
                                 size_t nb1,
                                 size_t nb2,
                                 size_t offset);

/* A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside. */
struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx,
                                 struct ggml_tensor *a,
                                 int64_t ne0,
                                 int64_t ne1,
                                 int64_t ne2,
                                 int64_t ne3,
                                 size_t nb1,
                                 size_t nb2,
                                 size_t nb3,
                                 size_t offset);

/* Dimension i of `a` becomes dimension `axis`i. The axes are 0 to 3, each once. */
struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a, int axis0, int axis1, int axis2, int axis3);

/* `a` with dimensions 0 and 1 swapped. */
struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a);

/* f32 `a` [c, w, h] in windows of `w` times `w`: f32 [c, w, w, windows], windows row by row, zeros where `a` ends. */
struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w);

/* Puts the windows of `ggml_win_part` together again: f32 `a` [c, w, w, windows] gives f32 [c, w0, h0]. */
struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a, int w0, int h0, int w);

/* The rows of `a` [c, 2 * kh - 1] by distance: f16 [c, kh, qh], where [.., k, q] is row `kh - 1 - k + q`. `qh` must be `kh`. */
struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, int qh, int kh);

/*
 `a` [n * n, w * h, b], rows of which are pictures of n times n, with `pw[x] + ph[y]` of the same row added to element x + n * y.
 `pw`, `ph`: f32 [n, w, h, b]. All contiguous.
 */
struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx,
                                     struct ggml_tensor *a,
                                     struct ggml_tensor *pw,
                                     struct ggml_tensor *ph);

/* As `ggml_add_rel_pos`, written over `a`. */
struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx,
                                             struct ggml_tensor *a,
                                             struct ggml_tensor *pw,
                                             struct ggml_tensor *ph);

/* A graph in `ctx` with room for `GGML_DEFAULT_GRAPH_SIZE` nodes and as many leafs. NULL when the context is full. */
struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);

/* A graph in `ctx` with room for `size` nodes and as many leafs, and for gradients if `grads`. NULL when the context is full. */
struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads);

/* A copy of `cgraph` in `ctx`, with room for gradients if it has such or `force_grads`. NULL when the context is full. */
struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads);

/* Makes `dst` the same graph as `src`; `dst` must have room for it. */
void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);

/* Zeroes the gradients and the optimiser's moments; the gradient of a loss becomes 1. The graph must have gradients. */
void ggml_graph_reset(struct ggml_cgraph *cgraph);

/* Empties a graph; its room stays. */
void ggml_graph_clear(struct ggml_cgraph *cgraph);

/*
 Adds `tensor` and what it is computed from, each tensor once, sources before results. A tensor that finds no room is an error,
 and computing the graph then fails.
 */
void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

/*
 Adds the nodes that compute the gradients of the losses (`ggml_set_loss`) with respect to the parameters (`ggml_set_param`) and to
 all between. The graph must be made with `grads`, hold the forward pass, and have room. Gradients are f32 and contiguous;
 `ggml_graph_get_grad` finds them.

 `grad_accs`: NULL, or for each node of the graph NULL or a contiguous f32 tensor of its shape, to which its gradient is added,
 pass by pass. A loss without one gets one in `ctx`. Zero them and set that of the loss to 1 with `ggml_graph_reset`.

 An operator without gradient between a parameter and a loss, a node written over its source, or a full graph or context
 is an error, and the graph is as before.
 */
void ggml_build_backward_expand(struct ggml_context *ctx,
                                struct ggml_cgraph *cgraph,
                                struct ggml_tensor **grad_accs);

/* As `ggml_build_forward_expand`, but the nodes are not marked to be computed: they only fix an order. */
void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

/*
 Adds all `n_tensors` tensors, of which only number `idx` is computed, so that graphs that differ in the choice have one shape.
 The chosen one; NULL for an index out of range.
 */
struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors, int n_tensors, int idx);

/* Nodes that the graph has room for. */
int ggml_graph_size(struct ggml_cgraph *cgraph);

/* Nodes in the graph. */
int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);

/* Node `i`; -1 is the last one. NULL for an index out of range. */
struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);

/* All nodes, in the order in which they run. */
struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph);

/* Appends `tensor` as it stands; what it is computed from is not looked at. */
void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

/* Bytes that `ggml_new_graph` takes from a context. */
size_t ggml_graph_overhead(void);

/* Bytes that `ggml_new_graph_custom` takes from a context; `SIZE_MAX` when there can be no such graph. */
size_t ggml_graph_overhead_custom(size_t size, bool grads);

/* The leaf or node of that name, or NULL. */
struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name);

/* The gradient of `node`, or NULL. */
struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);

/* The tensor in which the gradient of `node` is summed up, or NULL. */
struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);

/* Writes the graph to the log. */
void ggml_graph_print(const struct ggml_cgraph *cgraph);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a tensor's metadata. */
static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

/* Hands the message to the callback of ggml_set_abort_callback, or prints it, then ends the process. For the caller's own
 * invariants (GGML_ASSERT); the library does not call it. */
GGML_NORETURN GGML_ATTRIBUTE_FORMAT(3, 4)
void ggml_abort(const char * file, int line, const char * fmt, ...);

/* Sets what takes the message of ggml_abort in the place of standard error; returns the former one. */
ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);

/* Sets a tensor's name as printf does, cut to GGML_MAX_NAME - 1 bytes; returns the tensor. */
GGML_ATTRIBUTE_FORMAT(2, 3)
struct ggml_tensor * ggml_format_name(struct ggml_tensor * tensor, const char * fmt, ...);

#ifdef __cplusplus
}
#endif

/* Builders of stable-diffusion.cpp's operators. Define GGML_NO_SD_BUILDERS to declare functions of these names yourself. */
#ifndef GGML_NO_SD_BUILDERS
#    include "ggml-sd.h"
#endif

#endif
