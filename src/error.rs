//! The last failure of each thread, and the one way to report one.
//!
//! A failure is recorded for `ggml_ext_last_error` and written to the log. Pure code returns [`Error`]; the entry point that
//! gives up on it calls [`report`], so that one failure is recorded once.

use ggml_oxide_abi::*;
use std::cell::RefCell;
use std::ffi::{CStr, CString};

/// What failed: one sentence naming the call, the tensor and the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Kind of rule.
    pub code: ggml_ext_code,
    /// The sentence.
    pub text: String,
}

impl Error {
    /// An error of kind `code`.
    pub fn new(code: ggml_ext_code, text: impl Into<String>) -> Self {
        Error { code, text: text.into() }
    }
    /// A shape, stride or format that cannot be.
    pub fn shape(text: impl Into<String>) -> Self {
        Self::new(GGML_EXT_CODE_BAD_SHAPE, text)
    }
    /// An argument outside its range.
    pub fn argument(text: impl Into<String>) -> Self {
        Self::new(GGML_EXT_CODE_BAD_ARGUMENT, text)
    }
    /// Out of memory or room.
    pub fn memory(text: impl Into<String>) -> Self {
        Self::new(GGML_EXT_CODE_OUT_OF_MEMORY, text)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

struct Last {
    code: ggml_ext_code,
    text: CString,
    node: *const ggml_tensor,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Records a failure of this thread and logs it.
pub fn report(error: &Error) {
    report_at(error, std::ptr::null());
}

/// As [`report`], naming the tensor concerned.
pub fn report_at(error: &Error, node: *const ggml_tensor) {
    let text = c_string(&error.text);
    crate::log::line(GGML_LOG_LEVEL_ERROR, &error.text);
    LAST.with(|last| *last.borrow_mut() = Some(Last { code: error.code, text, node }));
}

/// Shorthand for [`report`] of a new error.
pub fn fail(code: ggml_ext_code, text: impl Into<String>) {
    report(&Error::new(code, text));
}

/// Hands the last failure of this thread to `take`; `None` when there was none.
pub fn with_last<R>(take: impl FnOnce(ggml_ext_code, &CStr, *const ggml_tensor) -> R) -> Option<R> {
    LAST.with(|last| last.borrow().as_ref().map(|l| take(l.code, &l.text, l.node)))
}

/// Text for C: cut at an embedded zero.
pub fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
