//! SOFT_MAX, DIAG_MASK_INF, DIAG_MASK_ZERO.
//!
//! A row whose values are all minus infinity after masking (and that has no sink) becomes zeros, as in attention.

use super::rows;
use super::rules::*;
use super::vec::map::{map, map2, Map2, Times};
use super::vec::{dispatch, math, reduce, Kernel, Lanes, LANES};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// ALiBi's slope of head `h` of `n_head`; 1 without bias.
pub(super) fn slope(max_bias: f32, h: usize, n_head: usize) -> f32 {
    if max_bias <= 0.0 || n_head == 0 {
        return 1.0;
    }
    let log2 = 1usize << n_head.ilog2();
    if h < log2 {
        (-max_bias / log2 as f32).exp2().powf((h + 1) as f32)
    } else {
        (-max_bias / 2.0 / log2 as f32).exp2().powf((2 * (h - log2) + 1) as f32)
    }
}

/// `dst = e^(src * scale - max) / (sum of them + sink's)`. `max` is finite.
struct Weights {
    src: *const f32,
    dst: *mut f32,
    n: usize,
    scale: f32,
    max: f32,
    sink: f64,
}

impl Kernel for Weights {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let (scale, m) = (V::splat(self.scale), V::splat(-self.max));
            let mut total = self.sink;
            let mut start = 0;
            while start < self.n {
                let end = (start + 1024).min(self.n);
                let mut acc = [V::splat(0.0); 2];
                let mut i = start;
                while i + 2 * LANES <= end {
                    for (k, acc) in acc.iter_mut().enumerate() {
                        let e = math::exp(V::load(self.src.add(i + k * LANES)).fma(scale, m));
                        e.store(self.dst.add(i + k * LANES));
                        *acc = acc.add(e);
                    }
                    i += 2 * LANES;
                }
                if i + LANES <= end {
                    let e = math::exp(V::load(self.src.add(i)).fma(scale, m));
                    e.store(self.dst.add(i));
                    acc[0] = acc[0].add(e);
                    i += LANES;
                }
                if i < end {
                    math::exp(V::load_n(self.src.add(i), end - i).fma(scale, m)).store_n(self.dst.add(i), end - i);
                    // What was stored, with zeros behind.
                    acc[1] = acc[1].add(V::load_n(self.dst.add(i), end - i));
                }
                total += acc[0].add(acc[1]).sum_f64();
                start = end;
            }
            let f = V::splat((1.0 / total) as f32);
            let mut i = 0;
            while i + LANES <= self.n {
                V::load(self.dst.add(i)).mul(f).store(self.dst.add(i));
                i += LANES;
            }
            if i < self.n {
                V::load_n(self.dst.add(i), self.n - i).mul(f).store_n(self.dst.add(i), self.n - i);
            }
        }
    }
}

/// Softmax of `src * scale`; zeros where all of it is minus infinity.
///
/// # Safety
/// Both are good for `n` values and apart.
pub(super) unsafe fn weights(src: *const f32, dst: *mut f32, n: usize, scale: f32) {
    // SAFETY: the caller's promise.
    unsafe {
        map(Times(scale), src, dst, n);
        let max = reduce::max(dst, n);
        if max == f32::NEG_INFINITY {
            // NaN was left out of the maximum: it stays
            return (0..n).for_each(|i| *dst.add(i) = if (*dst.add(i)).is_nan() { f32::NAN } else { 0.0 });
        }
        dispatch(Weights { src: dst, dst, n, scale: 1.0, max, sink: 0.0 });
    }
}

/// `x * scale + slope * mask`, the mask as second argument. Minus infinity in the mask wins over anything finite.
#[derive(Clone, Copy)]
struct Masked(f32, f32);

impl Map2 for Masked {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V, m: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.fma(V::splat(self.0), m.mul(V::splat(self.1))) }
    }
}

