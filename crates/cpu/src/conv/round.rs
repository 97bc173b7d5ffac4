//! Rounding to f16. Everything in this module's parent that rounds does it here, and the gemm crate by the same calls, so that a
//! fused chain gives the bits of the same chain node by node.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Rounds values to f16 and back.
pub(crate) fn round_to_f16(values: &mut [f32]) {
    let mut narrow = [f16::ZERO; 256];
    for part in values.chunks_mut(narrow.len()) {
        let narrow = &mut narrow[..part.len()];
        narrow.convert_from_f32_slice(part);
        narrow.convert_to_f32_slice(part);
    }
}

/// Converts to the bits of f16. Both have the same length.
pub(crate) fn to_f16(from: &[f32], to: &mut [u16]) {
    to.reinterpret_cast_mut::<f16>().convert_from_f32_slice(from);
}
