//! From a graph to the planner's numbers: the leafs, then for each node its sources and itself; a view brings its storage.

use super::inplace;
use super::problem::*;
use super::room;
use crate::backend::Buft;
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::collections::TryReserveError;

/// The kinds of memory that a graph's tensors may go to.
pub struct Memory {
    /// Distinct buffer types.
    pub spaces: Vec<Buft>,
    /// By buffer number: which of them.
    pub space_of: Vec<u32>,
    /// Tensors that get no memory unless they have some, by address.
    pub skipped: Index,
}

impl Memory {
    /// One space for each distinct type in `bufts`.
    pub fn new(bufts: &[Buft]) -> Self {
        let mut spaces: Vec<Buft> = Vec::new();
        let mut space_of = Vec::new();
        for &buft in bufts {
            let known = spaces.iter().position(|&b| b == buft);
            space_of.push(known.unwrap_or(spaces.len()) as u32);
            if known.is_none() {
                spaces.push(buft);
            }
        }
        Memory { spaces, space_of, skipped: Index::default() }
    }

    /// Whether `tensor`, at `t`, is to have no storage; one that has some keeps it.
    #[inline]
    pub fn skips(&self, t: *const ggml_tensor, tensor: &ggml_tensor) -> bool {
        !self.skipped.keys().is_empty() && !is_external(tensor) && self.skipped.get(t.addr()).is_some()
    }

    /// Bytes that `tensor` takes in `space`.
    pub fn size_in(&self, tensor: &ggml_tensor, space: u32) -> usize {
        self.spaces.get(space as usize).map_or(usize::MAX, |b| b.alloc_size(tensor))
    }
}

/// A graph, checked, and the buffer of each of its nodes and leafs; no list: buffer 0.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// In the order in which they run.
    pub nodes: &'a [*mut ggml_tensor],
    /// Tensors that hold data before that.
    pub leafs: &'a [*mut ggml_tensor],
    /// Buffer of each node.
    pub node_buffers: Option<&'a [i32]>,
    /// Buffer of each leaf.
    pub leaf_buffers: Option<&'a [i32]>,
}

/// The owner of the storage that `t` views and whether `t` starts where it starts; `None`: `t` is no view.
#[inline]
pub(super) unsafe fn root_of(t: &ggml_tensor) -> Result<Option<(*mut ggml_tensor, bool)>, Error> {
    if t.view_src.is_null() {
        return Ok(None);
    }
    // SAFETY: a view's storage is live while the view is; the tensor is not written through the pointer.
    match unsafe { graph::access::storage_of(std::ptr::from_ref(t).cast_mut()) } {
        Some((root, offs)) => Ok(Some((root, offs == 0))),
        None => Err(Error::argument(format!("tensor '{}' is a view of a view without end", shape::name(t)))),
    }
}

pub(super) fn is_external(t: &ggml_tensor) -> bool {
    !t.data.is_null() || !t.buffer.is_null()
}

/// Whether a node of operator `op` writes what it names, rather than looking at it.
fn writes(op: ggml_op) -> bool {
    !matches!(op, GGML_OP_NONE | GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE)
}

/// A view without operator only says that something must stay.
pub(super) fn is_marker(t: &ggml_tensor) -> bool {
    !t.view_src.is_null() && t.op == GGML_OP_NONE
}

pub(super) fn same_layout(a: &ggml_tensor, b: &ggml_tensor) -> bool {
    a.r#type == b.r#type && a.ne == b.ne && a.nb == b.nb
}

pub(super) fn has(t: &ggml_tensor, flag: ggml_tensor_flag) -> bool {
    t.flags & flag.0 != 0
}

/// Room that the index has for each node: itself and its sources.
const AT_ONCE: usize = GGML_MAX_SRC + 1;

