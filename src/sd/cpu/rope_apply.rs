//! Rotation by matrices: two products and a sum for each element, each rounded.

use super::view::View;
use crate::sd::kernel::{part, room, Kernel, Run, Shared, Stop};
use crate::sd::operator::Node;
use crate::sd::rope_apply as op;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.rope_apply.cpu`.
pub struct RopeApply;

impl Kernel for RopeApply {
    type Op = op::RopeApply;
    const NAME: &'static CStr = c"sd.rope_apply.cpu";

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        if shape::is_empty(node.dst) {
            return Ok(());
        }
        let a = View::of(node.src(0));
        // SAFETY: the caller's promise.
        unsafe { turn(node, run, dst, |i, row| a.copy(i, row)) }
    }
}

/// Turns all rows; `row([head, token, batch], to)` puts the numbers of one into `to`.
///
/// # Safety
/// Sources have their data, `dst` as many bytes as the result, which is not empty.
pub unsafe fn turn(
    node: &Node<op::RopeApply>,
    run: &Run,
    dst: Shared,
    row: impl Fn([usize; 3], &mut [f32]) + Sync,
) -> Result<(), Stop> {
    let pe = View::of(node.src(1));
    let [d, heads, tokens, batch] = node.src(0).ne.map(|n| n as usize);
    let pairs = node.src(1).ne[2] as usize;
    let flat = shape::is_contiguous(node.src(1)) && pairs > 0;
    let matrices = Shared::of(node.src(1));
    let turn = if node.attrs.interleaved == 1 { interleaved } else { halves };
    // all heads of a position follow each other: they share its matrices
    run.try_parallel(|ith, nth| {
        let mut x = room::<f32>(d)?;
        let mut made = room::<[f32; 4]>(if flat { 0 } else { pairs })?;
        let mut made_for = tokens;
        for at in part(tokens * heads * batch, ith, nth) {
            let (token, head, b) = (at / (heads * batch), at % heads, at / heads % batch);
            // SAFETY: the caller's promise; each row is one thread's.
            unsafe {
                let y = dst.at(4 * d * ((b * heads + head) * tokens + token)).cast::<f32>();
                let y = std::slice::from_raw_parts_mut(y, d);
                row([head, token, b], &mut x);
                if flat {
                    let m = matrices.at(16 * pairs * token).cast::<[f32; 4]>();
                    turn(y, &x, std::slice::from_raw_parts(m, pairs));
                    continue;
                }
                if made_for != token {
                    for (j, m) in made.iter_mut().enumerate() {
                        let entry = |c: usize, r: usize| pe.at(c, [r, j, token]);
                        *m = [entry(0, 0), entry(1, 0), entry(0, 1), entry(1, 1)];
                    }
                    made_for = token;
                }
                turn(y, &x, &made);
            }
        }
        Some(())
    })
}

/// A row whose pairs are neighbours; `m` in the order of memory.
fn interleaved(y: &mut [f32], x: &[f32], m: &[[f32; 4]]) {
    for ((y, x), m) in y.chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(m) {
        y[0] = x[0] * m[0] + x[1] * m[1];
        y[1] = x[0] * m[2] + x[1] * m[3];
    }
    let rest = 2 * m.len();
    y[rest..].copy_from_slice(&x[rest..]);
}

/// A row whose pairs lie half the turned width apart.
fn halves(y: &mut [f32], x: &[f32], m: &[[f32; 4]]) {
    let n = m.len();
    for (j, m) in m.iter().enumerate() {
        let (x0, x1, c, s) = (x[j], x[j + n], m[0], m[2]);
        y[j] = x0 * c - x1 * s;
        y[j + n] = x0 * s + x1 * c;
    }
    y[2 * n..].copy_from_slice(&x[2 * n..]);
}
