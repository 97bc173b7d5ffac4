//! The searches for a scale (and minimum) that fit a group of values best. Each sum runs in element order with one
//! rounding for each operation: another order gives other codes, and the codes are part of the file format's practice.

use crate::clean::{bounded, nearest_int, SEARCH_MAX};

/// `$name::plain` and `$name::weighted`: a search that takes importance weights if there are any, as an encoder without
/// and one with them. A search is much code, and this way one copy of it serves both.
macro_rules! encoders {
    ($(#[$feature:meta])? $name:ident = $search:path) => {
        pub(crate) mod $name {
            $(#[$feature])?
            #[inline(never)]
            fn search(src: &[f32], dst: &mut [u8], importance: Option<&[f32]>) {
                $search(src, dst, importance)
            }

            /// Any number of rows without importance weights.
            pub(crate) fn plain(src: &[f32], dst: &mut [u8]) {
                // SAFETY: encoders for an instruction set are handed out on machines with that only.
                #[allow(unused_unsafe)]
                unsafe {
                    search(src, dst, None)
                }
            }

            /// One row with an importance weight for each element.
            pub(crate) fn weighted(src: &[f32], dst: &mut [u8], imatrix: &[f32]) {
                // SAFETY: as in `plain`.
                #[allow(unused_unsafe)]
                unsafe {
                    search(src, dst, Some(imatrix))
                }
            }
        }
    };
}
pub(crate) use encoders;

/// A group whose largest magnitude is below this counts as zero.
pub(crate) const TINY: f32 = 1e-15;

/// Mean of the squares of a row, in order.
pub(crate) fn mean_square<const N: usize>(row: &[[f32; N]]) -> f32 {
    let mut sum = 0.0f32;
    for x in row {
        let mut buf = [0.0; N];
        for v in bounded(x, &mut buf, SEARCH_MAX) {
            sum += v * v;
        }
    }
    sum / (row.len() * N) as f32
}

/// The values held to the search's range, and their weights: importance times sqrt(sigma2 + x^2).
#[inline(always)]
pub(crate) fn row_weights<'a, const N: usize>(
    x: &'a [f32; N],
    importance: &[f32; N],
    sigma2: f32,
    buf: &'a mut [f32; N],
    wbuf: &'a mut [f32; N],
) -> (&'a [f32; N], &'a [f32; N]) {
    let x = bounded(x, buf, SEARCH_MAX);
    *wbuf = weights(x, importance, sigma2);
    (x, wbuf)
}

/// Importance times sqrt(sigma2 + x^2).
#[inline(always)]
pub(crate) fn weights<const N: usize>(x: &[f32; N], importance: &[f32; N], sigma2: f32) -> [f32; N] {
    std::array::from_fn(|i| importance[i] * (sigma2 + x[i] * x[i]).sqrt())
}

/// Sum of the squares, in order.
#[inline(always)]
pub(crate) fn energy(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |s, v| s + v * v)
}

/// The largest magnitude, and the first value that has it.
#[inline(always)]
pub(crate) fn signed_max(x: &[f32]) -> (f32, f32) {
    let (mut amax, mut max) = (0.0f32, 0.0f32);
    for &v in x {
        if v.abs() > amax {
            amax = v.abs();
            max = v;
        }
    }
    (amax, max)
}

/// Keeps a search's result usable: sums of extreme values overflow.
#[inline(always)]
pub(crate) fn usable(scale: f32) -> f32 {
    if scale.is_nan() {
        0.0
    } else {
        scale.clamp(f32::MIN, f32::MAX)
    }
}

