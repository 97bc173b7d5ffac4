//! Shape rules of resizing, padding and rolling.

use super::spec::{dims, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// UPSCALE of f32 `a` to the shape `ne`. `mode`: a `ggml_scale_mode` with bits of `ggml_scale_flag`; antialiasing goes with bilinear
/// only.
pub fn interpolate(a: &ggml_tensor, ne: [i64; GGML_MAX_DIMS], mode: u32) -> Result<NodeSpec, Error> {
    let kind = (mode & 0xff) as i32;
    require!(kind < GGML_SCALE_MODE_COUNT.0, "there is no scale mode {kind}");
    let antialias = mode & GGML_SCALE_FLAG_ANTIALIAS.0 as u32 != 0;
    require!(!antialias || kind == GGML_SCALE_MODE_BILINEAR.0, "antialiasing goes with the bilinear mode only");
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    require!(!shape::is_empty(a) || ne.contains(&0), "{} is empty, {} is not", show("src0", a), dims(&ne));
    Ok(NodeSpec::new(GGML_OP_UPSCALE, a.r#type, ne).params([mode as i32]))
}

/// UPSCALE of dimensions 0 and 1 by a factor of two or more.
pub fn upscale(a: &ggml_tensor, factor: i32, mode: ggml_scale_mode) -> Result<NodeSpec, Error> {
    require!(factor > 1, "scale factor {factor} must be above 1");
    let [w, h] = [a.ne[0], a.ne[1]].map(|n| n.saturating_mul(factor.into()));
    interpolate(a, [w, h, a.ne[2], a.ne[3]], mode.0 as u32)
}

/// PAD with zeros, or around if `circular`. `pads`: before and after dimension 0, 1, 2, 3.
pub fn pad(a: &ggml_tensor, pads: [i32; 8], circular: bool) -> Result<NodeSpec, Error> {
    let mut ne = a.ne;
    for (i, n) in ne.iter_mut().enumerate() {
        *n = n.saturating_add(i64::from(pads[2 * i]) + i64::from(pads[2 * i + 1]));
    }
    require!(
        !circular || !shape::is_empty(a) || ne.contains(&0),
        "{} is empty: nothing can go around",
        show("src0", a)
    );
    let mut spec = NodeSpec::new(GGML_OP_PAD, a.r#type, ne).params(pads);
    spec.params[8] = circular.into();
    Ok(spec)
}

/// PAD_REFLECT_1D along dimension 0 of contiguous f32: paddings not negative and below ne0.
pub fn pad_reflect_1d(a: &ggml_tensor, p0: i32, p1: i32) -> Result<NodeSpec, Error> {
    require!(p0 >= 0 && p1 >= 0, "paddings {p0} and {p1} must not be negative");
    require!(i64::from(p0.max(p1)) < a.ne[0], "paddings {p0} and {p1} must be below ne[0] of {}", show("src0", a));
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    require!(a.r#type == GGML_TYPE_F32, "{} must be f32", show("src0", a));
    let n = a.ne[0].saturating_add(i64::from(p0) + i64::from(p1));
    Ok(NodeSpec::new(GGML_OP_PAD_REFLECT_1D, a.r#type, [n, a.ne[1], a.ne[2], a.ne[3]]).params([p0, p1]))
}

/// ROLL: elements move on by `shifts`, and around; each shift is below its dimension, rows are packed.
pub fn roll(a: &ggml_tensor, shifts: [i32; GGML_MAX_DIMS]) -> Result<NodeSpec, Error> {
    require!(a.nb[0] == shape::type_size(a.r#type), "{} must have contiguous rows", show("src0", a));
    for (i, &shift) in shifts.iter().enumerate() {
        require!(i64::from(shift).abs() < a.ne[i], "shift {shift} must be below ne[{i}] of {}", show("src0", a));
    }
    Ok(NodeSpec::like(GGML_OP_ROLL, a).params(shifts))
}
