//! ROPE and ROPE_BACK: rotary position embedding, plain, NeoX, multi-axis (mrope, interleaved, vision), with YaRN scaling.
//!
//! f32 and f16; rows packed, any layout above. Angles are computed in f64 from the position and the pair's own frequency, not by
//! repeated multiplication, so that they are right to the last f32 bit at any position.

use super::rows;
use super::rules::*;
use super::vec::{dispatch, sincos, Kernel, Lanes, LANES};
use crate::entry::{tasks_by_size, OpEntry};
use crate::node::{src, Node};
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

/// A thread's memory: frequency, blend, axis and angle of each pair, then cosines, sines and a row.
struct Tables {
    freq: *mut f64,
    blend: *mut f64,
    angle: *mut f64,
    axis: *mut u32,
    cos: *mut f32,
    sin: *mut f32,
    row: *mut f32,
}

fn table_bytes(ne0: usize) -> usize {
    // Pairs are at most ne0 (vision has ne0 / 2).
    (ne0 * (8 + 8 + 8 + 4 + 4 + 4 + 4) + 64).next_multiple_of(64)
}

impl Tables {
    fn at(p: *mut u8, ne0: usize) -> Tables {
        Tables {
            freq: p.cast(),
            blend: p.wrapping_add(8 * ne0).cast(),
            angle: p.wrapping_add(16 * ne0).cast(),
            axis: p.wrapping_add(24 * ne0).cast(),
            cos: p.wrapping_add(28 * ne0).cast(),
            sin: p.wrapping_add(32 * ne0).cast(),
            row: p.wrapping_add(36 * ne0).cast(),
        }
    }
}

/// Rows with the same angles: `rows` of them, `xs` and `ds` bytes apart, `n` pairs in each.
struct Rows {
    x: *const f32,
    d: *mut f32,
    xs: usize,
    ds: usize,
    rows: usize,
    cos: *const f32,
    sin: *const f32,
    n: usize,
}

/// Rotates pairs `(x[i], x[i + n])`.
struct Halves(Rows);

impl Kernel for Halves {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let r = self.0;
        for row in 0..r.rows {
            let (x, d) = (r.x.wrapping_byte_add(row * r.xs), r.d.wrapping_byte_add(row * r.ds));
            let mut i = 0;
            while i < r.n {
                let k = (r.n - i).min(LANES);
                // SAFETY: reads and writes stay below n in each half: the caller's promise.
                unsafe {
                    let load = |p: *const f32| if k == LANES { V::load(p.add(i)) } else { V::load_n(p.add(i), k) };
                    let (c, s) = (load(r.cos), load(r.sin));
                    let (x0, x1) = (load(x), load(x.add(r.n)));
                    let y0 = x0.mul(c).sub(x1.mul(s));
                    let y1 = x0.mul(s).add(x1.mul(c));
                    if k == LANES {
                        y0.store(d.add(i));
                        y1.store(d.add(r.n + i));
                    } else {
                        y0.store_n(d.add(i), k);
                        y1.store_n(d.add(r.n + i), k);
                    }
                }
                i += k;
            }
        }
    }
}

/// Rotates pairs `(x[2i], x[2i + 1])`.
struct Neighbours(Rows);

/// Pairs that are rotated at once.
const PAIRS: usize = 8;

