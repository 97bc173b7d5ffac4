//! Integer kernels with VNNI instructions, 512 and 256 bits wide.

use super::tile::{tile, Int8Tile, IntLanes};
use super::{activations, unpack, Int8Kernels};
use crate::isa::Isa;
use crate::kernel::avx2::Ymm;
use crate::kernel::avx512::Zmm;
use crate::kernel::lanes::lane_methods;
use core::arch::x86_64::*;
use ggml_oxide_types::Type;

/// The integer kernels of this machine for `isa`.
pub(crate) fn kernels(isa: Isa) -> Option<&'static Int8Kernels> {
    match isa {
        Isa::Avx512 if is_x86_feature_detected!("avx512vnni") => Some(&wide::KERNELS),
        Isa::Avx2 if is_x86_feature_detected!("avxvnni") => Some(&narrow::KERNELS),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct IntZmm(__m512i);

impl IntLanes for IntZmm {
    type F = Zmm;
    lane_methods! {
        fn load(p: *const u8) -> Self {
            IntZmm(_mm512_loadu_si512(p.cast()))
        }
        fn splat(v: i32) -> Self {
            IntZmm(_mm512_set1_epi32(v))
        }
        fn dot4(self, w: Self, x: Self) -> Self {
            IntZmm(_mm512_dpbusd_epi32(self.0, w.0, x.0))
        }
        fn to_f32(self) -> Zmm {
            Zmm(_mm512_cvtepi32_ps(self.0))
        }
    }
}

#[derive(Clone, Copy)]
struct IntYmm(__m256i);

impl IntLanes for IntYmm {
    type F = Ymm;
    lane_methods! {
        fn load(p: *const u8) -> Self {
            IntYmm(_mm256_loadu_si256(p.cast()))
        }
        fn splat(v: i32) -> Self {
            IntYmm(_mm256_set1_epi32(v))
        }
        fn dot4(self, w: Self, x: Self) -> Self {
            IntYmm(_mm256_dpbusd_avx_epi32(self.0, w.0, x.0))
        }
        fn to_f32(self) -> Ymm {
            Ymm(_mm256_cvtepi32_ps(self.0))
        }
    }
}

macro_rules! int8_table {
    ($module:ident, $lanes:ty, $feat:literal, $v:literal, $mr:literal, [$($n:literal),*]) => {
        mod $module {
            use super::*;
            #[target_feature(enable = $feat)]
            unsafe fn kernel<const N: usize, const G: usize, const MIN: bool>(t: &Int8Tile) {
                // SAFETY: the caller's contract is this function's.
                unsafe { tile::<$lanes, $v, N, G, MIN>(t) }
            }
            #[target_feature(enable = $feat)]
            unsafe fn unpack_row(ty: Type, src: *const u8, kc: usize, out: &mut unpack::Row) {
                // SAFETY: the caller's contract is this function's.
                unsafe { unpack::unpack(ty, src, kc, out) }
            }
            #[target_feature(enable = $feat)]
            unsafe fn quantise(
                x: &[f32],
                group: usize,
                q: &mut [i8],
                scale: &mut [f32],
                sums: &mut [i32],
            ) {
                activations::quantise(x, group, q, scale, sums)
            }
            /// Integer kernels of this instruction set.
            pub(super) static KERNELS: Int8Kernels = Int8Kernels {
                bias: <$lanes>::BIAS,
                mr: $mr,
                nr: [$($n),*].len(),
                tile: [
                    [&[$(kernel::<$n, 32, false>),*], &[$(kernel::<$n, 32, true>),*]],
                    [&[$(kernel::<$n, 16, false>),*], &[$(kernel::<$n, 16, true>),*]],
                ],
                unpack: unpack_row,
                quantise,
            };
        }
    };
}

int8_table!(wide, IntZmm, "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c", 2, 32, [1, 2, 3, 4, 5, 6]);
int8_table!(narrow, IntYmm, "avxvnni,avx2,fma,f16c", 2, 16, [1, 2, 3]);
