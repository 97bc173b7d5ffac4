//! The check of a registration (`ggml_ext_check`): what it computes is held against a reference, and what it must leave alone is
//! looked at, on inputs that kernels stumble over. Imports: everything but [`crate::capi`]; [`crate::ext`] for plans, [`crate::sched`]
//! for the cases that run as an application's graph does.
//!
//! A case: the author's graph is [`built`] with [`inputs`] as the case wants them, planned with the registration forced, placed in an
//! [`arena`] with guard bytes, filled ([`contents`]) and run ([`trial`]); the reference is the same graph without the registration, or
//! the author's own. Results are [`compare`]d, and everything is noted in a [`report`]. What is not launched shows nothing, and the
//! case says so.
//!
//! - [`values`]: what it computes. [`memory`]: how it treats memory, addresses and state. [`fusion`]: when it must not fuse.
//! - [`threads`]: whether it computes the same each time. [`schedule`]: it runs as part of a scheduler's graph.

mod arena;
mod author;
mod built;
mod compare;
mod contents;
mod fusion;
mod heap;
mod inputs;
mod memory;
mod report;
mod schedule;
mod threads;
mod trial;
mod values;

pub use author::Author;
pub use report::{Case, Report};

use crate::backend::{cpu, Backend};
use crate::error::{self, Error};
use crate::ext::policy::{self, Policy};
use crate::ext::registry::{self, Kernel};
use arena::Fill;
use built::{Built, Change};
use compare::{Tolerance, Values};
use contents::{Contents, Special};
use ggml_oxide_abi::*;
use inputs::Variant;
use std::sync::Arc;
use trial::{How, Placed, Planned};

/// All cases in the order in which they are reported.
pub const CASES: [&str; 31] = [
    "moved",
    "measure",
    "chosen",
    "plain",
    "unfused",
    "again",
    "threads",
    "contents",
    "poison",
    "layout.offset",
    "layout.rows",
    "layout.planes",
    "layout.permuted",
    "layout.transposed",
    "empty",
    "special.nan",
    "special.inf",
    "special.tiny",
    "special.huge",
    "same_input",
    "inplace",
    "scheduler",
    "fusion.consumer",
    "fusion.output",
    "fusion.view",
    "fusion.alias",
    "state",
    "guards",
    "workspace",
    "inputs",
    "metadata",
];

/// Cases that every run is looked at for.
const EVERY_RUN: [&str; 3] = ["guards", "inputs", "metadata"];

/// Why a case ends early.
enum Stop {
    /// It shows nothing.
    Skip(String),
    /// The registration is at fault.
    Fail(String),
}

type Outcome = Result<(), Stop>;

fn skip<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skip(text.into()))
}

/// A check under way.
struct Session<'a> {
    backend: Backend,
    kernel: Arc<Kernel>,
    author: &'a Author,
    environment: Arc<Policy>,
    report: Report,
    /// A CPU backend of the session's own, for references that the device cannot compute.
    host: Option<Backend>,
    n_inputs: usize,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(host) = self.host.take() {
            // SAFETY: the session's own.
            unsafe { host.free() }
        }
    }
}

/// Checks the registration `name` of the backend's device.
///
/// # Errors
/// There is no such registration, the author's graph cannot be built, or there is nothing to compare it with. That a case fails is no
/// error but in the report.
///
/// # Safety
/// The backend is live and used by nobody else during the call.
pub unsafe fn check(backend: Backend, name: &str, author: &Author) -> Result<Report, Error> {
    let device =
        backend.device().ok_or_else(|| Error::argument(format!("backend '{}' is on no device", backend.name())))?;
    let kernel = registry::kernel(device, name)?;
    if let Some(unknown) = author.unknown(&CASES) {
        return Err(Error::argument(format!("leave_out: there is no case '{unknown}'")));
    }
    let environment = policy::refresh();
    let mut session =
        Session { backend, kernel, author, environment, report: Report::default(), host: None, n_inputs: 0 };
    // SAFETY: the caller's promise.
    unsafe { session.all() }.map_err(|e| e.by(name))?;
    let mut report = std::mem::take(&mut session.report);
    report.sort(&CASES);
    Ok(report)
}

