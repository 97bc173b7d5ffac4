//! Training for a number of epochs.

use super::context::Scheduler;
use super::{epoch, progress, write, Dataset, Opt, Outcome, Shared};
use crate::error::Error;
use ggml_oxide_abi::*;
use std::cell::Cell;
use std::ffi::c_void;
use std::io::Write;
use std::time::Instant;

/// How a model is fitted.
pub struct Fit {
    /// Model, loss, optimizer; period and the data of the callback are set here.
    pub params: ggml_opt_params,
    /// Passes over the dataset.
    pub n_epochs: i64,
    /// Datapoints of a step: a multiple of those of a batch.
    pub logical: i64,
    /// Share of the dataset that is only evaluated, from 0 to below 1.
    pub val_split: f32,
    /// Says nothing on standard error.
    pub silent: bool,
}

/// Writes to standard error; without one nobody looks.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Batches for a step, and datapoints to train on.
fn plan(fit: &Fit, n: i64) -> Result<(i32, i64), Error> {
    // SAFETY: the promise of `run`.
    let inputs = unsafe { fit.params.inputs.as_ref() }.ok_or_else(|| Error::null("inputs"))?;
    let (batch, logical) = (inputs.ne[1], fit.logical);
    if batch <= 0 || logical <= 0 || logical % batch != 0 {
        return Err(Error::argument(format!("nbatch_logical {logical} must be a multiple of the batch of {batch}")));
    }
    if n % logical != 0 {
        return Err(Error::argument(format!("{n} datapoints are no multiple of nbatch_logical {logical}")));
    }
    if !(0.0..1.0).contains(&fit.val_split) {
        return Err(Error::argument(format!("val_split {} must be from 0 to below 1", fit.val_split)));
    }
    let period = i32::try_from(logical / batch).map_err(|_| Error::argument("too many batches for a step"))?;
    let train = ((1.0 - fit.val_split) * (n / logical) as f32) as i64;
    Ok((period, train.clamp(0, n / logical) * logical))
}

/// Trains as `fit` says. The callback for settings is given a pointer to the number of the epoch, from 1.
///
/// # Safety
/// As [`Opt::new`].
pub unsafe fn run(fit: &Fit, dataset: &Shared<Dataset>, scheduler: Box<dyn Scheduler>) -> Result<(), Error> {
    let start = Instant::now();
    let n = super::read(dataset, "dataset")?.n();
    let (period, split) = plan(fit, n)?;
    // the callback reads it while this function writes it, one after the other
    let epoch = Cell::new(1i64);
    let number: *mut c_void = epoch.as_ptr().cast();
    let params = ggml_opt_params { opt_period: period, get_opt_pars_ud: number, ..fit.params };
    // SAFETY: the caller's promise.
    let opt = Shared::new(unsafe { Opt::new(&params, scheduler) }?);
    let shuffle = |n: i64| write(dataset, "dataset")?.shuffle(write(&opt, "context")?.random(), n);
    // the order means nothing where all data make one step
    if fit.logical < n {
        shuffle(-1)?;
    }
    let results = [Shared::new(Outcome::default()), Shared::new(Outcome::default())];
    // SAFETY: checked in `plan`.
    let batch = unsafe { (*fit.params.inputs).ne[1] };
    while epoch.get() <= fit.n_epochs {
        if fit.logical < split {
            shuffle(split)?;
        }
        for result in &results {
            write(result, "result")?.reset();
        }
        if !fit.silent {
            say(&format!("ggml_opt_fit: epoch {:04}/{:04}:\n", epoch.get(), fit.n_epochs));
        }
        let show = |p: &epoch::Progress| {
            if !fit.silent {
                let result = super::read(&results[usize::from(!p.train)], "result")?;
                say(&progress::line(p, batch, &result, p.start.elapsed()));
            }
            Ok(())
        };
        // SAFETY: the caller's promise.
        unsafe { epoch::run(&opt, dataset, Some(&results[0]), Some(&results[1]), split, show) }?;
        if !fit.silent {
            say("\n");
        }
        epoch.set(epoch.get() + 1);
    }
    if !fit.silent {
        say(&format!("ggml_opt_fit: training took {}\n", progress::clock(start.elapsed())));
    }
    Ok(())
}
