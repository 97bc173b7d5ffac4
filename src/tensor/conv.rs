//! Shape rules of convolutions and of the gathers under them. Kernels lie low to high as [KW, KH, IC, OC], pictures as [W, H, C, N].

use super::spec::{dims, divides, product, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Stride, padding and dilation along one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements from one window to the next.
    pub s: i32,
    /// Elements of zeros on either side.
    pub p: i32,
    /// Elements from one tap to the next.
    pub d: i32,
}

/// Windows of `taps` taps along `n` elements, division towards zero. Zero and less: none fits.
fn windows(axis: Axis, n: i64, taps: i64) -> Result<i64, Error> {
    let Axis { s, p, d } = axis;
    require!(s > 0 && d > 0, "stride {s} and dilation {d} must be positive");
    let [n, taps, s, p, d] = [n, taps, s.into(), p.into(), d.into()].map(i128::from);
    let count = (n + 2 * p - d * (taps - 1) - 1) / s + 1;
    i64::try_from(count).map_err(|_| Error::shape(format!("{count} windows are more than can be counted")))
}

fn windows_or_error(axis: Axis, n: i64, taps: i64, a: &ggml_tensor, b: &ggml_tensor) -> Result<i64, Error> {
    let count = windows(axis, n, taps)?;
    require!(count > 0, "{} is too small for {}", show("src1", b), show("src0", a));
    Ok(count)
}

/// IM2COL in two dimensions: kernel `a` [KW, KH, IC, _], picture `b` [W, H, IC, N] give `ty` [IC*KH*KW, OW, OH, N].
pub fn im2col_2d(a: &ggml_tensor, b: &ggml_tensor, x: Axis, y: Axis, ty: ggml_type) -> Result<NodeSpec, Error> {
    require!(a.ne[2] == b.ne[2], "{} and {}: ne[2] must be equal", show("src0", a), show("src1", b));
    let oh = windows_or_error(y, b.ne[1], a.ne[1], a, b)?;
    let ow = windows_or_error(x, b.ne[0], a.ne[0], a, b)?;
    let ne = [product(&a.ne[..3]), ow, oh, b.ne[3]];
    Ok(NodeSpec::new(GGML_OP_IM2COL, ty, ne).params([x.s, y.s, x.p, y.p, x.d, y.d, 1]))
}

/// IM2COL in one dimension: kernel `a` [K, IC, _], signal `b` [L, IC, N] give `ty` [IC*K, OL, N]. Of `y` nothing is used but the
/// parameters kept.
pub fn im2col_1d(a: &ggml_tensor, b: &ggml_tensor, x: Axis, y: Axis, ty: ggml_type) -> Result<NodeSpec, Error> {
    require!(a.ne[1] == b.ne[1], "{} and {}: ne[1] must be equal", show("src0", a), show("src1", b));
    require!(b.ne[3] == 1, "{}: ne[3] must be 1", show("src1", b));
    let ow = windows_or_error(x, b.ne[0], a.ne[0], a, b)?;
    let ne = [product(&a.ne[..2]), ow, b.ne[2], 1];
    Ok(NodeSpec::new(GGML_OP_IM2COL, ty, ne).params([x.s, y.s, x.p, y.p, x.d, y.d, 0]))
}

/// IM2COL_BACK: gradient `grad` of the windows that kernel `a` sees of a picture of shape `ne`, back to the picture: f32. `two_d`: as
/// [`im2col_2d`], else as [`im2col_1d`].
pub fn im2col_back(
    grad: &ggml_tensor,
    a: &ggml_tensor,
    ne: [i64; GGML_MAX_DIMS],
    x: Axis,
    y: Axis,
    two_d: bool,
) -> Result<NodeSpec, Error> {
    let spec = NodeSpec::new(GGML_OP_IM2COL_BACK, GGML_TYPE_F32, ne);
    spec.layout()?;
    let channels = if two_d { 2 } else { 1 };
    require!(a.ne[channels] == ne[channels], "{} and {}: ne[{channels}] must be equal", show("kernel", a), dims(&ne));
    require!(two_d || ne[3] == 1, "{}: ne[3] must be 1", dims(&ne));
    let ow = windows(x, ne[0], a.ne[0])?;
    let want = match two_d {
        true => [product(&a.ne[..3]), ow, windows(y, ne[1], a.ne[1])?, ne[3]],
        false => [product(&a.ne[..2]), ow, ne[2], 1],
    };
    require!(want[1] > 0 && want[2] > 0 || ne.contains(&0), "{} is too small for {}", dims(&ne), show("kernel", a));
    require!(grad.ne == want, "{} must have the shape {} of the windows", show("gradient", grad), dims(&want));
    Ok(spec.params([x.s, y.s, x.p, y.p, x.d, y.d, two_d.into()]))
}

