//! Cases in which nodes must not be fused: somebody else needs what would be left out.

use super::arena::Fill;
use super::built::{self, Change};
use super::inputs::Variant;
use super::trial::{nodes_of, Planned};
use super::{compare, skip, Outcome, Session, Stop};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What is done to each node of a match.
type Make = fn(usize) -> Change;

const CHANGES: [(&str, Make, &str); 4] = [
    ("fusion.consumer", Change::Consumer, "somebody else reads"),
    ("fusion.output", Change::Output, "marked as an output is"),
    ("fusion.view", Change::View, "somebody else reads a view of"),
    ("fusion.alias", Change::Over, "written over an input is"),
];

/// A node of a match.
struct Node {
    /// Its number among the tensors.
    number: usize,
    name: String,
    /// It is not the last.
    inner: bool,
    /// It gets no memory.
    skipped: bool,
}

impl Session<'_> {
    /// # Safety
    /// As `check`, here and below.
    pub(super) unsafe fn fusion(&mut self) {
        for (case, make, what) in CHANGES {
            // SAFETY: the promise of `check`.
            self.case(case, |s| unsafe { s.not_fused(case, make, what) });
        }
    }

    unsafe fn not_fused(&mut self, case: &'static str, make: Make, what: &str) -> Outcome {
        if !self.kernel.is_rule() {
            return skip("it fuses nothing");
        }
        let seed = *self.author.seeds().start();
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.planned(seed, &Variant::default(), self.forced())?;
            let nodes = matched(&planned, &self.kernel.name);
            drop(planned);
            if nodes.is_empty() {
                return skip("it fuses nothing here");
            }
            let mut last = Stop::Skip("no node of the match can be like that".into());
            let mut passed = false;
            for node in nodes {
                let wanted = match make(node.number) {
                    Change::Over(_) => true,
                    // what holds the result may be an output
                    Change::Output(_) => node.inner && node.skipped,
                    _ => node.inner,
                };
                if !wanted {
                    continue;
                }
                match self.changed(case, seed, make(node.number)) {
                    Ok(()) => passed = true,
                    Err(Stop::Fail(text)) => return Err(Stop::Fail(format!("{what} '{}': {text}", node.name))),
                    Err(stop) => last = stop,
                }
            }
            if passed {
                Ok(())
            } else {
                Err(last)
            }
        }
    }

    unsafe fn changed(&mut self, case: &'static str, seed: u64, change: Change) -> Outcome {
        let variant = Variant::default();
        let built = built::quietly(self.author, seed, &variant, &[change]).map_err(Stop::Skip)?;
        // SAFETY: the promise of `check`, for all of the function.
        unsafe {
            let planned = self.plan(built, self.forced())?;
            let (number, whole) = match change {
                Change::Over(number) => (number, true),
                Change::Consumer(number) | Change::Output(number) | Change::View(number) => (number, false),
            };
            let fused =
                matched(&planned, &self.kernel.name).into_iter().any(|n| n.number == number && (whole || n.inner));
            if fused {
                return Err(Stop::Fail("it is fused all the same".into()));
            }
            let contents = self.contents(&planned.built, seed, None)?;
            let want =
                self.expected(&planned.built, seed, &variant, &[change], &contents, false).map_err(Stop::Skip)?;
            let mut placed = self.place(planned)?;
            let got = self.run(case, &mut placed, &contents, Fill::Clean)?;
            compare(&got, &want, self.tolerance())
        }
    }
}

/// Nodes of the registration's matches.
fn matched(planned: &Planned, name: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    for launch in planned.launches(name) {
        let all: Vec<*mut ggml_tensor> = nodes_of(planned, launch);
        if all.len() < 2 {
            continue;
        }
        for (i, &node) in all.iter().enumerate() {
            let Some(number) = planned.built.number_of(node) else { continue };
            let (inner, skipped) = (i + 1 < all.len(), launch.skipped.contains(&(launch.nodes.start + i)));
            // SAFETY: a node of the graph.
            nodes.push(Node { number, name: shape::name(unsafe { &*node }), inner, skipped });
        }
    }
    nodes
}
