//! Contexts, and the tensors and nodes in them. Below this layer stand only [`crate::error`] and the shape and format crates.
//!
//! - [`Context`]: the arena behind an opaque `ggml_context`.
//! - `elementwise`, `matmul`, `conv` ...: one shape rule per operator. A rule is a pure function of the sources' metadata and the
//!   arguments; it answers a [`NodeSpec`] or the rule that was broken.
//! - `build`: the one function that gives a [`NodeSpec`] memory in a context.
//! - `poison`: stand-ins for what could not be built.

pub mod attention;
pub mod backward;
mod build;
pub mod compose;
mod context;
pub mod conv;
pub mod copy;
pub mod elementwise;
pub mod image;
pub mod matmul;
pub mod misc;
pub mod new;
pub mod norm;
pub mod poison;
pub mod pool;
pub mod recurrent;
pub mod reduce;
pub mod rope;
pub mod solve;
mod spec;
pub mod streams;
#[cfg(test)]
mod tests;
pub mod train;
pub mod view;
pub mod window;

pub use build::{context, materialise, name_bytes, node, place, screen, set_name, set_name_c};
pub use context::{blank, Context, Described, Maker, TENSOR_OVERHEAD};
pub use new::new_tensor;
pub use poison::{is_poisoned, POISONED};
pub use spec::{dims, divides, product, repeats, show, Naming, NodeSpec, Place, N_PARAMS};
