//! The codes of each format as vectors of 32 unsigned bytes, in element order, and the scales of the K-quants.

use std::arch::x86_64::*;

use super::isa::{load16, load32};

/// Nibbles of 16 bytes: low ones first.
///
/// # Safety
/// AVX2; 16 readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn nibbles(p: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe {
        let v = load16(p);
        let both = _mm256_inserti128_si256(_mm256_castsi128_si256(v), _mm_srli_epi16(v, 4), 1);
        _mm256_and_si256(both, _mm256_set1_epi8(15))
    }
}

/// Bit j of the word at `p` as byte j: all bits where it is set, 0 where it is clear.
///
/// # Safety
/// AVX2; four readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn bits(p: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe {
        let word = _mm256_set1_epi32(p.cast::<i32>().read_unaligned());
        let pick = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(word, pick), bit), bit)
    }
}

/// Five-bit codes from their high bits at `qh` and nibbles at `qs`.
///
/// # Safety
/// AVX2; 4 and 16 readable bytes.
#[inline(always)]
pub(crate) unsafe fn fives(qh: *const u8, qs: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe { _mm256_or_si256(nibbles(qs), _mm256_and_si256(bits(qh), _mm256_set1_epi8(16))) }
}

/// A K-quant format: 256 codes in 8 vectors, and what its scales multiply.
///
/// # Safety
/// Methods need AVX2 and F16C, and `b` must point to a whole block.
pub(crate) trait Super {
    const BYTES: usize;
    /// Whether the minima are a constant times the scales, so that one integer sum holds both.
    const SYMMETRIC: bool;
    /// What the codes are offset by; 0 where the format has minima.
    const OFFSET: i8;
    /// Codes of elements 32 J .. 32 J + 32; J is a constant, so that shifts are immediate.
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i;
    /// Codes less the offset (and what else the minima hold beside it), signed; for decoding where `SYMMETRIC`.
    #[inline(always)]
    unsafe fn signed_codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: the trait's contract.
        unsafe { _mm256_sub_epi8(Self::codes::<J>(b), _mm256_set1_epi8(Self::OFFSET)) }
    }
    /// Scales as i16: the low half holds those of the groups 0, 2, .. 14 of 16 elements, the high half the odd ones.
    unsafe fn scales(b: *const u8) -> __m256i;
    /// Minima of the 16 groups of 16 as i16, in order: what each code sum of y is multiplied by and subtracted.
    unsafe fn mins(b: *const u8) -> __m256i;
    /// d, and dmin where there is one.
    unsafe fn d(b: *const u8) -> (f32, f32);
}

/// The scale of group pair J in every lane: even group in the low half, odd in the high half.
///
/// # Safety
/// AVX2; J < 8.
#[inline(always)]
pub(crate) unsafe fn scale_pair<const J: usize>(scales: __m256i) -> __m256i {
    let k = 2 * J as i16;
    // SAFETY: the caller's contract.
    unsafe { _mm256_shuffle_epi8(scales, _mm256_set1_epi16(((k + 1) << 8) | k)) }
}

/// Even and odd bytes of 16, as i16 in the two halves.
#[inline(always)]
pub(super) unsafe fn even_odd(even: __m128i, odd: __m128i) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe { _mm256_inserti128_si256(_mm256_castsi128_si256(even), odd, 1) }
}

pub(crate) struct Q2K;
pub(crate) struct Q3K;
pub(crate) struct Q4K;
pub(crate) struct Q5K;
pub(crate) struct Q6K;

/// Two-bit codes in bits 2 (J % 4) of 32 bytes of half J / 4.
#[inline(always)]
unsafe fn twos<const J: usize>(qs: *const u8) -> __m256i {
    // SAFETY: 64 readable bytes at qs and AVX2, by the contract of Super.
    unsafe {
        let v = load32(qs.add(32 * (J / 4)));
        let v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(2 * (J % 4) as i32));
        _mm256_and_si256(v, _mm256_set1_epi8(3))
    }
}

