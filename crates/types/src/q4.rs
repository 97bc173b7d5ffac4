//! q4_0 and q4_1: 4-bit codes in blocks of 32. Portable paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockQ4_0, BlockQ4_1, BlockQ8_0, BlockQ8_1};
use crate::clean::{finite, inverse, limit};
use crate::float::{half, scale_f16};
use crate::search::{qkx3, qx, row_weights};

/// Codes of elements j and j + 16 in one byte.
#[inline(always)]
pub(crate) fn pack_nibbles(q: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|j| (q[j] & 15) | (q[j + 16] << 4))
}

/// The inverse of `pack_nibbles`.
#[inline(always)]
pub(crate) fn nibbles(qs: &[u8; 16]) -> [u8; 32] {
    std::array::from_fn(|j| if j < 16 { qs[j] & 15 } else { qs[j - 16] >> 4 })
}

/// The value of largest magnitude, the first of several; 0 for a zero block.
#[inline(always)]
pub(crate) fn signed_max(x: &[f32; 32]) -> f32 {
    let (mut amax, mut max) = (0.0f32, 0.0f32);
    for &v in x {
        if amax < v.abs() {
            amax = v.abs();
            max = v;
        }
    }
    max
}

/// Smallest and largest value.
#[inline(always)]
pub(crate) fn range(x: &[f32; 32]) -> (f32, f32) {
    let (mut min, mut max) = (f32::MAX, f32::MIN);
    for &v in x {
        min = if v < min { v } else { min };
        max = if v > max { v } else { max };
    }
    (min, max)
}

pub(crate) fn decode_q4_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ4_0>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let (d, q) = (half(b.d), nibbles(&b.qs));
        *y = std::array::from_fn(|j| (q[j] as i32 - 8) as f32 * d);
    }
}

pub(crate) fn decode_q4_1(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ4_1>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let (d, m, q) = (half(b.d), half(b.m), nibbles(&b.qs));
        *y = std::array::from_fn(|j| q[j] as f32 * d + m);
    }
}

#[inline(always)]
pub(crate) fn encode_q4_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ4_0>(dst)) {
        let mut buf = [0.0; 32];
        let x = finite(x, &mut buf);
        let d = limit(signed_max(x) / -8.0);
        let id = inverse(d);
        let q = x.map(|v| ((v * id + 8.5) as i32).clamp(0, 15) as u8);
        *b = BlockQ4_0 { d: scale_f16(d), qs: pack_nibbles(&q) };
    }
}

#[inline(always)]
pub(crate) fn encode_q4_1(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ4_1>(dst)) {
        let mut buf = [0.0; 32];
        let x = finite(x, &mut buf);
        let (min, max) = range(x);
        let d = limit((max - min) / 15.0);
        let (id, m) = (inverse(d), limit(min));
        let q = x.map(|v| (((v - m) * id + 0.5) as i32).clamp(0, 15) as u8);
        *b = BlockQ4_1 { d: scale_f16(d), m: scale_f16(m), qs: pack_nibbles(&q) };
    }
}

/// One row with an importance weight for each element.
#[inline(always)]
pub(crate) fn encode_q4_0_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (src, imatrix) = (src.as_chunks::<32>().0, imatrix.as_chunks::<32>().0);
    let sigma2 = crate::search::mean_square(src);
    for ((x, qw), b) in src.iter().zip(imatrix).zip(blocks_mut::<BlockQ4_0>(dst)) {
        let (mut buf, mut wbuf) = ([0.0; 32], [0.0; 32]);
        let (x, w) = row_weights(x, qw, sigma2, &mut buf, &mut wbuf);
        let mut q = [0u8; 32];
        let d = qx(8, x, &mut q, Some(w));
        *b = BlockQ4_0 { d: scale_f16(d), qs: pack_nibbles(&q) };
    }
}

/// One row with an importance weight for each element.
#[inline(always)]
pub(crate) fn encode_q4_1_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (src, imatrix) = (src.as_chunks::<32>().0, imatrix.as_chunks::<32>().0);
    let sigma2 = crate::search::mean_square(src);
    for ((x, qw), b) in src.iter().zip(imatrix).zip(blocks_mut::<BlockQ4_1>(dst)) {
        let (mut buf, mut wbuf) = ([0.0; 32], [0.0; 32]);
        let (x, w) = row_weights(x, qw, sigma2, &mut buf, &mut wbuf);
        let mut q = [0u8; 32];
        let (d, min) = qkx3(15, x, w, &mut q);
        *b = BlockQ4_1 { d: scale_f16(d), m: scale_f16(-min), qs: pack_nibbles(&q) };
    }
}

pub(crate) fn dot_q4_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ4_0>(x).iter().zip(blocks::<BlockQ8_0>(y)) {
        let q = nibbles(&a.qs);
        let s: i32 = (0..32).map(|j| (q[j] as i32 - 8) * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half(a.d) * half(b.d));
    }
    sum
}

pub(crate) fn dot_q4_1(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ4_1>(x).iter().zip(blocks::<BlockQ8_1>(y)) {
        let q = nibbles(&a.qs);
        let s: i32 = (0..32).map(|j| q[j] as i32 * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half(a.d) * half(b.d)) + half(a.m) * half(b.s);
    }
    sum
}
