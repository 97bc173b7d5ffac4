//! Entry points of ggml-threading.h: one lock for the process, which ggml's CPU module takes while it fills in its tables.

use crate::entry;
use crate::error::{self, Error};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Who is inside, and how many times.
static INSIDE: Mutex<Option<(ThreadId, usize)>> = Mutex::new(None);
static LEFT: Condvar = Condvar::new();

fn inside() -> MutexGuard<'static, Option<(ThreadId, usize)>> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

entry! {
    /// Enters the section that one thread at a time can be in; waits for another. A thread that is inside may enter again.
    pub fn ggml_critical_section_start() {
        let me = thread::current().id();
        let mut now = inside();
        loop {
            match now.as_mut() {
                None => break *now = Some((me, 1)),
                Some((owner, times)) if *owner == me => break *times += 1,
                Some(_) => now = LEFT.wait(now).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
    /// Leaves it, as many times as it was entered. An error for a thread that is not inside.
    pub fn ggml_critical_section_end() {
        let mut now = inside();
        match now.as_mut() {
            Some((owner, times)) if *owner == thread::current().id() => {
                *times -= 1;
                if *times == 0 {
                    *now = None;
                    LEFT.notify_one();
                }
            }
            _ => error::report(&Error::argument("ggml_critical_section_end: the thread is not inside the section")),
        }
    }
}
