//! The graph allocator: plans a graph, keeps buffers for the plan, and gives the graph's tensors their addresses.

use super::lower::{lower, Memory, Source};
use super::matching::{match_record, pointers, Record};
use super::plan::plan;
use super::problem::{Plan, PlanError, Problem, Tensor, NONE};
use super::room;
use crate::backend::{Buffer, Buft};
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What an opaque `ggml_gallocr` is.
pub struct Gallocr {
    memory: Memory,
    /// By space: the buffers of its chunks, once there are any.
    buffers: Vec<Option<Vec<Buffer>>>,
    /// What the buffers are laid out for.
    record: Option<Record>,
    index: Index,
}

/// A graph's tensors by the numbers of the plan that fits it.
pub struct Fit(Vec<*mut ggml_tensor>);

/// What became of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every tensor has its address.
    Done,
    /// The plan at hand is for another graph, and only the caller knows the buffers for this one.
    NeedsReserve,
}

impl Gallocr {
    /// An allocator over buffers of the given types; equal types share their memory.
    pub fn new(bufts: &[Buft]) -> Self {
        let memory = Memory::new(bufts);
        let buffers = memory.spaces.iter().map(|_| None).collect();
        Gallocr { memory, buffers, record: None, index: Index::default() }
    }

    /// The tensors that get no memory from now on, in the place of those named before. Whoever reads one computes it, so what it is
    /// computed from stays until then, and a step that reads one takes no source's storage. One that has data keeps them and is like
    /// any other. A plan holds for graphs in which the same positions are skipped.
    pub fn set_skipped(&mut self, tensors: impl IntoIterator<Item = *const ggml_tensor>) -> Result<(), Error> {
        let skipped = &mut self.memory.skipped;
        skipped.forget();
        for t in tensors {
            if let Err(e) = skipped.try_add(t.addr()) {
                skipped.forget();
                return Err(e.into());
            }
        }
        Ok(())
    }

    /// Whether `t` is left out, see [`Gallocr::set_skipped`].
    pub fn is_skipped(&self, t: *const ggml_tensor) -> bool {
        self.memory.skipped.get(t.addr()).is_some()
    }

