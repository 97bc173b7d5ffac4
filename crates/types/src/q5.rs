//! q5_0 and q5_1: 5-bit codes in blocks of 32, the fifth bits apart. Portable paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ8_1};
use crate::clean::{finite, inverse, limit};
use crate::float::{half, scale_f16};
use crate::q4::{nibbles, pack_nibbles, range, signed_max};
use crate::search::{qkx3, qx, row_weights};

#[inline(always)]
fn high_bits(q: &[u8; 32]) -> [u8; 4] {
    let mut qh = 0u32;
    for (j, &v) in q.iter().enumerate() {
        qh |= ((v as u32 >> 4) & 1) << j;
    }
    qh.to_ne_bytes()
}

#[inline(always)]
fn codes(qs: &[u8; 16], qh: [u8; 4]) -> [u8; 32] {
    let (low, qh) = (nibbles(qs), u32::from_ne_bytes(qh));
    std::array::from_fn(|j| low[j] | (((qh >> j) & 1) << 4) as u8)
}

pub(crate) fn decode_q5_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ5_0>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let (d, q) = (half(b.d), codes(&b.qs, b.qh));
        *y = std::array::from_fn(|j| (q[j] as i32 - 16) as f32 * d);
    }
}

pub(crate) fn decode_q5_1(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ5_1>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let (d, m, q) = (half(b.d), half(b.m), codes(&b.qs, b.qh));
        *y = std::array::from_fn(|j| q[j] as f32 * d + m);
    }
}

#[inline(always)]
pub(crate) fn encode_q5_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ5_0>(dst)) {
        let mut buf = [0.0; 32];
        let x = finite(x, &mut buf);
        let d = limit(signed_max(x) / -16.0);
        let id = inverse(d);
        let q = x.map(|v| ((v * id + 16.5) as i32).clamp(0, 31) as u8);
        *b = BlockQ5_0 { d: scale_f16(d), qh: high_bits(&q), qs: pack_nibbles(&q) };
    }
}

#[inline(always)]
pub(crate) fn encode_q5_1(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ5_1>(dst)) {
        let mut buf = [0.0; 32];
        let x = finite(x, &mut buf);
        let (min, max) = range(x);
        let d = limit((max - min) / 31.0);
        let (id, m) = (inverse(d), limit(min));
        let q = x.map(|v| (((v - m) * id + 0.5) as i32).clamp(0, 31) as u8);
        *b = BlockQ5_1 { d: scale_f16(d), m: scale_f16(m), qh: high_bits(&q), qs: pack_nibbles(&q) };
    }
}

/// One row with an importance weight for each element.
#[inline(always)]
pub(crate) fn encode_q5_0_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (src, imatrix) = (src.as_chunks::<32>().0, imatrix.as_chunks::<32>().0);
    let sigma2 = crate::search::mean_square(src);
    for ((x, qw), b) in src.iter().zip(imatrix).zip(blocks_mut::<BlockQ5_0>(dst)) {
        let (mut buf, mut wbuf) = ([0.0; 32], [0.0; 32]);
        let (x, w) = row_weights(x, qw, sigma2, &mut buf, &mut wbuf);
        let mut q = [0u8; 32];
        let d = qx(16, x, &mut q, Some(w));
        *b = BlockQ5_0 { d: scale_f16(d), qh: high_bits(&q), qs: pack_nibbles(&q) };
    }
}

/// One row with an importance weight for each element.
#[inline(always)]
pub(crate) fn encode_q5_1_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (src, imatrix) = (src.as_chunks::<32>().0, imatrix.as_chunks::<32>().0);
    let sigma2 = crate::search::mean_square(src);
    for ((x, qw), b) in src.iter().zip(imatrix).zip(blocks_mut::<BlockQ5_1>(dst)) {
        let (mut buf, mut wbuf) = ([0.0; 32], [0.0; 32]);
        let (x, w) = row_weights(x, qw, sigma2, &mut buf, &mut wbuf);
        let mut q = [0u8; 32];
        let (d, min) = qkx3(31, x, w, &mut q);
        *b = BlockQ5_1 { d: scale_f16(d), m: scale_f16(-min), qh: high_bits(&q), qs: pack_nibbles(&q) };
    }
}

pub(crate) fn dot_q5_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ5_0>(x).iter().zip(blocks::<BlockQ8_0>(y)) {
        let q = codes(&a.qs, a.qh);
        let s: i32 = (0..32).map(|j| (q[j] as i32 - 16) * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half(a.d) * half(b.d));
    }
    sum
}

pub(crate) fn dot_q5_1(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ5_1>(x).iter().zip(blocks::<BlockQ8_1>(y)) {
        let q = codes(&a.qs, a.qh);
        let s: i32 = (0..32).map(|j| q[j] as i32 * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half(a.d) * half(b.d)) + half(a.m) * half(b.s);
    }
    sum
}
