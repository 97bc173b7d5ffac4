//! Encoders under the names by which ggml's own CPU module calls them: a module that is built from ggml's sources (for
//! `GGML_BACKEND_DL`) imports these from the library and does not load without them. They are no public interface; programs use
//! `ggml_quantize_chunk` and the traits of a format. The rest of that family is not exported, since no module imports it.

use super::ggml::formats::{encode, ggml_quantize_chunk};
use crate::entry;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;
use std::ffi::c_void;

// cbindgen sees no macros inside `entry!`, so each function is written out.
entry! {
    /// Encodes `k` elements of q1_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q1_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q1_0_ref", Type::Q1_0, x, y, k);
    }
    /// Encodes `k` elements of q2_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q2_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q2_0_ref", Type::Q2_0, x, y, k);
    }
    /// Encodes `k` elements of q4_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q4_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q4_0_ref", Type::Q4_0, x, y, k);
    }
    /// Encodes `k` elements of q4_1, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q4_1_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q4_1_ref", Type::Q4_1, x, y, k);
    }
    /// Encodes `k` elements of q5_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q5_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q5_0_ref", Type::Q5_0, x, y, k);
    }
    /// Encodes `k` elements of q5_1, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q5_1_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q5_1_ref", Type::Q5_1, x, y, k);
    }
    /// Encodes `k` elements of q8_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q8_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q8_0_ref", Type::Q8_0, x, y, k);
    }
    /// Encodes `k` elements of q8_1, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q8_1_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q8_1_ref", Type::Q8_1, x, y, k);
    }
    /// Encodes `k` elements of mxfp4, whole blocks. (Modules: CPU.)
    pub fn quantize_row_mxfp4_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_mxfp4_ref", Type::MXFP4, x, y, k);
    }
    /// Encodes `k` elements of nvfp4, whole blocks. (Modules: CPU.)
    pub fn quantize_row_nvfp4_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_nvfp4_ref", Type::NVFP4, x, y, k);
    }
    /// Encodes `k` elements of q2_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q2_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q2_K_ref", Type::Q2_K, x, y, k);
    }
    /// Encodes `k` elements of q3_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q3_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q3_K_ref", Type::Q3_K, x, y, k);
    }
    /// Encodes `k` elements of q4_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q4_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q4_K_ref", Type::Q4_K, x, y, k);
    }
    /// Encodes `k` elements of q5_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q5_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q5_K_ref", Type::Q5_K, x, y, k);
    }
    /// Encodes `k` elements of q6_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q6_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q6_K_ref", Type::Q6_K, x, y, k);
    }
    /// Encodes `k` elements of q8_K, whole blocks. (Modules: CPU.)
    pub fn quantize_row_q8_K_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_q8_K_ref", Type::Q8_K, x, y, k);
    }
    /// Encodes `k` elements of tq1_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_tq1_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_tq1_0_ref", Type::TQ1_0, x, y, k);
    }
    /// Encodes `k` elements of tq2_0, whole blocks. (Modules: CPU.)
    pub fn quantize_row_tq2_0_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_tq2_0_ref", Type::TQ2_0, x, y, k);
    }
    /// Encodes `k` elements of iq4_nl, whole blocks. (Modules: CPU.)
    pub fn quantize_row_iq4_nl_ref(x: *const f32, y: *mut c_void, k: i64) {
        encode("quantize_row_iq4_nl_ref", Type::IQ4_NL, x, y, k);
    }
    /// `ggml_quantize_chunk` for iq4_xs, from the first element on. (Modules: CPU.)
    pub fn quantize_iq4_xs(src: *const f32, dst: *mut c_void, nrows: i64, n_per_row: i64, imatrix: *const f32) -> usize {
        ggml_quantize_chunk(GGML_TYPE_IQ4_XS, src, dst, 0, nrows, n_per_row, imatrix)
    }
}
