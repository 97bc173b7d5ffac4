//! Gradients, losses, steps of optimizers, outer products.

use super::*;

const N: [usize; 4] = [8, 6, 4, 3];

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    let two = || vec![num(S, N), num(S, N)];
    let tokens = || counting([4, 1, 1, 1]);
    vec![
        form("ggml_out_prod", vec![num(S, [8, 5, 2, 3]), num(S, [6, 5, 4, 3])], |c, s| ggml_out_prod(c, s[0], s[1])).batched().near(2e-6),
        form("ggml_out_prod of blocks", vec![num(W, [256, 5, 2, 1]), num(S, [6, 5, 4, 3])], |c, s| ggml_out_prod(c, s[0], s[1])).batched_of(&[false, true]).near(2e-6),
        form("ggml_silu_back", two(), |c, s| ggml_silu_back(c, s[0], s[1])).batched().by_rows(0),
        form("ggml_rms_norm_back", two(), |c, s| ggml_rms_norm_back(c, s[0], s[1], 1e-6)).batched().by_rows(0),
        form("ggml_soft_max_ext_back", vec![num(S, N), positive(S, N)], |c, s| ggml_soft_max_ext_back(c, s[0], s[1], 0.5, 0.0)).batched().by_rows(0),
        form("ggml_soft_max_ext_back_inplace", vec![num(S, N), positive(S, N)], |c, s| ggml_soft_max_ext_back_inplace(c, s[0], s[1], 0.5, 0.0)).over(),
        form("ggml_repeat_back", vec![num(S, N), num(S, [4, 3, 4, 1])], |c, s| ggml_repeat_back(c, s[0], s[1])).near(2e-6),
        form("ggml_get_rows_back", vec![num(H, [8, 5, 1, 1]), index(I, [5, 1, 1, 1], 7), num(S, [8, 7, 1, 1])], |c, s| ggml_get_rows_back(c, s[0], s[1], s[2])),
        form("ggml_im2col_back", vec![num(S, [24, 6, 8, 3]), num(H, [3, 2, 4, 5])], |c, s| {
            let mut ne = [9i64, 9, 4, t(s[0]).ne[3]];
            ggml_im2col_back(c, s[0], s[1], ne.as_mut_ptr(), 2, 1, 2, 0, 1, 1, true)
        }).batched_of(&[true, false]),
        form("ggml_pool_2d_back", vec![num(S, [4, 5, 4, 3]), num(H, [9, 7, 4, 3])], |c, s| ggml_pool_2d_back(c, s[0], s[1], GGML_OP_POOL_MAX, 2, 3, 2, 1, 0.0, 0.0)).batched(),
        form("ggml_flash_attn_back", vec![num(S, [16, 5, 4, 1]), num(S, [16, 9, 4, 1]), num(S, [9, 16, 4, 1]), num(S, [16, 5, 4, 1])], |c, s| ggml_flash_attn_back(c, s[0], s[1], s[2], s[3], true)).near(2e-6),
        form("ggml_rope_ext_back", vec![num(F, N), tokens(), positive(S, [4, 1, 1, 1])], |c, s| ggml_rope_ext_back(c, s[0], s[1], s[2], 6, 2, 512, 1e4, 1.0, 0.5, 1.0, 32.0, 1.0)).batched_of(&[true, false, false]).by_rows(0),
        form("ggml_rope_multi_back", vec![num(F, N), counting([16, 1, 1, 1])], |c, s| {
            let mut sections = [2, 1, 1, 0];
            ggml_rope_multi_back(c, s[0], s[1], std::ptr::null_mut(), 8, sections.as_mut_ptr(), 8, 512, 1e4, 1.0, 0.5, 1.0, 32.0, 1.0)
        }).batched_of(&[true, false]).by_rows(0),
        form("ggml_cross_entropy_loss", vec![num(S, N), positive(S, N)], |c, s| ggml_cross_entropy_loss(c, s[0], s[1])).near(1e-5),
        form("ggml_cross_entropy_loss_back", vec![num(S, [1; 4]), num(S, N), positive(S, N)], |c, s| ggml_cross_entropy_loss_back(c, s[0], s[1], s[2])).by_rows(1),
        form("ggml_opt_step_adamw", vec![num(S, N), num(S, N), num(S, N), positive(S, N), with(S, [7, 1, 1, 1], Fill::List(vec![0.01, 0.9, 0.999, 1e-8, 0.1, 10.0, 1000.0]))], |c, s| {
            ggml_set_param(s[0]);
            ggml_opt_step_adamw(c, s[0], s[1], s[2], s[3], s[4])
        }).over(),
        form("ggml_opt_step_sgd", vec![num(S, N), num(S, N), with(S, [2, 1, 1, 1], Fill::List(vec![0.01, 0.1]))], |c, s| {
            ggml_set_param(s[0]);
            ggml_opt_step_sgd(c, s[0], s[1], s[2])
        }).over(),
    ]
}
