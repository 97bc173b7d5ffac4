//! The codes of the codebook formats as vectors of 32 unsigned bytes, signs and shifts in place, and their scales.
//! What depends on the block alone is computed anew for each vector of codes: the compiler does it once.

use std::arch::x86_64::*;

use super::isa::{half_at, load16, load32};
use super::unpack::{even_odd, Super};
use crate::iq;

/// Points without their signs.
///
/// # Safety
/// As `Super`.
pub(super) trait Grid: Super {
    /// Magnitudes of elements 32 J .. 32 J + 32.
    unsafe fn magnitudes<const J: usize>(b: *const u8) -> __m256i;
    /// The 256 sign bits of the block, in element order.
    unsafe fn signs(b: *const u8) -> __m256i;
}

pub(crate) struct IQ2XXS;
pub(crate) struct IQ2XS;
pub(crate) struct IQ2S;
pub(crate) struct IQ3XXS;
pub(crate) struct IQ3S;
pub(crate) struct IQ1S;
pub(crate) struct IQ1M;

/// Four points of eight bytes.
#[inline(always)]
pub(super) unsafe fn points8<const N: usize>(grid: &[u64; N], at: [usize; 4]) -> __m256i {
    debug_assert!(at.iter().all(|&i| i < N));
    // SAFETY: AVX2 by the contract of Super; the callers' indices have as many bits as the grid has points.
    unsafe {
        let p = |i: usize| *grid.get_unchecked(at[i]) as i64;
        _mm256_set_epi64x(p(3), p(2), p(1), p(0))
    }
}

/// Eight points of four bytes.
#[inline(always)]
unsafe fn points4<const N: usize>(grid: &[u32; N], at: [usize; 8]) -> __m256i {
    debug_assert!(at.iter().all(|&i| i < N));
    // SAFETY: AVX2 by the contract of Super; the callers' indices have as many bits as the grid has points.
    unsafe {
        let p = |i: usize| *grid.get_unchecked(at[i]) as i32;
        _mm256_set_epi32(p(7), p(6), p(5), p(4), p(3), p(2), p(1), p(0))
    }
}

/// `offset` plus the magnitudes of elements 32 J .. 32 J + 32, those whose bit is set negative.
#[inline(always)]
unsafe fn offset_signed<const J: usize>(magnitudes: __m256i, signs: __m256i, offset: i8) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let half = if J < 4 {
            _mm256_permute2x128_si256(signs, signs, 0x00)
        } else {
            _mm256_permute2x128_si256(signs, signs, 0x11)
        };
        let pick = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let pick = _mm256_add_epi8(pick, _mm256_set1_epi8(4 * (J % 4) as i8));
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        let on = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(half, pick), bit), bit);
        // -m = (m ^ -1) + 1.
        let offset = _mm256_sub_epi8(_mm256_set1_epi8(offset), on);
        _mm256_add_epi8(_mm256_xor_si256(magnitudes, on), offset)
    }
}

/// The top bit of each byte set where the other seven have an odd number of bits.
#[inline(always)]
unsafe fn even_signs(s: __m256i) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let odd = _mm256_set_epi64x(
            0x0080_8000_8000_0080_u64 as i64,
            0x8000_0080_0080_8000_u64 as i64,
            0x0080_8000_8000_0080_u64 as i64,
            0x8000_0080_0080_8000_u64 as i64,
        );
        let nib = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(odd, _mm256_and_si256(s, nib));
        let high = _mm256_shuffle_epi8(odd, _mm256_and_si256(_mm256_srli_epi16(s, 4), nib));
        _mm256_or_si256(s, _mm256_xor_si256(low, high))
    }
}

/// Four times seven bits of each word as bytes, with their eighth bits.
#[inline(always)]
unsafe fn spread_sevens(w: __m256i) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let part = |v: __m256i, mask: i32| _mm256_and_si256(v, _mm256_set1_epi32(mask));
        let a = _mm256_or_si256(part(w, 0x7f), part(_mm256_slli_epi32(w, 1), 0x7f00));
        let b = _mm256_or_si256(part(_mm256_slli_epi32(w, 2), 0x7f_0000), part(_mm256_slli_epi32(w, 3), 0x7f00_0000));
        even_signs(_mm256_or_si256(a, b))
    }
}

