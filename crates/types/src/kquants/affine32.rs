//! q4_K and q5_K: 8 groups of 32, a 6-bit scale and a 6-bit minimum for each group.

use super::{group_sums, scaled_dot};
use crate::block::{blocks, blocks_mut, BlockQ4K, BlockQ5K, BlockQ8K};
use crate::clean::{bounded, nearest_int, SEARCH_MAX};
use crate::float::{half, scale_f16};
use crate::search::{affine, qkx3, qp, Walk};

/// Scales and minima, 0..64: groups 0..4 in the low six bits of bytes 0..8; groups 4..8 with their low nibbles in
/// bytes 8..12 and their two high bits atop bytes 0..8.
#[inline(always)]
pub(crate) fn scales_mins(s: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    (
        std::array::from_fn(|g| if g < 4 { s[g] & 63 } else { (s[g + 4] & 15) | ((s[g - 4] >> 6) << 4) }),
        std::array::from_fn(|g| if g < 4 { s[g + 4] & 63 } else { (s[g + 4] >> 4) | ((s[g] >> 6) << 4) }),
    )
}

#[inline(always)]
fn pack_scales_mins(sc: &[u8; 8], mn: &[u8; 8]) -> [u8; 12] {
    std::array::from_fn(|i| match i {
        0..4 => sc[i] | ((sc[i + 4] >> 4) << 6),
        4..8 => mn[i - 4] | ((mn[i] >> 4) << 6),
        _ => (sc[i - 4] & 15) | ((mn[i - 4] & 15) << 4),
    })
}

/// Byte 32 p + l holds elements 64 p + l (low) and 64 p + 32 + l (high).
#[inline(always)]
fn pack4(q: &[u8; 256]) -> [u8; 128] {
    std::array::from_fn(|i| {
        let at = (i / 32) * 64 + i % 32;
        (q[at] & 15) | ((q[at + 32] & 15) << 4)
    })
}

#[inline(always)]
fn unpack4(qs: &[u8; 128]) -> [u8; 256] {
    std::array::from_fn(|i| (qs[(i / 64) * 32 + i % 32] >> (4 * ((i / 32) % 2))) & 15)
}

/// Bit k of byte l belongs to element 32 k + l.
#[inline(always)]
fn fifth_bits(q: &[u8; 256]) -> [u8; 32] {
    std::array::from_fn(|l| (0..8).fold(0, |b, k| b | (((q[32 * k + l] >> 4) & 1) << k)))
}

#[inline(always)]
fn codes5(b: &BlockQ5K) -> [u8; 256] {
    let low = unpack4(&b.qs);
    std::array::from_fn(|i| low[i] | (((b.qh[i % 32] >> (i / 32)) & 1) << 4))
}

#[inline(always)]
fn decode(q: &[u8; 256], d: f32, dmin: f32, scales: &[u8; 12], y: &mut [f32; 256]) {
    let (sc, mn) = scales_mins(scales);
    for (g, y) in y.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (dl, ml) = (d * sc[g] as f32, dmin * mn[g] as f32);
        *y = std::array::from_fn(|l| dl * q[32 * g + l] as f32 - ml);
    }
}

pub(crate) fn decode_q4_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ4K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        decode(&unpack4(&b.qs), half(b.d), half(b.dmin), &b.scales, y);
    }
}

pub(crate) fn decode_q5_k(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockQ5K>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        decode(&codes5(b), half(b.d), half(b.dmin), &b.scales, y);
    }
}

/// What the two formats share in their encoding: d, dmin, scales and codes 0..=nmax.
struct Encoded {
    d: [u8; 2],
    dmin: [u8; 2],
    scales: [u8; 12],
    q: [u8; 256],
}

#[inline(always)]
fn finish(x: &[f32; 256], nmax: i32, d: f32, dmin: f32, sc: &[u8; 8], mn: &[u8; 8], mut q: [u8; 256]) -> Encoded {
    let (d, dmin) = (scale_f16(d), scale_f16(dmin));
    for g in 0..8 {
        let dl = half(d) * sc[g] as f32;
        if dl == 0.0 {
            continue;
        }
        let ml = half(dmin) * mn[g] as f32;
        for i in 32 * g..32 * g + 32 {
            q[i] = nearest_int((x[i] + ml) / dl).clamp(0, nmax) as u8;
        }
    }
    Encoded { d, dmin, scales: pack_scales_mins(sc, mn), q }
}

/// The largest of `v` becomes 63.
#[inline(always)]
fn six_bits(v: &[f32; 8]) -> ([u8; 8], f32) {
    let max = v.iter().fold(0.0f32, |m, &s| if s > m { s } else { m });
    let inv = if max > 0.0 { 63.0 / max } else { 0.0 };
    (v.map(|s| nearest_int(inv * s).clamp(0, 63) as u8), max / 63.0)
}

