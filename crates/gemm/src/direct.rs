//! Products with few rows on one side: no packing, every row of the other side is read once where it lies.

use crate::gemm::Gemm;
use crate::kernel::dot::DotArgs;
use crate::kernel::{Kernels, DOT_COLUMNS};
use crate::operand::float;
use crate::plan::ALIGN;
use crate::shape::{Shape, Side};
use crate::team::Team;
use ggml_oxide_types::{kernels, DotTile, Encode, Rows, Type};

impl Gemm<'_> {
    /// Plain rows against `few` rows of the other side.
    pub(crate) fn run_dot<T: Team + ?Sized>(&self, team: &T, swapped: bool, few: usize, own: *mut f32) {
        let Shape { m, n, k, batch, ratio } = self.shape;
        let (many, many_side, few_side) = if swapped { (n, &self.x, &self.w) } else { (m, &self.w, &self.x) };
        let (Side::Matrix(a), Side::Matrix(b)) = (many_side, few_side) else {
            unreachable!("the dot path is chosen for matrices only");
        };
        let Some(float) = float(a.ty) else {
            unreachable!("the dot path is chosen for plain rows only");
        };
        let kernels = Kernels::of(self.isa).dot[float as usize];
        // Equal groups of columns, as few as the kernels allow.
        let group = few.div_ceil(few.div_ceil(DOT_COLUMNS));
        let in_place = b.is_plain_f32();
        let batches = batch[0] * batch[1];
        // Tasks of at least 32 KiB of rows, about eight per thread.
        let least = (32 * 1024 / (k * float.size())).next_multiple_of(8).max(8);
        let rows = (many * batches).div_ceil(8 * team.nth()).max(least).next_multiple_of(8).min(many);
        let per_batch = many.div_ceil(rows);
        let mut converted = None;
        loop {
            let task = team.next();
            if task >= per_batch * batches {
                return;
            }
            let (bt, first) = (task / per_batch, task % per_batch * rows);
            let (i2, i3) = self.batch(bt);
            let wide = (i2 / ratio[0], i3 / ratio[1]);
            let (ai, bi) = if swapped { ((i2, i3), wide) } else { (wide, (i2, i3)) };
            let (b_at, b_stride) = if in_place {
                (b.at(0, 0, bi.0, bi.1).cast::<f32>(), b.nb[0])
            } else {
                let pitch = (k * 4).next_multiple_of(ALIGN);
                if converted != Some(bi) {
                    for r in 0..few {
                        // SAFETY: this thread's region holds `few` rows of `pitch` bytes.
                        let row = unsafe { core::slice::from_raw_parts_mut(own.byte_add(r * pitch), k) };
                        b.read_row(r, 0, bi.0, bi.1, row);
                    }
                    converted = Some(bi);
                }
                (own.cast_const(), pitch)
            };
            let c = self.dst.batch(i2, i3);
            let (sc_row, sc_col) = if swapped { (self.dst.ld, 1) } else { (1, self.dst.ld) };
            // Blocks of rows that stay in the second cache from one group of columns to the next.
            let end = (first + rows).min(many);
            for from in (first..end).step_by(least) {
                for col in (0..few).step_by(group) {
                    let args = DotArgs {
                        k,
                        a: a.at(from, 0, ai.0, ai.1),
                        a_stride: a.nb[0],
                        rows: least.min(end - from),
                        b: b_at.wrapping_byte_add(col * b_stride),
                        b_stride,
                        c: c.wrapping_add(from * sc_row + col * sc_col),
                        sc_row,
                        sc_col,
                    };
                    // SAFETY: the set is available; operands and result are as their creators vouched; rows of one
                    // task are written by one thread.
                    unsafe { kernels[group.min(few - col) - 1](&args) };
                }
            }
        }
    }

    /// Quantised rows against a few rows that are rounded to the format of the dot product first. `at_once` batches
    /// share the workspace at a time.
    pub(crate) fn run_quantised_dot<T: Team + ?Sized>(&self, team: &T, at_once: usize, shared: *mut u8, own: *mut f32) {
        let Shape { m, n, k, ratio, .. } = self.shape;
        let (Side::Matrix(w), Side::Matrix(x)) = (&self.w, &self.x) else {
            unreachable!("this path is chosen for matrices only");
        };
        let Some((to, encode, dot)) = quantised_dot(w.ty) else {
            unreachable!("this path is chosen for formats with a dot product");
        };
        let pitch = pitch(to, k);
        let small_scales = to != Type::Q8_K;
        let row_bytes = k / to.block_size() * to.block_bytes();
        let batches = self.batches();
        // Packing tasks of some 8 Ki values, dot tasks of at least 16 KiB of weights.
        let group = (8 * 1024 / k).max(1);
        let least = (16 * 1024 / (k / w.ty.block_size() * w.ty.block_bytes())).max(1);
        let (mut next, mut start) = (team.next(), 0);
        for b0 in (0..batches).step_by(at_once) {
            let bs = at_once.min(batches - b0);
            if start > 0 && !team.barrier() {
                return;
            }
            let end = start + (bs * n).div_ceil(group);
            while next < end {
                let first = (next - start) * group;
                for r in first..(first + group).min(bs * n) {
                    let (i2, i3) = self.batch(b0 + r / n);
                    let row = if x.is_plain_f32() {
                        // SAFETY: the creator of the matrix vouched for the row.
                        unsafe { core::slice::from_raw_parts(x.at(r % n, 0, i2, i3).cast::<f32>(), k) }
                    } else {
                        // SAFETY: this thread's region holds a row if rows are not plain.
                        let buf = unsafe { core::slice::from_raw_parts_mut(own, k) };
                        x.read_row(r % n, 0, i2, i3, buf);
                        &*buf
                    };
                    let exponent = if small_scales { exponent_outside(row) } else { 0 };
                    // SAFETY: the region holds bs * n rows of `pitch` bytes, the factor in the last four; this task alone
                    // writes row r.
                    let q = unsafe {
                        *factor_of(shared.add(r * pitch), pitch) = power_of_two(-exponent);
                        core::slice::from_raw_parts_mut(shared.add(r * pitch), row_bytes)
                    };
                    if exponent == 0 {
                        encode(row, q);
                    } else {
                        // SAFETY: this thread's region holds a row, maybe the very one that is read.
                        let scaled = unsafe {
                            let from = row.as_ptr();
                            (0..k).for_each(|i| *own.add(i) = *from.add(i) * power_of_two(exponent));
                            core::slice::from_raw_parts(own, k)
                        };
                        encode(scaled, q);
                    }
                }
                next = team.next();
            }
            if !team.barrier() {
                return;
            }
            start = end;
            let rows = (m * bs).div_ceil(8 * team.nth()).max(least).next_multiple_of(8).min(m);
            let per_batch = m.div_ceil(rows);
            let end = start + per_batch * bs;
            while next < end {
                let t = next - start;
                let (bt, first) = (t / per_batch, t % per_batch * rows);
                let (i2, i3) = self.batch(b0 + bt);
                let wr = Rows {
                    ptr: w.at(first, 0, i2 / ratio[0], i3 / ratio[1]),
                    stride: w.nb[0],
                    count: rows.min(m - first),
                };
                let xr = Rows { ptr: shared.wrapping_add(bt * n * pitch), stride: pitch, count: n };
                let out = self.dst.batch(i2, i3).wrapping_add(first);
                // SAFETY: weights and result are as their creators vouched, the rounded rows are complete; the rows of
                // one task are written by one thread.
                unsafe { dot(k, wr, xr, out, self.dst.ld) };
                for col in 0..n {
                    // SAFETY: as above; the factor was written with its row.
                    unsafe {
                        let factor = *factor_of(shared.add((bt * n + col) * pitch), pitch);
                        if factor != 1.0 {
                            (0..wr.count).for_each(|r| *out.add(col * self.dst.ld + r) *= factor);
                        }
                    }
                }
                next = team.next();
            }
            start = end;
        }
    }
}

