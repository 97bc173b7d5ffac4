//! Computes a graph: checks every node first, plans the steps, then runs them on the pool.
//!
//! A bad node anywhere means that nothing runs. What only the data can tell (an index out of range) stops the run at its node.

pub use crate::node::{FLAG_POISONED, POISON_TEXT};
pub use crate::plan::{work_size, Call, GraphRef};
pub use crate::run::{Abort, Calls, Stop};

use crate::plan::{aligned, failure_text, Plan};
use crate::pool::Pool;
use crate::run::run;
use crate::scratch::{Scratch, ALIGN};
use ggml_oxide_abi::ggml_tensor;
use ggml_oxide_types::plain;

/// Computes graphs; keeps its scratch memory and lists from graph to graph.
#[derive(Default)]
pub struct Executor {
    plan: Plan,
    scratch: Scratch,
    plain: bool,
}

// SAFETY: the addresses in `plan` are only followed by `compute`, which refills it first, and by `run`, whose caller vouches.
unsafe impl Send for Executor {}

impl Executor {
    /// One without memory yet.
    pub fn new() -> Executor {
        Executor::default()
    }

    /// Chains of the last graph that ran as one step.
    pub fn chains(&self) -> usize {
        self.plan.chains.len()
    }

    /// Computes the graph on `n_threads` threads of the pool (at most as many as it has). `work` is scratch memory to use if
    /// it is as large as [`work_size`] says; otherwise the executor's own grows.
    pub fn compute(
        &mut self,
        graph: &GraphRef,
        pool: &Pool,
        n_threads: usize,
        abort: Option<Abort>,
        work: Option<&mut [u8]>,
    ) -> Result<(), Stop> {
        self.compute_with(graph, Calls::NONE, pool, n_threads, abort, work)
    }

    /// As [`compute`](Executor::compute), with nodes that the caller computes.
    pub fn compute_with(
        &mut self,
        graph: &GraphRef,
        calls: Calls,
        pool: &Pool,
        n_threads: usize,
        abort: Option<Abort>,
        work: Option<&mut [u8]>,
    ) -> Result<(), Stop> {
        let nth = n_threads.clamp(1, pool.n_threads());
        let mut from = 0;
        for call in calls.ranges {
            if call.first < from || call.last < call.first || call.last >= graph.nodes.len() {
                let text = format!("a call of nodes {} to {} is out of order or of the graph", call.first, call.last);
                return Err(Stop::Failed { node: std::ptr::null(), text });
            }
            from = call.last + 1;
        }
        let need = self.prepare(graph, calls.ranges, nth)?;
        // SAFETY: the steps were made just now, of a graph that outlives the call.
        unsafe { self.run(calls, pool, nth, need, abort, work) }
    }

    /// Plain: by the portable functions, each node by itself.
    pub fn set_plain(&mut self, plain: bool) {
        self.plain = plain;
    }

    /// Checks the graph and makes its steps for `nth` threads. Answers the bytes of scratch memory that they need.
    pub fn prepare(&mut self, graph: &GraphRef, calls: &[Call], nth: usize) -> Result<usize, Stop> {
        let refuse = |node: &ggml_tensor, rule: &str| Err(Stop::Failed { node, text: failure_text(node, rule) });
        // a step for each node at most: the list must not be what ends the process
        self.plan.steps.clear();
        if self.plan.steps.try_reserve(graph.nodes.len()).is_err() {
            return Err(Stop::NoMemory(std::mem::size_of_val(graph.nodes)));
        }
        let graph = if self.plain { GraphRef { uses: None, ..*graph } } else { *graph };
        plain::scope(self.plain, || self.plan.fill(&graph, calls, nth, refuse))
    }

    /// Runs the steps that [`prepare`](Executor::prepare) made for the same number of threads, and any number of times; it answered
    /// `need`.
    ///
    /// # Safety
    /// The nodes and their sources live, and are in shape and memory what they were then.
    pub unsafe fn run(
        &mut self,
        calls: Calls,
        pool: &Pool,
        nth: usize,
        need: usize,
        abort: Option<Abort>,
        work: Option<&mut [u8]>,
    ) -> Result<(), Stop> {
        let bytes = aligned(need);
        let base = match work {
            Some(work) if work.len() >= bytes => work.as_mut_ptr(),
            _ => {
                if !self.scratch.reserve(bytes) {
                    return Err(Stop::NoMemory(bytes));
                }
                self.scratch.as_ptr()
            }
        };
        let base = base.wrapping_add(base.align_offset(ALIGN));
        let owner = std::ptr::from_ref(&*self).cast();
        run(&self.plan, calls, pool, nth, abort, (base, need), owner, self.plain)
    }
}