#[inline(always)]
fn encode(x: &[f32; 256], nmax: i32, walk: Walk) -> Encoded {
    let mut buf = [0.0; 256];
    let x = bounded(x, &mut buf, SEARCH_MAX);
    let (mut q, mut scales, mut mins) = ([0u8; 256], [0.0f32; 8], [0.0f32; 8]);
    for (g, (x, c)) in x.as_chunks::<32>().0.iter().zip(q.as_chunks_mut::<32>().0).enumerate() {
        let av = (x.iter().fold(0.0f32, |s, v| s + v * v) / 32.0).sqrt();
        (scales[g], mins[g]) = affine(nmax, x, &x.map(|v| av + v.abs()), c, walk);
    }
    let ((sc, d), (mn, dmin)) = (six_bits(&scales), six_bits(&mins));
    finish(x, nmax, d, dmin, &sc, &mn, q)
}

#[inline(always)]
fn encode_weighted(x: &[f32; 256], qw: &[f32; 256], nmax: i32) -> Encoded {
    let mut buf = [0.0; 256];
    let x = bounded(x, &mut buf, SEARCH_MAX);
    let sigma2 = 2.0 * x.iter().fold(0.0f32, |s, v| s + v * v) / 256.0;
    let (mut q, mut scales, mut mins, mut sw) = ([0u8; 256], [0.0f32; 8], [0.0f32; 8], [0.0f32; 8]);
    for (g, (x, c)) in x.as_chunks::<32>().0.iter().zip(q.as_chunks_mut::<32>().0).enumerate() {
        let w: [f32; 32] = std::array::from_fn(|l| qw[32 * g + l] * (sigma2 + x[l] * x[l]).sqrt());
        sw[g] = w.iter().fold(0.0, |s, v| s + v);
        (scales[g], mins[g]) = qkx3(nmax, x, &w, c);
    }
    let (mut sc, mut mn) = ([0u8; 8], [0u8; 8]);
    let d = qp(63, &scales, &mut sc, &sw);
    let dmin = qp(63, &mins, &mut mn, &sw);
    finish(x, nmax, d, dmin, &sc, &mn, q)
}

const WALK4: Walk = Walk { first: -1.0, step: 0.1, steps: 20, absolute: false };
const WALK5: Walk = Walk { first: -0.5, step: 0.1, steps: 15, absolute: false };

impl Encoded {
    #[inline(always)]
    fn q4(self) -> BlockQ4K {
        BlockQ4K { d: self.d, dmin: self.dmin, scales: self.scales, qs: pack4(&self.q) }
    }

    #[inline(always)]
    fn q5(self) -> BlockQ5K {
        BlockQ5K { d: self.d, dmin: self.dmin, scales: self.scales, qh: fifth_bits(&self.q), qs: pack4(&self.q) }
    }
}

#[inline(always)]
pub(crate) fn encode_q4_k(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ4K>(dst)) {
        *b = encode(x, 15, WALK4).q4();
    }
}

#[inline(always)]
pub(crate) fn encode_q5_k(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockQ5K>(dst)) {
        *b = encode(x, 31, WALK5).q5();
    }
}

#[inline(always)]
pub(crate) fn encode_q4_k_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let importance = imatrix.as_chunks::<256>().0;
    for ((x, qw), b) in src.as_chunks::<256>().0.iter().zip(importance).zip(blocks_mut::<BlockQ4K>(dst)) {
        *b = encode_weighted(x, qw, 15).q4();
    }
}

#[inline(always)]
pub(crate) fn encode_q5_k_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let importance = imatrix.as_chunks::<256>().0;
    for ((x, qw), b) in src.as_chunks::<256>().0.iter().zip(importance).zip(blocks_mut::<BlockQ5K>(dst)) {
        *b = encode_weighted(x, qw, 31).q5();
    }
}

#[inline(always)]
fn dot(q: &[u8; 256], d: f32, dmin: f32, scales: &[u8; 12], b: &BlockQ8K) -> f32 {
    let (yd, sums) = (f32::from_ne_bytes(b.d), group_sums(b));
    let (sc, mn) = scales_mins(scales);
    let s = scaled_dot::<32>(&q.map(|v| v as i8), |g| sc[g] as i32, b);
    let m: i32 = (0..16).map(|g| mn[g / 2] as i32 * sums[g]).sum();
    (d * yd) * s as f32 - (dmin * yd) * m as f32
}

pub(crate) fn dot_q4_k(x: &[u8], y: &[u8]) -> f32 {
    let pairs = blocks::<BlockQ4K>(x).iter().zip(blocks::<BlockQ8K>(y));
    pairs.fold(0.0, |sum, (a, b)| sum + dot(&unpack4(&a.qs), half(a.d), half(a.dmin), &a.scales, b))
}

pub(crate) fn dot_q5_k(x: &[u8], y: &[u8]) -> f32 {
    let pairs = blocks::<BlockQ5K>(x).iter().zip(blocks::<BlockQ8K>(y));
    pairs.fold(0.0, |sum, (a, b)| sum + dot(&codes5(a), half(a.d), half(a.dmin), &a.scales, b))
}
