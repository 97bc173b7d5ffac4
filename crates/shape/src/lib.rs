//! Shapes and strides: pure functions of a tensor's metadata, shared by the builders, the allocators and the kernels.
//!
//! Everything here takes metadata only, never data, and is total: a shape whose size does not fit answers `None` from the
//! `checked_` functions and saturates in the others, so that no caller's numbers can wrap.
#![forbid(unsafe_code)]

use ggml_oxide_abi::*;
use ggml_oxide_types::Type;

/// The format of a tensor, or `None` for an id that no format has.
pub fn format_of(ty: ggml_type) -> Option<Type> {
    Type::from_id(ty.0)
}

/// Elements of a block; 0 for an unknown format.
pub fn blck_size(ty: ggml_type) -> usize {
    format_of(ty).map_or(0, |t| t.block_size())
}

/// Bytes of a block; 0 for an unknown format.
pub fn type_size(ty: ggml_type) -> usize {
    format_of(ty).map_or(0, |t| t.block_bytes())
}

/// Bytes of `ne` elements in a row. `None`: unknown format, negative, not a whole number of blocks, or too large.
pub fn checked_row_size(ty: ggml_type, ne: i64) -> Option<usize> {
    let format = format_of(ty)?;
    let ne = usize::try_from(ne).ok()?;
    if ne % format.block_size() != 0 {
        return None;
    }
    (ne / format.block_size()).checked_mul(format.block_bytes())
}

/// Elements; saturates.
pub fn nelements(t: &ggml_tensor) -> i64 {
    checked_nelements(&t.ne).unwrap_or(i64::MAX)
}

/// Elements of a shape; `None` when a dimension is negative or the product does not fit.
#[inline]
pub fn checked_nelements(ne: &[i64; GGML_MAX_DIMS]) -> Option<i64> {
    // Asked for every source of every node again and again: where no dimension is large, nothing can go wrong.
    match small(ne, 15) {
        true => Some(ne.iter().product()),
        false => any_nelements(ne),
    }
}

/// Whether none of `ne` is negative or has more than `bits` bits.
#[inline]
fn small(ne: &[i64; GGML_MAX_DIMS], bits: u32) -> bool {
    (ne.iter().fold(0, |all, &n| all | n) as u64) >> bits == 0
}

fn any_nelements(ne: &[i64; GGML_MAX_DIMS]) -> Option<i64> {
    if ne.iter().any(|&n| n < 0) {
        return None;
    }
    if ne.contains(&0) {
        return Some(0);
    }
    ne.iter().try_fold(1i64, |acc, &n| acc.checked_mul(n))
}

/// Rows: the product of all dimensions but the first; saturates.
pub fn nrows(t: &ggml_tensor) -> i64 {
    t.ne[1].saturating_mul(t.ne[2]).saturating_mul(t.ne[3])
}

