//! Systems of linear equations.

use super::common::*;
use super::terms::{want, x, X};

const F32: ggml_type = GGML_TYPE_F32;

#[test]
fn solve_tri() {
    let mut s = Suite::new("solve_tri");
    for n in [0usize, 1, 5, 16, 33, 64] {
        for m in [0, 1, 7, 16, 31, 64, 130] {
            for batch in [[1, 1], [3, 2], [0, 2]] {
                for layout in [Layout::Cont, Layout::Offset, Layout::RowGap, Layout::Swap01] {
                    for odd in [1.0, 0.0, f64::INFINITY, f64::NAN] {
                        if odd != 1.0 && layout != Layout::Cont {
                            continue;
                        }
                        let [b2, b3] = batch;
                        // where no dimension gives them away, gaps are none
                        let must = layout.contiguous();
                        s.case(must, format!("{n} {m} {batch:?} {layout:?} {odd}"), |w| {
                            let a = w.source(F32, [n, n, b2, b3], layout, &Fill::Range(-0.3, 0.3));
                            let b = w.source(F32, [m, n, b2, b3], layout, &PLAIN);
                            let mut values = read(a);
                            for (i, v) in each(values.ne).zip(&mut values.v) {
                                if i[0] > i[1] {
                                    // not read
                                    *v = f64::NAN;
                                } else if i[0] == i[1] {
                                    *v = if i[0] == 3 { odd } else { 1.5 - (i[0] % 4) as f64 };
                                }
                            }
                            w.write(a, &values);
                            let rhs = read(b);
                            let mut out = vec![X::ZERO; rhs.v.len()];
                            for [j, i2, i3, _] in each([m, b2, b3, 1]) {
                                let at = |i: usize| ((i3 * b2 + i2) * n + i) * m + j;
                                for i in 0..n {
                                    let sum: X = (0..i).map(|t| x(&values, [t, i, i2, i3]) * out[at(t)]).sum();
                                    out[at(i)] = (x(&rhs, [j, i, i2, i3]) - sum) / x(&values, [i, i, i2, i3]);
                                }
                            }
                            (ggml_solve_tri(w.ctx, a, b, true, true, false), want(rhs.ne, out, 16.0 + 2.0 * n as f64))
                        });
                    }
                }
            }
        }
    }
    s.finish(300);
}
