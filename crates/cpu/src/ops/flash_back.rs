//! FLASH_ATTN_BACK: the gradient of an attention, back to queries, keys and values.
//!
//! `q` and `d` [dim, queries, heads, batch], `k` [dim, keys, k2, batch], `v` [keys, dim, k2, batch]; head `h` reads `k` and `v` of
//! `h % k2`. f32, f16 and bf16 in any layout. A thread takes all heads that read one `k`, one after the other, so that each sum has
//! one order.

use super::backward::SoftMaxBack;
use super::rows;
use super::rules::*;
use super::softmax;
use super::vec::map::{map2, AddTimes};
use super::vec::reduce;
use crate::entry::OpEntry;
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Where the gradients of q, k and v start in the result, in elements, and where they end; each is filled up to 16 bytes.
fn places(len: [usize; 3]) -> Option<[usize; 4]> {
    let mut at = [0usize; 4];
    for i in 0..3 {
        at[i + 1] = at[i].checked_add(len[i].checked_next_multiple_of(4)?)?;
    }
    Some(at)
}

fn lengths(op: &ggml_tensor) -> Result<[usize; 3], &'static str> {
    let mut len = [0; 3];
    for (i, len) in len.iter_mut().enumerate() {
        *len = usize::try_from(shape::nelements(src(op, i)?)).map_err(|_| "the sizes overflow")?;
    }
    Ok(len)
}

/// A thread's memory: two rows of `keys` values and one for a row of v, then three rows of `dim`.
struct Own {
    weights: *mut f32,
    logits: *mut f32,
    values: *mut f32,
    key: *mut f32,
    query: *mut f32,
    d: *mut f32,
}

fn own_values(dim: usize, keys: usize) -> Option<usize> {
    dim.checked_add(keys)?.checked_mul(3)?.checked_next_multiple_of(16)
}

impl Own {
    fn at(p: *mut f32, dim: usize, keys: usize) -> Own {
        let keyed = |i: usize| p.wrapping_add(i * keys);
        let wide = |i: usize| p.wrapping_add(3 * keys + i * dim);
        Own { weights: keyed(0), logits: keyed(1), values: keyed(2), key: wide(0), query: wide(1), d: wide(2) }
    }
}

/// Row `i` where it is packed f32, else a copy of it at `buf`.
///
/// # Safety
/// The view is good for the row, `buf` for as many values.
unsafe fn packed(v: &View, i: [usize; 3], buf: *mut f32) -> *const f32 {
    // SAFETY: the caller's promise.
    unsafe { rows::values(v.ty, v.row(i), v.nb[0], buf, v.ne[0]) }
}

/// Sources and places of the gradients of a node.
struct Job {
    src: [View; 4],
    grads: [*mut f32; 3],
    masked: bool,
}

