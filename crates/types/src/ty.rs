//! The table of formats: identity, name and size of every format id of ggml 0.26, and the two 8-bit floats that
//! stable-diffusion.cpp's fork adds. Sizes only; what can be decoded is `kernels`' affair.

/// Elements in a K-quant super-block.
pub const QK_K: usize = 256;

macro_rules! formats {
    ($($variant:ident = $id:literal, $name:literal, $block:literal, $bytes:literal, $quant:literal;)*) => {
        /// An element or block format. A value exists only for ids in use: removed ids have none.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Type {
            $(#[doc = concat!("`", $name, "`: ", $block, " element(s) in ", $bytes, " byte(s), id ", $id)] $variant,)*
        }

        impl Type {
            /// All formats, ascending by id.
            pub const ALL: &'static [Type] = &[$(Type::$variant),*];

            /// The format with this `ggml_type` value, or None for a removed or unknown id.
            pub const fn from_id(id: i32) -> Option<Type> {
                match id {
                    $($id => Some(Type::$variant),)*
                    _ => None,
                }
            }

            /// The `ggml_type` value.
            pub const fn id(self) -> i32 {
                match self { $(Type::$variant => $id,)* }
            }

            /// The name that `ggml_type_name` gives.
            pub const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name,)* }
            }

            /// Elements in one block; 1 for plain elements. Never 0.
            pub const fn block_size(self) -> usize {
                match self { $(Type::$variant => $block,)* }
            }

            /// Bytes of one block.
            pub const fn block_bytes(self) -> usize {
                match self { $(Type::$variant => $bytes,)* }
            }

            /// Whether ggml counts the format as quantised. The 8-bit floats are not.
            pub const fn is_quantized(self) -> bool {
                match self { $(Type::$variant => $quant,)* }
            }
        }
    };
}

formats! {
    F32     = 0,  "f32",     1,   4,   false;
    F16     = 1,  "f16",     1,   2,   false;
    Q4_0    = 2,  "q4_0",    32,  18,  true;
    Q4_1    = 3,  "q4_1",    32,  20,  true;
    Q5_0    = 6,  "q5_0",    32,  22,  true;
    Q5_1    = 7,  "q5_1",    32,  24,  true;
    Q8_0    = 8,  "q8_0",    32,  34,  true;
    Q8_1    = 9,  "q8_1",    32,  36,  true;
    Q2_K    = 10, "q2_K",    256, 84,  true;
    Q3_K    = 11, "q3_K",    256, 110, true;
    Q4_K    = 12, "q4_K",    256, 144, true;
    Q5_K    = 13, "q5_K",    256, 176, true;
    Q6_K    = 14, "q6_K",    256, 210, true;
    Q8_K    = 15, "q8_K",    256, 292, true;
    IQ2_XXS = 16, "iq2_xxs", 256, 66,  true;
    IQ2_XS  = 17, "iq2_xs",  256, 74,  true;
    IQ3_XXS = 18, "iq3_xxs", 256, 98,  true;
    IQ1_S   = 19, "iq1_s",   256, 50,  true;
    IQ4_NL  = 20, "iq4_nl",  32,  18,  true;
    IQ3_S   = 21, "iq3_s",   256, 110, true;
    IQ2_S   = 22, "iq2_s",   256, 82,  true;
    IQ4_XS  = 23, "iq4_xs",  256, 136, true;
    I8      = 24, "i8",      1,   1,   false;
    I16     = 25, "i16",     1,   2,   false;
    I32     = 26, "i32",     1,   4,   false;
    I64     = 27, "i64",     1,   8,   false;
    F64     = 28, "f64",     1,   8,   false;
    IQ1_M   = 29, "iq1_m",   256, 56,  true;
    BF16    = 30, "bf16",    1,   2,   false;
    TQ1_0   = 34, "tq1_0",   256, 54,  true;
    TQ2_0   = 35, "tq2_0",   256, 66,  true;
    MXFP4   = 39, "mxfp4",   32,  17,  true;
    NVFP4   = 40, "nvfp4",   64,  36,  true;
    Q1_0    = 41, "q1_0",    128, 18,  true;
    Q2_0    = 42, "q2_0",    64,  18,  true;
    F8_E4M3 = 43, "f8_e4m3", 1,   1,   false;
    F8_E5M2 = 44, "f8_e5m2", 1,   1,   false;
}

impl Type {
    /// Bytes of a row of `ne0` elements; None when `ne0` is no multiple of the block or the product overflows.
    pub const fn row_bytes(self, ne0: usize) -> Option<usize> {
        let bs = self.block_size();
        if !ne0.is_multiple_of(bs) {
            return None;
        }
        (ne0 / bs).checked_mul(self.block_bytes())
    }

    /// Whether the quantiser cannot work without an importance matrix.
    pub const fn requires_imatrix(self) -> bool {
        matches!(self, Type::IQ2_XXS | Type::IQ2_XS | Type::IQ1_S)
    }

    /// The format that the right operand of a dot product with rows of `self` is converted to; None when there is
    /// no dot product for `self`. `Type::I32` and the like have none.
    pub const fn vec_dot_type(self) -> Option<Type> {
        use Type::*;
        match self {
            F32 => Some(F32),
            F16 => Some(F16),
            BF16 => Some(BF16),
            Q1_0 | Q2_0 | Q4_0 | Q5_0 | Q8_0 | IQ4_NL | MXFP4 | NVFP4 => Some(Q8_0),
            Q4_1 | Q5_1 => Some(Q8_1),
            Q2_K | Q3_K | Q4_K | Q5_K | Q6_K => Some(Q8_K),
            IQ2_XXS | IQ2_XS | IQ2_S | IQ3_XXS | IQ3_S | IQ1_S | IQ1_M | IQ4_XS | TQ1_0 | TQ2_0 => Some(Q8_K),
            Q8_1 | Q8_K | I8 | I16 | I32 | I64 | F64 | F8_E4M3 | F8_E5M2 => None,
        }
    }
}

/// Whether `id` named a format that ggml has removed: it keeps a place in the enum and has size 0.
pub const fn is_removed(id: i32) -> bool {
    matches!(id, 4 | 5 | 31 | 32 | 33 | 36 | 37 | 38)
}

/// The name for any id: the format's own, `"DEPRECATED"` for a removed one, `"NONE"` for an unknown one.
pub const fn name_of_id(id: i32) -> &'static str {
    match Type::from_id(id) {
        Some(ty) => ty.name(),
        None if is_removed(id) => "DEPRECATED",
        None => "NONE",
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_one_to_one() {
        for id in -3..60 {
            match Type::from_id(id) {
                Some(ty) => {
                    assert_eq!(ty.id(), id);
                    assert!(!is_removed(id));
                    assert_eq!(name_of_id(id), ty.name());
                    assert_eq!(Type::ALL.iter().filter(|t| t.name() == ty.name()).count(), 1);
                }
                None if is_removed(id) => assert_eq!(name_of_id(id), "DEPRECATED"),
                None => assert_eq!(name_of_id(id), "NONE"),
            }
        }
        assert_eq!(Type::ALL.len() + 8, 45);
        assert!(Type::ALL.windows(2).all(|w| w[0].id() < w[1].id()));
    }

    #[test]
    fn row_bytes_is_checked() {
        assert_eq!(Type::Q4_0.row_bytes(64), Some(36));
        assert_eq!(Type::Q4_0.row_bytes(0), Some(0));
        assert_eq!(Type::Q4_0.row_bytes(33), None);
        assert_eq!(Type::F64.row_bytes(usize::MAX), None);
        assert_eq!(Type::Q8_K.row_bytes(512), Some(584));
    }
}
