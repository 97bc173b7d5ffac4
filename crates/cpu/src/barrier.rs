//! The barrier between the nodes of a graph.
//!
//! A waiting thread spins a bounded number of times, then sleeps. On a quiet machine nearly all waits end while spinning. On a busy
//! one spinning is in vain, and it costs the thread its share of the core: waits that end in sleep make the next ones shorter,
//! waits that end in time longer again. Nobody yields: where others want the core a yield takes as long as their slices, while a
//! sleeper runs soon after it is woken.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Keeps what different threads write on different cache lines (two lines: the hardware fetches them in pairs).
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

/// Where a fixed number of threads meet, again and again. Each meeting carries one bit from the last thread to arrive.
pub struct Barrier {
    n: u32,
    /// The most times a thread looks before it sleeps, and how often it does now.
    most: u32,
    spins: AtomicU32,
    arrived: Padded<AtomicU32>,
    /// Number of meetings so far, times two, plus the bit of the latest.
    phase: Padded<AtomicU32>,
    broken: AtomicBool,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    /// For `n` threads, each of which looks at most `most` times before it sleeps, and at first `spins` times.
    pub fn new(n: usize, most: u32, spins: u32) -> Barrier {
        Barrier {
            n: u32::try_from(n).unwrap_or(u32::MAX).max(1),
            most,
            spins: AtomicU32::new(spins),
            arrived: Padded::default(),
            phase: Padded::default(),
            broken: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits for all threads. The last one to arrive evaluates `bit`, and every thread gets its answer.
    pub fn wait(&self, bit: impl FnOnce() -> bool) -> bool {
        // The phase cannot move before this thread arrives.
        let old = self.phase.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.n {
            let bit = bit();
            self.arrived.0.store(0, Ordering::Relaxed);
            let new = ((old >> 1).wrapping_add(1) << 1) | u32::from(bit);
            self.phase.0.store(new, Ordering::SeqCst);
            self.wake_sleepers();
            return bit;
        }
        let spins = self.spins.load(Ordering::Relaxed);
        for _ in 0..spins {
            let now = self.phase.0.load(Ordering::Acquire);
            if now != old {
                if spins < self.most {
                    self.spins.store((spins + spins / 4 + 1).min(self.most), Ordering::Relaxed);
                }
                return now & 1 == 1;
            }
            std::hint::spin_loop();
        }
        self.spins.store((spins / 2).max(self.most / 32), Ordering::Relaxed);
        self.sleep(old)
    }

    /// How often a thread looks now before it sleeps.
    pub fn spins(&self) -> u32 {
        self.spins.load(Ordering::Relaxed)
    }

    #[cold]
    fn sleep(&self, old: u32) -> bool {
        // Counted before the phase is read again: whoever moves the phase after that read sees the count (both SeqCst).
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let bit = loop {
            let now = self.phase.0.load(Ordering::SeqCst);
            if now != old {
                break now & 1 == 1;
            }
            if self.broken.load(Ordering::SeqCst) {
                break true;
            }
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        bit
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            // The lock makes sure that a sleeper is either before its last look at the phase, or asleep.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.wake.notify_all();
        }
    }

    /// Lets every thread through, now and from now on, with the bit set: a thread will not come.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_sleepers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn meet(n: usize, spins: u32, rounds: usize) {
        let (barrier, sum) = (Barrier::new(n, spins, spins), AtomicUsize::new(0));
        std::thread::scope(|s| {
            for ith in 0..n {
                let (barrier, sum) = (&barrier, &sum);
                s.spawn(move || {
                    for round in 0..rounds {
                        sum.fetch_add(ith + 1, Ordering::Relaxed);
                        let bit = barrier.wait(|| round % 3 == 1);
                        assert_eq!(bit, round % 3 == 1);
                        assert_eq!(sum.load(Ordering::Relaxed), (round + 1) * n * (n + 1) / 2);
                        barrier.wait(|| false);
                    }
                });
            }
        });
    }

    #[test]
    fn every_thread_sees_all_writes_and_the_same_bit() {
        let rounds = if cfg!(miri) { 5 } else { 300 };
        for n in [1, 2, 3, 7] {
            meet(n, 0, rounds);
            meet(n, 200, rounds);
        }
    }

    /// Two threads meet, one of them after the other has begun to `wait`; how often one looks then.
    fn late(barrier: &Barrier, wait: impl Fn() -> bool) -> u32 {
        std::thread::scope(|s| {
            let early = s.spawn(|| barrier.wait(|| false));
            while !wait() {
                std::thread::yield_now();
            }
            barrier.wait(|| false);
            assert!(early.join().is_ok_and(|bit| !bit));
        });
        barrier.spins()
    }

    #[test]
    fn waits_that_end_in_sleep_are_shorter_next_time() {
        let barrier = Barrier::new(2, 640, 100);
        let asleep = || barrier.sleepers.load(Ordering::SeqCst) == 1;
        assert_eq!([late(&barrier, asleep), late(&barrier, asleep), late(&barrier, asleep)], [50, 25, 20]);
        assert_eq!(late(&barrier, asleep), 20, "a thread always looks a few times");
    }

    #[test]
    fn waits_that_end_in_time_are_longer_next_time() {
        // so many looks that the wait ends in time
        const SPINS: u32 = 1 << 28;
        let barrier = Barrier::new(2, SPINS + SPINS / 2, SPINS);
        let arrived = || barrier.arrived.0.load(Ordering::SeqCst) == 1;
        assert_eq!([late(&barrier, arrived), late(&barrier, arrived)], [SPINS + SPINS / 4 + 1, SPINS + SPINS / 2]);
        assert_eq!(late(&barrier, arrived), SPINS + SPINS / 2);
    }

    #[test]
    fn a_broken_barrier_lets_sleepers_go() {
        let barrier = Barrier::new(3, 0, 0);
        std::thread::scope(|s| {
            let a = s.spawn(|| barrier.wait(|| false));
            let b = s.spawn(|| barrier.wait(|| false));
            std::thread::sleep(std::time::Duration::from_millis(20));
            barrier.break_up();
            assert!(a.join().is_ok_and(|bit| bit) && b.join().is_ok_and(|bit| bit));
        });
    }
}