/// IM2COL_3D: kernel `a` [KW, KH, KD, ..] of which only these sizes count, volume `b` [W, H, D, IC*N] give `ty` [IC*KD*KH*KW, OW, OH, OD*N].
pub fn im2col_3d(a: &ggml_tensor, b: &ggml_tensor, ic: i64, axes: [Axis; 3], ty: ggml_type) -> Result<NodeSpec, Error> {
    let channels = i32::try_from(ic).ok().filter(|&n| n > 0);
    let Some(channels) = channels else {
        return Err(Error::argument(format!("{ic} input channels: there must be 1 to 2^31 - 1")));
    };
    require!(divides(ic, b.ne[3]), "{}: ne[3] must be a multiple of {ic} channels", show("src1", b));
    let [x, y, z] = axes;
    let od = windows_or_error(z, b.ne[2], a.ne[2], a, b)?;
    let oh = windows_or_error(y, b.ne[1], a.ne[1], a, b)?;
    let ow = windows_or_error(x, b.ne[0], a.ne[0], a, b)?;
    let ne = [product(&[a.ne[0], a.ne[1], a.ne[2], ic]), ow, oh, product(&[od, b.ne[3] / ic])];
    Ok(NodeSpec::new(GGML_OP_IM2COL_3D, ty, ne).params([x.s, y.s, z.s, x.p, y.p, z.p, x.d, y.d, z.d, channels]))
}

