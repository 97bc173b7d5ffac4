//! LIGHTNING_INDEXER: scores of keys, summed over heads.
//!
//! Keys of any format lie turned in scratch memory, some of them side by side, and are met by the queries of all tokens and heads from
//! there: a sum per lane, none across lanes.
// indices of lanes: iterators over arrays of lanes keep them in memory
#![allow(clippy::needless_range_loop)]

use super::rows;
use super::rules::*;
use super::vec::{dispatch, part, Kernel, Lanes, LANES};
use crate::entry::{all_tasks, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

/// Keys that one thread takes at a time.
const KEYS: usize = 2 * LANES;

/// Turned keys, and the queries, weights and masks of one token.
struct Token {
    d: usize,
    heads: usize,
    /// Keys in use.
    n: usize,
    /// Element `i` of key `j` at `i * KEYS + j`.
    keys: *const f32,
    q: *const u8,
    q_nb1: usize,
    weights: *const f32,
    mask: *const u16,
    out: *mut f32,
}

impl Token {
    /// `H` heads from `head` on, `N` times `LANES` keys from `at` on; adds to `score`.
    ///
    /// # Safety
    /// As for [`Kernel::run`]; heads and keys are there.
    #[inline(always)]
    unsafe fn heads<V: Lanes, const H: usize, const N: usize>(&self, head: usize, at: usize, score: &mut [V; N]) {
        // SAFETY: the caller's promise.
        unsafe {
            let q = self.q.add(head * self.q_nb1);
            let mut acc = [[V::splat(0.0); N]; H];
            for i in 0..self.d {
                let mut keys = [V::splat(0.0); N];
                for j in 0..N {
                    keys[j] = V::load(self.keys.add(i * KEYS + at + j * LANES));
                }
                for h in 0..H {
                    let q = part::splat::<V>(q.add(h * self.q_nb1).cast::<f32>().add(i));
                    for j in 0..N {
                        acc[h][j] = q.fma(keys[j], acc[h][j]);
                    }
                }
            }
            for h in 0..H {
                let w = part::splat::<V>(self.weights.add(head + h));
                for j in 0..N {
                    // the sum comes second: NaN stays
                    score[j] = V::splat(0.0).max(acc[h][j]).fma(w, score[j]);
                }
            }
        }
    }

    /// # Safety
    /// As for [`Kernel::run`].
    #[inline(always)]
    unsafe fn keys<V: Lanes, const H: usize, const N: usize>(&self, at: usize) {
        let mut head = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let mut score = [V::splat(0.0); N];
            while head + H <= self.heads {
                self.heads::<V, H, N>(head, at, &mut score);
                head += H;
            }
            while head < self.heads {
                self.heads::<V, 1, N>(head, at, &mut score);
                head += 1;
            }
            for j in 0..N {
                let (score, at) = (score[j], at + j * LANES);
                let n = self.n.saturating_sub(at);
                if n >= LANES {
                    score.add(V::load_f16(self.mask.add(at))).store(self.out.add(at));
                } else if n > 0 {
                    let mut mask = [0u16; LANES];
                    std::ptr::copy_nonoverlapping(self.mask.add(at).cast::<u8>(), mask.as_mut_ptr().cast(), 2 * n);
                    score.add(V::load_f16(mask.as_ptr())).store_n(self.out.add(at), n);
                }
            }
        }
    }
}

impl Kernel for Token {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller's promise: all pointers are good for the sizes given.
        unsafe {
            if V::WIDE {
                self.keys::<V, 8, 2>(0);
            } else {
                self.keys::<V, 4, 1>(0);
                self.keys::<V, 4, 1>(LANES);
            }
        }
    }
}

/// Turns up to `KEYS` keys into `room`; those that there are not are zero.
///
/// # Safety
/// The view is good for its shape; `room` for `KEYS + 1` keys.
unsafe fn turn(k: &View, first: usize, i3: usize, room: *mut f32) {
    let d = k.ne[0];
    let Some(ty) = Type::from_id(k.ty.0) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let (panel, row) = (room, room.add(d * KEYS));
        panel.write_bytes(0, d * KEYS);
        for j in 0..KEYS.min(k.ne[2] - first) {
            rows::decode(ty, k.row([0, first + j, i3]), row, d);
            for i in 0..d {
                *panel.add(i * KEYS + j) = *row.add(i);
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let out = node.out();
    let [q, k, weights, mask] = std::array::from_fn(|i| node.arg(i));
    let [d, heads, tokens, batch] = q.ne;
    let parts = k.ne[2].div_ceil(KEYS);
    let (room, _) = team.scratch();
    let room = room.cast::<f32>().wrapping_add(team.ith() * room_for(d));
    for task in team.chunks(parts * batch, 1) {
        let (first, i3) = (task.start % parts * KEYS, task.start / parts);
        // SAFETY: this thread's part of the scratch memory, aligned and as large as asked for; the view is good for its shape.
        unsafe { turn(&k, first, i3, room) };
        for t in 0..tokens {
            let kernel = Token {
                d,
                heads,
                n: (k.ne[2] - first).min(KEYS),
                keys: room,
                q: q.row([0, t, i3]),
                q_nb1: q.nb[1],
                weights: weights.row([t, 0, i3]).cast(),
                mask: mask.at(first, [t, 0, i3 % mask.ne[3]]).cast(),
                out: out.at(first, [t, 0, i3]).cast(),
            };
            // SAFETY: the views are good for their shapes, rows packed; these keys of dst are this thread's.
            unsafe { dispatch(kernel) };
        }
    }
}

/// Elements of scratch memory for a thread.
fn room_for(d: usize) -> usize {
    d.saturating_mul(KEYS + 1).saturating_add(LANES - 1) / LANES * LANES
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    let d = src(op, 0).map_or(0, |q| q.ne[0].max(0) as usize);
    room_for(d).saturating_mul(4).saturating_mul(nth)
}

fn supports(op: &ggml_tensor) -> Rule {
    let (q, k, w, m) = (src(op, 0)?, src(op, 1)?, src(op, 2)?, src(op, 3)?);
    for t in [op, q, w] {
        is_f32(t)?;
    }
    ensure(m.r#type == GGML_TYPE_F16, "the mask must be f16")?;
    for t in [op, q, k, w, m] {
        packed_rows(t)?;
    }
    packed_blocks(k)?;
    decodable(k)?;
    let ([d, heads, tokens, batch], keys) = (q.ne, k.ne[2]);
    ensure(k.ne == [d, 1, keys, batch], "there must be keys for each query's length and batch")?;
    ensure(w.ne == [heads, tokens, 1, batch], "there must be a weight for each head and token")?;
    ensure(m.ne[..3] == [keys, tokens, 1], "the mask must be of keys and tokens")?;
    ensure(m.ne[3] > 0 && batch % m.ne[3] == 0, "the mask must repeat to the batches")?;
    ensure(op.ne == [keys, tokens, 1, batch], "the result must be keys, tokens, batches")
}

/// LIGHTNING_INDEXER.
pub static INDEXER: OpEntry = OpEntry { supports, work, n_tasks: all_tasks, run };
