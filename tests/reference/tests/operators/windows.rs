//! Windows of pictures, relative positions, columns to a signal.

use super::common::*;
use super::terms::{infinities, specials, want, x, X};
use reference::values::stored;

const F32: ggml_type = GGML_TYPE_F32;

#[test]
fn win_part() {
    let mut s = Suite::new("win_part");
    for ne in [[8, 6, 4, 1], [33, 7, 9, 1], [1, 1, 1, 1], [70, 14, 15, 1], [0, 3, 2, 1], [5, 0, 2, 1], [5, 3, 0, 1]] {
        for size in [1usize, 2, 3, 14] {
            for layout in ALL {
                for fill in [PLAIN, Fill::Special] {
                    // upstream reads other layouts as if they had no gaps
                    s.case(true, format!("{ne:?} {size} {layout:?} {fill:?}"), |w| {
                        let a = w.source(F32, ne, layout, &fill);
                        let (nx, ny) = (ne[1].div_ceil(size), ne[2].div_ceil(size));
                        let arr = read(a);
                        let want = Arr::from_fn([ne[0], size, size, nx * ny], |[c, i, j, window]| {
                            let at = [c, window % nx * size + i, window / nx * size + j, 0];
                            arr.or(at.map(|i| i as i64), 0.0)
                        });
                        (ggml_win_part(w.ctx, a, size as i32), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(500);
}

#[test]
fn win_unpart() {
    let mut s = Suite::new("win_unpart");
    for (c, size, w0, h0) in
        [(8usize, 2usize, 6usize, 4usize), (33, 3, 7, 9), (1, 1, 1, 1), (70, 14, 20, 15), (0, 2, 3, 3), (4, 2, 0, 3)]
    {
        for more in [0, 1] {
            for layout in ALL {
                s.case(true, format!("{c} {size} {w0} {h0} {more} {layout:?}"), |w| {
                    let (nx, ny) = (w0.div_ceil(size), h0.div_ceil(size));
                    let a = w.source(F32, [c, size + more, size + more, nx * ny + more], layout, &Fill::Special);
                    let arr = read(a);
                    let want = Arr::from_fn([c, w0, h0, 1], |[c, i, j, _]| {
                        arr.at([c, i % size, j % size, j / size * nx + i / size])
                    });
                    let out = ggml_win_unpart(w.ctx, a, w0 as i32, h0 as i32, size as i32);
                    (out, Want::new(want, Tol::EXACT))
                });
            }
        }
    }
    s.finish(100);
}

#[test]
fn get_rel_pos() {
    let mut s = Suite::new("get_rel_pos");
    for ty in FLOATS {
        for (c, n) in [(8usize, 3usize), (33, 14), (1, 1), (600, 2), (0, 3)] {
            for layout in ALL {
                for fill in [PLAIN, Fill::Special] {
                    s.case(ty != F32, format!("{} {c} {n} {layout:?} {fill:?}", type_name(ty)), |w| {
                        let a = w.source(ty, [c, 2 * n - 1, 1, 1], layout, &fill);
                        let arr = read(a);
                        let want = Arr::from_fn([c, n, n, 1], |[c, k, q, _]| arr.at([c, n - 1 - k + q, 0, 0]));
                        let want = Want::new(stored(GGML_TYPE_F16, &want), Tol::EXACT);
                        (ggml_get_rel_pos(w.ctx, a, n as i32, n as i32), want)
                    });
                }
            }
        }
    }
    s.finish(200);
}

#[test]
fn add_rel_pos() {
    let mut s = Suite::new("add_rel_pos");
    for [n, w0, h0, b] in
        [[3, 2, 5, 2], [14, 3, 2, 1], [1, 1, 1, 1], [33, 2, 2, 2], [16, 4, 4, 3], [0, 2, 2, 1], [2, 0, 3, 1]]
    {
        for layout in [Layout::Cont, Layout::Offset, Layout::RowGap, Layout::Swap01] {
            for fill in [PLAIN, specials(), infinities()] {
                for inplace in [false, true] {
                    s.case(layout.contiguous(), format!("{n} {w0} {h0} {b} {layout:?} {fill:?} {inplace}"), |w| {
                        let ne = [n * n, w0 * h0, b, 1];
                        let a = w.source(F32, ne, layout, &fill);
                        let [pw, ph] = [0; 2].map(|_| w.source(F32, [n, w0, h0, b], Layout::Cont, &fill));
                        let [aa, aw, ah] = [a, pw, ph].map(read);
                        let value = |[i, row, k, _]: [usize; 4]| -> X {
                            let at = |i: usize| [i, row % w0, row / w0, k];
                            x(&aa, [i, row, k, 0]) + x(&ah, at(i / n)) + x(&aw, at(i % n))
                        };
                        let values = each(ne).map(value).collect();
                        let made = match inplace {
                            true => ggml_add_rel_pos_inplace(w.ctx, a, pw, ph),
                            false => ggml_add_rel_pos(w.ctx, a, pw, ph),
                        };
                        (made, want(ne, values, 4.0))
                    });
                }
            }
        }
    }
    s.finish(80);
}

#[test]
fn add_rel_pos_of_other_formats_is_refused() {
    for other in 0..4 {
        let outcome = World::with(1, |w| {
            let format = |i: usize| if i == other { GGML_TYPE_F16 } else { F32 };
            let a = w.source(format(0), [4, 6, 2, 1], Layout::Cont, &PLAIN);
            let [pw, ph] = [1, 2].map(|i| w.source(format(i), [2, 3, 2, 2], Layout::Cont, &PLAIN));
            let out = ggml_add_rel_pos(w.ctx, a, pw, ph);
            w.compute(out)
        });
        let ran = outcome.as_ref().is_ok_and(|&o| o == Outcome::Ran);
        assert!(outcome.is_ok() && ran == (other == 3), "{other}: {outcome:?}");
    }
}

#[test]
fn col2im_1d() {
    let mut s = Suite::new("col2im_1d");
    for ty in FLOATS {
        for (taps, channels, inputs) in
            [(4usize, 3usize, 5usize), (16, 2, 100), (1, 1, 1), (33, 2, 40), (600, 1, 3), (3, 40, 7)]
        {
            for (stride, cut) in [(1usize, 0usize), (2, 1), (5, 0), (8, 3), (40, 0), (1, 700)] {
                for layout in [Layout::Cont, Layout::Offset, Layout::RowGap, Layout::Swap01] {
                    for fill in [PLAIN, specials(), infinities()] {
                        let n = ((inputs - 1) * stride + taps) as i64 - 2 * cut as i64;
                        let must = layout.contiguous() && n > 0;
                        let what =
                            format!("{} {taps} {channels} {inputs} {stride} {cut} {layout:?} {fill:?}", type_name(ty));
                        s.case(must, what, |w| {
                            let a = w.source(ty, [taps * channels, inputs, 1, 1], layout, &fill);
                            let arr = read(a);
                            let ne = [n.max(0) as usize, channels, 1, 1];
                            let mut whole = vec![X::ZERO; (ne[0] + 2 * cut) * channels];
                            for [k, c, i, _] in each([taps, channels, inputs, 1]) {
                                if let Some(sum) = whole.get_mut((i * stride + k) * channels + c).filter(|_| n > 0) {
                                    *sum = *sum + x(&arr, [c * taps + k, i, 0, 0]);
                                }
                            }
                            let values = each(ne).map(|[t, c, ..]| whole[(t + cut) * channels + c]).collect();
                            let out = ggml_col2im_1d(w.ctx, a, stride as i32, channels as i32, cut as i32);
                            (out, want(ne, values, taps.div_ceil(stride) as f64 + 1.0))
                        });
                    }
                }
            }
        }
    }
    s.finish(500);
}
