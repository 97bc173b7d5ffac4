//! What a kernel sees of the threads that run it.

use crate::barrier::{Barrier, Padded};
use ggml_oxide_abi::ggml_tensor;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the threads of one run share.
pub(crate) struct Shared {
    nth: usize,
    barrier: Barrier,
    /// Two counters: the one not in use is set to zero while the other is drawn from.
    counters: [Padded<AtomicUsize>; 2],
    scratch: *mut u8,
    scratch_len: usize,
    stop: AtomicBool,
    failure: Mutex<Option<(*const ggml_tensor, String)>>,
    /// What [`Team::share`] shares out: written by thread 0 between meetings.
    task: UnsafeCell<Option<Task>>,
    /// Where the threads of a task meet at its end. Unlike the other one it is never broken up: when it lets a thread go, all have
    /// left the task.
    done: Barrier,
    /// A task panicked.
    panicked: AtomicBool,
}

/// A function of thread index and number of threads; it lives until all threads have come back from it.
type Task = *const (dyn Fn(usize, usize) + Sync + 'static);

// SAFETY: the addresses are only handed to kernels, whose threads agree on who writes where; the rest is atomic or locked.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing is bound to a thread.
unsafe impl Send for Shared {}

impl Shared {
    pub(crate) fn new(nth: usize, [most, spins]: [u32; 2], (scratch, scratch_len): (*mut u8, usize)) -> Shared {
        Shared {
            nth,
            barrier: Barrier::new(nth, most, spins),
            counters: Default::default(),
            scratch,
            scratch_len,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            task: UnsafeCell::new(None),
            done: Barrier::new(nth, most, spins),
            panicked: AtomicBool::new(false),
        }
    }

    /// How often threads look at the barrier now before they sleep.
    pub(crate) fn spins(&self) -> u32 {
        self.barrier.spins()
    }

    /// Ends the run at the next meeting.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn fail(&self, node: *const ggml_tensor, text: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert((node, text));
        drop(failure);
        self.stop();
    }

    /// A thread will not come to the barrier any more.
    pub(crate) fn break_up(&self) {
        self.barrier.break_up();
    }

    pub(crate) fn take_failure(&self) -> Option<(*const ggml_tensor, String)> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One thread's handle on the threads that run a node together. All threads of a node call the same sequence of
/// [`barrier`](Team::barrier), [`sync`](Team::sync) and [`new_job`](Team::new_job).
pub struct Team<'a> {
    ith: usize,
    nth: usize,
    shared: &'a Shared,
    node: Cell<*const ggml_tensor>,
    /// Jobs so far; its lowest bit says which counter is in use.
    job: Cell<usize>,
    /// The counter of a team of one.
    solo: Cell<usize>,
}

