//! Matrix multiplication of ggml-oxide, on raw strided memory.
//!
//! A product is `dst[i + j * ld] = sum_k W[i][k] * X[j][k]` in ggml's convention: `i < m` runs over rows of the weights
//! (ne01) and is contiguous in `dst`, `j < n` runs over rows of the activations (ne11), and both have rows along k
//! (ne00 = ne10). Two batch dimensions follow, where the weights may be broadcast.
//!
//! Use: describe the sizes and operands in a [`Gemm`], ask [`Gemm::workspace_size`], and have every thread of a
//! [`Team`] call [`Gemm::run`] with the same [`Workspace`]. A `Gemm` is cheap to make: each thread may make its own.
//!
//! Result bits depend on the operands, on k, and on which of the direct and packed paths the sizes select; never on
//! the number of threads or on where a tile lies.
//!
//! Layers: `kernel` (registers) under `operand` (packing) and `plan` (blocking) under `run` (threads). Only the types
//! exported here are for other crates.

mod conv;
mod direct;
mod float;
mod gemm;
mod int8;
mod isa;
mod kernel;
mod operand;
mod packed;
mod plan;
mod shape;
mod team;

pub use conv::{ConvShape, Im2col};
pub use gemm::Gemm;
pub use ggml_oxide_types::Type;
pub use isa::Isa;
pub use operand::{is_supported, Matrix, Operand, Panel};
pub use shape::{Dst, Error, Precision, Shape, Side, Workspace};
pub use team::{Solo, StdShared, StdTeam, Team};
