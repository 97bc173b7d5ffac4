//! Runs the steps of a plan on the threads of a pool, all in one entry.

use crate::lead::{Lead, Refused};
use crate::node::Node;
use crate::plan::{failure_text, Call, Plan, Step, Work};
use crate::pool::Pool;
use crate::team::{Shared, Team};
use ggml_oxide_abi::ggml_tensor;
use ggml_oxide_types::plain;
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The callback that is asked before each node, with its argument; true stops the run.
pub type Abort = (unsafe extern "C" fn(*mut c_void) -> bool, *mut c_void);

/// Why a graph was not computed to its end.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// The abort callback said so.
    Aborted,
    /// This many bytes of scratch memory are not to be had.
    NoMemory(usize),
    /// The calling thread runs on the pool already: waiting for it would have no end.
    Entered,
    /// A node cannot be computed; the text names node, operator and rule.
    Failed {
        /// The node, or NULL.
        node: *const ggml_tensor,
        /// The text.
        text: String,
    },
    /// A call ended with a status of its own.
    Status {
        /// The node that it computes, or NULL.
        node: *const ggml_tensor,
        /// The status as C code has it.
        status: i32,
        /// What to report; empty when that was done.
        text: String,
    },
}

/// Nodes of a graph that the caller computes, and how.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    /// Which nodes: in ascending order, without common nodes.
    pub ranges: &'a [Call],
    /// Computes a range, by index. Called on the thread that computes the graph, when all nodes before are done; a failure ends the
    /// graph. It may share its work by [`crate::lead::parallel`].
    pub run: &'a dyn Fn(usize) -> Result<(), Stop>,
}

impl Calls<'_> {
    /// No calls.
    pub const NONE: Calls<'static> = Calls { ranges: &[], run: &|_| Ok(()) };
}

/// Scratch memory: address and bytes.
pub(crate) type Bytes = (*mut u8, usize);

/// One run, as all its threads see it.
struct Run<'a> {
    plan: &'a Plan,
    calls: Calls<'a>,
    abort: Option<Abort>,
    /// By the portable functions.
    plain: bool,
    shared: Shared,
    aborted: AtomicBool,
    broken: AtomicBool,
    /// What a call ended the graph with.
    ended: Mutex<Option<Stop>>,
}

// SAFETY: the plan's addresses are those of tensors that all threads only read; the calls and the abort callback are thread 0's,
// which is the caller's own; the rest is atomic or locked.
unsafe impl Sync for Run<'_> {}

/// Runs the plan on `nth` threads. `owner` is what [`crate::lead::leads`] knows the run by.
#[allow(clippy::too_many_arguments)]
pub(crate) fn run(
    plan: &Plan,
    calls: Calls,
    pool: &Pool,
    nth: usize,
    abort: Option<Abort>,
    scratch: Bytes,
    owner: *const (),
    plain: bool,
) -> Result<(), Stop> {
    let solo = plan.steps.iter().all(|s| s.solo);
    // A graph of small nodes only needs nobody else.
    let nth = if solo && calls.ranges.is_empty() { 1 } else { nth };
    let run = Run {
        plan,
        calls,
        abort,
        plain,
        shared: Shared::new(nth, pool.spins(), scratch),
        aborted: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        ended: Mutex::new(None),
    };
    if run.abort_asked() {
        return Err(Stop::Aborted);
    }
    let entered = pool.run(nth, &|ith| run.guarded(|| run.follow(ith)), |others| {
        // Small nodes and calls alone: a call that shares work brings the others.
        if !solo {
            others();
        }
        run.guarded(|| run.lead(others, !solo, owner));
    });
    entered.map_err(|_| Stop::Entered)?;
    pool.learn(run.shared.spins());
    run.end()
}

