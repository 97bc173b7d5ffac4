//! Computing a graph without the scheduler: registrations for single nodes take part, through a plan that lives as long as the call.

use super::plan::{self, Plan};
use super::policy;
use super::registry;
use super::workspace::Workspace;
use crate::backend::Backend;
use crate::error::{self, Error};
use crate::graph;
use ggml_oxide_abi::*;

const CALL: &str = "ggml_backend_graph_compute";

/// Starts computing a graph whose tensors are allocated. With launches in it, it is computed when the call is back: the plan ends there.
///
/// # Safety
/// As [`Backend::compute_async`].
pub unsafe fn compute_async(backend: Backend, graph: *mut ggml_cgraph) -> ggml_status {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = match graph.as_mut() {
            Some(g) if registry::any_kernel() || registry::any_op() => make(backend, g),
            _ => Ok(None),
        };
        match plan {
            Ok(None) => backend.compute_async(graph),
            Ok(Some(plan)) => run(backend, &*graph, &plan),
            Err(e) => failed(e),
        }
    }
}

fn failed(error: Error) -> ggml_status {
    let error = error.within(CALL);
    error::report(&error);
    error.status
}

/// The plan, if it has launches.
unsafe fn make(backend: Backend, graph: &mut ggml_cgraph) -> Result<Option<Plan>, Error> {
    // SAFETY: the promise of `compute_async`.
    unsafe {
        if let Some(fault) = graph::fault(graph) {
            return Err(fault);
        }
        policy::refresh();
        Ok(plan::build(backend, graph, None)?.filter(|plan| !plan.is_native()))
    }
}

unsafe fn run(backend: Backend, graph: &ggml_cgraph, plan: &Plan) -> ggml_status {
    let mut workspace = Workspace::default();
    let result = backend
        .buft()
        .ok_or_else(|| Error::new(GGML_EXT_CODE_BACKEND, format!("backend '{}' has no memory", backend.name())))
        .and_then(|buft| workspace.reserve(plan, buft))
        // SAFETY: the promise of `compute_async`.
        .and_then(|()| unsafe { plan.run(graph, 0..graph.n_nodes.max(0) as usize, workspace.buffer()) });
    // the plan, its states and its workspace end here, and with them what was enqueued must
    backend.synchronize();
    result.unwrap_or_else(failed)
}
