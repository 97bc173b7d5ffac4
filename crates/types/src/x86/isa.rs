//! The integer steps that AVX2 and AVX-512 VNNI do differently, and small helpers both share.

use std::arch::x86_64::*;

/// Integer dot products of 32 bytes. Exact for every input that the methods admit.
///
/// # Safety
/// Every method needs the instruction set that the implementor names.
pub(crate) trait Isa: Copy {
    /// The part of a dot product that a bias `b` of the unsigned codes adds; `b` at most 16 (any byte, taken as
    /// unsigned, for VNNI).
    unsafe fn bias(b: i8, y: __m256i) -> __m256i;
    /// Sums of four adjacent (x - bias) * y, as 8 x i32; x at most 63 (any byte for VNNI), unsigned; y signed, -128 included.
    unsafe fn dot(x: __m256i, y: __m256i, bias: __m256i) -> __m256i;
    /// `v` in byte j where bit j of the word at `p` is set, else 0. Four readable bytes at `p`.
    unsafe fn spread(p: *const u8, v: i8) -> __m256i;
}

#[derive(Clone, Copy)]
pub(crate) struct Avx2;

impl Isa for Avx2 {
    #[inline(always)]
    unsafe fn bias(b: i8, y: __m256i) -> __m256i {
        // SAFETY: AVX2 by the trait's contract.
        unsafe { _mm256_maddubs_epi16(_mm256_set1_epi8(b), y) }
    }

    #[inline(always)]
    unsafe fn dot(x: __m256i, y: __m256i, bias: __m256i) -> __m256i {
        // 63 * 128 * 2 fits in i16, so maddubs does not saturate.
        // SAFETY: AVX2 by the trait's contract.
        unsafe {
            let p = _mm256_sub_epi16(_mm256_maddubs_epi16(x, y), bias);
            _mm256_madd_epi16(p, _mm256_set1_epi16(1))
        }
    }

    #[inline(always)]
    unsafe fn spread(p: *const u8, v: i8) -> __m256i {
        // SAFETY: AVX2 and the bytes by the trait's contract.
        unsafe { _mm256_and_si256(super::unpack::bits(p), _mm256_set1_epi8(v)) }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Vnni;

impl Isa for Vnni {
    #[inline(always)]
    unsafe fn bias(b: i8, y: __m256i) -> __m256i {
        // SAFETY: AVX-512 VNNI and VL by the trait's contract.
        unsafe {
            let zero = _mm256_setzero_si256();
            _mm256_sub_epi32(zero, _mm256_dpbusd_epi32(zero, _mm256_set1_epi8(b), y))
        }
    }

    #[inline(always)]
    unsafe fn dot(x: __m256i, y: __m256i, bias: __m256i) -> __m256i {
        // SAFETY: AVX-512 VNNI and VL by the trait's contract.
        unsafe { _mm256_dpbusd_epi32(bias, x, y) }
    }

    #[inline(always)]
    unsafe fn spread(p: *const u8, v: i8) -> __m256i {
        // SAFETY: AVX-512 BW and VL and the bytes by the trait's contract.
        unsafe { _mm256_maskz_set1_epi8(p.cast::<u32>().read_unaligned(), v) }
    }
}

/// The f16 at `p` as f32.
///
/// # Safety
/// F16C; two readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn half_at(p: *const u8) -> f32 {
    // SAFETY: the caller's contract.
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(p.cast::<u16>().read_unaligned() as i32))) }
}

/// 32 bytes from any address.
///
/// # Safety
/// AVX2; 32 readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn load32(p: *const u8) -> __m256i {
    // SAFETY: the caller's contract.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

/// 16 bytes from any address.
///
/// # Safety
/// 16 readable bytes at `p`.
#[inline(always)]
pub(crate) unsafe fn load16(p: *const u8) -> __m128i {
    // SAFETY: the caller's contract.
    unsafe { _mm_loadu_si128(p.cast()) }
}

/// The sum of the 8 lanes: halves first, then pairs.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(crate) unsafe fn sum8(v: __m256) -> f32 {
    // SAFETY: the caller's contract.
    unsafe {
        let q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        let d = _mm_add_ps(q, _mm_movehl_ps(q, q));
        _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)))
    }
}

/// Writes the sum of each accumulator: that of row r and column c to `out[c * out_stride + r]`.
///
/// # Safety
/// AVX2; the results are writable.
#[inline(always)]
pub(crate) unsafe fn store_sums<const R: usize, const C: usize>(
    acc: &[[__m256; C]; R],
    out: *mut f32,
    out_stride: usize,
) {
    for r in 0..R {
        for c in 0..C {
            // SAFETY: the caller's contract.
            unsafe { out.add(c * out_stride + r).write(sum8(acc[r][c])) };
        }
    }
}

/// Bytes of a q8_K block: f32 d, 256 codes, 16 sums.
pub(crate) const Q8K_BYTES: usize = size_of::<crate::block::BlockQ8K>();

/// Defines `tile::<P>` over blocks of `$block` elements: covers a DotTile's rows and columns with calls of
/// `$group::<P, R, C>`, each pair in one of them. A single column takes `$rows` rows at a time.
macro_rules! tiles {
    ($group:ident, $bound:ident, $block:expr, $rows:literal) => {
        #[inline(always)]
        unsafe fn tile<P: $bound>(n: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize) {
            let nb = n / ($block);
            // SAFETY: every group stays inside the rows and results that DotTile's contract covers.
            unsafe {
                let at = |r: usize, c: usize| {
                    (
                        Rows { ptr: x.ptr.wrapping_add(r * x.stride), ..x },
                        Rows { ptr: y.ptr.wrapping_add(c * y.stride), ..y },
                        out.wrapping_add(c * out_stride + r),
                    )
                };
                let mut c = 0;
                while c + 4 <= y.count {
                    let mut r = 0;
                    while r + 2 <= x.count {
                        let (x, y, o) = at(r, c);
                        $group::<P, 2, 4>(nb, x, y, o, out_stride);
                        r += 2;
                    }
                    if r < x.count {
                        let (x, y, o) = at(r, c);
                        $group::<P, 1, 4>(nb, x, y, o, out_stride);
                    }
                    c += 4;
                }
                while c < y.count {
                    let mut r = 0;
                    while x.stride >= crate::kernels::SIDE_BY_SIDE && r < x.count / $rows * $rows {
                        let (x, y, o) = at(r, c);
                        $group::<P, $rows, 1>(nb, x, y, o, out_stride);
                        r += $rows;
                    }
                    while r < x.count {
                        let (x, y, o) = at(r, c);
                        $group::<P, 1, 1>(nb, x, y, o, out_stride);
                        r += 1;
                    }
                    c += 1;
                }
            }
        }
    };
}
pub(crate) use tiles;

/// DotTile functions compiled for an instruction set.
macro_rules! tile_fn {
    ($features:literal; $($name:ident: $pair:ty),*) => {
        $(
            #[target_feature(enable = $features)]
            unsafe fn $name(n: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize) {
                // SAFETY: DotTile's contract, handed on; the features are enabled here.
                unsafe { tile::<$pair>(n, x, y, out, out_stride) }
            }
        )*
    };
}
pub(crate) use tile_fn;
