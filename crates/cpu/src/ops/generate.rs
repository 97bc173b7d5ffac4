//! ARANGE, TIMESTEP_EMBEDDING, FILL, TRI, DIAG: values that come from an index.

use super::rows;
use super::rules::*;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;

fn run_arange(node: &Node, team: &Team) {
    let d = node.out();
    let (start, step) = (node.f32(0), node.f32(2));
    for i in team.range(d.ne[0]) {
        // SAFETY: the view is good for its shape; this element is this thread's.
        unsafe { d.at(i, [0; 3]).cast::<f32>().write_unaligned(start + step * i as f32) };
    }
}

fn supports_arange(op: &ggml_tensor) -> Rule {
    is_f32(op)?;
    ensure(op.ne[1..] == [1, 1, 1], "the result must be a vector")
}

fn run_timestep(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let half = node.i32(0) as usize / 2;
    let decay = -f64::from(node.i32(1)).ln() / half as f64;
    for row in team.range(s.ne[0]) {
        // SAFETY: the views are good for their shapes; this row of dst is this thread's.
        unsafe {
            let t = f64::from(s.at(row, [0; 3]).cast::<f32>().read_unaligned());
            let put = |i: usize, x: f64| d.at(i, [row, 0, 0]).cast::<f32>().write_unaligned(x as f32);
            for j in 0..half {
                let (sin, cos) = (t * (decay * j as f64).exp()).sin_cos();
                put(j, cos);
                put(j + half, sin);
            }
            for i in 2 * half..d.ne[0] {
                put(i, 0.0);
            }
        }
    }
}

fn supports_timestep(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(op)?;
    is_f32(s)?;
    ensure(op.op_params[0] >= 0 && op.op_params[1] > 0, "dimension and period must be positive")?;
    ensure(s.ne[1..] == [1, 1, 1], "the timesteps must be a vector")?;
    ensure(op.ne == [i64::from(op.op_params[0]), s.ne[0], 1, 1], "the result must have one row for each timestep")
}

fn run_fill(node: &Node, team: &Team) {
    let d = node.out();
    let x = node.f32(0);
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        for i0 in 0..d.ne[0] {
            // SAFETY: the view is good for its shape; this row is this thread's.
            unsafe { rows::store(d.ty, &x, d.at(i0, i), 0, 1) };
        }
    }
}

fn run_tri(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let kind = ggml_tri_type(node.i32(0));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        let i1 = i[0];
        for i0 in 0..d.ne[0] {
            let keep = match kind {
                GGML_TRI_TYPE_LOWER => i0 < i1,
                GGML_TRI_TYPE_LOWER_DIAG => i0 <= i1,
                GGML_TRI_TYPE_UPPER => i0 > i1,
                _ => i0 >= i1,
            };
            // SAFETY: the views are good for their shapes; this row of dst is this thread's.
            unsafe {
                let x = if keep { s.at(i0, i).cast::<f32>().read_unaligned() } else { 0.0 };
                d.at(i0, i).cast::<f32>().write_unaligned(x);
            }
        }
    }
}

fn supports_fill(op: &ggml_tensor) -> Rule {
    float(op)
}

fn supports_tri(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(s)?;
    is_f32(op)?;
    ensure((0..4).contains(&op.op_params[0]), "unknown triangle")
}

fn run_diag(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        for i0 in 0..d.ne[0] {
            // SAFETY: the views are good for their shapes; this row of dst is this thread's.
            unsafe {
                let on = i0 == i[0];
                let x = if on { s.at(i0, [0, i[1], i[2]]).cast::<f32>().read_unaligned() } else { 0.0 };
                d.at(i0, i).cast::<f32>().write_unaligned(x);
            }
        }
    }
}

fn supports_diag(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(op)?;
    is_f32(s)?;
    ensure(
        s.ne[1] == 1 && op.ne == [s.ne[0], s.ne[0], s.ne[2], s.ne[3]],
        "the result must be square, of the source's rows",
    )
}

/// ARANGE.
pub static ARANGE: OpEntry =
    OpEntry { supports: supports_arange, work: no_work, n_tasks: tasks_by_size, run: run_arange };
/// TIMESTEP_EMBEDDING.
pub static TIMESTEP: OpEntry =
    OpEntry { supports: supports_timestep, work: no_work, n_tasks: tasks_by_size, run: run_timestep };
/// FILL.
pub static FILL: OpEntry = OpEntry { supports: supports_fill, work: no_work, n_tasks: tasks_by_size, run: run_fill };
/// TRI.
pub static TRI: OpEntry = OpEntry { supports: supports_tri, work: no_work, n_tasks: tasks_by_size, run: run_tri };
/// DIAG.
pub static DIAG: OpEntry = OpEntry { supports: supports_diag, work: no_work, n_tasks: tasks_by_size, run: run_diag };
