//! f32 to iq1 blocks. With three values there are few ways to split a sorted group into runs of low, middle and high:
//! all are tried, under both shifts. Sums run in a fixed order, one rounding for each operation.

use super::encode::each_block;
use super::fit::odd_steps;
use super::lattice::{self, Lattice};
use crate::block::{blocks_mut, BlockIQ1M, BlockIQ1S};
use crate::clean::{bounded, magnitude, or_zero, SEARCH_MAX};
use crate::float::scale_f16;
use crate::search::{encoders, energy, weights};

/// What the values are shifted by, up for `false`.
#[inline(always)]
fn shift(down: bool) -> f32 {
    if down {
        -0.125
    } else {
        0.125
    }
}

/// The three values under a shift.
#[inline(always)]
fn levels(down: bool) -> [f32; 3] {
    [-1.0 + shift(down), shift(down), 1.0 + shift(down)]
}

/// The order of the values, ascending; equal ones keep theirs.
#[inline(always)]
fn order<const N: usize>(x: &[f32; N]) -> [u8; N] {
    let mut idx: [u8; N] = std::array::from_fn(|i| i as u8);
    for i in 1..N {
        let (at, mut j) = (idx[i], i);
        while j > 0 && x[idx[j - 1] as usize] > x[at as usize] {
            idx[j] = idx[j - 1];
            j -= 1;
        }
        idx[j] = at;
    }
    idx
}

/// The best split found: the first `low` of the sorted values are low, those from `high` on are high.
#[derive(Clone, Copy)]
struct Split {
    score: f32,
    scale: f32,
    low: usize,
    high: usize,
    /// Which shift, or pair of shifts.
    kind: usize,
}

impl Split {
    const NONE: Split = Split { score: -f32::MAX, scale: 0.0, low: 0, high: 0, kind: usize::MAX };

    /// Takes over any of eight splits, their kinds in turn, that is better than the best so far.
    #[inline(always)]
    fn offer<const K: usize>(&mut self, qx: &[[f32; 8]; K], q2: &[[f32; 8]; K], low: usize, first: usize, end: usize) {
        let mut any = false;
        for k in 0..K {
            for l in 0..8 {
                any |= (q2[k][l] > 0.0) & (qx[k][l] * qx[k][l] > self.score * q2[k][l]);
            }
        }
        if !any {
            return;
        }
        for l in 0..8.min(end - first) {
            for k in 0..K {
                let (qx, q2) = (qx[k][l], q2[k][l]);
                if q2 > 0.0 && qx * qx > self.score * q2 {
                    let scale = qx / q2;
                    *self = Split { score: scale * qx, scale, low, high: first + l, kind: k };
                }
            }
        }
    }

    /// The digits of each element, and the scale made positive: turning it turns the digits and the shifts too.
    #[inline(always)]
    fn digits<const N: usize>(&mut self, idx: &[u8; N], kinds: usize) -> [u8; N] {
        let mut digits = [0u8; N];
        for (j, &i) in idx.iter().enumerate() {
            digits[i as usize] = (j >= self.low) as u8 + (j >= self.high) as u8;
        }
        if self.scale < 0.0 {
            self.scale = -self.scale;
            self.kind = kinds - 1 - self.kind;
            return digits.map(|d| 2 - d);
        }
        digits
    }
}

/// Grid points for the digits of each eight, and whether all of them were on the grid.
#[inline(always)]
fn points<const N: usize, const G: usize>(
    lattice: &Lattice<8>,
    digits: &[u8; N],
    x: &[f32; N],
    w: &[f32; N],
    scale: f32,
    down: [bool; G],
) -> ([u16; G], bool) {
    let mut on = true;
    let (xs, ws, digits) = (x.as_chunks::<8>().0, w.as_chunks::<8>().0, digits.as_chunks::<8>().0);
    let index = std::array::from_fn(|k| {
        let code = lattice.code(&digits[k]);
        lattice.find(code).unwrap_or_else(|| {
            on = false;
            lattice.nearest(code, &xs[k], &ws[k], scale, |l| (l - 1.0) + shift(down[k]))
        })
    });
    (index, on)
}

/// Adds w q x and w q q over eight elements, q a value of the point times `factor`.
#[inline(always)]
fn project(sums: &mut (f32, f32), point: [u8; 8], down: bool, factor: f32, x: &[f32], w: &[f32]) {
    let values = levels(down);
    for j in 0..8 {
        let q = values[point[j] as usize] * factor;
        sums.0 += w[j] * q * x[j];
        sums.1 += w[j] * q * q;
    }
}

