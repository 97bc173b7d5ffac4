//! SD-7: blocks of 64 keys are looked at one by one where their summary, or their place, says that it matters.

use super::{bf16, dense, dot, each_head, error, Heads, Rows};
use reference::values::Rng;
use std::ops::Range;

/// Tokens of a block, and blocks of a group.
const BLOCK: usize = 64;

/// What is known of a head before attention.
pub struct Summary {
    /// Tokens.
    n: usize,
    /// BF16.
    q: Rows,
    k: Rows,
    v: Rows,
    /// Mean of the queries of a block, F32.
    pub qm: Vec<Vec<f32>>,
    /// Mean of the keys of a block, BF16.
    pub kc: Vec<Vec<f32>>,
    /// Sum of the values of a block, BF16.
    pub vc: Vec<Vec<f32>>,
    /// Mean and variance of the keys' means, by channel.
    pub mu: Vec<f32>,
    /// See `mu`.
    pub var: Vec<f32>,
}

impl Summary {
    /// Steps 1 to 3.
    pub fn of(q: &Rows, k: &Rows, v: &Rows) -> Summary {
        let (q, k, v) = (q.map(bf16), k.map(bf16), v.map(bf16));
        let (d, n) = (q.d, q.n());
        let nb = n.div_ceil(BLOCK);
        let range = |b: usize| b * BLOCK..n.min((b + 1) * BLOCK);
        let sums = |x: &Rows, b: usize| -> Vec<f32> {
            (0..d).map(|c| range(b).fold(0f32, |sum, t| sum + x.row(t)[c])).collect()
        };
        let mean = |x: &Rows, b: usize| -> Vec<f32> { sums(x, b).iter().map(|s| s / range(b).len() as f32).collect() };
        let short = |x: Vec<f32>| -> Vec<f32> { x.into_iter().map(bf16).collect() };
        let kc: Vec<Vec<f32>> = (0..nb).map(|b| short(mean(&k, b))).collect();
        let vc = (0..nb).map(|b| short(sums(&v, b))).collect();
        let qm = (0..nb).map(|b| mean(&q, b)).collect();
        let over = |f: &dyn Fn(f32) -> f32, c: usize| kc.iter().fold(0f32, |sum, k| sum + f(k[c])) / nb as f32;
        let mu: Vec<f32> = (0..d).map(|c| over(&|x| x, c)).collect();
        let var = (0..d).map(|c| (over(&|x| x * x, c) - mu[c] * mu[c]).max(0.0)).collect();
        Summary { n, q, k, v, qm, kc, vc, mu, var }
    }

    /// Blocks.
    pub fn nb(&self) -> usize {
        self.kc.len()
    }

    fn range(&self, b: usize) -> Range<usize> {
        b * BLOCK..self.n.min((b + 1) * BLOCK)
    }

    /// Step 4: what the mean score of a block must be above, for queries of block `b`.
    pub fn threshold(&self, b: usize, scale: f32, tau: f32) -> f32 {
        let c = scale * std::f32::consts::LOG2_E;
        let qm = &self.qm[b];
        let mean = warps(qm.iter().zip(&self.mu).map(|(q, m)| q * m));
        let spread = warps(qm.iter().zip(&self.var).map(|(q, v)| q * q * v)) * (c * c);
        mean * c + tau * (spread.max(0.0) + 1e-6).sqrt()
    }

    /// Step 5: mean score of block `b` for the queries of block `qb`.
    pub fn score(&self, qb: usize, b: usize, scale: f32) -> f32 {
        let c = scale * std::f32::consts::LOG2_E;
        let rows = self.range(qb);
        let n = rows.len() as f32;
        rows.fold(0f32, |sum, i| sum + c * dot(self.q.row(i), &self.kc[b])) / n
    }

    /// Which blocks are looked at closely for the queries of block `qb`.
    pub fn exact(&self, qb: usize, scale: f32, tau: f32) -> Vec<bool> {
        let threshold = self.threshold(qb, scale, tau);
        (0..self.nb()).map(|b| b.abs_diff(qb) <= 1 || self.score(qb, b, scale) > threshold).collect()
    }

