//! ARGSORT, TOP_K: indices of a row's values in order. NaN goes last in either order; equals keep the order of their indices.

use super::rules::*;
use crate::entry::{all_tasks, no_work, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::cmp::Ordering;

/// Order of elements `i` and `j` of a row.
fn compare(s: &View, row: *const u8, descending: bool, i: i32, j: i32) -> Ordering {
    // SAFETY: indices are those of the row.
    let at = |i: i32| unsafe { row.add(i as usize * s.nb[0]).cast::<f32>().read_unaligned() };
    let (a, b) = (at(i), at(j));
    let order = match a.partial_cmp(&b) {
        Some(o) if descending => o.reverse(),
        Some(o) => o,
        None => a.is_nan().cmp(&b.is_nan()),
    };
    order.then(i.cmp(&j))
}

fn run_argsort(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let descending = node.i32(0) == GGML_SORT_ORDER_DESC.0;
    for r in team.range(d.nrows()) {
        let i = d.unravel(r);
        // SAFETY: rows of dst are packed i32, aligned (checked), and this one is this thread's.
        let out = unsafe { std::slice::from_raw_parts_mut(d.row(i).cast::<i32>(), d.ne[0]) };
        for (k, o) in out.iter_mut().enumerate() {
            *o = k as i32;
        }
        let row = s.row(i);
        out.sort_unstable_by(|&a, &b| compare(&s, row, descending, a, b));
    }
}

fn run_top_k(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let (n, k) = (s.ne[0], d.ne[0]);
    let (scratch, _) = team.scratch();
    // SAFETY: the scratch memory has n indices for each thread.
    let all = unsafe { std::slice::from_raw_parts_mut(scratch.cast::<i32>().add(team.ith() * n), n) };
    for r in team.range(d.nrows()) {
        let i = d.unravel(r);
        for (k, o) in all.iter_mut().enumerate() {
            *o = k as i32;
        }
        let row = s.row(i);
        let by = |a: &i32, b: &i32| compare(&s, row, true, *a, *b);
        if k < n {
            all.select_nth_unstable_by(k - 1, by);
        }
        all[..k].sort_unstable_by(by);
        // SAFETY: rows of dst are packed, and this one is this thread's.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr().cast(), d.row(i), 4 * k) };
    }
}

fn work_top_k(op: &ggml_tensor, nth: usize) -> usize {
    src(op, 0).map_or(0, |s| (s.ne[0].max(0) as usize).saturating_mul(4).saturating_mul(nth))
}

fn supports(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(s)?;
    is_i32(op)?;
    packed_rows(op)?;
    ensure(op.nb.iter().all(|nb| nb % 4 == 0) && op.data.addr().is_multiple_of(4), "the result must be aligned")?;
    ensure(s.ne[0] <= i64::from(i32::MAX), "rows are too long for i32 indices")?;
    ensure(op.ne[1..] == s.ne[1..], "the result must have the source's rows")?;
    if op.op == GGML_OP_ARGSORT {
        ensure(matches!(op.op_params[0], 0 | 1), "unknown sort order")?;
        same_shape(op, s)
    } else {
        ensure(op.ne[0] <= s.ne[0], "k must not be larger than the row")
    }
}

/// ARGSORT.
pub static ARGSORT: OpEntry = OpEntry { supports, work: no_work, n_tasks: all_tasks, run: run_argsort };
/// TOP_K.
pub static TOP_K: OpEntry = OpEntry { supports, work: work_top_k, n_tasks: all_tasks, run: run_top_k };
