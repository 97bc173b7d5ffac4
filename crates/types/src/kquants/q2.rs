//! q2_K: 16 groups of 16, 2-bit codes, a 4-bit scale and a 4-bit minimum for each group.

use super::{group_sums, pack2, scaled_dot, unpack2};
use crate::block::{blocks, blocks_mut, BlockQ2K, BlockQ8K};
use crate::clean::{bounded, nearest_int, SEARCH_MAX};
use crate::float::{half, scale_f16};
use crate::search::{affine, qkx3, qp, Walk};

pub(crate) fn decode_q2_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ2K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let (d, dmin, q) = (half(b.d), half(b.dmin), unpack2(&b.qs));
        for (g, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let (dl, ml) = (d * (b.scales[g] & 15) as f32, dmin * (b.scales[g] >> 4) as f32);
            *y = std::array::from_fn(|l| dl * q[16 * g + l] as f32 - ml);
        }
    }
}

/// Codes for the scales as stored; groups whose scale is 0 keep what the search gave.
#[inline(always)]
fn requantise(x: &[f32; 256], b: &mut BlockQ2K, codes: &mut [u8; 256]) {
    let (d, dmin) = (half(b.d), half(b.dmin));
    for g in 0..16 {
        let dl = d * (b.scales[g] & 15) as f32;
        if dl == 0.0 {
            continue;
        }
        let ml = dmin * (b.scales[g] >> 4) as f32;
        for i in 16 * g..16 * g + 16 {
            codes[i] = nearest_int((x[i] + ml) / dl).clamp(0, 3) as u8;
        }
    }
    b.qs = pack2(codes);
}

/// The largest of `v` becomes 15. Returns the 4-bit codes and the unit.
#[inline(always)]
fn nibble_scales(v: &[f32; 16]) -> ([u8; 16], f32) {
    let max = v.iter().fold(0.0f32, |m, &s| if s > m { s } else { m });
    if max > 0.0 {
        let inv = 15.0 / max;
        (v.map(|s| nearest_int(inv * s).clamp(0, 15) as u8), max / 15.0)
    } else {
        ([0; 16], 0.0)
    }
}

#[inline(always)]
pub(crate) fn encode_q2_k(src: &[f32], dst: &mut [u8]) {
    const WALK: Walk = Walk { first: -0.5, step: 0.1, steps: 15, absolute: true };
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ2K>(dst)) {
        let mut buf = [0.0; 256];
        let x = bounded(x, &mut buf, SEARCH_MAX);
        let (mut codes, mut scales, mut mins) = ([0u8; 256], [0.0f32; 16], [0.0f32; 16]);
        for (g, (x, c)) in x.as_chunks::<16>().0.iter().zip(codes.as_chunks_mut::<16>().0).enumerate() {
            (scales[g], mins[g]) = affine(3, x, &x.map(f32::abs), c, WALK);
        }
        let ((sc, d), (mn, dmin)) = (nibble_scales(&scales), nibble_scales(&mins));
        b.scales = std::array::from_fn(|g| sc[g] | (mn[g] << 4));
        (b.d, b.dmin) = (scale_f16(d), scale_f16(dmin));
        requantise(x, b, &mut codes);
    }
}

#[inline(always)]
pub(crate) fn encode_q2_k_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let importance = imatrix.as_chunks::<256>().0;
    for ((x, qw), b) in src.as_chunks::<256>().0.iter().zip(importance).zip(blocks_mut::<BlockQ2K>(dst)) {
        let mut buf = [0.0; 256];
        let x = bounded(x, &mut buf, SEARCH_MAX);
        let sigma2 = x.iter().fold(0.0f32, |s, v| s + v * v) / 256.0;
        let (mut codes, mut scales, mut mins, mut sw) = ([0u8; 256], [0.0f32; 16], [0.0f32; 16], [0.0f32; 16]);
        for (g, (x, c)) in x.as_chunks::<16>().0.iter().zip(codes.as_chunks_mut::<16>().0).enumerate() {
            let w: [f32; 16] = std::array::from_fn(|l| qw[16 * g + l] * (sigma2 + x[l] * x[l]).sqrt());
            sw[g] = w.iter().fold(0.0, |s, v| s + v);
            (scales[g], mins[g]) = qkx3(3, x, &w, c);
        }
        let (mut sc, mut mn) = ([0u8; 16], [0u8; 16]);
        b.d = scale_f16(qp(15, &scales, &mut sc, &sw));
        b.dmin = scale_f16(qp(15, &mins, &mut mn, &sw));
        b.scales = std::array::from_fn(|g| sc[g] | (mn[g] << 4));
        requantise(x, b, &mut codes);
    }
}

pub(crate) fn dot_q2_k(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ2K>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let yd = f32::from_ne_bytes(b.d);
        let q = unpack2(&a.qs).map(|v| v as i8);
        let s = scaled_dot::<16>(&q, |g| (a.scales[g] & 15) as i32, b);
        let sums = group_sums(b);
        let m: i32 = (0..16).map(|g| (a.scales[g] >> 4) as i32 * sums[g]).sum();
        sum += (half(a.d) * yd) * s as f32 - (half(a.dmin) * yd) * m as f32;
    }
    sum
}
