//! From a graph to the planner's numbers, and the check that a graph still has the shape that a plan was made for.
//!
//! Both walk the graph in one order: the leafs, then for each node its sources and itself; a view brings its storage.

use super::inplace;
use super::problem::*;
use super::room;
use crate::backend::Buft;
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

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
unsafe fn root_of(t: &ggml_tensor) -> Result<Option<(*mut ggml_tensor, bool)>, Error> {
    let (mut root, mut at_start) = (t.view_src, t.view_offs == 0);
    if root.is_null() {
        return Ok(None);
    }
    for _ in 0..64 {
        // SAFETY: a view's storage is live while the view is.
        let next = unsafe { &*root };
        if next.view_src.is_null() {
            return Ok(Some((root, at_start)));
        }
        at_start &= next.view_offs == 0;
        root = next.view_src;
    }
    Err(Error::argument(format!("tensor '{}' is a view of a view without end", shape::name(t))))
}

fn is_external(t: &ggml_tensor) -> bool {
    !t.data.is_null() || !t.buffer.is_null()
}

/// Whether a node of operator `op` writes what it names, rather than looking at it.
fn writes(op: ggml_op) -> bool {
    !matches!(op, GGML_OP_NONE | GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE)
}

/// A view without operator only says that something must stay.
fn is_marker(t: &ggml_tensor) -> bool {
    !t.view_src.is_null() && t.op == GGML_OP_NONE
}

fn same_layout(a: &ggml_tensor, b: &ggml_tensor) -> bool {
    a.r#type == b.r#type && a.ne == b.ne && a.nb == b.nb
}

fn has(t: &ggml_tensor, flag: ggml_tensor_flag) -> bool {
    t.flags & flag.0 != 0
}

struct Lowering<'a> {
    memory: &'a Memory,
    index: &'a mut Index,
    problem: Problem,
    /// By tensor: it was named itself, not only as somebody's storage, so its space is known.
    named: Vec<bool>,
}

/// The planner's question for a graph; `index` maps tensors to their numbers afterwards.
///
/// # Safety
/// The tensors of `source`, what they read and what they view are live.
pub unsafe fn lower(source: Source, memory: &Memory, index: &mut Index) -> Result<Problem, Error> {
    let n = source.nodes.len() + source.leafs.len();
    index.try_clear(n + n / 4)?;
    let spaces = memory.spaces.iter().map(|b| SpaceRule { alignment: b.alignment(), max_size: b.max_size() });
    let problem = Problem {
        spaces: room::collected(spaces)?,
        tensors: room::list(n + n / 4)?,
        nodes: room::list(source.nodes.len())?,
        srcs: room::list(source.nodes.len() * 2)?,
        leafs: room::list(source.leafs.len())?,
    };
    let mut lowering = Lowering { memory, index, problem, named: room::list(n + n / 4)? };
    // SAFETY: the caller's promise.
    unsafe { lowering.run(source) }?;
    Ok(lowering.problem)
}

