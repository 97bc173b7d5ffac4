//! Entry points of ggml-ext.h: the check of a registration.

use super::graph::or_report;
use crate::backend::Backend;
use crate::check::{self, Author};
use crate::entry;
use crate::error::Error;
use crate::ext::{callback, structs};
use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr};

unsafe fn run(
    backend: ggml_backend_t,
    name: *const c_char,
    params: *const ggml_ext_check_params,
    report: *mut ggml_ext_check_report,
) -> Result<bool, Error> {
    callback::outside_only()?;
    // SAFETY: the contract of the entry points.
    unsafe {
        // a report that cannot be written is found before anything runs, and never says something old
        if !report.is_null() && !structs::write(report, &check::Report::default().to_c()) {
            return Err(Error::new(GGML_EXT_CODE_BAD_STRUCT, "ggml_ext_check_report: struct_size is not set"));
        }
        let backend = Backend::from_raw(backend).ok_or_else(|| Error::null("backend"))?;
        if name.is_null() {
            return Err(Error::null("name"));
        }
        let name = CStr::from_ptr(name).to_str().map_err(|_| Error::argument("the name is not text"))?;
        let author = Author::new(structs::read(params)?)?;
        let found = check::check(backend, name, &author)?;
        found.tell(&author);
        let answer = found.to_c();
        structs::write(report, &answer);
        match found.first_failure() {
            None => Ok(true),
            Some(case) => {
                let (n, all, text) = (answer.n_failed, answer.n_cases, &case.text);
                let text = format!("registration '{name}' fails {n} of {all} cases; {}: {text}", case.name);
                Err(Error::new(GGML_EXT_CODE_CHECK_FAILED, text).by(name))
            }
        }
    }
}

entry! {
    /// Checks the registration `name` of the backend's device: what it computes, against a reference, and what it must leave alone. True:
    /// no case failed. False, with an error: a case failed (`GGML_EXT_CODE_CHECK_FAILED`), or the check cannot be made; `report`, if it
    /// is not NULL, has the numbers in either case. The registration is forced in all cases but `chosen`; a case in which it cannot be
    /// launched shows nothing and says so. Contexts are the check's own, and so is memory, up to a few megabytes besides the tensors.
    ///
    /// Cases, in this order. When one of the first two fails in a way that all others would fail in, or crash in, it is the last:
    /// - `moved`: addresses that tensors have in prepare are not used in execute.
    /// - `measure`: it can be prepared before there is memory, and asks for no more scratch when there is.
    /// - `chosen`: it is used where nothing is forced.
    /// - `plain`, `unfused`: what it computes; for a fusion, against the single nodes.
    /// - `again`, `threads`: the same bits when run again, and on 1, 2, 3 threads. `GGML_EXT_KERNEL_DETERMINISTIC` is held to that; without
    ///   the flag a difference is noted.
    /// - `contents`: one plan on other numbers.
    /// - `poison`: whatever was in scratch, in the result, and around the tensors.
    /// - `layout.offset`, `layout.rows`, `layout.planes`, `layout.permuted`, `layout.transposed`: inputs that are parts of larger tensors.
    /// - `empty`: dimensions of 0.
    /// - `special.nan`, `special.inf`, `special.tiny` (denormal numbers, zeros of both signs), `special.huge`: such numbers in the inputs.
    /// - `same_input`: one tensor as two inputs. `inplace`: the result over a source, where the operator may.
    /// - `scheduler`: in a scheduler's memory, three times.
    /// - `fusion.consumer`, `fusion.output`, `fusion.view`, `fusion.alias`: nodes that somebody else reads, also through a view, or that
    ///   are outputs or lie over an input, are not fused, and results stay what they are.
    /// - `state`: what prepare makes is given back.
    /// - `guards`, `workspace`, `inputs`, `metadata`: in no run of all these is anything written but the result and scratch.
    pub fn ggml_ext_check(
        backend: ggml_backend_t,
        name: *const c_char,
        params: *const ggml_ext_check_params,
        report: *mut ggml_ext_check_report,
    ) -> bool {
        or_report("ggml_ext_check", run(backend, name, params, report))
    }
}
