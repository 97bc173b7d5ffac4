//! A graph portion as numbers: read once, so that the rules of fusion and of delaying follow no pointer. Reading is linear in the
//! portion.

#[cfg(test)]
mod tests;
mod uses;

pub use uses::Uses;

use super::known::{self, Effect};
use super::op::is_extension;
use crate::backend::Buffer;
use crate::error::Error;
use crate::graph::{access, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// A tensor as a portion knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tensor {
    /// A node, by position in the portion.
    Node(usize),
    /// Another tensor that nodes read or view; [`Facts::tensor`] has its address.
    Outside(usize),
}

/// Bytes of memory from `lo` to before `hi`. Numbers of different spaces never mean the same byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Span {
    /// 0: addresses of the host. Else a device's buffer, or the one tensor whose storage has no place yet.
    pub space: usize,
    pub lo: usize,
    pub hi: usize,
}

impl Span {
    pub fn overlaps(&self, other: &Span) -> bool {
        self.space == other.space
            && self.lo < other.hi
            && other.lo < self.hi
            && self.lo < self.hi
            && other.lo < other.hi
    }
}

/// How a tensor lies in its storage.
#[derive(PartialEq, Eq)]
struct Layout {
    ty: ggml_type,
    ne: [i64; GGML_MAX_DIMS],
    nb: [usize; GGML_MAX_DIMS],
    /// Bytes from the start of the storage.
    offs: usize,
}

impl Layout {
    fn of(t: &ggml_tensor, offs: usize) -> Self {
        Layout { ty: t.r#type, ne: t.ne, nb: t.nb, offs }
    }
}

/// What is known of one tensor. The last four are of nodes only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    pub op: ggml_op,
    /// Bits of `ggml_tensor_flag`.
    pub flags: i32,
    /// It covers the tensor that owns its storage: the same shape, type, strides and start.
    pub whole: bool,
    /// Number of the tensor that owns its storage; its own when it does.
    pub root: u32,
    pub span: Span,
    /// Its storage has a place already.
    pub allocated: bool,
    pub effect: Effect,
    /// A fusion may swallow it.
    pub pure: bool,
    /// It is in the portion, or in the graph, more than once.
    pub repeated: bool,
    /// How often it is a source, anywhere.
    pub uses: u32,
    /// Some tensor looks at its storage and is no node, or reads nothing of that storage: who uses it cannot be counted.
    pub loose: bool,
    /// Its sources in `Facts::srcs`: first, and how many.
    srcs: (u32, u32),
}

/// A portion of a graph.
#[derive(Default)]
pub struct Facts {
    /// By number: the nodes first, then what else they read and view.
    tensors: Vec<*mut ggml_tensor>,
    facts: Vec<Fact>,
    /// Numbers.
    srcs: Vec<u32>,
    /// By position: the node's number.
    order: Vec<u32>,
    /// By number of a node: its position, the first one if it has several.
    places: Vec<u32>,
}

/// What a portion is read with.
struct Reader {
    index: Index,
    facts: Facts,
    /// The last buffer that was asked whether it is the host's, and the answer.
    host: (*mut ggml_backend_buffer, bool),
}

impl Facts {
    /// Reads the portion `nodes`; `uses` counts the consumers over the whole graph that it is part of.
    ///
    /// # Safety
    /// The nodes are NULL or live, and so are their sources, what those view, and their buffers.
    pub unsafe fn read(nodes: &[*mut ggml_tensor], uses: &Uses) -> Result<Facts, Error> {
        if nodes.len() > u32::MAX as usize / (GGML_MAX_SRC + 2) {
            return Err(Error::argument(format!("{} nodes are more than a plan can be made for", nodes.len())));
        }
        if let Some(i) = nodes.iter().position(|t| t.is_null()) {
            return Err(Error::argument(format!("node {i} of the graph is NULL")));
        }
        let mut reader =
            Reader { index: Index::default(), facts: Facts::default(), host: (std::ptr::null_mut(), true) };
        // SAFETY: none of them is NULL, so they are live.
        unsafe { reader.run(nodes, uses)? };
        Ok(reader.facts)
    }

