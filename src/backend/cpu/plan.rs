//! Plans of the CPU backend: a graph that is checked and turned into steps once and computed many times. Registrations take no
//! part in them.

use super::stream::{failed, Cpu, BUSY};
use crate::error;
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Calls, Executor, GraphRef};
use std::collections::HashMap;
use std::ffi::c_void;

const COMPUTE: &str = "ggml_backend_graph_plan_compute";

/// A graph's nodes, and the steps that were made of them.
struct Plan {
    nodes: Vec<*mut ggml_tensor>,
    /// How often each node is a source, where the graph knows.
    uses: Option<HashMap<*const ggml_tensor, i32>>,
    executor: Executor,
    steps: Option<Steps>,
}

/// What the executor's steps were made for.
#[derive(PartialEq)]
struct Steps {
    threads: usize,
    plain: bool,
    /// Where the nodes' and their sources' data were.
    data: Vec<*mut c_void>,
    need: usize,
}

impl Plan {
    /// # Safety
    /// The graph and its tensors are live.
    unsafe fn of(graph: &ggml_cgraph) -> Plan {
        // SAFETY: the caller's promise.
        let nodes = unsafe { graph::nodes(graph) };
        let uses = graph::has_use_counts(graph).then(|| {
            // SAFETY: as above.
            nodes.iter().map(|&t| (t.cast_const(), unsafe { graph::use_count(graph, t) })).collect()
        });
        Plan { nodes: nodes.to_vec(), uses, executor: Executor::new(), steps: None }
    }

    /// The plan of a graph that can be computed; `None`, reported, of another.
    ///
    /// # Safety
    /// The graph is NULL or live, and so are its tensors.
    unsafe fn of_sound(graph: *const ggml_cgraph, call: &str) -> Option<Plan> {
        // SAFETY: the caller's promise.
        let Some(graph) = (unsafe { graph.as_ref() }) else {
            error::fail(GGML_EXT_CODE_NULL_ARGUMENT, format!("{call}: the graph must not be NULL"));
            return None;
        };
        // SAFETY: as above.
        if let Some(fault) = unsafe { graph::fault(graph) } {
            error::report(&fault.within(call));
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { Plan::of(graph) })
    }

    /// Where the data of nodes and sources are now.
    ///
    /// # Safety
    /// The tensors are live.
    unsafe fn data(&self) -> impl Iterator<Item = *mut c_void> + '_ {
        // SAFETY: the caller's promise.
        let of = |t: *mut ggml_tensor| unsafe { t.as_ref() }.map_or(std::ptr::null_mut(), |t| t.data);
        self.nodes.iter().flat_map(move |&node| {
            // SAFETY: as above.
            let srcs = unsafe { node.as_ref() }.map_or([std::ptr::null_mut(); GGML_MAX_SRC], |n| n.src);
            std::iter::once(of(node)).chain(srcs.into_iter().filter(|src| !src.is_null()).map(of))
        })
    }

    /// # Safety
    /// The tensors that the plan was made of, and their memory, are live.
    unsafe fn compute(&mut self, cpu: &Cpu) -> ggml_status {
        let Some(mut busy) = cpu.begin() else {
            error::fail(GGML_EXT_CODE_RE_ENTERED, format!("{COMPUTE}: {BUSY}"));
            return GGML_STATUS_FAILED;
        };
        let (abort, plain) = (busy.abort(), busy.plain());
        let (pool, n, _) = match busy.parts(COMPUTE) {
            Ok(parts) => parts,
            Err(status) => return status,
        };
        let threads = n.clamp(1, pool.n_threads());
        // SAFETY: the caller's promise.
        let still =
            |s: &Steps| s.threads == threads && s.plain == plain && s.data.iter().copied().eq(unsafe { self.data() });
        if !self.steps.as_ref().is_some_and(still) {
            self.steps = None;
            let count = self.uses.as_ref().map(|uses| move |t: *const ggml_tensor| uses.get(&t).copied().unwrap_or(0));
            let uses = count.as_ref().map(|f| f as &dyn Fn(*const ggml_tensor) -> i32);
            self.executor.set_plain(plain);
            match self.executor.prepare(&GraphRef { nodes: &self.nodes, uses }, &[], threads) {
                // SAFETY: the caller's promise.
                Ok(need) => self.steps = Some(Steps { threads, plain, data: unsafe { self.data() }.collect(), need }),
                Err(stop) => return failed(stop),
            }
        }
        let need = self.steps.as_ref().map_or(0, |s| s.need);
        // SAFETY: the tensors are live, their data where they were, and their shapes as the header asks.
        match unsafe { self.executor.run(Calls::NONE, pool, threads, need, abort, None) } {
            Ok(()) => GGML_STATUS_SUCCESS,
            Err(stop) => failed(stop),
        }
    }
}

/// The functions of the backend's table. They are called with a backend of ours, live graphs and plans of [`create`].
pub(super) unsafe extern "C" fn create(_: ggml_backend_t, graph: *const ggml_cgraph) -> ggml_backend_graph_plan_t {
    // SAFETY: the head of this function.
    let plan = unsafe { Plan::of_sound(graph, "ggml_backend_graph_plan_create") };
    plan.map_or(std::ptr::null_mut(), |plan| Box::into_raw(Box::new(plan)).cast())
}

pub(super) unsafe extern "C" fn free(_: ggml_backend_t, plan: ggml_backend_graph_plan_t) {
    if !plan.is_null() {
        // SAFETY: see `create`.
        drop(unsafe { Box::from_raw(plan.cast::<Plan>()) });
    }
}

/// A graph that cannot be computed is reported, and the plan stays that of the former.
pub(super) unsafe extern "C" fn update(_: ggml_backend_t, plan: ggml_backend_graph_plan_t, graph: *const ggml_cgraph) {
    // SAFETY: see `create`.
    let new = unsafe { Plan::of_sound(graph, "graph_plan_update") };
    // SAFETY: as above.
    if let (Some(plan), Some(new)) = (unsafe { plan.cast::<Plan>().as_mut() }, new) {
        *plan = new;
    }
}

pub(super) unsafe extern "C" fn compute(backend: ggml_backend_t, plan: ggml_backend_graph_plan_t) -> ggml_status {
    // SAFETY: see `create`.
    match unsafe { (Cpu::of(backend), plan.cast::<Plan>().as_mut()) } {
        // SAFETY: as above.
        (Some(cpu), Some(plan)) => unsafe { plan.compute(cpu) },
        _ => GGML_STATUS_FAILED,
    }
}
