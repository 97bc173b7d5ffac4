//! tq1_0, tq2_0, q1_0 and q2_0: a scale and codes of two bits or fewer. Portable paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockQ1_0, BlockQ2_0, BlockQ8K, BlockQ8_0, BlockTQ1_0, BlockTQ2_0};
use crate::clean::{finite, inverse, limit, magnitude};
use crate::float::{half, scale_f16};

/// Scale for codes of -1, 0, 1 and its inverse: the largest magnitude.
#[inline(always)]
fn scale(x: &[f32]) -> (f32, f32) {
    let d = limit(magnitude(x));
    (d, inverse(d))
}

/// 0, 1 or 2 for -1, 0, 1; ties away from zero.
#[inline(always)]
fn trit(v: f32, id: f32) -> u8 {
    ((v * id).round().clamp(-1.0, 1.0) + 1.0) as u8
}

/// Where the digits of tq1_0 lie: for a part of `W` bytes at `at`, byte m has the elements `first + m + W n`, the first
/// digit the most significant.
const PARTS: [(usize, usize, usize, usize); 3] = [(0, 32, 0, 5), (32, 16, 160, 5), (48, 4, 240, 4)];

#[inline(always)]
pub(crate) fn encode_tq1_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockTQ1_0>(dst)) {
        let mut buf = [0.0; 256];
        let x = finite(x, &mut buf);
        let (d, id) = scale(x);
        let q = x.map(|v| trit(v, id));
        let mut bytes = [0u8; 52];
        for (at, width, first, digits) in PARTS {
            for m in 0..width {
                let number = (0..digits).fold(0u16, |n, k| 3 * n + q[first + m + width * k] as u16);
                let number = if digits == 4 { 3 * number } else { number };
                // The number over 243 as a fraction of 256, rounded up so that digits come back by multiplying.
                bytes[at + m] = (number * 256).div_ceil(243) as u8;
            }
        }
        b.qs.copy_from_slice(&bytes[..48]);
        b.qh.copy_from_slice(&bytes[48..]);
        b.d = scale_f16(d);
    }
}

/// Codes 0 .. 2 in element order.
#[inline(always)]
fn trits(b: &BlockTQ1_0) -> [u8; 256] {
    let mut q = [0u8; 256];
    for (at, width, first, digits) in PARTS {
        let mut power = 1u8;
        for n in 0..digits {
            for m in 0..width {
                let byte = if at + m < 48 { b.qs[at + m] } else { b.qh[m] };
                q[first + m + width * n] = ((byte.wrapping_mul(power) as u16 * 3) >> 8) as u8;
            }
            power = power.wrapping_mul(3);
        }
    }
    q
}

#[inline(always)]
pub(crate) fn encode_tq2_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockTQ2_0>(dst)) {
        let mut buf = [0.0; 256];
        let x = finite(x, &mut buf);
        let (d, id) = scale(x);
        let q = x.map(|v| trit(v, id));
        *b = BlockTQ2_0 { qs: crate::kquants::pack2(&q), d: scale_f16(d) };
    }
}

/// 128 signs; the scale is the mean magnitude, summed in order.
#[inline(always)]
pub(crate) fn encode_q1_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<128>().0.iter().zip(blocks_mut::<BlockQ1_0>(dst)) {
        let mut buf = [0.0; 128];
        let x = finite(x, &mut buf);
        let d = x.iter().fold(0.0f32, |s, v| s + v.abs()) / 128.0;
        b.d = scale_f16(d);
        for (byte, x) in b.qs.iter_mut().zip(x.as_chunks::<8>().0) {
            *byte = (0..8).fold(0, |v, j| v | (((x[j] >= 0.0) as u8) << j));
        }
    }
}

#[inline(always)]
pub(crate) fn encode_q2_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<64>().0.iter().zip(blocks_mut::<BlockQ2_0>(dst)) {
        let mut buf = [0.0; 64];
        let x = finite(x, &mut buf);
        let (d, id) = scale(x);
        // Codes reach 2, which only a limited scale has use for.
        let q = x.map(|v| ((v * id).round().clamp(-1.0, 2.0) + 1.0) as u8);
        b.d = scale_f16(d);
        for (byte, q) in b.qs.iter_mut().zip(q.as_chunks::<4>().0) {
            *byte = q[0] | (q[1] << 2) | (q[2] << 4) | (q[3] << 6);
        }
    }
}

/// Codes 0 .. 3 of q2_0.
#[inline(always)]
fn pairs(qs: &[u8; 16]) -> [u8; 64] {
    std::array::from_fn(|i| (qs[i / 4] >> (2 * (i % 4))) & 3)
}

/// Signs of q1_0.
#[inline(always)]
fn signs(qs: &[u8; 16]) -> [i8; 128] {
    std::array::from_fn(|i| 2 * ((qs[i / 8] >> (i % 8)) & 1) as i8 - 1)
}

pub(crate) fn decode_tq1_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockTQ1_0>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let d = half(b.d);
        *y = trits(b).map(|q| (q as i32 - 1) as f32 * d);
    }
}

pub(crate) fn decode_tq2_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockTQ2_0>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let d = half(b.d);
        *y = crate::kquants::unpack2(&b.qs).map(|q| (q as i32 - 1) as f32 * d);
    }
}

pub(crate) fn decode_q1_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ1_0>(src).iter().zip(dst.as_chunks_mut::<128>().0) {
        let d = half(b.d);
        *y = signs(&b.qs).map(|s| if s > 0 { d } else { -d });
    }
}

pub(crate) fn decode_q2_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ2_0>(src).iter().zip(dst.as_chunks_mut::<64>().0) {
        let d = half(b.d);
        *y = pairs(&b.qs).map(|q| (q as i32 - 1) as f32 * d);
    }
}

#[inline(always)]
fn dot_codes<const N: usize>(q: &[u8; N], y: &[u8; N]) -> i32 {
    (0..N).map(|i| (q[i] as i32 - 1) * y[i] as i8 as i32).sum()
}

pub(crate) fn dot_tq1_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockTQ1_0>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        sum += dot_codes(&trits(a), &b.qs) as f32 * (half(a.d) * f32::from_ne_bytes(b.d));
    }
    sum
}

pub(crate) fn dot_tq2_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockTQ2_0>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let q = crate::kquants::unpack2(&a.qs);
        sum += dot_codes(&q, &b.qs) as f32 * (half(a.d) * f32::from_ne_bytes(b.d));
    }
    sum
}

pub(crate) fn dot_q1_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, y) in blocks::<BlockQ1_0>(x).iter().zip(blocks::<BlockQ8_0>(y).as_chunks::<4>().0) {
        let q = signs(&a.qs);
        for (q, b) in q.as_chunks::<32>().0.iter().zip(y) {
            let s: i32 = (0..32).map(|j| q[j] as i32 * b.qs[j] as i8 as i32).sum();
            sum += s as f32 * (half(a.d) * half(b.d));
        }
    }
    sum
}

pub(crate) fn dot_q2_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, y) in blocks::<BlockQ2_0>(x).iter().zip(blocks::<BlockQ8_0>(y).as_chunks::<2>().0) {
        let q = pairs(&a.qs);
        for (q, b) in q.as_chunks::<32>().0.iter().zip(y) {
            sum += dot_codes(q, &b.qs) as f32 * (half(a.d) * half(b.d));
        }
    }
    sum
}
