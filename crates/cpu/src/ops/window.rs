//! WIN_PART, WIN_UNPART, GET_REL_POS, ADD_REL_POS.
//!
//! Sources in any layout; rows of the result packed.

use super::rows::{self, is_float, CHUNK};
use super::rules::*;
use super::vec::{dispatch, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

/// Copies a row of f32, f16 or bf16, converting where the formats differ.
///
/// # Safety
/// The views are good for the rows; that of `d` is packed and the caller's.
unsafe fn copy_row(d: &View, to: [usize; 3], s: &View, from: [usize; 3]) {
    let n = d.ne[0];
    let size = if d.ty == GGML_TYPE_F32 { 4 } else { 2 };
    let (to, from) = (d.row(to), s.row(from).cast_const());
    // SAFETY: the caller's promise.
    unsafe {
        if d.ty == s.ty && s.nb[0] == size {
            return std::ptr::copy_nonoverlapping(from, to, n * size);
        }
        let mut room = [0.0f32; CHUNK];
        for at in (0..n).step_by(CHUNK) {
            let k = (n - at).min(CHUNK);
            rows::load(s.ty, from.add(at * s.nb[0]), s.nb[0], room.as_mut_ptr(), k);
            rows::store(d.ty, room.as_ptr(), to.add(at * size), size, k);
        }
    }
}

fn run_part(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let nx = node.i32(0) as usize;
    for row in team.range(d.nrows()) {
        let to = d.unravel(row);
        let (i1, i2) = (to[2] % nx * d.ne[1] + to[0], to[2] / nx * d.ne[2] + to[1]);
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            if i1 < s.ne[1] && i2 < s.ne[2] {
                copy_row(&d, to, &s, [i1, i2, 0]);
            } else {
                d.row(to).write_bytes(0, 4 * d.ne[0]);
            }
        }
    }
}

fn supports_part(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(op)?;
    is_f32(s)?;
    packed_rows(op)?;
    let [nx, ny, w] = [0, 1, 2].map(|i| i64::from(op.op_params[i]));
    ensure(w > 0 && nx >= 0 && ny >= 0, "the size of a window must be positive")?;
    ensure(s.ne[3] == 1, "there must be three dimensions")?;
    let covers = |n: i64, windows: i64| n / w + i64::from(n % w != 0) == windows;
    ensure(covers(s.ne[1], nx) && covers(s.ne[2], ny), "the windows must cover the source")?;
    ensure(op.ne == [s.ne[0], w, w, nx * ny], "the result must be the windows")
}

fn run_unpart(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let w = node.i32(0) as usize;
    let nx = d.ne[1].div_ceil(w);
    for row in team.range(d.nrows()) {
        let to = d.unravel(row);
        let window = to[1] / w * nx + to[0] / w;
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe { copy_row(&d, to, &s, [to[0] % w, to[1] % w, window]) };
    }
}

fn supports_unpart(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    is_f32(op)?;
    is_f32(s)?;
    packed_rows(op)?;
    let w = i64::from(op.op_params[0]);
    ensure(w > 0, "the size of a window must be positive")?;
    ensure(op.ne[0] == s.ne[0] && op.ne[3] == 1, "the result must have the source's rows and three dimensions")?;
    let windows = |n: i64| n / w + i64::from(n % w != 0);
    let count = windows(op.ne[1]).checked_mul(windows(op.ne[2]));
    let enough = s.ne[1] >= w && s.ne[2] >= w && count.is_some_and(|n| s.ne[3] >= n);
    ensure(enough, "the source must have the windows of the result")
}

/// Rows of packed f16, each from before the last one's source.
struct Backwards {
    /// The source of the first row.
    from: *const u8,
    from_nb1: usize,
    to: *mut u8,
    to_nb1: usize,
    rows: usize,
    n: usize,
}

impl Kernel for Backwards {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the rows are there, `n` elements each: the caller's promise.
        unsafe {
            for row in 0..self.rows {
                let from = self.from.sub(row * self.from_nb1).cast::<u16>();
                let to = self.to.add(row * self.to_nb1).cast::<u16>();
                // two elements are one lane
                let Some(last) = self.n.checked_sub(2 * LANES) else {
                    for i in 0..self.n {
                        to.add(i).write_unaligned(from.add(i).read_unaligned());
                    }
                    continue;
                };
                for i in (0..last).step_by(2 * LANES) {
                    V::load(from.add(i).cast()).store(to.add(i).cast());
                }
                // may lie over the one before
                V::load(from.add(last).cast()).store(to.add(last).cast());
            }
        }
    }
}

