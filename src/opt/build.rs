//! The graphs of a context: the loss on the caller's outputs, the backward pass, the steps.

use super::context::{Build, Opt, Plan, Tensors, NO_GRAPHS};
use super::states::States;
use super::{nodes, settings};
use crate::alloc::room;
use crate::error::Error;
use crate::graph::{self, access, backward, build as grow, memory};
use crate::tensor::{elementwise, reduce, set_name, train, Context, NodeSpec};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

/// The loss, or that there is none of that number.
pub fn known_loss(loss: ggml_opt_loss_type) -> Result<ggml_opt_loss_type, Error> {
    match ggml_opt_loss_type::NAMES.iter().any(|&(_, l)| l == loss) {
        true => Ok(loss),
        false => Err(Error::argument(format!("there is no loss type {}", loss.0))),
    }
}

/// Whether the loss is that of a datapoint on average.
pub fn per_datapoint(loss: ggml_opt_loss_type) -> bool {
    loss != GGML_OPT_LOSS_TYPE_SUM
}

/// Builds the graphs up to `most` on the forward graph, and what they need for the first time.
///
/// # Safety
/// The context for graphs, the forward graph, its tensors, and inputs and outputs are NULL or live.
pub unsafe fn build(opt: &mut Opt, most: Build) -> Result<(), Error> {
    let first = opt.states.is_none();
    // SAFETY: the caller's promise.
    let built = unsafe { build_with_states(opt, most) };
    if built.is_err() && first {
        // half made, and for the parameters of a graph that is not used
        opt.states = None;
    }
    built
}

unsafe fn build_with_states(opt: &mut Opt, most: Build) -> Result<(), Error> {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let ctx = opt.compute_context()?;
        let forward = opt.graphs.forward;
        opt.graphs = super::context::Graphs { forward, ..NO_GRAPHS };
        let gf = forward.as_mut().ok_or_else(|| Error::null("forward graph"))?;
        if let Some(fault) = graph::fault(gf) {
            return Err(fault);
        }
        let params = check(&opt.plan, gf, &opt.tensors)?;
        let states = match &mut opt.states {
            Some(states) => {
                // they outlive a graph that they are not for
                states.check(&params)?;
                states
            }
            none => none.insert(States::new(&opt.plan, &params)?),
        };

        let results = if opt.plan.fixed { &mut *states.ctx } else { &mut *ctx };
        add_loss(results, gf, &opt.plan, &mut opt.tensors)?;
        if opt.plan.most >= Build::Gradients && states.loss.is_null() {
            states.loss =
                nodes::state(&mut states.ctx, opt.tensors.loss, [b"gradient for ", nodes::name(opt.tensors.loss)])?;
        }
        if most >= Build::Gradients {
            let gb = memory::new(ctx, gf.size.max(0) as usize, true)?;
            memory::copy(gf, &mut *gb)?;
            let mut state = states.params.iter();
            let acc = |&t: &*mut ggml_tensor| match (*t).flags & GGML_TENSOR_FLAG_PARAM.0 != 0 {
                true => state.next().map_or(null_mut(), |s| s.acc),
                false if t == opt.tensors.loss => states.loss,
                false => null_mut(),
            };
            let accs = room::collected(graph::checked_nodes(gf)?.iter().map(acc))?;
            backward::expand(ctx, &mut *gb, &accs)?;
            opt.graphs.gradients = gb;
        }
        if most == Build::Step {
            let gb = &*opt.graphs.gradients;
            let step = memory::new(ctx, gb.size.max(0) as usize, true)?;
            memory::copy(gb, &mut *step)?;
            add_steps(ctx, &mut *step, &opt.plan, states, &params)?;
            opt.graphs.step = step;
        }
        if !states.allocated() {
            let mut buft = None;
            opt.scheduler.with(&mut |s| {
                buft = s.backends().first().and_then(|b| b.buft());
                Ok(())
            })?;
            states
                .allocate(buft.ok_or_else(|| Error::argument("the first backend of the scheduler has no memory"))?)?;
        }
    }
    Ok(())
}

/// The parameters in the order of the graph.
unsafe fn check(plan: &Plan, gf: &ggml_cgraph, t: &Tensors) -> Result<Vec<*mut ggml_tensor>, Error> {
    // SAFETY: the promise of `build`.
    unsafe {
        let inputs = t.inputs.as_mut().ok_or_else(|| Error::null("inputs"))?;
        let outputs = t.outputs.as_mut().ok_or_else(|| Error::null("outputs"))?;
        if plan.fixed && inputs.data.is_null() {
            let text = "inputs have no data: they must be allocated before the graphs are built";
            return Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, text).at(t.inputs));
        }
        let mut params = Vec::new();
        for &node in graph::checked_nodes(gf)? {
            let flags = (*node).flags;
            if flags & GGML_TENSOR_FLAG_LOSS.0 != 0 {
                let text = format!("'{}' is a loss already: there can be no other", shape::name(&*node));
                return Err(Error::argument(text).at(node));
            }
            if flags & GGML_TENSOR_FLAG_PARAM.0 != 0 {
                room::push(&mut params, node)?;
            }
        }
        if params.is_empty() && plan.most >= Build::Gradients {
            return Err(Error::argument("the graph has no parameter: mark one with ggml_set_param before it is built"));
        }
        inputs.flags |= GGML_TENSOR_FLAG_INPUT.0;
        mark(outputs, GGML_TENSOR_FLAG_OUTPUT);
        Ok(params)
    }
}

