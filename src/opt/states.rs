//! What lasts from one evaluation to the next: accumulators and moments, the numbers of the optimizer, and with fixed graphs the results.

use super::context::{Owned, Plan};
use super::{nodes, settings};
use crate::alloc::{room, whole};
use crate::backend::{host, tensor_data, Buft};
use crate::error::Error;
use crate::tensor::{self, set_name, Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

/// Of one parameter; NULL where the plan has no such.
#[derive(Clone, Copy)]
pub struct State {
    pub acc: *mut ggml_tensor,
    pub m: *mut ggml_tensor,
    pub v: *mut ggml_tensor,
}

/// Tensors for results that fixed graphs need: labels, up to five for the loss, prediction, two for what is right.
const N_RESULTS: usize = 9;

/// The lasting tensors of a context.
pub struct States {
    // the buffers go before the tensors in them
    buffer: Owned,
    numbers_buffer: Owned,
    /// Holds all but `numbers`.
    pub ctx: Box<Context>,
    _numbers_ctx: Option<Box<Context>>,
    /// The shape of each parameter in the order of the graph.
    shapes: Vec<[i64; GGML_MAX_DIMS]>,
    /// In the same order.
    pub params: Vec<State>,
    /// The gradient of the loss, which is 1; NULL without backward passes.
    pub loss: *mut ggml_tensor,
    /// What the optimizer's operator is given, in the host's memory; NULL without steps.
    pub numbers: *mut ggml_tensor,
}

impl States {
    /// States for `params`, not allocated yet.
    ///
    /// # Safety
    /// The parameters are live.
    pub unsafe fn new(plan: &Plan, params: &[*mut ggml_tensor]) -> Result<Self, Error> {
        let each = usize::from(plan.accumulates()) + 2 * usize::from(plan.has_moments());
        let n = params.len() * each + 1 + if plan.fixed { N_RESULTS } else { 0 };
        // SAFETY: a block of its own.
        let mut ctx = unsafe { Context::new(n * TENSOR_OVERHEAD, null_mut(), true) }?;
        let mut list = room::list(params.len())?;
        for &p in params {
            let mut make = |wanted: bool, word: &[u8]| match wanted {
                // SAFETY: the caller's promise.
                true => unsafe { nodes::state(&mut ctx, p, [word, b" for ", nodes::name(p)]) },
                false => Ok(null_mut()),
            };
            list.push(State {
                acc: make(plan.accumulates(), b"gradient")?,
                m: make(plan.has_moments(), b"AdamW m")?,
                v: make(plan.has_moments(), b"AdamW v")?,
            });
        }
        let none = || Owned(None);
        let (mut numbers, mut numbers_ctx) = (null_mut(), None);
        if plan.most == super::context::Build::Step {
            // SAFETY: a block of its own, and no sources.
            let mut ctx = unsafe { Context::new(TENSOR_OVERHEAD, null_mut(), true) }?;
            let n = settings::n_numbers(plan.optimizer) as i64;
            // SAFETY: no sources; made just now.
            unsafe {
                numbers = nodes::make(&mut ctx, tensor::new::leaf(GGML_TYPE_F32, &[n]), &[])?;
                (*numbers).flags |= GGML_TENSOR_FLAG_INPUT.0;
                set_name(&mut *numbers, [settings::name(plan.optimizer).to_bytes(), b"_params"]);
            }
            numbers_ctx = Some(ctx);
        }
        // SAFETY: the caller's promise.
        let shapes = room::collected(params.iter().map(|&p| unsafe { (*p).ne }))?;
        Ok(States {
            buffer: none(),
            numbers_buffer: none(),
            ctx,
            _numbers_ctx: numbers_ctx,
            shapes,
            params: list,
            loss: null_mut(),
            numbers,
        })
    }

    /// Whether these are states for `params`.
    ///
    /// # Safety
    /// The parameters are live.
    pub unsafe fn check(&self, params: &[*mut ggml_tensor]) -> Result<(), Error> {
        if params.len() != self.shapes.len() {
            let text = format!("the graph has {} parameters, the first one had {}", params.len(), self.shapes.len());
            return Err(Error::argument(text));
        }
        for (&p, &ne) in params.iter().zip(&self.shapes) {
            // SAFETY: the caller's promise.
            let t = unsafe { &*p };
            if t.ne != ne {
                let (now, before) = (tensor::show("parameter", t), tensor::dims(&ne));
                return Err(Error::shape(format!("{now} had the shape {before} in the first graph")).at(p));
            }
        }
        Ok(())
    }

    /// Gives all tensors of the context memory of `buft`, and the starting values.
    pub fn allocate(&mut self, buft: Buft) -> Result<(), Error> {
        let mut tensors = whole::tensors_of(&self.ctx)?;
        // SAFETY: the context's own tensors.
        self.buffer = Owned(unsafe { whole::alloc(&mut tensors, buft) }?);
        if !self.numbers.is_null() {
            // SAFETY: the context's own tensor.
            self.numbers_buffer = Owned(unsafe { whole::alloc(&mut [self.numbers], host::buffer_type_cpu()) }?);
        }
        self.zero_gradients();
        self.zero_moments();
        Ok(())
    }

    /// Whether [`States::allocate`] was called.
    pub fn allocated(&self) -> bool {
        self.buffer.0.is_some()
    }

    /// Sets the accumulators of parameters to 0, the gradient of the loss to 1.
    pub fn zero_gradients(&self) {
        self.params.iter().for_each(|p| zero(p.acc));
        if !self.loss.is_null() {
            let one = 1f32;
            let rows = tensor_data::Rows::range(0, 4);
            // SAFETY: a tensor of the context's, of one f32.
            unsafe { tensor_data::set("ggml_opt", self.loss, (&raw const one).cast(), rows) }
        }
    }

    /// Sets all moments to 0.
    pub fn zero_moments(&self) {
        self.params.iter().flat_map(|p| [p.m, p.v]).for_each(zero);
    }

    /// Gives the optimizer's operator its numbers.
    pub fn set_numbers(&self, numbers: &[f32]) {
        let rows = tensor_data::Rows::range(0, size_of_val(numbers));
        // SAFETY: a tensor of the context's; the size is checked against it.
        unsafe { tensor_data::set("ggml_opt_eval", self.numbers, numbers.as_ptr().cast(), rows) }
    }
}

fn zero(t: *mut ggml_tensor) {
    // SAFETY: NULL or a tensor of the context's, all of it.
    unsafe {
        if let Some(tensor) = t.as_ref() {
            tensor_data::memset("ggml_opt", t, 0, 0, shape::nbytes(tensor));
        }
    }
}
