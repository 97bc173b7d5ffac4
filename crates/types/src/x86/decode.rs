//! Block formats to f32: the portable results, bit for bit (products and sums are rounded one by one, not fused).

use std::arch::x86_64::*;

use super::dot_wide::SCALES;
use super::isa::{half_at, load32};
use super::unpack::{
    bits, each_eighth, fives, fp4_16, nibbles, pairs, table, tq1, tq2, Super, Q2K, Q3K, Q4K, Q5K, Q6K,
};
use super::unpack_iq::{IQ1M, IQ1S, IQ2S, IQ2XS, IQ2XXS, IQ3S, IQ3XXS};
use crate::block::{blocks, BlockIQ4XS};
use crate::kernels::Decode;
use crate::{fp4, iq4, Type};

/// Stores 32 signed codes times d, plus m when `MIN`.
#[inline(always)]
unsafe fn store32<const MIN: bool>(q: __m256i, d: f32, m: f32, y: *mut f32) {
    // SAFETY: AVX2 in the wrapper; the caller has 32 writable floats at y.
    unsafe {
        let (d, m) = (_mm256_set1_ps(d), _mm256_set1_ps(m));
        let (lo, hi) = (_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        let quads = [lo, _mm_srli_si128(lo, 8), hi, _mm_srli_si128(hi, 8)];
        for (i, &v) in quads.iter().enumerate() {
            let f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), d);
            let f = if MIN { _mm256_add_ps(f, m) } else { f };
            _mm256_storeu_ps(y.add(8 * i), f);
        }
    }
}

/// Whole blocks of 32 in both slices: `$codes` gives signed codes, `$min` the place of the minimum if there is one.
macro_rules! blocks32 {
    ($($name:ident($bytes:literal, min: $min:literal, |$b:ident| $codes:expr);)*) => {
        $(
            fn $name(src: &[u8], dst: &mut [f32]) {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn inner(src: &[u8], dst: &mut [f32]) {
                    for (b, y) in src.as_chunks::<$bytes>().0.iter().zip(dst.as_chunks_mut::<32>().0) {
                        // SAFETY: b is a whole block, y 32 floats; the features are enabled here.
                        unsafe {
                            let $b = b.as_ptr();
                            let m = if $min { half_at($b.add(2)) } else { 0.0 };
                            store32::<$min>($codes, half_at($b), m, y.as_mut_ptr());
                        }
                    }
                }
                // SAFETY: `pick` hands this function out on machines with these features only.
                unsafe { inner(src, dst) }
            }
        )*
    };
}

blocks32! {
    q4_0(18, min: false, |b| _mm256_sub_epi8(nibbles(b.add(2)), _mm256_set1_epi8(8)));
    q4_1(20, min: true, |b| nibbles(b.add(4)));
    q5_0(22, min: false, |b| _mm256_sub_epi8(fives(b.add(2), b.add(6)), _mm256_set1_epi8(16)));
    q5_1(24, min: true, |b| fives(b.add(4), b.add(8)));
    q8_0(34, min: false, |b| load32(b.add(2)));
    q8_1(36, min: false, |b| load32(b.add(4)));
    iq4_nl(18, min: false, |b| _mm256_shuffle_epi8(table(&iq4::VALUES), nibbles(b.add(2))));
}

/// Whole blocks of `$n` in both slices, each through `$store`.
macro_rules! blocks_n {
    ($($name:ident($bytes:literal, $n:literal, |$b:ident, $y:ident| $store:expr);)*) => {
        $(
            fn $name(src: &[u8], dst: &mut [f32]) {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn inner(src: &[u8], dst: &mut [f32]) {
                    for (b, y) in src.as_chunks::<$bytes>().0.iter().zip(dst.as_chunks_mut::<$n>().0) {
                        // SAFETY: b is a whole block, y $n floats; the features are enabled here.
                        unsafe {
                            let ($b, $y) = (b.as_ptr(), y.as_mut_ptr());
                            $store
                        }
                    }
                }
                // SAFETY: `pick` hands this function out on machines with these features only.
                unsafe { inner(src, dst) }
            }
        )*
    };
}

