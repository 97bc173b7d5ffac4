//! Lanes as two 256-bit registers.

use super::lanes::{Lanes, LANES};
use std::arch::x86_64::*;

/// Sixteen f32 in two registers, low half first.
#[derive(Clone, Copy)]
pub struct Avx2(__m256, __m256);

/// Sum of eight lanes, halves first.
#[inline(always)]
pub(super) unsafe fn sum8(v: __m256) -> f32 {
    // SAFETY: AVX is there: the caller's promise.
    unsafe {
        let q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let d = _mm_add_ps(q, _mm_movehl_ps(q, q));
        _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps::<1>(d, d)))
    }
}

/// Largest of eight lanes, halves first.
#[inline(always)]
pub(super) unsafe fn max8(v: __m256) -> f32 {
    // SAFETY: AVX is there: the caller's promise.
    unsafe {
        let q = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let d = _mm_max_ps(q, _mm_movehl_ps(q, q));
        _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps::<1>(d, d)))
    }
}

/// Sum of four f64 lanes, halves first.
#[inline(always)]
pub(super) unsafe fn sum4_f64(v: __m256d) -> f64 {
    // SAFETY: AVX is there: the caller's promise.
    unsafe {
        let d = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
        _mm_cvtsd_f64(_mm_add_sd(d, _mm_unpackhi_pd(d, d)))
    }
}

macro_rules! two {
    ($($name:ident($($o:ident),*) = $intr:path;)*) => {
        $(#[inline(always)]
        unsafe fn $name(self $(, $o: Self)*) -> Self {
            // SAFETY: AVX2 and FMA are there by the trait's contract.
            unsafe { Avx2($intr(self.0 $(, $o.0)*), $intr(self.1 $(, $o.1)*)) }
        })*
    };
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
const ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

#[inline(always)]
unsafe fn abs1(x: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), x) }
}

#[inline(always)]
unsafe fn neg1(x: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_xor_ps(_mm256_set1_ps(-0.0), x) }
}

#[inline(always)]
unsafe fn copysign1(x: __m256, s: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let m = _mm256_set1_ps(-0.0);
        _mm256_or_ps(_mm256_andnot_ps(m, x), _mm256_and_ps(m, s))
    }
}

#[inline(always)]
unsafe fn scale1(x: __m256, n: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        // Two steps, since one power of two does not reach from the largest to the smallest result; the first is exact.
        let n = _mm256_cvtps_epi32(n);
        let a = _mm256_srai_epi32::<1>(n);
        let b = _mm256_sub_epi32(n, a);
        let bias = _mm256_set1_epi32(127);
        let pa = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(a, bias)));
        let pb = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(b, bias)));
        _mm256_mul_ps(_mm256_mul_ps(x, pa), pb)
    }
}

#[inline(always)]
unsafe fn bf16_bits(x: __m256) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let i = _mm256_castps_si256(x);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(i), _mm256_set1_epi32(1));
        let r = _mm256_srli_epi32::<16>(_mm256_add_epi32(i, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))));
        let quiet = _mm256_or_si256(_mm256_srli_epi32::<16>(i), _mm256_set1_epi32(64));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
        _mm256_blendv_epi8(r, quiet, nan)
    }
}

impl Lanes for Avx2 {
    const WIDE: bool = false;
    type Mask = (__m256, __m256);

    two! {
        add(o) = _mm256_add_ps;
        sub(o) = _mm256_sub_ps;
        mul(o) = _mm256_mul_ps;
        div(o) = _mm256_div_ps;
        fma(b, c) = _mm256_fmadd_ps;
        fnma(b, c) = _mm256_fnmadd_ps;
        max(o) = _mm256_max_ps;
        min(o) = _mm256_min_ps;
        sqrt() = _mm256_sqrt_ps;
        abs() = abs1;
        neg() = neg1;
        copysign(s) = copysign1;
        round_even() = _mm256_round_ps::<NEAREST>;
        floor() = _mm256_round_ps::<DOWN>;
        ceil() = _mm256_round_ps::<UP>;
        trunc() = _mm256_round_ps::<ZERO>;
        scale2(n) = scale1;
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Avx2(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> Self {
        let mut a = [0.0f32; LANES];
        // SAFETY: n < 16 values are good by the trait's contract.
        unsafe {
            std::ptr::copy_nonoverlapping(p, a.as_mut_ptr(), n);
            Self::load(a.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe {
            _mm256_storeu_ps(p, self.0);
            _mm256_storeu_ps(p.add(8), self.1);
        }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize) {
        let mut a = [0.0f32; LANES];
        // SAFETY: n < 16 values are good by the trait's contract.
        unsafe {
            self.store(a.as_mut_ptr());
            std::ptr::copy_nonoverlapping(a.as_ptr(), p, n);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Avx2(_mm256_cvtph_ps(_mm_loadu_si128(p.cast())), _mm256_cvtph_ps(_mm_loadu_si128(p.add(8).cast()))) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        // SAFETY: the trait's contract.
        unsafe {
            _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0));
            _mm_storeu_si128(p.add(8).cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.1));
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> Self {
        // SAFETY: the trait's contract.
        unsafe {
            let half = |q: *const u16| {
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(q.cast()))))
            };
            Avx2(half(p), half(p.add(8)))
        }
    }
    #[inline(always)]
    unsafe fn store_bf16(self, p: *mut u16) {
        // SAFETY: the trait's contract.
        unsafe {
            let packed = _mm256_packus_epi32(bf16_bits(self.0), bf16_bits(self.1));
            _mm256_storeu_si256(p.cast(), _mm256_permute4x64_epi64::<0b11_01_10_00>(packed));
        }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Avx2(_mm256_set1_ps(x), _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn lt(self, o: Self) -> Self::Mask {
        // SAFETY: the trait's contract.
        unsafe { (_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, o.0), _mm256_cmp_ps::<_CMP_LT_OQ>(self.1, o.1)) }
    }
    #[inline(always)]
    unsafe fn select(m: Self::Mask, a: Self, b: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe { Avx2(_mm256_blendv_ps(b.0, a.0, m.0), _mm256_blendv_ps(b.1, a.1, m.1)) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe { sum8(_mm256_add_ps(self.0, self.1)) }
    }
    #[inline(always)]
    unsafe fn sum_f64(self) -> f64 {
        // SAFETY: the trait's contract.
        unsafe {
            let lo = _mm256_add_pd(
                _mm256_cvtps_pd(_mm256_castps256_ps128(self.0)),
                _mm256_cvtps_pd(_mm256_castps256_ps128(self.1)),
            );
            let hi = _mm256_add_pd(
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.0)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.1)),
            );
            sum4_f64(_mm256_add_pd(lo, hi))
        }
    }
    #[inline(always)]
    unsafe fn hmax(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe { max8(_mm256_max_ps(self.0, self.1)) }
    }
}
