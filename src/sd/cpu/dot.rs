//! Exact sums of products of 8-bit integers, in 32 bits: a few rows of weights with a few rows of activations at once. Sums that leave
//! 32 bits wrap, in every kernel alike.

use super::Level;

/// Rows of weights in a tile: memory gives more when it is read in several places. Kernels have too few registers for them with more
/// than two rows of activations, and take [`HALF`] at a time.
pub const ROWS: usize = 8;
const HALF: usize = ROWS / 2;
/// Most rows of activations in a tile, over all kernels.
pub const MAX_STRIP: usize = 6;

/// Sums by row of activations, then row of weights.
pub type Sums = [[i32; ROWS]; MAX_STRIP];

/// A kernel.
#[derive(Clone, Copy)]
pub struct Dot {
    level: Level,
}

impl Dot {
    /// That of a level.
    pub fn new(level: Level) -> Self {
        Dot { level }
    }

    /// Rows of activations that it takes at most.
    pub fn strip(&self) -> usize {
        match self.level {
            Level::Portable => 2,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::AvxVnni => 2,
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => 6,
            #[cfg(target_arch = "aarch64")]
            Level::Dot => 4,
        }
    }

    /// Whether it needs the sums of activations: the instructions multiply bytes without a sign by bytes with one, so weights are
    /// moved up by 128.
    pub fn needs_sums(&self) -> bool {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::AvxVnni | Level::Vnni => true,
            _ => false,
        }
    }

    /// The tile of `w` and `x`; `sums`: those of the activations, where they are needed.
    ///
    /// # Safety
    /// All rows have `k` elements; there are 1 to `strip()` rows of activations.
    #[inline]
    pub unsafe fn tile(&self, w: &[*const i8; ROWS], x: &[*const i8], k: usize, sums: &[i32; MAX_STRIP]) -> Sums {
        let mut out = [[0; ROWS]; MAX_STRIP];
        #[cfg(target_arch = "x86_64")]
        if self.level == Level::Vnni && x.len() <= 2 {
            // SAFETY: the caller's promise; the processor has what the level names.
            unsafe {
                match x.len() {
                    1 => x86::vnni::<1, ROWS>(w, x, k, sums, &mut out, 0),
                    _ => x86::vnni::<2, ROWS>(w, x, k, sums, &mut out, 0),
                }
            }
            return out;
        }
        for (i, w) in w.as_chunks::<HALF>().0.iter().enumerate() {
            let n0 = i * HALF;
            match self.level {
                // SAFETY: the caller's promise.
                Level::Portable => unsafe { portable(w, x, k, &mut out, n0) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the caller's promise; the processor has what the level names.
                Level::Avx2 => unsafe {
                    match x.len() {
                        1 => x86::avx2::<1>(w, x, k, &mut out, n0),
                        _ => x86::avx2::<2>(w, x, k, &mut out, n0),
                    }
                },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::AvxVnni => unsafe {
                    match x.len() {
                        1 => x86::avx_vnni::<1>(w, x, k, sums, &mut out, n0),
                        _ => x86::avx_vnni::<2>(w, x, k, sums, &mut out, n0),
                    }
                },
                #[cfg(target_arch = "aarch64")]
                // SAFETY: as above.
                Level::Dot => unsafe {
                    match x.len() {
                        1 => neon::dot::<1>(w, x, k, &mut out, n0),
                        2 => neon::dot::<2>(w, x, k, &mut out, n0),
                        3 => neon::dot::<3>(w, x, k, &mut out, n0),
                        _ => neon::dot::<4>(w, x, k, &mut out, n0),
                    }
                },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Level::Vnni => unsafe {
                    match x.len() {
                        3 => x86::vnni::<3, HALF>(w, x, k, sums, &mut out, n0),
                        4 => x86::vnni::<4, HALF>(w, x, k, sums, &mut out, n0),
                        5 => x86::vnni::<5, HALF>(w, x, k, sums, &mut out, n0),
                        _ => x86::vnni::<6, HALF>(w, x, k, sums, &mut out, n0),
                    }
                },
            }
        }
        let _ = sums;
        out
    }
}

/// # Safety
/// As [`Dot::tile`].
unsafe fn portable(w: &[*const i8; HALF], x: &[*const i8], k: usize, out: &mut Sums, n0: usize) {
    for (out, &x) in out.iter_mut().zip(x) {
        for (sum, &w) in out[n0..].iter_mut().zip(w) {
            // SAFETY: the caller's promise.
            let (w, x) = unsafe { (std::slice::from_raw_parts(w, k), std::slice::from_raw_parts(x, k)) };
            *sum = tail(w, x);
        }
    }
}

