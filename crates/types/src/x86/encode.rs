//! f32 to block formats: the portable results, bit for bit. The 8-bit formats have kernels of their own, since every
//! matrix product with quantised weights makes rows of them; the others are the portable code compiled for AVX2.

use std::arch::x86_64::*;

use crate::block::{blocks_mut, BlockQ8K, BlockQ8_0, BlockQ8_1};
use crate::clean::{inverse, limit};
use crate::float::scale_f16;
use crate::kernels::{Encode, EncodeWeighted};
use crate::search::encoders;
use crate::{fp4, iq, iq4, kquants as k, q4, q5, q8, ternary, Type};

macro_rules! compiled {
    ($($name:ident = $portable:path;)*) => {
        $(
            fn $name(src: &[f32], dst: &mut [u8]) {
                #[target_feature(enable = "avx2,f16c")]
                fn inner(src: &[f32], dst: &mut [u8]) {
                    $portable(src, dst)
                }
                // SAFETY: `pick` hands this function out on machines with AVX2 only.
                unsafe { inner(src, dst) }
            }
        )*
    };
}

macro_rules! compiled_weighted {
    ($($name:ident = $portable:path;)*) => {
        $(
            fn $name(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
                #[target_feature(enable = "avx2,f16c")]
                fn inner(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
                    $portable(src, dst, imatrix)
                }
                // SAFETY: `pick_weighted` hands this function out on machines with AVX2 only.
                unsafe { inner(src, dst, imatrix) }
            }
        )*
    };
}

compiled! {
    q4_0 = q4::encode_q4_0;
    q4_1 = q4::encode_q4_1;
    q5_0 = q5::encode_q5_0;
    q5_1 = q5::encode_q5_1;
    q2_k = k::encode_q2_k;
    q3_k = k::encode_q3_k;
    q4_k = k::encode_q4_k;
    q5_k = k::encode_q5_k;
    q6_k = k::encode_q6_k;
    iq4_nl = iq4::encode_iq4_nl;
    mxfp4 = fp4::encode_mxfp4;
    nvfp4 = fp4::encode_nvfp4;
    tq1_0 = ternary::encode_tq1_0;
    tq2_0 = ternary::encode_tq2_0;
    q1_0 = ternary::encode_q1_0;
    q2_0 = ternary::encode_q2_0;
}

compiled_weighted! {
    q4_0_w = q4::encode_q4_0_weighted;
    q4_1_w = q4::encode_q4_1_weighted;
    q5_0_w = q5::encode_q5_0_weighted;
    q5_1_w = q5::encode_q5_1_weighted;
    q2_k_w = k::encode_q2_k_weighted;
    q3_k_w = k::encode_q3_k_weighted;
    q4_k_w = k::encode_q4_k_weighted;
    q5_k_w = k::encode_q5_k_weighted;
    q6_k_w = k::encode_q6_k_weighted;
    iq2_xxs_w = iq::encode_iq2_xxs_weighted;
    iq2_xs_w = iq::encode_iq2_xs_weighted;
    iq1_s_w = iq::encode_iq1_s_weighted;
}

encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq4_nl_searched = crate::iq4::search_iq4_nl
);
encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq4_xs = crate::iq4::search_iq4_xs
);
encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq2_s = crate::iq::search_iq2_s
);
encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq3_xxs = crate::iq::search_iq3_xxs
);
encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq3_s = crate::iq::search_iq3_s
);
encoders!(
    #[target_feature(enable = "avx2,f16c")]
    iq1_m = crate::iq::search_iq1_m
);

/// The largest magnitude's bits: as integers, magnitudes order like the floats, with what is not finite on top.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn top_bits(v: &[__m256]) -> u32 {
    let mask = _mm256_set1_epi32(0x7fff_ffff);
    let mut m = _mm256_setzero_si256();
    for &x in v {
        m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_castps_si256(x), mask));
    }
    let q = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    let d = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0b01_00_11_10));
    _mm_cvtsi128_si32(_mm_max_epi32(d, _mm_shuffle_epi32(d, 0b10_11_00_01))) as u32
}

const INFINITE: u32 = 0x7f80_0000;

