//! The graph as numbers: what the passes of the scheduler look at again and again is looked up once.

use super::copies::{Copies, Origin};
use crate::alloc::room;
use crate::backend::{Buffer, Buft};
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::cell::Cell;
use std::collections::TryReserveError;

/// "No tensor" among numbers.
pub const NONE: u32 = u32::MAX;

/// A node and its sources.
#[derive(Clone, Copy)]
pub struct Node {
    /// The node itself.
    pub tensor: u32,
    /// Its sources in [`Numbering::srcs`]: first, and how many.
    pub first: u32,
    pub count: u32,
}

/// What the passes ask of a tensor, read from it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it views, or [`NONE`].
    pub root: u32,
    /// The memory that it, or what it views, lies in, as an index into [`Numbering::bufts`]; [`NONE`]: it lies nowhere yet.
    pub memory: u32,
    /// Its operator only looks at data that are there.
    pub view_op: bool,
    /// It is one of the graph's inputs.
    pub input: bool,
    /// It holds weights.
    pub weight: bool,
}

/// A graph as numbers.
#[derive(Default)]
pub struct Numbering {
    /// From addresses to numbers.
    pub index: Index,
    /// By number.
    pub tensors: Vec<*mut ggml_tensor>,
    /// By number.
    pub known: Vec<Known>,
    /// The graph's leafs.
    pub leafs: Vec<u32>,
    /// The graph's nodes.
    pub nodes: Vec<Node>,
    /// Number and slot of every source.
    pub srcs: Vec<(u32, u8)>,
    /// The kinds of memory in which tensors lie. A buffer of none has an entry too.
    pub bufts: Vec<Option<Buft>>,
    /// The buffer met last: its kind of memory, and whether it holds weights.
    last: (usize, u32, bool),
    /// The number found last: the next one asked for is often the one behind it.
    found: Cell<u32>,
    /// How many of the tensors got their numbers as leafs and nodes, not as sources or storage of others.
    own: usize,
    /// It was read to the end, and there are no tensors but leafs and nodes.
    plain: bool,
}

/// Source `slot` of `node`, which is `src`: the client's tensor, put back where it is a copy of an earlier split.
///
/// # Safety
/// `node` is live and nobody else uses it.
unsafe fn own_source(
    node: *mut ggml_tensor,
    slot: u8,
    src: *mut ggml_tensor,
    copies: &Copies,
) -> Result<*mut ggml_tensor, Error> {
    match copies.origin(node, slot, src) {
        Origin::Client => Ok(src),
        Origin::Copy(original) => {
            // SAFETY: the caller's promise.
            unsafe { (&mut (*node).src)[slot as usize] = original }
            Ok(original)
        }
        Origin::Lost => {
            // SAFETY: as above.
            let name = unsafe { shape::name(&*node) };
            Err(Error::argument(format!(
                "node '{name}' was split by this scheduler long ago and still reads its copies: build the graph anew"
            )))
        }
    }
}

impl Numbering {
    /// Reads `graph`. Copies that earlier splits put among its sources are taken out.
    ///
    /// # Safety
    /// The graph and its tensors are live and nobody else uses them.
    pub unsafe fn read(&mut self, graph: &ggml_cgraph, copies: &Copies) -> Result<(), Error> {
        self.bufts.clear();
        self.last = (0, NONE, false);
        // SAFETY: the caller's promise, for all of the function.
        unsafe {
            let (nodes, leafs) = (graph::checked_nodes(graph)?, graph::checked_leafs(graph)?);
            // mostly it is the graph that was read before, or one built anew in the same memory: then all have their numbers
            if !(std::mem::take(&mut self.plain) && self.read_again(nodes, leafs, copies)?) {
                self.number_all(nodes, leafs, copies)?;
                self.learn()?;
            }
        }
        self.plain = self.tensors.len() == self.own;
        Ok(())
    }

