//! Builders of nodes, declared as [`crate::api`] declares the rest.

use crate::api::{Ctx, T};
use ggml_oxide_abi::*;
use std::ffi::c_int;

#[allow(missing_docs)]
// SAFETY: the signatures are those of ggml.h.
unsafe extern "C" {
    pub safe fn ggml_add(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_add_inplace(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_sub(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_sub_inplace(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_mul(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_mul_inplace(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_div(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_div_inplace(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_add_cast(ctx: Ctx, a: T, b: T, r#type: ggml_type) -> T;
    pub safe fn ggml_add_id(ctx: Ctx, a: T, b: T, ids: T) -> T;
    pub safe fn ggml_add1(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_add1_inplace(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_acc(ctx: Ctx, a: T, b: T, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> T;
    pub safe fn ggml_acc_inplace(ctx: Ctx, a: T, b: T, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> T;
    pub safe fn ggml_set(ctx: Ctx, a: T, b: T, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> T;
    pub safe fn ggml_set_inplace(ctx: Ctx, a: T, b: T, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> T;
    pub safe fn ggml_set_1d(ctx: Ctx, a: T, b: T, offset: usize) -> T;
    pub safe fn ggml_set_2d(ctx: Ctx, a: T, b: T, nb1: usize, offset: usize) -> T;
    pub safe fn ggml_set_1d_inplace(ctx: Ctx, a: T, b: T, offset: usize) -> T;
    pub safe fn ggml_set_2d_inplace(ctx: Ctx, a: T, b: T, nb1: usize, offset: usize) -> T;
    pub safe fn ggml_scale(ctx: Ctx, a: T, s: f32) -> T;
    pub safe fn ggml_scale_bias(ctx: Ctx, a: T, s: f32, b: f32) -> T;
    pub safe fn ggml_clamp(ctx: Ctx, a: T, min: f32, max: f32) -> T;
    pub safe fn ggml_fill(ctx: Ctx, a: T, c: f32) -> T;
    pub safe fn ggml_scale_inplace(ctx: Ctx, a: T, s: f32) -> T;
    pub safe fn ggml_scale_bias_inplace(ctx: Ctx, a: T, s: f32, b: f32) -> T;
    pub safe fn ggml_clamp_inplace(ctx: Ctx, a: T, min: f32, max: f32) -> T;
    pub safe fn ggml_fill_inplace(ctx: Ctx, a: T, c: f32) -> T;
    pub safe fn ggml_dup(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_dup_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sqr(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sqr_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sqrt(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sqrt_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_log(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_log_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sin(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sin_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_cos(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_cos_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_unary(ctx: Ctx, a: T, op: ggml_unary_op) -> T;
    pub safe fn ggml_unary_inplace(ctx: Ctx, a: T, op: ggml_unary_op) -> T;
    pub safe fn ggml_abs(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_abs_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sgn(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sgn_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_neg(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_neg_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_step(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_step_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_tanh(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_tanh_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_elu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_elu_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_relu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_relu_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sigmoid(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sigmoid_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu_erf(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu_erf_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu_quick(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_gelu_quick_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_silu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_silu_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_hardswish(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_hardsigmoid(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_exp(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_exp_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_expm1(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_expm1_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_softplus(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_softplus_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_floor(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_floor_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_ceil(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_ceil_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_round(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_round_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_trunc(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_trunc_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_leaky_relu(ctx: Ctx, a: T, negative_slope: f32, inplace: bool) -> T;
    pub safe fn ggml_xielu(ctx: Ctx, a: T, alpha_n: f32, alpha_p: f32, beta: f32, eps: f32) -> T;
    pub safe fn ggml_sum(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_sum_rows(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_cumsum(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_mean(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_argmax(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_count_equal(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_argsort(ctx: Ctx, a: T, order: ggml_sort_order) -> T;
    pub safe fn ggml_argsort_top_k(ctx: Ctx, a: T, k: c_int) -> T;
    pub safe fn ggml_top_k(ctx: Ctx, a: T, k: c_int) -> T;
    pub safe fn ggml_norm(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_norm_inplace(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_rms_norm(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_rms_norm_inplace(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_l2_norm(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_l2_norm_inplace(ctx: Ctx, a: T, eps: f32) -> T;
    pub safe fn ggml_group_norm(ctx: Ctx, a: T, n_groups: c_int, eps: f32) -> T;
    pub safe fn ggml_group_norm_inplace(ctx: Ctx, a: T, n_groups: c_int, eps: f32) -> T;
    pub safe fn ggml_soft_max(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_soft_max_ext(ctx: Ctx, a: T, mask: T, scale: f32, max_bias: f32) -> T;
    pub safe fn ggml_soft_max_inplace(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_soft_max_ext_inplace(ctx: Ctx, a: T, mask: T, scale: f32, max_bias: f32) -> T;
    pub safe fn ggml_soft_max_add_sinks(a: T, sinks: T);
    pub safe fn ggml_cpy(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_cast(ctx: Ctx, a: T, r#type: ggml_type) -> T;
    pub safe fn ggml_cont(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_cont_1d(ctx: Ctx, a: T, ne0: i64) -> T;
    pub safe fn ggml_cont_2d(ctx: Ctx, a: T, ne0: i64, ne1: i64) -> T;
    pub safe fn ggml_cont_3d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64) -> T;
    pub safe fn ggml_cont_4d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> T;
    pub safe fn ggml_repeat(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_repeat_4d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> T;
    pub safe fn ggml_concat(ctx: Ctx, a: T, b: T, dim: c_int) -> T;
    pub safe fn ggml_get_rows(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_set_rows(ctx: Ctx, a: T, b: T, c: T) -> T;
    pub safe fn ggml_diag(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_diag_mask_inf(ctx: Ctx, a: T, n_past: c_int) -> T;
    pub safe fn ggml_diag_mask_inf_inplace(ctx: Ctx, a: T, n_past: c_int) -> T;
    pub safe fn ggml_diag_mask_zero(ctx: Ctx, a: T, n_past: c_int) -> T;
    pub safe fn ggml_diag_mask_zero_inplace(ctx: Ctx, a: T, n_past: c_int) -> T;
    pub safe fn ggml_tri(ctx: Ctx, a: T, r#type: ggml_tri_type) -> T;
    pub safe fn ggml_mul_mat(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_mul_mat_id(ctx: Ctx, experts: T, b: T, ids: T) -> T;
    pub safe fn ggml_flash_attn_ext(
        ctx: Ctx,
        q: T,
        k: T,
        v: T,
        mask: T,
        scale: f32,
        max_bias: f32,
        logit_softcap: f32,
    ) -> T;
    pub safe fn ggml_flash_attn_ext_add_sinks(a: T, sinks: T);
    pub safe fn ggml_mul_mat_set_prec(a: T, prec: ggml_prec);
    pub safe fn ggml_mul_mat_set_hint(a: T, hint: ggml_op_hint);
    pub safe fn ggml_flash_attn_ext_set_prec(a: T, prec: ggml_prec);
    pub safe fn ggml_flash_attn_ext_get_prec(a: *const ggml_tensor) -> ggml_prec;
    pub safe fn ggml_flash_attn_ext_set_n_kv_max(a: T, n_kv_max: i32);
    pub safe fn ggml_prec_set_acc(a: T, prec: ggml_prec) -> bool;
    pub safe fn ggml_prec_set_src(a: T, prec: ggml_prec, idx: c_int) -> bool;
    pub safe fn ggml_upscale(ctx: Ctx, a: T, scale_factor: c_int, mode: ggml_scale_mode) -> T;
    pub safe fn ggml_upscale_ext(
        ctx: Ctx,
        a: T,
        ne0: c_int,
        ne1: c_int,
        ne2: c_int,
        ne3: c_int,
        mode: ggml_scale_mode,
    ) -> T;
    pub safe fn ggml_interpolate(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64, ne3: i64, mode: u32) -> T;
    pub safe fn ggml_pad(ctx: Ctx, a: T, p0: c_int, p1: c_int, p2: c_int, p3: c_int) -> T;
    pub safe fn ggml_pad_circular(ctx: Ctx, a: T, p0: c_int, p1: c_int, p2: c_int, p3: c_int) -> T;
    pub safe fn ggml_pad_ext(
        ctx: Ctx,
        a: T,
        lp0: c_int,
        rp0: c_int,
        lp1: c_int,
        rp1: c_int,
        lp2: c_int,
        rp2: c_int,
        lp3: c_int,
        rp3: c_int,
    ) -> T;
    pub safe fn ggml_pad_ext_circular(
        ctx: Ctx,
        a: T,
        lp0: c_int,
        rp0: c_int,
        lp1: c_int,
        rp1: c_int,
        lp2: c_int,
        rp2: c_int,
        lp3: c_int,
        rp3: c_int,
    ) -> T;
    pub safe fn ggml_pad_reflect_1d(ctx: Ctx, a: T, p0: c_int, p1: c_int) -> T;
    pub safe fn ggml_roll(ctx: Ctx, a: T, shift0: c_int, shift1: c_int, shift2: c_int, shift3: c_int) -> T;
    pub safe fn ggml_arange(ctx: Ctx, start: f32, stop: f32, step: f32) -> T;
    pub safe fn ggml_timestep_embedding(ctx: Ctx, timesteps: T, dim: c_int, max_period: c_int) -> T;
    pub safe fn ggml_im2col(
        ctx: Ctx,
        a: T,
        b: T,
        s0: c_int,
        s1: c_int,
        p0: c_int,
        p1: c_int,
        d0: c_int,
        d1: c_int,
        is_2d: bool,
        dst_type: ggml_type,
    ) -> T;
    pub safe fn ggml_im2col_3d(
        ctx: Ctx,
        a: T,
        b: T,
        ic: i64,
        s0: c_int,
        s1: c_int,
        s2: c_int,
        p0: c_int,
        p1: c_int,
        p2: c_int,
        d0: c_int,
        d1: c_int,
        d2: c_int,
        dst_type: ggml_type,
    ) -> T;
    pub safe fn ggml_conv_1d(ctx: Ctx, a: T, b: T, s0: c_int, p0: c_int, d0: c_int) -> T;
    pub safe fn ggml_conv_1d_ph(ctx: Ctx, a: T, b: T, s: c_int, d: c_int) -> T;
    pub safe fn ggml_conv_1d_dw(ctx: Ctx, a: T, b: T, s0: c_int, p0: c_int, d0: c_int) -> T;
    pub safe fn ggml_conv_1d_dw_ph(ctx: Ctx, a: T, b: T, s0: c_int, d0: c_int) -> T;
    pub safe fn ggml_conv_2d(
        ctx: Ctx,
        a: T,
        b: T,
        s0: c_int,
        s1: c_int,
        p0: c_int,
        p1: c_int,
        d0: c_int,
        d1: c_int,
    ) -> T;
    pub safe fn ggml_conv_2d_sk_p0(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_conv_2d_s1_ph(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_conv_2d_dw(
        ctx: Ctx,
        a: T,
        b: T,
        s0: c_int,
        s1: c_int,
        p0: c_int,
        p1: c_int,
        d0: c_int,
        d1: c_int,
    ) -> T;
    pub safe fn ggml_conv_3d(
        ctx: Ctx,
        a: T,
        b: T,
        ic: i64,
        s0: c_int,
        s1: c_int,
        s2: c_int,
        p0: c_int,
        p1: c_int,
        p2: c_int,
        d0: c_int,
        d1: c_int,
        d2: c_int,
    ) -> T;
    pub safe fn ggml_conv_2d_direct(
        ctx: Ctx,
        a: T,
        b: T,
        s0: c_int,
        s1: c_int,
        p0: c_int,
        p1: c_int,
        d0: c_int,
        d1: c_int,
    ) -> T;
    pub safe fn ggml_conv_2d_dw_direct(
        ctx: Ctx,
        a: T,
        b: T,
        stride0: c_int,
        stride1: c_int,
        pad0: c_int,
        pad1: c_int,
        dilation0: c_int,
        dilation1: c_int,
    ) -> T;
    pub safe fn ggml_conv_3d_direct(
        ctx: Ctx,
        a: T,
        b: T,
        s0: c_int,
        s1: c_int,
        s2: c_int,
        p0: c_int,
        p1: c_int,
        p2: c_int,
        d0: c_int,
        d1: c_int,
        d2: c_int,
        n_channels: c_int,
        n_batch: c_int,
        n_channels_out: c_int,
    ) -> T;
    pub safe fn ggml_conv_transpose_1d(ctx: Ctx, a: T, b: T, s0: c_int, p0: c_int, d0: c_int) -> T;
    pub safe fn ggml_conv_transpose_2d_p0(ctx: Ctx, a: T, b: T, stride: c_int) -> T;
    pub safe fn ggml_ssm_conv(ctx: Ctx, sx: T, c: T) -> T;
    pub safe fn ggml_ssm_scan(ctx: Ctx, s: T, x: T, dt: T, a: T, b: T, c: T, ids: T, k: i64) -> T;
    pub safe fn ggml_rwkv_wkv6(ctx: Ctx, k: T, v: T, r: T, tf: T, td: T, state: T) -> T;
    pub safe fn ggml_rwkv_wkv7(ctx: Ctx, r: T, w: T, k: T, v: T, a: T, b: T, state: T) -> T;
    pub safe fn ggml_gated_linear_attn(ctx: Ctx, k: T, v: T, q: T, g: T, state: T, scale: f32) -> T;
    pub safe fn ggml_gated_delta_net(ctx: Ctx, q: T, k: T, v: T, g: T, beta: T, state: T, keep: i64) -> T;
    pub safe fn ggml_solve_tri(ctx: Ctx, a: T, b: T, left: bool, lower: bool, uni: bool) -> T;
    pub safe fn ggml_lightning_indexer(ctx: Ctx, q: T, k: T, weights: T, mask: T) -> T;
    pub safe fn ggml_dsv4_hc_comb(ctx: Ctx, mixes: T, scale: T, base: T, eps: f32, n_iter: i32) -> T;
    pub safe fn ggml_dsv4_hc_pre(ctx: Ctx, x: T, weights: T) -> T;
    pub safe fn ggml_dsv4_hc_pre_gated(ctx: Ctx, x: T, gate: T, scale: f32) -> T;
    pub safe fn ggml_dsv4_hc_post(ctx: Ctx, x: T, residual: T, post: T, comb: T) -> T;
    pub safe fn ggml_col2im_1d(ctx: Ctx, a: T, s0: c_int, oc: c_int, p0: c_int) -> T;
    pub safe fn ggml_win_part(ctx: Ctx, a: T, w: c_int) -> T;
    pub safe fn ggml_win_unpart(ctx: Ctx, a: T, w0: c_int, h0: c_int, w: c_int) -> T;
    pub safe fn ggml_get_rel_pos(ctx: Ctx, a: T, qh: c_int, kh: c_int) -> T;
    pub safe fn ggml_add_rel_pos(ctx: Ctx, a: T, pw: T, ph: T) -> T;
    pub safe fn ggml_add_rel_pos_inplace(ctx: Ctx, a: T, pw: T, ph: T) -> T;
    pub safe fn ggml_pool_1d(ctx: Ctx, a: T, op: ggml_op_pool, k0: c_int, s0: c_int, p0: c_int) -> T;
    pub safe fn ggml_pool_2d(
        ctx: Ctx,
        a: T,
        op: ggml_op_pool,
        k0: c_int,
        k1: c_int,
        s0: c_int,
        s1: c_int,
        p0: f32,
        p1: f32,
    ) -> T;
    pub safe fn ggml_glu(ctx: Ctx, a: T, op: ggml_glu_op, swapped: bool) -> T;
    pub safe fn ggml_glu_split(ctx: Ctx, a: T, b: T, op: ggml_glu_op) -> T;
    pub safe fn ggml_reglu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_reglu_swapped(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_reglu_split(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_geglu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_swapped(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_split(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_swiglu(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_swiglu_swapped(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_swiglu_split(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_geglu_erf(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_erf_swapped(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_erf_split(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_geglu_quick(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_quick_swapped(ctx: Ctx, a: T) -> T;
    pub safe fn ggml_geglu_quick_split(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_swiglu_oai(ctx: Ctx, a: T, b: T, alpha: f32, limit: f32) -> T;
    pub safe fn ggml_swiglu_clamp(ctx: Ctx, a: T, b: T, limit: f32) -> T;
    pub safe fn ggml_rope(ctx: Ctx, a: T, b: T, n_dims: c_int, mode: c_int) -> T;
    pub safe fn ggml_rope_ext(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_multi(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        sections: *mut c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_inplace(ctx: Ctx, a: T, b: T, n_dims: c_int, mode: c_int) -> T;
    pub safe fn ggml_rope_ext_inplace(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_multi_inplace(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        sections: *mut c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_set_offset(a: T, n_offs: c_int) -> T;
    pub safe fn ggml_rope_custom(
        ctx: Ctx,
        a: T,
        b: T,
        n_dims: c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_custom_inplace(
        ctx: Ctx,
        a: T,
        b: T,
        n_dims: c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_yarn_corr_dims(
        n_dims: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        beta_fast: f32,
        beta_slow: f32,
        dims: *mut f32,
    );
    pub safe fn ggml_rope_ext_back(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_rope_multi_back(
        ctx: Ctx,
        a: T,
        b: T,
        c: T,
        n_dims: c_int,
        sections: *mut c_int,
        mode: c_int,
        n_ctx_orig: c_int,
        freq_base: f32,
        freq_scale: f32,
        ext_factor: f32,
        attn_factor: f32,
        beta_fast: f32,
        beta_slow: f32,
    ) -> T;
    pub safe fn ggml_out_prod(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_silu_back(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_rms_norm_back(ctx: Ctx, a: T, b: T, eps: f32) -> T;
    pub safe fn ggml_soft_max_ext_back(ctx: Ctx, a: T, b: T, scale: f32, max_bias: f32) -> T;
    pub safe fn ggml_soft_max_ext_back_inplace(ctx: Ctx, a: T, b: T, scale: f32, max_bias: f32) -> T;
    pub safe fn ggml_repeat_back(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_get_rows_back(ctx: Ctx, a: T, b: T, c: T) -> T;
    pub safe fn ggml_im2col_back(
        ctx: Ctx,
        a: T,
        b: T,
        ne: *mut i64,
        s0: c_int,
        s1: c_int,
        p0: c_int,
        p1: c_int,
        d0: c_int,
        d1: c_int,
        is_2d: bool,
    ) -> T;
    pub safe fn ggml_pool_2d_back(
        ctx: Ctx,
        a: T,
        af: T,
        op: ggml_op_pool,
        k0: c_int,
        k1: c_int,
        s0: c_int,
        s1: c_int,
        p0: f32,
        p1: f32,
    ) -> T;
    pub safe fn ggml_flash_attn_back(ctx: Ctx, q: T, k: T, v: T, d: T, masked: bool) -> T;
    pub safe fn ggml_cross_entropy_loss(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_cross_entropy_loss_back(ctx: Ctx, a: T, b: T, c: T) -> T;
    pub safe fn ggml_opt_step_adamw(ctx: Ctx, a: T, grad: T, m: T, v: T, adamw_params: T) -> T;
    pub safe fn ggml_opt_step_sgd(ctx: Ctx, a: T, grad: T, sgd_params: T) -> T;
    pub safe fn ggml_reshape(ctx: Ctx, a: T, b: T) -> T;
    pub safe fn ggml_reshape_1d(ctx: Ctx, a: T, ne0: i64) -> T;
    pub safe fn ggml_reshape_2d(ctx: Ctx, a: T, ne0: i64, ne1: i64) -> T;
    pub safe fn ggml_reshape_3d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64) -> T;
    pub safe fn ggml_reshape_4d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> T;
    pub safe fn ggml_view_1d(ctx: Ctx, a: T, ne0: i64, offset: usize) -> T;
    pub safe fn ggml_view_2d(ctx: Ctx, a: T, ne0: i64, ne1: i64, nb1: usize, offset: usize) -> T;
    pub safe fn ggml_view_3d(ctx: Ctx, a: T, ne0: i64, ne1: i64, ne2: i64, nb1: usize, nb2: usize, offset: usize) -> T;
    pub safe fn ggml_view_4d(
        ctx: Ctx,
        a: T,
        ne0: i64,
        ne1: i64,
        ne2: i64,
        ne3: i64,
        nb1: usize,
        nb2: usize,
        nb3: usize,
        offset: usize,
    ) -> T;
    pub safe fn ggml_permute(ctx: Ctx, a: T, axis0: c_int, axis1: c_int, axis2: c_int, axis3: c_int) -> T;
    pub safe fn ggml_transpose(ctx: Ctx, a: T) -> T;
}
