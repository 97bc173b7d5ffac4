//! Rules that `supports` functions share. Each answers the text of the rule that is broken.

use super::rows;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types::{kernels, Type};

/// Answer of a rule.
pub type Rule = Result<(), &'static str>;

/// `text` unless `ok`.
pub fn ensure(ok: bool, text: &'static str) -> Rule {
    if ok {
        Ok(())
    } else {
        Err(text)
    }
}

/// Both tensors have the same dimensions.
pub fn same_shape(a: &ggml_tensor, b: &ggml_tensor) -> Rule {
    ensure(a.ne == b.ne, "source and result must have the same shape")
}

/// There are elements to read, whatever dimension a rule looks at.
pub fn filled(t: &ggml_tensor) -> Rule {
    ensure(!shape::is_empty(t), "a source that is read has no elements")
}

/// The format is f32, f16 or bf16.
pub fn float(t: &ggml_tensor) -> Rule {
    ensure(rows::is_float(t.r#type), "the format must be f32, f16 or bf16")
}

/// The format is `ty`.
pub fn is_f32(t: &ggml_tensor) -> Rule {
    ensure(t.r#type == GGML_TYPE_F32, "the format must be f32")
}

/// The format is i32.
pub fn is_i32(t: &ggml_tensor) -> Rule {
    ensure(t.r#type == GGML_TYPE_I32, "the format of indices must be i32")
}

/// Dimension 0 is packed.
pub fn packed_rows(t: &ggml_tensor) -> Rule {
    ensure(shape::is_contiguous_rows(t), "rows must be packed")
}

/// Blocks of a block format lie side by side; nothing is asked of plain formats.
pub fn packed_blocks(t: &ggml_tensor) -> Rule {
    let Some(ty) = Type::from_id(t.r#type.0) else { return Err("unknown format") };
    ensure(
        ty.block_size() == 1 || (t.nb[0] == ty.block_bytes() && t.ne[0] % ty.block_size() as i64 == 0),
        "rows of a block format must be packed whole blocks",
    )
}

/// The format can be read as f32.
pub fn decodable(t: &ggml_tensor) -> Rule {
    let ok = Type::from_id(t.r#type.0).is_some_and(|ty| kernels(ty).decode.is_some());
    ensure(ok, "there is no conversion of the format to f32")
}

/// The format can be made from f32.
pub fn encodable(t: &ggml_tensor) -> Rule {
    let ok = Type::from_id(t.r#type.0).is_some_and(|ty| kernels(ty).encode.is_some());
    ensure(ok, "there is no conversion of f32 to the format")
}

/// `small` repeats a whole number of times to fill `large`.
pub fn repeats(small: &ggml_tensor, large: &ggml_tensor) -> Rule {
    ensure(shape::can_repeat(small, large), "the second source must repeat to the first's shape")
}
