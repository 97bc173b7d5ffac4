//! Hyper-connections, and the indexer of sparse attention.

use super::common::*;
use super::terms::{infinities, specials, want, x, X};
use reference::values::block;

const F32: ggml_type = GGML_TYPE_F32;

#[test]
fn dsv4_hc_comb() {
    let mut s = Suite::new("dsv4_hc_comb");
    for tokens in [1, 7, 16, 33, 0] {
        for n_iter in [1, 2, 20] {
            for layout in ALL {
                for (name, fill, scale) in [
                    ("plain", PLAIN, vec![0.0, 0.0, 1.5]),
                    ("wide", Fill::Range(-30.0, 30.0), vec![f64::NAN, f64::NAN, 2.0, f64::NAN]),
                    ("special", specials(), vec![1.0, 1.0, 1.0]),
                    ("nothing", PLAIN, vec![1.0, 1.0, -0.0]),
                ] {
                    s.case(true, format!("{tokens} {n_iter} {layout:?} {name}"), |w| {
                        let (eps, n) = (1e-6f32, scale.len());
                        let mixes = w.source(F32, [24, tokens, 1, 1], layout, &fill);
                        let base = w.source(F32, [24, 1, 1, 1], Layout::Swap01Gap, &PLAIN);
                        let scale = w.source(F32, [n, 1, 1, 1], Layout::Swap01, &Fill::List(scale));
                        let [am, ab, a] = [mixes, base, scale].map(read);
                        let (scale_of, e) = (x(&a, [2, 0, 0, 0]), X::from(f64::from(eps)));
                        let mut out = Vec::new();
                        for t in 0..tokens {
                            let mut c: Vec<X> = (0..16)
                                .map(|i| x(&am, [8 + i, t, 0, 0]) * scale_of + x(&ab, [8 + i, 0, 0, 0]))
                                .collect();
                            for c in c.chunks_mut(4) {
                                let max = c.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.v));
                                c.iter_mut().for_each(|x| *x = (*x - max.into()).exp());
                                let sum: X = c.iter().copied().sum();
                                c.iter_mut().for_each(|x| *x = *x / sum + e);
                            }
                            let share = |c: &mut [X], first: usize, step: usize| {
                                let at = |i: usize| first + i * step;
                                let sum = (0..4).map(|i| c[at(i)]).sum::<X>() + e;
                                // the size of a share's terms is about the share's: they are positive
                                (0..4).for_each(|i| c[at(i)] = (c[at(i)].v / sum.v).into());
                            };
                            (0..4).for_each(|dst| share(&mut c, dst, 4));
                            for _ in 1..n_iter {
                                (0..4).for_each(|src| share(&mut c, 4 * src, 1));
                                (0..4).for_each(|dst| share(&mut c, dst, 4));
                            }
                            out.extend(c);
                        }
                        // logits far apart: an error of a logit is one of its exponential
                        let wanted = want([4, 4, tokens, 1], out, 600.0);
                        (ggml_dsv4_hc_comb(w.ctx, mixes, scale, base, eps, n_iter), wanted)
                    });
                }
            }
        }
    }
    s.finish(500);
}

/// n, streams, tokens.
const STREAMS: [[usize; 3]; 7] = [[8, 4, 3], [33, 1, 2], [1, 3, 1], [600, 4, 5], [1100, 2, 1], [0, 2, 3], [5, 3, 0]];

#[test]
fn dsv4_hc_pre() {
    let mut s = Suite::new("dsv4_hc_pre");
    for [n, streams, tokens] in STREAMS {
        for lx in ALL {
            for lw in ALL {
                for (fill, gated) in [(PLAIN, false), (specials(), false), (PLAIN, true), (specials(), true)] {
                    s.case(true, format!("{n} {streams} {tokens} {lx:?} {lw:?} {fill:?} {gated}"), |w| {
                        let a = w.source(F32, [n, streams, tokens, 1], lx, &fill);
                        let ne = if gated { [n, streams, tokens, 1] } else { [streams, tokens, 1, 1] };
                        let b = w.source(F32, ne, lw, &fill);
                        let (xs, ws) = (read(a), read(b));
                        let scale = if gated { 0.5f32 } else { 1.0 };
                        let mut out = Vec::new();
                        for [i, t, ..] in each([n, tokens, 1, 1]) {
                            let weight = |h: usize| match gated {
                                true => x(&ws, [i, h, t, 0]).sigmoid(),
                                false => x(&ws, [h, t, 0, 0]),
                            };
                            let sum: X = (0..streams).map(|h| x(&xs, [i, h, t, 0]) * weight(h)).sum();
                            out.push(sum * f64::from(scale).into());
                        }
                        let made = match gated {
                            true => ggml_dsv4_hc_pre_gated(w.ctx, a, b, scale),
                            false => ggml_dsv4_hc_pre(w.ctx, a, b),
                        };
                        (made, want([n, tokens, 1, 1], out, 16.0))
                    });
                }
            }
        }
    }
    s.finish(1000);
}

