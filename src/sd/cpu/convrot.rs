//! Quantisation of activations, row by row.

use super::product::{taken, Activations};
use super::{processors, rotate, Level};
use crate::sd::check;
use crate::sd::convrot::{self, Packed};
use crate::sd::kernel::{Kernel, Run, Shared, Stop};
use crate::sd::operator::{Check, Node};
use ggml_oxide_shape as shape;
use std::ffi::CStr;
use std::sync::atomic::AtomicUsize;

/// `sd.quantize_i8_convrot.cpu`.
pub struct Quantize;

/// Where rows are quantised to.
pub enum To {
    /// Rows of integers, one after the other.
    Rows(Shared),
    /// Strips.
    Strips(Activations),
}

/// Rows to quantise.
pub struct Rows {
    /// Rows of F32, one after the other.
    pub from: Shared,
    /// Elements of a row.
    pub k: usize,
    /// How many.
    pub rows: usize,
    /// Elements that are rotated together.
    pub group: usize,
    /// Where integers go.
    pub to: To,
    /// A scale for each row, F32.
    pub scales: Shared,
    /// A sum for each row, I32.
    pub sums: Option<Shared>,
    /// [`room`] bytes at a multiple of 64 that each thread has a part of.
    pub scratch: Shared,
}

/// Rows that a thread takes at a time, when it makes no strips.
const SHARE: usize = 4;

/// Bytes of a part of the scratch memory: a rotated row, and the integers of a strip.
fn part(k: usize, group: usize, strip: usize) -> Option<usize> {
    let rotated = if group > 1 { rotate::room(k)?.checked_mul(4)? } else { 0 };
    rotated.checked_add(strip.checked_mul(k)?)?.checked_next_multiple_of(64)
}

/// Bytes of scratch memory to quantise `rows` rows of `k`, to strips of `strip` rows or (0) to rows; `None`: more than there can be.
pub fn room(k: usize, rows: usize, group: usize, strip: usize) -> Option<usize> {
    let share = if strip == 0 { SHARE } else { strip };
    part(k, group, strip)?.checked_mul(processors(rows.div_ceil(share)))
}

/// Quantises rows on all threads.
///
/// # Safety
/// The memory is there, nobody else uses what is written, and nothing of it is read here.
pub unsafe fn quantise(run: &Run, all: &Rows) -> Result<(), Stop> {
    let (level, k) = (Level::best(), all.k);
    let (strip, share) = match &all.to {
        To::Rows(_) => (0, SHARE),
        To::Strips(x) => (x.tiles.strip(), x.tiles.strip()),
    };
    let pieces = all.rows.div_ceil(share);
    let Some(size) = part(k, all.group, strip) else { return Ok(()) };
    let rotated = if all.group > 1 { rotate::room(k).unwrap_or(0) } else { 0 };
    let next = AtomicUsize::new(0);
    run.parallel(|ith, _| {
        if ith >= processors(pieces) {
            return;
        }
        let mine = all.scratch.at(size * ith);
        let scratch = match rotated {
            0 => &mut [],
            // SAFETY: this part is this thread's alone; any bytes are numbers.
            _ => unsafe { std::slice::from_raw_parts_mut(mine.cast::<f32>(), rotated) },
        };
        for piece in taken(&next, pieces) {
            let r0 = piece * share;
            let to = match &all.to {
                To::Rows(to) => to.at(k * r0),
                To::Strips(_) => mine.at(4 * rotated),
            };
            for r in r0..all.rows.min(r0 + share) {
                // SAFETY: row `r` is this thread's alone.
                unsafe {
                    let from = std::slice::from_raw_parts(all.from.at(4 * k * r).cast::<f32>(), k);
                    let to = std::slice::from_raw_parts_mut(to.at(k * (r - r0)).cast::<i8>(), k);
                    let (scale, sum) = rotate::quantise(level, from, scratch, to, all.group);
                    all.scales.at(4 * r).cast::<f32>().write_unaligned(scale);
                    if let Some(sums) = all.sums {
                        sums.at(4 * r).cast::<i32>().write(sum);
                    }
                }
            }
            if let To::Strips(x) = &all.to {
                // SAFETY: as above.
                unsafe { x.pack(piece, to.cast::<i8>()) };
            }
        }
    })
}

impl Kernel for Quantize {
    type Op = convrot::Quantize;
    const NAME: &'static CStr = c"sd.quantize_i8_convrot.cpu";

    fn supports(node: &Node<Self::Op>) -> Check {
        check::cpu_group(node.attrs.group)
    }

    fn workspace(node: &Node<Self::Op>) -> Check<usize> {
        let a = node.src(0);
        let (k, rows) = (a.ne[0] as usize, shape::nrows(a) as usize);
        room(k, rows, node.attrs.group as usize, 0).ok_or_else(|| "the workspace is larger than memory can be".into())
    }

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let a = node.src(0);
        let (k, group) = (a.ne[0] as usize, node.attrs.group as usize);
        let Some(packed) = Packed::new(a.ne[0], shape::nrows(a)) else { return Ok(()) };
        let rows = Rows {
            from: Shared::of(a),
            k,
            rows: packed.rows,
            group,
            to: To::Rows(dst),
            scales: dst.at(packed.scales),
            sums: None,
            scratch: run.scratch(room(k, packed.rows, group, 0).unwrap_or(usize::MAX))?,
        };
        let scales_end = packed.scales + 4 * packed.rows;
        // SAFETY: the caller's promise; the result ends behind the scales.
        unsafe {
            quantise(run, &rows)?;
            // what holds nothing is zero
            dst.at(k * packed.rows).0.write_bytes(0, packed.scales - k * packed.rows);
            dst.at(scales_end).0.write_bytes(0, shape::nbytes(node.dst) - scales_end);
        }
        Ok(())
    }
}
