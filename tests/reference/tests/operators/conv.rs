//! Convolutions: as a gather and a matrix product, and in one node.

use super::common::*;

/// Stride, zeros on either side, dilation, of dimensions 0, 1 and 2.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    pub s: [usize; 3],
    pub p: [usize; 3],
    pub d: [usize; 3],
}

pub const UNIT: Axes = Axes { s: [1; 3], p: [0; 3], d: [1; 3] };

impl Axes {
    /// Windows of `k` taps over `n` elements in dimension `i`; 0 when none fits.
    pub fn count(&self, i: usize, n: usize, k: usize) -> usize {
        let room = n as i64 + 2 * self.p[i] as i64 - (self.d[i] * (k.max(1) - 1)) as i64 - 1;
        if room < 0 {
            0
        } else {
            room as usize / self.s[i] + 1
        }
    }

    /// The element that tap `k` of window `o` meets in dimension `i`.
    pub fn at(&self, i: usize, o: usize, k: usize) -> i64 {
        (o * self.s[i] + k * self.d[i]) as i64 - self.p[i] as i64
    }
}

pub fn axes() -> [Axes; 5] {
    [
        UNIT,
        Axes { p: [1; 3], ..UNIT },
        Axes { s: [2; 3], p: [1, 2, 0], ..UNIT },
        Axes { d: [2, 1, 1], p: [2, 0, 1], ..UNIT },
        Axes { s: [3, 2, 1], p: [0, 1, 1], d: [1, 2, 1] },
    ]
}

/// Error of products whose sources are rounded to half precision, which has no numbers below 6e-8, and of their sums.
fn rounded(kernel: ggml_type) -> Tol {
    let mag = match kernel {
        GGML_TYPE_BF16 => 1.02 / 256.0,
        _ => 2.05 / 2048.0,
    };
    Tol { rel: U32, mag: mag + 32.0 * U32, abs: 1e-6 }
}

const SUMS: Tol = Tol::terms(32.0);

/// Kernel [KW, KH, IC, OC] on picture [W, H, IC, N]: [OW, OH, OC, N].
fn conv_2d_reference(a: &Arr, b: &Arr, x: Axes, tol: Tol) -> Want {
    let ne = [x.count(0, b.ne[0], a.ne[0]), x.count(1, b.ne[1], a.ne[1]), a.ne[3], b.ne[3]];
    Want::with_magnitude(ne, tol, |[ow, oh, oc, n]| {
        sum(each([a.ne[0], a.ne[1], a.ne[2], 1]).map(|[kw, kh, ic, _]| {
            a.at([kw, kh, ic, oc]) * b.or([x.at(0, ow, kw), x.at(1, oh, kh), ic as i64, n as i64], 0.0)
        }))
    })
}

/// Kernel [KW, KH, 1, C] on picture [W, H, C, N]: [OW, OH, C, N].
fn depthwise_reference(a: &Arr, b: &Arr, x: Axes, tol: Tol) -> Want {
    let ne = [x.count(0, b.ne[0], a.ne[0]), x.count(1, b.ne[1], a.ne[1]), b.ne[2], b.ne[3]];
    Want::with_magnitude(ne, tol, |[ow, oh, c, n]| {
        sum(each([a.ne[0], a.ne[1], 1, 1]).map(|[kw, kh, ..]| {
            a.at([kw, kh, 0, c]) * b.or([x.at(0, ow, kw), x.at(1, oh, kh), c as i64, n as i64], 0.0)
        }))
    })
}

/// Kernels and pictures.
fn pictures() -> Vec<([usize; 4], [usize; 4])> {
    vec![
        ([3, 3, 4, 5], [8, 6, 4, 2]),
        ([1, 1, 3, 2], [33, 7, 3, 2]),
        LARGE,
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([3, 2, 2, 17], [19, 5, 2, 1]),
        ([5, 3, 1, 3], [12, 9, 1, 3]),
        ([4, 4, 7, 9], [9, 11, 7, 1]),
    ]
}

/// Enough work to be shared out among threads; with few layouts, since the reference has as much.
const LARGE: ([usize; 4], [usize; 4]) = ([3, 3, 4, 16], [32, 24, 4, 2]);

const EMPTY_PICTURES: [([usize; 4], [usize; 4]); 2] = [([3, 3, 4, 0], [8, 6, 4, 2]), ([3, 3, 4, 5], [8, 6, 4, 0])];

