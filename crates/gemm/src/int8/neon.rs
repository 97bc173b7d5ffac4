//! Integer kernels with the dot product instructions of aarch64.

use super::tile::{tile, Int8Tile, IntLanes};
use super::{activations, unpack, Int8Kernels};
use crate::isa::Isa;
use crate::kernel::lanes::lane_methods;
use crate::kernel::neon::Q;
use core::arch::aarch64::*;
use ggml_oxide_types::Type;

/// The integer kernels of this machine for `isa`.
pub(crate) fn kernels(isa: Isa) -> Option<&'static Int8Kernels> {
    (isa == Isa::Neon && std::arch::is_aarch64_feature_detected!("dotprod")).then_some(&KERNELS)
}

#[derive(Clone, Copy)]
struct IntQ(int32x4_t);

impl IntLanes for IntQ {
    type F = Q;
    // The instruction multiplies signed bytes only.
    const BIAS: i32 = 128;
    lane_methods! {
        fn load(p: *const u8) -> Self {
            IntQ(vreinterpretq_s32_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(0x80))))
        }
        fn splat(v: i32) -> Self {
            IntQ(vdupq_n_s32(v))
        }
        fn dot4(self, w: Self, x: Self) -> Self {
            let mut acc = self.0;
            // The intrinsic for it is not in the stable standard library.
                core::arch::asm!("sdot {a:v}.4s, {w:v}.16b, {x:v}.16b", a = inout(vreg) acc, w = in(vreg) w.0,
                    x = in(vreg) x.0, options(pure, nomem, nostack, preserves_flags));
            IntQ(acc)
        }
        fn to_f32(self) -> Q {
            Q(vcvtq_f32_s32(self.0))
        }
    }
}

#[target_feature(enable = "neon,dotprod")]
unsafe fn kernel<const N: usize, const G: usize, const MIN: bool>(t: &Int8Tile) {
    // SAFETY: the caller's contract is this function's.
    unsafe { tile::<IntQ, 2, N, G, MIN>(t) }
}

#[target_feature(enable = "neon")]
unsafe fn unpack_row(ty: Type, src: *const u8, kc: usize, out: &mut unpack::Row) {
    // SAFETY: the caller's contract is this function's.
    unsafe { unpack::unpack(ty, src, kc, out) }
}

#[target_feature(enable = "neon")]
unsafe fn quantise(x: &[f32], group: usize, q: &mut [i8], scale: &mut [f32], sums: &mut [i32]) {
    activations::quantise(x, group, q, scale, sums)
}

macro_rules! tiles {
    ($g:literal, $min:literal) => {
        &[
            kernel::<1, $g, $min>,
            kernel::<2, $g, $min>,
            kernel::<3, $g, $min>,
            kernel::<4, $g, $min>,
            kernel::<5, $g, $min>,
            kernel::<6, $g, $min>,
        ]
    };
}

/// Integer kernels of this instruction set.
static KERNELS: Int8Kernels = Int8Kernels {
    mr: 8,
    nr: 6,
    bias: IntQ::BIAS,
    tile: [[tiles!(32, false), tiles!(32, true)], [tiles!(16, false), tiles!(16, true)]],
    unpack: unpack_row,
    quantise,
};
