//! CROSS_ENTROPY_LOSS and CROSS_ENTROPY_LOSS_BACK: softmax of each row of logits against a row of labels.
//!
//! f32; sources in any layout, rows of the result packed. A label of zero adds nothing, whatever its logit. The gradient is that of
//! labels of any sum: softmax times their sum, less the labels.

use super::rows;
use super::rules::*;
use super::vec::{dispatch, math, reduce, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_larger, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

/// Values that are added in f32 before they go into f64.
const BLOCK: usize = 1024;

/// Calls `f(first, n)` for vectors of lanes below `n`, the last one maybe not full, and `fold` after each block of them.
macro_rules! lanes {
    ($n:expr, |$i:ident, $k:ident| $body:block, $fold:block) => {
        for start in (0..$n).step_by(BLOCK) {
            let end = (start + BLOCK).min($n);
            for $i in (start..end).step_by(LANES) {
                let $k = (end - $i).min(LANES);
                $body
            }
            $fold
        }
    };
}

#[inline(always)]
unsafe fn load<V: Lanes>(p: *const f32, n: usize) -> V {
    // SAFETY: the caller's promise: `n` values, at most a full vector.
    unsafe {
        if n == LANES {
            V::load(p)
        } else {
            V::load_n(p, n)
        }
    }
}

/// Sum of `e^(x - max)`.
struct SumExp {
    x: *const f32,
    n: usize,
    max: f32,
}

impl Kernel for SumExp {
    type Out = f64;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> f64 {
        // SAFETY: reads stay below n: the caller's promise.
        unsafe {
            let (mut total, mut acc) = (0.0f64, V::splat(0.0));
            lanes!(
                self.n,
                |i, k| {
                    let e = math::exp(load::<V>(self.x.add(i), k).sub(V::splat(self.max)));
                    if k == LANES {
                        acc = acc.add(e);
                    } else {
                        e.to_array()[..k].iter().for_each(|&e| total += f64::from(e));
                    }
                },
                {
                    total += acc.sum_f64();
                    acc = V::splat(0.0);
                }
            );
            total
        }
    }
}

/// Sum of `label * (x - max - log)`, without the labels of zero.
struct Terms {
    x: *const f32,
    labels: *const f32,
    n: usize,
    max: f32,
    log: f32,
}

impl Kernel for Terms {
    type Out = f64;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> f64 {
        // SAFETY: reads stay below n: the caller's promise.
        unsafe {
            let (mut total, mut acc) = (0.0f64, V::splat(0.0));
            let (max, log, zero) = (V::splat(self.max), V::splat(self.log), V::splat(0.0));
            let least = V::splat(f32::from_bits(1));
            lanes!(
                self.n,
                |i, k| {
                    // lanes past the end are labels of zero
                    let label = load::<V>(self.labels.add(i), k);
                    let term = label.mul(load::<V>(self.x.add(i), k).sub(max).sub(log));
                    acc = acc.add(V::select(label.abs().lt(least), zero, term));
                },
                {
                    total += acc.sum_f64();
                    acc = V::splat(0.0);
                }
            );
            total
        }
    }
}

/// `dst = e^(x - max) * p - label * l`
struct Grad {
    x: *const f32,
    labels: *const f32,
    dst: *mut f32,
    n: usize,
    max: f32,
    p: f32,
    l: f32,
}

impl Kernel for Grad {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            for i in (0..self.n).step_by(LANES) {
                let k = (self.n - i).min(LANES);
                let e = math::exp(load::<V>(self.x.add(i), k).sub(V::splat(self.max)));
                let v = load::<V>(self.labels.add(i), k).fnma(V::splat(self.l), e.mul(V::splat(self.p)));
                if k == LANES {
                    v.store(self.dst.add(i));
                } else {
                    v.store_n(self.dst.add(i), k);
                }
            }
        }
    }
}

