//! Transposed convolutions and pooling.

use super::common::*;
use super::conv::{Axes, UNIT};

/// Sums over the sources whose windows meet element `o`, `s` apart: pairs of source and tap.
fn meets(o: usize, s: usize, n: usize, k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).filter_map(move |i| o.checked_sub(i * s).filter(|&t| t < k).map(|t| (i, t)))
}

/// Half precision kernels are multiplied with sources in half precision.
fn tolerance(ty: ggml_type) -> Tol {
    let half = if ty == GGML_TYPE_F16 { 1.02 / 2048.0 } else { 0.0 };
    Tol { rel: U32, mag: half + 32.0 * U32, abs: 1e-30 }
}

#[test]
fn conv_transpose_1d() {
    let mut s = Suite::new("conv_transpose_1d");
    for (k, oc, ic, l) in [(3, 4, 5, 8), (1, 1, 1, 1), (4, 3, 2, 33), (5, 17, 3, 7), (3, 0, 2, 5)] {
        for stride in [1, 2, 5] {
            for ta in [GGML_TYPE_F32, GGML_TYPE_F16] {
                for la in [Layout::Cont, Layout::RowGap, Layout::Swap12, Layout::Swap01] {
                    for lb in ALL {
                        let must = la.contiguous() && lb.contiguous();
                        s.case(
                            must,
                            format!("{} [{k},{oc},{ic}] [{l},{ic}] {stride} {la:?} {lb:?}", type_name(ta)),
                            |w| {
                                let (a, b) = (
                                    w.source(ta, [k, oc, ic, 1], la, &PLAIN),
                                    w.source(GGML_TYPE_F32, [l, ic, 1, 1], lb, &PLAIN),
                                );
                                let (x, y) = (read(a), read(b));
                                let want = Want::with_magnitude(
                                    [(l - 1) * stride + k, oc, 1, 1],
                                    tolerance(ta),
                                    |[o, c, ..]| {
                                        sum(meets(o, stride, l, k).flat_map(|(i, t)| {
                                            let (x, y) = (&x, &y);
                                            (0..ic).map(move |n| x.at([t, c, n, 0]) * y.at([i, n, 0, 0]))
                                        }))
                                    },
                                );
                                (ggml_conv_transpose_1d(w.ctx, a, b, stride as i32, 0, 1), want)
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(200);
}

/// Every picture of a batch, and not only the first.
#[test]
fn case_04_conv_transpose_2d() {
    let mut s = Suite::new("conv_transpose_2d_p0");
    for (na, nb) in [
        ([3, 2, 4, 5], [8, 6, 5, 2]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([4, 3, 2, 3], [7, 5, 3, 3]),
        ([2, 2, 9, 1], [5, 3, 1, 1]),
        ([2, 2, 3, 1], [5, 3, 1, 0]),
    ] {
        for stride in [1, 2, 3] {
            for ta in [GGML_TYPE_F16, GGML_TYPE_F32] {
                for la in [Layout::Cont, Layout::RowGap, Layout::Swap23, Layout::Swap01] {
                    for lb in ALL {
                        let must = la.contiguous() && lb.contiguous() && ta == GGML_TYPE_F16;
                        s.case(must, format!("{} {na:?} {nb:?} {stride} {la:?} {lb:?}", type_name(ta)), |w| {
                            let (a, b) = (w.source(ta, na, la, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                            let (x, y) = (read(a), read(b));
                            let out = [(nb[0] - 1) * stride + na[0], (nb[1] - 1) * stride + na[1], na[2], nb[3]];
                            let want = Want::with_magnitude(out, tolerance(ta), |[ow, oh, c, n]| {
                                let mut terms = Vec::new();
                                for (i, t) in meets(ow, stride, nb[0], na[0]) {
                                    for (j, u) in meets(oh, stride, nb[1], na[1]) {
                                        terms.extend((0..na[3]).map(|k| x.at([t, u, c, k]) * y.at([i, j, k, n])));
                                    }
                                }
                                sum(terms.into_iter())
                            });
                            (ggml_conv_transpose_2d_p0(w.ctx, a, b, stride as i32), want)
                        });
                    }
                }
            }
        }
    }
    s.finish(200);
}

/// The largest of a window, or its mean: over the elements inside (`inside`), or over the whole window.
fn pooled(x: &Arr, kind: ggml_op_pool, k: [usize; 2], axes: Axes, inside: bool) -> Want {
    let ne = [axes.count(0, x.ne[0], k[0]), axes.count(1, x.ne[1], k[1]), x.ne[2], x.ne[3]];
    Want::with_magnitude(ne, Tol::terms(16.0), |[ow, oh, i2, i3]| {
        let at = |[kw, kh, ..]: [usize; 4]| [axes.at(0, ow, kw), axes.at(1, oh, kh), i2 as i64, i3 as i64];
        let seen: Vec<f64> = each([k[0], k[1], 1, 1]).map(|t| x.or(at(t), f64::NAN)).filter(|x| !x.is_nan()).collect();
        if kind == GGML_OP_POOL_MAX {
            return (seen.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0);
        }
        let n = if inside { seen.len() } else { k[0] * k[1] } as f64;
        let (v, m) = sum(seen.into_iter());
        (v / n, m / n)
    })
}

const KINDS: [ggml_op_pool; 2] = [GGML_OP_POOL_MAX, GGML_OP_POOL_AVG];

#[test]
fn pool_1d() {
    let mut s = Suite::new("pool_1d");
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for ne in [[8, 6, 4, 2], [33, 7, 3, 2], [257, 3, 1, 1], [129, 70, 2, 2], [5, 0, 2, 1], [5, 2, 0, 1]] {
            for (k, step, p) in [(1, 1, 0), (2, 2, 0), (3, 1, 1), (4, 3, 2), (5, 5, 0)] {
                for kind in KINDS {
                    for la in ALL {
                        s.case(
                            la.contiguous(),
                            format!("{} {ne:?} {k} {step} {p} {kind:?} {la:?}", type_name(ty)),
                            |w| {
                                let a = w.source(ty, ne, la, &PLAIN);
                                let axes = Axes { s: [step, 1, 1], p: [p, 0, 0], ..UNIT };
                                let want = pooled(&read(a), kind, [k, 1], axes, true);
                                (ggml_pool_1d(w.ctx, a, kind, k as i32, step as i32, p as i32), want)
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(100);
}

#[test]
fn pool_2d() {
    let mut s = Suite::new("pool_2d");
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for ne in [[8, 6, 4, 2], [33, 7, 3, 2], [19, 5, 1, 1], [5, 5, 0, 1], [5, 5, 2, 0]] {
            for (k, step, p) in [
                ([1, 1], [1, 1], [0, 0]),
                ([2, 2], [2, 2], [0, 0]),
                ([3, 2], [1, 2], [1, 0]),
                ([3, 3], [2, 1], [1, 1]),
                ([5, 4], [3, 2], [2, 2]),
            ] {
                for kind in KINDS {
                    for la in ALL {
                        s.case(
                            la.contiguous(),
                            format!("{} {ne:?} {k:?} {step:?} {p:?} {kind:?} {la:?}", type_name(ty)),
                            |w| {
                                let a = w.source(ty, ne, la, &PLAIN);
                                let axes = Axes { s: [step[0], step[1], 1], p: [p[0], p[1], 0], ..UNIT };
                                let want = pooled(&read(a), kind, k, axes, false);
                                let [k0, k1, s0, s1] = [k[0], k[1], step[0], step[1]].map(|n| n as i32);
                                (ggml_pool_2d(w.ctx, a, kind, k0, k1, s0, s1, p[0] as f32, p[1] as f32), want)
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(100);
}