/// Symmetric fit x ~ scale * l, l in -nmax..nmax, weights `w` or x^2. Writes l + nmax; returns the scale.
#[inline(always)]
pub(crate) fn qx<const N: usize>(nmax: i32, x: &[f32; N], codes: &mut [u8; N], w: Option<&[f32; N]>) -> f32 {
    let (amax, max) = signed_max(x);
    if amax < TINY {
        codes.fill(0);
        return 0.0;
    }
    let squares;
    let w = match w {
        Some(w) => w,
        None => {
            squares = x.map(|v| v * v);
            &squares
        }
    };
    let fit = |iscale: f32| {
        let l = x.map(|v| nearest_int(iscale * v).clamp(-nmax, nmax - 1) as f32);
        let (mut lx, mut l2) = (0.0f32, 0.0f32);
        for i in 0..N {
            lx += w[i] * x[i] * l[i];
            l2 += w[i] * l[i] * l[i];
        }
        (lx, l2)
    };
    let mut chosen = -(nmax as f32) / max;
    let (lx, l2) = fit(chosen);
    let mut scale = if l2 != 0.0 { lx / l2 } else { 0.0 };
    let mut best = scale * lx;
    for step in (-9..=9).filter(|&s| s != 0) {
        let iscale = -(nmax as f32 + 0.1f32 * step as f32) / max;
        let (lx, l2) = fit(iscale);
        if l2 > 0.0 && lx * lx > best * l2 {
            chosen = iscale;
            scale = lx / l2;
            best = scale * lx;
        }
    }
    *codes = x.map(|v| (nearest_int(chosen * v).clamp(-nmax, nmax - 1) + nmax) as u8);
    usable(scale)
}

