//! NORM, RMS_NORM, L2_NORM, GROUP_NORM.
//!
//! f32; the source in any layout, rows of the result packed. Sums in f64 over blocks that stay in the first cache, so a group
//! of any size is read from memory twice: once for its statistics, once to be written.

use super::rows;
use super::rules::*;
use super::vec::map::{map, Centre, Times};
use super::vec::reduce;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

const BLOCK: usize = 4096;

/// Sum of squared distances from which on a single distance may be more than f32 holds.
const WIDE: f64 = 1e76;

/// Count, mean and sum of squared distances from the mean, put together from parts.
#[derive(Clone, Copy, Default)]
struct Stats {
    n: f64,
    mean: f64,
    m2: f64,
}

impl Stats {
    /// Adds `n` packed values.
    ///
    /// # Safety
    /// `x` is good for `n` values.
    unsafe fn add(&mut self, x: *const f32, n: usize) {
        for i in (0..n).step_by(BLOCK) {
            let k = (n - i).min(BLOCK);
            // SAFETY: the caller's promise.
            let (mean, m2) = unsafe {
                let mut mean = reduce::sum(x.add(i), k) / k as f64;
                if !mean.is_finite() {
                    mean = (i..i + k).map(|i| f64::from(*x.add(i))).sum::<f64>() / k as f64;
                }
                // The rounding of the mean to f32 shifts every distance alike; the last term takes the shift out.
                let m = mean as f32;
                let shift = mean - f64::from(m);
                let mut m2 = reduce::sum_sq_from(x.add(i), k, m) - k as f64 * shift * shift;
                if !m2.is_finite() {
                    // A distance, as a partial sum above, may be beyond f32 though the values are not.
                    m2 = (i..i + k).map(|i| (f64::from(*x.add(i)) - mean).powi(2)).sum();
                }
                (mean, m2.max(0.0))
            };
            self.join(k as f64, mean, m2);
        }
    }

    fn join(&mut self, n: f64, mean: f64, m2: f64) {
        let total = self.n + n;
        let delta = mean - self.mean;
        self.mean += delta * (n / total);
        self.m2 += m2 + delta * delta * (self.n * n / total);
        self.n = total;
    }

    /// Writes the normalised values of `x` to `o`.
    ///
    /// # Safety
    /// Both are good for `n` values, and are the same or apart.
    unsafe fn write(&self, eps: f32, x: *const f32, o: *mut f32, n: usize) {
        let scale = 1.0 / (self.m2 / self.n + f64::from(eps)).sqrt();
        // SAFETY: the caller's promise.
        unsafe {
            if self.m2 < WIDE {
                map(Centre(self.mean as f32, scale as f32), x, o, n);
            } else {
                (0..n).for_each(|i| o.add(i).write(((f64::from(*x.add(i)) - self.mean) * scale) as f32));
            }
        }
    }
}

/// Row `i` of the source where it is packed; otherwise a copy of it in the row of the result.
///
/// # Safety
/// Both views are good for the row, and the row of the result is the caller's.
unsafe fn packed(d: &View, s: &View, i: [usize; 3]) -> *const f32 {
    if s.nb[0] == 4 || s.ne[0] == 1 {
        return s.row(i).cast();
    }
    // SAFETY: the caller's promise.
    unsafe { rows::load(GGML_TYPE_F32, s.row(i), s.nb[0], d.row(i).cast(), s.ne[0]) };
    d.row(i).cast()
}

fn run(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let (n, eps) = (d.ne[0], node.f32(0));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            let x = packed(&d, &s, i);
            let o = d.row(i).cast::<f32>();
            match node.dst.op {
                GGML_OP_NORM => {
                    let mut stats = Stats::default();
                    stats.add(x, n);
                    stats.write(eps, x, o, n);
                }
                GGML_OP_RMS_NORM => {
                    let mean = reduce::sum_sq(x, n) / n as f64;
                    map(Times((1.0 / (mean + f64::from(eps)).sqrt()) as f32), x, o, n);
                }
                _ => {
                    let (norm, eps) = (reduce::sum_sq(x, n).sqrt(), f64::from(eps));
                    // a comparison, and not `max`, which would lose a NaN
                    let norm = if norm < eps { eps } else { norm };
                    map(Times((1.0 / norm) as f32), x, o, n);
                }
            }
        }
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(op)?;
    is_f32(s)?;
    packed_rows(op)?;
    ensure(f32::from_bits(op.op_params[0] as u32) >= 0.0, "eps must not be negative")
}

fn run_group(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let (groups, eps) = (node.i32(0) as usize, node.f32(1));
    let per = d.ne[2].div_ceil(groups);
    for task in team.range(groups * d.ne[3]) {
        let (group, i3) = (task % groups, task / groups);
        let channels = (group * per).min(d.ne[2])..((group + 1) * per).min(d.ne[2]);
        if channels.is_empty() {
            continue;
        }
        let (n0, n1, n2) = (d.ne[0], d.ne[1], channels.len());
        // What lies in one piece in both is walked in one piece.
        let flat = |v: &View, d: usize, n: usize| v.nb[d] == 4 * n;
        let packed0 = s.nb[0] == 4 || n0 == 1;
        let rows_flat = packed0 && (n1 == 1 || (flat(&s, 1, n0) && flat(&d, 1, n0)));
        let all_flat = rows_flat && (n2 == 1 || (flat(&s, 2, n0 * n1) && flat(&d, 2, n0 * n1)));
        let (n, n1, n2) = match (rows_flat, all_flat) {
            (_, true) => (n0 * n1 * n2, 1, 1),
            (true, _) => (n0 * n1, 1, n2),
            _ => (n0, n1, n2),
        };
        let mut stats = Stats::default();
        for pass in 0..2 {
            for r in 0..n1 * n2 {
                let i = [r % n1, channels.start + r / n1, i3];
                // SAFETY: the views are good for their shapes; this group of dst is this thread's and its rows packed.
                unsafe {
                    if pass == 0 {
                        stats.add(packed(&d, &s, i), n);
                    } else {
                        let x = if packed0 { s.row(i) } else { d.row(i) };
                        stats.write(eps, x.cast(), d.row(i).cast(), n);
                    }
                }
            }
        }
    }
}

fn supports_group(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(op)?;
    is_f32(s)?;
    packed_rows(op)?;
    ensure(op.op_params[0] > 0, "there must be at least one group")?;
    ensure(f32::from_bits(op.op_params[1] as u32) >= 0.0, "eps must not be negative")
}

/// NORM, RMS_NORM, L2_NORM.
pub static NORM: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
/// GROUP_NORM.
pub static GROUP_NORM: OpEntry =
    OpEntry { supports: supports_group, work: no_work, n_tasks: tasks_by_size, run: run_group };
