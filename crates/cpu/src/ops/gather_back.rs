//! REPEAT_BACK, GET_ROWS_BACK: what was copied to several places adds up.
//!
//! f32, f16 and bf16 in any layout. Each element's sum has one order: that of its places.

use super::binary::Add;
use super::rows::{self, CHUNK};
use super::rules::*;
use super::vec::map::map2;
use super::vec::reduce;
use crate::entry::{no_work, tasks_by_larger, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Terms that are added in f32 before they go into f64.
const TERMS: usize = 16;

/// A few elements' sum of many rows: f32 for some of them, f64 above.
struct Sum {
    part: [f32; CHUNK],
    terms: usize,
    total: [f64; CHUNK],
}

impl Sum {
    /// Adds `n` values.
    ///
    /// # Safety
    /// `x` is good for them, and they are no more than a chunk.
    unsafe fn add(&mut self, x: *const f32, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { map2(Add, self.part.as_ptr(), x, self.part.as_mut_ptr(), n) }
        self.terms += 1;
        if self.terms == TERMS {
            self.fold(n);
        }
    }

    fn fold(&mut self, n: usize) {
        for (total, part) in self.total[..n].iter_mut().zip(&mut self.part) {
            *total += f64::from(*part);
            *part = 0.0;
        }
        self.terms = 0;
    }

    /// Moves the `n` sums to `out`: the next ones begin at 0.
    fn take(&mut self, n: usize, out: &mut [f32; CHUNK]) {
        self.fold(n);
        for (total, out) in self.total[..n].iter_mut().zip(out) {
            *out = *total as f32;
            *total = 0.0;
        }
    }
}

fn run_repeat(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let times: [usize; 4] = std::array::from_fn(|i| s.ne[i].checked_div(d.ne[i]).unwrap_or(0));
    let pieces = d.ne[0].div_ceil(CHUNK);
    // Made once: most rows are much shorter than a chunk.
    let mut sum = Sum { part: [0.0; CHUNK], terms: 0, total: [0.0; CHUNK] };
    let mut out = [0.0; CHUNK];
    for task in team.range(d.nrows() * pieces) {
        let (i, first) = (d.unravel(task / pieces), task % pieces * CHUNK);
        let n = (d.ne[0] - first).min(CHUNK);
        for t in 0..times[1] * times[2] * times[3] {
            let t = [t % times[1], t / times[1] % times[2], t / times[1] / times[2]];
            let from = std::array::from_fn(|k| i[k] + t[k] * d.ne[k + 1]);
            // SAFETY: the view is good for its shape, of which the result's is a part.
            unsafe {
                if d.ne[0] == 1 {
                    rows::chunks(s.ty, s.row(from), s.nb[0], s.ne[0], |_, x, k| sum.total[0] += reduce::sum(x, k));
                    continue;
                }
                for t in 0..times[0] {
                    let p = s.at(first + t * d.ne[0], from);
                    rows::chunks(s.ty, p, s.nb[0], n, |_, x, k| sum.add(x, k));
                }
            }
        }
        sum.take(n, &mut out);
        // SAFETY: this part of the row of dst is this thread's.
        unsafe { rows::store(d.ty, out.as_ptr(), d.at(first, i), d.nb[0], n) };
    }
}

fn supports_repeat(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    float(op)?;
    float(s)?;
    ensure(shape::can_repeat(op, s), "the result must repeat to the source's shape")
}

/// Elements of a row that a thread takes at least.
const STRIPE: usize = 16;

fn run_get_rows(node: &Node, team: &Team) {
    let (d, g, ids) = (node.out(), node.arg(0), node.arg(1));
    // Each thread has a stripe of all rows, so that many sources of one row are shared out too.
    let stripes = team.range(d.ne[0].div_ceil(STRIPE));
    let [first, end] = [stripes.start, stripes.end].map(|i| (i * STRIPE).min(d.ne[0]));
    for r in 0..d.nrows() {
        // SAFETY: this thread's stripe of the packed f32 row.
        unsafe { d.at(first, d.unravel(r)).write_bytes(0, 4 * (end - first)) };
    }
    for r in 0..g.nrows() {
        let i = g.unravel(r);
        // SAFETY: there is an index for each row of the gradient (checked).
        let id = unsafe { ids.at(i[0], [i[1], i[2], 0]).cast::<i32>().read_unaligned() };
        let Some(to) = usize::try_from(id).ok().filter(|&to| to < d.ne[1]) else {
            return team.fail(format!("index {id} is outside the {} rows of the result", d.ne[1]));
        };
        // SAFETY: the views are good for their shapes; the stripe is this thread's.
        unsafe {
            rows::chunks(g.ty, g.at(first, i), g.nb[0], end - first, |at, x, n| {
                let o = d.at(first + at, [to, i[1], i[2]]).cast::<f32>();
                map2(Add, o, x, o, n);
            });
        }
    }
}

fn supports_get_rows(op: &ggml_tensor) -> Rule {
    let (g, ids) = (src(op, 0)?, src(op, 1)?);
    is_f32(op)?;
    packed_rows(op)?;
    float(g)?;
    is_i32(ids)?;
    ensure(g.ne[1..] == ids.ne[..3] && ids.ne[3] == 1, "there must be one index for each row of the source")?;
    ensure(op.ne[0] == g.ne[0] && op.ne[2..] == g.ne[2..], "source and result must agree in all dimensions but 1")
}

/// REPEAT_BACK.
pub static REPEAT_BACK: OpEntry =
    OpEntry { supports: supports_repeat, work: no_work, n_tasks: tasks_by_larger, run: run_repeat };
/// GET_ROWS_BACK. An index outside the rows fails the node; nothing is written outside.
pub static GET_ROWS_BACK: OpEntry =
    OpEntry { supports: supports_get_rows, work: no_work, n_tasks: tasks_by_larger, run: run_get_rows };