/// Marks a tensor and what it looks at.
unsafe fn mark(t: &mut ggml_tensor, flag: ggml_tensor_flag) {
    t.flags |= flag.0;
    // SAFETY: NULL or live, as the tensor is.
    if let Some(root) = unsafe { t.view_src.as_mut() } {
        root.flags |= flag.0;
    }
}

/// Nodes made in one context.
struct Maker<'a>(&'a mut Context);

impl Maker<'_> {
    /// A node with a name.
    unsafe fn node(
        &mut self,
        name: &str,
        spec: Result<NodeSpec, Error>,
        sources: &[*mut ggml_tensor],
    ) -> Result<*mut ggml_tensor, Error> {
        // SAFETY: the callers give live sources, as many as the rule looked at.
        unsafe {
            let t = nodes::make(self.0, spec, sources)?;
            set_name(&mut *t, [name.as_bytes()]);
            Ok(t)
        }
    }

    /// The sum of `t`, times `scale`.
    unsafe fn sum(&mut self, name: &str, t: *mut ggml_tensor, scale: Option<f32>) -> Result<*mut ggml_tensor, Error> {
        // SAFETY: as above.
        unsafe {
            let sum = self.node("loss_sum", reduce::sum(&*t), &[t])?;
            match scale {
                Some(s) => self.node(name, elementwise::scale(&*sum, s, 0.0, false), &[sum]),
                None => Ok(sum),
            }
        }
    }
}

/// Loss, predictions, and how many are right; all of them in the graph.
unsafe fn add_loss(ctx: &mut Context, gf: &mut ggml_cgraph, plan: &Plan, t: &mut Tensors) -> Result<(), Error> {
    // SAFETY: the promise of `build`.
    unsafe {
        let mut make = Maker(ctx);
        let outputs = &*t.outputs;
        let period = f64::from(plan.period);
        let mean = (1.0 / (period * shape::nelements(outputs) as f64)) as f32;
        (t.labels, t.predictions, t.n_right) = (null_mut(), null_mut(), null_mut());
        let classes = plan.loss == GGML_OPT_LOSS_TYPE_CROSS_ENTROPY;
        if classes || plan.loss == GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR {
            t.labels = make.node("labels", Ok(crate::tensor::new::dup_tensor(outputs)), &[])?;
            (*t.labels).flags |= GGML_TENSOR_FLAG_INPUT.0;
        }
        let both = [t.outputs, t.labels];
        t.loss = match plan.loss {
            GGML_OPT_LOSS_TYPE_SUM => make.sum("loss_sum", t.outputs, None)?,
            GGML_OPT_LOSS_TYPE_MEAN => make.sum("loss_mean", t.outputs, Some(mean))?,
            GGML_OPT_LOSS_TYPE_CROSS_ENTROPY => {
                let loss = make.node("loss_cross_entropy", train::cross_entropy_loss(outputs, &*t.labels), &both)?;
                match plan.period {
                    1 => loss,
                    _ => {
                        let scaled = elementwise::scale(&*loss, (1.0 / period) as f32, 0.0, false);
                        make.node("loss_cross_entropy_scaled", scaled, &[loss])?
                    }
                }
            }
            _ => {
                let off =
                    make.node("loss_error", elementwise::binary(GGML_OP_SUB, outputs, &*t.labels, false), &both)?;
                let square = make.node("loss_squared_error", elementwise::plain(GGML_OP_SQR, &*off, false), &[off])?;
                make.sum("loss_mean_squared_error", square, Some(mean))?
            }
        };
        let loss = &mut *t.loss;
        if loss.r#type != GGML_TYPE_F32 {
            return Err(Error::shape(format!("{} must be f32", crate::tensor::show("outputs", outputs))).at(t.outputs));
        }
        loss.flags |= GGML_TENSOR_FLAG_OUTPUT.0 | GGML_TENSOR_FLAG_LOSS.0;
        grow::expand(gf, t.loss, true)?;
        if classes {
            t.predictions = make.node("pred", reduce::argmax(outputs), &[t.outputs])?;
            (*t.predictions).flags |= GGML_TENSOR_FLAG_OUTPUT.0;
            grow::expand(gf, t.predictions, true)?;
            let right = make.node("right", reduce::argmax(&*t.labels), &[t.labels])?;
            let pair = [t.predictions, right];
            t.n_right = make.node("ncorrect", reduce::count_equal(&*t.predictions, &*right), &pair)?;
            (*t.n_right).flags |= GGML_TENSOR_FLAG_OUTPUT.0;
            grow::expand(gf, t.n_right, true)?;
        }
    }
    Ok(())
}

/// A step for each parameter that has a gradient.
unsafe fn add_steps(
    ctx: &mut Context,
    graph: &mut ggml_cgraph,
    plan: &Plan,
    states: &States,
    params: &[*mut ggml_tensor],
) -> Result<(), Error> {
    let word = settings::name(plan.optimizer).to_bytes();
    for (&p, state) in params.iter().zip(&states.params) {
        // SAFETY: the promise of `build`.
        unsafe {
            let grad = access::grad(graph, p);
            if grad.is_null() {
                continue;
            }
            let (spec, sources) = match plan.optimizer {
                GGML_OPT_OPTIMIZER_TYPE_SGD => {
                    (train::sgd(&*p, &*grad, &*states.numbers), vec![p, grad, states.numbers])
                }
                _ => {
                    let spec = train::adamw(&*p, &*grad, &*state.m, &*state.v, &*states.numbers);
                    (spec, vec![p, grad, state.m, state.v, states.numbers])
                }
            };
            let step = nodes::make(ctx, spec, &sources).map_err(|e| e.at(p))?;
            set_name(&mut *step, [word, b" step for ", nodes::name(p)]);
            grow::expand(graph, step, true)?;
        }
    }
    Ok(())
}
