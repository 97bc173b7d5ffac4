//! Entry points of ggml.h: sums, extremes and orders along rows.

use crate::entry;
use crate::tensor::{compose, node, reduce};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// The sum of all elements: one element.
    pub fn ggml_sum(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sum", [a], [], |[a], []| reduce::sum(a))
    }

    /// The sum of each row: [1, ne1, ne2, ne3].
    pub fn ggml_sum_rows(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_sum_rows", [a], [], |[a], []| reduce::sum_rows(a))
    }

    /// The running sum of each row, f32.
    pub fn ggml_cumsum(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_cumsum", [a], [], |[a], []| reduce::cumsum(a))
    }

    /// The mean of each row: f32 [1, ne1, ne2, ne3].
    pub fn ggml_mean(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_mean", [a], [], |[a], []| reduce::mean(a))
    }

    /// The index of the largest element of each row of a matrix: i32 [ne1].
    pub fn ggml_argmax(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_argmax", [a], [], |[a], []| reduce::argmax(a))
    }

    /// How many elements of `a` and `b`, of one shape, are equal: i64, one element.
    pub fn ggml_count_equal(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_count_equal", [a, b], [], |[a, b], []| reduce::count_equal(a, b))
    }

    /// The indices that sort each row: i32 of the shape of `a`.
    pub fn ggml_argsort(ctx: *mut ggml_context, a: *mut ggml_tensor, order: ggml_sort_order) -> *mut ggml_tensor {
        node(ctx, "ggml_argsort", [a], [], |[a], []| reduce::argsort(a, order))
    }

    /// The indices of the `k` largest of each row, in descending order: i32 [k, ne1, ne2, ne3], a view of the sorted whole.
    pub fn ggml_argsort_top_k(ctx: *mut ggml_context, a: *mut ggml_tensor, k: c_int) -> *mut ggml_tensor {
        compose::argsort_top_k(ctx, "ggml_argsort_top_k", a, k)
    }

    /// The indices of the `k` largest of each row, in any order: i32 [k, ne1, ne2, ne3].
    pub fn ggml_top_k(ctx: *mut ggml_context, a: *mut ggml_tensor, k: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_top_k", [a], [], |[a], []| reduce::top_k(a, k))
    }
}
