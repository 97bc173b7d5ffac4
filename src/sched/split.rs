//! Runs of nodes of one backend, and copies of what crosses from one backend to another.

use super::assign::{Reach, Team, UNASSIGNED};
use super::copies::Copies;
use super::numbering::Numbering;
use crate::error::Error;
use crate::ext::profile::Time;
use crate::ext::Plan;
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::HashMap;

/// A tensor that a split reads and that lies where its backend cannot reach it.
pub struct Input {
    /// The client's tensor.
    pub original: *mut ggml_tensor,
    /// Where it is.
    pub home: i32,
    /// The split's own, one for each copy of the pipeline.
    pub copies: Vec<*mut ggml_tensor>,
}

/// Nodes that one backend runs one after the other.
pub struct Split {
    /// Who runs them.
    pub backend: i32,
    /// What is copied before.
    pub inputs: Vec<Input>,
    /// The nodes, as a view into the client's graph.
    pub graph: ggml_cgraph,
    /// Where registrations take part; `None`: all is the backend's own code.
    pub plan: Option<Plan>,
    /// What it took as a whole while profiling was on, where it has no plan.
    pub time: Time,
}

/// An input of the graph and its copies, the tensor itself among them.
pub struct GraphInput {
    /// Where it is.
    pub home: i32,
    /// One for each copy of the pipeline.
    pub copies: Vec<*mut ggml_tensor>,
}

/// Which copy of the pipeline is used, of how many.
#[derive(Clone, Copy)]
pub struct Pipeline {
    /// How many.
    pub n: usize,
    /// The one that this graph uses.
    pub current: usize,
}

/// The whole graph as one split of backend 0.
pub fn single(graph: &ggml_cgraph) -> Vec<Split> {
    let mut whole = graph::view(graph, 0, graph.n_nodes);
    whole.uid = graph::next_uid();
    vec![Split { backend: 0, inputs: Vec::new(), graph: whole, plan: None, time: Time::default() }]
}

/// What [`split`] works with.
pub struct Splitter<'a> {
    pub team: &'a Team,
    pub numbering: &'a Numbering,
    pub homes: &'a [i32],
    pub copies: &'a mut Copies,
    pub pipeline: Pipeline,
    /// By tensor and backend: the copies made so far.
    made: HashMap<(u32, i32), Vec<*mut ggml_tensor>>,
    reach: Reach,
}

fn mark(t: *mut ggml_tensor) {
    // An output too: its place is given to nobody else, so that the next graph may be copied in while this one runs.
    // SAFETY: the callers hand over live tensors.
    unsafe { (*t).flags |= GGML_TENSOR_FLAG_INPUT.0 | GGML_TENSOR_FLAG_OUTPUT.0 }
}

impl<'a> Splitter<'a> {
    /// For a graph whose tensors have their backends.
    pub fn new(
        team: &'a Team,
        numbering: &'a Numbering,
        homes: &'a [i32],
        copies: &'a mut Copies,
        pipeline: Pipeline,
    ) -> Self {
        let reach = Reach::new(team, numbering);
        Splitter { team, numbering, homes, copies, pipeline, made: HashMap::new(), reach }
    }

