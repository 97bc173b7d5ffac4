//! Structures of ggml-opt.h.

use crate::*;
use core::ffi::c_void;

/// Data and labels to train on; opaque.
#[repr(C)]
pub struct ggml_opt_dataset {
    _opaque: [u8; 0],
}
/// Handle of a dataset.
pub type ggml_opt_dataset_t = *mut ggml_opt_dataset;

/// What is trained, and how; opaque.
#[repr(C)]
pub struct ggml_opt_context {
    _opaque: [u8; 0],
}
/// Handle of an optimization context.
pub type ggml_opt_context_t = *mut ggml_opt_context;

/// Losses and predictions of the batches so far; opaque.
#[repr(C)]
pub struct ggml_opt_result {
    _opaque: [u8; 0],
}
/// Handle of a result.
pub type ggml_opt_result_t = *mut ggml_opt_result;

/// Settings of AdamW.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ggml_opt_adamw_params {
    /// Learning rate, above 0.
    pub alpha: f32,
    /// Share of the first moment that is kept, 0 to 1.
    pub beta1: f32,
    /// Share of the second moment that is kept, 0 to 1.
    pub beta2: f32,
    /// Keeps the division finite.
    pub eps: f32,
    /// Weight decay, 0 to 1.
    pub wd: f32,
}

/// Settings of stochastic gradient descent.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ggml_opt_sgd_params {
    /// Learning rate, above 0.
    pub alpha: f32,
    /// Weight decay, 0 to 1.
    pub wd: f32,
}

/// Settings of the optimizers, of which one is used.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ggml_opt_optimizer_params {
    /// Of AdamW.
    pub adamw: ggml_opt_adamw_params,
    /// Of stochastic gradient descent.
    pub sgd: ggml_opt_sgd_params,
}

/// Asked for the settings before each step.
pub type ggml_opt_get_optimizer_params =
    Option<unsafe extern "C" fn(userdata: *mut c_void) -> ggml_opt_optimizer_params>;

/// What `ggml_opt_init` is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ggml_opt_params {
    /// Computes the graphs.
    pub backend_sched: ggml_backend_sched_t,
    /// With `inputs` and `outputs`: graphs are built here once. NULL: `ggml_opt_prepare_alloc` gives a new graph for each evaluation.
    pub ctx_compute: *mut ggml_context,
    /// What data go into: [ne_datapoint, ndata_batch].
    pub inputs: *mut ggml_tensor,
    /// What is compared with the labels: [ne_label, ndata_batch].
    pub outputs: *mut ggml_tensor,
    /// What is made small.
    pub loss_type: ggml_opt_loss_type,
    /// How much there is room for.
    pub build_type: ggml_opt_build_type,
    /// Backward passes whose gradients are summed up for one step.
    pub opt_period: i32,
    /// Asked for the settings of the optimizer.
    pub get_opt_pars: ggml_opt_get_optimizer_params,
    /// Handed to `get_opt_pars`.
    pub get_opt_pars_ud: *mut c_void,
    /// How steps are made.
    pub optimizer: ggml_opt_optimizer_type,
}

/// Called after each batch of an epoch: `ibatch` of `ibatch_max` are done, the first began at `t_start_us`.
pub type ggml_opt_epoch_callback = Option<
    unsafe extern "C" fn(
        train: bool,
        opt_ctx: ggml_opt_context_t,
        dataset: ggml_opt_dataset_t,
        result: ggml_opt_result_t,
        ibatch: i64,
        ibatch_max: i64,
        t_start_us: i64,
    ),
>;
