//! Rows by index.

use super::common::*;
use reference::values::{block, stored};

#[test]
fn get_rows() {
    let mut s = Suite::new("get_rows");
    for ty in FLOATS.into_iter().chain(BLOCKS).chain([GGML_TYPE_I32]) {
        let unit = block(ty).0;
        for (n, rows, r, a2, a3) in [
            (8usize, 6, 9, 4, 2),
            (33, 7, 1, 1, 1),
            (1, 1, 1, 1, 1),
            (257, 3, 5, 1, 1),
            (96, 5, 60, 2, 1),
            (5, 4, 0, 2, 1),
            (0, 3, 2, 1, 1),
            (5, 4, 2, 0, 1),
        ] {
            let n = if unit == 1 { n } else { n.min(16).div_ceil(8) * unit };
            for la in ALL.into_iter().filter(|la| unit == 1 || la.packed()) {
                for li in ALL {
                    let must = la.packed();
                    s.case(must, format!("{} [{n},{rows},{a2},{a3}] {r} {la:?} {li:?}", type_name(ty)), |w| {
                        let fill = if ty == GGML_TYPE_I32 { Fill::Whole(-99, 99) } else { PLAIN };
                        let a = w.source(ty, [n, rows, a2, a3], la, &fill);
                        let b = w.source(GGML_TYPE_I32, [r, a2, a3, 1], li, &Fill::Whole(0, rows as i64));
                        let (x, k) = (read(a), read(b));
                        let want = Arr::from_fn([n, r, a2, a3], |i| {
                            x.at([i[0], k.at([i[1], i[2], i[3], 0]) as usize, i[2], i[3]])
                        });
                        (ggml_get_rows(w.ctx, a, b), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(3000);
}

/// Indices that are no row's: an error, and nothing outside is read or written.
#[test]
fn case_18_get_rows_out_of_range() {
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_I32] {
        for bad in [-1, 16, 20, 999_999, i32::MIN, i32::MAX] {
            World::with(1, |w| {
                let a = w.source(ty, [64, 16, 1, 1], Layout::Cont, &PLAIN);
                let b = w.source(
                    GGML_TYPE_I32,
                    [4, 1, 1, 1],
                    Layout::Cont,
                    &Fill::List(vec![0.0, 15.0, f64::from(bad), 3.0]),
                );
                let out = ggml_get_rows(w.ctx, a, b);
                let text = w.fails(out).unwrap();
                assert!(text.to_lowercase().contains("get_rows"), "index {bad} of 16: {text}");
            });
        }
    }
}

/// Different rows for `r` of `rows`.
fn distinct(r: usize, rows: usize) -> Vec<f64> {
    (0..r).map(|i| ((i * 5 + 2) % rows) as f64).collect()
}

#[test]
fn set_rows() {
    let mut s = Suite::new("set_rows");
    for ty in FLOATS.into_iter().chain(BLOCKS) {
        let unit = block(ty).0;
        // 5 and the number of rows have no common divisor, so that indices differ
        for (n, rows, r, a2, a3, i1, i2) in [
            (8usize, 7, 4, 4, 2, 2, 1),
            (33, 9, 9, 1, 1, 1, 1),
            (1, 1, 1, 1, 1, 1, 1),
            (257, 4, 2, 2, 2, 2, 2),
            (96, 99, 60, 2, 1, 1, 1),
            (5, 4, 0, 2, 1, 1, 1),
            (0, 3, 2, 1, 1, 1, 1),
        ] {
            let n = if unit == 1 { n } else { n.min(16).div_ceil(8) * unit };
            for la in PACKED {
                for lb in PACKED {
                    // the largest is shared out among threads, and encoding it is slow
                    if rows == 99 && (unit > 32 || (la != Layout::Cont && lb != Layout::Cont)) {
                        continue;
                    }
                    for (tb, ti) in
                        [(GGML_TYPE_F32, GGML_TYPE_I64), (GGML_TYPE_F32, GGML_TYPE_I32), (GGML_TYPE_F16, GGML_TYPE_I64)]
                    {
                        // K formats and f16 rows: upstream's CPU has f32 rows to any format that it encodes
                        let must = tb == GGML_TYPE_F32;
                        s.case(
                            must,
                            format!("{} [{n},{rows},{a2},{a3}] {r} {la:?} {lb:?}", names(&[ty, tb, ti])),
                            |w| {
                                let a = w.source(ty, [n, rows, a2, a3], la, &PLAIN);
                                let b = w.source(tb, [n, r, a2, a3], lb, &PLAIN);
                                let c =
                                    w.source(ti, [r, i1, i2, 1], Layout::Cont, &Fill::List(distinct(r.max(1), rows)));
                                let (x, y, k) = (read(a), stored(ty, &read(b)), read(c));
                                let want = Arr::from_fn(x.ne, |i| {
                                    let from = (0..r).find(|&j| k.rep([j, i[2], i[3], 0]) as usize == i[1]);
                                    from.map_or(x.at(i), |j| y.at([i[0], j, i[2], i[3]]))
                                });
                                (ggml_set_rows(w.ctx, a, b, c), Want::new(want, Tol::EXACT))
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(2000);
}

#[test]
fn case_18_set_rows_out_of_range() {
    for ty in [GGML_TYPE_I32, GGML_TYPE_I64] {
        for bad in [-1.0, 16.0, 20.0, 999_999.0, -2_147_483_648.0, 2_147_483_647.0] {
            World::with(1, |w| {
                let a = w.source(GGML_TYPE_F32, [8, 16, 1, 1], Layout::Cont, &PLAIN);
                let b = w.source(GGML_TYPE_F32, [8, 3, 1, 1], Layout::Cont, &PLAIN);
                let c = w.source(ty, [3, 1, 1, 1], Layout::Cont, &Fill::List(vec![0.0, bad, 3.0]));
                let out = ggml_set_rows(w.ctx, a, b, c);
                let text = w.fails(out).unwrap();
                assert!(text.to_lowercase().contains("set_rows"), "index {bad} of 16: {text}");
            });
        }
    }
}
