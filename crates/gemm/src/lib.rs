//! Matrix multiplication of ggml-oxide, on raw strided memory.
//!
//! A product is `dst[i + j * ld] = sum_k W[i][k] * X[j][k]` in ggml's convention: `i < m` runs over rows of the weights
//! (ne01) and is contiguous in `dst`, `j < n` runs over rows of the activations (ne11), and both have rows along k
//! (ne00 = ne10). Two batch dimensions follow, where the weights may be broadcast.
//!
//! Use: describe the sizes and operands in a [`Gemm`], ask [`Gemm::workspace_size`], and have every thread of a
//! [`Team`] call [`Gemm::run`] with the same [`Workspace`]. A `Gemm` is cheap to make (no allocation, a few hundred
//! steps): each thread may make its own. Workspace: at most 4 MiB that the team shares, and 192 KiB per thread, unless a
//! single block of k is larger. `workspace_size` for a team also suffices for smaller teams.
//!
//! ```
//! use ggml_oxide_gemm::*;
//! // Two heads of queries [k = 4, n = 3] share one head of keys [k = 4, m = 2].
//! let (m, n, k) = (2, 3, 4);
//! let keys: Vec<f32> = (0..m * k).map(|v| v as f32).collect();
//! let queries = vec![1f32; n * k * 2];
//! let mut out = vec![0f32; m * n * 2];
//! let shape = Shape { m, n, k, batch: [2, 1], ratio: [2, 1] };
//! // SAFETY: the vectors outlive the product and have the sizes that `shape` reaches.
//! let (w, x, dst) = unsafe {
//!     (
//!         // Strides are nb[0..4] of the tensors; those of the weights count their own batches.
//!         Matrix::new(keys.as_ptr().cast(), Type::F32, [4, 4 * k, 4 * k * m, 0]),
//!         Matrix::new(queries.as_ptr().cast(), Type::F32, [4, 4 * k, 4 * k * n, 0]),
//!         Dst::new(out.as_mut_ptr(), [4 * m, 4 * m * n, 0])?,
//!     )
//! };
//! let gemm = Gemm::new(shape, Side::Matrix(w), Side::Matrix(x), dst, Precision::Default)?;
//! let mut scratch = vec![0u8; gemm.workspace_size(1)];
//! // SAFETY: the scratch memory outlives the product.
//! let ws = unsafe { Workspace::new(scratch.as_mut_ptr(), scratch.len()) };
//! gemm.run(&Solo::default(), ws)?;
//! assert_eq!(out[..2], [6.0, 22.0]);
//! # Ok::<(), Error>(())
//! ```
//!
//! A convolution reads its image in place of an im2col buffer:
//!
//! ```
//! use ggml_oxide_gemm::*;
//! let (width, height, channels, out_channels) = (5, 4, 2, 3);
//! let image = vec![1f32; width * height * channels];
//! let k = 3 * 3 * channels;
//! let kernels = vec![1f32; k * out_channels];
//! let pixels = width * height;
//! let mut out = vec![0f32; pixels * out_channels];
//! let conv = ConvShape::flat([width, height], [3, 3], [width, height], [1, 1], [1, 1], [1, 1]);
//! // SAFETY: as above.
//! let (w, x, dst) = unsafe {
//!     (
//!         // Strides of a column, a row, a plane (none here), a channel, an image (none here).
//!         Im2col::new(image.as_ptr().cast(), Type::F32, [4, 4 * width, 0, 4 * pixels, 0], conv)
//!             .expect("sizes in range"),
//!         Matrix::new(kernels.as_ptr().cast(), Type::F32, [4, 4 * k, 0, 0]),
//!         Dst::new(out.as_mut_ptr(), [4 * pixels, 0, 0])?,
//!     )
//! };
//! let shape = Shape::new(pixels, out_channels, k);
//! let gemm = Gemm::new(shape, Side::Custom(&w), Side::Matrix(x), dst, Precision::Default)?;
//! let mut scratch = vec![0u8; gemm.workspace_size(1)];
//! // SAFETY: as above.
//! gemm.run(&Solo::default(), unsafe { Workspace::new(scratch.as_mut_ptr(), scratch.len()) })?;
//! assert_eq!(out[width + 1], 18.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! Result bits depend on the operands, on k, and on which of the direct and packed paths the sizes select; never on
//! the number of threads or on where a tile lies.
//!
//! Which way a product goes: up to 16 rows on one side, plain dot products without packing (`direct`), for quantised
//! weights with activations rounded as ggml rounds them; else packed panels (`packed`): of 8-bit integers (`int8`) for
//! quantised weights on machines with instructions for it, of f32 (`float`) for everything else and for
//! [`Precision::F32`].
//!
//! Layers: `kernel` (registers) under `operand`, `conv` (packing) and `plan` (blocking) under `packed`, `direct`
//! (threads) under `gemm`. Only the types exported here are for other crates.

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
