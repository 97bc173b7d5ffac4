//! Entry points of ggml-opt.h: training.

use super::graph::or_report;
use super::Fallback;
use crate::entry;
use crate::error::Error;
use crate::opt::context::Scheduler;
use crate::opt::dataset::Shape;
use crate::opt::epoch::{self, Progress};
use crate::opt::fit::{self, Fit};
use crate::opt::step::{self, Given};
use crate::opt::{progress, read, settings, write, Dataset, Opt, Outcome, Shared};
use crate::sched::Sched;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

impl Fallback for ggml_opt_optimizer_params {
    fn fallback() -> Self {
        settings::DEFAULT
    }
}

impl Fallback for ggml_opt_optimizer_type {
    fn fallback() -> Self {
        GGML_OPT_OPTIMIZER_TYPE_COUNT
    }
}

impl Fallback for ggml_opt_params {
    fn fallback() -> Self {
        default_params(null_mut(), GGML_OPT_LOSS_TYPE_MEAN)
    }
}

fn default_params(sched: ggml_backend_sched_t, loss_type: ggml_opt_loss_type) -> ggml_opt_params {
    ggml_opt_params {
        backend_sched: sched,
        ctx_compute: null_mut(),
        inputs: null_mut(),
        outputs: null_mut(),
        loss_type,
        build_type: GGML_OPT_BUILD_TYPE_OPT,
        opt_period: 1,
        get_opt_pars: Some(ggml_opt_get_default_optimizer_params),
        get_opt_pars_ud: null_mut(),
        optimizer: GGML_OPT_OPTIMIZER_TYPE_ADAMW,
    }
}

/// The scheduler that a context was given.
struct Handle(ggml_backend_sched_t);

impl Scheduler for Handle {
    fn with(&self, f: &mut dyn FnMut(&mut Sched) -> Result<(), Error>) -> Result<(), Error> {
        // SAFETY: the contract of the entry points: the scheduler outlives the contexts that were given it.
        let mut sched = unsafe { super::sched::some(self.0) }?;
        f(&mut sched)
    }
}

fn scheduler(sched: ggml_backend_sched_t) -> Result<Box<dyn Scheduler>, Error> {
    match sched.is_null() {
        true => Err(Error::null("scheduler")),
        false => Ok(Box::new(Handle(sched))),
    }
}

unsafe fn context<'a>(ctx: ggml_opt_context_t) -> Result<&'a Shared<Opt>, Error> {
    // SAFETY: the contract of the entry points: handles are made from boxes.
    unsafe { ctx.cast::<Shared<Opt>>().as_ref() }.ok_or_else(|| Error::null("context"))
}

unsafe fn dataset<'a>(dataset: ggml_opt_dataset_t) -> Result<&'a Shared<Dataset>, Error> {
    // SAFETY: as above.
    unsafe { dataset.cast::<Shared<Dataset>>().as_ref() }.ok_or_else(|| Error::null("dataset"))
}

unsafe fn result<'a>(result: ggml_opt_result_t) -> Result<&'a Shared<Outcome>, Error> {
    // SAFETY: as above.
    unsafe { result.cast::<Shared<Outcome>>().as_ref() }.ok_or_else(|| Error::null("result"))
}

/// A fact of a context's.
unsafe fn ask<T: Fallback>(call: &str, ctx: ggml_opt_context_t, fact: impl FnOnce(&Opt) -> T) -> T {
    // SAFETY: the contract of the entry points.
    or_report(call, unsafe { context(ctx) }.and_then(|opt| Ok(fact(&*read(opt, "context")?))))
}

/// Stores a number, if there is a place for it.
unsafe fn store<T>(out: *mut T, value: T) {
    // SAFETY: the contract of the entry points.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = value;
    }
}

