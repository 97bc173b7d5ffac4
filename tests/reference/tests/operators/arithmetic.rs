//! Operators of two sources, element by element, with repetition.

use super::common::*;

struct Op {
    name: &'static str,
    plain: fn(Ctx, T, T) -> T,
    inplace: fn(Ctx, T, T) -> T,
    f: fn(f64, f64) -> f64,
}

const OPS: [Op; 4] = [
    Op {
        name: "add",
        plain: |c, a, b| ggml_add(c, a, b),
        inplace: |c, a, b| ggml_add_inplace(c, a, b),
        f: |a, b| a + b,
    },
    Op {
        name: "sub",
        plain: |c, a, b| ggml_sub(c, a, b),
        inplace: |c, a, b| ggml_sub_inplace(c, a, b),
        f: |a, b| a - b,
    },
    Op {
        name: "mul",
        plain: |c, a, b| ggml_mul(c, a, b),
        inplace: |c, a, b| ggml_mul_inplace(c, a, b),
        f: |a, b| a * b,
    },
    Op {
        name: "div",
        plain: |c, a, b| ggml_div(c, a, b),
        inplace: |c, a, b| ggml_div_inplace(c, a, b),
        f: |a, b| a / b,
    },
];

/// Each element of `a` with the one of `b` that repetition puts there.
fn reference(a: &Arr, b: &Arr, f: fn(f64, f64) -> f64) -> Arr {
    Arr::from_fn(a.ne, |i| f(a.at(i), b.rep(i)))
}

/// Formats of the two sources that upstream's CPU takes.
const PAIRS: [[ggml_type; 2]; 5] = [
    [GGML_TYPE_F32, GGML_TYPE_F32],
    [GGML_TYPE_F16, GGML_TYPE_F16],
    [GGML_TYPE_F16, GGML_TYPE_F32],
    [GGML_TYPE_BF16, GGML_TYPE_BF16],
    [GGML_TYPE_BF16, GGML_TYPE_F32],
];

fn run(op: &Op) {
    let mut s = Suite::new(op.name);
    let tol = Tol::units(2.0);
    // `b` away from 0, so that quotients stay in range
    let fill_b = Fill::Range(0.25, 2.0);
    for [ta, tb] in PAIRS {
        for ne in shapes() {
            for la in ALL {
                for lb in ALL {
                    if la != lb && la != Layout::Cont && lb != Layout::Cont && ne != SHAPES[0] {
                        continue;
                    }
                    s.case(true, format!("{} {ne:?} {la:?} {lb:?}", names(&[ta, tb])), |w| {
                        let (a, b) = (w.source(ta, ne, la, &PLAIN), w.source(tb, ne, lb, &fill_b));
                        let want = reference(&read(a), &read(b), op.f);
                        ((op.plain)(w.ctx, a, b), Want::new(want, tol))
                    });
                }
                s.case(true, format!("{} {ne:?} {la:?} inplace", names(&[ta, tb])), |w| {
                    let (a, b) = (w.source(ta, ne, la, &PLAIN), w.source(tb, ne, Layout::Cont, &fill_b));
                    let want = reference(&read(a), &read(b), op.f);
                    ((op.inplace)(w.ctx, a, b), Want::new(want, tol))
                });
            }
        }
        broadcast(&mut s, op, [ta, tb], tol);
    }
    let large = SHAPES[4];
    for nb in [[129, 1, 1, 1], [1, 37, 2, 2], [129, 37, 1, 2], [1, 1, 1, 2], [43, 37, 2, 1]] {
        for la in ALL {
            s.case(true, format!("{large:?} {nb:?} {la:?}"), |w| {
                let (a, b) =
                    (w.source(GGML_TYPE_F32, large, la, &PLAIN), w.source(GGML_TYPE_F32, nb, Layout::Cont, &fill_b));
                let want = reference(&read(a), &read(b), op.f);
                ((op.plain)(w.ctx, a, b), Want::new(want, tol))
            });
        }
    }
    for la in [Layout::Cont, Layout::Swap01, Layout::RowGap] {
        for ty in FLOATS {
            s.case(true, format!("special {} {la:?}", type_name(ty)), |w| {
                let ne = [67, 64, 1, 1];
                let (a, b) = (w.source(ty, ne, la, &Fill::Special), w.bare(ty, ne, Layout::Cont));
                // every number with every other one
                let numbers = reference::values::SPECIAL;
                w.write(b, &Arr::from_fn(ne, |i| if i[1] < 64 { numbers[i[1]] } else { 1.0 }));
                let want = reference(&read(a), &read(b), op.f);
                ((op.plain)(w.ctx, a, b), Want::new(want, tol))
            });
        }
    }
    s.finish(2000);
}

