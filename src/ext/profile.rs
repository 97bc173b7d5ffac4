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

/// Adds what passed since `start` to `sum`; the nanoseconds, if they were wanted.
#[inline]
pub fn stop(start: Option<Instant>, sum: &Cell<u64>) -> Option<u64> {
    let ns = u64::try_from(start?.elapsed().as_nanos()).unwrap_or(u64::MAX);
    sum.set(sum.get().saturating_add(ns));
    Some(ns)
}
