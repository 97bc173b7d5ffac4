//! SSM_CONV, SSM_SCAN.
//!
//! f32; rows of the sources packed, their other strides as they are. A state stays in registers over a block of tokens, so the walk is
//! head by head and row by row, tokens inside.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::rules::*;
use super::vec::{dispatch, math, part, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::mem::MaybeUninit;

/// `LANES` channels of one sequence, all tokens.
struct Taps {
    x: *const u8,
    x_nb1: usize,
    w: *const u8,
    w_nb1: usize,
    taps: usize,
    out: *mut u8,
    out_nb1: usize,
    channels: usize,
    tokens: usize,
}

impl Kernel for Taps {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let mut buf = [[0.0f32; LANES]; LANES];
        // SAFETY: there are `taps - 1` more inputs than tokens, and as many channels as are asked for: the caller's promise.
        unsafe {
            for t in (0..self.tokens).step_by(LANES) {
                let n = (self.tokens - t).min(LANES);
                for (c, buf) in buf[..self.channels].iter_mut().enumerate() {
                    let x = self.x.add(c * self.x_nb1).cast::<f32>().add(t);
                    let w = self.w.add(c * self.w_nb1).cast::<f32>();
                    let mut acc = V::splat(0.0);
                    for k in 0..self.taps {
                        let x = if n == LANES { V::load(x.add(k)) } else { V::load_n(x.add(k), n) };
                        acc = x.fma(V::splat(w.add(k).read_unaligned()), acc);
                    }
                    acc.store(buf.as_mut_ptr());
                }
                for j in 0..n {
                    let out = self.out.add((t + j) * self.out_nb1).cast::<f32>();
                    for (c, buf) in buf[..self.channels].iter().enumerate() {
                        out.add(c).write_unaligned(buf[j]);
                    }
                }
            }
        }
    }
}

fn run_conv(node: &Node, team: &Team) {
    let (d, x, w) = (node.out(), node.arg(0), node.arg(1));
    let blocks = d.ne[0].div_ceil(LANES);
    for task in team.range(blocks * d.ne[2]) {
        let (c, i2) = (task % blocks * LANES, task / blocks);
        let kernel = Taps {
            x: x.row([c, i2, 0]),
            x_nb1: x.nb[1],
            w: w.row([c, 0, 0]),
            w_nb1: w.nb[1],
            taps: w.ne[0],
            out: d.at(c, [0, i2, 0]),
            out_nb1: d.nb[1],
            channels: (d.ne[0] - c).min(LANES),
            tokens: d.ne[1],
        };
        // SAFETY: the views are good for their shapes, rows packed; these channels of dst are this thread's.
        unsafe { dispatch(kernel) };
    }
}

fn supports_conv(op: &ggml_tensor) -> Rule {
    let (x, w) = (src(op, 0)?, src(op, 1)?);
    for t in [op, x, w] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    ensure(w.ne[2] == 1 && w.ne[3] == 1 && x.ne[3] == 1, "there must be a matrix of taps, and inputs in 3 dimensions")?;
    ensure(x.ne[1] == w.ne[1], "there must be taps for each channel")?;
    ensure(
        op.ne == [x.ne[1], (x.ne[0] - w.ne[0]).saturating_add(1), x.ne[2], 1],
        "the result must be channels, inputs less taps plus one, sequences",
    )
}

/// Tokens that a state stays in registers for.
const TOKENS: usize = 64;

/// Some rows of one head of one sequence.
#[derive(Clone, Copy)]
struct Scan {
    d_state: usize,
    rows: usize,
    tokens: usize,
    /// State before the first token, and bytes from row to row.
    start: *const u8,
    start_nb1: usize,
    /// State after the last token; rows without gaps.
    end: *mut f32,
    /// States to keep, and elements from the one to that of a token less.
    keep: usize,
    slot: usize,
    /// First row of the first token, and bytes from row to row and token to token.
    x: *const u8,
    x_nb: [usize; 2],
    dt: *const u8,
    dt_nb1: usize,
    /// One number, or `d_state`.
    a: *const f32,
    varied: bool,
    b: *const u8,
    b_nb2: usize,
    c: *const u8,
    c_nb2: usize,
    /// First row of the first token, and elements from token to token.
    y: *mut f32,
    y_step: usize,
}

/// Tokens of a block: softplus of dt, and what a state of one decay is multiplied by. No more of the arrays is written than there are
/// tokens, since a block is often of one.
struct Block {
    first: usize,
    n: usize,
    dt: [MaybeUninit<f32>; TOKENS],
    decay: [MaybeUninit<f32>; TOKENS],
}