/// `bit` in each byte whose bit J is set in the 32 bytes at `p`.
#[inline(always)]
unsafe fn plane<const J: usize>(p: *const u8, bit: i8) -> __m256i {
    // SAFETY: 32 readable bytes at p and AVX2, by the contract of Super.
    unsafe {
        let m = _mm256_set1_epi8((1u8 << J) as i8);
        let on = _mm256_cmpeq_epi8(_mm256_and_si256(load32(p), m), m);
        _mm256_and_si256(on, _mm256_set1_epi8(bit))
    }
}

// In the implementations below, offsets are the field offsets of the layouts in `block`.

impl Super for Q2K {
    const BYTES: usize = 84;
    const SYMMETRIC: bool = false;
    const OFFSET: i8 = 0;
    #[inline(always)]
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { twos::<J>(b.add(16)) }
    }
    #[inline(always)]
    unsafe fn scales(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let v = _mm_and_si128(load16(b), _mm_set1_epi8(15));
            even_odd(_mm_and_si128(v, _mm_set1_epi16(255)), _mm_srli_epi16(v, 8))
        }
    }
    #[inline(always)]
    unsafe fn mins(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(load16(b), 4), _mm_set1_epi8(15))) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8) -> (f32, f32) {
        // SAFETY: a whole block by the trait's contract.
        unsafe { (super::isa::half_at(b.add(80)), super::isa::half_at(b.add(82))) }
    }
}

/// The 16 scales of q3_K less 32, as signed bytes.
#[inline(always)]
unsafe fn q3_scales(b: *const u8) -> __m128i {
    // SAFETY: a whole block by the contract of Super.
    unsafe {
        let p = b.add(96);
        let low = p.cast::<u64>().read_unaligned();
        let high = p.add(8).cast::<u32>().read_unaligned() as u64;
        let nib = 0x0f0f_0f0f_0f0f_0f0f_u64;
        let two = 0x0303_0303_u64;
        let first = (high & two) | (((high >> 2) & two) << 32);
        let second = ((high >> 4) & two) | (((high >> 6) & two) << 32);
        let s0 = (low & nib) | (first << 4);
        let s1 = ((low >> 4) & nib) | (second << 4);
        _mm_sub_epi8(_mm_set_epi64x(s1 as i64, s0 as i64), _mm_set1_epi8(32))
    }
}

impl Super for Q3K {
    const BYTES: usize = 110;
    const SYMMETRIC: bool = true;
    const OFFSET: i8 = 4;
    #[inline(always)]
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_or_si256(twos::<J>(b.add(32)), plane::<J>(b, 4)) }
    }
    #[inline(always)]
    unsafe fn scales(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let s = q3_scales(b);
            even_odd(_mm_srai_epi16(_mm_slli_epi16(s, 8), 8), _mm_srai_epi16(s, 8))
        }
    }
    #[inline(always)]
    unsafe fn mins(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_slli_epi16(_mm256_cvtepi8_epi16(q3_scales(b)), 2) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8) -> (f32, f32) {
        // SAFETY: a whole block by the trait's contract.
        unsafe { (super::isa::half_at(b.add(108)), 0.0) }
    }
}

/// Scales and minima of q4_K and q5_K, one byte for each group of 32.
#[inline(always)]
unsafe fn six_bits(p: *const u8) -> (u64, u64) {
    // SAFETY: 12 readable bytes at p by the contract of Super.
    let (a, b, c) = unsafe {
        (
            p.cast::<u32>().read_unaligned(),
            p.add(4).cast::<u32>().read_unaligned(),
            p.add(8).cast::<u32>().read_unaligned(),
        )
    };
    let (six, nib, top) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x3030_3030);
    let sc = (c & nib) | ((a >> 2) & top);
    let mn = ((c >> 4) & nib) | ((b >> 2) & top);
    ((a & six) as u64 | ((sc as u64) << 32), (b & six) as u64 | ((mn as u64) << 32))
}

