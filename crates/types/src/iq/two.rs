//! iq2_xxs, iq2_xs and iq2_s: points of 8 magnitudes out of 8, 25, 43.

use super::{even_signs, signed, Codebook, IQ2_S, IQ2_XS, IQ2_XXS};
use crate::block::{BlockIQ2S, BlockIQ2XS, BlockIQ2XXS};
use crate::float::half;

/// Sixteen 4-bit scales, low nibbles first, as odd numbers.
#[inline(always)]
pub(super) fn odd_nibbles(scales: &[u8; 8]) -> [i32; 16] {
    std::array::from_fn(|g| 2 * (scales[g / 2] >> (4 * (g % 2)) & 15) as i32 + 1)
}

impl Codebook for BlockIQ2XXS {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        let mut scales = [0; 16];
        for (j, (q, out)) in self.qs.as_chunks::<8>().0.iter().zip(codes.as_chunks_mut::<32>().0).enumerate() {
            let word = u32::from_ne_bytes([q[4], q[5], q[6], q[7]]);
            for (k, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = signed(IQ2_XXS[q[k] as usize].to_le_bytes(), even_signs(word >> (7 * k)));
            }
            scales[2 * j..2 * j + 2].fill(2 * (word >> 28) as i32 + 1);
        }
        (scales, half(self.d) * 0.125)
    }
}

impl Codebook for BlockIQ2XS {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        for (q, out) in self.qs.as_chunks::<2>().0.iter().zip(codes.as_chunks_mut::<8>().0) {
            let q = u16::from_ne_bytes(*q);
            *out = signed(IQ2_XS[(q & 511) as usize].to_le_bytes(), even_signs((q >> 9) as u32));
        }
        (odd_nibbles(&self.scales), half(self.d) * 0.125)
    }
}

impl Codebook for BlockIQ2S {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        for (k, out) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = (self.qh[k / 4] >> (2 * (k % 4)) & 3) as usize;
            *out = signed(IQ2_S[self.qs[k] as usize | high << 8].to_le_bytes(), self.signs[k]);
        }
        (odd_nibbles(&self.scales), half(self.d) * 0.125)
    }
}
