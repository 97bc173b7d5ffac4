//! What the engine asks of the caller's thread pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;

/// The threads that run one prepared job together. Each thread holds its own `Team` value.
pub trait Team {
    /// Index of this thread, 0 to `nth() - 1`.
    fn ith(&self) -> usize;
    /// Number of threads that call `Gemm::run` for this job.
    fn nth(&self) -> usize;
    /// Waits until every thread of the team is here. What was written before is seen after. False, for all threads
    /// alike, means that the work was called off: `Gemm::run` then returns at once and the result is incomplete.
    fn barrier(&self) -> bool;
    /// Hands out 0, 1, 2, ... over the whole team, each number once. It starts from 0 for each job;
    /// numbers past the end of the job may be drawn (at most one per thread).
    fn next(&self) -> usize;
}

/// A team of one thread.
#[derive(Default)]
pub struct Solo {
    next: std::cell::Cell<usize>,
}

impl Team for Solo {
    fn ith(&self) -> usize {
        0
    }
    fn nth(&self) -> usize {
        1
    }
    fn barrier(&self) -> bool {
        true
    }
    fn next(&self) -> usize {
        let n = self.next.get();
        self.next.set(n + 1);
        n
    }
}

/// A team over the standard library's barrier; for tests and benchmarks.
pub struct StdTeam<'a> {
    ith: usize,
    shared: &'a StdShared,
}

/// What the members of a [`StdTeam`] share during one job.
pub struct StdShared {
    nth: usize,
    barrier: Barrier,
    next: AtomicUsize,
}

impl StdShared {
    /// State of one job for `nth` threads.
    pub fn new(nth: usize) -> Self {
        StdShared { nth, barrier: Barrier::new(nth), next: AtomicUsize::new(0) }
    }

    /// The handle of thread `ith`.
    pub fn member(&self, ith: usize) -> StdTeam<'_> {
        StdTeam { ith, shared: self }
    }
}

impl Team for StdTeam<'_> {
    fn ith(&self) -> usize {
        self.ith
    }
    fn nth(&self) -> usize {
        self.shared.nth
    }
    fn barrier(&self) -> bool {
        self.shared.barrier.wait();
        true
    }
    fn next(&self) -> usize {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }
}