/// Sixteen codes of scales, as bytes, to odd numbers 2 code + 1 in the order of `Super::scales`.
#[inline(always)]
unsafe fn odd_scales(codes: __m128i) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let v = _mm_or_si128(_mm_slli_epi16(codes, 1), _mm_set1_epi8(1));
        even_odd(_mm_and_si128(v, _mm_set1_epi16(255)), _mm_srli_epi16(v, 8))
    }
}

/// The nibbles of the bytes in the low half, low ones first.
#[inline(always)]
unsafe fn nibbles8(v: __m128i) -> __m128i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe { _mm_and_si128(_mm_unpacklo_epi8(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15)) }
}

/// The top nibbles of eight words, each twice.
#[inline(always)]
unsafe fn top_nibbles(w: __m256i) -> __m128i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let pick = _mm256_set1_epi64x(0x0c0c_0808_0404_0000);
        let v = _mm256_shuffle_epi8(_mm256_srli_epi32(w, 28), pick);
        _mm_unpacklo_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1))
    }
}

/// Scales in the order of `Super::scales` times the offset, in element order.
#[inline(always)]
unsafe fn offset_mins(scales: __m256i, offset: i16) -> __m256i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let (even, odd) = (_mm256_castsi256_si128(scales), _mm256_extracti128_si256(scales, 1));
        let low = _mm_unpacklo_epi16(even, odd);
        let both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_unpackhi_epi16(even, odd), 1);
        _mm256_mullo_epi16(both, _mm256_set1_epi16(offset))
    }
}

#[inline(always)]
pub(super) unsafe fn two(p: *const u8) -> usize {
    // SAFETY: two readable bytes by the callers.
    unsafe { p.cast::<u16>().read_unaligned() as usize }
}

#[inline(always)]
unsafe fn four(p: *const u8) -> usize {
    // SAFETY: four readable bytes by the callers.
    unsafe { p.cast::<u32>().read_unaligned() as usize }
}

#[inline(always)]
unsafe fn eight(p: *const u8) -> u64 {
    // SAFETY: eight readable bytes by the callers.
    unsafe { p.cast::<u64>().read_unaligned() }
}

/// Sixteen indices: the bytes at `q`, and above them the bits `mask` of the bytes of `high`, of which `pick` puts one
/// beside each and `shift` multiplies it.
#[inline(always)]
unsafe fn indices(q: *const u8, high: __m256i, pick: __m256i, shift: __m256i, mask: i16) -> __m256i {
    // SAFETY: AVX2 by the contract of Super; 16 readable bytes by the callers.
    unsafe {
        let high = _mm256_mullo_epi16(_mm256_shuffle_epi8(high, pick), shift);
        _mm256_or_si256(_mm256_cvtepu8_epi16(load16(q)), _mm256_and_si256(high, _mm256_set1_epi16(mask)))
    }
}

/// A byte of each half, four times, each in a word of 16 bits.
const fn beside(at: u64) -> i64 {
    (0x8000_8000_8000_8000 | (at * 0x0001_0001_0001_0001)) as i64
}

/// The K % 4th four of sixteen indices, as four numbers.
#[inline(always)]
unsafe fn four_of<const K: usize>(v: __m256i, mask: usize) -> [usize; 4] {
    // SAFETY: AVX2 by the contract of Super.
    let v = unsafe {
        match K % 4 {
            0 => _mm256_extract_epi64(v, 0),
            1 => _mm256_extract_epi64(v, 1),
            2 => _mm256_extract_epi64(v, 2),
            _ => _mm256_extract_epi64(v, 3),
        }
    } as usize;
    [v & mask, v >> 16 & mask, v >> 32 & mask, v >> 48 & mask]
}

/// The words of signs and scales of iq2_xxs.
#[inline(always)]
unsafe fn xxs_words(b: *const u8) -> __m256i {
    // SAFETY: a whole block by the contract of Super.
    unsafe {
        let (lo, hi) = (_mm256_castsi256_ps(load32(b.add(2))), _mm256_castsi256_ps(load32(b.add(34))));
        let odd = _mm256_castps_si256(_mm256_shuffle_ps(lo, hi, 0b11_01_11_01));
        _mm256_permute4x64_epi64(odd, 0b11_01_10_00)
    }
}

