//! Sums, means, and orders of rows.

use super::common::*;

const TOL: Tol = Tol::terms(64.0);

#[test]
fn sum_of_all() {
    let mut s = Suite::new("sum");
    for ty in FLOATS {
        for ne in shapes() {
            for la in ALL {
                s.case(true, format!("{} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &PLAIN);
                    let (v, m) = sum(read(a).v.into_iter());
                    (ggml_sum(w.ctx, a), Want::with_magnitude([1; 4], TOL, |_| (v, m)))
                });
            }
        }
    }
    s.finish(200);
}

/// A permuted source with more than one row: the sum of the pattern 0 to 12, 8449 elements.
#[test]
fn case_01_sum_permuted() {
    let mut s = Suite::new("case 1");
    for (la, axes) in
        [(Layout::Cont, [33, 256, 1, 1]), (Layout::Swap01, [33, 256, 1, 1]), (Layout::Swap02, [33, 4, 64, 1])]
    {
        s.case(true, format!("{la:?}"), |w| {
            let a = w.source(GGML_TYPE_F32, axes, la, &Fill::List((0..25).map(f64::from).collect()));
            let (v, _) = sum(read(a).v.into_iter());
            (ggml_sum(w.ctx, a), Want::new(Arr { ne: [1; 4], v: vec![v] }, Tol::EXACT))
        });
    }
    s.finish(3);
}

#[test]
fn rows() {
    let mut s = Suite::new("sum_rows, mean");
    for ty in FLOATS {
        for ne in shapes() {
            for la in ALL {
                let out = [1, ne[1], ne[2], ne[3]];
                // upstream has these for f32 alone; without elements a mean has no value
                let must = ty == GGML_TYPE_F32;
                s.case(must, format!("sum_rows {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &PLAIN);
                    let x = read(a);
                    let want = Want::with_magnitude(out, TOL, |i| sum(x.row([i[1], i[2], i[3]]).iter().copied()));
                    (ggml_sum_rows(w.ctx, a), want)
                });
                s.case(must, format!("mean {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &PLAIN);
                    let x = read(a);
                    let n = ne[0] as f64;
                    let want = Want::with_magnitude(out, TOL, |i| {
                        let (v, m) = sum(x.row([i[1], i[2], i[3]]).iter().copied());
                        (v / n, m / n)
                    });
                    (ggml_mean(w.ctx, a), want)
                });
            }
        }
        s.case(ty == GGML_TYPE_F32, format!("special {}", type_name(ty)), |w| {
            let a = w.source(ty, [1, 67, 2, 1], Layout::Cont, &Fill::Special);
            let want = Want::new(read(a), Tol::EXACT);
            (ggml_sum_rows(w.ctx, a), want)
        });
    }
    s.finish(150);
}

#[test]
fn cumsum() {
    let mut s = Suite::new("cumsum");
    for ne in shapes() {
        for la in ALL {
            s.case(true, format!("{ne:?} {la:?}"), |w| {
                let a = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                let x = read(a);
                let want = Want::with_magnitude(ne, TOL, |i| sum(x.row([i[1], i[2], i[3]])[..=i[0]].iter().copied()));
                (ggml_cumsum(w.ctx, a), want)
            });
        }
    }
    s.finish(60);
}

