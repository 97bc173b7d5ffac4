//! Products with few rows of activations, which are as fast as weights come from memory: rows of weights are read where they lie.

use super::dot::{Dot, Sums, MAX_STRIP, ROWS};
use super::pack::nibbles;
use super::product::{taken, Out};
use super::Level;
use crate::sd::kernel::{part, Run, Shared, Stop};
use std::sync::atomic::AtomicUsize;

/// Rows of activations from which on panels are worth making.
pub const MANY: usize = 16;
/// Rows of weights that a thread takes at a time.
const BLOCK: usize = 128;
/// Elements of a row of 4-bit weights that are unpacked at a time.
const UNPACKED: usize = 2048;

/// Rows of weights.
#[derive(Clone, Copy)]
pub enum Weights {
    /// Of 8-bit integers.
    Bytes(Shared),
    /// Of 4-bit integers.
    Nibbles(Shared),
}

/// A product.
pub struct Product<'a> {
    /// Rows of activations, I8, one after the other.
    pub q: Shared,
    /// A scale for each, F32.
    pub scales: Shared,
    /// The sum of each, I32.
    pub sums: Shared,
    /// How many.
    pub rows: usize,
    /// Elements of a row.
    pub k: usize,
    /// The result.
    pub out: Out<'a>,
}

impl Product<'_> {
    /// Writes the sums, if the processor's kernel needs them.
    ///
    /// # Safety
    /// The memory is there.
    pub unsafe fn sum(&self, run: &Run) -> Result<(), Stop> {
        if !Dot::new(Level::best()).needs_sums() {
            return Ok(());
        }
        run.parallel(|ith, nth| {
            for r in part(self.rows, ith, nth) {
                // SAFETY: the caller's promise; each row is one thread's.
                unsafe {
                    let q = std::slice::from_raw_parts(self.q.at(self.k * r).cast::<i8>(), self.k);
                    let sum = q.iter().fold(0i32, |s, &q| s.wrapping_add(i32::from(q)));
                    self.sums.at(4 * r).cast::<i32>().write(sum);
                }
            }
        })
    }

    /// Computes all of it.
    ///
    /// # Safety
    /// The memory is there, sums too; nobody else uses the result.
    pub unsafe fn run(&self, run: &Run, weights: Weights) -> Result<(), Stop> {
        let (dot, next) = (Dot::new(Level::best()), AtomicUsize::new(0));
        run.parallel(|_, _| {
            for block in taken(&next, self.out.n.div_ceil(BLOCK)) {
                for n0 in (block * BLOCK..self.out.n.min((block + 1) * BLOCK)).step_by(ROWS) {
                    for r0 in (0..self.rows).step_by(dot.strip()) {
                        // SAFETY: the caller's promise; each block is taken once.
                        unsafe { self.tile(dot, weights, n0, r0) };
                    }
                }
            }
        })
    }

    /// # Safety
    /// As [`Self::run`]; the results are this thread's.
    unsafe fn tile(&self, dot: Dot, weights: Weights, n0: usize, r0: usize) {
        let (k, n) = (self.k, self.out.n);
        let (rows, strip) = (ROWS.min(n - n0), dot.strip().min(self.rows - r0));
        let mut sums = [0i32; MAX_STRIP];
        if dot.needs_sums() {
            for (i, sum) in sums[..strip].iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *sum = unsafe { self.sums.at(4 * (r0 + i)).cast::<i32>().read() };
            }
        }
        // rows beyond the last are the last again, and thrown away
        let row = |w: Shared, bytes: usize, i: usize| w.at(bytes * (n0 + i.min(rows - 1)));
        let x = |i: usize, k0: usize| self.q.at(k * (r0 + i.min(strip - 1)) + k0).cast::<i8>().cast_const();
        let all = match weights {
            Weights::Bytes(w) => {
                let w = std::array::from_fn(|i| row(w, k, i).cast::<i8>().cast_const());
                let x: [_; MAX_STRIP] = std::array::from_fn(|i| x(i, 0));
                // SAFETY: the caller's promise.
                unsafe { dot.tile(&w, &x[..strip], k, &sums) }
            }
            Weights::Nibbles(w) => {
                let mut all: Sums = [[0; ROWS]; MAX_STRIP];
                let mut unpacked = [[0i8; UNPACKED]; ROWS];
                for k0 in (0..k).step_by(UNPACKED) {
                    let count = UNPACKED.min(k - k0);
                    for (i, to) in unpacked.iter_mut().enumerate() {
                        let from = row(w, k / 2, i).at(k0 / 2).cast::<u8>();
                        // SAFETY: the caller's promise: rows of half as many bytes.
                        nibbles(unsafe { std::slice::from_raw_parts(from, count / 2) }, &mut to[..count]);
                    }
                    let x: [_; MAX_STRIP] = std::array::from_fn(|i| x(i, k0));
                    // SAFETY: the caller's promise.
                    let some = unsafe { dot.tile(&unpacked.each_ref().map(|w| w.as_ptr()), &x[..strip], count, &sums) };
                    all.as_flattened_mut()
                        .iter_mut()
                        .zip(some.as_flattened())
                        .for_each(|(a, s)| *a = a.wrapping_add(*s));
                    // what weights are moved up by counts once
                    sums = [0; MAX_STRIP];
                }
                all
            }
        };
        for (i, acc) in all[..strip].iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.store(r0 + i, n0, &acc[..rows]) };
        }
    }

    /// Stores sums of row `r` from weight `n0` on: times the scale of the activations, times that of the weight, plus the bias.
    ///
    /// # Safety
    /// As [`Self::tile`].
    unsafe fn store(&self, r: usize, n0: usize, sums: &[i32]) {
        // SAFETY: the caller's promise.
        let (scale, dst) = unsafe {
            let dst = self.out.dst.at(4 * (self.out.n * r + n0)).cast::<f32>();
            (self.scales.at(4 * r).cast::<f32>().read_unaligned(), std::slice::from_raw_parts_mut(dst, sums.len()))
        };
        for (i, (y, sum)) in dst.iter_mut().zip(sums).enumerate() {
            let mut v = *sum as f32 * scale;
            if let Some(weight_scale) = self.out.weight_scale {
                v *= weight_scale[n0 + i];
            }
            if let Some(bias) = self.out.bias {
                v += bias[n0 + i];
            }
            *y = v;
        }
    }
}