    /// Steps 6 and 7, for the queries of block `qb`.
    pub fn attention(&self, qb: usize, scale: f32, tau: f32) -> Vec<f32> {
        let c = scale * std::f32::consts::LOG2_E;
        let exact = self.exact(qb, scale, tau);
        let mut out = Vec::new();
        for i in self.range(qb) {
            let q = self.q.row(i);
            let mut soft = Softmax { most: f32::NEG_INFINITY, sum: 0.0, o: vec![0.0; self.v.d] };
            for first in (0..self.nb()).step_by(BLOCK) {
                let group = first..self.nb().min(first + BLOCK);
                let near: Vec<(f32, f32, &[f32])> = group
                    .clone()
                    .filter(|&b| !exact[b])
                    .map(|b| (c * dot(q, &self.kc[b]), self.range(b).len() as f32, &self.vc[b][..]))
                    .collect();
                soft.add(&near);
                for b in group.filter(|&b| exact[b]) {
                    let all: Vec<(f32, f32, &[f32])> =
                        self.range(b).map(|t| (c * dot(q, self.k.row(t)), 1.0, self.v.row(t))).collect();
                    soft.add(&all);
                }
            }
            out.extend(soft.o.iter().map(|o| bf16(o / soft.sum)));
        }
        out
    }
}

/// The sum of 128 numbers: four warps of 32 lanes, each halved until one is left, then in order.
fn warps(terms: impl Iterator<Item = f32>) -> f32 {
    let terms: Vec<f32> = terms.collect();
    let warp = |lanes: &[f32]| {
        let mut lanes = lanes.to_vec();
        for step in [16, 8, 4, 2, 1] {
            lanes = (0..32).map(|i| lanes[i] + lanes[i ^ step]).collect();
        }
        lanes[0]
    };
    terms.chunks_exact(32).map(warp).fold(0f32, |sum, x| sum + x)
}

/// A softmax under way, base 2.
struct Softmax {
    most: f32,
    sum: f32,
    o: Vec<f32>,
}

impl Softmax {
    /// Adds scores, how often each counts below the line, and what it weighs.
    fn add(&mut self, terms: &[(f32, f32, &[f32])]) {
        let new = terms.iter().fold(self.most, |m, t| m.max(t.0));
        // equal also when both are minus infinity
        let old = if new == self.most { 1.0 } else { (self.most - new).exp2() };
        self.most = new;
        self.sum *= old;
        self.o.iter_mut().for_each(|o| *o *= old);
        for (score, count, value) in terms {
            let p = (score - new).exp2();
            self.sum += count * p;
            let short = bf16(p);
            self.o.iter_mut().zip(*value).for_each(|(o, v)| *o += short * v);
        }
    }
}

/// Attention of one head.
pub fn sol(q: &Rows, k: &Rows, v: &Rows, scale: f32, tau: f32) -> Rows {
    let all = Summary::of(q, k, v);
    Rows { d: v.d, v: (0..all.nb()).flat_map(|b| all.attention(b, scale, tau)).collect() }
}

/// How many blocks are looked at closely, over all.
fn looked_at(all: &Summary, scale: f32, tau: f32) -> usize {
    (0..all.nb()).flat_map(|b| all.exact(b, scale, tau)).filter(|&e| e).count()
}

/// The same in f64 with one largest score, from the same choice of blocks: what steps 6 and 7 come to without their rounding.
fn direct(all: &Summary, qb: usize, scale: f32, exact: &[bool]) -> Vec<f32> {
    let c = f64::from(scale) * std::f64::consts::LOG2_E;
    let exactly = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
    let mut out = Vec::new();
    for i in all.range(qb) {
        let mut terms: Vec<(f64, f64, &[f32])> = Vec::new();
        for (b, &exact) in exact.iter().enumerate() {
            match exact {
                true => {
                    terms.extend(all.range(b).map(|t| (c * exactly(all.q.row(i), all.k.row(t)), 1.0, all.v.row(t))))
                }
                false => terms.push((c * exactly(all.q.row(i), &all.kc[b]), all.range(b).len() as f64, &all.vc[b][..])),
            }
        }
        let most = terms.iter().fold(f64::NEG_INFINITY, |m, t| m.max(t.0));
        let sum: f64 = terms.iter().map(|t| t.1 * (t.0 - most).exp2()).sum();
        let of = |d: usize| terms.iter().map(|t| (t.0 - most).exp2() * f64::from(t.2[d])).sum::<f64>() / sum;
        out.extend((0..all.v.d).map(|d| of(d) as f32));
    }
    out
}

