//! Dot products of tq1_0 and tq2_0 with q8_K: one scale for 256 codes of 0 to 2, so all of a block is one integer sum.

use std::arch::x86_64::*;

use super::isa::{half_at, load32, store_sums, Avx2, Vnni, Q8K_BYTES};
use super::unpack::{tq1, tq2};
use crate::kernels::{DotTile, Level, Rows};
use crate::Type;

/// Sums of codes times bytes over a block of 256.
///
/// # Safety
/// Methods need the instruction set that the implementor names.
trait Sum {
    /// Adds 32 products to partial sums; at most 8 times, codes at most 2.
    unsafe fn add(acc: __m256i, codes: __m256i, y: __m256i) -> __m256i;
    /// The partial sums as 8 x i32.
    unsafe fn finish(acc: __m256i) -> __m256i;
}

impl Sum for Avx2 {
    #[inline(always)]
    unsafe fn add(acc: __m256i, codes: __m256i, y: __m256i) -> __m256i {
        // 8 * 2 * 2 * 128 fits in i16.
        // SAFETY: AVX2 by the trait's contract.
        unsafe { _mm256_add_epi16(acc, _mm256_maddubs_epi16(codes, y)) }
    }
    #[inline(always)]
    unsafe fn finish(acc: __m256i) -> __m256i {
        // SAFETY: AVX2 by the trait's contract.
        unsafe { _mm256_madd_epi16(acc, _mm256_set1_epi16(1)) }
    }
}

impl Sum for Vnni {
    #[inline(always)]
    unsafe fn add(acc: __m256i, codes: __m256i, y: __m256i) -> __m256i {
        // SAFETY: AVX-512 VNNI and VL by the trait's contract.
        unsafe { _mm256_dpbusd_epi32(acc, codes, y) }
    }
    #[inline(always)]
    unsafe fn finish(acc: __m256i) -> __m256i {
        acc
    }
}

/// A left format.
///
/// # Safety
/// Methods need AVX2, and a pointer to a whole block.
trait Ternary {
    type S: Sum;
    const XB: usize;
    /// Where d is.
    const D: usize;
    /// 256 codes in element order.
    unsafe fn codes(b: *const u8) -> [__m256i; 8];
}

struct Tq1<S>(std::marker::PhantomData<S>);
struct Tq2<S>(std::marker::PhantomData<S>);

impl<S: Sum> Ternary for Tq1<S> {
    type S = S;
    const XB: usize = 54;
    const D: usize = 52;
    #[inline(always)]
    unsafe fn codes(b: *const u8) -> [__m256i; 8] {
        // SAFETY: a whole block by the trait's contract.
        unsafe { tq1(b) }
    }
}

impl<S: Sum> Ternary for Tq2<S> {
    type S = S;
    const XB: usize = 66;
    const D: usize = 64;
    #[inline(always)]
    unsafe fn codes(b: *const u8) -> [__m256i; 8] {
        // SAFETY: a whole block by the trait's contract.
        unsafe { tq2(b) }
    }
}

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<P: Ternary, const R: usize, const C: usize>(
    nb: usize,
    x: Rows,
    y: Rows,
    out: *mut f32,
    out_stride: usize,
) {
    // SAFETY: R and C rows of nb blocks are readable and their results writable, by DotTile's contract; the wrapper
    // has the instruction set.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); C]; R];
        for i in 0..nb {
            for r in 0..R {
                let b = x.ptr.add(r * x.stride + i * P::XB);
                let codes = P::codes(b);
                let d = half_at(b.add(P::D));
                for c in 0..C {
                    let yb = y.ptr.add(c * y.stride + i * Q8K_BYTES);
                    let mut sum = _mm256_setzero_si256();
                    for j in 0..8 {
                        sum = P::S::add(sum, codes[j], load32(yb.add(4 + 32 * j)));
                    }
                    // Codes are one above what they stand for.
                    let ones = _mm256_madd_epi16(load32(yb.add(260)), _mm256_set1_epi16(1));
                    let s = _mm256_cvtepi32_ps(_mm256_sub_epi32(P::S::finish(sum), ones));
                    let yd = yb.cast::<f32>().read_unaligned();
                    acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                }
            }
        }
        store_sums(&acc, out, out_stride);
    }
}

super::isa::tiles!(group, Ternary, 256, 1);

super::isa::tile_fn!("avx2,fma,f16c"; tq1_avx2: Tq1<Avx2>, tq2_avx2: Tq2<Avx2>);
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni";
    tq1_vnni: Tq1<Vnni>, tq2_vnni: Tq2<Vnni>);

/// The dot product of `ty` at `level`, if it is one of these formats.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    let vnni = level >= Level::Avx512;
    let f: DotTile = match ty {
        Type::TQ1_0 if vnni => tq1_vnni,
        Type::TQ2_0 if vnni => tq2_vnni,
        Type::TQ1_0 => tq1_avx2,
        Type::TQ2_0 => tq2_avx2,
        _ => return None,
    };
    Some(f)
}
