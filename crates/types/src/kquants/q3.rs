//! q3_K: 16 groups of 16, codes of 2 + 1 bits, a signed 6-bit scale for each group.

use super::{pack2, scaled_dot, unpack2};
use crate::block::{blocks, blocks_mut, BlockQ3K, BlockQ8K};
use crate::clean::{bounded, nearest_int, SEARCH_MAX};
use crate::float::{half, scale_f16};
use crate::search::{q3, qx};

/// Codes 0..8; bit k of `hmask[l]` belongs to element 32 k + l.
#[inline(always)]
fn codes(b: &BlockQ3K) -> [u8; 256] {
    let low = unpack2(&b.qs);
    std::array::from_fn(|i| low[i] | (((b.hmask[i % 32] >> (i / 32)) & 1) << 2))
}

#[inline(always)]
fn set_codes(b: &mut BlockQ3K, q: &[u8; 256]) {
    b.hmask = std::array::from_fn(|l| (0..8).fold(0, |m, k| m | ((q[32 * k + l] >> 2) << k)));
    b.qs = pack2(q);
}

/// Scales 0..64 (32 stands for 0): low nibbles in bytes 0..8, two high bits in bytes 8..12.
#[inline(always)]
pub(crate) fn scales_q3(s: &[u8; 12]) -> [u8; 16] {
    std::array::from_fn(|g| ((s[g % 8] >> (4 * (g / 8))) & 15) | (((s[8 + g % 4] >> (2 * (g / 4))) & 3) << 4))
}

#[inline(always)]
fn pack_scales(q: &[u8; 16]) -> [u8; 12] {
    std::array::from_fn(|i| match i {
        0..8 => (q[i] & 15) | ((q[i + 8] & 15) << 4),
        _ => (0..4).fold(0, |b, k| b | ((q[4 * k + i - 8] >> 4) << (2 * k))),
    })
}

pub(crate) fn decode_q3_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ3K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let (d, q, sc) = (half(b.d), codes(b), scales_q3(&b.scales));
        for (g, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let dl = d * (sc[g] as i32 - 32) as f32;
            *y = std::array::from_fn(|l| dl * (q[16 * g + l] as i32 - 4) as f32);
        }
    }
}

/// Codes for the scales as stored; groups whose scale is 0 keep what the search gave.
#[inline(always)]
fn requantise(x: &[f32; 256], b: &mut BlockQ3K, q: &mut [u8; 256]) {
    let d = half(b.d);
    for (g, sc) in scales_q3(&b.scales).into_iter().enumerate() {
        let dl = d * (sc as i32 - 32) as f32;
        if dl == 0.0 {
            continue;
        }
        for i in 16 * g..16 * g + 16 {
            q[i] = (nearest_int(x[i] / dl).clamp(-4, 3) + 4) as u8;
        }
    }
    set_codes(b, q);
}

#[inline(always)]
pub(crate) fn encode_q3_k(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ3K>(dst)) {
        let mut buf = [0.0; 256];
        let x = bounded(x, &mut buf, SEARCH_MAX);
        let (mut q, mut scales) = ([0u8; 256], [0.0f32; 16]);
        let (mut amax, mut max) = (0.0f32, 0.0f32);
        for (g, (x, c)) in x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut::<16>().0).enumerate() {
            scales[g] = q3(4, x, c);
            if scales[g].abs() > amax {
                amax = scales[g].abs();
                max = scales[g];
            }
        }
        if max != 0.0 {
            let inv = -32.0 / max;
            b.scales = pack_scales(&scales.map(|s| (nearest_int(inv * s).clamp(-32, 31) + 32) as u8));
            b.d = scale_f16(1.0 / inv);
        } else {
            b.scales = [0; 12];
            b.d = scale_f16(0.0);
        }
        requantise(x, b, &mut q);
    }
}

#[inline(always)]
pub(crate) fn encode_q3_k_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let importance = imatrix.as_chunks::<256>().0;
    for ((x, qw), b) in src.as_chunks::<256>().0.iter().zip(importance).zip(blocks_mut::<BlockQ3K>(dst)) {
        let mut buf = [0.0; 256];
        let x = bounded(x, &mut buf, SEARCH_MAX);
        let sigma2 = 2.0 * x.iter().fold(0.0f32, |s, v| s + v * v) / 256.0;
        let (mut q, mut scales, mut sw) = ([0u8; 256], [0.0f32; 16], [0.0f32; 16]);
        for (g, (x, c)) in x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut::<16>().0).enumerate() {
            let w: [f32; 16] = std::array::from_fn(|l| qw[16 * g + l] * (sigma2 + x[l] * x[l]).sqrt());
            sw[g] = w.iter().fold(0.0, |s, v| s + v);
            scales[g] = qx(4, x, c, Some(&w));
        }
        let mut sc = [0u8; 16];
        b.d = scale_f16(qx(32, &scales, &mut sc, Some(&sw)));
        b.scales = pack_scales(&sc);
        requantise(x, b, &mut q);
    }
}

pub(crate) fn dot_q3_k(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ3K>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let (q, sc) = (codes(a).map(|v| v as i8 - 4), scales_q3(&a.scales));
        let s = scaled_dot::<16>(&q, |g| sc[g] as i32 - 32, b);
        sum += (half(a.d) * f32::from_ne_bytes(b.d)) * s as f32;
    }
    sum
}
