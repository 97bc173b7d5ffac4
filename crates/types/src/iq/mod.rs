//! Codebook formats: 256 values as points of a fixed grid, 4 or 8 values a point, with signs (iq2, iq3) or a shift
//! (iq1) beside them. Portable paths, which define the results. `grid` says which points there are, `two`, `three` and
//! `one` know the blocks of each family; `encode` and `encode1` find the points with `lattice` and `fit`. Imports: block, clean, float, search.

// Loops over the parts of a group index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod encode;
mod encode1;
mod fit;
mod grid;
mod lattice;
mod one;
mod three;
mod two;

pub(crate) use encode::*;
pub(crate) use encode1::*;

use crate::block::{blocks, Block, BlockQ8K};

/// Points of eight base-3 digits as bytes, first digit lowest; digit k becomes `value[k]`.
const fn points8<const N: usize>(set: &[u64; 103], value: [u64; 3]) -> [u64; N] {
    let (mut out, mut n, mut p) = ([0; N], 0, 0);
    while p < 6561 {
        if set[p / 64] >> (p % 64) & 1 == 1 {
            let (mut rest, mut k, mut word) = (p, 0, 0);
            while k < 8 {
                word |= value[rest % 3] << (8 * k);
                rest /= 3;
                k += 1;
            }
            out[n] = word;
            n += 1;
        }
        p += 1;
    }
    assert!(n == N);
    out
}

/// Points of four base-8 digits as bytes, first digit lowest; digit k becomes `value[k]`.
const fn points4<const N: usize>(set: &[u64; 64], value: [u32; 8]) -> [u32; N] {
    let (mut out, mut n, mut p) = ([0; N], 0, 0);
    while p < 4096 {
        if set[p / 64] >> (p % 64) & 1 == 1 {
            out[n] = value[p & 7] | value[p >> 3 & 7] << 8 | value[p >> 6 & 7] << 16 | value[p >> 9] << 24;
            n += 1;
        }
        p += 1;
    }
    assert!(n == N);
    out
}

/// Magnitudes of iq2_xxs.
pub(crate) static IQ2_XXS: [u64; 256] = points8(&grid::IQ2_256, [8, 25, 43]);
/// Magnitudes of iq2_xs.
pub(crate) static IQ2_XS: [u64; 512] = points8(&grid::IQ2_512, [8, 25, 43]);
/// Magnitudes of iq2_s.
pub(crate) static IQ2_S: [u64; 1024] = points8(&grid::IQ2_1024, [8, 25, 43]);
/// Eight times the digit (value plus 1) of iq1_s and iq1_m.
pub(crate) static IQ1: [u64; 2048] = points8(&grid::IQ1_2048, [0, 8, 16]);
/// Magnitudes of iq3_xxs.
pub(crate) static IQ3_XXS: [u32; 256] = points4(&grid::IQ3_256, [4, 12, 20, 28, 36, 44, 52, 62]);
/// Magnitudes of iq3_s.
pub(crate) static IQ3_S: [u32; 512] = points4(&grid::IQ3_512, [1, 3, 5, 7, 9, 11, 13, 15]);

/// Eight sign bits from the seven that are stored: an even number of the eight is set.
#[inline(always)]
pub(crate) const fn even_signs(s: u32) -> u8 {
    let s = s & 127;
    (s | (s.count_ones() & 1) << 7) as u8
}

/// A block of 16 groups of 16: x = d * scale * code.
pub(crate) trait Codebook: Block {
    /// The signed codes, the odd scales, and d with the format's power of two. Each product x is exact in f32.
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32);
}

/// Bytes with the sign of those whose bit is set turned.
#[inline(always)]
fn signed<const N: usize>(bytes: [u8; N], signs: u8) -> [i8; N] {
    std::array::from_fn(|i| if signs >> i & 1 == 1 { -(bytes[i] as i8) } else { bytes[i] as i8 })
}

pub(crate) fn decode<B: Codebook>(src: &[u8], dst: &mut [f32]) {
    for (b, y) in blocks::<B>(src).iter().zip(dst.as_chunks_mut::<256>().0) {
        let mut codes = [0; 256];
        let (scales, d) = b.unpack(&mut codes);
        for (i, y) in y.iter_mut().enumerate() {
            *y = d * scales[i / 16] as f32 * codes[i] as f32;
        }
    }
}

pub(crate) fn dot<B: Codebook>(x: &[u8], y: &[u8]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in blocks::<B>(x).iter().zip(blocks::<BlockQ8K>(y)) {
        let mut codes = [0; 256];
        let (scales, d) = a.unpack(&mut codes);
        let s: i32 = (0..16)
            .map(|g| scales[g] * (16 * g..16 * g + 16).map(|i| codes[i] as i32 * b.qs[i] as i8 as i32).sum::<i32>())
            .sum();
        sum += d * f32::from_ne_bytes(b.d) * s as f32;
    }
    sum
}
