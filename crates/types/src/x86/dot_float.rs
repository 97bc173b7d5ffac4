//! Dot products of f32, f16 and bf16 rows: two vectors of sums for each pair, then the elements left over.

use std::arch::x86_64::*;

use super::isa::{half_at, sum8};
use crate::kernels::{DotTile, Level, Rows};
use crate::Type;

/// A vector of f32.
///
/// # Safety
/// Methods need the instruction set of the implementor.
trait Wide {
    const LANES: usize;
    type V: Copy;
    unsafe fn zero() -> Self::V;
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Sum of the lanes of a + b.
    unsafe fn sum(a: Self::V, b: Self::V) -> f32;
    unsafe fn f32(p: *const u8) -> Self::V;
    unsafe fn f16(p: *const u8) -> Self::V;
    unsafe fn bf16(p: *const u8) -> Self::V;
}

struct W8;
struct W16;

impl Wide for W8 {
    const LANES: usize = 8;
    type V = __m256;
    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: AVX by the trait's contract.
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: FMA by the trait's contract.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn sum(a: __m256, b: __m256) -> f32 {
        // SAFETY: AVX by the trait's contract.
        unsafe { sum8(_mm256_add_ps(a, b)) }
    }
    #[inline(always)]
    unsafe fn f32(p: *const u8) -> __m256 {
        // SAFETY: 32 readable bytes by the caller's contract.
        unsafe { _mm256_loadu_ps(p.cast()) }
    }
    #[inline(always)]
    unsafe fn f16(p: *const u8) -> __m256 {
        // SAFETY: 16 readable bytes by the caller's contract, F16C by the trait's.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn bf16(p: *const u8) -> __m256 {
        // SAFETY: 16 readable bytes by the caller's contract, AVX2 by the trait's.
        unsafe {
            let w = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32(w, 16))
        }
    }
}

impl Wide for W16 {
    const LANES: usize = 16;
    type V = __m512;
    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: AVX-512F by the trait's contract.
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: AVX-512F by the trait's contract.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn sum(a: __m512, b: __m512) -> f32 {
        // SAFETY: AVX-512F and DQ by the trait's contract.
        unsafe {
            let s = _mm512_add_ps(a, b);
            sum8(_mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1)))
        }
    }
    #[inline(always)]
    unsafe fn f32(p: *const u8) -> __m512 {
        // SAFETY: 64 readable bytes by the caller's contract.
        unsafe { _mm512_loadu_ps(p.cast()) }
    }
    #[inline(always)]
    unsafe fn f16(p: *const u8) -> __m512 {
        // SAFETY: 32 readable bytes by the caller's contract.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn bf16(p: *const u8) -> __m512 {
        // SAFETY: 32 readable bytes by the caller's contract.
        unsafe {
            let w = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32(w, 16))
        }
    }
}

/// An element format at a vector width.
trait Elem {
    const BYTES: usize;
    type W: Wide;
    unsafe fn load(p: *const u8) -> <Self::W as Wide>::V;
    unsafe fn one(p: *const u8) -> f32;
}

macro_rules! elem {
    ($name:ident, $bytes:literal, $load:ident, |$p:ident| $one:expr) => {
        struct $name<W>(std::marker::PhantomData<W>);
        impl<W: Wide> Elem for $name<W> {
            const BYTES: usize = $bytes;
            type W = W;
            #[inline(always)]
            unsafe fn load(p: *const u8) -> W::V {
                // SAFETY: the caller's contract.
                unsafe { W::$load(p) }
            }
            #[inline(always)]
            unsafe fn one($p: *const u8) -> f32 {
                // SAFETY: the caller's contract.
                unsafe { $one }
            }
        }
    };
}

elem!(F32, 4, f32, |p| p.cast::<f32>().read_unaligned());
elem!(F16, 2, f16, |p| half_at(p));
elem!(Bf16, 2, bf16, |p| crate::float::bf16_to_f32(p.cast::<u16>().read_unaligned()));

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<E: Elem, const R: usize, const C: usize>(n: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize) {
    let (w, step) = (E::W::LANES, 2 * E::W::LANES);
    // SAFETY: R and C rows of n elements are readable and their results writable, by DotTile's contract; the wrapper
    // has the instruction set.
    unsafe {
        let mut acc = [[[E::W::zero(); 2]; C]; R];
        let mut i = 0;
        while i + step <= n {
            for h in 0..2 {
                let at = (i + h * w) * E::BYTES;
                let mut ys = [E::W::zero(); C];
                for (c, v) in ys.iter_mut().enumerate() {
                    *v = E::load(y.ptr.add(c * y.stride + at));
                }
                for (r, acc) in acc.iter_mut().enumerate() {
                    let xv = E::load(x.ptr.add(r * x.stride + at));
                    for (c, acc) in acc.iter_mut().enumerate() {
                        acc[h] = E::W::fma(xv, ys[c], acc[h]);
                    }
                }
            }
            i += step;
        }
        if i + w <= n {
            for (r, acc) in acc.iter_mut().enumerate() {
                let xv = E::load(x.ptr.add(r * x.stride + i * E::BYTES));
                for (c, acc) in acc.iter_mut().enumerate() {
                    let yv = E::load(y.ptr.add(c * y.stride + i * E::BYTES));
                    acc[0] = E::W::fma(xv, yv, acc[0]);
                }
            }
            i += w;
        }
        for (r, acc) in acc.iter().enumerate() {
            for (c, acc) in acc.iter().enumerate() {
                let mut s = E::W::sum(acc[0], acc[1]);
                for k in i..n {
                    let a = E::one(x.ptr.add(r * x.stride + k * E::BYTES));
                    s += a * E::one(y.ptr.add(c * y.stride + k * E::BYTES));
                }
                out.add(c * out_stride + r).write(s);
            }
        }
    }
}

super::isa::tiles!(group, Elem, 1, 4);

super::isa::tile_fn!("avx2,fma,f16c"; f32_avx2: F32<W8>, f16_avx2: F16<W8>, bf16_avx2: Bf16<W8>);
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl";
    f32_avx512: F32<W16>, f16_avx512: F16<W16>, bf16_avx512: Bf16<W16>);

/// The dot product of `ty` at `level`, if it is one of these formats.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    let wide = level >= Level::Avx512;
    let f: DotTile = match ty {
        Type::F32 if wide => f32_avx512,
        Type::F16 if wide => f16_avx512,
        Type::BF16 if wide => bf16_avx512,
        Type::F32 => f32_avx2,
        Type::F16 => f16_avx2,
        Type::BF16 => bf16_avx2,
        _ => return None,
    };
    Some(f)
}