    /// Lays the buffers out for `graph` and allocates what is missing of them; no tensor is touched.
    ///
    /// # Safety
    /// The graph, its tensors and what they read and view are live.
    pub unsafe fn reserve(
        &mut self,
        graph: &ggml_cgraph,
        node_buffers: Option<&[i32]>,
        leaf_buffers: Option<&[i32]>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            faultless(graph)?;
            self.lay_out(graph, node_buffers, leaf_buffers).map(drop)
        }
    }

    /// As [`Gallocr::reserve`], for a graph that was checked for faults; with its tensors by the plan's numbers.
    ///
    /// # Safety
    /// As [`Gallocr::reserve`].
    pub unsafe fn lay_out(
        &mut self,
        graph: &ggml_cgraph,
        node_buffers: Option<&[i32]>,
        leaf_buffers: Option<&[i32]>,
    ) -> Result<Fit, Error> {
        // SAFETY: the caller's promise.
        let source = unsafe { source(graph, node_buffers, leaf_buffers) }?;
        // SAFETY: as above.
        let (problem, plan, plain) = unsafe { self.plan(source) }?;
        self.record = None;
        for space in 0..self.buffers.len() {
            self.ensure(space, &plan.chunks[space])?;
        }
        let keys = room::copied(self.index.keys())?;
        let record = Record { problem, plan, keys, plain };
        let fit = Fit(pointers(&record)?);
        self.record = Some(record);
        Ok(fit)
    }

    /// Bytes of each buffer that [`Gallocr::reserve`] would lay out; nothing is allocated or forgotten.
    ///
    /// # Safety
    /// As [`Gallocr::reserve`].
    pub unsafe fn sizes(
        &mut self,
        graph: &ggml_cgraph,
        node_buffers: Option<&[i32]>,
        leaf_buffers: Option<&[i32]>,
    ) -> Result<Vec<usize>, Error> {
        // SAFETY: the caller's promise.
        let source = unsafe {
            faultless(graph)?;
            source(graph, node_buffers, leaf_buffers)
        }?;
        // SAFETY: as above.
        let (_, plan, _) = unsafe { self.plan(source) }?;
        Ok(self.memory.space_of.iter().map(|&s| plan.size(s as usize)).collect())
    }

    /// The tensors of `graph`, checked for faults, by the numbers of the plan that the buffers are laid out for; `None`: that is for a
    /// graph of another shape.
    ///
    /// # Safety
    /// As [`Gallocr::reserve`].
    pub unsafe fn fit(&mut self, graph: &ggml_cgraph) -> Result<Option<Fit>, Error> {
        let Some(record) = &self.record else { return Ok(None) };
        // SAFETY: the caller's promise.
        unsafe { Ok(match_record(source(graph, None, None)?, record, &self.memory, &mut self.index)?.map(Fit)) }
    }

    /// Gives every tensor of `graph` that has no storage its address. With one buffer the plan is renewed where the graph is another.
    ///
    /// # Safety
    /// As [`Gallocr::reserve`].
    pub unsafe fn alloc(&mut self, graph: &ggml_cgraph) -> Result<Outcome, Error> {
        // SAFETY: the caller's promise.
        unsafe {
            faultless(graph)?;
            let fit = match self.fit(graph)? {
                Some(fit) => fit,
                None if self.memory.space_of.len() != 1 => return Ok(Outcome::NeedsReserve),
                None => self.lay_out(graph, None, None)?,
            };
            self.alloc_fitting(&fit)?;
        }
        Ok(Outcome::Done)
    }

    /// Gives the tensors of `fit` that have no storage their addresses.
    ///
    /// # Safety
    /// `fit` is what the latest call of [`Gallocr::fit`] or [`Gallocr::lay_out`] answered; the graph is as it was then, except that
    /// tensors may have got storage, and live.
    pub unsafe fn alloc_fitting(&mut self, fit: &Fit) -> Result<(), Error> {
        for buffer in self.buffers.iter().flatten().flatten() {
            buffer.reset();
        }
        // SAFETY: the caller's promise.
        unsafe { self.assign(&fit.0) }
    }

    /// Bytes of buffer `id`; 0 for one that shares the memory of an earlier one, and before anything was reserved.
    pub fn buffer_size(&self, id: usize) -> Option<usize> {
        let space = *self.memory.space_of.get(id)?;
        let shared = self.memory.space_of[..id].contains(&space);
        let size = self.buffers[space as usize].iter().flatten().map(|b| b.size()).sum();
        Some(if shared { 0 } else { size })
    }

    /// Buffers that the allocator was made for.
    pub fn n_buffers(&self) -> usize {
        self.memory.space_of.len()
    }

    unsafe fn plan(&mut self, source: Source) -> Result<(Problem, Plan, bool), Error> {
        // SAFETY: the promise of the callers.
        let (problem, plain) = unsafe { lower(source, &self.memory, &mut self.index) }?;
        let keys = self.index.keys();
        // SAFETY: the keys are the addresses of the source's live tensors.
        let tensor = |t: u32| unsafe { &*std::ptr::with_exposed_provenance::<ggml_tensor>(keys[t as usize]) };
        let plan = plan(&problem, &mut |t, space| self.memory.size_in(tensor(t), space)).map_err(|e| match e {
            PlanError::TooLarge(NONE) => Error::memory("the tensors of the graph are larger than an address can say"),
            PlanError::TooLarge(t) => {
                let (t, bytes) = (tensor(t), problem.tensors[t as usize].size);
                Error::memory(format!("tensor '{}' needs {bytes} bytes, more than there can be", shape::name(t)))
            }
            PlanError::NoMemory => Error::memory("there is no memory to plan the graph"),
            PlanError::Malformed => Error::new(GGML_EXT_CODE_INTERNAL, "the graph was read wrongly"),
        })?;
        Ok((problem, plan, plain))
    }

    /// Makes the buffers of `space` at least as large as `chunks` says. The old ones go first: both at once may not fit.
    fn ensure(&mut self, space: usize, chunks: &[usize]) -> Result<(), Error> {
        if let Some(have) = &self.buffers[space] {
            if chunks.iter().enumerate().all(|(i, &size)| have.get(i).map_or(0, |b| b.size()) >= size) {
                return Ok(());
            }
        }
        self.free(space);
        let mut buffers = Vec::new();
        for &size in chunks {
            match self.memory.spaces[space].alloc(size) {
                Some(buffer) => {
                    buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_COMPUTE);
                    buffers.push(buffer);
                }
                None => {
                    self.buffers[space] = Some(buffers);
                    self.free(space);
                    let name = self.memory.spaces[space].name();
                    return Err(Error::memory(format!(
                        "buffer type '{name}' does not give {size} bytes for the graph"
                    )));
                }
            }
        }
        self.buffers[space] = Some(buffers);
        Ok(())
    }

    fn free(&mut self, space: usize) {
        for buffer in self.buffers[space].take().into_iter().flatten() {
            // SAFETY: the buffers are the allocator's own; tensors that lie in them are lost when it lays out anew, as documented.
            unsafe { buffer.free() }
        }
    }

    /// Writes addresses: first tensors with storage of their own, then the views of them.
    unsafe fn assign(&self, tensors: &[*mut ggml_tensor]) -> Result<(), Error> {
        let Some(record) = &self.record else { return Ok(()) };
        let bases: Vec<Vec<_>> =
            self.buffers.iter().map(|b| b.iter().flatten().map(|&b| (b, b.base())).collect()).collect();
        for (&tensor, slot) in tensors.iter().zip(&record.plan.slots) {
            let Some(slot) = slot else { continue };
            // SAFETY: the promise of `alloc`.
            let t = unsafe { &mut *tensor };
            if !t.data.is_null() || !t.buffer.is_null() {
                continue;
            }
            let &(buffer, base) = &bases[slot.space as usize][slot.place.chunk as usize];
            t.buffer = buffer.as_raw();
            t.data = base.wrapping_byte_add(slot.place.offset);
            init(buffer, tensor)?;
        }
        let all = &record.problem.tensors;
        let has_place = |known: &Tensor| known.root != NONE && !known.skipped && !all[known.root as usize].skipped;
        for (&tensor, known) in tensors.iter().zip(all) {
            if has_place(known) {
                // SAFETY: the promise of `alloc`.
                unsafe { self.place_view(tensor, 0) }?;
            }
        }
        Ok(())
    }

    /// Gives a view the address of its storage, if that has one in a buffer.
    unsafe fn place_view(&self, tensor: *mut ggml_tensor, depth: u32) -> Result<(), Error> {
        // SAFETY: the promise of `alloc`; what a live tensor views is live, and so is a buffer while it is used. No references kept:
        // a tensor may be the storage of the next.
        unsafe {
            if !(*tensor).buffer.is_null() || depth > 64 {
                return Ok(());
            }
            let (mut storage, mut offset) = ((*tensor).view_src, (*tensor).view_offs);
            // a skipped view of a view stays without address
            while !(*storage).view_src.is_null() && self.memory.skips(storage, &*storage) {
                offset = offset.wrapping_add((*storage).view_offs);
                storage = (*storage).view_src;
            }
            if !(*storage).view_src.is_null() {
                self.place_view(storage, depth + 1)?;
            }
            let Some(buffer) = Buffer::from_raw((*storage).buffer) else { return Ok(()) };
            let data = (*storage).data;
            (*tensor).buffer = (*storage).buffer;
            // storage of no bytes may have no address; then the view has no bytes either
            (*tensor).data = if data.is_null() { data } else { data.wrapping_byte_add(offset) };
            init(buffer, tensor)
        }
    }
}

