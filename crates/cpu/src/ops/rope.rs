//! ROPE and ROPE_BACK: rotary position embedding, plain, NeoX, multi-axis (mrope, interleaved, vision), with YaRN scaling.
//!
//! f32 and f16; rows packed, any layout above. Angles are computed in f64 from the position and the pair's own frequency, not by
//! repeated multiplication, so that they are right to the last f32 bit at any position.

use super::rows;
use super::rules::*;
use super::vec::{dispatch, Kernel, Lanes, LANES};
use crate::node::{src, Node};
use crate::table::{tasks_by_size, OpEntry};
use crate::team::Team;
use ggml_oxide_abi::*;
use std::f64::consts::PI;

struct Params {
    n_dims: usize,
    mode: i32,
    n_ctx_orig: i32,
    freq_base: f32,
    freq_scale: f32,
    ext_factor: f32,
    attn_factor: f32,
    beta_fast: f32,
    beta_slow: f32,
    sections: [usize; 4],
    offset: usize,
}

impl Params {
    fn of(op: &ggml_tensor) -> Option<Params> {
        let p = &op.op_params;
        let size = |i: usize| usize::try_from(p[i]).ok();
        let float = |i: usize| f32::from_bits(p[i] as u32);
        Some(Params {
            n_dims: size(1)?,
            mode: p[2],
            n_ctx_orig: p[4],
            freq_base: float(5),
            freq_scale: float(6),
            ext_factor: float(7),
            attn_factor: float(8),
            beta_fast: float(9),
            beta_slow: float(10),
            sections: [size(11)?, size(12)?, size(13)?, size(14)?],
            offset: size(15)?,
        })
    }

    fn multi(&self) -> bool {
        self.mode & GGML_ROPE_TYPE_MROPE != 0
    }

    fn vision(&self) -> bool {
        self.mode == GGML_ROPE_TYPE_VISION
    }

    /// Pairs that are rotated: `n_dims / 2`, or `n_dims` for vision.
    fn pairs(&self) -> usize {
        if self.vision() {
            self.n_dims
        } else {
            self.n_dims / 2
        }
    }

    /// Which position and which power of the base pair `i` uses.
    fn axis(&self, i: usize) -> (usize, usize) {
        if !self.multi() {
            return (0, i);
        }
        let [t, h, w, e] = self.sections;
        let sector = i % (t + h + w + e);
        let (axis, start) = if self.mode == GGML_ROPE_TYPE_IMROPE {
            let axis = match sector % 3 {
                1 if sector < 3 * h => 1,
                2 if sector < 3 * w => 2,
                0 if sector < 3 * t => 0,
                _ => 3,
            };
            (axis, 0)
        } else if sector < t {
            (0, 0)
        } else if sector < t + h {
            (1, t)
        } else if sector < t + h + w {
            (2, t + h)
        } else {
            (3, t + h + w)
        };
        // Vision counts its powers anew in each section.
        (axis, if self.vision() { sector - start } else { i })
    }

    /// The pairs between which YaRN blends from extrapolation to interpolation.
    fn ramp(&self) -> (f64, f64) {
        let dim = |beta: f32| {
            let turns = f64::from(self.n_ctx_orig) / (f64::from(beta) * 2.0 * PI);
            self.n_dims as f64 * turns.ln() / (2.0 * f64::from(self.freq_base).ln())
        };
        (dim(self.beta_fast).floor().max(0.0), dim(self.beta_slow).ceil().min(self.n_dims as f64 - 1.0))
    }
}

/// A thread's memory: frequency, blend and axis of each pair, then cosines, sines and a row.
struct Tables {
    freq: *mut f64,
    blend: *mut f64,
    axis: *mut u32,
    cos: *mut f32,
    sin: *mut f32,
    row: *mut f32,
}

fn table_bytes(ne0: usize) -> usize {
    // Pairs are at most ne0 (vision has ne0 / 2).
    (ne0 * (8 + 8 + 4 + 4 + 4 + 4) + 64).next_multiple_of(64)
}

