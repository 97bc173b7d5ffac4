//! The planner: from lifetimes to offsets, in one walk over the nodes.
//!
//! Leafs and inputs are placed first. Then each node's result is placed, or takes the storage of a source that nothing reads
//! after it; then what was read for the last time is given back. Views keep what they view alive. Two refinements are tried
//! and kept only where they make no kind of memory larger: taking storage through a view, and packing all at once ([`super::pack`]).
//!
//! A skipped tensor has no storage. Its node's reads are not over when its step is: they are when the skipped tensor itself was read
//! for the last time, for who reads it computes it. The storage of what that step reads is then still being read, so its result takes
//! nothing over: it overlaps nothing that it is computed from.

use super::lives::{State, Walkable};
use super::pack;
use super::problem::*;
use super::room;
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

struct Walk<'a> {
    problem: &'a Problem,
    start: Walkable,
    resize: &'a mut dyn FnMut(u32, u32) -> usize,
    took: Vec<Option<u8>>,
    storages: Vec<Storage>,
    spaces: Vec<Space>,
    resized: Vec<(u32, usize)>,
    /// Tensors of which one read is over, where one ends another.
    due: Vec<u32>,
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
        start: Walkable::new(problem)?,
        resize,
        took: room::filled(problem.nodes.len(), None)?,
        storages: room::list(problem.nodes.len() + problem.leafs.len())?,
        spaces: room::collected(problem.spaces.iter().map(|s| Space::new(s.max_size)))?,
        resized: Vec::new(),
        due: Vec::new(),
        step: 0,
        allow_views,
        used_views: false,
    };
    walk.place_fixed()?;
    walk.run()?;
    let Walk { start, took, storages, spaces, resized, used_views, .. } = walk;
    Ok(Trial { states: start.states, took, storages, spaces, resized, used_views })
}

/// What one walk came to.
struct Trial {
    /// By tensor: where it lives.
    states: Vec<State>,
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
            if let Some((packed, offsets)) = pack::pack(&self.storages, s as u32, total)? {
                sizes[0] = packed;
                for (storage, offset) in self.storages.iter_mut().zip(offsets).filter(|(st, _)| st.space == s as u32) {
                    storage.place.offset = offset;
                }
            }
        }
        let slot = |(state, tensor): (&State, &Tensor)| {
            let storage = self.storages.get((state.home as usize).checked_sub(1)?)?;
            Some(Slot { space: storage.space, place: storage.place, size: tensor.size })
        };
        let mut slots = room::collected(self.states.iter().zip(&problem.tensors).map(slot))?;
        for (t, bytes) in self.resized {
            if let Some(slot) = slots[t as usize].as_mut() {
                slot.size = bytes;
            }
        }
        Ok(Plan { slots, chunks, took: self.took })
    }
}

