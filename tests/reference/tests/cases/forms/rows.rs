//! Sums, normalisation, softmax, sorting, rows by index, rope, repetition, concatenation.

use super::*;

const N: [usize; 4] = [8, 6, 4, 3];

fn rope(c: Ctx, s: &[T], mode: i32) -> T {
    let freqs = s.get(2).copied().unwrap_or(std::ptr::null_mut());
    if mode & 8 != 0 {
        let mut sections = [2, 1, 1, 0];
        return ggml_rope_multi(
            c,
            s[0],
            s[1],
            freqs,
            8,
            sections.as_mut_ptr(),
            mode,
            512,
            1e4,
            1.0,
            0.5,
            1.0,
            32.0,
            1.0,
        );
    }
    ggml_rope_ext(c, s[0], s[1], freqs, 6, mode, 512, 1e4, 1.0, 0.5, 1.0, 32.0, 1.0)
}

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    let k = vec![num(F, N)];
    let tokens = || counting([4, 1, 1, 1]);
    let streams = || counting([16, 1, 1, 1]);
    vec![
        form("ggml_sum", k.clone(), |c, s| ggml_sum(c, s[0])).near(1e-5),
        form("ggml_sum_rows", k.clone(), |c, s| ggml_sum_rows(c, s[0])).batched().by_rows(0),
        form("ggml_mean", k.clone(), |c, s| ggml_mean(c, s[0])).batched().by_rows(0),
        form("ggml_cumsum", k.clone(), |c, s| ggml_cumsum(c, s[0])).batched().by_rows(0),
        form("ggml_argmax", vec![num(F, [8, 6, 1, 1])], |c, s| ggml_argmax(c, s[0])),
        form("ggml_count_equal", vec![with(I, N, Fill::Whole(0, 3)), with(I, N, Fill::Whole(0, 3))], |c, s| ggml_count_equal(c, s[0], s[1])),
        form("ggml_argsort ascending", k.clone(), |c, s| ggml_argsort(c, s[0], GGML_SORT_ORDER_ASC)).batched().by_rows(0),
        form("ggml_argsort descending", k.clone(), |c, s| ggml_argsort(c, s[0], GGML_SORT_ORDER_DESC)).batched().by_rows(0),
        form("ggml_argsort_top_k", k.clone(), |c, s| ggml_argsort_top_k(c, s[0], 3)).batched().by_rows(0),
        form("ggml_top_k", k.clone(), |c, s| ggml_top_k(c, s[0], 3)).batched().by_rows(0),
        form("ggml_norm", k.clone(), |c, s| ggml_norm(c, s[0], 1e-6)).batched().by_rows(0),
        form("ggml_norm_inplace", k.clone(), |c, s| ggml_norm_inplace(c, s[0], 1e-6)).over(),
        form("ggml_rms_norm", k.clone(), |c, s| ggml_rms_norm(c, s[0], 1e-6)).batched().by_rows(0),
        form("ggml_rms_norm_inplace", k.clone(), |c, s| ggml_rms_norm_inplace(c, s[0], 1e-6)).over(),
        form("ggml_l2_norm", k.clone(), |c, s| ggml_l2_norm(c, s[0], 1e-6)).batched().by_rows(0),
        form("ggml_l2_norm_inplace", k.clone(), |c, s| ggml_l2_norm_inplace(c, s[0], 1e-6)).over(),
        form("ggml_group_norm", k.clone(), |c, s| ggml_group_norm(c, s[0], 2, 1e-6)).batched().near(1e-5),
        form("ggml_group_norm_inplace", k.clone(), |c, s| ggml_group_norm_inplace(c, s[0], 2, 1e-6)).over().near(1e-5),
        form("ggml_soft_max", k.clone(), |c, s| ggml_soft_max(c, s[0])).batched().by_rows(0),
        form("ggml_soft_max_inplace", k.clone(), |c, s| ggml_soft_max_inplace(c, s[0])).over(),
        form("ggml_soft_max_ext", vec![num(S, N), mask(H, [8, 6, 1, 1])], |c, s| ggml_soft_max_ext(c, s[0], s[1], 0.5, 0.0)).batched_of(&[true, false]).by_rows(0),
        form("ggml_soft_max_ext with bias", vec![num(S, N), mask(H, [8, 7, 4, 3])], |c, s| ggml_soft_max_ext(c, s[0], s[1], 0.5, 8.0)).batched().by_rows(0),
        form("ggml_soft_max_ext_inplace", vec![num(S, N), mask(H, [8, 6, 2, 1])], |c, s| ggml_soft_max_ext_inplace(c, s[0], s[1], 0.5, 8.0)).over(),
        form("ggml_soft_max_add_sinks", vec![num(S, N), mask(H, [8, 6, 1, 1]), num(S, [4, 1, 1, 1])], |c, s| {
            let out = ggml_soft_max_ext(c, s[0], s[1], 0.5, 0.0);
            ggml_soft_max_add_sinks(out, s[2]);
            out
        }).batched_of(&[true, false, false]).by_rows(0),
        form("ggml_diag_mask_inf", k.clone(), |c, s| ggml_diag_mask_inf(c, s[0], 1)).batched().by_rows(0),
        form("ggml_diag_mask_inf_inplace", k.clone(), |c, s| ggml_diag_mask_inf_inplace(c, s[0], 1)).over(),
        form("ggml_diag_mask_zero", k.clone(), |c, s| ggml_diag_mask_zero(c, s[0], 1)).batched().by_rows(0),
        form("ggml_diag_mask_zero_inplace", k.clone(), |c, s| ggml_diag_mask_zero_inplace(c, s[0], 1)).over(),
        form("ggml_tri", vec![num(S, [6, 6, 4, 3])], |c, s| ggml_tri(c, s[0], GGML_TRI_TYPE_LOWER)).batched().by_rows(0),
        form("ggml_diag", vec![num(F, [8, 1, 4, 3])], |c, s| ggml_diag(c, s[0])).batched(),
        form("ggml_rope", vec![num(F, N), tokens()], |c, s| rope(c, s, 0)).batched_of(&[true, false]).by_rows(0),
        form("ggml_rope neox", vec![num(F, N), tokens(), positive(S, [4, 1, 1, 1])], |c, s| rope(c, s, 2)).batched_of(&[true, false, false]).by_rows(0),
        form("ggml_rope mrope", vec![num(F, N), streams()], |c, s| rope(c, s, 8)).batched_of(&[true, false]).by_rows(0),
        form("ggml_rope_inplace", vec![num(F, N), tokens()], |c, s| ggml_rope_inplace(c, s[0], s[1], 6, 0)).over(),
        form("ggml_repeat", vec![num(ANY, [64, 3, 2, 1])], |c, s| ggml_repeat_4d(c, s[0], 128, 6, 4, 3)),
        form("ggml_repeat along 3", vec![num(ANY, [64, 3, 2, 3])], |c, s| ggml_repeat_4d(c, s[0], 64, 6, 2, t(s[0]).ne[3])).batched(),
        form("ggml_concat 0", vec![num(ANY, [64, 3, 2, 2]), num(ANY, [128, 3, 2, 2])], |c, s| ggml_concat(c, s[0], s[1], 0)).batched(),
        form("ggml_concat 1", vec![num(ANY, [64, 3, 2, 2]), num(ANY, [64, 2, 2, 2])], |c, s| ggml_concat(c, s[0], s[1], 1)).batched(),
        form("ggml_concat 2", vec![num(ANY, [64, 3, 2, 2]), num(ANY, [64, 3, 3, 2])], |c, s| ggml_concat(c, s[0], s[1], 2)).batched(),
        form("ggml_concat 3", vec![num(ANY, [64, 3, 2, 2]), num(ANY, [64, 3, 2, 1])], |c, s| ggml_concat(c, s[0], s[1], 3)),
        form("ggml_get_rows", vec![num(W, [256, 7, 2, 3]), index(I, [5, 2, 3, 1], 7)], |c, s| ggml_get_rows(c, s[0], s[1])),
        form("ggml_get_rows of i32", vec![with(I, [8, 7, 2, 3], Fill::Whole(-9, 9)), index(I, [5, 2, 3, 1], 7)], |c, s| ggml_get_rows(c, s[0], s[1])),
        form("ggml_set_rows", vec![num(W, [256, 7, 2, 3]), num(F, [256, 5, 2, 3]), Src { types: II, ne: [5, 2, 3, 1], content: Content::Once(7, vec![6.0, 0.0, 2.0, 5.0, 1.0]) }], |c, s| ggml_set_rows(c, s[0], s[1], s[2])).over(),
    ]
}
