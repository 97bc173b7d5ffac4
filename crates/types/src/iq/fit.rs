//! The search of iq2 and iq3: a scale and grid points for a group of non-negative values, best under given weights. Each
//! sum runs in element order with one rounding for each operation, as in `search`; the trial scales lie side by side.

use super::lattice::Lattice;

/// Trial scales: 1 / scale = (top + step * s) / max for s in -each ..= each; digits are 0 ..= (top - 1) / 2.
#[derive(Clone, Copy)]
pub(super) struct Trials {
    pub top: f32,
    pub step: f32,
    pub each: i32,
}

/// Which groups of D are set again for the scale that was found.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Again {
    /// Those whose best code is off the grid.
    OffGrid,
    /// All, if the best code of any is off the grid, or no trial was accepted.
    AllIfOffGrid,
    All,
}

/// A scale, which may be negative, and the grid index of each group.
pub(super) struct Fit<const G: usize> {
    pub scale: f32,
    pub index: [u16; G],
}

/// The digit nearest to what stands for x: value 2 digit + 1.
#[inline(always)]
fn digit(v: f32, top: f32) -> f32 {
    // Clamped first, so that adding 1.5 * 2^23 rounds to the nearest integer, ties to even. NaN gives 0.
    const GRID: f32 = 12_582_912.0;
    let max = (top - 1.0) * 0.5;
    let v = if v > 0.0 { v } else { 0.0 };
    let v = if v < max { v } else { max };
    (v + GRID) - GRID
}

/// `N` values in `G` groups of `D`; `T` lanes are at least the number of trials. `max` is what the trials divide by and
/// `start` the scale if no trial is accepted.
#[inline(always)]
pub(super) fn fit<const N: usize, const G: usize, const D: usize, const T: usize>(
    lattice: &Lattice<D>,
    trials: Trials,
    again: Again,
    x: &[f32; N],
    w: &[f32; N],
    max: f32,
    start: f32,
) -> Fit<G> {
    let root = w.map(f32::sqrt);
    let (xs, roots) = (x.as_chunks::<D>().0, root.as_chunks::<D>().0);
    let top = trials.top;
    let base = (top + 1.0) * 0.5;
    let count = 2 * trials.each as usize + 1;
    let inverse: [f32; T] = std::array::from_fn(|t| (top + (t as i32 - trials.each) as f32 * trials.step) / max);
    let scales = inverse.map(|v| 1.0 / v);
    // Values 2 digit + 1 of each element at each trial.
    let mut q = [[0.0f32; T]; N];
    let mut index = [[0u16; T]; G];
    let mut off = [[false; T]; G];
    for g in 0..G {
        let mut code = [0.0f32; T];
        let mut place = 1.0;
        for i in D * g..D * g + D {
            for t in 0..T {
                let l = digit(0.5 * (inverse[t] * x[i] - 1.0), top);
                q[i][t] = 2.0 * l + 1.0;
                code[t] += l * place;
            }
            place *= base;
        }
        for t in 0..count {
            let code = code[t] as usize;
            index[g][t] = match lattice.find(code) {
                Some(found) => found,
                None => {
                    let found = lattice.nearest(code, &xs[g], &roots[g], scales[t], |l| 2.0 * l + 1.0);
                    for (i, l) in lattice.point(found).into_iter().enumerate() {
                        q[D * g + i][t] = 2.0 * l as f32 + 1.0;
                    }
                    off[g][t] = true;
                    found
                }
            };
        }
    }
    let (mut sum_qx, mut sum_q2) = ([0.0f32; T], [0.0f32; T]);
    for i in 0..N {
        let wx = w[i] * x[i];
        for t in 0..T {
            sum_qx[t] += wx * q[i][t];
            sum_q2[t] += w[i] * q[i][t] * q[i][t];
        }
    }
    let (mut best, mut scale, mut chosen) = (0.0, start, None);
    for t in 0..count {
        if sum_q2[t] > 0.0 && sum_qx[t] * sum_qx[t] > best * sum_q2[t] {
            scale = sum_qx[t] / sum_q2[t];
            best = scale * sum_qx[t];
            chosen = Some(t);
        }
    }
    let mut out = chosen.map_or([0; G], |t| index.map(|i| i[t]));
    let open: [bool; G] = chosen.map_or([false; G], |t| off.map(|o| o[t]));
    let any = open.contains(&true);
    let redo = match again {
        Again::OffGrid => open,
        Again::AllIfOffGrid => [any || chosen.is_none(); G],
        Again::All => [true; G],
    };
    if scale > 0.0 && redo.contains(&true) {
        let id = 1.0 / scale;
        for g in (0..G).filter(|&g| redo[g]) {
            let code = lattice.code(&xs[g].map(|v| digit(0.5 * (id * v - 1.0), top) as u8));
            out[g] = lattice.nearest(code, &xs[g], &roots[g], scale, |l| 2.0 * l + 1.0);
        }
        let (mut sum_qx, mut sum_q2) = (0.0f32, 0.0f32);
        for g in 0..G {
            for (i, l) in lattice.point(out[g]).into_iter().enumerate() {
                let (w, q) = (w[D * g + i], 2.0 * l as f32 + 1.0);
                sum_qx += w * x[D * g + i] * q;
                sum_q2 += w * q * q;
            }
        }
        if sum_q2 > 0.0 {
            scale = sum_qx / sum_q2;
        }
    }
    // Sums of extreme weights overflow.
    Fit { scale: if scale.is_finite() { scale } else { start }, index: out }
}

/// Magnitudes and the signs of each eight as bits.
#[inline(always)]
pub(super) fn split<const N: usize, const S: usize>(x: &[f32; N]) -> ([f32; N], [u8; S]) {
    let mut signs = [0u8; S];
    for (i, v) in x.iter().enumerate() {
        signs[i / 8] |= (*v < 0.0) as u8 * (1 << (i % 8));
    }
    (x.map(|v| if v >= 0.0 { v } else { -v }), signs)
}

/// As `split`, with an even number of signs in each eight: where it is odd, the element of least weight times square
/// keeps the wrong sign. The eighth sign follows from the others and is left out.
#[inline(always)]
pub(super) fn split_even<const N: usize, const S: usize>(x: &[f32; N], w: &[f32; N]) -> ([f32; N], [u8; S]) {
    let (mut a, mut signs) = split::<N, S>(x);
    for (k, s) in signs.iter_mut().enumerate() {
        if s.count_ones() % 2 == 1 {
            let cost = |i: usize| w[8 * k + i] * x[8 * k + i] * x[8 * k + i];
            let (mut least, mut at) = (cost(0), 0);
            for i in 1..8 {
                if cost(i) < least {
                    (least, at) = (cost(i), i);
                }
            }
            a[8 * k + at] = -a[8 * k + at];
            *s ^= 1 << at;
        }
        *s &= 127;
    }
    (a, signs)
}

/// The largest value.
#[inline(always)]
pub(super) fn largest(x: &[f32]) -> f32 {
    x.iter().fold(x[0], |m, &v| if m > v { m } else { v })
}

/// Scale codes l with scale ~ d (2 l + 1), and d: the largest scale becomes `2 * max + 1` steps.
#[inline(always)]
pub(super) fn odd_steps<const G: usize>(scales: &[f32; G], max: f32) -> Option<([u8; G], f32)> {
    let most = largest(scales);
    if most == 0.0 {
        return None;
    }
    let d = most / (2.0 * max + 1.0);
    let id = 1.0 / d;
    Some((scales.map(|s| digit(0.5 * (id * s - 1.0), 2.0 * max + 1.0) as u8), d))
}
