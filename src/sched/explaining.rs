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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::fake::*;
    use crate::ext::explain::{Explanation, Place};
    use crate::graph::testing::*;

    fn names(e: &Explanation, split: usize) -> Vec<String> {
        e.splits[split].nodes().map(|n| String::from_utf8_lossy(&n.name).into_owned()).collect()
    }

    /// Splits of two backends, without registrations: copies are named as what they are copies of.
    #[test]
    fn abi_3_splits_and_copies() {
        let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
        let mut s = sched(&[gpu, cpu], false);
        let mut b = Bench::new();
        let x = b.input(3);
        let p = b.add(x, x);
        let q = b.scale(p, 3);
        let r = b.add(q, p);
        let g = b.graph(&[r]);
        for (t, backend) in [(p, 0), (q, 1), (r, 0)] {
            s.pin(t, backend);
        }
        // SAFETY: the bench's graph.
        unsafe {
            assert!(s.explain().is_err(), "there is no graph yet");
            s.prepare(g).unwrap();
            let e = s.explain().unwrap();
            assert_eq!(e.splits.len(), 3);
            assert_eq!([0, 1, 2].map(|i| e.splits[i].number), [0, 1, 0]);
            assert_eq!([0, 1, 2].map(|i| names(&e, i)), [["node_0"], ["node_1"], ["node_2"]]);
            let reads = |split: usize| -> Vec<Option<Place>> {
                e.splits[split].nodes().flat_map(|n| n.reads.iter().map(|r| r.at)).collect()
            };
            let at = |split| Some(Place { split, node: 0 });
            assert_eq!([0, 1, 2].map(reads), [vec![None; 2], vec![at(0)], vec![at(1), at(0)]]);
            let copied: Vec<_> = e.splits[2].inputs.iter().map(|i| (i.source.at, i.bytes)).collect();
            assert_eq!(copied, [(at(1), 12)], "the other one is there already");
            assert!(e.splits.iter().all(|s| s.stale.is_none()));
            s.reset();
            assert!(s.explain().is_err(), "nor is there one any more");
        }
    }
}
