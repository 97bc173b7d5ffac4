//! Losses, their gradients, and the steps of optimizers.

use super::common::*;

/// Natural logarithms of the softmax of a row; a row of minus infinities has no probabilities.
fn log_soft_max(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY && !x.iter().any(|x| x.is_nan()) {
        return vec![f64::NEG_INFINITY; x.len()];
    }
    let log = x.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
    x.iter().map(|x| x - max - log).collect()
}

/// Logits and labels as programs have them, and others.
fn fills() -> Vec<(Fill, Fill)> {
    let one_hot = Fill::List(vec![0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    vec![
        (PLAIN, Fill::Range(0.0, 0.2)),
        (PLAIN, one_hot.clone()),
        (Fill::Range(-60.0, 60.0), one_hot.clone()),
        (Fill::Range(9000.0, 9010.0), one_hot.clone()),
        (PLAIN, Fill::List(vec![0.0])),
        (PLAIN, Fill::Range(-1.0, 1.0)),
        (Fill::List(vec![1.0, f64::NEG_INFINITY, 2.5]), Fill::List(vec![0.5, 0.0, 0.5])),
        (Fill::List(vec![f64::NEG_INFINITY]), Fill::List(vec![0.0])),
        (Fill::List(vec![f64::NEG_INFINITY]), one_hot),
        (Fill::List(vec![1.0, f64::NAN]), Fill::Range(0.1, 0.2)),
    ]
}

/// No rows, or rows of nothing: a loss of 0.
#[test]
fn cross_entropy_loss() {
    let mut s = Suite::new("cross_entropy_loss");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                if ne[1] == 37 && la != Layout::Cont && lb != Layout::Cont {
                    continue;
                }
                for (logits, labels) in fills() {
                    let must = la.packed() && lb.packed();
                    s.case(must, format!("{ne:?} {la:?} {lb:?} {logits:?} {labels:?}"), |w| {
                        let x = w.source(GGML_TYPE_F32, ne, la, &logits);
                        let y = w.source(GGML_TYPE_F32, ne, lb, &labels);
                        let (a, l) = (read(x), read(y));
                        let rows = (ne[1] * ne[2] * ne[3]).max(1) as f64;
                        let (mut loss, mut mag) = (0.0, 0.0);
                        a.map_rows(|x, i| {
                            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                            for ((p, l), x) in log_soft_max(x).into_iter().zip(l.row(i)).zip(x) {
                                if *l != 0.0 {
                                    loss -= l * p / rows;
                                    mag += l.abs() * ((x - max).abs() + p.abs()) / rows;
                                }
                            }
                            Vec::new()
                        });
                        let want = Want::with_magnitude([1; 4], Tol::terms(64.0), |_| (loss, mag));
                        (ggml_cross_entropy_loss(w.ctx, x, y), want)
                    });
                }
            }
        }
    }
    s.finish(3000);
}

#[test]
fn cross_entropy_loss_back() {
    let mut s = Suite::new("cross_entropy_loss_back");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                if ne[1] == 37 && la != Layout::Cont && lb != Layout::Cont {
                    continue;
                }
                for (logits, labels) in fills() {
                    let must = la.contiguous() && lb.contiguous();
                    s.case(must, format!("{ne:?} {la:?} {lb:?} {logits:?} {labels:?}"), |w| {
                        let g = w.source(GGML_TYPE_F32, [1; 4], Layout::Cont, &Fill::Range(0.5, 2.0));
                        let x = w.source(GGML_TYPE_F32, ne, la, &logits);
                        let y = w.source(GGML_TYPE_F32, ne, lb, &labels);
                        let (g0, a, l) = (read(g).v[0], read(x), read(y));
                        let g0 = g0 / (ne[1] * ne[2] * ne[3]) as f64;
                        let mut mag = Vec::new();
                        let arr = a.map_rows(|x, i| {
                            let l = l.row(i);
                            let (total, size) = sum(l.iter().copied());
                            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                            let p: Vec<f64> = log_soft_max(x).into_iter().map(f64::exp).collect();
                            // the argument of an exponential is rounded
                            let spread = |x: f64| 1.0 + if x.is_finite() { (x - max).abs() / 32.0 } else { 0.0 };
                            let sizes = p.iter().zip(l).zip(x);
                            mag.extend(sizes.map(|((p, l), &x)| g0 * (p * size * spread(x) + l.abs())));
                            p.iter().zip(l).map(|(p, l)| (p * total - l) * g0).collect()
                        });
                        let want = Want { mag: Some(mag), ..Want::new(arr, Tol::terms(64.0).abs(1.2e-38)) };
                        (ggml_cross_entropy_loss_back(w.ctx, g, x, y), want)
                    });
                }
            }
        }
    }
    s.finish(3000);
}

