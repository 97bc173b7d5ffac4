//! Rows of f16 and bf16 to f32 and back: the portable results, bit for bit.

use std::arch::x86_64::*;

use crate::float;
use crate::kernels::{Decode, Encode};
use crate::Type;

/// A conversion of groups of 8, with the portable one for what is left over.
macro_rules! decode8 {
    ($name:ident, $rest:path, |$p:ident| $e:expr) => {
        fn $name(src: &[u8], dst: &mut [f32]) {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn inner(src: &[u8], dst: &mut [f32]) {
                let n = (src.len() / 2).min(dst.len());
                let (src, dst) = (&src[..2 * n], &mut dst[..n]);
                let (s, s_rest) = src.as_chunks::<16>();
                let (d, d_rest) = dst.as_chunks_mut::<8>();
                for (s, d) in s.iter().zip(d) {
                    // SAFETY: 16 bytes in, 8 floats out; the features are enabled here.
                    unsafe {
                        let $p = _mm_loadu_si128(s.as_ptr().cast());
                        _mm256_storeu_ps(d.as_mut_ptr(), $e);
                    }
                }
                $rest(s_rest, d_rest);
            }
            // SAFETY: `pick_decode` hands this function out on machines with these features only.
            unsafe { inner(src, dst) }
        }
    };
}

macro_rules! encode8 {
    ($name:ident, $rest:path, |$v:ident| $e:expr) => {
        fn $name(src: &[f32], dst: &mut [u8]) {
            #[target_feature(enable = "avx2,fma,f16c")]
            fn inner(src: &[f32], dst: &mut [u8]) {
                let n = src.len().min(dst.len() / 2);
                let (src, dst) = (&src[..n], &mut dst[..2 * n]);
                let (s, s_rest) = src.as_chunks::<8>();
                let (d, d_rest) = dst.as_chunks_mut::<16>();
                for (s, d) in s.iter().zip(d) {
                    // SAFETY: 8 floats in, 16 bytes out; the features are enabled here.
                    unsafe {
                        let $v = _mm256_loadu_ps(s.as_ptr());
                        _mm_storeu_si128(d.as_mut_ptr().cast(), $e);
                    }
                }
                $rest(s_rest, d_rest);
            }
            // SAFETY: `pick_encode` hands this function out on machines with these features only.
            unsafe { inner(src, dst) }
        }
    };
}

decode8!(f16_f32, float::decode_f16, |p| _mm256_cvtph_ps(p));
decode8!(bf16_f32, float::decode_bf16, |p| _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(p), 16)));
encode8!(f32_f16, float::encode_f16, |v| to_f16(v));
encode8!(f32_bf16, float::encode_bf16, |v| to_bf16(v));

/// Eight f16; the instruction keeps a NaN's payload, ggml gives one NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_f16(v: __m256) -> __m128i {
    let h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    let nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    let nan = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
    let sign = _mm_and_si128(h, _mm_set1_epi16(i16::MIN));
    let quiet = _mm_or_si128(sign, _mm_set1_epi16(0x7e00));
    _mm_blendv_epi8(h, quiet, nan)
}

/// Eight bf16, nearest even, NaN quieted.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_bf16(v: __m256) -> __m128i {
    let w = _mm256_castps_si256(v);
    let odd = _mm256_and_si256(_mm256_srli_epi32(w, 16), _mm256_set1_epi32(1));
    let r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(w, _mm256_set1_epi32(0x7fff)), odd), 16);
    let quiet = _mm256_or_si256(_mm256_srli_epi32(w, 16), _mm256_set1_epi32(64));
    let nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    let r = _mm256_blendv_epi8(r, quiet, nan);
    _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1))
}

/// The decoder of a float format; the machine has AVX2 and F16C.
pub(super) fn pick_decode(ty: Type) -> Option<Decode> {
    match ty {
        Type::F16 => Some(f16_f32),
        Type::BF16 => Some(bf16_f32),
        _ => None,
    }
}

/// The encoder of a float format; the machine has AVX2 and F16C.
pub(super) fn pick_encode(ty: Type) -> Option<Encode> {
    match ty {
        Type::F16 => Some(f32_f16),
        Type::BF16 => Some(f32_bf16),
        _ => None,
    }
}