entry! {
    /// A dataset of `ndata` datapoints of `ne_datapoint` elements of format `type_data`, and as many labels of `ne_label` elements of
    /// format `type_label`; no labels if `ne_label` is 0. Datapoints are shuffled and copied in shards of `ndata_shard`; what does not fill a
    /// shard at the end is not used. NULL when there can be none or no memory for it.
    pub fn ggml_opt_dataset_init(
        type_data: ggml_type,
        type_label: ggml_type,
        ne_datapoint: i64,
        ne_label: i64,
        ndata: i64,
        ndata_shard: i64,
    ) -> ggml_opt_dataset_t {
        let shape = Shape { data: (type_data, ne_datapoint), labels: (type_label, ne_label), n: ndata, per_shard: ndata_shard };
        let made = Dataset::new(shape).map(|d| Box::into_raw(Box::new(Shared::new(d))).cast());
        or_report("ggml_opt_dataset_init", made)
    }

    /// Frees a dataset and its tensors.
    pub fn ggml_opt_dataset_free(dataset: ggml_opt_dataset_t) {
        if !dataset.is_null() {
            drop(Box::from_raw(dataset.cast::<Shared<Dataset>>()));
        }
    }

    /// Datapoints of a dataset.
    pub fn ggml_opt_dataset_ndata(dataset: ggml_opt_dataset_t) -> i64 {
        let n = self::dataset(dataset).and_then(|d| Ok(read(d, "dataset")?.n()));
        or_report("ggml_opt_dataset_ndata", n)
    }

    /// The data: [ne_datapoint, ndata], in the host's memory.
    pub fn ggml_opt_dataset_data(dataset: ggml_opt_dataset_t) -> *mut ggml_tensor {
        or_report("ggml_opt_dataset_data", self::dataset(dataset).and_then(|d| Ok(read(d, "dataset")?.data())))
    }

    /// The labels: [ne_label, ndata], in the host's memory. NULL when there are none.
    pub fn ggml_opt_dataset_labels(dataset: ggml_opt_dataset_t) -> *mut ggml_tensor {
        or_report("ggml_opt_dataset_labels", self::dataset(dataset).and_then(|d| Ok(read(d, "dataset")?.labels())))
    }

    /// Shuffles the first `idata` datapoints, a whole number of shards, or all if it is negative, with the generator of `opt_ctx`. The
    /// order is the same for each new context, and that of ggml built with GNU's C++ library.
    pub fn ggml_opt_dataset_shuffle(opt_ctx: ggml_opt_context_t, dataset: ggml_opt_dataset_t, idata: i64) {
        or_report("ggml_opt_dataset_shuffle", context(opt_ctx).and_then(|opt| {
            let dataset = self::dataset(dataset)?;
            write(dataset, "dataset")?.shuffle(write(opt, "context")?.random(), idata)
        }))
    }

    /// Copies batch `ibatch` to `data_batch` [ne_datapoint, ndata_batch] and `labels_batch` [ne_label, ndata_batch], which are contiguous
    /// and of the dataset's formats. `labels_batch` is NULL if there are no labels.
    pub fn ggml_opt_dataset_get_batch(
        dataset: ggml_opt_dataset_t,
        data_batch: *mut ggml_tensor,
        labels_batch: *mut ggml_tensor,
        ibatch: i64,
    ) {
        const CALL: &str = "ggml_opt_dataset_get_batch";
        let got = self::dataset(dataset).and_then(|d| read(d, "dataset")?.get(CALL, data_batch, labels_batch, ibatch));
        or_report(CALL, got)
    }

    /// Copies batch `ibatch` of `nb_data_batch` bytes of data to `data_batch`, and its labels to `labels_batch`, NULL if there are none.
    pub fn ggml_opt_dataset_get_batch_host(
        dataset: ggml_opt_dataset_t,
        data_batch: *mut c_void,
        nb_data_batch: usize,
        labels_batch: *mut c_void,
        ibatch: i64,
    ) {
        or_report("ggml_opt_dataset_get_batch_host", self::dataset(dataset).and_then(|d| {
            read(d, "dataset")?.get_host(data_batch.cast(), nb_data_batch, labels_batch.cast(), ibatch)
        }))
    }

    /// Constant settings that suit most cases. `userdata` is not used.
    pub fn ggml_opt_get_default_optimizer_params(userdata: *mut c_void) -> ggml_opt_optimizer_params {
        let _ = userdata;
        settings::DEFAULT
    }

    /// The settings that `userdata` points to, a `ggml_opt_optimizer_params`.
    pub fn ggml_opt_get_constant_optimizer_params(userdata: *mut c_void) -> ggml_opt_optimizer_params {
        let settings = userdata.cast::<ggml_opt_optimizer_params>().as_ref().copied();
        or_report("ggml_opt_get_constant_optimizer_params", settings.ok_or_else(|| Error::null("pointer to the settings")))
    }

    /// What `ggml_opt_init` is told if nothing else is wanted: steps of AdamW with the default settings after each backward pass, and
    /// graphs that are given for each evaluation.
    pub fn ggml_opt_default_params(backend_sched: ggml_backend_sched_t, loss_type: ggml_opt_loss_type) -> ggml_opt_params {
        default_params(backend_sched, loss_type)
    }

    /// A context for training. With `ctx_compute`, `inputs` and `outputs` its graphs are built there at once, and `inputs` and all
    /// parameters must have their data; without, `ggml_opt_prepare_alloc` gives a graph for each evaluation. NULL when the graph
    /// cannot be differentiated, or there is no room or no memory.
    pub fn ggml_opt_init(params: ggml_opt_params) -> ggml_opt_context_t {
        let made = scheduler(params.backend_sched).and_then(|sched| Opt::new(&params, sched));
        or_report("ggml_opt_init", made.map(|opt| Box::into_raw(Box::new(Shared::new(opt))).cast()))
    }

    /// Frees a context, with accumulators and moments. The parameters are the caller's.
    pub fn ggml_opt_free(opt_ctx: ggml_opt_context_t) {
        if !opt_ctx.is_null() {
            drop(Box::from_raw(opt_ctx.cast::<Shared<Opt>>()));
        }
    }

    /// Sets gradients to 0 and begins a new period; with `optimizer` forgets moments and counts steps from 1 again.
    pub fn ggml_opt_reset(opt_ctx: ggml_opt_context_t, optimizer: bool) {
        or_report("ggml_opt_reset", context(opt_ctx).and_then(|opt| write(opt, "context")?.reset(optimizer)))
    }

    /// Whether the graphs were built once, by `ggml_opt_init`.
    pub fn ggml_opt_static_graphs(opt_ctx: ggml_opt_context_t) -> bool {
        ask("ggml_opt_static_graphs", opt_ctx, Opt::has_fixed_graphs)
    }

    /// What data go into. This and the following tensors are valid until the next `ggml_opt_alloc` unless graphs were built once.
    pub fn ggml_opt_inputs(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_inputs", opt_ctx, |opt| opt.tensors().inputs)
    }

    /// What the model answers.
    pub fn ggml_opt_outputs(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_outputs", opt_ctx, |opt| opt.tensors().outputs)
    }

    /// What outputs are compared with; NULL for a loss without labels.
    pub fn ggml_opt_labels(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_labels", opt_ctx, |opt| opt.tensors().labels)
    }

    /// The loss, one f32.
    pub fn ggml_opt_loss(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_loss", opt_ctx, |opt| opt.tensors().loss)
    }

    /// The class predicted for each datapoint, i32; NULL but for cross entropy.
    pub fn ggml_opt_pred(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_pred", opt_ctx, |opt| opt.tensors().predictions)
    }

    /// How many predictions are right, one i64; NULL but for cross entropy.
    pub fn ggml_opt_ncorrect(opt_ctx: ggml_opt_context_t) -> *mut ggml_tensor {
        ask("ggml_opt_ncorrect", opt_ctx, |opt| opt.tensors().n_right)
    }

    /// What the gradient of a node of the forward pass is summed up in, or NULL.
    pub fn ggml_opt_grad_acc(opt_ctx: ggml_opt_context_t, node: *mut ggml_tensor) -> *mut ggml_tensor {
        ask("ggml_opt_grad_acc", opt_ctx, |opt| opt.grad_acc(node))
    }

    /// The optimizer of a context.
    pub fn ggml_opt_context_optimizer_type(opt_ctx: ggml_opt_context_t) -> ggml_opt_optimizer_type {
        ask("ggml_opt_context_optimizer_type", opt_ctx, Opt::optimizer)
    }

    /// "adamw", "sgd", or "undefined".
    pub fn ggml_opt_optimizer_name(optimizer: ggml_opt_optimizer_type) -> *const c_char {
        settings::name(optimizer).as_ptr()
    }

    /// An empty result.
    pub fn ggml_opt_result_init() -> ggml_opt_result_t {
        Box::into_raw(Box::new(Shared::new(Outcome::default()))).cast()
    }

    /// Frees a result.
    pub fn ggml_opt_result_free(result: ggml_opt_result_t) {
        if !result.is_null() {
            drop(Box::from_raw(result.cast::<Shared<Outcome>>()));
        }
    }

    /// Empties a result.
    pub fn ggml_opt_result_reset(result: ggml_opt_result_t) {
        or_report("ggml_opt_result_reset", self::result(result).and_then(|r| {
            write(r, "result")?.reset();
            Ok(())
        }))
    }

    /// Datapoints that went into a result.
    pub fn ggml_opt_result_ndata(result: ggml_opt_result_t, ndata: *mut i64) {
        or_report("ggml_opt_result_ndata", self::result(result).and_then(|r| {
            store(ndata, read(r, "result")?.n());
            Ok(())
        }))
    }

    /// The loss: of a datapoint on average and the standard error of that, or for `GGML_OPT_LOSS_TYPE_SUM` of all datapoints and the
    /// standard deviation of batches. The second is NaN with fewer than two batches. Either pointer may be NULL.
    pub fn ggml_opt_result_loss(result: ggml_opt_result_t, loss: *mut f64, unc: *mut f64) {
        or_report("ggml_opt_result_loss", self::result(result).and_then(|r| {
            let (value, uncertainty) = read(r, "result")?.loss();
            store(loss, value);
            store(unc, uncertainty);
            Ok(())
        }))
    }

    /// The predictions: one for each datapoint, as `ggml_opt_result_ndata` counts them, and none if the loss has no classes.
    pub fn ggml_opt_result_pred(result: ggml_opt_result_t, pred: *mut i32) {
        or_report("ggml_opt_result_pred", self::result(result).and_then(|r| {
            let outcome = read(r, "result")?;
            let list = outcome.predictions();
            match (list.is_empty(), pred.is_null()) {
                (true, _) => Ok(()),
                (false, true) => Err(Error::null("list of predictions")),
                (false, false) => {
                    pred.copy_from(list.as_ptr(), list.len());
                    Ok(())
                }
            }
        }))
    }

    /// The share of right predictions and its uncertainty; NaN where they are not known. Either pointer may be NULL.
    pub fn ggml_opt_result_accuracy(result: ggml_opt_result_t, accuracy: *mut f64, unc: *mut f64) {
        or_report("ggml_opt_result_accuracy", self::result(result).and_then(|r| {
            let (value, uncertainty) = read(r, "result")?.accuracy();
            store(accuracy, value);
            store(unc, uncertainty);
            Ok(())
        }))
    }

    /// Gives a context that has no graphs of its own the forward graph of the next evaluation. All graphs of a context have the same
    /// parameters in the same order. `ctx_compute` takes the loss, the backward pass and the steps, and must have room for them.
    pub fn ggml_opt_prepare_alloc(
        opt_ctx: ggml_opt_context_t,
        ctx_compute: *mut ggml_context,
        gf: *mut ggml_cgraph,
        inputs: *mut ggml_tensor,
        outputs: *mut ggml_tensor,
    ) {
        let given = Given { ctx: ctx_compute, forward: gf, inputs, outputs };
        let taken = context(opt_ctx).and_then(|opt| step::prepare(&mut *write(opt, "context")?, given));
        or_report("ggml_opt_prepare_alloc", taken)
    }

    /// Gives the next evaluation its memory: a forward pass, or with `backward` also gradients, and a step of the optimizer where it
    /// ends a period. Inputs and labels are set afterwards.
    pub fn ggml_opt_alloc(opt_ctx: ggml_opt_context_t, backward: bool) {
        or_report("ggml_opt_alloc", context(opt_ctx).and_then(|opt| step::allocate(&mut *write(opt, "context")?, backward)))
    }

    /// Computes what was allocated and adds it to `result`, which may be NULL. Only backward passes count for the period. When the
    /// settings are refused nothing is computed, and it can be called again.
    pub fn ggml_opt_eval(opt_ctx: ggml_opt_context_t, result: ggml_opt_result_t) {
        or_report("ggml_opt_eval", context(opt_ctx).and_then(|opt| {
            let batch = step::evaluate(opt)?;
            match result.is_null() {
                true => Ok(()),
                false => write(self::result(result)?, "result")?.add(batch),
            }
        }))
    }

    /// Trains on the first `idata_split` datapoints, all if it is negative, and evaluates the others. Results may be NULL; callbacks,
    /// which may be NULL too, are called after each batch. Ends at the first error.
    pub fn ggml_opt_epoch(
        opt_ctx: ggml_opt_context_t,
        dataset: ggml_opt_dataset_t,
        result_train: ggml_opt_result_t,
        result_eval: ggml_opt_result_t,
        idata_split: i64,
        callback_train: ggml_opt_epoch_callback,
        callback_eval: ggml_opt_epoch_callback,
    ) {
        or_report("ggml_opt_epoch", context(opt_ctx).and_then(|opt| {
            let after = |p: &Progress| {
                let (callback, into) = match p.train {
                    true => (callback_train, result_train),
                    false => (callback_eval, result_eval),
                };
                if let Some(callback) = callback {
                    let start = super::ggml::system::ggml_time_us() - p.start.elapsed().as_micros() as i64;
                    callback(p.train, opt_ctx, dataset, into, p.done, p.all, start);
                }
                Ok(())
            };
            let results = [result_train, result_eval].map(|r| result(r).ok());
            epoch::run(opt, self::dataset(dataset)?, results[0], results[1], idata_split, after)
        }))
    }

    /// A callback for `ggml_opt_epoch` that writes a line with a bar, loss, accuracy and times to standard error.
    pub fn ggml_opt_epoch_callback_progress_bar(
        train: bool,
        opt_ctx: ggml_opt_context_t,
        dataset: ggml_opt_dataset_t,
        result: ggml_opt_result_t,
        ibatch: i64,
        ibatch_max: i64,
        t_start_us: i64,
    ) {
        let _ = dataset;
        or_report("ggml_opt_epoch_callback_progress_bar", context(opt_ctx).and_then(|opt| {
            let inputs = read(opt, "context")?.tensors().inputs;
            let batch = inputs.as_ref().map_or(0, |t| t.ne[1]);
            let elapsed = Duration::from_micros(super::ggml::system::ggml_time_us().saturating_sub(t_start_us).max(0) as u64);
            let p = Progress { train, done: ibatch, all: ibatch_max, start: Instant::now() };
            let none = Shared::new(Outcome::default());
            let line = progress::line(&p, batch, &*read(self::result(result).unwrap_or(&none), "result")?, elapsed);
            // without a standard error nobody looks
            let _ = std::io::stderr().write_all(line.as_bytes());
            Ok(())
        }))
    }

    /// Trains the model from `inputs` [ne_datapoint, ndata_batch] to `outputs` ([ne_label, ndata_batch] if there are labels) for `nepoch`
    /// epochs. Steps are made after `nbatch_logical` datapoints, a multiple of `ndata_batch`; a share `val_split`, from 0 to below 1, of the
    /// dataset is only evaluated. `get_opt_pars` is given a pointer to the number of the epoch, int64_t, from 1. `silent`: no lines on
    /// standard error. Ends at the first error.
    pub fn ggml_opt_fit(
        backend_sched: ggml_backend_sched_t,
        ctx_compute: *mut ggml_context,
        inputs: *mut ggml_tensor,
        outputs: *mut ggml_tensor,
        dataset: ggml_opt_dataset_t,
        loss_type: ggml_opt_loss_type,
        optimizer: ggml_opt_optimizer_type,
        get_opt_pars: ggml_opt_get_optimizer_params,
        nepoch: i64,
        nbatch_logical: i64,
        val_split: f32,
        silent: bool,
    ) {
        let defaults = default_params(backend_sched, loss_type);
        let params = ggml_opt_params { ctx_compute, inputs, outputs, optimizer, get_opt_pars, ..defaults };
        let fit = Fit { params, n_epochs: nepoch, logical: nbatch_logical, val_split, silent };
        or_report("ggml_opt_fit", self::dataset(dataset).and_then(|dataset| {
            if ctx_compute.is_null() {
                return Err(Error::null("context for graphs"));
            }
            fit::run(&fit, dataset, scheduler(backend_sched)?)
        }))
    }
}
