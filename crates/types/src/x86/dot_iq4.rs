//! The dot product of iq4_xs with q8_K.

use std::arch::x86_64::*;

use super::isa::{half_at, load32, store_sums, Q8K_BYTES};
use super::unpack::{each_eighth, each_quarter, iq4_scales, nibbles, table};
use crate::iq4::VALUES;
use crate::kernels::{DotTile, Level, Rows};
use crate::Type;

const XB: usize = 136;
/// The integer sums of a block with one of y.
///
/// # Safety
/// The implementor's instruction set, and whole blocks.
trait Xs {
    /// Eight partial sums of scale times value times code for each of C blocks of y, `stride` bytes apart.
    unsafe fn sums<const C: usize>(b: *const u8, y: *const u8, stride: usize) -> [__m256i; C];
}

/// Each scale twice, as i16: those of the groups of 16.
#[inline(always)]
unsafe fn doubled(scales: __m256i) -> __m256i {
    // SAFETY: AVX2 in the wrapper.
    unsafe { _mm256_or_si256(_mm256_and_si256(scales, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(scales, 16)) }
}

struct XsAvx2;

impl Xs for XsAvx2 {
    #[inline(always)]
    unsafe fn sums<const C: usize>(b: *const u8, y: *const u8, stride: usize) -> [__m256i; C] {
        // SAFETY: the trait's contract.
        unsafe {
            let table = table(&VALUES);
            let scales = doubled(iq4_scales(b));
            let mut sum = [_mm256_setzero_si256(); C];
            each_eighth!(J => {
                let x = _mm256_shuffle_epi8(table, nibbles(b.add(8 + 16 * J)));
                let scale = _mm256_permutevar8x32_epi32(scales, _mm256_set1_epi32(J as i32));
                for c in 0..C {
                    let q = load32(y.add(c * stride + 4 + 32 * J));
                    // |y| is unsigned, its sign goes to the value, which is never -128: 2 * 128 * 127 fits in i16.
                    let p = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
                    sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(p, scale));
                }
            });
            sum
        }
    }
}

struct XsVnni;

impl Xs for XsVnni {
    #[inline(always)]
    unsafe fn sums<const C: usize>(b: *const u8, y: *const u8, stride: usize) -> [__m256i; C] {
        // SAFETY: the trait's contract.
        unsafe {
            // 128 is added to the values, and taken off by the sums that y carries.
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(VALUES.as_ptr().cast()));
            let table = _mm512_xor_si512(table, _mm512_set1_epi8(-128));
            let shift = _mm512_set_epi64(
                0x0004_0004_0004_0004,
                0x0004_0004_0004_0004,
                0,
                0,
                0x0004_0004_0004_0004,
                0x0004_0004_0004_0004,
                0,
                0,
            );
            let scales = iq4_scales(b);
            let wide = _mm512_castsi256_si512(scales);
            let first = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
            let mut sum = [_mm512_setzero_si512(); C];
            each_quarter!(J => {
                let v = _mm512_castsi256_si512(load32(b.add(8 + 32 * J)));
                let v = _mm512_srlv_epi16(_mm512_shuffle_i64x2(v, v, 0b01_01_00_00), shift);
                let x = _mm512_shuffle_epi8(table, _mm512_and_si512(v, _mm512_set1_epi8(15)));
                let at = _mm512_add_epi32(first, _mm512_set1_epi32(2 * J as i32));
                let scale = _mm512_permutexvar_epi32(at, wide);
                for c in 0..C {
                    let q = _mm512_loadu_si512(y.add(c * stride + 4 + 64 * J).cast());
                    let p = _mm512_dpbusd_epi32(_mm512_setzero_si512(), x, q);
                    sum[c] = _mm512_add_epi32(sum[c], _mm512_mullo_epi32(p, scale));
                }
            });
            let scales = doubled(scales);
            let mut out = [_mm256_setzero_si256(); C];
            for c in 0..C {
                let low = _mm256_madd_epi16(scales, load32(y.add(c * stride + 260)));
                let s = _mm512_extracti64x4_epi64(sum[c], 1);
                let s = _mm256_add_epi32(_mm512_castsi512_si256(sum[c]), s);
                out[c] = _mm256_sub_epi32(s, _mm256_slli_epi32(low, 7));
            }
            out
        }
    }
}

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<P: Xs, const R: usize, const C: usize>(nb: usize, x: Rows, y: Rows, out: *mut f32, out_stride: usize) {
    // SAFETY: R and C rows of nb blocks are readable and their results writable, by DotTile's contract; the wrapper
    // has the instruction set.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); C]; R];
        for i in 0..nb {
            for r in 0..R {
                let b = x.ptr.add(r * x.stride + i * XB);
                let yb = y.ptr.add(i * Q8K_BYTES);
                let sums = P::sums::<C>(b, yb, y.stride);
                let d = half_at(b);
                for c in 0..C {
                    let yd = yb.add(c * y.stride).cast::<f32>().read_unaligned();
                    let s = _mm256_cvtepi32_ps(sums[c]);
                    acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                }
            }
        }
        store_sums(&acc, out, out_stride);
    }
}

super::isa::tiles!(group, Xs, 256, 1);

super::isa::tile_fn!("avx2,fma,f16c"; xs_avx2: XsAvx2);
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"; xs_vnni: XsVnni);

/// The dot product of `ty` at `level`, if it is this format.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    match ty {
        Type::IQ4_XS if level >= Level::Avx512 => Some(xs_vnni),
        Type::IQ4_XS => Some(xs_avx2),
        _ => None,
    }
}
