//! Products of rows of 8-bit weights with rows of 8-bit activations, scales and bias behind them.

use super::dot::{Dot, MAX_STRIP, ROWS};
use super::Level;
use crate::sd::kernel::{part, Run, Shared, Stop};
use std::ops::Range;

/// Bytes of weights that a thread keeps at hand while it goes through the activations.
const BLOCK: usize = 384 << 10;
/// Rows of activations in a strip: a multiple of those that a tile has at once, for every kernel.
const STRIP: usize = 48;

/// Rows of quantised activations.
#[derive(Clone, Copy)]
pub struct Activations {
    /// Rows of I8, one after the other.
    pub q: Shared,
    /// A scale for each, F32.
    pub scales: Shared,
    /// The sum of each, I32: written by [`Activations::sum`] or when they were quantised.
    pub sums: Shared,
    /// How many.
    pub rows: usize,
}

impl Activations {
    /// Writes the sums on all threads, if the processor's kernel needs them.
    ///
    /// # Safety
    /// The memory is there; rows have `k` elements.
    pub unsafe fn sum(&self, run: &Run, k: usize) -> Result<(), Stop> {
        if !Dot::new(Level::best()).needs_sums() {
            return Ok(());
        }
        run.parallel(|ith, nth| {
            for r in part(self.rows, ith, nth) {
                // SAFETY: the caller's promise; each row is one thread's.
                unsafe {
                    let q = std::slice::from_raw_parts(self.q.at(k * r).cast::<i8>(), k);
                    let sum = q.iter().fold(0i32, |s, &q| s.wrapping_add(i32::from(q)));
                    self.sums.at(4 * r).cast::<i32>().write_unaligned(sum);
                }
            }
        })
    }
}

/// A product.
pub struct Product<'a> {
    /// Activations.
    pub x: Activations,
    /// A scale for each row of weights.
    pub weight_scale: Option<&'a [f32]>,
    /// An addend for each row of weights.
    pub bias: Option<&'a [f32]>,
    /// The result, F32: as many elements as there are rows of weights for each row of activations.
    pub dst: Shared,
    /// Elements of a row.
    pub k: usize,
    /// Rows of weights.
    pub n: usize,
}

/// A piece of a product: rows of weights and of activations.
pub type Piece = (Range<usize>, Range<usize>);

impl Product<'_> {
    /// Rows of weights that a piece has at most.
    pub fn width(&self) -> usize {
        (BLOCK / self.k.max(1) / ROWS * ROWS).clamp(ROWS, 256)
    }

    /// The pieces that are thread `ith`'s; those of one block of weights follow each other.
    pub fn pieces(&self, ith: usize, nth: usize) -> impl Iterator<Item = Piece> + use<'_> {
        let (n, r, width) = (self.n, self.x.rows, self.width());
        let (blocks, strips) = (n.div_ceil(width), r.div_ceil(STRIP));
        part(blocks * strips, ith, nth).map(move |piece| {
            let (n0, r0) = (piece / strips * width, piece % strips * STRIP);
            (n0..n.min(n0 + width), r0..r.min(r0 + STRIP))
        })
    }

    /// Computes a piece; `w`: its first row of weights.
    ///
    /// # Safety
    /// The memory is there, and the elements of the result are this thread's.
    pub unsafe fn piece(&self, dot: Dot, w: Shared, (ns, rs): &Piece) {
        let k = self.k;
        for r0 in rs.clone().step_by(dot.strip()) {
            let r1 = rs.end.min(r0 + dot.strip());
            let mut x = [std::ptr::null::<i8>(); MAX_STRIP];
            let mut sums = [0i32; MAX_STRIP];
            for (i, r) in (r0..r1).enumerate() {
                x[i] = self.x.q.at(k * r).cast();
                if dot.needs_sums() {
                    // SAFETY: the caller's promise.
                    sums[i] = unsafe { self.x.sums.at(4 * r).cast::<i32>().read_unaligned() };
                }
            }
            for n0 in ns.clone().step_by(ROWS) {
                let rows = ROWS.min(ns.end - n0);
                // rows beyond the last are the last again, and thrown away
                let row = |i: usize| w.at(k * (n0 - ns.start + i.min(rows - 1))).cast::<i8>().cast_const();
                let w_rows = std::array::from_fn(row);
                // SAFETY: the caller's promise.
                let sums = unsafe { dot.tile(&w_rows, &x[..r1 - r0], k, &sums) };
                for (r, acc) in (r0..r1).zip(&sums) {
                    let v = acc.map(|a| a as f32);
                    // SAFETY: the caller's promise.
                    unsafe { self.store(r, n0, &v[..rows]) };
                }
            }
        }
    }

    /// Stores sums of row `r` from weight `n0` on: times the scale of the activations, times that of the weight, plus the bias.
    ///
    /// # Safety
    /// As [`Self::piece`].
    #[inline(always)]
    pub unsafe fn store(&self, r: usize, n0: usize, sums: &[f32]) {
        // SAFETY: the caller's promise.
        let (scale, dst) = unsafe {
            let dst = self.dst.at(4 * (self.n * r + n0)).cast::<f32>();
            let scale = self.x.scales.at(4 * r).cast::<f32>().read_unaligned();
            (scale, std::slice::from_raw_parts_mut(dst, sums.len()))
        };
        for (i, (y, sum)) in dst.iter_mut().zip(sums).enumerate() {
            let mut v = sum * scale;
            if let Some(weight_scale) = self.weight_scale {
                v *= weight_scale[n0 + i];
            }
            if let Some(bias) = self.bias {
                v += bias[n0 + i];
            }
            *y = v;
        }
    }
}

/// The elements of a vector of F32.
///
/// # Safety
/// The tensor is contiguous and has its data, at a multiple of 4 bytes.
pub unsafe fn numbers(t: &ggml_oxide_abi::ggml_tensor) -> &[f32] {
    match ggml_oxide_shape::nelements(t) {
        0 => &[],
        // SAFETY: the caller's promise.
        n => unsafe { std::slice::from_raw_parts(t.data.cast::<f32>(), n as usize) },
    }
}