impl<'a> Team<'a> {
    pub(crate) fn member(shared: &'a Shared, ith: usize) -> Team<'a> {
        Team { ith, nth: shared.nth, shared, node: Cell::new(std::ptr::null()), job: Cell::new(0), solo: Cell::new(0) }
    }

    /// A team of this thread alone, with the same scratch memory: for nodes too small to share.
    pub(crate) fn alone(shared: &'a Shared) -> Team<'a> {
        Team { nth: 1, ..Team::member(shared, 0) }
    }

    /// Names the node that runs next, for failures.
    pub(crate) fn enter(&self, node: *const ggml_tensor) {
        self.node.set(node);
        self.solo.set(0);
    }

    /// Index of this thread, 0 to `nth - 1`.
    pub fn ith(&self) -> usize {
        self.ith
    }

    /// Threads that run this node.
    pub fn nth(&self) -> usize {
        self.nth
    }

    /// Waits for all threads of the node; what they wrote before is seen after.
    pub fn barrier(&self) {
        let _ = self.sync();
    }

    /// As [`barrier`](Team::barrier); false, for all threads alike, when one of them has failed: then return.
    #[must_use]
    pub fn sync(&self) -> bool {
        if self.nth == 1 {
            return !self.shared.stopped();
        }
        !self.shared.barrier.wait(|| self.shared.stopped())
    }

    /// A [`sync`](Team::sync) after which [`next`](Team::next) counts from zero again.
    #[must_use]
    pub fn new_job(&self) -> bool {
        if self.nth == 1 {
            self.solo.set(0);
            return !self.shared.stopped();
        }
        let job = self.job.get() + 1;
        self.job.set(job);
        if self.ith == 0 {
            // Nobody draws from it: all threads have left the job before this one.
            self.shared.counters[job & 1].0.store(0, Ordering::Relaxed);
        }
        self.sync()
    }

    /// For thread 0, while the others [`follow`](Team::follow): runs `task(ith, nth)` on all threads and returns when all are done.
    /// False: one of them panicked, now or before.
    pub(crate) fn share(&self, task: &(dyn Fn(usize, usize) + Sync)) -> bool {
        if self.nth > 1 {
            // SAFETY: only the lifetime changes. The others call it between the two meetings below, and the second cannot be passed
            // before they came back; nothing in between unwinds.
            let task = unsafe { std::mem::transmute::<*const (dyn Fn(usize, usize) + Sync + '_), Task>(task) };
            // SAFETY: the others look only after a meeting.
            unsafe { *self.shared.task.get() = Some(task) };
            self.shared.barrier.wait(|| self.shared.stopped());
        }
        self.run_task(task);
        if self.nth > 1 {
            self.shared.done.wait(|| false);
            // SAFETY: as above.
            unsafe { *self.shared.task.get() = None };
        }
        !self.shared.panicked.load(Ordering::Relaxed)
    }

    fn run_task(&self, task: &(dyn Fn(usize, usize) + Sync)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| task(self.ith, self.nth))) {
            // Dropping it could panic again, and the others would wait for this thread.
            std::mem::forget(panic);
            self.shared.panicked.store(true, Ordering::Relaxed);
        }
    }

    /// For the other threads: takes part in what thread 0 [`share`](Team::share)s, until thread 0 comes to a
    /// [`new_job`](Team::new_job), whose answer it gives.
    #[must_use]
    pub(crate) fn follow(&self) -> bool {
        loop {
            let stopped = self.shared.barrier.wait(|| self.shared.stopped());
            // SAFETY: thread 0 wrote it before this meeting and next writes it after all have met at `done`.
            let Some(task) = (unsafe { *self.shared.task.get() }) else {
                self.job.set(self.job.get() + 1);
                return !stopped;
            };
            // SAFETY: it lives until all have met at `done` (`share`).
            self.run_task(unsafe { &*task });
            self.shared.done.wait(|| false);
        }
    }

    /// Draws 0, 1, 2, ... over the whole team, each number once. Starts from 0 in each node.
    pub fn next(&self) -> usize {
        if self.nth == 1 {
            let n = self.solo.get();
            self.solo.set(n + 1);
            return n;
        }
        self.shared.counters[self.job.get() & 1].0.fetch_add(1, Ordering::Relaxed)
    }

    /// This thread's part of `0..n`: parts are in order, cover all, and differ by at most one.
    pub fn range(&self, n: usize) -> Range<usize> {
        let (each, more) = (n / self.nth, n % self.nth);
        let start = each * self.ith + self.ith.min(more);
        start..start + each + usize::from(self.ith < more)
    }

    /// This thread's draws of `0..n` in pieces of `size` items, shared out as threads get ready for more.
    pub fn chunks(&self, n: usize, size: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let size = size.max(1);
        std::iter::from_fn(move || {
            let start = self.next().checked_mul(size).filter(|&start| start < n)?;
            Some(start..(start + size).min(n))
        })
    }

    /// Scratch memory of the node, shared by all threads: as many bytes as the operator's `work` asked for, or more.
    /// Aligned to 64 bytes.
    pub fn scratch(&self) -> (*mut u8, usize) {
        (self.shared.scratch, self.shared.scratch_len)
    }

    /// Records why this node cannot be computed; the first text wins and the run ends after the node. The text says the rule;
    /// node and operator are added. The thread then still goes to every barrier that the others go to.
    pub fn fail(&self, text: impl Into<String>) {
        self.shared.fail(self.node.get(), text.into());
    }

    /// Whether a thread has failed: long loops without barriers may end early.
    pub fn stopped(&self) -> bool {
        self.shared.stopped()
    }
}
