//! Entry points of ggml.h: normalisations and softmax.

use super::edit::set_sinks;
use crate::entry;
use crate::tensor::{node, norm};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// `(x - mean) / sqrt(variance + eps)` along each row.
    pub fn ggml_norm(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_norm", [a], [], |[a], []| norm::rows(GGML_OP_NORM, a, eps, false))
    }

    /// As `ggml_norm`, written over `a`.
    pub fn ggml_norm_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_norm_inplace", [a], [], |[a], []| norm::rows(GGML_OP_NORM, a, eps, true))
    }

    /// `x / sqrt(mean of squares + eps)` along each row.
    pub fn ggml_rms_norm(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_rms_norm", [a], [], |[a], []| norm::rows(GGML_OP_RMS_NORM, a, eps, false))
    }

    /// As `ggml_rms_norm`, written over `a`.
    pub fn ggml_rms_norm_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_rms_norm_inplace", [a], [], |[a], []| norm::rows(GGML_OP_RMS_NORM, a, eps, true))
    }

    /// `x / max(length, eps)` along each row.
    pub fn ggml_l2_norm(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_l2_norm", [a], [], |[a], []| norm::rows(GGML_OP_L2_NORM, a, eps, false))
    }

    /// As `ggml_l2_norm`, written over `a`.
    pub fn ggml_l2_norm_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_l2_norm_inplace", [a], [], |[a], []| norm::rows(GGML_OP_L2_NORM, a, eps, true))
    }

    /// `(x - mean) / sqrt(variance + eps)` over dimensions 0 and 1 and each of `n_groups` parts of dimension 2.
    pub fn ggml_group_norm(ctx: *mut ggml_context, a: *mut ggml_tensor, n_groups: c_int, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_group_norm", [a], [], |[a], []| norm::group_norm(a, n_groups, eps, false))
    }

    /// As `ggml_group_norm`, written over `a`.
    pub fn ggml_group_norm_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, n_groups: c_int, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_group_norm_inplace", [a], [], |[a], []| norm::group_norm(a, n_groups, eps, true))
    }
}

entry! {
    /// Softmax of each row of `a`, which is contiguous.
    pub fn ggml_soft_max(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max", [a], [], |[a], []| norm::soft_max(a, None, 1.0, 0.0, false))
    }

    /// Softmax of `a * scale + slope * mask` along each row. `mask`: NULL or contiguous f16 or f32 [ne0, >= ne1, m2, m3], ne2 and ne3
    /// multiples of m2 and m3. A positive `max_bias` gives each of dimension 2 an ALiBi slope and needs a mask; else the slope is 1.
    pub fn ggml_soft_max_ext(ctx: *mut ggml_context, a: *mut ggml_tensor, mask: *mut ggml_tensor, scale: f32, max_bias: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max_ext", [a], [mask], |[a], [mask]| norm::soft_max(a, mask, scale, max_bias, false))
    }

    /// As `ggml_soft_max`, written over `a`.
    pub fn ggml_soft_max_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max_inplace", [a], [], |[a], []| norm::soft_max(a, None, 1.0, 0.0, true))
    }

    /// As `ggml_soft_max_ext`, written over `a`.
    pub fn ggml_soft_max_ext_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, mask: *mut ggml_tensor, scale: f32, max_bias: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max_ext_inplace", [a], [mask], |[a], [mask]| norm::soft_max(a, mask, scale, max_bias, true))
    }

    /// Gives a softmax sinks: f32, one logit for each of dimension 2, that takes part in the sum only. NULL takes them back.
    /// Where they do not fit an error is recorded and nothing changes.
    pub fn ggml_soft_max_add_sinks(a: *mut ggml_tensor, sinks: *mut ggml_tensor) {
        set_sinks("ggml_soft_max_add_sinks", a, GGML_OP_SOFT_MAX, 2, sinks);
    }
}
