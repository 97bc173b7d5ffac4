//! OUT_PROD, on the gemm crate: a product whose sums run over dimension 1 of both sources.

use super::{operand_rule, result_rule, rule, workspace};
use crate::entry::OpEntry;
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{Dst, Error, Gemm, Matrix, Operand, Panel, Precision, Shape, Side, Type};
use ggml_oxide_types::kernels;

/// Columns of `src[0]` times columns of `src[1]`.
pub static OUT_PROD: OpEntry = OpEntry { supports, work, n_tasks, run };

/// Largest block of a format, and most values that a panel takes of a row.
const BLOCK: usize = 256;
const WIDTH: usize = 32;

/// Columns of a format that is decoded by rows: a panel's values of one step of k lie side by side in memory.
struct Columns {
    view: View,
    ty: Type,
}

// SAFETY: the memory is only read, and nobody writes a node's source while the node runs.
unsafe impl Sync for Columns {}

impl Operand for Columns {
    fn pack(&self, at: &Panel, panel: &mut [f32]) {
        let Some(decode) = kernels(self.ty).decode else { return };
        let (block, bytes) = (self.ty.block_size(), self.ty.block_bytes());
        let (first, last) = (at.row / block, (at.row + at.rows - 1) / block);
        let (skip, n) = (at.row - first * block, last + 1 - first);
        let mut values = [0.0f32; WIDTH + 2 * BLOCK];
        for (s, step) in panel.chunks_exact_mut(at.width).enumerate() {
            let row = self.view.row([at.k + s, at.i2, at.i3]).wrapping_add(first * bytes);
            // SAFETY: blocks of the source, which are packed along dimension 0 (checked).
            let blocks = unsafe { std::slice::from_raw_parts(row, n * bytes) };
            decode(blocks, &mut values[..n * block]);
            step[..at.rows].copy_from_slice(&values[skip..skip + at.rows]);
            step[at.rows..].fill(0.0);
        }
    }
}

/// A plain source with dimensions 0 and 1 swapped.
fn turned(v: &View) -> Matrix {
    let [nb0, nb1, nb2, nb3] = v.nb;
    super::matrix(&View { nb: [nb1, nb0, nb2, nb3], ..*v })
}

fn with_gemm<R>(node: &Node, f: impl FnOnce(&Gemm) -> R) -> Result<R, Error> {
    let (a, b, out) = (node.arg(0), node.arg(1), node.out());
    // SAFETY: the executor found the result's memory there; the kernel alone writes it.
    let dst = unsafe { Dst::new(out.data.cast(), [out.nb[1], out.nb[2], out.nb[3]]) }?;
    let ratio = |d: usize| b.ne[d].checked_div(a.ne[d]).unwrap_or(1).max(1);
    let shape = Shape { m: a.ne[0], n: b.ne[0], k: a.ne[1], batch: [b.ne[2], b.ne[3]], ratio: [ratio(2), ratio(3)] };
    let ty = super::elem_of(a.ty).unwrap_or(Type::F32);
    let columns = Columns { view: a, ty };
    let packed = a.nb[0] == ty.block_bytes() && ty != Type::F32 && kernels(ty).decode.is_some();
    let left = if packed { Side::Custom(&columns) } else { Side::Matrix(turned(&a)) };
    Ok(f(&Gemm::new(shape, left, Side::Matrix(turned(&b)), dst, Precision::F32)?))
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    operand_rule(a)?;
    operand_rule(b)?;
    result_rule(op)?;
    let ty = super::elem_of(a.r#type).ok_or("the format cannot be multiplied")?;
    if ty.block_size() > BLOCK || a.ne[0] % ty.block_size() as i64 != 0 {
        return Err("the length of a quantised row must be a whole number of blocks");
    }
    if super::elem_of(b.r#type).is_none_or(|ty| ty.block_size() > 1) {
        return Err("the second source must be f32, f16 or bf16");
    }
    if a.ne[1] != b.ne[1] || op.ne != [a.ne[0], b.ne[0], b.ne[2], b.ne[3]] {
        return Err("the shapes do not multiply: [m, k] times [n, k] gives [m, n]");
    }
    let divides = |d: usize| b.ne[d] == 0 || (a.ne[d] != 0 && b.ne[d] % a.ne[d] == 0);
    if !divides(2) || !divides(3) {
        return Err("dimensions 2 and 3 of the first source must divide those of the second");
    }
    with_gemm(&Node { dst: op }, |_| ()).map_err(rule)
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    with_gemm(&Node { dst: op }, |g| g.workspace_size(nth)).unwrap_or(usize::MAX)
}

fn n_tasks(op: &ggml_tensor, nth: usize) -> usize {
    let k = src(op, 0).map_or(0, |a| a.ne[1]) as u64;
    super::tasks_by_cost(op, k, nth)
}

fn run(node: &Node, team: &Team) {
    let done = with_gemm(node, |g| g.run(team, workspace(team, 0)));
    if let Err(e) | Ok(Err(e)) = done {
        team.fail(rule(e));
    }
}
