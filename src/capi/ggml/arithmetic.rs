//! Entry points of ggml.h: arithmetic on elements.

use crate::entry;
use crate::tensor::{elementwise, node};
use ggml_oxide_abi::*;

entry! {
    /// `a + b` for each element. `b` is repeated to the shape of `a`, which the result has.
    pub fn ggml_add(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_ADD, a, b, false))
    }

    /// As `ggml_add`, written over `a`.
    pub fn ggml_add_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add_inplace", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_ADD, a, b, true))
    }

    /// `a - b` for each element. `b` is repeated to the shape of `a`, which the result has.
    pub fn ggml_sub(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sub", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_SUB, a, b, false))
    }

    /// As `ggml_sub`, written over `a`.
    pub fn ggml_sub_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sub_inplace", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_SUB, a, b, true))
    }

    /// `a * b` for each element. `b` is repeated to the shape of `a`, which the result has.
    pub fn ggml_mul(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_mul", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_MUL, a, b, false))
    }

    /// As `ggml_mul`, written over `a`.
    pub fn ggml_mul_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_mul_inplace", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_MUL, a, b, true))
    }

    /// `a / b` for each element. `b` is repeated to the shape of `a`, which the result has.
    pub fn ggml_div(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_div", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_DIV, a, b, false))
    }

    /// As `ggml_div`, written over `a`.
    pub fn ggml_div_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_div_inplace", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_DIV, a, b, true))
    }

    /// `a + b` in format `type`, for `a` quantised, f16 or bf16. Rows of `b` are as long as those of `a`.
    pub fn ggml_add_cast(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, r#type: ggml_type) -> *mut ggml_tensor {
        node(ctx, "ggml_add_cast", [a, b], [], |[a, b], []| elementwise::add_cast(a, b, r#type))
    }

    /// `a[:, i, t] + b[:, ids[i, t]]`: `a` [n, used, tokens], `b` [n, rows], `ids` i32 [used, tokens].
    pub fn ggml_add_id(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, ids: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add_id", [a, b, ids], [], |[a, b, ids], []| elementwise::add_id(a, b, ids))
    }

    /// `a` plus the one element of `b`.
    pub fn ggml_add1(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add1", [a, b], [], |[a, b], []| elementwise::add1(a, b, false))
    }

    /// As `ggml_add1`, written over `a`.
    pub fn ggml_add1_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add1_inplace", [a, b], [], |[a, b], []| elementwise::add1(a, b, true))
    }
}

entry! {
    /// `a` with `b` added into a window: strides and offset in bytes, below 2^31, inside `a`. Both f32, `a` contiguous.
    pub fn ggml_acc(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_acc", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_ACC, a, b, [nb1, nb2, nb3], offset, false))
    }

    /// As `ggml_acc`, written over `a`.
    pub fn ggml_acc_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_acc_inplace", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_ACC, a, b, [nb1, nb2, nb3], offset, true))
    }

    /// `a` with `b` put into a window: strides and offset in bytes, below 2^31, inside `a`.
    pub fn ggml_set(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [nb1, nb2, nb3], offset, false))
    }

    /// As `ggml_set`, written over `a`.
    pub fn ggml_set_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set_inplace", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [nb1, nb2, nb3], offset, true))
    }

    /// `ggml_set` with the strides of `a`.
    pub fn ggml_set_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set_1d", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [a.nb[1], a.nb[2], a.nb[3]], offset, false))
    }

    /// `ggml_set` with the strides of `a` but for dimension 1.
    pub fn ggml_set_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set_2d", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [nb1, a.nb[2], a.nb[3]], offset, false))
    }

    /// `ggml_set` with the strides of `a`, written over `a`.
    pub fn ggml_set_1d_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set_1d_inplace", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [a.nb[1], a.nb[2], a.nb[3]], offset, true))
    }

    /// `ggml_set` with the strides of `a` but for dimension 1, written over `a`.
    pub fn ggml_set_2d_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, nb1: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_set_2d_inplace", [a, b], [], |[a, b], []| elementwise::window(GGML_OP_SET, a, b, [nb1, a.nb[2], a.nb[3]], offset, true))
    }
}

entry! {
    /// `a * s`. `a` has gaps after rows at most.
    pub fn ggml_scale(ctx: *mut ggml_context, a: *mut ggml_tensor, s: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_scale", [a], [], |[a], []| elementwise::scale(a, s, 0.0, false))
    }

    /// `a * s + b`. `a` has gaps after rows at most.
    pub fn ggml_scale_bias(ctx: *mut ggml_context, a: *mut ggml_tensor, s: f32, b: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_scale_bias", [a], [], |[a], []| elementwise::scale(a, s, b, false))
    }

    /// Each element, but not below `min` and not above `max`.
    pub fn ggml_clamp(ctx: *mut ggml_context, a: *mut ggml_tensor, min: f32, max: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_clamp", [a], [], |[a], []| elementwise::clamp(a, min, max, false))
    }

    /// `c` in the shape of `a`. `a` contiguous, f32 or f16.
    pub fn ggml_fill(ctx: *mut ggml_context, a: *mut ggml_tensor, c: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_fill", [a], [], |[a], []| elementwise::fill(a, c, false))
    }

    /// `a * s`, written over `a`. `a` has gaps after rows at most.
    pub fn ggml_scale_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, s: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_scale_inplace", [a], [], |[a], []| elementwise::scale(a, s, 0.0, true))
    }

    /// `a * s + b`, written over `a`. `a` has gaps after rows at most.
    pub fn ggml_scale_bias_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, s: f32, b: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_scale_bias_inplace", [a], [], |[a], []| elementwise::scale(a, s, b, true))
    }

    /// Each element, but not below `min` and not above `max`, written over `a`.
    pub fn ggml_clamp_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, min: f32, max: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_clamp_inplace", [a], [], |[a], []| elementwise::clamp(a, min, max, true))
    }

    /// `c` in the shape of `a`, written over `a`. `a` contiguous, f32 or f16.
    pub fn ggml_fill_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, c: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_fill_inplace", [a], [], |[a], []| elementwise::fill(a, c, true))
    }
}