#[test]
fn argmax() {
    let mut s = Suite::new("argmax");
    for ty in FLOATS {
        for ne in [[8, 6, 1, 1], [33, 7, 1, 1], [1, 1, 1, 1], [257, 3, 1, 1], [129, 90, 1, 1], [5, 0, 1, 1]] {
            for la in ALL {
                // small whole numbers make ties: the last counts, as upstream's CPU has it
                for fill in [PLAIN, Fill::Whole(-3, 4)] {
                    s.case(ty == GGML_TYPE_F32, format!("{} {ne:?} {la:?} {fill:?}", type_name(ty)), |w| {
                        let a = w.source(ty, ne, la, &fill);
                        let x = read(a);
                        let want = Arr::from_fn([ne[1], 1, 1, 1], |i| {
                            let row = x.row([i[0], 0, 0]);
                            (0..row.len()).fold(0, |best, k| if row[k] >= row[best] { k } else { best }) as f64
                        });
                        (ggml_argmax(w.ctx, a), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(100);
}

#[test]
fn count_equal() {
    let mut s = Suite::new("count_equal");
    for ne in shapes() {
        for la in ALL {
            for lb in [Layout::Cont, Layout::Swap01, Layout::RowGap] {
                s.case(true, format!("{ne:?} {la:?} {lb:?}"), |w| {
                    let fill = Fill::Whole(0, 4);
                    let (a, b) = (w.source(GGML_TYPE_I32, ne, la, &fill), w.source(GGML_TYPE_I32, ne, lb, &fill));
                    let (x, y) = (read(a), read(b));
                    let n = x.v.iter().zip(&y.v).filter(|(x, y)| x == y).count() as f64;
                    (ggml_count_equal(w.ctx, a, b), Want::new(Arr { ne: [1; 4], v: vec![n] }, Tol::EXACT))
                });
            }
        }
    }
    s.finish(200);
}

/// The row's elements at the indices in `got` are ordered and all different; `k` of them, none better left out.
fn ordered(x: Arr, k: usize, descending: bool, any_order: bool) -> Want {
    let ne = [k, x.ne[1], x.ne[2], x.ne[3]];
    Want::by(ne, move |got| {
        for [_, i1, i2, i3] in each([1, ne[1], ne[2], ne[3]]) {
            let (row, picked) = (x.row([i1, i2, i3]), got.row([i1, i2, i3]));
            let mut seen = vec![false; row.len()];
            for &p in picked {
                let fresh = seen.get_mut(p as usize).ok_or(format!("index {p} of {}", row.len()))?;
                if p < 0.0 || std::mem::replace(fresh, true) {
                    return Err(format!("index {p} twice in row [{i1},{i2},{i3}]"));
                }
            }
            let sign = if descending { -1.0 } else { 1.0 };
            let key = |x: f64| sign * x;
            let values: Vec<f64> = picked.iter().map(|&p| key(row[p as usize])).collect();
            if !any_order && !values.windows(2).all(|w| w[0] <= w[1]) {
                return Err(format!("row [{i1},{i2},{i3}] is not in order"));
            }
            let worst = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if (0..row.len()).any(|p| !seen[p] && key(row[p]) < worst) {
                return Err(format!("row [{i1},{i2},{i3}] leaves out a better one"));
            }
        }
        Ok(())
    })
}

#[test]
fn argsort() {
    let mut s = Suite::new("argsort, top_k");
    for ne in shapes() {
        for la in ALL {
            for fill in [PLAIN, Fill::Whole(-3, 4), Fill::List(vec![0.0, -0.0, f64::INFINITY, 1.0, f64::NEG_INFINITY])]
            {
                for (order, descending) in [(GGML_SORT_ORDER_ASC, false), (GGML_SORT_ORDER_DESC, true)] {
                    s.case(true, format!("argsort {ne:?} {la:?} {fill:?}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                        (ggml_argsort(w.ctx, a, order), ordered(read(a), ne[0], descending, false))
                    });
                }
                for k in [0, 1, ne[0] / 2, ne[0]] {
                    if k > ne[0] {
                        continue;
                    }
                    s.case(true, format!("top_k {ne:?} {la:?} {k}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                        (ggml_top_k(w.ctx, a, k as i32), ordered(read(a), k, true, true))
                    });
                    s.case(true, format!("argsort_top_k {ne:?} {la:?} {k}"), |w| {
                        let a = w.source(GGML_TYPE_F32, ne, la, &fill);
                        (ggml_argsort_top_k(w.ctx, a, k as i32), ordered(read(a), k, true, false))
                    });
                }
            }
        }
    }
    s.finish(500);
}
