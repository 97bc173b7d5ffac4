//! Entry points of ggml.h: copies, repetition, rows by index, masks.

use crate::entry;
use crate::tensor::{copy, node};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// Copies `a` into `b`, which has as many elements and any format or layout; the result is a view of `b`.
    pub fn ggml_cpy(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cpy", [a, b], [], |[a, b], []| copy::cpy(a, b))
    }

    /// `a` in format `type`, contiguous.
    pub fn ggml_cast(ctx: *mut ggml_context, a: *mut ggml_tensor, r#type: ggml_type) -> *mut ggml_tensor {
        node(ctx, "ggml_cast", [a], [], |[a], []| copy::cast(a, r#type))
    }

    /// `a` without gaps.
    pub fn ggml_cont(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cont", [a], [], |[a], []| copy::cont(a, None))
    }

    /// `a` without gaps, in a shape with as many elements.
    pub fn ggml_cont_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_cont_1d", [a], [], |[a], []| copy::cont(a, Some([ne0, 1, 1, 1])))
    }

    /// `a` without gaps, in a shape with as many elements.
    pub fn ggml_cont_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_cont_2d", [a], [], |[a], []| copy::cont(a, Some([ne0, ne1, 1, 1])))
    }

    /// `a` without gaps, in a shape with as many elements.
    pub fn ggml_cont_3d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_cont_3d", [a], [], |[a], []| copy::cont(a, Some([ne0, ne1, ne2, 1])))
    }

    /// `a` without gaps, in a shape with as many elements.
    pub fn ggml_cont_4d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_cont_4d", [a], [], |[a], []| copy::cont(a, Some([ne0, ne1, ne2, ne3])))
    }
}

entry! {
    /// `a` repeated to the shape of `b`, whose data are not looked at.
    pub fn ggml_repeat(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_repeat", [a, b], [], |[a, b], []| copy::repeat(a, b.ne))
    }

    /// `a` repeated to a shape.
    pub fn ggml_repeat_4d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_repeat_4d", [a], [], |[a], []| copy::repeat(a, [ne0, ne1, ne2, ne3]))
    }

    /// `a` and then `b` along dimension `dim`; all other dimensions and the format are equal.
    pub fn ggml_concat(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, dim: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_concat", [a, b], [], |[a, b], []| copy::concat(a, b, dim))
    }

    /// Rows by index: `a` [n, rows, a2, a3] and `b` i32 [r, a2, a3] give [n, r, a2, a3], i32 from i32 and else f32.
    pub fn ggml_get_rows(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_get_rows", [a, b], [], |[a, b], []| copy::get_rows(a, b))
    }

    /// Puts rows `b` [n, r, a2, a3], f32 or f16, at the rows `c` i32 or i64 [r, i1, i2] of `a` [n, rows, a2, a3]; a2 and a3 are
    /// multiples of i1 and i2. The result is a view of `a`.
    pub fn ggml_set_rows(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, c: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_set_rows", [b, c, a], [], |[b, c, a], []| copy::set_rows(b, c, a))
    }

    /// [n, 1, a2, a3] on the diagonals of [n, n, a2, a3].
    pub fn ggml_diag(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_diag", [a], [], |[a], []| copy::diag(a))
    }

    /// `a` with minus infinity in row i after element `n_past + i`.
    pub fn ggml_diag_mask_inf(ctx: *mut ggml_context, a: *mut ggml_tensor, n_past: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_diag_mask_inf", [a], [], |[a], []| copy::diag_mask(GGML_OP_DIAG_MASK_INF, a, n_past, false))
    }

    /// As `ggml_diag_mask_inf`, written over `a`.
    pub fn ggml_diag_mask_inf_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, n_past: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_diag_mask_inf_inplace", [a], [], |[a], []| copy::diag_mask(GGML_OP_DIAG_MASK_INF, a, n_past, true))
    }

    /// `a` with 0 in row i after element `n_past + i`.
    pub fn ggml_diag_mask_zero(ctx: *mut ggml_context, a: *mut ggml_tensor, n_past: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_diag_mask_zero", [a], [], |[a], []| copy::diag_mask(GGML_OP_DIAG_MASK_ZERO, a, n_past, false))
    }

    /// As `ggml_diag_mask_zero`, written over `a`.
    pub fn ggml_diag_mask_zero_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, n_past: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_diag_mask_zero_inplace", [a], [], |[a], []| copy::diag_mask(GGML_OP_DIAG_MASK_ZERO, a, n_past, true))
    }

    /// One triangle of square f32 matrices, zeros elsewhere. `a` is contiguous.
    pub fn ggml_tri(ctx: *mut ggml_context, a: *mut ggml_tensor, r#type: ggml_tri_type) -> *mut ggml_tensor {
        node(ctx, "ggml_tri", [a], [], |[a], []| copy::tri(a, r#type))
    }
}
