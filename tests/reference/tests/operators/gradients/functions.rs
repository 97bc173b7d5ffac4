//! Functions of single elements, and gated units.

use super::*;

type One = fn(Ctx, T) -> T;

fn run(list: &[(&str, One, Values)]) {
    for &(name, f, values) in list {
        check(name, |c| {
            let x = c.param(&[7, 3, 2], values);
            f(c.ctx, x)
        });
        check(&format!("{name} of rows with gaps"), |c| {
            let x = c.param(&[7, 3, 2], values);
            let part = ggml_view_3d(c.ctx, x, 4, 3, 2, 28, 84, 8);
            f(c.ctx, part)
        });
    }
}

#[test]
fn functions() {
    run(&[
        ("dup", |c, x| ggml_dup(c, x), UNIT),
        ("sqr", |c, x| ggml_sqr(c, x), UNIT),
        ("sqrt", |c, x| ggml_sqrt(c, x), Between(0.5, 2.0)),
        ("log", |c, x| ggml_log(c, x), Between(0.5, 2.0)),
        ("sin", |c, x| ggml_sin(c, x), UNIT),
        ("cos", |c, x| ggml_cos(c, x), UNIT),
        ("scale", |c, x| ggml_scale_bias(c, x, -1.5, 0.25), UNIT),
        ("clamp", |c, x| ggml_clamp(c, x, -0.5, 0.25), Away(0.6, 1.0)),
        ("clamp, inside", |c, x| ggml_clamp(c, x, -2.0, f32::INFINITY), UNIT),
        ("leaky_relu", |c, x| ggml_leaky_relu(c, x, 0.125, false), Away(0.25, 1.0)),
    ]);
}

#[test]
fn unary() {
    run(&[
        ("abs", |c, x| ggml_abs(c, x), Away(0.25, 1.0)),
        ("neg", |c, x| ggml_neg(c, x), UNIT),
        ("relu", |c, x| ggml_relu(c, x), Away(0.25, 1.0)),
        ("silu", |c, x| ggml_silu(c, x), Between(-3.0, 3.0)),
        ("exp", |c, x| ggml_exp(c, x), UNIT),
        ("expm1", |c, x| ggml_expm1(c, x), UNIT),
        ("softplus", |c, x| ggml_softplus(c, x), Between(-3.0, 3.0)),
        ("tanh", |c, x| ggml_tanh(c, x), Between(-2.0, 2.0)),
        ("sigmoid", |c, x| ggml_sigmoid(c, x), Between(-3.0, 3.0)),
        ("elu", |c, x| ggml_elu(c, x), Away(0.25, 1.0)),
        ("hardsigmoid", |c, x| ggml_hardsigmoid(c, x), Between(-2.5, 2.5)),
        ("hardsigmoid, outside", |c, x| ggml_hardsigmoid(c, x), Away(3.5, 4.0)),
        ("hardswish", |c, x| ggml_hardswish(c, x), Between(-2.5, 2.5)),
        ("hardswish, outside", |c, x| ggml_hardswish(c, x), Away(3.5, 4.0)),
    ]);
}

/// The forward pass looks some of these up by half-precision arguments, whose steps differences see: powers of two are exact there.
#[test]
fn rounded_unary() {
    for (name, f) in [("gelu", (|c, x| ggml_gelu(c, x)) as One), ("gelu_quick", |c, x| ggml_gelu_quick(c, x))] {
        check_to(name, 2e-2, |c| {
            let x = c.param(&[7, 3], Between(-2.0, 2.0));
            f(c.ctx, x)
        });
    }
}

#[test]
fn flat_functions_have_no_gradient() {
    let list: [(&str, One); 6] = [
        ("sgn", |c, x| ggml_sgn(c, x)),
        ("step", |c, x| ggml_step(c, x)),
        ("floor", |c, x| ggml_floor(c, x)),
        ("ceil", |c, x| ggml_ceil(c, x)),
        ("round", |c, x| ggml_round(c, x)),
        ("trunc", |c, x| ggml_trunc(c, x)),
    ];
    for (name, f) in list {
        check(name, |c| {
            // between the jumps of all of them
            let x = c.param(&[6], Between(0.125, 0.375));
            let flat = f(c.ctx, x);
            ggml_add(c.ctx, flat, x)
        });
    }
}

#[test]
fn gated() {
    type Split = fn(Ctx, T, T) -> T;
    let split: [(&str, Split, f64); 4] = [
        ("swiglu", |c, a, b| ggml_swiglu_split(c, a, b), 1e-3),
        ("reglu", |c, a, b| ggml_reglu_split(c, a, b), 1e-3),
        ("geglu", |c, a, b| ggml_geglu_split(c, a, b), 2e-2),
        ("geglu_quick", |c, a, b| ggml_geglu_quick_split(c, a, b), 2e-2),
    ];
    for (name, f, tolerance) in split {
        check_to(name, tolerance, |c| {
            let (a, b) = (c.param(&[6, 3], Away(0.25, 1.5)), c.param(&[6, 3], UNIT));
            f(c.ctx, a, b)
        });
    }
    let joined: [(&str, One, f64); 8] = [
        ("swiglu", |c, a| ggml_swiglu(c, a), 1e-3),
        ("swiglu swapped", |c, a| ggml_swiglu_swapped(c, a), 1e-3),
        ("reglu", |c, a| ggml_reglu(c, a), 1e-3),
        ("reglu swapped", |c, a| ggml_reglu_swapped(c, a), 1e-3),
        ("geglu", |c, a| ggml_geglu(c, a), 2e-2),
        ("geglu swapped", |c, a| ggml_geglu_swapped(c, a), 2e-2),
        ("geglu_quick", |c, a| ggml_geglu_quick(c, a), 2e-2),
        ("geglu_quick swapped", |c, a| ggml_geglu_quick_swapped(c, a), 2e-2),
    ];
    for (name, f, tolerance) in joined {
        check_to(&format!("{name} of halves"), tolerance, |c| {
            let a = c.param(&[10, 3], Away(0.25, 1.5));
            f(c.ctx, a)
        });
    }
}
