//! Reader and writer of the gguf file format (versions 2 and 3, little endian).
//!
//! What lives here: the parser ([`Gguf::read`], [`Gguf::from_bytes`]), the key-value pairs and tensor infos that it
//! yields, the calls that edit them, and the writer. The crate holds no unsafe code, knows no tensor memory and stands
//! on nothing but `std`: tensor data is handed to the writer by the caller ([`TensorData`]) and read by the caller
//! ([`Gguf::read_data`]).
//!
//! Stated behaviour, where the format leaves a choice:
//! - Nothing is allocated on the word of the file. Counts and lengths are compared with the bytes that are left, and
//!   large arrays grow as their bytes arrive, so a source that lies about its size costs no memory either.
//! - A failed allocation is an [`Error`], as is every broken rule; no input panics.
//! - Bool values: any byte but 0 is true, and is stored and written as 1.
//! - Keys and tensor names must not hold a NUL byte (two of them could be one name for a C caller). String *values* may:
//!   they are kept and written whole, a C caller sees them up to the first NUL.
//! - Tensors with zero elements are accepted and written with all their dimensions.
//! - Tensor infos may have 0 dimensions (one element); they are written with one.
//! - Arrays of arrays are refused, as are types outside of the table in [`Limits::type_layout`].
//! - `general.alignment`, when set or removed, moves the tensors' offsets, so what is written can always be read.
//! - A file may end where its data section starts (written with `only_meta`); [`Gguf::check_data`] tells.

#![forbid(unsafe_code)]

mod context;
mod cursor;
mod error;
mod limits;
mod read;
mod tensor;
mod value;
mod write;

pub use context::{Gguf, Kv};
pub use error::{Error, Label, Rule, Subject};
pub use limits::{builtin_type_layout, Limits, TypeLayout};
pub use tensor::TensorInfo;
pub use value::{CText, Element, StrList, ValueType, Values};
pub use write::TensorData;

/// The first four bytes of every file.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// The version that [`Gguf::new`] writes and the highest that is read.
pub const VERSION: u32 = 3;
/// The key that sets the alignment of tensor data.
pub const KEY_ALIGNMENT: &str = "general.alignment";
/// Alignment of tensor data in bytes where the file names none.
pub const DEFAULT_ALIGNMENT: u32 = 32;
