//! Cases about the same result each time: run again, and on other numbers of threads.

use super::arena::Fill;
use super::compare::{Tolerance, Values};
use super::inputs::Variant;
use super::trial::How;
use super::{compare, skip, Outcome, Session, Stop};
use crate::backend::Backend;
use ggml_oxide_abi::*;
use std::ffi::c_int;

type SetThreads = unsafe extern "C" fn(ggml_backend_t, c_int);

/// A backend that goes with the value.
struct Own(Backend);

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: made by `threads`, and its graphs are gone.
        unsafe { self.0.free() }
    }
}

impl Session<'_> {
    /// Bits that differ: a promise broken, or worth a note.
    fn judge(&mut self, case: &'static str, outcome: Outcome, what: &str) -> Outcome {
        match outcome {
            Err(Stop::Fail(text)) if self.kernel.flags & GGML_EXT_KERNEL_DETERMINISTIC == 0 => {
                let text = format!("{what}: {text}; GGML_EXT_KERNEL_DETERMINISTIC is not promised");
                self.report.add(case, GGML_EXT_CHECK_NOTED, text);
                Ok(())
            }
            Err(Stop::Fail(text)) => {
                Err(Stop::Fail(format!("{what}: {text}; GGML_EXT_KERNEL_DETERMINISTIC promises the same bits")))
            }
            outcome => outcome,
        }
    }

    /// The same plan, run again on the same numbers.
    ///
    /// # Safety
    /// As `check`, here and below.
    pub(super) unsafe fn again(&mut self) -> Outcome {
        // SAFETY: the promise of `check`.
        let results = unsafe { self.results("again", self.backend, 3) }?;
        for (i, result) in results.iter().enumerate().skip(1) {
            let outcome = compare(result, &results[0], Tolerance::EXACT);
            self.judge("again", outcome, &format!("run {} after run 1", i + 1))?;
        }
        Ok(())
    }

    pub(super) unsafe fn threads(&mut self) -> Outcome {
        let Some(device) = self.backend.device() else { return skip("there is no device") };
        let set = device.reg().map_or(std::ptr::null_mut(), |r| r.proc_address(c"ggml_backend_set_n_threads"));
        // SAFETY: what a registry gives under this name has this type; NULL is `None`.
        let Some(set) = (unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<SetThreads>>(set) }) else {
            return skip("the backend's threads cannot be set");
        };
        let mut first: Option<Vec<Values>> = None;
        for n in 1..=self.author.n_threads() {
            // SAFETY: the device is live, and NULL is no parameters.
            let Some(backend) = (unsafe { device.init(std::ptr::null()) }) else {
                return skip("the device gives no backend");
            };
            let backend = Own(backend);
            // SAFETY: a live backend of that registry.
            unsafe { set(backend.0.as_raw(), n) };
            // SAFETY: the promise of `check`.
            let results = unsafe { self.results("threads", backend.0, 2) }?;
            for result in results {
                match &first {
                    None => first = Some(result),
                    Some(first) => {
                        let outcome = compare(&result, first, Tolerance::EXACT);
                        self.judge("threads", outcome, &format!("{n} threads after 1"))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The results of `n` runs of one plan.
    unsafe fn results(&mut self, case: &'static str, backend: Backend, n: usize) -> Result<Vec<Vec<Values>>, Stop> {
        let seed = *self.author.seeds().start();
        let how = How { backend, ..self.forced() };
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.planned(seed, &Variant::default(), how)?;
            let contents = self.contents(&planned.built, seed, None)?;
            let mut placed = self.place(planned)?;
            (0..n).map(|_| self.run(case, &mut placed, &contents, Fill::Clean)).collect()
        }
    }
}
