//! Gradients back to what was repeated, taken by index, or seen through windows.

use super::common::*;

#[test]
fn repeat_back() {
    let mut s = Suite::new("repeat_back");
    for ty in FLOATS {
        for (ne, times) in [
            ([8, 6, 4, 2], [1, 1, 1, 1]),
            ([8, 3, 2, 2], [2, 3, 1, 2]),
            ([1, 3, 2, 1], [33, 2, 3, 2]),
            ([1, 1, 1, 1], [257, 7, 2, 2]),
            ([5, 1, 1, 1], [1, 300, 1, 1]),
            ([600, 1, 3, 1], [1, 5, 1, 4]),
            ([520, 2, 1, 1], [3, 40, 1, 1]),
            ([3, 0, 2, 1], [2, 1, 1, 1]),
            ([0, 3, 2, 1], [1, 1, 2, 1]),
            ([3, 2, 2, 1], [1, 0, 1, 1]),
        ] {
            let large = std::array::from_fn(|d| ne[d] * times[d]);
            for la in ALL {
                // upstream has f32 with packed rows
                let must = ty == GGML_TYPE_F32 && la.packed() && !times.contains(&0);
                s.case(must, format!("{} {large:?} to {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, large, la, &PLAIN);
                    let b = w.leaf(GGML_TYPE_F32, ne);
                    let x = read(a);
                    let want = Want::with_magnitude(ne, Tol::terms(24.0), |i| {
                        sum(each(times).map(|t| x.at(std::array::from_fn(|d| i[d] + t[d] * ne[d]))))
                    });
                    (ggml_repeat_back(w.ctx, a, b), want)
                });
            }
        }
    }
    s.finish(250);
}

#[test]
fn get_rows_back() {
    let mut s = Suite::new("get_rows_back");
    for ty in FLOATS {
        for (n, rows, r, b2, b3) in [
            (8usize, 6, 9, 1, 1),
            (8, 6, 9, 4, 2),
            (33, 7, 1, 1, 1),
            (1, 1, 1, 1, 1),
            (257, 3, 40, 1, 1),
            (1030, 5, 60, 2, 1),
            (5, 4, 0, 2, 1),
            (0, 3, 2, 1, 1),
            (5, 4, 2, 0, 1),
        ] {
            for la in ALL {
                for li in ALL {
                    if n == 1030 && la != Layout::Cont && li != Layout::Cont {
                        continue;
                    }
                    // upstream has matrices of f32 or f16
                    let must = ty != GGML_TYPE_BF16 && la.packed() && li.contiguous() && b2 * b3 == 1;
                    s.case(must, format!("{} [{n},{rows},{b2},{b3}] {r} {la:?} {li:?}", type_name(ty)), |w| {
                        let a = w.source(ty, [n, r, b2, b3], la, &PLAIN);
                        let b = w.source(GGML_TYPE_I32, [r, b2, b3, 1], li, &Fill::Whole(0, rows as i64));
                        let c = w.leaf(GGML_TYPE_Q4_0, [32, 1, 1, 1]);
                        // looked at for its shape alone
                        t(c).ne = dims([n, rows, b2, b3]);
                        let (x, k) = (read(a), read(b));
                        let want = Want::with_magnitude([n, rows, b2, b3], Tol::terms(64.0), |i| {
                            let taken = (0..r).filter(|&j| k.at([j, i[2], i[3], 0]) as usize == i[1]);
                            sum(taken.map(|j| x.at([i[0], j, i[2], i[3]])))
                        });
                        (ggml_get_rows_back(w.ctx, a, b, c), want)
                    });
                }
            }
        }
    }
    s.finish(1000);
}

