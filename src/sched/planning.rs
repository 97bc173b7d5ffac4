//! Stage 4: the plan of each split, where something is registered; what fusions leave out is not allocated, and plans get their scratch
//! memory.

use super::scheduler::Sched;
use crate::error::Error;
use crate::ext::facts::Uses;
use crate::ext::{plan, registry};
use crate::graph;
use ggml_oxide_abi::*;

impl Sched {
    /// Makes the plans.
    ///
    /// # Safety
    /// As [`Sched::split`]; the graph was split.
    pub(super) unsafe fn plan(&mut self, graph: &ggml_cgraph) -> Result<(), Error> {
        if !registry::any_kernel() && !registry::any_op() {
            return Ok(());
        }
        let device_has_rules = |b: &crate::backend::Backend| {
            b.device().and_then(registry::table).is_some_and(|t| !t.rules.is_empty())
        };
        // every node is to be seen by itself when somebody looks, or when another graph is under way
        let fuses = self.n_copies() == 1 && self.callback.is_none() && self.team.backends.iter().any(device_has_rules);
        let mut uses = None;
        if fuses {
            // SAFETY: the caller's promise.
            let mut all = unsafe { Uses::of(graph) };
            for input in self.splits.iter().flat_map(|s| &s.inputs) {
                // who reads a copy reads the original through it
                all.add(input.original);
            }
            uses = Some(all);
        }
        for split in &mut self.splits {
            let backend = self.team.backends[split.backend as usize];
            // SAFETY: the caller's promise.
            split.plan = unsafe { plan::build(backend, &mut split.graph, uses.as_ref()) }?;
        }
        Ok(())
    }

    /// Tells the allocator what gets no memory.
    ///
    /// # Safety
    /// As [`Sched::plan`], after it.
    pub(super) unsafe fn skip(&mut self) {
        let mut skipped = Vec::new();
        for split in &self.splits {
            let Some(plan) = split.plan.as_ref().filter(|p| p.fused) else { continue };
            // SAFETY: the caller's promise.
            let nodes = unsafe { graph::nodes(&split.graph) };
            skipped.extend(plan.skipped().map(|i| nodes[i].cast_const()));
        }
        self.galloc.set_skipped(skipped);
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
