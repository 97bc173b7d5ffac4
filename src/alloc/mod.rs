//! Where tensors go: a planner that knows numbers only, and the allocators that give its answers memory.
//!
//! - [`space`], [`problem`], [`plan`], `lives`, `pack`: the planner. Safe code, no pointers, time linear in the nodes.
//! - [`room`]: lists as long as a graph.
//! - [`inplace`]: which operators may write over which source.
//! - [`lower`]: from a graph to the planner's numbers; [`matching`]: whether a graph still has them.
//! - [`gallocr`]: the graph allocator.
//! - [`whole`]: tensors one behind the other, and all tensors of a context.
//!
//! Imports: [`crate::error`], [`crate::tensor`], [`crate::graph`], and for memory [`crate::backend`].

pub mod gallocr;
pub mod inplace;
mod lives;
pub mod lower;
pub mod matching;
mod pack;
pub mod plan;
pub mod problem;
pub mod room;
pub mod space;
pub mod whole;

pub use gallocr::{Fit, Gallocr, Outcome};

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod skip_tests;
#[cfg(test)]
mod tests;