/// Symmetric fit with weights x^2, improved one element at a time. Writes l + nmax; returns the scale.
#[inline(always)]
pub(crate) fn q3<const N: usize>(nmax: i32, x: &[f32; N], codes: &mut [u8; N]) -> f32 {
    let (amax, max) = signed_max(x);
    if amax < TINY {
        codes.fill(0);
        return 0.0;
    }
    let iscale = -(nmax as f32) / max;
    let mut l = x.map(|v| nearest_int(iscale * v).clamp(-nmax, nmax - 1));
    let w = x.map(|v| v * v);
    let (mut lx, mut l2) = (0.0f32, 0.0f32);
    for i in 0..N {
        let f = l[i] as f32;
        lx += w[i] * x[i] * f;
        l2 += w[i] * f * f;
    }
    for _ in 0..5 {
        let mut changed = false;
        for i in 0..N {
            let f = l[i] as f32;
            let mut slx = lx - w[i] * x[i] * f;
            if slx > 0.0 {
                let mut sl2 = l2 - w[i] * f * f;
                let new = nearest_int(x[i] * sl2 / slx).clamp(-nmax, nmax - 1);
                if new != l[i] {
                    let f = new as f32;
                    slx += w[i] * x[i] * f;
                    sl2 += w[i] * f * f;
                    if sl2 > 0.0 && slx * slx * l2 > lx * lx * sl2 {
                        (l[i], lx, l2) = (new, slx, sl2);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    *codes = l.map(|v| (v + nmax) as u8);
    usable(if l2 > 0.0 { lx / l2 } else { 0.0 })
}

/// How an affine search walks and measures.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub first: f32,
    pub step: f32,
    pub steps: i32,
    /// Weighted absolute error in place of the squared one.
    pub absolute: bool,
}

/// The walk of every search that has importance weights.
const IMPORTANCE_WALK: Walk = Walk { first: -0.9, step: 0.05, steps: 36, absolute: false };

/// Affine fit x ~ scale * l - min with importance weights. Writes l; returns (scale, min), min not negative.
#[inline(always)]
pub(crate) fn qkx3<const N: usize>(nmax: i32, x: &[f32; N], w: &[f32; N], codes: &mut [u8; N]) -> (f32, f32) {
    affine(nmax, x, w, codes, IMPORTANCE_WALK)
}

/// Affine fit x ~ scale * l - min, l in 0..=nmax. Writes l; returns (scale, min), min not negative.
#[inline(always)]
pub(crate) fn affine<const N: usize>(
    nmax: i32,
    x: &[f32; N],
    w: &[f32; N],
    codes: &mut [u8; N],
    walk: Walk,
) -> (f32, f32) {
    let (mut min, mut max) = (x[0], x[0]);
    let mut sum_w = w[0];
    let mut sum_x = sum_w * x[0];
    for i in 1..N {
        min = if x[i] < min { x[i] } else { min };
        max = if x[i] > max { x[i] } else { max };
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    min = if min > 0.0 { 0.0 } else { min };
    if max <= min {
        codes.fill(0);
        return (0.0, -min);
    }
    let top = nmax as f32;
    let quantise = |iscale: f32, min: f32| x.map(|v| nearest_int(iscale * (v - min)).clamp(0, nmax) as f32);
    let error = |scale: f32, min: f32, l: &[f32; N]| {
        let mut sum = 0.0f32;
        for i in 0..N {
            let diff = scale * l[i] + min - x[i];
            sum += w[i] * if walk.absolute { diff.abs() } else { diff * diff };
        }
        sum
    };
    let iscale = top / (max - min);
    let mut scale = 1.0 / iscale;
    let mut chosen = quantise(iscale, min);
    let mut best = error(scale, min, &chosen);
    for step in 0..=walk.steps {
        let iscale = (walk.first + walk.step * step as f32 + top) / (max - min);
        let l = quantise(iscale, min);
        let (mut sl, mut sl2, mut sxl) = (0.0f32, 0.0f32, 0.0f32);
        for i in 0..N {
            sl += w[i] * l[i];
            sl2 += w[i] * l[i] * l[i];
            sxl += w[i] * l[i] * x[i];
        }
        let det = sum_w * sl2 - sl * sl;
        if det > 0.0 {
            let mut s = (sum_w * sxl - sum_x * sl) / det;
            let mut m = (sl2 * sum_x - sl * sxl) / det;
            if m > 0.0 {
                m = 0.0;
                s = sxl / sl2;
            }
            let e = error(s, m, &l);
            if e < best {
                (best, scale, min, chosen) = (e, s, m, l);
            }
        }
    }
    *codes = chosen.map(|v| v as u8);
    (usable(scale), usable(-min))
}

/// Fit of non-negative x ~ scale * l, l in 0..=nmax, with weights. Writes l; returns the scale.
#[inline(always)]
pub(crate) fn qp<const N: usize>(nmax: i32, x: &[f32; N], codes: &mut [u8; N], w: &[f32; N]) -> f32 {
    let max = x.iter().fold(0.0f32, |m, &v| if m > v { m } else { v });
    if max < TINY {
        codes.fill(0);
        return 0.0;
    }
    let top = nmax as f32;
    // Negative inputs do not occur in use; the lower bound keeps codes in range whatever comes.
    let quantise = |iscale: f32| x.map(|v| nearest_int(iscale * v).clamp(0, nmax));
    let error = |scale: f32, l: &[i32; N]| {
        let mut sum = 0.0f32;
        for i in 0..N {
            let diff = x[i] - scale * l[i] as f32;
            sum += w[i] * diff * diff;
        }
        sum
    };
    let mut iscale = top / max;
    let mut best = error(1.0 / iscale, &quantise(iscale));
    for step in (-4..=4).filter(|&s| s != 0) {
        let is = (0.1f32 * step as f32 + top) / max;
        let e = error(1.0 / is, &quantise(is));
        if e < best {
            (best, iscale) = (e, is);
        }
    }
    let mut l = quantise(iscale);
    let (mut lx, mut l2) = (0.0f32, 0.0f32);
    for i in 0..N {
        let f = l[i] as f32;
        lx += w[i] * x[i] * f;
        l2 += w[i] * f * f;
    }
    for _ in 0..5 {
        let mut changed = false;
        for i in 0..N {
            let f = l[i] as f32;
            let mut slx = lx - w[i] * x[i] * f;
            let mut sl2 = l2 - w[i] * f * f;
            if slx > 0.0 && sl2 > 0.0 {
                let new = nearest_int(x[i] * sl2 / slx).clamp(0, nmax);
                if new != l[i] {
                    let f = new as f32;
                    slx += w[i] * x[i] * f;
                    sl2 += w[i] * f * f;
                    if slx * slx * l2 > lx * lx * sl2 {
                        (l[i], lx, l2) = (new, slx, sl2);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    *codes = l.map(|v| v as u8);
    usable(if l2 > 0.0 { lx / l2 } else { 0.0 })
}
