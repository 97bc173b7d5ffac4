//! Computes a graph: checks every node first, plans the steps, then runs them on the pool.
//!
//! A bad node anywhere means that nothing runs. What only the data can tell (an index out of range) stops the run at its node.

use crate::conv::fuse::{self, Chain};
use crate::node::{src, Node};
use crate::pool::Pool;
use crate::scratch::{Scratch, ALIGN};
use crate::table::{check, OpEntry};
use crate::team::{Shared, Team};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Bit of `ggml_tensor.flags`: the builder was given impossible arguments.
pub const FLAG_POISONED: i32 = 1 << 30;
/// Where a poisoned tensor keeps the address of its zero-terminated text: bytes 56 to 63 of the parameters, as an index of i32.
pub const POISON_TEXT: usize = 14;

/// The callback that is asked before each node, with its argument; true stops the run.
pub type Abort = (unsafe extern "C" fn(*mut c_void) -> bool, *mut c_void);

/// A graph to compute.
#[derive(Clone, Copy)]
pub struct GraphRef<'a> {
    /// The nodes in the order in which they run. Each points to a tensor that lives as long as the reference, as do its sources.
    pub nodes: &'a [*mut ggml_tensor],
    /// How often a tensor is a source in the whole graph that this is a part of. `None`: not known, so nothing is fused.
    pub uses: Option<&'a dyn Fn(*const ggml_tensor) -> i32>,
}

/// Why a graph was not computed to its end.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// The abort callback said so.
    Aborted,
    /// This many bytes of scratch memory are not to be had.
    NoMemory(usize),
    /// A node cannot be computed; the text names node, operator and rule.
    Failed {
        /// The node.
        node: *const ggml_tensor,
        /// The text.
        text: String,
    },
}

/// What a step runs.
#[derive(Clone, Copy)]
enum Work {
    Op(&'static OpEntry),
    /// A chain of the plan, by index.
    Chain(usize),
}

/// One entry into a kernel.
#[derive(Clone, Copy)]
struct Step {
    node: *const ggml_tensor,
    work: Work,
    /// Thread 0 runs it alone.
    solo: bool,
}

/// The steps of a graph.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    chains: Vec<Chain>,
}

/// Computes graphs; keeps its scratch memory and lists from graph to graph.
#[derive(Default)]
pub struct Executor {
    plan: Plan,
    scratch: Scratch,
}

// SAFETY: the addresses in `plan` are only followed while `compute` runs, which refills it first.
unsafe impl Send for Executor {}

/// Bytes of scratch memory that computing the graph on `n_threads` threads needs, alignment included; 0 for none. Nodes that
/// cannot be computed count as nothing.
pub fn work_size(graph: &GraphRef, n_threads: usize) -> usize {
    let need = Plan::default().fill(graph, n_threads.max(1), |_, _| Ok::<(), ()>(())).unwrap_or(0);
    aligned(need)
}

fn aligned(need: usize) -> usize {
    if need == 0 {
        0
    } else {
        need.saturating_add(ALIGN)
    }
}

impl Plan {
    /// Plans the graph and answers the bytes of scratch memory that its largest step needs. `refuse` takes each node that breaks
    /// a rule.
    fn fill<E>(
        &mut self,
        graph: &GraphRef,
        nth: usize,
        mut refuse: impl FnMut(&ggml_tensor, &str) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.steps.clear();
        self.chains.clear();
        let (mut need, mut i) = (0, 0);
        while let Some(&node) = graph.nodes.get(i) {
            i += 1;
            // SAFETY: the graph's nodes are tensors (contract of GraphRef).
            let Some(t) = (unsafe { node.as_ref() }) else { continue };
            if t.flags & FLAG_POISONED != 0 {
                refuse(t, &poison_text(t))?;
                continue;
            }
            if t.flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
                continue;
            }
            let entry = match check(t) {
                Ok(None) => continue,
                Ok(Some(entry)) => entry,
                Err(rule) => {
                    refuse(t, rule)?;
                    continue;
                }
            };
            if let Err(rule) = allocated(t) {
                // its size is known all the same
                refuse(t, rule)?;
            }
            let solo = nth == 1 || (entry.n_tasks)(t, nth) <= 1;
            let mut step = Step { node, work: Work::Op(entry), solo };
            need = need.max((entry.work)(t, if solo { 1 } else { nth }));
            if let (GGML_OP_IM2COL | GGML_OP_IM2COL_3D, Some(uses)) = (t.op, graph.uses) {
                if let Some(found) = fuse::find(graph.nodes, i - 1, uses) {
                    i = found.last + 1;
                    step = Step {
                        node: graph.nodes[found.last],
                        work: Work::Chain(self.chains.len()),
                        solo: nth == 1 || found.chain.is_small(),
                    };
                    need = need.max(found.chain.work(if step.solo { 1 } else { nth }));
                    self.chains.push(found.chain);
                }
            }
            self.steps.push(step);
        }
        Ok(need)
    }
}

