//! Where tensors go: a planner that knows numbers only, and the allocators that give its answers memory.
//!
//! - [`space`], [`problem`], [`plan`], `pack`: the planner. Safe code, no pointers, time linear in the nodes.
//!
//! Imports: [`crate::error`], [`crate::graph`], and for memory [`crate::backend`].

mod pack;
pub mod plan;
pub mod problem;
pub mod space;

#[cfg(test)]
mod plan_tests;
