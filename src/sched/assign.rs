//! A backend for every tensor.
//!
//! What is placed already stays; operators go where their weights are; the backends of higher priority spread over the nodes between;
//! what is left goes to a backend that can run it and has most of its sources. Lower numbers have priority; the last backend is the
//! host's, and takes what nobody else wants.

use super::numbering::{Numbering, NONE};
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

/// Whether `t` only looks at data that are there.
pub fn is_view_op(t: &ggml_tensor) -> bool {
    matches!(t.op, GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE)
}

pub(super) fn is_weight(t: &ggml_tensor) -> bool {
    // SAFETY: a tensor's buffer is live while the tensor is used.
    unsafe { t.buffer.as_ref() }.is_some_and(|b| b.usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
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

    /// The first backend that can use the memory in which `t` lies and run `op` there. `None`: `t` lies nowhere.
    fn holder(&self, t: &ggml_tensor, op: &ggml_tensor) -> Option<i32> {
        let buft = tensor_data::buffer_of(t)?.buft()?;
        let found = (0..=self.last()).find(|&b| self.backends[b as usize].supports_buft(buft) && self.runs(b, op));
        Some(found.unwrap_or(UNASSIGNED))
    }

    /// The backend that `t` must have, or should have for its weights' sake.
    pub fn from_placement(&self, t: &ggml_tensor) -> Result<i32, Error> {
        match self.holder(t, t) {
            None => {}
            Some(UNASSIGNED) => {
                let buft = tensor_data::buffer_of(t).and_then(|b| b.buft()).map_or("?", Buft::name);
                return Err(Error::new(
                    GGML_EXT_CODE_NO_KERNEL,
                    format!(
                        "tensor '{}' lies in memory '{buft}', where no backend can run {}{}",
                        shape::name(t),
                        op::op_name(t),
                        self.reasons(t)
                    ),
                )
                .at(t));
            }
            Some(b) => return Ok(b),
        }
        if t.flags & GGML_TENSOR_FLAG_INPUT.0 != 0 {
            return Ok(self.last());
        }
        // the weights of these are a few numbers and say nothing of where the work should be
        if matches!(t.op, GGML_OP_ROPE | GGML_OP_FLASH_ATTN_EXT) {
            return Ok(UNASSIGNED);
        }
        // SAFETY: what a live tensor reads is live.
        let weight = t.src.iter().filter_map(|&s| unsafe { s.as_ref() }).find(|s| is_weight(s));
        let Some(weight) = weight else { return Ok(UNASSIGNED) };
        let holder = self.holder(weight, t).unwrap_or(UNASSIGNED);
        if self.op_offload && holder == self.last() && tensor_data::buffer_of(weight).is_some_and(|b| b.is_host()) {
            let wants = |&b: &i32| self.runs(b, t) && self.backends[b as usize].offload_op(t);
            return Ok((0..holder).find(wants).unwrap_or(holder));
        }
        Ok(holder)
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
                // SAFETY: the caller's promise.
                unsafe { graph::access::fetch_ahead(list, i) };
                // SAFETY: as above.
                let t = unsafe { &*t };
                let buft = tensor_data::buffer_of(t).and_then(|b| b.buft());
                if buft.is_some() && buft != good {
                    self.from_placement(t)?;
                    good = buft;
                }
                if is_node && !is_view_op(t) && !self.runs(0, t) {
                    return Err(self.nobody(t));
                }
            }
        }
        Ok(())
    }

    /// Whether backend `b` can use the memory in which tensor `t` lies or will lie.
    pub fn reaches(&self, g: &Numbering, homes: &[i32], t: u32, b: i32) -> bool {
        let buft = match tensor_data::buffer_of(g.tensor(t)) {
            Some(buffer) => buffer.buft(),
            None => {
                let (own, root) = (homes[t as usize], g.root[t as usize]);
                let home = if own == UNASSIGNED && root != NONE { homes[root as usize] } else { own };
                usize::try_from(home).ok().map(|home| self.bufts[home])
            }
        };
        buft.is_some_and(|buft| self.backends[b as usize].supports_buft(buft))
    }
}

