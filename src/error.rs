//! The last failure of each thread, and the one way to report one.
//!
//! A failure is recorded for `ggml_ext_last_error` and written to the log. Pure code returns [`Error`]; the entry point that
//! gives up on it calls [`report`], so that one failure is recorded once.

use ggml_oxide_abi::*;
use std::cell::RefCell;
use std::ffi::CString;

/// What failed: one sentence naming the call, the tensor and the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Kind of rule.
    pub code: ggml_ext_code,
    /// The sentence.
    pub text: String,
    /// The registration concerned.
    pub registration: Option<Box<str>>,
    /// The tensor concerned, or NULL; never followed.
    pub node: *const ggml_tensor,
    /// What a call that answers a status says.
    pub status: ggml_status,
}

// SAFETY: the address of the tensor is only handed on, never followed.
unsafe impl Send for Error {}
// SAFETY: as above.
unsafe impl Sync for Error {}

impl Error {
    /// An error of kind `code`.
    pub fn new(code: ggml_ext_code, text: impl Into<String>) -> Self {
        let status = if code == GGML_EXT_CODE_OUT_OF_MEMORY { GGML_STATUS_ALLOC_FAILED } else { GGML_STATUS_FAILED };
        Error { code, text: text.into(), registration: None, node: std::ptr::null(), status }
    }
    /// A shape, stride or format that cannot be.
    pub fn shape(text: impl Into<String>) -> Self {
        Self::new(GGML_EXT_CODE_BAD_SHAPE, text)
    }
    /// An argument outside its range.
    pub fn argument(text: impl Into<String>) -> Self {
        Self::new(GGML_EXT_CODE_BAD_ARGUMENT, text)
    }
    /// A required pointer that is NULL.
    pub fn null(what: &str) -> Self {
        Self::new(GGML_EXT_CODE_NULL_ARGUMENT, format!("the {what} is NULL"))
    }
    /// Names the registration concerned.
    pub fn by(mut self, registration: &str) -> Self {
        self.registration = Some(registration.into());
        self
    }
    /// Names the tensor concerned.
    pub fn at(mut self, node: *const ggml_tensor) -> Self {
        self.node = node;
        self
    }
    /// The same error as seen by the caller of `call`.
    pub fn within(mut self, call: &str) -> Self {
        self.text.insert_str(0, ": ");
        self.text.insert_str(0, call);
        self
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

/// A failure as C code sees it.
pub struct Last {
    /// Kind of rule.
    pub code: ggml_ext_code,
    /// The sentence.
    pub text: CString,
    /// The registration concerned.
    pub registration: Option<CString>,
    /// The tensor concerned.
    pub node: *const ggml_tensor,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    /// What [`aside`] gathers.
    static ASIDE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`, whose failures on this thread are expected: they are neither logged nor kept as the last one. The text of the first,
/// empty if there was none.
pub fn aside<R>(f: impl FnOnce() -> R) -> (R, String) {
    struct Restore(Option<String>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASIDE.set(self.0.take());
        }
    }
    let _restore = Restore(ASIDE.replace(Some(String::new())));
    let result = f();
    (result, ASIDE.take().unwrap_or_default())
}

fn set_aside(error: &Error) -> bool {
    ASIDE.with_borrow_mut(|aside| {
        if let Some(text) = aside.as_mut().filter(|text| text.is_empty()) {
            text.push_str(&error.text);
        }
        aside.is_some()
    })
}

/// Records a failure of this thread and logs it.
pub fn report(error: &Error) {
    report_at(error, error.node);
}

/// As [`report`], naming the tensor concerned.
pub fn report_at(error: &Error, node: *const ggml_tensor) {
    if set_aside(error) {
        return;
    }
    let text = c_string(&error.text);
    crate::log::line(GGML_LOG_LEVEL_ERROR, &error.text);
    let registration = error.registration.as_deref().map(c_string);
    LAST.with(|last| *last.borrow_mut() = Some(Last { code: error.code, text, registration, node }));
}

/// Shorthand for [`report`] of a new error.
pub fn fail(code: ggml_ext_code, text: impl Into<String>) {
    report(&Error::new(code, text));
}

/// Hands the last failure of this thread to `take`; `None` when there was none.
pub fn with_last<R>(take: impl FnOnce(&Last) -> R) -> Option<R> {
    LAST.with(|last| last.borrow().as_ref().map(take))
}

/// Text for C: cut at an embedded zero.
pub fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
