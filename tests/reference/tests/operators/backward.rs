//! Gradients back through a function or along rows, from their formulas. `gradient` has them as differences of the operators.

use super::common::*;
use super::softmax::weights;

/// Derivative of `x / (1 + e^-x)`, and the size of the terms that make it.
fn silu_slope(x: f64) -> (f64, f64) {
    if x.is_infinite() {
        return (if x > 0.0 { 1.0 } else { 0.0 }, 1.0);
    }
    let (s, rest) = (1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + x.exp()));
    (s * (1.0 + x * rest), s * (1.0 + x.abs() * rest))
}

fn silu_back_of(g: &Arr, x: &Arr) -> Want {
    // a fraction of the smallest normal number is lost where the function underflows
    Want::with_magnitude(x.ne, Tol::terms(12.0).abs(1.2e-38), |i| {
        let (slope, size) = silu_slope(x.at(i));
        (g.at(i) * slope, g.at(i).abs() * size)
    })
}

#[test]
fn silu_back() {
    let mut s = Suite::new("silu_back");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                if ne[1] == 37 && la != Layout::Cont && lb != Layout::Cont {
                    continue;
                }
                for fill in [PLAIN, Fill::Special] {
                    // upstream has contiguous f32 or f16
                    let must = la.contiguous() && lb.contiguous();
                    s.case(must, format!("{ne:?} {la:?} {lb:?} {fill:?}"), |w| {
                        let g = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                        let x = w.source(GGML_TYPE_F32, ne, lb, &fill);
                        let want = silu_back_of(&read(g), &read(x));
                        (ggml_silu_back(w.ctx, g, x), want)
                    });
                }
            }
        }
    }
    for tg in FLOATS {
        for tx in FLOATS {
            for ne in SHAPES {
                s.case(tg == tx && tg != GGML_TYPE_BF16, format!("{} {ne:?}", names(&[tg, tx])), |w| {
                    let g = w.source(tg, ne, Layout::Cont, &PLAIN);
                    let x = w.source(tx, ne, Layout::RowGap, &PLAIN);
                    let want = silu_back_of(&read(g), &read(x));
                    (ggml_silu_back(w.ctx, g, x), want)
                });
            }
        }
    }
    for over in 0..2 {
        for ne in SHAPES {
            s.case(true, format!("over source {over} {ne:?}"), |w| {
                let sources = [0, 1].map(|_| w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN));
                let want = silu_back_of(&read(sources[0]), &read(sources[1]));
                let out = ggml_silu_back(w.ctx, sources[0], sources[1]);
                w.place_over(out, sources[over]);
                (out, want)
            });
        }
    }
    s.finish(1000);
}

fn rms_norm_back_of(g: &Arr, x: &Arr, eps: f32) -> Want {
    let mut mag = Vec::new();
    let arr = x.map_rows(|x, i| {
        let g = g.row(i);
        let n = x.len() as f64;
        let mean = x.iter().map(|x| x * x).sum::<f64>() / n + f64::from(eps);
        let (along, size) = sum(x.iter().zip(g).map(|(x, g)| x * g));
        let (c, size) = (along / n / mean, size / n / mean);
        mag.extend(x.iter().zip(g).map(|(x, g)| (g.abs() + x.abs() * size) / mean.sqrt()));
        x.iter().zip(g).map(|(x, g)| (g - x * c) / mean.sqrt()).collect()
    });
    Want { mag: Some(mag), ..Want::new(arr, Tol::terms(48.0).abs(1.2e-38)) }
}

