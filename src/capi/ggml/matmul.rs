//! Entry points of ggml.h: matrix products and attention.

use super::edit::{edit, get_param, set_param, set_sinks};
use crate::entry;
use crate::error::{self, Error};
use crate::tensor::attention::{self, Sources};
use crate::tensor::{matmul, node};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// Matrix product: `a` [k, m, a2, a3], not transposed, and `b` [k, n, b2, b3], b2 and b3 multiples of a2 and a3, give
    /// f32 [m, n, b2, b3]: the dot products of the rows of `a` and `b`.
    pub fn ggml_mul_mat(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_mul_mat", [a, b], [], |[a, b], []| matmul::mul_mat(a, b))
    }

    /// Matrix product with the matrices that `ids` picks: `as` [k, m, n_expert], `b` [k, b1, tokens] and `ids` i32 [used, tokens],
    /// `used` a multiple of b1, give f32 [m, used, tokens].
    pub fn ggml_mul_mat_id(ctx: *mut ggml_context, r#as: *mut ggml_tensor, b: *mut ggml_tensor, ids: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_mul_mat_id", [r#as, b, ids], [], |[experts, b, ids], []| matmul::mul_mat_id(experts, b, ids))
    }

    /// `a` [m, k, a2, a3], not transposed, and `b` [n, k, b2, b3], b2 and b3 multiples of a2 and a3, give f32 [m, n, b2, b3]: the sum of
    /// the products of columns, over k.
    pub fn ggml_out_prod(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_out_prod", [a, b], [], |[a, b], []| matmul::out_prod(a, b))
    }
}

entry! {
    /// Attention in one node: softmax(`scale` * q k + slope * mask) v. `q` [d, queries, heads, batch], `k` [d, keys, k2, batch],
    /// `v` [dv, keys, v2, batch], heads a multiple of k2 and v2, give f32 [dv, heads, queries, batch]. `mask`: NULL or contiguous
    /// f16 [>= keys, >= queries, m2, m3], heads and batch multiples of m2 and m3. `max_bias` as in `ggml_soft_max_ext`; a
    /// `logit_softcap` c other than 0 makes each logit `c * tanh(logit / c)`.
    pub fn ggml_flash_attn_ext(ctx: *mut ggml_context, q: *mut ggml_tensor, k: *mut ggml_tensor, v: *mut ggml_tensor, mask: *mut ggml_tensor, scale: f32, max_bias: f32, logit_softcap: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_flash_attn_ext", [q, k, v], [mask], |[q, k, v], [mask]| {
            attention::flash_attn_ext(Sources { q, k, v, mask }, scale, max_bias, logit_softcap)
        })
    }

    /// Gives an attention sinks: f32, one logit for each head. NULL takes them back. Where they do not fit an error is recorded
    /// and nothing changes.
    pub fn ggml_flash_attn_ext_add_sinks(a: *mut ggml_tensor, sinks: *mut ggml_tensor) {
        set_sinks("ggml_flash_attn_ext_add_sinks", a, GGML_OP_FLASH_ATTN_EXT, 4, sinks);
    }
}

entry! {
    /// Sets the precision of a matrix product's sums.
    pub fn ggml_mul_mat_set_prec(a: *mut ggml_tensor, prec: ggml_prec) {
        set_param("ggml_mul_mat_set_prec", a, &[GGML_OP_MUL_MAT], 0, prec.0);
    }

    /// Tells something about a matrix product's sources.
    pub fn ggml_mul_mat_set_hint(a: *mut ggml_tensor, hint: ggml_op_hint) {
        set_param("ggml_mul_mat_set_hint", a, &[GGML_OP_MUL_MAT], 1, hint.0);
    }

    /// Sets the precision of an attention's sums.
    pub fn ggml_flash_attn_ext_set_prec(a: *mut ggml_tensor, prec: ggml_prec) {
        set_param("ggml_flash_attn_ext_set_prec", a, &[GGML_OP_FLASH_ATTN_EXT], 3, prec.0);
    }

    /// The precision of an attention's sums.
    pub fn ggml_flash_attn_ext_get_prec(a: *const ggml_tensor) -> ggml_prec {
        ggml_prec(get_param("ggml_flash_attn_ext_get_prec", a, &[GGML_OP_FLASH_ATTN_EXT], 3))
    }

    /// Tells that an attention has at most `n_kv_max` keys that are not masked; 0: unknown.
    pub fn ggml_flash_attn_ext_set_n_kv_max(a: *mut ggml_tensor, n_kv_max: i32) {
        if n_kv_max < 0 {
            error::report(&Error::argument(format!("ggml_flash_attn_ext_set_n_kv_max: {n_kv_max} must not be negative")));
            return;
        }
        set_param("ggml_flash_attn_ext_set_n_kv_max", a, &[GGML_OP_FLASH_ATTN_EXT], 4, n_kv_max);
    }

    /// Sets the precision of a node's sums; false: its operator has no such choice.
    pub fn ggml_prec_set_acc(a: *mut ggml_tensor, prec: ggml_prec) -> bool {
        let Some(a) = edit("ggml_prec_set_acc", a) else {
            return false;
        };
        let slot = match a.op {
            GGML_OP_MUL_MAT | GGML_OP_MUL_MAT_ID => 0,
            GGML_OP_FLASH_ATTN_EXT => 3,
            _ => return false,
        };
        a.op_params[slot] = prec.0;
        true
    }

    /// Sets the precision in which source `idx` of a node may be taken; false: its operator has no such choice for it.
    pub fn ggml_prec_set_src(a: *mut ggml_tensor, prec: ggml_prec, idx: c_int) -> bool {
        let Some(a) = edit("ggml_prec_set_src", a) else {
            return false;
        };
        if !matches!(a.op, GGML_OP_MUL_MAT | GGML_OP_MUL_MAT_ID) || idx != 1 {
            return false;
        }
        a.op_params[3] = prec.0;
        true
    }
}