/// Largest logit of a row and the sum of `e^(x - largest)`. Of a row of minus infinities: any number, and 0.
///
/// # Safety
/// The view, f32, is good for the row.
unsafe fn soft_max(x: &View, i: [usize; 3]) -> (f32, f64) {
    let (p, stride, n) = (x.row(i).cast_const(), x.nb[0], x.ne[0]);
    let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0f64);
    // SAFETY: the caller's promise.
    unsafe {
        rows::chunks(GGML_TYPE_F32, p, stride, n, |_, x, n| max = max.max(reduce::max(x, n)));
        if max == f32::NEG_INFINITY {
            // or NaN, which is left out of the maximum
            max = 0.0;
        }
        rows::chunks(GGML_TYPE_F32, p, stride, n, |_, x, n| sum += dispatch(SumExp { x, n, max }));
    }
    (max, sum)
}

/// Partial sums over rows.
const PARTS: usize = 64;

fn work(_: &ggml_tensor, _: usize) -> usize {
    PARTS * 8
}

fn run(node: &Node, team: &Team) {
    let (d, x, labels) = (node.out(), node.arg(0), node.arg(1));
    let (n, rows) = (x.ne[0], x.nrows());
    let parts = team.scratch().0.cast::<f64>();
    for part in team.range(PARTS) {
        let mut sum = 0.0f64;
        for i in (rows * part / PARTS..rows * (part + 1) / PARTS).map(|i| x.unravel(i)) {
            // SAFETY: the views are good for their shapes.
            unsafe {
                let (max, exps) = soft_max(&x, i);
                let log = exps.ln();
                // A row of minus infinities: each of them is a probability of zero.
                let log = if log == f64::NEG_INFINITY { 0.0 } else { log as f32 };
                rows::pairs(rows::row(&x, i), rows::row(&labels, i), n, |_, x, labels, n| {
                    sum += dispatch(Terms { x, labels, n, max, log });
                });
            }
        }
        // SAFETY: the scratch memory has PARTS values, aligned; this one is this thread's.
        unsafe { *parts.add(part) = sum };
    }
    if !team.sync() || team.ith() != 0 {
        return;
    }
    // SAFETY: all parts are written; the result has one element.
    unsafe {
        let total: f64 = (0..PARTS).map(|i| *parts.add(i)).sum();
        let mean = if rows == 0 { 0.0 } else { -total / rows as f64 };
        d.data.cast::<f32>().write_unaligned(mean as f32);
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let (x, labels) = (src(op, 0)?, src(op, 1)?);
    for t in [op, x, labels] {
        is_f32(t)?;
    }
    same_shape(x, labels)?;
    ensure(op.ne == [1; 4], "the result must have one element")
}

fn run_back(node: &Node, team: &Team) {
    let (d, g, x, labels) = (node.out(), node.arg(0), node.arg(1), node.arg(2));
    // SAFETY: the gradient has one element.
    let g = f64::from(unsafe { g.data.cast::<f32>().read_unaligned() }) / d.nrows() as f64;
    for i in team.range(d.nrows()).map(|i| d.unravel(i)) {
        let o = d.row(i).cast::<f32>();
        let mut total = 0.0f64;
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            rows::chunks(GGML_TYPE_F32, labels.row(i), labels.nb[0], d.ne[0], |_, l, n| total += reduce::sum(l, n));
            let (max, exps) = soft_max(&x, i);
            let p = if exps == 0.0 { 0.0 } else { total / exps * g };
            rows::pairs(rows::row(&x, i), rows::row(&labels, i), d.ne[0], |at, x, labels, n| {
                dispatch(Grad { x, labels, dst: o.add(at), n, max, p: p as f32, l: g as f32 });
            });
        }
    }
}

fn supports_back(op: &ggml_tensor) -> Rule {
    let (g, x, labels) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    for t in [op, g, x, labels] {
        is_f32(t)?;
    }
    same_shape(op, x)?;
    same_shape(x, labels)?;
    packed_rows(op)?;
    ensure(g.ne == [1; 4], "the gradient must have one element")
}

/// CROSS_ENTROPY_LOSS.
pub static LOSS: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_larger, run };
/// CROSS_ENTROPY_LOSS_BACK.
pub static LOSS_BACK: OpEntry =
    OpEntry { supports: supports_back, work: no_work, n_tasks: tasks_by_size, run: run_back };