#[test]
fn rms_norm_back() {
    let mut s = Suite::new("rms_norm_back");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                let both = la != Layout::Cont && lb != Layout::Cont;
                for (fill, eps) in [
                    (PLAIN, 1e-6f32),
                    (PLAIN, 0.5),
                    (Fill::Range(99.0, 101.0), 1e-6),
                    (Fill::Range(-1e-3, 1e-3), 1e-5),
                    (Fill::Range(-1e-18, 1e-18), 0.0),
                    (Fill::Range(1e24, 1e25), 1e-6),
                    (Fill::List(vec![0.0]), 1e-6),
                ] {
                    if both && (ne[1] == 37 || eps != 1e-6) {
                        continue;
                    }
                    s.case(la.packed() && lb.packed(), format!("{ne:?} {la:?} {lb:?} {fill:?} {eps}"), |w| {
                        let g = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                        let x = w.source(GGML_TYPE_F32, ne, lb, &fill);
                        let want = rms_norm_back_of(&read(g), &read(x), eps);
                        (ggml_rms_norm_back(w.ctx, g, x, eps), want)
                    });
                }
            }
        }
    }
    for over in 0..2 {
        for ne in SHAPES {
            for size in [2.0, 1e25] {
                s.case(true, format!("over source {over} {ne:?} {size:e}"), |w| {
                    let g = w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN);
                    let x = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::Range(-size, size));
                    let want = rms_norm_back_of(&read(g), &read(x), 1e-6);
                    let out = ggml_rms_norm_back(w.ctx, g, x, 1e-6);
                    w.place_over(out, [g, x][over]);
                    (out, want)
                });
            }
        }
    }
    s.finish(1000);
}

fn soft_max_back_of(g: &Arr, y: &Arr, scale: f32) -> Want {
    let scale = f64::from(scale);
    let mut mag = Vec::new();
    let arr = y.map_rows(|y, i| {
        let g = g.row(i);
        let (dot, size) = sum(y.iter().zip(g).map(|(y, g)| y * g));
        mag.extend(y.iter().zip(g).map(|(y, g)| (scale * y).abs() * (g.abs() + size)));
        y.iter().zip(g).map(|(y, g)| scale * y * (g - dot)).collect()
    });
    Want { mag: Some(mag), ..Want::new(arr, Tol::terms(48.0).abs(1.2e-38)) }
}

/// A softmax of some rows, others masked as a whole.
fn softmaxes(ne: [usize; 4]) -> Arr {
    let logits = Arr::from_fn(ne, |i| match (i[1] % 3, i[0] % 5) {
        (2, _) | (_, 1) => f64::NEG_INFINITY,
        _ => ((i[0] * 7 + i[1] * 5 + i[2] * 3 + i[3]) % 23) as f64 / 4.0 - 3.0,
    });
    logits.map_rows(|row, _| weights(row, None))
}

#[test]
fn soft_max_back() {
    let mut s = Suite::new("soft_max_back");
    for ne in shapes() {
        for la in ALL {
            for lb in ALL {
                if ne[1] == 37 && la != Layout::Cont && lb != Layout::Cont {
                    continue;
                }
                for (scale, bias) in [(1.0f32, 0.0), (0.125, 0.0), (-2.0, 8.0)] {
                    for inplace in [false, true] {
                        // upstream has contiguous sources, and no slopes
                        let must = la.contiguous() && lb.contiguous() && bias == 0.0;
                        s.case(must, format!("{ne:?} {la:?} {lb:?} {scale} {bias} {inplace}"), |w| {
                            let g = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                            let y = w.bare(GGML_TYPE_F32, ne, lb);
                            w.write(y, &softmaxes(ne));
                            let want = soft_max_back_of(&read(g), &read(y), scale);
                            let build = if inplace { ggml_soft_max_ext_back_inplace } else { ggml_soft_max_ext_back };
                            (build(w.ctx, g, y, scale, bias), want)
                        });
                    }
                }
            }
        }
    }
    s.finish(1000);
}

/// The result takes the memory of the gradient, or that of the softmax.
#[test]
fn case_3_soft_max_back_over_its_sources() {
    let mut s = Suite::new("case 3");
    for over in 0..2 {
        for ne in SHAPES {
            s.case(true, format!("source {over} {ne:?}"), |w| {
                let g = w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN);
                let y = w.bare(GGML_TYPE_F32, ne, Layout::Cont);
                w.write(y, &softmaxes(ne));
                let want = soft_max_back_of(&read(g), &read(y), 0.5);
                let out = ggml_soft_max_ext_back(w.ctx, g, y, 0.5, 0.0);
                w.place_over(out, [g, y][over]);
                (out, want)
            });
        }
    }
    s.finish(10);
}
