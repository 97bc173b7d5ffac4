//! Operators on rows (reductions, norms, softmax, rope, sorting) and of positions, against plain f64 loops.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;

const ORDERS: [([usize; 4], usize); 5] =
    [([0, 1, 2, 3], 0), ([1, 0, 2, 3], 0), ([0, 2, 1, 3], 0), ([0, 1, 2, 3], 3), ([3, 1, 0, 2], 1)];

fn compute(w: &World, p: T) {
    w.compute(1).unwrap();
    let first = bytes(p);
    for n in [2, 3] {
        w.spoil(p);
        w.compute(n).unwrap();
        assert_eq!(bytes(p), first, "{n} threads change {:?}", t(p).op);
    }
}

fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

fn row(p: T, i: [i64; 4]) -> Vec<f64> {
    (0..t(p).ne[0]).map(|k| get(p, [k, i[1], i[2], i[3]])).collect()
}

#[test]
fn sums() {
    let mut rng = Rng(31);
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
        for (o, g) in ORDERS {
            for ne in [[33, 256, 3, 2], [1, 7, 1, 1], [1500, 3, 1, 1]] {
                let mut w = World::new();
                let x = w.random(ty, ne, o, g, &mut rng);
                let y = w.node(GGML_OP_SUM, GGML_TYPE_F32, [1; 4], &[x], &[]);
                compute(&w, y);
                let all: f64 = each(ne).map(|i| get(x, i)).sum();
                let size: f64 = each(ne).map(|i| get(x, i).abs()).sum();
                close(y, 1e-7, |_| (all, size), "sum");
                let r = [1, ne[1], ne[2], ne[3]];
                for (op, n) in [(GGML_OP_SUM_ROWS, 1.0), (GGML_OP_MEAN, ne[0] as f64)] {
                    let mut w = World::new();
                    let x = w.random(ty, ne, o, g, &mut rng);
                    let y = w.node(op, GGML_TYPE_F32, r, &[x], &[]);
                    compute(&w, y);
                    close(
                        y,
                        2e-7,
                        |i| {
                            let v = row(x, i);
                            (v.iter().sum::<f64>() / n, v.iter().map(|a| a.abs()).sum())
                        },
                        "rows",
                    );
                }
            }
            let mut w = World::new();
            let x = w.random(ty, [41, 6, 1, 1], o, g, &mut rng);
            let y = w.node(GGML_OP_ARGMAX, GGML_TYPE_I32, [6, 1, 1, 1], &[x], &[]);
            compute(&w, y);
            for i in 0..6 {
                let v = row(x, [0, i, 0, 0]);
                let best = v.iter().cloned().fold(f64::MIN, f64::max);
                let at = v.iter().rposition(|&a| a == best).unwrap();
                assert_eq!(get(y, [i, 0, 0, 0]), at as f64);
            }
        }
    }
    // The reported sum over a permuted tensor.
    let mut w = World::new();
    let x = w.strided(GGML_TYPE_F32, [256, 33, 1, 1], [1, 0, 2, 3], 0);
    for i in each([256, 33, 1, 1]) {
        set(x, i, ((i[0] * 33 + i[1]) % 25) as f32);
    }
    let y = w.node(GGML_OP_SUM, GGML_TYPE_F32, [1; 4], &[x], &[]);
    w.compute(2).unwrap();
    let want: f64 = each([256, 33, 1, 1]).map(|i| get(x, i)).sum();
    assert_eq!(get(y, [0; 4]), want);
    let mut w = World::new();
    let x = w.tensor(GGML_TYPE_F32, [0, 3, 1, 1]);
    let y = w.node(GGML_OP_SUM, GGML_TYPE_F32, [1; 4], &[x], &[]);
    w.compute(2).unwrap();
    assert_eq!(get(y, [0; 4]), 0.0);
}

#[test]
fn cumsum() {
    let mut rng = Rng(32);
    for (o, g) in ORDERS {
        let mut w = World::new();
        let x = w.random(GGML_TYPE_F32, [50, 4, 3, 2], o, g, &mut rng);
        let y = w.node(GGML_OP_CUMSUM, GGML_TYPE_F32, [50, 4, 3, 2], &[x], &[]);
        compute(&w, y);
        close(y, 1e-6, |i| (row(x, i)[..=i[0] as usize].iter().sum(), 1.0), "cumsum");
    }
}