impl Scan {
    /// # Safety
    /// As for [`Kernel::run`]; the block lies inside the tokens.
    #[inline(always)]
    unsafe fn block<V: Lanes, const VARIED: bool>(&self, first: usize) -> Block {
        let n = (self.tokens - first).min(TOKENS);
        let mut b = Block { first, n, dt: [MaybeUninit::uninit(); TOKENS], decay: [MaybeUninit::uninit(); TOKENS] };
        // SAFETY: the caller's promise; the arrays have room for whole lanes.
        unsafe {
            for i in (0..n).step_by(LANES) {
                let mut dt = [0.0f32; LANES];
                for t in 0..(n - i).min(LANES) {
                    dt[t] = self.dt.add((first + i + t) * self.dt_nb1).cast::<f32>().read_unaligned();
                }
                let dt = math::softplus(V::from_array(dt));
                dt.store(b.dt.as_mut_ptr().add(i).cast());
                if !VARIED {
                    math::exp(dt.mul(part::splat(self.a))).store(b.decay.as_mut_ptr().add(i).cast());
                }
            }
        }
        b
    }

    /// `N` times `LANES` states of a row from `at` on, or if `PART` the `n` last, over a block of tokens; adds to what the states before
    /// them gave.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; `at` and what follows lies inside the row.
    #[inline(always)]
    unsafe fn piece<V: Lanes, const N: usize, const VARIED: bool, const PART: bool>(
        &self,
        block: &Block,
        row: usize,
        at: usize,
        n: usize,
    ) {
        // SAFETY: the caller's promise; the block has numbers for its tokens.
        unsafe {
            let end = self.end.add(row * self.d_state + at);
            let from = if block.first == 0 { self.start.add(row * self.start_nb1).cast::<f32>().add(at) } else { end };
            let mut s = [V::splat(0.0); N];
            let mut a = [V::splat(0.0); N];
            for j in 0..N {
                s[j] = part::load::<V, PART>(from.add(j * LANES), n);
                if VARIED {
                    a[j] = part::load::<V, PART>(self.a.add(at + j * LANES), n);
                }
            }
            for t in 0..block.n {
                let token = block.first + t;
                let b = self.b.add(token * self.b_nb2).cast::<f32>().add(at);
                let c = self.c.add(token * self.c_nb2).cast::<f32>().add(at);
                let x = self.x.add(row * self.x_nb[0] + token * self.x_nb[1]).cast::<f32>().read_unaligned();
                let dt = block.dt[t].assume_init();
                let x = V::splat(x * dt);
                let dt = V::splat(dt);
                let decay = if VARIED { dt } else { V::splat(block.decay[t].assume_init()) };
                let mut acc = [V::splat(0.0); 2];
                for j in 0..N {
                    let decay = if VARIED { math::exp(a[j].mul(dt)) } else { decay };
                    s[j] = s[j].fma(decay, part::load::<V, PART>(b.add(j * LANES), n).mul(x));
                    acc[j % 2] = s[j].fma(part::load::<V, PART>(c.add(j * LANES), n), acc[j % 2]);
                }
                let mut acc = acc[0].add(acc[1]);
                if PART {
                    // lanes that are not in use may be NaN by now
                    let mut kept = [0.0f32; LANES];
                    acc.store_n(kept.as_mut_ptr(), n);
                    acc = V::from_array(kept);
                }
                let y = self.y.add(token * self.y_step + row);
                let before = if at == 0 { 0.0 } else { y.read_unaligned() };
                y.write_unaligned(before + acc.sum());
                let slot = self.tokens - 1 - token;
                if slot > 0 && slot < self.keep {
                    let to = end.add(slot * self.slot);
                    for j in 0..N {
                        part::store::<V, PART>(s[j], to.add(j * LANES), n);
                    }
                }
            }
            for j in 0..N {
                part::store::<V, PART>(s[j], end.add(j * LANES), n);
            }
        }
    }

    /// All rows and tokens.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; there is a token and a state.
    #[inline(always)]
    unsafe fn all<V: Lanes, const VARIED: bool>(&self) {
        let n = self.d_state;
        // SAFETY: the blocks lie inside the tokens, the pieces inside the row.
        unsafe {
            for first in (0..self.tokens).step_by(TOKENS) {
                let block = self.block::<V, VARIED>(first);
                for row in 0..self.rows {
                    let mut at = 0;
                    while at + 8 * LANES <= n {
                        self.piece::<V, 8, VARIED, false>(&block, row, at, LANES);
                        at += 8 * LANES;
                    }
                    while at + LANES <= n {
                        self.piece::<V, 1, VARIED, false>(&block, row, at, LANES);
                        at += LANES;
                    }
                    if at < n {
                        self.piece::<V, 1, VARIED, true>(&block, row, at, n - at);
                    }
                }
            }
        }
    }
}

impl Kernel for Scan {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller's promise: all pointers are good for the rows, states and tokens.
        unsafe {
            if self.tokens == 0 {
                for row in 0..self.rows {
                    let (from, to) = (self.start.add(row * self.start_nb1), self.end.add(row * self.d_state));
                    std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), 4 * self.d_state);
                }
            } else if self.d_state == 0 {
                for t in 0..self.tokens {
                    self.y.add(t * self.y_step).cast::<u8>().write_bytes(0, 4 * self.rows);
                }
            } else if self.varied {
                self.all::<V, true>();
            } else {
                self.all::<V, false>();
            }
        }
    }
}