struct Lowering<'a> {
    memory: &'a Memory,
    index: &'a mut Index,
    problem: Problem,
    /// By number.
    tensors: Vec<*mut ggml_tensor>,
    /// How many of the tensors got their numbers as leafs and nodes, not as sources or storage of others.
    own: usize,
}

/// The planner's question for a graph, and whether there are no tensors but leafs and nodes; `index` maps tensors to their numbers
/// afterwards.
///
/// # Safety
/// The tensors of `source`, what they read and what they view are live.
pub unsafe fn lower(source: Source, memory: &Memory, index: &mut Index) -> Result<(Problem, bool), Error> {
    let n = source.nodes.len() + source.leafs.len();
    index.try_clear(n + AT_ONCE)?;
    let spaces = memory.spaces.iter().map(|b| SpaceRule { alignment: b.alignment(), max_size: b.max_size() });
    let problem = Problem {
        spaces: room::collected(spaces)?,
        tensors: room::list(n + AT_ONCE)?,
        nodes: room::list(source.nodes.len())?,
        srcs: room::list(source.nodes.len() * 3)?,
        leafs: room::list(source.leafs.len())?,
    };
    let mut lowering = Lowering { memory, index, problem, tensors: room::list(n + AT_ONCE)?, own: 0 };
    // SAFETY: the caller's promise.
    unsafe {
        lowering.number_all(source)?;
        lowering.look_at_all()?;
    }
    lowering.check_skipped(source)?;
    let plain = lowering.own == lowering.problem.tensors.len();
    Ok((lowering.problem, plain))
}

