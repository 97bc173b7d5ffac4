//! What is trained, and how far it is.

use super::copies::Run;
use super::random::Twister;
use super::states::States;
use super::{build, settings};
use crate::backend::Buffer;
use crate::error::Error;
use crate::graph::{access, build as graph_build, memory};
use crate::sched::Sched;
use crate::tensor::Context;
use ggml_oxide_abi::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// The scheduler that computes, which others may use between steps.
pub trait Scheduler {
    /// Runs `f` with the scheduler, which nobody else uses meanwhile.
    fn with(&self, f: &mut dyn FnMut(&mut Sched) -> Result<(), Error>) -> Result<(), Error>;
}

/// How much a graph computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Build {
    /// Results and loss.
    Forward,
    /// Gradients too.
    Gradients,
    /// A step of the optimizer too.
    Step,
}

impl Build {
    fn of(ty: ggml_opt_build_type) -> Result<Self, Error> {
        Ok(match ty {
            GGML_OPT_BUILD_TYPE_FORWARD => Build::Forward,
            GGML_OPT_BUILD_TYPE_GRAD => Build::Gradients,
            GGML_OPT_BUILD_TYPE_OPT => Build::Step,
            other => return Err(Error::argument(format!("there is no build type {}", other.0))),
        })
    }
}

/// What stays as it is told.
#[derive(Clone, Copy)]
pub struct Plan {
    pub loss: ggml_opt_loss_type,
    /// How much there is room for.
    pub most: Build,
    pub period: i32,
    pub optimizer: ggml_opt_optimizer_type,
    pub get_settings: unsafe extern "C" fn(*mut c_void) -> ggml_opt_optimizer_params,
    pub settings_data: *mut c_void,
    /// Graphs are built once, in the caller's context.
    pub fixed: bool,
}

impl Plan {
    /// Whether gradients of parameters are summed up in accumulators: not where each step follows its one backward pass in one graph.
    pub fn accumulates(&self) -> bool {
        self.most >= Build::Gradients && !(self.fixed && self.most == Build::Step && self.period == 1)
    }

    /// Whether parameters have moments.
    pub fn has_moments(&self) -> bool {
        self.most == Build::Step && self.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW
    }
}

/// The tensors of the forward pass, and what is made of them.
#[derive(Clone, Copy)]
pub struct Tensors {
    pub inputs: *mut ggml_tensor,
    pub outputs: *mut ggml_tensor,
    pub labels: *mut ggml_tensor,
    pub loss: *mut ggml_tensor,
    pub predictions: *mut ggml_tensor,
    pub n_right: *mut ggml_tensor,
}

/// No tensors.
const NO_TENSORS: Tensors = Tensors {
    inputs: null_mut(),
    outputs: null_mut(),
    labels: null_mut(),
    loss: null_mut(),
    predictions: null_mut(),
    n_right: null_mut(),
};

/// The graphs, each a continuation of the one before; NULL where there is none.
#[derive(Clone, Copy)]
pub struct Graphs {
    pub forward: *mut ggml_cgraph,
    pub gradients: *mut ggml_cgraph,
    pub step: *mut ggml_cgraph,
}

/// No graphs.
pub const NO_GRAPHS: Graphs = Graphs { forward: null_mut(), gradients: null_mut(), step: null_mut() };

impl Graphs {
    /// The one that computes as much as `build`.
    pub fn of(&self, build: Build) -> *mut ggml_cgraph {
        match build {
            Build::Forward => self.forward,
            Build::Gradients => self.gradients,
            Build::Step => self.step,
        }
    }
}

/// What an opaque `ggml_opt_context` is.
pub struct Opt {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) plan: Plan,
    pub(super) random: Twister,
    pub(super) compute: *mut ggml_context,
    pub(super) tensors: Tensors,
    pub(super) graphs: Graphs,
    pub(super) states: Option<States>,
    /// The graph that the scheduler has, if it has not been given another meanwhile.
    pub(super) at_hand: Option<(Build, Run)>,
    /// Between allocation and evaluation.
    pub(super) ready: bool,
    /// Number of the next step, from 1.
    pub(super) step: i64,
    /// Backward passes since the last step.
    pub(super) passes: i32,
    /// The accumulators hold gradients that a step has used.
    pub(super) used_up: bool,
}

