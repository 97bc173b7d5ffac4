//! A pass over a dataset, batch by batch: training on its front, evaluation on its back.

use super::result::Batch;
use super::{read, step, write, Dataset, Opt, Outcome, Shared};
use crate::error::Error;
use std::time::Instant;

/// Where an epoch is: after a batch.
pub struct Progress {
    /// Training, or evaluation.
    pub train: bool,
    /// Batches of this part that are done.
    pub done: i64,
    /// Batches of this part.
    pub all: i64,
    /// When the part began.
    pub start: Instant,
}

/// Datapoints of a batch, batches for training, all batches.
struct Batches {
    train: i64,
    all: i64,
}

fn batches(opt: &Opt, dataset: &Dataset, split: i64) -> Result<Batches, Error> {
    if !opt.has_fixed_graphs() {
        return Err(Error::argument("an epoch needs fixed graphs: make the context with ctx_compute"));
    }
    // SAFETY: contexts with fixed graphs have inputs, which live as long.
    let inputs = unsafe { &*opt.tensors().inputs };
    let (ne, size, n) = (dataset.ne_datapoint(), inputs.ne[1], dataset.n());
    if ne != inputs.ne[0] {
        return Err(Error::shape(format!("a datapoint has {ne} elements, inputs take {}", inputs.ne[0])));
    }
    if size <= 0 || n % size != 0 {
        return Err(Error::argument(format!("{n} datapoints are no whole number of batches of {size}")));
    }
    let split = if split < 0 { n } else { split };
    if split > n || split % size != 0 {
        return Err(Error::argument(format!(
            "idata_split {split} must be a whole number of batches of {size}, up to {n}"
        )));
    }
    Ok(Batches { train: split / size, all: n / size })
}

/// One batch.
///
/// # Safety
/// As [`run`].
unsafe fn one(opt: &Shared<Opt>, dataset: &Shared<Dataset>, train: bool, i: i64) -> Result<Batch, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        let tensors = {
            let mut opt = write(opt, "context")?;
            step::allocate(&mut opt, train)?;
            opt.tensors()
        };
        read(dataset, "dataset")?.get("ggml_opt_epoch", tensors.inputs, tensors.labels, i)?;
        step::evaluate(opt)
    }
}

/// Trains on the first `split` datapoints (all, if negative) and evaluates the others. `after` is called after each batch, while nothing
/// is held.
///
/// # Safety
/// What the context was made of is live.
pub unsafe fn run(
    opt: &Shared<Opt>,
    dataset: &Shared<Dataset>,
    train: Option<&Shared<Outcome>>,
    eval: Option<&Shared<Outcome>>,
    split: i64,
    mut after: impl FnMut(&Progress) -> Result<(), Error>,
) -> Result<(), Error> {
    let batches = batches(&*read(opt, "context")?, &*read(dataset, "dataset")?, split)?;
    for part in [true, false] {
        let start = Instant::now();
        let (first, last) = if part { (0, batches.train) } else { (batches.train, batches.all) };
        for i in first..last {
            // SAFETY: the caller's promise.
            let batch = unsafe { one(opt, dataset, part, i) };
            if batch.is_err() {
                // so that the context can be used again
                write(opt, "context")?.give_up();
            }
            let batch = batch?;
            if let Some(result) = if part { train } else { eval } {
                write(result, "result")?.add(batch)?;
            }
            after(&Progress { train: part, done: i + 1 - first, all: last - first, start })?;
        }
    }
    Ok(())
}
