//! What `supports_op` says and what computing does agree, for all operators, formats and layouts; the values are for the families.

use super::common::*;
use reference::values::block;

/// A builder with sources of one format, shape and layout.
struct Op {
    name: &'static str,
    build: fn(Ctx, [T; 3]) -> T,
}

macro_rules! ops {
    ($($name:literal: |$c:ident, $a:ident, $b:ident, $i:ident| $build:expr;)*) => {
        &[$(Op { name: $name, build: |$c, [$a, $b, $i]| { let _ = ($b, $i); $build } }),*]
    };
}

/// `a` and `b` have one shape; `i` is an i32 vector as long as dimension 2, of zeros.
const OPS: &[Op] = ops! {
    "dup": |c, a, b, i| ggml_dup(c, a);
    "cont": |c, a, b, i| ggml_cont(c, a);
    "cpy": |c, a, b, i| ggml_cpy(c, a, b);
    "cast to f32": |c, a, b, i| ggml_cast(c, a, GGML_TYPE_F32);
    "cast to f16": |c, a, b, i| ggml_cast(c, a, GGML_TYPE_F16);
    "cast to bf16": |c, a, b, i| ggml_cast(c, a, GGML_TYPE_BF16);
    "cast to q8_0": |c, a, b, i| ggml_cast(c, a, GGML_TYPE_Q8_0);
    "add": |c, a, b, i| ggml_add(c, a, b);
    "add inplace": |c, a, b, i| ggml_add_inplace(c, a, b);
    "add_cast": |c, a, b, i| ggml_add_cast(c, a, b, GGML_TYPE_F32);
    "sub": |c, a, b, i| ggml_sub(c, a, b);
    "mul": |c, a, b, i| ggml_mul(c, a, b);
    "div": |c, a, b, i| ggml_div(c, a, b);
    "acc": |c, a, b, i| ggml_acc(c, a, b, t(a).nb[1], t(a).nb[2], t(a).nb[3], 0);
    "set": |c, a, b, i| ggml_set(c, a, b, t(a).nb[1], t(a).nb[2], t(a).nb[3], 0);
    "sqr": |c, a, b, i| ggml_sqr(c, a);
    "sqrt": |c, a, b, i| ggml_sqrt(c, a);
    "log": |c, a, b, i| ggml_log(c, a);
    "sin": |c, a, b, i| ggml_sin(c, a);
    "cos": |c, a, b, i| ggml_cos(c, a);
    "sum": |c, a, b, i| ggml_sum(c, a);
    "sum_rows": |c, a, b, i| ggml_sum_rows(c, a);
    "cumsum": |c, a, b, i| ggml_cumsum(c, a);
    "mean": |c, a, b, i| ggml_mean(c, a);
    "argmax": |c, a, b, i| ggml_argmax(c, a);
    "count_equal": |c, a, b, i| ggml_count_equal(c, a, b);
    "repeat": |c, a, b, i| ggml_repeat(c, a, b);
    "concat": |c, a, b, i| ggml_concat(c, a, b, 2);
    "concat rows": |c, a, b, i| ggml_concat(c, a, b, 0);
    "norm": |c, a, b, i| ggml_norm(c, a, 1e-6);
    "rms_norm": |c, a, b, i| ggml_rms_norm(c, a, 1e-6);
    "l2_norm": |c, a, b, i| ggml_l2_norm(c, a, 1e-6);
    "group_norm": |c, a, b, i| ggml_group_norm(c, a, 2, 1e-6);
    "mul_mat": |c, a, b, i| ggml_mul_mat(c, a, b);
    "scale": |c, a, b, i| ggml_scale(c, a, 2.0);
    "clamp": |c, a, b, i| ggml_clamp(c, a, 0.0, 1.0);
    "fill": |c, a, b, i| ggml_fill(c, a, 1.0);
    "leaky_relu": |c, a, b, i| ggml_leaky_relu(c, a, 0.1, false);
    "silu": |c, a, b, i| ggml_silu(c, a);
    "gelu": |c, a, b, i| ggml_gelu(c, a);
    "neg inplace": |c, a, b, i| ggml_neg_inplace(c, a);
    "swiglu": |c, a, b, i| ggml_swiglu(c, a);
    "geglu_split": |c, a, b, i| ggml_geglu_split(c, a, b);
    "get_rows": |c, a, b, i| ggml_get_rows(c, a, i);
    "diag": |c, a, b, i| ggml_diag(c, a);
    "diag_mask_inf": |c, a, b, i| ggml_diag_mask_inf(c, a, 0);
    "soft_max": |c, a, b, i| ggml_soft_max(c, a);
    "soft_max_ext": |c, a, b, i| ggml_soft_max_ext(c, a, b, 1.0, 0.0);
    "rope": |c, a, b, i| ggml_rope(c, a, i, 4, 0);
    "rope neox": |c, a, b, i| ggml_rope(c, a, i, 4, 2);
    "im2col": |c, a, b, i| ggml_im2col(c, a, b, 1, 1, 0, 0, 1, 1, true, GGML_TYPE_F16);
    "conv_2d": |c, a, b, i| ggml_conv_2d(c, a, b, 1, 1, 0, 0, 1, 1);
    "conv_2d_direct": |c, a, b, i| ggml_conv_2d_direct(c, a, b, 1, 1, 0, 0, 1, 1);
    "conv_1d": |c, a, b, i| ggml_conv_1d(c, a, b, 1, 0, 1);
    "pool_1d": |c, a, b, i| ggml_pool_1d(c, a, GGML_OP_POOL_MAX, 1, 1, 0);
    "pool_2d": |c, a, b, i| ggml_pool_2d(c, a, GGML_OP_POOL_AVG, 2, 1, 2, 1, 0.0, 0.0);
    "upscale": |c, a, b, i| ggml_upscale(c, a, 2, GGML_SCALE_MODE_BILINEAR);
    "pad": |c, a, b, i| ggml_pad(c, a, 0, 1, 1, 1);
    "pad_circular": |c, a, b, i| ggml_pad_circular(c, a, 0, 1, 1, 1);
    "pad_reflect_1d": |c, a, b, i| ggml_pad_reflect_1d(c, a, 1, 1);
    "roll": |c, a, b, i| ggml_roll(c, a, 0, 1, 1, 0);
    "timestep_embedding": |c, a, b, i| ggml_timestep_embedding(c, a, 16, 1000);
    "argsort": |c, a, b, i| ggml_argsort(c, a, GGML_SORT_ORDER_ASC);
    "top_k": |c, a, b, i| ggml_top_k(c, a, 1);
    "tri": |c, a, b, i| ggml_tri(c, a, GGML_TRI_TYPE_LOWER);
    "out_prod": |c, a, b, i| ggml_out_prod(c, a, b);
    "repeat_back": |c, a, b, i| ggml_repeat_back(c, a, b);
    "silu_back": |c, a, b, i| ggml_silu_back(c, a, b);
    "rms_norm_back": |c, a, b, i| ggml_rms_norm_back(c, a, b, 1e-6);
    "soft_max_back": |c, a, b, i| ggml_soft_max_ext_back(c, a, b, 1.0, 0.0);
    "soft_max_back inplace": |c, a, b, i| ggml_soft_max_ext_back_inplace(c, a, b, 1.0, 0.0);
    "get_rows_back": |c, a, b, i| ggml_get_rows_back(c, a, i, b);
    "rope_back": |c, a, b, i| ggml_rope_ext_back(c, a, i, NONE, 4, 0, 0, 1e4, 1.0, 0.0, 1.0, 0.0, 0.0);
    "rope_custom": |c, a, b, i| ggml_rope_custom(c, a, i, 4, 2, 0, 1e4, 1.0, 0.0, 1.0, 0.0, 0.0);
    "im2col_back": |c, a, b, i| im2col_back(c, a);
    "pool_2d_back": |c, a, b, i| ggml_pool_2d_back(c, a, b, GGML_OP_POOL_MAX, 1, 1, 1, 1, 0.0, 0.0);
    "cross_entropy_loss": |c, a, b, i| ggml_cross_entropy_loss(c, a, b);
    "cross_entropy_loss_back": |c, a, b, i| ggml_cross_entropy_loss_back(c, ggml_view_1d(c, b, 1, 0), a, b);
    "opt_step_adamw": |c, a, b, i| step(c, a, b, true);
    "opt_step_sgd": |c, a, b, i| step(c, a, b, false);
    "flash_attn_back": |c, a, b, i| ggml_flash_attn_back(c, a, b, ggml_transpose(c, b), a, true);
    "ssm_conv": |c, a, b, i| ggml_ssm_conv(c, a, b);
    "solve_tri": |c, a, b, i| ggml_solve_tri(c, a, b, true, true, false);
    "dsv4_hc_pre_gated": |c, a, b, i| ggml_dsv4_hc_pre_gated(c, a, b, 0.5);
    "col2im_1d": |c, a, b, i| ggml_col2im_1d(c, a, 2, 2, 0);
    "win_part": |c, a, b, i| ggml_win_part(c, a, 3);
    "win_unpart": |c, a, b, i| ggml_win_unpart(c, a, 2, 1, 1);
    "get_rel_pos": |c, a, b, i| ggml_get_rel_pos(c, a, 1, 1);
    "flash_attn_ext": |c, a, b, i| ggml_flash_attn_ext(c, a, b, b, NONE, 1.0, 0.0, 0.0);
};

