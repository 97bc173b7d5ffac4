//! `sd.linear_w4_convrot.v1`: a linear layer with 4-bit weights and 8-bit activations, which are rotated always.
//!
//! Sources: weight, packed input, weight_scales, the bias if there is one; for [`W4A8`] s_rel and s_channel.

use super::check;
use super::linear_i8::packed;
use super::operator::{Attrs, Check, Operator, Shape};
use ggml_oxide_abi::*;
use std::ffi::CStr;

/// The operator.
pub struct Linear;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct LinearAttrs {
    /// Elements that the input was rotated in.
    pub group: i32,
    /// A `ggml_w4_convrot_kind`.
    pub kind: i32,
    /// 1: there is a bias.
    pub has_bias: i32,
    /// Must be 0.
    pub reserved: i32,
    /// Dimensions 1 to 3 of the activation that the input is made of.
    pub rows: [i64; 3],
}

// SAFETY: integers, without gaps.
unsafe impl Attrs for LinearAttrs {}
const _: () = assert!(size_of::<LinearAttrs>() == GGML_EXT_MAX_ATTR_SIZE);

/// Weights are integers from -8 to 7, a scale for each row.
pub const W4A4: i32 = GGML_W4_CONVROT_KIND_W4A4.0;
/// Weights are numbers of a table of 16, with a scale for each row and one for each 16 elements.
pub const W4A8: i32 = GGML_W4_CONVROT_KIND_W4A8.0;
/// Elements that share a scale, [`W4A8`].
pub const BLOCK: i64 = 16;
/// Format of those scales.
pub const F8_E4M3: ggml_type = GGML_TYPE_F8_E4M3;

impl LinearAttrs {
    /// Number of the source that holds the bias.
    pub fn bias(&self) -> Option<usize> {
        (self.has_bias == 1).then_some(3)
    }

    /// Numbers of the sources s_rel and s_channel.
    pub fn relative(&self) -> Option<(usize, usize)> {
        (self.kind == W4A8).then(|| (3 + self.bias().iter().len(), 4 + self.bias().iter().len()))
    }
}

impl Operator for Linear {
    const NAME: &'static CStr = c"sd.linear_w4_convrot.v1";
    type Attrs = LinearAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &LinearAttrs) -> Check<Shape> {
        if !matches!(attrs.kind, W4A4 | W4A8) {
            return Err(format!("there is no kind {} of weight", attrs.kind));
        }
        if !matches!(attrs.has_bias, 0 | 1) || attrs.reserved != 0 {
            return Err("the attributes have bits that mean nothing".into());
        }
        let n_src = attrs.relative().map_or(3 + attrs.bias().iter().len(), |(_, channel)| channel + 1);
        if src.len() != n_src {
            return Err(format!("by the attributes there must be {n_src} sources, there are {}", src.len()));
        }
        let (weight, input, scales) = (src[0], src[1], src[2]);
        check::contiguous(weight, GGML_TYPE_I8, "the weight")?;
        if weight.ne[2..] != [1, 1] {
            return Err("the weight must have two dimensions".into());
        }
        let n = weight.ne[1];
        let k = weight.ne[0].checked_mul(2).ok_or("rows of the weight are too long")?;
        check::group(attrs.group, k)?;
        if input.ne[0] != k {
            return Err(format!("rows of the input have {} elements, those of the weight {k}", input.ne[0]));
        }
        packed(input, k, attrs.rows)?;
        check::numbers(scales, if attrs.kind == W4A4 { n } else { 16 }, "weight_scales")?;
        if let Some(i) = attrs.bias() {
            check::numbers(src[i], n, "bias")?;
        }
        if let Some((rel, channel)) = attrs.relative() {
            if k % BLOCK != 0 {
                return Err(format!("rows of {k} elements, W4A8 needs multiples of {BLOCK}"));
            }
            check::contiguous(src[rel], F8_E4M3, "s_rel")?;
            if src[rel].ne != [k / BLOCK, n, 1, 1] {
                return Err(format!("s_rel must be {:?}, it is {:?}", [k / BLOCK, n, 1, 1], src[rel].ne));
            }
            check::numbers(src[channel], n, "s_channel")?;
        }
        let [m, b2, b3] = attrs.rows;
        Ok((GGML_TYPE_F32, [n, m, b2, b3]))
    }
}
