//! What the machine's processor can do, as clients ask for it.

use ggml_oxide_abi::*;
use std::sync::OnceLock;

/// Whether the processor has a feature, by the name that [`list`] uses; false for an unknown name.
pub fn has(name: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as x86;
        match name {
            "SSE3" => x86!("sse3"),
            "SSSE3" => x86!("ssse3"),
            "AVX" => x86!("avx"),
            "AVX_VNNI" => x86!("avxvnni"),
            "AVX2" => x86!("avx2"),
            "F16C" => x86!("f16c"),
            "FMA" => x86!("fma"),
            "BMI2" => x86!("bmi2"),
            "AVX512" => x86!("avx512f"),
            "AVX512_VBMI" => x86!("avx512vbmi"),
            "AVX512_VNNI" => x86!("avx512vnni"),
            "AVX512_BF16" => x86!("avx512bf16"),
            "AMX_INT8" => amx_int8(),
            _ => false,
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::is_aarch64_feature_detected as arm;
        match name {
            "NEON" | "ARM_FMA" => true,
            "FP16_VA" => arm!("fp16"),
            "DOTPROD" => arm!("dotprod"),
            "MATMUL_INT8" => arm!("i8mm"),
            "SVE" => arm!("sve"),
            "SME" => hwcap2(23),
            "SME2" => hwcap2(37),
            _ => false,
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = name;
        false
    }
}

/// Whether the processor multiplies tiles of bytes, and the system keeps the tiles.
#[cfg(target_arch = "x86_64")]
fn amx_int8() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    #[target_feature(enable = "xsave")]
    fn tiles_kept() -> bool {
        // SAFETY: the instruction is there: the caller asked.
        unsafe { _xgetbv(0) >> 17 & 3 == 3 }
    }
    // Leaf 1 says whether the system has turned the instruction on that tells what it keeps.
    let on = __cpuid(0).eax >= 7 && __cpuid(1).ecx >> 27 & 1 == 1;
    // SAFETY: as just asked.
    on && __cpuid_count(7, 0).edx >> 25 & 1 == 1 && unsafe { tiles_kept() }
}

/// A bit of the second word in which Linux tells a program about the processor.
#[cfg(target_arch = "aarch64")]
fn hwcap2(bit: u32) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // SAFETY: no memory is involved.
        unsafe { libc::getauxval(libc::AT_HWCAP2) as u64 >> bit & 1 == 1 }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = bit;
        false
    }
}

macro_rules! names {
    ($($name:literal),*) => { &[$(($name, concat!($name, "\0"))),*] };
}

const NAMES: &[(&str, &str)] = names![
    "SSE3",
    "SSSE3",
    "AVX",
    "AVX_VNNI",
    "AVX2",
    "F16C",
    "FMA",
    "BMI2",
    "AVX512",
    "AVX512_VBMI",
    "AVX512_VNNI",
    "AVX512_BF16",
    "AMX_INT8",
    "NEON",
    "ARM_FMA",
    "FP16_VA",
    "MATMUL_INT8",
    "SVE",
    "DOTPROD",
    "SME",
    "SME2"
];

/// The features that the processor has, each with the value "1", ended by an entry without a name.
pub unsafe extern "C" fn list(_: ggml_backend_reg_t) -> *mut ggml_backend_feature {
    static LIST: OnceLock<Vec<ggml_backend_feature>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let present = NAMES.iter().filter(|(name, _)| has(name));
        let entries = present.map(|(_, c)| ggml_backend_feature { name: c.as_ptr().cast(), value: c"1".as_ptr() });
        let end = ggml_backend_feature { name: std::ptr::null(), value: std::ptr::null() };
        entries.chain([end]).collect()
    });
    list.as_ptr().cast_mut()
}