/// By tensor number: its backend. `pinned(address)`: the backend that the client chose.
pub fn assign(team: &Team, g: &Numbering, pinned: impl Fn(usize) -> Option<i32>) -> Result<Vec<i32>, Error> {
    let mut homes: Vec<i32> = g.tensors.iter().map(|t| pinned(t.addr()).unwrap_or(UNASSIGNED)).collect();
    for t in g.leafs.iter().copied().chain(g.nodes.iter().map(|n| n.tensor)) {
        if homes[t as usize] == UNASSIGNED {
            homes[t as usize] = team.from_placement(g.tensor(t))?;
        }
    }
    // first the devices spread, then whoever is there; a view follows what it views
    let computed: Vec<u32> = g.nodes.iter().map(|n| n.tensor).filter(|&t| !is_view_op(g.tensor(t))).collect();
    for devices_only in [true, false] {
        spread(team, g, &mut homes, computed.iter().copied(), devices_only);
        spread(team, g, &mut homes, computed.iter().rev().copied(), devices_only);
    }
    for node in &g.nodes {
        if is_view_op(g.tensor(node.tensor)) {
            continue;
        }
        homes[node.tensor as usize] = match homes[node.tensor as usize] {
            UNASSIGNED => nearest(team, g, &homes, *node),
            home => upgrade(team, g, &homes, *node, home),
        };
    }
    for node in &g.nodes {
        let t = node.tensor as usize;
        if homes[t] == UNASSIGNED && g.root[t] != NONE {
            homes[t] = homes[g.root[t] as usize];
        }
        if homes[t] == UNASSIGNED {
            homes[t] = (0..=team.last()).find(|&b| team.runs(b, g.tensor(node.tensor))).unwrap_or(UNASSIGNED);
        }
        if homes[t] == UNASSIGNED {
            return Err(team.nobody(g.tensor(node.tensor)));
        }
        let home = homes[t];
        for &(src, _) in g.srcs_of(*node) {
            settle(g, &mut homes, src, home);
        }
        settle(g, &mut homes, node.tensor, home);
    }
    for &leaf in &g.leafs {
        settle(g, &mut homes, leaf, team.last());
    }
    Ok(homes)
}

/// Gives `t`, and what it views, the backend `home` if they have none; a view is where its storage is.
fn settle(g: &Numbering, homes: &mut [i32], t: u32, home: i32) {
    let root = g.root[t as usize];
    if root != NONE && homes[root as usize] == UNASSIGNED {
        homes[root as usize] = match homes[t as usize] {
            UNASSIGNED => home,
            own => own,
        };
    }
    if homes[t as usize] == UNASSIGNED {
        homes[t as usize] = if root == NONE { home } else { homes[root as usize] };
    }
}

/// Hands the backend of each node on to the unassigned ones behind it that it can run.
fn spread(team: &Team, g: &Numbering, homes: &mut [i32], order: impl Iterator<Item = u32>, devices_only: bool) {
    let mut current = UNASSIGNED;
    for t in order {
        let home = &mut homes[t as usize];
        if *home != UNASSIGNED {
            current = if devices_only && *home == team.last() { UNASSIGNED } else { *home };
        } else if current != UNASSIGNED && team.runs(current, g.tensor(t)) {
            *home = current;
        }
    }
}

/// The backend that can run `node` and reaches most of its sources.
fn nearest(team: &Team, g: &Numbering, homes: &[i32], node: super::numbering::Node) -> i32 {
    let mut best = (UNASSIGNED, -1);
    for b in 0..=team.last() {
        if team.runs(b, g.tensor(node.tensor)) {
            let placed = |t: u32| {
                let root = g.root[t as usize];
                homes[t as usize] != UNASSIGNED || root != NONE && homes[root as usize] != UNASSIGNED
            };
            let reached = |&&(src, _): &&(u32, u8)| placed(src) && team.reaches(g, homes, src, b);
            let n = g.srcs_of(node).iter().filter(reached).count() as i32;
            if n > best.1 {
                best = (b, n);
            }
        }
    }
    best.0
}

/// A backend of higher priority that works in the same memory and reaches all sources, else `home`.
fn upgrade(team: &Team, g: &Numbering, homes: &[i32], node: super::numbering::Node, home: i32) -> i32 {
    let better = |&b: &i32| {
        team.bufts[b as usize] == team.bufts[home as usize]
            && team.runs(b, g.tensor(node.tensor))
            && g.srcs_of(node).iter().all(|&(src, _)| team.reaches(g, homes, src, b))
    };
    (0..home).find(better).unwrap_or(home)
}
