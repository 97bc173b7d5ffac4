//! Byte layouts of the blocks. Every field is bytes, so a block has alignment 1 and every bit pattern is a value:
//! rows may start at any address. Multi-byte fields are in the machine's byte order, as in ggml.

/// A block layout.
///
/// # Safety
/// The type is `repr(C)`, has alignment 1, no padding, and every bit pattern is valid.
pub unsafe trait Block: Copy {}

macro_rules! block {
    ($(#[$doc:meta])* $name:ident, $ty:ident { $($(#[$fdoc:meta])* $field:ident: $n:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: [u8; $n]),* }
        // SAFETY: only byte arrays inside a repr(C) struct.
        unsafe impl Block for $name {}
        const _: () = assert!(size_of::<$name>() == crate::Type::$ty.block_bytes() && align_of::<$name>() == 1);
    };
}

block!(
    /// x = d (q - 8), q of 4 bits; byte j holds elements j (low) and j + 16 (high).
    BlockQ4_0, Q4_0 { d: 2, qs: 16 });
block!(
    /// x = d q + m, packed as in q4_0.
    BlockQ4_1, Q4_1 { d: 2, m: 2, qs: 16 });
block!(
    /// x = d (q - 16); bit j of the 32-bit word `qh` is the fifth bit of element j.
    BlockQ5_0, Q5_0 { d: 2, qh: 4, qs: 16 });
block!(
    /// x = d q + m, packed as in q5_0.
    BlockQ5_1, Q5_1 { d: 2, m: 2, qh: 4, qs: 16 });
block!(
    /// x = d q, q a signed byte.
    BlockQ8_0, Q8_0 { d: 2, qs: 32 });
block!(
    /// x = d q; `s` is d times the sum of the q.
    BlockQ8_1, Q8_1 { d: 2, s: 2, qs: 32 });
block!(
    /// 16 groups of 16: x = d sc q - dmin mn, sc the low and mn the high nibble of the group's scale byte.
    BlockQ2K, Q2_K { scales: 16, qs: 64, d: 2, dmin: 2 });
block!(
    /// 16 groups of 16: x = d (sc - 32) (q - 4), sc of 6 bits, q of 2 bits and one in `hmask`.
    BlockQ3K, Q3_K { hmask: 32, qs: 64, scales: 12, d: 2 });
block!(
    /// 8 groups of 32: x = d sc q - dmin mn, sc and mn of 6 bits.
    BlockQ4K, Q4_K { d: 2, dmin: 2, scales: 12, qs: 128 });
block!(
    /// As q4_K with a fifth bit in `qh`.
    BlockQ5K, Q5_K { d: 2, dmin: 2, scales: 12, qh: 32, qs: 128 });
block!(
    /// 16 groups of 16: x = d sc (q - 32), sc a signed byte, q of 6 bits.
    BlockQ6K, Q6_K { ql: 128, qh: 64, scales: 16, d: 2 });
block!(
    /// x = d q, d an f32, q a signed byte; `bsums` are 16 sums of 16 q, i16.
    BlockQ8K, Q8_K { d: 4, qs: 256, bsums: 32 });

block!(
    /// 8 groups of 32: four grid points of 8, then a word of four signs of 7 bits and a scale of 4 bits.
    BlockIQ2XXS, IQ2_XXS { d: 2, qs: 64 });
block!(
    /// 32 words of 9 bits of grid point and 7 of signs, one for each 8 elements; 16 scales of 4 bits.
    BlockIQ2XS, IQ2_XS { d: 2, qs: 64, scales: 8 });
block!(
    /// Grid points of 10 bits, the upper two in `qh`; a sign bit for each element; 16 scales of 4 bits.
    BlockIQ2S, IQ2_S { d: 2, qs: 32, signs: 32, qh: 8, scales: 8 });
block!(
    /// 64 grid points of 4 elements; 8 words of four signs of 7 bits and a scale of 4 bits.
    BlockIQ3XXS, IQ3_XXS { d: 2, qs: 64, signs: 32 });
block!(
    /// Grid points of 9 bits, the upper bit in `qh`; a sign bit for each element; 8 scales of 4 bits.
    BlockIQ3S, IQ3_S { d: 2, qs: 64, qh: 8, signs: 32, scales: 4 });
block!(
    /// Grid points of 11 bits; each word of `qh` holds the upper bits of four, a scale of 3 bits and a shift.
    BlockIQ1S, IQ1_S { d: 2, qs: 32, qh: 16 });
block!(
    /// Grid points of 11 bits; each nibble of `qh` holds the upper bits of one and its shift. Four words of four scales
    /// of 3 bits, with the f16 d spread over their top nibbles.
    BlockIQ1M, IQ1_M { qs: 32, qh: 16, scales: 8 });
block!(
    /// x = d v[q], v the 16 values in `iq4`; packed as in q4_0.
    BlockIQ4NL, IQ4_NL { d: 2, qs: 16 });
block!(
    /// 8 groups of 32: x = d (sc - 32) v[q]; sc has its four low bits in `low` (two groups in a byte) and two in `high`.
    BlockIQ4XS, IQ4_XS { d: 2, high: 2, low: 4, qs: 128 });
block!(
    /// x is -d, 0 or d: five digits of base 3 in each byte of `qs`, four in each of `qh`, as fractions of 256.
    BlockTQ1_0, TQ1_0 { qs: 48, qh: 4, d: 2 });
block!(
    /// x = d (q - 1), q of 2 bits; byte l of each 32 holds elements l + 32 k in bits 2 k.
    BlockTQ2_0, TQ2_0 { qs: 64, d: 2 });
block!(
    /// x = 2^(e - 128) v[q], v the doubled 4-bit floats in `fp4`; packed as in q4_0.
    BlockMXFP4, MXFP4 { e: 1, qs: 16 });
block!(
    /// 4 groups of 16: x = d v[q], d an 8-bit float without sign; in each group byte j holds elements j and j + 8.
    BlockNVFP4, NVFP4 { d: 4, qs: 32 });
block!(
    /// x is d where the element's bit is set, else -d.
    BlockQ1_0, Q1_0 { d: 2, qs: 16 });
block!(
    /// x = d (q - 1), q of 2 bits, four elements in a byte.
    BlockQ2_0, Q2_0 { d: 2, qs: 16 });

/// The whole blocks in `bytes`; a trailing part of a block is left out.
pub fn blocks<B: Block>(bytes: &[u8]) -> &[B] {
    let n = bytes.len() / size_of::<B>();
    // SAFETY: alignment 1, any bit pattern valid (Block's contract), and n blocks lie inside `bytes`.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), n) }
}

/// The whole blocks in `bytes`, writable.
pub fn blocks_mut<B: Block>(bytes: &mut [u8]) -> &mut [B] {
    let n = bytes.len() / size_of::<B>();
    // SAFETY: as in `blocks`; the exclusive borrow carries over.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), n) }
}
