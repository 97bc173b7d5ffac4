//! Sizes, operands, result and scratch memory of a product, and the errors they can cause.

use crate::operand::{float, Matrix, Operand, Panel};
use ggml_oxide_types::Type;

/// Sizes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of W (ne01), contiguous in the result.
    pub m: usize,
    /// Rows of X (ne11).
    pub n: usize,
    /// Length of all rows (ne00 = ne10).
    pub k: usize,
    /// Batch counts of X and of the result (ne12, ne13).
    pub batch: [usize; 2],
    /// Batches of X that share one of W (ne12 / ne02, ne13 / ne03), at least 1.
    pub ratio: [usize; 2],
}

impl Shape {
    /// One product without batches.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Shape { m, n, k, batch: [1, 1], ratio: [1, 1] }
    }
}

/// How exact the product of quantised weights is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// Activations may be rounded to 8 bits per value against quantised weights, as ggml does.
    #[default]
    Default,
    /// Every product and sum in f32 (GGML_PREC_F32).
    F32,
}

/// An operand of a product.
#[derive(Clone, Copy)]
pub enum Side<'a> {
    /// Elements in memory.
    Matrix(Matrix),
    /// Panels made by the caller.
    Custom(&'a dyn Operand),
}

impl Side<'_> {
    pub(crate) fn pack(&self, at: &Panel, panel: &mut [f32]) {
        match self {
            Side::Matrix(m) => m.pack(at, panel),
            Side::Custom(o) => o.pack(at, panel),
        }
    }

    /// A matrix whose rows the dot kernels read as they are.
    pub(crate) fn direct(&self) -> bool {
        matches!(self, Side::Matrix(m) if float(m.ty).is_some() && m.dense_rows() && !m.via_f16)
    }

    /// A matrix whose rows are slices of f32.
    pub(crate) fn is_plain_f32(&self) -> bool {
        matches!(self, Side::Matrix(m) if m.is_plain_f32())
    }

    pub(crate) fn ty(&self) -> Option<Type> {
        match self {
            Side::Matrix(m) => Some(m.ty),
            Side::Custom(_) => None,
        }
    }
}

/// Where the result goes.
#[derive(Clone, Copy, Debug)]
pub struct Dst {
    pub(crate) data: *mut f32,
    /// Elements between columns and between the two batch dimensions.
    pub(crate) ld: usize,
    ld2: usize,
    ld3: usize,
}

// SAFETY: threads write disjoint elements, and the creator vouched that nobody else touches them.
unsafe impl Sync for Dst {}
// SAFETY: as above; the pointer is not tied to a thread.
unsafe impl Send for Dst {}

impl Dst {
    /// A result at `data` with byte strides `nb` = [nb1, nb2, nb3]; element (i, j, i2, i3) is at
    /// `4 * i + j * nb1 + i2 * nb2 + i3 * nb3` bytes.
    ///
    /// # Errors
    /// [`Error::Stride`] if a stride is no multiple of 4.
    ///
    /// # Safety
    /// While a `Gemm` over it runs, every element that its shape reaches is writable, aligned, distinct from every
    /// other one and from the operands, and not touched by others.
    pub unsafe fn new(data: *mut f32, nb: [usize; 3]) -> Result<Self, Error> {
        if nb.iter().any(|s| s % 4 != 0) {
            return Err(Error::Stride);
        }
        Ok(Dst { data, ld: nb[0] / 4, ld2: nb[1] / 4, ld3: nb[2] / 4 })
    }

    pub(crate) fn batch(&self, i2: usize, i3: usize) -> *mut f32 {
        self.data.wrapping_add(i2 * self.ld2 + i3 * self.ld3)
    }
}

/// Scratch memory of a job, shared by its team.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    pub(crate) data: *mut u8,
    pub(crate) size: usize,
}

// SAFETY: `Gemm::run` gives each thread its own part and orders access to the shared part with barriers.
unsafe impl Sync for Workspace {}
// SAFETY: as above.
unsafe impl Send for Workspace {}

impl Workspace {
    /// `size` bytes at `data`, at least what [`Gemm::workspace_size`] asks. Contents do not matter.
    ///
    /// # Safety
    /// While a job runs with it, the bytes are readable, writable, and touched by nobody else.
    pub unsafe fn new(data: *mut u8, size: usize) -> Self {
        Workspace { data, size }
    }
}

/// Why a product cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A stride of the result is no multiple of the size of f32.
    Stride,
    /// No conversion from an operand's format exists.
    Type,
    /// k is no multiple of the block of a quantised operand.
    Block,
    /// A broadcast ratio is 0 or does not divide its batch count.
    Ratio,
    /// A bias was given for a product of two matrices in memory.
    Bias,
    /// Sizes overflow.
    TooLarge,
    /// The instruction set is not one of this machine.
    Isa,
    /// The workspace is smaller than `workspace_size`.
    Workspace,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Error::Stride => "result strides must be multiples of 4 bytes",
            Error::Type => "an operand has a format that cannot be decoded",
            Error::Block => "row length must be a multiple of the block size of a quantised operand",
            Error::Ratio => "batch counts must be multiples of their broadcast ratios",
            Error::Bias => "a bias needs an operand that makes its own panels",
            Error::TooLarge => "sizes overflow",
            Error::Isa => "instruction set is not available on this machine",
            Error::Workspace => "workspace is too small",
        })
    }
}

impl std::error::Error for Error {}
