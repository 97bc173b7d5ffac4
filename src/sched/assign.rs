//! A backend for every tensor.
//!
//! What is placed already stays; operators go where their weights are; the backends of higher priority spread over the nodes between;
//! what is left goes to a backend that can run it and has most of its sources. Lower numbers have priority; the last backend is the
//! host's, and takes what nobody else wants.

use super::numbering::{Node, Numbering, NONE};
use crate::alloc::room;
use crate::backend::{tensor_data, Backend, Buft};
use crate::error::Error;
use crate::ext::{self, op};
use crate::graph;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// "Not assigned yet".
pub const UNASSIGNED: i32 = -1;

/// The backends of a scheduler and the memory they work in.
pub struct Team {
    /// By priority.
    pub backends: Vec<Backend>,
    /// By backend.
    pub bufts: Vec<Buft>,
    /// Backends may take operators whose weights lie with the host.
    pub op_offload: bool,
}

impl Team {
    /// The host's backend.
    pub fn last(&self) -> i32 {
        self.backends.len() as i32 - 1
    }

    /// Whether backend `b` can run `op`.
    pub fn runs(&self, b: i32, op: &ggml_tensor) -> bool {
        self.backends[b as usize].device().is_some_and(|d| ext::supports_op(d, op))
    }

    /// Whether backend `b` can use such memory, by bit `b`.
    fn users(&self, buft: Option<Buft>) -> u32 {
        let Some(buft) = buft else { return 0 };
        self.backends
            .iter()
            .enumerate()
            .fold(0, |users, (b, backend)| users | u32::from(backend.supports_buft(buft)) << b)
    }

    /// The first of the backends `users` that can run `op`.
    fn first(&self, mut users: u32, op: &ggml_tensor) -> Option<i32> {
        while users != 0 {
            let b = users.trailing_zeros() as i32;
            if self.runs(b, op) {
                return Some(b);
            }
            users &= users - 1;
        }
        None
    }

    /// The backend that tensor number `t` must have, or should have for its weights' sake. `None`: it lies where nobody can work on it.
    fn by_placement(&self, g: &Numbering, reach: &Reach, t: u32, srcs: &[(u32, u8)]) -> Option<i32> {
        let known = &g.known[t as usize];
        if g.buft(t).is_some() {
            return self.first(reach.users(known.memory), g.tensor(t));
        }
        if known.input {
            return Some(self.last());
        }
        let weight = srcs.iter().map(|&(src, _)| src).find(|&src| g.known[src as usize].weight);
        let Some(weight) = weight else { return Some(UNASSIGNED) };
        let tensor = g.tensor(t);
        // the weights of these are a few numbers and say nothing of where the work should be
        if matches!(tensor.op, GGML_OP_ROPE | GGML_OP_FLASH_ATTN_EXT) {
            return Some(UNASSIGNED);
        }
        let holder = self.first(reach.users(g.known[weight as usize].memory), tensor).unwrap_or(UNASSIGNED);
        if self.op_offload
            && holder == self.last()
            && tensor_data::buffer_of(g.tensor(weight)).is_some_and(|b| b.is_host())
        {
            let wants = |&b: &i32| self.runs(b, tensor) && self.backends[b as usize].offload_op(tensor);
            return Some((0..holder).find(wants).unwrap_or(holder));
        }
        Some(holder)
    }

    /// The fault of a tensor that lies where nobody can work on it.
    #[cold]
    fn stuck(&self, t: &ggml_tensor, buft: Option<Buft>) -> Error {
        let (name, memory, op) = (shape::name(t), buft.map_or("?", Buft::name), op::op_name(t));
        let reasons = self.reasons(t);
        let text = format!("tensor '{name}' lies in memory '{memory}', where no backend can run {op}{reasons}");
        Error::new(GGML_EXT_CODE_NO_KERNEL, text).at(t)
    }

    /// What registrations that are for nodes like `t` have against it.
    fn reasons(&self, t: &ggml_tensor) -> String {
        let mut devices: Vec<_> = self.backends.iter().filter_map(|b| b.device()).collect();
        devices.dedup();
        devices.into_iter().map(|d| ext::select::why_not(d, t)).collect()
    }

