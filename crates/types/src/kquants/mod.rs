//! K-quants: super-blocks of 256 values in groups of 16 or 32, whose scales are themselves quantised. One file for each
//! kind of group; portable paths, which define the results. Imports: block, clean, float, search.

mod affine32;
mod q2;
mod q3;
mod q6;

pub(crate) use affine32::*;
pub(crate) use q2::*;
pub(crate) use q3::*;
pub(crate) use q6::*;

use crate::block::BlockQ8K;

/// The 16 sums of 16 codes each.
#[inline(always)]
fn group_sums(y: &BlockQ8K) -> [i32; 16] {
    std::array::from_fn(|j| i16::from_ne_bytes([y.bsums[2 * j], y.bsums[2 * j + 1]]) as i32)
}

/// Two-bit codes: byte l of half h holds elements 128 h + l + 32 k in bits 2 k, k = 0..4.
#[inline(always)]
pub(crate) fn pack2(codes: &[u8; 256]) -> [u8; 64] {
    std::array::from_fn(|i| {
        let at = (i / 32) * 128 + i % 32;
        (0..4).fold(0, |b, k| b | ((codes[at + 32 * k] & 3) << (2 * k)))
    })
}

/// The inverse of `pack2`.
#[inline(always)]
pub(crate) fn unpack2(qs: &[u8; 64]) -> [u8; 256] {
    std::array::from_fn(|i| (qs[(i / 128) * 32 + i % 32] >> (2 * ((i / 32) % 4))) & 3)
}

/// Sum over groups of `G` of scale[g] times the group's integer dot product.
#[inline(always)]
fn scaled_dot<const G: usize>(codes: &[i8; 256], scales: impl Fn(usize) -> i32, y: &BlockQ8K) -> i32 {
    let y = y.qs.as_chunks::<G>().0;
    let mut sum = 0;
    for (g, (q, y)) in codes.as_chunks::<G>().0.iter().zip(y).enumerate() {
        let s: i32 = (0..G).map(|l| q[l] as i32 * y[l] as i8 as i32).sum();
        sum += scales(g) * s;
    }
    sum
}
