//! RWKV_WKV6, RWKV_WKV7, GATED_LINEAR_ATTN: attention that carries a matrix from token to token.
//!
//! f32, all contiguous. A matrix falls into parts that know nothing of each other, columns or rows; a thread takes a part of a
//! head through all tokens of a sequence, so that it stays in the first cache.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::rules::*;
use super::vec::{dispatch, part, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Columns that one thread takes at a time.
const COLUMNS: usize = 4 * LANES;
/// Rows that one thread takes at a time.
const ROWS: usize = 16;

/// Columns of one head of one sequence. With matrix S, keys k and values v, WKV6 (`first`, tf, is not NULL):
/// y = r (tf k v + S), S = td S + k v; the other: S = g S + k v, y = scale q S.
struct Columns {
    size: usize,
    tokens: usize,
    /// Elements from token to token.
    step: usize,
    k: *const f32,
    /// The columns' values.
    v: *const f32,
    /// r or q.
    r: *const f32,
    first: *const f32,
    /// td or g.
    decay: *const f32,
    scale: f32,
    start: *const f32,
    state: *mut f32,
    y: *mut f32,
    n: usize,
}

impl Columns {
    /// `N` times `LANES` columns from `at` on, or if `PART` the `n` last.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; the columns are there.
    #[inline(always)]
    unsafe fn columns<V: Lanes, const N: usize, const WKV6: bool, const PART: bool>(&self, at: usize, n: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = V::splat(self.scale);
            for t in 0..self.tokens {
                let token = t * self.step;
                let from = if t == 0 { self.start } else { self.state.cast_const() };
                let mut v = [V::splat(0.0); N];
                let mut y = [V::splat(0.0); N];
                for j in 0..N {
                    v[j] = part::load::<V, PART>(self.v.add(token + at + j * LANES), n);
                }
                for i in 0..self.size {
                    let k = part::splat::<V>(self.k.add(token + i));
                    let r = part::splat::<V>(self.r.add(token + i));
                    let decay = part::splat::<V>(self.decay.add(token + i));
                    let (from, to) = (from.add(i * self.size + at), self.state.add(i * self.size + at));
                    if WKV6 {
                        let first = part::splat::<V>(self.first.add(i));
                        for j in 0..N {
                            let s = part::load::<V, PART>(from.add(j * LANES), n);
                            let kv = k.mul(v[j]);
                            y[j] = kv.fma(first, s).fma(r, y[j]);
                            part::store::<V, PART>(s.fma(decay, kv), to.add(j * LANES), n);
                        }
                    } else {
                        let q = r.mul(scale);
                        for j in 0..N {
                            let s = part::load::<V, PART>(from.add(j * LANES), n).fma(decay, k.mul(v[j]));
                            y[j] = s.fma(q, y[j]);
                            part::store::<V, PART>(s, to.add(j * LANES), n);
                        }
                    }
                }
                for j in 0..N {
                    part::store::<V, PART>(y[j], self.y.add(token + at + j * LANES), n);
                }
            }
        }
    }

    /// # Safety
    /// As for [`Kernel::run`].
    #[inline(always)]
    unsafe fn all<V: Lanes, const WKV6: bool>(&self) {
        let mut at = 0;
        // SAFETY: the columns are below `n`.
        unsafe {
            if self.n == COLUMNS {
                return self.columns::<V, 4, WKV6, false>(0, LANES);
            }
            while at + LANES <= self.n {
                self.columns::<V, 1, WKV6, false>(at, LANES);
                at += LANES;
            }
            if at < self.n {
                self.columns::<V, 1, WKV6, true>(at, self.n - at);
            }
        }
    }
}

impl Kernel for Columns {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller's promise: all pointers are good for the tokens and the matrix.
        unsafe {
            if self.first.is_null() {
                self.all::<V, false>();
            } else {
                self.all::<V, true>();
            }
        }
    }
}

