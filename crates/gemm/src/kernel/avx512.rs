//! 512-bit vectors.

use super::lanes::{kernel_table, lane_methods, Lanes};
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct Zmm(pub(crate) __m512);

#[inline(always)]
fn mask(n: usize) -> u16 {
    if n >= 16 {
        u16::MAX
    } else {
        (1 << n) - 1
    }
}

impl Lanes for Zmm {
    const LANES: usize = 16;
    lane_methods! {
        fn zero() -> Self {
            Zmm(_mm512_setzero_ps())
        }
        fn splat(v: f32) -> Self {
            Zmm(_mm512_set1_ps(v))
        }
        fn load(p: *const f32) -> Self {
            Zmm(_mm512_loadu_ps(p))
        }
        fn store(self, p: *mut f32) {
            _mm512_storeu_ps(p, self.0)
        }
        fn load_n(p: *const f32, n: usize) -> Self {
            Zmm(_mm512_maskz_loadu_ps(mask(n), p))
        }
        fn store_n(self, p: *mut f32, n: usize) {
            _mm512_mask_storeu_ps(p, mask(n), self.0)
        }
        fn load_f16(p: *const u16) -> Self {
            Zmm(_mm512_cvtph_ps(_mm256_loadu_si256(p.cast())))
        }
        fn load_f16_n(p: *const u16, n: usize) -> Self {
            Zmm(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask(n), p.cast())))
        }
        fn load_bf16(p: *const u16) -> Self {
            widen_bf16(_mm256_loadu_si256(p.cast()))
        }
        fn load_bf16_n(p: *const u16, n: usize) -> Self {
            widen_bf16(_mm256_maskz_loadu_epi16(mask(n), p.cast()))
        }
        fn load_bf16_pair(p: *const u16) -> (Self, Self) {
            // The even values moved up, the odd ones left where they are: cheaper than widening each half.
            let v = _mm512_loadu_si512(p.cast());
            let odd = _mm512_and_si512(v, _mm512_set1_epi32(0xffff_0000_u32 as i32));
            (Zmm(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(v))), Zmm(_mm512_castsi512_ps(odd)))
        }
        fn bf16_order(lo: Self, hi: Self) -> (Self, Self) {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
            (Zmm(_mm512_permutex2var_ps(lo.0, even, hi.0)), Zmm(_mm512_permutex2var_ps(lo.0, odd, hi.0)))
        }
        fn fma(self, a: Self, b: Self) -> Self {
            Zmm(_mm512_fmadd_ps(a.0, b.0, self.0))
        }
        fn add(self, o: Self) -> Self {
            Zmm(_mm512_add_ps(self.0, o.0))
        }
        fn mul(self, o: Self) -> Self {
            Zmm(_mm512_mul_ps(self.0, o.0))
        }
        fn sum(self) -> f32 {
            _mm512_reduce_add_ps(self.0)
        }
        fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize) {
            let mut r = [_mm512_setzero_ps(); 16];
            for (i, v) in r.iter_mut().enumerate() {
                *v = load(i).0;
            }
            // Interleave single values of row pairs, then pairs of pairs, then quarters of registers.
            let mut t = r;
            for i in 0..8 {
                t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            // s[4 q + c]: column c (+4 per quarter) of rows 4 q to 4 q + 3
            let mut s = t;
            for q in 0..4 {
                let (a, b, c, d) = (
                    _mm512_castps_pd(t[4 * q]),
                    _mm512_castps_pd(t[4 * q + 1]),
                    _mm512_castps_pd(t[4 * q + 2]),
                    _mm512_castps_pd(t[4 * q + 3]),
                );
                s[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
                s[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
                s[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
                s[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
            }
            let mut o = s;
            for c in 0..4 {
                let lo01 = _mm512_shuffle_f32x4::<0x88>(s[c], s[4 + c]);
                let hi01 = _mm512_shuffle_f32x4::<0xdd>(s[c], s[4 + c]);
                let lo23 = _mm512_shuffle_f32x4::<0x88>(s[8 + c], s[12 + c]);
                let hi23 = _mm512_shuffle_f32x4::<0xdd>(s[8 + c], s[12 + c]);
                o[c] = _mm512_shuffle_f32x4::<0x88>(lo01, lo23);
                o[8 + c] = _mm512_shuffle_f32x4::<0xdd>(lo01, lo23);
                o[4 + c] = _mm512_shuffle_f32x4::<0x88>(hi01, hi23);
                o[12 + c] = _mm512_shuffle_f32x4::<0xdd>(hi01, hi23);
            }
            if keep == 16 && steps == 16 {
                for (i, &v) in o.iter().enumerate() {
                    _mm512_storeu_ps(dst.add(i * pitch), v);
                }
            } else {
                let m = mask(keep);
                for (i, &v) in o.iter().enumerate() {
                    if i < steps {
                        _mm512_mask_storeu_ps(dst.add(i * pitch), m, v);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn widen_bf16(v: __m256i) -> Zmm {
    // SAFETY: the caller runs with avx512f.
    unsafe { Zmm(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(v)))) }
}

kernel_table! {
    lanes: Zmm, features: "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c", vectors: 2, halves: 1,
    columns: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    dot_rows: [8 / 1, 6 / 2, 4 / 3, 4 / 4, 4 / 5, 4 / 6]
}