/// A format of magnitudes and signs: x = d unit (2 step + 1) (code - offset).
macro_rules! signed_grid {
    ($name:ident, $bytes:literal, offset: $offset:literal, unit: $unit:literal, |$b:ident|
        steps: $steps:expr, signs: $signs:expr, magnitudes: $magnitudes:expr) => {
        impl Grid for $name {
            #[inline(always)]
            unsafe fn magnitudes<const J: usize>($b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { $magnitudes }
            }
            #[inline(always)]
            unsafe fn signs($b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { $signs }
            }
        }

        impl Super for $name {
            const BYTES: usize = $bytes;
            const SYMMETRIC: bool = true;
            const OFFSET: i8 = $offset;
            #[inline(always)]
            unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { offset_signed::<J>(Self::magnitudes::<J>(b), Self::signs(b), $offset) }
            }
            #[inline(always)]
            unsafe fn scales($b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { odd_scales($steps) }
            }
            #[inline(always)]
            unsafe fn mins(b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { offset_mins(Self::scales(b), $offset) }
            }
            #[inline(always)]
            unsafe fn d(b: *const u8) -> (f32, f32) {
                // SAFETY: a whole block by the trait's contract.
                unsafe { (half_at(b) * $unit, 0.0) }
            }
        }
    };
}

// In the implementations below, offsets are the field offsets of the layouts in `block`.

signed_grid! { IQ2XXS, 66, offset: 43, unit: 0.125, |b|
    steps: top_nibbles(xxs_words(b)),
    signs: spread_sevens(xxs_words(b)),
    magnitudes: {
        let q = four(b.add(2 + 8 * J));
        points8(&iq::IQ2_XXS, [q & 255, q >> 8 & 255, q >> 16 & 255, q >> 24])
    }
}

signed_grid! { IQ2XS, 74, offset: 43, unit: 0.125, |b|
    steps: nibbles8(_mm_cvtsi64_si128(eight(b.add(66)) as i64)),
    signs: {
        let (lo, hi) = (_mm256_srli_epi16(load32(b.add(2)), 9), _mm256_srli_epi16(load32(b.add(34)), 9));
        even_signs(_mm256_permute4x64_epi64(_mm256_packus_epi16(lo, hi), 0b11_01_10_00))
    },
    magnitudes: {
        let q = eight(b.add(2 + 8 * J)) as usize;
        points8(&iq::IQ2_XS, [q & 511, q >> 16 & 511, q >> 32 & 511, q >> 48 & 511])
    }
}

signed_grid! { IQ2S, 82, offset: 43, unit: 0.125, |b|
    steps: nibbles8(_mm_cvtsi64_si128(eight(b.add(74)) as i64)),
    signs: load32(b.add(34)),
    magnitudes: {
        let half = J / 4;
        let high = _mm256_set1_epi32(four(b.add(66 + 4 * half)) as i32);
        let pick = _mm256_setr_epi64x(beside(0), beside(1), beside(2), beside(3));
        let shift = _mm256_set1_epi64x(0x0004_0010_0040_0100);
        let v = indices(b.add(2 + 16 * half), high, pick, shift, 0x300);
        points8(&iq::IQ2_S, four_of::<J>(v, 1023))
    }
}

signed_grid! { IQ3XXS, 98, offset: 62, unit: 0.25, |b|
    steps: top_nibbles(load32(b.add(66))),
    signs: spread_sevens(load32(b.add(66))),
    magnitudes: {
        let q = eight(b.add(2 + 8 * J)) as usize;
        points4(&iq::IQ3_XXS, std::array::from_fn(|k| q >> (8 * k) & 255))
    }
}

signed_grid! { IQ3S, 110, offset: 15, unit: 1.0, |b|
    steps: {
        let v = nibbles8(_mm_cvtsi32_si128(four(b.add(106)) as i32));
        _mm_unpacklo_epi8(v, v)
    },
    signs: load32(b.add(74)),
    magnitudes: {
        let pair = J / 2;
        let high = _mm256_set1_epi16(two(b.add(66 + 2 * pair)) as i16);
        let pick = _mm256_setr_epi64x(beside(0), beside(0), beside(1), beside(1));
        let shift = _mm256_broadcastsi128_si256(_mm_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2));
        let v = indices(b.add(2 + 16 * pair), high, pick, shift, 256);
        let (a, c) = if J.is_multiple_of(2) {
            (four_of::<0>(v, 511), four_of::<1>(v, 511))
        } else {
            (four_of::<2>(v, 511), four_of::<3>(v, 511))
        };
        points4(&iq::IQ3_S, [a[0], a[1], a[2], a[3], c[0], c[1], c[2], c[3]])
    }
}

