//! Lanes as one 512-bit register.

use super::lanes::Lanes;
use std::arch::x86_64::*;

/// Sixteen f32 in a register.
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
const ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

#[inline(always)]
unsafe fn low(n: usize) -> __mmask16 {
    (1u32 << n).wrapping_sub(1) as __mmask16
}

macro_rules! f {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $body:expr;)*) => {
        $(#[inline(always)]
        unsafe fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: AVX-512 is there and pointers are good for the lanes touched, by the trait's contract.
            unsafe { $body }
        })*
    };
}

impl Lanes for Avx512 {
    const WIDE: bool = true;
    type Mask = __mmask16;

    f! {
        load(p: *const f32) -> Self = Avx512(_mm512_loadu_ps(p));
        load_n(p: *const f32, n: usize) -> Self = Avx512(_mm512_maskz_loadu_ps(low(n), p));
        load_f16(p: *const u16) -> Self = Avx512(_mm512_cvtph_ps(_mm256_loadu_si256(p.cast())));
        load_bf16(p: *const u16) -> Self =
            Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())))));
        splat(x: f32) -> Self = Avx512(_mm512_set1_ps(x));
        select(m: __mmask16, a: Self, b: Self) -> Self = Avx512(_mm512_mask_blend_ps(m, b.0, a.0));
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize) {
        // SAFETY: the trait's contract; masked lanes are not touched.
        unsafe { _mm512_mask_storeu_ps(p, low(n), self.0) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        // SAFETY: the trait's contract.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0)) }
    }
    #[inline(always)]
    unsafe fn store_bf16(self, p: *mut u16) {
        // SAFETY: the trait's contract.
        unsafe {
            let x = _mm512_castps_si512(self.0);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(1));
            let r = _mm512_srli_epi32::<16>(_mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0);
            let quiet = _mm512_or_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(64));
            let r = _mm512_mask_blend_epi32(nan, r, quiet);
            _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(r));
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_add_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_sub_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_mul_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_div_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn fnma(self, b: Self, c: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_fnmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_max_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_min_ps(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_andnot_ps(_mm512_set1_ps(-0.0), self.0) })
    }
    #[inline(always)]
    unsafe fn neg(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_xor_ps(_mm512_set1_ps(-0.0), self.0) })
    }
    #[inline(always)]
    unsafe fn copysign(self, s: Self) -> Self {
        // SAFETY: the trait's contract.
        unsafe {
            let m = _mm512_set1_ps(-0.0);
            Avx512(_mm512_or_ps(_mm512_andnot_ps(m, self.0), _mm512_and_ps(m, s.0)))
        }
    }
    #[inline(always)]
    unsafe fn round_even(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_roundscale_ps::<NEAREST>(self.0) })
    }
    #[inline(always)]
    unsafe fn floor(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_roundscale_ps::<DOWN>(self.0) })
    }
    #[inline(always)]
    unsafe fn ceil(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_roundscale_ps::<UP>(self.0) })
    }
    #[inline(always)]
    unsafe fn trunc(self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_roundscale_ps::<ZERO>(self.0) })
    }
    #[inline(always)]
    unsafe fn scale2(self, n: Self) -> Self {
        // SAFETY: the trait's contract.
        Avx512(unsafe { _mm512_scalef_ps(self.0, n.0) })
    }
    #[inline(always)]
    unsafe fn lt(self, o: Self) -> __mmask16 {
        // SAFETY: the trait's contract.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, o.0) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            let h = _mm256_add_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            super::x86_avx2::sum8(h)
        }
    }
    #[inline(always)]
    unsafe fn sum_f64(self) -> f64 {
        // SAFETY: the trait's contract.
        unsafe {
            let lo = _mm512_cvtps_pd(_mm512_castps512_ps256(self.0));
            let hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self.0));
            let s = _mm512_add_pd(lo, hi);
            let q = _mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd::<1>(s));
            super::x86_avx2::sum4_f64(q)
        }
    }
    #[inline(always)]
    unsafe fn hmax(self) -> f32 {
        // SAFETY: the trait's contract.
        unsafe {
            let h = _mm256_max_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            super::x86_avx2::max8(h)
        }
    }
}
