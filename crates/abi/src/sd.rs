//! Enumerations of ggml-sd.h.

c_enum! {
/// How `ggml_sage_attn` computes.
pub enum ggml_sage_attn_mode {
    /// The best way that the device has.
    GGML_SAGE_ATTN_AUTO = 0,
    /// Products with the values in 8 bits.
    GGML_SAGE_ATTN_2 = 1,
    /// The same with short sums.
    GGML_SAGE_ATTN_2_PLUS_PLUS = 2,
}
}

c_enum! {
/// What 4-bit weights are.
pub enum ggml_w4_convrot_kind {
    /// Integers from -8 to 7, a scale for each row.
    GGML_W4_CONVROT_KIND_W4A4 = 1,
    /// Numbers of a table of 16, a scale for each row and one for each 16 elements.
    GGML_W4_CONVROT_KIND_W4A8 = 2,
}
}
