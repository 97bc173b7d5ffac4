//! Matrix multiplication where each row of activations names its matrix (mixture of experts).
//!
//! The rows are grouped by expert, gathered in blocks, multiplied, and scattered: each expert's weights are read once per block.

use super::{elem_of, matrix, operand_rule, precision, result_rule, rule, workspace};
use crate::entry::{all_tasks, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{Dst, Error, Gemm, Matrix, Shape, Side, Type};
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// `src[0]` [k, m, experts], `src[1]` [k, 1 or a divisor of used, tokens], `src[2]` i32 [used, tokens] -> [m, used, tokens].
pub static MUL_MAT_ID: OpEntry = OpEntry { supports, work, n_tasks: all_tasks, run };

/// Rows that are gathered at a time.
const BLOCK: usize = 256;
const ALIGN: usize = 64;

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let (w, x, ids) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    operand_rule(w)?;
    operand_rule(x)?;
    result_rule(op)?;
    if elem_of(x.r#type).is_none_or(Type::is_quantized) {
        return Err("the activations must be f32, f16 or bf16");
    }
    if ids.r#type != GGML_TYPE_I32 || ids.nb.iter().any(|nb| nb % 4 != 0) {
        return Err("the ids must be i32");
    }
    if w.ne[0] != x.ne[0] || op.ne != [w.ne[1], ids.ne[0], ids.ne[1], 1] {
        return Err("the shapes do not multiply: [k, m, experts] times [k, used, tokens] gives [m, used, tokens]");
    }
    if w.ne[3] != 1 || x.ne[3] != 1 || ids.ne[2] != 1 || ids.ne[3] != 1 || x.ne[2] != ids.ne[1] {
        return Err("there must be one row of ids for each token, and no dimension 3");
    }
    if x.ne[1] == 0 || ids.ne[0] % x.ne[1] != 0 {
        return Err("dimension 1 of the activations must divide the number of ids for a token");
    }
    if shape::nelements(ids) > i64::from(u32::MAX) {
        return Err("there are too many ids");
    }
    let p = Parts::of(&Node { dst: op }, 1).ok_or("the sizes overflow")?;
    p.product(&Node { dst: op }, 0, std::ptr::null(), 1, None).map(|_| ()).map_err(rule)
}

/// Where things lie in the scratch memory: bytes from its start.
struct Parts {
    /// First of each expert's rows in `rows`, u32 [experts + 1].
    starts: usize,
    /// (slot, token) of each row, grouped by expert, u32 pairs.
    rows: usize,
    /// Gathered activations, f32 [k, BLOCK].
    gathered: usize,
    /// Products, f32 [m, BLOCK].
    products: usize,
    /// For the gemm crate.
    gemm: usize,
    end: usize,
    block: usize,
}

impl Parts {
    fn of(node: &Node, nth: usize) -> Option<Parts> {
        let (w, ids) = (node.arg(0), node.arg(2));
        let n = ids.len();
        let block = n.min(BLOCK);
        let up = |bytes: usize| bytes.checked_next_multiple_of(ALIGN);
        let rows = up((w.ne[2] + 1).checked_mul(4)?)?;
        let gathered = rows.checked_add(up(n.checked_mul(8)?)?)?;
        let products = gathered.checked_add(up(w.ne[0].checked_mul(4)?.checked_mul(block)?)?)?;
        let gemm = products.checked_add(up(w.ne[1].checked_mul(4)?.checked_mul(block)?)?)?;
        let mut p = Parts { starts: 0, rows, gathered, products, gemm, end: 0, block };
        // The largest block is not always the most demanding: a few rows take another path.
        let mut most = 0;
        for rows in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
            let g = p.product(node, 0, std::ptr::null(), rows, None).ok()?;
            most = most.max(g.workspace_size(nth));
        }
        p.end = gemm.checked_add(most)?;
        Some(p)
    }

    /// The product of expert `expert` with `rows` gathered rows at `x`; to the block of products at `out`.
    fn product(
        &self,
        node: &Node,
        expert: usize,
        x: *const u8,
        rows: usize,
        out: Option<*mut u8>,
    ) -> Result<Gemm<'static>, Error> {
        let w = node.arg(0);
        let one = View { data: w.data.wrapping_add(expert * w.nb[2]), ..w };
        let (k, m) = (w.ne[0], w.ne[1]);
        // SAFETY: rows of k values lie at `x` while the product runs.
        let x = unsafe { Matrix::new(x, Type::F32, [4, k * 4, 0, 0]) };
        // SAFETY: `rows` rows of m values at `out` are this node's.
        let dst = unsafe { Dst::new(out.unwrap_or(std::ptr::null_mut()).cast(), [m * 4, 0, 0]) }?;
        Gemm::new(Shape::new(m, rows, k), Side::Matrix(matrix(&one)), Side::Matrix(x), dst, precision(node.dst))
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    Parts::of(&Node { dst: op }, nth).map_or(usize::MAX, |p| p.end)
}

