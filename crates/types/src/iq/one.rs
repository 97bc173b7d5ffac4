//! iq1_s and iq1_m: points of 8 values out of -1, 0, 1, all shifted by an eighth up or down. Codes are in eighths.

use super::{Codebook, IQ1};
use crate::block::{BlockIQ1M, BlockIQ1S};
use crate::float::f16_to_f32;

/// A point in eighths, shifted down or up.
#[inline(always)]
fn shifted(point: usize, down: bool) -> [i8; 8] {
    let shift = if down { -9 } else { -7 };
    IQ1[point].to_le_bytes().map(|v| v as i8 + shift)
}

impl Codebook for BlockIQ1S {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        let words: [u16; 8] = std::array::from_fn(|j| u16::from_ne_bytes([self.qh[2 * j], self.qh[2 * j + 1]]));
        for (k, out) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let word = words[k / 4];
            let high = (word >> (3 * (k % 4)) & 7) as usize;
            *out = shifted(self.qs[k] as usize | high << 8, word & 0x8000 != 0);
        }
        let scales = std::array::from_fn(|g| 2 * (words[g / 2] >> 12 & 7) as i32 + 1);
        (scales, crate::float::half(self.d) * 0.125)
    }
}

impl Codebook for BlockIQ1M {
    fn unpack(&self, codes: &mut [i8; 256]) -> ([i32; 16], f32) {
        for (k, out) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = (self.qh[k / 2] >> (4 * (k % 2))) as usize;
            *out = shifted(self.qs[k] as usize | (high & 7) << 8, high & 8 != 0);
        }
        let words: [u16; 4] = std::array::from_fn(|j| u16::from_ne_bytes([self.scales[2 * j], self.scales[2 * j + 1]]));
        let scales = std::array::from_fn(|g| 2 * (words[g / 4] >> (3 * (g % 4)) & 7) as i32 + 1);
        let d = (0..4).fold(0, |d, j| d | words[j] >> 12 << (4 * j));
        (scales, f16_to_f32(d) * 0.125)
    }
}