impl Tables {
    fn at(p: *mut u8, ne0: usize) -> Tables {
        Tables {
            freq: p.cast(),
            blend: p.wrapping_add(8 * ne0).cast(),
            axis: p.wrapping_add(16 * ne0).cast(),
            cos: p.wrapping_add(20 * ne0).cast(),
            sin: p.wrapping_add(24 * ne0).cast(),
            row: p.wrapping_add(28 * ne0).cast(),
        }
    }
}

/// Rotates pairs `(x[i], x[i + gap])`.
struct Halves {
    x: *const f32,
    d: *mut f32,
    gap: usize,
    cos: *const f32,
    sin: *const f32,
    n: usize,
}

impl Kernel for Halves {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let mut i = 0;
        while i < self.n {
            let k = (self.n - i).min(LANES);
            // SAFETY: reads and writes stay below n in each half: the caller's promise.
            unsafe {
                let load = |p: *const f32| if k == LANES { V::load(p.add(i)) } else { V::load_n(p.add(i), k) };
                let (c, s) = (load(self.cos), load(self.sin));
                let (x0, x1) = (load(self.x), load(self.x.add(self.gap)));
                let y0 = x0.mul(c).sub(x1.mul(s));
                let y1 = x0.mul(s).add(x1.mul(c));
                if k == LANES {
                    y0.store(self.d.add(i));
                    y1.store(self.d.add(self.gap + i));
                } else {
                    y0.store_n(self.d.add(i), k);
                    y1.store_n(self.d.add(self.gap + i), k);
                }
            }
            i += k;
        }
    }
}

/// Rotates pairs `(x[2i], x[2i + 1])`.
struct Neighbours {
    x: *const f32,
    d: *mut f32,
    cos: *const f32,
    sin: *const f32,
    n: usize,
}