    /// Nodes of the portion.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The address of `tensor`; NULL for one that is not of this portion.
    pub fn tensor(&self, tensor: Tensor) -> *mut ggml_tensor {
        let number = match tensor {
            Tensor::Node(at) => self.order.get(at).map(|&n| n as usize),
            Tensor::Outside(n) => Some(n + self.places.len()),
        };
        number.and_then(|n| self.tensors.get(n).copied()).unwrap_or(std::ptr::null_mut())
    }

    /// Follows a move of the nodes `first..first + count` to directly before node `before`.
    pub fn moved(&mut self, first: usize, count: usize, before: usize) {
        let Some(range) = self.order.get_mut(first..before).filter(|range| count <= range.len()) else { return };
        range.rotate_left(count);
        for (at, &number) in (first..).zip(&*range) {
            self.places[number as usize] = at as u32;
        }
    }

    /// The node at `at`.
    pub(super) fn at(&self, at: usize) -> &Fact {
        &self.facts[self.order[at] as usize]
    }

    /// The number of the node at `at`.
    pub(super) fn number_at(&self, at: usize) -> u32 {
        self.order[at]
    }

    /// Tensors that have numbers.
    pub(super) fn n_tensors(&self) -> usize {
        self.tensors.len()
    }

    /// Tensor number `n`.
    pub(super) fn number(&self, n: u32) -> &Fact {
        &self.facts[n as usize]
    }

    /// Sources of the node at `at`, as numbers, in order.
    pub(super) fn sources(&self, at: usize) -> &[u32] {
        let (first, n) = self.at(at).srcs;
        &self.srcs[first as usize..(first + n) as usize]
    }

    /// Where tensor number `n` is in the portion, if it is a node.
    pub(super) fn place(&self, n: u32) -> Option<usize> {
        self.places.get(n as usize).map(|&at| at as usize)
    }

    /// Tensor number `n` as callers see it.
    pub(super) fn name(&self, n: u32) -> Tensor {
        match self.place(n) {
            Some(at) => Tensor::Node(at),
            None => Tensor::Outside(n as usize - self.places.len()),
        }
    }

    /// Whether the node at `at` owns its storage.
    pub(super) fn owns(&self, at: usize) -> bool {
        self.at(at).root == self.order[at]
    }
}

impl Reader {
    /// # Safety
    /// As [`Facts::read`]; no node is NULL.
    unsafe fn run(&mut self, nodes: &[*mut ggml_tensor], uses: &Uses) -> Result<(), Error> {
        self.index.clear(nodes.len() + nodes.len() / 4);
        self.facts.order.reserve_exact(nodes.len());
        // what nodes read is mostly other nodes
        let tensors = nodes.len() + nodes.len() / 4;
        self.facts.tensors.reserve_exact(tensors);
        self.facts.facts.reserve_exact(tensors);
        self.facts.srcs.reserve_exact(nodes.len() * 2);
        self.facts.places.reserve_exact(nodes.len());
        let mut repeated = Vec::new();
        for (at, &node) in nodes.iter().enumerate() {
            let (number, new) = self.index.add(node.addr());
            self.facts.order.push(number);
            if new {
                self.facts.places.push(at as u32);
                self.facts.tensors.push(node);
                self.facts.facts.push(blank(number));
            } else {
                repeated.push(number);
            }
        }
        for number in 0..self.facts.places.len() {
            let node = self.facts.tensors[number];
            // SAFETY: the caller's promise, for the rest of the loop.
            unsafe {
                access::fetch_ahead(nodes, number);
                let first = self.facts.srcs.len() as u32;
                for &src in (*node).src.iter().filter(|s| !s.is_null()) {
                    let src = self.number(src)?;
                    self.facts.srcs.push(src);
                }
                let srcs = (first, self.facts.srcs.len() as u32 - first);
                let fact = self.describe(node)?;
                let (uses, loose, repeated) = uses.of_node(node);
                let fact = Fact { srcs, uses, loose, repeated, ..fact };
                self.facts.facts[number] = fact;
            }
        }
        for number in repeated {
            self.facts.facts[number as usize].repeated = true;
        }
        Ok(())
    }