fn allocated(t: &ggml_tensor) -> Result<(), &'static str> {
    if t.data.is_null() {
        return Err("the result has no memory");
    }
    // The kernel of a convolution is only a shape to its im2col.
    let first = usize::from(matches!(t.op, GGML_OP_IM2COL | GGML_OP_IM2COL_3D));
    for i in first..GGML_MAX_SRC {
        let Ok(s) = src(t, i) else { continue };
        if s.data.is_null() && !shape::is_empty(s) {
            return Err("a source has no memory");
        }
        if !aligned_data(s) {
            return Err("a source's memory is not aligned to its elements");
        }
    }
    if aligned_data(t) {
        Ok(())
    } else {
        Err("the result's memory is not aligned to its elements")
    }
}

/// Plain elements lie at multiples of their size, blocks of an even size at even addresses.
fn aligned_data(t: &ggml_tensor) -> bool {
    let size = shape::type_size(t.r#type);
    let align = if shape::blck_size(t.r#type) == 1 { size } else { 2 - size % 2 };
    (t.data as usize).is_multiple_of(align.max(1))
}

fn poison_text(t: &ggml_tensor) -> String {
    let bits = u64::from(t.op_params[POISON_TEXT] as u32) | u64::from(t.op_params[POISON_TEXT + 1] as u32) << 32;
    let address =
        usize::try_from(if cfg!(target_endian = "little") { bits } else { bits.rotate_left(32) }).unwrap_or(0);
    let text = address as *const c_char;
    if text.is_null() {
        return "it was built from impossible arguments".into();
    }
    // SAFETY: the builder that set the flag stored a zero-terminated text that outlives the tensor.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// "name (OP): rule".
fn failure_text(t: &ggml_tensor, rule: &str) -> String {
    let op = format!("{:?}", t.op);
    format!("{} ({}): {rule}", shape::name(t), op.strip_prefix("GGML_OP_").unwrap_or(&op))
}

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
        let nth = n_threads.clamp(1, pool.n_threads());
        let need =
            self.plan.fill(graph, nth, |node, rule| Err(Stop::Failed { node, text: failure_text(node, rule) }))?;
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
        run(&self.plan, pool, nth, abort, base, need)
    }
}

/// The callback with its argument, called from thread 0 only.
struct Ask(Option<Abort>);

// SAFETY: only thread 0, which is the caller's own, calls it.
unsafe impl Sync for Ask {}

impl Ask {
    fn stop(&self) -> bool {
        // SAFETY: the callback takes the argument that came with it.
        self.0.is_some_and(|(callback, data)| unsafe { callback(data) })
    }
}

struct Planned<'a>(&'a Plan);

// SAFETY: the addresses are those of tensors that all threads only read.
unsafe impl Sync for Planned<'_> {}

fn run(plan: &Plan, pool: &Pool, nth: usize, abort: Option<Abort>, scratch: *mut u8, len: usize) -> Result<(), Stop> {
    // A graph of small nodes only needs nobody else.
    let nth = if plan.steps.iter().all(|s| s.solo) { 1 } else { nth };
    let shared = Shared::new(nth, pool.spins(), scratch, len);
    let (plan, ask) = (Planned(plan), Ask(abort));
    if ask.stop() {
        return Err(Stop::Aborted);
    }
    let (aborted, broken) = (std::sync::atomic::AtomicBool::new(false), std::sync::atomic::AtomicBool::new(false));
    pool.run(nth, &|ith| {
        let body = AssertUnwindSafe(|| run_thread(&plan, &shared, ith, &ask, &aborted));
        if catch_unwind(body).is_err() {
            broken.store(true, std::sync::atomic::Ordering::Release);
            shared.stop();
            shared.break_up();
        }
    });
    if let Some((node, text)) = shared.take_failure() {
        // SAFETY: the failing node is one of the steps'.
        let text = unsafe { node.as_ref() }.map_or(text.clone(), |t| failure_text(t, &text));
        return Err(Stop::Failed { node, text });
    }
    if broken.into_inner() {
        return Err(Stop::Failed {
            node: std::ptr::null(),
            text: "a kernel panicked; this is a fault of the library".into(),
        });
    }
    if aborted.into_inner() {
        return Err(Stop::Aborted);
    }
    Ok(())
}