/// Indices that are no row's: an error, and nothing outside is written.
#[test]
fn case_18_get_rows_back_out_of_range() {
    for ty in FLOATS {
        for bad in [-1, 16, 20, 999_999, i32::MIN, i32::MAX] {
            World::with(1, |w| {
                let a = w.source(ty, [64, 4, 1, 1], Layout::Cont, &PLAIN);
                let list = Fill::List(vec![0.0, 15.0, f64::from(bad), 3.0]);
                let b = w.source(GGML_TYPE_I32, [4, 1, 1, 1], Layout::Cont, &list);
                let c = w.leaf(GGML_TYPE_F32, [64, 16, 1, 1]);
                let out = ggml_get_rows_back(w.ctx, a, b, c);
                let text = w.fails(out).unwrap();
                assert!(text.to_lowercase().contains("get_rows_back"), "index {bad} of 16: {text}");
            });
        }
    }
}

/// Stride, padding and dilation.
type Axis = [usize; 3];

/// Windows of `taps` along `n`.
fn windows(n: usize, taps: usize, [s, p, d]: Axis) -> usize {
    (n + 2 * p - d * (taps - 1) - 1) / s + 1
}

#[test]
fn im2col_back() {
    let mut s = Suite::new("im2col_back");
    for (image, kernel, x, y) in [
        ([8usize, 6, 3, 2], [3usize, 3], [1, 1, 1], [1, 1, 1]),
        ([8, 6, 3, 2], [3, 2], [2, 0, 1], [1, 1, 2]),
        ([9, 7, 1, 1], [5, 3], [3, 2, 2], [2, 4, 1]),
        ([1, 1, 1, 1], [1, 1], [1, 0, 1], [1, 0, 1]),
        ([33, 5, 19, 1], [4, 1], [4, 0, 1], [1, 0, 1]),
        ([16, 16, 20, 2], [3, 3], [1, 1, 1], [1, 1, 1]),
        ([9, 7, 2, 1], [3, 3], [2, 1, 1], [2, 1, 1]),
        ([10, 5, 2, 2], [4, 2], [3, 1, 2], [3, 2, 1]),
        ([4, 4, 2, 1], [1, 1], [3, 0, 1], [3, 0, 1]),
        ([5, 4, 2, 0], [3, 3], [1, 1, 1], [1, 1, 1]),
    ] {
        for two in [true, false] {
            let ([kw, kh], [iw, ih, c, n]) = (kernel, image);
            // in one dimension the second axis is that of the channels
            let (ne, shape, grad) = if two {
                let grad = [c * kh * kw, windows(iw, kw, x), windows(ih, kh, y), n];
                (image, [kw, kh, c, 4], grad)
            } else {
                ([iw, c, n, 1], [kw, c, 4, 1], [c * kw, windows(iw, kw, x), n, 1])
            };
            let (kh, ih) = if two { (kh, ih) } else { (1, 1) };
            for ty in FLOATS {
                for la in ALL {
                    let must = ty == GGML_TYPE_F32 && la.contiguous();
                    s.case(must, format!("{} {ne:?} {kernel:?} {x:?} {y:?} {two} {la:?}", type_name(ty)), |w| {
                        let a = w.source(ty, grad, la, &PLAIN);
                        let k = w.leaf(GGML_TYPE_F16, shape);
                        let g = read(a);
                        let want = Want::with_magnitude(ne, Tol::terms(24.0), |i| {
                            let [ix, iy, ic, image] = if two { i } else { [i[0], 0, i[1], i[2]] };
                            let y = if two { y } else { [1, 0, 1] };
                            let (ow, oh) = (windows(iw, kw, x), windows(ih, kh, y));
                            sum(each([ow, oh, kw, kh]).filter_map(|[wx, wy, tx, ty]| {
                                let on = wx * x[0] + tx * x[2] == ix + x[1] && wy * y[0] + ty * y[2] == iy + y[1];
                                let tap = (ic * kh + ty) * kw + tx;
                                on.then(|| g.at(if two { [tap, wx, wy, image] } else { [tap, wx, image, 0] }))
                            }))
                        });
                        let mut ne = dims(ne);
                        let [x, y] = [x, y].map(|a| a.map(|v| v as i32));
                        let ne = ne.as_mut_ptr();
                        (ggml_im2col_back(w.ctx, a, k, ne, x[0], y[0], x[1], y[1], x[2], y[2], two), want)
                    });
                }
            }
        }
    }
    s.finish(300);
}

