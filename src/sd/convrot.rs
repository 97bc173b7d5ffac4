//! `sd.quantize_i8_convrot.v1`: rows of F32 become rows of 8-bit integers with a scale each, after a rotation in groups.
//!
//! The result, `[K, padded rows + rows for the scales]`, holds R rows of K integers, rows of zeros up to a multiple of 4, and R scales.

use super::check;
use super::operator::{Attrs, Check, Operator, Shape};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// The operator; one source, F32.
pub struct Quantize;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QuantizeAttrs {
    /// Elements that are rotated together: a power of 4. 1 rotates nothing.
    pub group: i32,
}

// SAFETY: an integer.
unsafe impl Attrs for QuantizeAttrs {}

/// Where things lie in a packed activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Rows that hold numbers.
    pub rows: usize,
    /// Those and the rows of zeros behind them.
    pub padded: usize,
    /// Bytes from the start to the scales.
    pub scales: usize,
    /// Rows in all.
    pub ne1: i64,
}

impl Packed {
    /// For `rows` rows of `k` elements; `None`: there is no such tensor.
    pub fn new(k: i64, rows: i64) -> Option<Self> {
        if k <= 0 || rows < 0 {
            return None;
        }
        let padded = rows.checked_add(3)? / 4 * 4;
        let tail = rows.checked_mul(4)?.checked_add(k - 1)? / k;
        let ne1 = padded.checked_add(tail)?;
        k.checked_mul(ne1)?;
        let size = |n: i64| usize::try_from(n).ok();
        Some(Packed { rows: size(rows)?, padded: size(padded)?, scales: size(k.checked_mul(padded)?)?, ne1 })
    }
}

impl Operator for Quantize {
    const NAME: &'static CStr = c"sd.quantize_i8_convrot.v1";
    type Attrs = QuantizeAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &QuantizeAttrs) -> Check<Shape> {
        let &[a] = src else { return Err(format!("there must be one source, there are {}", src.len())) };
        check::contiguous(a, GGML_TYPE_F32, "the activation")?;
        check::group(attrs.group, a.ne[0])?;
        let packed = Packed::new(a.ne[0], shape::nrows(a)).ok_or("a row of the activation must have elements")?;
        Ok((GGML_TYPE_I8, [a.ne[0], packed.ne1, 1, 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::Packed;

    #[test]
    fn sd_3_scales_lie_behind_rows_of_four() {
        let packed = Packed::new(512, 65);
        assert_eq!(packed, Some(Packed { rows: 65, padded: 68, scales: 512 * 68, ne1: 69 }));
        assert_eq!(Packed::new(4, 3).map(|p| p.ne1), Some(4 + 3));
        assert_eq!(Packed::new(4, 0).map(|p| p.ne1), Some(0));
        assert!([Packed::new(0, 1), Packed::new(4, i64::MAX), Packed::new(i64::MAX, 2)].iter().all(Option::is_none));
    }
}
