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
            _ => false,
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = name;
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
    "NEON",
    "ARM_FMA",
    "FP16_VA",
    "MATMUL_INT8",
    "SVE",
    "DOTPROD"
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