/// `b` is 1, or a part, in each set of dimensions.
fn broadcast(s: &mut Suite, op: &Op, [ta, tb]: [ggml_type; 2], tol: Tol) {
    let ne = [12, 6, 4, 2];
    let divisors = [[12, 1, 4], [6, 1, 3], [4, 1, 2], [2, 1, 1]];
    for pick in each([3, 3, 3, 3]) {
        let nb = std::array::from_fn(|d| divisors[d][pick[d]]);
        for (la, lb) in [
            (Layout::Cont, Layout::Cont),
            (Layout::Swap01, Layout::Cont),
            (Layout::Cont, Layout::Swap12),
            (Layout::RowGap, Layout::Swap01Gap),
            (Layout::Cont, Layout::Offset),
        ] {
            s.case(true, format!("{} {ne:?} {nb:?} {la:?} {lb:?}", names(&[ta, tb])), |w| {
                let (a, b) = (w.source(ta, ne, la, &PLAIN), w.source(tb, nb, lb, &Fill::Range(0.25, 2.0)));
                let want = reference(&read(a), &read(b), op.f);
                ((op.plain)(w.ctx, a, b), Want::new(want, tol))
            });
        }
    }
}

#[test]
fn add() {
    run(&OPS[0]);
}
#[test]
fn sub() {
    run(&OPS[1]);
}
#[test]
fn mul() {
    run(&OPS[2]);
}
#[test]
fn div() {
    run(&OPS[3]);
}

/// One element added to all, case 7 of the public reports among them: a block format, and permuted sources.
#[test]
fn case_07_add1() {
    let mut s = Suite::new("add1");
    let types = FLOATS.into_iter().chain(BLOCKS);
    for ty in types {
        let (unit, _) = reference::values::block(ty);
        let blocks = unit > 1;
        for ne in [[2 * unit, 6, 4, 2], [unit, 1, 1, 1], [3 * unit, 7, 3, 2], [unit, 0, 2, 1]] {
            for la in if blocks { PACKED.as_slice() } else { ALL.as_slice() } {
                for tb in [GGML_TYPE_F32, GGML_TYPE_F16] {
                    // a one-element f16 goes with f16 sources upstream; others may refuse it
                    let must = la.contiguous() && (tb == GGML_TYPE_F32 || ty == GGML_TYPE_F16);
                    s.case(must, format!("{} {ne:?} {la:?}", names(&[ty, tb])), |w| {
                        let (a, b) = (
                            w.source(ty, ne, *la, &PLAIN),
                            w.source(tb, [1; 4], Layout::Offset, &Fill::List(vec![0.75])),
                        );
                        let (x, y) = (read(a), read(b).v[0]);
                        (ggml_add1(w.ctx, a, b), requantised(ty, x.map(|x| x + y), Tol::units(2.0)))
                    });
                }
            }
        }
    }
    s.finish(150);
}

/// A result that is stored in format `ty`. Sums of two f32 round once, so a block format's encoder sees the same numbers.
fn requantised(ty: ggml_type, arr: Arr, tol: Tol) -> Want {
    if BLOCKS.contains(&ty) {
        Want::new(reference::values::stored(ty, &arr), Tol::EXACT)
    } else {
        Want::new(arr, tol)
    }
}

