//! Registers of AVX2, AVX-VNNI and AVX-512.

use super::*;
use std::arch::x86_64::*;

/// The instruction that `_mm_prefetch` makes only where all of the program may have it. A processor with AVX2 but without it does nothing.
#[inline(always)]
fn prefetchw(p: *const u32) {
    #[cfg(not(miri))]
    // SAFETY: this touches nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) p, options(nostack, preserves_flags));
    }
    #[cfg(miri)]
    let _ = p;
}

macro_rules! zmm {
    () => {
        const N: usize = 16;
        lanes! {
            fn splat(unit: u32) -> Self {
                Self(_mm512_set1_epi32(unit.cast_signed()))
            }
            fn load(p: *const u32) -> Self {
                Self(_mm512_loadu_si512(p.cast()))
            }
            fn store(self, p: *mut u32) {
                _mm512_storeu_si512(p.cast(), self.0)
            }
            fn stream(self, p: *mut u32) {
                _mm512_stream_si512(p.cast(), self.0)
            }
            fn will_write(p: *const u32) {
                prefetchw(p)
            }
        }
    };
}

/// # Safety
/// As [`Lanes::finish`].
#[inline(always)]
unsafe fn finish512(v: __m512, x_scale: f32, w_scale: *const f32, bias: *const f32) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let mut v = _mm512_mul_ps(v, _mm512_set1_ps(x_scale));
        if !w_scale.is_null() {
            v = _mm512_mul_ps(v, _mm512_loadu_ps(w_scale));
        }
        if !bias.is_null() {
            v = _mm512_add_ps(v, _mm512_loadu_ps(bias));
        }
        _mm512_castps_si512(v)
    }
}

#[derive(Clone, Copy)]
struct Zmm(__m512i);

impl Lanes for Zmm {
    const UP: bool = true;
    zmm!();
    lanes! {
        fn step(self, w: Self, x: Self) -> Self {
            Self(_mm512_dpbusd_epi32(self.0, w.0, x.0))
        }
        fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
            Self(finish512(_mm512_cvtepi32_ps(self.0), x_scale, w_scale, bias))
        }
    }
}

#[derive(Clone, Copy)]
struct ZmmFloats(__m512i);

impl Lanes for ZmmFloats {
    zmm!();
    lanes! {
        fn step(self, w: Self, x: Self) -> Self {
            let product = _mm512_mul_ps(_mm512_castsi512_ps(w.0), _mm512_castsi512_ps(x.0));
            Self(_mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(self.0), product)))
        }
        fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
            Self(finish512(_mm512_castsi512_ps(self.0), x_scale, w_scale, bias))
        }
    }
}

macro_rules! ymm {
    () => {
        const N: usize = 8;
        lanes! {
            fn splat(unit: u32) -> Self {
                Self(_mm256_set1_epi32(unit.cast_signed()))
            }
            fn load(p: *const u32) -> Self {
                Self(_mm256_loadu_si256(p.cast()))
            }
            fn store(self, p: *mut u32) {
                _mm256_storeu_si256(p.cast(), self.0)
            }
            fn will_write(p: *const u32) {
                prefetchw(p)
            }
        }
    };
}

/// # Safety
/// As [`Lanes::finish`].
#[inline(always)]
unsafe fn finish256(v: __m256, x_scale: f32, w_scale: *const f32, bias: *const f32) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let mut v = _mm256_mul_ps(v, _mm256_set1_ps(x_scale));
        if !w_scale.is_null() {
            v = _mm256_mul_ps(v, _mm256_loadu_ps(w_scale));
        }
        if !bias.is_null() {
            v = _mm256_add_ps(v, _mm256_loadu_ps(bias));
        }
        _mm256_castps_si256(v)
    }
}

#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Lanes for Ymm {
    const UP: bool = true;
    ymm!();
    lanes! {
        fn step(self, w: Self, x: Self) -> Self {
            Self(_mm256_dpbusd_avx_epi32(self.0, w.0, x.0))
        }
        fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
            Self(finish256(_mm256_cvtepi32_ps(self.0), x_scale, w_scale, bias))
        }
    }
}

/// Without VNNI: the bytes' products of two cannot be summed in 16 bits, those of 16-bit integers can be in 32.
#[derive(Clone, Copy)]
struct YmmPairs(__m256i);

impl Lanes for YmmPairs {
    ymm!();
    lanes! {
        fn step(self, w: Self, x: Self) -> Self {
            Self(_mm256_add_epi32(self.0, _mm256_madd_epi16(w.0, x.0)))
        }
        fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
            Self(finish256(_mm256_cvtepi32_ps(self.0), x_scale, w_scale, bias))
        }
    }
}

#[derive(Clone, Copy)]
struct YmmFloats(__m256i);

impl Lanes for YmmFloats {
    ymm!();
    lanes! {
        fn step(self, w: Self, x: Self) -> Self {
            let product = _mm256_mul_ps(_mm256_castsi256_ps(w.0), _mm256_castsi256_ps(x.0));
            Self(_mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(self.0), product)))
        }
        fn finish(self, x_scale: f32, w_scale: *const f32, bias: *const f32) -> Self {
            Self(finish256(_mm256_castsi256_ps(self.0), x_scale, w_scale, bias))
        }
    }
}

tiles!(VNNI, Zmm, "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2", 4, 2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
tiles!(AVX512_FLOATS, ZmmFloats, "avx512f,avx512bw,avx512vl,avx512dq,avx2", 1, 2, [1, 2, 3, 4, 5, 6, 7, 8]);
tiles!(AVX_VNNI, Ymm, "avxvnni,avx2", 4, 2, [1, 2, 3, 4, 5, 6]);
tiles!(AVX2, YmmPairs, "avx2", 2, 2, [1, 2, 3, 4, 5]);
tiles!(AVX2_FLOATS, YmmFloats, "avx2", 1, 2, [1, 2, 3, 4, 5]);