#[test]
fn im2col_2d() {
    let mut s = Suite::new("im2col, two dimensions");
    for (na, nb) in pictures().into_iter().chain(EMPTY_PICTURES) {
        for x in axes() {
            let out = [na[0] * na[1] * na[2], x.count(0, nb[0], na[0]), x.count(1, nb[1], na[1]), nb[3]];
            for (ta, tb, to) in [
                (GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_F16),
                (GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F32),
                (GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F16),
            ] {
                for lb in ALL {
                    let must = lb.contiguous() && !out[1..3].contains(&0);
                    s.case(must, format!("{} {na:?} {nb:?} {x:?} {lb:?}", names(&[ta, tb, to])), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(tb, nb, lb, &Fill::Special));
                        let y = read(b);
                        let want = Arr::from_fn(out, |[k, ow, oh, n]| {
                            let (kw, kh, ic) = (k % na[0], k / na[0] % na[1], k / na[0] / na[1]);
                            y.or([x.at(0, ow, kw), x.at(1, oh, kh), ic as i64, n as i64], 0.0)
                        });
                        let [s0, s1, p0, p1, d0, d1] =
                            [x.s[0], x.s[1], x.p[0], x.p[1], x.d[0], x.d[1]].map(|n| n as i32);
                        (ggml_im2col(w.ctx, a, b, s0, s1, p0, p1, d0, d1, true, to), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(300);
}

#[test]
fn im2col_1d() {
    let mut s = Suite::new("im2col, one dimension");
    for (na, nb) in [
        ([3, 4, 5, 1], [8, 4, 2, 1]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([5, 3, 2, 1], [33, 3, 2, 1]),
        ([3, 2, 1, 1], [7, 2, 0, 1]),
    ] {
        for x in axes() {
            let out = [na[0] * na[1], x.count(0, nb[0], na[0]), nb[2], 1];
            for to in [GGML_TYPE_F32, GGML_TYPE_F16] {
                for lb in ALL {
                    s.case(lb.contiguous() && out[1] > 0, format!("{na:?} {nb:?} {x:?} {lb:?}"), |w| {
                        let (a, b) = (
                            w.source(GGML_TYPE_F16, na, Layout::Cont, &PLAIN),
                            w.source(GGML_TYPE_F32, nb, lb, &PLAIN),
                        );
                        let y = read(b);
                        let want = Arr::from_fn(out, |[k, ow, n, _]| {
                            y.or([x.at(0, ow, k % na[0]), (k / na[0]) as i64, n as i64, 0], 0.0)
                        });
                        let [s0, p0, d0] = [x.s[0], x.p[0], x.d[0]].map(|n| n as i32);
                        (ggml_im2col(w.ctx, a, b, s0, 0, p0, 0, d0, 0, false, to), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(100);
}

#[test]
fn conv_2d() {
    let mut s = Suite::new("conv_2d, conv_2d_direct");
    for (na, nb) in pictures().into_iter().chain(EMPTY_PICTURES) {
        for x in axes() {
            let fits = x.count(0, nb[0], na[0]) > 0 && x.count(1, nb[1], na[1]) > 0;
            if !fits {
                continue;
            }
            for ta in FLOATS {
                for la in [Layout::Cont, Layout::Offset, Layout::Swap23, Layout::RowGap] {
                    for lb in ALL {
                        let few = la == Layout::Cont && matches!(lb, Layout::Cont | Layout::Swap12 | Layout::Channels);
                        if (la != Layout::Cont && lb != Layout::Cont) || ((na, nb) == LARGE && !few) {
                            continue;
                        }
                        let [s0, s1, p0, p1, d0, d1] =
                            [x.s[0], x.s[1], x.p[0], x.p[1], x.d[0], x.d[1]].map(|n| n as i32);
                        let name = |what: &str| format!("{what} {} {na:?} {nb:?} {x:?} {la:?} {lb:?}", type_name(ta));
                        let must = la.contiguous() && lb.contiguous() && ta != GGML_TYPE_BF16;
                        s.case(must, name("by product"), |w| {
                            let (a, b) = (w.source(ta, na, la, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                            let want = conv_2d_reference(&read(a), &read(b), x, rounded(ta));
                            (ggml_conv_2d(w.ctx, a, b, s0, s1, p0, p1, d0, d1), want)
                        });
                        s.case(must, name("direct"), |w| {
                            let (a, b) = (w.source(ta, na, la, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                            let tol = if ta == GGML_TYPE_F32 { SUMS } else { rounded(ta) };
                            let want = conv_2d_reference(&read(a), &read(b), x, tol);
                            (ggml_conv_2d_direct(w.ctx, a, b, s0, s1, p0, p1, d0, d1), want)
                        });
                    }
                }
            }
        }
    }
    s.finish(500);
}

/// The forms with fixed strides and paddings.
#[test]
fn conv_2d_short_forms() {
    let mut s = Suite::new("conv_2d short forms");
    for ta in [GGML_TYPE_F32, GGML_TYPE_F16] {
        s.case(true, "stride of the kernel", |w| {
            let (a, b) = (
                w.source(ta, [3, 2, 4, 5], Layout::Cont, &PLAIN),
                w.source(GGML_TYPE_F32, [9, 8, 4, 2], Layout::Cont, &PLAIN),
            );
            let want = conv_2d_reference(&read(a), &read(b), Axes { s: [3, 2, 1], ..UNIT }, rounded(ta));
            (ggml_conv_2d_sk_p0(w.ctx, a, b), want)
        });
        s.case(true, "half padding", |w| {
            let (a, b) = (
                w.source(ta, [3, 5, 4, 5], Layout::Cont, &PLAIN),
                w.source(GGML_TYPE_F32, [9, 8, 4, 2], Layout::Cont, &PLAIN),
            );
            let want = conv_2d_reference(&read(a), &read(b), Axes { p: [1, 2, 0], ..UNIT }, rounded(ta));
            (ggml_conv_2d_s1_ph(w.ctx, a, b), want)
        });
    }
    s.finish(4);
}

#[test]
fn conv_2d_depthwise() {
    let mut s = Suite::new("conv_2d_dw, conv_2d_dw_direct");
    for (na, nb) in [
        ([3, 3, 1, 4], [8, 6, 4, 2]),
        ([1, 1, 1, 3], [33, 7, 3, 2]),
        ([3, 3, 1, 12], [40, 30, 12, 1]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([5, 2, 1, 19], [9, 7, 19, 1]),
        ([3, 3, 1, 0], [8, 6, 0, 2]),
    ] {
        for x in axes() {
            if x.count(0, nb[0], na[0]) == 0 || x.count(1, nb[1], na[1]) == 0 {
                continue;
            }
            for ta in [GGML_TYPE_F32, GGML_TYPE_F16] {
                for lb in ALL {
                    let [s0, s1, p0, p1, d0, d1] = [x.s[0], x.s[1], x.p[0], x.p[1], x.d[0], x.d[1]].map(|n| n as i32);
                    let name = |what: &str| format!("{what} {} {na:?} {nb:?} {x:?} {lb:?}", type_name(ta));
                    s.case(lb.contiguous(), name("by product"), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                        let want = depthwise_reference(&read(a), &read(b), x, rounded(ta));
                        (ggml_conv_2d_dw(w.ctx, a, b, s0, s1, p0, p1, d0, d1), want)
                    });
                    s.case(lb.contiguous() || lb == Layout::Channels, name("direct"), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                        let want = depthwise_reference(&read(a), &read(b), x, SUMS);
                        (ggml_conv_2d_dw_direct(w.ctx, a, b, s0, s1, p0, p1, d0, d1), want)
                    });
                }
            }
        }
    }
    s.finish(200);
}

#[test]
fn conv_1d() {
    let mut s = Suite::new("conv_1d, conv_1d_dw");
    for (na, nb) in [
        ([3, 4, 5, 1], [8, 4, 2, 1]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([5, 3, 17, 1], [33, 3, 1, 1]),
        ([4, 2, 3, 1], [29, 2, 3, 1]),
    ] {
        for x in axes() {
            let count = x.count(0, nb[0], na[0]);
            if count == 0 {
                continue;
            }
            for ta in FLOATS {
                for lb in ALL {
                    let [s0, p0, d0] = [x.s[0], x.p[0], x.d[0]].map(|n| n as i32);
                    let name = |what: &str| format!("{what} {} {na:?} {nb:?} {x:?} {lb:?}", type_name(ta));
                    let must = lb.contiguous() && ta != GGML_TYPE_BF16;
                    s.case(must, name("whole"), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                        let (k, y) = (read(a), read(b));
                        let want = Want::with_magnitude([count, na[2], nb[2], 1], rounded(ta), |[o, oc, n, _]| {
                            sum(each([na[0], na[1], 1, 1]).map(|[t, ic, ..]| {
                                k.at([t, ic, oc, 0]) * y.or([x.at(0, o, t), ic as i64, n as i64, 0], 0.0)
                            }))
                        });
                        (ggml_conv_1d(w.ctx, a, b, s0, p0, d0), want)
                    });
                    s.case(must, name("depthwise"), |w| {
                        let a = w.source(ta, [na[0], 1, nb[1], 1], Layout::Cont, &PLAIN);
                        let b = w.source(GGML_TYPE_F32, [nb[0], nb[1], 1, 1], lb, &PLAIN);
                        let (k, y) = (read(a), read(b));
                        let want = Want::with_magnitude([count, nb[1], 1, 1], rounded(ta), |[o, c, ..]| {
                            sum((0..na[0]).map(|t| k.at([t, 0, c, 0]) * y.or([x.at(0, o, t), c as i64, 0, 0], 0.0)))
                        });
                        (ggml_conv_1d_dw(w.ctx, a, b, s0, p0, d0), want)
                    });
                }
            }
        }
    }
    s.case(true, "half padding", |w| {
        let (a, b) = (
            w.source(GGML_TYPE_F16, [5, 3, 2, 1], Layout::Cont, &PLAIN),
            w.source(GGML_TYPE_F32, [9, 3, 1, 1], Layout::Cont, &PLAIN),
        );
        let (k, y) = (read(a), read(b));
        let want = Want::with_magnitude([9, 2, 1, 1], rounded(GGML_TYPE_F16), |[o, oc, ..]| {
            sum(each([5, 3, 1, 1])
                .map(|[t, ic, ..]| k.at([t, ic, oc, 0]) * y.or([(o + t) as i64 - 2, ic as i64, 0, 0], 0.0)))
        });
        (ggml_conv_1d_ph(w.ctx, a, b, 1, 1), want)
    });
    s.finish(200);
}

/// Kernel [KW, KH, KD, IC*OC] on volume [W, H, D, IC*N]: [OW, OH, OD, OC*N].
fn conv_3d_reference(a: &Arr, b: &Arr, [ic, oc, n]: [usize; 3], x: Axes, tol: Tol) -> Want {
    let o = [0, 1, 2].map(|i| x.count(i, b.ne[i], a.ne[i]));
    Want::with_magnitude([o[0], o[1], o[2], oc * n], tol, |i| {
        let (channel, batch) = (i[3] % oc, i[3] / oc);
        sum(each([a.ne[0], a.ne[1], a.ne[2], ic]).map(|k| {
            let at = |d: usize| x.at(d, i[d], k[d]);
            a.at([k[0], k[1], k[2], channel * ic + k[3]]) * b.or([at(0), at(1), at(2), (batch * ic + k[3]) as i64], 0.0)
        }))
    })
}

#[test]
fn conv_3d() {
    let mut s = Suite::new("im2col_3d, conv_3d, conv_3d_direct");
    for (k, v, [ic, oc, n]) in [
        ([3, 2, 2], [7, 5, 4], [2, 3, 2]),
        ([1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ([2, 3, 1], [11, 4, 3], [3, 9, 1]),
        ([3, 3, 3], [5, 5, 5], [1, 2, 1]),
    ] {
        for x in axes() {
            let o = [0, 1, 2].map(|i| x.count(i, v[i], k[i]));
            if o.contains(&0) {
                continue;
            }
            for ta in [GGML_TYPE_F32, GGML_TYPE_F16] {
                for lb in ALL {
                    let (na, nb) = ([k[0], k[1], k[2], ic * oc], [v[0], v[1], v[2], ic * n]);
                    let name = |what: &str| format!("{what} {} {na:?} {nb:?} {x:?} {lb:?}", type_name(ta));
                    let [[s0, s1, s2], [p0, p1, p2], [d0, d1, d2]] = [x.s, x.p, x.d].map(|a| a.map(|n| n as i32));
                    s.case(lb.contiguous(), name("im2col"), |w| {
                        // only the size of the window counts
                        let a = w.source(ta, [k[0], k[1], k[2], 1], Layout::Cont, &PLAIN);
                        let b = w.source(GGML_TYPE_F32, nb, lb, &PLAIN);
                        let y = read(b);
                        let want = Arr::from_fn([ic * k[0] * k[1] * k[2], o[0], o[1], o[2] * n], |[t, ow, oh, r]| {
                            let (tw, th, td) = (t % k[0], t / k[0] % k[1], t / k[0] / k[1] % k[2]);
                            let (c, od, batch) = (t / k[0] / k[1] / k[2], r % o[2], r / o[2]);
                            y.or([x.at(0, ow, tw), x.at(1, oh, th), x.at(2, od, td), (batch * ic + c) as i64], 0.0)
                        });
                        (
                            ggml_im2col_3d(w.ctx, a, b, ic as i64, s0, s1, s2, p0, p1, p2, d0, d1, d2, ta),
                            Want::new(want, Tol::EXACT),
                        )
                    });
                    s.case(lb.contiguous(), name("by product"), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                        let want = conv_3d_reference(&read(a), &read(b), [ic, oc, n], x, rounded(ta));
                        (ggml_conv_3d(w.ctx, a, b, ic as i64, s0, s1, s2, p0, p1, p2, d0, d1, d2), want)
                    });
                    s.case(lb.contiguous(), name("direct"), |w| {
                        let (a, b) = (w.source(ta, na, Layout::Cont, &PLAIN), w.source(GGML_TYPE_F32, nb, lb, &PLAIN));
                        let tol = if ta == GGML_TYPE_F32 { SUMS } else { rounded(ta) };
                        let want = conv_3d_reference(&read(a), &read(b), [ic, oc, n], x, tol);
                        let [c, n, oc] = [ic, n, oc].map(|n| n as i32);
                        (ggml_conv_3d_direct(w.ctx, a, b, s0, s1, s2, p0, p1, p2, d0, d1, d2, c, n, oc), want)
                    });
                }
            }
        }
    }
    s.finish(200);
}