#[test]
fn norms() {
    let mut rng = Rng(33);
    for (o, g) in ORDERS {
        for ne in [[70, 5, 4, 2], [1, 3, 2, 1], [5000, 3, 1, 1]] {
            for op in [GGML_OP_NORM, GGML_OP_RMS_NORM, GGML_OP_L2_NORM] {
                let mut w = World::new();
                let x = w.random(GGML_TYPE_F32, ne, o, g, &mut rng);
                for i in each(ne) {
                    set(x, i, get(x, i) as f32 + 10.0);
                }
                let y = w.node(op, GGML_TYPE_F32, ne, &[x], &[bits(1e-3)]);
                compute(&w, y);
                let eps = f64::from(1e-3f32);
                for r in each([1, ne[1], ne[2], ne[3]]) {
                    let v = row(x, r);
                    let n = v.len() as f64;
                    let mean = v.iter().sum::<f64>() / n;
                    let sq = |m: f64| v.iter().map(|a| (a - m) * (a - m)).sum::<f64>();
                    let (m, f) = match op {
                        GGML_OP_NORM => (mean, 1.0 / (sq(mean) / n + eps).sqrt()),
                        GGML_OP_RMS_NORM => (0.0, 1.0 / (sq(0.0) / n + eps).sqrt()),
                        _ => (0.0, 1.0 / sq(0.0).sqrt().max(eps)),
                    };
                    for k in 0..ne[0] {
                        let (got, want) = (get(y, [k, r[1], r[2], r[3]]), (v[k as usize] - m) * f);
                        let size = want.abs() + if op == GGML_OP_NORM { 20.0 * f } else { 0.0 };
                        assert!((got - want).abs() <= 4e-7 * size, "{op:?} {got} {want}");
                    }
                }
            }
        }
        for (ne, groups) in [([9, 7, 12, 2], 4), ([9, 7, 10, 1], 4), ([64, 80, 6, 1], 2)] {
            let mut w = World::new();
            let x = w.random(GGML_TYPE_F32, ne, o, g, &mut rng);
            let y = w.node(GGML_OP_GROUP_NORM, GGML_TYPE_F32, ne, &[x], &[groups, bits(1e-5)]);
            compute(&w, y);
            let per = (ne[2] + i64::from(groups) - 1) / i64::from(groups);
            for i3 in 0..ne[3] {
                for c0 in (0..ne[2]).step_by(per as usize) {
                    let cs = c0..(c0 + per).min(ne[2]);
                    let v: Vec<f64> = cs
                        .clone()
                        .flat_map(|c| each([ne[0], ne[1], 1, 1]).map(move |i| [i[0], i[1], c, i3]))
                        .map(|i| get(x, i))
                        .collect();
                    let n = v.len() as f64;
                    let mean = v.iter().sum::<f64>() / n;
                    let var = v.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>() / n;
                    let f = 1.0 / (var + f64::from(1e-5f32)).sqrt();
                    for c in cs {
                        for i in each([ne[0], ne[1], 1, 1]) {
                            let i = [i[0], i[1], c, i3];
                            assert!((get(y, i) - (get(x, i) - mean) * f).abs() < 3e-6);
                        }
                    }
                }
            }
        }
    }
}

fn slope(bias: f64, h: i64, n: i64) -> f64 {
    if bias == 0.0 {
        return 1.0;
    }
    let p = 1i64 << n.ilog2();
    if h < p {
        2f64.powf(-bias / p as f64).powf((h + 1) as f64)
    } else {
        2f64.powf(-bias / 2.0 / p as f64).powf((2 * (h - p) + 1) as f64)
    }
}

