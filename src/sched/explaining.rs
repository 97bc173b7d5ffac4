//! The graph at hand explained: what each split became, for a caller who asks and for the file that the environment names.

use super::scheduler::Sched;
use crate::error::Error;
use crate::ext::explain::{self, Copied, Explanation, Portion};
use crate::ext::{profile, registry};

impl Sched {
    /// Explains the graph at hand; an error when there is none.
    ///
    /// # Safety
    /// The graph that was allocated is live, with its tensors and what they read and view, and nobody writes to them meanwhile.
    pub unsafe fn explain(&self) -> Result<Explanation, Error> {
        if !self.has_graph() {
            return Err(Error::argument("there is no graph at hand: allocate or compute one first"));
        }
        let backend = |number: i32| self.team.backends[number as usize];
        let portions: Vec<Portion> = self
            .splits
            .iter()
            .map(|split| Portion {
                number: split.backend as usize,
                backend: backend(split.backend),
                graph: &split.graph,
                plan: split.plan.as_ref(),
                inputs: split
                    .inputs
                    .iter()
                    .map(|i| Copied { original: i.original, copies: &i.copies, from: backend(i.home) })
                    .collect(),
                time: split.time.clone(),
                // SAFETY: the caller's promise.
                stale: unsafe { self.check_split(split, registry::epoch()) }.err().map(|e| e.text),
            })
            .collect();
        // SAFETY: the caller's promise; the splits are of the graph at hand.
        Ok(unsafe { explain::collect(&portions, |t| self.galloc.is_skipped(t)) })
    }

    /// Explains a graph that just got its memory in the file that the environment names. While steps are timed, this waits for the
    /// first computation, so that the file has times.
    ///
    /// # Safety
    /// As [`Sched::explain`].
    pub(super) unsafe fn explain_allocated(&mut self) {
        self.explains = explain::file::wanted();
        if !profile::is_on() {
            // SAFETY: the caller's promise.
            unsafe { self.explain_now() }
        }
    }

    /// As [`Sched::explain_allocated`], for a graph that was computed.
    ///
    /// # Safety
    /// As [`Sched::explain`].
    pub(super) unsafe fn explain_now(&mut self) {
        if let Some(path) = self.explains.take() {
            // SAFETY: the caller's promise.
            if let Ok(explanation) = unsafe { self.explain() } {
                explain::file::write(&path, &explanation);
            }
        }
    }
}
