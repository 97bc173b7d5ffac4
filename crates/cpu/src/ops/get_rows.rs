//! GET_ROWS, SET_ROWS. An index outside the rows fails the node; nothing is read or written outside.

use super::convert::one;
use super::rows::{self, is_float, CHUNK};
use super::rules::*;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

/// How rows of `n` elements go from one view to another.
enum RowCopy {
    /// As they are: the bytes of a row.
    Bytes(usize),
    /// Packed, to packed f32.
    ToF32(Type, usize),
    /// By way of f32 or element by element.
    Other,
}

impl RowCopy {
    fn of(n: usize, dv: &View, sv: &View) -> RowCopy {
        let (Some(dt), Some(st)) = (Type::from_id(dv.ty.0), Type::from_id(sv.ty.0)) else { return RowCopy::Other };
        let packed = sv.nb[0] == st.block_bytes() && dv.nb[0] == dt.block_bytes();
        let aligned = (dv.data as usize).is_multiple_of(4) && dv.nb.iter().all(|nb| nb.is_multiple_of(4));
        if packed && dt == st {
            RowCopy::Bytes(n / dt.block_size() * dt.block_bytes())
        } else if packed && dt == Type::F32 && aligned && (is_float(sv.ty) || st.block_size() > 1 || rows::is_f8(st)) {
            RowCopy::ToF32(st, n)
        } else {
            RowCopy::Other
        }
    }

    /// Copies a row.
    ///
    /// # Safety
    /// The views are those that this was made of. Both rows are good for `n` elements; block formats packed, `n` whole blocks.
    #[inline]
    unsafe fn row(&self, n: usize, d: *mut u8, dv: &View, s: *const u8, sv: &View) {
        // SAFETY: the caller's promise; rows of f32 that are decoded to are aligned.
        unsafe {
            match *self {
                RowCopy::Bytes(bytes) => std::ptr::copy(s, d, bytes),
                RowCopy::ToF32(st, n) => rows::decode(st, s, d.cast(), n),
                RowCopy::Other => copy_row(n, d, dv, s, sv),
            }
        }
    }
}

/// Copies a row between formats.
///
/// # Safety
/// Both rows are good for `n` elements; block formats packed, `n` whole blocks.
unsafe fn copy_row(n: usize, d: *mut u8, dv: &View, s: *const u8, sv: &View) {
    let (Some(dt), Some(st)) = (Type::from_id(dv.ty.0), Type::from_id(sv.ty.0)) else { return };
    let (ds, ss) = (dv.nb[0], sv.nb[0]);
    // SAFETY: the caller's promise.
    unsafe {
        if dt.block_size() == 1 && st.block_size() == 1 && !(is_float(dv.ty) && is_float(sv.ty)) {
            return (0..n).for_each(|i| one(dt, d.add(i * ds), st, s.add(i * ss)));
        }
        let mut buf = [0.0f32; CHUNK];
        for i in (0..n).step_by(CHUNK) {
            let k = (n - i).min(CHUNK);
            let p = s.add(i / st.block_size() * ss);
            if is_float(sv.ty) {
                rows::load(sv.ty, p, ss, buf.as_mut_ptr(), k);
            } else if st.block_size() > 1 {
                rows::decode(st, p, buf.as_mut_ptr(), k);
            } else {
                (0..k).for_each(|j| rows::decode(st, p.add(j * ss), buf.as_mut_ptr().add(j), 1));
            }
            let q = d.add(i / dt.block_size() * ds);
            if is_float(dv.ty) {
                rows::store(dv.ty, buf.as_ptr(), q, ds, k);
            } else if dt.block_size() > 1 {
                rows::encode(dt, buf.as_ptr(), q, k);
            } else {
                (0..k).for_each(|j| rows::encode(dt, buf.as_ptr().add(j), q.add(j * ds), 1));
            }
        }
    }
}

