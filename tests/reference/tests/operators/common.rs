//! Shapes, formats and names that families share.

pub use reference::suite::{type_name, U32};
pub use reference::values::each;
pub use reference::world::{dims, read, t, Outcome};
pub use reference::*;

/// Formats that elementwise operators take.
pub const FLOATS: [ggml_type; 3] = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16];

/// Formats of blocks that can be encoded and decoded.
pub const BLOCKS: [ggml_type; 10] = [
    GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1,
    GGML_TYPE_Q5_0,
    GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K,
    GGML_TYPE_Q3_K,
    GGML_TYPE_Q4_K,
    GGML_TYPE_Q5_K,
    GGML_TYPE_Q6_K,
];

/// Shapes with no zero; the last is large enough to be shared out among threads.
pub const SHAPES: [[usize; 4]; 5] = [[8, 6, 4, 2], [33, 7, 3, 2], [1, 1, 1, 1], [257, 3, 1, 1], [129, 37, 2, 2]];

/// Shapes without elements.
pub const EMPTY: [[usize; 4]; 4] = [[0, 3, 2, 2], [5, 0, 2, 2], [5, 3, 0, 2], [5, 3, 2, 0]];

/// Both.
pub fn shapes() -> impl Iterator<Item = [usize; 4]> {
    SHAPES.into_iter().chain(EMPTY)
}

/// Ordinary numbers.
pub const PLAIN: Fill = Fill::Range(-2.0, 2.0);

/// A NULL tensor.
pub const NONE: T = std::ptr::null_mut();

/// A sum of terms with the sum of their sizes.
pub fn sum(terms: impl Iterator<Item = f64>) -> (f64, f64) {
    terms.fold((0.0, 0.0), |(s, m), x| (s + x, m + x.abs()))
}

/// Type names of a case.
pub fn names(types: &[ggml_type]) -> String {
    types.iter().map(|&ty| type_name(ty)).collect::<Vec<_>>().join("+")
}
