//! Operators that carry a state along a sequence.

use super::common::*;
use super::terms::{infinities, specials, want, x, X};

const F32: ggml_type = GGML_TYPE_F32;

/// Layouts in which dimensions 0 and 1 have no gap between them.
const TIGHT: [Layout; 4] = [Layout::Cont, Layout::PlaneGap, Layout::Swap23, Layout::Offset];

#[test]
fn ssm_conv() {
    let mut s = Suite::new("ssm_conv");
    for (taps, tokens, channels, seqs) in [
        (4, 1, 40, 1),
        (4, 33, 16, 3),
        (1, 15, 7, 2),
        (9, 16, 17, 1),
        (3, 70, 33, 2),
        (4, 0, 5, 2),
        (4, 5, 0, 2),
        (0, 3, 2, 1),
    ] {
        for lx in ALL {
            for lc in [Layout::Cont, Layout::RowGap, Layout::Offset, Layout::Swap01] {
                for fill in [PLAIN, specials(), infinities()] {
                    let must = lx.packed() && lc.packed();
                    s.case(must, format!("{taps} {tokens} {channels} {seqs} {lx:?} {lc:?} {fill:?}"), |w| {
                        let sx = w.source(F32, [taps + tokens - usize::from(taps > 0), channels, seqs, 1], lx, &fill);
                        let c = w.source(F32, [taps, channels, 1, 1], lc, &fill);
                        let (a, b) = (read(sx), read(c));
                        let ne = [channels, a.ne[0] + 1 - taps, seqs, 1];
                        let sum = |[c, t, s, _]: [usize; 4]| {
                            (0..taps).map(|k| x(&a, [t + k, c, s, 0]) * x(&b, [k, c, 0, 0])).sum()
                        };
                        let values = each(ne).map(sum).collect();
                        (ggml_ssm_conv(w.ctx, sx, c), want(ne, values, taps as f64 + 2.0))
                    });
                }
            }
        }
    }
    s.finish(300);
}

#[derive(Clone, Copy, Debug)]
struct Scan {
    d_state: usize,
    dim: usize,
    heads: usize,
    groups: usize,
    tokens: usize,
    seqs: usize,
    keep: usize,
    varied: bool,
}

fn scans() -> Vec<Scan> {
    let one = Scan { d_state: 16, dim: 1, heads: 40, groups: 1, tokens: 1, seqs: 1, keep: 1, varied: true };
    let two = Scan { d_state: 128, dim: 20, heads: 4, groups: 2, tokens: 3, seqs: 2, keep: 1, varied: false };
    vec![
        one,
        Scan { tokens: 70, seqs: 2, heads: 7, ..one },
        Scan { d_state: 21, dim: 3, heads: 4, groups: 2, tokens: 5, ..one },
        Scan { tokens: 0, ..one },
        two,
        Scan { tokens: 70, dim: 5, keep: 3, seqs: 1, ..two },
        Scan { d_state: 33, dim: 67, heads: 3, groups: 3, tokens: 9, keep: 12, ..two },
        Scan { d_state: 256, dim: 4, groups: 1, ..two },
        Scan { d_state: 5, dim: 3, heads: 2, tokens: 130, keep: 2, ..two },
        Scan { d_state: 1, dim: 2, ..two },
        Scan { d_state: 0, dim: 2, ..two },
        Scan { tokens: 0, keep: 2, ..two },
        Scan { seqs: 0, ..two },
        Scan { heads: 0, ..two },
    ]
}