/// Sorts the rows by expert, keeping their order. `Err`: an id that is no expert.
fn group(ids: &View, experts: usize, starts: &mut [u32], rows: &mut [[u32; 2]]) -> Result<(), i32> {
    let id = |slot: usize, token: usize| {
        // SAFETY: an element of the ids, whose memory and alignment were checked.
        let id = unsafe { ids.at(slot, [token, 0, 0]).cast::<i32>().read() };
        usize::try_from(id).ok().filter(|&id| id < experts).ok_or(id)
    };
    starts.fill(0);
    for token in 0..ids.ne[1] {
        for slot in 0..ids.ne[0] {
            starts[id(slot, token)?] += 1;
        }
    }
    let mut at = 0;
    for s in starts.iter_mut() {
        (*s, at) = (at, at + *s);
    }
    for token in 0..ids.ne[1] {
        for slot in 0..ids.ne[0] {
            let e = id(slot, token)?;
            rows[starts[e] as usize] = [slot as u32, token as u32];
            starts[e] += 1;
        }
    }
    // Each start has moved to the next one's place.
    starts.copy_within(0..experts, 1);
    starts[0] = 0;
    Ok(())
}

fn run(node: &Node, team: &Team) {
    let (w, x, ids, out) = (node.arg(0), node.arg(1), node.arg(2), node.out());
    let (base, len) = team.scratch();
    let parts = Parts::of(node, team.nth()).filter(|p| p.end <= len);
    let Some(p) = parts else {
        team.fail("the scratch memory is too small");
        return;
    };
    let experts = w.ne[2];
    let (starts_at, rows_at) =
        (base.wrapping_add(p.starts).cast::<u32>(), base.wrapping_add(p.rows).cast::<[u32; 2]>());
    if team.ith() == 0 {
        // SAFETY: inside the scratch memory by the layout of Parts; only this thread touches it before the barrier.
        let (starts, rows) = unsafe {
            starts_at.write_bytes(0, experts + 1);
            rows_at.write_bytes(0, ids.len());
            (std::slice::from_raw_parts_mut(starts_at, experts + 1), std::slice::from_raw_parts_mut(rows_at, ids.len()))
        };
        if let Err(id) = group(&ids, experts, starts, rows) {
            team.fail(format!("index {id} is outside the {experts} matrices of the first source"));
        }
    }
    if !team.sync() {
        return;
    }
    // SAFETY: written above, before the barrier, and not written again.
    let (starts, rows) =
        unsafe { (std::slice::from_raw_parts(starts_at, experts + 1), std::slice::from_raw_parts(rows_at, ids.len())) };
    for e in 0..experts {
        for block in rows[starts[e] as usize..starts[e + 1] as usize].chunks(p.block.max(1)) {
            let gathered = base.wrapping_add(p.gathered);
            let products = base.wrapping_add(p.products);
            for r in team.range(block.len()) {
                let [slot, token] = block[r].map(|v| v as usize);
                let row = x.row([slot % x.ne[1], token, 0]);
                // SAFETY: row r of the gathered block; each is written by one thread.
                let to = unsafe { std::slice::from_raw_parts_mut(gathered.cast::<f32>().add(r * x.ne[0]), x.ne[0]) };
                read_row(x.ty, row, x.nb[0], to);
            }
            if !team.new_job() {
                return;
            }
            let done = p.product(node, e, gathered, block.len(), Some(products));
            if let Err(e) | Ok(Err(e)) = done.map(|g| g.run(team, workspace(team, p.gemm))) {
                team.fail(rule(e));
            }
            if !team.sync() {
                return;
            }
            for r in team.range(block.len()) {
                let [slot, token] = block[r].map(|v| v as usize);
                // SAFETY: row r of the products, complete since the barrier; a row of the result that only this block has.
                unsafe {
                    let from = products.cast::<f32>().add(r * w.ne[1]);
                    std::ptr::copy_nonoverlapping(from, out.row([slot, token, 0]).cast::<f32>(), w.ne[1]);
                }
            }
            // No barrier: the next block's rows overwrite what is read no more, its products come after its own barrier.
        }
    }
}

/// Reads a row of plain elements with any stride.
fn read_row(ty: ggml_type, row: *const u8, nb0: usize, to: &mut [f32]) {
    if ty == GGML_TYPE_F32 && nb0 == 4 {
        // SAFETY: a row of adjacent values whose memory and alignment were checked.
        return unsafe { std::ptr::copy_nonoverlapping(row.cast::<f32>(), to.as_mut_ptr(), to.len()) };
    }
    for (i, v) in to.iter_mut().enumerate() {
        let p = row.wrapping_add(i * nb0);
        // SAFETY: element i of a row whose memory and alignment were checked.
        *v = unsafe {
            match ty {
                GGML_TYPE_F16 => types::float::f16_to_f32(p.cast::<u16>().read()),
                GGML_TYPE_BF16 => types::float::bf16_to_f32(p.cast::<u16>().read()),
                _ => p.cast::<f32>().read(),
            }
        };
    }
}
