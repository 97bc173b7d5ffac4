//! Vector arithmetic for the row kernels: 16 logical f32 lanes on every instruction set.
//!
//! A kernel is written once, generic over [`Lanes`], and [`dispatch`] runs the copy compiled for the machine. Sixteen lanes
//! everywhere (one AVX-512 register, two AVX2 registers, an array) and explicit fused multiply-adds mean that AVX-512, AVX2 and
//! any target whose plain `f32::mul_add` is one instruction give the same bits. The portable copy on a machine without FMA
//! rounds twice instead, since a software FMA would cost more than it gains.
//!
//! May import: nothing of this crate.

mod elem;
mod lanes;
pub mod map;
pub mod math;
pub mod part;
mod portable;
pub mod reduce;
pub mod sincos;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;
#[cfg(target_arch = "x86_64")]
mod x86_avx512;

pub use elem::{Bf16, Elem, F16, F32};
pub use lanes::{Lanes, LANES};
pub use portable::Portable;

use std::sync::OnceLock;

/// Instruction set that row kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Plain Rust.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL and DQ.
    Avx512,
}

impl Isa {
    /// Every set that this machine runs, slowest first.
    pub fn available() -> Vec<Isa> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut v = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                v.push(Isa::Avx2);
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                {
                    v.push(Isa::Avx512);
                }
            }
        }
        v
    }

    /// The fastest set that this machine runs; on a thread that computes [plainly](ggml_oxide_types::plain) the portable one.
    #[inline]
    pub fn best() -> Isa {
        if ggml_oxide_types::plain::on() {
            return Isa::Portable;
        }
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available().pop().unwrap_or(Isa::Portable))
    }
}

/// Work written once over [`Lanes`].
pub trait Kernel {
    /// What it answers.
    type Out;
    /// Does the work. Must be `#[inline(always)]`, so that the body is compiled inside the function that enables the instructions.
    ///
    /// # Safety
    /// The machine runs `V`'s instructions, and the kernel's own pointers are good for what it reads and writes.
    unsafe fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs `k` with the best instructions of this machine.
///
/// # Safety
/// The kernel's pointers are good for what it reads and writes.
#[inline]
pub unsafe fn dispatch<K: Kernel>(k: K) -> K::Out {
    // SAFETY: `best` names a set this machine runs; the pointers are the caller's promise.
    unsafe { dispatch_on(Isa::best(), k) }
}

/// Runs `k` with the instructions of `isa`.
///
/// # Safety
/// `isa` is available, and the kernel's pointers are good for what it reads and writes.
#[inline]
pub unsafe fn dispatch_on<K: Kernel>(isa: Isa, k: K) -> K::Out {
    // SAFETY: the caller's promise.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => on_avx512(k),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => on_avx2(k),
            _ => k.run::<Portable>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")]
unsafe fn on_avx512<K: Kernel>(k: K) -> K::Out {
    // SAFETY: the features are enabled here and present by the caller's promise.
    unsafe { k.run::<x86_avx512::Avx512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn on_avx2<K: Kernel>(k: K) -> K::Out {
    // SAFETY: the features are enabled here and present by the caller's promise.
    unsafe { k.run::<x86_avx2::Avx2>() }
}
