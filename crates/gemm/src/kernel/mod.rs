//! Micro-kernels: the innermost products over packed panels and over plain rows.
//!
//! Every kernel is written once over [`lanes::Lanes`] and compiled once per instruction set, so that all sets share
//! one order of summation. Nothing here knows of blocking, threads or tensors.

// Register tiles are indexed by constants in nested loops; iterators over them read worse.
#![allow(clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod dot;
pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod portable;
pub(crate) mod tile;
pub(crate) mod transpose;

use crate::isa::Isa;
use dot::DotArgs;
use tile::Tile;
use transpose::TransposeArgs;

/// Length in k of one packed block. It is a multiple of every quantised block, and part of the order of summation:
/// changing it changes result bits.
pub(crate) const KC: usize = 256;

/// Number of k steps that one register accumulator sums before it is added to the next level. A short run keeps the
/// rounding error of a long sum near that of pairwise summation.
pub(crate) const KS: usize = 16;

/// Most columns that a micro-tile of any instruction set has.
pub(crate) const NR_LIMIT: usize = 12;

/// Most columns that one call of the unpacked dot kernel takes.
pub(crate) const DOT_COLUMNS: usize = 6;

/// Storage of a row that kernels read directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F16,
    BF16,
}

impl Float {
    /// Size of one element in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Float::F32 => 4,
            _ => 2,
        }
    }
}

/// The kernels of one instruction set.
pub(crate) struct Kernels {
    /// Rows of a packed panel of the vector side.
    pub mr: usize,
    /// Most columns of a micro-tile.
    pub nr: usize,
    /// `tile[c - 1]` computes a tile with panels of `mr` and `c` entries per k step.
    pub tile: &'static [unsafe fn(&Tile)],
    /// `dot[float][c - 1]`: products of plain rows with `c` f32 rows.
    pub dot: [&'static [unsafe fn(&DotArgs)]; 3],
    /// Rows to panel, by element type.
    pub transpose: [unsafe fn(&TransposeArgs); 3],
}

impl Kernels {
    /// The kernels of `isa`, which must be available on this machine.
    pub(crate) fn of(isa: Isa) -> &'static Kernels {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::KERNELS,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &neon::KERNELS,
            _ => &portable::KERNELS,
        }
    }
}