/// A parameter in a layout.
fn parameter(w: &mut World, ne: [usize; 4], layout: Layout) -> T {
    let a = w.source(GGML_TYPE_F32, ne, layout, &PLAIN);
    t(a).flags |= GGML_TENSOR_FLAG_PARAM.0;
    a
}

/// `got` is as `want` says, for a tensor that is no result.
fn also(what: &'static str, p: T, want: Want) -> impl Fn() -> Result<(), String> {
    move || want.check(p).map_err(|text| format!("{what}: {text}"))
}

#[test]
fn opt_step_adamw() {
    let mut s = Suite::new("opt_step_adamw");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                if ne[1] == 37 && la != Layout::Cont && lb != Layout::Cont {
                    continue;
                }
                for params in [
                    [1e-3f32, 0.9, 0.999, 1e-8, 0.0, 10.0, 1000.0],
                    [0.1, 0.5, 0.75, 1e-3, 0.25, 2.0, 4.0],
                    [0.0, 0.9, 0.999, 1e-8, 0.1, 1.0, 1.0],
                ] {
                    let must = la == lb && la.packed();
                    s.case(must, format!("{ne:?} {la:?} {lb:?} {params:?}"), |w| {
                        let a = parameter(w, ne, la);
                        let g = w.source(GGML_TYPE_F32, ne, lb, &PLAIN);
                        let m = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                        let v = w.source(GGML_TYPE_F32, ne, lb, &Fill::Range(0.0, 4.0));
                        let p = w.source(
                            GGML_TYPE_F32,
                            [7, 1, 1, 1],
                            Layout::Offset,
                            &Fill::List(params.map(f64::from).to_vec()),
                        );
                        let [alpha, beta1, beta2, eps, wd, beta1h, beta2h] = params.map(f64::from);
                        let (w0, g0, m0, v0) = (read(a), read(g), read(m), read(v));
                        let tol = Tol::terms(16.0).abs(1e-40);
                        let first = |i| sum([m0.at(i) * beta1, g0.at(i) * (1.0 - beta1)].into_iter());
                        let second = |i| v0.at(i) * beta2 + g0.at(i).powi(2) * (1.0 - beta2);
                        let moved = Want::with_magnitude(ne, tol, |i| {
                            let (m, size) = first(i);
                            let step = alpha * beta1h / ((second(i) * beta2h).sqrt() + eps);
                            let kept = w0.at(i) * (1.0 - alpha * wd);
                            (kept - m * step, kept.abs() + size * step)
                        });
                        let m_after = also("m", m, Want::with_magnitude(ne, tol, first));
                        let v_after = also("v", v, Want::with_magnitude(ne, tol, |i| (second(i), second(i))));
                        let out = ggml_opt_step_adamw(w.ctx, a, g, m, v, p);
                        assert_eq!((t(out).view_src.is_null(), t(out).data), (false, t(a).data));
                        w.written = vec![m, v];
                        let rule = move |_: &Arr| moved.check(out).and_then(|()| m_after()).and_then(|()| v_after());
                        (out, Want::by(ne, rule))
                    });
                }
            }
        }
    }
    s.finish(800);
}

#[test]
fn opt_step_sgd() {
    let mut s = Suite::new("opt_step_sgd");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                for params in [[1e-3f32, 0.0], [0.5, 0.25], [0.0, 3.0]] {
                    let must = la == lb && la.packed();
                    s.case(must, format!("{ne:?} {la:?} {lb:?} {params:?}"), |w| {
                        let a = parameter(w, ne, la);
                        let g = w.source(GGML_TYPE_F32, ne, lb, &PLAIN);
                        let list = Fill::List(params.map(f64::from).to_vec());
                        let p = w.source(GGML_TYPE_F32, [1, 2, 1, 1], Layout::Swap01, &list);
                        let [alpha, wd] = params.map(f64::from);
                        let (w0, g0) = (read(a), read(g));
                        let want = Want::with_magnitude(ne, Tol::terms(8.0), |i| {
                            sum([w0.at(i) * (1.0 - alpha * wd), -alpha * g0.at(i)].into_iter())
                        });
                        (ggml_opt_step_sgd(w.ctx, a, g, p), want)
                    });
                }
            }
        }
    }
    s.finish(800);
}