/// The scale fitted to the chosen points, if that is positive.
#[inline(always)]
fn refit<const G: usize>(lattice: &Lattice<8>, index: [u16; G], down: [bool; G], x: &[f32], w: &[f32]) -> Option<f32> {
    let mut sums = (0.0, 0.0);
    for k in 0..G {
        project(&mut sums, lattice.point(index[k]), down[k], 1.0, &x[8 * k..8 * k + 8], &w[8 * k..8 * k + 8]);
    }
    (sums.0 > 0.0 && sums.1 > 0.0).then(|| sums.0 / sums.1)
}

/// Splits of 32 values with one shift.
#[inline(always)]
fn split32(x: &[f32; 32], w: &[f32; 32], idx: &[u8; 32]) -> Split {
    // Running sums; behind the end the last repeats, and what the lanes there find is not looked at.
    let (mut sx, mut sw) = ([0.0f32; 40], [0.0f32; 40]);
    for j in 0..39 {
        let add = idx.get(j).map_or((0.0, 0.0), |&i| (w[i as usize] * x[i as usize], w[i as usize]));
        (sx[j + 1], sw[j + 1]) = (sx[j] + add.0, sw[j] + add.1);
    }
    let (all_x, all_w) = (sx[32], sw[32]);
    let mut best = Split::NONE;
    for low in 0..=32 {
        let mut first = low;
        while first <= 32 {
            let (mut qx, mut q2) = ([[0.0; 8]; 2], [[0.0; 8]; 2]);
            for k in 0..2 {
                let v = levels(k == 1);
                for l in 0..8 {
                    // The last lanes of the last run would lie outside.
                    let (ex, ew) = (sx[(first + l).min(39)], sw[(first + l).min(39)]);
                    qx[k][l] = sx[low] * v[0] + (ex - sx[low]) * v[1] + (all_x - ex) * v[2];
                    q2[k][l] = sw[low] * v[0] * v[0] + (ew - sw[low]) * v[1] * v[1] + (all_w - ew) * v[2] * v[2];
                }
            }
            best.offer(&qx, &q2, low, first, 33);
            first += 8;
        }
    }
    best
}

#[inline(always)]
pub(crate) fn encode_iq1_s_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (lattice, importance) = (lattice::iq1(), Some(imatrix));
    each_block!(src, dst: BlockIQ1S, importance, |x, qw, b| {
        *b = BlockIQ1S { d: [0; 2], qs: [0; 32], qh: [0; 16] };
        let Some(qw) = qw else { continue };
        let sigma2 = 2.0 * energy(x) / 256.0;
        let (mut scales, mut words) = ([0.0f32; 8], [0u16; 8]);
        for (j, (x, qw)) in x.as_chunks::<32>().0.iter().zip(qw.as_chunks::<32>().0).enumerate() {
            let w = weights(x, qw, sigma2);
            if magnitude(x) < 1e-12 {
                continue;
            }
            let idx = order(x);
            let mut best = split32(x, &w, &idx);
            if best.kind == usize::MAX {
                continue;
            }
            let digits = best.digits(&idx, 2);
            let down = [best.kind == 1; 4];
            let (index, on) = points(lattice, &digits, x, &w, best.scale, down);
            let fitted = if on { None } else { refit(lattice, index, down, x, &w) };
            scales[j] = or_zero(fitted.unwrap_or(best.scale));
            for k in 0..4 {
                b.qs[4 * j + k] = index[k] as u8;
                words[j] |= (index[k] >> 8) << (3 * k);
            }
            words[j] |= (best.kind as u16) << 15;
        }
        let steps = odd_steps(&scales, 7.0);
        for j in 0..8 {
            // The shift belongs to the scale: a block without scales has neither.
            let word = match steps {
                Some((steps, _)) => words[j] | (steps[j] as u16) << 12,
                None => words[j] & 0x7fff,
            };
            b.qh[2 * j..2 * j + 2].copy_from_slice(&word.to_ne_bytes());
        }
        if let Some((_, d)) = steps {
            b.d = scale_f16(d * 1.125);
        }
    });
}

