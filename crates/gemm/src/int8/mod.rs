//! Panels of 8-bit integers for quantised weights: sums inside a block are exact integers, at up to four times the rate
//! of f32.
//!
//! Weights become unsigned bytes `q` with `value = scale * (q - offset) + min`, one scale (and min) for each group of 16
//! or 32; activations become signed bytes with one scale per 32. The offset is taken off through the sum of the
//! activations of the group, which is where the integer accumulator starts.

// As in `kernel`: register tiles are indexed by constants in nested loops.
#![allow(clippy::needless_range_loop)]
// Machines without integer kernels build only the parts that decide so.
#![cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]

mod activations;
#[cfg(target_arch = "aarch64")]
mod neon;
mod tile;
mod unpack;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::isa::Isa;
use crate::kernel::transpose::TransposeArgs;
use crate::kernel::{Kernels, KC};
use crate::operand::{Matrix, Panel};
use crate::packed::{Engine, TileAt};
use ggml_oxide_types::Type;
use tile::Int8Tile;
use unpack::{Format, Row};

/// Tiles by columns less one.
type Tiles = &'static [unsafe fn(&Int8Tile)];
/// Decodes part of a row of weights.
type Unpack = unsafe fn(Type, *const u8, usize, &mut Row);
/// Rounds part of a row of activations.
type Quantise = unsafe fn(&[f32], usize, &mut [i8], &mut [f32], &mut [i32]);

/// The integer kernels of one instruction set.
pub(crate) struct Int8Kernels {
    /// Rows of a row panel, most columns of a tile.
    pub mr: usize,
    pub nr: usize,
    /// What the kernels take off the bytes of the weights.
    bias: i32,
    /// By group of 32 or 16, without and with min.
    tile: [[Tiles; 2]; 2],
    unpack: Unpack,
    quantise: Quantise,
}

impl Int8Kernels {
    /// The integer kernels that go with `isa`, if the machine has them.
    pub(crate) fn of(isa: Isa) -> Option<&'static Int8Kernels> {
        #[cfg(target_arch = "x86_64")]
        {
            x86::kernels(isa)
        }
        #[cfg(target_arch = "aarch64")]
        {
            neon::kernels(isa)
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = isa;
            None
        }
    }
}

/// Rounds activations to 8 bits and multiplies integers.
pub(crate) struct Int8Engine<'a> {
    w: &'a Matrix,
    x: &'a Matrix,
    format: Format,
    kernels: &'static Int8Kernels,
    float: &'static Kernels,
    kernel: unsafe fn(&Int8Tile),
}

impl<'a> Int8Engine<'a> {
    /// Whether there are panels for weights of `ty`.
    pub(crate) fn supports(ty: Type) -> bool {
        Format::of(ty).is_some()
    }

    /// For column panels of `nr`; None if there are no panels for the weights.
    pub(crate) fn new(
        w: &'a Matrix,
        x: &'a Matrix,
        kernels: &'static Int8Kernels,
        isa: Isa,
        nr: usize,
    ) -> Option<Self> {
        let format = Format::of(w.ty)?;
        let kernel = kernels.tile[usize::from(format.group == 16)][usize::from(format.min)][nr - 1];
        Some(Int8Engine { w, x, format, kernels, float: Kernels::of(isa), kernel })
    }

    /// Bytes of a column panel of weights of `ty`.
    pub(crate) fn col_bytes_of(ty: Type, cells: usize) -> usize {
        let groups = Format::of(ty).map_or(2, |f| 32 / f.group);
        // Bytes, a scale, and for each group a start value and a sum.
        cells / 32 * (32 + 4 + groups * 8)
    }

    /// Bytes of a row panel of weights of `ty`.
    pub(crate) fn row_bytes_of(ty: Type, cells: usize) -> usize {
        let groups = Format::of(ty).map_or(2, |f| 32 / f.group);
        cells / 32 * (32 + groups * 8)
    }

    /// Turns rows of `kc` bytes, KC apart, to `[kc / 4][width][4]`.
    unsafe fn turn(&self, rows: *const u8, present: usize, at: &Panel, first: usize, part: usize, dst: *mut u8) {
        // Four bytes travel together as one f32 lane; moves and shuffles keep the bits of any lane.
        let args = TransposeArgs {
            src: rows,
            stride: KC,
            rows: present,
            kc: at.kc / 4,
            width: part,
            pitch: at.width,
            dst: dst.wrapping_add(first * 4).cast(),
        };
        // SAFETY: the caller vouches for both regions; the set is available.
        unsafe { (self.float.transpose[0])(&args) };
    }
}

