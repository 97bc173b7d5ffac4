//! Entry points of ggml.h: sizes and predicates of tensors and formats. NULL has no elements and no properties.

use crate::entry;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_int;

entry! {
    /// Elements.
    pub fn ggml_nelements(tensor: *const ggml_tensor) -> i64 {
        tensor.as_ref().map_or(0, shape::nelements)
    }
    /// Rows: the product of all dimensions but the first.
    pub fn ggml_nrows(tensor: *const ggml_tensor) -> i64 {
        tensor.as_ref().map_or(0, shape::nrows)
    }
    /// Bytes from the first to the last element.
    pub fn ggml_nbytes(tensor: *const ggml_tensor) -> usize {
        tensor.as_ref().map_or(0, shape::nbytes)
    }
    /// As `ggml_nbytes`, rounded up to `GGML_MEM_ALIGN`.
    pub fn ggml_nbytes_pad(tensor: *const ggml_tensor) -> usize {
        tensor.as_ref().map_or(0, shape::nbytes).checked_next_multiple_of(GGML_MEM_ALIGN).unwrap_or(usize::MAX)
    }
    /// Elements of a block; 0 for a format that is not known.
    pub fn ggml_blck_size(r#type: ggml_type) -> i64 {
        shape::blck_size(r#type) as i64
    }
    /// Bytes of a block; 0 for a format that is not known.
    pub fn ggml_type_size(r#type: ggml_type) -> usize {
        shape::type_size(r#type)
    }
    /// Bytes of `ne` elements in a row, a whole number of blocks; else 0 with an error.
    pub fn ggml_row_size(r#type: ggml_type, ne: i64) -> usize {
        shape::checked_row_size(r#type, ne).unwrap_or_else(|| {
            crate::error::fail(
                GGML_EXT_CODE_BAD_SHAPE,
                format!("ggml_row_size: {ne} elements of {:?} are no whole number of blocks, or too many", r#type),
            );
            0
        })
    }
    /// Bytes of an element; a fraction where blocks are shared. Use `ggml_row_size`.
    pub fn ggml_type_sizef(r#type: ggml_type) -> f64 {
        match shape::blck_size(r#type) {
            0 => 0.0,
            n => shape::type_size(r#type) as f64 / n as f64,
        }
    }
    /// Bytes of a block of the tensor.
    pub fn ggml_element_size(tensor: *const ggml_tensor) -> usize {
        tensor.as_ref().map_or(0, |t| shape::type_size(t.r#type))
    }
    /// Whether elements of the format share scales.
    pub fn ggml_is_quantized(r#type: ggml_type) -> bool {
        shape::format_of(r#type).is_some_and(|f| f.is_quantized())
    }
}

entry! {
    /// Whether dimension 0 has a larger stride than dimension 1.
    pub fn ggml_is_transposed(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_transposed)
    }
    /// Whether strides fall anywhere from a dimension to the next.
    pub fn ggml_is_permuted(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_permuted)
    }
    /// Whether there is no element.
    pub fn ggml_is_empty(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_none_or(shape::is_empty)
    }
    /// Whether the tensor has its data from another one.
    pub fn ggml_is_view(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| !t.view_src.is_null())
    }
    /// Whether there is one element.
    pub fn ggml_is_scalar(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_scalar)
    }
    /// Whether dimensions 1 to 3 are 1.
    pub fn ggml_is_vector(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| t.ne[1..] == [1, 1, 1])
    }
    /// Whether dimensions 2 and 3 are 1.
    pub fn ggml_is_matrix(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| t.ne[2..] == [1, 1])
    }
    /// Whether dimension 3 is 1.
    pub fn ggml_is_3d(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| t.ne[3] == 1)
    }
    /// Dimensions up to the last that is above 1; 1 for one element.
    pub fn ggml_n_dims(tensor: *const ggml_tensor) -> c_int {
        tensor.as_ref().map_or(0, |t| shape::n_dims(t) as c_int)
    }
    /// Whether the elements can be walked with one index: no gaps, no permutation.
    pub fn ggml_is_contiguous(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_contiguous)
    }
    /// As `ggml_is_contiguous`.
    pub fn ggml_is_contiguous_0(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_contiguous)
    }
    /// As `ggml_is_contiguous`, but dimension 1 may have any stride.
    pub fn ggml_is_contiguous_1(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| shape::is_contiguous_n(t, 1))
    }
    /// As `ggml_is_contiguous`, but dimensions 1 and 2 may have any stride.
    pub fn ggml_is_contiguous_2(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| shape::is_contiguous_n(t, 2))
    }
    /// Whether dimension 0 has no gaps.
    pub fn ggml_is_contiguous_to_1(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| is_contiguous_to(t, 1))
    }
    /// Whether dimensions 0 and 1 have no gaps.
    pub fn ggml_is_contiguous_to_2(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| is_contiguous_to(t, 2))
    }
    /// Whether dimensions 0 to 2 have no gaps.
    pub fn ggml_is_contiguous_to_3(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(|t| is_contiguous_to(t, 3))
    }
    /// Whether the elements fill one piece of memory without gaps, in any order of dimensions.
    pub fn ggml_is_contiguously_allocated(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_contiguously_allocated)
    }
    /// Whether dimension 2 is the innermost in memory, then 0, then 1.
    pub fn ggml_is_contiguous_channels(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_contiguous_channels)
    }
    /// Whether the elements of each row lie side by side.
    pub fn ggml_is_contiguous_rows(tensor: *const ggml_tensor) -> bool {
        tensor.as_ref().is_some_and(shape::is_contiguous_rows)
    }
    /// Whether all dimensions are equal.
    pub fn ggml_are_same_shape(t0: *const ggml_tensor, t1: *const ggml_tensor) -> bool {
        t0.as_ref().zip(t1.as_ref()).is_some_and(|(a, b)| shape::same_shape(a, b))
    }
    /// Whether all strides are equal.
    pub fn ggml_are_same_stride(t0: *const ggml_tensor, t1: *const ggml_tensor) -> bool {
        t0.as_ref().zip(t1.as_ref()).is_some_and(|(a, b)| shape::same_stride(a, b))
    }
    /// Whether `t0` repeated a whole number of times along each dimension gives the shape of `t1`.
    pub fn ggml_can_repeat(t0: *const ggml_tensor, t1: *const ggml_tensor) -> bool {
        t0.as_ref().zip(t1.as_ref()).is_some_and(|(a, b)| crate::tensor::repeats(a, &b.ne))
    }
    /// Coordinates of element number `i`; NULL where one is not asked for. All are 0 in a tensor without elements.
    pub fn ggml_unravel_index(tensor: *const ggml_tensor, i: i64, i0: *mut i64, i1: *mut i64, i2: *mut i64, i3: *mut i64) {
        let mut rest = i;
        let ne = tensor.as_ref().map_or([0; GGML_MAX_DIMS], |t| t.ne);
        for (dim, out) in [i0, i1, i2, i3].into_iter().enumerate() {
            let at = match dim {
                3 => rest,
                _ => rest.checked_rem(ne[dim]).unwrap_or(0),
            };
            rest = rest.checked_div(ne[dim]).unwrap_or(0);
            if let Some(out) = out.as_mut() {
                *out = at;
            }
        }
    }
}

/// Whether the strides of dimensions 0 to `n - 1` are those of a tensor without gaps.
fn is_contiguous_to(t: &ggml_tensor, n: usize) -> bool {
    // dimensions that do not count are made to fit
    let mut low = *t;
    for i in n..GGML_MAX_DIMS {
        low.ne[i] = 1;
    }
    shape::is_contiguous(&low)
}
