//! ADD, SUB, MUL, DIV, ADD1, ADD_ID: two sources, the second repeated to the first's shape.
//!
//! f32, f16 and bf16 in any pairing and any layout; ADD and ADD1 also take a block format as first source.

use super::loops::Loops;
use super::rows::{self, is_float, CHUNK};
use super::rules::*;
use super::vec::map::{map, map2, Map2, With};
use super::vec::Lanes;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

macro_rules! maps2 {
    ($($name:ident = $f:ident;)*) => {
        $(#[derive(Clone, Copy)]
        pub(super) struct $name;
        impl Map2 for $name {
            #[inline(always)]
            unsafe fn f<V: Lanes>(self, a: V, b: V) -> V {
                // SAFETY: the caller's promise about V.
                unsafe { a.$f(b) }
            }
        })*
    };
}

maps2! {
    Add = add;
    Sub = sub;
    Mul = mul;
    Div = div;
}

/// `dst = m(a, b)`, `b` repeated.
pub(super) fn apply<M: Map2>(m: M, dst: &View, a: &View, b: &View, team: &Team) {
    if b.is_empty() {
        return;
    }
    let (dt, at, bt) = (dst.ty, a.ty, b.ty);
    let all_f32 = dt == GGML_TYPE_F32 && at == GGML_TYPE_F32 && bt == GGML_TYPE_F32;
    let loops = Loops::over([dst, a, b]).sort_by(0).merge();
    loops.share(team, [dst.data, a.data, b.data], |n, [d, pa, pb], [ds, sa, sb]| {
        // SAFETY: the views are good for their shapes (checked node), and no other thread has these elements of dst.
        unsafe {
            if all_f32 && (n == 1 || (ds == 4 && sa == 4 && sb <= 4)) {
                if sb == 0 {
                    let x = pb.cast::<f32>().read_unaligned();
                    map(With(m, x), pa.cast(), d.cast(), n);
                } else {
                    map2(m, pa.cast(), pb.cast(), d.cast(), n);
                }
                return;
            }
            let mut buf = [[0.0f32; CHUNK]; 2];
            let [x, y] = &mut buf;
            if sb == 0 {
                rows::load(bt, pb, 0, y.as_mut_ptr(), 1);
            }
            let mut i = 0;
            while i < n {
                let k = (n - i).min(CHUNK);
                rows::load(at, pa.add(i * sa), sa, x.as_mut_ptr(), k);
                if sb == 0 {
                    map(With(m, y[0]), x.as_ptr(), x.as_mut_ptr(), k);
                } else {
                    rows::load(bt, pb.add(i * sb), sb, y.as_mut_ptr(), k);
                    map2(m, x.as_ptr(), y.as_ptr(), x.as_mut_ptr(), k);
                }
                rows::store(dt, x.as_ptr(), d.add(i * ds), ds, k);
                i += k;
            }
        }
    });
}

/// `dst = a + b` where `a` or `dst` is of a block format.
fn add_blocks(dst: &View, a: &View, b: &View, team: &Team) {
    let (Some(dt), Some(at)) = (Type::from_id(dst.ty.0), Type::from_id(a.ty.0)) else { return };
    if b.is_empty() {
        return;
    }
    let at_block = |ty: Type, nb0: usize, i: usize| i / ty.block_size() * nb0;
    for row in team.range(dst.nrows()) {
        let i = dst.unravel(row);
        let (d, pa) = (dst.row(i), a.row(i));
        let pb = b.row([i[0] % b.ne[1], i[1] % b.ne[2], i[2] % b.ne[3]]);
        let mut buf = [[0.0f32; CHUNK]; 2];
        let [x, y] = &mut buf;
        for i0 in (0..dst.ne[0]).step_by(CHUNK) {
            let k = (dst.ne[0] - i0).min(CHUNK);
            // SAFETY: the views are good for their shapes, chunks are whole blocks, rows of block formats are packed.
            unsafe {
                let p = pa.add(at_block(at, a.nb[0], i0));
                if is_float(a.ty) {
                    rows::load(a.ty, p, a.nb[0], x.as_mut_ptr(), k);
                } else {
                    rows::decode(at, p, x.as_mut_ptr(), k);
                }
                for (j, y) in y[..k].iter_mut().enumerate() {
                    rows::load(b.ty, pb.add((i0 + j) % b.ne[0] * b.nb[0]), 0, y, 1);
                }
                map2(Add, x.as_ptr(), y.as_ptr(), x.as_mut_ptr(), k);
                let p = d.add(at_block(dt, dst.nb[0], i0));
                if is_float(dst.ty) {
                    rows::store(dst.ty, x.as_ptr(), p, dst.nb[0], k);
                } else {
                    rows::encode(dt, x.as_ptr(), p, k);
                }
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let (d, a, b) = (&node.out(), &node.arg(0), &node.arg(1));
    match node.dst.op {
        GGML_OP_SUB => apply(Sub, d, a, b, team),
        GGML_OP_MUL => apply(Mul, d, a, b, team),
        GGML_OP_DIV => apply(Div, d, a, b, team),
        _ if is_float(d.ty) && is_float(a.ty) => apply(Add, d, a, b, team),
        _ => add_blocks(d, a, b, team),
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let (a, b) = (src(op, 0)?, src(op, 1)?);
    same_shape(op, a)?;
    repeats(b, a)?;
    float(b)?;
    if matches!(op.op, GGML_OP_ADD | GGML_OP_ADD1) {
        if op.op == GGML_OP_ADD1 {
            ensure(b.ne == [1; 4], "the second source must be one element")?;
        }
        for t in [op, a] {
            packed_blocks(t)?;
            ensure(
                is_float(t.r#type) || Type::from_id(t.r#type.0).is_some_and(Type::is_quantized),
                "the format must be f32, f16, bf16 or a block format",
            )?;
        }
        decodable(a)?;
        encodable(op)
    } else {
        float(a)?;
        float(op)
    }
}

fn run_add_id(node: &Node, team: &Team) {
    let (d, a, b, ids) = (node.out(), node.arg(0), node.arg(1), node.arg(2));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        // SAFETY: ids has an element for each of a's dimensions 1 and 2 (checked).
        let id = unsafe { ids.at(i[0], [i[1], 0, 0]).cast::<i32>().read_unaligned() };
        let Some(id) = usize::try_from(id).ok().filter(|&id| id < b.ne[1]) else {
            team.fail(format!("index {id} is outside the {} rows of the second source", b.ne[1]));
            return;
        };
        // SAFETY: rows are packed f32 of the same length (checked), and this row of dst is this thread's.
        unsafe { map2(Add, a.row(i).cast(), b.row([id, 0, 0]).cast(), d.row(i).cast(), d.ne[0]) }
    }
}

fn supports_add_id(op: &ggml_tensor) -> Rule {
    let (a, b, ids) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    same_shape(op, a)?;
    for t in [op, a, b] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    is_i32(ids)?;
    filled(b)?;
    filled(ids)?;
    ensure(a.ne[0] == b.ne[0], "both sources must have rows of the same length")?;
    ensure(a.ne[1] == ids.ne[0] && a.ne[2] == ids.ne[1], "there must be one index for each row")
}

/// ADD, SUB, MUL, DIV, ADD1.
pub static BINARY: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
/// ADD_ID.
pub static ADD_ID: OpEntry =
    OpEntry { supports: supports_add_id, work: no_work, n_tasks: tasks_by_size, run: run_add_id };