    /// The splits. Nodes read copies where they cannot reach a source.
    ///
    /// # Safety
    /// `graph` is the one that was numbered; it and its tensors are live and nobody else uses them.
    pub unsafe fn split(&mut self, graph: &ggml_cgraph) -> Result<Vec<Split>, Error> {
        let g = self.numbering;
        let home = |t: u32| self.homes[t as usize];
        let computed = |t: u32| !g.known[t as usize].view_op;
        let first = g.nodes.iter().find(|n| computed(n.tensor)).map_or(0, |n| home(n.tensor));
        let mut splits = Vec::new();
        let (mut backend, mut start, mut inputs) = (first, 0, Vec::new());
        for (i, &node) in g.nodes.iter().enumerate() {
            if !computed(node.tensor) {
                continue;
            }
            let mine = home(node.tensor);
            if mine != backend || !inputs.is_empty() && self.reads_far_weight(node, backend) {
                splits.push(close(graph, backend, start..i, std::mem::take(&mut inputs)));
                (backend, start) = (mine, i);
            }
            for &(src, slot) in g.srcs_of(node) {
                if home(src) == UNASSIGNED {
                    let name = shape::name(g.tensor(src));
                    return Err(Error::new(GGML_EXT_CODE_INTERNAL, format!("tensor '{name}' was given no backend")));
                }
                if home(src) == backend || self.reach.reaches(g, self.homes, src, backend) {
                    continue;
                }
                let original = g.tensors[src as usize];
                let copies = match self.made.get(&(src, backend)) {
                    Some(copies) => copies.clone(),
                    None => {
                        let copies = self.make(src, backend, None)?;
                        inputs.push(Input { original, home: home(src), copies: copies.clone() });
                        copies
                    }
                };
                let node = g.tensors[node.tensor as usize];
                // SAFETY: the caller's promise.
                unsafe { self.copies.put(node, slot, original, copies[self.pipeline.current]) }?;
            }
        }
        splits.push(close(graph, backend, start..g.nodes.len(), inputs));
        Ok(splits)
    }

    /// The graph's inputs with copies, where there is more than one copy. Those that no node reads are among them, so that the
    /// choice of inputs does not change the graph that is allocated.
    pub fn graph_inputs(&mut self) -> Result<Vec<GraphInput>, Error> {
        let g = self.numbering;
        if self.pipeline.n == 1 {
            return Ok(Vec::new());
        }
        let is_input = |t: &u32| g.known[*t as usize].input;
        let inputs: Vec<u32> = g.leafs.iter().copied().filter(is_input).collect();
        let mut result = Vec::new();
        for t in inputs {
            // a leaf that nobody reads stays with the host
            let home = match self.homes[t as usize] {
                UNASSIGNED => self.team.last(),
                home => home,
            };
            let copies = match self.made.get(&(t, home)) {
                Some(copies) => copies.clone(),
                None => self.make(t, home, Some(g.tensors[t as usize]))?,
            };
            result.push(GraphInput { home, copies });
        }
        Ok(result)
    }

    /// Copies of tensor `t` for `backend`; `own` takes the place of the current one.
    fn make(&mut self, t: u32, backend: i32, own: Option<*mut ggml_tensor>) -> Result<Vec<*mut ggml_tensor>, Error> {
        let name = self.team.backends[backend as usize].name();
        let mut copies = Vec::with_capacity(self.pipeline.n);
        for c in 0..self.pipeline.n {
            let copy = match own.filter(|_| c == self.pipeline.current) {
                Some(own) => own,
                None => self.copies.copy_of(self.numbering.tensor(t), name, c)?,
            };
            if self.pipeline.n > 1 {
                mark(copy);
            }
            copies.push(copy);
        }
        self.made.insert((t, backend), copies.clone());
        Ok(copies)
    }

    /// Whether `node` needs a weight copied to `backend`: a new split then lets the memory of earlier copies be used again.
    fn reads_far_weight(&self, node: super::numbering::Node, backend: i32) -> bool {
        self.numbering.srcs_of(node).iter().any(|&(src, _)| {
            self.numbering.known[src as usize].weight
                && self.homes[src as usize] != backend
                && !self.reach.reaches(self.numbering, self.homes, src, backend)
        })
    }
}

fn close(graph: &ggml_cgraph, backend: i32, nodes: std::ops::Range<usize>, inputs: Vec<Input>) -> Split {
    let mut part = graph::view(graph, nodes.start as i32, nodes.end as i32);
    part.uid = graph::next_uid();
    Split { backend, inputs, graph: part, plan: None, time: Time::default() }
}