    /// Reads every tensor, if leafs, nodes, sources and what they view are those that were read last, and nothing but leafs and nodes.
    /// False: they are not, and what was read is of no use.
    unsafe fn read_again(
        &mut self,
        nodes: &[*mut ggml_tensor],
        leafs: &[*mut ggml_tensor],
        copies: &Copies,
    ) -> Result<bool, Error> {
        if (nodes.len(), leafs.len()) != (self.nodes.len(), self.leafs.len()) {
            return Ok(false);
        }
        for (i, &leaf) in leafs.iter().enumerate() {
            graph::access::fetch_next(leafs, i);
            // SAFETY: the promise of `read`.
            if !unsafe { self.look_again(self.leafs[i], leaf) } {
                return Ok(false);
            }
        }
        for (i, &node) in nodes.iter().enumerate() {
            graph::access::fetch_next(nodes, i);
            let known = self.nodes[i];
            // SAFETY: the promise of `read`.
            if !unsafe { self.look_again(known.tensor, node) } {
                return Ok(false);
            }
            for &(number, slot) in self.srcs_of(known) {
                // SAFETY: the promise of `read`. No reference is held where the node's sources are written.
                let (src, expected) = (unsafe { (&(*node).src)[slot as usize] }, self.tensors[number as usize]);
                // SAFETY: as above.
                if src != expected && (src.is_null() || unsafe { own_source(node, slot, src, copies) }? != expected) {
                    return Ok(false);
                }
            }
            // SAFETY: as above.
            let sources = unsafe { &(*node).src };
            let n = known.count as usize;
            let no_more = graph::access::ends_at(sources, n) || graph::access::count_sources(sources) == n;
            if !no_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads live tensor `t` if it is number `number` and views what it did.
    #[inline]
    unsafe fn look_again(&mut self, number: u32, t: *mut ggml_tensor) -> bool {
        let number = number as usize;
        let root = self.known[number].root;
        let expected = self.tensors.get(root as usize).copied().unwrap_or(std::ptr::null_mut());
        // SAFETY: the caller's promise.
        let same = t == self.tensors[number] && unsafe { (*t).view_src } == expected;
        if same {
            // SAFETY: as above.
            self.known[number] = Known { root, ..unsafe { self.look(t) } };
        }
        same
    }

    /// Gives leafs, nodes and sources their numbers.
    unsafe fn number_all(
        &mut self,
        nodes: &[*mut ggml_tensor],
        leafs: &[*mut ggml_tensor],
        copies: &Copies,
    ) -> Result<(), Error> {
        let n = nodes.len() + leafs.len();
        self.index.try_clear(n)?;
        self.tensors.clear();
        self.leafs.clear();
        self.nodes.clear();
        self.srcs.clear();
        self.tensors.try_reserve(n)?;
        self.leafs.try_reserve(leafs.len())?;
        self.nodes.try_reserve(nodes.len())?;
        self.srcs.try_reserve(nodes.len() * 2)?;
        self.own = 0;
        for &leaf in leafs {
            self.reserve(1)?;
            let number = self.own_number(leaf);
            self.leafs.push(number);
        }
        for (i, &node) in nodes.iter().enumerate() {
            graph::access::fetch_next(nodes, i);
            self.reserve(GGML_MAX_SRC + 1)?;
            let first = self.srcs.len() as u32;
            // SAFETY: the promise of `read`. A copy: no reference is held where the node's sources are written.
            let sources = unsafe { (*node).src };
            let slots = graph::access::slots(&sources).iter().copied().enumerate();
            for (slot, mut src) in slots.filter(|(_, src)| !src.is_null()) {
                if copies.may_own(src) {
                    // SAFETY: the promise of `read`.
                    src = unsafe { own_source(node, slot as u8, src, copies) }?;
                }
                let number = self.number(src);
                self.srcs.push((number, slot as u8));
            }
            let tensor = self.own_number(node);
            self.nodes.push(Node { tensor, first, count: self.srcs.len() as u32 - first });
        }
        Ok(())
    }

    /// Room for `more` tensors and as many sources.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.index.reserve(more)?;
        self.tensors.try_reserve(more)?;
        self.srcs.try_reserve(more)
    }

    #[inline]
    fn number(&mut self, t: *mut ggml_tensor) -> u32 {
        let (number, new) = self.index.add(t.addr());
        if new {
            self.tensors.push(t);
        }
        number
    }

    #[inline]
    fn own_number(&mut self, t: *mut ggml_tensor) -> u32 {
        let before = self.tensors.len();
        let number = self.number(t);
        self.own += self.tensors.len() - before;
        number
    }

    /// Reads every tensor; what they view gets numbers too.
    unsafe fn learn(&mut self) -> Result<(), Error> {
        self.known.clear();
        self.known.try_reserve(self.tensors.len())?;
        let mut t = 0;
        while let Some(&tensor) = self.tensors.get(t) {
            graph::access::fetch_next(&self.tensors, t);
            // SAFETY: the promise of `read`; what a live tensor views is live.
            let (mut known, view_src) = unsafe { (self.look(tensor), (*tensor).view_src) };
            if !view_src.is_null() {
                // storage is no view itself, but who knows: it is read in its turn
                self.reserve(1)?;
                known.root = self.number(view_src);
            }
            room::push(&mut self.known, known)?;
            t += 1;
        }
        Ok(())
    }

    /// Reads a live tensor; its root is left open.
    #[inline]
    unsafe fn look(&mut self, t: *mut ggml_tensor) -> Known {
        // SAFETY: the caller's promise; what a live tensor views is live.
        let (tensor, storage) = unsafe { (&*t, (*t).view_src.as_ref()) };
        let own = self.memory(tensor.buffer);
        Known {
            root: NONE,
            memory: storage.map_or(own.0, |storage| self.memory(storage.buffer).0),
            view_op: shape::is_view(tensor.op),
            input: tensor.flags & GGML_TENSOR_FLAG_INPUT.0 != 0,
            weight: own.1,
        }
    }

    /// The kind of memory of `buffer`, a live one or NULL, and whether it holds weights.
    fn memory(&mut self, buffer: *mut ggml_backend_buffer) -> (u32, bool) {
        if buffer.is_null() {
            return (NONE, false);
        }
        if self.last.0 != buffer.addr() {
            // SAFETY: a tensor's buffer is live while the tensor is used.
            let (buft, usage) = unsafe { (Buffer::from_raw(buffer).and_then(Buffer::buft), (*buffer).usage) };
            let at = self.bufts.iter().position(|&b| b == buft).unwrap_or_else(|| {
                self.bufts.push(buft);
                self.bufts.len() - 1
            });
            self.last = (buffer.addr(), at as u32, usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        }
        (self.last.1, self.last.2)
    }

    /// The number of the tensor at `address`.
    pub fn number_of(&self, address: usize) -> Option<u32> {
        let next = self.found.get() + 1;
        let number = match self.index.keys().get(next as usize) {
            Some(&key) if key == address => next,
            _ => self.index.get(address)?,
        };
        self.found.set(number);
        Some(number)
    }

    /// Sources of `node`.
    pub fn srcs_of(&self, node: Node) -> &[(u32, u8)] {
        self.srcs.get(node.first as usize..(node.first + node.count) as usize).unwrap_or(&[])
    }

    /// The memory in which tensor number `t` lies.
    pub fn buft(&self, t: u32) -> Option<Buft> {
        self.bufts.get(self.known[t as usize].memory as usize).copied().flatten()
    }

    /// Asks the processor for the tensors behind number `t`, which are mostly looked at next.
    pub fn fetch_next(&self, t: u32) {
        graph::access::fetch_next(&self.tensors, t as usize);
    }

    /// Tensor number `t`.
    pub fn tensor(&self, t: u32) -> &ggml_tensor {
        // SAFETY: numbers stand for live tensors while the graph is being split, by the promise of `read`.
        unsafe { &*self.tensors[t as usize] }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::backend::host;
    use crate::graph::testing::Bench;
    use std::ptr::null_mut;

    type T = *mut ggml_tensor;

    /// What a numbering says, by address and without numbers.
    fn said(g: &Numbering) -> impl PartialEq + std::fmt::Debug {
        let address = |&number: &u32| g.tensors[number as usize];
        let tensor = |&number: &u32| {
            let known = g.known[number as usize];
            let root = g.tensors.get(known.root as usize).copied().unwrap_or(null_mut());
            (address(&number), root, g.buft(number), known.view_op, known.input, known.weight)
        };
        let node = |n: &Node| {
            (tensor(&n.tensor), g.srcs_of(*n).iter().map(|(s, slot)| (tensor(s), *slot)).collect::<Vec<_>>())
        };
        let storage = g.known.iter().map(|k| k.root).filter(|&r| r != NONE).map(|r| tensor(&r)).collect::<Vec<_>>();
        let mut storage = storage.into_iter().map(|s| format!("{s:?}")).collect::<Vec<_>>();
        storage.sort();
        storage.dedup();
        (g.leafs.iter().map(tensor).collect::<Vec<_>>(), g.nodes.iter().map(node).collect::<Vec<_>>(), storage)
    }

    /// One numbering reads graphs in which something changed at the same addresses, as a new one does.
    #[test]
    fn reading_again_is_reading_anew() {
        let mut state = 1u64;
        let mut pick = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let buffers = [0, 1].map(|_| host::buffer_type_cpu().alloc(64).unwrap());
        buffers[1].set_usage(GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        let copies = Copies::default();
        let mut again = 0;
        for _ in 0..if cfg!(miri) { 3 } else { 60 } {
            let mut b = Bench::new();
            let mut all: Vec<T> = (0..4).map(|_| b.leaf(8)).collect();
            for _ in 0..12 {
                let (x, y) = (all[pick(all.len())], all[pick(all.len())]);
                all.push(if pick(4) == 0 { b.view(x, 0, 8) } else { b.add(x, y) });
            }
            let g = b.graph(&all[10..]);
            // SAFETY: a graph of the bench.
            let (n_nodes, n_leafs) = unsafe { ((*g).n_nodes, (*g).n_leafs) };
            let mut kept = Numbering::default();
            for _ in 0..if cfg!(miri) { 6 } else { 40 } {
                // SAFETY: tensors of the bench, which nobody else uses; sources and storage stay tensors of the bench.
                unsafe {
                    let t = all[pick(all.len())];
                    match pick(12) {
                        0 => (&mut (*t).src)[pick(3)] = all[pick(all.len())],
                        1 => (&mut (*t).src)[pick(3)] = null_mut(),
                        2 => (*t).view_src = all[pick(4)],
                        3 => (*t).view_src = null_mut(),
                        4 => (*t).flags ^= GGML_TENSOR_FLAG_INPUT.0,
                        5 => (*t).op = [GGML_OP_VIEW, GGML_OP_ADD][pick(2)],
                        6 => (*t).buffer = buffers[pick(2)].as_raw(),
                        7 => (*t).buffer = null_mut(),
                        8 if pick(4) == 0 => (*g).n_nodes = n_nodes - pick(3).min(n_nodes as usize) as i32,
                        9 if pick(4) == 0 => (*g).n_leafs = n_leafs - pick(2).min(n_leafs as usize) as i32,
                        _ => {}
                    }
                    // a view of itself has no end
                    for &t in &all[..4] {
                        (*t).view_src = null_mut();
                    }
                    again += usize::from(kept.plain);
                    let mut new = Numbering::default();
                    kept.read(&*g, &copies).unwrap();
                    new.read(&*g, &copies).unwrap();
                    assert_eq!(said(&kept), said(&new));
                    for &t in &kept.tensors {
                        assert_eq!(kept.number_of(t.addr()).map(|n| kept.tensors[n as usize]), Some(t));
                    }
                }
            }
        }
        assert!(again > if cfg!(miri) { 2 } else { 100 }, "{again} graphs had nothing but leafs and nodes");
        for buffer in buffers {
            // SAFETY: the tensors that pointed there are gone.
            unsafe { buffer.free() }
        }
    }
}