impl Kernel for Neighbours {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for i in 0..self.n {
            // SAFETY: reads and writes stay below 2n: the caller's promise.
            unsafe {
                let (c, s) = (*self.cos.add(i), *self.sin.add(i));
                let (x0, x1) = (*self.x.add(2 * i), *self.x.add(2 * i + 1));
                *self.d.add(2 * i) = x0 * c - x1 * s;
                *self.d.add(2 * i + 1) = x0 * s + x1 * c;
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    let Some(p) = Params::of(node.dst) else { return };
    let (d, a, pos) = (node.out(), node.arg(0), node.arg(1));
    let factors = node.src_opt(2).map(|_| node.arg(2));
    let (ne0, ne2) = (d.ne[0], d.ne[2]);
    let range = team.range(d.nrows());
    if range.is_empty() {
        return;
    }
    let (scratch, _) = team.scratch();
    let t = Tables::at(scratch.wrapping_add(team.ith() * table_bytes(ne0)), ne0);
    let (low, high) = p.ramp();
    let extrapolate = p.ext_factor != 0.0;
    for i in 0..p.pairs() {
        let (axis, power) = p.axis(i);
        // SAFETY: the tables hold ne0 >= pairs values each; factors are n_dims / 2 or more (checked).
        unsafe {
            let factor = factors.map_or(1.0, |f| f.at(i, [0; 3]).cast::<f32>().read_unaligned());
            *t.freq.add(i) = f64::from(p.freq_base).powf(-2.0 * power as f64 / p.n_dims as f64) / f64::from(factor);
            let y = (i as f64 - low) / (high - low).max(0.001);
            *t.blend.add(i) = if extrapolate { (1.0 - y.clamp(0.0, 1.0)) * f64::from(p.ext_factor) } else { 0.0 };
            *t.axis.add(i) = axis as u32;
        }
    }
    let mut magnitude = f64::from(p.attn_factor);
    if extrapolate {
        magnitude *= 1.0 + 0.1 * (1.0 / f64::from(p.freq_scale)).ln();
    }
    let sign = if node.dst.op == GGML_OP_ROPE_BACK { -1.0 } else { 1.0 };
    let mut last = usize::MAX;
    for r in range {
        let i = d.unravel(r);
        if i[1] != last {
            last = i[1];
            for k in 0..p.pairs() {
                // SAFETY: the tables hold the pairs; there is a position for each axis and step of dimension 2 (checked).
                unsafe {
                    let at = i[1] + *t.axis.add(k) as usize * ne2;
                    let x = f64::from(pos.at(at, [0; 3]).cast::<i32>().read_unaligned()) * *t.freq.add(k);
                    let blend = *t.blend.add(k);
                    let theta = f64::from(p.freq_scale) * x * (1.0 - blend) + x * blend;
                    let (s, c) = theta.sin_cos();
                    *t.cos.add(k) = (c * magnitude) as f32;
                    *t.sin.add(k) = (s * magnitude * sign) as f32;
                }
            }
        }
        // SAFETY: rows are packed and of ne0 elements; this row of dst is this thread's.
        unsafe { rotate(&p, &t, a.row(i), d.row(i), d.ty, ne0) };
    }
}

/// Rotates one row.
///
/// # Safety
/// Both rows are good for `ne0` packed elements.
unsafe fn rotate(p: &Params, t: &Tables, s: *mut u8, d: *mut u8, ty: ggml_type, ne0: usize) {
    // SAFETY: the caller's promise; the table's row has room for ne0 values.
    unsafe {
        let f32s = ty == GGML_TYPE_F32;
        let (x, y): (*const f32, *mut f32) = if f32s {
            (s.cast(), d.cast())
        } else {
            rows::load_packed(ty, s, t.row, ne0);
            (t.row, t.row)
        };
        let (o, n) = (p.offset, p.pairs());
        if f32s && s != d {
            std::ptr::copy(x, y, o);
            std::ptr::copy(x.add(o + 2 * n), y.add(o + 2 * n), ne0 - o - 2 * n);
        }
        let (x, y) = (x.add(o), y.add(o));
        if p.mode == GGML_ROPE_TYPE_NORMAL {
            dispatch(Neighbours { x, d: y, cos: t.cos, sin: t.sin, n });
        } else {
            dispatch(Halves { x, d: y, gap: n, cos: t.cos, sin: t.sin, n });
        }
        if !f32s {
            rows::store_packed(ty, t.row, d, ne0);
        }
    }
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    usize::try_from(op.ne[0]).map_or(usize::MAX, |n| table_bytes(n).saturating_mul(nth))
}

fn supports(op: &ggml_tensor) -> Rule {
    let (a, pos) = (src(op, 0)?, src(op, 1)?);
    same_shape(op, a)?;
    ensure(matches!(a.r#type, GGML_TYPE_F32 | GGML_TYPE_F16), "the format must be f32 or f16")?;
    ensure(op.r#type == a.r#type, "source and result must have the same format")?;
    packed_rows(op)?;
    packed_rows(a)?;
    is_i32(pos)?;
    let p = Params::of(op).ok_or("a parameter is negative")?;
    let modes = [
        GGML_ROPE_TYPE_NORMAL,
        GGML_ROPE_TYPE_NEOX,
        GGML_ROPE_TYPE_MROPE,
        GGML_ROPE_TYPE_VISION,
        GGML_ROPE_TYPE_IMROPE,
    ];
    ensure(modes.contains(&p.mode), "unknown rope mode")?;
    let ne0 = op.ne[0].max(0) as usize;
    ensure(p.n_dims > 0 && p.n_dims % 2 == 0 && p.offset % 2 == 0, "the rotated part must be pairs")?;
    ensure(p.n_dims <= ne0 && p.offset <= ne0 - p.n_dims, "the rotated part must lie inside the row")?;
    ensure(pos.ne[0] >= op.ne[2].saturating_mul(if p.multi() { 4 } else { 1 }), "there are too few positions")?;
    if p.multi() {
        let total = p.sections.iter().try_fold(0usize, |a, &b| a.checked_add(b));
        ensure(p.sections[..3].iter().any(|&s| s > 0), "sections must not all be empty")?;
        ensure(total.is_some_and(|n| n <= ne0), "the sections are longer than the row")?;
    }
    if p.vision() {
        ensure(p.offset == 0 && p.n_dims == ne0 / 2 && ne0.is_multiple_of(2), "vision rotates the whole row")?;
    }
    if let Ok(f) = src(op, 2) {
        is_f32(f)?;
        ensure(f.ne[0] >= p.pairs() as i64, "there are too few frequency factors")?;
    }
    Ok(())
}

/// ROPE, ROPE_BACK.
pub static ROPE: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
