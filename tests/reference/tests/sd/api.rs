//! The builders, as ggml-sd.h declares them.

use reference::{ggml_tensor, Ctx, T};
use std::ffi::c_int;

// SAFETY: the signatures are those of ggml-sd.h.
unsafe extern "C" {
    pub safe fn ggml_quantize_i8_convrot(ctx: Ctx, a: T, group_size: c_int) -> T;
    pub safe fn ggml_mul_mat_i8_tensorwise(ctx: Ctx, weight: T, input: T, weight_scale: T, bias: T, group: c_int) -> T;
    pub safe fn ggml_mul_mat_i8_tensorwise_scaled(
        ctx: Ctx,
        weight: T,
        input: T,
        weight_scale: T,
        bias: T,
        group: c_int,
        input_scale: T,
    ) -> T;
    pub safe fn ggml_mul_mat_w4_convrot(
        ctx: Ctx,
        weight: T,
        input: T,
        weight_scales: T,
        s_channel: T,
        s_rel: T,
        bias: T,
        kind: c_int,
        group: c_int,
    ) -> T;
    pub safe fn ggml_sd_modulate(ctx: Ctx, x: T, shift: T, scale: T) -> T;
    pub safe fn ggml_rope_apply(ctx: Ctx, a: T, pe: T, interleaved: bool) -> T;
}

/// No tensor.
pub const NONE: T = std::ptr::null_mut::<ggml_tensor>();
