//! q6_K: 16 groups of 16, 6-bit codes, a signed 8-bit scale for each group.

use super::scaled_dot;
use crate::block::{blocks, blocks_mut, BlockQ6K, BlockQ8K};
use crate::clean::{bounded, nearest_int, SEARCH_MAX};
use crate::float::{half, scale_f16};
use crate::search::qx;

/// Below this the scales of a block count as zero.
const TINY: f32 = 1e-15;

/// Codes 0..64. In each half of 128: nibbles of 64 bytes (elements 0..64 low, 64..128 high), and two high bits of
/// elements l, l + 32, l + 64, l + 96 in byte l of 32.
#[inline(always)]
fn codes(b: &BlockQ6K) -> [u8; 256] {
    std::array::from_fn(|i| {
        let (h, j) = (i / 128, i % 128);
        let low = (b.ql[64 * h + j % 64] >> (4 * (j / 64))) & 15;
        let high = (b.qh[32 * h + j % 32] >> (2 * (j / 32))) & 3;
        low | (high << 4)
    })
}

#[inline(always)]
fn set_codes(b: &mut BlockQ6K, q: &[u8; 256]) {
    b.ql = std::array::from_fn(|i| {
        let at = (i / 64) * 128 + i % 64;
        (q[at] & 15) | ((q[at + 64] & 15) << 4)
    });
    b.qh = std::array::from_fn(|i| {
        let at = (i / 32) * 128 + i % 32;
        (0..4).fold(0, |v, k| v | ((q[at + 32 * k] >> 4) << (2 * k)))
    });
}

pub(crate) fn decode_q6_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ6K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let (d, q) = (half(b.d), codes(b));
        for (g, y) in y.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let dl = d * b.scales[g] as i8 as f32;
            *y = std::array::from_fn(|l| dl * (q[16 * g + l] as i32 - 32) as f32);
        }
    }
}

#[inline(always)]
fn encode(x: &[f32; 256], qw: Option<&[f32; 256]>) -> BlockQ6K {
    let mut buf = [0.0; 256];
    let x = bounded(x, &mut buf, SEARCH_MAX);
    let (mut q, mut scales) = ([0u8; 256], [0.0f32; 16]);
    let (mut amax, mut max) = (0.0f32, 0.0f32);
    for (g, (x, c)) in x.as_chunks::<16>().0.iter().zip(q.as_chunks_mut::<16>().0).enumerate() {
        let w = qw.map(|w| &w.as_chunks::<16>().0[g]);
        scales[g] = qx(32, x, c, w);
        if scales[g].abs() > amax {
            amax = scales[g].abs();
            max = scales[g];
        }
    }
    let mut b = BlockQ6K { ql: [0; 128], qh: [0; 64], scales: [0; 16], d: [0; 2] };
    if amax < TINY {
        return b;
    }
    let inv = -128.0 / max;
    b.d = scale_f16(1.0 / inv);
    b.scales = scales.map(|s| nearest_int(inv * s).clamp(-128, 127) as u8);
    let d = half(b.d);
    for g in 0..16 {
        let dl = d * b.scales[g] as i8 as f32;
        if dl == 0.0 {
            continue;
        }
        for i in 16 * g..16 * g + 16 {
            q[i] = (nearest_int(x[i] / dl).clamp(-32, 31) + 32) as u8;
        }
    }
    set_codes(&mut b, &q);
    b
}

#[inline(always)]
pub(crate) fn encode_q6_k(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ6K>(dst)) {
        *b = encode(x, None);
    }
}

#[inline(always)]
pub(crate) fn encode_q6_k_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let importance = imatrix.as_chunks::<256>().0;
    for ((x, qw), b) in src.as_chunks::<256>().0.iter().zip(importance).zip(blocks_mut::<BlockQ6K>(dst)) {
        *b = encode(x, Some(qw));
    }
}

pub(crate) fn dot_q6_k(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ6K>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let q = codes(a).map(|v| v as i8 - 32);
        let s = scaled_dot::<16>(&q, |g| a.scales[g] as i8 as i32, b);
        sum += (half(a.d) * f32::from_ne_bytes(b.d)) * s as f32;
    }
    sum
}