/// Where the power of two that a row's results are multiplied by is kept: at the row's end.
fn factor_of(row: *mut u8, pitch: usize) -> *mut f32 {
    row.wrapping_add(pitch - 4).cast()
}

/// Two to the power `e`, -126 to 127.
fn power_of_two(e: i32) -> f32 {
    f32::from_bits(((e + 127) as u32) << 23)
}

/// 0 for a row whose blocks get scales that a half-precision number holds well; else the power of two that makes its largest
/// value about 1000. Formats with such scales would give tiny rows a scale of few bits or none, and huge ones the largest.
fn exponent_outside(row: &[f32]) -> i32 {
    let largest = row.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    if largest == 0.0 || !largest.is_finite() || (0.25..=1024.0).contains(&largest) {
        return 0;
    }
    let exponent = (largest.to_bits() >> 23) as i32 - 127;
    (9 - exponent).clamp(-126, 126)
}

/// Bytes from one rounded row to the next, its factor included.
fn pitch(to: Type, k: usize) -> usize {
    (k / to.block_size() * to.block_bytes() + 4).next_multiple_of(ALIGN)
}

/// The format that activations are rounded to against weights of `ty`, how, and the dot product.
pub(crate) fn quantised_dot(ty: Type) -> Option<(Type, Encode, DotTile)> {
    if !ty.is_quantized() {
        return None;
    }
    let to = ty.vec_dot_type()?;
    Some((to, kernels(to).encode?, kernels(ty).dot?))
}

/// Batches whose rounded rows are held at a time, and the bytes for them.
pub(crate) fn quantised_dot_region(ty: Type, n: usize, k: usize, batches: usize) -> (usize, usize) {
    const LIMIT: usize = 4 << 20;
    let to = ty.vec_dot_type().unwrap_or(ty);
    let one = n * pitch(to, k);
    let at_once = (LIMIT / one).clamp(1, batches);
    (at_once, at_once * one)
}
