//! Convolutions, pooling, resizing, padding, rolling, embeddings.

use super::*;

const P: [usize; 4] = [9, 7, 4, 3];

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    let k = |ne| num(H, ne);
    let b = [false, true];
    vec![
        form("ggml_im2col", vec![k([3, 2, 4, 5]), num(F, P)], |c, s| ggml_im2col(c, s[0], s[1], 2, 1, 1, 1, 1, 1, true, GGML_TYPE_F16)).batched_of(&b),
        form("ggml_im2col f32", vec![k([3, 2, 4, 5]), num(F, P)], |c, s| ggml_im2col(c, s[0], s[1], 1, 2, 1, 0, 2, 1, true, GGML_TYPE_F32)).batched_of(&b),
        form("ggml_im2col 1d", vec![k([3, 7, 5, 1]), num(F, [9, 7, 2, 1])], |c, s| ggml_im2col(c, s[0], s[1], 2, 0, 1, 0, 1, 0, false, GGML_TYPE_F16)),
        form("ggml_im2col_3d", vec![k([3, 2, 2, 6]), num(F, [6, 5, 4, 6])], |c, s| ggml_im2col_3d(c, s[0], s[1], 2, 1, 1, 1, 1, 0, 1, 1, 1, 1, GGML_TYPE_F16)),
        form("ggml_conv_2d", vec![k([3, 2, 4, 5]), num(F, P)], |c, s| ggml_conv_2d(c, s[0], s[1], 2, 1, 1, 1, 1, 1)).batched_of(&b).near(2e-6),
        form("ggml_conv_2d 3x3", vec![k([3, 3, 4, 5]), num(F, P)], |c, s| ggml_conv_2d(c, s[0], s[1], 1, 1, 1, 1, 1, 1)).batched_of(&b).near(2e-6),
        form("ggml_conv_2d_dw", vec![k([3, 2, 1, 4]), num(F, P)], |c, s| ggml_conv_2d_dw(c, s[0], s[1], 1, 1, 1, 1, 1, 1)).batched_of(&b).near(2e-6),
        form("ggml_conv_2d_direct", vec![k([3, 2, 4, 5]), num(F, P)], |c, s| ggml_conv_2d_direct(c, s[0], s[1], 2, 1, 1, 1, 1, 1)).batched_of(&b).near(2e-6),
        form("ggml_conv_2d_dw_direct", vec![k([3, 2, 1, 4]), num(F, P)], |c, s| ggml_conv_2d_dw_direct(c, s[0], s[1], 2, 1, 1, 1, 1, 1)).batched_of(&b).near(2e-6),
        form("ggml_conv_3d", vec![k([3, 2, 2, 6]), num(F, [6, 5, 4, 6])], |c, s| ggml_conv_3d(c, s[0], s[1], 2, 1, 1, 1, 1, 0, 1, 1, 1, 1)).near(2e-6),
        form("ggml_conv_3d_direct", vec![k([3, 2, 2, 6]), num(F, [6, 5, 4, 6])], |c, s| ggml_conv_3d_direct(c, s[0], s[1], 1, 1, 1, 1, 0, 1, 1, 1, 1, 2, 3, 3)).near(2e-6),
        form("ggml_conv_1d", vec![k([3, 7, 5, 1]), num(F, [9, 7, 2, 1])], |c, s| ggml_conv_1d(c, s[0], s[1], 1, 1, 1)).near(2e-6),
        form("ggml_conv_1d_dw", vec![k([3, 1, 7, 1]), num(F, [9, 7, 1, 1])], |c, s| ggml_conv_1d_dw(c, s[0], s[1], 1, 1, 1)).near(2e-6),
        form("ggml_conv_transpose_1d", vec![k([3, 5, 7, 1]), num(S, [9, 7, 1, 1])], |c, s| ggml_conv_transpose_1d(c, s[0], s[1], 2, 0, 1)).near(2e-6),
        form("ggml_conv_transpose_2d_p0", vec![k([3, 2, 5, 4]), num(S, P)], |c, s| ggml_conv_transpose_2d_p0(c, s[0], s[1], 2)).batched_of(&b).near(2e-6),
        form("ggml_pool_1d", vec![num(H, P)], |c, s| ggml_pool_1d(c, s[0], GGML_OP_POOL_MAX, 3, 3, 0)).batched().by_rows(0),
        form("ggml_pool_1d mean", vec![num(H, P)], |c, s| ggml_pool_1d(c, s[0], GGML_OP_POOL_AVG, 3, 2, 1)).batched().by_rows(0),
        form("ggml_pool_2d", vec![num(H, P)], |c, s| ggml_pool_2d(c, s[0], GGML_OP_POOL_MAX, 2, 3, 2, 1, 0.0, 1.0)).batched(),
        form("ggml_pool_2d mean", vec![num(H, P)], |c, s| ggml_pool_2d(c, s[0], GGML_OP_POOL_AVG, 2, 3, 1, 2, 1.0, 0.0)).batched(),
        form("ggml_upscale nearest", vec![num(S, P)], |c, s| ggml_upscale(c, s[0], 2, GGML_SCALE_MODE_NEAREST)).batched(),
        form("ggml_upscale bilinear", vec![num(S, P)], |c, s| ggml_upscale(c, s[0], 2, GGML_SCALE_MODE_BILINEAR)).batched(),
        form("ggml_upscale bicubic", vec![num(S, P)], |c, s| ggml_upscale(c, s[0], 2, GGML_SCALE_MODE_BICUBIC)).batched(),
        form("ggml_interpolate smaller", vec![num(S, P)], |c, s| {
            ggml_interpolate(c, s[0], 4, 3, 4, t(s[0]).ne[3], GGML_SCALE_MODE_BILINEAR.0 as u32 | GGML_SCALE_FLAG_ANTIALIAS.0 as u32)
        }).batched(),
        form("ggml_pad", vec![num(ANY, [64, 7, 4, 3])], |c, s| ggml_pad(c, s[0], 0, 1, 2, 0)).batched(),
        form("ggml_pad_ext", vec![num(F, P)], |c, s| ggml_pad_ext(c, s[0], 1, 2, 0, 1, 1, 0, 0, 0)).batched(),
        form("ggml_pad_circular", vec![num(F, P)], |c, s| ggml_pad_circular(c, s[0], 1, 2, 1, 0)).batched(),
        form("ggml_pad_reflect_1d", vec![num(S, P)], |c, s| ggml_pad_reflect_1d(c, s[0], 2, 3)).batched().by_rows(0),
        form("ggml_roll", vec![num(ANY, [64, 7, 4, 3])], |c, s| ggml_roll(c, s[0], 0, -2, 1, 0)).batched(),
        form("ggml_roll along rows", vec![num(F, P)], |c, s| ggml_roll(c, s[0], 5, 0, 0, 0)).batched().by_rows(0),
        form("ggml_timestep_embedding", vec![positive(S, [5, 1, 1, 1])], |c, s| ggml_timestep_embedding(c, s[0], 16, 1000)),
        form("ggml_arange", vec![], |c, _| ggml_arange(c, 0.0, 5.0, 0.5)),
    ]
}