/// A kernel of one tap makes windows of an image, the channels first.
fn im2col_back(c: Ctx, a: T) -> T {
    let [channels, w, h, n] = t(a).ne;
    let nb = t(a).nb[0];
    // its shape alone is looked at
    let kernel = ggml_view_3d(c, a, 1, 1, channels, nb, nb, 0);
    let mut ne = [w, h, channels, n];
    ggml_im2col_back(c, a, kernel, ne.as_mut_ptr(), 1, 1, 0, 0, 1, 1, true)
}

/// A step over `a`, which is made a parameter; its numbers, and for AdamW its moments, are elements of `b`.
fn step(c: Ctx, a: T, b: T, adamw: bool) -> T {
    t(a).flags |= GGML_TENSOR_FLAG_PARAM.0;
    match adamw {
        true => ggml_opt_step_adamw(c, a, b, b, b, ggml_view_1d(c, b, 7, 0)),
        false => ggml_opt_step_sgd(c, a, b, ggml_view_1d(c, b, 2, 0)),
    }
}

/// Every format that there is.
fn every_type() -> Vec<ggml_type> {
    (0..GGML_TYPE_COUNT.0).map(ggml_type).filter(|&ty| block(ty).0 > 0).collect()
}

/// A source of zeros, which every format can hold.
fn zeros(w: &mut World, ty: ggml_type, ne: [usize; 4], layout: Layout) -> T {
    let p = w.bare(ty, ne, layout);
    let root = if t(p).view_src.is_null() { p } else { t(p).view_src };
    w.raw(root).fill(0);
    p
}

