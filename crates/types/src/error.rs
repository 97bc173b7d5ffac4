//! Why a codec refused its arguments.

use crate::Type;

/// A refused call. The text names the rule; the caller adds tensor and operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// No conversion of this kind exists for the format.
    Unsupported { ty: Type, what: &'static str },
    /// The format encodes with an importance matrix only.
    NeedsImportance { ty: Type },
    /// A length is no multiple of the format's block.
    NotWholeBlocks { ty: Type, elements: usize },
    /// A buffer has another length than the rest of the call implies (bytes or elements of `what`).
    Length { ty: Type, what: &'static str, need: usize, have: usize },
    /// nrows * n_per_row does not fit in memory.
    Overflow { ty: Type },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Error::Unsupported { ty, what } => write!(f, "{ty}: no {what} for this format"),
            Error::NeedsImportance { ty } => write!(f, "{ty}: conversion from f32 needs an importance matrix"),
            Error::NotWholeBlocks { ty, elements } => {
                write!(f, "{ty}: {elements} elements are no multiple of the block of {}", ty.block_size())
            }
            Error::Length { ty, what, need, have } => write!(f, "{ty}: {what} has length {have}, needs {need}"),
            Error::Overflow { ty } => write!(f, "{ty}: the size of the rows overflows"),
        }
    }
}

impl std::error::Error for Error {}
