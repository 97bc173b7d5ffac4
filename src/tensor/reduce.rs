//! Shape rules of operators that count, add up or sort along dimension 0.

use super::spec::{require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// SUM: one element.
pub fn sum(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::new(GGML_OP_SUM, a.r#type, [1; GGML_MAX_DIMS]))
}

/// SUM_ROWS: [1, ne1, ne2, ne3].
pub fn sum_rows(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::new(GGML_OP_SUM_ROWS, a.r#type, [1, a.ne[1], a.ne[2], a.ne[3]]))
}

/// MEAN: f32 [1, ne1, ne2, ne3].
pub fn mean(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::new(GGML_OP_MEAN, GGML_TYPE_F32, [1, a.ne[1], a.ne[2], a.ne[3]]))
}

/// CUMSUM: f32.
pub fn cumsum(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    Ok(NodeSpec::like(GGML_OP_CUMSUM, a))
}

fn indexable(a: &ggml_tensor) -> bool {
    a.ne[0] <= i32::MAX.into()
}

/// ARGMAX of a matrix: i32 [ne1].
pub fn argmax(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(a.ne[2] == 1 && a.ne[3] == 1, "{} must be a matrix", show("src0", a));
    require!(indexable(a), "{}: ne[0] must be below 2^31", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_ARGMAX, GGML_TYPE_I32, [a.ne[1], 1, 1, 1]))
}

/// COUNT_EQUAL: i64, one element.
pub fn count_equal(a: &ggml_tensor, b: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(shape::same_shape(a, b), "{} and {} must have one shape", show("src0", a), show("src1", b));
    Ok(NodeSpec::new(GGML_OP_COUNT_EQUAL, GGML_TYPE_I64, [1; GGML_MAX_DIMS]))
}

/// ARGSORT: i32 of the shape of `a`.
pub fn argsort(a: &ggml_tensor, order: ggml_sort_order) -> Result<NodeSpec, Error> {
    require!(indexable(a), "{}: ne[0] must be below 2^31", show("src0", a));
    require!(order == GGML_SORT_ORDER_ASC || order == GGML_SORT_ORDER_DESC, "there is no sort order {}", order.0);
    Ok(NodeSpec::new(GGML_OP_ARGSORT, GGML_TYPE_I32, a.ne).params([order.0]))
}

/// TOP_K: i32 [k, ne1, ne2, ne3].
pub fn top_k(a: &ggml_tensor, k: i32) -> Result<NodeSpec, Error> {
    check_k(a, k)?;
    Ok(NodeSpec::new(GGML_OP_TOP_K, GGML_TYPE_I32, [k.into(), a.ne[1], a.ne[2], a.ne[3]]))
}

/// The first `k` of a row are to be had.
pub fn check_k(a: &ggml_tensor, k: i32) -> Result<(), Error> {
    require!(indexable(a), "{}: ne[0] must be below 2^31", show("src0", a));
    require!((0..=a.ne[0]).contains(&k.into()), "{}: k {k} must be 0 to ne[0]", show("src0", a));
    Ok(())
}