/// Normalised squared error of rounding weights and results to BF16.
const ROUNDING: f64 = 2e-5;

#[test]
fn sd_7_sol_is_exact_nearby_and_by_its_threshold() {
    let mut rng = Rng(7);
    let t = 300;
    let (q, k) = (Rows::random(&mut rng, 128, t, 1.0), Rows::random(&mut rng, 128, t, 1.0));
    let v = Rows::random(&mut rng, 128, t, 1.0);
    let scale = 1.0 / 128f32.sqrt();
    let want = dense(&q.map(bf16), &k.map(bf16), &v.map(bf16), scale);
    let (all, nb) = (Summary::of(&q, &k, &v), t.div_ceil(BLOCK));
    let e = error(&sol(&q, &k, &v, scale, -1e6).v, &want.v);
    assert!(e < ROUNDING, "all blocks: {e:e}");
    let e = error(&sol(&q, &k, &v, scale, -1e6).v, &dense(&q, &k, &v, scale).v);
    assert!(e < 1e-4, "all blocks, inputs before rounding: {e:e}");
    let counts: Vec<usize> = [-1e6, -1.0, 0.0, 1.0, 1e6].iter().map(|&tau| looked_at(&all, scale, tau)).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    // the block itself and its neighbours are always looked at, and 0 is not all of them
    assert_eq!((counts[0], counts[4]), (nb * nb, 3 * nb - 2));
    assert!(counts[2] < nb * nb && counts[2] > 3 * nb - 2, "{counts:?}");
    let e = error(&sol(&q, &k, &v, scale, 1e6).v, &want.v);
    assert!(e > 1e-2 && e < 0.5, "summaries of noise: {e:e}");
    // two blocks are neighbours
    let short = |x: &Rows| Rows { d: 128, v: x.v[..128 * 100].to_vec() };
    let (q, k, v) = (short(&q), short(&k), short(&v));
    let e = error(&sol(&q, &k, &v, scale, 1e6).v, &dense(&q.map(bf16), &k.map(bf16), &v.map(bf16), scale).v);
    assert!(e < ROUNDING, "two blocks: {e:e}");
    let one = |x: &Rows| Rows { d: 128, v: x.v[..128].to_vec() };
    assert_eq!(sol(&one(&q), &one(&k), &one(&v), scale, 1.0).v, one(&v).map(bf16).v);
}

#[test]
fn sd_7_groups_of_blocks_are_one_softmax() {
    let mut rng = Rng(21);
    // more than one group of 64 blocks, and a short block at the end
    let t = 66 * BLOCK + 10;
    let (q, v) = (Rows::random(&mut rng, 128, t, 0.5), Rows::random(&mut rng, 128, t, 1.0));
    // scores grow, so that the largest one changes often
    let mut k = Rows::random(&mut rng, 128, t, 0.5);
    for (i, x) in k.v.iter_mut().enumerate() {
        *x += (i / 128 / BLOCK % 7) as f32 * 0.05;
    }
    let all = Summary::of(&q, &k, &v);
    assert_eq!(all.nb(), 67);
    let scale = 0.3;
    for (qb, tau) in [(0, 0.0), (33, 1.0), (64, 0.0), (66, 1e6), (66, -1e6)] {
        let exact = all.exact(qb, scale, tau);
        let e = error(&all.attention(qb, scale, tau), &direct(&all, qb, scale, &exact));
        assert!(e < ROUNDING, "block {qb}, tau {tau}: {e:e}");
    }
}

