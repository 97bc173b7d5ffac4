//! What was found, case by case.

use super::author::Author;
use crate::error::c_string;
use ggml_oxide_abi::*;
use std::cell::RefCell;
use std::ffi::CString;

/// A case.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// How it ended so far; `None`: nothing was found out.
    pub outcome: Option<ggml_ext_check_outcome>,
    /// Why.
    pub text: String,
    /// How often the registration ran for it.
    pub runs: u32,
}

/// Cases in order.
#[derive(Default)]
pub struct Report {
    /// All of them.
    pub cases: Vec<Case>,
}

/// Which outcome stands when a case has several.
fn weight(outcome: Option<ggml_ext_check_outcome>) -> u8 {
    match outcome {
        Some(GGML_EXT_CHECK_FAILED) => 4,
        Some(GGML_EXT_CHECK_NOTED) => 3,
        Some(GGML_EXT_CHECK_PASSED) => 2,
        Some(_) => 1,
        None => 0,
    }
}

impl Report {
    fn case(&mut self, name: &'static str) -> &mut Case {
        let at = self.cases.iter().position(|c| c.name == name).unwrap_or_else(|| {
            self.cases.push(Case { name, outcome: None, text: String::new(), runs: 0 });
            self.cases.len() - 1
        });
        &mut self.cases[at]
    }

    /// Adds an outcome of a case. The worst stands, with the text that came first.
    pub fn add(&mut self, name: &'static str, outcome: ggml_ext_check_outcome, text: impl Into<String>) {
        let case = self.case(name);
        if weight(Some(outcome)) > weight(case.outcome) {
            (case.outcome, case.text) = (Some(outcome), text.into());
        }
    }

    /// Counts a run.
    pub fn ran(&mut self, name: &'static str) {
        self.case(name).runs += 1;
    }

    /// Whether the case failed.
    pub fn has_failed(&self, name: &str) -> bool {
        self.cases.iter().any(|c| c.name == name && c.outcome == Some(GGML_EXT_CHECK_FAILED))
    }

    /// The first case that failed.
    pub fn first_failure(&self) -> Option<&Case> {
        self.cases.iter().find(|c| c.outcome == Some(GGML_EXT_CHECK_FAILED))
    }

    /// Puts the cases into the order of `order`.
    pub fn sort(&mut self, order: &[&str]) {
        self.cases.sort_by_key(|c| order.iter().position(|name| *name == c.name));
    }

    /// Tells the author of each case.
    pub fn tell(&self, author: &Author) {
        for case in &self.cases {
            let (name, text) = (c_string(case.name), c_string(&case.text));
            author.tell(&ggml_ext_check_case {
                struct_size: size_of::<ggml_ext_check_case>(),
                name: name.as_ptr(),
                outcome: case.outcome.unwrap_or(GGML_EXT_CHECK_NOT_APPLICABLE),
                n_runs: case.runs,
                text: text.as_ptr(),
            });
        }
    }

    /// As C code gets it. The texts live until the next call on this thread.
    pub fn to_c(&self) -> ggml_ext_check_report {
        thread_local! {
            static TEXTS: RefCell<(CString, CString)> = RefCell::default();
        }
        let count = |outcome| {
            let of = |c: &&Case| c.outcome.unwrap_or(GGML_EXT_CHECK_NOT_APPLICABLE) == outcome;
            self.cases.iter().filter(of).count() as u32
        };
        let null = std::ptr::null();
        let (failed_case, text) = TEXTS.with_borrow_mut(|texts| match self.first_failure() {
            None => (null, null),
            Some(case) => {
                *texts = (c_string(case.name), c_string(&case.text));
                (texts.0.as_ptr(), texts.1.as_ptr())
            }
        });
        ggml_ext_check_report {
            struct_size: 0,
            n_cases: self.cases.len() as u32,
            n_passed: count(GGML_EXT_CHECK_PASSED),
            n_failed: count(GGML_EXT_CHECK_FAILED),
            n_not_applicable: count(GGML_EXT_CHECK_NOT_APPLICABLE),
            n_noted: count(GGML_EXT_CHECK_NOTED),
            n_runs: self.cases.iter().map(|c| c.runs).sum(),
            failed_case,
            text,
        }
    }
}
