//! Dot products of the formats with blocks of 32.

use std::arch::x86_64::*;

use super::isa::{load32, sum8, Avx2, Isa, Vnni};
use super::unpack::{fives, nibbles};
use crate::kernels::{DotTile, Level, Rows};
use crate::Type;

/// A left format and how its blocks meet those of the right operand.
///
/// # Safety
/// Methods need the instruction set of the implementor, and pointers to whole blocks.
trait Pair {
    const XB: usize;
    const YB: usize;
    /// Whether x has a minimum, to be multiplied with the code sum that y carries.
    const MIN: bool;
    type X: Copy;
    type Y: Copy;
    unsafe fn x(b: *const u8) -> Self::X;
    unsafe fn y(b: *const u8) -> Self::Y;
    /// Eight partial sums, exact.
    unsafe fn dot(x: Self::X, y: Self::Y) -> __m256i;
}

/// Unsigned codes less a bias, times signed bytes.
macro_rules! biased {
    ($name:ident, $xb:literal, $yb:literal, min: $min:literal, bias: $bias:literal, qs: $qs:literal,
     |$b:ident| $codes:expr) => {
        struct $name<I>(std::marker::PhantomData<I>);
        impl<I: Isa> Pair for $name<I> {
            const XB: usize = $xb;
            const YB: usize = $yb;
            const MIN: bool = $min;
            type X = __m256i;
            type Y = (__m256i, __m256i);
            #[inline(always)]
            unsafe fn x($b: *const u8) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { $codes }
            }
            #[inline(always)]
            unsafe fn y(b: *const u8) -> (__m256i, __m256i) {
                // SAFETY: a whole block by the trait's contract.
                unsafe {
                    let y = load32(b.add($qs));
                    (y, if $bias == 0 { _mm256_setzero_si256() } else { I::bias($bias, y) })
                }
            }
            #[inline(always)]
            unsafe fn dot(x: __m256i, y: (__m256i, __m256i)) -> __m256i {
                // SAFETY: the instruction set by the trait's contract; codes are below 32.
                unsafe { I::dot(x, y.0, y.1) }
            }
        }
    };
}

biased!(Q4_0, 18, 34, min: false, bias: 8, qs: 2, |b| nibbles(b.add(2)));
biased!(Q4_1, 20, 36, min: true, bias: 0, qs: 4, |b| nibbles(b.add(4)));
biased!(Q5_0, 22, 34, min: false, bias: 16, qs: 2, |b| fives(b.add(2), b.add(6)));
biased!(Q5_1, 24, 36, min: true, bias: 0, qs: 4, |b| fives(b.add(4), b.add(8)));

/// Signed times signed in i16: the byte products of AVX2 would saturate.
struct Q8Avx2;

impl Pair for Q8Avx2 {
    const XB: usize = 34;
    const YB: usize = 34;
    const MIN: bool = false;
    type X = (__m256i, __m256i);
    type Y = (__m256i, __m256i);
    #[inline(always)]
    unsafe fn x(b: *const u8) -> Self::X {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            (_mm256_cvtepi8_epi16(super::isa::load16(b.add(2))), _mm256_cvtepi8_epi16(super::isa::load16(b.add(18))))
        }
    }
    #[inline(always)]
    unsafe fn y(b: *const u8) -> Self::Y {
        // SAFETY: a whole block by the trait's contract.
        unsafe { Self::x(b) }
    }
    #[inline(always)]
    unsafe fn dot(x: Self::X, y: Self::Y) -> __m256i {
        // SAFETY: AVX2 by the trait's contract.
        unsafe { _mm256_add_epi32(_mm256_madd_epi16(x.0, y.0), _mm256_madd_epi16(x.1, y.1)) }
    }
}

/// Signed codes made unsigned by adding 128; 128 times the sum of y is taken off again.
struct Q8Vnni;

