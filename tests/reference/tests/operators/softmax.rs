//! Softmax and masks.

use super::common::*;

/// ALiBi's slope of head `h` of `n`: powers of two numbers whose exponents go with `bias`.
pub fn slope(bias: f64, h: usize, n: usize) -> f64 {
    if bias <= 0.0 {
        return 1.0;
    }
    let whole = 1usize << n.ilog2();
    if h < whole {
        2f64.powf(-bias / whole as f64).powf((h + 1) as f64)
    } else {
        2f64.powf(-bias / 2.0 / whole as f64).powf((2 * (h - whole) + 1) as f64)
    }
}

/// Weights of logits, `sink` being one more that gets none; a row that is masked as a whole has no weight at all.
pub fn weights(logits: &[f64], sink: Option<f64>) -> Vec<f64> {
    let max = logits.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY && !logits.iter().any(|x| x.is_nan()) {
        return vec![0.0; logits.len()];
    }
    let e = |x: f64| (x - max).exp();
    let total: f64 = logits.iter().map(|&x| e(x)).sum::<f64>() + sink.map_or(0.0, e);
    logits.iter().map(|&x| e(x) / total).collect()
}

/// A logit of 160 is rounded by 80 units, and its exponential changes by as much.
const TOL: Tol = Tol::units(200.0).abs(1.2e-38);

/// A mask with every fifth key, and all keys of some rows, masked.
pub fn mask(i: usize, width: usize) -> f64 {
    match (i / width % 3, i % 5) {
        (2, _) => f64::NEG_INFINITY,
        (_, 0) => f64::NEG_INFINITY,
        _ => -((i % 7) as f64) / 4.0,
    }
}

fn masks(ne: [usize; 4]) -> Fill {
    Fill::List((0..ne.iter().product::<usize>().max(1)).map(|i| mask(i, ne[0].max(1))).collect())
}

#[test]
fn case_31_soft_max() {
    let mut s = Suite::new("soft_max");
    for ne in shapes() {
        for la in ALL {
            for fill in [
                PLAIN,
                Fill::Range(-80.0, 80.0),
                Fill::List(vec![f64::NEG_INFINITY]),
                Fill::List(vec![1.0, f64::NEG_INFINITY, -3e38]),
            ] {
                for inplace in [false, true] {
                    s.case(la.contiguous(), format!("{ne:?} {la:?} {fill:?} {inplace}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                        let want = read(a).map_rows(|row, _| weights(row, None));
                        (
                            if inplace { ggml_soft_max_inplace(w.ctx, a) } else { ggml_soft_max(w.ctx, a) },
                            Want::new(want, TOL),
                        )
                    });
                }
            }
        }
    }
    s.finish(100);
}

/// Mask, ALiBi, sinks: every combination, with rows that are masked as a whole.
#[test]
fn case_31_soft_max_ext() {
    let mut s = Suite::new("soft_max_ext");
    for ne in [
        [8, 6, 4, 2],
        [33, 7, 3, 2],
        [1, 1, 1, 1],
        [257, 3, 6, 1],
        [65, 70, 2, 1],
        [0, 3, 2, 1],
        [5, 0, 2, 1],
        [5, 3, 2, 0],
    ] {
        for tm in [GGML_TYPE_F32, GGML_TYPE_F16] {
            for (m1, m2, m3) in [(0, 1, 1), (3, ne[2], 1), (0, 1, ne[3]), (1, ne[2], ne[3])] {
                for la in [Layout::Cont, Layout::Offset] {
                    for lm in ALL {
                        for (scale, bias) in [(1.0f32, 0.0f32), (0.125, 0.0), (0.3, 8.0)] {
                            for sinks in [false, true] {
                                let nm = [ne[0], ne[1] + m1, m2, m3];
                                let must = lm.contiguous();
                                s.case(
                                    must,
                                    format!("{ne:?} {} {nm:?} {la:?} {lm:?} {scale} {bias} {sinks}", type_name(tm)),
                                    |w| {
                                        let a = w.source(GGML_TYPE_F32, ne, la, &Fill::Range(-6.0, 6.0));
                                        let m = w.source(tm, nm, lm, &masks(nm));
                                        let k = w.source(GGML_TYPE_F32, [ne[2], 1, 1, 1], Layout::Cont, &PLAIN);
                                        let (x, y, z) = (read(a), read(m), read(k));
                                        let want = x.map_rows(|row, [i1, i2, i3]| {
                                            let slope = slope(f64::from(bias), i2, ne[2]);
                                            let logit = |(i0, x): (usize, &f64)| {
                                                x * f64::from(scale) + slope * y.at([i0, i1, i2 % m2, i3 % m3])
                                            };
                                            let logits: Vec<f64> = row.iter().enumerate().map(logit).collect();
                                            weights(&logits, sinks.then(|| z.at([i2, 0, 0, 0])))
                                        });
                                        let out = ggml_soft_max_ext(w.ctx, a, m, scale, bias);
                                        if sinks {
                                            ggml_soft_max_add_sinks(out, k);
                                        }
                                        (out, Want::new(want, TOL))
                                    },
                                );
                            }
                        }
                    }
                }
            }
        }
        s.case(true, format!("{ne:?} without a mask"), |w| {
            let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN);
            let want = read(a).map_rows(|row, _| weights(&row.iter().map(|x| x * 0.5).collect::<Vec<_>>(), None));
            (ggml_soft_max_ext(w.ctx, a, NONE, 0.5, 0.0), Want::new(want, TOL))
        });
    }
    s.finish(500);
}

#[test]
fn diag_mask() {
    let mut s = Suite::new("diag_mask");
    for ne in shapes() {
        for la in ALL {
            for past in [0, 1, 5] {
                for inplace in [false, true] {
                    let kept = move |i: [usize; 4]| i[0] <= past + i[1];
                    // upstream takes packed f32
                    let must = la.contiguous();
                    s.case(must, format!("inf {ne:?} {la:?} {past} {inplace}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &Fill::Special);
                        let x = read(a);
                        let want = Arr::from_fn(ne, |i| if kept(i) { x.at(i) } else { f64::NEG_INFINITY });
                        let build = if inplace { ggml_diag_mask_inf_inplace } else { ggml_diag_mask_inf };
                        (build(w.ctx, a, past as i32), Want::new(want, Tol::EXACT))
                    });
                    s.case(must, format!("zero {ne:?} {la:?} {past} {inplace}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &Fill::Special);
                        let x = read(a);
                        let want = Arr::from_fn(ne, |i| if kept(i) { x.at(i) } else { 0.0 });
                        let build = if inplace { ggml_diag_mask_zero_inplace } else { ggml_diag_mask_zero };
                        (build(w.ctx, a, past as i32), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(200);
}