/// 32 values to signed bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn pack32(i: [__m256i; 4]) -> __m256i {
    // The packs work inside halves; the permutation puts the groups of four back in order.
    let a = _mm256_packs_epi16(_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3]));
    _mm256_permutevar8x32_epi32(a, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// v * id to the nearest integer, ties away from zero: the largest float below a half, with the sign of the value, is
/// added before truncation. Magnitudes stay at 127 unless the scale was limited, so the clamp is one instruction.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn round_away(v: __m256, id: __m256) -> __m256i {
    let x = _mm256_mul_ps(v, id);
    let half = _mm256_set1_ps(f32::from_bits(0x3eff_ffff));
    let half = _mm256_or_ps(half, _mm256_and_ps(x, _mm256_set1_ps(-0.0)));
    let x = _mm256_add_ps(x, half);
    // Truncation of anything past i32 gives i32::MIN, which would turn a positive saturated value negative.
    let x = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-127.0)), _mm256_set1_ps(127.0));
    _mm256_cvttps_epi32(x)
}

/// Scale and codes of 32 values; None when some value is not finite.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn codes32(x: &[f32; 32]) -> Option<(f32, [__m256i; 4])> {
    // SAFETY: four times 8 floats of x.
    let v: [__m256; 4] = unsafe {
        let p = x.as_ptr();
        [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8)), _mm256_loadu_ps(p.add(16)), _mm256_loadu_ps(p.add(24))]
    };
    let top = top_bits(&v);
    if top >= INFINITE {
        return None;
    }
    let d = limit(f32::from_bits(top) / 127.0);
    let id = _mm256_set1_ps(inverse(d));
    Some((d, [round_away(v[0], id), round_away(v[1], id), round_away(v[2], id), round_away(v[3], id)]))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn half_of(d: f32) -> [u8; 2] {
    // d is finite and limited, so the instruction and `scale_f16` agree.
    let h = _mm_cvtps_ph(_mm_set_ss(d), _MM_FROUND_TO_NEAREST_INT);
    (_mm_cvtsi128_si32(h) as u16).to_ne_bytes()
}

fn q8_0(src: &[f32], dst: &mut [u8]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner(src: &[f32], dst: &mut [u8]) {
        for (x, b) in src.as_chunks::<32>().0.iter().zip(dst.as_chunks_mut::<34>().0) {
            match codes32(x) {
                Some((d, i)) => {
                    let b = &mut blocks_mut::<BlockQ8_0>(b)[0];
                    b.d = half_of(d);
                    // SAFETY: 32 writable bytes.
                    unsafe { _mm256_storeu_si256(b.qs.as_mut_ptr().cast(), pack32(i)) };
                }
                None => q8::encode_q8_0(x, b),
            }
        }
    }
    // SAFETY: `pick` hands this function out on machines with these features only.
    unsafe { inner(src, dst) }
}

fn q8_1(src: &[f32], dst: &mut [u8]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner(src: &[f32], dst: &mut [u8]) {
        for (x, b) in src.as_chunks::<32>().0.iter().zip(dst.as_chunks_mut::<36>().0) {
            match codes32(x) {
                Some((d, i)) => {
                    let b = &mut blocks_mut::<BlockQ8_1>(b)[0];
                    let s = _mm256_add_epi32(_mm256_add_epi32(i[0], i[1]), _mm256_add_epi32(i[2], i[3]));
                    let s = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
                    let s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0b01_00_11_10));
                    let s = _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0b10_11_00_01)));
                    b.d = half_of(d);
                    b.s = scale_f16(s as f32 * d);
                    // SAFETY: 32 writable bytes.
                    unsafe { _mm256_storeu_si256(b.qs.as_mut_ptr().cast(), pack32(i)) };
                }
                None => q8::encode_q8_1(x, b),
            }
        }
    }
    // SAFETY: `pick` hands this function out on machines with these features only.
    unsafe { inner(src, dst) }
}

/// The first element of the magnitude `top`, with its sign.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn first_of(v: &[__m256; 32], x: &[f32; 256], top: u32) -> f32 {
    let (mask, want) = (_mm256_set1_epi32(0x7fff_ffff), _mm256_set1_epi32(top as i32));
    for (i, &v) in v.iter().enumerate() {
        let eq = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(v), mask), want);
        let bits = _mm256_movemask_ps(_mm256_castsi256_ps(eq));
        if bits != 0 {
            return x[8 * i + bits.trailing_zeros() as usize];
        }
    }
    0.0
}

