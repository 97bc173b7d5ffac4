//! Training: datasets, contexts that build and run backward passes and optimizer steps, results, epochs. Imports: [`crate::error`],
//! [`crate::tensor`], [`crate::graph`], [`crate::alloc`], [`crate::backend`], [`crate::sched`].
//!
//! - [`dataset`]: data and labels, cut into shards; [`random`]: their order.
//! - [`settings`]: of the optimizers, and what they may be.
//! - [`context`]: what is trained, and how far it is; [`states`]: accumulators and moments of its parameters; [`build`]: the graphs;
//!   [`copies`]: graphs that the scheduler may change; [`step`]: one evaluation.
//! - [`result`]: losses, predictions, accuracy, with their uncertainties.
//! - [`epoch`], [`fit`], [`progress`]: loops over batches.
//!
//! Callbacks run between the steps of a loop and may use everything: datasets, contexts and results are [`Shared`], and no step holds
//! one while a callback runs. The one exception is the scheduler's own callback, which runs inside an evaluation.

pub mod build;
pub mod context;
mod copies;
pub mod dataset;
pub mod epoch;
pub mod fit;
mod nodes;
pub mod progress;
pub mod random;
pub mod result;
pub mod settings;
mod states;
pub mod step;

pub use context::{Opt, Scheduler};
pub use dataset::Dataset;
pub use result::Outcome;

use crate::error::Error;
use ggml_oxide_abi::GGML_EXT_CODE_RE_ENTERED;
use std::cell::{Ref, RefCell, RefMut};

/// What handles point to.
pub type Shared<T> = RefCell<T>;

fn busy(what: &str) -> Error {
    Error::new(GGML_EXT_CODE_RE_ENTERED, format!("the {what} is in use by the call that this callback runs in"))
}

/// To read; an error from inside a call that changes it.
pub fn read<'a, T>(shared: &'a Shared<T>, what: &str) -> Result<Ref<'a, T>, Error> {
    shared.try_borrow().map_err(|_| busy(what))
}

/// To change; an error from inside a call that uses it.
pub fn write<'a, T>(shared: &'a Shared<T>, what: &str) -> Result<RefMut<'a, T>, Error> {
    shared.try_borrow_mut().map_err(|_| busy(what))
}
