//! SD-6 and SD-7, `sd.sage_attn.v1` and `sd.sol_attn.v1`: their mathematics, slow and plain, for kernels of devices to be held against.
//! The CPU has none. What is checked here is that they are attention: near the exact one, and exact where they say so.

use reference::values::Rng;

/// One head: rows of `d` channels.
#[derive(Clone)]
struct Rows {
    d: usize,
    v: Vec<f64>,
}

impl Rows {
    fn random(rng: &mut Rng, d: usize, n: usize, size: f64) -> Rows {
        Rows { d, v: (0..d * n).map(|_| f64::from(((rng.unit() * 2.0 - 1.0) * size) as f32)).collect() }
    }
    fn n(&self) -> usize {
        self.v.len() / self.d
    }
    fn row(&self, i: usize) -> &[f64] {
        &self.v[i * self.d..][..self.d]
    }
    fn map(&self, f: impl Fn(f64) -> f64) -> Rows {
        Rows { d: self.d, v: self.v.iter().map(|&x| f(x)).collect() }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// To the nearest whole number, halves to the even one.
fn even(x: f64) -> f64 {
    let r = x.round();
    if (x - x.trunc()).abs() == 0.5 {
        2.0 * (x / 2.0).round()
    } else {
        r
    }
}

/// To a format with `bits` bits behind the point, whose least normal number is 2^`least`.
fn rounded(x: f64, bits: i32, least: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.abs().log2().floor() as i32).max(least);
    let unit = 2f64.powi(exponent - bits);
    even(x / unit) * unit
}

fn f16(x: f64) -> f64 {
    rounded(x, 10, -14)
}

fn bf16(x: f64) -> f64 {
    rounded(x, 7, -126)
}

/// Softmax attention without any rounding.
fn plain(q: &Rows, k: &Rows, v: &Rows, scale: f64) -> Rows {
    let mut out = Vec::new();
    for i in 0..q.n() {
        let s: Vec<f64> = (0..k.n()).map(|j| scale * dot(q.row(i), k.row(j))).collect();
        let most = s.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
        let p: Vec<f64> = s.iter().map(|x| (x - most).exp()).collect();
        let sum: f64 = p.iter().sum();
        out.extend((0..v.d).map(|c| (0..k.n()).map(|j| p[j] * v.row(j)[c]).sum::<f64>() / sum));
    }
    Rows { d: v.d, v: out }
}

/// Blocks of `tokens` rows as whole numbers up to 127, and a scale for each row.
fn blocks(x: &Rows, tokens: usize) -> (Rows, Vec<f64>) {
    let (mut q, mut scales) = (Vec::new(), Vec::new());
    for block in x.v.chunks(tokens * x.d) {
        let most = block.iter().fold(1e-7f64, |m, x| m.max(x.abs()));
        q.extend(block.iter().map(|x| even(x * (127.0 / most))));
        scales.extend(vec![most / 127.0; block.len() / x.d]);
    }
    (Rows { d: x.d, v: q }, scales)
}

/// Sage, the way that needs no 8-bit floats: keys without their mean, queries in blocks of 32 and keys in blocks of 64 rounded to 8
/// bits, weights rounded to F16, softmax over blocks of 64 keys in turn.
fn sage(q: &Rows, k: &Rows, v: &Rows, scale: f64) -> Rows {
    let mean: Vec<f64> = (0..k.d).map(|c| (0..k.n()).map(|j| k.row(j)[c]).sum::<f64>() / k.n() as f64).collect();
    let centred = Rows { d: k.d, v: k.v.iter().enumerate().map(|(i, x)| x - mean[i % k.d]).collect() };
    let ((q, q_scale), (k, k_scale)) = (blocks(q, 32), blocks(&centred, 64));
    let v = v.map(f16);
    let factor = scale * std::f64::consts::LOG2_E;
    let mut out = Vec::new();
    for (i, q_scale) in q_scale.iter().enumerate() {
        let (mut most, mut sum, mut o) = (-5e6f64, 0.0, vec![0.0; v.d]);
        for first in (0..k.n()).step_by(64) {
            let keys = first..k.n().min(first + 64);
            let s: Vec<f64> = keys.clone().map(|j| factor * q_scale * k_scale[j] * dot(q.row(i), k.row(j))).collect();
            let new = s.iter().fold(most, |m, &x| m.max(x));
            let old = (most - new).exp2();
            sum *= old;
            o.iter_mut().for_each(|o| *o *= old);
            for (j, s) in keys.zip(&s) {
                let p = f16((s - new).exp2());
                sum += p;
                o.iter_mut().zip(v.row(j)).for_each(|(o, v)| *o += p * v);
            }
            most = new;
        }
        out.extend(o.iter().map(|o| f16(o / sum)));
    }
    Rows { d: v.d, v: out }
}

const BLOCK: usize = 64;

/// Sol: blocks of 64 keys are looked at one by one where their summary, or their place, says that it matters. Also how many were. Devices
/// round weights under the largest score so far, and here it is the largest of all.
fn sol(q: &Rows, k: &Rows, v: &Rows, scale: f64, tau: f64) -> (Rows, usize) {
    let (q, k, v) = (q.map(bf16), k.map(bf16), v.map(bf16));
    let (d, n) = (q.d, q.n());
    let c = scale * std::f64::consts::LOG2_E;
    let nb = n.div_ceil(BLOCK);
    let range = |b: usize| b * BLOCK..n.min((b + 1) * BLOCK);
    let sums = |x: &Rows, b: usize| -> Vec<f64> { (0..d).map(|i| range(b).map(|t| x.row(t)[i]).sum()).collect() };
    let count = |b: usize| range(b).len() as f64;
    let kc: Vec<Vec<f64>> = (0..nb).map(|b| sums(&k, b).iter().map(|x| bf16(x / count(b))).collect()).collect();
    let vc: Vec<Vec<f64>> = (0..nb).map(|b| sums(&v, b).iter().map(|x| bf16(*x)).collect()).collect();
    let mean = |f: &dyn Fn(f64) -> f64, i: usize| kc.iter().map(|k| f(k[i])).sum::<f64>() / nb as f64;
    let mu: Vec<f64> = (0..d).map(|i| mean(&|x| x, i)).collect();
    let var: Vec<f64> = (0..d).map(|i| (mean(&|x| x * x, i) - mu[i] * mu[i]).max(0.0)).collect();
    let (mut out, mut looked_at) = (Vec::new(), 0);
    for qb in 0..nb {
        let qm: Vec<f64> = sums(&q, qb).iter().map(|x| x / count(qb)).collect();
        let spread: f64 = (0..d).map(|i| qm[i] * qm[i] * var[i]).sum::<f64>() * c * c;
        let threshold = dot(&qm, &mu) * c + tau * (spread.max(0.0) + 1e-6).sqrt();
        let score = |b: usize| range(qb).map(|i| c * dot(q.row(i), &kc[b])).sum::<f64>() / count(qb);
        let exact: Vec<bool> = (0..nb).map(|b| b.abs_diff(qb) <= 1 || score(b) > threshold).collect();
        looked_at += exact.iter().filter(|&&e| e).count();
        for i in range(qb) {
            // a score, how often it counts, what it weighs
            let mut terms: Vec<(f64, f64, &[f64])> = Vec::new();
            for b in (0..nb).filter(|&b| !exact[b]) {
                terms.push((c * dot(q.row(i), &kc[b]), count(b), &vc[b]));
            }
            for b in (0..nb).filter(|&b| exact[b]) {
                terms.extend(range(b).map(|t| (c * dot(q.row(i), k.row(t)), 1.0, v.row(t))));
            }
            let most = terms.iter().fold(f64::NEG_INFINITY, |m, t| m.max(t.0));
            let (mut sum, mut o) = (0.0, vec![0.0; d]);
            for (s, n, v) in &terms {
                let p = (s - most).exp2();
                sum += n * p;
                o.iter_mut().zip(*v).for_each(|(o, v)| *o += bf16(p) * v);
            }
            out.extend(o.iter().map(|o| bf16(o / sum)));
        }
    }
    (Rows { d, v: out }, looked_at)
}

/// The normalised squared error.
fn error(a: &Rows, b: &Rows) -> f64 {
    let (mut e, mut n) = (0.0, 0.0);
    for (a, b) in a.v.iter().zip(&b.v) {
        e += (a - b).powi(2);
        n += b * b;
    }
    e / n
}

#[test]
fn sd_6_sage_is_attention_within_8_bits() {
    for (d, lq, lk) in [(64, 33, 130), (128, 40, 64), (64, 1, 1), (128, 65, 200)] {
        let mut rng = Rng(d as u64 + lk as u64);
        let (q, k) = (Rows::random(&mut rng, d, lq, 2.0), Rows::random(&mut rng, d, lk, 2.0));
        let v = Rows::random(&mut rng, d, lk, 1.0);
        let scale = 1.0 / (d as f64).sqrt();
        let want = plain(&q, &k, &v, scale);
        let e = error(&sage(&q, &k, &v, scale), &want);
        assert!(e < 2e-3, "{d} channels, {lq} queries, {lk} keys: {e:e}");
        // what all keys have in common changes no weight, and costs no precision
        let moved = k.map(|x| x + 50.0);
        let e = error(&sage(&q, &moved, &v, scale), &want);
        assert!(e < 2e-3, "moved keys: {e:e}");
    }
}

#[test]
fn sd_7_sol_is_exact_nearby_and_by_its_threshold() {
    let mut rng = Rng(7);
    let t = 300;
    let (q, k) = (Rows::random(&mut rng, 128, t, 1.0), Rows::random(&mut rng, 128, t, 1.0));
    let v = Rows::random(&mut rng, 128, t, 1.0);
    let scale = 1.0 / 128f64.sqrt();
    let want = plain(&q.map(bf16), &k.map(bf16), &v.map(bf16), scale);
    let nb = t.div_ceil(BLOCK);
    let all = sol(&q, &k, &v, scale, -1e6);
    assert_eq!(all.1, nb * nb);
    assert!(error(&all.0, &want) < 5e-5, "{:e}", error(&all.0, &want));
    let counts: Vec<usize> = [-1e6, -1.0, 0.0, 1.0, 1e6].iter().map(|&tau| sol(&q, &k, &v, scale, tau).1).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    // the block itself and its neighbours are always looked at
    assert_eq!(counts[4], 3 * nb - 2);
    assert!(error(&sol(&q, &k, &v, scale, 1e6).0, &want) < 0.5);
    // two blocks are neighbours
    let short = |x: &Rows| Rows { d: 128, v: x.v[..128 * 100].to_vec() };
    let (q, k, v) = (short(&q), short(&k), short(&v));
    let e = error(&sol(&q, &k, &v, scale, 1e6).0, &plain(&q.map(bf16), &k.map(bf16), &v.map(bf16), scale));
    assert!(e < 5e-5, "{e:e}");
}
