//! SUM, SUM_ROWS, MEAN, ARGMAX, CUMSUM, COUNT_EQUAL.
//!
//! Any layout. Sums run in f32 lanes over at most 1024 values and in f64 above that; the split into partial sums does not depend on
//! the number of threads.

use super::loops::Loops;
use super::rows;
use super::rules::*;
use super::vec::reduce;
use crate::entry::{all_tasks, no_work, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Partial sums of SUM.
const PARTS: usize = 64;
const SMALL: i64 = 16384;

fn tasks(op: &ggml_tensor, nth: usize) -> usize {
    match src(op, 0) {
        Ok(s) if shape::nelements(s) < SMALL => 1,
        _ => all_tasks(op, nth),
    }
}

fn sum_work(_: &ggml_tensor, _: usize) -> usize {
    PARTS * 8
}

fn run_sum(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let mut total = 0.0;
    if !s.is_empty() {
        let (scratch, _) = team.scratch();
        let parts = scratch.cast::<f64>();
        let loops = Loops::over([&s]).sort_by(0).merge();
        let n = loops.n_pieces();
        for part in team.range(PARTS) {
            let mut sum = 0.0;
            loops.pieces(n * part / PARTS..n * (part + 1) / PARTS, [s.data], |n, [p], [stride]| {
                // SAFETY: the view is good for its shape.
                unsafe { rows::chunks(s.ty, p, stride, n, |_, x, k| sum += reduce::sum(x, k)) };
            });
            // SAFETY: the scratch memory has PARTS values, aligned; this one is this thread's.
            unsafe { *parts.add(part) = sum };
        }
        if !team.sync() {
            return;
        }
        // SAFETY: all parts are written.
        total = (0..PARTS).map(|i| unsafe { *parts.add(i) }).sum();
    }
    if team.ith() == 0 {
        let x = total as f32;
        // SAFETY: the result has one element.
        unsafe { rows::store(d.ty, &x, d.data, 0, 1) };
    }
}

fn supports_sum(op: &ggml_tensor) -> Rule {
    float(src(op, 0)?)?;
    float(op)?;
    ensure(op.ne == [1; 4], "the result must have one element")
}

fn run_rows(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let scale = if node.dst.op == GGML_OP_MEAN { 1.0 / s.ne[0] as f64 } else { 1.0 };
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        let mut sum = 0.0;
        // SAFETY: the views are good for their shapes; this element of dst is this thread's.
        unsafe {
            rows::chunks(s.ty, s.row(i), s.nb[0], s.ne[0], |_, x, n| sum += reduce::sum(x, n));
            let x = (sum * scale) as f32;
            rows::store(d.ty, &x, d.row(i), 0, 1);
        }
    }
}

fn supports_rows(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    float(s)?;
    float(op)?;
    ensure(op.ne[0] == 1 && op.ne[1..] == s.ne[1..], "the result must have one element for each row")
}

fn run_argmax(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    for row in team.range(d.ne[0]) {
        let (mut best, mut at) = (f32::NEG_INFINITY, 0);
        // SAFETY: the views are good for their shapes; this element of dst is this thread's.
        unsafe {
            rows::chunks(s.ty, s.row([row, 0, 0]), s.nb[0], s.ne[0], |i0, x, n| {
                for i in 0..n {
                    let v = *x.add(i);
                    // The last of equals, as upstream.
                    if v >= best {
                        (best, at) = (v, i0 + i);
                    }
                }
            });
            d.at(row, [0; 3]).cast::<i32>().write_unaligned(at as i32);
        }
    }
}

fn supports_argmax(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    float(s)?;
    is_i32(op)?;
    ensure(s.ne[2] == 1 && s.ne[3] == 1, "the source must be a matrix")?;
    ensure(s.ne[0] <= i64::from(i32::MAX), "rows are too long for i32 indices")?;
    ensure(op.ne == [s.ne[1], 1, 1, 1], "the result must have one element for each row")
}

fn run_cumsum(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        let mut sum = 0.0f64;
        for i0 in 0..d.ne[0] {
            // SAFETY: the views are good for their shapes; this row of dst is this thread's.
            unsafe {
                sum += f64::from(s.at(i0, i).cast::<f32>().read_unaligned());
                d.at(i0, i).cast::<f32>().write_unaligned(sum as f32);
            }
        }
    }
}

fn supports_cumsum(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(s)?;
    is_f32(op)
}

fn run_count(node: &Node, team: &Team) {
    let (d, a, b) = (node.out(), node.arg(0), node.arg(1));
    let (scratch, _) = team.scratch();
    let counts = scratch.cast::<i64>();
    let loops = Loops::over([&a, &b]).sort_by(0).merge();
    let mut count = 0i64;
    if !a.is_empty() {
        loops.share(team, [a.data, b.data], |n, [p, q], [sp, sq]| {
            for i in 0..n {
                // SAFETY: the views are good for their shapes.
                let equal = unsafe {
                    p.add(i * sp).cast::<i32>().read_unaligned() == q.add(i * sq).cast::<i32>().read_unaligned()
                };
                count += i64::from(equal);
            }
        });
    }
    // SAFETY: the scratch memory has a value for each thread.
    unsafe { *counts.add(team.ith()) = count };
    if team.sync() && team.ith() == 0 {
        // SAFETY: all counts are written; the result has one element.
        unsafe {
            let total: i64 = (0..team.nth()).map(|i| *counts.add(i)).sum();
            d.data.cast::<i64>().write_unaligned(total);
        }
    }
}

fn count_work(_: &ggml_tensor, nth: usize) -> usize {
    nth * 8
}

fn supports_count(op: &ggml_tensor) -> Rule {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    ensure(a.ne == b.ne, "both sources must have the same shape")?;
    is_i32(a)?;
    is_i32(b)?;
    ensure(op.r#type == GGML_TYPE_I64 && op.ne == [1; 4], "the result must be one i64")
}

/// SUM.
pub static SUM: OpEntry = OpEntry { supports: supports_sum, work: sum_work, n_tasks: tasks, run: run_sum };
/// SUM_ROWS, MEAN.
pub static ROWS: OpEntry = OpEntry { supports: supports_rows, work: no_work, n_tasks: tasks, run: run_rows };
/// ARGMAX.
pub static ARGMAX: OpEntry = OpEntry { supports: supports_argmax, work: no_work, n_tasks: tasks, run: run_argmax };
/// CUMSUM.
pub static CUMSUM: OpEntry = OpEntry { supports: supports_cumsum, work: no_work, n_tasks: tasks, run: run_cumsum };
/// COUNT_EQUAL.
pub static COUNT_EQUAL: OpEntry =
    OpEntry { supports: supports_count, work: count_work, n_tasks: tasks, run: run_count };
