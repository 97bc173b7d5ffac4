//! Cases of a scheduler: a real allocator, with places that are used again, and memory that is only measured.

use super::built::Built;
use super::compare::Values;
use super::contents::Contents;
use super::inputs::Variant;
use super::{built, compare, skip, Outcome, Session, Stop};
use crate::backend::{cpu, tensor_data, Backend};
use crate::error;
use crate::ext::policy;
use crate::sched::Sched;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::sync::atomic::Ordering;

const CALL: &str = "ggml_ext_check";

/// A CPU backend that goes with the value.
struct Host(Backend);

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: made by `host`; the scheduler that had it is gone.
        unsafe { self.0.free() }
    }
}

impl Session<'_> {
    /// A scheduler over the backend, and the CPU where that is another; the scheduler goes first.
    fn sched(&self) -> Result<(Option<Host>, Sched), Stop> {
        let host = if self.is_cpu() {
            None
        } else {
            // SAFETY: the device is live, and NULL is no parameters.
            let host = cpu::reg().device(0).and_then(|d| unsafe { d.init(std::ptr::null()) });
            Some(Host(host.ok_or_else(|| Stop::Skip("there is no CPU backend".into()))?))
        };
        let backends: Vec<Backend> = std::iter::once(self.backend).chain(host.as_ref().map(|h| h.0)).collect();
        let sched = Sched::new(&backends, None, false, false).map_err(|e| Stop::Skip(e.text))?;
        Ok((host, sched))
    }

    /// Memory is measured before there is any; what it comes to is enough for what is then asked for. `goes_on`: plans can be made
    /// without memory, as they are for the other cases.
    ///
    /// # Safety
    /// As `check`, here and below.
    pub(super) unsafe fn measure(&mut self, goes_on: &mut bool) -> Outcome {
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        let (_host, mut sched) = self.sched()?;
        let mut built = built::quietly(self.author, seed, &variant, &[]).map_err(Stop::Skip)?;
        let policy = self.forced().policy;
        let before = self.kernel.counts.selected.load(Ordering::Relaxed);
        // SAFETY: a graph of this function's own.
        let sizes = policy::with(policy, || unsafe { error::aside(|| sched.sizes(built.graph())).0 });
        let sizes = sizes.map_err(|e| {
            *goes_on = e.registration.is_none();
            match self.blame(e) {
                Stop::Fail(text) => Stop::Fail(format!("before there is memory (no other case was run): {text}")),
                stop => stop,
            }
        })?;
        if self.kernel.counts.selected.load(Ordering::Relaxed) == before {
            return skip("the scheduler's plan does not use the registration");
        }
        // SAFETY: the promise of `check`.
        let planned = unsafe { self.planned(seed, &variant, self.forced()) }?;
        let workspace = planned.plan.as_ref().map_or(0, |p| p.workspace);
        match sizes.iter().sum::<usize>() {
            all if all < workspace => {
                Err(Stop::Fail(format!("{all} bytes were measured, and the plan asks for {workspace} of scratch")))
            }
            _ => self.measured_enough(seed, workspace),
        }
    }

    /// Scratch asked for when tensors have their places is no more than when they had none.
    fn measured_enough(&self, seed: u64, measured: usize) -> Outcome {
        if self.kernel.is_rule() {
            return Ok(());
        }
        // SAFETY: the promise of `check`, for all of the function; the graph goes after the arena.
        unsafe {
            let built = built::quietly(self.author, seed, &Variant::default(), &[]).map_err(Stop::Skip)?;
            let (owners, views) = super::trial::storage(&built, |_| true);
            let arena =
                super::arena::Arena::new(self.backend, &owners, &views, None).map_err(|e| Stop::Skip(e.text))?;
            let planned = self.plan(built, self.forced())?;
            let asked = planned.plan.as_ref().map_or(0, |p| p.workspace);
            drop(arena);
            if asked > measured {
                let text =
                    format!("prepare asks for {asked} bytes of scratch, and when memory was measured for {measured}");
                return Err(Stop::Fail(text));
            }
        }
        Ok(())
    }

    /// The graph as an application runs it, twice, and once more after a reset.
    pub(super) unsafe fn scheduler(&mut self) -> Outcome {
        if let Some(case) = ["guards", "workspace"].into_iter().find(|case| self.report.has_failed(case)) {
            return skip(format!("not run, since {case} failed: a scheduler's memory has no guard bytes"));
        }
        let (seed, variant) = (*self.author.seeds().start(), Variant::default());
        let mut built = built::quietly(self.author, seed, &variant, &[]).map_err(Stop::Skip)?;
        let contents = self.contents(&built, seed, None)?;
        let other = self.contents(&built, seed + 1, None)?;
        // SAFETY: the promise of `check`, for all of the function; tensors of a live graph.
        unsafe {
            let mut rounds = Vec::new();
            for (contents, again) in [(&contents, false), (&other, false), (&contents, true)] {
                let want = self.expected(&built, seed, &variant, &[], contents, true).map_err(Stop::Skip)?;
                rounds.push((contents, want, again));
            }
            let result = built.result();
            for t in [result, (*result).view_src] {
                if let Some(t) = t.as_mut() {
                    t.flags |= GGML_TENSOR_FLAG_OUTPUT.0;
                }
            }
            let (_host, mut sched) = self.sched()?;
            for (i, (contents, want, again)) in rounds.into_iter().enumerate() {
                if again {
                    sched.reset();
                    for t in built.tensors() {
                        ((*t).buffer, (*t).data) = (std::ptr::null_mut(), std::ptr::null_mut());
                    }
                }
                let got = self.scheduled(&mut sched, &mut built, contents, i == 0 || again)?;
                compare(&[got], &want[..1], self.tolerance()).map_err(|stop| match stop {
                    Stop::Fail(text) => Stop::Fail(format!("run {} of a scheduler: {text}", i + 1)),
                    stop => stop,
                })?;
            }
        }
        Ok(())
    }

    unsafe fn scheduled(
        &mut self,
        sched: &mut Sched,
        built: &mut Built,
        contents: &Contents,
        prepare: bool,
    ) -> Result<Values, Stop> {
        let policy = self.forced().policy;
        let kernel = self.kernel.clone();
        let ran = || kernel.counts.ran.load(Ordering::Relaxed);
        let before = ran();
        // SAFETY: the promise of `check`, for all of the function; the graph is live, and the scheduler is used before it goes.
        let (status, failure) = unsafe {
            if prepare {
                let prepared = policy::with(policy, || error::aside(|| sched.prepare(built.graph())).0);
                prepared.map_err(|e| self.blame(e))?;
            }
            for (input, bytes) in built.inputs.iter().zip(contents).filter(|(_, bytes)| !bytes.is_empty()) {
                // who reads nothing of it has no use for its contents
                if !(*input.tensor).data.is_null() {
                    tensor_data::set(
                        CALL,
                        input.tensor,
                        bytes.as_ptr().cast(),
                        tensor_data::Rows::range(0, bytes.len()),
                    );
                }
            }
            let result = error::aside(|| sched.compute_async(built.graph()));
            sched.synchronize();
            result
        };
        match status {
            Ok(GGML_STATUS_SUCCESS) => {}
            Ok(status) => return Err(Stop::Fail(format!("{status:?}: {failure}"))),
            Err(e) => return Err(self.blame(e)),
        }
        if ran() == before {
            return skip("the scheduler's plan does not use the registration");
        }
        self.report.ran("scheduler");
        // SAFETY: the result is live and has its data.
        unsafe {
            let t = &*built.result();
            let mut whole = vec![0u8; shape::nbytes(t)];
            if !whole.is_empty() {
                tensor_data::get(CALL, t, whole.as_mut_ptr().cast(), tensor_data::Rows::range(0, whole.len()));
            }
            let mut bytes = Vec::new();
            super::inputs::pieces(t.r#type, &t.ne, &t.nb, |_, to, n| bytes.extend_from_slice(&whole[to..to + n]));
            Ok(Values { name: shape::name(t), ty: t.r#type, ne: t.ne, bytes })
        }
    }
}
