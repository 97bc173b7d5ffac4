//! Small models: many rules in one graph.

use super::*;

#[test]
fn two_layers() {
    check("two layers", |c| {
        let x = c.data(&[6, 5], UNIT);
        let (w1, b1) = (c.param(&[6, 8], UNIT), c.param(&[8], UNIT));
        let (w2, b2) = (c.param(&[8, 3], UNIT), c.param(&[3], UNIT));
        let h = ggml_mul_mat(c.ctx, w1, x);
        let h = ggml_add(c.ctx, h, b1);
        let h = ggml_silu(c.ctx, h);
        let y = ggml_mul_mat(c.ctx, w2, h);
        let y = ggml_add(c.ctx, y, b2);
        ggml_soft_max(c.ctx, y)
    });
}

/// Attention with two heads: norm, products, rope, mask, permutations, residual.
#[test]
fn attention() {
    check_to("attention", 2e-3, |c| {
        let (heads, dim, tokens) = (2, 4, 3);
        let x = c.param(&[8, tokens], UNIT);
        let [wq, wk, wv, wo] = [(); 4].map(|()| c.param(&[8, 8], Between(-0.5, 0.5)));
        let gain = c.param(&[8], Between(0.5, 1.5));
        let positions = c.ids(&[tokens], &[0, 1, 2]);
        let ctx = c.ctx;
        let h = ggml_rms_norm(ctx, x, 1e-5);
        let h = ggml_mul(ctx, h, gain);
        let project = |w| ggml_reshape_3d(ctx, ggml_mul_mat(ctx, w, h), dim, heads, tokens);
        let turn = |t| ggml_rope(ctx, t, positions, dim as c_int, GGML_ROPE_TYPE_NEOX);
        let q = ggml_permute(ctx, turn(project(wq)), 0, 2, 1, 3);
        let k = ggml_permute(ctx, turn(project(wk)), 0, 2, 1, 3);
        let v = ggml_cont(ctx, ggml_permute(ctx, project(wv), 1, 2, 0, 3));
        let scores = ggml_mul_mat(ctx, k, q);
        let scores = ggml_diag_mask_inf(ctx, scores, 0);
        let scores = ggml_soft_max_ext(ctx, scores, null_mut(), 0.5, 0.0);
        let mixed = ggml_mul_mat(ctx, v, scores);
        let mixed = ggml_permute(ctx, mixed, 0, 2, 1, 3);
        let mixed = ggml_cont_2d(ctx, mixed, 8, tokens);
        let out = ggml_mul_mat(ctx, wo, mixed);
        ggml_add(ctx, out, x)
    });
}

#[test]
fn convolution() {
    check_to("convolution", 2e-3, |c| {
        let (k, b) = (c.param(&[3, 3, 2, 3], UNIT), c.param(&[1, 1, 3], UNIT));
        let x = c.param(&[6, 6, 2, 2], UNIT);
        let columns = ggml_im2col(c.ctx, k, x, 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32);
        let rows = ggml_reshape_2d(c.ctx, columns, 18, 72);
        let kernel = ggml_reshape_2d(c.ctx, k, 18, 3);
        let y = ggml_mul_mat(c.ctx, rows, kernel);
        let y = ggml_reshape_4d(c.ctx, y, 6, 6, 2, 3);
        let y = ggml_cont(c.ctx, ggml_permute(c.ctx, y, 0, 1, 3, 2));
        let y = ggml_add(c.ctx, y, b);
        let y = ggml_sigmoid(c.ctx, y);
        ggml_pool_2d(c.ctx, y, GGML_OP_POOL_AVG, 2, 2, 2, 2, 0.0, 0.0)
    });
}
