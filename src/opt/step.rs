//! One evaluation: allocate, and later compute.

use super::context::{Build, Opt, NO_GRAPHS};
use super::copies::Run;
use super::result::Batch;
use super::{build, settings, Shared};
use crate::backend::tensor_data::{self, Rows};
use crate::error::Error;
use ggml_oxide_abi::*;

/// The graph of the next evaluation, in a context that is made new for each.
pub struct Given {
    pub ctx: *mut ggml_context,
    pub forward: *mut ggml_cgraph,
    pub inputs: *mut ggml_tensor,
    pub outputs: *mut ggml_tensor,
}

/// Takes the graph for the next evaluation.
pub fn prepare(opt: &mut Opt, given: Given) -> Result<(), Error> {
    if opt.plan.fixed {
        return Err(Error::argument("the context has its graphs already: it was made with ctx_compute"));
    }
    if opt.ready {
        return Err(Error::argument("the graph before was allocated and not evaluated"));
    }
    opt.compute = given.ctx;
    (opt.tensors.inputs, opt.tensors.outputs) = (given.inputs, given.outputs);
    opt.graphs = super::context::Graphs { forward: given.forward, ..NO_GRAPHS };
    Ok(())
}

/// Gives the next evaluation its memory: a forward pass, or with `backward` gradients too and a step where a period ends.
///
/// # Safety
/// What [`prepare`] or [`Opt::new`] was given is live.
pub unsafe fn allocate(opt: &mut Opt, backward: bool) -> Result<(), Error> {
    if opt.ready {
        return Err(Error::argument("the graph before was allocated and not evaluated: call ggml_opt_eval"));
    }
    let wanted = match backward {
        false => Build::Forward,
        true if opt.plan.most == Build::Step && opt.passes + 1 >= opt.plan.period => Build::Step,
        true => Build::Gradients,
    };
    if wanted > opt.plan.most {
        return Err(Error::argument("the context was made for forward passes only"));
    }
    if !opt.plan.fixed {
        if opt.graphs.forward.is_null() {
            return Err(Error::argument("there is no graph: call ggml_opt_prepare_alloc before ggml_opt_alloc"));
        }
        // SAFETY: the caller's promise.
        let built = unsafe { build::build(opt, wanted) };
        if built.is_err() {
            opt.graphs = NO_GRAPHS;
        }
        built?;
    }
    let graph = opt.graphs.of(wanted);
    // SAFETY: a graph of the context's, whole and live.
    let graph = unsafe { graph.as_ref() }.ok_or_else(|| Error::argument("the graphs were not built"))?;
    if backward && opt.used_up && opt.plan.accumulates() {
        if let Some(states) = &opt.states {
            states.zero_gradients();
        }
        opt.used_up = false;
    }
    let before = opt.at_hand.take();
    let fixed = opt.plan.fixed;
    let mut now = None;
    opt.scheduler.with(&mut |s| {
        // SAFETY: the copy is the context's own, and live.
        let same = before.as_ref().filter(|(build, run)| *build == wanted && s.holds(unsafe { &*run.graph }));
        if same.is_some() {
            return Ok(());
        }
        s.reset();
        // SAFETY: the caller's promise.
        let run = unsafe {
            if fixed {
                Run::of(graph)?
            } else {
                Run::none(std::ptr::from_ref(graph).cast_mut())
            }
        };
        // SAFETY: as above.
        unsafe { s.prepare(run.graph) }?;
        now = Some((wanted, run));
        Ok(())
    })?;
    opt.at_hand = now.or(before);
    opt.ready = true;
    Ok(())
}

/// Computes what was allocated. The batch, for a result.
///
/// # Safety
/// As [`allocate`].
pub unsafe fn evaluate(shared: &Shared<Opt>) -> Result<Batch, Error> {
    let ask = {
        let opt = super::read(shared, "context")?;
        let (build, _) = opt
            .at_hand
            .as_ref()
            .filter(|_| opt.ready)
            .ok_or_else(|| Error::argument("nothing is allocated to evaluate: call ggml_opt_alloc"))?;
        (*build == Build::Step).then_some((opt.plan.get_settings, opt.plan.settings_data))
    };
    // the callback may look at the context
    // SAFETY: the caller's function with the caller's argument.
    let told = ask.map(|(ask, data)| unsafe { ask(data) });
    let mut opt = super::write(shared, "context")?;
    if let (Some(told), Some(states)) = (told, &opt.states) {
        states.set_numbers(&settings::numbers(opt.plan.optimizer, &told, opt.step)?);
    }
    // SAFETY: the caller's promise.
    unsafe { compute(&mut opt) }
}

unsafe fn compute(opt: &mut Opt) -> Result<Batch, Error> {
    let Some((build, run)) = opt.at_hand.as_ref().filter(|_| opt.ready) else {
        return Err(Error::argument("the context was used from its own callback"));
    };
    let (build, graph) = (*build, run.graph);
    opt.ready = false;
    let done = opt.scheduler.with(&mut |s| {
        // SAFETY: the promise of `evaluate`.
        let status = unsafe {
            if !s.holds(&*graph) {
                return Err(Error::argument("the scheduler was given another graph after ggml_opt_alloc"));
            }
            s.compute_async(graph)
        };
        s.synchronize();
        match status? {
            GGML_STATUS_SUCCESS => Ok(()),
            status => Err(Error { status, ..Error::new(GGML_EXT_CODE_BACKEND, "the graph was not computed") }),
        }
    });
    if !opt.plan.fixed {
        opt.graphs = NO_GRAPHS;
        opt.at_hand = None;
    }
    done?;
    match build {
        Build::Forward => {}
        Build::Gradients => opt.passes += 1,
        Build::Step => {
            opt.passes = 0;
            opt.step += 1;
            opt.used_up = true;
        }
    }
    // SAFETY: the tensors of the graph that ran.
    unsafe { results(opt) }
}

unsafe fn results(opt: &Opt) -> Result<Batch, Error> {
    const CALL: &str = "ggml_opt_eval";
    let t = opt.tensors;
    // SAFETY: the promise of `evaluate`; sizes are those of the tensors.
    unsafe {
        let n = (*t.outputs).ne[1];
        let mut loss = f32::NAN;
        tensor_data::get(CALL, t.loss, (&raw mut loss).cast(), Rows::range(0, 4));
        let mut predictions = Vec::new();
        if !t.predictions.is_null() {
            predictions.try_reserve_exact(n as usize)?;
            predictions.resize(n as usize, 0);
            tensor_data::get(CALL, t.predictions, predictions.as_mut_ptr().cast(), Rows::range(0, n as usize * 4));
        }
        let n_right = (!t.n_right.is_null()).then(|| {
            let mut right = 0i64;
            tensor_data::get(CALL, t.n_right, (&raw mut right).cast(), Rows::range(0, 8));
            right
        });
        let per_datapoint = build::per_datapoint(opt.plan.loss);
        Ok(Batch { n, loss, per_datapoint, period: opt.plan.period, predictions, n_right })
    }
}
