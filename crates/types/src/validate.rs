//! What is wrong with the bytes of a tensor from elsewhere: scales and plain values that are not finite.

use crate::{float, Type};

/// Where blocks hold f16 scales and minima: byte offsets in a block. Empty for formats without.
pub const fn half_fields(ty: Type) -> &'static [usize] {
    use Type::*;
    match ty {
        Q4_0 | Q5_0 | Q8_0 | Q1_0 | Q2_0 | IQ4_NL | IQ4_XS => &[0],
        IQ2_XXS | IQ2_XS | IQ2_S | IQ3_XXS | IQ3_S | IQ1_S => &[0],
        Q4_1 | Q5_1 | Q8_1 | Q4_K | Q5_K => &[0, 2],
        Q2_K => &[80, 82],
        Q3_K => &[108],
        Q6_K => &[208],
        TQ1_0 => &[52],
        TQ2_0 => &[64],
        _ => &[],
    }
}

/// The first value that is not finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotFinite {
    /// Block, or element of a plain format.
    pub block: usize,
    /// NaN, or else an infinity.
    pub nan: bool,
}

fn half_kind(h: u16) -> Option<bool> {
    (h & 0x7c00 == 0x7c00).then_some(h & 0x03ff != 0)
}

fn float_kind(v: f64) -> Option<bool> {
    (!v.is_finite()).then_some(v.is_nan())
}

/// Whether a scale (or, in plain formats, a value) in one block is not finite: true for NaN.
fn kind(ty: Type, b: &[u8]) -> Option<bool> {
    let half = |at: usize| half_kind(u16::from_ne_bytes([b[at], b[at + 1]]));
    match ty {
        Type::F16 => half(0),
        Type::BF16 => float_kind(float::bf16_to_f32(u16::from_ne_bytes([b[0], b[1]])) as f64),
        Type::F32 | Type::Q8_K => float_kind(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]) as f64),
        Type::F64 => float_kind(f64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
        Type::F8_E4M3 => (b[0] & 0x7f == 0x7f).then_some(true),
        Type::F8_E5M2 => half_kind((b[0] as u16) << 8),
        // The exponent 255 is this format's NaN.
        Type::MXFP4 => (b[0] == 0xff).then_some(true),
        // The scale is spread over the top nibbles of four words.
        Type::IQ1_M => half_kind((0..4).fold(0, |h, i| h | (((b[49 + 2 * i] >> 4) as u16) << (4 * i)))),
        _ => half_fields(ty).iter().find_map(|&at| half(at)),
    }
}

/// Looks for scales and plain values that are not finite in whole blocks; a trailing part of a block is left out.
pub fn check_finite(ty: Type, bytes: &[u8]) -> Result<(), NotFinite> {
    if matches!(ty, Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::NVFP4) {
        return Ok(());
    }
    for (block, b) in bytes.chunks_exact(ty.block_bytes()).enumerate() {
        if let Some(nan) = kind(ty, b) {
            return Err(NotFinite { block, nan });
        }
    }
    Ok(())
}
