//! Normalisation of rows and groups.

use super::common::*;

type Build = fn(Ctx, T, f32) -> T;

/// (x - mean) / sqrt(variance + eps).
fn normal(x: &[f64], eps: f64) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    x.iter().map(|x| (x - mean) / (variance + eps).sqrt()).collect()
}

fn root_mean_square(x: &[f64], eps: f64) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| x / (mean + eps).sqrt()).collect()
}

fn unit_length(x: &[f64], eps: f64) -> Vec<f64> {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    x.iter().map(|x| x / length.max(eps)).collect()
}

fn run(name: &str, build: Build, inplace: Build, rule: fn(&[f64], f64) -> Vec<f64>) {
    let mut s = Suite::new(name);
    for ne in shapes() {
        for la in ALL {
            for (fill, tol) in [
                (PLAIN, Tol::units(32.0).abs(1e-6)),
                // a mean far from 0 takes digits away
                (Fill::Range(99.0, 101.0), Tol::units(64.0).abs(1e-4)),
                (Fill::List(vec![0.0]), Tol::EXACT),
                (Fill::Range(-1e-6, 1e-6), Tol::units(64.0).abs(1e-6)),
                (Fill::Range(-1e4, 1e4), Tol::units(64.0).abs(1e-6)),
            ] {
                for eps in [1e-6f32, 1e-5] {
                    // packed rows are what upstream takes
                    s.case(la.packed(), format!("{ne:?} {la:?} {fill:?} {eps}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                        let want = read(a).map_rows(|row, _| rule(row, f64::from(eps)));
                        (build(w.ctx, a, eps), Want::new(want, tol))
                    });
                }
                s.case(la.packed(), format!("{ne:?} {la:?} {fill:?} inplace"), |w| {
                    let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                    let want = read(a).map_rows(|row, _| rule(row, f64::from(1e-6f32)));
                    (inplace(w.ctx, a, 1e-6), Want::new(want, tol))
                });
            }
        }
    }
    s.finish(500);
}

#[test]
fn norm() {
    run("norm", |c, a, e| ggml_norm(c, a, e), |c, a, e| ggml_norm_inplace(c, a, e), normal);
}
#[test]
fn rms_norm() {
    run("rms_norm", |c, a, e| ggml_rms_norm(c, a, e), |c, a, e| ggml_rms_norm_inplace(c, a, e), root_mean_square);
}
#[test]
fn l2_norm() {
    run("l2_norm", |c, a, e| ggml_l2_norm(c, a, e), |c, a, e| ggml_l2_norm_inplace(c, a, e), unit_length);
}

/// Huge and tiny rows: finite in, never NaN out.
#[test]
fn finite_rows_stay_finite() {
    let builds: [(&str, Build); 3] = [
        ("norm", |c, a, e| ggml_norm(c, a, e)),
        ("rms_norm", |c, a, e| ggml_rms_norm(c, a, e)),
        ("l2_norm", |c, a, e| ggml_l2_norm(c, a, e)),
    ];
    let mut s = Suite::new("norms of extreme rows");
    for (name, build) in builds {
        for size in [1e-44, 1e-38, 1e-20, 1e15, 1e18, 1e25, 3e38] {
            for n in [1, 7, 64, 257] {
                s.case(true, format!("{name} {size:e} {n}"), |w| {
                    let a = w.source(GGML_TYPE_F32, [n, 3, 1, 1], Layout::Cont, &Fill::Range(-size, size));
                    let want = Want::by([n, 3, 1, 1], |got| match got.v.iter().find(|x| x.is_nan()) {
                        None => Ok(()),
                        Some(_) => Err("NaN from finite numbers".into()),
                    });
                    (build(w.ctx, a, 1e-6), want)
                });
            }
        }
    }
    s.finish(80);
}

#[test]
fn group_norm() {
    let mut s = Suite::new("group_norm");
    for ne in [
        [8, 6, 4, 2],
        [33, 7, 3, 2],
        [1, 1, 1, 1],
        [257, 3, 1, 1],
        [40, 30, 8, 2],
        [5, 4, 7, 2],
        [5, 4, 0, 2],
        [0, 4, 2, 1],
        [5, 4, 2, 0],
    ] {
        for groups in [1usize, 2, 3, 4, 8] {
            for la in ALL {
                for inplace in [false, true] {
                    s.case(la.contiguous(), format!("{ne:?} {groups} {la:?} {inplace}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                        let x = read(a);
                        let size = ne[2].div_ceil(groups);
                        let group = |i: usize| i / size;
                        let mut parts = vec![vec![Vec::new(); groups]; ne[3]];
                        for (i, &x) in each(ne).zip(&x.v) {
                            parts[i[3]][group(i[2])].push(x);
                        }
                        let eps = f64::from(1e-5f32);
                        let statistics = |part: &Vec<f64>| {
                            let n = part.len() as f64;
                            let mean = part.iter().sum::<f64>() / n;
                            let variance = part.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                            (mean, (variance + eps).sqrt())
                        };
                        let parts: Vec<Vec<(f64, f64)>> =
                            parts.iter().map(|p| p.iter().map(statistics).collect()).collect();
                        let want = Arr::from_fn(ne, |i| {
                            let (mean, deviation) = parts[i[3]][group(i[2])];
                            (x.at(i) - mean) / deviation
                        });
                        let want = Want::new(want, Tol::units(32.0).abs(1e-6));
                        let n = groups as i32;
                        (
                            if inplace {
                                ggml_group_norm_inplace(w.ctx, a, n, 1e-5)
                            } else {
                                ggml_group_norm(w.ctx, a, n, 1e-5)
                            },
                            want,
                        )
                    });
                }
            }
        }
    }
    s.finish(400);
}