impl Lowering<'_> {
    /// Gives leafs, nodes and sources their numbers and kinds of memory.
    unsafe fn number_all(&mut self, source: Source) -> Result<(), Error> {
        for (i, &leaf) in source.leafs.iter().enumerate() {
            let space =
                self.space(source.leaf_buffers, i).ok_or_else(|| self.no_buffer("leaf", i, source.leaf_buffers))?;
            self.reserve(1)?;
            let id = self.own_number(leaf, space);
            self.problem.leafs.push(id);
        }
        for (i, &node) in source.nodes.iter().enumerate() {
            graph::access::fetch_next(source.nodes, i);
            let space =
                self.space(source.node_buffers, i).ok_or_else(|| self.no_buffer("node", i, source.node_buffers))?;
            self.reserve(AT_ONCE)?;
            // SAFETY: the promise of `lower`.
            let t = unsafe { &*node };
            let may = if t.view_src.is_null() { inplace::sources(t.op) } else { 0 };
            let (first, mut reuse) = (self.problem.srcs.len() as u32, 0);
            for (j, &src) in graph::access::slots(&t.src).iter().enumerate().filter(|(_, s)| !s.is_null()) {
                let id = self.number(src, space);
                // SAFETY: as above.
                if may >> j & 1 == 1 && same_layout(t, unsafe { &*src }) {
                    reuse |= 1 << (self.problem.srcs.len() as u32 - first);
                }
                self.problem.srcs.push(id);
            }
            let count = self.problem.srcs.len() as u32 - first;
            let tensor = self.own_number(node, space);
            self.problem.nodes.push(Node { tensor, first, count, reuse, marker: is_marker(t) });
        }
        Ok(())
    }

    /// Room for `more` tensors and as many sources.
    #[inline]
    fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.index.reserve(more)?;
        self.tensors.try_reserve(more)?;
        self.problem.tensors.try_reserve(more)?;
        self.problem.srcs.try_reserve(more)
    }

    /// The number of `t`; if it is new, it goes to `space`.
    #[inline]
    fn number(&mut self, t: *mut ggml_tensor, space: u32) -> u32 {
        // exposed: the allocator turns numbers back into tensors
        let (id, new) = self.index.add(t.expose_provenance());
        if new {
            self.tensors.push(t);
            self.problem.tensors.push(Tensor::plain(0, space));
        }
        id
    }

    /// As [`Lowering::number`], for a leaf or node.
    #[inline]
    fn own_number(&mut self, t: *mut ggml_tensor, space: u32) -> u32 {
        let before = self.tensors.len();
        let id = self.number(t, space);
        self.own += self.tensors.len() - before;
        id
    }

    #[inline]
    fn space(&self, buffers: Option<&[i32]>, i: usize) -> Option<u32> {
        let buffer = buffers.map_or(Some(0), |list| list.get(i).copied())?;
        self.memory.space_of.get(usize::try_from(buffer).ok()?).copied()
    }

    #[cold]
    fn no_buffer(&self, what: &str, i: usize, buffers: Option<&[i32]>) -> Error {
        let buffer = buffers.map_or(0, |list| list.get(i).copied().unwrap_or(-1));
        Error::argument(format!("{what} {i} is to go to buffer {buffer} of {}", self.memory.space_of.len()))
    }

    /// Reads every tensor; what they view gets numbers too.
    unsafe fn look_at_all(&mut self) -> Result<(), Error> {
        let mut id = 0;
        while let Some(&t) = self.tensors.get(id) {
            graph::access::fetch_next(&self.tensors, id);
            // SAFETY: the promise of `lower`.
            let (tensor, root) = unsafe { (&*t, root_of(&*t)?) };
            let mut known = Tensor {
                input: has(tensor, GGML_TENSOR_FLAG_INPUT),
                output: has(tensor, GGML_TENSOR_FLAG_OUTPUT),
                external: is_external(tensor),
                skipped: self.memory.skips(t, tensor),
                ..self.problem.tensors[id]
            };
            if let Some((root, at_start)) = root {
                self.reserve(1)?;
                // the kind of memory of what is storage only does not matter: nothing is placed there but by its own name
                (known.root, known.at_start) = (self.number(root, 0), at_start);
            } else if !known.external && !known.skipped {
                known.size = self.memory.size_in(tensor, known.space);
            }
            self.problem.tensors[id] = known;
            id += 1;
        }
        Ok(())
    }

    /// Whether what must have memory has some although tensors are skipped.
    fn check_skipped(&self, source: Source) -> Result<(), Error> {
        if self.memory.skipped.keys().is_empty() {
            return Ok(());
        }
        let all = &self.problem.tensors;
        let storage_skipped = |t: &Tensor| t.root != NONE && all[t.root as usize].skipped;
        for (id, known) in (0..).zip(all) {
            let without = known.skipped || !known.external && storage_skipped(known);
            if without && (known.input || known.output) {
                return Err(self.flagged(id));
            }
        }
        for (node, &t) in self.problem.nodes.iter().zip(source.nodes) {
            let known = &all[node.tensor as usize];
            // SAFETY: a live node, by the promise of `lower`.
            if !known.skipped && storage_skipped(known) && writes(unsafe { (*t).op }) {
                let [node, root] = [node.tensor, known.root].map(|t| self.title(t));
                let text = format!("tensor {node} is written into tensor {root}, which is skipped and gets no memory");
                return Err(Error::argument(text));
            }
        }
        Ok(())
    }

    /// The fault of an input or output that would have no memory.
    fn flagged(&self, t: u32) -> Error {
        let known = &self.problem.tensors[t as usize];
        let what = if known.input { "an input" } else { "an output" };
        let title = self.title(t);
        Error::argument(match known.skipped {
            true => format!("tensor {title} is {what} and must have memory: it cannot be skipped"),
            false => {
                let root = self.title(known.root);
                format!(
                    "tensor {title} is {what} and must have memory: tensor {root}, which it views, cannot be skipped"
                )
            }
        })
    }

    /// The name of tensor number `t`, in quotes.
    fn title(&self, t: u32) -> String {
        // SAFETY: the numbers stand for live tensors, by the promise of `lower`.
        format!("'{}'", shape::name(unsafe { &*self.tensors[t as usize] }))
    }
}