    fn nobody(&self, t: &ggml_tensor) -> Error {
        let reasons = self.reasons(t);
        let text = format!("no backend can run {} of tensor '{}'{reasons}", op::op_name(t), shape::name(t));
        Error::new(GGML_EXT_CODE_NO_KERNEL, text).at(t)
    }

    /// Checks a graph for a team of one: it must be able to run every node where it lies.
    ///
    /// # Safety
    /// The tensors are live.
    pub unsafe fn check_single(&self, nodes: &[*mut ggml_tensor], leafs: &[*mut ggml_tensor]) -> Result<(), Error> {
        // nearly all tensors lie in the same memory
        let mut good: Option<Buft> = None;
        for (list, is_node) in [(leafs, false), (nodes, true)] {
            for (i, &t) in list.iter().enumerate() {
                graph::access::fetch_next(list, i);
                // SAFETY: the caller's promise.
                let t = unsafe { &*t };
                if let Some(buft) = tensor_data::buffer_of(t).and_then(|b| b.buft()).filter(|&buft| good != Some(buft))
                {
                    self.first(self.users(Some(buft)), t).ok_or_else(|| self.stuck(t, Some(buft)))?;
                    good = Some(buft);
                }
                if is_node && !shape::is_view(t.op) && !self.runs(0, t) {
                    return Err(self.nobody(t));
                }
            }
        }
        Ok(())
    }
}

/// Which backends can use which memory, asked once.
pub struct Reach {
    /// By kind of memory of a numbering: bit `b` for backend `b`.
    memories: Vec<u32>,
    /// By backend: who can use the memory that it works in.
    homes: Vec<u32>,
}

impl Reach {
    /// For the tensors of `g`.
    pub fn new(team: &Team, g: &Numbering) -> Self {
        Reach {
            memories: g.bufts.iter().map(|&buft| team.users(buft)).collect(),
            homes: team.bufts.iter().map(|&buft| team.users(Some(buft))).collect(),
        }
    }

    fn users(&self, memory: u32) -> u32 {
        self.memories.get(memory as usize).copied().unwrap_or(0)
    }

    /// Whether backend `b` can use the memory in which tensor `t` lies or will lie.
    pub fn reaches(&self, g: &Numbering, homes: &[i32], t: u32, b: i32) -> bool {
        let known = &g.known[t as usize];
        let users = if known.memory != NONE {
            self.users(known.memory)
        } else {
            let own = homes[t as usize];
            let home = if own == UNASSIGNED && known.root != NONE { homes[known.root as usize] } else { own };
            usize::try_from(home).map_or(0, |home| self.homes[home])
        };
        users >> b & 1 == 1
    }
}