impl Opt {
    /// A context. With `params.ctx_compute` the graphs are built at once.
    ///
    /// # Safety
    /// The context and the tensors that `params` names are NULL or live as long as this, with all that the outputs are computed from.
    pub unsafe fn new(params: &ggml_opt_params, scheduler: Box<dyn Scheduler>) -> Result<Self, Error> {
        if params.opt_period < 1 {
            return Err(Error::argument(format!("opt_period {} must be at least 1", params.opt_period)));
        }
        let plan = Plan {
            loss: build::known_loss(params.loss_type)?,
            most: Build::of(params.build_type)?,
            period: params.opt_period,
            optimizer: settings::known(params.optimizer)?,
            get_settings: params.get_opt_pars.ok_or_else(|| Error::null("callback get_opt_pars"))?,
            settings_data: params.get_opt_pars_ud,
            fixed: !params.ctx_compute.is_null(),
        };
        let mut opt = Opt {
            scheduler,
            plan,
            random: Twister::default(),
            compute: params.ctx_compute,
            tensors: Tensors { inputs: params.inputs, outputs: params.outputs, ..NO_TENSORS },
            graphs: NO_GRAPHS,
            states: None,
            at_hand: None,
            ready: false,
            step: 1,
            passes: 0,
            used_up: false,
        };
        if !plan.fixed {
            if !params.inputs.is_null() || !params.outputs.is_null() {
                return Err(Error::argument("inputs and outputs go with ctx_compute, which is NULL"));
            }
            return Ok(opt);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let ctx = opt.compute_context()?;
            let outputs = params.outputs.as_mut().ok_or_else(|| Error::null("outputs"))?;
            let graph = memory::new(ctx, GGML_DEFAULT_GRAPH_SIZE, true)?;
            opt.graphs.forward = graph;
            graph_build::expand(&mut *graph, outputs, true)?;
            build::build(&mut opt, plan.most)?;
        }
        Ok(opt)
    }

    /// The context that graphs are built in.
    pub(super) fn compute_context<'a>(&self) -> Result<&'a mut Context, Error> {
        // SAFETY: NULL or live, by the contracts of `new` and `prepare`.
        let ctx = unsafe { Context::from_ptr(self.compute) };
        let missing =
            || Error::argument("there is no context for graphs: call ggml_opt_prepare_alloc before ggml_opt_alloc");
        ctx.ok_or_else(missing)
    }

    /// Graphs are built once.
    pub fn has_fixed_graphs(&self) -> bool {
        self.plan.fixed
    }

    /// The optimizer.
    pub fn optimizer(&self) -> ggml_opt_optimizer_type {
        self.plan.optimizer
    }

    /// Backward passes for a step.
    pub fn period(&self) -> i32 {
        self.plan.period
    }

    /// The tensors of the graphs at hand.
    pub fn tensors(&self) -> Tensors {
        self.tensors
    }

    /// The generator that datasets are shuffled with.
    pub fn random(&mut self) -> &mut Twister {
        &mut self.random
    }

    /// What was allocated is not evaluated.
    pub(super) fn give_up(&mut self) {
        self.ready = false;
    }

    /// The accumulator of the gradient of `node`, or NULL.
    ///
    /// # Safety
    /// The graphs at hand are live; `node` is not followed.
    pub unsafe fn grad_acc(&self, node: *const ggml_tensor) -> *mut ggml_tensor {
        let graphs = [self.graphs.step, self.graphs.gradients];
        // SAFETY: the caller's promise.
        let graph = graphs.iter().find_map(|&g| unsafe { g.as_ref() });
        // SAFETY: the graph is whole.
        graph.map_or(null_mut(), |graph| unsafe { access::grad_acc(graph, node) })
    }

    /// Zeroes gradients, and with `optimizer` the moments too; steps then count from 1 again.
    pub fn reset(&mut self, optimizer: bool) -> Result<(), Error> {
        if self.plan.most == Build::Forward {
            return Err(Error::argument("the context was made for forward passes only"));
        }
        if let Some(states) = &self.states {
            states.zero_gradients();
            if optimizer {
                states.zero_moments();
            }
        }
        self.used_up = false;
        self.passes = 0;
        if optimizer {
            self.step = 1;
        }
        Ok(())
    }
}

/// Frees a buffer when it is dropped.
pub(super) struct Owned(pub Option<Buffer>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            // SAFETY: the owner's alone; tensors in it go with it.
            unsafe { buffer.free() }
        }
    }
}
