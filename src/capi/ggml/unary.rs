//! Entry points of ggml.h: functions of one element.

use crate::entry;
use crate::tensor::{elementwise, node};
use ggml_oxide_abi::*;

entry! {
    /// A copy of `a`, contiguous.
    pub fn ggml_dup(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_dup", [a], [], |[a], []| elementwise::plain(GGML_OP_DUP, a, false))
    }

    /// As `ggml_dup`, written over `a`.
    pub fn ggml_dup_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_dup_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_DUP, a, true))
    }

    /// `a * a`.
    pub fn ggml_sqr(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sqr", [a], [], |[a], []| elementwise::plain(GGML_OP_SQR, a, false))
    }

    /// As `ggml_sqr`, written over `a`.
    pub fn ggml_sqr_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sqr_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_SQR, a, true))
    }

    /// The square root of `a`.
    pub fn ggml_sqrt(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sqrt", [a], [], |[a], []| elementwise::plain(GGML_OP_SQRT, a, false))
    }

    /// As `ggml_sqrt`, written over `a`.
    pub fn ggml_sqrt_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sqrt_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_SQRT, a, true))
    }

    /// The natural logarithm of `a`.
    pub fn ggml_log(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_log", [a], [], |[a], []| elementwise::plain(GGML_OP_LOG, a, false))
    }

    /// As `ggml_log`, written over `a`.
    pub fn ggml_log_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_log_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_LOG, a, true))
    }

    /// The sine of `a`, in radians.
    pub fn ggml_sin(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sin", [a], [], |[a], []| elementwise::plain(GGML_OP_SIN, a, false))
    }

    /// As `ggml_sin`, written over `a`.
    pub fn ggml_sin_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sin_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_SIN, a, true))
    }

    /// The cosine of `a`, in radians.
    pub fn ggml_cos(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cos", [a], [], |[a], []| elementwise::plain(GGML_OP_COS, a, false))
    }

    /// As `ggml_cos`, written over `a`.
    pub fn ggml_cos_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cos_inplace", [a], [], |[a], []| elementwise::plain(GGML_OP_COS, a, true))
    }
}

