//! q8_0, q8_1 and q8_K: 8-bit codes, the formats of the right operand. Portable paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockQ8K, BlockQ8_0, BlockQ8_1};
use crate::clean::{bounded, finite, inverse, limit, magnitude, nearest_int};
use crate::float::{half, scale_f16};

/// Scale and codes of a block of 32: the largest magnitude maps to 127, ties round away from zero.
#[inline(always)]
fn codes32(x: &[f32; 32]) -> (f32, [i8; 32]) {
    let mut buf = [0.0; 32];
    let x = finite(x, &mut buf);
    let d = limit(magnitude(x) / 127.0);
    let id = inverse(d);
    (d, x.map(|v| (v * id).round().clamp(-127.0, 127.0) as i8))
}

pub(crate) fn encode_q8_0(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ8_0>(dst)) {
        let (d, q) = codes32(x);
        *b = BlockQ8_0 { d: scale_f16(d), qs: q.map(|v| v as u8) };
    }
}

pub(crate) fn encode_q8_1(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockQ8_1>(dst)) {
        let (d, q) = codes32(x);
        let sum: i32 = q.iter().map(|&v| v as i32).sum();
        *b = BlockQ8_1 { d: scale_f16(d), s: scale_f16(sum as f32 * d), qs: q.map(|v| v as u8) };
    }
}

/// Below this magnitude 127/max leaves the f32 range; such a block is stored as zero.
pub(crate) const Q8K_TINY: f32 = 1e-36;
/// Values are held to this, so that 127 steps of the rounded scale stay finite.
pub(crate) const Q8K_HUGE: f32 = 3.4e38;

pub(crate) fn encode_q8_k(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ8K>(dst)) {
        let mut buf = [0.0; 256];
        let x = bounded(x, &mut buf, Q8K_HUGE);
        let (mut amax, mut max) = (0.0f32, 0.0f32);
        for &v in x {
            if v.abs() > amax {
                amax = v.abs();
                max = v;
            }
        }
        if amax < Q8K_TINY {
            *b = BlockQ8K { d: [0; 4], qs: [0; 256], bsums: [0; 32] };
            continue;
        }
        let iscale = -127.0 / max;
        let q = x.map(|v| nearest_int(iscale * v).clamp(-127, 127) as i8);
        *b = BlockQ8K { d: (1.0 / iscale).to_ne_bytes(), qs: q.map(|v| v as u8), bsums: group_sums(&q) };
    }
}

fn group_sums(q: &[i8; 256]) -> [u8; 32] {
    let mut out = [0; 32];
    for (g, o) in q.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<2>().0) {
        *o = g.iter().map(|&v| v as i16).sum::<i16>().to_ne_bytes();
    }
    out
}

pub(crate) fn decode_q8_0(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ8_0>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let d = half(b.d);
        *y = b.qs.map(|q| q as i8 as f32 * d);
    }
}

pub(crate) fn decode_q8_1(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ8_1>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let d = half(b.d);
        *y = b.qs.map(|q| q as i8 as f32 * d);
    }
}

pub(crate) fn decode_q8_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ8K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let d = f32::from_ne_bytes(b.d);
        *y = b.qs.map(|q| d * q as i8 as f32);
    }
}

pub(crate) fn dot_q8_0(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockQ8_0>(x).iter().zip(blocks::<BlockQ8_0>(y)) {
        let s: i32 = (0..32).map(|j| a.qs[j] as i8 as i32 * b.qs[j] as i8 as i32).sum();
        sum += s as f32 * (half(a.d) * half(b.d));
    }
    sum
}