fn run(node: &Node, team: &Team) {
    let (d, s, m) = (node.out(), node.arg(0), node.arg(1));
    let masked = node.src_opt(1).is_some();
    let sinks = node.src_opt(2).map(|_| node.arg(2));
    let (scale, max_bias) = (node.f32(0), node.f32(1));
    let n = d.ne[0];
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        // SAFETY: the views are good for their shapes; this row of dst is this thread's and packed.
        unsafe {
            let o = d.row(i).cast::<f32>();
            let mut x = s.row(i).cast::<f32>().cast_const();
            if s.nb[0] != 4 && n > 1 {
                rows::load(GGML_TYPE_F32, s.row(i), s.nb[0], o, n);
                x = o;
            }
            let sink = sinks.map_or(f32::NEG_INFINITY, |v| v.at(i[1], [0; 3]).cast::<f32>().read_unaligned());
            let plain = !masked && scale > 0.0;
            let mut max;
            if plain {
                max = reduce::max(x, n) * scale;
            } else {
                if masked {
                    let slope = slope(max_bias, i[1], d.ne[2]);
                    let mask = m.row([i[0], i[1] % m.ne[2], i[2] % m.ne[3]]);
                    rows::chunks(m.ty, mask, m.nb[0], n, |at, mask, k| {
                        map2(Masked(scale, slope), x.add(at), mask, o.add(at), k);
                    });
                } else {
                    map(Times(scale), x, o, n);
                }
                max = reduce::max(o, n);
            }
            if sink > max {
                max = sink;
            }
            if max == f32::NEG_INFINITY {
                // Nothing takes part. NaN would have been left out of the maximum: it stays.
                for k in 0..n {
                    let v = x.add(k).read_unaligned();
                    o.add(k).write_unaligned(if v.is_nan() { v } else { 0.0 });
                }
                continue;
            }
            let sink = if sinks.is_some() { f64::from(sink - max).exp() } else { 0.0 };
            let (src, scale) = if plain { (x, scale) } else { (o.cast_const(), 1.0) };
            dispatch(Weights { src, dst: o, n, scale, max, sink });
        }
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(op)?;
    is_f32(s)?;
    packed_rows(op)?;
    if let Ok(m) = src(op, 1) {
        ensure(matches!(m.r#type, GGML_TYPE_F32 | GGML_TYPE_F16), "the mask must be f32 or f16")?;
        ensure(m.ne[0] == s.ne[0] && m.ne[1] >= s.ne[1], "the mask must cover the source's rows")?;
        ensure(
            m.ne[2] > 0 && m.ne[3] > 0 && s.ne[2] % m.ne[2] == 0 && s.ne[3] % m.ne[3] == 0,
            "the mask must repeat to the source's shape",
        )?;
    }
    if let Ok(k) = src(op, 2) {
        is_f32(k)?;
        filled(k)?;
        ensure(k.ne[0] == s.ne[2], "there must be one sink for each head")?;
    }
    Ok(())
}

fn run_diag(node: &Node, team: &Team) {
    let (d, s) = (node.out(), node.arg(0));
    let past = i64::from(node.i32(0));
    let value = if node.dst.op == GGML_OP_DIAG_MASK_INF { f32::NEG_INFINITY } else { 0.0 };
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        let keep = (past + i[0] as i64 + 1).clamp(0, d.ne[0] as i64) as usize;
        // SAFETY: the views are good for their shapes; this row of dst is this thread's.
        unsafe {
            if d.data != s.data || d.nb != s.nb {
                rows::chunks(GGML_TYPE_F32, s.row(i), s.nb[0], keep, |at, x, n| {
                    rows::store(GGML_TYPE_F32, x, d.at(at, i), d.nb[0], n);
                });
            }
            for k in keep..d.ne[0] {
                d.at(k, i).cast::<f32>().write_unaligned(value);
            }
        }
    }
}

fn supports_diag(op: &ggml_tensor) -> Rule {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    is_f32(op)?;
    is_f32(s)?;
    ensure(shape::blck_size(op.r#type) == 1, "the format must be a plain one")
}

/// SOFT_MAX.
pub static SOFT_MAX: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
/// DIAG_MASK_INF, DIAG_MASK_ZERO.
pub static DIAG_MASK: OpEntry =
    OpEntry { supports: supports_diag, work: no_work, n_tasks: tasks_by_size, run: run_diag };
