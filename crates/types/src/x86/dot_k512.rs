//! Dot products of the K-quants with q8_K, 64 codes at a time, for AVX-512.

use std::arch::x86_64::*;

use super::isa::{load32, store_sums, Q8K_BYTES};
use super::unpack::{each_quarter, Super, Q2K, Q3K, Q4K, Q5K, Q6K};
use super::unpack_iq::{points8, two, Grid, IQ1M, IQ1S, IQ2S, IQ2XS, IQ2XXS, IQ3S, IQ3XXS};
use crate::kernels::{DotTile, Rows};
use crate::{iq, Type};

/// Codes and scales in vectors of 64.
///
/// # Safety
/// Methods need BMI2 and AVX-512 F, BW, DQ and VL, and a pointer to a whole block.
trait Super512: Super {
    /// Codes of elements 64 J .. 64 J + 64.
    unsafe fn codes64<const J: usize>(b: *const u8) -> __m512i;
}

/// 32 bytes in both halves.
#[inline(always)]
unsafe fn twice(p: *const u8) -> __m512i {
    // SAFETY: 32 readable bytes by the caller's contract.
    unsafe { _mm512_broadcast_i64x4(load32(p)) }
}

/// Both halves shifted right, by `a` and `b` bits in words of 16; what crosses bytes is masked off by the caller.
#[inline(always)]
unsafe fn shift_right(v: __m512i, a: i16, b: i16) -> __m512i {
    // SAFETY: AVX-512BW by the caller's contract.
    unsafe {
        let n = _mm512_inserti64x4(_mm512_set1_epi16(a), _mm256_set1_epi16(b), 1);
        _mm512_srlv_epi16(v, n)
    }
}

/// `on` where bit `a` (low half) or `b` (high half) of the 32 bytes at `p` is set, added to `codes`.
#[inline(always)]
unsafe fn add_plane(codes: __m512i, p: *const u8, a: usize, b: usize, on: i8) -> __m512i {
    // SAFETY: 32 readable bytes and AVX-512BW by the caller's contract.
    unsafe {
        let bits = _mm512_inserti64x4(_mm512_set1_epi8((1u8 << a) as i8), _mm256_set1_epi8((1u8 << b) as i8), 1);
        let set = _mm512_test_epi8_mask(twice(p), bits);
        _mm512_mask_add_epi8(codes, set, codes, _mm512_set1_epi8(on))
    }
}

#[inline(always)]
unsafe fn twos64<const J: usize>(qs: *const u8) -> __m512i {
    let s = 4 * (J % 2) as i16;
    // SAFETY: 64 readable bytes at qs and AVX-512 by the trait's contract.
    unsafe {
        let v = shift_right(twice(qs.add(32 * (J / 2))), s, s + 2);
        _mm512_and_si512(v, _mm512_set1_epi8(3))
    }
}

#[inline(always)]
unsafe fn fours64<const J: usize>(qs: *const u8) -> __m512i {
    // SAFETY: 128 readable bytes at qs and AVX-512 by the trait's contract.
    unsafe { _mm512_and_si512(shift_right(twice(qs.add(32 * J)), 0, 4), _mm512_set1_epi8(15)) }
}

macro_rules! super512 {
    ($name:ident, |$b:ident| $codes:expr) => {
        impl Super512 for $name {
            #[inline(always)]
            unsafe fn codes64<const J: usize>($b: *const u8) -> __m512i {
                // SAFETY: a whole block and the instruction set by the trait's contract.
                unsafe { $codes }
            }
        }
    };
}

super512!(Q2K, |b| twos64::<J>(b.add(16)));
super512!(Q3K, |b| add_plane(twos64::<J>(b.add(32)), b, 2 * J, 2 * J + 1, 4));
super512!(Q4K, |b| fours64::<J>(b.add(16)));
super512!(Q5K, |b| add_plane(fours64::<J>(b.add(48)), b.add(16), 2 * J, 2 * J + 1, 16));
super512!(Q6K, |b| {
    let (h, second) = (J / 2, J % 2 == 1);
    let low = _mm512_loadu_si512(b.add(64 * h).cast());
    let low = if second { _mm512_srli_epi16(low, 4) } else { low };
    let high = twice(b.add(128 + 32 * h));
    // Bits 4 (J % 2) + 0, 1 of the first 32 elements and + 2, 3 of the others go to bits 4, 5.
    let high = if second {
        shift_right(high, 0, 2)
    } else {
        let n = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
        _mm512_sllv_epi16(high, n)
    };
    // (low & 15) | (high & 48) in one step: where the mask 15 is clear, the bit comes from high.
    let nib = _mm512_set1_epi8(15);
    let high = _mm512_and_si512(high, _mm512_set1_epi8(0x30));
    _mm512_ternarylogic_epi64(low, nib, high, 0xea)
});

