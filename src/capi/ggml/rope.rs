//! Entry points of ggml.h: rotary position embedding.

use super::edit::{get_param, set_param};
use crate::entry;
use crate::error::{self, Error};
use crate::tensor::node;
use crate::tensor::rope::{self, Rope};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// Turns pairs of the first `n_dims` elements of each row of `a` [n, heads, tokens, batch] by angles that grow with the position,
    /// `b` i32 [tokens]. `mode`: one of `GGML_ROPE_TYPE_*`.
    pub fn ggml_rope(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, n_dims: c_int, mode: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_rope", [a, b], [], |[a, b], []| rope::rope(a, b, None, &Rope::simple(n_dims, mode), false))
    }

    /// As `ggml_rope`, with the base of the angles, position scaling and YaRN. `c`: NULL or f32 [>= n_dims / 2], divisors of the
    /// angles. For the MROPE modes `b` has 4 numbers per token: all of the first stream, all of the second, and so on.
    pub fn ggml_rope_ext(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections: None };
        node(ctx, "ggml_rope_ext", [a, b], [c], |[a, b], [c]| rope::rope(a, b, c, &args, false))
    }

    /// As `ggml_rope_ext` for several position streams: `sections` tells how many pairs follow each of the four.
    pub fn ggml_rope_multi(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, sections: *mut c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let sections = sections.cast::<[c_int; GGML_MROPE_SECTIONS]>().as_ref().copied();
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections };
        node(ctx, "ggml_rope_multi", [a, b], [c], |[a, b], [c]| rope::rope(a, b, c, &args, false))
    }

    /// As `ggml_rope`, written over `a`.
    pub fn ggml_rope_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, n_dims: c_int, mode: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_rope_inplace", [a, b], [], |[a, b], []| rope::rope(a, b, None, &Rope::simple(n_dims, mode), true))
    }

    /// As `ggml_rope_ext`, written over `a`.
    pub fn ggml_rope_ext_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections: None };
        node(ctx, "ggml_rope_ext_inplace", [a, b], [c], |[a, b], [c]| rope::rope(a, b, c, &args, true))
    }

    /// As `ggml_rope_multi`, written over `a`.
    pub fn ggml_rope_multi_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, sections: *mut c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let sections = sections.cast::<[c_int; GGML_MROPE_SECTIONS]>().as_ref().copied();
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections };
        node(ctx, "ggml_rope_multi_inplace", [a, b], [c], |[a, b], [c]| rope::rope(a, b, c, &args, true))
    }

    /// As `ggml_rope_ext` without divisors, the older name.
    pub fn ggml_rope_custom(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, n_dims: c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections: None };
        node(ctx, "ggml_rope_custom", [a, b], [], |[a, b], []| rope::rope(a, b, None, &args, false))
    }

    /// As `ggml_rope_custom`, written over `a`.
    pub fn ggml_rope_custom_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, n_dims: c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections: None };
        node(ctx, "ggml_rope_custom_inplace", [a, b], [], |[a, b], []| rope::rope(a, b, None, &args, true))
    }

    /// Writes to `dims` (2 numbers) between which of the `n_dims` YaRN blends from one frequency to the other.
    pub fn ggml_rope_yarn_corr_dims(n_dims: c_int, n_ctx_orig: c_int, freq_base: f32, beta_fast: f32, beta_slow: f32, dims: *mut f32) {
        let Some(dims) = dims.cast::<[f32; 2]>().as_mut() else {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, "ggml_rope_yarn_corr_dims: dims is NULL".to_string());
            return;
        };
        *dims = rope::yarn_corr_dims(n_dims, n_ctx_orig, freq_base, beta_fast, beta_slow);
    }

    /// Leaves the first `n_offs` elements of each row as they are and turns those after them. Not for the vision mode. Answers `a`.
    pub fn ggml_rope_set_offset(a: *mut ggml_tensor, n_offs: c_int) -> *mut ggml_tensor {
        const CALL: &str = "ggml_rope_set_offset";
        let mode = get_param(CALL, a, &[GGML_OP_ROPE, GGML_OP_ROPE_BACK], 2);
        if n_offs < 0 || mode == GGML_ROPE_TYPE_VISION {
            error::report(&Error::argument(format!("{CALL}: offset {n_offs} must not be negative, mode {mode} not the vision mode")));
            return a;
        }
        set_param(CALL, a, &[GGML_OP_ROPE, GGML_OP_ROPE_BACK], 15, n_offs);
        a
    }
}
