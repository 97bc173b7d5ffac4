//! Running a plan: native ranges as the backend runs graphs, launches between them, in order.

use super::plan::{Launch, Native, Plan, Step};
use super::registry::{self, count, Contents};
use super::{callback, op, profile, step};
use crate::backend::{cpu, Backend, Buffer};
use crate::error::Error;
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Calls, Stop};
use ggml_oxide_shape as shape;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Why a plan must not run.
fn stale(backend: Backend, why: &str) -> Error {
    let text = format!(
        "the plan for backend '{}' is stale: {why}; reset the scheduler and allocate the graph anew",
        backend.name()
    );
    Error::new(GGML_EXT_CODE_STALE_PLAN, text)
}

const CHANGED: &str = "a registration or a policy changed since it was made";

/// Whether a portion that was found to be all of `backend`'s own code, when the last change had number `since`, still is. `fuses`: nodes
/// of it may be fused.
///
/// # Safety
/// `nodes` are those of the portion, live.
pub unsafe fn check_native(backend: Backend, nodes: &[*mut ggml_tensor], fuses: bool, since: u64) -> Result<(), Error> {
    let Some(device) = backend.device() else { return Ok(()) };
    let mut contents = Contents::new(fuses);
    // SAFETY: the caller's promise.
    nodes.iter().for_each(|&t| contents.add(unsafe { &*t }));
    registry::still_holds(device, &contents, since).map(|_| ()).ok_or_else(|| stale(backend, CHANGED))
}

impl Plan {
    /// Whether the plan may still run.
    ///
    /// # Safety
    /// `nodes` are those of the portion that it was made for, live.
    pub unsafe fn check(&self, nodes: &[*mut ggml_tensor], observed: bool) -> Result<(), Error> {
        if self.is_outdated() {
            return Err(stale(self.backend, CHANGED));
        }
        if observed && self.fused {
            return Err(stale(self.backend, "it fuses nodes, and a callback is now to see each of them"));
        }
        for launch in self.launches() {
            // SAFETY: the caller's promise.
            if !unsafe { launch.holds(nodes) } {
                let name = &launch.kernel.name;
                // SAFETY: as above.
                let node = nodes.get(launch.nodes.end - 1).map(|&t| (t, shape::name(unsafe { &*t })));
                let what =
                    node.as_ref().map_or_else(|| "the graph".into(), |(_, n)| format!("node '{n}' or what it reads"));
                let error =
                    stale(self.backend, &format!("{what} changed since registration '{name}' was chosen")).by(name);
                return Err(error.at(node.map_or(std::ptr::null(), |(t, _)| t)));
            }
        }
        Ok(())
    }

    /// Runs the steps that lie in `range`, a range of nodes that cuts no fusion. A failure of native code is reported where it happens
    /// and answered as a status.
    ///
    /// # Safety
    /// `graph` is the portion that the plan was made for; its tensors are live and have their data. `workspace` has as many bytes as the
    /// plan asks for. All stay until the backend was synchronised.
    pub unsafe fn run(
        &self,
        graph: &ggml_cgraph,
        range: Range<usize>,
        workspace: Option<Buffer>,
    ) -> Result<ggml_status, Error> {
        // one entry into the CPU's threads for all steps; step by step where each is timed
        if range == (0..graph.n_nodes.max(0) as usize) && !profile::is_on() {
            // SAFETY: the caller's promise.
            if let Some(result) = unsafe { self.run_on_cpu(graph, workspace) } {
                return result;
            }
        }
        // the steps are in the order of the nodes: a callback that looks at each node asks for one short range after the other
        let first = self.steps.partition_point(|step| step.nodes().end <= range.start);
        for step in self.steps[first..].iter().take_while(|step| step.nodes().start < range.end) {
            match step {
                Step::Native(Native { nodes, time }) => {
                    let (first, end) = (nodes.start.max(range.start), nodes.end.min(range.end));
                    let start = profile::start();
                    for shown in self.shown(first..end) {
                        let mut part = graph::view(graph, shown.start as i32, shown.end as i32);
                        // SAFETY: the caller's promise.
                        let status = unsafe { self.backend.compute_async(&mut part) };
                        if status != GGML_STATUS_SUCCESS {
                            return Ok(status);
                        }
                    }
                    time.stop_piece(start, first == nodes.start);
                }
                Step::Launch(launch) => {
                    // SAFETY: the caller's promise.
                    unsafe { self.launch(launch, graph::nodes(graph), workspace) }?;
                }
            }
        }
        Ok(GGML_STATUS_SUCCESS)
    }

