//! An independent reference for every operator of the CPU backend.
//!
//! Each operator is written a second time from its mathematics, as plain f64 loops over logical indices (dimensions low to high),
//! and compared with what the library computes through its C interface. Families of operators are in `tests/operators/`, one file
//! each; `tests/cases/` walks over a catalogue of all operators for what public reports have found (`docs/cases.md`). The harness here:
//! - [`api`], [`builders`]: the C interface;
//! - [`values`]: logical arrays, and element formats read without the library's decoders;
//! - [`layout`]: the ways in which a tensor can lie in memory;
//! - [`world`]: one case: tensors in guarded memory, computed with one, two and three threads;
//! - [`suite`]: the cases of an operator: counts, comparison, and what must not be refused.
//!
//! What holds for every case, whatever the operator:
//! - where `ggml_backend_dev_supports_op` says no, or the builder refused, computing fails and no byte changes;
//! - where it says yes, every element is right within the stated tolerance, NaN only where the reference is NaN;
//! - no byte outside the elements of the results changes: sources, gaps of views, 32 and more bytes around each tensor;
//! - gaps and surroundings are filled with NaN, so that reading them shows in the result;
//! - two and three threads give the same bytes as one.

pub mod api;
pub mod builders;
pub mod layout;
pub mod suite;
pub mod values;
pub mod world;

pub use api::*;
pub use ggml_oxide_abi::*;
pub use layout::{Layout, ALL, PACKED};
pub use suite::{Suite, Tol, Want};
pub use values::{Arr, Fill};
pub use world::World;