/// Block formats plus f32 rows, and `add_cast`.
#[test]
fn add_of_blocks() {
    let mut s = Suite::new("add of block formats");
    for ty in BLOCKS {
        let (unit, _) = reference::values::block(ty);
        for ne in [[2 * unit, 6, 4, 2], [unit, 3, 1, 1], [unit, 0, 2, 1]] {
            for la in PACKED {
                for lb in [Layout::Cont, Layout::RowGap, Layout::Swap01] {
                    s.case(
                        la == Layout::Cont && lb == Layout::Cont,
                        format!("{} {ne:?} {la:?} {lb:?}", type_name(ty)),
                        |w| {
                            let (a, b) = (w.source(ty, ne, la, &PLAIN), w.source(GGML_TYPE_F32, ne, lb, &PLAIN));
                            let want = reference(&read(a), &read(b), |a, b| a + b);
                            (ggml_add(w.ctx, a, b), requantised(ty, want, Tol::units(2.0)))
                        },
                    );
                }
                s.case(la == Layout::Cont, format!("cast {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let (a, b) = (w.source(ty, ne, la, &PLAIN), w.source(GGML_TYPE_F32, ne, Layout::Cont, &PLAIN));
                    let want = reference(&read(a), &read(b), |a, b| a + b);
                    (ggml_add_cast(w.ctx, a, b, GGML_TYPE_F32), Want::new(want, Tol::units(2.0)))
                });
            }
        }
    }
    s.finish(100);
}

#[test]
fn add_id() {
    let mut s = Suite::new("add_id");
    for (n, used, tokens, rows) in [
        (8, 3, 5, 6),
        (33, 2, 1, 1),
        (1, 1, 1, 4),
        (257, 4, 2, 7),
        (65, 4, 50, 7),
        (0, 2, 2, 2),
        (5, 0, 2, 2),
        (5, 2, 0, 2),
    ] {
        for la in ALL {
            for lb in ALL {
                let must = la.packed() && lb.packed();
                for li in [Layout::Cont, Layout::Swap01, Layout::RowGap] {
                    s.case(must, format!("[{n},{used},{tokens}] [{n},{rows}] {la:?} {lb:?} {li:?}"), |w| {
                        let a = w.source(GGML_TYPE_F32, [n, used, tokens, 1], la, &PLAIN);
                        let b = w.source(GGML_TYPE_F32, [n, rows, 1, 1], lb, &PLAIN);
                        let ids = w.source(GGML_TYPE_I32, [used, tokens, 1, 1], li, &Fill::Whole(0, rows as i64));
                        let (x, y, k) = (read(a), read(b), read(ids));
                        let want =
                            Arr::from_fn(x.ne, |i| x.at(i) + y.at([i[0], k.at([i[1], i[2], 0, 0]) as usize, 0, 0]));
                        (ggml_add_id(w.ctx, a, b, ids), Want::new(want, Tol::units(1.0)))
                    });
                }
            }
        }
    }
    s.finish(500);
}

/// An index that is no row's: an error, and nothing outside is touched.
#[test]
fn case_18_add_id_out_of_range() {
    for bad in [-1, 6, 999_999, i32::MIN, i32::MAX] {
        World::with(1, |w| {
            let a = w.source(GGML_TYPE_F32, [8, 2, 2, 1], Layout::Cont, &PLAIN);
            let b = w.source(GGML_TYPE_F32, [8, 6, 1, 1], Layout::Cont, &PLAIN);
            let ids =
                w.source(GGML_TYPE_I32, [2, 2, 1, 1], Layout::Cont, &Fill::List(vec![0.0, f64::from(bad), 1.0, 2.0]));
            let out = ggml_add_id(w.ctx, a, b, ids);
            let text = w.fails(out).unwrap();
            assert!(!text.is_empty(), "index {bad} of 6");
        });
    }
}