/// Points of a codebook format, 32 elements at a time: with BMI2 their indices take fewer steps.
///
/// # Safety
/// As `Super512`.
trait Part: Super {
    unsafe fn part<const J: usize>(b: *const u8) -> __m256i;
}

macro_rules! part {
    ($name:ident, |$b:ident| $points:expr) => {
        impl Part for $name {
            #[inline(always)]
            unsafe fn part<const J: usize>($b: *const u8) -> __m256i {
                // SAFETY: a whole block and the instruction set by the trait's contract.
                unsafe { $points }
            }
        }
    };
}

part!(IQ2XXS, |b| Self::magnitudes::<J>(b));
part!(IQ2XS, |b| Self::magnitudes::<J>(b));
part!(IQ2S, |b| points8(&iq::IQ2_S, deposited(b.add(2 + 4 * J), *b.add(66 + J) as u64, 0x300)));
part!(IQ3XXS, |b| Self::magnitudes::<J>(b));
part!(IQ3S, |b| Self::magnitudes::<J>(b));
part!(IQ1S, |b| points8(&iq::IQ1, deposited(b.add(2 + 4 * J), two(b.add(34 + 2 * J)) as u64, 0x700)));
part!(IQ1M, |b| points8(&iq::IQ1, deposited(b.add(4 * J), two(b.add(32 + 2 * J)) as u64 & 0x7777, 0xf00)));

/// Four indices: the bytes at `q`, and above each the next bits of `high`, as many as `mask` has.
#[inline(always)]
unsafe fn deposited(q: *const u8, high: u64, mask: u64) -> [usize; 4] {
    // SAFETY: four readable bytes by the callers, BMI2 by the level.
    let v = unsafe {
        let q = q.cast::<u32>().read_unaligned() as u64;
        _pdep_u64(q, 0x00ff_00ff_00ff_00ff) | _pdep_u64(high, mask * 0x0001_0001_0001_0001)
    } as usize;
    [v & 0xffff, v >> 16 & 0xffff, v >> 32 & 0xffff, v >> 48]
}

/// Elements 64 J .. 64 J + 64 in `Part`'s vectors.
#[inline(always)]
unsafe fn parts<S: Part, const J: usize>(b: *const u8) -> __m512i {
    // SAFETY: a whole block and the instruction set by the trait's contract; J is below 4.
    unsafe {
        let (lo, hi) = match J {
            0 => (S::part::<0>(b), S::part::<1>(b)),
            1 => (S::part::<2>(b), S::part::<3>(b)),
            2 => (S::part::<4>(b), S::part::<5>(b)),
            _ => (S::part::<6>(b), S::part::<7>(b)),
        };
        _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1)
    }
}

/// Codes 64 J .. 64 J + 64 of a codebook format with signs.
#[inline(always)]
unsafe fn signed64<S: Grid + Part, const J: usize>(b: *const u8) -> __m512i {
    // SAFETY: a whole block and the instruction set by the trait's contract.
    unsafe {
        let m = parts::<S, J>(b);
        let signs = _mm512_castsi256_si512(S::signs(b));
        let eight = _mm512_permutexvar_epi64(_mm512_set1_epi64(J as i64), signs);
        let pick = _mm512_set_epi64(
            0x0707_0707_0707_0707,
            0x0606_0606_0606_0606,
            0x0505_0505_0505_0505,
            0x0404_0404_0404_0404,
            0x0303_0303_0303_0303,
            0x0202_0202_0202_0202,
            0x0101_0101_0101_0101,
            0,
        );
        let bit = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
        let on = _mm512_test_epi8_mask(_mm512_shuffle_epi8(eight, pick), bit);
        let offset = _mm512_set1_epi8(S::OFFSET);
        _mm512_mask_sub_epi8(_mm512_add_epi8(offset, m), on, offset, m)
    }
}