#[test]
fn pool_2d_back() {
    let mut s = Suite::new("pool_2d_back");
    for (ne, k, step, pad) in [
        ([8usize, 6, 4, 2], [2usize, 2], [2usize, 2], [0usize, 0]),
        ([8, 6, 3, 2], [3, 2], [1, 2], [1, 0]),
        ([9, 7, 1, 1], [3, 3], [2, 2], [1, 1]),
        ([1, 1, 1, 1], [1, 1], [1, 1], [0, 0]),
        ([5, 5, 2, 1], [2, 3], [3, 4], [0, 1]),
        ([33, 17, 7, 3], [4, 4], [2, 1], [2, 2]),
        ([5, 4, 0, 2], [2, 2], [1, 1], [0, 0]),
    ] {
        let out: [usize; 2] = std::array::from_fn(|d| (ne[d] + 2 * pad[d] - k[d]) / step[d] + 1);
        let grad = [out[0], out[1], ne[2], ne[3]];
        for op in [GGML_OP_POOL_MAX, GGML_OP_POOL_AVG] {
            for (ty, tf) in
                [(GGML_TYPE_F32, GGML_TYPE_F32), (GGML_TYPE_F32, GGML_TYPE_F16), (GGML_TYPE_BF16, GGML_TYPE_BF16)]
            {
                for la in ALL {
                    for lb in ALL {
                        if la != Layout::Cont && lb != Layout::Cont && ne[0] > 8 {
                            continue;
                        }
                        // equal elements, so that the first of them counts; and ordinary ones
                        for fill in [PLAIN, Fill::Whole(0, 3), Fill::List(vec![f64::NEG_INFINITY, 1.0, 2.0])] {
                            let must = ty == GGML_TYPE_F32 && tf == ty && la.contiguous() && lb.contiguous();
                            let what = format!("{} {ne:?} {k:?} {step:?} {pad:?}", names(&[ty, tf]));
                            s.case(must, format!("{what} {op:?} {la:?} {lb:?} {fill:?}"), |w| {
                                let a = w.source(ty, grad, la, &PLAIN);
                                let f = w.source(tf, ne, lb, &fill);
                                let want = pool_back_of(&read(a), &read(f), op, k, step, pad);
                                let [k, step] = [k, step].map(|v| v.map(|v| v as i32));
                                let p = pad.map(|p| p as f32);
                                (ggml_pool_2d_back(w.ctx, a, f, op, k[0], k[1], step[0], step[1], p[0], p[1]), want)
                            });
                        }
                    }
                }
            }
        }
    }
    s.finish(2000);
}

fn pool_back_of(g: &Arr, f: &Arr, op: ggml_op_pool, k: [usize; 2], step: [usize; 2], pad: [usize; 2]) -> Want {
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); f.v.len()];
    let flat = |i: [usize; 4]| ((i[3] * f.ne[2] + i[2]) * f.ne[1] + i[1]) * f.ne[0] + i[0];
    for o in each(g.ne) {
        let window = each([k[0], k[1], 1, 1]).filter_map(|t| {
            let at: [usize; 2] = std::array::from_fn(|d| (o[d] * step[d] + t[d]).wrapping_sub(pad[d]));
            (at[0] < f.ne[0] && at[1] < f.ne[1]).then_some([at[0], at[1], o[2], o[3]])
        });
        if op == GGML_OP_POOL_AVG {
            window.for_each(|i| terms[flat(i)].push(g.at(o) / (k[0] * k[1]) as f64));
            continue;
        }
        let mut best: Option<[usize; 4]> = None;
        for i in window.filter(|&i| f.at(i) > f64::from(f32::MIN)) {
            if best.is_none_or(|b| f.at(i) > f.at(b)) {
                best = Some(i);
            }
        }
        if let Some(i) = best {
            terms[flat(i)].push(g.at(o));
        }
    }
    let mut terms = terms.into_iter();
    Want::with_magnitude(f.ne, Tol::terms(24.0), |_| sum(terms.next().unwrap().into_iter()))
}