entry! {
    /// The function `op` of each element. Rows of `a` are packed.
    pub fn ggml_unary(ctx: *mut ggml_context, a: *mut ggml_tensor, op: ggml_unary_op) -> *mut ggml_tensor {
        node(ctx, "ggml_unary", [a], [], |[a], []| elementwise::unary(op, a, false))
    }

    /// As `ggml_unary`, written over `a`.
    pub fn ggml_unary_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, op: ggml_unary_op) -> *mut ggml_tensor {
        node(ctx, "ggml_unary_inplace", [a], [], |[a], []| elementwise::unary(op, a, true))
    }

    /// The absolute value of `a`. Rows of `a` are packed.
    pub fn ggml_abs(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_abs", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ABS, a, false))
    }

    /// As `ggml_abs`, written over `a`.
    pub fn ggml_abs_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_abs_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ABS, a, true))
    }

    /// -1, 0 or 1: the sign of `a`. Rows of `a` are packed.
    pub fn ggml_sgn(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sgn", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SGN, a, false))
    }

    /// As `ggml_sgn`, written over `a`.
    pub fn ggml_sgn_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sgn_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SGN, a, true))
    }

    /// `-a`. Rows of `a` are packed.
    pub fn ggml_neg(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_neg", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_NEG, a, false))
    }

    /// As `ggml_neg`, written over `a`.
    pub fn ggml_neg_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_neg_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_NEG, a, true))
    }

    /// 1 where `a > 0`, else 0. Rows of `a` are packed.
    pub fn ggml_step(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_step", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_STEP, a, false))
    }

    /// As `ggml_step`, written over `a`.
    pub fn ggml_step_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_step_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_STEP, a, true))
    }

    /// The hyperbolic tangent of `a`. Rows of `a` are packed.
    pub fn ggml_tanh(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_tanh", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_TANH, a, false))
    }

    /// As `ggml_tanh`, written over `a`.
    pub fn ggml_tanh_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_tanh_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_TANH, a, true))
    }

    /// `a` where it is positive, else `e^a - 1`. Rows of `a` are packed.
    pub fn ggml_elu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_elu", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ELU, a, false))
    }

    /// As `ggml_elu`, written over `a`.
    pub fn ggml_elu_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_elu_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ELU, a, true))
    }

    /// `a` where it is positive, else 0. Rows of `a` are packed.
    pub fn ggml_relu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_relu", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_RELU, a, false))
    }

    /// As `ggml_relu`, written over `a`.
    pub fn ggml_relu_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_relu_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_RELU, a, true))
    }

    /// `1 / (1 + e^-a)`. Rows of `a` are packed.
    pub fn ggml_sigmoid(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sigmoid", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SIGMOID, a, false))
    }

    /// As `ggml_sigmoid`, written over `a`.
    pub fn ggml_sigmoid_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sigmoid_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SIGMOID, a, true))
    }

    /// `a` times the normal distribution function, in the tanh approximation. Rows of `a` are packed.
    pub fn ggml_gelu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU, a, false))
    }

    /// As `ggml_gelu`, written over `a`.
    pub fn ggml_gelu_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU, a, true))
    }

    /// `a` times the normal distribution function, by the error function. Rows of `a` are packed.
    pub fn ggml_gelu_erf(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu_erf", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU_ERF, a, false))
    }

    /// As `ggml_gelu_erf`, written over `a`.
    pub fn ggml_gelu_erf_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu_erf_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU_ERF, a, true))
    }

    /// `a * sigmoid(1.702 * a)`. Rows of `a` are packed.
    pub fn ggml_gelu_quick(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu_quick", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU_QUICK, a, false))
    }

    /// As `ggml_gelu_quick`, written over `a`.
    pub fn ggml_gelu_quick_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_gelu_quick_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_GELU_QUICK, a, true))
    }

    /// `a * sigmoid(a)`. Rows of `a` are packed.
    pub fn ggml_silu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_silu", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SILU, a, false))
    }

    /// As `ggml_silu`, written over `a`.
    pub fn ggml_silu_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_silu_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SILU, a, true))
    }

    /// `a * min(1, max(0, (a + 3) / 6))`. Rows of `a` are packed.
    pub fn ggml_hardswish(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_hardswish", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_HARDSWISH, a, false))
    }

    /// `min(1, max(0, (a + 3) / 6))`. Rows of `a` are packed.
    pub fn ggml_hardsigmoid(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_hardsigmoid", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_HARDSIGMOID, a, false))
    }

    /// `e^a`. Rows of `a` are packed.
    pub fn ggml_exp(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_exp", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_EXP, a, false))
    }

    /// As `ggml_exp`, written over `a`.
    pub fn ggml_exp_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_exp_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_EXP, a, true))
    }

    /// `e^a - 1`, exact near 0. Rows of `a` are packed.
    pub fn ggml_expm1(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_expm1", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_EXPM1, a, false))
    }

    /// As `ggml_expm1`, written over `a`.
    pub fn ggml_expm1_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_expm1_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_EXPM1, a, true))
    }

    /// `ln(1 + e^a)`. Rows of `a` are packed.
    pub fn ggml_softplus(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_softplus", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SOFTPLUS, a, false))
    }

    /// As `ggml_softplus`, written over `a`.
    pub fn ggml_softplus_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_softplus_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_SOFTPLUS, a, true))
    }

    /// `a` rounded down. Rows of `a` are packed.
    pub fn ggml_floor(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_floor", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_FLOOR, a, false))
    }

    /// As `ggml_floor`, written over `a`.
    pub fn ggml_floor_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_floor_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_FLOOR, a, true))
    }

    /// `a` rounded up. Rows of `a` are packed.
    pub fn ggml_ceil(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_ceil", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_CEIL, a, false))
    }

    /// As `ggml_ceil`, written over `a`.
    pub fn ggml_ceil_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_ceil_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_CEIL, a, true))
    }

    /// `a` rounded to the nearest whole number, halves away from 0. Rows of `a` are packed.
    pub fn ggml_round(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_round", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ROUND, a, false))
    }

    /// As `ggml_round`, written over `a`.
    pub fn ggml_round_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_round_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_ROUND, a, true))
    }

    /// `a` rounded towards 0. Rows of `a` are packed.
    pub fn ggml_trunc(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_trunc", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_TRUNC, a, false))
    }

    /// As `ggml_trunc`, written over `a`.
    pub fn ggml_trunc_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_trunc_inplace", [a], [], |[a], []| elementwise::unary(GGML_UNARY_OP_TRUNC, a, true))
    }
}

entry! {
    /// `a` where it is positive, else `a * negative_slope`; written over `a` if `inplace`.
    pub fn ggml_leaky_relu(ctx: *mut ggml_context, a: *mut ggml_tensor, negative_slope: f32, inplace: bool) -> *mut ggml_tensor {
        node(ctx, "ggml_leaky_relu", [a], [], |[a], []| elementwise::leaky_relu(a, negative_slope, inplace))
    }

    /// The xIELU function. `alpha_n` and `alpha_p` go through softplus first; `eps` is the least exponent of the negative side.
    pub fn ggml_xielu(ctx: *mut ggml_context, a: *mut ggml_tensor, alpha_n: f32, alpha_p: f32, beta: f32, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_xielu", [a], [], |[a], []| elementwise::xielu(a, alpha_n, alpha_p, beta, eps))
    }
}