fn run_get(node: &Node, team: &Team) {
    let (d, a, ids) = (node.out(), node.arg(0), node.arg(1));
    let copy = RowCopy::of(d.ne[0], &d, &a);
    let range = team.range(d.nrows());
    let mut i = if range.is_empty() { [0; 3] } else { d.unravel(range.start) };
    for _ in range {
        // SAFETY: there is an index for each row of dst (checked).
        let id = unsafe { ids.at(i[0], [i[1], i[2], 0]).cast::<i32>().read_unaligned() };
        let Some(from) = usize::try_from(id).ok().filter(|&r| r < a.ne[1]) else {
            return team.fail(format!("index {id} is outside the {} rows of the source", a.ne[1]));
        };
        // SAFETY: the views are good for their shapes; this row of dst is this thread's.
        unsafe { copy.row(d.ne[0], d.row(i), &d, a.row([from, i[1], i[2]]), &a) };
        i[0] += 1;
        if i[0] == d.ne[1] {
            i = if i[1] + 1 == d.ne[2] { [0, 0, i[2] + 1] } else { [0, i[1] + 1, i[2]] };
        }
    }
}

fn supports_get(op: &ggml_tensor) -> Rule {
    let (a, ids) = (src(op, 0)?, src(op, 1)?);
    is_i32(ids)?;
    convertible(op, a)?;
    ensure(
        a.ne[2] == ids.ne[1] && a.ne[3] == ids.ne[2] && ids.ne[3] == 1,
        "the indices must have the source's dimensions 2 and 3",
    )?;
    let ne = [a.ne[0], ids.ne[0], ids.ne[1], ids.ne[2]];
    ensure(op.ne == ne, "the result must have one row for each index")
}

fn convertible(d: &ggml_tensor, s: &ggml_tensor) -> Rule {
    packed_blocks(d)?;
    packed_blocks(s)?;
    if d.r#type != s.r#type {
        decodable(s)?;
        encodable(d)?;
    }
    Ok(())
}

/// Index number `i` of i32 or i64 indices.
///
/// # Safety
/// The view is good for the index.
unsafe fn index(ids: &View, i: [usize; 3]) -> i64 {
    let p = ids.at(i[0], [i[1], i[2], 0]);
    // SAFETY: the caller's promise.
    unsafe {
        if ids.ty == GGML_TYPE_I64 {
            p.cast::<i64>().read_unaligned()
        } else {
            p.cast::<i32>().read_unaligned().into()
        }
    }
}

fn run_set(node: &Node, team: &Team) {
    let (d, b, ids) = (node.out(), node.arg(0), node.arg(1));
    let copy = RowCopy::of(d.ne[0], &d, &b);
    for row in 0..b.nrows() {
        let i = b.unravel(row);
        // SAFETY: the indices repeat over the rows of the source (checked).
        let id = unsafe { index(&ids, [i[0], i[1] % ids.ne[1], i[2] % ids.ne[2]]) };
        let Some(to) = usize::try_from(id).ok().filter(|&r| r < d.ne[1]) else {
            return team.fail(format!("index {id} is outside the {} rows of the result", d.ne[1]));
        };
        // A row of the result belongs to one thread: of two writes to it, the later source row stays.
        if to % team.nth() == team.ith() {
            // SAFETY: the views are good for their shapes.
            unsafe { copy.row(d.ne[0], d.row([to, i[1], i[2]]), &d, b.row(i), &b) };
        }
    }
}

fn supports_set(op: &ggml_tensor) -> Rule {
    let (b, ids) = (src(op, 0)?, src(op, 1)?);
    ensure(matches!(ids.r#type, GGML_TYPE_I32 | GGML_TYPE_I64), "the indices must be i32 or i64")?;
    convertible(op, b)?;
    ensure(op.ne[0] == b.ne[0] && op.ne[2..] == b.ne[2..], "source and result must agree in all dimensions but 1")?;
    let repeat = ids.ne[0] == b.ne[1]
        && ids.ne[3] == 1
        && ids.ne[1] > 0
        && ids.ne[2] > 0
        && b.ne[2] % ids.ne[1] == 0
        && b.ne[3] % ids.ne[2] == 0;
    ensure(repeat, "there must be one index for each row of the source")
}

/// GET_ROWS.
pub static GET_ROWS: OpEntry = OpEntry { supports: supports_get, work: no_work, n_tasks: tasks_by_size, run: run_get };
/// SET_ROWS.
pub static SET_ROWS: OpEntry = OpEntry { supports: supports_set, work: no_work, n_tasks: tasks_by_size, run: run_set };