impl Scan {
    /// The result for the sources s, x, dt, A, B, C, ids; NaN is what must be left unwritten.
    fn reference(self, [s, x_, dt, a, b, c, ids]: [&Arr; 7]) -> Want {
        let Scan { d_state, dim, heads, groups, tokens, seqs, keep, varied } = self;
        let y = dim * heads * tokens * seqs;
        let states = d_state * dim * heads * seqs;
        let mut out = vec![X { v: f64::NAN, size: 0.0 }; y + keep * states];
        for [i, h, q, _] in each([dim, heads, seqs, 1]) {
            let g = h / (heads / groups);
            let id = ids.at([q, 0, 0, 0]) as usize;
            let mut state: Vec<X> = (0..d_state).map(|n| x(s, [n, i, h, id])).collect();
            let mut put = |slot: usize, state: &[X]| {
                let at = y + slot * states + ((q * heads + h) * dim + i) * d_state;
                out[at..at + d_state].copy_from_slice(state);
            };
            if tokens == 0 {
                put(0, &state);
            }
            let mut ys = Vec::new();
            for t in 0..tokens {
                let d = x(dt, [h, t, q, 0]).softplus();
                let input = x(x_, [i, h, t, q]) * d;
                for (n, s) in state.iter_mut().enumerate() {
                    let decay = (d * x(a, [if varied { n } else { 0 }, h, 0, 0])).exp();
                    *s = *s * decay + x(b, [n, g, t, q]) * input;
                }
                ys.push(state.iter().enumerate().map(|(n, s)| *s * x(c, [n, g, t, q])).sum());
                if tokens - 1 - t < keep {
                    put(tokens - 1 - t, &state);
                }
            }
            for (t, value) in ys.into_iter().enumerate() {
                out[((q * tokens + t) * heads + h) * dim + i] = value;
            }
        }
        want([out.len(), 1, 1, 1], out, 64.0 + d_state as f64 + 8.0 * tokens as f64)
    }

    fn sources(self, w: &mut World, lx: Layout, lb: Layout, fill: &Fill, decay: &Fill, dt: &Fill) -> [T; 7] {
        let Scan { d_state, dim, heads, groups, tokens, seqs, varied, .. } = self;
        let a = [if varied { d_state } else { 1 }, heads, 1, 1];
        let ids: Vec<f64> = (0..seqs.max(1)).map(|q| [3.0, 0.0, 3.0, 2.0][q % 4]).collect();
        [
            w.source(F32, [d_state, dim, heads, 4], Layout::Cont, fill),
            w.source(F32, [dim, heads, tokens, seqs], lx, fill),
            w.source(F32, [heads, tokens, seqs, 1], Layout::Offset, dt),
            w.source(F32, a, Layout::Cont, decay),
            w.source(F32, [d_state, groups, tokens, seqs], lb, fill),
            w.source(F32, [d_state, groups, tokens, seqs], lx, fill),
            w.source(GGML_TYPE_I32, [seqs, 1, 1, 1], Layout::Cont, &Fill::List(ids)),
        ]
    }
}

fn scan(w: &mut World, [s, x, dt, a, b, c, ids]: [T; 7], keep: usize) -> T {
    ggml_ssm_scan(w.ctx, s, x, dt, a, b, c, ids, keep as i64)
}

#[test]
fn ssm_scan() {
    let mut s = Suite::new("ssm_scan");
    for kind in scans() {
        for lx in ALL {
            for lb in TIGHT {
                for (name, fill, decay, dt) in [
                    ("plain", PLAIN, Fill::Range(-2.0, -0.1), Fill::Range(-2.0, 3.0)),
                    ("special", specials(), specials(), specials()),
                    (
                        "infinite",
                        infinities(),
                        Fill::List(vec![-1.0, 0.0, -0.5]),
                        Fill::List(vec![21.0, -20.0, 0.5, 0.0]),
                    ),
                    ("dt", PLAIN, Fill::List(vec![-1.0]), infinities()),
                ] {
                    s.case(TIGHT.contains(&lx), format!("{kind:?} {lx:?} {lb:?} {name}"), |w| {
                        let sources = kind.sources(w, lx, lb, &fill, &decay, &dt);
                        let arrays = sources.map(read);
                        (scan(w, sources, kind.keep), kind.reference(arrays.each_ref()))
                    });
                }
            }
        }
    }
    s.finish(600);
}

