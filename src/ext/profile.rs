//! Times of steps, while `GGML_EXT_PROFILE` is set or `ggml_ext_set_profiling` is on.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Switches it.
pub fn set(on: bool) {
    STATE.store(if on { ON } else { OFF }, Ordering::Relaxed);
}

/// Whether it is on.
pub fn is_on() -> bool {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let on = std::env::var("GGML_EXT_PROFILE").is_ok_and(|v| !v.is_empty() && v != "0");
            set(on);
            on
        }
        state => state == ON,
    }
}

/// The time, if it is wanted.
#[inline]
pub fn start() -> Option<Instant> {
    is_on().then(Instant::now)
}

/// What a step took so far, while it was timed.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Time {
    ns: Cell<u64>,
    runs: Cell<u64>,
}

impl Time {
    /// Adds what passed since `start`; the nanoseconds, if they were wanted.
    #[inline]
    pub fn stop(&self, start: Option<Instant>) -> Option<u64> {
        let ns = u64::try_from(start?.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.add(ns);
        Some(ns)
    }

    /// As [`Time::stop`], for a later piece of a run that began before.
    pub fn stop_piece(&self, start: Option<Instant>, is_first: bool) {
        let runs = self.runs.get();
        if self.stop(start).is_some() && !is_first {
            self.runs.set(runs);
        }
    }

    /// Adds one run of `ns` nanoseconds.
    pub fn add(&self, ns: u64) {
        self.ns.set(self.ns.get().saturating_add(ns));
        self.runs.set(self.runs.get().saturating_add(1));
    }

    /// Nanoseconds of all runs.
    pub fn ns(&self) -> u64 {
        self.ns.get()
    }

    /// Runs that were timed.
    pub fn runs(&self) -> u64 {
        self.runs.get()
    }
}
