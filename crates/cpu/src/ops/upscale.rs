//! UPSCALE (interpolate): nearest, bilinear (with antialias), bicubic; dimensions 2 and 3 always go to the nearest.
//!
//! f32, any layout. What depends on the column only is computed once per thread.

use super::rules::*;
use crate::entry::{tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

/// How one axis of the result maps to the source.
#[derive(Clone, Copy)]
struct Axis {
    scale: f32,
    offset: f32,
    n: usize,
}

impl Axis {
    /// Source coordinate of result index `i`.
    fn coordinate(&self, i: usize) -> f32 {
        (i as f32 + self.offset) / self.scale - self.offset
    }

    fn clamp(&self, i: i64) -> usize {
        i.clamp(0, self.n as i64 - 1) as usize
    }

    fn nearest(&self, i: usize) -> usize {
        self.clamp((i as f32 / self.scale) as i64)
    }

    /// The two neighbours and the weight of the second.
    fn linear(&self, i: usize) -> (usize, usize, f32) {
        let x = self.coordinate(i);
        let x0 = x.floor() as i64;
        let (a, b) = (self.clamp(x0), self.clamp(x0 + 1));
        (a, b, (x - a as f32).clamp(0.0, 1.0))
    }

    /// The first of four neighbours (before clamping) and their weights.
    fn cubic(&self, i: usize) -> (i64, [f32; 4]) {
        const A: f32 = -0.75;
        let x = self.coordinate(i);
        let x0 = x.floor();
        let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
        let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
        let t = x - x0;
        (x0 as i64 - 1, [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)])
    }

    /// Half the width of the antialias filter, in source elements.
    fn support(&self) -> f32 {
        (1.0 / self.scale).max(1.0)
    }

    /// The source elements that a filtered result element draws on, and its centre.
    fn filtered(&self, i: usize) -> (f32, std::ops::Range<usize>) {
        let x = (i as f32 + self.offset) / self.scale;
        let from = ((x - self.support() + self.offset) as i64).clamp(0, self.n as i64) as usize;
        let to = ((x + self.support() + self.offset) as i64).clamp(0, self.n as i64) as usize;
        (x, from..to.max(from))
    }

    fn filter(&self, centre: f32, at: usize) -> f32 {
        (1.0 - ((at as f32 - centre + self.offset) / self.support()).abs()).max(0.0)
    }
}

/// What a column needs: up to four source offsets in bytes and weights.
#[derive(Clone, Copy)]
struct Column {
    at: [usize; 4],
    w: [f32; 4],
}

unsafe fn read(p: *const u8, at: usize) -> f32 {
    // SAFETY: the caller's promise.
    unsafe { p.add(at).cast::<f32>().read_unaligned() }
}