/// Rows that are decoded before they are turned.
const ROWS: usize = 16;

#[repr(align(64))]
struct Staging([u8; ROWS * KC]);

impl Engine for Int8Engine<'_> {
    fn col_bytes(&self, cells: usize) -> usize {
        Self::col_bytes_of(self.w.ty, cells)
    }
    fn row_bytes(&self, cells: usize) -> usize {
        Self::row_bytes_of(self.w.ty, cells)
    }

    unsafe fn pack_cols(&self, at: &Panel, dst: *mut u8) {
        let mut staging = Staging([0; ROWS * KC]);
        let (nr, kc, group) = (at.width, at.kc, self.format.group);
        debug_assert!(nr <= ROWS && kc <= KC && kc % 32 == 0);
        let scales = dst.wrapping_add(nr * kc).cast::<f32>();
        let starts = scales.wrapping_add(nr * (kc / 32)).cast::<i32>();
        let sums = starts.wrapping_add(nr * (kc / group)).cast::<f32>();
        let mut buf = [0f32; KC];
        for r in 0..nr {
            let (mut d, mut s) = ([0f32; KC / 32], [0i32; KC / 16]);
            if r < at.rows {
                let q = &mut staging.0[r * KC..r * KC + kc];
                // SAFETY: i8 and u8 have the same layout.
                let q = unsafe { core::slice::from_raw_parts_mut(q.as_mut_ptr().cast::<i8>(), kc) };
                let row = if self.x.is_plain_f32() {
                    let p = self.x.at(at.row + r, at.k, at.i2, at.i3).cast::<f32>();
                    // SAFETY: the creator of the matrix vouched for the row.
                    unsafe { core::slice::from_raw_parts(p, kc) }
                } else {
                    self.x.read_row(at.row + r, at.k, at.i2, at.i3, &mut buf[..kc]);
                    &buf[..kc]
                };
                // SAFETY: the kernels were chosen for an available set.
                unsafe { (self.kernels.quantise)(row, group, q, &mut d, &mut s) };
            }
            // SAFETY: the fields of the panel follow each other inside the region that the caller vouched for.
            unsafe {
                for (b, &d) in d[..kc / 32].iter().enumerate() {
                    *scales.add(b * nr + r) = d;
                }
                for (g, &s) in s[..kc / group].iter().enumerate() {
                    *starts.add(g * nr + r) = (self.kernels.bias - self.format.offset) * s;
                    *sums.add(g * nr + r) = d[g * group / 32] * s as f32;
                }
            }
        }
        // SAFETY: the bytes of the panel come first in the region.
        unsafe { self.turn(staging.0.as_ptr(), at.rows, at, 0, nr, dst) };
    }

    unsafe fn pack_rows(&self, at: &Panel, dst: *mut u8) {
        let mut staging = Staging([0; ROWS * KC]);
        let (mr, kc, group) = (at.width, at.kc, self.format.group);
        let block = ROWS.min(mr);
        debug_assert!(mr % block == 0 && kc <= KC && kc % 32 == 0);
        let scales = dst.wrapping_add(mr * kc).cast::<f32>();
        let mins = scales.wrapping_add(mr * (kc / group));
        for first in (0..mr).step_by(block) {
            let present = at.rows.saturating_sub(first).min(block);
            for r in 0..block {
                let mut row = Row::default();
                if r < present {
                    let src = self.w.at(at.row + first + r, at.k, at.i2, at.i3);
                    // SAFETY: the creator of the matrix vouched for the row, whose blocks follow each other.
                    unsafe { (self.kernels.unpack)(self.w.ty, src, kc, &mut row) };
                    staging.0[r * KC..][..kc].copy_from_slice(&row.q[..kc]);
                }
                // SAFETY: the fields of the panel follow each other inside the region that the caller vouched for.
                unsafe {
                    for g in 0..kc / group {
                        *scales.add(g * mr + first + r) = row.scale[g];
                        *mins.add(g * mr + first + r) = row.min[g];
                    }
                }
            }
            // SAFETY: the bytes of the panel come first in the region.
            unsafe { self.turn(staging.0.as_ptr(), present, at, first, block, dst) };
        }
    }

    #[inline]
    unsafe fn tile(&self, t: &TileAt) {
        let groups = t.kc / self.format.group;
        // SAFETY: the kernel was chosen for an available set; the caller vouches for panels and result.
        unsafe {
            (self.kernel)(&Int8Tile {
                groups,
                kc: t.kc,
                w: t.w,
                x: t.x,
                c: t.c,
                ldc: t.ldc,
                rows: t.rows,
                cols: t.cols,
                add: t.add,
            });
        }
    }
}
