//! iq4_nl and iq4_xs: 4-bit codes for 16 values that lie closer around zero. Portable paths; these define the results.

use crate::block::{blocks, blocks_mut, BlockIQ4NL, BlockIQ4XS, BlockQ8K, BlockQ8_0};
use crate::clean::{bounded, inverse, limit, nearest_int, SEARCH_MAX};
use crate::float::{half, scale_f16};
use crate::q4::{nibbles, pack_nibbles};
use crate::search::{encoders, energy, signed_max, usable, weights, TINY};

/// What the codes stand for, ascending.
pub const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Of two equally near values the greater: value i + 1 from here on.
const MIDS: [f32; 15] = {
    let mut m = [0.0; 15];
    let mut i = 0;
    while i < 15 {
        m[i] = (VALUES[i] as f32 + VALUES[i + 1] as f32) * 0.5;
        i += 1;
    }
    m
};

/// Code of the nearest value.
#[inline(always)]
fn nearest(v: f32) -> u8 {
    MIDS.iter().map(|&m| (v >= m) as u8).sum()
}

/// The nearest value itself, of 16 numbers at once: steps are added up, which is exact.
#[inline(always)]
fn nearest_values(v: &[f32; 16]) -> [f32; 16] {
    let mut q = [VALUES[0] as f32; 16];
    for i in 0..15 {
        let step = (VALUES[i + 1] as i32 - VALUES[i] as i32) as f32;
        for l in 0..16 {
            q[l] += if v[l] >= MIDS[i] { step } else { 0.0 };
        }
    }
    q
}

/// For each of 16 inverse scales: the weighted sums of value times x and of value squared, in element order.
#[inline(always)]
fn fits(inverse: &[f32; 16], x: &[f32; 32], w: &[f32; 32]) -> ([f32; 16], [f32; 16]) {
    let (mut qx, mut q2) = ([0.0f32; 16], [0.0f32; 16]);
    for (&x, &w) in x.iter().zip(w) {
        let q = nearest_values(&inverse.map(|id| id * x));
        for l in 0..16 {
            let wq = w * q[l];
            qx[l] += wq * x;
            q2[l] += wq * q[l];
        }
    }
    (qx, q2)
}

/// The scale that fits 32 values best: the one that puts the largest on the end of the values, or one of 15 that put it
/// between 120 and 134.
#[inline(always)]
fn search(x: &[f32; 32], w: &[f32; 32]) -> f32 {
    let (amax, max) = signed_max(x);
    if amax < TINY {
        return 0.0;
    }
    let end = VALUES[0] as f32;
    // The first is the other end's sign, and two roundings; the others in the order they are tried.
    let ids: [f32; 16] =
        std::array::from_fn(|l| if l == 0 { 1.0 / (-max / end) } else { (l as f32 - 8.0 + end) / max });
    let (qx, q2) = fits(&ids, x, w);
    let mut d = if q2[0] > 0.0 { qx[0] / q2[0] } else { 0.0 };
    let mut best = d * qx[0];
    for l in 1..16 {
        if q2[l] > 0.0 && qx[l] * qx[l] > best * q2[l] {
            d = qx[l] / q2[l];
            best = d * qx[l];
        }
    }
    usable(d)
}

/// The weights of a search: without importance the squares.
#[inline(always)]
fn weights_or_squares(x: &[f32; 32], importance: Option<&[f32; 32]>, sigma2: f32) -> [f32; 32] {
    match importance {
        None => x.map(|v| v * v),
        Some(q) => weights(x, q, sigma2),
    }
}

/// Twice the mean square, summed in order.
#[inline(always)]
fn sigma2(x: &[f32]) -> f32 {
    energy(x) * (2.0 / x.len() as f32)
}

/// The quick conversion: codes for the scale that puts the largest value on the end, then the best scale for them.
#[inline(always)]
pub(crate) fn encode_iq4_nl(src: &[f32], dst: &mut [u8]) {
    for (x, b) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockIQ4NL>(dst)) {
        let mut buf = [0.0; 32];
        let x = bounded(x, &mut buf, SEARCH_MAX);
        let (amax, max) = signed_max(x);
        let (mut d, mut id) = (0.0, 0.0);
        if amax >= TINY {
            id = 1.0 / (max / VALUES[0] as f32);
        }
        let q = x.map(|v| nearest(id * v));
        if id != 0.0 {
            let (mut qx, mut q2) = (0.0f32, 0.0f32);
            for (&x, &c) in x.iter().zip(&q) {
                let (w, q) = (x * x, VALUES[c as usize] as f32);
                qx += w * q * x;
                q2 += w * q * q;
            }
            d = if q2 > 0.0 { usable(qx / q2) } else { 0.0 };
        }
        *b = BlockIQ4NL { d: scale_f16(d), qs: pack_nibbles(&q) };
    }
}