/// States that there are not: an error, and nothing is written elsewhere.
#[test]
fn ssm_scan_of_states_outside() {
    for bad in [4.0, -1.0, 2147483647.0, -2147483648.0] {
        let text = World::with(1, |w| {
            let kind = Scan { d_state: 16, dim: 3, heads: 4, groups: 2, tokens: 2, seqs: 3, keep: 1, varied: false };
            let mut sources = kind.sources(w, Layout::Cont, Layout::Cont, &PLAIN, &PLAIN, &PLAIN);
            sources[6] = w.source(GGML_TYPE_I32, [3, 1, 1, 1], Layout::Cont, &Fill::List(vec![0.0, bad, 1.0]));
            let out = scan(w, sources, 1);
            w.fails(out)
        });
        let text = text.unwrap();
        assert!(text.contains("outside the 4 states"), "{text}");
    }
}

/// Size, heads, tokens, sequences.
const LINEAR: [[usize; 4]; 10] = [
    [64, 2, 5, 1],
    [64, 3, 12, 4],
    [16, 2, 3, 3],
    [33, 2, 4, 2],
    [100, 1, 6, 1],
    [1, 1, 1, 1],
    [5, 3, 0, 2],
    [128, 1, 2, 1],
    [7, 0, 2, 1],
    [70, 2, 40, 2],
];

/// A sequence of matrices for each head: `token(S, time, head)` changes S, of rows of `size`, and answers the head's results.
fn linear(
    [size, heads, tokens, seqs]: [usize; 4],
    state: &Arr,
    mut token: impl FnMut(&mut [X], usize, usize) -> Vec<X>,
) -> Want {
    let width = size * heads;
    let mut out = vec![X::ZERO; width * (tokens + size * seqs)];
    for [h, q, ..] in each([heads, seqs, 1, 1]) {
        let at = (q * heads + h) * size * size;
        let mut s: Vec<X> = state.v[at..at + size * size].iter().map(|&v| v.into()).collect();
        for t in q * (tokens / seqs)..(q + 1) * (tokens / seqs) {
            let y = token(&mut s, t, h);
            out[t * width + h * size..][..size].copy_from_slice(&y);
        }
        out[width * tokens + at..][..size * size].copy_from_slice(&s);
    }
    want([width, tokens + size * seqs, 1, 1], out, 16.0 + size as f64 + 8.0 * tokens as f64)
}

fn each_linear(name: &str, mut case: impl FnMut(&mut Suite, [usize; 4], Layout, &str, [Fill; 2])) {
    let mut s = Suite::new(name);
    for kind in LINEAR {
        for layout in [Layout::Cont, Layout::Offset, Layout::RowGap, Layout::PlaneGap, Layout::Swap12] {
            for (name, fills) in [
                ("plain", [PLAIN, Fill::Range(0.1, 0.9)]),
                ("special", [specials(), specials()]),
                ("infinite", [infinities(), Fill::Range(-0.9, 0.9)]),
                ("zero", [Fill::List(vec![0.0, -0.0]), Fill::List(vec![0.0])]),
            ] {
                case(&mut s, kind, layout, name, fills);
            }
        }
    }
    s.finish(70);
}

