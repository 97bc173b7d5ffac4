//! 128-bit vectors of aarch64.

use super::lanes::{kernel_table, lane_methods, staged, Lanes};
use core::arch::aarch64::*;

#[derive(Clone, Copy)]
pub(crate) struct Q(pub(crate) float32x4_t);

impl Lanes for Q {
    const LANES: usize = 4;
    lane_methods! {
        fn zero() -> Self {
            Q(vdupq_n_f32(0.0))
        }
        fn splat(v: f32) -> Self {
            Q(vdupq_n_f32(v))
        }
        fn load(p: *const f32) -> Self {
            Q(vld1q_f32(p))
        }
        fn store(self, p: *mut f32) {
            vst1q_f32(p, self.0)
        }
        fn load_n(p: *const f32, n: usize) -> Self {
            Self::load(staged::<f32, 4>(p, n).as_ptr())
        }
        fn store_n(self, p: *mut f32, n: usize) {
            let mut buf = [0.0; 4];
            self.store(buf.as_mut_ptr());
                core::ptr::copy_nonoverlapping(buf.as_ptr(), p, n.min(4));
        }
        fn load_f16(p: *const u16) -> Self {
            let out: float32x4_t;
            let h = vld1_u16(p);
                // The intrinsic for this baseline instruction is younger than the compiler that we ask for.
                core::arch::asm!("fcvtl {o:v}.4s, {i:v}.4h", o = out(vreg) out, i = in(vreg) h,
                    options(pure, nomem, nostack, preserves_flags));
            Q(out)
        }
        fn load_f16_n(p: *const u16, n: usize) -> Self {
            Self::load_f16(staged::<u16, 4>(p, n).as_ptr())
        }
        fn load_bf16(p: *const u16) -> Self {
            Q(vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p))))
        }
        fn load_bf16_n(p: *const u16, n: usize) -> Self {
            Self::load_bf16(staged::<u16, 4>(p, n).as_ptr())
        }
        fn fma(self, a: Self, b: Self) -> Self {
            Q(vfmaq_f32(self.0, a.0, b.0))
        }
        fn add(self, o: Self) -> Self {
            Q(vaddq_f32(self.0, o.0))
        }
        fn mul(self, o: Self) -> Self {
            Q(vmulq_f32(self.0, o.0))
        }
        fn sum(self) -> f32 {
            vaddvq_f32(self.0)
        }
        fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize) {
            let (a, b, c, d) = (load(0).0, load(1).0, load(2).0, load(3).0);
            let d64 = |x| vreinterpretq_f64_f32(x);
            let f32s = |x| vreinterpretq_f32_f64(x);
            let (ab0, ab1) = (vtrn1q_f32(a, b), vtrn2q_f32(a, b));
            let (cd0, cd1) = (vtrn1q_f32(c, d), vtrn2q_f32(c, d));
            let o = [
                f32s(vtrn1q_f64(d64(ab0), d64(cd0))),
                f32s(vtrn1q_f64(d64(ab1), d64(cd1))),
                f32s(vtrn2q_f64(d64(ab0), d64(cd0))),
                f32s(vtrn2q_f64(d64(ab1), d64(cd1))),
            ];
            for (i, &v) in o.iter().enumerate() {
                if i < steps {
                    Q(v).store_n(dst.add(i * pitch), keep);
                }
            }
        }
    }
}

kernel_table! {
    lanes: Q, features: "neon", vectors: 2, halves: 1,
    columns: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    dot_rows: [8 / 1, 6 / 2, 4 / 3, 4 / 4, 4 / 5, 4 / 6]
}
