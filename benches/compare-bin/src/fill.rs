//! Contents of leaves: the same bytes for either library. May import: the table of functions.

use crate::api::Api;
use ggml_oxide_abi::*;
use std::ffi::c_void;

/// What a leaf holds.
#[derive(Clone, Copy)]
pub enum Fill {
    /// Values of -1 to 1, encoded in the leaf's format.
    Uniform,
    /// i32 indices of rows, below the given number.
    Rows(u32),
    /// i32 positions: 0, 1, 2, ...
    Positions,
    /// Zeros: a mask that hides nothing.
    Zero,
}

/// Values enough for any leaf: larger ones repeat them, by whole rows, so that their making costs little.
const POOL: usize = 1 << 18;

/// Numbers that look random and are the same on every run (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn uniform(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 31) as f32 - 1.0
    }
}

/// Writes a leaf of `api` that has its memory. `encoder` encodes: the same library for both leaves that shall be the same.
///
/// # Errors
/// A text, for a format that the fill cannot write.
///
/// # Safety
/// `tensor` is a contiguous allocated tensor of `api`.
pub unsafe fn fill(api: &Api, encoder: &Api, tensor: *mut ggml_tensor, what: Fill, seed: usize) -> Result<(), String> {
    // SAFETY: a tensor, says the caller.
    let (r#type, ne, size) = unsafe { ((*tensor).r#type, (*tensor).ne, (api.ggml_nbytes)(tensor)) };
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (seed as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95));
    let count: usize = ne.iter().map(|&n| n as usize).product();
    let tile: Vec<u8> = match what {
        Fill::Zero => vec![0; size.min(POOL)],
        Fill::Rows(below) => (0..count).flat_map(|_| ((random.next() % below) as i32).to_ne_bytes()).collect(),
        Fill::Positions => (0..count).flat_map(|i| (i as i32).to_ne_bytes()).collect(),
        Fill::Uniform => {
            let width = ne[0] as usize;
            let rows = (count / width).min((POOL / width).max(1));
            let values: Vec<f32> = (0..rows * width).map(|_| random.uniform()).collect();
            if r#type == GGML_TYPE_F32 {
                values.iter().flat_map(|v| v.to_ne_bytes()).collect()
            } else {
                // SAFETY: the destination has room for `rows` rows of the format, which needs no importances.
                unsafe {
                    let mut bytes = vec![0u8; rows * (encoder.ggml_row_size)(r#type, ne[0])];
                    let written = (encoder.ggml_quantize_chunk)(
                        r#type,
                        values.as_ptr(),
                        bytes.as_mut_ptr().cast::<c_void>(),
                        0,
                        rows as i64,
                        ne[0],
                        std::ptr::null(),
                    );
                    if written != bytes.len() {
                        return Err(format!("values cannot be encoded as {type:?}"));
                    }
                    bytes
                }
            }
        }
    };
    let mut at = 0;
    while at < size {
        let length = tile.len().min(size - at);
        // SAFETY: the range lies within the tensor, the source has that many bytes.
        unsafe { (api.ggml_backend_tensor_set)(tensor, tile.as_ptr().cast(), at, length) };
        at += length;
    }
    Ok(())
}