impl Walk<'_> {
    fn tensor(&self, t: u32) -> &Tensor {
        &self.problem.tensors[t as usize]
    }

    fn state(&mut self, t: u32) -> &mut State {
        &mut self.start.states[t as usize]
    }

    /// Leafs, then inputs in the order in which the nodes name them.
    fn place_fixed(&mut self) -> Result<(), PlanError> {
        let inputs = std::mem::take(&mut self.start.inputs);
        for &t in self.problem.leafs.iter().chain(&inputs) {
            self.place(t)?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), PlanError> {
        let problem = self.problem;
        let (late, any_skipped) = (self.start.late, self.start.any_skipped());
        for (i, node) in problem.nodes.iter().enumerate() {
            self.step = i as u32;
            let srcs = problem.srcs_of(node);
            for &src in srcs.iter().filter(|_| late) {
                self.place(src)?;
            }
            if self.needs_place(node.tensor) {
                self.took[i] = if node.reuse == 0 { None } else { self.take_over(node, srcs)? };
                if self.took[i].is_none() {
                    self.place(node.tensor)?;
                }
            }
            if any_skipped {
                self.read_with_skipped(node, srcs)?;
            } else {
                for &src in srcs {
                    self.read(src)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn needs_place(&self, t: u32) -> bool {
        let state = &self.start.states[t as usize];
        state.placeable && state.home == 0
    }

    #[inline]
    fn place(&mut self, t: u32) -> Result<(), PlanError> {
        if !self.needs_place(t) {
            return Ok(());
        }
        let tensor = self.tensor(t);
        let (own, space) = (tensor.size, tensor.space);
        let alignment = self.problem.spaces[space as usize].alignment;
        let size = padded(own, alignment).ok_or(PlanError::TooLarge(t))?;
        let place = self.spaces[space as usize].take(size)?.ok_or(PlanError::TooLarge(t))?;
        let storage = Storage { space, place, size, used: size, start: self.step, end: u32::MAX };
        room::push(&mut self.storages, storage)?;
        let home = self.storages.len() as u32;
        let state = self.state(t);
        (state.home, state.holds) = (home, true);
        Ok(())
    }

    /// Gives the node the storage of a source that dies with this step. The source's index.
    fn take_over(&mut self, node: &Node, srcs: &[u32]) -> Result<Option<u8>, PlanError> {
        if self.start.states[node.tensor as usize].fresh {
            return Ok(None);
        }
        for (i, &src) in srcs.iter().enumerate().filter(|(i, _)| *i < 16 && node.reuse >> i & 1 == 1) {
            let owner = self.start.states[src as usize].owner;
            let via_view = owner != src;
            let (s, o) = (self.start.states[src as usize], self.start.states[owner as usize]);
            let last_read = s.reads == 1 && s.views == 0;
            let alone = !via_view || (self.allow_views && self.tensor(src).at_start && o.reads == 0 && o.views == 1);
            if !o.holds || o.pinned || s.pinned || !last_read || !alone {
                continue;
            }
            let number = o.home as usize - 1;
            let storage = self.storages[number];
            let (size, space) = (self.tensor(node.tensor).size, self.tensor(node.tensor).space);
            let size = if space == storage.space { size } else { (self.resize)(node.tensor, storage.space) };
            let alignment = self.problem.spaces[storage.space as usize].alignment;
            let Some(padded) = padded(size, alignment).filter(|&p| p <= storage.used) else {
                continue;
            };
            if padded < storage.used {
                let tail = Place { offset: storage.place.offset + padded, ..storage.place };
                self.spaces[storage.space as usize].give(tail, storage.used - padded)?;
                self.storages[number].used = padded;
            }
            if space != storage.space {
                room::push(&mut self.resized, (node.tensor, size))?;
            }
            self.used_views |= via_view;
            self.state(owner).holds = false;
            let state = self.state(node.tensor);
            (state.home, state.holds) = (o.home, true);
            return Ok(Some(i as u8));
        }
        Ok(None)
    }

    /// One read of `t` is over. Gives its storage back when nothing else reads that.
    #[inline]
    fn read(&mut self, t: u32) -> Result<(), PlanError> {
        let state = self.state(t);
        state.reads -= 1;
        if state.reads > 0 || state.views > 0 {
            return Ok(());
        }
        let owner = state.owner;
        let state = self.state(owner);
        if owner != t {
            state.views -= 1;
        }
        if state.reads > 0 || state.views > 0 || state.pinned || !state.holds {
            return Ok(());
        }
        state.holds = false;
        let home = state.home as usize - 1;
        let storage = &mut self.storages[home];
        storage.end = self.step;
        Ok(self.spaces[storage.space as usize].give(storage.place, storage.used)?)
    }

    /// The reads of `node` are over, or with a skipped one only put off; and those that were put off for what `node` read.
    fn read_with_skipped(&mut self, node: &Node, srcs: &[u32]) -> Result<(), PlanError> {
        let put_off = self.start.states[node.tensor as usize].skipped && !node.marker;
        for &src in srcs {
            // a tensor that is its own source does not wait for itself
            if !put_off || src == node.tensor {
                room::push(&mut self.due, src)?;
            }
        }
        while let Some(t) = self.due.pop() {
            let owner = self.start.states[t as usize].owner;
            let before = [t, owner].map(|t| self.start.states[t as usize].in_use());
            self.read(t)?;
            self.end_of_skipped(t, before[0])?;
            if owner != t {
                self.end_of_skipped(owner, before[1])?;
            }
        }
        Ok(())
    }

    /// If `t` is a skipped tensor whose last reader was computed just now, the reads of its own step are over.
    fn end_of_skipped(&mut self, t: u32, was_in_use: bool) -> Result<(), PlanError> {
        let state = self.start.states[t as usize];
        if !state.skipped || !was_in_use || state.in_use() || state.pinned {
            return Ok(());
        }
        let problem = self.problem;
        let Some(node) = problem.nodes.get(self.start.made_by[t as usize] as usize) else { return Ok(()) };
        for &src in problem.srcs_of(node).iter().filter(|&&src| src != t) {
            room::push(&mut self.due, src)?;
        }
        Ok(())
    }
}
