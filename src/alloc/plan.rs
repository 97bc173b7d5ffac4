//! The planner: from lifetimes to offsets, in one walk over the nodes.
//!
//! Leafs and inputs are placed first. Then each node's result is placed, or takes the storage of a source that nothing reads
//! after it; then what was read for the last time is given back. Views keep what they view alive. Two refinements are tried
//! and kept only where they make no kind of memory larger: taking storage through a view, and packing all at once ([`super::pack`]).

use super::pack;
use super::problem::*;
use super::space::{Place, Space};

/// Storage that one tensor, or several one after the other, live in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub space: u32,
    pub place: Place,
    /// Bytes, aligned; what the latest holder uses of them may be less.
    pub size: usize,
    /// Bytes that the latest holder uses.
    used: usize,
    /// First step at which it is in use.
    pub start: u32,
    /// Last one.
    pub end: u32,
}

/// Where to put every tensor of `problem`. `resize(tensor, space)`: bytes that a tensor needs in another kind of memory than its own.
pub fn plan(problem: &Problem, resize: &mut dyn FnMut(u32, u32) -> usize) -> Result<Plan, PlanError> {
    check(problem)?;
    let mut best = attempt(problem, resize, true)?;
    if best.used_views && !best.spaces.iter().all(Space::is_tight) {
        let plain = attempt(problem, resize, false)?;
        if plain.spaces.iter().zip(&best.spaces).any(|(plain, views)| plain.total() < views.total()) {
            best = plain;
        }
    }
    best.finish(problem)
}

/// `size` up to the next multiple of `alignment`, a power of two.
fn padded(size: usize, alignment: usize) -> Option<usize> {
    Some(size.checked_add(alignment - 1)? & !(alignment - 1))
}

fn check(problem: &Problem) -> Result<(), PlanError> {
    let n = problem.tensors.len() as u64;
    let tensor = |t: u32| u64::from(t) < n;
    let spaces = problem.spaces.len() as u64;
    let good = problem.spaces.iter().all(|s| s.alignment.is_power_of_two())
        && problem.tensors.iter().all(|t| u64::from(t.space) < spaces && (t.root == NONE || tensor(t.root)))
        && problem.leafs.iter().chain(&problem.srcs).all(|&t| tensor(t))
        && problem
            .nodes
            .iter()
            .all(|x| tensor(x.tensor) && u64::from(x.first) + u64::from(x.count) <= problem.srcs.len() as u64);
    good.then_some(()).ok_or(PlanError::Malformed)
}

/// What is known of a tensor during the walk.
#[derive(Clone, Copy, Default)]
struct State {
    /// Reads still to come.
    reads: u32,
    /// Views of it that are still in use.
    views: u32,
    /// Number of the storage that it lives, or lived, in, plus one; 0 while it never had one.
    home: u32,
    /// The tensor that owns its storage: itself, or what it views.
    owner: u32,
    /// It has that storage still, and nobody else.
    holds: bool,
    /// It is to be placed, by its own.
    placeable: bool,
    /// It was the result of a step.
    computed: bool,
    /// Never given back: it is an output, or used in an order that gives no lifetime.
    pinned: bool,
}

impl State {
    fn new((t, tensor): (usize, &Tensor)) -> Self {
        let view = tensor.root != NONE;
        let owner = if view { tensor.root } else { t as u32 };
        State { owner, placeable: !view && !tensor.external, ..State::default() }
    }
}

struct Walk<'a> {
    problem: &'a Problem,
    resize: &'a mut dyn FnMut(u32, u32) -> usize,
    states: Vec<State>,
    took: Vec<Option<u8>>,
    storages: Vec<Storage>,
    spaces: Vec<Space>,
    resized: Vec<(u32, usize)>,
    step: u32,
    /// Whether storage may be taken through a view, and whether it was.
    allow_views: bool,
    used_views: bool,
}

