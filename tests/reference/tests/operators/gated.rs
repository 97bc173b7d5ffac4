//! Gated units: a function of one number times another.

use super::common::*;
use super::functions as f;

type Function = fn(f64, f64) -> f64;

const GATES: [(ggml_glu_op, &str, Function); 5] = [
    (GGML_GLU_OP_REGLU, "reglu", |x, g| f::relu(x) * g),
    (GGML_GLU_OP_GEGLU, "geglu", |x, g| f::gelu(x) * g),
    (GGML_GLU_OP_SWIGLU, "swiglu", |x, g| f::silu(x) * g),
    (GGML_GLU_OP_GEGLU_ERF, "geglu_erf", |x, g| f::gelu_erf(x) * g),
    (GGML_GLU_OP_GEGLU_QUICK, "geglu_quick", |x, g| f::gelu_quick(x) * g),
];

const TOL: Tol = Tol { rel: 16.0 * U32, mag: 3e-7, abs: 1.2e-38 };

/// Elements of the product, whose error goes with the gate's size.
fn want(ne: [usize; 4], function: Function, x: impl Fn([usize; 4]) -> f64, g: impl Fn([usize; 4]) -> f64) -> Want {
    Want::with_magnitude(ne, TOL, |i| (function(x(i), g(i)), g(i).abs().min(1e30)))
}

#[test]
fn glu() {
    for (op, name, function) in GATES {
        let mut s = Suite::new(name);
        for ty in FLOATS {
            for [n, a1, a2, a3] in shapes() {
                let (ne, whole) = ([n, a1, a2, a3], [2 * n, a1, a2, a3]);
                for la in ALL {
                    // gaps after rows alone are what the builder takes
                    let must = la.contiguous() || la == Layout::RowGap;
                    for fill in [Fill::Range(-4.0, 4.0), Fill::Finite] {
                        for swapped in [false, true] {
                            s.case(must, format!("{} {whole:?} {la:?} swapped={swapped}", type_name(ty)), |w| {
                                let a = w.source(ty, whole, la, &fill);
                                let x = read(a);
                                let half = |second: bool| {
                                    let x = x.clone();
                                    move |[i, j, k, l]: [usize; 4]| x.at([i + if second { n } else { 0 }, j, k, l])
                                };
                                let want = want(ne, function, half(swapped), half(!swapped));
                                (ggml_glu(w.ctx, a, op, swapped), want)
                            });
                        }
                        for lb in [Layout::Cont, Layout::RowGap, Layout::Swap12] {
                            let must = must && (lb.contiguous() || lb == Layout::RowGap);
                            s.case(must, format!("split {} {ne:?} {la:?} {lb:?}", type_name(ty)), |w| {
                                let (a, b) = (w.source(ty, ne, la, &fill), w.source(ty, ne, lb, &fill));
                                let (x, g) = (read(a), read(b));
                                (ggml_glu_split(w.ctx, a, b, op), want(ne, function, |i| x.at(i), |i| g.at(i)))
                            });
                        }
                    }
                }
            }
        }
        s.finish(300);
    }
}

/// The named builders are those of the numbers.
#[test]
fn named() {
    type One = fn(Ctx, T) -> T;
    type Two = fn(Ctx, T, T) -> T;
    let named: [(One, One, Two); 5] = [
        (|c, a| ggml_reglu(c, a), |c, a| ggml_reglu_swapped(c, a), |c, a, b| ggml_reglu_split(c, a, b)),
        (|c, a| ggml_geglu(c, a), |c, a| ggml_geglu_swapped(c, a), |c, a, b| ggml_geglu_split(c, a, b)),
        (|c, a| ggml_swiglu(c, a), |c, a| ggml_swiglu_swapped(c, a), |c, a, b| ggml_swiglu_split(c, a, b)),
        (|c, a| ggml_geglu_erf(c, a), |c, a| ggml_geglu_erf_swapped(c, a), |c, a, b| ggml_geglu_erf_split(c, a, b)),
        (
            |c, a| ggml_geglu_quick(c, a),
            |c, a| ggml_geglu_quick_swapped(c, a),
            |c, a, b| ggml_geglu_quick_split(c, a, b),
        ),
    ];
    let mut s = Suite::new("named gated units");
    let ne = [9, 4, 3, 2];
    for ((_, name, function), (first, second, split)) in GATES.into_iter().zip(named) {
        for (build, swapped) in [(first, false), (second, true)] {
            s.case(true, format!("{name} {swapped}"), |w| {
                let a = w.source(GGML_TYPE_F32, [18, 4, 3, 2], Layout::Cont, &PLAIN);
                let x = read(a);
                let half = |i: [usize; 4], second: bool| x.at([i[0] + if second { 9 } else { 0 }, i[1], i[2], i[3]]);
                (build(w.ctx, a), want(ne, function, |i| half(i, swapped), |i| half(i, !swapped)))
            });
        }
        s.case(true, format!("{name} split"), |w| {
            let (a, b) =
                (w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN));
            let (x, g) = (read(a), read(b));
            (split(w.ctx, a, b), want(ne, function, |i| x.at(i), |i| g.at(i)))
        });
    }
    s.finish(15);
}

#[test]
fn with_limits() {
    let mut s = Suite::new("swiglu_oai, swiglu_clamp");
    let (alpha, limit) = (1.7f32, 2.5f32);
    let (al, li) = (f64::from(alpha), f64::from(limit));
    for ty in FLOATS {
        for ne in shapes() {
            for la in [Layout::Cont, Layout::Offset, Layout::RowGap] {
                // upstream has these for f32, and the second for f16 too
                let name = |what: &str| format!("{what} {} {ne:?} {la:?}", type_name(ty));
                s.case(ty == GGML_TYPE_F32, name("oai"), |w| {
                    let (a, b) =
                        (w.source(ty, ne, la, &Fill::Range(-5.0, 5.0)), w.source(ty, ne, la, &Fill::Range(-5.0, 5.0)));
                    let (x, g) = (read(a), read(b));
                    let want = Arr::from_fn(ne, |i| {
                        let (x, g) = (x.at(i).min(li), g.at(i).clamp(-li, li));
                        x * f::sigmoid(al * x) * (1.0 + g)
                    });
                    (ggml_swiglu_oai(w.ctx, a, b, alpha, limit), Want::new(want, Tol::units(16.0).abs(2e-6)))
                });
                s.case(ty != GGML_TYPE_BF16, name("clamp"), |w| {
                    let (a, b) =
                        (w.source(ty, ne, la, &Fill::Range(-5.0, 5.0)), w.source(ty, ne, la, &Fill::Range(-5.0, 5.0)));
                    let (x, g) = (read(a), read(b));
                    let want = Arr::from_fn(ne, |i| f::silu(x.at(i).min(li)) * g.at(i).clamp(-li, li));
                    (ggml_swiglu_clamp(w.ctx, a, b, limit), Want::new(want, Tol::units(16.0).abs(2e-6)))
                });
            }
        }
    }
    s.finish(80);
}
