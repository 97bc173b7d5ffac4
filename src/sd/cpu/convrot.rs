//! Quantisation of activations, row by row.

use super::{rotate, Level};
use crate::sd::check;
use crate::sd::convrot::{self, Packed};
use crate::sd::kernel::{part, room, Kernel, Run, Shared, Stop};
use crate::sd::operator::{Check, Node};
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.quantize_i8_convrot.cpu`.
pub struct Quantize;

/// Where rows are quantised to.
pub struct Rows {
    /// Rows of F32, one after the other.
    pub from: Shared,
    /// Elements of a row.
    pub k: usize,
    /// How many.
    pub rows: usize,
    /// Elements that are rotated together.
    pub group: usize,
    /// Rows of integers, one after the other.
    pub to: Shared,
    /// A scale for each row, F32.
    pub scales: Shared,
    /// A sum for each row, I32.
    pub sums: Option<Shared>,
}

/// Quantises rows on all threads.
///
/// # Safety
/// The memory is there, nobody else uses what is written, and nothing of it is read here.
pub unsafe fn quantise(run: &Run, all: &Rows) -> Result<(), Stop> {
    let (level, k) = (Level::best(), all.k);
    run.try_parallel(|ith, nth| {
        let mine = part(all.rows, ith, nth);
        let mut scratch = room::<f32>(if all.group > 1 && !mine.is_empty() { k } else { 0 })?;
        for r in mine {
            // SAFETY: row `r` is this thread's alone.
            unsafe {
                let from = std::slice::from_raw_parts(all.from.at(4 * k * r).cast::<f32>(), k);
                let to = std::slice::from_raw_parts_mut(all.to.at(k * r).cast::<i8>(), k);
                let (scale, sum) = rotate::quantise(level, from, &mut scratch, to, all.group);
                all.scales.at(4 * r).cast::<f32>().write_unaligned(scale);
                if let Some(sums) = all.sums {
                    sums.at(4 * r).cast::<i32>().write_unaligned(sum);
                }
            }
        }
        Some(())
    })
}

impl Kernel for Quantize {
    type Op = convrot::Quantize;
    const NAME: &'static CStr = c"sd.quantize_i8_convrot.cpu";

    fn supports(node: &Node<Self::Op>) -> Check {
        check::cpu_group(node.attrs.group)
    }

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let a = node.src(0);
        let k = a.ne[0] as usize;
        let Some(packed) = Packed::new(a.ne[0], shape::nrows(a)) else { return Ok(()) };
        let rows = Rows {
            from: Shared::of(a),
            k,
            rows: packed.rows,
            group: node.attrs.group as usize,
            to: dst,
            scales: dst.at(packed.scales),
            sums: None,
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