impl Super for IQ1S {
    const BYTES: usize = 50;
    const SYMMETRIC: bool = true;
    const OFFSET: i8 = 8;
    #[inline(always)]
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let (q, h) = (four(b.add(2 + 4 * J)), two(b.add(34 + 2 * J)));
            let at = |k: usize| q >> (8 * k) & 255 | (h >> (3 * k) & 7) << 8;
            points8(&iq::IQ1, [at(0), at(1), at(2), at(3)])
        }
    }
    /// The shift is the same for 32 elements, so the dot product takes it with the minima.
    #[inline(always)]
    unsafe fn signed_codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let down = two(b.add(34 + 2 * J)) & 0x8000 != 0;
            _mm256_sub_epi8(Self::codes::<J>(b), _mm256_set1_epi8(if down { 9 } else { 7 }))
        }
    }
    #[inline(always)]
    unsafe fn scales(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let v = odd_words(load16(b.add(34)));
            even_odd(v, v)
        }
    }
    #[inline(always)]
    unsafe fn mins(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let words = load16(b.add(34));
            let (scale, down) = (odd_words(words), _mm_srai_epi16(words, 15));
            // 9 scale where the shift is down, 7 scale elsewhere.
            let up = _mm_sub_epi16(_mm_xor_si128(scale, down), down);
            let v = _mm_sub_epi16(_mm_slli_epi16(scale, 3), up);
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi16(v, v)), _mm_unpackhi_epi16(v, v), 1)
        }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8) -> (f32, f32) {
        // SAFETY: a whole block by the trait's contract.
        unsafe { (half_at(b) * 0.125, 0.0) }
    }
}

/// The scales of the words of iq1_s.
#[inline(always)]
unsafe fn odd_words(words: __m128i) -> __m128i {
    // SAFETY: AVX2 by the contract of Super.
    unsafe {
        let v = _mm_and_si128(_mm_srli_epi16(words, 11), _mm_set1_epi16(14));
        _mm_or_si128(v, _mm_set1_epi16(1))
    }
}

impl Super for IQ1M {
    const BYTES: usize = 56;
    const SYMMETRIC: bool = true;
    const OFFSET: i8 = 9;
    #[inline(always)]
    unsafe fn codes<const J: usize>(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let (half, h) = (J / 4, two(b.add(32 + 2 * J)));
            let high = _mm256_set1_epi64x(eight(b.add(32 + 8 * half)) as i64);
            // Two groups share a byte.
            let pick = _mm256_setr_epi64x(
                beside(0) + 0x0001_0001_0000_0000,
                beside(2) + 0x0001_0001_0000_0000,
                beside(4) + 0x0001_0001_0000_0000,
                beside(6) + 0x0001_0001_0000_0000,
            );
            let v = indices(b.add(16 * half), high, pick, _mm256_set1_epi32(0x0010_0100), 0x700);
            let points = points8(&iq::IQ1, four_of::<J>(v, 2047));
            // The shift's bit is the top one of each nibble; up adds 2.
            let bit = _mm256_setr_epi64x(
                0x0008_0008_0008_0008,
                0x0080_0080_0080_0080,
                0x0800_0800_0800_0800,
                0x8000_8000_8000_8000_u64 as i64,
            );
            let clear = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(h as i16), bit), _mm256_setzero_si256());
            _mm256_add_epi8(points, _mm256_and_si256(clear, _mm256_set1_epi8(2)))
        }
    }
    #[inline(always)]
    unsafe fn scales(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            // Each word of 16 bits holds four groups; even ones go to the low half.
            let v = _mm256_set1_epi64x(eight(b.add(48)) as i64);
            let v = _mm256_slli_epi64(_mm256_srlv_epi64(v, _mm256_setr_epi64x(0, 6, 3, 9)), 1);
            let v = _mm256_or_si256(_mm256_and_si256(v, _mm256_set1_epi16(14)), _mm256_set1_epi16(1));
            _mm256_unpacklo_epi16(v, _mm256_unpackhi_epi64(v, v))
        }
    }
    #[inline(always)]
    unsafe fn mins(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { offset_mins(Self::scales(b), 9) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8) -> (f32, f32) {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let w = eight(b.add(48));
            let d = w >> 12 & 15 | w >> 24 & 0xf0 | w >> 36 & 0xf00 | w >> 48 & 0xf000;
            (_mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(d as i32))) * 0.125, 0.0)
        }
    }
}
