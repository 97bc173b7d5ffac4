//! What the planner counts before it walks: who reads and views each tensor, and which of them have no plain lifetime.

use super::problem::*;
use super::room;

/// What is known of a tensor during the walk.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    /// Reads still to come.
    pub reads: u32,
    /// Views of it that are still in use.
    pub views: u32,
    /// Number of the storage that it lives, or lived, in, plus one; 0 while it never had one.
    pub home: u32,
    /// The tensor that owns its storage: itself, or what it views.
    pub owner: u32,
    /// It has that storage still, and nobody else.
    pub holds: bool,
    /// It is to be placed, by its own.
    pub placeable: bool,
    /// It was the result of a step.
    computed: bool,
    /// Never given back: it is an output, or used in an order that gives no lifetime.
    pub pinned: bool,
    /// It has no storage and is computed by those that read it.
    pub skipped: bool,
    /// It is one of the problem's inputs.
    input: bool,
    /// It is placed before the first step: a leaf or an input.
    early: bool,
    /// It takes no source's storage: a step that writes it reads a skipped tensor.
    pub fresh: bool,
}

impl State {
    fn new((t, tensor): (usize, &Tensor)) -> Self {
        let view = tensor.root != NONE;
        State {
            owner: if view { tensor.root } else { t as u32 },
            placeable: !view && !tensor.external && !tensor.skipped,
            skipped: tensor.skipped,
            input: tensor.input,
            early: tensor.input,
            ..State::default()
        }
    }

    /// Whether it is still to be read, itself or through a view.
    pub fn in_use(&self) -> bool {
        self.reads > 0 || self.views > 0
    }
}

/// The states before the first step.
pub(super) struct Walkable {
    pub states: Vec<State>,
    /// Inputs among the nodes and their sources, in that order, some more than once.
    pub inputs: Vec<u32>,
    /// Some sources may have to be placed when they are read: they are no results of earlier steps.
    pub late: bool,
    /// By tensor: the node that computes it if it is a skipped one, else [`NONE`]. Empty where nothing is skipped.
    pub made_by: Vec<u32>,
}

impl Walkable {
    /// For a problem whose numbers are checked.
    pub fn new(problem: &Problem) -> Result<Self, PlanError> {
        let states = room::collected(problem.tensors.iter().enumerate().map(State::new))?;
        let any = problem.tensors.iter().any(|t| t.skipped);
        let made_by = room::filled(if any { states.len() } else { 0 }, NONE)?;
        let mut start = Walkable { states, inputs: Vec::new(), late: false, made_by };
        for &leaf in &problem.leafs {
            start.states[leaf as usize].early = true;
        }
        start.count(problem)?;
        if any {
            start.note_skipped(problem);
        }
        Ok(start)
    }

    pub fn any_skipped(&self) -> bool {
        !self.made_by.is_empty()
    }

    /// Reads and views of every tensor; outputs and odd orders are pinned.
    fn count(&mut self, problem: &Problem) -> Result<(), PlanError> {
        for node in &problem.nodes {
            let state = &mut self.states[node.tensor as usize];
            if state.input {
                room::push(&mut self.inputs, node.tensor)?;
            }
            // a result that was read or computed before has no interval: nobody else may have its storage. A cast names itself
            // as its second source, so this node's own reads do not count.
            if !node.marker && (state.computed || state.reads > 0 && !problem.tensors[node.tensor as usize].external) {
                state.pinned = true;
            }
            state.computed |= !node.marker;
            for &src in problem.srcs_of(node) {
                let state = &mut self.states[src as usize];
                state.reads += 1;
                // each once is enough: it is placed then
                if state.input && state.reads == 1 {
                    room::push(&mut self.inputs, src)?;
                }
                // who reads what it computes has its place before it looks for one to take
                self.late |=
                    state.placeable && !(state.early || state.computed) || src == node.tensor && node.reuse != 0;
            }
        }
        for (t, tensor) in problem.tensors.iter().enumerate() {
            let state = self.states[t];
            if tensor.root != NONE {
                let root = &mut self.states[tensor.root as usize];
                root.views += u32::from(state.reads > 0 || state.computed);
                root.pinned |= state.pinned || tensor.output;
            } else if tensor.output {
                self.states[t].pinned = true;
            }
        }
        Ok(())
    }

    fn note_skipped(&mut self, problem: &Problem) {
        for (i, node) in problem.nodes.iter().enumerate().filter(|(_, node)| !node.marker) {
            let tensor = &problem.tensors[node.tensor as usize];
            if tensor.skipped {
                self.made_by[node.tensor as usize] = i as u32;
            }
            let skipped = |&t: &u32| {
                let state = &self.states[t as usize];
                state.skipped || self.states[state.owner as usize].skipped
            };
            if problem.srcs_of(node).iter().any(skipped) {
                // what writes into the storage of an earlier step hands that one's freshness on
                let owner = self.states[node.tensor as usize].owner;
                self.states[node.tensor as usize].fresh = true;
                self.states[owner as usize].fresh = true;
            }
        }
    }
}