blocks_n! {
    mxfp4(17, 32, |b, y| {
        store32::<false>(_mm256_shuffle_epi8(table(&fp4::VALUES), nibbles(b.add(1))), fp4::half_power(*b), 0.0, y)
    });
    nvfp4(36, 64, |b, y| for j in 0..2 {
        let q = _mm256_shuffle_epi8(table(&fp4::VALUES), fp4_16(b.add(4 + 16 * j)));
        let d = [SCALES[*b.add(2 * j) as usize], SCALES[*b.add(2 * j + 1) as usize]];
        let (lo, hi) = (_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        let quads = [lo, _mm_srli_si128(lo, 8), hi, _mm_srli_si128(hi, 8)];
        for (i, &v) in quads.iter().enumerate() {
            let f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), _mm256_set1_ps(d[i / 2]));
            _mm256_storeu_ps(y.add(32 * j + 8 * i), f);
        }
    });
    iq4_xs(136, 256, |b, y| {
        let block = &blocks::<BlockIQ4XS>(std::slice::from_raw_parts(b, 136))[0];
        let (d, scales) = (half_at(b), iq4::scales(block));
        for j in 0..8 {
            let q = _mm256_shuffle_epi8(table(&iq4::VALUES), nibbles(b.add(8 + 16 * j)));
            store32::<false>(q, d * scales[j] as f32, 0.0, y.add(32 * j));
        }
    });
    q1_0(18, 128, |b, y| {
        let d = half_at(b);
        for j in 0..4 {
            // 1 where the bit is set, else -1: exact times d.
            let q = _mm256_or_si256(_mm256_andnot_si256(bits(b.add(2 + 4 * j)), _mm256_set1_epi8(-2)), _mm256_set1_epi8(1));
            store32::<false>(q, d, 0.0, y.add(32 * j));
        }
    });
    q2_0(18, 64, |b, y| {
        let d = half_at(b);
        for j in 0..2 {
            store32::<false>(_mm256_sub_epi8(pairs(b.add(2 + 8 * j)), _mm256_set1_epi8(1)), d, 0.0, y.add(32 * j));
        }
    });
    tq1_0(54, 256, |b, y| {
        let d = half_at(b.add(52));
        for (j, &q) in tq1(b).iter().enumerate() {
            store32::<false>(_mm256_sub_epi8(q, _mm256_set1_epi8(1)), d, 0.0, y.add(32 * j));
        }
    });
    tq2_0(66, 256, |b, y| {
        let d = half_at(b.add(64));
        for (j, &q) in tq2(b).iter().enumerate() {
            store32::<false>(_mm256_sub_epi8(q, _mm256_set1_epi8(1)), d, 0.0, y.add(32 * j));
        }
    });
}

/// Eight values at a time from bytes in words, and the portable conversion for what is left over.
macro_rules! bytes8 {
    ($($name:ident($portable:path, |$w:ident| $e:expr);)*) => {
        $(
            fn $name(src: &[u8], dst: &mut [f32]) {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn inner(src: &[u8], dst: &mut [f32]) {
                    let n = src.len().min(dst.len());
                    let (s, s_rest) = src[..n].as_chunks::<8>();
                    let (d, d_rest) = dst[..n].as_chunks_mut::<8>();
                    for (s, d) in s.iter().zip(d) {
                        // SAFETY: 8 bytes in, 8 floats out; the features are enabled here.
                        unsafe {
                            let $w = _mm_cvtepu8_epi16(_mm_loadl_epi64(s.as_ptr().cast()));
                            _mm256_storeu_ps(d.as_mut_ptr(), $e);
                        }
                    }
                    $portable(s_rest, d_rest);
                }
                // SAFETY: `pick` hands this function out on machines with these features only.
                unsafe { inner(src, dst) }
            }
        )*
    };
}

bytes8! {
    // The f16 of the same bits has an exponent of 8 less; its conversion knows subnormal numbers.
    f8_e4m3(crate::fp8::decode_e4m3, |w| {
        let size = _mm_slli_epi16(_mm_and_si128(w, _mm_set1_epi16(0x7f)), 7);
        let nan = _mm_cmpeq_epi16(size, _mm_set1_epi16(0x7f << 7));
        let size = _mm_blendv_epi8(size, _mm_set1_epi16(0x7e00), nan);
        let sign = _mm_slli_epi16(_mm_and_si128(w, _mm_set1_epi16(0x80)), 8);
        _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(size, sign)), _mm256_set1_ps(256.0))
    });
    f8_e5m2(crate::fp8::decode_e5m2, |w| _mm256_cvtph_ps(_mm_slli_epi16(w, 8)));
}

