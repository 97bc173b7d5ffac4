//! f32 to iq2 and iq3 blocks.

use super::fit::{fit, largest, odd_steps, split, split_even, Again, Trials};
use super::lattice;
use crate::block::{blocks_mut, BlockIQ2S, BlockIQ2XS, BlockIQ2XXS, BlockIQ3S, BlockIQ3XXS};
use crate::clean::{bounded, nearest_int, or_zero, SEARCH_MAX};
use crate::float::scale_f16;
use crate::search::{encoders, energy, weights};

/// Calls `$body` for each block with its values held to the search's range, and its importance weights if there are any.
macro_rules! each_block {
    ($src:ident, $dst:ident: $block:ident, $importance:ident, |$x:ident, $qw:ident, $b:ident| $body:block) => {
        for (i, ($x, $b)) in $src.as_chunks::<256>().0.iter().zip(blocks_mut::<$block>($dst)).enumerate() {
            let mut buf = [0.0; 256];
            let $x = bounded($x, &mut buf, SEARCH_MAX);
            let $qw = $importance.and_then(|w: &[f32]| w.as_chunks::<256>().0.get(i));
            $body
        }
    };
}
pub(super) use each_block;

/// A scale for non-negative x ~ scale * l, l in 0 ..= 4, that iq2_xxs starts from. As `search::qp`, but values of the wrong
/// sign occur: codes are kept in a byte and compared and subtracted as such, so such a value counts as a large code where
/// its own is taken back.
#[inline(always)]
fn first_scale(x: &[f32; 32], w: &[f32; 32]) -> f32 {
    let max = x.iter().fold(0.0f32, |m, &v| if m > v { m } else { v });
    let mut chosen = 4.0 / max;
    let mut best = 0.0f32;
    for i in 0..32 {
        let diff = x[i] - 1.0 / chosen * (nearest_int(chosen * x[i]) as u8) as f32;
        best += w[i] * diff * diff;
    }
    let steps = [-4, -3, -2, -1, 1, 2, 3, 4];
    let inverse = steps.map(|s| (0.1f32 * s as f32 + 4.0) / max);
    let mut error = [0.0f32; 8];
    for i in 0..32 {
        for t in 0..8 {
            let diff = x[i] - 1.0 / inverse[t] * nearest_int(inverse[t] * x[i]).min(4) as f32;
            error[t] += w[i] * diff * diff;
        }
    }
    for t in 0..8 {
        if error[t] < best {
            (best, chosen) = (error[t], inverse[t]);
        }
    }
    let mut codes = [0u8; 32];
    let (mut lx, mut l2) = (0.0f32, 0.0f32);
    for i in 0..32 {
        let l = nearest_int(chosen * x[i]).min(4);
        codes[i] = l as u8;
        lx += w[i] * x[i] * l as f32;
        l2 += w[i] * l as f32 * l as f32;
    }
    for _ in 0..5 {
        let mut changed = false;
        for i in 0..32 {
            let f = codes[i] as f32;
            let mut slx = lx - w[i] * x[i] * f;
            let mut sl2 = l2 - w[i] * f * f;
            if slx > 0.0 && sl2 > 0.0 {
                let new = nearest_int(x[i] * sl2 / slx).min(4);
                if new != codes[i] as i32 {
                    let f = new as f32;
                    slx += w[i] * x[i] * f;
                    sl2 += w[i] * f * f;
                    if slx * slx * l2 > lx * lx * sl2 {
                        (codes[i], lx, l2) = (new as u8, slx, sl2);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    or_zero(if l2 > 0.0 { lx / l2 } else { 0.0 })
}

#[inline(always)]
pub(crate) fn encode_iq2_xxs_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (lattice, importance) = (lattice::iq2_xxs(), Some(imatrix));
    each_block!(src, dst: BlockIQ2XXS, importance, |x, qw, b| {
        *b = BlockIQ2XXS { d: [0; 2], qs: [0; 64] };
        let Some(qw) = qw else { continue };
        let sigma2 = energy(x) / 256.0;
        let (mut scales, mut points, mut words) = ([0.0f32; 8], [[0u8; 4]; 8], [0u32; 8]);
        for (j, (x, qw)) in x.as_chunks::<32>().0.iter().zip(qw.as_chunks::<32>().0).enumerate() {
            let w = weights(x, qw, sigma2);
            let (a, mut signs) = split_even::<32, 4>(x, &w);
            if largest(&a) < 1e-15 {
                continue;
            }
            let start = first_scale(&a, &w);
            let reach = start * 3.0;
            if reach <= 0.0 {
                continue;
            }
            const TRIALS: Trials = Trials { top: 5.0, step: 0.1, each: 6 };
            let f = fit::<32, 4, 8, 16>(lattice, TRIALS, Again::All, &a, &w, reach, start);
            if f.scale < 0.0 {
                signs = signs.map(|s| !s & 127);
            }
            scales[j] = f.scale.abs();
            points[j] = f.index.map(|i| i as u8);
            words[j] = (0..4).fold(0, |v, k| v | (signs[k] as u32) << (7 * k));
        }
        let Some((steps, d)) = odd_steps(&scales, 15.0) else { continue };
        b.d = scale_f16(d);
        for (j, q) in b.qs.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            q[..4].copy_from_slice(&points[j]);
            q[4..].copy_from_slice(&(words[j] | (steps[j] as u32) << 28).to_ne_bytes());
        }
    });
}

/// Two 4-bit scales in each byte.
#[inline(always)]
fn nibbles<const H: usize>(steps: &[u8]) -> [u8; H] {
    std::array::from_fn(|j| steps[2 * j] | steps[2 * j + 1] << 4)
}

const TRIALS2: Trials = Trials { top: 5.0, step: 0.1, each: 9 };

#[inline(always)]
pub(crate) fn encode_iq2_xs_weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
    let (lattice, importance) = (lattice::iq2_xs(), Some(imatrix));
    each_block!(src, dst: BlockIQ2XS, importance, |x, qw, b| {
        *b = BlockIQ2XS { d: [0; 2], qs: [0; 64], scales: [0; 8] };
        let Some(qw) = qw else { continue };
        let sigma2 = energy(x) / 256.0;
        let (mut scales, mut words) = ([0.0f32; 16], [[0u16; 2]; 16]);
        for (g, (x, qw)) in x.as_chunks::<16>().0.iter().zip(qw.as_chunks::<16>().0).enumerate() {
            let w = weights(x, qw, sigma2);
            let (a, mut signs) = split_even::<16, 2>(x, &w);
            let max = largest(&a);
            if max < 1e-15 {
                continue;
            }
            let f = fit::<16, 2, 8, 24>(lattice, TRIALS2, Again::OffGrid, &a, &w, max, max / 5.0);
            if f.scale < 0.0 {
                signs = signs.map(|s| !s & 127);
            }
            scales[g] = f.scale.abs();
            words[g] = std::array::from_fn(|k| f.index[k] | (signs[k] as u16) << 9);
        }
        let Some((steps, d)) = odd_steps(&scales, 15.0) else { continue };
        b.d = scale_f16(d);
        b.scales = nibbles(&steps);
        for (q, w) in b.qs.as_chunks_mut::<2>().0.iter_mut().zip(words.as_flattened()) {
            *q = w.to_ne_bytes();
        }
    });
}

encoders!(iq2_s = super::search_iq2_s);

#[inline(always)]
pub(crate) fn search_iq2_s(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    let lattice = lattice::iq2_s();
    each_block!(src, dst: BlockIQ2S, importance, |x, qw, b| {
        *b = BlockIQ2S { d: [0; 2], qs: [0; 32], signs: [0; 32], qh: [0; 8], scales: [0; 8] };
        let sigma2 = 2.0 * energy(x) / 256.0;
        let mut scales = [0.0f32; 16];
        for (g, x) in x.as_chunks::<16>().0.iter().enumerate() {
            let w = match qw {
                Some(qw) => weights(x, &qw.as_chunks::<16>().0[g], sigma2),
                None => x.map(|v| 0.25 * sigma2 + v * v),
            };
            let (a, mut signs) = split::<16, 2>(x);
            let max = largest(&a);
            if max < 1e-8 {
                continue;
            }
            let f = fit::<16, 2, 8, 24>(lattice, TRIALS2, Again::OffGrid, &a, &w, max, max / 5.0);
            if f.scale < 0.0 {
                signs = signs.map(|s| !s);
            }
            scales[g] = f.scale.abs();
            for k in 0..2 {
                let at = 2 * g + k;
                b.qs[at] = f.index[k] as u8;
                b.qh[at / 4] |= ((f.index[k] >> 8) << (2 * (at % 4))) as u8;
                b.signs[at] = signs[k];
            }
        }
        let Some((steps, d)) = odd_steps(&scales, 15.0) else { continue };
        b.d = scale_f16(d * 0.9875);
        b.scales = nibbles(&steps);
    });
}

/// The weights of iq3 without importance are the squares.
#[inline(always)]
fn weights3(x: &[f32; 32], qw: Option<&[f32; 256]>, j: usize, sigma2: f32) -> [f32; 32] {
    match qw {
        Some(qw) => weights(x, &qw.as_chunks::<32>().0[j], sigma2),
        None => x.map(|v| v * v),
    }
}

encoders!(iq3_xxs = super::search_iq3_xxs);

#[inline(always)]
pub(crate) fn search_iq3_xxs(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    let lattice = lattice::iq3_xxs();
    each_block!(src, dst: BlockIQ3XXS, importance, |x, qw, b| {
        *b = BlockIQ3XXS { d: [0; 2], qs: [0; 64], signs: [0; 32] };
        let sigma2 = 2.0 * energy(x) / 256.0;
        let (mut scales, mut words, mut points) = ([0.0f32; 8], [0u32; 8], [[0u8; 8]; 8]);
        for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
            let w = weights3(x, qw, j, sigma2);
            let (a, mut signs) = split_even::<32, 4>(x, &w);
            let max = largest(&a);
            if max < 1e-8 {
                continue;
            }
            const TRIALS: Trials = Trials { top: 15.0, step: 0.2, each: 15 };
            let f = fit::<32, 8, 4, 32>(lattice, TRIALS, Again::OffGrid, &a, &w, max, max / 15.0);
            if f.scale < 0.0 {
                signs = signs.map(|s| !s & 127);
            }
            scales[j] = f.scale.abs();
            points[j] = f.index.map(|i| i as u8);
            words[j] = (0..4).fold(0, |v, k| v | (signs[k] as u32) << (7 * k));
        }
        let Some((steps, d)) = odd_steps(&scales, 15.0) else { continue };
        b.d = scale_f16(d * 1.0125);
        b.qs.copy_from_slice(points.as_flattened());
        for (j, q) in b.signs.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *q = (words[j] | (steps[j] as u32) << 28).to_ne_bytes();
        }
    });
}