/// COL2IM_1D: f32, f16 or bf16 `a` [K*oc, T], contiguous, gives [(T-1)*s + K - 2*p, oc] in the format of `a`.
pub fn col2im_1d(a: &ggml_tensor, s: i32, oc: i32, p: i32) -> Result<NodeSpec, Error> {
    require!(a.ne[2] == 1 && a.ne[3] == 1, "{} must be a matrix", show("src0", a));
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    require!(
        matches!(a.r#type, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16),
        "{} must be f32, f16 or bf16",
        show("src0", a)
    );
    require!(s > 0 && oc > 0 && p >= 0, "stride {s} and channels {oc} must be positive, padding {p} not negative");
    require!(
        a.ne[0] > 0 && divides(oc.into(), a.ne[0]),
        "{}: ne[0] must be a multiple of {oc} channels",
        show("src0", a)
    );
    let k = a.ne[0] / i64::from(oc);
    let n = product(&[a.ne[1].saturating_sub(1), s.into()]).saturating_add(k).saturating_sub(2 * i64::from(p));
    require!(n > 0, "{}: nothing is left of it with stride {s} and padding {p}", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_COL2IM_1D, a.r#type, [n, oc.into(), 1, 1]).params([s, oc, p]))
}

/// CONV_2D: `a` [KW, KH, IC, OC], `b` [W, H, IC, N] give [OW, OH, OC, N] in the format of `b`.
pub fn conv_2d(a: &ggml_tensor, b: &ggml_tensor, x: Axis, y: Axis) -> Result<NodeSpec, Error> {
    require!(a.ne[2] == b.ne[2], "{} and {}: ne[2] must be equal", show("src0", a), show("src1", b));
    let ne = [windows(x, b.ne[0], a.ne[0])?, windows(y, b.ne[1], a.ne[1])?, a.ne[3], b.ne[3]];
    Ok(NodeSpec::new(GGML_OP_CONV_2D, b.r#type, ne).params([x.s, y.s, x.p, y.p, x.d, y.d]))
}

/// CONV_2D_DW: `a` [KW, KH, 1, C], `b` [W, H, C, N] give [OW, OH, C, N] in the format of `b`; channels stay innermost in memory
/// where they are so in `b`.
pub fn conv_2d_dw(a: &ggml_tensor, b: &ggml_tensor, x: Axis, y: Axis) -> Result<NodeSpec, Error> {
    require!(a.ne[2] == 1, "{}: ne[2] must be 1", show("src0", a));
    require!(a.ne[3] == b.ne[2], "{}: ne[3] must be ne[2] of {}", show("src0", a), show("src1", b));
    let ne = [windows(x, b.ne[0], a.ne[0])?, windows(y, b.ne[1], a.ne[1])?, b.ne[2], b.ne[3]];
    let mut spec = NodeSpec::new(GGML_OP_CONV_2D_DW, b.r#type, ne).params([x.s, y.s, x.p, y.p, x.d, y.d]);
    if shape::is_contiguous_channels(b) {
        require!(shape::blck_size(b.r#type) == 1, "{} must not be of blocks", show("src1", b));
        let (mut nb, _) = spec.layout()?;
        // of the size that `layout` has just found to fit, in another order
        let unit = nb[0];
        nb[0] = unit * ne[2] as usize;
        nb[1] = nb[0] * ne[0] as usize;
        nb[2] = unit;
        spec.nb = Some(nb);
    }
    Ok(spec)
}

/// CONV_3D: `a` [KW, KH, KD, c*oc], `b` [W, H, D, c*n] give f32 [OW, OH, OD, oc*n].
pub fn conv_3d(a: &ggml_tensor, b: &ggml_tensor, axes: [Axis; 3], c: i32, n: i32, oc: i32) -> Result<NodeSpec, Error> {
    require!(c >= 0 && n >= 0 && oc >= 0, "channels {c}, {oc} and batch {n} must not be negative");
    let [wide_c, wide_n, wide_oc] = [c, n, oc].map(i64::from);
    require!(a.ne[3] == wide_c * wide_oc, "{}: ne[3] must be {c} * {oc} channels", show("src0", a));
    require!(b.ne[3] == wide_c * wide_n, "{}: ne[3] must be {c} channels * {n}", show("src1", b));
    let [x, y, z] = axes;
    let ne =
        [windows(x, b.ne[0], a.ne[0])?, windows(y, b.ne[1], a.ne[1])?, windows(z, b.ne[2], a.ne[2])?, wide_oc * wide_n];
    Ok(NodeSpec::new(GGML_OP_CONV_3D, GGML_TYPE_F32, ne)
        .params([x.s, y.s, z.s, x.p, y.p, z.p, x.d, y.d, z.d, c, n, oc]))
}

/// Elements that `n` inputs spread over with `taps` taps each, `s` apart.
fn spread(n: i64, taps: i64, s: i32) -> Result<i64, Error> {
    require!(s > 0, "stride {s} must be positive");
    let [n, taps, s] = [n, taps, s.into()].map(i128::from);
    let count = (n - 1) * s + taps;
    i64::try_from(count).map_err(|_| Error::shape(format!("{count} elements are more than can be counted")))
}

/// CONV_TRANSPOSE_1D: `a` [K, OC, IC], `b` a matrix [L, IC], give f32 [(L-1)*s + K, OC]; padding 0 and dilation 1 only.
pub fn conv_transpose_1d(a: &ggml_tensor, b: &ggml_tensor, axis: Axis) -> Result<NodeSpec, Error> {
    let Axis { s, p, d } = axis;
    require!(b.ne[2] == 1 && b.ne[3] == 1, "{} must be a matrix", show("src1", b));
    require!(a.ne[2] == b.ne[1], "{}: ne[2] must be ne[1] of {}", show("src0", a), show("src1", b));
    require!(a.ne[3] == 1, "{}: ne[3] must be 1", show("src0", a));
    require!(p == 0 && d == 1, "padding {p} must be 0 and dilation {d} must be 1");
    let ne = [spread(b.ne[0], a.ne[0], s)?, a.ne[1], b.ne[2], 1];
    Ok(NodeSpec::new(GGML_OP_CONV_TRANSPOSE_1D, GGML_TYPE_F32, ne).params([s, p, d]))
}

/// CONV_TRANSPOSE_2D: `a` [KW, KH, OC, IC], `b` [W, H, IC, N] give f32 [(W-1)*s + KW, (H-1)*s + KH, OC, N].
pub fn conv_transpose_2d(a: &ggml_tensor, b: &ggml_tensor, s: i32) -> Result<NodeSpec, Error> {
    require!(a.ne[3] == b.ne[2], "{}: ne[3] must be ne[2] of {}", show("src0", a), show("src1", b));
    let ne = [spread(b.ne[0], a.ne[0], s)?, spread(b.ne[1], a.ne[1], s)?, a.ne[2], b.ne[3]];
    Ok(NodeSpec::new(GGML_OP_CONV_TRANSPOSE_2D, GGML_TYPE_F32, ne).params([s]))
}
