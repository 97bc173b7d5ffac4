//! GATED_DELTA_NET.
//!
//! f32; rows of q, k and v packed, the rest contiguous. A matrix lies in rows by value, and rows know nothing of each other: a thread
//! takes some of a head through all tokens of a sequence, so that they stay in the first cache.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::rules::*;
use super::vec::{dispatch, math, Kernel, Lanes, LANES};
use crate::entry::{tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Rows that one thread takes at a time.
const ROWS: usize = 16;

/// A source of one head and sequence: the first token, and bytes from token to token.
#[derive(Clone, Copy)]
struct Stream {
    p: *const u8,
    step: usize,
}

impl Stream {
    fn at(&self, token: usize) -> *const f32 {
        self.p.wrapping_add(token * self.step).cast()
    }
}

/// Rows of one head of one sequence.
struct Rows {
    size: usize,
    tokens: usize,
    n: usize,
    q: Stream,
    k: Stream,
    /// The rows' values.
    v: Stream,
    g: Stream,
    beta: Stream,
    /// A gate for each column, not one for all.
    gates: bool,
    scale: f32,
    start: *const f32,
    /// State after the last token.
    state: *mut f32,
    /// States to keep, and elements from the one to that of a token less.
    keep: usize,
    slot: usize,
    /// The rows' results of the first token, and elements from token to token.
    y: *mut f32,
    y_step: usize,
    /// Room for the gates of a token.
    room: *mut f32,
}

impl Rows {
    /// `N` rows from `row` on, one token, whose gates are in `room` or `gate`.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; the rows are there.
    #[inline(always)]
    unsafe fn rows<V: Lanes, const N: usize, const GATES: bool>(&self, t: usize, row: usize, gate: f32) {
        let size = self.size;
        let full = size - size % LANES;
        let rest = size - full;
        let (q, k) = (self.q.at(t), self.k.at(t));
        // SAFETY: the caller's promise.
        unsafe {
            let from = if t == 0 { self.start } else { self.state.cast_const() }.add(row * size);
            let to = self.state.add(row * size);
            let gate = V::splat(gate);
            let mut acc = [V::splat(0.0); N];
            for j in (0..full).step_by(LANES) {
                let k = V::load(k.add(j));
                let gate = if GATES { V::load(self.room.add(j)) } else { gate };
                for i in 0..N {
                    let s = V::load(from.add(i * size + j)).mul(gate);
                    s.store(to.add(i * size + j));
                    acc[i] = s.fma(k, acc[i]);
                }
            }
            if rest > 0 {
                let k = V::load_n(k.add(full), rest);
                let gate = if GATES { V::load_n(self.room.add(full), rest) } else { gate };
                for i in 0..N {
                    let to = to.add(i * size + full);
                    V::load_n(from.add(i * size + full), rest).mul(gate).store_n(to, rest);
                    // lanes that are not in use may be NaN
                    acc[i] = V::load_n(to, rest).fma(k, acc[i]);
                }
            }
            let beta = self.beta.at(t).read_unaligned();
            let v = self.v.at(t).add(row);
            let mut delta = [V::splat(0.0); N];
            for i in 0..N {
                delta[i] = V::splat((v.add(i).read_unaligned() - acc[i].sum()) * beta);
            }
            acc = [V::splat(0.0); N];
            for j in (0..full).step_by(LANES) {
                let (k, q) = (V::load(k.add(j)), V::load(q.add(j)));
                for i in 0..N {
                    let to = to.add(i * size + j);
                    let s = delta[i].fma(k, V::load(to));
                    s.store(to);
                    acc[i] = s.fma(q, acc[i]);
                }
            }
            if rest > 0 {
                let (k, q) = (V::load_n(k.add(full), rest), V::load_n(q.add(full), rest));
                for i in 0..N {
                    let to = to.add(i * size + full);
                    delta[i].fma(k, V::load_n(to, rest)).store_n(to, rest);
                    acc[i] = V::load_n(to, rest).fma(q, acc[i]);
                }
            }
            for i in 0..N {
                self.y.add(t * self.y_step + row + i).write_unaligned(acc[i].sum() * self.scale);
            }
        }
    }

    /// # Safety
    /// As for [`Kernel::run`].
    #[inline(always)]
    unsafe fn token<V: Lanes, const GATES: bool>(&self, t: usize, gate: f32) {
        let mut row = 0;
        // SAFETY: the caller's promise.
        unsafe {
            while row + 4 <= self.n {
                self.rows::<V, 4, GATES>(t, row, gate);
                row += 4;
            }
            while row < self.n {
                self.rows::<V, 1, GATES>(t, row, gate);
                row += 1;
            }
        }
    }
}

impl Kernel for Rows {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller's promise: all pointers are good for the tokens, the rows and the states to keep.
        unsafe {
            if self.tokens == 0 {
                std::ptr::copy_nonoverlapping::<u8>(self.start.cast(), self.state.cast(), 4 * self.n * self.size);
            }
            for t in 0..self.tokens {
                let g = self.g.at(t);
                if self.gates {
                    for j in (0..self.size).step_by(LANES) {
                        let n = self.size - j;
                        if n >= LANES {
                            math::exp(V::load(g.add(j))).store(self.room.add(j));
                        } else {
                            math::exp(V::load_n(g.add(j), n)).store_n(self.room.add(j), n);
                        }
                    }
                    self.token::<V, true>(t, 0.0);
                } else {
                    let gate = math::exp(V::splat(g.read_unaligned())).to_array()[0];
                    self.token::<V, false>(t, gate);
                }
                let slot = self.tokens - 1 - t;
                if slot > 0 && slot < self.keep {
                    let to = self.state.add(slot * self.slot);
                    std::ptr::copy_nonoverlapping::<u8>(self.state.cast(), to.cast(), 4 * self.n * self.size);
                }
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let [q, k, v, g, beta, s] = std::array::from_fn(|i| node.arg(i));
    let [size, heads, tokens, seqs] = v.ne;
    let out = node.out().data.cast::<f32>();
    let states = out.wrapping_add(size * heads * tokens * seqs);
    let (room, _) = team.scratch();
    let room = room.cast::<f32>().wrapping_add(team.ith() * size.next_multiple_of(LANES));
    let parts = size.div_ceil(ROWS);
    for task in team.range(parts * heads * seqs) {
        let (row, head, seq) = (task % parts * ROWS, task / parts % heads, task / (parts * heads));
        let stream = |v: &crate::node::View, i0: usize, head: usize, seq: usize| Stream {
            p: v.at(i0, [head, 0, seq]),
            step: v.nb[2],
        };
        let matrix = ((seq * heads + head) * size + row) * size;
        let kernel = Rows {
            size,
            tokens,
            n: (size - row).min(ROWS),
            q: stream(&q, 0, head % q.ne[1], seq / (seqs / q.ne[3])),
            k: stream(&k, 0, head % k.ne[1], seq / (seqs / k.ne[3])),
            v: stream(&v, row, head, seq),
            g: stream(&g, 0, head, seq),
            beta: stream(&beta, 0, head, seq),
            gates: g.ne[0] != 1,
            scale: 1.0 / (size as f32).sqrt(),
            start: s.data.cast::<f32>().wrapping_add(matrix),
            state: states.wrapping_add(matrix),
            keep: node.i32(0) as usize,
            slot: size * size * heads * seqs,
            y: out.wrapping_add((seq * tokens * heads + head) * size + row),
            y_step: size * heads,
            room,
        };
        // SAFETY: the views are good for their shapes, rows packed; these rows of results and states, and the room for gates, are
        // this thread's.
        unsafe { dispatch(kernel) };
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    let size = src(op, 2).map_or(0, |v| v.ne[0].max(0) as usize);
    size.saturating_add(LANES).saturating_mul(4).saturating_mul(nth)
}

fn supports(op: &ggml_tensor) -> Rule {
    let mut sources = [op; 6];
    for (i, s) in sources.iter_mut().enumerate() {
        *s = src(op, i)?;
    }
    let [q, k, v, g, beta, s] = sources;
    let [size, heads, tokens, seqs] = v.ne;
    for t in [op, q, k, v, g, beta, s] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    ensure(shape::is_contiguous(op) && shape::is_contiguous(s), "states and result must be contiguous")?;
    for t in [q, k] {
        ensure(t.ne[0] == size && t.ne[2] == tokens, "queries, keys and values must have one size and as many tokens")?;
        let divides = |n: i64, m: i64| n > 0 && m % n == 0;
        ensure(
            divides(t.ne[1], heads) && divides(t.ne[3], seqs),
            "heads and sequences must divide those of the values",
        )?;
    }
    ensure(
        (g.ne[0] == 1 || g.ne[0] == size) && g.ne[1..] == v.ne[1..],
        "there must be a gate for each head and token",
    )?;
    ensure(beta.ne == [1, heads, tokens, seqs], "there must be a beta for each head and token")?;
    ensure(s.ne == [size, size, heads, seqs], "there must be a state for each head and sequence")?;
    let keep = i64::from(op.op_params[0]);
    ensure(keep >= 1, "there must be at least one state to keep")?;
    let product = |n: &[i64]| n.iter().try_fold(1i64, |n, &m| n.checked_mul(m));
    let rows = product(&[keep, size, seqs]).zip(product(&[tokens, seqs])).and_then(|(a, b)| a.checked_add(b));
    ensure(
        product(&[size, heads]) == Some(op.ne[0]) && rows == Some(op.ne[1]) && op.ne[2..] == [1, 1],
        "the result must hold tokens and states to keep",
    )
}

/// GATED_DELTA_NET.
pub static DELTA: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
