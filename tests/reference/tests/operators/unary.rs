//! Functions of each element.

use super::common::*;
use super::functions as f;

type Build = fn(Ctx, T) -> T;
type Function = fn(f64) -> f64;

/// Each function on all layouts, shapes and formats, and on special numbers. `inplace` writes over its source.
fn run(name: &str, build: Build, inplace: Option<Build>, function: Function, tol: Tol, layouts: &[Layout]) {
    let mut s = Suite::new(name);
    for ty in FLOATS {
        for ne in shapes() {
            for la in ALL {
                let must = layouts.contains(&la);
                for fill in [Fill::Range(-6.0, 6.0), Fill::Special] {
                    s.case(must, format!("{} {ne:?} {la:?} {fill:?}", type_name(ty)), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        (build(w.ctx, a), Want::new(read(a).map(function), tol))
                    });
                }
                if let Some(inplace) = inplace {
                    s.case(must, format!("{} {ne:?} {la:?} inplace", type_name(ty)), |w| {
                        let a = w.source(ty, ne, la, &Fill::Special);
                        let want = read(a).map(function);
                        (inplace(w.ctx, a), Want::new(want, tol))
                    });
                }
            }
        }
        // every number of a half precision sign and exponent, with eight fractions
        s.case(true, format!("{} sweep", type_name(ty)), |w| {
            let a = w.bare(ty, [512, 1, 1, 1], Layout::Cont);
            let bits = |i: usize| reference::values::half((i as u16) << 7 | 5);
            w.write(a, &Arr::from_fn([512, 1, 1, 1], |i| bits(i[0])));
            (build(w.ctx, a), Want::new(read(a).map(function), tol))
        });
    }
    s.finish(200);
}

macro_rules! unary {
    ($($test:ident: $build:ident, $inplace:ident, $function:expr, $tol:expr, $layouts:expr;)*) => { $(
        #[test]
        fn $test() {
            run(stringify!($build), |c, a| $build(c, a), Some(|c, a| $inplace(c, a)), $function, $tol, $layouts);
        }
    )* };
}

/// Tolerance of a function that is made of an exponential or the like: results that vanish may vanish sooner.
const FINE: Tol = Tol::units(8.0).abs(1.2e-38);

unary! {
    sqr: ggml_sqr, ggml_sqr_inplace, |x| x * x, Tol::EXACT, &ALL;
    sqrt: ggml_sqrt, ggml_sqrt_inplace, f64::sqrt, Tol::units(1.0), &ALL;
    log: ggml_log, ggml_log_inplace, f64::ln, Tol::units(4.0).abs(1e-7), &ALL;
    sin: ggml_sin, ggml_sin_inplace, f64::sin, Tol::units(4.0).abs(2e-7), &ALL;
    cos: ggml_cos, ggml_cos_inplace, f64::cos, Tol::units(4.0).abs(2e-7), &ALL;
    abs: ggml_abs, ggml_abs_inplace, f64::abs, Tol::EXACT, &PACKED;
    sgn: ggml_sgn, ggml_sgn_inplace, f::sign, Tol::EXACT, &PACKED;
    neg: ggml_neg, ggml_neg_inplace, |x| -x, Tol::EXACT, &PACKED;
    step: ggml_step, ggml_step_inplace, |x| f64::from(x > 0.0), Tol::EXACT, &PACKED;
    tanh: ggml_tanh, ggml_tanh_inplace, f64::tanh, FINE, &PACKED;
    elu: ggml_elu, ggml_elu_inplace, f::elu, FINE, &PACKED;
    relu: ggml_relu, ggml_relu_inplace, f::relu, Tol::EXACT, &PACKED;
    sigmoid: ggml_sigmoid, ggml_sigmoid_inplace, f::sigmoid, FINE, &PACKED;
    case_33_gelu: ggml_gelu, ggml_gelu_inplace, f::gelu, GELU, &PACKED;
    case_33_gelu_erf: ggml_gelu_erf, ggml_gelu_erf_inplace, f::gelu_erf, GELU, &PACKED;
    case_33_gelu_quick: ggml_gelu_quick, ggml_gelu_quick_inplace, f::gelu_quick, GELU, &PACKED;
    case_33_silu: ggml_silu, ggml_silu_inplace, f::silu, GELU, &PACKED;
    exp: ggml_exp, ggml_exp_inplace, f64::exp, FINE, &PACKED;
    expm1: ggml_expm1, ggml_expm1_inplace, f64::exp_m1, FINE, &PACKED;
    softplus: ggml_softplus, ggml_softplus_inplace, f::softplus, FINE, &PACKED;
    floor: ggml_floor, ggml_floor_inplace, f64::floor, Tol::EXACT, &PACKED;
    ceil: ggml_ceil, ggml_ceil_inplace, f64::ceil, Tol::EXACT, &PACKED;
    round: ggml_round, ggml_round_inplace, f64::round, Tol::EXACT, &PACKED;
    trunc: ggml_trunc, ggml_trunc_inplace, f64::trunc, Tol::EXACT, &PACKED;
}

