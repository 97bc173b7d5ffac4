//! What the library remembers of the callbacks that run on this thread: the text of a refusal, and which questions are being asked.

use crate::backend::Device;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::cell::{Cell, RefCell};

/// What one thread knows. One structure: to find a thread's variable takes longer than to use it.
struct Memory {
    depth: Cell<u32>,
    refused: Cell<bool>,
    reason: RefCell<String>,
    asked: RefCell<Vec<Question>>,
}

thread_local! {
    static MEMORY: Memory = const {
        Memory {
            depth: Cell::new(0),
            refused: Cell::new(false),
            reason: RefCell::new(String::new()),
            asked: RefCell::new(Vec::new()),
        }
    };
}

/// A capability query: device, operator, and the record of a registered operator.
pub type Question = (Device, ggml_op, usize);

/// Calls `callback` as a callback: [`refuse`] gives the reason of its answer, [`in_callback`] is true.
#[inline]
pub fn call<R>(callback: impl FnOnce() -> R) -> R {
    struct Leave<'a>(&'a Memory);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.depth.set(self.0.depth.get() - 1);
        }
    }
    MEMORY.with(|memory| {
        memory.depth.set(memory.depth.get() + 1);
        memory.refused.set(false);
        let _leave = Leave(memory);
        callback()
    })
}

/// Notes why the callback that runs on this thread refuses or fails.
pub fn refuse(text: &str) {
    MEMORY.with(|memory| {
        let mut reason = memory.reason.borrow_mut();
        reason.clear();
        reason.push_str(text);
        memory.refused.set(true);
    });
}

/// What the last callback on this thread said by [`refuse`].
pub fn said() -> Option<String> {
    MEMORY.with(|memory| memory.refused.replace(false).then(|| memory.reason.borrow().clone()))
}

/// What the last callback on this thread said by [`refuse`], or `or`.
pub fn reason(or: &str) -> String {
    said().unwrap_or_else(|| or.to_owned())
}

/// Whether this thread is inside a callback.
pub fn in_callback() -> bool {
    MEMORY.with(|memory| memory.depth.get() > 0)
}

/// An error inside a callback.
pub fn outside_only() -> Result<(), Error> {
    if in_callback() {
        return Err(Error::new(GGML_EXT_CODE_RE_ENTERED, "a callback must not register or release anything"));
    }
    Ok(())
}

/// Marks the question as being asked on this thread, until dropped. `None`: it is already.
pub fn ask(question: Question) -> Option<Asking> {
    MEMORY.with(|memory| {
        let mut asked = memory.asked.borrow_mut();
        if asked.contains(&question) {
            return None;
        }
        asked.push(question);
        Some(Asking)
    })
}

/// A question that is being asked.
pub struct Asking;

impl Drop for Asking {
    fn drop(&mut self) {
        MEMORY.with(|memory| memory.asked.borrow_mut().pop());
    }
}