#[test]
fn case_41_support_and_computation_agree() {
    let (mut ran, mut refused, mut wrong) = (0, 0, Vec::new());
    for op in OPS {
        let mut any = false;
        for tb in [None, Some(GGML_TYPE_F32)] {
            for ty in every_type() {
                let unit = block(ty).0;
                for layout in ALL.into_iter().filter(|la| unit == 1 || la.packed()) {
                    for ne in [[unit.max(8), 4, 3, 2], [unit.max(4), 1, 1, 1], [unit.max(8), unit.max(8), 2, 1]] {
                        let result = World::with(4, |w| {
                            let a = zeros(w, ty, ne, layout);
                            let b = zeros(w, tb.unwrap_or(ty), ne, layout);
                            let ids = [ne[2], if ne[2] == 1 { 1 } else { ne[2] }, 1, 1];
                            // rows by index want ids for each matrix, rope and the like one for each token
                            let shape = match op.name {
                                "get_rows" => [2, ids[1], ne[3], 1],
                                "get_rows_back" => [ne[1], ids[1], ne[3], 1],
                                _ => [ids[0], 1, 1, 1],
                            };
                            let i = zeros(w, GGML_TYPE_I32, shape, Layout::Cont);
                            let out = (op.build)(w.ctx, [a, b, i]);
                            w.compute(out)
                        });
                        match result {
                            Ok(Outcome::Ran) => (ran, any) = (ran + 1, true),
                            Ok(_) => refused += 1,
                            Err(text) => wrong.push(format!("{} {} {layout:?} {ne:?}: {text}", op.name, type_name(ty))),
                        }
                    }
                }
            }
        }
        assert!(any, "{} ran in no format and layout", op.name);
    }
    println!("agreement: {ran} ran, {refused} refused, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} wrong:\n  {}", wrong.len(), wrong[..wrong.len().min(12)].join("\n  "));
}

/// Tensors without elements: built, and computed to nothing, by every operator that takes their shape.
#[test]
fn case_11_no_elements() {
    let mut s = Suite::new("case 11");
    for op in OPS {
        // these ask for at least one element in some dimension
        let picky = [
            "q8_0", "pad", "roll", "tri", "diag", "conv", "im2col", "upscale", "timestep", "argmax", "top_k", "pool",
            "rope", "flash", "ssm", "solve", "dsv4", "col2im", "win_", "rel_pos",
        ];
        let must = !picky.iter().any(|p| op.name.contains(p));
        for ty in FLOATS {
            for ne in EMPTY {
                World::with(4, |w| {
                    let a = zeros(w, ty, ne, Layout::Cont);
                    let b = zeros(w, ty, ne, Layout::Cont);
                    let shape = match op.name {
                        "get_rows" => [0, ne[2], ne[3], 1],
                        "get_rows_back" => [ne[1], ne[2], ne[3], 1],
                        _ => [ne[2], 1, 1, 1],
                    };
                    let i = zeros(w, GGML_TYPE_I32, shape, Layout::Cont);
                    let out = (op.build)(w.ctx, [a, b, i]);
                    let outcome = w.compute(out);
                    assert!(outcome.is_ok(), "{} {} {ne:?}: {outcome:?}", op.name, type_name(ty));
                    let empty = ne_of(out).contains(&0);
                    // operators of f32 alone are no operators of others, without elements neither
                    if must && ty == GGML_TYPE_F32 && empty && op.name != "count_equal" {
                        assert_eq!(outcome, Ok(Outcome::Ran), "{} {ne:?}", op.name);
                    }
                });
            }
        }
    }
    // sums and means of nothing
    for ne in EMPTY {
        s.case(true, format!("sum {ne:?}"), |w| {
            let a = zeros(w, GGML_TYPE_F32, ne, Layout::Cont);
            (ggml_sum(w.ctx, a), Want::new(Arr { ne: [1; 4], v: vec![0.0] }, Tol::EXACT))
        });
    }
    s.finish(4);
}

fn ne_of(p: T) -> [i64; 4] {
    t(p).ne
}