/// Rows of one head of one sequence for WKV7: with matrix S, S = S w + v k + (S a) b, y = S r.
struct Rows {
    size: usize,
    tokens: usize,
    /// Elements from token to token.
    step: usize,
    r: *const f32,
    w: *const f32,
    k: *const f32,
    /// The rows' values.
    v: *const f32,
    a: *const f32,
    b: *const f32,
    start: *const f32,
    state: *mut f32,
    y: *mut f32,
    n: usize,
}

impl Rows {
    /// `N` rows from `row` on, one token.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; the rows are there.
    #[inline(always)]
    unsafe fn rows<V: Lanes, const N: usize>(&self, token: usize, row: usize, from: *const f32) {
        let size = self.size;
        let full = size - size % LANES;
        let rest = size - full;
        let token = token * self.step;
        // SAFETY: the caller's promise.
        unsafe {
            let (from, to) = (from.add(row * size), self.state.add(row * size));
            let mut acc = [V::splat(0.0); N];
            for j in (0..full).step_by(LANES) {
                let a = V::load(self.a.add(token + j));
                for i in 0..N {
                    acc[i] = V::load(from.add(i * size + j)).fma(a, acc[i]);
                }
            }
            if rest > 0 {
                let a = V::load_n(self.a.add(token + full), rest);
                for i in 0..N {
                    acc[i] = V::load_n(from.add(i * size + full), rest).fma(a, acc[i]);
                }
            }
            let (mut sa, mut v) = ([V::splat(0.0); N], [V::splat(0.0); N]);
            for i in 0..N {
                sa[i] = V::splat(acc[i].sum());
                v[i] = part::splat(self.v.add(token + row + i));
            }
            acc = [V::splat(0.0); N];
            for j in (0..full).step_by(LANES) {
                let (r, w) = (V::load(self.r.add(token + j)), V::load(self.w.add(token + j)));
                let (k, b) = (V::load(self.k.add(token + j)), V::load(self.b.add(token + j)));
                for i in 0..N {
                    let s = V::load(from.add(i * size + j)).fma(w, v[i].mul(k));
                    let s = sa[i].fma(b, s);
                    s.store(to.add(i * size + j));
                    acc[i] = s.fma(r, acc[i]);
                }
            }
            if rest > 0 {
                let at = token + full;
                let (r, w) = (V::load_n(self.r.add(at), rest), V::load_n(self.w.add(at), rest));
                let (k, b) = (V::load_n(self.k.add(at), rest), V::load_n(self.b.add(at), rest));
                for i in 0..N {
                    let s = V::load_n(from.add(i * size + full), rest).fma(w, v[i].mul(k));
                    let to = to.add(i * size + full);
                    sa[i].fma(b, s).store_n(to, rest);
                    // lanes that are not in use may be NaN
                    acc[i] = V::load_n(to, rest).fma(r, acc[i]);
                }
            }
            for i in 0..N {
                self.y.add(token + row + i).write_unaligned(acc[i].sum());
            }
        }
    }
}

impl Kernel for Rows {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for t in 0..self.tokens {
            let from = if t == 0 { self.start } else { self.state.cast_const() };
            let mut row = 0;
            // SAFETY: the caller's promise: all pointers are good for the tokens and the matrix.
            unsafe {
                while row + 4 <= self.n {
                    self.rows::<V, 4>(t, row, from);
                    row += 4;
                }
                while row < self.n {
                    self.rows::<V, 1>(t, row, from);
                    row += 1;
                }
            }
        }
    }
}

/// Where things lie in a node: source of the state, of what has the shape [size, heads, tokens], and of tf.
fn slots(op: ggml_op) -> (usize, &'static [usize], Option<usize>) {
    match op {
        GGML_OP_RWKV_WKV6 => (5, &[0, 1, 2, 4], Some(3)),
        GGML_OP_RWKV_WKV7 => (6, &[0, 1, 2, 3, 4, 5], None),
        _ => (4, &[0, 1, 2, 3], None),
    }
}

