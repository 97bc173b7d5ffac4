//! mxfp4 and nvfp4: 4-bit floats (one sign, two exponent and one mantissa bit) with an 8-bit float as scale. Portable
//! paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockMXFP4, BlockNVFP4, BlockQ8_0};
use crate::clean::{finite, magnitude};
use crate::float::half;
use crate::q4::{nibbles, pack_nibbles};

/// Twice the value of each code: all are integers, and the scales below are halves of the nominal ones.
pub const VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Half of the power of two that an exponent byte stands for: 2^(e - 128).
#[inline(always)]
pub fn half_power(e: u8) -> f32 {
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e as u32 - 1) << 23 })
}

/// Half of the value of an unsigned 8-bit float: 4 exponent bits (bias 7), 3 mantissa bits. 0x7f counts as 0; the top
/// bit is not looked at otherwise.
#[inline(always)]
pub const fn half_ue4m3(b: u8) -> f32 {
    let (e, m) = ((b >> 3 & 15) as u32, (b & 7) as u32);
    match b {
        0x7f => 0.0,
        _ if e == 0 => m as f32 * (1.0 / 1024.0),
        // The f32 exponent is e - 7 + 127, less one for the half.
        _ => f32::from_bits(((e + 119) << 23) | (m << 20)),
    }
}

/// The 8-bit float for a scale: ties and everything above a tie round up, and all from 256 on gives the largest, 448.
#[inline(always)]
fn to_ue4m3(x: f32) -> u8 {
    if x.is_nan() || x <= 0.0 {
        return 0;
    }
    let bits = x.min(448.0).to_bits();
    let e = (bits >> 23) as i32 - 120;
    if e <= 0 {
        return ((x * 512.0 + 0.5) as i32).min(7) as u8;
    }
    // One rounding step on the mantissa; its carry walks into the exponent.
    let code = (e << 3) + ((bits >> 20 & 7) + (bits >> 19 & 1)) as i32;
    if code >= 15 << 3 {
        0x7e
    } else {
        code as u8
    }
}

/// Of two equally near values the smaller magnitude; a zero scale gives code 0.
#[inline(always)]
fn nearest(x: f32, d: f32) -> u8 {
    if d == 0.0 {
        return 0;
    }
    let a = x.abs();
    // The midpoints between neighbours.
    let level: u8 = [0.5f32, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0].iter().map(|&t| (a > t * d) as u8).sum();
    level | if x < 0.0 && level > 0 { 8 } else { 0 }
}

/// The largest whole number not above the f32 that is nearest to log2(a): just below a power of two that rounds up to
/// the power's exponent. Files are made with that, so the exponent alone will not do. `a` is not subnormal.
#[inline(always)]
fn floor_log2(a: f32) -> i32 {
    let bits = a.to_bits();
    let e = (bits >> 23) as i32 - 127;
    // a = 2^k (1 - below / 2^24)
    let (k, below) = (e + 1, 0x0080_0000 - (bits & 0x007f_ffff));
    // log2(a) is about k - below / (2^24 ln 2). It rounds to k when that is less than half the step of f32 on k's lower
    // side, 2^(p - 24): when below < 2^p ln 2.
    const LIMIT: [u32; 7] = [0, 1, 2, 5, 11, 22, 44];
    let size = k.unsigned_abs();
    // At zero, and below one, steps are finer than any difference.
    let p = match size {
        0 | 1 if k >= 0 => return e,
        _ if k > 0 && size.is_power_of_two() => size.ilog2() - 1,
        _ => size.ilog2(),
    };
    e + (below <= LIMIT[p as usize]) as i32
}

/// The exponent byte for a block: the largest magnitude is brought to 4 .. 8, beyond which the format has nothing.
#[inline(always)]
fn exponent(amax: f32) -> u8 {
    // Above 252 the largest code is infinite.
    if amax < f32::MIN_POSITIVE {
        0
    } else {
        (floor_log2(amax) + 125).clamp(0, 252) as u8
    }
}

