//! Attention against plain f64 loops.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;

struct Case {
    dk: i64,
    dv: i64,
    n: i64,
    kv: i64,
    heads: i64,
    kv_heads: i64,
    batch: i64,
    kt: ggml_type,
    vt: ggml_type,
    mask: bool,
    bias: f32,
    cap: f32,
    sinks: bool,
    order: [usize; 4],
    gap: usize,
}

const BASE: Case = Case {
    dk: 40,
    dv: 40,
    n: 19,
    kv: 77,
    heads: 4,
    kv_heads: 4,
    batch: 1,
    kt: GGML_TYPE_F16,
    vt: GGML_TYPE_F16,
    mask: false,
    bias: 0.0,
    cap: 0.0,
    sinks: false,
    order: [0, 1, 2, 3],
    gap: 0,
};

fn check(c: &Case) {
    let mut rng = Rng(41);
    let mut w = World::new();
    let q = w.random(GGML_TYPE_F32, [c.dk, c.n, c.heads, c.batch], c.order, c.gap, &mut rng);
    let k = w.random(c.kt, [c.dk, c.kv, c.kv_heads, c.batch], c.order, c.gap, &mut rng);
    let v = w.random(c.vt, [c.dv, c.kv, c.kv_heads, c.batch], c.order, c.gap, &mut rng);
    let mut srcs = vec![q, k, v, std::ptr::null_mut(), std::ptr::null_mut()];
    if c.mask {
        let m = w.random(GGML_TYPE_F16, [c.kv, c.n + 3, 1, c.batch], [0, 1, 2, 3], 0, &mut rng);
        for i in each(t(m).ne) {
            // Causal, and row 2 has nothing at all.
            if i[0] > i[1] * 9 + 20 || i[1] == 2 {
                set(m, i, f32::NEG_INFINITY);
            }
        }
        srcs[3] = m;
    }
    if c.sinks {
        srcs[4] = w.random(GGML_TYPE_F32, [c.heads, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
    }
    let scale = 1.0 / (c.dk as f32).sqrt() * 3.0;
    let params = [scale, c.bias, c.cap].map(|x| x.to_bits() as i32);
    let y = w.node(GGML_OP_FLASH_ATTN_EXT, GGML_TYPE_F32, [c.dv, c.heads, c.n, c.batch], &srcs, &params);
    w.compute(1).unwrap();
    let first = bytes(y);
    for n in [2, 3] {
        w.spoil(y);
        w.compute(n).unwrap();
        assert!(bytes(y) == first, "{n} threads change the result");
    }
    let rows = |p: T, n: i64| -> Vec<Vec<f64>> {
        each([1, t(p).ne[1], t(p).ne[2], t(p).ne[3]])
            .map(|i| (0..n).map(|j| get(p, [j, i[1], i[2], i[3]])).collect())
            .collect()
    };
    let (ks, vs) = (rows(k, c.dk), rows(v, c.dv));
    let share = c.heads / c.kv_heads;
    for b in 0..c.batch {
        for h in 0..c.heads {
            let p = 1i64 << c.heads.ilog2();
            let slope = if c.bias == 0.0 {
                1.0
            } else if h < p {
                2f64.powf(-f64::from(c.bias) / p as f64).powf((h + 1) as f64)
            } else {
                2f64.powf(-f64::from(c.bias) / 2.0 / p as f64).powf((2 * (h - p) + 1) as f64)
            };
            for i in 0..c.n {
                let at = |j: i64| ((b * c.kv_heads + h / share) * c.kv + j) as usize;
                let s: Vec<f64> = (0..c.kv)
                    .map(|j| {
                        let mut x: f64 = (0..c.dk).map(|d| get(q, [d, i, h, b]) * ks[at(j)][d as usize]).sum();
                        x *= f64::from(scale);
                        if c.cap != 0.0 {
                            x = f64::from(c.cap) * (x / f64::from(c.cap)).tanh();
                        }
                        if c.mask {
                            x += slope * get(srcs[3], [j, i, 0, b]);
                        }
                        x
                    })
                    .collect();
                let sink = if c.sinks { get(srcs[4], [h, 0, 0, 0]) } else { f64::NEG_INFINITY };
                let max = s.iter().cloned().fold(sink, f64::max);
                let sum = s.iter().map(|x| (x - max).exp()).sum::<f64>() + (sink - max).exp();
                for d in 0..c.dv {
                    let got = get(y, [d, h, i, b]);
                    let want = if max == f64::NEG_INFINITY {
                        0.0
                    } else {
                        (0..c.kv).map(|j| (s[j as usize] - max).exp() * vs[at(j)][d as usize]).sum::<f64>() / sum
                    };
                    assert!((got - want).abs() < 2e-6, "head {h} row {i} element {d}: {got}, should be {want}");
                }
            }
        }
    }
}

#[test]
fn head_sizes_and_lengths() {
    for (dk, dv) in [(8, 8), (16, 16), (40, 40), (64, 64), (80, 80), (128, 128), (72, 56), (1, 3), (192, 128)] {
        check(&Case { dk, dv, ..BASE });
    }
    for (n, kv) in [(1, 1), (1, 300), (7, 256), (130, 257), (5, 600), (3, 15)] {
        check(&Case { n, kv, ..BASE });
    }
}

#[test]
fn formats() {
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
        check(&Case { kt: ty, vt: ty, ..BASE });
    }
    for ty in [GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1] {
        check(&Case { kt: ty, vt: ty, dk: 64, dv: 96, ..BASE });
        check(&Case { kt: ty, vt: GGML_TYPE_F16, dk: 64, dv: 64, ..BASE });
    }
}

#[test]
fn few_rows() {
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
        for (dk, dv) in [(128, 128), (40, 72), (5, 3)] {
            for (n, kv_heads) in [(1, 4), (1, 1), (3, 4), (2, 2)] {
                check(&Case { kt: ty, vt: ty, dk, dv, n, kv_heads, kv: 523, mask: n < 3, sinks: n == 2, ..BASE });
            }
        }
    }
}

#[test]
fn masks_bias_softcap_sinks_and_layouts() {
    for (order, gap) in [([0, 1, 2, 3], 0), ([0, 2, 1, 3], 0), ([0, 1, 2, 3], 8)] {
        for kv_heads in [4, 2, 1] {
            for (mask, bias, cap, sinks) in
                [(true, 0.0, 0.0, false), (true, 8.0, 0.0, false), (true, 0.0, 5.0, true), (false, 0.0, 0.0, true)]
            {
                check(&Case { mask, bias, cap, sinks, kv_heads, batch: 2, kv: 290, order, gap, ..BASE });
            }
        }
    }
    check(&Case { heads: 6, kv_heads: 3, mask: true, bias: 4.0, ..BASE });
}

#[test]
fn refusals_name_the_rule() {
    let mut w = World::new();
    let q = w.tensor(GGML_TYPE_F32, [8, 4, 3, 1]);
    let k = w.tensor(GGML_TYPE_F16, [8, 4, 2, 1]);
    let v = w.tensor(GGML_TYPE_F16, [8, 4, 2, 1]);
    w.node(GGML_OP_FLASH_ATTN_EXT, GGML_TYPE_F32, [8, 3, 4, 1], &[q, k, v], &[0; 3]);
    assert!(format!("{:?}", w.compute(1).unwrap_err()).contains("divide"));
}