/// The exponent of a gate is rounded, so far out on the negative side, where nothing is left, the error is larger.
const GELU: Tol = Tol::units(16.0).abs(3e-7);

#[test]
fn hard_functions() {
    let tol = Tol::units(2.0).abs(1e-7);
    run("ggml_hardsigmoid", |c, a| ggml_hardsigmoid(c, a), None, f::hardsigmoid, tol, &PACKED);
    run("ggml_hardswish", |c, a| ggml_hardswish(c, a), None, f::hardswish, tol, &PACKED);
}

/// `ggml_unary` with each function's number, against the named builder.
#[test]
fn unary_by_number() {
    for op in 0..GGML_UNARY_OP_COUNT.0 {
        World::with(op as u64, |w| {
            let a = w.source(GGML_TYPE_F32, [5, 3, 1, 1], Layout::Cont, &PLAIN);
            let out = ggml_unary(w.ctx, a, ggml_unary_op(op));
            assert_eq!(w.compute(out), Ok(Outcome::Ran), "{op}");
        });
    }
}

#[test]
fn xielu() {
    let (alpha_n, alpha_p, beta, eps) = (0.8f32, 0.6f32, 0.5f32, -1e-6f32);
    let (n, p) = (f64::from(beta) + f::softplus(f64::from(alpha_n)), f::softplus(f64::from(alpha_p)));
    let mut s = Suite::new("ggml_xielu");
    for ty in FLOATS {
        for ne in shapes() {
            for la in ALL {
                s.case(la.packed(), format!("{} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &Fill::Finite);
                    let want = read(a).map(|x| {
                        let (beta, eps) = (f64::from(beta), f64::from(eps));
                        if x > 0.0 {
                            p * x * x + beta * x
                        } else {
                            (x.min(eps).exp_m1() - x) * n + beta * x
                        }
                    });
                    (ggml_xielu(w.ctx, a, alpha_n, alpha_p, beta, eps), Want::new(want, Tol::units(16.0).abs(2e-6)))
                });
            }
        }
    }
    s.finish(100);
}

/// Functions with parameters: scale, bias, limits, slope, constant.
#[test]
fn with_parameters() {
    let rows = [Layout::Cont, Layout::Offset, Layout::RowGap];
    let two = |x: f64, s: f32, b: f32| x * f64::from(s) + f64::from(b);
    let mut s = Suite::new("ggml_scale, ggml_clamp, ggml_leaky_relu, ggml_fill");
    for ty in FLOATS {
        for ne in shapes() {
            for la in ALL {
                for fill in [PLAIN, Fill::Special] {
                    let name = |what: &str| format!("{what} {} {ne:?} {la:?} {fill:?}", type_name(ty));
                    // upstream has scale for f32 alone
                    let padded = rows.contains(&la) && !ne.contains(&0) && ty == GGML_TYPE_F32 && la != Layout::RowGap;
                    s.case(padded, name("scale"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        (ggml_scale(w.ctx, a, -1.5), Want::new(read(a).map(|x| two(x, -1.5, 0.0)), Tol::units(2.0)))
                    });
                    s.case(padded, name("scale_bias"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        let want = Want::with_magnitude(ne, Tol::terms(2.0), {
                            let x = read(a);
                            move |i| (two(x.at(i), 0.7, 3.25), x.at(i).abs().min(1e38) + 3.25)
                        });
                        (ggml_scale_bias(w.ctx, a, 0.7, 3.25), want)
                    });
                    s.case(padded, name("scale inplace"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        let want = Want::new(read(a).map(|x| x * 0.25), Tol::units(1.0));
                        (ggml_scale_inplace(w.ctx, a, 0.25), want)
                    });
                    s.case(true, name("clamp"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        (ggml_clamp(w.ctx, a, -1.0, 0.5), Want::new(read(a).map(|x| x.clamp(-1.0, 0.5)), Tol::EXACT))
                    });
                    s.case(true, name("leaky_relu"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        let slope = |x: f64| if x > 0.0 { x } else { x * f64::from(0.1f32) };
                        (ggml_leaky_relu(w.ctx, a, 0.1, false), Want::new(read(a).map(slope), Tol::units(1.0)))
                    });
                    s.case(true, name("leaky_relu inplace"), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        let want = Want::new(read(a).map(|x| if x > 0.0 { x } else { 0.0 * x }), Tol::EXACT);
                        (ggml_leaky_relu(w.ctx, a, 0.0, true), want)
                    });
                }
                let must = la.contiguous() && ty != GGML_TYPE_BF16;
                s.case(must, format!("fill {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &PLAIN);
                    (ggml_fill(w.ctx, a, 2.5), Want::new(read(a).map(|_| 2.5), Tol::EXACT))
                });
            }
        }
    }
    s.finish(1000);
}