#[inline(always)]
pub(crate) fn encode_mxfp4(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockMXFP4>(dst)) {
        let mut buf = [0.0; 32];
        let x = finite(x, &mut buf);
        let e = exponent(magnitude(x));
        let d = half_power(e);
        *b = BlockMXFP4 { e: [e], qs: pack_nibbles(&x.map(|v| nearest(v, d))) };
    }
}

#[inline(always)]
pub(crate) fn encode_nvfp4(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<64>().0.iter().zip(blocks_mut::<BlockNVFP4>(dst)) {
        let mut buf = [0.0; 64];
        let x = finite(x, &mut buf);
        for (g, (x, qs)) in x.as_chunks::<16>().0.iter().zip(b.qs.as_chunks_mut::<8>().0).enumerate() {
            b.d[g] = to_ue4m3(magnitude(x) / 6.0);
            let d = half_ue4m3(b.d[g]);
            let q = x.map(|v| nearest(v, d));
            *qs = std::array::from_fn(|j| q[j] | (q[j + 8] << 4));
        }
    }
}

pub(crate) fn decode_mxfp4(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockMXFP4>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let (d, q) = (half_power(b.e[0]), nibbles(&b.qs));
        *y = q.map(|c| VALUES[c as usize] as f32 * d);
    }
}

/// Doubled values of a block in element order.
#[inline(always)]
fn values64(qs: &[u8; 32]) -> [i8; 64] {
    std::array::from_fn(|i| {
        let byte = qs[8 * (i / 16) + i % 8];
        VALUES[(byte >> (4 * (i / 8 % 2)) & 15) as usize]
    })
}

pub(crate) fn decode_nvfp4(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockNVFP4>(src).iter().zip(dst.as_chunks_mut::<64>().0) {
        let v = values64(&b.qs);
        let d = b.d.map(half_ue4m3);
        *y = std::array::from_fn(|i| v[i] as f32 * d[i / 16]);
    }
}

pub(crate) fn dot_mxfp4(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockMXFP4>(x).iter().zip(blocks::<BlockQ8_0>(y)) {
        let q = nibbles(&a.qs);
        let s: i32 = (0..32).map(|j| VALUES[q[j] as usize] as i32 * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half_power(a.e[0]) * half(b.d));
    }
    sum
}

pub(crate) fn dot_nvfp4(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockNVFP4>(x).iter().zip(blocks::<BlockQ8_0>(y).as_chunks::<2>().0) {
        let v = values64(&a.qs);
        for (g, v) in v.as_chunks::<16>().0.iter().enumerate() {
            let q = &b[g / 2].qs.as_chunks::<16>().0[g % 2];
            let s: i32 = (0..16).map(|j| v[j] as i32 * q[j] as i8 as i32).sum();
            sum += s as f32 * (half_ue4m3(a.d[g]) * half(b[g / 2].d));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log2_rounds_up_just_below_a_power() {
        for (a, want) in [(1.0f32, 0), (2.0, 1), (1.9999999, 0), (3.9999998, 1), (0.99999994, -1), (6.0, 2), (8.0, 3)] {
            assert_eq!(floor_log2(a), want, "{a:e}");
        }
        // Against f64, whose own error is far below the distances that matter here.
        for k in -125..=128i32 {
            for below in 1..=200u32 {
                let a = f32::from_bits((((k + 126) as u32) << 23) | (0x0080_0000 - below));
                let want = ((a as f64).log2() as f32).floor() as i32;
                assert_eq!(floor_log2(a), want, "2^{k} less {below}");
            }
        }
    }

    #[test]
    fn scales_in_bytes_are_their_own_nearest() {
        for b in 0..0x78u8 {
            assert_eq!(to_ue4m3(2.0 * half_ue4m3(b)), b);
        }
        assert_eq!((to_ue4m3(256.0), to_ue4m3(1e30), to_ue4m3(f32::NAN), to_ue4m3(-1.0)), (0x7e, 0x7e, 0, 0));
        assert_eq!((half_ue4m3(0x7e), half_ue4m3(0x7f), half_ue4m3(0xff), half_ue4m3(0x80)), (224.0, 0.0, 240.0, 0.0));
        assert_eq!((half_power(0), half_power(1), half_power(128)), (2f32.powi(-128), 2f32.powi(-127), 1.0));
    }
}