/// Bytes from the first to the last element, strides included; 0 when there are none; saturates.
pub fn nbytes(t: &ggml_tensor) -> usize {
    checked_nbytes(t.r#type, &t.ne, &t.nb).unwrap_or(usize::MAX)
}

/// As [`nbytes`], from the parts; `None`: unknown format, a negative dimension, or too large.
#[inline]
pub fn checked_nbytes(ty: ggml_type, ne: &[i64; GGML_MAX_DIMS], nb: &[usize; GGML_MAX_DIMS]) -> Option<usize> {
    let format = format_of(ty)?;
    // as above: products below 2^60, four of them
    if !small(ne, 24) || (nb.iter().fold(0, |all, &n| all | n) as u64) >> 36 != 0 {
        return any_nbytes(format, ne, nb);
    }
    let n = ne.map(|n| n as u64);
    let last = |i: usize| n[i].wrapping_sub(1).wrapping_mul(nb[i] as u64);
    let row = match format.block_size() as u64 {
        1 => last(0).wrapping_add(format.block_bytes() as u64),
        block => (n[0] / block).wrapping_mul(nb[0] as u64),
    };
    let bytes = row.wrapping_add(last(1)).wrapping_add(last(2)).wrapping_add(last(3));
    // without elements the sum says nothing
    if n.contains(&0) {
        return Some(0);
    }
    usize::try_from(bytes).ok()
}

fn any_nbytes(format: Type, ne: &[i64; GGML_MAX_DIMS], nb: &[usize; GGML_MAX_DIMS]) -> Option<usize> {
    if ne.iter().any(|&n| n < 0) {
        return None;
    }
    if ne.contains(&0) {
        return Some(0);
    }
    let extent = |i: usize| usize::try_from(ne[i] - 1).ok()?.checked_mul(nb[i]);
    let blck = format.block_size();
    let mut bytes = if blck == 1 {
        format.block_bytes().checked_add(extent(0)?)?
    } else {
        (usize::try_from(ne[0]).ok()? / blck).checked_mul(nb[0])?
    };
    for i in 1..GGML_MAX_DIMS {
        bytes = bytes.checked_add(extent(i)?)?;
    }
    Some(bytes)
}

/// Strides of a contiguous tensor. `None`: unknown format, a row that is no whole number of blocks, or a size that does not fit.
pub fn contiguous_strides(ty: ggml_type, ne: &[i64; GGML_MAX_DIMS]) -> Option<[usize; GGML_MAX_DIMS]> {
    let format = format_of(ty)?;
    let row = checked_row_size(ty, ne[0])?;
    let mut nb = [format.block_bytes(), row, 0, 0];
    for i in 2..GGML_MAX_DIMS {
        nb[i] = nb[i - 1].checked_mul(usize::try_from(ne[i - 1]).ok()?)?;
    }
    nb[3].checked_mul(usize::try_from(ne[3]).ok()?)?;
    Some(nb)
}

/// Whether there is no element.
pub fn is_empty(t: &ggml_tensor) -> bool {
    t.ne.contains(&0)
}

/// Whether there is exactly one element.
pub fn is_scalar(t: &ggml_tensor) -> bool {
    t.ne == [1; GGML_MAX_DIMS]
}

/// Index of the last dimension that is not 1, plus one; 1 for scalars.
pub fn n_dims(t: &ggml_tensor) -> usize {
    (1..GGML_MAX_DIMS).rev().find(|&i| t.ne[i] > 1).map_or(1, |i| i + 1)
}

/// Whether strides from dimension `n` up are those of a tensor without gaps, dimensions below `n` packed or not.
pub fn is_contiguous_n(t: &ggml_tensor, n: usize) -> bool {
    let (blck, size) = (blck_size(t.r#type), type_size(t.r#type));
    if blck == 0 {
        return false;
    }
    if t.ne[0] != blck as i64 && t.nb[0] != size {
        return false;
    }
    let mut next = (t.ne[0] as usize / blck).wrapping_mul(size);
    for i in 1..GGML_MAX_DIMS {
        if i > n {
            if t.ne[i] != 1 && t.nb[i] != next {
                return false;
            }
            next = next.wrapping_mul(t.ne[i] as usize);
        } else {
            // dimension i may have a gap before it: what follows counts from its own stride
            next = (t.ne[i] as usize).wrapping_mul(t.nb[i]);
        }
    }
    true
}

/// Whether the elements can be walked with one flat index: no gap, no permutation.
pub fn is_contiguous(t: &ggml_tensor) -> bool {
    is_contiguous_n(t, 0)
}

/// Whether the elements of each row lie side by side.
pub fn is_contiguous_rows(t: &ggml_tensor) -> bool {
    t.ne[0] == blck_size(t.r#type) as i64 || t.nb[0] == type_size(t.r#type)
}

/// Whether the elements fill one block of memory without gaps, in any order of dimensions.
pub fn is_contiguously_allocated(t: &ggml_tensor) -> bool {
    let blck = blck_size(t.r#type) as i64;
    blck != 0 && nbytes(t) == (nelements(t) / blck) as usize * type_size(t.r#type)
}

/// Whether two elements may share memory: in ascending order, some stride is smaller than what those before it span.
pub fn may_overlap_itself(t: &ggml_tensor) -> bool {
    overlaps(t.r#type, &t.ne, &t.nb)
}

fn overlaps(ty: ggml_type, ne: &[i64; GGML_MAX_DIMS], nb: &[usize; GGML_MAX_DIMS]) -> bool {
    let mut dims: [(usize, i64); GGML_MAX_DIMS] = std::array::from_fn(|i| (nb[i], ne[i]));
    dims[0].1 /= blck_size(ty).max(1) as i64;
    dims.sort_unstable();
    let mut span = type_size(ty);
    dims.iter().filter(|(_, n)| *n > 1).any(|&(nb, n)| {
        let over = nb < span;
        span = span.saturating_add(nb.saturating_mul(n as usize - 1));
        over
    })
}

/// Whether channels (dimension 2) are the fastest axis in memory, as images stored CxWxHxN and permuted have them.
pub fn is_contiguous_channels(t: &ggml_tensor) -> bool {
    t.nb[0] > t.nb[2] && t.nb[1] > t.nb[0] && t.nb[2] == type_size(t.r#type)
}

/// Whether dimension 0 has a larger stride than dimension 1.
pub fn is_transposed(t: &ggml_tensor) -> bool {
    t.nb[0] > t.nb[1]
}

/// Whether strides do not rise from dimension to dimension.
pub fn is_permuted(t: &ggml_tensor) -> bool {
    t.nb[0] > t.nb[1] || t.nb[1] > t.nb[2] || t.nb[2] > t.nb[3]
}

/// Whether all dimensions are equal.
pub fn same_shape(a: &ggml_tensor, b: &ggml_tensor) -> bool {
    a.ne == b.ne
}

/// Whether all strides are equal.
pub fn same_stride(a: &ggml_tensor, b: &ggml_tensor) -> bool {
    a.nb == b.nb
}

/// Whether `small` repeated a whole number of times in each dimension gives the shape of `large`.
pub fn can_repeat(small: &ggml_tensor, large: &ggml_tensor) -> bool {
    if is_empty(small) {
        return is_empty(large);
    }
    (0..GGML_MAX_DIMS).all(|i| large.ne[i] % small.ne[i] == 0)
}

/// `f32` number `i` of the operator's parameters.
pub fn param_f32(t: &ggml_tensor, i: usize) -> f32 {
    f32::from_bits(t.op_params[i] as u32)
}

/// Whether the operator only looks at its source in another way: its result is the source's memory.
pub fn is_view(op: ggml_op) -> bool {
    matches!(op, GGML_OP_RESHAPE | GGML_OP_VIEW | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE)
}

/// The operator as texts name it, without prefix.
pub fn op_name(op: ggml_op) -> &'static str {
    let known = ggml_op::NAMES.iter().find(|(_, known)| *known == op);
    known.map_or("an unknown operator", |(name, _)| name.trim_start_matches("GGML_OP_"))
}

/// The tensor's name as text.
pub fn name(t: &ggml_tensor) -> String {
    let bytes: Vec<u8> = t.name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strides of a view that repeats rows, of windows that overlap, and of what only looks like it.
    #[test]
    fn what_overlaps_itself() {
        let check = |ty, ne, nb, want| assert_eq!(overlaps(ty, &ne, &nb), want, "{ne:?} {nb:?}");
        check(GGML_TYPE_F32, [8, 6, 4, 2], [4, 32, 192, 768], false);
        check(GGML_TYPE_F32, [6, 8, 4, 2], [32, 4, 192, 768], false);
        check(GGML_TYPE_F32, [8, 6, 4, 2], [4, 40, 400, 4000], false);
        check(GGML_TYPE_F32, [8, 6, 4, 2], [4, 0, 32, 128], true);
        check(GGML_TYPE_F32, [8, 6, 1, 1], [4, 28, 0, 0], true);
        check(GGML_TYPE_F32, [8, 1, 1, 1], [4, 0, 0, 0], false);
        check(GGML_TYPE_Q8_0, [64, 3, 1, 1], [34, 68, 204, 204], false);
        check(GGML_TYPE_Q8_0, [64, 3, 1, 1], [34, 34, 204, 204], true);
        check(GGML_TYPE_F32, [i64::MAX, 3, 1, 1], [4, usize::MAX, 0, 0], false);
    }

    /// Sizes at which the short ways end, and beyond.
    #[test]
    fn short_ways_give_what_the_long_ones_give() {
        let types = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q6_K, ggml_type(999)];
        let ns = [0, 1, 2, 33, 256, (1 << 15) - 1, 1 << 15, (1 << 24) - 1, 1 << 24, 1 << 40, i64::MAX, -1, i64::MIN];
        let bs = [0, 1, 4, 18, (1 << 36) - 1, 1 << 36, usize::MAX];
        let mut state = 1u64;
        let mut pick = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut counts = [0; 3];
        for _ in 0..200_000 {
            let most = [6, 8, ns.len()][pick(3)];
            let ne = [0; 4].map(|_| ns[pick(most)]);
            let nb = [0; 4].map(|_| bs[pick(if most == ns.len() { bs.len() } else { 5 })]);
            let ty = types[pick(types.len())];
            let bytes = format_of(ty).and_then(|format| any_nbytes(format, &ne, &nb));
            assert_eq!(checked_nbytes(ty, &ne, &nb), bytes, "{ty:?} {ne:?} {nb:?}");
            assert_eq!(checked_nelements(&ne), any_nelements(&ne), "{ne:?}");
            counts[usize::from(bytes.is_some()) + usize::from(bytes.is_some_and(|b| b > 0))] += 1;
        }
        assert!(counts.iter().all(|&n| n > 10_000), "{counts:?}");
    }
}
