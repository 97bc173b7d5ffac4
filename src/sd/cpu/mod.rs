//! Kernels of the CPU. Each number is rounded in the order that the operator's specification gives, sums of integers are exact: results
//! do not depend on the processor or on the number of threads.

mod convrot;
mod dot;
mod gated;
mod linear_i8;
mod linear_w4;
mod modulate;
mod native;
mod norm_rope;
mod pack;
mod product;
mod rope_apply;
mod rotate;
#[cfg(target_arch = "x86_64")]
mod rotate_x86;
mod rows;
mod tile;
mod to_i8;
mod view;

use super::fusion::rule;
use super::kernel::Entry;
use std::sync::OnceLock;

/// All of them. Attention has none: its operators run on NVIDIA's devices alone.
pub const KERNELS: [Entry; 10] = [
    Entry::of::<convrot::Quantize>(),
    Entry::of::<linear_i8::Linear>(),
    Entry::of::<linear_w4::Linear>(),
    Entry::of::<modulate::Modulate>(),
    Entry::of::<rope_apply::RopeApply>(),
    rule::<norm_rope::NormRope>(),
    rule::<to_i8::ToI8<to_i8::Swiglu>>(),
    rule::<to_i8::ToI8<to_i8::Modulated>>(),
    rule::<to_i8::ToI8<to_i8::Normalised>>(),
    rule::<gated::Gated>(),
];

/// What the processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every processor can.
    Portable,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2 with VNNI.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// NEON with dot products.
    #[cfg(target_arch = "aarch64")]
    Dot,
}

impl Level {
    /// All that this processor has, the best one last.
    pub fn all() -> impl Iterator<Item = Level> {
        #[cfg(target_arch = "x86_64")]
        let more = {
            let avx2 = is_x86_feature_detected!("avx2");
            let avx_vnni = avx2 && is_x86_feature_detected!("avxvnni");
            let vnni = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni");
            [avx2.then_some(Level::Avx2), avx_vnni.then_some(Level::AvxVnni), vnni.then_some(Level::Vnni)]
        };
        #[cfg(target_arch = "aarch64")]
        let more = [std::arch::is_aarch64_feature_detected!("dotprod").then_some(Level::Dot)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let more = [None];
        std::iter::once(Level::Portable).chain(more.into_iter().flatten())
    }

    /// The best one of this processor.
    pub fn best() -> Level {
        Level::all().last().unwrap_or(Level::Portable)
    }
}

/// Threads that have scratch memory to themselves, of those that take `pieces`: no more than there are processors.
fn processors(pieces: usize) -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let n = PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    pieces.clamp(1, *n)
}
