//! Enumerations of ggml-opt.h.

c_enum! {
/// What is made as small as it can be.
pub enum ggml_opt_loss_type {
    GGML_OPT_LOSS_TYPE_MEAN = 0,
    GGML_OPT_LOSS_TYPE_SUM = 1,
    GGML_OPT_LOSS_TYPE_CROSS_ENTROPY = 2,
    GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3,
}
}

c_enum! {
/// How much is computed: results; gradients too; a step of the optimizer too.
pub enum ggml_opt_build_type {
    GGML_OPT_BUILD_TYPE_FORWARD = 10,
    GGML_OPT_BUILD_TYPE_GRAD = 20,
    GGML_OPT_BUILD_TYPE_OPT = 30,
}
}

c_enum! {
/// How a step is made of gradients.
pub enum ggml_opt_optimizer_type {
    GGML_OPT_OPTIMIZER_TYPE_ADAMW = 0,
    GGML_OPT_OPTIMIZER_TYPE_SGD = 1,
    GGML_OPT_OPTIMIZER_TYPE_COUNT = 2,
}
}
