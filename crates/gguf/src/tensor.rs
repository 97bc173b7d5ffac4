//! Tensor infos: name, shape, type and place in the data section.

use crate::error::Rule;
use crate::limits::TypeLayout;
use crate::value::CText;

/// Number of dimensions of a shape.
pub(crate) const MAX_DIMS: usize = 4;

/// One tensor of a file. Contiguous; shapes low to high.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub(crate) name: CText,
    pub(crate) ne: [i64; MAX_DIMS],
    pub(crate) type_id: i32,
    pub(crate) nbytes: u64,
    pub(crate) offset: u64,
}

impl TensorInfo {
    /// The name, with access to a C string of it.
    pub fn name(&self) -> &CText {
        &self.name
    }

    /// Elements in each dimension, 1 beyond the last; the address stays until a tensor is added.
    pub fn ne(&self) -> &[i64; 4] {
        &self.ne
    }

    /// Id of the element type.
    pub fn type_id(&self) -> i32 {
        self.type_id
    }

    /// Bytes of the data, without padding.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Bytes from the start of the data section, a multiple of the alignment.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Dimensions that a file has to name: up to the last that is not 1, at least one. A size of 0 counts too, else an
    /// empty tensor would come back with elements.
    pub fn n_dims(&self) -> usize {
        self.ne.iter().rposition(|&n| n != 1).map_or(1, |i| i + 1)
    }
}

/// Bytes of a tensor of shape `ne`. Errors: a negative size, rows that are not whole blocks, or a number of elements,
/// a stride or a size that has no place in `i64` and `usize`.
pub(crate) fn measure(ne: [i64; MAX_DIMS], layout: TypeLayout) -> Result<u64, Rule> {
    check_elements(ne)?;
    let block = layout.block_size.max(1);
    let row = ne[0] as u64;
    if !row.is_multiple_of(block) {
        return Err(Rule::RaggedBlocks { ne0: ne[0], block });
    }
    // Strides are products of the lower dimensions: they have to fit even where a later 0 makes the size 0.
    let mut bytes = layout.block_bytes;
    for n in [row / block, ne[1] as u64, ne[2] as u64, ne[3] as u64] {
        bytes = bytes.checked_mul(n).filter(|&b| usize::try_from(b).is_ok()).ok_or(Rule::SizeOverflow(ne))?;
    }
    Ok(bytes)
}

/// Refuses negative sizes and shapes whose elements cannot be counted in `i64`.
pub(crate) fn check_elements(ne: [i64; MAX_DIMS]) -> Result<(), Rule> {
    let mut count = 1i64;
    for (dim, &n) in ne.iter().enumerate() {
        if n < 0 {
            return Err(Rule::NegativeDim { dim: dim as u8, ne: n });
        }
        count = count.checked_mul(n).ok_or(Rule::ElementOverflow(ne))?;
    }
    Ok(())
}

/// `n` rounded up to a multiple of `alignment`, a power of two; `None` when that has no place in `u64`.
pub(crate) fn pad(n: u64, alignment: u32) -> Option<u64> {
    let mask = u64::from(alignment).wrapping_sub(1);
    Some(n.checked_add(mask)? & !mask)
}