/// One super-block.
#[inline(always)]
unsafe fn block256<S: Super>(b: *const u8, y: *mut f32) {
    // SAFETY: AVX2 and F16C in the wrapper; the caller has a whole block at b and 256 writable floats at y.
    unsafe {
        let (d, dmin) = S::d(b);
        // Products of f32 with small integers: the order of the factors does not show.
        let mut dl = [0.0f32; 16];
        let mut ml = [0.0f32; 16];
        scaled(S::scales(b), d, &mut dl);
        if !S::SYMMETRIC {
            let m = S::mins(b);
            let dmin = _mm256_set1_ps(dmin);
            let lo = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(m));
            let hi = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(m, 1));
            _mm256_storeu_ps(ml.as_mut_ptr(), _mm256_mul_ps(_mm256_cvtepi32_ps(lo), dmin));
            _mm256_storeu_ps(ml.as_mut_ptr().add(8), _mm256_mul_ps(_mm256_cvtepi32_ps(hi), dmin));
        }
        each_eighth!(J => {
            let q = S::signed_codes::<J>(b);
            let (lo, hi) = (_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
            let quads = [lo, _mm_srli_si128(lo, 8), hi, _mm_srli_si128(hi, 8)];
            for (i, &v) in quads.iter().enumerate() {
                let g = 2 * J + i / 2;
                // `scales` has even groups first.
                let d = _mm256_set1_ps(dl[g / 2 + 8 * (g % 2)]);
                let f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), d);
                let f = if S::SYMMETRIC {
                    f
                } else {
                    _mm256_sub_ps(f, _mm256_set1_ps(ml[g]))
                };
                _mm256_storeu_ps(y.add(32 * J + 8 * i), f);
            }
        });
    }
}

/// d times 16 integers.
#[inline(always)]
unsafe fn scaled(v: __m256i, d: f32, out: &mut [f32; 16]) {
    // SAFETY: AVX2 in the wrapper.
    unsafe {
        let d = _mm256_set1_ps(d);
        let lo = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(v));
        let hi = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(v, 1));
        _mm256_storeu_ps(out.as_mut_ptr(), _mm256_mul_ps(_mm256_cvtepi32_ps(lo), d));
        _mm256_storeu_ps(out.as_mut_ptr().add(8), _mm256_mul_ps(_mm256_cvtepi32_ps(hi), d));
    }
}

macro_rules! blocks256 {
    ($($name:ident: $super:ident;)*) => {
        $(
            fn $name(src: &[u8], dst: &mut [f32]) {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn inner(src: &[u8], dst: &mut [f32]) {
                    for (b, y) in src.chunks_exact($super::BYTES).zip(dst.as_chunks_mut::<256>().0) {
                        // SAFETY: b is a whole block, y 256 floats; the features are enabled here.
                        unsafe { block256::<$super>(b.as_ptr(), y.as_mut_ptr()) };
                    }
                }
                // SAFETY: `pick` hands this function out on machines with these features only.
                unsafe { inner(src, dst) }
            }
        )*
    };
}

blocks256! {
    q2_k: Q2K;
    q3_k: Q3K;
    q4_k: Q4K;
    q5_k: Q5K;
    q6_k: Q6K;
    iq2_xxs: IQ2XXS;
    iq2_xs: IQ2XS;
    iq2_s: IQ2S;
    iq3_xxs: IQ3XXS;
    iq3_s: IQ3S;
    iq1_s: IQ1S;
    iq1_m: IQ1M;
}

fn q8_k(src: &[u8], dst: &mut [f32]) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner(src: &[u8], dst: &mut [f32]) {
        for (b, y) in src.as_chunks::<292>().0.iter().zip(dst.as_chunks_mut::<256>().0) {
            // SAFETY: b is a whole block, y 256 floats; the features are enabled here.
            unsafe {
                let p = b.as_ptr();
                let d = p.cast::<f32>().read_unaligned();
                for j in 0..8 {
                    store32::<false>(load32(p.add(4 + 32 * j)), d, 0.0, y.as_mut_ptr().add(32 * j));
                }
            }
        }
    }
    // SAFETY: `pick` hands this function out on machines with these features only.
    unsafe { inner(src, dst) }
}

/// The decoder of a block format; the machine has AVX2, FMA and F16C.
pub(super) fn pick(ty: Type) -> Option<Decode> {
    let f: Decode = match ty {
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
        Type::IQ2_XXS => iq2_xxs,
        Type::IQ2_XS => iq2_xs,
        Type::IQ2_S => iq2_s,
        Type::IQ3_XXS => iq3_xxs,
        Type::IQ3_S => iq3_s,
        Type::IQ1_S => iq1_s,
        Type::IQ1_M => iq1_m,
        Type::Q8_K => q8_k,
        Type::IQ4_NL => iq4_nl,
        Type::IQ4_XS => iq4_xs,
        Type::MXFP4 => mxfp4,
        Type::NVFP4 => nvfp4,
        Type::TQ1_0 => tq1_0,
        Type::TQ2_0 => tq2_0,
        Type::Q1_0 => q1_0,
        Type::Q2_0 => q2_0,
        Type::F8_E4M3 => f8_e4m3,
        Type::F8_E5M2 => f8_e5m2,
        _ => return None,
    };
    Some(f)
}