/// The sum of a few products.
#[inline(always)]
fn tail(w: &[i8], x: &[i8]) -> i32 {
    w.iter().zip(x).fold(0, |sum, (&w, &x)| sum.wrapping_add(i32::from(w) * i32::from(x)))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{tail, Sums, HALF, MAX_STRIP, ROWS};
    use crate::sd::cpu::tile::near;
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::Dot::tile`], with `R` rows of activations; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn avx2<const R: usize>(w: &[*const i8; HALF], x: &[*const i8], k: usize, out: &mut Sums, n0: usize) {
        const STEP: usize = 16;
        let mut acc = [[_mm256_setzero_si256(); HALF]; R];
        let whole = k / STEP * STEP;
        for i in (0..whole).step_by(STEP) {
            // SAFETY: `i + 16 <= k`.
            let load = |p: *const i8| unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(p.add(i).cast())) };
            let x: [__m256i; R] = std::array::from_fn(|r| load(x[r]));
            for (n, &w) in w.iter().enumerate() {
                let w = load(w);
                for r in 0..R {
                    acc[r][n] = _mm256_add_epi32(acc[r][n], _mm256_madd_epi16(w, x[r]));
                }
            }
        }
        for r in 0..R {
            for n in 0..HALF {
                // SAFETY: `whole <= k`.
                let rest = unsafe {
                    let part = |p: *const i8| std::slice::from_raw_parts(p.add(whole), k - whole);
                    tail(part(w[n]), part(x[r]))
                };
                out[r][n0 + n] = sum(acc[r][n]).wrapping_add(rest);
            }
        }
    }

    /// The sum of all lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sum(v: __m256i) -> i32 {
        let half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
        let two = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
    }

    /// # Safety
    /// As [`super::Dot::tile`], with `R` rows of activations; the processor has AVX2 with VNNI.
    #[target_feature(enable = "avxvnni,avx2")]
    pub unsafe fn avx_vnni<const R: usize>(
        w: &[*const i8; HALF],
        x: &[*const i8],
        k: usize,
        sums: &[i32; MAX_STRIP],
        out: &mut Sums,
        n0: usize,
    ) {
        const STEP: usize = 32;
        let up = _mm256_set1_epi8(-128);
        let mut acc = [[_mm256_setzero_si256(); HALF]; R];
        let whole = k / STEP * STEP;
        for i in (0..whole).step_by(STEP) {
            // SAFETY: `i + 32 <= k`.
            let load = |p: *const i8| unsafe { _mm256_loadu_si256(p.add(i).cast()) };
            let x: [__m256i; R] = std::array::from_fn(|r| load(x[r]));
            for (n, &w) in w.iter().enumerate() {
                let w = _mm256_xor_si256(load(w), up);
                for r in 0..R {
                    acc[r][n] = _mm256_dpbusd_avx_epi32(acc[r][n], w, x[r]);
                }
            }
        }
        for r in 0..R {
            for n in 0..HALF {
                // SAFETY: `whole <= k`.
                let (w, x) = unsafe {
                    let part = |p: *const i8| std::slice::from_raw_parts(p.add(whole), k - whole);
                    (part(w[n]), part(x[r]))
                };
                // the rest is not moved up
                let moved = x.iter().fold(sums[r], |s, &x| s.wrapping_sub(i32::from(x))).wrapping_mul(128);
                out[r][n0 + n] = sum(acc[r][n]).wrapping_sub(moved).wrapping_add(tail(w, x));
            }
        }
    }

    /// The four sums of four vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2")]
    fn sum4(v: &[__m512i; 4]) -> __m128i {
        let add = |a, b| _mm512_add_epi32(a, b);
        let ab = add(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
        let cd = add(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
        let all = add(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
        _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
    }

    /// # Safety
    /// As [`super::Dot::tile`], with `R` rows of activations; the processor has AVX-512 with VNNI.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2")]
    pub unsafe fn vnni<const R: usize, const N: usize>(
        w: &[*const i8; N],
        x: &[*const i8],
        k: usize,
        sums: &[i32; MAX_STRIP],
        out: &mut Sums,
        n0: usize,
    ) {
        const STEP: usize = 64;
        let up = _mm512_set1_epi8(-128);
        let mut acc = [[_mm512_setzero_si512(); N]; R];
        let x: [*const i8; R] = std::array::from_fn(|r| x[r]);
        let mut i = 0;
        while i + STEP <= k {
            // SAFETY: `i + 64 <= k`.
            let load = |p: *const i8| unsafe { _mm512_loadu_si512(p.add(i).cast()) };
            // the rows behind these are next
            w.iter().for_each(|w| near(w.wrapping_add(ROWS * k + i).cast()));
            let w: [__m512i; N] = std::array::from_fn(|n| _mm512_xor_si512(load(w[n]), up));
            for r in 0..R {
                let x = load(x[r]);
                for n in 0..N {
                    acc[r][n] = _mm512_dpbusd_epi32(acc[r][n], w[n], x);
                }
            }
            i += STEP;
        }
        if i < k {
            let mask = (1u64 << (k - i)) - 1;
            // SAFETY: only the `k - i` bytes of the mask are read.
            let load = |p: *const i8| unsafe { _mm512_maskz_loadu_epi8(mask, p.add(i)) };
            let w: [__m512i; N] = std::array::from_fn(|n| _mm512_xor_si512(load(w[n]), up));
            for r in 0..R {
                // activations are 0 beyond the end, whatever the weights are there
                let x = load(x[r]);
                for n in 0..N {
                    acc[r][n] = _mm512_dpbusd_epi32(acc[r][n], w[n], x);
                }
            }
        }
        for r in 0..R {
            let moved = _mm_set1_epi32(sums[r].wrapping_mul(128));
            for (acc, out) in acc[r].as_chunks().0.iter().zip(out[r][n0..].as_chunks_mut::<4>().0) {
                // SAFETY: four integers.
                unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_sub_epi32(sum4(acc), moved)) };
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{tail, Sums, HALF};
    use std::arch::aarch64::*;

    /// # Safety
    /// As [`super::Dot::tile`], with `R` rows of activations; the processor has dot products.
    #[target_feature(enable = "neon,dotprod")]
    pub unsafe fn dot<const R: usize>(w: &[*const i8; HALF], x: &[*const i8], k: usize, out: &mut Sums, n0: usize) {
        const STEP: usize = 16;
        let mut acc = [[vdupq_n_s32(0); HALF]; R];
        let whole = k / STEP * STEP;
        for i in (0..whole).step_by(STEP) {
            for (n, &w) in w.iter().enumerate() {
                for r in 0..R {
                    // SAFETY: `i + 16 <= k`; the intrinsic is not in the stable standard library.
                    unsafe {
                        let (w, x) = (vld1q_s8(w.add(i)), vld1q_s8(x[r].add(i)));
                        std::arch::asm!("sdot {a:v}.4s, {w:v}.16b, {x:v}.16b", a = inout(vreg) acc[r][n], w = in(vreg) w,
                            x = in(vreg) x, options(pure, nomem, nostack, preserves_flags));
                    }
                }
            }
        }
        for r in 0..R {
            for n in 0..HALF {
                // SAFETY: `whole <= k`.
                let rest = unsafe {
                    let part = |p: *const i8| std::slice::from_raw_parts(p.add(whole), k - whole);
                    tail(part(w[n]), part(x[r]))
                };
                out[r][n0 + n] = vaddvq_s32(acc[r][n]).wrapping_add(rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sd_2_every_level_sums_exactly() {
        for k in [0usize, 1, 4, 15, 16, 17, 63, 64, 65, 252, 256, 260, 1000] {
            for kind in 0..3 {
                let byte = |i: usize| match kind {
                    0 => (i * 7919 + i / 251 + 5) as u8 as i8,
                    1 => -128,
                    _ => [127, -128][i % 2],
                };
                let w: Vec<i8> = (0..ROWS * k).map(byte).collect();
                let x: Vec<i8> = (0..MAX_STRIP * k).map(|i| byte(i * 3 + 1)).collect();
                let w_rows = std::array::from_fn(|n| w[n * k..].as_ptr());
                for level in Level::all() {
                    let dot = Dot::new(level);
                    for rows in 1..=dot.strip() {
                        let x_rows: Vec<*const i8> = (0..rows).map(|r| x[r * k..].as_ptr()).collect();
                        let sums = std::array::from_fn(|r| x[r * k..][..k].iter().map(|&x| i32::from(x)).sum());
                        // SAFETY: rows of `k` elements.
                        let out = unsafe { dot.tile(&w_rows, &x_rows, k, &sums) };
                        for r in 0..rows {
                            for n in 0..ROWS {
                                let want: i64 = (0..k).map(|i| i64::from(w[n * k + i]) * i64::from(x[r * k + i])).sum();
                                assert_eq!(i64::from(out[r][n]), want, "{level:?}, k {k}, kind {kind}, {r}, {n}");
                            }
                        }
                    }
                }
            }
        }
    }
}