impl Kernel for Neighbours {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let r = self.0;
        for row in 0..r.rows {
            let (x, d) = (r.x.wrapping_byte_add(row * r.xs), r.d.wrapping_byte_add(row * r.ds));
            let mut i = 0;
            // SAFETY: reads and writes stay below 2n: the caller's promise.
            unsafe {
                while i + PAIRS <= r.n {
                    // Whole arrays in and out, since the row may be rotated in place.
                    let c = r.cos.add(i).cast::<[f32; PAIRS]>().read_unaligned();
                    let s = r.sin.add(i).cast::<[f32; PAIRS]>().read_unaligned();
                    let x = x.add(2 * i).cast::<[f32; 2 * PAIRS]>().read_unaligned();
                    let mut y = [0.0f32; 2 * PAIRS];
                    for k in 0..PAIRS {
                        y[2 * k] = x[2 * k] * c[k] - x[2 * k + 1] * s[k];
                        y[2 * k + 1] = x[2 * k] * s[k] + x[2 * k + 1] * c[k];
                    }
                    d.add(2 * i).cast::<[f32; 2 * PAIRS]>().write_unaligned(y);
                    i += PAIRS;
                }
                while i < r.n {
                    let (c, s) = (*r.cos.add(i), *r.sin.add(i));
                    let (x0, x1) = (*x.add(2 * i), *x.add(2 * i + 1));
                    *d.add(2 * i) = x0 * c - x1 * s;
                    *d.add(2 * i + 1) = x0 * s + x1 * c;
                    i += 1;
                }
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
    let mut r = range.start;
    while r < range.end {
        let i = d.unravel(r);
        if i[1] != last {
            last = i[1];
            // SAFETY: the tables hold the pairs; there is a position for each axis and step of dimension 2 (checked).
            unsafe {
                let mut at = [0.0; 4];
                for (k, x) in at[..if p.multi() { 4 } else { 1 }].iter_mut().enumerate() {
                    *x = f64::from(pos.at(i[1] + k * ne2, [0; 3]).cast::<i32>().read_unaligned());
                }
                for k in 0..p.pairs() {
                    let x = at[*t.axis.add(k) as usize & 3] * *t.freq.add(k);
                    let blend = *t.blend.add(k);
                    *t.angle.add(k) = f64::from(p.freq_scale) * x * (1.0 - blend) + x * blend;
                }
                sincos::sin_cos(t.angle, p.pairs(), [magnitude * sign, magnitude], t.sin, t.cos);
            }
        }
        // The heads of one position at a time.
        let rows = (d.ne[1] - i[0]).min(range.end - r);
        // SAFETY: rows are packed and of ne0 elements; these rows of dst are this thread's.
        unsafe {
            if d.ty == GGML_TYPE_F32 {
                rotate(&p, &t, (a.row(i), a.nb[1]), (d.row(i), d.nb[1]), rows, ne0);
            } else {
                for k in 0..rows {
                    rows::load_packed(d.ty, a.row([i[0] + k, i[1], i[2]]), t.row, ne0);
                    rotate(&p, &t, (t.row.cast(), 0), (t.row.cast(), 0), 1, ne0);
                    rows::store_packed(d.ty, t.row, d.row([i[0] + k, i[1], i[2]]), ne0);
                }
            }
        }
        r += rows;
    }
}

/// Rotates f32 rows with the same angles.
///
/// # Safety
/// Both sides are good for `rows` rows of `ne0` packed elements, which lie the given number of bytes apart.
unsafe fn rotate(
    p: &Params,
    t: &Tables,
    (s, xs): (*mut u8, usize),
    (d, ds): (*mut u8, usize),
    rows: usize,
    ne0: usize,
) {
    let (o, n) = (p.offset, p.pairs());
    // SAFETY: the caller's promise.
    unsafe {
        if s != d && 2 * n < ne0 {
            for k in 0..rows {
                let (x, y) = (s.add(k * xs).cast::<f32>(), d.add(k * ds).cast::<f32>());
                std::ptr::copy(x, y, o);
                std::ptr::copy(x.add(o + 2 * n), y.add(o + 2 * n), ne0 - o - 2 * n);
            }
        }
        let (x, d) = (s.cast::<f32>().add(o), d.cast::<f32>().add(o));
        let rows = Rows { x, d, xs, ds, rows, cos: t.cos, sin: t.sin, n };
        if p.mode == GGML_ROPE_TYPE_NORMAL {
            dispatch(Neighbours(rows));
        } else {
            dispatch(Halves(rows));
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
    filled(pos)?;
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
        filled(f)?;
        ensure(f.ne[0] >= p.pairs() as i64, "there are too few frequency factors")?;
    }
    Ok(())
}

/// ROPE, ROPE_BACK.
pub static ROPE: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