fn run_thread(plan: &Planned, shared: &Shared, ith: usize, ask: &Ask, aborted: &std::sync::atomic::AtomicBool) {
    let asked_to_stop = || {
        let stop = !shared.stopped() && ask.stop();
        if stop {
            aborted.store(true, std::sync::atomic::Ordering::Relaxed);
            shared.stop();
        }
        stop || shared.stopped()
    };
    let (team, alone) = (Team::member(shared, ith), Team::alone(shared));
    let (plan, mut i) = (plan.0, 0);
    let steps = &plan.steps[..];
    while i < steps.len() {
        if steps[i].solo {
            // A run of small nodes is thread 0's; the others wait at its end.
            let end = i + steps[i..].iter().take_while(|s| s.solo).count();
            if ith == 0 {
                for (k, step) in steps[i..end].iter().enumerate() {
                    if k > 0 && asked_to_stop() {
                        break;
                    }
                    run_step(plan, step, &alone);
                }
            }
            i = end;
        } else {
            run_step(plan, &steps[i], &team);
            i += 1;
        }
        if i < steps.len() {
            if ith == 0 {
                asked_to_stop();
            }
            if !team.new_job() {
                return;
            }
        }
    }
}

fn run_step(plan: &Plan, step: &Step, team: &Team) {
    // SAFETY: the node was checked when the step was planned and outlives the run.
    let node = Node { dst: unsafe { &*step.node } };
    team.enter(step.node);
    match step.work {
        Work::Op(entry) => (entry.run)(&node, team),
        Work::Chain(i) => plan.chains[i].run(team),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::{all_tasks, no_work};

    fn run_with(kernel: fn(&Node, &Team), nth: usize) -> Result<(), Stop> {
        let entry: &'static OpEntry =
            Box::leak(Box::new(OpEntry { supports: |_| Ok(()), work: no_work, n_tasks: all_tasks, run: kernel }));
        // SAFETY: all zero bits are a tensor.
        let node: ggml_tensor = unsafe { std::mem::zeroed() };
        let step = Step { node: &node, work: Work::Op(entry), solo: false };
        let plan = Plan { steps: vec![step; 3], chains: Vec::new() };
        run(&plan, &Pool::new(nth).unwrap(), nth, None, std::ptr::null_mut(), 0)
    }

    #[test]
    fn a_panic_in_a_kernel_leaves_nobody_waiting() {
        for nth in [1, 2, 5] {
            let stop = run_with(
                |_, team| {
                    assert!(team.ith() + 1 != team.nth(), "this panic is part of a test");
                    team.barrier();
                    team.barrier();
                },
                nth,
            );
            assert!(matches!(stop, Err(Stop::Failed { text, .. }) if text.contains("panicked")), "{nth} threads");
        }
    }

    #[test]
    fn the_first_failure_is_told_and_ends_the_run() {
        static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        for nth in [1, 2, 5] {
            RUNS.store(0, std::sync::atomic::Ordering::Relaxed);
            let stop = run_with(
                |_, team| {
                    RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if team.ith() == team.nth() / 2 {
                        team.fail("rule one");
                    }
                    assert!(!team.sync() && team.stopped());
                    team.fail("rule two");
                },
                nth,
            );
            assert!(matches!(stop, Err(Stop::Failed { text, .. }) if text == " (NONE): rule one"));
            assert_eq!(RUNS.load(std::sync::atomic::Ordering::Relaxed), nth, "a node after the failure ran");
        }
    }

    #[test]
    fn numbers_are_drawn_once_and_start_anew_with_each_job() {
        for nth in [1, 2, 5] {
            let done = run_with(
                |_, team| {
                    static SUM: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
                    for _ in 0..20 {
                        SUM.store(0, std::sync::atomic::Ordering::Relaxed);
                        team.barrier();
                        for part in team.chunks(100, 7) {
                            SUM.fetch_add(part.sum::<usize>(), std::sync::atomic::Ordering::Relaxed);
                        }
                        team.barrier();
                        if SUM.load(std::sync::atomic::Ordering::Relaxed) != 4950 {
                            team.fail("an item was lost or drawn twice");
                        }
                        if !team.new_job() {
                            return;
                        }
                    }
                },
                nth,
            );
            assert_eq!(done, Ok(()));
        }
    }
}
