//! SILU_BACK, RMS_NORM_BACK, SOFT_MAX_BACK: a gradient taken back along the elements or rows of another source.
//!
//! The sources in any layout; for the latter two f32, and rows of the result packed. Sums of a row as in [`reduce`].

use super::binary::apply;
use super::rows;
use super::rules::*;
use super::vec::map::{map2, Map2};
use super::vec::{math, reduce, Lanes};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;

/// `g * s (1 + x (1 - s))` with `s` the sigmoid of `x`: the first argument is `g`.
#[derive(Clone, Copy)]
struct SiluBack;

impl Map2 for SiluBack {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, g: V, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe {
            let one = V::splat(1.0);
            // The derivative is 0 and 1 from here on; an infinity times nothing would be NaN. NaN passes through.
            let x = V::splat(200.0).min(V::splat(-200.0).max(x));
            // the sigmoid of |x| and of -|x|, each without cancellation
            let e = math::exp(x.abs().neg());
            let (above, below) = (one.div(one.add(e)), e.div(one.add(e)));
            let negative = x.lt(V::splat(0.0));
            let s = V::select(negative, below, above);
            let rest = V::select(negative, above, below);
            g.mul(s.mul(x.fma(rest, one)))
        }
    }
}

fn run_silu(node: &Node, team: &Team) {
    apply(SiluBack, &node.out(), &node.arg(0), &node.arg(1), team);
}

fn supports_silu(op: &ggml_tensor) -> Rule {
    for t in [src(op, 0)?, src(op, 1)?] {
        same_shape(op, t)?;
        float(t)?;
    }
    float(op)
}

fn supports_rows(op: &ggml_tensor) -> Rule {
    for t in [op, src(op, 0)?, src(op, 1)?] {
        same_shape(op, t)?;
        is_f32(t)?;
    }
    packed_rows(op)
}

/// `(g - x * c) * r`: the first argument is `g`.
#[derive(Clone, Copy)]
struct RmsBack {
    c: f32,
    r: f32,
}

impl Map2 for RmsBack {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, g: V, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.fnma(V::splat(self.c), g).mul(V::splat(self.r)) }
    }
}

/// Sums of squares between which squares in f32 have lost nothing.
const PLAIN: std::ops::Range<f64> = 1e-30..1e37;

fn run_rms(node: &Node, team: &Team) {
    let (d, g, x) = (node.out(), node.arg(0), node.arg(1));
    let (n, eps) = (d.ne[0], f64::from(node.f32(0)));
    for i in team.range(d.nrows()).map(|i| d.unravel(i)) {
        let (mut xx, mut xg) = (0.0f64, 0.0f64);
        let o = d.row(i).cast::<f32>();
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            rows::pairs(rows::row(&g, i), rows::row(&x, i), n, |_, g, x, k| {
                xx += reduce::sum_sq(x, k);
                xg += reduce::dot(x, g, k);
            });
            let plain = PLAIN.contains(&xx) && xg.is_finite();
            if !plain {
                (xx, xg) = (0.0, 0.0);
                rows::pairs(rows::row(&g, i), rows::row(&x, i), n, |_, g, x, k| {
                    for j in 0..k {
                        let (g, x) = (f64::from(*g.add(j)), f64::from(*x.add(j)));
                        xx += x * x;
                        xg += x * g;
                    }
                });
            }
            let mean = xx / n as f64 + eps;
            let (c, r) = (xg / n as f64 / mean, 1.0 / mean.sqrt());
            rows::pairs(rows::row(&g, i), rows::row(&x, i), n, |at, g, x, k| {
                if plain {
                    return map2(RmsBack { c: c as f32, r: r as f32 }, g, x, o.add(at), k);
                }
                for j in 0..k {
                    let (g, x) = (f64::from(*g.add(j)), f64::from(*x.add(j)));
                    *o.add(at + j) = ((g - x * c) * r) as f32;
                }
            });
        }
    }
}

fn supports_rms(op: &ggml_tensor) -> Rule {
    supports_rows(op)?;
    ensure(f32::from_bits(op.op_params[0] as u32) >= 0.0, "eps must not be negative")
}

/// `(g - dot) * y * scale`: the first argument is `g`.
#[derive(Clone, Copy)]
pub(super) struct SoftMaxBack {
    pub dot: f32,
    pub scale: f32,
}

impl Map2 for SoftMaxBack {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, g: V, y: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { g.sub(V::splat(self.dot)).mul(y).mul(V::splat(self.scale)) }
    }
}

fn run_soft_max(node: &Node, team: &Team) {
    let (d, g, y) = (node.out(), node.arg(0), node.arg(1));
    let (n, scale) = (d.ne[0], node.f32(0));
    for i in team.range(d.nrows()).map(|i| d.unravel(i)) {
        let mut dot = 0.0f64;
        let o = d.row(i).cast::<f32>();
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            rows::pairs(rows::row(&g, i), rows::row(&y, i), n, |_, g, y, k| dot += reduce::dot(g, y, k));
            let m = SoftMaxBack { dot: dot as f32, scale };
            rows::pairs(rows::row(&g, i), rows::row(&y, i), n, |at, g, y, k| map2(m, g, y, o.add(at), k));
        }
    }
}

/// SILU_BACK.
pub static SILU_BACK: OpEntry =
    OpEntry { supports: supports_silu, work: no_work, n_tasks: tasks_by_size, run: run_silu };
/// RMS_NORM_BACK.
pub static RMS_NORM_BACK: OpEntry =
    OpEntry { supports: supports_rms, work: no_work, n_tasks: tasks_by_size, run: run_rms };
/// SOFT_MAX_BACK. A mask was added to what was scaled, so neither it nor its slopes matter.
pub static SOFT_MAX_BACK: OpEntry =
    OpEntry { supports: supports_rows, work: no_work, n_tasks: tasks_by_size, run: run_soft_max };