#[test]
fn sd_7_equal_tokens_lose_nothing() {
    // tokens of a block are the same: its summary says all
    let mut rng = Rng(31);
    let t = 9 * BLOCK + 17;
    let spread = |x: Rows| Rows { d: 128, v: (0..t).flat_map(|i| x.row(i / BLOCK).to_vec()).collect() };
    let k = spread(Rows::random(&mut rng, 128, 10, 1.0).map(bf16));
    let v = spread(Rows::random(&mut rng, 128, 10, 1.0).map(bf16));
    let q = Rows::random(&mut rng, 128, t, 1.0).map(bf16);
    let want = dense(&q, &k, &v, 0.2);
    for tau in [1e6, 1.0, 0.0, -1e6] {
        let e = error(&sol(&q, &k, &v, 0.2, tau).v, &want.v);
        assert!(e < 1e-4, "tau {tau}: {e:e}");
    }
}

#[test]
fn sd_7_summaries_and_thresholds_by_hand() {
    let t = 5 * BLOCK + 3;
    // keys of block b are b in channel 0; every query is 1 there; values are 1
    let k =
        Rows { d: 128, v: (0..t * 128).map(|i| if i % 128 == 0 { (i / 128 / BLOCK) as f32 } else { 0.0 }).collect() };
    let q = Rows { d: 128, v: (0..t * 128).map(|i| if i % 128 == 0 { 1.0 } else { 0.0 }).collect() };
    let v = Rows { d: 128, v: vec![1.0; t * 128] };
    let all = Summary::of(&q, &k, &v);
    assert_eq!(all.kc.iter().map(|k| k[0]).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    // sums of values, not means
    assert_eq!(all.vc.iter().map(|v| v[7]).collect::<Vec<_>>(), [64.0, 64.0, 64.0, 64.0, 64.0, 3.0]);
    assert!(all.qm.iter().all(|q| q[0] == 1.0 && q[1] == 0.0));
    // mean and variance of 0 to 5
    assert_eq!((all.mu[0], all.mu[1]), (2.5, 0.0));
    assert!((all.var[0] - 35.0 / 12.0).abs() < 1e-5 && all.var[1] == 0.0);
    let c = 0.5 * std::f32::consts::LOG2_E;
    for tau in [0.0f32, 1.0, -2.0] {
        let want = 2.5 * c + tau * (35.0f32 / 12.0 * c * c + 1e-6).sqrt();
        assert!((all.threshold(2, 0.5, tau) - want).abs() < 1e-5);
    }
    assert!((all.score(1, 4, 0.5) - 4.0 * c).abs() < 1e-6);
    // above the mean: 3, 4, 5; one deviation above, 2.5 + 1.71: 5; and neighbours
    assert_eq!(all.exact(0, 0.5, 0.0), [true, true, false, true, true, true]);
    assert_eq!(all.exact(0, 0.5, 1.0), [true, true, false, false, false, true]);
    assert_eq!(all.exact(2, 0.5, 1e6), [false, true, true, true, false, false]);
    // a score that is just the threshold is not above it
    let flat = Rows { d: 128, v: vec![0.0; t * 128] };
    let none = Summary::of(&flat, &flat, &v);
    assert_eq!(none.threshold(0, 0.5, 0.0), 0.0);
    assert_eq!(none.exact(0, 0.5, 0.0), [true, true, false, false, false, false]);
    // without a deviation there is still 1e-6 below the root
    assert!((none.threshold(0, 0.5, 1.0) - 1e-3).abs() < 1e-9);
    // weights of summaries count their tokens: values of 1 give 1
    for tau in [0.0, 1e6] {
        assert!(sol(&q, &k, &v, 0.5, tau).v.iter().all(|&x| (x - 1.0).abs() < 0.01));
    }
}

#[test]
fn sd_7_heads_are_apart_and_outputs_are_by_token() {
    let mut rng = Rng(13);
    let mut make = || Heads::random(&mut rng, 128, 70, 2, 2, 1.0);
    let (q, k, v) = (make(), make(), make());
    let out = each_head(&q, &k, &v, |q, k, v| sol(q, k, v, 0.1, 1.0));
    for (b, h, t) in [(0, 0, 3), (0, 1, 69), (1, 0, 0), (1, 1, 40)] {
        let one = sol(&q.rows[b * 2 + h], &k.rows[b * 2 + h], &v.rows[b * 2 + h], 0.1, 1.0);
        assert_eq!(&out[((b * 70 + t) * 2 + h) * 128..][..128], one.row(t), "batch {b}, head {h}, token {t}");
    }
}