fn attempt(
    problem: &Problem,
    resize: &mut dyn FnMut(u32, u32) -> usize,
    allow_views: bool,
) -> Result<Trial, PlanError> {
    let mut walk = Walk {
        problem,
        resize,
        states: problem.tensors.iter().enumerate().map(State::new).collect(),
        took: vec![None; problem.nodes.len()],
        storages: Vec::with_capacity(problem.nodes.len() / 2 + problem.leafs.len()),
        spaces: problem.spaces.iter().map(|s| Space::new(s.max_size)).collect(),
        resized: Vec::new(),
        step: 0,
        allow_views,
        used_views: false,
    };
    walk.count();
    walk.place_fixed()?;
    walk.run()?;
    let homes = walk.states.iter().map(|s| s.home).collect();
    let Walk { took, storages, spaces, resized, used_views, .. } = walk;
    Ok(Trial { homes, took, storages, spaces, resized, used_views })
}

/// What one walk came to.
struct Trial {
    /// By tensor: number of its storage, plus one.
    homes: Vec<u32>,
    took: Vec<Option<u8>>,
    storages: Vec<Storage>,
    spaces: Vec<Space>,
    /// Tensors in another kind of memory than their own, and their bytes there.
    resized: Vec<(u32, usize)>,
    used_views: bool,
}

impl Trial {
    /// As a plan, each kind of memory packed anew where that makes it smaller.
    fn finish(mut self, problem: &Problem) -> Result<Plan, PlanError> {
        let mut chunks: Vec<Vec<usize>> = self.spaces.iter().map(Space::sizes).collect();
        for (s, (sizes, space)) in chunks.iter_mut().zip(&self.spaces).enumerate() {
            let total = sizes.iter().try_fold(0usize, |sum, &n| sum.checked_add(n)).ok_or(PlanError::TooLarge(NONE))?;
            if sizes.len() != 1 || space.is_tight() {
                continue;
            }
            if let Some((packed, offsets)) = pack::pack(&self.storages, s as u32, total) {
                sizes[0] = packed;
                for (storage, offset) in self.storages.iter_mut().zip(offsets).filter(|(st, _)| st.space == s as u32) {
                    storage.place.offset = offset;
                }
            }
        }
        let slot = |(&home, tensor): (&u32, &Tensor)| {
            let storage = self.storages.get((home as usize).checked_sub(1)?)?;
            Some(Slot { space: storage.space, place: storage.place, size: tensor.size })
        };
        let mut slots: Vec<Option<Slot>> = self.homes.iter().zip(&problem.tensors).map(slot).collect();
        for (t, bytes) in self.resized {
            if let Some(slot) = slots[t as usize].as_mut() {
                slot.size = bytes;
            }
        }
        Ok(Plan { slots, chunks, took: self.took })
    }
}

