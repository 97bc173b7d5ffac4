//! Dot products with q8_0 of the formats whose blocks are not one block of q8_0, or whose scale is no f16 in front.

use std::arch::x86_64::*;

use super::isa::{load32, store_sums, Avx2, Isa, Vnni};
use super::unpack::{fp4_16, nibbles, pairs, table};
use crate::kernels::{DotTile, Level, Rows};
use crate::{fp4, iq4, Type};

/// A left format: `SUBS` times 32 codes, each against a block of q8_0.
///
/// # Safety
/// Methods need the instruction set of the implementor, and pointers to whole blocks.
trait Wide {
    const XB: usize;
    const SUBS: usize;
    type Y: Copy;
    /// 32 codes of part `j`, as `dot` takes them.
    unsafe fn x(b: *const u8, j: usize) -> __m256i;
    /// The scales of the eight partial sums of part `j`.
    unsafe fn d(b: *const u8, j: usize) -> __m256;
    unsafe fn y(b: *const u8) -> Self::Y;
    /// Eight partial sums, exact.
    unsafe fn dot(x: __m256i, y: Self::Y) -> __m256i;
}

/// The f16 at the head of a block in all lanes.
#[inline(always)]
unsafe fn head(b: *const u8) -> __m256 {
    // SAFETY: F16C in the wrapper; a whole block at b.
    unsafe { _mm256_cvtph_ps(_mm_set1_epi16(b.cast::<i16>().read_unaligned())) }
}

