//! 256-bit vectors with FMA and F16C.

use super::lanes::{kernel_table, lane_methods, staged, Lanes};
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct Ymm(pub(crate) __m256);

/// Eight all-ones words, then eight zero words: an unaligned load from it is the mask of the first n lanes.
static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
unsafe fn mask(n: usize) -> __m256i {
    // SAFETY: n <= 8 keeps the load inside the table.
    unsafe { _mm256_loadu_si256(MASKS.as_ptr().add(8 - n.min(8)).cast()) }
}

impl Lanes for Ymm {
    const LANES: usize = 8;
    lane_methods! {
        fn zero() -> Self {
            Ymm(_mm256_setzero_ps())
        }
        fn splat(v: f32) -> Self {
            Ymm(_mm256_set1_ps(v))
        }
        fn load(p: *const f32) -> Self {
            Ymm(_mm256_loadu_ps(p))
        }
        fn store(self, p: *mut f32) {
            _mm256_storeu_ps(p, self.0)
        }
        fn load_n(p: *const f32, n: usize) -> Self {
            Ymm(_mm256_maskload_ps(p, mask(n)))
        }
        fn store_n(self, p: *mut f32, n: usize) {
            _mm256_maskstore_ps(p, mask(n), self.0)
        }
        fn load_f16(p: *const u16) -> Self {
            Ymm(_mm256_cvtph_ps(_mm_loadu_si128(p.cast())))
        }
        fn load_f16_n(p: *const u16, n: usize) -> Self {
            Self::load_f16(staged::<u16, 8>(p, n).as_ptr())
        }
        fn load_bf16(p: *const u16) -> Self {
            let v = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            Ymm(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)))
        }
        fn load_bf16_n(p: *const u16, n: usize) -> Self {
            Self::load_bf16(staged::<u16, 8>(p, n).as_ptr())
        }
        fn fma(self, a: Self, b: Self) -> Self {
            Ymm(_mm256_fmadd_ps(a.0, b.0, self.0))
        }
        fn add(self, o: Self) -> Self {
            Ymm(_mm256_add_ps(self.0, o.0))
        }
        fn mul(self, o: Self) -> Self {
            Ymm(_mm256_mul_ps(self.0, o.0))
        }
        fn sum(self) -> f32 {
            let v = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
        fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize) {
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, v) in r.iter_mut().enumerate() {
                *v = load(i).0;
            }
            let mut t = r;
            for i in 0..4 {
                t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut s = t;
            for q in 0..2 {
                s[4 * q] = _mm256_shuffle_ps::<0x44>(t[4 * q], t[4 * q + 2]);
                s[4 * q + 1] = _mm256_shuffle_ps::<0xee>(t[4 * q], t[4 * q + 2]);
                s[4 * q + 2] = _mm256_shuffle_ps::<0x44>(t[4 * q + 1], t[4 * q + 3]);
                s[4 * q + 3] = _mm256_shuffle_ps::<0xee>(t[4 * q + 1], t[4 * q + 3]);
            }
            let mut o = s;
            for c in 0..4 {
                o[c] = _mm256_permute2f128_ps::<0x20>(s[c], s[4 + c]);
                o[4 + c] = _mm256_permute2f128_ps::<0x31>(s[c], s[4 + c]);
            }
            if keep == 8 && steps == 8 {
                for (i, &v) in o.iter().enumerate() {
                    _mm256_storeu_ps(dst.add(i * pitch), v);
                }
            } else {
                let m = mask(keep);
                for (i, &v) in o.iter().enumerate() {
                    if i < steps {
                        _mm256_maskstore_ps(dst.add(i * pitch), m, v);
                    }
                }
            }
        }
    }
}

kernel_table! {
    lanes: Ymm, features: "avx2,fma,f16c", vectors: 2, halves: 1,
    columns: [1, 2, 3, 4, 5, 6],
    dot_rows: [6 / 1, 4 / 2, 3 / 3, 2 / 4, 2 / 5, 2 / 6]
}
