//! iq3_xxs and iq3_s: points of 4 magnitudes out of eight.

use super::{even_signs, signed, Codebook, IQ3_S, IQ3_XXS};
use crate::block::{BlockIQ3S, BlockIQ3XXS};
use crate::float::half;

/// Two points as eight magnitudes.
#[inline(always)]
fn pair(a: u32, b: u32) -> [u8; 8] {
    (a as u64 | (b as u64) << 32).to_le_bytes()
}

impl Codebook for BlockIQ3XXS {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        let (words, qs) = (self.signs.as_chunks::<4>().0, self.qs.as_chunks::<2>().0);
        for (k, (q, out)) in qs.iter().zip(codes.as_chunks_mut::<8>().0).enumerate() {
            let signs = even_signs(u32::from_ne_bytes(words[k / 4]) >> (7 * (k % 4)));
            *out = signed(pair(IQ3_XXS[q[0] as usize], IQ3_XXS[q[1] as usize]), signs);
        }
        let scales = std::array::from_fn(|g| 2 * (u32::from_ne_bytes(words[g / 2]) >> 28) as i32 + 1);
        (scales, half(self.d) * 0.25)
    }
}

impl Codebook for BlockIQ3S {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        for (k, (q, out)) in self.qs.as_chunks::<2>().0.iter().zip(codes.as_chunks_mut::<8>().0).enumerate() {
            let high = self.qh[k / 4] as usize >> (2 * (k % 4));
            let (a, b) = (q[0] as usize | (high & 1) << 8, q[1] as usize | (high >> 1 & 1) << 8);
            *out = signed(pair(IQ3_S[a], IQ3_S[b]), self.signs[k]);
        }
        let scales = std::array::from_fn(|g| 2 * (self.scales[g / 4] >> (4 * (g / 2 % 2)) & 15) as i32 + 1);
        (scales, half(self.d))
    }
}