encoders!(iq3_s = super::search_iq3_s);

#[inline(always)]
pub(crate) fn search_iq3_s(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
    let lattice = lattice::iq3_s();
    each_block!(src, dst: BlockIQ3S, importance, |x, qw, b| {
        *b = BlockIQ3S { d: [0; 2], qs: [0; 64], qh: [0; 8], signs: [0; 32], scales: [0; 4] };
        let sigma2 = 2.0 * energy(x) / 256.0;
        let mut scales = [0.0f32; 8];
        for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
            let w = weights3(x, qw, j, sigma2);
            let (a, mut signs) = split::<32, 4>(x);
            let max = largest(&a);
            // A group of zeros keeps its place; upstream's quantiser writes the groups after it one place too early.
            if max == 0.0 {
                continue;
            }
            const TRIALS: Trials = Trials { top: 15.0, step: 0.2, each: 9 };
            let f = fit::<32, 8, 4, 24>(lattice, TRIALS, Again::AllIfOffGrid, &a, &w, max, max / 15.0);
            if f.scale < 0.0 {
                signs = signs.map(|s| !s);
            }
            scales[j] = f.scale.abs();
            for k in 0..8 {
                b.qs[8 * j + k] = f.index[k] as u8;
                b.qh[j] |= ((f.index[k] >> 8) << k) as u8;
            }
            b.signs[4 * j..4 * j + 4].copy_from_slice(&signs);
        }
        let Some((steps, d)) = odd_steps(&scales, 15.0) else { continue };
        b.d = scale_f16(d * 1.033);
        b.scales = nibbles(&steps);
    });
}
