//! Enumerations of ggml.h.

c_enum! {
/// What a call that can fail answers.
pub enum ggml_status {
    GGML_STATUS_ALLOC_FAILED = -2,
    GGML_STATUS_FAILED = -1,
    GGML_STATUS_SUCCESS = 0,
    GGML_STATUS_ABORTED = 1,
}
}

c_enum! {
/// Element and block formats. Values are those of the gguf file format; gaps are formats that were withdrawn. The 8-bit floats are those
/// of the ggml that stable-diffusion.cpp brings along, and can only be read.
///
/// So `GGML_TYPE_COUNT` is 2 above upstream's: no format may have the number that programs use for "no format" and for the length of
/// their tables. A loop over formats meets two more, with names and sizes, that nothing can be encoded to.
pub enum ggml_type {
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
}
}

c_enum! {
/// Precision asked of an operator's accumulation.
pub enum ggml_prec {
    GGML_PREC_UNDEFINED = 0,
    GGML_PREC_DEFAULT = 0,
    GGML_PREC_F32 = 10,
    GGML_PREC_BF16 = 15,
    GGML_PREC_F16 = 20,
    GGML_PREC_Q8 = 30,
    GGML_PREC_Q4 = 40,
}
}

c_enum! {
/// What a caller knows about a matrix multiplication's operands.
pub enum ggml_op_hint {
    GGML_HINT_NONE = 0,
    GGML_HINT_SRC0_IS_HADAMARD = 1,
}
}

c_enum! {
/// The format of most tensors of a model file.
pub enum ggml_ftype {
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
}
}

c_enum! {
/// What a node computes.
pub enum ggml_op {
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
}
}

c_enum! {
/// The function of a `GGML_OP_UNARY` node.
pub enum ggml_unary_op {
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
}
}

c_enum! {
/// The gate of a `GGML_OP_GLU` node.
pub enum ggml_glu_op {
    GGML_GLU_OP_REGLU = 0,
    GGML_GLU_OP_GEGLU = 1,
    GGML_GLU_OP_SWIGLU = 2,
    GGML_GLU_OP_SWIGLU_OAI = 3,
    GGML_GLU_OP_GEGLU_ERF = 4,
    GGML_GLU_OP_GEGLU_QUICK = 5,
    GGML_GLU_OP_SWIGLU_CLAMP = 6,
    GGML_GLU_OP_COUNT = 7,
}
}

c_enum! {
/// What an object of a context's arena holds.
pub enum ggml_object_type {
    GGML_OBJECT_TYPE_TENSOR = 0,
    GGML_OBJECT_TYPE_GRAPH = 1,
    GGML_OBJECT_TYPE_WORK_BUFFER = 2,
}
}

c_enum! {
/// Severity of a log line.
pub enum ggml_log_level {
    GGML_LOG_LEVEL_NONE = 0,
    GGML_LOG_LEVEL_DEBUG = 1,
    GGML_LOG_LEVEL_INFO = 2,
    GGML_LOG_LEVEL_WARN = 3,
    GGML_LOG_LEVEL_ERROR = 4,
    GGML_LOG_LEVEL_CONT = 5,
}
}

c_enum! {
/// Bits of `ggml_tensor.flags`.
pub enum ggml_tensor_flag {
    GGML_TENSOR_FLAG_INPUT = 1,
    GGML_TENSOR_FLAG_OUTPUT = 2,
    GGML_TENSOR_FLAG_PARAM = 4,
    GGML_TENSOR_FLAG_LOSS = 8,
    GGML_TENSOR_FLAG_COMPUTE = 16,
}
}

c_enum! {
/// Which triangle of a matrix is kept.
pub enum ggml_tri_type {
    GGML_TRI_TYPE_UPPER_DIAG = 0,
    GGML_TRI_TYPE_UPPER = 1,
    GGML_TRI_TYPE_LOWER_DIAG = 2,
    GGML_TRI_TYPE_LOWER = 3,
}
}

c_enum! {
/// How a pooling window is reduced.
pub enum ggml_op_pool {
    GGML_OP_POOL_MAX = 0,
    GGML_OP_POOL_AVG = 1,
    GGML_OP_POOL_COUNT = 2,
}
}

c_enum! {
/// How `ggml_interpolate` samples.
pub enum ggml_scale_mode {
    GGML_SCALE_MODE_NEAREST = 0,
    GGML_SCALE_MODE_BILINEAR = 1,
    GGML_SCALE_MODE_BICUBIC = 2,
    GGML_SCALE_MODE_COUNT = 3,
}
}

c_enum! {
/// Bits that are or-ed to a `ggml_scale_mode`.
pub enum ggml_scale_flag {
    GGML_SCALE_FLAG_ALIGN_CORNERS = 256,
    GGML_SCALE_FLAG_ANTIALIAS = 512,
}
}

c_enum! {
/// Order of `ggml_argsort`.
pub enum ggml_sort_order {
    GGML_SORT_ORDER_ASC = 0,
    GGML_SORT_ORDER_DESC = 1,
}
}

c_enum! {
/// Scheduling priority of a pool's threads.
pub enum ggml_sched_priority {
    GGML_SCHED_PRIO_LOW = -1,
    GGML_SCHED_PRIO_NORMAL = 0,
    GGML_SCHED_PRIO_MEDIUM = 1,
    GGML_SCHED_PRIO_HIGH = 2,
    GGML_SCHED_PRIO_REALTIME = 3,
}
}
