//! Matrix products and attention.

use super::*;

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    vec![
        form("ggml_mul_mat", vec![num(W, [256, 5, 2, 3]), num(S, [256, 4, 2, 3])], |c, s| ggml_mul_mat(c, s[0], s[1])).batched().near(2e-6),
        form("ggml_mul_mat of one column", vec![num(W, [256, 9, 1, 1]), num(F, [256, 1, 1, 1])], |c, s| ggml_mul_mat(c, s[0], s[1])).near(2e-6),
        form("ggml_mul_mat broadcast", vec![num(W, [256, 5, 2, 1]), num(S, [256, 18, 4, 3])], |c, s| ggml_mul_mat(c, s[0], s[1])).batched_of(&[false, true]).by_rows(1).near(2e-6),
        form("ggml_mul_mat of floats", vec![num(F, [33, 5, 2, 3]), num(F, [33, 4, 4, 3])], |c, s| ggml_mul_mat(c, s[0], s[1])).batched().near(2e-6),
        form("ggml_mul_mat_id", vec![num(W, [256, 5, 6, 1]), num(S, [256, 2, 4, 1]), index(I, [2, 4, 1, 1], 6)], |c, s| ggml_mul_mat_id(c, s[0], s[1], s[2])).near(2e-6),
        form("ggml_flash_attn_ext", vec![num(S, [32, 5, 4, 3]), num(W, [32, 9, 2, 3]), num(W, [64, 9, 2, 3])], |c, s| ggml_flash_attn_ext(c, s[0], s[1], s[2], std::ptr::null_mut(), 0.2, 0.0, 0.0)).batched().near(2e-6),
        form("ggml_flash_attn_ext with mask", vec![num(S, [32, 5, 4, 3]), num(H, [32, 9, 2, 3]), num(H, [32, 9, 2, 3]), mask(&[GGML_TYPE_F16], [9, 5, 1, 1]), num(S, [4, 1, 1, 1])], |c, s| {
            let out = ggml_flash_attn_ext(c, s[0], s[1], s[2], s[3], 0.2, 8.0, 0.0);
            ggml_flash_attn_ext_add_sinks(out, s[4]);
            out
        }).batched_of(&[true, true, true, false, false]).near(2e-6),
    ]
}
