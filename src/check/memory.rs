//! Cases about memory, addresses and state.

use super::arena::{Arena, Fill};
use super::compare::Tolerance;
use super::inputs::Variant;
use super::trial::{nodes_of, put, storage, Planned};
use super::{built, compare, heap, skip, Outcome, Session, Stop};
use crate::ext::{callback, plan::Launch, step};
use crate::graph::access::storage_of;
use ggml_oxide_abi::*;
use std::sync::atomic::Ordering;

/// States that were made and given back, when the check began.
pub struct Balance {
    prepared: u64,
    destroyed: u64,
    live: Option<i64>,
}

impl Balance {
    /// Now.
    pub(super) fn of(session: &Session) -> Self {
        let counts = &session.kernel.counts;
        Balance {
            prepared: counts.prepared.load(Ordering::Relaxed),
            destroyed: counts.destroyed.load(Ordering::Relaxed),
            live: session.author.live(),
        }
    }
}

/// `prepare` and `destroy` in a row, this often, between two looks at the memory in use.
const CYCLES: usize = 64;
/// Times that the memory in use is looked at.
const ROUNDS: usize = 8;

impl Session<'_> {
    /// # Safety
    /// As `check`, here and below.
    pub(super) unsafe fn memory(&mut self) {
        // SAFETY: the promise of `check`.
        unsafe {
            self.case("poison", |s| s.poison());
            self.case("inplace", |s| s.inplace());
        }
    }

    /// Memory that the step has not written holds something else each time.
    unsafe fn poison(&mut self) -> Outcome {
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.planned(seed, &variant, self.forced())?;
            let contents = self.contents(&planned.built, seed, None)?;
            let want = self.expected(&planned.built, seed, &variant, &[], &contents, true).map_err(Stop::Skip)?;
            let mut placed = self.place(planned)?;
            for byte in [0xff, 0x3c] {
                let got = self.run("poison", &mut placed, &contents, Fill::Poison(byte))?;
                compare(&got, &want, self.tolerance()).map_err(|stop| match stop {
                    Stop::Fail(text) => Stop::Fail(format!(
                        "with bytes {byte:#04x} in scratch, in the result and around the tensors before it runs: {text}"
                    )),
                    stop => stop,
                })?;
            }
        }
        Ok(())
    }

    /// The plan is made while tensors are in one place, and run when they are in another. `goes_on`: the other cases, in which plans
    /// are made before there is any memory, can be run.
    pub(super) unsafe fn moved(&mut self, goes_on: &mut bool) -> Outcome {
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        // SAFETY: the promise of `check`, for all of the function; tensors of a live graph, which goes after the arenas.
        unsafe {
            let built = built::quietly(self.author, seed, &variant, &[]).map_err(Stop::Skip)?;
            let contents = self.contents(&built, seed, None)?;
            let stale = self.contents(&built, seed + 1, None)?;
            let want = self.expected(&built, seed, &variant, &[], &contents, true).map_err(Stop::Skip)?;
            // what a fusion leaves out has no place, whoever asks
            let placed = |t: *mut ggml_tensor| {
                !self.kernel.is_rule() || storage_of(t).is_some_and(|(root, _)| (*root).op == GGML_OP_NONE)
            };
            let (owners, views) = storage(&built, placed);
            let old = Arena::new(self.backend, &owners, &views, None).map_err(|e| Stop::Skip(e.text))?;
            let mut image = old.blank(Fill::Clean);
            put(&built, &old, &stale, &mut image);
            old.load(&mut image);
            let planned = self.plan(built, self.forced())?;
            if planned.launches(&self.kernel.name).is_empty() {
                return skip(format!("the registration does not take it, {}", planned.refusal(&self.kernel.name)));
            }
            old.forget();
            let mut now = self.place(planned)?;
            let got = self.run("moved", &mut now, &contents, Fill::Clean)?;
            let kept = "an address that a tensor had in prepare is used in execute, when it has another (no other case was run)";
            let after = old.read();
            if let Some(at) = (0..after.len()).find(|&i| after[i] != image[i]) {
                *goes_on = false;
                return Err(Stop::Fail(format!("{kept}: {} was written in the old place", old.describe(at))));
            }
            let outcome = compare(&got, &want, self.tolerance());
            if outcome.is_err() {
                // does the result hang on what is in the old place, and on nothing else that changes?
                let again = self.run("moved", &mut now, &contents, Fill::Clean)?;
                old.load(&mut old.blank(Fill::Poison(0x3c)));
                let other = self.run("moved", &mut now, &contents, Fill::Clean)?;
                let same = |a, b| compare(a, b, Tolerance::EXACT).is_ok();
                if same(&again, &got) && !same(&other, &got) {
                    *goes_on = false;
                    return Err(Stop::Fail(format!("{kept}: the old place is read")));
                }
            }
            outcome
        }
    }

    /// States are given back, each once.
    pub(super) unsafe fn state(&mut self, before: &Balance) -> Outcome {
        let Some(prepare) = self.kernel.calls.prepare else { return skip("there is no prepare") };
        let counts = &self.kernel.counts;
        let made = counts.prepared.load(Ordering::Relaxed) - before.prepared;
        let given = counts.destroyed.load(Ordering::Relaxed) - before.destroyed;
        if made != given {
            return Err(Stop::Fail(format!("{made} states were made, {given} given back")));
        }
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        // SAFETY: the promise of `check`.
        let planned = unsafe { self.planned(seed, &variant, self.forced()) }?;
        let launch = planned.launches(&self.kernel.name)[0];
        let mut refused = None;
        let mut cycle = || {
            for _ in 0..CYCLES {
                // SAFETY: the promise of `check`.
                let status = unsafe { once(&planned, launch, prepare) };
                if status != GGML_STATUS_SUCCESS {
                    refused = Some(format!("prepare answers {status:?}: {}", callback::reason("it gave no reason")));
                }
            }
        };
        cycle();
        let live = self.author.live();
        let mut growth = Vec::new();
        for _ in 0..ROUNDS {
            let start = heap::in_use();
            cycle();
            growth.extend(start.zip(heap::in_use()).map(|(a, b)| b.saturating_sub(a)));
        }
        let after = self.author.live();
        drop(planned);
        if let Some(text) = refused {
            return Err(Stop::Fail(text));
        }
        if let (Some(a), Some(b)) = (live, after) {
            let all = before.live.zip(self.author.live());
            return match all {
                _ if a != b => Err(Stop::Fail(format!("{} states of {} are not given back", b - a, ROUNDS * CYCLES))),
                Some((a, b)) if a != b => {
                    Err(Stop::Fail(format!("{} states of the check's plans are not given back", b - a)))
                }
                _ => Ok(()),
            };
        }
        growth.sort_unstable();
        // other threads, on their way out, may give back more than is lost here, once or twice
        match growth.get(2) {
            // a block takes 16 bytes at least; what grows once and is kept does not grow each time
            Some(&least) if least >= 16 * CYCLES => Err(Stop::Fail(format!(
                "{CYCLES} times prepare and destroy leave {least} bytes or more behind, each time"
            ))),
            Some(_) => Ok(()),
            None => skip("the memory in use cannot be looked at here, and `live` is not given"),
        }
    }
}

type Prepare = unsafe extern "C" fn(*const ggml_ext_step, *mut ggml_ext_prepared, *mut std::ffi::c_void) -> ggml_status;

/// `prepare` and `destroy` for one launch.
///
/// # Safety
/// The graph is live; `prepare` is that of the launch.
unsafe fn once(planned: &Planned, launch: &Launch, prepare: Prepare) -> ggml_status {
    let mut out = ggml_ext_prepared {
        struct_size: size_of::<ggml_ext_prepared>(),
        workspace_size: 0,
        state: std::ptr::null_mut(),
    };
    let Some(plan) = &planned.plan else { return GGML_STATUS_FAILED };
    let nodes = nodes_of(planned, launch);
    // SAFETY: the caller's promise; the callbacks take a step, what prepare made, and their own data.
    unsafe {
        let step = step::describe(plan.device(), &nodes, &launch.srcs);
        let status = callback::call(|| prepare(&step, &mut out, launch.kernel.data()));
        if let Some(destroy) = launch.kernel.calls.destroy.filter(|_| status == GGML_STATUS_SUCCESS) {
            callback::call(|| destroy(out.state, launch.kernel.data()));
        }
        status
    }
}
