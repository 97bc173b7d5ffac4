//! Shape rules of attention in windows of a picture, and of its relative positions.

use super::spec::{product, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Windows of `w` elements that cover `n`, as `op_params` hold them.
fn windows(n: i64, w: i64) -> Result<i32, Error> {
    let count = n / w + i64::from(n % w != 0);
    i32::try_from(count).map_err(|_| Error::shape(format!("{count} windows are more than can be counted")))
}

fn check_size(w: i32) -> Result<(), Error> {
    require!(w > 0, "window size {w} must be positive");
    Ok(())
}

/// WIN_PART: f32 `a` [c, w, h] gives [c, size, size, windows], windows row by row, zeros where `a` ends.
pub fn win_part(a: &ggml_tensor, size: i32) -> Result<NodeSpec, Error> {
    check_size(size)?;
    require!(a.ne[3] == 1, "{} must have 3 dimensions", show("src0", a));
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    let w = i64::from(size);
    let (nx, ny) = (windows(a.ne[1], w)?, windows(a.ne[2], w)?);
    let ne = [a.ne[0], w, w, product(&[nx.into(), ny.into()])];
    Ok(NodeSpec::new(GGML_OP_WIN_PART, GGML_TYPE_F32, ne).params([nx, ny, size]))
}

/// WIN_UNPART: f32 windows `a` [c, >= size, >= size, windows] give [c, w0, h0].
pub fn win_unpart(a: &ggml_tensor, w0: i32, h0: i32, size: i32) -> Result<NodeSpec, Error> {
    check_size(size)?;
    require!(w0 >= 0 && h0 >= 0, "width {w0} and height {h0} must not be negative");
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    let (w, w0, h0) = (i64::from(size), i64::from(w0), i64::from(h0));
    let count = product(&[windows(w0, w)?.into(), windows(h0, w)?.into()]);
    require!(
        a.ne[1] >= w && a.ne[2] >= w && a.ne[3] >= count,
        "{} must have {count} windows of {size} times {size}",
        show("src0", a)
    );
    Ok(NodeSpec::new(GGML_OP_WIN_UNPART, GGML_TYPE_F32, [a.ne[0], w0, h0, 1]).params([size]))
}

/// GET_REL_POS: `a` [c, 2 * kh - 1] gives f16 [c, kh, qh]; `qh` is `kh`.
pub fn get_rel_pos(a: &ggml_tensor, qh: i32, kh: i32) -> Result<NodeSpec, Error> {
    require!(qh == kh, "sizes {qh} and {kh} must be equal");
    let n = i64::from(kh);
    require!(a.ne[1..] == [2 * n - 1, 1, 1], "{} must be a matrix of 2 * {kh} - 1 rows", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_GET_REL_POS, GGML_TYPE_F16, [a.ne[0], n, n, 1]))
}

/// ADD_REL_POS: `a` [n * n, w * h, b] and f32 `pw`, `ph` [n, w, h, b], all contiguous, give the shape of `a`.
pub fn add_rel_pos(a: &ggml_tensor, pw: &ggml_tensor, ph: &ggml_tensor, inplace: bool) -> Result<NodeSpec, Error> {
    require!(shape::same_shape(pw, ph), "{} and {} must have one shape", show("pw", pw), show("ph", ph));
    for (role, t) in [("src0", a), ("pw", pw), ("ph", ph)] {
        require!(shape::is_contiguous(t), "{} must be contiguous", show(role, t));
    }
    for (role, t) in [("pw", pw), ("ph", ph)] {
        require!(t.r#type == GGML_TYPE_F32, "{} must be f32", show(role, t));
    }
    let [n, w, h, b] = pw.ne;
    require!(
        a.ne == [product(&[n, n]), product(&[w, h]), b, 1],
        "{} must be [ne0 * ne0, ne1 * ne2, ne3] of {}",
        show("src0", a),
        show("pw", pw)
    );
    Ok(NodeSpec::like_or_over(GGML_OP_ADD_REL_POS, a, inplace).params([inplace.into()]))
}