impl Lowering<'_> {
    unsafe fn run(&mut self, source: Source) -> Result<(), Error> {
        for (i, &leaf) in source.leafs.iter().enumerate() {
            let space = self.space(source.leaf_buffers, i, "leaf")?;
            // SAFETY: the promise of `lower`.
            let id = unsafe { self.name(leaf, space) }?;
            self.problem.leafs.push(id);
        }
        for (i, &node) in source.nodes.iter().enumerate() {
            // SAFETY: the promise of `lower`.
            unsafe { graph::access::fetch_ahead(source.nodes, i) };
            let space = self.space(source.node_buffers, i, "node")?;
            // SAFETY: the promise of `lower`.
            let t = unsafe { &*node };
            let may = if t.view_src.is_null() { inplace::sources(t.op) } else { 0 };
            let (first, mut reuse) = (self.problem.srcs.len() as u32, 0);
            for (j, &src) in t.src.iter().enumerate().filter(|(_, s)| !s.is_null()) {
                // SAFETY: as above.
                let id = unsafe { self.name(src, space) }?;
                // SAFETY: as above.
                if may >> j & 1 == 1 && same_layout(t, unsafe { &*src }) {
                    reuse |= 1 << (self.problem.srcs.len() as u32 - first);
                }
                room::push(&mut self.problem.srcs, id)?;
            }
            // SAFETY: as above.
            let tensor = unsafe { self.name(node, space) }?;
            let count = self.problem.srcs.len() as u32 - first;
            self.problem.nodes.push(Node { tensor, first, count, reuse, marker: is_marker(t) });
            let known = &self.problem.tensors[tensor as usize];
            if known.root != NONE && !known.skipped && self.problem.tensors[known.root as usize].skipped && writes(t.op)
            {
                return Err(self.writes_skipped(tensor));
            }
        }
        Ok(())
    }

    #[cold]
    fn writes_skipped(&self, t: u32) -> Error {
        let [node, root] = [t, self.problem.tensors[t as usize].root].map(|t| self.title(t));
        Error::argument(format!("tensor {node} is written into tensor {root}, which is skipped and gets no memory"))
    }

    /// The name of tensor number `t`, in quotes.
    fn title(&self, t: u32) -> String {
        let address = self.index.keys()[t as usize];
        // SAFETY: the numbers stand for live tensors, by the promise of `lower`.
        format!("'{}'", shape::name(unsafe { &*std::ptr::with_exposed_provenance::<ggml_tensor>(address) }))
    }

    fn space(&self, buffers: Option<&[i32]>, i: usize, what: &str) -> Result<u32, Error> {
        let buffer = match buffers {
            None => 0,
            Some(list) => list.get(i).copied().unwrap_or(-1),
        };
        usize::try_from(buffer).ok().and_then(|b| self.memory.space_of.get(b).copied()).ok_or_else(|| {
            Error::argument(format!("{what} {i} is to go to buffer {buffer} of {}", self.memory.space_of.len()))
        })
    }

    /// The number of `t`; where it is named for the first time, `space` is where it goes.
    unsafe fn name(&mut self, t: *mut ggml_tensor, space: u32) -> Result<u32, Error> {
        // SAFETY: the promise of `lower`.
        let id = unsafe { self.number(t) }?;
        if !std::mem::replace(&mut self.named[id as usize], true) {
            let tensor = &mut self.problem.tensors[id as usize];
            tensor.space = space;
            if !tensor.external && !tensor.skipped && tensor.root == NONE {
                // SAFETY: the promise of `lower`.
                tensor.size = self.memory.size_in(unsafe { &*t }, space);
            }
        }
        Ok(id)
    }

    unsafe fn number(&mut self, t: *mut ggml_tensor) -> Result<u32, Error> {
        // exposed: the allocator turns numbers back into tensors
        let (id, new) = self.index.try_add(t.expose_provenance())?;
        if !new {
            return Ok(id);
        }
        // SAFETY: the promise of `lower`.
        let tensor = unsafe { &*t };
        let known = Tensor {
            size: 0,
            space: 0,
            root: NONE,
            at_start: false,
            input: has(tensor, GGML_TENSOR_FLAG_INPUT),
            output: has(tensor, GGML_TENSOR_FLAG_OUTPUT),
            external: is_external(tensor),
            skipped: self.memory.skips(t, tensor),
        };
        room::push(&mut self.problem.tensors, known)?;
        room::push(&mut self.named, false)?;
        let mut without = known.skipped;
        // SAFETY: the promise of `lower`.
        if let Some((root, at_start)) = unsafe { root_of(tensor) }? {
            // SAFETY: as above. A root is no view: this goes no deeper.
            let root = unsafe { self.number(root) }?;
            let view = &mut self.problem.tensors[id as usize];
            (view.root, view.at_start) = (root, at_start);
            without |= !known.external && self.problem.tensors[root as usize].skipped;
        }
        if without && (known.input || known.output) {
            return Err(self.flagged(id));
        }
        Ok(id)
    }

    /// The fault of an input or output that would have no memory.
    #[cold]
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
}

/// What a plan was made for, to compare graphs with.
pub struct Record {
    /// The question.
    pub problem: Problem,
    /// The answer.
    pub plan: Plan,
    /// Addresses of the tensors by number.
    pub keys: Vec<usize>,
}

