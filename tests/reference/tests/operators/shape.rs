//! Operators that move elements, and those that make tensors from numbers.

use super::common::*;
use reference::values::block;

const PLAIN_TYPES: [ggml_type; 6] =
    [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_I16, GGML_TYPE_I8];

fn fill_of(ty: ggml_type) -> Fill {
    match ty {
        GGML_TYPE_I32 | GGML_TYPE_I16 | GGML_TYPE_I8 => Fill::Whole(-100, 100),
        _ => Fill::Special,
    }
}

#[test]
fn repeat() {
    let mut s = Suite::new("repeat");
    let sizes = [[3, 2, 2, 1], [40, 30, 4, 2], [1, 1, 1, 1], [33, 1, 3, 1], [0, 2, 1, 1]];
    for ty in PLAIN_TYPES.into_iter().chain([GGML_TYPE_Q8_0, GGML_TYPE_Q4_K]) {
        let unit = block(ty).0;
        for ne in sizes {
            let ne = if unit > 1 && ne[0] == 40 { [2 * unit, 6, 4, 2] } else { [ne[0] * unit, ne[1], ne[2], ne[3]] };
            for times in
                [[1, 1, 1, 1], [2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 2, 1], [1, 1, 1, 3], [2, 3, 2, 2], [2, 0, 1, 1]]
            {
                let to: [usize; 4] = std::array::from_fn(|d| ne[d] * times[d]);
                for la in ALL.into_iter().filter(|la| unit == 1 || la.packed()) {
                    // upstream repeats f32, f16, bf16, i32 and i16
                    let must = unit == 1 && ty != GGML_TYPE_I8 && (!to.contains(&0) || ne.contains(&0));
                    s.case(must, format!("{} {ne:?} {times:?} {la:?}", type_name(ty)), |w| {
                        let a = w.source(ty, ne, la, if unit == 1 { &PLAIN } else { &Fill::Range(-9.0, 9.0) });
                        let x = read(a);
                        let want = Arr::from_fn(to, |i| x.rep(i));
                        let d = dims(to);
                        (ggml_repeat_4d(w.ctx, a, d[0], d[1], d[2], d[3]), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(1000);
}

/// Concatenation along each dimension, in all formats, case 6 of the public reports among them: blocks are copied as blocks.
#[test]
fn case_06_concat() {
    let mut s = Suite::new("concat");
    for ty in PLAIN_TYPES.into_iter().chain(BLOCKS) {
        let unit = block(ty).0;
        for ne in [[2, 6, 4, 2], [9, 30, 4, 1], [1, 1, 1, 1], [3, 7, 3, 2], [0, 2, 1, 1], [2, 0, 3, 1]] {
            let ne = [if unit == 1 { ne[0] * 11 } else { ne[0] * unit }, ne[1], ne[2], ne[3]];
            for dim in 0..4 {
                for more in [1usize, 3, 0] {
                    let mut nb = ne;
                    nb[dim] = more * if dim == 0 { unit } else { 1 };
                    let mut to = ne;
                    to[dim] += nb[dim];
                    for la in ALL.into_iter().filter(|la| unit == 1 || la.packed()) {
                        for lb in [Layout::Cont, la, Layout::PlaneGap] {
                            // the largest is shared out among threads
                            if ne[1] == 30 && (unit > 32 || (la != Layout::Cont && lb != Layout::Cont)) {
                                continue;
                            }
                            let must = unit == 1 && ty != GGML_TYPE_BF16;
                            s.case(must, format!("{} {ne:?} {nb:?} dim {dim} {la:?} {lb:?}", type_name(ty)), |w| {
                                let fill = if unit == 1 { fill_of(ty) } else { PLAIN };
                                let (a, b) = (w.source(ty, ne, la, &fill), w.source(ty, nb, lb, &fill));
                                let (x, y) = (read(a), read(b));
                                let want = Arr::from_fn(to, |mut i| {
                                    if i[dim] < ne[dim] {
                                        x.at(i)
                                    } else {
                                        i[dim] -= ne[dim];
                                        y.at(i)
                                    }
                                });
                                (ggml_concat(w.ctx, a, b, dim as i32), Want::new(want, Tol::EXACT))
                            });
                        }
                    }
                }
            }
        }
    }
    s.finish(5000);
}

#[test]
fn pad() {
    let mut s = Suite::new("pad");
    let pads = [
        [0, 3, 0, 2, 0, 1, 0, 2],
        [1, 0, 2, 0, 3, 0, 1, 0],
        [2, 1, 1, 2, 0, 0, 1, 1],
        [0; 8],
        [7, 9, 5, 0, 0, 3, 0, 0],
    ];
    for ty in PLAIN_TYPES {
        for ne in shapes() {
            for p in pads {
                let to: [usize; 4] = std::array::from_fn(|d| ne[d] + p[2 * d] + p[2 * d + 1]);
                for la in ALL {
                    for circular in [false, true] {
                        let must = ty == GGML_TYPE_F32 && !(circular && ne.contains(&0));
                        s.case(must, format!("{} {ne:?} {p:?} {la:?} circular={circular}", type_name(ty)), |w| {
                            let a = w.source(ty, ne, la, &fill_of(ty));
                            let x = read(a);
                            let from = |i: [usize; 4]| std::array::from_fn(|d| i[d] as i64 - p[2 * d] as i64);
                            let want = Arr::from_fn(to, |i| {
                                let i: [i64; 4] = from(i);
                                if circular && !ne.contains(&0) {
                                    x.at(std::array::from_fn(|d| i[d].rem_euclid(ne[d] as i64) as usize))
                                } else {
                                    x.or(i, 0.0)
                                }
                            });
                            let q = p.map(|p| p as i32);
                            let build = if circular { ggml_pad_ext_circular } else { ggml_pad_ext };
                            (
                                build(w.ctx, a, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]),
                                Want::new(want, Tol::EXACT),
                            )
                        });
                    }
                }
            }
        }
    }
    for circular in [false, true] {
        s.case(true, format!("short form, circular={circular}"), |w| {
            let a = w.source(GGML_TYPE_F32, [5, 4, 3, 2], Layout::Cont, &PLAIN);
            let x = read(a);
            let to = [6, 6, 6, 4];
            let build = if circular { ggml_pad_circular } else { ggml_pad };
            let want = Arr::from_fn(to, |i| if circular { x.rep(i) } else { x.or(i.map(|i| i as i64), 0.0) });
            (build(w.ctx, a, 1, 2, 3, 2), Want::new(want, Tol::EXACT))
        });
    }
    s.finish(3000);
}

#[test]
fn pad_reflect() {
    let mut s = Suite::new("pad_reflect_1d");
    for ne in [[8, 6, 4, 2], [33, 7, 3, 2], [1, 1, 1, 1], [257, 3, 1, 1], [129, 37, 2, 2], [5, 0, 2, 2]] {
        for (p0, p1) in [(0, 0), (1, 2), (4, 0), (0, 3), (7, 7)] {
            for la in ALL {
                let must = la.contiguous() && p0.max(p1) < ne[0];
                s.case(must, format!("{ne:?} {p0} {p1} {la:?}"), |w| {
                    let a = w.source(GGML_TYPE_F32, ne, la, &Fill::Special);
                    let x = read(a);
                    let last = ne[0] as i64 - 1;
                    let want = Arr::from_fn([ne[0] + p0 + p1, ne[1], ne[2], ne[3]], |i| {
                        let k = (i[0] as i64 - p0 as i64).abs();
                        let k = if k > last { 2 * last - k } else { k };
                        x.or([k, i[1] as i64, i[2] as i64, i[3] as i64], f64::NAN)
                    });
                    (ggml_pad_reflect_1d(w.ctx, a, p0 as i32, p1 as i32), Want::new(want, Tol::EXACT))
                });
            }
        }
    }
    s.finish(30);
}

#[test]
fn roll() {
    let mut s = Suite::new("roll");
    for ty in PLAIN_TYPES {
        for ne in shapes() {
            for shift in [[0, 0, 0, 0], [1, 0, 0, 0], [-3, 2, 1, 1], [4, -5, -2, -1], [0, 1, 0, 0], [7, 0, 2, 0]] {
                let inside = (0..4).all(|d| (shift[d] as i64).abs() < ne[d] as i64);
                for la in ALL {
                    s.case(
                        inside && la.packed() && ty == GGML_TYPE_F32,
                        format!("{} {ne:?} {shift:?} {la:?}", type_name(ty)),
                        |w| {
                            let a = w.source(ty, ne, la, &fill_of(ty));
                            let x = read(a);
                            let want = Arr::from_fn(ne, |i| {
                                x.at(std::array::from_fn(|d| {
                                    (i[d] as i64 - i64::from(shift[d])).rem_euclid(ne[d] as i64) as usize
                                }))
                            });
                            (ggml_roll(w.ctx, a, shift[0], shift[1], shift[2], shift[3]), Want::new(want, Tol::EXACT))
                        },
                    );
                }
            }
        }
    }
    s.finish(500);
}

/// A window of `a` is set to `b`, or `b` is added to it; case 7 has the sum's loop bounds.
#[test]
fn case_07_set_and_acc() {
    let mut s = Suite::new("set, acc");
    let small = [8, 6, 5, 2];
    for (na, nb, start) in [
        (small, [3, 2, 2, 2], [1, 1, 1, 0]),
        (small, small, [0; 4]),
        (small, [1, 1, 1, 1], [7, 5, 4, 1]),
        (small, [8, 1, 1, 1], [0, 3, 2, 1]),
        (small, [2, 0, 1, 1], [0; 4]),
        ([67, 60, 3, 1], [65, 50, 3, 1], [1, 5, 0, 0]),
    ] {
        let planes = [na[0], na[0] * na[1], na[0] * na[1] * na[2]];
        for ty in [GGML_TYPE_F32, GGML_TYPE_I32, GGML_TYPE_F16] {
            for la in ALL {
                for lb in ALL {
                    for inplace in [false, true] {
                        if na != small && la != Layout::Cont && lb != Layout::Cont {
                            continue;
                        }
                        let must = la.contiguous() && lb.packed();
                        let strides = planes.map(|n| n * block(ty).1);
                        let offset = (start[0] + (0..3).map(|d| planes[d] * start[d + 1]).sum::<usize>()) * block(ty).1;
                        let inside = |i: [usize; 4]| {
                            let i: [i64; 4] = std::array::from_fn(|d| i[d] as i64 - start[d] as i64);
                            (0..4).all(|d| (0..nb[d] as i64).contains(&i[d])).then(|| i.map(|i| i as usize))
                        };
                        let name =
                            |what: &str| format!("{what} {} {nb:?} {la:?} {lb:?} inplace={inplace}", type_name(ty));
                        s.case(must && ty != GGML_TYPE_F16, name("set"), |w| {
                            let (a, b) = (
                                w.source(ty, na, la, &Fill::Whole(-50, 50)),
                                w.source(ty, nb, lb, &Fill::Whole(-50, 50)),
                            );
                            let (x, y) = (read(a), read(b));
                            let want = Arr::from_fn(na, |i| inside(i).map_or(x.at(i), |j| y.at(j)));
                            let build = if inplace { ggml_set_inplace } else { ggml_set };
                            (
                                build(w.ctx, a, b, strides[0], strides[1], strides[2], offset),
                                Want::new(want, Tol::EXACT),
                            )
                        });
                        s.case(must && ty == GGML_TYPE_F32, name("acc"), |w| {
                            let (a, b) = (w.source(ty, na, la, &PLAIN), w.source(ty, nb, lb, &PLAIN));
                            let (x, y) = (read(a), read(b));
                            let want = Arr::from_fn(na, |i| x.at(i) + inside(i).map_or(0.0, |j| y.at(j)));
                            let build = if inplace { ggml_acc_inplace } else { ggml_acc };
                            (
                                build(w.ctx, a, b, strides[0], strides[1], strides[2], offset),
                                Want::new(want, Tol::EXACT),
                            )
                        });
                    }
                }
            }
        }
    }
    s.finish(300);
}

/// Whether a triangle has the element in a column and row.
type Kept = fn(usize, usize) -> bool;

#[test]
fn triangles_and_diagonals() {
    let keep: [(ggml_tri_type, Kept); 4] = [
        (GGML_TRI_TYPE_UPPER_DIAG, |column, row| column >= row),
        (GGML_TRI_TYPE_UPPER, |column, row| column > row),
        (GGML_TRI_TYPE_LOWER_DIAG, |column, row| column <= row),
        (GGML_TRI_TYPE_LOWER, |column, row| column < row),
    ];
    let mut s = Suite::new("tri, diag");
    for ne in [[8, 8, 4, 2], [33, 33, 1, 2], [65, 65, 2, 1], [1, 1, 1, 1], [0, 0, 2, 1], [3, 3, 0, 2]] {
        for la in ALL {
            for (kind, kept) in keep {
                s.case(la.contiguous(), format!("tri {ne:?} {la:?} {kind:?}"), |w| {
                    let a = w.source(GGML_TYPE_F32, ne, la, &Fill::Special);
                    let x = read(a);
                    let want = Arr::from_fn(ne, |i| if kept(i[0], i[1]) { x.at(i) } else { 0.0 });
                    (ggml_tri(w.ctx, a, kind), Want::new(want, Tol::EXACT))
                });
            }
            s.case(true, format!("diag {ne:?} {la:?}"), |w| {
                let a = w.source(GGML_TYPE_F32, [ne[0], 1, ne[2], ne[3]], la, &Fill::Special);
                let x = read(a);
                let want = Arr::from_fn(ne, |i| if i[0] == i[1] { x.at([i[0], 0, i[2], i[3]]) } else { 0.0 });
                (ggml_diag(w.ctx, a), Want::new(want, Tol::EXACT))
            });
        }
    }
    s.finish(80);
}

#[test]
fn arange() {
    let mut s = Suite::new("arange");
    for (start, stop, step) in
        [(0.0f32, 10.0f32, 1.0f32), (-3.5, 2.25, 0.5), (0.0, 1.0, 0.1), (5.0, 5.5, 1.0), (0.0, 70000.0, 7.0)]
    {
        s.case(true, format!("{start} {stop} {step}"), |w| {
            let n = ((stop - start) / step).ceil() as usize;
            let want = Want::with_magnitude([n, 1, 1, 1], Tol::terms(2.0), |i| {
                let (a, b) = (f64::from(start), f64::from(step) * i[0] as f64);
                (a + b, a.abs() + b)
            });
            (ggml_arange(w.ctx, start, stop, step), want)
        });
    }
    s.finish(5);
}

#[test]
fn timestep_embedding() {
    let mut s = Suite::new("timestep_embedding");
    for n in [1, 3, 33, 0] {
        for dim in [320, 256, 33, 2, 1] {
            for la in [Layout::Cont, Layout::Offset, Layout::Swap01, Layout::RowGap, Layout::Swap01Gap] {
                for (period, size) in [(10000, 1000.0), (10000, 1.0), (100, 50.0)] {
                    s.case(la.contiguous(), format!("{n} {dim} {la:?} {period} {size}"), |w| {
                        let a = w.source(GGML_TYPE_F32, [n, 1, 1, 1], la, &Fill::Range(0.0, size));
                        let x = read(a);
                        let half = dim / 2;
                        let want =
                            Want::with_magnitude([dim, n, 1, 1], Tol { rel: 0.0, mag: 16.0 * U32, abs: 4e-7 }, |i| {
                                if i[0] >= 2 * half {
                                    return (0.0, 0.0);
                                }
                                let k = (i[0] % half) as f64;
                                let angle = x.at([i[1], 0, 0, 0]) * (-f64::from(period).ln() * k / half as f64).exp();
                                (if i[0] < half { angle.cos() } else { angle.sin() }, angle)
                            });
                        (ggml_timestep_embedding(w.ctx, a, dim as i32, period), want)
                    });
                }
            }
        }
    }
    s.finish(60);
}