impl Job {
    /// All queries that read `k` and `v` number `i2` of batch `i3`.
    ///
    /// # Safety
    /// The views and places are good for the node's shapes, `own` for its rows, and no other thread has this `k`.
    unsafe fn head(&self, own: &Own, i2: usize, i3: usize) {
        let [q, k, v, d] = &self.src;
        let (dim, queries, keys, heads) = (q.ne[0], q.ne[1], k.ne[1], k.ne[2]);
        let scale = 1.0 / (dim as f32).sqrt();
        let at = |g: *mut f32, t: &View, [i1, i2, i3]: [usize; 3]| {
            g.wrapping_add(((i3 * t.ne[2] + i2) * t.ne[1] + i1) * t.ne[0])
        };
        let [gq, gk, gv] = self.grads;
        // SAFETY: the caller's promise.
        unsafe {
            at(gk, k, [0, i2, i3]).write_bytes(0, dim * keys);
            at(gv, v, [0, i2, i3]).write_bytes(0, dim * keys);
            for (h, i1) in (i2..q.ne[2]).step_by(heads).flat_map(|h| (0..queries).map(move |i1| (h, i1))) {
                let i = [i1, h, i3];
                let gq = at(gq, q, i);
                gq.write_bytes(0, dim);
                let seen = if self.masked { (keys + i1 + 1).saturating_sub(queries).min(keys) } else { keys };
                let (query, d) = (packed(q, i, own.query), packed(d, i, own.d));
                for c in 0..seen {
                    let key = packed(k, [c, i2, i3], own.key);
                    *own.logits.add(c) = reduce::dot(key, query, dim) as f32;
                }
                softmax::weights(own.logits, own.weights, seen, scale);
                own.logits.write_bytes(0, seen);
                for c in 0..dim {
                    let (values, d) = (packed(v, [c, i2, i3], own.values), *d.add(c));
                    map2(AddTimes(d), own.logits, values, own.logits, seen);
                    let gv = at(gv, v, [c, i2, i3]);
                    map2(AddTimes(d), gv, own.weights, gv, seen);
                }
                let dot = reduce::dot(own.weights, own.logits, seen) as f32;
                map2(SoftMaxBack { dot, scale }, own.logits, own.weights, own.logits, seen);
                for c in 0..seen {
                    let x = *own.logits.add(c);
                    map2(AddTimes(x), gq, packed(k, [c, i2, i3], own.key), gq, dim);
                    let gk = at(gk, k, [c, i2, i3]);
                    map2(AddTimes(x), gk, query, gk, dim);
                }
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let (out, src) = (node.out(), [0, 1, 2, 3].map(|i| node.arg(i)));
    let len = [0, 1, 2].map(|i| src[i].len());
    let Some(places) = places(len) else { return };
    let first = out.data.cast::<f32>();
    let (dim, keys) = (src[0].ne[0], src[1].ne[1]);
    let own = own_values(dim, keys).unwrap_or(0) * team.ith();
    let own = Own::at(team.scratch().0.cast::<f32>().wrapping_add(own), dim, keys);
    let job = Job { src, grads: [0, 1, 2].map(|i| first.wrapping_add(places[i])), masked: node.i32(0) != 0 };
    if team.ith() == 0 {
        for i in 0..3 {
            // SAFETY: what fills up each gradient, in the contiguous result.
            unsafe { first.add(places[i] + len[i]).write_bytes(0, places[i + 1] - places[i] - len[i]) };
        }
    }
    let heads = src[1].ne[2];
    for task in team.range(heads * src[1].ne[3]) {
        // SAFETY: the views are good for their shapes, as the places for the gradients; the scratch memory is this thread's part.
        unsafe { job.head(&own, task % heads, task / heads) };
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    let size = |i: usize, d: usize| usize::try_from(src(op, i).ok()?.ne[d]).ok();
    let values = size(0, 0).zip(size(1, 1)).and_then(|(dim, keys)| own_values(dim, keys));
    values.and_then(|n| n.checked_mul(4)?.checked_mul(nth)).unwrap_or(usize::MAX)
}

/// Multiply-adds below which waking others costs more than it gives.
const SMALL: i64 = 20_000;

fn n_tasks(op: &ggml_tensor, nth: usize) -> usize {
    let keys = src(op, 1).map_or(0, |k| k.ne[1]);
    let cost = src(op, 0).map_or(0, |q| shape::nelements(q).saturating_mul(keys));
    if cost < SMALL {
        1
    } else {
        nth
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let (q, k, v, d) = (src(op, 0)?, src(op, 1)?, src(op, 2)?, src(op, 3)?);
    for t in [q, k, v, d] {
        float(t)?;
    }
    is_f32(op)?;
    same_shape(q, d)?;
    ensure(k.ne[0] == q.ne[0] && k.ne[3] == q.ne[3], "queries and keys must agree in dimensions 0 and 3")?;
    ensure(v.ne == [k.ne[1], k.ne[0], k.ne[2], k.ne[3]], "the values must be as the keys, dimensions 0 and 1 swapped")?;
    ensure(k.ne[2] > 0 && q.ne[2] % k.ne[2] == 0 || q.ne[2] == 0, "the keys must repeat to the heads of the queries")?;
    let places = places(lengths(op)?).ok_or("the sizes overflow")?;
    ensure(op.ne[0] as usize == places[3] && op.ne[1..] == [1; 3], "the result must hold the three gradients")?;
    ensure(shape::is_contiguous(op), "the result must be contiguous")
}

/// FLASH_ATTN_BACK. Parameter 0: whether query `i` reads the keys up to `keys - queries + i` only.
pub static FLASH_BACK: OpEntry = OpEntry { supports, work, n_tasks, run };