/// Rows of a head that one thread takes at a time. Each time begins with the numbers of its tokens, so a whole head of most models
/// where there are heads enough for all threads.
fn rows_at_once(heads: usize, nth: usize) -> usize {
    if heads < 4 * nth {
        16
    } else {
        64
    }
}

fn run_scan(node: &Node, team: &Team) {
    let [s, x, dt, a, b, c, ids] = std::array::from_fn(|i| node.arg(i));
    let [dim, heads, tokens, seqs] = x.ne;
    let d_state = s.ne[0];
    let per_group = heads / b.ne[1].max(1);
    let out = node.out().data.cast::<f32>();
    let states = out.wrapping_add(dim * heads * tokens * seqs);
    let rows = rows_at_once(heads * seqs, team.nth());
    let blocks = dim.div_ceil(rows);
    for task in team.range(blocks * heads * seqs) {
        let (row, head, seq) = (task % blocks * rows, task / blocks % heads, task / (blocks * heads));
        // SAFETY: there is an index for each sequence (checked).
        let id = unsafe { ids.at(seq, [0; 3]).cast::<i32>().read_unaligned() };
        let Some(id) = usize::try_from(id).ok().filter(|&id| id < s.ne[3]) else {
            return team.fail(format!("index {id} is outside the {} states of the source", s.ne[3]));
        };
        let at = (seq * heads + head) * dim + row;
        let kernel = Scan {
            d_state,
            rows: (dim - row).min(rows),
            tokens,
            start: s.row([row, head, id]),
            start_nb1: s.nb[1],
            end: states.wrapping_add(at * d_state),
            keep: node.i32(0) as usize,
            slot: d_state * dim * heads * seqs,
            x: x.at(row, [head, 0, seq]),
            x_nb: [x.nb[0], x.nb[2]],
            dt: dt.at(head, [0, seq, 0]),
            dt_nb1: dt.nb[1],
            a: a.row([head, 0, 0]).cast(),
            varied: a.ne[0] != 1,
            b: b.row([head / per_group, 0, seq]),
            b_nb2: b.nb[2],
            c: c.row([head / per_group, 0, seq]),
            c_nb2: c.nb[2],
            y: out.wrapping_add((seq * tokens * heads + head) * dim + row),
            y_step: heads * dim,
        };
        // SAFETY: the views are good for their shapes, rows packed; these rows of results and states are this thread's.
        unsafe { dispatch(kernel) };
    }
}

fn supports_scan(op: &ggml_tensor) -> Rule {
    let mut sources = [op; 7];
    for (i, s) in sources.iter_mut().enumerate() {
        *s = src(op, i)?;
    }
    let [s, x, dt, a, b, c, ids] = sources;
    for t in [op, s, x, dt, a, b, c] {
        is_f32(t)?;
        packed_rows(t)?;
    }
    is_i32(ids)?;
    let [dim, heads, tokens, seqs] = x.ne;
    let d_state = s.ne[0];
    ensure(s.ne[1..3] == [dim, heads], "the states must have the dimensions and heads of x")?;
    ensure(dt.ne == [heads, tokens, seqs, 1], "there must be a dt for each head, token and sequence")?;
    ensure(b.ne == c.ne && b.ne[0] == d_state && b.ne[2..] == [tokens, seqs], "B and C must be those of the states")?;
    ensure(heads == 0 || (b.ne[1] > 0 && heads % b.ne[1] == 0), "the groups must divide the heads")?;
    ensure(ids.ne == [seqs, 1, 1, 1], "there must be an index for each sequence")?;
    ensure(
        a.ne[1..] == [heads, 1, 1] && (a.ne[0] == 1 || a.ne[0] == d_state),
        "A must have one decay or one per state",
    )?;
    let keep = i64::from(op.op_params[0]);
    ensure(keep >= 1 && (keep == 1 || a.ne[0] == 1), "several states can be kept where A has one decay only")?;
    let states = [keep, d_state, dim, heads, seqs].iter().try_fold(1i64, |n, &m| n.checked_mul(m));
    let y = x.ne.iter().try_fold(1i64, |n, &m| n.checked_mul(m));
    let n = states.zip(y).and_then(|(states, y)| y.checked_add(states));
    ensure(n == Some(op.ne[0]) && op.ne[1..] == [1; 3], "the result must have room for y and the states to keep")
}

/// SSM_CONV.
pub static CONV: OpEntry = OpEntry { supports: supports_conv, work: no_work, n_tasks: tasks_by_size, run: run_conv };
/// SSM_SCAN.
pub static SCAN: OpEntry = OpEntry { supports: supports_scan, work: no_work, n_tasks: tasks_by_size, run: run_scan };
