//! Arithmetic, functions of each element, gated units, copies.

use super::*;

const N: [usize; 4] = [8, 6, 4, 3];

macro_rules! functions {
    ($($name:ident $inplace:ident)*) => {
        vec![$(
            form(stringify!($name), vec![num(F, N)], |c, s| $name(c, s[0])).batched().by_rows(0),
            form(stringify!($inplace), vec![num(F, N)], |c, s| $inplace(c, s[0])).over(),
        )*]
    };
}

macro_rules! gated {
    ($($name:ident $swapped:ident $split:ident)*) => {
        vec![$(
            form(stringify!($name), vec![num(F, N)], |c, s| $name(c, s[0])).batched().by_rows(0),
            form(stringify!($swapped), vec![num(F, N)], |c, s| $swapped(c, s[0])).batched().by_rows(0),
            form(stringify!($split), vec![num(F, N), num(F, N)], |c, s| $split(c, s[0], s[1])).batched().by_rows(0),
        )*]
    };
}

macro_rules! binary {
    ($($name:ident $inplace:ident)*) => {
        vec![$(
            form(stringify!($name), vec![num(F, N), positive(F, N)], |c, s| $name(c, s[0], s[1])).batched().by_rows(0),
            form(concat!(stringify!($name), " of a row"), vec![num(F, N), positive(F, [8, 1, 1, 1])], |c, s| $name(c, s[0], s[1]))
                .batched_of(&[true, false]).by_rows(0),
            form(concat!(stringify!($name), " of a column"), vec![num(F, N), positive(F, [1, 6, 2, 1])], |c, s| $name(c, s[0], s[1]))
                .batched_of(&[true, false]).by_rows(0),
            form(stringify!($inplace), vec![num(F, N), positive(F, N)], |c, s| $inplace(c, s[0], s[1])).over(),
        )*]
    };
}

