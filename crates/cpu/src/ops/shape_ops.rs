//! REPEAT, CONCAT, ACC, SET, PAD, PAD_REFLECT_1D, ROLL: elements that move and (ACC aside) do not change.

use super::binary::{self, Add};
use super::copy::{copy, copy_units, in_blocks, supports_copy};
use super::rules::*;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Part of a view: `n` elements from `at` in each dimension (dimension 0 in blocks).
fn part(v: &View, at: [usize; 4], n: [usize; 4]) -> View {
    let off: usize = (0..4).map(|d| at[d] * v.nb[d]).sum();
    View { ne: n, data: v.data.wrapping_add(off), ..*v }
}

fn run_repeat(node: &Node, team: &Team) {
    let ((d, size), (s, _)) = (in_blocks(&node.out()), in_blocks(&node.arg(0)));
    copy_units(team, size, &d, &s);
}

fn supports_repeat(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    ensure(op.r#type == s.r#type, "source and result must have the same format")?;
    ensure(shape::can_repeat(s, op), "the source must repeat to the result's shape")?;
    packed_blocks(op)?;
    packed_blocks(s)
}

fn run_concat(node: &Node, team: &Team) {
    let dim = node.i32(0) as usize;
    let (d, size) = in_blocks(&node.out());
    let mut at = [0; 4];
    for i in 0..2 {
        let (s, _) = in_blocks(&node.arg(i));
        copy_units(team, size, &part(&d, at, s.ne), &s);
        at[dim] += s.ne[dim];
    }
}

fn supports_concat(op: &ggml_tensor) -> Rule {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    let dim = op.op_params[0];
    ensure((0..4).contains(&dim), "the dimension must be 0 to 3")?;
    for t in [op, a, b] {
        ensure(t.r#type == op.r#type, "sources and result must have the same format")?;
        packed_blocks(t)?;
    }
    let fits = (0..4).all(|d| {
        if d == dim as usize {
            a.ne[d].checked_add(b.ne[d]) == Some(op.ne[d])
        } else {
            a.ne[d] == op.ne[d] && b.ne[d] == op.ne[d]
        }
    });
    ensure(fits, "the sources must fill the result along the dimension and agree in the others")
}

/// The part of the result that ACC and SET write: the second source's shape, strides and offset from the parameters.
fn window(op: &ggml_tensor, b: &ggml_tensor) -> Option<([usize; 4], usize)> {
    let p = |i: usize| usize::try_from(op.op_params[i]).ok();
    Some(([op.nb[0], p(0)?, p(1)?, p(2)?], p(3)?)).filter(|_| b.ne.iter().all(|&n| n >= 0))
}

fn run_window(node: &Node, team: &Team) {
    let (Some(b), d) = (node.src_opt(1), node.out()) else { return };
    let Some((nb, offset)) = window(node.dst, b) else { return };
    let a = node.arg(0);
    if a.data != d.data {
        copy(team, &d, &a);
        if !team.sync() {
            return;
        }
    }
    let b = View::of(b);
    let w = View { ne: b.ne, nb, data: d.data.wrapping_add(offset), ..d };
    if node.dst.op == GGML_OP_ACC {
        binary::apply(Add, &w, &w, &b, team);
    } else {
        let (_, size) = in_blocks(&w);
        copy_units(team, size, &w, &b);
    }
}

fn supports_window(op: &ggml_tensor) -> Rule {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    same_shape(op, a)?;
    for t in [op, a, b] {
        ensure(t.r#type == op.r#type, "sources and result must have the same format")?;
        ensure(shape::blck_size(t.r#type) == 1, "the format must be a plain one")?;
    }
    if op.op == GGML_OP_ACC {
        is_f32(op)?;
    }
    ensure(shape::is_contiguous(op), "the result must be contiguous")?;
    let (nb, offset) = window(op, b).ok_or("a stride or the offset is negative")?;
    // Distinct elements may not share memory: threads write them at the same time.
    let mut end = nb[0];
    for (d, (&ne, &nb)) in b.ne.iter().zip(&nb).enumerate() {
        ensure(ne <= 1 || nb >= end || d == 0, "the window's rows overlap")?;
        if ne > 1 {
            end = nb.saturating_mul(ne as usize);
        }
    }
    let extent = shape::checked_nbytes(op.r#type, &b.ne, &nb).and_then(|n| n.checked_add(offset));
    ensure(extent.is_some_and(|n| n <= shape::nbytes(op)), "the window reaches past the result's end")
}

/// Index in 0..n of `i - shift` on a ring.
fn ring(i: usize, shift: i64, n: usize) -> usize {
    (i as i64 - shift).rem_euclid(n as i64) as usize
}

/// A copy of which each row is one of the source's rows, by `row`; `None` is zeros. Within the row `src0` says where element i0
/// comes from, for ranges `[from, to)` in ascending order.
fn copy_rows(team: &Team, node: &Node, row: impl Fn([usize; 3]) -> Option<[usize; 3]>, pieces: &[Piece]) {
    let (d, s) = (node.out(), node.arg(0));
    let size = shape::type_size(d.ty);
    for r in team.range(d.nrows()) {
        let i = d.unravel(r);
        let from = row(i);
        for p in pieces {
            // SAFETY: pieces lie inside the row of dst, their sources inside the row of src; this row is this thread's.
            unsafe {
                let o = d.row(i).add(p.at * d.nb[0]);
                match (from, p.from) {
                    (Some(f), Some(from)) => {
                        let q = s.row(f).wrapping_add(from * s.nb[0]);
                        if p.step == 1 && s.nb[0] == size && d.nb[0] == size {
                            std::ptr::copy_nonoverlapping(q, o, p.n * size);
                        } else {
                            for k in 0..p.n {
                                let q = q.offset(k as isize * p.step * s.nb[0] as isize);
                                std::ptr::copy_nonoverlapping(q, o.add(k * d.nb[0]), size);
                            }
                        }
                    }
                    _ => (0..p.n).for_each(|k| o.add(k * d.nb[0]).write_bytes(0, size)),
                }
            }
        }
    }
}

/// Part of a row: `n` elements at `at`, from source elements `from`, `from + step`, ...; zeros without a source.
struct Piece {
    at: usize,
    n: usize,
    from: Option<usize>,
    step: isize,
}

impl Piece {
    fn new(at: usize, n: usize, from: Option<usize>) -> Piece {
        Piece { at, n, from, step: 1 }
    }
}

/// The pieces of a row of `n` whose element i comes from `i - shift` on a ring of `m`.
fn ring_pieces(n: usize, shift: i64, m: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < n {
        let from = ring(at, shift, m);
        let len = (m - from).min(n - at);
        pieces.push(Piece::new(at, len, Some(from)));
        at += len;
    }
    pieces
}

fn run_pad(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let left: [i64; 4] = std::array::from_fn(|k| node.i32(2 * k).into());
    if node.i32(8) != 0 {
        let row = |i: [usize; 3]| Some(std::array::from_fn(|k| ring(i[k], left[k + 1], s.ne[k + 1])));
        return copy_rows(team, node, row, &ring_pieces(d.ne[0], left[0], s.ne[0]));
    }
    let inside = |i: usize, k: usize| {
        let x = i as i64 - left[k];
        (x >= 0 && x < s.ne[k] as i64).then_some(x as usize)
    };
    let row = |i: [usize; 3]| Some([inside(i[0], 1)?, inside(i[1], 2)?, inside(i[2], 3)?]);
    let (n, m) = (d.ne[0] as i64, s.ne[0] as i64);
    // A negative padding cuts off.
    let (start, end) = (left[0].clamp(0, n), (left[0] + m).clamp(0, n));
    let (start, end) = (start as usize, end.max(start) as usize);
    let pieces = [
        Piece::new(0, start, None),
        Piece::new(start, end - start, Some((start as i64 - left[0]).max(0) as usize)),
        Piece::new(end, n as usize - end, None),
    ];
    copy_rows(team, node, row, &pieces);
}

fn supports_pad(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    plain(op, s)?;
    let fits = (0..4).all(|d| {
        let (l, r) = (i64::from(op.op_params[2 * d]), i64::from(op.op_params[2 * d + 1]));
        s.ne[d].checked_add(l + r) == Some(op.ne[d])
    });
    ensure(fits, "the result must have the source's shape plus the padding")?;
    ensure(op.op_params[8] == 0 || !shape::is_empty(s), "an empty source cannot be repeated")
}

fn plain(op: &ggml_tensor, s: &ggml_tensor) -> Rule {
    ensure(op.r#type == s.r#type, "source and result must have the same format")?;
    ensure(shape::blck_size(op.r#type) == 1, "the format must be a plain one")
}

fn run_reflect(node: &Node, team: &Team) {
    let (p0, p1, m) = (node.i32(0) as usize, node.i32(1) as usize, node.arg(0).ne[0]);
    let pieces = [
        Piece { at: 0, n: p0, from: Some(p0), step: -1 },
        Piece::new(p0, m, Some(0)),
        Piece { at: p0 + m, n: p1, from: Some(m.saturating_sub(2)), step: -1 },
    ];
    copy_rows(team, node, Some, &pieces);
}

fn supports_reflect(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    plain(op, s)?;
    let (p0, p1) = (i64::from(op.op_params[0]), i64::from(op.op_params[1]));
    ensure((0..s.ne[0]).contains(&p0) && (0..s.ne[0]).contains(&p1), "the padding must be shorter than the row")?;
    ensure(op.ne[0] == s.ne[0] + p0 + p1 && op.ne[1..] == s.ne[1..], "the result must have the padded shape")
}

fn run_roll(node: &Node, team: &Team) {
    let ne = node.out().ne;
    let shift: [i64; 4] = std::array::from_fn(|k| node.i32(k).into());
    let row = |i: [usize; 3]| Some(std::array::from_fn(|k| ring(i[k], shift[k + 1], ne[k + 1])));
    copy_rows(team, node, row, &ring_pieces(ne[0], shift[0], ne[0]));
}

fn supports_roll(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    plain(op, s)?;
    same_shape(op, s)
}

fn supports_window_all(op: &ggml_tensor) -> Rule {
    supports_copy(op, src(op, 0)?)?;
    supports_window(op)
}

/// REPEAT.
pub static REPEAT: OpEntry =
    OpEntry { supports: supports_repeat, work: no_work, n_tasks: tasks_by_size, run: run_repeat };
/// CONCAT.
pub static CONCAT: OpEntry =
    OpEntry { supports: supports_concat, work: no_work, n_tasks: tasks_by_size, run: run_concat };
/// ACC, SET.
pub static WINDOW: OpEntry =
    OpEntry { supports: supports_window_all, work: no_work, n_tasks: tasks_by_size, run: run_window };
/// PAD.
pub static PAD: OpEntry = OpEntry { supports: supports_pad, work: no_work, n_tasks: tasks_by_size, run: run_pad };
/// PAD_REFLECT_1D.
pub static REFLECT: OpEntry =
    OpEntry { supports: supports_reflect, work: no_work, n_tasks: tasks_by_size, run: run_reflect };
/// ROLL.
pub static ROLL: OpEntry = OpEntry { supports: supports_roll, work: no_work, n_tasks: tasks_by_size, run: run_roll };
