//! Dot products of the K-quants with q8_K.

use std::arch::x86_64::*;

use super::isa::{load32, sum8, Avx2, Isa, Vnni};
use super::unpack::{each_eighth, scale_pair, Super, Q2K, Q3K, Q4K, Q5K, Q6K};
use crate::kernels::{DotTile, Level, Rows};
use crate::Type;

/// Bytes of a q8_K block: f32 d, 256 codes, 16 sums.
const YB: usize = 292;

/// A format at an instruction set.
trait Pair {
    type X: Super;
    type I: Isa;
}

impl<X: Super, I: Isa> Pair for (X, I) {
    type X = X;
    type I = I;
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
        for i in 0..nb {
            for r in 0..R {
                let b = x.ptr.add(r * x.stride + i * P::X::BYTES);
                let (scales, mins) = (P::X::scales(b), P::X::mins(b));
                let (d, dmin) = P::X::d(b);
                let mut sum = [_mm256_setzero_si256(); C];
                each_eighth!(J => {
                    let codes = P::X::codes::<J>(b);
                    let scale = scale_pair::<J>(scales);
                    for c in 0..C {
                        let q = load32(y.ptr.add(c * y.stride + i * YB + 4 + 32 * J));
                        // Codes are below 64, so the pair sums fit in i16.
                        sum[c] = P::I::madd(sum[c], scale, _mm256_maddubs_epi16(codes, q));
                    }
                });
                for c in 0..C {
                    let yb = y.ptr.add(c * y.stride + i * YB);
                    let yd = yb.cast::<f32>().read_unaligned();
                    let low = _mm256_madd_epi16(mins, load32(yb.add(260)));
                    if P::X::SYMMETRIC {
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
        for r in 0..R {
            for c in 0..C {
                out.add(c * out_stride + r).write(sum8(acc[r][c]));
            }
        }
    }
}

super::isa::tiles!(group, Pair, 256, 1);

super::isa::tile_fn!("avx2,fma,f16c";
    q2_avx2: (Q2K, Avx2), q3_avx2: (Q3K, Avx2), q4_avx2: (Q4K, Avx2), q5_avx2: (Q5K, Avx2), q6_avx2: (Q6K, Avx2));
super::isa::tile_fn!("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni";
    q2_vnni: (Q2K, Vnni), q3_vnni: (Q3K, Vnni), q4_vnni: (Q4K, Vnni), q5_vnni: (Q5K, Vnni), q6_vnni: (Q6K, Vnni));

/// The dot product of `ty` at `level`, if it is one of these formats.
pub(super) fn pick(ty: Type, level: Level) -> Option<DotTile> {
    let vnni = level >= Level::Avx512;
    let f: DotTile = match ty {
        Type::Q2_K if vnni => q2_vnni,
        Type::Q3_K if vnni => q3_vnni,
        Type::Q4_K if vnni => q4_vnni,
        Type::Q5_K if vnni => q5_vnni,
        Type::Q6_K if vnni => q6_vnni,
        Type::Q2_K => q2_avx2,
        Type::Q3_K => q3_avx2,
        Type::Q4_K => q4_avx2,
        Type::Q5_K => q5_avx2,
        Type::Q6_K => q6_avx2,
        _ => return None,
    };
    Some(f)
}