    /// The whole plan on a CPU backend; `None`: it is another backend.
    unsafe fn run_on_cpu(&self, graph: &ggml_cgraph, workspace: Option<Buffer>) -> Option<Result<ggml_status, Error>> {
        // SAFETY: the promise of `run`.
        let nodes = unsafe { graph::nodes(graph) };
        let failure = Cell::new(None);
        let run = |k: usize| {
            let launch = self.calls.get(k).and_then(|&step| self.steps.get(step));
            let Some(Step::Launch(launch)) = launch else { return Ok(()) };
            // SAFETY: the promise of `run`.
            unsafe { self.launch(launch, nodes, workspace) }.map_err(|error| {
                let status = error.status.0;
                failure.set(Some(error));
                Stop::Status { node: std::ptr::null(), status, text: String::new() }
            })
        };
        let calls = Calls { ranges: &self.ranges, run: &run };
        // SAFETY: the promise of `run`.
        let status = unsafe { cpu::compute_calls(self.backend.as_raw(), graph, calls) }?;
        Some(match failure.take() {
            // the abort callback ended it, whatever the launch made of that
            Some(error) if status == GGML_STATUS_ABORTED && error.status != status => Ok(status),
            Some(error) => Err(error),
            None => Ok(status),
        })
    }

    /// One launch.
    ///
    /// # Safety
    /// As [`Plan::run`]; `nodes` are those of the portion.
    pub unsafe fn launch(
        &self,
        launch: &Launch,
        nodes: &[*mut ggml_tensor],
        workspace: Option<Buffer>,
    ) -> Result<(), Error> {
        let kernel = &launch.kernel;
        let nodes = &nodes[launch.nodes.clone()];
        let Some(execute) = kernel.calls.execute else {
            return Err(Error::null("callback 'execute'").by(&kernel.name));
        };
        // SAFETY: the caller's promise.
        let step = unsafe { step::describe(self.device(), nodes, &launch.srcs) };
        let run = ggml_ext_run {
            struct_size: size_of::<ggml_ext_run>(),
            step: &step,
            backend: self.backend.as_raw(),
            workspace: match workspace {
                Some(buffer) if launch.workspace > 0 => buffer.as_raw(),
                _ => std::ptr::null_mut(),
            },
            workspace_size: launch.workspace,
            state: launch.state(),
        };
        let start = profile::start();
        // SAFETY: the callback takes a run and its own data.
        let status = callback::call(|| unsafe { execute(&run, kernel.data()) });
        if let Some(ns) = launch.time.stop(start) {
            kernel.counts.ns.fetch_add(ns, Ordering::Relaxed);
        }
        count(&kernel.counts.ran);
        if nodes.len() > 1 {
            kernel.counts.fused_nodes.fetch_add(nodes.len() as u64, Ordering::Relaxed);
        }
        if status == GGML_STATUS_SUCCESS {
            return Ok(());
        }
        count(&kernel.counts.errors);
        let name = &kernel.name;
        // SAFETY: the caller's promise; a launch has at least one node.
        let t = unsafe { &*nodes[nodes.len() - 1] };
        let reason = callback::reason("it gave no reason");
        let (node, op) = (shape::name(t), op::op_name(t));
        let text = format!("registration '{name}', node '{node}' ({op}): execute answered {status:?}: {reason}");
        Err(Error { status, ..Error::new(GGML_EXT_CODE_CALLBACK, text) }.by(name).at(t))
    }
}