#[rustfmt::skip]
pub fn forms() -> Vec<Form> {
    let mut all = functions! {
        ggml_sqr ggml_sqr_inplace
        ggml_sin ggml_sin_inplace
        ggml_cos ggml_cos_inplace
        ggml_abs ggml_abs_inplace
        ggml_sgn ggml_sgn_inplace
        ggml_neg ggml_neg_inplace
        ggml_step ggml_step_inplace
        ggml_tanh ggml_tanh_inplace
        ggml_elu ggml_elu_inplace
        ggml_relu ggml_relu_inplace
        ggml_sigmoid ggml_sigmoid_inplace
        ggml_gelu ggml_gelu_inplace
        ggml_gelu_erf ggml_gelu_erf_inplace
        ggml_gelu_quick ggml_gelu_quick_inplace
        ggml_silu ggml_silu_inplace
        ggml_exp ggml_exp_inplace
        ggml_expm1 ggml_expm1_inplace
        ggml_softplus ggml_softplus_inplace
        ggml_floor ggml_floor_inplace
        ggml_ceil ggml_ceil_inplace
        ggml_round ggml_round_inplace
        ggml_trunc ggml_trunc_inplace
    };
    all.extend(gated! {
        ggml_reglu ggml_reglu_swapped ggml_reglu_split
        ggml_geglu ggml_geglu_swapped ggml_geglu_split
        ggml_swiglu ggml_swiglu_swapped ggml_swiglu_split
        ggml_geglu_erf ggml_geglu_erf_swapped ggml_geglu_erf_split
        ggml_geglu_quick ggml_geglu_quick_swapped ggml_geglu_quick_split
    });
    all.extend(binary! {
        ggml_add ggml_add_inplace
        ggml_sub ggml_sub_inplace
        ggml_mul ggml_mul_inplace
        ggml_div ggml_div_inplace
    });
    all.extend([
        form("ggml_swiglu_oai", vec![num(F, N), num(F, N)], |c, s| ggml_swiglu_oai(c, s[0], s[1], 1.7, 1.0)).batched().by_rows(0),
        form("ggml_swiglu_clamp", vec![num(F, N), num(F, N)], |c, s| ggml_swiglu_clamp(c, s[0], s[1], 1.0)).batched().by_rows(0),
        form("ggml_sqrt", vec![positive(F, N)], |c, s| ggml_sqrt(c, s[0])).batched().by_rows(0),
        form("ggml_sqrt_inplace", vec![positive(F, N)], |c, s| ggml_sqrt_inplace(c, s[0])).over(),
        form("ggml_log", vec![positive(F, N)], |c, s| ggml_log(c, s[0])).batched().by_rows(0),
        form("ggml_log_inplace", vec![positive(F, N)], |c, s| ggml_log_inplace(c, s[0])).over(),
        form("ggml_hardswish", vec![num(F, N)], |c, s| ggml_hardswish(c, s[0])).batched().by_rows(0),
        form("ggml_hardsigmoid", vec![num(F, N)], |c, s| ggml_hardsigmoid(c, s[0])).batched().by_rows(0),
        form("ggml_xielu", vec![num(F, N)], |c, s| ggml_xielu(c, s[0], 0.8, 0.6, 0.5, -1e-6)).batched().by_rows(0),
        form("ggml_leaky_relu", vec![num(F, N)], |c, s| ggml_leaky_relu(c, s[0], 0.1, false)).batched().by_rows(0),
        form("ggml_leaky_relu inplace", vec![num(F, N)], |c, s| ggml_leaky_relu(c, s[0], 0.1, true)).over(),
        form("ggml_scale", vec![num(F, N)], |c, s| ggml_scale(c, s[0], 1.5)).batched().by_rows(0),
        form("ggml_scale_inplace", vec![num(F, N)], |c, s| ggml_scale_inplace(c, s[0], 1.5)).over(),
        form("ggml_scale_bias", vec![num(F, N)], |c, s| ggml_scale_bias(c, s[0], 1.5, -0.25)).batched().by_rows(0),
        form("ggml_scale_bias_inplace", vec![num(F, N)], |c, s| ggml_scale_bias_inplace(c, s[0], 1.5, -0.25)).over(),
        form("ggml_clamp", vec![num(F, N)], |c, s| ggml_clamp(c, s[0], -1.0, 0.5)).batched().by_rows(0),
        form("ggml_clamp_inplace", vec![num(F, N)], |c, s| ggml_clamp_inplace(c, s[0], -1.0, 0.5)).over(),
        form("ggml_fill", vec![num(F, N)], |c, s| ggml_fill(c, s[0], 2.5)).batched().by_rows(0),
        form("ggml_fill_inplace", vec![num(F, N)], |c, s| ggml_fill_inplace(c, s[0], 2.5)).over(),
        form("ggml_add1", vec![num(F, N), num(F, [1; 4])], |c, s| ggml_add1(c, s[0], s[1])).batched_of(&[true, false]).by_rows(0),
        form("ggml_add1 to blocks", vec![num(W, [256, 6, 4, 3]), num(S, [1; 4])], |c, s| ggml_add1(c, s[0], s[1])).batched_of(&[true, false]).by_rows(0),
        form("ggml_add1_inplace", vec![num(F, N), num(F, [1; 4])], |c, s| ggml_add1_inplace(c, s[0], s[1])).over(),
        form("ggml_add to blocks", vec![num(W, [256, 6, 4, 3]), num(S, [256, 6, 4, 3])], |c, s| ggml_add(c, s[0], s[1])).batched().by_rows(0),
        form("ggml_add_cast", vec![num(&W[1..], [256, 6, 4, 3]), num(S, [256, 6, 1, 1])], |c, s| ggml_add_cast(c, s[0], s[1], GGML_TYPE_F32)).batched_of(&[true, false]).by_rows(0),
        form("ggml_add_id", vec![num(S, [8, 4, 5, 1]), num(S, [8, 7, 1, 1]), index(I, [4, 5, 1, 1], 7)], |c, s| ggml_add_id(c, s[0], s[1], s[2])).by_rows(0),
        form("ggml_acc", vec![num(S, N), num(S, [5, 3, 2, 2])], |c, s| ggml_acc(c, s[0], s[1], strides(s[0])[1], strides(s[0])[2], strides(s[0])[3], 4)),
        form("ggml_acc_inplace", vec![num(S, N), num(S, [5, 3, 2, 2])], |c, s| ggml_acc_inplace(c, s[0], s[1], nb(s[0])[1], nb(s[0])[2], nb(s[0])[3], 4)).over().packed(),
        form("ggml_set", vec![num(ANY, [64, 6, 4, 3]), num(ANY, [64, 3, 2, 2])], |c, s| ggml_set(c, s[0], s[1], strides(s[0])[1], strides(s[0])[2], strides(s[0])[3], strides(s[0])[1])),
        form("ggml_set_inplace", vec![num(ANY, [64, 6, 4, 3]), num(ANY, [64, 3, 2, 2])], |c, s| ggml_set_inplace(c, s[0], s[1], nb(s[0])[1], nb(s[0])[2], nb(s[0])[3], nb(s[0])[1])).over().packed(),
        form("ggml_dup", vec![num(ANY, [64, 6, 4, 3])], |c, s| ggml_dup(c, s[0])).batched().by_rows(0),
        form("ggml_cont", vec![num(ANY, [64, 6, 4, 3])], |c, s| ggml_cont(c, s[0])).batched().by_rows(0),
        form("ggml_cont_4d", vec![num(ANY, [64, 6, 4, 3])], |c, s| ggml_cont_4d(c, s[0], 64, 2, 9, 4)),
        form("ggml_cpy", vec![num(ANY, [64, 6, 4, 3]), num(ANY, [64, 6, 4, 3])], |c, s| ggml_cpy(c, s[0], s[1])).into(1).batched(),
        form("ggml_cpy of another shape", vec![num(ANY, [64, 6, 4, 3]), num(ANY, [64, 3, 24, 1])], |c, s| ggml_cpy(c, s[0], s[1])).into(1),
        form("ggml_cast to f32", vec![num(W, [256, 3, 4, 3])], |c, s| ggml_cast(c, s[0], GGML_TYPE_F32)).batched().by_rows(0),
        form("ggml_cast to f16", vec![num(W, [256, 3, 4, 3])], |c, s| ggml_cast(c, s[0], GGML_TYPE_F16)).batched().by_rows(0),
        form("ggml_cast to bf16", vec![num(W, [256, 3, 4, 3])], |c, s| ggml_cast(c, s[0], GGML_TYPE_BF16)).batched().by_rows(0),
        form("ggml_cast to q8_0", vec![num(W, [256, 3, 4, 3])], |c, s| ggml_cast(c, s[0], GGML_TYPE_Q8_0)).batched().by_rows(0),
        form("ggml_cast to q4_K", vec![num(F, [256, 3, 4, 3])], |c, s| ggml_cast(c, s[0], GGML_TYPE_Q4_K)).batched().by_rows(0),
    ]);
    all
}