    /// The number of `t`, which may be new.
    ///
    /// # Safety
    /// `t` is live, and so are its storage and its buffer.
    unsafe fn number(&mut self, t: *mut ggml_tensor) -> Result<u32, Error> {
        let (number, new) = self.index.add(t.addr());
        if new {
            self.facts.tensors.push(t);
            self.facts.facts.push(blank(number));
            // SAFETY: the caller's promise.
            self.facts.facts[number as usize] = unsafe { self.describe(t)? };
        }
        Ok(number)
    }

    /// What `t` says of itself.
    ///
    /// # Safety
    /// As [`Reader::number`], also for what `t` reads.
    unsafe fn describe(&mut self, t: *mut ggml_tensor) -> Result<Fact, Error> {
        // SAFETY: the caller's promise, for all of the function.
        unsafe {
            let Some((owner, offs)) = access::storage_of(t) else {
                let name = shape::name(&*t);
                return Err(Error::argument(format!("tensor '{name}' is a view of a view of itself")));
            };
            let (tensor, owns) = (&*t, std::ptr::eq(owner, t));
            let root = if owns { self.index.add(t.addr()).0 } else { self.number(owner)? };
            let (space, base) = self.space(&*owner);
            let lo = base.saturating_add(offs);
            let layout = Layout::of(tensor, offs);
            let extension = is_extension(tensor);
            let effect = known::effect(tensor.op, extension, owns, |slot| lies_over(tensor, owner, &layout, slot));
            Ok(Fact {
                op: tensor.op,
                flags: tensor.flags,
                whole: owns || layout == Layout::of(&*owner, 0),
                root,
                span: Span { space, lo, hi: lo.saturating_add(shape::nbytes(tensor)) },
                allocated: !(*owner).data.is_null(),
                effect,
                pure: known::is_pure(tensor.op, extension),
                ..blank(root)
            })
        }
    }

    /// The space that the storage of `owner` lies in, and its start there.
    ///
    /// # Safety
    /// The buffer is live.
    unsafe fn space(&mut self, owner: &ggml_tensor) -> (usize, usize) {
        if owner.data.is_null() {
            return (std::ptr::from_ref(owner).addr(), 0);
        }
        if self.host.0 != owner.buffer {
            // SAFETY: the caller's promise. Memory without a buffer is a context's.
            let is_host = unsafe { Buffer::from_raw(owner.buffer) }.is_none_or(|b| b.is_host());
            self.host = (owner.buffer, is_host);
        }
        (if self.host.1 { 0 } else { owner.buffer.addr() }, owner.data.addr())
    }
}

/// Whether `t`, whose storage `owner` has, lies exactly over its source `slot`.
///
/// # Safety
/// The source is live, and so is its storage.
unsafe fn lies_over(t: &ggml_tensor, owner: *mut ggml_tensor, layout: &Layout, slot: usize) -> bool {
    let src = t.src[slot];
    if src.is_null() || std::ptr::eq(src, t) {
        return false;
    }
    // SAFETY: the caller's promise.
    let Some((root, offs)) = (unsafe { access::storage_of(src) }) else { return false };
    // SAFETY: as above.
    let src = unsafe { &*src };
    root == owner && Layout::of(src, offs) == *layout
}

fn blank(number: u32) -> Fact {
    Fact {
        op: GGML_OP_NONE,
        flags: 0,
        whole: false,
        root: number,
        span: Span { space: 0, lo: 0, hi: 0 },
        allocated: false,
        effect: Effect::Unknown,
        pure: false,
        repeated: false,
        uses: 0,
        loose: false,
        srcs: (0, 0),
    }
}