/// Unsigned codes below 32 less a bias, times signed bytes.
macro_rules! biased {
    ($name:ident, $xb:literal, $subs:literal, bias: $bias:literal, |$b:ident, $j:ident| $codes:expr, $d:expr) => {
        struct $name<I>(std::marker::PhantomData<I>);
        impl<I: Isa> Wide for $name<I> {
            const XB: usize = $xb;
            const SUBS: usize = $subs;
            type Y = (__m256i, __m256i);
            #[inline(always)]
            unsafe fn x($b: *const u8, $j: usize) -> __m256i {
                // SAFETY: a whole block by the trait's contract.
                unsafe { $codes }
            }
            #[inline(always)]
            unsafe fn d($b: *const u8, $j: usize) -> __m256 {
                let _ = $j;
                // SAFETY: a whole block by the trait's contract.
                unsafe { $d }
            }
            #[inline(always)]
            unsafe fn y(b: *const u8) -> (__m256i, __m256i) {
                // SAFETY: a whole block by the trait's contract.
                unsafe {
                    let y = load32(b.add(2));
                    (y, I::bias($bias, y))
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

/// The doubled values and 12.
#[inline(always)]
unsafe fn fp4_table() -> __m256i {
    // SAFETY: AVX2 in the wrapper.
    unsafe { _mm256_add_epi8(table(&fp4::VALUES), _mm256_set1_epi8(12)) }
}

/// The scales of nvfp4, for its doubled values.
pub(super) static SCALES: [f32; 256] = {
    let mut t = [0.0; 256];
    let mut i = 0;
    while i < 256 {
        t[i] = fp4::half_ue4m3(i as u8);
        i += 1;
    }
    t
};

biased!(Mxfp4, 17, 1, bias: 12, |b, j| _mm256_shuffle_epi8(fp4_table(), nibbles(b.add(1 + 16 * j))),
    _mm256_set1_ps(fp4::half_power(*b)));
biased!(Nvfp4, 36, 2, bias: 12, |b, j| _mm256_shuffle_epi8(fp4_table(), fp4_16(b.add(4 + 16 * j))), {
    let (lo, hi) = (SCALES[*b.add(2 * j) as usize], SCALES[*b.add(2 * j + 1) as usize]);
    _mm256_set_m128(_mm_set1_ps(hi), _mm_set1_ps(lo))
});
// One bit is 0 or 2, less 1.
biased!(Q1, 18, 4, bias: 1, |b, j| I::spread(b.add(2 + 4 * j), 2), head(b));
biased!(Q2, 18, 2, bias: 1, |b, j| pairs(b.add(2 + 8 * j)), head(b));

/// Signed values up to 127 times signed bytes: |y| is unsigned, and the sign of y goes to the value, which is never -128.
struct Iq4Avx2;

impl Wide for Iq4Avx2 {
    const XB: usize = 18;
    const SUBS: usize = 1;
    type Y = (__m256i, __m256i);
    #[inline(always)]
    unsafe fn x(b: *const u8, _: usize) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_shuffle_epi8(table(&iq4::VALUES), nibbles(b.add(2))) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8, _: usize) -> __m256 {
        // SAFETY: a whole block by the trait's contract.
        unsafe { head(b) }
    }
    #[inline(always)]
    unsafe fn y(b: *const u8) -> Self::Y {
        // SAFETY: a whole block by the trait's contract.
        unsafe {
            let y = load32(b.add(2));
            (y, _mm256_abs_epi8(y))
        }
    }
    #[inline(always)]
    unsafe fn dot(x: __m256i, y: Self::Y) -> __m256i {
        // 2 * 128 * 127 fits in i16.
        // SAFETY: AVX2 by the trait's contract.
        unsafe { _mm256_madd_epi16(_mm256_maddubs_epi16(y.1, _mm256_sign_epi8(x, y.0)), _mm256_set1_epi16(1)) }
    }
}

/// Values made unsigned by adding 128; 128 times the sum of y is taken off again.
struct Iq4Vnni;

impl Wide for Iq4Vnni {
    const XB: usize = 18;
    const SUBS: usize = 1;
    type Y = (__m256i, __m256i);
    #[inline(always)]
    unsafe fn x(b: *const u8, _: usize) -> __m256i {
        // SAFETY: a whole block by the trait's contract.
        unsafe { _mm256_shuffle_epi8(_mm256_xor_si256(table(&iq4::VALUES), _mm256_set1_epi8(-128)), nibbles(b.add(2))) }
    }
    #[inline(always)]
    unsafe fn d(b: *const u8, _: usize) -> __m256 {
        // SAFETY: a whole block by the trait's contract.
        unsafe { head(b) }
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

/// Bytes of a q8_0 block.
const YB: usize = 34;

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<P: Wide, const R: usize, const C: usize>(
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
            // A block's parts have a sum of their own: a chain of additions is what a single pair of rows waits for.
            let mut part = [[_mm256_setzero_ps(); C]; R];
            for j in 0..P::SUBS {
                let at = y.ptr.add((i * P::SUBS + j) * YB);
                let mut ys = [P::y(at); C];
                let mut yd = [head(at); C];
                for c in 1..C {
                    ys[c] = P::y(at.add(c * y.stride));
                    yd[c] = head(at.add(c * y.stride));
                }
                for r in 0..R {
                    let b = x.ptr.add(r * x.stride + i * P::XB);
                    let (codes, d) = (P::x(b, j), P::d(b, j));
                    for c in 0..C {
                        let s = _mm256_cvtepi32_ps(P::dot(codes, ys[c]));
                        let scale = _mm256_mul_ps(d, yd[c]);
                        if P::SUBS == 1 {
                            acc[r][c] = _mm256_fmadd_ps(s, scale, acc[r][c]);
                        } else if j == 0 {
                            part[r][c] = _mm256_mul_ps(s, scale);
                        } else {
                            part[r][c] = _mm256_fmadd_ps(s, scale, part[r][c]);
                        }
                    }
                }
            }
            if P::SUBS > 1 {
                for r in 0..R {
                    for c in 0..C {
                        acc[r][c] = _mm256_add_ps(acc[r][c], part[r][c]);
                    }
                }
            }
        }
        store_sums(&acc, out, out_stride);
    }
}

super::isa::tiles!(group, Wide, 32 * P::SUBS, 4);

super::isa::tile_fn!("avx2,fma,f16c";
    iq4_avx2: Iq4Avx2, mxfp4_avx2: Mxfp4<Avx2>, nvfp4_avx2: Nvfp4<Avx2>, q1_avx2: Q1<Avx2>, q2_avx2: Q2<Avx2>);
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni";
    iq4_vnni: Iq4Vnni, mxfp4_vnni: Mxfp4<Vnni>, nvfp4_vnni: Nvfp4<Vnni>, q1_vnni: Q1<Vnni>, q2_vnni: Q2<Vnni>);

/// The dot product of `ty` at `level`, if it is one of these formats.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    let vnni = level >= Level::Avx512;
    let f: DotTile = match ty {
        Type::IQ4_NL if vnni => iq4_vnni,
        Type::MXFP4 if vnni => mxfp4_vnni,
        Type::NVFP4 if vnni => nvfp4_vnni,
        Type::Q1_0 if vnni => q1_vnni,
        Type::Q2_0 if vnni => q2_vnni,
        Type::IQ4_NL => iq4_avx2,
        Type::MXFP4 => mxfp4_avx2,
        Type::NVFP4 => nvfp4_avx2,
        Type::Q1_0 => q1_avx2,
        Type::Q2_0 => q2_avx2,
        _ => return None,
    };
    Some(f)
}