#[test]
fn dsv4_hc_post() {
    let mut s = Suite::new("dsv4_hc_post");
    for [n, streams, tokens] in STREAMS {
        for la in ALL {
            for lb in ALL {
                for (fill, mixed) in [(PLAIN, false), (PLAIN, true), (specials(), true), (infinities(), false)] {
                    s.case(true, format!("{n} {streams} {tokens} {la:?} {lb:?} {fill:?} {mixed}"), |w| {
                        let a = w.source(F32, [n, tokens, 1, 1], la, &fill);
                        let residual = w.source(F32, [n, streams, tokens, 1], lb, &fill);
                        let post = w.source(F32, [streams, tokens, 1, 1], lb, &fill);
                        let comb = w.source(F32, [streams, streams, tokens, 1], la, &fill);
                        let [xs, rs, ps, cs] = [a, residual, post, comb].map(read);
                        let mut out = Vec::new();
                        for [i, dst, t, _] in each([n, streams, tokens, 1]) {
                            let own = x(&xs, [i, t, 0, 0]) * x(&ps, [dst, t, 0, 0]);
                            out.push(
                                own + match mixed {
                                    true => {
                                        let term = |src| x(&rs, [i, src, t, 0]) * x(&cs, [dst, src, t, 0]);
                                        (0..streams).map(term).sum()
                                    }
                                    false => x(&rs, [i, dst, t, 0]),
                                },
                            );
                        }
                        let comb = if mixed { comb } else { NONE };
                        let made = ggml_dsv4_hc_post(w.ctx, a, residual, post, comb);
                        (made, want([n, streams, tokens, 1], out, 16.0))
                    });
                }
            }
        }
    }
    s.finish(1000);
}

#[test]
fn lightning_indexer() {
    let mut s = Suite::new("lightning_indexer");
    for ty in [F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q6_K] {
        let unit = block(ty).0;
        for (d, heads, tokens, keys, batch, masks) in [
            (unit.max(32), 4, 3, 31, 2, 1),
            (2 * unit, 13, 1, 70, 1, 1),
            (unit, 1, 2, 1, 6, 3),
            (unit, 0, 2, 3, 1, 1),
            (unit, 2, 2, 0, 1, 1),
        ] {
            for lq in ALL {
                for lk in ALL.into_iter().filter(|l| unit == 1 || l.packed()) {
                    for fill in [PLAIN, specials()] {
                        if unit > 1 && !matches!(fill, Fill::Range(..)) {
                            continue;
                        }
                        let must = lq.packed() && lk.packed();
                        s.case(
                            must,
                            format!("{} {d} {heads} {tokens} {keys} {batch} {lq:?} {lk:?} {fill:?}", type_name(ty)),
                            |w| {
                                let q = w.source(F32, [d, heads, tokens, batch], lq, &fill);
                                let k = w.source(ty, [d, 1, keys, batch], lk, &fill);
                                let weights = w.source(F32, [heads, tokens, 1, batch], Layout::RowGap, &fill);
                                let list = Fill::List(vec![0.0, f64::NEG_INFINITY, 0.0, -1.5]);
                                let mask = w.source(GGML_TYPE_F16, [keys, tokens, 1, masks], Layout::RowGap, &list);
                                let [aq, ak, aw, am] = [q, k, weights, mask].map(read);
                                let ne = [keys, tokens, 1, batch];
                                let score = |[key, t, _, n]: [usize; 4]| {
                                    let head = |h: usize| {
                                        let dot: X =
                                            (0..d).map(|i| x(&aq, [i, h, t, n]) * x(&ak, [i, 0, key, n])).sum();
                                        dot.positive() * x(&aw, [h, t, 0, n])
                                    };
                                    (0..heads).map(head).sum::<X>() + x(&am, [key, t, 0, n % masks])
                                };
                                let values = each(ne).map(score).collect();
                                (
                                    ggml_lightning_indexer(w.ctx, q, k, weights, mask),
                                    want(ne, values, (d + heads + 8) as f64),
                                )
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(500);
}

/// Every source in another format: refused, or not built.
#[test]
fn other_formats_are_refused() {
    type Build = fn(Ctx, &[T]) -> T;
    let x = [8, 4, 3, 1];
    let cases: [(&str, Vec<[usize; 4]>, Build); 4] = [
        ("comb", vec![[24, 3, 1, 1], [3, 1, 1, 1], [24, 1, 1, 1]], |c, s| {
            ggml_dsv4_hc_comb(c, s[0], s[1], s[2], 1e-6, 2)
        }),
        ("pre", vec![x, [4, 3, 1, 1]], |c, s| ggml_dsv4_hc_pre(c, s[0], s[1])),
        ("pre_gated", vec![x, x], |c, s| ggml_dsv4_hc_pre_gated(c, s[0], s[1], 1.0)),
        ("post", vec![[8, 3, 1, 1], x, [4, 3, 1, 1], [4, 4, 3, 1]], |c, s| {
            ggml_dsv4_hc_post(c, s[0], s[1], s[2], s[3])
        }),
    ];
    for (name, shapes, build) in cases {
        for other in 0..=shapes.len() {
            for ty in [GGML_TYPE_F16, GGML_TYPE_I32] {
                let outcome = World::with(1, |w| {
                    let format = |i: usize| if i == other { ty } else { F32 };
                    let sources: Vec<T> = shapes
                        .iter()
                        .enumerate()
                        .map(|(i, &ne)| w.source(format(i), ne, Layout::Cont, &PLAIN))
                        .collect();
                    let out = build(w.ctx, &sources);
                    w.compute(out)
                });
                let ran = outcome.as_ref().is_ok_and(|&o| o == Outcome::Ran);
                assert!(
                    outcome.is_ok() && ran == (other == shapes.len()),
                    "{name}: source {other} {ty:?}: {outcome:?}"
                );
            }
        }
    }
}
