//! Element and block formats of ggml: size, decode, encode, dot product.
//!
//! - [`Type`]: the format table; `Type::from_id` is the only way from a `ggml_type` value to a format.
//! - [`to_f32`], [`from_f32`], [`quantize_rows`], [`vec_dot`], [`vec_dot_rows`]: checked calls.
//! - [`kernels`]: the unchecked functions behind them, chosen once for the machine, for inner loops.
//! - [`block`]: byte layouts; [`float`]: scalar f16 and bf16 conversions; [`fp4`] and [`iq4`]: what their codes stand for.
//!
//! Encoding gives the same bits on every machine, and the bits that upstream's reference quantisers give for ordinary
//! finite data. Dot products of block formats are exact integers inside a block; blocks are added in f32, in an order
//! that depends on the instruction set, not on which rows are computed together.
//!
//! Below this crate is nothing but std. Files: `ty`, `block`, `error`, `validate` (facts); `float`, `fp8`, `q4`, `q5`,
//! `q8`, `kquants`, `iq`, `iq4`, `fp4`, `ternary` (portable codecs, the definition of every result) over `search` and
//! `clean`; `x86` (the same results faster); `kernels` (the choice).

pub mod block;
mod clean;
mod error;
pub mod float;
pub mod fp4;
mod fp8;
mod iq;
pub mod iq4;
mod kernels;
mod kquants;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod levels;
pub mod plain;
mod q4;
mod q5;
mod q8;
mod search;
mod ternary;
mod ty;
mod validate;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub use error::Error;
pub use kernels::{
    from_f32, kernels, level, quantize_rows, to_f32, vec_dot, vec_dot_rows, Decode, DotTile, Encode, EncodeWeighted,
    Kernels, Level, Rows, SIDE_BY_SIDE,
};
pub use ty::{is_removed, name_of_id, Type, QK_K};
pub use validate::{check_finite, half_fields, NotFinite};