/// Eight bytes, each for two neighbouring groups of 16.
#[inline(always)]
unsafe fn pairs_of(v: u64) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let v = _mm_cvtsi64_si128(v as i64);
        _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(v, v))
    }
}

/// Nibble J % 2 of 32 bytes of quarter J / 2.
#[inline(always)]
unsafe fn fours<const J: usize>(qs: *const u8) -> __m256i {
    // SAFETY: 128 readable bytes at qs and AVX2, by the contract of Super.
    unsafe {
        let v = load32(qs.add(32 * (J / 2)));
        let v = if J.is_multiple_of(2) { v } else { _mm256_srli_epi16(v, 4) };
        _mm256_and_si256(v, _mm256_set1_epi8(15))
    }
}

macro_rules! affine {
    ($name:ident, $bytes:literal, |$b:ident| $codes:expr) => {
        impl Super for $name {
            const BYTES: usize = $bytes;
            const SYMMETRIC: bool = false;
            const OFFSET: i8 = 0;
            #[inline(always)]
            unsafe fn codes<const J: usize>($b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { $codes }
            }
            #[inline(always)]
            unsafe fn scales(b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe {
                    let v = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(six_bits(b.add(4)).0 as i64));
                    even_odd(v, v)
                }
            }
            #[inline(always)]
            unsafe fn mins(b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { pairs_of(six_bits(b.add(4)).1) }
            }
            #[inline(always)]
            unsafe fn d(b: *const u8) -> (f32, f32) {
                // SAFETY: a whole block by the trait's contract.
                unsafe { (super::isa::half_at(b), super::isa::half_at(b.add(2))) }
            }
        }
    };
}

affine!(Q4K, 144, |b| fours::<J>(b.add(16)));
affine!(Q5K, 176, |b| _mm256_or_si256(fours::<J>(b.add(48)), plane::<J>(b.add(16), 16)));

impl Super for Q6K {
    const BYTES: usize = 210;
    const SYMMETRIC: bool = true;
    const OFFSET: i8 = 32;
    #[inline(always)]
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
        let (h, k) = (J / 4, J % 4);
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let low = load32(b.add(64 * h + 32 * (k % 2)));
            let low = if k < 2 { low } else { _mm256_srli_epi16(low, 4) };
            let high = load32(b.add(128 + 32 * h));
            // Bits 2 k, 2 k + 1 go to bits 4, 5.
            let high = if k < 2 {
                _mm256_sll_epi16(high, _mm_cvtsi32_si128(4 - 2 * k as i32))
            } else {
                _mm256_srl_epi16(high, _mm_cvtsi32_si128(2 * k as i32 - 4))
            };
            _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(15)), _mm256_and_si256(high, _mm256_set1_epi8(0x30)))
        }
    }
    #[inline(always)]
    unsafe fn scales(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let s = load16(b.add(192));
            even_odd(_mm_srai_epi16(_mm_slli_epi16(s, 8), 8), _mm_srai_epi16(s, 8))
        }
    }
    #[inline(always)]
    unsafe fn mins(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_slli_epi16(_mm256_cvtepi8_epi16(load16(b.add(192))), 5) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8) -> (f32, f32) {
        // SAFETY: a whole block by the trait's contract.
        unsafe { (super::isa::half_at(b.add(208)), 0.0) }
    }
}

/// A table of 16 bytes in both halves.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(crate) unsafe fn table(values: &[i8; 16]) -> __m256i {
    // SAFETY: AVX2 by the caller's contract; 16 bytes.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(values.as_ptr().cast())) }
}

/// Nibbles of two groups of 8 bytes: in each the low ones, then the high ones.
///
/// # Safety
/// AVX2; 16 readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn fp4_16(p: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe { _mm256_permute4x64_epi64(nibbles(p), 0b11_01_10_00) }
}