impl Pair for Q8Vnni {
    const XB: usize = 34;
    const YB: usize = 34;
    const MIN: bool = false;
    type X = __m256i;
    type Y = (__m256i, __m256i);
    #[inline(always)]
    unsafe fn x(b: *const u8) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_xor_si256(load32(b.add(2)), _mm256_set1_epi8(-128)) }
    }
    #[inline(always)]
    unsafe fn y(b: *const u8) -> Self::Y {
        // SAFETY: a whole block by the trait's contract; the byte -128 is 128 unsigned.
        unsafe {
            let y = load32(b.add(2));
            (y, Vnni::bias(-128, y))
        }
    }
    #[inline(always)]
    unsafe fn dot(x: __m256i, y: Self::Y) -> __m256i {
        // SAFETY: the instruction set by the trait's contract; dpbusd does not saturate.
        unsafe { Vnni::dot(x, y.0, y.1) }
    }
}

/// The scale at the head of a block in all lanes, and, where there are minima, [scale, minimum or code sum, ..].
#[inline(always)]
unsafe fn heads<const MIN: bool>(b: *const u8) -> (__m256, __m128) {
    // SAFETY: a whole block at b by the caller's contract; AVX2 and F16C in the wrapper.
    unsafe {
        if MIN {
            let pair = _mm_cvtph_ps(_mm_cvtsi32_si128(b.cast::<i32>().read_unaligned()));
            (_mm256_setzero_ps(), pair)
        } else {
            let h = _mm_set1_epi16(b.cast::<i16>().read_unaligned());
            (_mm256_cvtph_ps(h), _mm_setzero_ps())
        }
    }
}

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<P: Pair, const R: usize, const C: usize>(
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
        let mut min = [[_mm_setzero_ps(); C]; R];
        for i in 0..nb {
            let mut ys = [P::y(y.ptr.add(i * P::YB)); C];
            let mut yd = [(_mm256_setzero_ps(), _mm_setzero_ps()); C];
            for c in 0..C {
                let b = y.ptr.add(c * y.stride + i * P::YB);
                if c > 0 {
                    ys[c] = P::y(b);
                }
                yd[c] = if P::MIN { heads::<true>(b) } else { heads::<false>(b) };
            }
            for r in 0..R {
                let b = x.ptr.add(r * x.stride + i * P::XB);
                let xs = P::x(b);
                let xd = if P::MIN { heads::<true>(b) } else { heads::<false>(b) };
                for c in 0..C {
                    let s = _mm256_cvtepi32_ps(P::dot(xs, ys[c]));
                    let d = if P::MIN {
                        // One product gives the scale (lane 0) and the minimum's part of the sum (lane 1).
                        let p = _mm_mul_ps(xd.1, yd[c].1);
                        min[r][c] = _mm_add_ps(min[r][c], p);
                        _mm256_broadcastss_ps(p)
                    } else {
                        _mm256_mul_ps(xd.0, yd[c].0)
                    };
                    acc[r][c] = _mm256_fmadd_ps(s, d, acc[r][c]);
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                let s = sum8(acc[r][c]);
                let m = _mm_cvtss_f32(_mm_movehdup_ps(min[r][c]));
                out.add(c * out_stride + r).write(if P::MIN { s + m } else { s });
            }
        }
    }
}

super::isa::tiles!(group, Pair, 32, 4);

super::isa::tile_fn!("avx2,fma,f16c";
    q4_0_avx2: Q4_0<Avx2>, q4_1_avx2: Q4_1<Avx2>, q5_0_avx2: Q5_0<Avx2>, q5_1_avx2: Q5_1<Avx2>, q8_0_avx2: Q8Avx2);
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni";
    q4_0_vnni: Q4_0<Vnni>, q4_1_vnni: Q4_1<Vnni>, q5_0_vnni: Q5_0<Vnni>, q5_1_vnni: Q5_1<Vnni>, q8_0_vnni: Q8Vnni);

/// The dot product of `ty` at `level`, if it is one of these formats.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    let vnni = level >= Level::Avx512;
    let f: DotTile = match ty {
        Type::Q4_0 if vnni => q4_0_vnni,
        Type::Q4_1 if vnni => q4_1_vnni,
        Type::Q5_0 if vnni => q5_0_vnni,
        Type::Q5_1 if vnni => q5_1_vnni,
        Type::Q8_0 if vnni => q8_0_vnni,
        Type::Q4_0 => q4_0_avx2,
        Type::Q4_1 => q4_1_avx2,
        Type::Q5_0 => q5_0_avx2,
        Type::Q5_1 => q5_1_avx2,
        Type::Q8_0 => q8_0_avx2,
        _ => return None,
    };
    Some(f)
}