#[test]
fn soft_max_with_all_extras() {
    let mut rng = Rng(34);
    let ne = [43, 6, 3, 4];
    for (o, g) in ORDERS {
        for mask in [None, Some(GGML_TYPE_F32), Some(GGML_TYPE_F16)] {
            for bias in [0.0f32, 8.0] {
                for sinks in [false, true] {
                    if mask.is_none() && bias > 0.0 {
                        continue;
                    }
                    let mut w = World::new();
                    let x = w.random(GGML_TYPE_F32, ne, o, g, &mut rng);
                    for i in each(ne) {
                        set(x, i, get(x, i) as f32 * 20.0);
                    }
                    let mut srcs = vec![x, std::ptr::null_mut(), std::ptr::null_mut()];
                    if let Some(ty) = mask {
                        srcs[1] = w.random(ty, [43, 8, 1, 2], [0, 1, 2, 3], 2, &mut rng);
                        set(srcs[1], [3, 2, 0, 1], f32::NEG_INFINITY);
                    }
                    if sinks {
                        srcs[2] = w.random(GGML_TYPE_F32, [3, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
                    }
                    let y = w.node(GGML_OP_SOFT_MAX, GGML_TYPE_F32, ne, &srcs, &[bits(0.7), bits(bias)]);
                    compute(&w, y);
                    for r in each([1, ne[1], ne[2], ne[3]]) {
                        let v: Vec<f64> = (0..ne[0])
                            .map(|k| {
                                let m = if mask.is_some() { get(srcs[1], [k, r[1], 0, r[3] % 2]) } else { 0.0 };
                                get(x, [k, r[1], r[2], r[3]]) * f64::from(0.7f32) + slope(bias.into(), r[2], ne[2]) * m
                            })
                            .collect();
                        let sink = if sinks { get(srcs[2], [r[2], 0, 0, 0]) } else { f64::NEG_INFINITY };
                        let max = v.iter().cloned().fold(sink, f64::max);
                        let sum = v.iter().map(|a| (a - max).exp()).sum::<f64>() + (sink - max).exp();
                        for k in 0..ne[0] {
                            let want = (v[k as usize] - max).exp() / sum;
                            let got = get(y, [k, r[1], r[2], r[3]]);
                            assert!((got - want).abs() <= 5e-6 * want + 1e-12, "{got} {want}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn soft_max_of_masked_rows_is_zero() {
    for scale in [1.0, 0.5] {
        let mut w = World::new();
        let x = w.tensor(GGML_TYPE_F32, [40, 3, 1, 1]);
        for i in each([40, 3, 1, 1]) {
            set(x, i, if i[1] == 1 { f32::NEG_INFINITY } else { i[0] as f32 });
        }
        let y = w.node(GGML_OP_SOFT_MAX, GGML_TYPE_F32, [40, 3, 1, 1], &[x], &[bits(scale), 0]);
        w.compute(1).unwrap();
        for k in 0..40 {
            assert_eq!(get(y, [k, 1, 0, 0]), 0.0);
            assert!(get(y, [k, 0, 0, 0]) > 0.0);
        }
    }
}

#[test]
fn diag_masks() {
    let mut rng = Rng(35);
    for (o, g) in ORDERS {
        for op in [GGML_OP_DIAG_MASK_INF, GGML_OP_DIAG_MASK_ZERO] {
            let mut w = World::new();
            let x = w.random(GGML_TYPE_F32, [12, 9, 3, 2], o, g, &mut rng);
            let y = w.node(op, GGML_TYPE_F32, [12, 9, 3, 2], &[x], &[2]);
            compute(&w, y);
            for i in each([12, 9, 3, 2]) {
                let want = if i[0] > 2 + i[1] {
                    if op == GGML_OP_DIAG_MASK_INF {
                        f64::NEG_INFINITY
                    } else {
                        0.0
                    }
                } else {
                    get(x, i)
                };
                assert_eq!(get(y, i), want);
            }
        }
    }
}

#[test]
fn rope_in_all_modes() {
    let mut rng = Rng(36);
    let modes = [
        GGML_ROPE_TYPE_NORMAL,
        GGML_ROPE_TYPE_NEOX,
        GGML_ROPE_TYPE_MROPE,
        GGML_ROPE_TYPE_VISION,
        GGML_ROPE_TYPE_IMROPE,
    ];
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for mode in modes {
            for (ext, scale) in [(0.0f32, 1.0f32), (1.0, 0.25)] {
                for factors in [false, true] {
                    for (o, g) in [([0, 1, 2, 3], 0), ([0, 2, 1, 3], 4)] {
                        rope_case(ty, mode, ext, scale, factors, o, g, &mut rng);
                    }
                }
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn rope_case(ty: ggml_type, mode: i32, ext: f32, scale: f32, factors: bool, o: [usize; 4], g: usize, rng: &mut Rng) {
    let mut w = World::new();
    let ne = [80, 3, 5, 2];
    let vision = mode == GGML_ROPE_TYPE_VISION;
    let multi = mode & GGML_ROPE_TYPE_MROPE != 0;
    let (n_dims, offs) = if vision { (40, 0) } else { (64, 8) };
    let x = w.random(ty, ne, o, g, rng);
    let pos = w.tensor(GGML_TYPE_I32, [ne[2] * if multi { 4 } else { 1 }, 1, 1, 1]);
    for i in 0..t(pos).ne[0] {
        set(pos, [i, 0, 0, 0], (i * 37 % 90) as f32);
    }
    let sections = [10, 12, 8, if vision { 10 } else { 2 }];
    let mut p = vec![0, n_dims as i32, mode, 0, 512];
    p.extend([10000.0, scale, ext, 1.1, 32.0, 1.0].map(bits));
    p.extend(if multi { sections.map(|s| s as i32) } else { [0; 4] });
    p.push(offs as i32);
    let mut srcs = vec![x, pos];
    if factors {
        let f = w.random(GGML_TYPE_F32, [40, 1, 1, 1], [0, 1, 2, 3], 0, rng);
        for i in 0..40 {
            set(f, [i, 0, 0, 0], get(f, [i, 0, 0, 0]) as f32 + 2.0);
        }
        srcs.push(f);
    }
    let y = w.node(GGML_OP_ROPE, ty, ne, &srcs, &p);
    compute(&w, y);
    let pairs = if vision { n_dims } else { n_dims / 2 };
    let dim = |beta: f64| n_dims as f64 * (512.0 / (beta * 2.0 * std::f64::consts::PI)).ln() / (2.0 * 10000f64.ln());
    let (low, high) = (dim(32.0).floor().max(0.0), dim(1.0).ceil().min(n_dims as f64 - 1.0));
    let tol = if ty == GGML_TYPE_F32 { 1e-6 } else { 2e-3 };
    for i in each([1, ne[1], ne[2], ne[3]]) {
        let mut seen = [false; 80];
        for k in 0..pairs {
            let total: i64 = sections.iter().sum();
            let sector = k % total;
            let [a, b, c, _] = sections;
            let mut power = k;
            let axis = if !multi {
                0
            } else if mode == GGML_ROPE_TYPE_IMROPE {
                match sector % 3 {
                    1 if sector < 3 * b => 1,
                    2 if sector < 3 * c => 2,
                    0 if sector < 3 * a => 0,
                    _ => 3,
                }
            } else {
                let (axis, start) = if sector < a {
                    (0, 0)
                } else if sector < a + b {
                    (1, a)
                } else if sector < a + b + c {
                    (2, a + b)
                } else {
                    (3, a + b + c)
                };
                if vision {
                    power = sector - start;
                }
                axis
            };
            let position = get(pos, [i[2] + axis * ne[2], 0, 0, 0]);
            let factor = if factors { get(srcs[2], [k, 0, 0, 0]) } else { 1.0 };
            let base = position * 10000f64.powf(-2.0 * power as f64 / n_dims as f64) / factor;
            let (mut theta, mut mag) = (base * f64::from(scale), f64::from(1.1f32));
            if ext != 0.0 {
                let mix = 1.0 - ((k as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
                theta = theta * (1.0 - mix) + base * mix;
                mag *= 1.0 + 0.1 * (1.0 / f64::from(scale)).ln();
            }
            let (j0, j1) = if mode == GGML_ROPE_TYPE_NORMAL { (2 * k, 2 * k + 1) } else { (k, k + pairs) };
            let (j0, j1) = (j0 + offs, j1 + offs);
            let at = |j: i64| get(x, [j, i[1], i[2], i[3]]);
            let (s, c) = (theta.sin() * mag, theta.cos() * mag);
            for (j, want) in [(j0, at(j0) * c - at(j1) * s), (j1, at(j0) * s + at(j1) * c)] {
                seen[j as usize] = true;
                let got = get(y, [j, i[1], i[2], i[3]]);
                assert!((got - want).abs() < tol, "mode {mode} {j} {got} {want}");
            }
        }
        for (j, seen) in seen.iter().enumerate() {
            let j = [j as i64, i[1], i[2], i[3]];
            assert!(*seen || get(y, j) == get(x, j));
        }
    }
}

#[test]
fn sorting() {
    let mut rng = Rng(37);
    for (o, g) in ORDERS {
        let mut w = World::new();
        let x = w.random(GGML_TYPE_F32, [57, 4, 3, 1], o, g, &mut rng);
        set(x, [3, 1, 1, 0], f32::NAN);
        set(x, [5, 1, 1, 0], 0.0);
        set(x, [9, 1, 1, 0], -0.0);
        for order in [0, 1] {
            let y = w.node(GGML_OP_ARGSORT, GGML_TYPE_I32, [57, 4, 3, 1], &[x], &[order]);
            compute(&w, y);
            for r in each([1, 4, 3, 1]) {
                let idx: Vec<f64> = row(y, r);
                let mut sorted = idx.clone();
                sorted.sort_by(f64::total_cmp);
                assert!(sorted.iter().enumerate().all(|(i, &v)| v == i as f64));
                let v: Vec<f64> = idx.iter().map(|&k| get(x, [k as i64, r[1], r[2], 0])).collect();
                let ok = |a: f64, b: f64| b.is_nan() || if order == 0 { a <= b } else { a >= b };
                assert!(v.windows(2).all(|p| ok(p[0], p[1])));
            }
        }
        let full = *w.nodes.last().unwrap();
        let k = w.node(GGML_OP_TOP_K, GGML_TYPE_I32, [5, 4, 3, 1], &[x], &[]);
        compute(&w, k);
        for i in each([5, 4, 3, 1]) {
            assert_eq!(get(k, i), get(full, i));
        }
    }
}

#[test]
fn generated_values() {
    let mut w = World::new();
    let y = w.node(GGML_OP_ARANGE, GGML_TYPE_F32, [7, 1, 1, 1], &[], &[bits(2.0), bits(5.5), bits(0.5)]);
    compute(&w, y);
    close(y, 0.0, |i| (2.0 + 0.5 * i[0] as f64, 1.0), "arange");
    for dim in [16i64, 17] {
        let mut w = World::new();
        let s = w.strided(GGML_TYPE_F32, [3, 1, 1, 1], [1, 0, 2, 3], 2);
        for i in 0..3 {
            set(s, [i, 0, 0, 0], 999.0 - 400.5 * i as f32);
        }
        let y = w.node(GGML_OP_TIMESTEP_EMBEDDING, GGML_TYPE_F32, [dim, 3, 1, 1], &[s], &[dim as i32, 10000]);
        compute(&w, y);
        close(
            y,
            1e-7,
            |i| {
                if i[0] >= 16 {
                    return (0.0, 1.0);
                }
                let j = i[0] % 8;
                let arg = get(s, [i[1], 0, 0, 0]) * (-(10000f64.ln()) * j as f64 / 8.0).exp();
                (if i[0] < 8 { arg.cos() } else { arg.sin() }, 1.0)
            },
            "timestep",
        );
    }
    let mut rng = Rng(38);
    for (o, g) in ORDERS {
        for kind in 0..4 {
            let mut w = World::new();
            let x = w.random(GGML_TYPE_F32, [6, 6, 2, 2], o, g, &mut rng);
            let y = w.node(GGML_OP_TRI, GGML_TYPE_F32, [6, 6, 2, 2], &[x], &[kind]);
            compute(&w, y);
            close(
                y,
                0.0,
                |i| {
                    let keep = match ggml_tri_type(kind) {
                        GGML_TRI_TYPE_LOWER => i[0] < i[1],
                        GGML_TRI_TYPE_LOWER_DIAG => i[0] <= i[1],
                        GGML_TRI_TYPE_UPPER => i[0] > i[1],
                        _ => i[0] >= i[1],
                    };
                    (if keep { get(x, i) } else { 0.0 }, 1.0)
                },
                "tri",
            );
        }
        let mut w = World::new();
        let x = w.random(GGML_TYPE_F32, [6, 1, 2, 2], o, g, &mut rng);
        let y = w.node(GGML_OP_DIAG, GGML_TYPE_F32, [6, 6, 2, 2], &[x], &[]);
        compute(&w, y);
        close(y, 0.0, |i| (if i[0] == i[1] { get(x, [i[0], 0, i[2], i[3]]) } else { 0.0 }, 1.0), "diag");
        let z = w.strided(GGML_TYPE_F16, [5, 4, 3, 2], o, g);
        let z = w.make_node(z, GGML_OP_FILL, &[], &[bits(1.5)]);
        w.compute(2).unwrap();
        close(z, 0.0, |_| (1.5, 1.0), "fill");
    }
}

#[test]
fn interpolation() {
    let mut rng = Rng(39);
    let (s, d) = ([7, 5, 2, 2], [13, 4, 4, 2]);
    for (o, g) in ORDERS {
        for flags in [0, 1, 2, 256, 257, 258, 513] {
            let mut w = World::new();
            let x = w.random(GGML_TYPE_F32, s, o, g, &mut rng);
            let y = w.node(GGML_OP_UPSCALE, GGML_TYPE_F32, d, &[x], &[flags]);
            compute(&w, y);
            let corners = flags & 256 != 0;
            let off = if corners { 0.0 } else { 0.5 };
            let sf = |k: usize| {
                if corners {
                    (d[k] - 1) as f64 / (s[k] - 1) as f64
                } else {
                    d[k] as f64 / s[k] as f64
                }
            };
            let clamp = |v: i64, k: usize| v.clamp(0, s[k] - 1);
            // Weights of an axis: source index and weight.
            let axis = |k: usize, i: i64| -> Vec<(i64, f64)> {
                let c = (i as f64 + off) / sf(k) - off;
                match flags & 0xff {
                    0 => vec![(clamp((i as f64 / sf(k) + 1e-9) as i64, k), 1.0)],
                    1 if flags & 512 != 0 => {
                        let (c, sup) = ((i as f64 + off) / sf(k), (1.0 / sf(k)).max(1.0));
                        let from = ((c - sup + off) as i64).max(0);
                        let to = ((c + sup + off) as i64).min(s[k]);
                        let w: Vec<_> =
                            (from..to).map(|j| (j, (1.0 - ((j as f64 - c + off) / sup).abs()).max(0.0))).collect();
                        let total: f64 = w.iter().map(|p| p.1).sum();
                        w.into_iter().map(|(j, v)| (j, v / total)).collect()
                    }
                    1 => {
                        let f = c.floor() as i64;
                        let t = (c - clamp(f, k) as f64).clamp(0.0, 1.0);
                        vec![(clamp(f, k), 1.0 - t), (clamp(f + 1, k), t)]
                    }
                    _ => {
                        let f = c.floor();
                        let t = c - f;
                        let near = |x: f64| ((-0.75 + 2.0) * x - (-0.75 + 3.0)) * x * x + 1.0;
                        let far = |x: f64| -0.75 * (x * x * x - 5.0 * x * x + 8.0 * x - 4.0);
                        let w = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
                        (0..4).map(|j| (clamp(f as i64 - 1 + j, k), w[j as usize])).collect()
                    }
                }
            };
            close(
                y,
                4e-6,
                |i| {
                    let (i2, i3) = (i[2] * s[2] / d[2], i[3] * s[3] / d[3]);
                    let mut sum = 0.0;
                    for (b, wb) in axis(1, i[1]) {
                        for (a, wa) in axis(0, i[0]) {
                            sum += wa * wb * get(x, [a, b, i2, i3]);
                        }
                    }
                    (sum, 1.0)
                },
                &format!("upscale {flags}"),
            );
        }
    }
}
