//! Shape rules of operators that move elements: copies, repetition, rows by index, masks.

use super::spec::{dims, divides, product, repeats, require, show, Naming, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// CPY of `a` into `b`, which has as many elements; the result is `b`.
pub fn cpy(a: &ggml_tensor, b: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(
        shape::nelements(a) == shape::nelements(b),
        "{} and {} must have as many elements",
        show("src0", a),
        show("src1", b)
    );
    Ok(NodeSpec { naming: Naming::Copy, ..NodeSpec::over(GGML_OP_CPY, b, 1) })
}

/// CPY into a new tensor of format `ty`, which is its own source 1.
pub fn cast(a: &ggml_tensor, ty: ggml_type) -> Result<NodeSpec, Error> {
    Ok(NodeSpec { self_src: Some(1), ..NodeSpec::new(GGML_OP_CPY, ty, a.ne).named(0, "copy") })
}

/// CONT: `a` without gaps, in the shape `ne` if given.
pub fn cont(a: &ggml_tensor, ne: Option<[i64; GGML_MAX_DIMS]>) -> Result<NodeSpec, Error> {
    let ne = ne.unwrap_or(a.ne);
    require!(
        shape::checked_nelements(&ne) == Some(shape::nelements(a)),
        "{} has {} elements, {} has {}",
        show("src0", a),
        shape::nelements(a),
        dims(&ne),
        product(&ne)
    );
    Ok(NodeSpec::new(GGML_OP_CONT, a.r#type, ne).named(0, "cont"))
}

/// REPEAT: `a` repeated to the shape `ne`.
pub fn repeat(a: &ggml_tensor, ne: [i64; GGML_MAX_DIMS]) -> Result<NodeSpec, Error> {
    require!(repeats(a, &ne), "{} cannot be repeated to {}", show("src0", a), dims(&ne));
    Ok(NodeSpec::new(GGML_OP_REPEAT, a.r#type, ne).keeping(1))
}

/// CONCAT along dimension `dim`; all other dimensions and the format are equal.
pub fn concat(a: &ggml_tensor, b: &ggml_tensor, dim: i32) -> Result<NodeSpec, Error> {
    require!((0..GGML_MAX_DIMS as i32).contains(&dim), "there is no dimension {dim}");
    require!(a.r#type == b.r#type, "{} and {} must have one format", show("src0", a), show("src1", b));
    let mut ne = a.ne;
    for (i, n) in ne.iter_mut().enumerate() {
        if i == dim as usize {
            *n = n.saturating_add(b.ne[i]);
        } else {
            require!(*n == b.ne[i], "{} and {}: ne[{i}] must be equal", show("src0", a), show("src1", b));
        }
    }
    Ok(NodeSpec::new(GGML_OP_CONCAT, a.r#type, ne).params([dim]))
}

/// GET_ROWS: `a` [n, rows, a2, a3] and `ids` i32 [r, a2, a3] give [n, r, a2, a3], i32 from i32 and else f32.
pub fn get_rows(a: &ggml_tensor, ids: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(
        a.ne[2] == ids.ne[1] && a.ne[3] == ids.ne[2] && ids.ne[3] == 1,
        "{} needs ids for each of dimensions 2 and 3 of {}",
        show("src1", ids),
        show("src0", a)
    );
    require!(ids.r#type == GGML_TYPE_I32, "{} must be i32", show("src1", ids));
    let ty = if a.r#type == GGML_TYPE_I32 { GGML_TYPE_I32 } else { GGML_TYPE_F32 };
    Ok(NodeSpec::new(GGML_OP_GET_ROWS, ty, [a.ne[0], ids.ne[0], ids.ne[1], ids.ne[2]]))
}

/// SET_ROWS: rows `b` [n, r, a2, a3], f32 or f16, go to the rows `ids` i32 or i64 [r, i1, i2] of `a` [n, rows, a2, a3]. Sources are
/// `b`, `ids`, `a` in this order.
pub fn set_rows(b: &ggml_tensor, ids: &ggml_tensor, a: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(
        a.ne[0] == b.ne[0] && a.ne[2] == b.ne[2] && a.ne[3] == b.ne[3],
        "{} and {} must be equal but for ne[1]",
        show("target", a),
        show("rows", b)
    );
    require!(
        b.ne[1] == ids.ne[0] && divides(ids.ne[1], b.ne[2]) && divides(ids.ne[2], b.ne[3]) && ids.ne[3] == 1,
        "{} cannot be repeated to the rows of {}",
        show("ids", ids),
        show("rows", b)
    );
    require!(b.r#type == GGML_TYPE_F32 || b.r#type == GGML_TYPE_F16, "{} must be f32 or f16", show("rows", b));
    require!(ids.r#type == GGML_TYPE_I64 || ids.r#type == GGML_TYPE_I32, "{} must be i64 or i32", show("ids", ids));
    require!(shape::is_contiguous_rows(a), "{} must have contiguous rows", show("target", a));
    require!(shape::is_contiguous_rows(b), "{} must have contiguous rows", show("rows", b));
    Ok(NodeSpec::over(GGML_OP_SET_ROWS, a, 2))
}

/// DIAG: `a` [n, 1, a2, a3] gives [n, n, a2, a3].
pub fn diag(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(a.ne[1] == 1, "{}: ne[1] must be 1", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_DIAG, a.r#type, [a.ne[0], a.ne[0], a.ne[2], a.ne[3]]))
}

/// DIAG_MASK_INF, DIAG_MASK_ZERO.
pub fn diag_mask(op: ggml_op, a: &ggml_tensor, n_past: i32, inplace: bool) -> Result<NodeSpec, Error> {
    require!(n_past >= 0, "n_past {n_past} must not be negative");
    Ok(NodeSpec::like_or_over(op, a, inplace).params([n_past]))
}

/// TRI: a square, contiguous f32 matrix, or a stack of them.
pub fn tri(a: &ggml_tensor, ty: ggml_tri_type) -> Result<NodeSpec, Error> {
    require!((GGML_TRI_TYPE_UPPER_DIAG.0..=GGML_TRI_TYPE_LOWER.0).contains(&ty.0), "there is no triangle {}", ty.0);
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    require!(a.ne[0] == a.ne[1], "{} must be square", show("src0", a));
    Ok(NodeSpec::like(GGML_OP_TRI, a).params([ty.0]))
}
