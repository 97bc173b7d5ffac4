//! What the library remembers of the callbacks that run on this thread: the text of a refusal, and which questions are being asked.

use crate::backend::Device;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    static REASON: RefCell<String> = const { RefCell::new(String::new()) };
    static ASKED: RefCell<Vec<Question>> = const { RefCell::new(Vec::new()) };
}

/// A capability query: device, operator, and the record of a registered operator.
pub type Question = (Device, ggml_op, usize);

/// Calls `callback` as a callback: [`refuse`] gives the reason of its answer, [`in_callback`] is true.
#[inline]
pub fn call<R>(callback: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    REFUSED.set(false);
    let _leave = Leave;
    callback()
}

/// Notes why the callback that runs on this thread refuses or fails.
pub fn refuse(text: &str) {
    REASON.with_borrow_mut(|reason| {
        reason.clear();
        reason.push_str(text);
    });
    REFUSED.set(true);
}

/// What the last callback on this thread said by [`refuse`].
pub fn said() -> Option<String> {
    REFUSED.replace(false).then(|| REASON.with_borrow(Clone::clone))
}

/// What the last callback on this thread said by [`refuse`], or `or`.
pub fn reason(or: &str) -> String {
    said().unwrap_or_else(|| or.to_owned())
}

/// Whether this thread is inside a callback.
pub fn in_callback() -> bool {
    DEPTH.get() > 0
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
    ASKED.with_borrow_mut(|asked| {
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
        ASKED.with_borrow_mut(|asked| asked.pop());
    }
}