fn run(node: &Node, team: &Team) {
    let op = node.dst.op;
    let (state_slot, slots, tf) = slots(op);
    let (d, s) = (node.out(), node.arg(state_slot));
    let [size, heads, total, _] = node.arg(slots[0]).ne;
    let seqs = s.ne[1];
    let tokens = total / seqs.max(1);
    let step = size * heads;
    let out = d.data.cast::<f32>();
    let (states, start) = (out.wrapping_add(step * total), s.data.cast::<f32>().cast_const());
    let each = if op == GGML_OP_RWKV_WKV7 { ROWS } else { COLUMNS };
    let parts = size.div_ceil(each);
    for task in team.range(parts * heads * seqs) {
        let (at, head, seq) = (task % parts * each, task / parts % heads, task / (parts * heads));
        let matrix = (seq * heads + head) * size * size;
        let token = seq * tokens * step + head * size;
        let arg = |i: usize| node.arg(slots[i]).data.cast::<f32>().cast_const().wrapping_add(token);
        let n = (size - at).min(each);
        let y = out.wrapping_add(token);
        if tokens == 0 {
            let (from, to) = (start.wrapping_add(matrix), states.wrapping_add(matrix));
            if at == 0 {
                // SAFETY: a matrix of the sources and one of the result, which is this thread's.
                unsafe { std::ptr::copy_nonoverlapping::<u8>(from.cast(), to.cast(), 4 * size * size) };
            }
        } else if op == GGML_OP_RWKV_WKV7 {
            let kernel = Rows {
                size,
                tokens,
                step,
                r: arg(0),
                w: arg(1),
                k: arg(2),
                v: arg(3).wrapping_add(at),
                a: arg(4),
                b: arg(5),
                start: start.wrapping_add(matrix + at * size),
                state: states.wrapping_add(matrix + at * size),
                y: y.wrapping_add(at),
                n,
            };
            // SAFETY: the sources are contiguous and of their shapes; these rows of states and results are this thread's.
            unsafe { dispatch(kernel) };
        } else {
            let first = tf.map_or(std::ptr::null(), |i| node.arg(i).data.cast::<f32>().wrapping_add(head * size));
            let kernel = Columns {
                size,
                tokens,
                step,
                k: arg(0),
                v: arg(1).wrapping_add(at),
                r: arg(2),
                first,
                decay: arg(3),
                scale: node.f32(0),
                start: start.wrapping_add(matrix + at),
                state: states.wrapping_add(matrix + at),
                y: y.wrapping_add(at),
                n,
            };
            // SAFETY: as above, of columns.
            unsafe { dispatch(kernel) };
        }
    }
}

fn contiguous(t: &ggml_tensor) -> Rule {
    is_f32(t)?;
    ensure(shape::is_contiguous(t), "sources and result must be contiguous")
}

fn supports(op: &ggml_tensor) -> Rule {
    let (state, slots, tf) = slots(op.op);
    let (state, k) = (src(op, state)?, src(op, slots[0])?);
    let [size, heads, tokens, _] = k.ne;
    contiguous(op)?;
    contiguous(state)?;
    for &i in slots {
        let t = src(op, i)?;
        contiguous(t)?;
        ensure(t.ne == [size, heads, tokens, 1], "the sources must have one shape of 3 dimensions")?;
    }
    let width = size.checked_mul(heads).ok_or("there are too many elements")?;
    if let Some(i) = tf {
        contiguous(src(op, i)?)?;
        ensure(shape::nelements(src(op, i)?) >= width, "there must be a first weight for each of size and heads")?;
    }
    let seqs = state.ne[1];
    let matrices = width.checked_mul(size).and_then(|n| n.checked_mul(seqs));
    ensure(matrices == Some(shape::nelements(state)), "there must be a matrix for each head and sequence")?;
    ensure(tokens == 0 || (seqs > 0 && tokens % seqs == 0), "the tokens must be a multiple of the sequences")?;
    let rows = size.checked_mul(seqs).and_then(|n| n.checked_add(tokens));
    ensure(
        Some(op.ne[1]) == rows && op.ne[0] == width && op.ne[2..] == [1, 1],
        "the result must hold tokens and states",
    )
}

/// RWKV_WKV6, RWKV_WKV7, GATED_LINEAR_ATTN.
pub static LINEAR: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
