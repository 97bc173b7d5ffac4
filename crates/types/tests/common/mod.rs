//! A fixed-seed generator and the lists that the tests share.
#![allow(dead_code)]

use ggml_oxide_types::Type;

/// Formats whose values are points of a fixed grid.
pub const CODEBOOK_TYPES: &[Type] =
    &[Type::IQ2_XXS, Type::IQ2_XS, Type::IQ2_S, Type::IQ3_XXS, Type::IQ3_S, Type::IQ1_S, Type::IQ1_M];

/// The other formats with blocks.
pub fn block_types() -> impl Iterator<Item = Type> {
    Type::ALL.iter().copied().filter(|ty| ty.is_quantized() && !CODEBOOK_TYPES.contains(ty))
}

/// splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 <= x < 1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Roughly standard normal.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}
