//! Contexts, and the tensors and nodes in them. Below this layer stand only [`crate::error`] and the shape and format crates.
//!
//! - [`Context`]: the arena behind an opaque `ggml_context`.
//! - `elementwise`, `matmul`, `conv` ...: one shape rule per operator. A rule is a pure function of the sources' metadata and the
//!   arguments; it answers a [`NodeSpec`] or the rule that was broken.
//! - `build`: the one function that gives a [`NodeSpec`] memory in a context.
//! - `poison`: stand-ins for what could not be built.

mod build;
mod context;
mod new;
pub mod poison;
mod spec;

pub use build::{context, node, place, screen, set_name, set_name_c};
pub use context::{blank, Context, TENSOR_OVERHEAD};
pub use new::{new_tensor, view_of};
pub use poison::{is_poisoned, POISONED};
pub use spec::{dims, show, Naming, NodeSpec, Place, N_PARAMS};