/// By tensor number: its backend. `pinned`: addresses of tensors and the backends that the client chose for them.
pub fn assign(team: &Team, g: &Numbering, pinned: impl Iterator<Item = (usize, i32)>) -> Result<Vec<i32>, Error> {
    let reach = Reach::new(team, g);
    let mut homes = room::filled(g.tensors.len(), UNASSIGNED)?;
    for (t, home) in pinned {
        if let Some(number) = g.number_of(t) {
            homes[number as usize] = home;
        }
    }
    let stuck = |t: u32| team.stuck(g.tensor(t), g.buft(t));
    for &leaf in &g.leafs {
        g.fetch_next(leaf);
        if homes[leaf as usize] == UNASSIGNED {
            homes[leaf as usize] = team.by_placement(g, &reach, leaf, &[]).ok_or_else(|| stuck(leaf))?;
        }
    }
    for node in &g.nodes {
        let t = node.tensor;
        g.fetch_next(t);
        if homes[t as usize] == UNASSIGNED {
            homes[t as usize] = team.by_placement(g, &reach, t, g.srcs_of(*node)).ok_or_else(|| stuck(t))?;
        }
    }
    // first the devices spread, then whoever is there; a view follows what it views
    let mut computed = room::list(g.nodes.len())?;
    computed.extend(g.nodes.iter().map(|n| n.tensor).filter(|&t| !g.known[t as usize].view_op));
    for (devices_only, back) in [(true, false), (true, true), (false, false), (false, true)] {
        let some_left = match back {
            false => spread(team, g, &mut homes, computed.iter().copied(), devices_only),
            true => spread(team, g, &mut homes, computed.iter().rev().copied(), devices_only),
        };
        if !some_left {
            break;
        }
    }
    for node in &g.nodes {
        let home = homes[node.tensor as usize];
        // nobody has a higher priority than backend 0
        if home == 0 || g.known[node.tensor as usize].view_op {
            continue;
        }
        homes[node.tensor as usize] = match home {
            UNASSIGNED => nearest(team, g, &reach, &homes, *node),
            home => upgrade(team, g, &reach, &homes, *node, home),
        };
    }
    for node in &g.nodes {
        let t = node.tensor as usize;
        let root = g.known[t].root;
        if homes[t] == UNASSIGNED && root != NONE {
            homes[t] = homes[root as usize];
        }
        if homes[t] == UNASSIGNED {
            let home = (0..=team.last()).find(|&b| team.runs(b, g.tensor(node.tensor)));
            homes[t] = home.ok_or_else(|| team.nobody(g.tensor(node.tensor)))?;
        }
        let home = homes[t];
        for &(src, _) in g.srcs_of(*node) {
            settle(g, &mut homes, src, home);
        }
        if root != NONE {
            settle(g, &mut homes, node.tensor, home);
        }
    }
    for &leaf in &g.leafs {
        settle(g, &mut homes, leaf, team.last());
    }
    Ok(homes)
}

/// Gives `t`, and what it views, the backend `home` if they have none; a view is where its storage is.
#[inline]
fn settle(g: &Numbering, homes: &mut [i32], t: u32, home: i32) {
    let root = g.known[t as usize].root;
    if root == NONE {
        if homes[t as usize] == UNASSIGNED {
            homes[t as usize] = home;
        }
        return;
    }
    if homes[root as usize] == UNASSIGNED {
        homes[root as usize] = match homes[t as usize] {
            UNASSIGNED => home,
            own => own,
        };
    }
    if homes[t as usize] == UNASSIGNED {
        homes[t as usize] = homes[root as usize];
    }
}

/// Hands the backend of each node on to the unassigned ones behind it that it can run. Whether some are left.
fn spread(team: &Team, g: &Numbering, homes: &mut [i32], order: impl Iterator<Item = u32>, devices_only: bool) -> bool {
    let (mut current, mut left) = (UNASSIGNED, false);
    for t in order {
        let home = &mut homes[t as usize];
        if *home != UNASSIGNED {
            current = if devices_only && *home == team.last() { UNASSIGNED } else { *home };
        } else if current != UNASSIGNED && team.runs(current, g.tensor(t)) {
            *home = current;
        } else {
            left = true;
        }
    }
    left
}

/// The backend that can run `node` and reaches most of its sources.
fn nearest(team: &Team, g: &Numbering, reach: &Reach, homes: &[i32], node: Node) -> i32 {
    let mut best = (UNASSIGNED, -1);
    for b in 0..=team.last() {
        if team.runs(b, g.tensor(node.tensor)) {
            let placed = |t: u32| {
                let root = g.known[t as usize].root;
                homes[t as usize] != UNASSIGNED || root != NONE && homes[root as usize] != UNASSIGNED
            };
            let reached = |&&(src, _): &&(u32, u8)| placed(src) && reach.reaches(g, homes, src, b);
            let n = g.srcs_of(node).iter().filter(reached).count() as i32;
            if n > best.1 {
                best = (b, n);
            }
        }
    }
    best.0
}

/// A backend of higher priority that works in the same memory and reaches all sources, else `home`.
fn upgrade(team: &Team, g: &Numbering, reach: &Reach, homes: &[i32], node: Node, home: i32) -> i32 {
    let better = |&b: &i32| {
        team.bufts[b as usize] == team.bufts[home as usize]
            && team.runs(b, g.tensor(node.tensor))
            && g.srcs_of(node).iter().all(|&(src, _)| reach.reaches(g, homes, src, b))
    };
    (0..home).find(better).unwrap_or(home)
}
