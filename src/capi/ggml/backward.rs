//! Entry points of ggml.h: gradients back through operators.
// C names of arguments
#![allow(non_snake_case)]

use crate::entry;
use crate::error::Error;
use crate::tensor::attention;
use crate::tensor::conv::{self, Axis};
use crate::tensor::pool::{self, Window};
use crate::tensor::rope::{self, Rope};
use crate::tensor::{backward, node};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// Gradient `a` of `ggml_silu(b)` back to `b`.
    pub fn ggml_silu_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_silu_back", [a, b], [], |[a, b], []| backward::silu(a, b))
    }

    /// Gradient `a` of `ggml_rms_norm(b, eps)` back to `b`.
    pub fn ggml_rms_norm_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, eps: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_rms_norm_back", [a, b], [], |[a, b], []| backward::rms_norm(a, b, eps))
    }

    /// Gradient `a` of a softmax `b` back to its source: `scale * b * (a - sum of a * b)` along each row. `scale` and `max_bias` as the
    /// softmax had them; a mask and its slopes change nothing.
    pub fn ggml_soft_max_ext_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, scale: f32, max_bias: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max_ext_back", [a, b], [], |[a, b], []| backward::soft_max(a, b, scale, max_bias, false))
    }

    /// As `ggml_soft_max_ext_back`, written over `a`.
    pub fn ggml_soft_max_ext_back_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, scale: f32, max_bias: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_soft_max_ext_back_inplace", [a, b], [], |[a, b], []| backward::soft_max(a, b, scale, max_bias, true))
    }

    /// The sum of the parts of `a` that have the shape of `b`, whose data are not looked at: a gradient back through `ggml_repeat`.
    pub fn ggml_repeat_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_repeat_back", [a, b], [], |[a, b], []| backward::repeat(a, b.ne))
    }

    /// Gradient `a` [n, r, b2, b3] of `ggml_get_rows(c, b)` back to `c` [n, rows, b2, b3], whose data are not looked at: f32. `b`: i32
    /// [r, b2, b3]. Rows that were taken more than once add up; those that were not are 0. An index that is no row fails the graph.
    pub fn ggml_get_rows_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_get_rows_back", [a, b, c], [], |[a, b, c], []| backward::get_rows(a, b, c))
    }
}

entry! {
    /// Gradient `a` of `ggml_im2col`, of its result's shape, back to a picture of shape `ne` (4 numbers): f32. `b`: the kernel; the
    /// others as in `ggml_im2col`.
    pub fn ggml_im2col_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, ne: *mut i64, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int, is_2D: bool) -> *mut ggml_tensor {
        let (x, y) = (Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 });
        let ne = ne.cast::<[i64; GGML_MAX_DIMS]>().as_ref().copied();
        node(ctx, "ggml_im2col_back", [a, b], [], |[a, b], []| {
            let ne = ne.ok_or_else(|| Error::new(GGML_EXT_CODE_NULL_ARGUMENT, "the shape is NULL"))?;
            conv::im2col_back(a, b, ne, x, y, is_2D)
        })
    }

    /// Gradient `a` of `ggml_pool_2d(af)` back to `af`: f32. Of equal elements of a window, the first has been its largest.
    pub fn ggml_pool_2d_back(ctx: *mut ggml_context, a: *mut ggml_tensor, af: *mut ggml_tensor, op: ggml_op_pool, k0: c_int, k1: c_int, s0: c_int, s1: c_int, p0: f32, p1: f32) -> *mut ggml_tensor {
        let x = Window { k: k0, s: s0, p: p0 };
        let y = Window { k: k1, s: s1, p: p1 };
        node(ctx, "ggml_pool_2d_back", [a, af], [], |[a, af], []| pool::pool_2d_back(a, af, op, x, y))
    }

    /// Gradient `d` [dim, queries, heads, batch] of an attention back to `q` [dim, queries, heads, batch], `k` [dim, keys, k2, batch] and
    /// `v` [keys, dim, k2, batch], which is transposed; head h reads k and v of h modulo k2. The attention is softmax(q k / sqrt(dim)) v;
    /// where `masked`, query i reads the keys up to `keys - queries + i`. The result is f32 [n]: the gradients of `q`, `k` and `v`, each
    /// contiguous in the shape of its source, and filled up to a multiple of 16 bytes.
    pub fn ggml_flash_attn_back(ctx: *mut ggml_context, q: *mut ggml_tensor, k: *mut ggml_tensor, v: *mut ggml_tensor, d: *mut ggml_tensor, masked: bool) -> *mut ggml_tensor {
        node(ctx, "ggml_flash_attn_back", [q, k, v, d], [], |[q, k, v, d], []| attention::flash_attn_back(q, k, v, d, masked))
    }
}

entry! {
    /// Gradient `a` of `ggml_rope_ext` with the same arguments back to its source.
    pub fn ggml_rope_ext_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections: None };
        node(ctx, "ggml_rope_ext_back", [a, b], [c], |[a, b], [c]| rope::rope_back(a, b, c, &args))
    }

    /// Gradient `a` of `ggml_rope_multi` with the same arguments back to its source.
    pub fn ggml_rope_multi_back(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor, n_dims: c_int, sections: *mut c_int, mode: c_int, n_ctx_orig: c_int, freq_base: f32, freq_scale: f32, ext_factor: f32, attn_factor: f32, beta_fast: f32, beta_slow: f32) -> *mut ggml_tensor {
        let sections = sections.cast::<[c_int; GGML_MROPE_SECTIONS]>().as_ref().copied();
        let args = Rope { n_dims, mode, n_ctx_orig, factors: [freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow], sections };
        node(ctx, "ggml_rope_multi_back", [a, b], [c], |[a, b], [c]| rope::rope_back(a, b, c, &args))
    }
}
