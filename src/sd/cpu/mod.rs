//! Kernels of the CPU. Each number is rounded in the order that the operator's specification gives, sums of integers are exact: results
//! do not depend on the processor or on the number of threads.

mod convrot;
mod dot;
mod linear_i8;
mod linear_w4;
mod modulate;
mod native;
mod norm_rope;
mod product;
mod rope_apply;
mod rotate;
mod to_i8;
mod view;

use super::kernel::Entry;

/// All of them. Attention has none: its operators run on NVIDIA's devices alone.
pub const KERNELS: [Entry; 9] = [
    Entry::of::<convrot::Quantize>(),
    Entry::of::<linear_i8::Linear>(),
    Entry::of::<linear_w4::Linear>(),
    Entry::of::<modulate::Modulate>(),
    Entry::of::<rope_apply::RopeApply>(),
    norm_rope::RULE,
    to_i8::RULES[0],
    to_i8::RULES[1],
    to_i8::RULES[2],
];

/// What the processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every processor can.
    Portable,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Level {
    /// All that this processor has, the best one last.
    pub fn all() -> impl Iterator<Item = Level> {
        #[cfg(target_arch = "x86_64")]
        let more = {
            let avx2 = is_x86_feature_detected!("avx2");
            let vnni = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni");
            [avx2.then_some(Level::Avx2), vnni.then_some(Level::Vnni)]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let more = [None];
        std::iter::once(Level::Portable).chain(more.into_iter().flatten())
    }

    /// The best one of this processor.
    pub fn best() -> Level {
        Level::all().last().unwrap_or(Level::Portable)
    }
}