impl Session<'_> {
    /// # Safety
    /// As [`check`], here and below.
    unsafe fn all(&mut self) -> Result<(), Error> {
        let first = *self.author.seeds().start();
        let plain = built::quietly(self.author, first, &Variant::default(), &[]).map_err(Error::argument)?;
        self.n_inputs = plain.inputs.len();
        let before = memory::Balance::of(self);
        // SAFETY: the promise of `check`.
        unsafe {
            let contents =
                contents::make(self.author, &plain, first, None).map_err(Error::argument)?.unwrap_or_default();
            // nothing is worth doing without something to compare with
            self.expected(&plain, first, &Variant::default(), &[], &contents, true).map_err(|why| {
                let text = format!("there is nothing to compare '{}' with: {why}; give `reference`", self.kernel.name);
                Error::new(GGML_EXT_CODE_NO_KERNEL, text)
            })?;
            drop(plain);
            // What fails here in a way that all other cases would fail in, or crash in, is enough.
            let mut goes_on = true;
            self.case("moved", |s| s.moved(&mut goes_on));
            if goes_on {
                self.case("measure", |s| s.measure(&mut goes_on));
            }
            if !goes_on {
                return Ok(());
            }
            self.case("chosen", |s| s.chosen());
            self.values();
            self.case("again", |s| s.again());
            self.case("threads", |s| s.threads());
            self.memory();
            self.case("scheduler", |s| s.scheduler());
            self.fusion();
            self.case("state", |s| s.state(&before));
        }
        for name in EVERY_RUN.iter().chain(&["workspace"]) {
            self.report.add(name, GGML_EXT_CHECK_NOT_APPLICABLE, "nothing ran, or no scratch was asked for");
        }
        Ok(())
    }

    /// Runs a case unless it is left out.
    fn case(&mut self, name: &'static str, f: impl FnOnce(&mut Self) -> Outcome) {
        if self.author.leaves_out(name) {
            self.report.add(name, GGML_EXT_CHECK_NOT_APPLICABLE, "left out");
            return;
        }
        let outcome = f(self);
        self.note(name, outcome);
    }

    fn note(&mut self, name: &'static str, outcome: Outcome) {
        match outcome {
            Ok(()) => self.report.add(name, GGML_EXT_CHECK_PASSED, ""),
            Err(Stop::Skip(text)) => self.report.add(name, GGML_EXT_CHECK_NOT_APPLICABLE, text),
            Err(Stop::Fail(text)) => self.report.add(name, GGML_EXT_CHECK_FAILED, text),
        }
    }

    /// Plans with the registration in front of all others.
    fn forced(&self) -> How {
        let policy = self.environment.forcing(&self.kernel.name);
        How { backend: self.backend, policy, fuses: self.kernel.is_rule() }
    }

    /// Plans as an application's are made.
    fn natural(&self) -> How {
        How { backend: self.backend, policy: (*self.environment).clone(), fuses: self.kernel.is_rule() }
    }

    /// The author's graph, in which the registration has something to do.
    unsafe fn planned(&self, seed: u64, variant: &Variant, how: How) -> Result<Planned, Stop> {
        let built = built::quietly(self.author, seed, variant, &[]).map_err(Stop::Skip)?;
        if !built.applied
            && (variant.layout != inputs::Layout::Plain || !variant.empty.is_empty() || variant.same.is_some())
        {
            return skip("no input can be like that");
        }
        // SAFETY: the promise of `check`.
        let planned = unsafe { self.plan(built, how) }?;
        match planned.launches(&self.kernel.name).is_empty() {
            true => skip(format!("the registration does not take it, {}", planned.refusal(&self.kernel.name))),
            false => Ok(planned),
        }
    }

    /// The plan of a graph that can be computed.
    unsafe fn plan(&self, built: Built, how: How) -> Result<Planned, Stop> {
        // SAFETY: the promise of `check`.
        let planned = unsafe { Planned::new(built, how) }.map_err(|e| self.blame(e))?;
        match planned.unsupported() {
            Some(text) => skip(text),
            None => Ok(planned),
        }
    }

    /// Whether an error is the registration's fault.
    fn blame(&self, error: Error) -> Stop {
        match error.registration.as_deref() == Some(self.kernel.name.as_str()) {
            true => Stop::Fail(error.text),
            false => Stop::Skip(error.text),
        }
    }

    /// Contents for the inputs of `built`.
    fn contents(&self, built: &Built, seed: u64, special: Option<(Special, Option<usize>)>) -> Result<Contents, Stop> {
        match contents::make(self.author, built, seed, special) {
            Ok(Some(contents)) => Ok(contents),
            Ok(None) => skip("no input takes such numbers"),
            Err(text) => Err(Stop::Skip(text)),
        }
    }

    /// Gives a planned graph its memory.
    unsafe fn place(&self, planned: Planned) -> Result<Placed, Stop> {
        // SAFETY: the promise of `check`.
        unsafe { planned.place(None) }.map_err(|e| Stop::Skip(e.text))
    }

    /// Runs a graph for a case, and notes what it did besides.
    unsafe fn run(
        &mut self,
        case: &'static str,
        placed: &mut Placed,
        contents: &Contents,
        fill: Fill,
    ) -> Result<Vec<Values>, Stop> {
        self.report.ran(case);
        let scratch = placed.planned.plan.as_ref().is_some_and(|p| p.workspace > 0);
        // SAFETY: the promise of `check`.
        let ran = unsafe { placed.run(contents, fill) }.map_err(Stop::Fail)?;
        for name in EVERY_RUN.into_iter().chain(scratch.then_some("workspace")) {
            match ran.damage.iter().find(|d| d.case == name) {
                Some(damage) => self.fault(name, format!("{} (case {case})", damage.text)),
                None => self.note(name, Ok(())),
            }
        }
        Ok(ran.outputs)
    }

    fn fault(&mut self, name: &'static str, text: String) {
        if self.author.leaves_out(name) {
            self.report.add(name, GGML_EXT_CHECK_NOT_APPLICABLE, "left out");
        } else {
            self.report.add(name, GGML_EXT_CHECK_FAILED, text);
        }
    }

    fn tolerance(&self) -> Tolerance {
        Tolerance { max_nmse: self.author.max_nmse(), ..Tolerance::EXACT }
    }

    /// What the graph of `of` must give. `own`: by the author's reference, where there is one.
    unsafe fn expected(
        &mut self,
        of: &Built,
        seed: u64,
        variant: &Variant,
        changes: &[Change],
        contents: &Contents,
        own: bool,
    ) -> Result<Vec<Values>, String> {
        let author = self.author;
        let build = || match own && author.has_reference() {
            true => error::aside(|| Built::reference_of(author, seed, of)).0,
            false => built::quietly(author, seed, &variant.plain(), changes),
        };
        // SAFETY: the promise of `check`.
        unsafe {
            let mut planned = self.without(build()?, self.backend);
            if planned.is_err() && !self.is_cpu() {
                let device = cpu::reg().device(0);
                let host = self.host.or_else(|| device.and_then(|d| d.init(std::ptr::null())));
                self.host = host;
                if let Some(host) = host {
                    planned = self.without(build()?, host);
                }
            }
            let planned = planned?;
            if planned.built.inputs.len() != of.inputs.len() {
                return Err("build does not make the same inputs each time".into());
            }
            let mut placed = planned.place(None).map_err(|e| e.text)?;
            Ok(placed.run(contents, Fill::Clean)?.outputs)
        }
    }

    /// The plan of a graph without the registration.
    unsafe fn without(&self, built: Built, backend: Backend) -> Result<Planned, String> {
        let how = How { backend, policy: self.environment.forbidding(&self.kernel.name), fuses: false };
        // SAFETY: the promise of `check`.
        let planned = unsafe { Planned::new(built, how) }.map_err(|e| e.text)?;
        match planned.unsupported() {
            Some(text) => Err(text),
            None => Ok(planned),
        }
    }

    fn is_cpu(&self) -> bool {
        self.backend.device() == cpu::reg().device(0)
    }
}

/// Whether all of `got` is as `want`.
fn compare(got: &[Values], want: &[Values], tolerance: Tolerance) -> Outcome {
    for (got, want) in got.iter().zip(want) {
        compare::same(got, want, tolerance).map_err(Stop::Fail)?;
    }
    Ok(())
}