/// 32 codes of two bits from 8 bytes, the first in the lowest bits.
///
/// # Safety
/// AVX2; 8 readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn pairs(p: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe {
        let v = _mm_loadl_epi64(p.cast());
        let (low, high) = (_mm_and_si128(v, _mm_set1_epi8(15)), _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15)));
        // A nibble times 1 + 2^6 has its upper two bits where the next byte begins.
        let w = _mm256_mullo_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(low, high)), _mm256_set1_epi16(65));
        _mm256_and_si256(w, _mm256_set1_epi8(3))
    }
}

/// 256 codes of tq2_0.
///
/// # Safety
/// AVX2; a whole block at `b`.
#[inline(always)]
pub(crate) unsafe fn tq2(b: *const u8) -> [__m256i; 8] {
    // SAFETY: the caller's contract.
    unsafe {
        [twos::<0>(b), twos::<1>(b), twos::<2>(b), twos::<3>(b), twos::<4>(b), twos::<5>(b), twos::<6>(b), twos::<7>(b)]
    }
}

/// 256 codes of tq1_0: a digit is the byte, as a fraction of 256, times 3; the next one comes from what that leaves.
///
/// # Safety
/// AVX2; a whole block at `b`.
#[inline(always)]
pub(crate) unsafe fn tq1(b: *const u8) -> [__m256i; 8] {
    // SAFETY: the caller's contract.
    unsafe {
        let triple = |v| _mm256_add_epi8(v, _mm256_add_epi8(v, v));
        // 1 from 86 on, 2 from 171 on.
        let digit = |v| {
            let one = _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8(86)), v);
            let two = _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8(171u8 as i8)), v);
            _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two))
        };
        let a0 = load32(b);
        let a1 = triple(a0);
        let a2 = triple(a1);
        let a3 = triple(a2);
        let a4 = triple(a3);
        // 16 bytes with five digits: the first two side by side, the next two, the last.
        let c = _mm256_broadcastsi128_si256(load16(b.add(32)));
        let c01 = _mm256_blend_epi32(c, triple(c), 0xf0);
        let c23 = triple(triple(c01));
        let c4 = triple(triple(c23));
        // Four bytes with four digits.
        let q = _mm256_cvtepu8_epi16(_mm_set1_epi32(b.add(48).cast::<i32>().read_unaligned()));
        let power = _mm256_set_epi64x(
            0x001b_001b_001b_001b,
            0x0009_0009_0009_0009,
            0x0003_0003_0003_0003,
            0x0001_0001_0001_0001,
        );
        let q = _mm256_and_si256(_mm256_mullo_epi16(q, power), _mm256_set1_epi16(255));
        let q = _mm_packus_epi16(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        let last = _mm256_inserti128_si256(c4, q, 1);
        [digit(a0), digit(a1), digit(a2), digit(a3), digit(a4), digit(c01), digit(c23), digit(last)]
    }
}

/// The 8 scales of iq4_xs, -32 .. 31.
///
/// # Safety
/// AVX2; a whole block at `b`.
#[inline(always)]
pub(crate) unsafe fn iq4_scales(b: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe {
        let high = _mm256_set1_epi32(b.add(2).cast::<u16>().read_unaligned() as i32);
        let low = _mm256_set1_epi32(b.add(4).cast::<i32>().read_unaligned());
        let high = _mm256_srlv_epi32(high, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
        let low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
        let high = _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4);
        let low = _mm256_and_si256(low, _mm256_set1_epi32(15));
        _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32))
    }
}

/// The body with `$j` as the constants 0 to 7: LLVM leaves a loop of this size rolled, with the shifts variable.
macro_rules! each_eighth {
    ($j:ident => $body:block) => {
        super::unpack::each_eighth!(@ $j $body 0 1 2 3 4 5 6 7)
    };
    (@ $j:ident $body:block $($n:literal)*) => {
        $({
            const $j: usize = $n;
            $body
        })*
    };
}
pub(crate) use each_eighth;

/// The body with `$j` as the constants 0 to 3.
macro_rules! each_quarter {
    ($j:ident => $body:block) => {
        super::unpack::each_eighth!(@ $j $body 0 1 2 3)
    };
}
pub(crate) use each_quarter;