impl Run<'_> {
    fn abort_asked(&self) -> bool {
        // SAFETY: the callback takes the argument that came with it.
        self.abort.is_some_and(|(callback, data)| unsafe { callback(data) })
    }

    /// Asks whether to go on; for thread 0.
    fn asked_to_stop(&self) -> bool {
        let stop = !self.shared.stopped() && self.abort_asked();
        if stop {
            self.aborted.store(true, Ordering::Relaxed);
            self.shared.stop();
        }
        stop || self.shared.stopped()
    }

    fn guarded(&self, body: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(|| plain::scope(self.plain, body))).is_err() {
            self.broken.store(true, Ordering::Release);
            self.shared.stop();
            self.shared.break_up();
        }
    }

    /// What the run came to.
    fn end(&self) -> Result<(), Stop> {
        if let Some((node, text)) = self.shared.take_failure() {
            // SAFETY: the failing node is one of the steps'.
            let text = unsafe { node.as_ref() }.map_or(text.clone(), |t| failure_text(t, &text));
            return Err(Stop::Failed { node, text });
        }
        if self.broken.load(Ordering::Acquire) {
            return Err(Stop::Failed {
                node: std::ptr::null(),
                text: "a kernel panicked; this is a fault of the library".into(),
            });
        }
        // Before what a call made of it that was told so.
        if self.aborted.load(Ordering::Relaxed) {
            return Err(Stop::Aborted);
        }
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// The end of the run of solo steps at `i`, and whether calls are among them.
    fn solo_run(&self, i: usize) -> (usize, bool) {
        let (mut end, mut calls) = (i, false);
        while let Some(step) = self.plan.steps.get(end).filter(|s| s.solo) {
            calls |= matches!(step.work, Work::Call(_));
            end += 1;
        }
        (end, calls)
    }

    /// Thread 0. `here`: the others are on their way.
    fn lead(&self, others: &dyn Fn(), here: bool, owner: *const ()) {
        let (team, alone) = (Team::member(&self.shared, 0), Team::alone(&self.shared));
        let ask = || match self.asked_to_stop() {
            false => Ok(()),
            true if self.aborted.load(Ordering::Relaxed) => Err(Refused::Aborted),
            true => Err(Refused::Panicked),
        };
        let lead = Lead::new(&team, others, here, &ask, owner);
        if self.calls.ranges.is_empty() {
            self.steps(&team, &alone, &lead);
        } else {
            lead.on_this_thread(|| self.steps(&team, &alone, &lead));
        }
    }

    fn steps(&self, team: &Team, alone: &Team, lead: &Lead) {
        let (steps, mut i) = (&self.plan.steps[..], 0);
        while i < steps.len() {
            let mut awaited = i + 1 < steps.len();
            if steps[i].solo {
                let (end, calls) = self.solo_run(i);
                for (k, step) in steps[i..end].iter().enumerate() {
                    if k > 0 && self.asked_to_stop() {
                        break;
                    }
                    match step.work {
                        Work::Call(c) => self.call(step, c, lead),
                        _ => self.step(step, alone),
                    }
                }
                i = end;
                // Behind calls the others are to be let go in any case, if they are there.
                awaited = i < steps.len() || calls && lead.has_others();
            } else {
                self.step(&steps[i], team);
                i += 1;
            }
            if awaited {
                if i < steps.len() {
                    self.asked_to_stop();
                }
                if !team.new_job() {
                    return;
                }
            }
        }
    }

    /// A thread other than 0.
    fn follow(&self, ith: usize) {
        let team = Team::member(&self.shared, ith);
        let (steps, mut i) = (&self.plan.steps[..], 0);
        while i < steps.len() {
            if steps[i].solo {
                // Thread 0 runs them; the others wait at their end.
                let (end, calls) = self.solo_run(i);
                i = end;
                if calls {
                    if !team.follow() {
                        return;
                    }
                    continue;
                }
            } else {
                self.step(&steps[i], &team);
                i += 1;
            }
            if i < steps.len() && !team.new_job() {
                return;
            }
        }
    }

    fn step(&self, step: &Step, team: &Team) {
        // SAFETY: the node was checked when the step was planned and outlives the run.
        let node = Node { dst: unsafe { &*step.node } };
        team.enter(step.node);
        match step.work {
            Work::Op(entry) => (entry.run)(&node, team),
            Work::Chain(i) => self.plan.chains[i].run(team),
            Work::Call(_) => {}
        }
    }

    fn call(&self, step: &Step, index: usize, lead: &Lead) {
        let result = lead.call(|| catch_unwind(AssertUnwindSafe(|| (self.calls.run)(index))));
        if lead.take_panic() {
            self.shared.fail(step.node, "a task of the function that computes it panicked".into());
        }
        match result {
            Ok(Ok(())) => {}
            Ok(Err(stop)) => {
                *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
                self.shared.stop();
            }
            Err(_) => self.shared.fail(step.node, "the function that computes it panicked".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::entry::{all_tasks, no_work, OpEntry};

    fn run_with(kernel: fn(&Node, &Team), nth: usize) -> Result<(), Stop> {
        let entry: &'static OpEntry =
            Box::leak(Box::new(OpEntry { supports: |_| Ok(()), work: no_work, n_tasks: all_tasks, run: kernel }));
        // SAFETY: all zero bits are a tensor.
        let node: ggml_tensor = unsafe { std::mem::zeroed() };
        let step = Step { node: &node, work: Work::Op(entry), solo: false };
        let plan = Plan { steps: vec![step; 3], chains: Vec::new() };
        run(&plan, Calls::NONE, &Pool::new(nth).unwrap(), nth, None, (std::ptr::null_mut(), 0), std::ptr::null(), false)
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