#[test]
fn rwkv_wkv6() {
    each_linear("rwkv_wkv6", |s, kind, layout, name, [fill, decay]| {
        let [size, heads, tokens, seqs] = kind;
        s.case(layout.contiguous(), format!("{kind:?} {layout:?} {name}"), |w| {
            let ne = [size, heads, tokens, 1];
            let [k, v, r] = [0; 3].map(|_| w.source(F32, ne, layout, &fill));
            let tf = w.source(F32, [size, heads, 1, 1], Layout::Cont, &fill);
            let td = w.source(F32, ne, Layout::Cont, &decay);
            let state = w.source(F32, [size * size * heads, seqs, 1, 1], Layout::Offset, &fill);
            let [ak, av, ar, af, ad] = [k, v, r, tf, td].map(read);
            let want = linear(kind, &read(state), |s, t, h| {
                let mut y = vec![X::ZERO; size];
                for i in 0..size {
                    let at = [i, h, t, 0];
                    for j in 0..size {
                        let kv = x(&ak, at) * x(&av, [j, h, t, 0]);
                        let s = &mut s[i * size + j];
                        y[j] = y[j] + x(&ar, at) * (x(&af, [i, h, 0, 0]) * kv + *s);
                        *s = *s * x(&ad, at) + kv;
                    }
                }
                y
            });
            (ggml_rwkv_wkv6(w.ctx, k, v, r, tf, td, state), want)
        });
    });
}

#[test]
fn gated_linear_attn() {
    each_linear("gated_linear_attn", |s, kind, layout, name, [fill, decay]| {
        let [size, heads, tokens, seqs] = kind;
        for scale in [1.0f32, 0.125] {
            s.case(layout.contiguous(), format!("{kind:?} {layout:?} {name} {scale}"), |w| {
                let ne = [size, heads, tokens, 1];
                let [k, v, q] = [0; 3].map(|_| w.source(F32, ne, layout, &fill));
                let g = w.source(F32, ne, Layout::Cont, &decay);
                let state = w.source(F32, [size, size * heads, 1, seqs], Layout::Cont, &fill);
                let state = ggml_reshape_2d(w.ctx, state, (size * size * heads) as i64, seqs as i64);
                w.place(state);
                let [ak, av, aq, ag] = [k, v, q, g].map(read);
                let want = linear(kind, &read(state), |s, t, h| {
                    let mut y = vec![X::ZERO; size];
                    for i in 0..size {
                        let at = [i, h, t, 0];
                        for j in 0..size {
                            let s = &mut s[i * size + j];
                            *s = *s * x(&ag, at) + x(&ak, at) * x(&av, [j, h, t, 0]);
                            y[j] = y[j] + *s * (x(&aq, at) * f64::from(scale).into());
                        }
                    }
                    y
                });
                (ggml_gated_linear_attn(w.ctx, k, v, q, g, state, scale), want)
            });
        }
    });
}

#[test]
fn rwkv_wkv7() {
    each_linear("rwkv_wkv7", |s, kind, layout, name, [fill, decay]| {
        let [size, heads, tokens, seqs] = kind;
        // a and b small, so that the state stays so
        let small = if name == "plain" { Fill::Range(-0.08, 0.08) } else { fill.clone() };
        s.case(layout.contiguous(), format!("{kind:?} {layout:?} {name}"), |w| {
            let ne = [size, heads, tokens, 1];
            let [r, k, v] = [0; 3].map(|_| w.source(F32, ne, layout, &fill));
            let d = w.source(F32, ne, Layout::Cont, &decay);
            let [a, b] = [0; 2].map(|_| w.source(F32, ne, layout, &small));
            let state = w.source(F32, [size * size * heads, seqs, 1, 1], Layout::Cont, &fill);
            let [ar, ad, ak, av, aa, ab] = [r, d, k, v, a, b].map(read);
            let want = linear(kind, &read(state), |s, t, h| {
                let at = |a: &Arr, i: usize| x(a, [i, h, t, 0]);
                let row = |s: &mut [X], i: usize| -> X {
                    let sa: X = s.iter().enumerate().map(|(j, s)| *s * at(&aa, j)).sum();
                    for (j, s) in s.iter_mut().enumerate() {
                        *s = *s * at(&ad, j) + at(&av, i) * at(&ak, j) + sa * at(&ab, j);
                    }
                    s.iter().enumerate().map(|(j, s)| *s * at(&ar, j)).sum()
                };
                s.chunks_mut(size).enumerate().map(|(i, s)| row(s, i)).collect()
            });
            (ggml_rwkv_wkv7(w.ctx, r, d, k, v, a, b, state), want)
        });
    });
}