#[inline(always)]
fn searched_nl(x: &[f32; 32], importance: Option<&[f32; 32]>) -> BlockIQ4NL {
    let mut buf = [0.0; 32];
    let x = bounded(x, &mut buf, SEARCH_MAX);
    let d = limit(search(x, &weights_or_squares(x, importance, sigma2(x))));
    let id = inverse(d);
    BlockIQ4NL { d: scale_f16(d), qs: pack_nibbles(&x.map(|v| nearest(id * v))) }
}

/// With the search, as files are made.
#[inline(always)]
pub(crate) fn search_iq4_nl(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    for (i, (x, b)) in src.as_chunks::<32>().0.iter().zip(blocks_mut::<BlockIQ4NL>(dst)).enumerate() {
        *b = searched_nl(x, importance.and_then(|w| w.as_chunks::<32>().0.get(i)));
    }
}
encoders!(iq4_nl = super::search_iq4_nl);

#[inline(always)]
fn searched_xs(x: &[f32; 256], importance: Option<&[f32; 256]>) -> BlockIQ4XS {
    let mut buf = [0.0; 256];
    let x = bounded(x, &mut buf, SEARCH_MAX);
    let sigma2 = if importance.is_some() { sigma2(x) } else { 0.0 };
    let groups = x.as_chunks::<32>().0;
    let mut scales = [0.0f32; 8];
    let (mut amax, mut max) = (0.0f32, 0.0f32);
    for (g, x) in groups.iter().enumerate() {
        let w = weights_or_squares(x, importance.map(|w| &w.as_chunks::<32>().0[g]), sigma2);
        scales[g] = search(x, &w);
        if scales[g].abs() > amax {
            (amax, max) = (scales[g].abs(), scales[g]);
        }
    }
    let d = limit(-max / 32.0);
    let id = inverse(d);
    let mut b = BlockIQ4XS { d: scale_f16(d), high: [0; 2], low: [0; 4], qs: [0; 128] };
    let mut high = 0u16;
    for (g, (x, qs)) in groups.iter().zip(b.qs.as_chunks_mut::<16>().0).enumerate() {
        let l = nearest_int(id * scales[g]).clamp(-32, 31);
        let idl = inverse(d * l as f32);
        *qs = pack_nibbles(&x.map(|v| nearest(idl * v)));
        let l = (l + 32) as u8;
        b.low[g / 2] |= (l & 15) << (4 * (g % 2));
        high |= (l as u16 >> 4) << (2 * g);
    }
    b.high = high.to_ne_bytes();
    b
}

#[inline(always)]
pub(crate) fn search_iq4_xs(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    for (i, (x, b)) in src.as_chunks::<256>().0.iter().zip(blocks_mut::<BlockIQ4XS>(dst)).enumerate() {
        *b = searched_xs(x, importance.and_then(|w| w.as_chunks::<256>().0.get(i)));
    }
}
encoders!(iq4_xs = super::search_iq4_xs);

/// Scales of the 8 groups, -32 .. 31.
#[inline(always)]
pub(crate) fn scales(b: &BlockIQ4XS) -> [i8; 8] {
    let high = u16::from_ne_bytes(b.high);
    std::array::from_fn(|g| {
        let low = (b.low[g / 2] >> (4 * (g % 2))) & 15;
        (low | (((high >> (2 * g)) & 3) << 4) as u8) as i8 - 32
    })
}

pub(crate) fn decode_iq4_nl(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockIQ4NL>(src).iter().zip(dst.as_chunks_mut::<32>().0) {
        let d = half(b.d);
        *y = nibbles(&b.qs).map(|c| d * VALUES[c as usize] as f32);
    }
}

pub(crate) fn decode_iq4_xs(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<BlockIQ4XS>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let (d, scales) = (half(b.d), scales(b));
        for (g, (y, qs)) in y.as_chunks_mut::<32>().0.iter_mut().zip(b.qs.as_chunks::<16>().0).enumerate() {
            let dl = d * scales[g] as f32;
            *y = nibbles(qs).map(|c| dl * VALUES[c as usize] as f32);
        }
    }
}

#[inline(always)]
fn dot32(qs: &[u8; 16], y: &[u8; 32]) -> i32 {
    let q = nibbles(qs);
    (0..32).map(|j| VALUES[q[j] as usize] as i32 * y[j] as i8 as i32).sum()
}

pub(crate) fn dot_iq4_nl(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockIQ4NL>(x).iter().zip(blocks::<BlockQ8_0>(y)) {
        sum += dot32(&a.qs, &b.qs) as f32 * (half(a.d) * half(b.d));
    }
    sum
}

pub(crate) fn dot_iq4_xs(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<BlockIQ4XS>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let scales = scales(a);
        let groups = a.qs.as_chunks::<16>().0.iter().zip(b.qs.as_chunks::<32>().0);
        let s: i32 = groups.enumerate().map(|(g, (q, y))| scales[g] as i32 * dot32(q, y)).sum();
        sum += (half(a.d) * f32::from_ne_bytes(b.d)) * s as f32;
    }
    sum
}
