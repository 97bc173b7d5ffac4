//! DSV4_HC_COMB, DSV4_HC_PRE, DSV4_HC_POST: hyper-connections.
//!
//! f32, sources in any layout; rows of the result packed.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::binary::Add;
use super::rows::{self, CHUNK};
use super::rules::*;
use super::vec::map::{map, map2, AddTimes, Map2, Times};
use super::vec::{dispatch, math, Kernel, Lanes, LANES};
use crate::entry::{all_tasks, no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

/// Streams that are mixed.
const STREAMS: usize = 4;
const MIX: usize = STREAMS * STREAMS;
/// Where the logits begin.
const SKIP: usize = 2 * STREAMS;

/// Mixing matrices of up to `LANES` tokens, a lane for each: element dst + 4 * src of them all lies in one value.
struct Comb<'a> {
    /// Logits in, matrices out.
    values: &'a mut [[f32; LANES]; MIX],
    eps: f32,
    n_iter: i32,
}

/// Divides four values, `step` apart, by their sum plus `eps`.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
unsafe fn share<V: Lanes>(c: &mut [V; MIX], first: usize, step: usize, eps: V) {
    // SAFETY: the caller's promise about V.
    unsafe {
        let sum = eps.add(c[first]).add(c[first + step]).add(c[first + 2 * step]).add(c[first + 3 * step]);
        let f = V::splat(1.0).div(sum);
        for i in 0..STREAMS {
            c[first + i * step] = c[first + i * step].mul(f);
        }
    }
}

impl Kernel for Comb<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller's promise about V; arrays of `LANES`.
        unsafe {
            let eps = V::splat(self.eps);
            let mut c = [eps; MIX];
            for i in 0..MIX {
                c[i] = V::load(self.values[i].as_ptr());
            }
            for src in 0..STREAMS {
                let at = STREAMS * src;
                let max = c[at + 3].max(c[at + 2].max(c[at + 1].max(c[at])));
                for i in at..at + STREAMS {
                    c[i] = math::exp(c[i].sub(max));
                }
                share(&mut c, at, 1, V::splat(0.0));
                for i in at..at + STREAMS {
                    c[i] = c[i].add(eps);
                }
            }
            for dst in 0..STREAMS {
                share(&mut c, dst, STREAMS, eps);
            }
            for _ in 1..self.n_iter {
                for src in 0..STREAMS {
                    share(&mut c, STREAMS * src, 1, eps);
                }
                for dst in 0..STREAMS {
                    share(&mut c, dst, STREAMS, eps);
                }
            }
            for i in 0..MIX {
                c[i].store(self.values[i].as_mut_ptr());
            }
        }
    }
}

fn run_comb(node: &Node, team: &Team) {
    let (d, mixes, scale, base) = (node.out(), node.arg(0), node.arg(1), node.arg(2));
    let tokens = mixes.ne[1];
    for task in team.range(tokens.div_ceil(LANES)) {
        let first = task * LANES;
        let n = (tokens - first).min(LANES);
        let mut values = [[0.0f32; LANES]; MIX];
        // SAFETY: the views are good for their shapes; these tokens of dst are this thread's.
        unsafe {
            let get = |v: &View, i0: usize, i1: usize| v.at(i0, [i1, 0, 0]).cast::<f32>().read_unaligned();
            let scale = get(&scale, 2, 0);
            for (i, lanes) in values.iter_mut().enumerate() {
                let base = get(&base, SKIP + i, 0);
                for (t, x) in lanes[..n].iter_mut().enumerate() {
                    *x = get(&mixes, SKIP + i, first + t) * scale + base;
                }
            }
            dispatch(Comb { values: &mut values, eps: node.f32(0), n_iter: node.i32(1) });
            for (i, lanes) in values.iter().enumerate() {
                for (t, x) in lanes[..n].iter().enumerate() {
                    d.at(i % STREAMS, [i / STREAMS, first + t, 0]).cast::<f32>().write_unaligned(*x);
                }
            }
        }
    }
}

fn supports_comb(op: &ggml_tensor) -> Rule {
    let (mixes, scale, base) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    for t in [op, mixes, scale, base] {
        is_f32(t)?;
    }
    let n = (SKIP + MIX) as i64;
    ensure(mixes.ne[0] == n && mixes.ne[2..] == [1, 1], "there must be 24 numbers for each token")?;
    ensure(base.ne == [n, 1, 1, 1], "the base must have 24 numbers")?;
    ensure(scale.ne[0] >= 3 && scale.ne[1..] == [1; 3], "there must be three scales")?;
    ensure(op.ne == [4, 4, mixes.ne[1], 1], "the result must be [4, 4, tokens]")?;
    ensure(op.op_params[1] > 0, "there must be at least one iteration")
}

/// `x * sigmoid(g)`
#[derive(Clone, Copy)]
struct Gated;
impl Map2 for Gated {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V, g: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.mul(math::sigmoid(g)) }
    }
}

/// `n` elements of a row from `at` on, as [`rows::values`] gives them.
///
/// # Safety
/// The view is good for the elements, `room` for as many.
unsafe fn piece(v: &View, at: usize, i: [usize; 3], n: usize, room: &mut [f32; CHUNK]) -> *const f32 {
    // SAFETY: the caller's promise.
    unsafe { rows::values(v.ty, v.at(at, i), v.nb[0], room.as_mut_ptr(), n) }
}

