//! Operators that carry a state along a sequence, windows of a picture, hyper-connections, triangular systems.

use super::*;

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    let n = |ne| num(S, ne);
    let heads = [4, 3, 6, 1];
    vec![
        form("ggml_ssm_conv", vec![n([8, 5, 3, 1]), n([4, 5, 1, 1])], |c, s| ggml_ssm_conv(c, s[0], s[1])).near(2e-6),
        form("ggml_ssm_scan", vec![n([4, 2, 6, 5]), n([2, 6, 3, 2]), n([6, 3, 2, 1]), n([1, 6, 1, 1]), n([4, 2, 3, 2]), n([4, 2, 3, 2]), index(I, [2, 1, 1, 1], 5)],
            |c, s| ggml_ssm_scan(c, s[0], s[1], s[2], s[3], s[4], s[5], s[6], 1)).near(2e-6),
        form("ggml_ssm_scan of 1", vec![n([4, 1, 6, 5]), n([1, 6, 3, 2]), n([6, 3, 2, 1]), n([4, 6, 1, 1]), n([4, 2, 3, 2]), n([4, 2, 3, 2]), index(I, [2, 1, 1, 1], 5)],
            |c, s| ggml_ssm_scan(c, s[0], s[1], s[2], s[3], s[4], s[5], s[6], 1)).near(2e-6),
        form("ggml_rwkv_wkv6", vec![n(heads), n(heads), n(heads), n([4, 3, 1, 1]), positive(S, heads), n([48, 2, 1, 1])],
            |c, s| ggml_rwkv_wkv6(c, s[0], s[1], s[2], s[3], s[4], s[5])).near(2e-6),
        form("ggml_gated_linear_attn", vec![n(heads), n(heads), n(heads), positive(S, heads), n([48, 2, 1, 1])],
            |c, s| ggml_gated_linear_attn(c, s[0], s[1], s[2], s[3], s[4], 0.5)).near(2e-6),
        form("ggml_rwkv_wkv7", vec![n(heads), positive(S, heads), n(heads), n(heads), n(heads), n(heads), n([48, 2, 1, 1])],
            |c, s| ggml_rwkv_wkv7(c, s[0], s[1], s[2], s[3], s[4], s[5], s[6])).near(2e-6),
        form("ggml_gated_delta_net", vec![n([4, 1, 6, 2]), n([4, 1, 6, 2]), n([4, 3, 6, 2]), n([1, 3, 6, 2]), positive(S, [1, 3, 6, 2]), n([4, 4, 3, 2])],
            |c, s| ggml_gated_delta_net(c, s[0], s[1], s[2], s[3], s[4], s[5], 1)).near(2e-6),
        form("ggml_solve_tri", vec![positive(S, [5, 5, 4, 3]), n([6, 5, 4, 3])], |c, s| ggml_solve_tri(c, s[0], s[1], true, true, false)).batched().near(2e-6),
        form("ggml_win_part", vec![n([3, 7, 5, 1])], |c, s| ggml_win_part(c, s[0], 4)),
        form("ggml_win_unpart", vec![n([3, 4, 4, 4])], |c, s| ggml_win_unpart(c, s[0], 7, 5, 4)),
        form("ggml_get_rel_pos", vec![num(&[GGML_TYPE_F16, GGML_TYPE_F32], [6, 9, 1, 1])], |c, s| ggml_get_rel_pos(c, s[0], 5, 5)),
        form("ggml_add_rel_pos", vec![n([16, 6, 2, 1]), n([4, 3, 2, 2]), n([4, 3, 2, 2])], |c, s| ggml_add_rel_pos(c, s[0], s[1], s[2])),
        form("ggml_add_rel_pos_inplace", vec![n([16, 6, 2, 1]), n([4, 3, 2, 2]), n([4, 3, 2, 2])], |c, s| ggml_add_rel_pos_inplace(c, s[0], s[1], s[2])).over(),
        form("ggml_lightning_indexer", vec![n([32, 4, 5, 3]), num(W, [32, 1, 7, 3]), n([4, 5, 1, 3]), mask(&[GGML_TYPE_F16], [7, 5, 1, 1])],
            |c, s| ggml_lightning_indexer(c, s[0], s[1], s[2], s[3])).batched_of(&[true, true, true, false]).near(2e-6),
        form("ggml_dsv4_hc_comb", vec![n([24, 5, 1, 1]), n([3, 1, 1, 1]), n([24, 1, 1, 1])], |c, s| ggml_dsv4_hc_comb(c, s[0], s[1], s[2], 1e-6, 3)),
        form("ggml_dsv4_hc_pre", vec![n([8, 3, 5, 1]), n([3, 5, 1, 1])], |c, s| ggml_dsv4_hc_pre(c, s[0], s[1])),
        form("ggml_dsv4_hc_pre_gated", vec![n([8, 3, 5, 1]), n([8, 3, 5, 1])], |c, s| ggml_dsv4_hc_pre_gated(c, s[0], s[1], 0.5)),
        form("ggml_dsv4_hc_post", vec![n([8, 5, 1, 1]), n([8, 3, 5, 1]), n([3, 5, 1, 1]), n([3, 3, 5, 1])], |c, s| ggml_dsv4_hc_post(c, s[0], s[1], s[2], s[3])),
        form("ggml_col2im_1d", vec![num(F, [12, 5, 1, 1])], |c, s| ggml_col2im_1d(c, s[0], 2, 4, 1)),
    ]
}