#[derive(Clone, Copy, Debug)]
struct Delta {
    size: usize,
    heads: usize,
    /// Heads of queries and of keys, sequences of both.
    q_heads: usize,
    k_heads: usize,
    tokens: usize,
    seqs: usize,
    q_seqs: usize,
    keep: usize,
    gates: bool,
}

fn deltas() -> Vec<Delta> {
    let d = Delta { size: 64, heads: 4, q_heads: 4, k_heads: 4, tokens: 3, seqs: 2, q_seqs: 2, keep: 1, gates: false };
    vec![
        d,
        Delta { gates: true, ..d },
        Delta { size: 128, heads: 2, q_heads: 1, k_heads: 2, tokens: 1, ..d },
        Delta { size: 16, q_heads: 2, k_heads: 1, tokens: 9, seqs: 4, keep: 4, ..d },
        Delta { size: 33, heads: 3, q_heads: 1, k_heads: 3, tokens: 2, q_seqs: 1, keep: 5, gates: true, ..d },
        Delta { size: 1, ..d },
        Delta { size: 20, tokens: 40, seqs: 1, q_seqs: 1, keep: 2, ..d },
        Delta { size: 16, tokens: 0, keep: 2, ..d },
        Delta { size: 0, ..d },
        Delta { size: 16, seqs: 0, ..d },
        Delta { size: 16, heads: 0, ..d },
    ]
}

impl Delta {
    fn reference(self, [q, k, v, g, beta, state]: [&Arr; 6]) -> Want {
        let Delta { size, heads, q_heads, k_heads, tokens, seqs, q_seqs, keep, gates } = self;
        let (y, states) = (size * heads * tokens * seqs, size * size * heads * seqs);
        let mut out = vec![X { v: f64::NAN, size: 0.0 }; y + keep * states];
        let scale = X::from(1.0 / (size as f64).sqrt());
        for [j, h, n, _] in each([size, heads, seqs, 1]) {
            let (hq, hk, nq) = (h % q_heads, h % k_heads, n / (seqs / q_seqs));
            let mut row: Vec<X> = (0..size).map(|i| x(state, [i, j, h, n])).collect();
            let at = |slot: usize| y + slot * states + ((n * heads + h) * size + j) * size;
            if tokens == 0 {
                out[at(0)..][..size].copy_from_slice(&row);
            }
            for t in 0..tokens {
                for (i, s) in row.iter_mut().enumerate() {
                    *s = *s * x(g, [if gates { i } else { 0 }, h, t, n]).exp();
                }
                let dot: X = row.iter().enumerate().map(|(i, s)| *s * x(k, [i, hk, t, nq])).sum();
                let delta = (x(v, [j, h, t, n]) - dot) * x(beta, [0, h, t, n]);
                for (i, s) in row.iter_mut().enumerate() {
                    *s = *s + delta * x(k, [i, hk, t, nq]);
                }
                let value: X = row.iter().enumerate().map(|(i, s)| *s * x(q, [i, hq, t, nq])).sum();
                out[((n * tokens + t) * heads + h) * size + j] = value * scale;
                if tokens - 1 - t < keep {
                    out[at(tokens - 1 - t)..][..size].copy_from_slice(&row);
                }
            }
        }
        want([size * heads, tokens * seqs + keep * size * seqs, 1, 1], out, 32.0 + size as f64 + 8.0 * tokens as f64)
    }
}

