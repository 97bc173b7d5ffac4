//! Work that a call shares over the threads of the run that it is part of.
//!
//! The thread that computes a graph notes its run in a variable of its own while calls can happen; the other threads wait where
//! they can take such work. So a call needs no threads of its own, and none of the run's are entered twice.

use crate::pool::Pool;
use crate::team::Team;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why work was not shared, or not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The thread is in no call: it computes no graph with calls, or is at a node that is not in one.
    Outside,
    /// The thread runs such work already, or runs on the pool.
    Nested,
    /// The abort callback said so; no task ran.
    Aborted,
    /// A task panicked, now or before in this run.
    Panicked,
}

/// Work to share, called as `task(ith, nth)` on each of `nth` threads.
pub type Task<'a> = &'a (dyn Fn(usize, usize) + Sync);

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// At a node that is in no call.
    Node,
    Call,
    Task,
}

/// Thread 0 of a run with calls.
pub(crate) struct Lead<'a> {
    team: &'a Team<'a>,
    /// Brings the other threads into the run.
    others: &'a dyn Fn(),
    here: Cell<bool>,
    /// Whether to go on.
    ask: &'a dyn Fn() -> Result<(), Refused>,
    state: Cell<State>,
    panicked: Cell<bool>,
    owner: *const (),
}

thread_local! {
    /// The innermost run with calls that this thread leads.
    static TOP: Cell<*const Lead<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Puts back what was there.
struct Former(*const Lead<'static>);

impl Drop for Former {
    fn drop(&mut self) {
        TOP.set(self.0);
    }
}

impl<'a> Lead<'a> {
    pub fn new(
        team: &'a Team<'a>,
        others: &'a dyn Fn(),
        here: bool,
        ask: &'a dyn Fn() -> Result<(), Refused>,
        owner: *const (),
    ) -> Lead<'a> {
        let (here, state, panicked) = (Cell::new(here), Cell::new(State::Node), Cell::new(false));
        Lead { team, others, here, ask, state, panicked, owner }
    }

    /// Runs `body`, in which [`parallel`] and [`leads`] find this run.
    pub fn on_this_thread(&self, body: impl FnOnce()) {
        let _former = Former(TOP.replace(std::ptr::from_ref(self).cast()));
        body();
    }

    /// Whether the other threads were brought in.
    pub fn has_others(&self) -> bool {
        self.here.get()
    }

    /// Runs a call.
    pub fn call<R>(&self, body: impl FnOnce() -> R) -> R {
        self.state.set(State::Call);
        let result = body();
        self.state.set(State::Node);
        result
    }

    /// Whether a task panicked since the last time.
    pub fn take_panic(&self) -> bool {
        self.panicked.replace(false)
    }

    fn parallel(&self, task: Task) -> Result<(), Refused> {
        match self.state.get() {
            State::Node => return Err(Refused::Outside),
            State::Task => return Err(Refused::Nested),
            State::Call if self.panicked.get() => return Err(Refused::Panicked),
            State::Call => (self.ask)()?,
        }
        if !self.here.replace(true) {
            (self.others)();
        }
        self.state.set(State::Task);
        let done = self.team.share(task);
        self.state.set(State::Call);
        if done {
            Ok(())
        } else {
            self.panicked.set(true);
            Err(Refused::Panicked)
        }
    }
}

/// In a call, on its thread: runs `task(ith, nth)` on all threads of the run, `ith` 0 on this one, and returns when all are done.
/// `nth` is the number of threads that the graph is computed with. The abort callback is asked first. A task that panics ends the
/// graph after the call.
pub fn parallel(task: Task) -> Result<(), Refused> {
    // SAFETY: what notes a run takes it away before the run ends, on this thread.
    let lead = unsafe { TOP.get().as_ref() };
    lead.ok_or(Refused::Outside)?.parallel(task)
}

/// Whether the calling thread computes a graph with calls for the executor at `owner`, and no other such graph within it.
pub fn leads<T>(owner: *const T) -> bool {
    // SAFETY: as above.
    unsafe { TOP.get().as_ref() }.is_some_and(|lead| std::ptr::eq(lead.owner, owner.cast()))
}

/// Runs `task(ith, nth)` on `n_threads` threads of a pool (at most as many as it has), outside of any graph.
pub fn on_pool(pool: &Pool, n_threads: usize, task: Task) -> Result<(), Refused> {
    let nth = n_threads.clamp(1, pool.n_threads());
    let panicked = AtomicBool::new(false);
    let run = |ith| {
        if catch_unwind(AssertUnwindSafe(|| task(ith, nth))).is_err() {
            panicked.store(true, Ordering::Relaxed);
        }
    };
    let entered = pool.run(nth, &run, |others| {
        others();
        run(0);
    });
    entered.map_err(|_| Refused::Nested)?;
    if panicked.into_inner() {
        Err(Refused::Panicked)
    } else {
        Ok(())
    }
}