impl Drop for Gallocr {
    fn drop(&mut self) {
        for space in 0..self.buffers.len() {
            self.free(space);
        }
    }
}

fn init(buffer: Buffer, tensor: *mut ggml_tensor) -> Result<(), Error> {
    // SAFETY: the callers hand over live tensors.
    match unsafe { buffer.init_tensor(tensor) } {
        GGML_STATUS_SUCCESS => Ok(()),
        status => {
            // SAFETY: the callers hand over live tensors.
            let t = unsafe { &mut *tensor };
            (t.data, t.buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
            Err(Error::new(
                GGML_EXT_CODE_BACKEND,
                format!("the buffer cannot take tensor '{}': {status:?}", shape::name(t)),
            ))
        }
    }
}

unsafe fn faultless(graph: &ggml_cgraph) -> Result<(), Error> {
    // SAFETY: the promise of the callers.
    unsafe { graph::fault(graph) }.map_or(Ok(()), Err)
}

unsafe fn source<'a>(
    graph: &ggml_cgraph,
    node_buffers: Option<&'a [i32]>,
    leaf_buffers: Option<&'a [i32]>,
) -> Result<Source<'a>, Error> {
    // SAFETY: the promise of the callers.
    let (nodes, leafs) = unsafe { (graph::checked_nodes(graph)?, graph::checked_leafs(graph)?) };
    Ok(Source { nodes, leafs, node_buffers, leaf_buffers })
}
