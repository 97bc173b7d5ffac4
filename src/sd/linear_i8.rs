//! `sd.linear_i8.v1`: a linear layer with 8-bit weights and 8-bit activations.
//!
//! Sources: weight, input, then those of weight_scale, bias and input_scale that the attributes say are there.

use super::check;
use super::convrot::Packed;
use super::operator::{Attrs, Check, Operator, Shape};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// The operator.
pub struct Linear;

/// The input is F32; it is rotated and quantised first.
pub const FORM_F32: i32 = 0;
/// The input is what `sd.quantize_i8_convrot.v1` gives.
pub const FORM_PACKED: i32 = 1;
/// The input is I8, one scale for each row.
pub const FORM_SCALED: i32 = 2;

/// There is a scale for each output feature.
pub const HAS_WEIGHT_SCALE: i32 = 1;
/// There is a bias.
pub const HAS_BIAS: i32 = 2;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct LinearAttrs {
    /// Elements that are rotated together, 0: none.
    pub group: i32,
    /// What the input is, `FORM_*`.
    pub form: i32,
    /// Which sources are there, `HAS_*`.
    pub has: i32,
    /// Must be 0.
    pub reserved: i32,
    /// Of a packed input: dimensions 1 to 3 of the activation that it is made of. Else 0.
    pub rows: [i64; 3],
}

// SAFETY: integers, without gaps.
unsafe impl Attrs for LinearAttrs {}
const _: () = assert!(size_of::<LinearAttrs>() == GGML_EXT_MAX_ATTR_SIZE);

impl LinearAttrs {
    /// Number of the source that holds the scales of output features.
    pub fn weight_scale(&self) -> Option<usize> {
        (self.has & HAS_WEIGHT_SCALE != 0).then_some(2)
    }

    /// Number of the source that holds the bias.
    pub fn bias(&self) -> Option<usize> {
        (self.has & HAS_BIAS != 0).then(|| 2 + self.weight_scale().iter().len())
    }

    /// Number of the source that holds the input's scales.
    pub fn input_scale(&self) -> Option<usize> {
        (self.form == FORM_SCALED).then(|| 2 + self.weight_scale().iter().len() + self.bias().iter().len())
    }

    fn n_src(&self) -> usize {
        2 + self.weight_scale().iter().len() + self.bias().iter().len() + self.input_scale().iter().len()
    }
}

/// Rows of an activation with these dimensions above the first; `None`: there is none.
pub fn n_rows(ne: [i64; 3]) -> Option<i64> {
    ne.into_iter().try_fold(1i64, |n, d| if d < 0 { None } else { n.checked_mul(d) })
}

impl Operator for Linear {
    const NAME: &'static CStr = c"sd.linear_i8.v1";
    type Attrs = LinearAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &LinearAttrs) -> Check<Shape> {
        if attrs.has & !(HAS_WEIGHT_SCALE | HAS_BIAS) != 0 || attrs.reserved != 0 {
            return Err("the attributes have bits that mean nothing".into());
        }
        if src.len() != attrs.n_src() {
            return Err(format!("by the attributes there must be {} sources, there are {}", attrs.n_src(), src.len()));
        }
        let (weight, input) = (src[0], src[1]);
        check::contiguous(weight, GGML_TYPE_I8, "the weight")?;
        let [k, n, ..] = weight.ne;
        if weight.ne[2..] != [1, 1] {
            return Err("the weight must have two dimensions".into());
        }
        if k == 0 {
            return Err("rows of the weight must have elements".into());
        }
        if attrs.group != 0 {
            check::group(attrs.group, k)?;
        }
        let rows = match attrs.form {
            FORM_F32 | FORM_SCALED => {
                let ty = if attrs.form == FORM_F32 { GGML_TYPE_F32 } else { GGML_TYPE_I8 };
                check::contiguous(input, ty, "the input")?;
                if input.ne[0] != k {
                    return Err(format!("rows of the input have {} elements, those of the weight {k}", input.ne[0]));
                }
                [input.ne[1], input.ne[2], input.ne[3]]
            }
            FORM_PACKED => {
                packed(input, k, attrs.rows)?;
                if attrs.group == 0 {
                    return Err("a packed input needs the group size that it was made with".into());
                }
                attrs.rows
            }
            form => return Err(format!("there is no form {form} of input")),
        };
        if attrs.form != FORM_PACKED && attrs.rows != [0; 3] {
            return Err("the attributes give rows, which go with a packed input".into());
        }
        if let Some(i) = attrs.weight_scale() {
            check::numbers(src[i], n, "weight_scale")?;
        }
        if let Some(i) = attrs.bias() {
            check::numbers(src[i], n, "bias")?;
        }
        if let Some(i) = attrs.input_scale() {
            check::numbers(src[i], shape::nrows(input), "input_scale")?;
        }
        Ok((GGML_TYPE_F32, [n, rows[0], rows[1], rows[2]]))
    }
}

/// `input` is a packed activation of `rows` of `k` elements.
pub fn packed(input: &ggml_tensor, k: i64, rows: [i64; 3]) -> Check {
    check::contiguous(input, GGML_TYPE_I8, "the input")?;
    let want = n_rows(rows).and_then(|r| Packed::new(k, r)).ok_or_else(|| format!("there are no rows {rows:?}"))?;
    match input.ne == [k, want.ne1, 1, 1] {
        true => Ok(()),
        false => {
            let ne = [k, want.ne1, 1, 1];
            Err(format!("{} rows of {k} elements are packed into {ne:?}, the input is {:?}", want.rows, input.ne))
        }
    }
}
