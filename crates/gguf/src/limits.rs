//! The bounds of the reader and the sizes of tensor element types.

/// Blocks of an element type: rows are whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// Elements in a block, at least 1.
    pub block_size: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
}

/// What the reader admits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of a name field in a tensor (GGML_MAX_NAME): names have at most `max_name - 1` bytes.
    pub max_name: usize,
    /// Longest string, in bytes.
    pub max_string: u64,
    /// Longest array, in elements.
    pub max_array: u64,
    /// Layout of a tensor type by its id, `None` for ids that are no type.
    pub type_layout: fn(i32) -> Option<TypeLayout>,
}

impl Default for Limits {
    /// Names below 160 bytes, strings and arrays up to 2^30, and the types of [`builtin_type_layout`].
    fn default() -> Self {
        Limits { max_name: 160, max_string: 1 << 30, max_array: 1 << 30, type_layout: builtin_type_layout }
    }
}

/// Layout of the tensor types of ggml 0.26 and of the 8-bit floats of stable-diffusion.cpp's ggml; ids of removed types and ids never
/// given are `None`.
pub fn builtin_type_layout(id: i32) -> Option<TypeLayout> {
    let (block_size, block_bytes) = match id {
        0 => (1, 4),      // f32
        1 => (1, 2),      // f16
        2 => (32, 18),    // q4_0
        3 => (32, 20),    // q4_1
        6 => (32, 22),    // q5_0
        7 => (32, 24),    // q5_1
        8 => (32, 34),    // q8_0
        9 => (32, 36),    // q8_1
        10 => (256, 84),  // q2_K
        11 => (256, 110), // q3_K
        12 => (256, 144), // q4_K
        13 => (256, 176), // q5_K
        14 => (256, 210), // q6_K
        15 => (256, 292), // q8_K
        16 => (256, 66),  // iq2_xxs
        17 => (256, 74),  // iq2_xs
        18 => (256, 98),  // iq3_xxs
        19 => (256, 50),  // iq1_s
        20 => (32, 18),   // iq4_nl
        21 => (256, 110), // iq3_s
        22 => (256, 82),  // iq2_s
        23 => (256, 136), // iq4_xs
        24 => (1, 1),     // i8
        25 => (1, 2),     // i16
        26 => (1, 4),     // i32
        27 => (1, 8),     // i64
        28 => (1, 8),     // f64
        29 => (256, 56),  // iq1_m
        30 => (1, 2),     // bf16
        34 => (256, 54),  // tq1_0
        35 => (256, 66),  // tq2_0
        39 => (32, 17),   // mxfp4
        40 => (64, 36),   // nvfp4
        41 => (128, 18),  // q1_0
        42 => (64, 18),   // q2_0
        43 => (1, 1),     // f8_e4m3
        44 => (1, 1),     // f8_e5m2
        _ => return None,
    };
    Some(TypeLayout { block_size, block_bytes })
}