fn number(v: &View, i0: usize, i: [usize; 3]) -> f32 {
    // SAFETY: the view is good for its shape.
    unsafe { v.at(i0, i).cast::<f32>().read_unaligned() }
}

fn run_pre(node: &Node, team: &Team) {
    let (d, x, w) = (node.out(), node.arg(0), node.arg(1));
    let (scale, gated) = (node.f32(0), node.i32(1) != 0);
    let pieces = d.ne[0].div_ceil(CHUNK);
    let (mut a, mut b) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
    for task in team.range(pieces * d.ne[1]) {
        let (at, t) = (task % pieces * CHUNK, task / pieces);
        let n = (d.ne[0] - at).min(CHUNK);
        // SAFETY: the views are good for their shapes; this piece of dst is this thread's and packed.
        unsafe {
            let out = d.at(at, [t, 0, 0]).cast::<f32>();
            for h in 0..x.ne[1] {
                let x = piece(&x, at, [h, t, 0], n, &mut a);
                if gated {
                    let g = piece(&w, at, [h, t, 0], n, &mut b);
                    map2(Gated, x, g, b.as_mut_ptr(), n);
                    if h == 0 {
                        map(Times(1.0), b.as_ptr(), out, n);
                    } else {
                        map2(Add, out, b.as_ptr(), out, n);
                    }
                } else if h == 0 {
                    map(Times(number(&w, h, [t, 0, 0])), x, out, n);
                } else {
                    map2(AddTimes(number(&w, h, [t, 0, 0])), out, x, out, n);
                }
            }
            if scale != 1.0 {
                map(Times(scale), out, out, n);
            }
        }
    }
}

fn supports_pre(op: &ggml_tensor) -> Rule {
    let (x, w) = (src(op, 0)?, src(op, 1)?);
    for t in [op, x, w] {
        is_f32(t)?;
    }
    packed_rows(op)?;
    let [n, streams, tokens, _] = x.ne;
    ensure(streams > 0 && x.ne[3] == 1, "there must be streams, and three dimensions")?;
    let shape = if op.op_params[1] != 0 { x.ne } else { [streams, tokens, 1, 1] };
    ensure(w.ne == shape, "there must be a weight for each stream and token, or a gate for each element")?;
    ensure(op.ne == [n, tokens, 1, 1], "the result must be one stream")
}

fn run_post(node: &Node, team: &Team) {
    let (d, x, residual, post, comb) = (node.out(), node.arg(0), node.arg(1), node.arg(2), node.arg(3));
    let mixed = node.src_opt(3).is_some();
    let pieces = d.ne[0].div_ceil(CHUNK);
    let (mut a, mut b) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
    for task in team.range(pieces * d.ne[2]) {
        let (at, t) = (task % pieces * CHUNK, task / pieces);
        let n = (d.ne[0] - at).min(CHUNK);
        // SAFETY: the views are good for their shapes; this piece of dst is this thread's and packed.
        unsafe {
            let x = piece(&x, at, [t, 0, 0], n, &mut a);
            for dst in 0..d.ne[1] {
                let out = d.at(at, [dst, t, 0]).cast::<f32>();
                map(Times(number(&post, dst, [t, 0, 0])), x, out, n);
                if !mixed {
                    map2(Add, out, piece(&residual, at, [dst, t, 0], n, &mut b), out, n);
                    continue;
                }
                for src in 0..d.ne[1] {
                    let r = piece(&residual, at, [src, t, 0], n, &mut b);
                    map2(AddTimes(number(&comb, dst, [src, t, 0])), out, r, out, n);
                }
            }
        }
    }
}

fn supports_post(op: &ggml_tensor) -> Rule {
    let (x, residual, post) = (src(op, 0)?, src(op, 1)?, src(op, 2)?);
    for t in [op, x, residual, post] {
        is_f32(t)?;
    }
    packed_rows(op)?;
    let [n, streams, tokens, _] = residual.ne;
    ensure(streams > 0 && residual.ne[3] == 1, "there must be streams, and three dimensions")?;
    ensure(x.ne == [n, tokens, 1, 1], "there must be a row for each token")?;
    ensure(post.ne == [streams, tokens, 1, 1], "there must be a weight for each stream and token")?;
    if let Ok(comb) = src(op, 3) {
        is_f32(comb)?;
        ensure(comb.ne == [streams, streams, tokens, 1], "there must be a mixing matrix for each token")?;
    }
    ensure(op.ne == residual.ne, "the result must have the shape of the residual streams")
}

/// DSV4_HC_COMB.
pub static COMB: OpEntry = OpEntry { supports: supports_comb, work: no_work, n_tasks: all_tasks, run: run_comb };
/// DSV4_HC_PRE.
pub static PRE: OpEntry = OpEntry { supports: supports_pre, work: no_work, n_tasks: tasks_by_size, run: run_pre };
/// DSV4_HC_POST.
pub static POST: OpEntry = OpEntry { supports: supports_post, work: no_work, n_tasks: tasks_by_size, run: run_post };
