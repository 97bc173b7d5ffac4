//! Dot products of the K-quants with q8_K for AVX2.

use std::arch::x86_64::*;

use super::isa::{load32, store_sums, Q8K_BYTES};
use super::unpack::{each_eighth, scale_pair, Super, Q2K, Q3K, Q4K, Q5K, Q6K};
use super::unpack_iq::{IQ1M, IQ1S, IQ2S, IQ2XS, IQ2XXS, IQ3S, IQ3XXS};
use crate::kernels::{DotTile, Rows};
use crate::Type;

/// R rows of x with C rows of y. Each pair has its own sums, so R and C do not show in the result.
#[inline(always)]
unsafe fn group<S: Super, const R: usize, const C: usize>(
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
                let b = x.ptr.add(r * x.stride + i * S::BYTES);
                let (scales, mins) = (S::scales(b), S::mins(b));
                let (d, dmin) = S::d(b);
                let mut sum = [_mm256_setzero_si256(); C];
                each_eighth!(J => {
                    let codes = S::codes::<J>(b);
                    let scale = scale_pair::<J>(scales);
                    for c in 0..C {
                        let q = load32(y.ptr.add(c * y.stride + i * Q8K_BYTES + 4 + 32 * J));
                        // Codes are at most 124, so the pair sums fit in i16.
                        sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(scale, _mm256_maddubs_epi16(codes, q)));
                    }
                });
                for c in 0..C {
                    let yb = y.ptr.add(c * y.stride + i * Q8K_BYTES);
                    let yd = yb.cast::<f32>().read_unaligned();
                    let low = _mm256_madd_epi16(mins, load32(yb.add(260)));
                    if S::SYMMETRIC {
                        let s = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum[c], low));
                        acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                    } else {
                        let (s, m) = (_mm256_cvtepi32_ps(sum[c]), _mm256_cvtepi32_ps(low));
                        acc[r][c] = _mm256_fmadd_ps(s, _mm256_set1_ps(d * yd), acc[r][c]);
                        acc[r][c] = _mm256_fnmadd_ps(m, _mm256_set1_ps(dmin * yd), acc[r][c]);
                    }
                }
            }
        }
        store_sums(&acc, out, out_stride);
    }
}

super::isa::tiles!(group, Super, 256, 1);

super::isa::tile_fn!("avx2,fma,f16c"; q2: Q2K, q3: Q3K, q4: Q4K, q5: Q5K, q6: Q6K);

super::isa::tile_fn!("avx2,fma,f16c";
    iq2_xxs: IQ2XXS, iq2_xs: IQ2XS, iq2_s: IQ2S, iq3_xxs: IQ3XXS, iq3_s: IQ3S, iq1_s: IQ1S, iq1_m: IQ1M);

/// The dot product of `ty`, if it is one of these formats.
pub(super) fn pick(ty: Type) -> Option<DotTile> {
    let f: DotTile = match ty {
        Type::Q2_K => q2,
        Type::Q3_K => q3,
        Type::Q4_K => q4,
        Type::Q5_K => q5,
        Type::Q6_K => q6,
        Type::IQ2_XXS => iq2_xxs,
        Type::IQ2_XS => iq2_xs,
        Type::IQ2_S => iq2_s,
        Type::IQ3_XXS => iq3_xxs,
        Type::IQ3_S => iq3_s,
        Type::IQ1_S => iq1_s,
        Type::IQ1_M => iq1_m,
        _ => return None,
    };
    Some(f)
}
