//! Stage 4: the plan of each split, where something is registered; what fusions leave out is not allocated, and plans get their scratch
//! memory.

use super::scheduler::Sched;
use super::split::Split;
use crate::error::Error;
use crate::ext::facts::{Facts, Uses};
use crate::ext::{legality, plan, registry, run};
use crate::graph;
use ggml_oxide_abi::*;

/// When the graph at hand was planned.
#[derive(Clone, Copy, Default)]
pub(super) struct Planned {
    /// Number of the last change of registrations.
    since: u64,
    /// Nodes might have been fused.
    may_fuse: bool,
}

impl Sched {
    /// Makes the plans.
    ///
    /// # Safety
    /// As [`Sched::split`]; the graph was split.
    pub(super) unsafe fn plan(&mut self, graph: &ggml_cgraph) -> Result<(), Error> {
        // every node is to be seen by itself when somebody looks, or when another graph is under way
        let may_fuse = self.n_copies() == 1 && self.callback.is_none();
        self.planned = Planned { since: registry::epoch(), may_fuse };
        if !registry::any_kernel() && !registry::any_op() {
            return Ok(());
        }
        let device_has_rules =
            |b: &crate::backend::Backend| b.device().and_then(registry::table).is_some_and(|t| !t.rules.is_empty());
        let fuses = may_fuse && self.team.backends.iter().any(device_has_rules);
        // SAFETY: the caller's promise.
        let uses = fuses.then(|| unsafe { self.all_uses(graph) });
        for split in &mut self.splits {
            let backend = self.team.backends[split.backend as usize];
            // SAFETY: the caller's promise.
            split.plan = unsafe { plan::build(backend, &mut split.graph, uses.as_ref()) }?;
            split.plan.iter_mut().filter(|_| may_fuse).for_each(plan::Plan::may_fuse);
        }
        Ok(())
    }

    /// Whether the plans, and the splits that need none, may run as they are.
    ///
    /// # Safety
    /// As [`Sched::plan`], after it.
    pub(super) unsafe fn check_plans(&mut self) -> Result<(), Error> {
        let now = registry::epoch();
        // SAFETY: the caller's promise.
        self.splits.iter().try_for_each(|split| unsafe { self.check_split(split, now) })?;
        self.planned.since = now;
        Ok(())
    }

    /// Whether the split may run as it is, the last change of registrations being number `now`.
    ///
    /// # Safety
    /// As [`Sched::check_plans`].
    pub(super) unsafe fn check_split(&self, split: &Split, now: u64) -> Result<(), Error> {
        let Planned { since, may_fuse } = self.planned;
        // SAFETY: the caller's promise.
        let nodes = unsafe { graph::nodes(&split.graph) };
        match &split.plan {
            // SAFETY: as above.
            Some(plan) => unsafe { plan.check(nodes, self.callback.is_some()) },
            None if now == since => Ok(()),
            None => {
                let backend = self.team.backends[split.backend as usize];
                // SAFETY: as above.
                unsafe { run::check_native(backend, nodes, may_fuse, since) }
            }
        }
    }

    /// Tells the allocator what gets no memory: what fusions leave out, and what backends say that their own code does.
    ///
    /// # Safety
    /// As [`Sched::plan`], after it.
    pub(super) unsafe fn skip(&mut self, graph: &ggml_cgraph) -> Result<(), Error> {
        let mut skipped = Vec::new();
        let mut uses = None;
        for split in &self.splits {
            // SAFETY: the caller's promise.
            let nodes = unsafe { graph::nodes(&split.graph) };
            let plan = split.plan.as_ref();
            let fused = plan.iter().filter(|p| p.fused).flat_map(|p| p.skipped());
            skipped.extend(fused.map(|i| nodes[i].cast_const()));
            let backend = self.team.backends[split.backend as usize];
            let Some(ask) = backend.skip_alloc().filter(|_| self.planned.may_fuse) else {
                continue;
            };
            // SAFETY: as above.
            let uses = uses.get_or_insert_with(|| unsafe { self.all_uses(graph) });
            let whole = plan.is_none().then_some(0..nodes.len());
            for range in whole.into_iter().chain(plan.into_iter().flat_map(|p| p.native())) {
                let part = graph::view(&split.graph, range.start as i32, range.end as i32);
                let nodes = &nodes[range];
                // SAFETY: as above; the backend takes its own handle and a live graph.
                let wanted: Vec<_> =
                    (0..nodes.len()).filter(|&i| unsafe { ask(backend.as_raw(), &part, i as i32) }).collect();
                if !wanted.is_empty() {
                    // SAFETY: as above.
                    let inner = legality::inner(&unsafe { Facts::read(nodes, uses) }?);
                    skipped.extend(wanted.into_iter().filter(|&i| inner[i]).map(|i| nodes[i].cast_const()));
                }
            }
        }
        self.galloc.set_skipped(skipped)
    }

    /// Consumers in the whole graph, which was split.
    unsafe fn all_uses(&self, graph: &ggml_cgraph) -> Uses {
        // SAFETY: the caller's promise.
        let mut all = unsafe { Uses::of(graph) };
        for input in self.splits.iter().flat_map(|s| &s.inputs) {
            // who reads a copy reads the original through it
            all.add(input.original);
        }
        all
    }

    /// Forgets the plans; their states end here.
    pub(super) fn forget_plans(&mut self) {
        self.splits.iter_mut().for_each(|s| s.plan = None);
    }

    /// Gives the plans their scratch memory.
    pub(super) fn reserve_workspaces(&mut self) -> Result<(), Error> {
        for split in &self.splits {
            let b = split.backend as usize;
            if let Some(plan) = &split.plan {
                self.workspaces[b].reserve(plan, self.team.bufts[b])?;
            }
        }
        Ok(())
    }

    /// By backend: bytes of scratch memory that the plans at hand need.
    pub(super) fn workspace_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.team.backends.len()];
        for split in &self.splits {
            let size = &mut sizes[split.backend as usize];
            *size = split.plan.as_ref().map_or(0, |p| p.workspace).max(*size);
        }
        sizes
    }
}
