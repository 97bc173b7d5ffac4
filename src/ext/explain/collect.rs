//! Plans and their graphs, read into the model.

use super::{Explanation, Input, Launch, Name, Node, Place, Source, Split, Step};
use crate::backend::Backend;
use crate::ext::plan::{self, Plan};
use crate::ext::profile::Time;
use crate::ext::{op, step};
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashMap;

/// A tensor that is copied before a portion runs.
pub struct Copied<'a> {
    /// The tensor.
    pub original: *mut ggml_tensor,
    /// What nodes of the portion read in its place.
    pub copies: &'a [*mut ggml_tensor],
    /// The backend that has it.
    pub from: Backend,
}

/// What one backend runs.
pub struct Portion<'a> {
    /// Number of the backend.
    pub number: usize,
    /// The backend.
    pub backend: Backend,
    /// The nodes.
    pub graph: &'a ggml_cgraph,
    /// Where registrations take part.
    pub plan: Option<&'a Plan>,
    /// Copied before.
    pub inputs: Vec<Copied<'a>>,
    /// What the portion took as a whole, where there is no plan.
    pub time: Time,
    /// Why it must not run any more.
    pub stale: Option<String>,
}

fn name(t: &ggml_tensor) -> Name {
    t.name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect()
}

/// The operator, or the function of a unary or gated one.
fn op_name(t: &ggml_tensor) -> String {
    let function = |known: Option<&(&'static str, _)>, prefix| known.and_then(|(name, _)| name.strip_prefix(prefix));
    let number = t.op_params[0];
    let of_op = match t.op {
        GGML_OP_UNARY => {
            let named = ggml_unary_op::NAMES.iter().map(|(name, op)| (*name, op.0)).find(|(_, op)| *op == number);
            function(named.as_ref(), "GGML_UNARY_OP_")
        }
        GGML_OP_GLU => {
            let named = ggml_glu_op::NAMES.iter().map(|(name, op)| (*name, op.0)).find(|(_, op)| *op == number);
            function(named.as_ref(), "GGML_GLU_OP_")
        }
        _ => None,
    };
    of_op.unwrap_or_else(|| op::op_name(t)).to_owned()
}

/// Where tensors are computed, and what copies stand for.
#[derive(Default)]
struct Index {
    places: HashMap<usize, Place>,
    originals: HashMap<usize, *mut ggml_tensor>,
}

impl Index {
    /// # Safety
    /// As [`collect`].
    unsafe fn of(portions: &[Portion]) -> Self {
        let mut index = Index::default();
        for (split, portion) in portions.iter().enumerate() {
            for input in &portion.inputs {
                index.originals.extend(input.copies.iter().map(|c| (c.addr(), input.original)));
            }
            // SAFETY: the caller's promise.
            let nodes = unsafe { graph::nodes(portion.graph) };
            index.places.extend(nodes.iter().enumerate().map(|(node, t)| (t.addr(), Place { split, node })));
        }
        index
    }

    /// # Safety
    /// `t` is live, and so is what it is a copy of.
    unsafe fn source(&self, t: *mut ggml_tensor) -> Source {
        let t = self.originals.get(&t.addr()).copied().unwrap_or(t);
        // SAFETY: the caller's promise.
        let tensor = unsafe { &*t };
        let input = tensor.flags & GGML_TENSOR_FLAG_INPUT.0 != 0;
        Source { name: name(tensor), at: self.places.get(&t.addr()).copied(), input }
    }
}

/// Explains the portions of one graph, in the order in which they run. `skipped`: whether a tensor gets no memory.
///
/// # Safety
/// The graphs are those that the plans were made for; they, their tensors and what they read and view are live, and nobody writes to
/// them meanwhile.
pub unsafe fn collect(portions: &[Portion], skipped: impl Fn(*const ggml_tensor) -> bool) -> Explanation {
    // SAFETY: the caller's promise.
    let index = unsafe { Index::of(portions) };
    // SAFETY: as above.
    let split = |portion| unsafe { split(portion, &index, &skipped) };
    Explanation { splits: portions.iter().map(split).collect() }
}

unsafe fn split(portion: &Portion, index: &Index, skipped: &dyn Fn(*const ggml_tensor) -> bool) -> Split {
    let backend = portion.backend;
    let mut inputs = Vec::new();
    for input in &portion.inputs {
        // SAFETY: the promise of `collect`.
        let (source, bytes) = unsafe { (index.source(input.original), shape::nbytes(&*input.original)) };
        inputs.push(Input { source, bytes, from: input.from.name().to_owned() });
    }
    let mut split = Split {
        number: portion.number,
        backend: backend.name().to_owned(),
        device: backend.device().map_or("", |d| d.name()).to_owned(),
        stale: portion.stale.clone(),
        workspace: 0,
        workspace_for: String::new(),
        forbidden: Vec::new(),
        forced: Vec::new(),
        inputs,
        steps: Vec::new(),
    };
    // SAFETY: the promise of `collect`, for all of it.
    unsafe {
        let tensors = graph::nodes(portion.graph);
        let nodes = tensors.iter().map(|&t| Node { skipped: skipped(t), ..node(&*t, index) }).collect::<Vec<_>>();
        match portion.plan {
            Some(plan) => of_plan(&mut split, plan, tensors, nodes, index),
            None if nodes.is_empty() => {}
            None => split.steps.push(Step { first: 0, nodes, launch: None, time: portion.time.clone() }),
        }
    }
    split
}

unsafe fn node(t: &ggml_tensor, index: &Index) -> Node {
    let has = |flag: ggml_tensor_flag| t.flags & flag.0 != 0;
    Node {
        name: name(t),
        op: op_name(t),
        format: ggml_oxide_types::name_of_id(t.r#type.0),
        ne: t.ne,
        bytes: shape::nbytes(t),
        owns: t.view_src.is_null(),
        computed: has(GGML_TENSOR_FLAG_COMPUTE) && !shape::is_empty(t) && !ggml_oxide_cpu::table::is_view_op(t.op),
        output: has(GGML_TENSOR_FLAG_OUTPUT),
        skipped: false,
        // SAFETY: what live nodes read is live.
        reads: t.src.iter().filter(|s| !s.is_null()).map(|&s| unsafe { index.source(s) }).collect(),
        tried: Vec::new(),
    }
}

unsafe fn of_plan(split: &mut Split, plan: &Plan, tensors: &[*mut ggml_tensor], mut nodes: Vec<Node>, index: &Index) {
    split.workspace = plan.workspace;
    split.workspace_for.clone_from(&plan.workspace_for);
    split.forbidden.clone_from(&plan.forbidden);
    split.forced.clone_from(&plan.forced);
    for (i, tried) in &plan.tried {
        if let Some(node) = nodes.get_mut(*i) {
            node.tried.push(tried.clone());
        }
    }
    let mut rest = nodes.into_iter();
    for step in &plan.steps {
        let (range, time) = match step {
            plan::Step::Native(native) => (&native.nodes, &native.time),
            plan::Step::Launch(launch) => (&launch.nodes, &launch.time),
        };
        let launch = match step {
            plan::Step::Native(_) => None,
            // SAFETY: the promise of `collect`.
            plan::Step::Launch(launch) => Some(unsafe { self::launch(launch, plan, tensors, index) }),
        };
        let nodes = rest.by_ref().take(range.len()).collect();
        split.steps.push(Step { first: range.start, nodes, launch, time: time.clone() });
    }
}

unsafe fn launch(launch: &plan::Launch, plan: &Plan, tensors: &[*mut ggml_tensor], index: &Index) -> Launch {
    let nodes = tensors.get(launch.nodes.clone()).unwrap_or_default();
    // SAFETY: the promise of `collect`.
    let overlap = unsafe { step::describe(plan.device(), nodes, &launch.srcs) }.overlap;
    // SAFETY: as above.
    let read = |(i, &t): (usize, &*mut ggml_tensor)| (unsafe { index.source(t) }, overlap >> i & 1 == 1);
    Launch {
        registration: launch.kernel.name.clone(),
        priority: launch.kernel.calls.priority,
        flags: launch.kernel.flags,
        forced: launch.forced,
        workspace: launch.workspace,
        reads: launch.srcs.iter().enumerate().map(read).collect(),
    }
}
