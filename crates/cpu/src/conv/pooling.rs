//! Pooling: the largest value or the mean of each window.

use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// Windows along dimension 0. Parameters: kind, k, s, p. The mean is over the positions inside.
pub static POOL_1D: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
/// Windows along dimensions 0 and 1. Parameters: kind, k0, k1, s0, s1, p0, p1. The mean counts positions outside as zero.
pub static POOL_2D: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };

/// k, s and p of dimensions 0 and 1.
fn windows(op: &ggml_tensor) -> [[i64; 3]; 2] {
    let p = op.op_params.map(i64::from);
    if op.op == GGML_OP_POOL_1D {
        [[p[1], p[2], p[3]], [1, 1, 0]]
    } else {
        [[p[1], p[3], p[5]], [p[2], p[4], p[6]]]
    }
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let a = src(op, 0)?;
    if a.r#type != GGML_TYPE_F32 && a.r#type != GGML_TYPE_F16 {
        return Err("the source must be f32 or f16");
    }
    if op.r#type != GGML_TYPE_F32 {
        return Err("the result must be f32");
    }
    if [a, op].iter().any(|t| t.nb.iter().any(|nb| nb % shape::type_size(t.r#type) != 0)) {
        return Err("a stride is no multiple of the element size");
    }
    if ![GGML_OP_POOL_MAX.0, GGML_OP_POOL_AVG.0].contains(&op.op_params[0]) {
        return Err("the kind of pooling is unknown");
    }
    if windows(op).iter().any(|&[k, s, _]| k < 1 || s < 1) {
        return Err("windows and strides must be positive");
    }
    if op.ne[2..] != a.ne[2..] || (op.op == GGML_OP_POOL_1D && op.ne[1] != a.ne[1]) {
        return Err("source and result must agree on the dimensions that are not pooled");
    }
    if op.ne.iter().chain(&a.ne).any(|&n| n > i64::from(i32::MAX)) {
        return Err("a dimension is too large");
    }
    Ok(())
}

/// The part of `k` positions from `o * s - p` on that lies in `0..n`.
pub(super) fn inside([k, s, p]: [i64; 3], o: usize, n: usize) -> std::ops::Range<usize> {
    let start = o as i64 * s - p;
    let end = (start + k).clamp(0, n as i64);
    start.clamp(0, end) as usize..end as usize
}

fn run(node: &Node, team: &Team) {
    let (a, out) = (node.arg(0), node.out());
    let [w0, w1] = windows(node.dst);
    let max = node.i32(0) == GGML_OP_POOL_MAX.0;
    let whole_window = node.dst.op == GGML_OP_POOL_2D;
    let value = |x: usize, i: [usize; 3]| read(&a, x, i);
    for part in team.chunks(out.nrows(), (1024 / out.ne[0].max(1)).max(1)) {
        for row in part {
            let [y, i2, i3] = out.unravel(row);
            let ys = inside(w1, y, a.ne[1]);
            for x in 0..out.ne[0] {
                let xs = inside(w0, x, a.ne[0]);
                let mut acc = if max { f32::MIN } else { 0.0 };
                for y in ys.clone() {
                    for x in xs.clone() {
                        let v = value(x, [y, i2, i3]);
                        if max {
                            // written so that a NaN is taken
                            acc = if v < acc { acc } else { v };
                        } else {
                            acc += v;
                        }
                    }
                }
                if !max {
                    let count = if whole_window { w0[0] * w1[0] } else { (xs.len() * ys.len()) as i64 };
                    acc = if count == 0 { 0.0 } else { acc / count as f32 };
                }
                // SAFETY: an element of the result that this thread alone writes.
                unsafe { out.at(x, [y, i2, i3]).cast::<f32>().write(acc) };
            }
        }
    }
}

#[inline]
fn read(a: &View, x: usize, i: [usize; 3]) -> f32 {
    // SAFETY: an element of the source, whose memory and alignment were checked.
    unsafe { value(a.ty, a.at(x, i)) }
}

/// An element of f32, f16 or bf16.
///
/// # Safety
/// One lies at `p`, aligned.
#[inline]
pub(super) unsafe fn value(ty: ggml_type, p: *const u8) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            GGML_TYPE_F16 => types::float::f16_to_f32(p.cast::<u16>().read()),
            GGML_TYPE_BF16 => types::float::bf16_to_f32(p.cast::<u16>().read()),
            _ => p.cast::<f32>().read(),
        }
    }
}