fn q8_k(src: &[f32], dst: &mut [u8]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner(src: &[f32], dst: &mut [u8]) {
        for (x, b) in src.as_chunks::<256>().0.iter().zip(dst.as_chunks_mut::<292>().0) {
            let mut v = [_mm256_setzero_ps(); 32];
            for (v, x) in v.iter_mut().zip(x.as_chunks::<8>().0) {
                // SAFETY: 8 floats.
                *v = unsafe { _mm256_loadu_ps(x.as_ptr()) };
            }
            let top = top_bits(&v);
            if top > q8::Q8K_HUGE.to_bits() || f32::from_bits(top) < q8::Q8K_TINY {
                q8::encode_q8_k(x, b);
                continue;
            }
            let b = &mut blocks_mut::<BlockQ8K>(b)[0];
            let iscale = -127.0 / first_of(&v, x, top);
            let m = _mm256_set1_ps(iscale);
            let mut sums = [_mm256_setzero_si256(); 8];
            for j in 0..8 {
                // |iscale * x| is at most 127 and a rounding error, so no clamp is needed.
                let i: [__m256i; 4] = [
                    _mm256_cvtps_epi32(_mm256_mul_ps(v[4 * j], m)),
                    _mm256_cvtps_epi32(_mm256_mul_ps(v[4 * j + 1], m)),
                    _mm256_cvtps_epi32(_mm256_mul_ps(v[4 * j + 2], m)),
                    _mm256_cvtps_epi32(_mm256_mul_ps(v[4 * j + 3], m)),
                ];
                let q = pack32(i);
                // SAFETY: bytes 32 j .. 32 j + 32 of 256.
                unsafe { _mm256_storeu_si256(b.qs.as_mut_ptr().add(32 * j).cast(), q) };
                let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
                sums[j] = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            }
            for (h, s) in sums.as_chunks::<4>().0.iter().enumerate() {
                // Low half: the even groups' sums; high half: the odd ones'.
                let t = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
                let (even, odd) = (_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
                let w = _mm_packs_epi32(_mm_unpacklo_epi32(even, odd), _mm_unpackhi_epi32(even, odd));
                // SAFETY: bytes 16 h .. 16 h + 16 of 32.
                unsafe { _mm_storeu_si128(b.bsums.as_mut_ptr().add(16 * h).cast(), w) };
            }
            b.d = (1.0 / iscale).to_ne_bytes();
        }
    }
    // SAFETY: `pick` hands this function out on machines with these features only.
    unsafe { inner(src, dst) }
}

/// The encoder of a block format; the machine has AVX2, FMA and F16C.
pub(super) fn pick(ty: Type) -> Option<Encode> {
    let f: Encode = match ty {
        Type::Q4_0 => q4_0,
        Type::Q4_1 => q4_1,
        Type::Q5_0 => q5_0,
        Type::Q5_1 => q5_1,
        Type::Q8_0 => q8_0,
        Type::Q8_1 => q8_1,
        Type::Q2_K => q2_k,
        Type::Q3_K => q3_k,
        Type::Q4_K => q4_k,
        Type::Q5_K => q5_k,
        Type::Q6_K => q6_k,
        Type::IQ2_S => iq2_s::plain,
        Type::IQ3_XXS => iq3_xxs::plain,
        Type::IQ3_S => iq3_s::plain,
        Type::Q8_K => q8_k,
        Type::IQ4_NL => iq4_nl,
        Type::IQ4_XS => iq4_xs::plain,
        Type::MXFP4 => mxfp4,
        Type::NVFP4 => nvfp4,
        Type::TQ1_0 => tq1_0,
        Type::TQ2_0 => tq2_0,
        Type::Q1_0 => q1_0,
        Type::Q2_0 => q2_0,
        _ => return None,
    };
    Some(f)
}

/// The encoder that files are made with, where that is another; the machine has AVX2, FMA and F16C.
pub(super) fn pick_searched(ty: Type) -> Option<Encode> {
    match ty {
        Type::IQ4_NL => Some(iq4_nl_searched::plain),
        Type::IQ1_M => Some(iq1_m::plain),
        _ => None,
    }
}

/// The encoder with importance weights; the machine has AVX2, FMA and F16C.
pub(super) fn pick_weighted(ty: Type) -> Option<EncodeWeighted> {
    let f: EncodeWeighted = match ty {
        Type::Q4_0 => q4_0_w,
        Type::Q4_1 => q4_1_w,
        Type::Q5_0 => q5_0_w,
        Type::Q5_1 => q5_1_w,
        Type::Q2_K => q2_k_w,
        Type::Q3_K => q3_k_w,
        Type::Q4_K => q4_k_w,
        Type::Q5_K => q5_k_w,
        Type::Q6_K => q6_k_w,
        Type::IQ4_NL => iq4_nl_searched::weighted,
        Type::IQ4_XS => iq4_xs::weighted,
        Type::IQ2_XXS => iq2_xxs_w,
        Type::IQ2_XS => iq2_xs_w,
        Type::IQ2_S => iq2_s::weighted,
        Type::IQ3_XXS => iq3_xxs::weighted,
        Type::IQ3_S => iq3_s::weighted,
        Type::IQ1_S => iq1_s_w,
        Type::IQ1_M => iq1_m::weighted,
        _ => return None,
    };
    Some(f)
}