super512!(IQ2XXS, |b| signed64::<Self, J>(b));
super512!(IQ2XS, |b| signed64::<Self, J>(b));
super512!(IQ2S, |b| signed64::<Self, J>(b));
super512!(IQ3XXS, |b| signed64::<Self, J>(b));
super512!(IQ3S, |b| signed64::<Self, J>(b));
super512!(IQ1S, |b| parts::<Self, J>(b));
super512!(IQ1M, |b| {
    // Eights whose shift, the top bit of a nibble, is up are 2 larger; no byte carries into the next.
    let up = _pext_u32(!b.add(32 + 4 * J).cast::<u32>().read_unaligned(), 0x8888_8888) as u8;
    let points = parts::<Self, J>(b);
    _mm512_mask_add_epi64(points, up, points, _mm512_set1_epi8(2))
});

/// C columns with one row of x. Each pair has its own sums, so C does not show in the result.
#[inline(always)]
unsafe fn group<S: Super512, const R: usize, const C: usize>(
    nb: usize,
    x: Rows,
    y: Rows,
    out: *mut f32,
    out_stride: usize,
) {
    // SAFETY: R and C rows of nb blocks are readable and their results writable, by DotTile's contract; the wrapper
    // has the instruction set.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); C]; R];
        // Word l of quarter J multiplies elements 64 J + 2 l and the next: group 4 J + l / 8. The even groups' scales
        // are words 0..8, the odd ones' 8..16.
        let pick = _mm512_set_epi64(
            0x0009_0009_0009_0009,
            0x0009_0009_0009_0009,
            0x0001_0001_0001_0001,
            0x0001_0001_0001_0001,
            0x0008_0008_0008_0008,
            0x0008_0008_0008_0008,
            0,
            0,
        );
        for i in 0..nb {
            for r in 0..R {
                let b = x.ptr.add(r * x.stride + i * S::BYTES);
                let scales = _mm512_castsi256_si512(S::scales(b));
                let mins = S::mins(b);
                let (d, dmin) = S::d(b);
                let mut sum = [_mm512_setzero_si512(); C];
                each_quarter!(J => {
                    let codes = S::codes64::<J>(b);
                    let at = _mm512_add_epi16(pick, _mm512_set1_epi16(2 * J as i16));
                    let scale = _mm512_permutexvar_epi16(at, scales);
                    for c in 0..C {
                        let q = _mm512_loadu_si512(y.ptr.add(c * y.stride + i * Q8K_BYTES + 4 + 64 * J).cast());
                        // Codes are at most 124, so the pair sums fit in i16.
                        sum[c] = _mm512_dpwssd_epi32(sum[c], scale, _mm512_maddubs_epi16(codes, q));
                    }
                });
                for c in 0..C {
                    let yb = y.ptr.add(c * y.stride + i * Q8K_BYTES);
                    let yd = yb.cast::<f32>().read_unaligned();
                    let low = _mm256_madd_epi16(mins, load32(yb.add(260)));
                    let s = _mm512_extracti64x4_epi64(sum[c], 1);
                    let s = _mm256_add_epi32(_mm512_castsi512_si256(sum[c]), s);
                    if S::SYMMETRIC {
                        let s = _mm256_cvtepi32_ps(_mm256_sub_epi32(s, low));
                        acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                    } else {
                        let (s, m) = (_mm256_cvtepi32_ps(s), _mm256_cvtepi32_ps(low));
                        acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                        acc[r][c] = _mm256_fnmadd_ps(m, _mm256_set1_ps(dmin * yd), acc[r][c]);
                    }
                }
            }
        }
        store_sums(&acc, out, out_stride);
    }
}

super::isa::tiles!(group, Super512, 256, 1);

super::isa::tile_fn!("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni";
    q2: Q2K, q3: Q3K, q4: Q4K, q5: Q5K, q6: Q6K,
    iq2_xxs: IQ2XXS, iq2_xs: IQ2XS, iq2_s: IQ2S, iq3_xxs: IQ3XXS, iq3_s: IQ3S, iq1_s: IQ1S, iq1_m: IQ1M);

/// The dot product of `ty`, if it is one of these formats; the machine has the level `Avx512`.
pub(super) fn pick(ty: Type) -> Option<DotTile> {
    let f: DotTile = match ty {
        Type::Q2_K => q2,
        Type::Q3_K => q3,
        Type::Q4_K => q4,
        Type::Q5_K => q5,
        Type::Q6_K => q6,
        Type::IQ2_XXS => iq2_xxs,
        Type::IQ2_XS => iq2_xs,
        Type::IQ2_S => iq2_s,
        Type::IQ3_XXS => iq3_xxs,
        Type::IQ3_S => iq3_s,
        Type::IQ1_S => iq1_s,
        Type::IQ1_M => iq1_m,
        _ => return None,
    };
    Some(f)
}