struct Matching<'a> {
    record: &'a Record,
    memory: &'a Memory,
    found: Vec<*mut ggml_tensor>,
}

/// The graph's tensors by the record's numbers, if the record's plan holds for it: the same edges, flags and storage, the same tensors
/// skipped, no tensor larger, and layouts that still allow what the plan writes over.
///
/// # Safety
/// As [`lower`].
pub unsafe fn match_record(
    source: Source,
    record: &Record,
    memory: &Memory,
    index: &mut Index,
) -> Result<Option<Vec<*mut ggml_tensor>>, Error> {
    if source.nodes.len() != record.problem.nodes.len() || source.leafs.len() != record.problem.leafs.len() {
        return Ok(None);
    }
    let found = room::filled(record.problem.tensors.len(), std::ptr::null_mut())?;
    let mut matching = Matching { record, memory, found };
    // SAFETY: the caller's promise.
    if !unsafe { matching.run(source) } {
        return Ok(None);
    }
    // Every number has one tensor now. That every tensor has one number is plain when they are the very same as before.
    if matching.found.iter().zip(&record.keys).any(|(t, &key)| t.addr() != key) {
        index.try_clear(matching.found.len())?;
        for t in &matching.found {
            if !index.try_add(t.addr())?.1 {
                return Ok(None);
            }
        }
    }
    Ok(Some(matching.found))
}

impl Matching<'_> {
    unsafe fn run(&mut self, source: Source) -> bool {
        let record = self.record;
        for (&leaf, &id) in source.leafs.iter().zip(&record.problem.leafs) {
            // SAFETY: the promise of `match_record`.
            if !unsafe { self.bind(id, leaf) } {
                return false;
            }
        }
        for (i, (&node, known)) in source.nodes.iter().zip(&record.problem.nodes).enumerate() {
            // SAFETY: the promise of `match_record`.
            unsafe { graph::access::fetch_ahead(source.nodes, i) };
            // SAFETY: the promise of `match_record`.
            let t = unsafe { &*node };
            let took = record.plan.took[i];
            let mut ids = record.problem.srcs_of(known).iter().enumerate();
            for (j, &src) in t.src.iter().enumerate().filter(|(_, s)| !s.is_null()) {
                let Some((n, &id)) = ids.next() else { return false };
                // SAFETY: as above.
                if !unsafe { self.bind(id, src) } {
                    return false;
                }
                // SAFETY: as above.
                let may_take = || inplace::sources(t.op) >> j & 1 == 1 && same_layout(t, unsafe { &*src });
                if took == Some(n as u8) && !is_external(t) && !may_take() {
                    return false;
                }
            }
            // SAFETY: as above.
            if ids.next().is_some() || is_marker(t) != known.marker || !unsafe { self.bind(known.tensor, node) } {
                return false;
            }
        }
        true
    }

    /// Whether tensor `t` can be number `id` of the record.
    unsafe fn bind(&mut self, id: u32, t: *mut ggml_tensor) -> bool {
        let found = &mut self.found[id as usize];
        if !found.is_null() {
            return *found == t;
        }
        *found = t;
        let known = &self.record.problem.tensors[id as usize];
        // SAFETY: the promise of `match_record`.
        let tensor = unsafe { &*t };
        if known.input != has(tensor, GGML_TENSOR_FLAG_INPUT)
            || known.output != has(tensor, GGML_TENSOR_FLAG_OUTPUT)
            || known.skipped != self.memory.skips(t, tensor)
        {
            return false;
        }
        // SAFETY: the promise of `match_record`.
        match unsafe { root_of(tensor) } {
            Err(_) => false,
            Ok(Some((root, at_start))) => {
                // SAFETY: as above.
                known.root != NONE && known.at_start == at_start && unsafe { self.bind(known.root, root) }
            }
            Ok(None) if known.root != NONE => false,
            // it has storage by now, or gets none: the plan leaves it alone
            Ok(None) if is_external(tensor) || known.skipped => true,
            Ok(None) => {
                !known.external
                    && self.record.plan.slots[id as usize]
                        .is_none_or(|slot| self.memory.size_in(tensor, slot.space) <= slot.size)
            }
        }
    }
}
