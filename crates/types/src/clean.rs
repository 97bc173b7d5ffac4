//! What every encoder does before it looks at a block: makes its values finite, and keeps its scale finite.

/// The largest finite f16.
pub(crate) const F16_MAX: f32 = 65504.0;

/// Beyond the range of every format with f16 scales (q6_K reaches 2.7e8), and small enough for the sums of the searches
/// to stay finite.
pub(crate) const SEARCH_MAX: f32 = 1e10;

/// `x` itself when every value is finite, else a copy in `buf` with NaN as 0 and an infinity as the largest finite
/// f32 of its sign.
#[inline(always)]
pub(crate) fn finite<'a, const N: usize>(x: &'a [f32; N], buf: &'a mut [f32; N]) -> &'a [f32; N] {
    bounded(x, buf, f32::MAX)
}

/// As `finite`, with magnitudes held to `limit`.
#[inline(always)]
pub(crate) fn bounded<'a, const N: usize>(x: &'a [f32; N], buf: &'a mut [f32; N], limit: f32) -> &'a [f32; N] {
    // As integers, magnitudes order like the floats, and everything that is not finite lies at the top.
    let top = x.iter().fold(0u32, |m, v| m.max(v.to_bits() & 0x7fff_ffff));
    if top <= limit.to_bits() {
        return x;
    }
    for (b, v) in buf.iter_mut().zip(x) {
        *b = if v.is_nan() { 0.0 } else { v.clamp(-limit, limit) };
    }
    buf
}

/// `d` held inside the finite f16 range, so that the codes are computed for the scale that is stored.
#[inline(always)]
pub(crate) fn limit(d: f32) -> f32 {
    d.clamp(-F16_MAX, F16_MAX)
}

/// 1/d, and 0 where that is not finite: such a d is 0 as f16 too.
#[inline(always)]
pub(crate) fn inverse(d: f32) -> f32 {
    or_zero(1.0 / d)
}

/// `v`, and 0 where that is not finite.
#[inline(always)]
pub(crate) fn or_zero(v: f32) -> f32 {
    if v.is_finite() {
        v
    } else {
        0.0
    }
}

/// The largest magnitude.
#[inline(always)]
pub(crate) fn magnitude(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |m, v| if v.abs() > m { v.abs() } else { m })
}

/// Nearest integer, ties to even, by the float grid: adding 1.5 * 2^23 leaves the integer in the low mantissa bits.
/// Out of range saturates at +-4194303, NaN gives 0.
#[inline(always)]
pub(crate) fn nearest_int(v: f32) -> i32 {
    let v = v.clamp(-4_194_303.0, 4_194_303.0);
    ((v + 12_582_912.0).to_bits() & 0x007f_ffff) as i32 - 0x0040_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_int_rounds_to_even_and_saturates() {
        for (v, want) in [(0.5, 0), (1.5, 2), (-0.5, 0), (-2.5, -2), (7.49, 7), (1e9, 4_194_303), (-1e30, -4_194_303)] {
            assert_eq!(nearest_int(v), want, "{v}");
        }
        assert_eq!(nearest_int(f32::NAN), 0);
        assert_eq!(nearest_int(f32::NEG_INFINITY), -4_194_303);
    }
}
