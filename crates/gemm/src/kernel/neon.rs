//! 128-bit vectors of aarch64.

use super::lanes::{kernel_table, staged, Lanes};
use core::arch::aarch64::*;

#[derive(Clone, Copy)]
pub(crate) struct Q(pub(crate) float32x4_t);

// SAFETY for the whole block: these methods are inlined into functions that enable the features, and callers vouch
// for the memory.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Q {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn zero() -> Self {
        Q(unsafe { vdupq_n_f32(0.0) })
    }
    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        Q(unsafe { vdupq_n_f32(v) })
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Q(unsafe { vld1q_f32(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { vst1q_f32(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> Self {
        unsafe { Self::load(staged::<f32, 4>(p, n).as_ptr()) }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize) {
        let mut buf = [0.0; 4];
        unsafe {
            self.store(buf.as_mut_ptr());
            core::ptr::copy_nonoverlapping(buf.as_ptr(), p, n.min(4));
        }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        let out: float32x4_t;
        unsafe {
            let h = vld1_u16(p);
            // The intrinsic for this baseline instruction is younger than the compiler that we ask for.
            core::arch::asm!("fcvtl {o:v}.4s, {i:v}.4h", o = out(vreg) out, i = in(vreg) h,
                options(pure, nomem, nostack, preserves_flags));
        }
        Q(out)
    }
    #[inline(always)]
    unsafe fn load_f16_n(p: *const u16, n: usize) -> Self {
        unsafe { Self::load_f16(staged::<u16, 4>(p, n).as_ptr()) }
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> Self {
        Q(unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p))) })
    }
    #[inline(always)]
    unsafe fn load_bf16_n(p: *const u16, n: usize) -> Self {
        unsafe { Self::load_bf16(staged::<u16, 4>(p, n).as_ptr()) }
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        Q(unsafe { vfmaq_f32(self.0, a.0, b.0) })
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        Q(unsafe { vaddq_f32(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        Q(unsafe { vmulq_f32(self.0, o.0) })
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe { vaddvq_f32(self.0) }
    }
    #[inline(always)]
    unsafe fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize) {
        unsafe {
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
