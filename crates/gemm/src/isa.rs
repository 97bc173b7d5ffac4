//! Which instruction set the kernels use, found once per process.

use std::sync::OnceLock;

/// Instruction set of the micro-kernels. The order is from slow to fast within one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust, any machine.
    Portable,
    /// 128-bit vectors of aarch64.
    Neon,
    /// 256-bit vectors with FMA and F16C.
    Avx2,
    /// 512-bit vectors (F, BW, VL, DQ).
    Avx512,
}

impl Isa {
    /// The fastest set that this machine runs. `GGML_OXIDE_GEMM_ISA` = `portable`, `avx2` or
    /// `avx512` lowers it (a set that the machine lacks is ignored); on a thread that computes
    /// [plainly](ggml_oxide_types::plain) it is `Portable`.
    pub fn best() -> Isa {
        if ggml_oxide_types::plain::on() {
            return Isa::Portable;
        }
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let wanted = match std::env::var("GGML_OXIDE_GEMM_ISA").as_deref() {
                Ok("portable") => Some(Isa::Portable),
                Ok("neon") => Some(Isa::Neon),
                Ok("avx2") => Some(Isa::Avx2),
                Ok("avx512") => Some(Isa::Avx512),
                _ => None,
            };
            let all = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Portable];
            wanted.into_iter().chain(all).find(|isa| isa.is_available()).unwrap_or(Isa::Portable)
        })
    }

    /// Whether this machine can run the set.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// Every set that this machine can run, slowest first.
    pub fn available() -> Vec<Isa> {
        [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_available()).collect()
    }
}