impl Walk<'_> {
    fn tensor(&self, t: u32) -> Tensor {
        self.problem.tensors[t as usize]
    }

    fn state(&mut self, t: u32) -> &mut State {
        &mut self.states[t as usize]
    }

    /// Reads and views of every tensor; outputs and odd orders are pinned.
    fn count(&mut self) {
        let problem = self.problem;
        for node in &problem.nodes {
            let state = self.state(node.tensor);
            // a result that was read or computed before has no interval: nobody else may have its storage. A cast names itself
            // as its second source, so this node's own reads do not count.
            if !node.marker && (state.computed || state.reads > 0 && !problem.tensors[node.tensor as usize].external) {
                state.pinned = true;
            }
            state.computed |= !node.marker;
            for &src in problem.srcs_of(node) {
                self.state(src).reads += 1;
            }
        }
        for (t, tensor) in problem.tensors.iter().enumerate() {
            let state = self.states[t];
            if tensor.root != NONE {
                if state.reads > 0 || state.computed {
                    self.state(tensor.root).views += 1;
                }
                if state.pinned || tensor.output {
                    self.state(tensor.root).pinned = true;
                }
            } else if tensor.output {
                self.states[t].pinned = true;
            }
        }
    }

    /// Leafs, then inputs in the order in which the nodes name them.
    fn place_fixed(&mut self) -> Result<(), PlanError> {
        let problem = self.problem;
        for &leaf in &problem.leafs {
            self.place(leaf)?;
        }
        for node in &problem.nodes {
            for &t in std::iter::once(&node.tensor).chain(problem.srcs_of(node)) {
                if self.tensor(t).input {
                    self.place(t)?;
                }
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), PlanError> {
        let problem = self.problem;
        for (i, node) in problem.nodes.iter().enumerate() {
            self.step = i as u32;
            let srcs = problem.srcs_of(node);
            for &src in srcs {
                self.place(src)?;
            }
            if self.needs_place(node.tensor) {
                self.took[i] = if node.reuse == 0 { None } else { self.take_over(node, srcs) };
                if self.took[i].is_none() {
                    self.place(node.tensor)?;
                }
            }
            for &src in srcs {
                self.read(src);
            }
        }
        Ok(())
    }

    fn needs_place(&self, t: u32) -> bool {
        let state = &self.states[t as usize];
        state.placeable && state.home == 0
    }

    fn place(&mut self, t: u32) -> Result<(), PlanError> {
        if !self.needs_place(t) {
            return Ok(());
        }
        let tensor = self.tensor(t);
        let alignment = self.problem.spaces[tensor.space as usize].alignment;
        let size = padded(tensor.size, alignment).ok_or(PlanError::TooLarge(t))?;
        let place = self.spaces[tensor.space as usize].take(size).ok_or(PlanError::TooLarge(t))?;
        self.storages.push(Storage { space: tensor.space, place, size, used: size, start: self.step, end: u32::MAX });
        let home = self.storages.len() as u32;
        let state = self.state(t);
        (state.home, state.holds) = (home, true);
        Ok(())
    }

    /// Gives the node the storage of a source that dies with this step. The source's index.
    fn take_over(&mut self, node: &Node, srcs: &[u32]) -> Option<u8> {
        for (i, &src) in srcs.iter().enumerate().filter(|(i, _)| *i < 16 && node.reuse >> i & 1 == 1) {
            let owner = self.states[src as usize].owner;
            let via_view = owner != src;
            let (s, o) = (self.states[src as usize], self.states[owner as usize]);
            let last_read = s.reads == 1 && s.views == 0;
            let alone = !via_view || (self.allow_views && self.tensor(src).at_start && o.reads == 0 && o.views == 1);
            if !o.holds || o.pinned || s.pinned || !last_read || !alone {
                continue;
            }
            let number = o.home as usize - 1;
            let storage = self.storages[number];
            let own = self.tensor(node.tensor);
            let size = if own.space == storage.space { own.size } else { (self.resize)(node.tensor, storage.space) };
            let alignment = self.problem.spaces[storage.space as usize].alignment;
            let Some(padded) = padded(size, alignment).filter(|&p| p <= storage.used) else {
                continue;
            };
            if padded < storage.used {
                let tail = Place { offset: storage.place.offset + padded, ..storage.place };
                self.spaces[storage.space as usize].give(tail, storage.used - padded);
                self.storages[number].used = padded;
            }
            if own.space != storage.space {
                self.resized.push((node.tensor, size));
            }
            self.used_views |= via_view;
            self.state(owner).holds = false;
            let state = self.state(node.tensor);
            (state.home, state.holds) = (o.home, true);
            return Some(i as u8);
        }
        None
    }

    /// One read of `t` is over. Gives its storage back when nothing else reads that.
    fn read(&mut self, t: u32) {
        let state = self.state(t);
        state.reads -= 1;
        if state.reads > 0 || state.views > 0 {
            return;
        }
        let owner = state.owner;
        let state = self.state(owner);
        if owner != t {
            state.views -= 1;
        }
        if state.reads > 0 || state.views > 0 || state.pinned || !state.holds {
            return;
        }
        state.holds = false;
        let home = state.home as usize - 1;
        let storage = &mut self.storages[home];
        storage.end = self.step;
        self.spaces[storage.space as usize].give(storage.place, storage.used);
    }
}
