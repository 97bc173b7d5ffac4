//! Extensions: operators, kernels and fusion rules of applications and plugins (`ggml-ext.h`). Imports: [`crate::error`],
//! [`crate::tensor`], [`crate::graph`], [`crate::alloc`] (which operators may work in place), [`crate::backend`].
//!
//! One pipeline. Registrations ([`registry`], [`op`]) are looked up for a node ([`select`]); a graph portion of one backend becomes a
//! [`plan`]: rules reorder ([`delay`]) and match, the library checks them ([`facts`], [`legality`]), what is chosen is frozen and
//! prepared; the plan runs ([`run`]) and is explained ([`explain`]). Whoever asks what happens to a node reads the plan.
//!
//! Nothing here costs anything while nothing is registered: one relaxed load says so.

pub mod callback;
pub mod delay;
pub mod direct;
pub mod explain;
pub mod facts;
mod known;
pub mod launch;
pub mod legality;
pub mod op;
mod optimise;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod registry;
pub mod run;
pub mod scope;
pub mod select;
pub mod step;
pub mod structs;
pub mod workspace;

pub use direct::compute_async;
pub use plan::Plan;
pub use select::{supports_native, supports_op};
