//! The scheduler: one graph on several backends. Imports: [`crate::error`], [`crate::graph`], [`crate::backend`], [`crate::alloc`],
//! [`crate::ext`].
//!
//! Stages, each in its own file, each a pass over the graph that knows nothing of the later ones:
//! 1. [`numbering`]: the graph as numbers, and what an earlier pass put into it taken out again.
//! 2. [`assign`]: a backend for every tensor.
//! 3. [`split`]: runs of nodes of one backend, and copies of what crosses from one backend to another.
//! 4. [`planning`]: the plan of each split where something is registered ([`crate::ext`]): what is fused, and so not allocated. Without
//!    registrations a split runs as its backend's graph.
//! 5. [`layout`]: the graph as the allocator sees it, with copies and dependencies; addresses for all.
//! 6. [`run`]: copies and splits in order.
//!
//! [`explaining`] says what became of the graph at hand. [`compare`] runs one graph on two backends.
//!
//! With one backend and one copy stages 1 to 3 are one check of each node: nothing is numbered, copied or hashed.

pub mod assign;
pub mod compare;
mod copies;
mod explaining;
pub mod layout;
pub mod numbering;
mod planning;
pub mod run;
mod scheduler;
pub mod split;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use scheduler::Sched;

/// Backends that a scheduler may have.
pub const MAX_BACKENDS: usize = 16;
/// Copies of the inputs when graphs run one behind the other.
pub const MAX_COPIES: usize = 4;
