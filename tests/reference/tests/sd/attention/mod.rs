//! SD-6 and SD-7, `sd.sage_attn.v1` and `sd.sol_attn.v1`: their mathematics, slow and plain, step by step as the specification has them,
//! for kernels of devices to be held against. The CPU has none. What is checked here: that they are attention, within stated bounds of
//! the exact one, and each step by itself where it can be seen.

mod sage;
mod sol;

use reference::values::Rng;

/// One head: rows of `d` channels, one for each token.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Channels.
    pub d: usize,
    /// Elements, channels fastest.
    pub v: Vec<f32>,
}

impl Rows {
    fn random(rng: &mut Rng, d: usize, n: usize, size: f64) -> Rows {
        Rows { d, v: (0..d * n).map(|_| ((rng.unit() * 2.0 - 1.0) * size) as f32).collect() }
    }
    fn n(&self) -> usize {
        self.v.len() / self.d
    }
    fn row(&self, i: usize) -> &[f32] {
        &self.v[i * self.d..][..self.d]
    }
    fn map(&self, f: impl Fn(f32) -> f32) -> Rows {
        Rows { d: self.d, v: self.v.iter().map(|&x| f(x)).collect() }
    }
}

/// Heads of several batches: [D, L, H, B].
pub struct Heads {
    heads: usize,
    /// By batch, then head.
    rows: Vec<Rows>,
}

impl Heads {
    fn random(rng: &mut Rng, d: usize, n: usize, heads: usize, batches: usize, size: f64) -> Heads {
        Heads { heads, rows: (0..heads * batches).map(|_| Rows::random(rng, d, n, size)).collect() }
    }
}

/// Attention of all heads by `one`: [D, Hq, Lq, B]. Several heads of q share one of k and v.
pub fn each_head(q: &Heads, k: &Heads, v: &Heads, one: impl Fn(&Rows, &Rows, &Rows) -> Rows) -> Vec<f32> {
    let share = q.heads / k.heads;
    let mut out = Vec::new();
    for b in 0..q.rows.len() / q.heads {
        let heads: Vec<Rows> = (0..q.heads)
            .map(|h| {
                let kv = b * k.heads + h / share;
                one(&q.rows[b * q.heads + h], &k.rows[kv], &v.rows[kv])
            })
            .collect();
        for t in 0..heads[0].n() {
            heads.iter().for_each(|h| out.extend_from_slice(h.row(t)));
        }
    }
    out
}

/// Sum of products, F32, in order.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// To a format with `bits` bits behind the point, whose least normal number is 2^`least`; whole units, no largest number.
fn rounded(x: f32, bits: i32, least: i32) -> f32 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let x = f64::from(x);
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(least);
    let unit = 2f64.powi(exponent - bits);
    ((x / unit).round_ties_even() * unit) as f32
}

/// To F16 and back.
fn f16(x: f32) -> f32 {
    match rounded(x, 10, -14) {
        y if y.abs() > 65504.0 => f32::INFINITY.copysign(y),
        y => y,
    }
}

/// To BF16 and back.
fn bf16(x: f32) -> f32 {
    rounded(x, 7, -126)
}

/// To E4M3 and back; what is too large becomes 448.
fn e4m3(x: f32) -> f32 {
    rounded(x, 3, -6).clamp(-448.0, 448.0)
}

/// The byte of a number that E4M3 has.
fn e4m3_byte(x: f32) -> u8 {
    (0..=255u8).find(|&b| super::formulas::e4m3(b).to_bits() == x.to_bits()).expect("a number of E4M3")
}

/// Softmax attention in f64, without any rounding.
fn dense(q: &Rows, k: &Rows, v: &Rows, scale: f32) -> Rows {
    let exact = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
    let mut out = Vec::new();
    for i in 0..q.n() {
        let s: Vec<f64> = (0..k.n()).map(|j| f64::from(scale) * exact(q.row(i), k.row(j))).collect();
        let most = s.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
        let p: Vec<f64> = s.iter().map(|x| (x - most).exp()).collect();
        let sum: f64 = p.iter().sum();
        out.extend((0..v.d).map(|c| ((0..k.n()).map(|j| p[j] * f64::from(v.row(j)[c])).sum::<f64>() / sum) as f32));
    }
    Rows { d: v.d, v: out }
}

/// The normalised squared error.
fn error(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let (mut e, mut n) = (0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        e += (f64::from(a) - f64::from(b)).powi(2);
        n += f64::from(b).powi(2);
    }
    e / n
}

#[test]
fn sd_6_sd_7_formats_round_to_even() {
    for b in (0..=255u8).filter(|b| b & 127 != 127) {
        let x = super::formulas::e4m3(b);
        assert_eq!(e4m3(x).to_bits(), x.to_bits());
        assert_eq!(e4m3_byte(x), b);
    }
    let pairs = [(17.0, 16.0), (19.0, 20.0), (18.0, 18.0), (464.0, 448.0), (1e9, 448.0), (-500.0, -448.0)];
    for (x, y) in pairs.into_iter().chain([(2f32.powi(-10), 0.0), (3.0 * 2f32.powi(-10), 2f32.powi(-8))]) {
        assert_eq!(e4m3(x), y, "{x}");
    }
    assert_eq!((f16(2049.0), f16(2051.0), f16(65519.0), f16(65520.0)), (2048.0, 2052.0, 65504.0, f32::INFINITY));
    assert_eq!(f16(3.0 * 2f32.powi(-25)), 2f32.powi(-23));
    assert_eq!((bf16(257.0), bf16(259.0), bf16(1.0 + 2f32.powi(-8))), (256.0, 260.0, 1.0));
}