/// Splits of 16 values with a shift for each half; kinds are up-up, up-down, down-up, down-down.
#[inline(always)]
fn split16(x: &[f32; 16], w: &[f32; 16], idx: &[u8; 16]) -> Split {
    let (mut sx, mut sw) = ([[0.0f32; 24]; 2], [[0.0f32; 24]; 2]);
    for j in 0..23 {
        for h in 0..2 {
            let add = match idx.get(j) {
                Some(&i) if (i >= 8) == (h == 1) => (w[i as usize] * x[i as usize], w[i as usize]),
                _ => (0.0, 0.0),
            };
            (sx[h][j + 1], sw[h][j + 1]) = (sx[h][j] + add.0, sw[h][j] + add.1);
        }
    }
    let (all_x, all_w) = ([sx[0][16], sx[1][16]], [sw[0][16], sw[1][16]]);
    let mut best = Split::NONE;
    for low in 0..=16 {
        let mut first = low;
        while first <= 16 {
            // Sums of each half under each shift.
            let (mut hx, mut h2) = ([[[0.0f32; 8]; 2]; 2], [[[0.0f32; 8]; 2]; 2]);
            for h in 0..2 {
                for s in 0..2 {
                    let v = levels(s == 1);
                    let (c1, c2) = (v[0] * v[0] - v[1] * v[1], v[1] * v[1] - v[2] * v[2]);
                    for l in 0..8 {
                        let at = (first + l).min(23);
                        hx[h][s][l] = all_x[h] * v[2] - (sx[h][low] + sx[h][at]);
                        h2[h][s][l] = all_w[h] * v[2] * v[2] + sw[h][low] * c1 + sw[h][at] * c2;
                    }
                }
            }
            let (mut qx, mut q2) = ([[0.0; 8]; 4], [[0.0; 8]; 4]);
            for k in 0..4 {
                for l in 0..8 {
                    qx[k][l] = hx[0][k / 2][l] + hx[1][k % 2][l];
                    q2[k][l] = h2[0][k / 2][l] + h2[1][k % 2][l];
                }
            }
            best.offer(&qx, &q2, low, first, 17);
            first += 8;
        }
    }
    best
}

encoders!(iq1_m = super::search_iq1_m);

#[inline(always)]
pub(crate) fn search_iq1_m(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    let lattice = lattice::iq1();
    each_block!(src, dst: BlockIQ1M, importance, |x, qw, b| {
        *b = BlockIQ1M { qs: [0; 32], qh: [0; 16], scales: [0; 8] };
        let sigma2 = 2.0 * energy(x) / 256.0;
        let mut w = x.map(|v| v * v);
        if let Some(qw) = qw {
            w = weights(x, qw, sigma2);
        }
        let (ws, xs) = (w.as_chunks::<16>().0, x.as_chunks::<16>().0);
        let (mut scales, mut index, mut kinds) = ([0.0f32; 16], [[0u16; 2]; 16], [0usize; 16]);
        for g in 0..16 {
            let (x, w) = (&xs[g], &ws[g]);
            if magnitude(x) < 1e-7 {
                continue;
            }
            let idx = order(x);
            let mut best = split16(x, w, &idx);
            if best.kind == usize::MAX {
                continue;
            }
            let digits = best.digits(&idx, 4);
            let down = [best.kind >= 2, best.kind % 2 == 1];
            let on;
            (index[g], on) = points(lattice, &digits, x, w, best.scale, down);
            let fitted = if on { None } else { refit(lattice, index[g], down, x, w) };
            (scales[g], kinds[g]) = (or_zero(fitted.unwrap_or(best.scale)), best.kind);
        }
        for g in 0..16 {
            b.qs[2 * g] = index[g][0] as u8;
            b.qs[2 * g + 1] = index[g][1] as u8;
            b.qh[g] = (index[g][0] >> 8 | index[g][1] >> 8 << 4) as u8;
        }
        let Some((steps, mut d)) = odd_steps(&scales, 7.0) else { continue };
        let (mut sums, mut words) = ((0.0f32, 0.0f32), [0u16; 4]);
        for g in 0..16 {
            words[g / 4] |= (steps[g] as u16) << (3 * (g % 4));
            let down = [kinds[g] >= 2, kinds[g] % 2 == 1];
            b.qh[g] |= (down[0] as u8) << 3 | (down[1] as u8) << 7;
            let factor = (2 * steps[g] + 1) as f32;
            for k in 0..2 {
                let at = 8 * k..8 * k + 8;
                project(&mut sums, lattice.point(index[g][k]), down[k], factor, &xs[g][at.clone()], &ws[g][at]);
            }
        }
        let fitted = sums.0 / sums.1;
        if sums.1 > 0.0 && fitted.is_finite() {
            d = fitted;
        }
        let d = u16::from_ne_bytes(scale_f16(d * 1.1125));
        for (j, s) in b.scales.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *s = (words[j] | (d >> (4 * j) & 15) << 12).to_ne_bytes();
        }
    });
}
