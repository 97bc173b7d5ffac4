//! The ways in which a tensor can lie in memory, each made as a client would: a tensor, then views and permutations of it.

/// How the elements of a source lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// No gaps.
    Cont,
    /// Dimensions 0 and 1 swapped.
    Swap01,
    /// Dimensions 1 and 2 swapped: permutation (0, 2, 1, 3).
    Swap12,
    /// Dimensions 0 and 2 swapped: permutation (2, 1, 0, 3).
    Swap02,
    /// Dimensions 2 and 3 swapped.
    Swap23,
    /// Permutation (1, 2, 0, 3): no pair swapped.
    Turn,
    /// Dimension 2 innermost, then 0, then 1, as pictures with interleaved channels lie: permutation (2, 0, 1, 3).
    Channels,
    /// A gap after each row.
    RowGap,
    /// A gap after each plane and each volume.
    PlaneGap,
    /// No gaps, but one element after the start of its storage.
    Offset,
    /// Dimensions 0 and 1 swapped, with gaps.
    Swap01Gap,
}
use Layout::*;

/// All layouts.
pub const ALL: [Layout; 11] =
    [Cont, Swap01, Swap12, Swap02, Swap23, Turn, Channels, RowGap, PlaneGap, Offset, Swap01Gap];

/// Those in which rows have no gaps, so that block formats can have them.
pub const PACKED: [Layout; 6] = [Cont, Swap12, Swap23, RowGap, PlaneGap, Offset];

impl Layout {
    /// The permutation that gives dimension i of the storage its place in the tensor.
    pub fn axes(self) -> [usize; 4] {
        match self {
            Swap01 | Swap01Gap => [1, 0, 2, 3],
            Swap12 => [0, 2, 1, 3],
            Swap02 => [2, 1, 0, 3],
            Swap23 => [0, 1, 3, 2],
            Turn => [1, 2, 0, 3],
            Channels => [2, 0, 1, 3],
            _ => [0, 1, 2, 3],
        }
    }

    /// Elements that the storage has more in each dimension; `unit`: elements of a block.
    pub fn gaps(self, unit: usize) -> [usize; 4] {
        match self {
            RowGap => [if unit == 1 { 3 } else { unit }, 0, 0, 0],
            PlaneGap => [0, 2, 1, 0],
            Swap01Gap => [2, 1, 0, 0],
            _ => [0; 4],
        }
    }

    /// Whether rows have no gaps.
    pub fn packed(self) -> bool {
        PACKED.contains(&self)
    }

    /// Whether strides are those of a tensor without gaps, or differ only after rows.
    pub fn padded_rows(self) -> bool {
        matches!(self, Cont | Offset | RowGap)
    }

    /// Whether there are no gaps at all.
    pub fn contiguous(self) -> bool {
        matches!(self, Cont | Offset)
    }
}