fn run(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let flags = node.i32(0);
    let corners = flags & GGML_SCALE_FLAG_ALIGN_CORNERS.0 != 0;
    let axis = |k: usize| {
        let (n, m) = (s.ne[k], d.ne[k]);
        let aligned = corners && k < 2 && n > 1 && m > 1;
        let scale = if aligned { (m - 1) as f32 / (n - 1) as f32 } else { m as f32 / n as f32 };
        Axis { scale, offset: if corners { 0.0 } else { 0.5 }, n }
    };
    let axes = [axis(0), axis(1), axis(2), axis(3)];
    let mode = ggml_scale_mode(flags & 0xff);
    let filtered = flags & GGML_SCALE_FLAG_ANTIALIAS.0 != 0;
    let range = team.range(d.nrows());
    if range.is_empty() {
        return;
    }
    let (scratch, _) = team.scratch();
    // SAFETY: the scratch memory has a column for each element of a row and each thread, aligned.
    let columns =
        unsafe { std::slice::from_raw_parts_mut(scratch.cast::<Column>().add(team.ith() * d.ne[0]), d.ne[0]) };
    for (i0, c) in columns.iter_mut().enumerate() {
        *c = column(&axes[0], s.nb[0], mode, i0);
    }
    for row in range {
        let i = d.unravel(row);
        let plane = s.row([0, axes[2].nearest(i[1]), axes[3].nearest(i[2])]);
        let line = |i1: usize| plane.wrapping_add(i1 * s.nb[1]).cast_const();
        for (i0, c) in columns.iter().enumerate() {
            // SAFETY: all coordinates are held inside the source; this row of dst is this thread's.
            unsafe {
                let x = match mode {
                    GGML_SCALE_MODE_NEAREST => read(line(axes[1].nearest(i[0])), c.at[0]),
                    GGML_SCALE_MODE_BILINEAR if filtered => antialias(&axes, &s, plane, i0, i[0]),
                    GGML_SCALE_MODE_BILINEAR => {
                        let (y0, y1, dy) = axes[1].linear(i[0]);
                        let mix = |p: *const u8| read(p, c.at[0]) * c.w[0] + read(p, c.at[1]) * c.w[1];
                        mix(line(y0)) * (1.0 - dy) + mix(line(y1)) * dy
                    }
                    _ => {
                        let (y, w) = axes[1].cubic(i[0]);
                        let mut sum = 0.0;
                        for (k, w) in w.iter().enumerate() {
                            let p = line(axes[1].clamp(y + k as i64));
                            sum += w * (0..4).map(|k| read(p, c.at[k]) * c.w[k]).sum::<f32>();
                        }
                        sum
                    }
                };
                d.at(i0, i).cast::<f32>().write_unaligned(x);
            }
        }
    }
}

fn column(axis: &Axis, nb: usize, mode: ggml_scale_mode, i0: usize) -> Column {
    match mode {
        GGML_SCALE_MODE_NEAREST => Column { at: [axis.nearest(i0) * nb; 4], w: [0.0; 4] },
        GGML_SCALE_MODE_BILINEAR => {
            let (a, b, t) = axis.linear(i0);
            Column { at: [a * nb, b * nb, 0, 0], w: [1.0 - t, t, 0.0, 0.0] }
        }
        _ => {
            let (x, w) = axis.cubic(i0);
            Column { at: std::array::from_fn(|k| axis.clamp(x + k as i64) * nb), w }
        }
    }
}

/// Mean over the source elements under a triangle filter.
unsafe fn antialias(axes: &[Axis; 4], s: &View, plane: *const u8, i0: usize, i1: usize) -> f32 {
    let ((x, xs), (y, ys)) = (axes[0].filtered(i0), axes[1].filtered(i1));
    let (mut sum, mut total) = (0.0f32, 0.0f32);
    for sy in ys {
        let wy = axes[1].filter(y, sy);
        for sx in xs.clone() {
            let w = wy * axes[0].filter(x, sx);
            if w > 0.0 {
                // SAFETY: the ranges lie inside the source.
                sum += w * unsafe { read(plane, sx * s.nb[0] + sy * s.nb[1]) };
                total += w;
            }
        }
    }
    if total > 0.0 {
        sum / total
    } else {
        sum
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    (op.ne[0].max(0) as usize).saturating_mul(size_of::<Column>()).saturating_mul(nth)
}

fn supports(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(op)?;
    is_f32(s)?;
    let flags = op.op_params[0];
    ensure((0..GGML_SCALE_MODE_COUNT.0).contains(&(flags & 0xff)), "unknown scale mode")?;
    let filtered = flags & GGML_SCALE_FLAG_ANTIALIAS.0 != 0;
    ensure(!filtered || flags & 0xff == GGML_SCALE_MODE_BILINEAR.0, "antialias is for bilinear only")?;
    let empty = |t: &ggml_tensor| t.ne.contains(&0);
    ensure(empty(op) || !empty(s), "the source is empty")
}

/// UPSCALE.
pub static UPSCALE: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