fn run_get(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let n = d.ne[1];
    for q in team.range(d.ne[2]) {
        let last = n - 1 + q;
        if s.ty == GGML_TYPE_F16 && s.nb[0] == 2 {
            let (from, to) = (s.row([last, 0, 0]), d.row([0, q, 0]));
            let kernel = Backwards { from, from_nb1: s.nb[1], to, to_nb1: d.nb[1], rows: n, n: d.ne[0] };
            // SAFETY: the views are good for their shapes; these rows of dst are this thread's and packed.
            unsafe { dispatch(kernel) };
            continue;
        }
        for k in 0..n {
            // SAFETY: as above.
            unsafe { copy_row(&d, [k, q, 0], &s, [last - k, 0, 0]) };
        }
    }
}

fn supports_get(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    ensure(op.r#type == GGML_TYPE_F16 && is_float(s.r#type), "the source must be f32, f16 or bf16, the result f16")?;
    packed_rows(op)?;
    let n = op.ne[1];
    ensure(op.ne == [s.ne[0], n, n, 1], "the result must be square and have the source's rows")?;
    let rows = n.checked_mul(2).map(|n| n - 1);
    ensure(rows == Some(s.ne[1]) && s.ne[2..] == [1, 1], "the source must have a row for each distance")
}

/// A row of a: pictures of n times n get the numbers of their columns and lines.
struct AddRow {
    n: usize,
    a: *const f32,
    w: *const f32,
    h: *const f32,
    out: *mut f32,
}

impl Kernel for AddRow {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: `a` and `out` hold n times n, the others n: the caller's promise.
        unsafe {
            for y in 0..self.n {
                let h = V::splat(self.h.add(y).read_unaligned());
                let (a, out) = (self.a.add(y * self.n), self.out.add(y * self.n));
                let mut x = 0;
                while x + LANES <= self.n {
                    V::load(a.add(x)).add(h).add(V::load(self.w.add(x))).store(out.add(x));
                    x += LANES;
                }
                let rest = self.n - x;
                if rest > 0 {
                    V::load_n(a.add(x), rest).add(h).add(V::load_n(self.w.add(x), rest)).store_n(out.add(x), rest);
                }
            }
        }
    }
}

fn run_add(node: &Node, team: &Team) {
    let (d, a, w, h) = (node.out(), node.arg(0), node.arg(1), node.arg(2));
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        let p = [i[0] % w.ne[1], i[0] / w.ne[1], i[1]];
        let kernel =
            AddRow { n: w.ne[0], a: a.row(i).cast(), w: w.row(p).cast(), h: h.row(p).cast(), out: d.row(i).cast() };
        // SAFETY: the views are good for their shapes, rows packed; this row of dst is this thread's, and the source's or apart.
        unsafe { dispatch(kernel) };
    }
}

fn supports_add(op: &ggml_tensor) -> Rule {
    let (a, w, h) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    for t in [op, a, w, h] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    same_shape(op, a)?;
    same_shape(w, h)?;
    let [n, n1, n2, n3] = w.ne;
    let square = |a: i64, b: i64, ab: i64| a.checked_mul(b) == Some(ab);
    ensure(square(n, n, a.ne[0]) && square(n1, n2, a.ne[1]), "rows must be squares of the positions")?;
    ensure(a.ne[2..] == [n3, 1], "there must be positions for each row")
}

/// WIN_PART.
pub static PART: OpEntry = OpEntry { supports: supports_part, work: no_work, n_tasks: tasks_by_size, run: run_part };
/// WIN_UNPART.
pub static UNPART: OpEntry =
    OpEntry { supports: supports_unpart, work: no_work, n_tasks: tasks_by_size, run: run_unpart };
/// GET_REL_POS.
pub static GET_REL_POS: OpEntry =
    OpEntry { supports: supports_get, work: no_work, n_tasks: tasks_by_size, run: run_get };
/// ADD_REL_POS.
pub static ADD_REL_POS: OpEntry =
    OpEntry { supports: supports_add, work: no_work, n_tasks: tasks_by_size, run: run_add };
