//! The steps of a graph: every node is checked, then either runs by itself, as part of a chain, or in a call of the caller's.

use crate::conv::fuse::{self, Chain};
use crate::entry::OpEntry;
use crate::node::{src, FLAG_POISONED, POISON_TEXT};
use crate::scratch::ALIGN;
use crate::table::{check, computes};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_char, CStr};

/// A graph to compute.
#[derive(Clone, Copy)]
pub struct GraphRef<'a> {
    /// The nodes in the order in which they run. Each points to a tensor that lives as long as the reference, as do its sources.
    pub nodes: &'a [*mut ggml_tensor],
    /// How often a tensor is a source in the whole graph that this is a part of. `None`: not known, so nothing is fused.
    pub uses: Option<&'a dyn Fn(*const ggml_tensor) -> i32>,
}

/// Consecutive nodes that a function of the caller's computes in their place. Nothing is asked of them: they may lack memory and
/// kernels alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the first in the graph's nodes.
    pub first: usize,
    /// Index of the last.
    pub last: usize,
}

/// What a step runs.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Op(&'static OpEntry),
    /// A chain of the plan, by index.
    Chain(usize),
    /// A call of the caller's, by index; always solo.
    Call(usize),
}

/// One entry into a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// What failures name.
    pub node: *const ggml_tensor,
    pub work: Work,
    /// Thread 0 runs it alone.
    pub solo: bool,
}

/// The steps of a graph.
#[derive(Default)]
pub(crate) struct Plan {
    pub steps: Vec<Step>,
    pub chains: Vec<Chain>,
}

/// Bytes of scratch memory that computing the graph on `n_threads` threads needs, alignment included; 0 for none. Nodes that
/// cannot be computed count as nothing.
pub fn work_size(graph: &GraphRef, n_threads: usize) -> usize {
    let need = Plan::default().fill(graph, &[], n_threads.max(1), |_, _| Ok::<(), ()>(())).unwrap_or(0);
    aligned(need)
}

pub(crate) fn aligned(need: usize) -> usize {
    if need == 0 {
        0
    } else {
        need.saturating_add(ALIGN)
    }
}

impl Plan {
    /// Plans the graph and answers the bytes of scratch memory that its largest step needs. `refuse` takes each node that breaks
    /// a rule. `calls` are in order and inside the graph.
    pub fn fill<E>(
        &mut self,
        graph: &GraphRef,
        calls: &[Call],
        nth: usize,
        mut refuse: impl FnMut(&ggml_tensor, &str) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.steps.clear();
        self.chains.clear();
        let (mut need, mut i, mut call) = (0, 0, 0);
        while let Some(&node) = graph.nodes.get(i) {
            // Where the nodes that are ours end for now.
            let end = calls.get(call).map_or(graph.nodes.len(), |c| c.first);
            if i == end {
                let last = calls[call].last;
                self.steps.push(Step { node: graph.nodes[last], work: Work::Call(call), solo: true });
                (i, call) = (last + 1, call + 1);
                continue;
            }
            i += 1;
            // SAFETY: the graph's nodes are tensors (contract of GraphRef).
            let Some(t) = (unsafe { node.as_ref() }) else { continue };
            if t.flags & FLAG_POISONED != 0 {
                refuse(t, &poison_text(t))?;
                continue;
            }
            if t.flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
                continue;
            }
            let entry = match check(t) {
                Ok(None) => continue,
                Ok(Some(entry)) => entry,
                Err(rule) => {
                    refuse(t, rule)?;
                    continue;
                }
            };
            if let Err(rule) = allocated(t) {
                // its size is known all the same
                refuse(t, rule)?;
            }
            let solo = nth == 1 || (entry.n_tasks)(t, nth) <= 1;
            let mut step = Step { node, work: Work::Op(entry), solo };
            need = need.max((entry.work)(t, if solo { 1 } else { nth }));
            if let (GGML_OP_IM2COL | GGML_OP_IM2COL_3D, Some(uses)) = (t.op, graph.uses) {
                if let Some(found) = fuse::find(&graph.nodes[..end], i - 1, uses, computes) {
                    i = found.last + 1;
                    step = Step {
                        node: graph.nodes[found.last],
                        work: Work::Chain(self.chains.len()),
                        solo: nth == 1 || found.chain.is_small(),
                    };
                    need = need.max(found.chain.work(if step.solo { 1 } else { nth }));
                    self.chains.push(found.chain);
                }
            }
            self.steps.push(step);
        }
        Ok(need)
    }
}

fn allocated(t: &ggml_tensor) -> Result<(), &'static str> {
    if t.data.is_null() {
        return Err("the result has no memory");
    }
    // The kernel of a convolution is only a shape to its im2col.
    let first = usize::from(matches!(t.op, GGML_OP_IM2COL | GGML_OP_IM2COL_3D));
    for i in first..GGML_MAX_SRC {
        let Ok(s) = src(t, i) else { continue };
        if s.data.is_null() && !shape::is_empty(s) {
            return Err("a source has no memory");
        }
        if !aligned_data(s) {
            return Err("a source's memory is not aligned to its elements");
        }
    }
    if aligned_data(t) {
        Ok(())
    } else {
        Err("the result's memory is not aligned to its elements")
    }
}

/// Plain elements lie at multiples of their size, blocks of an even size at even addresses.
fn aligned_data(t: &ggml_tensor) -> bool {
    let size = shape::type_size(t.r#type);
    let align = if shape::blck_size(t.r#type) == 1 { size } else { 2 - size % 2 };
    (t.data as usize).is_multiple_of(align.max(1))
}

fn poison_text(t: &ggml_tensor) -> String {
    let bits = u64::from(t.op_params[POISON_TEXT] as u32) | u64::from(t.op_params[POISON_TEXT + 1] as u32) << 32;
    let address =
        usize::try_from(if cfg!(target_endian = "little") { bits } else { bits.rotate_left(32) }).unwrap_or(0);
    let text = address as *const c_char;
    if text.is_null() {
        return "it was built from impossible arguments".into();
    }
    // SAFETY: the builder that set the flag stored a zero-terminated text that outlives the tensor.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// "name (OP): rule".
pub(crate) fn failure_text(t: &ggml_tensor, rule: &str) -> String {
    format!("{} ({}): {rule}", shape::name(t), shape::op_name(t.op))
}