#[test]
fn gated_delta_net() {
    let mut s = Suite::new("gated_delta_net");
    for kind in deltas() {
        for lq in ALL {
            for lv in [Layout::Cont, Layout::Swap12, Layout::RowGap, Layout::Offset] {
                for (name, small, fill, gate) in [
                    ("plain", Fill::Range(-0.1, 0.1), PLAIN, Fill::Range(-2.0, -0.5)),
                    ("special", specials(), specials(), specials()),
                    ("infinite", infinities(), infinities(), Fill::List(vec![-1.0, 0.0])),
                ] {
                    s.case(lq.packed(), format!("{kind:?} {lq:?} {lv:?} {name}"), |w| {
                        let Delta { size, heads, q_heads, k_heads, tokens, seqs, q_seqs, keep, gates } = kind;
                        let q = w.source(F32, [size, q_heads, tokens, q_seqs], lq, &small);
                        let k = w.source(F32, [size, k_heads, tokens, q_seqs], lv, &small);
                        let v = w.source(F32, [size, heads, tokens, seqs], lv, &fill);
                        let g = [if gates { size } else { 1 }, heads, tokens, seqs];
                        let g = w.source(F32, g, Layout::Offset, &gate);
                        let beta = w.source(F32, [1, heads, tokens, seqs], Layout::Cont, &Fill::Range(0.1, 0.9));
                        let state = w.source(F32, [size, size, heads, seqs], Layout::Cont, &fill);
                        let arrays = [q, k, v, g, beta, state].map(read);
                        let want = kind.reference(arrays.each_ref());
                        (ggml_gated_delta_net(w.ctx, q, k, v, g, beta, state, keep as i64), want)
                    });
                }
            }
        }
    }
    s.finish(400);
}

/// Every source in another format: refused, or not built.
#[test]
fn other_formats_are_refused() {
    type Build = fn(Ctx, &[T]) -> T;
    let token = [8, 2, 3, 1];
    let cases: [(&str, Vec<[usize; 4]>, Build); 6] = [
        ("ssm_conv", vec![[6, 4, 2, 1], [4, 4, 1, 1]], |c, s| ggml_ssm_conv(c, s[0], s[1])),
        (
            "ssm_scan",
            vec![[8, 4, 2, 3], [4, 2, 3, 1], [2, 3, 1, 1], [1, 2, 1, 1], [8, 1, 3, 1], [8, 1, 3, 1]],
            |c, s| {
                let ids = ggml_new_tensor(c, GGML_TYPE_I32, 1, [1].as_ptr());
                ggml_ssm_scan(c, s[0], s[1], s[2], s[3], s[4], s[5], ids, 1)
            },
        ),
        ("rwkv_wkv6", vec![token, token, token, [8, 2, 1, 1], token, [128, 1, 1, 1]], |c, s| {
            ggml_rwkv_wkv6(c, s[0], s[1], s[2], s[3], s[4], s[5])
        }),
        ("rwkv_wkv7", vec![token, token, token, token, token, token, [128, 1, 1, 1]], |c, s| {
            ggml_rwkv_wkv7(c, s[0], s[1], s[2], s[3], s[4], s[5], s[6])
        }),
        ("gated_linear_attn", vec![token, token, token, token, [128, 1, 1, 1]], |c, s| {
            ggml_gated_linear_attn(c, s[0], s[1], s[2], s[3], s[4], 1.0)
        }),
        ("gated_delta_net", vec![token, token, token, [1, 2, 3, 1], [1, 2, 3, 1], [8, 8, 2, 1]], |c, s| {
            ggml_gated_delta_net(c, s[0], s[1], s[2], s[3], s[4], s[5], 1)
        }),
    ];
    for (name, shapes, build) in cases {
        for other in 0..=shapes.len() {
            for ty in [GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_F64] {
                let outcome = World::with(1, |w| {
                    let format = |i: usize| if i == other { ty } else { F32 };
                    let sources: Vec<T> = shapes
                        .iter()
                        .enumerate()
                        .map(|(i, &ne)| w.source(format(i), ne, Layout::Cont, &PLAIN))
                        .collect();
                    let out = build(w.ctx, &sources);
                    if name == "ssm_scan" && !t(out).src[6].is_null() {
                        w.place(t(out).src[6]);
                        w.fill(t(out).src[6], &Fill::List(vec![1.0]));
                    }
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
