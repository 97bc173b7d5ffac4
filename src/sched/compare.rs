//! The same graph on two backends, to compare what they compute.

use crate::alloc::whole;
use crate::backend::{tensor_data, Backend, Buffer};
use crate::error::Error;
use crate::graph::{self, index::Index, memory};
use crate::tensor::{new_tensor, Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

/// A copy of a graph, its tensors and their data in a backend's memory.
pub struct GraphCopy {
    /// Holds the data.
    pub buffer: Buffer,
    /// Tensors with storage, and the graph.
    pub owners: Box<Context>,
    /// Views.
    pub views: Box<Context>,
    /// The copy.
    pub graph: *mut ggml_cgraph,
}

impl GraphCopy {
    /// Frees the buffer; the contexts go with the value.
    pub fn free(self) {
        // SAFETY: the copy's own buffer; its tensors go now.
        unsafe { self.buffer.free() }
    }
}

/// Frees a buffer unless it was kept.
struct Guard(Option<Buffer>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            // SAFETY: made in `copy_to`; the tensors in it are dropped with their contexts.
            unsafe { buffer.free() }
        }
    }
}

/// Everything that the nodes read and view, each once; index numbers are positions in the list.
unsafe fn reachable(nodes: &[*mut ggml_tensor]) -> Result<(Vec<*mut ggml_tensor>, Index), Error> {
    let (mut list, mut index) = (Vec::new(), Index::default());
    index.clear(nodes.len() * 2);
    let mut rest: Vec<*mut ggml_tensor> = nodes.iter().rev().copied().collect();
    while let Some(t) = rest.pop() {
        if !index.add(t.addr()).1 {
            continue;
        }
        list.push(t);
        // SAFETY: the promise of `copy_to`.
        let tensor = unsafe { &*t };
        if tensor.data.is_null() && !shape::is_empty(tensor) {
            let name = shape::name(tensor);
            return Err(Error::new(GGML_EXT_CODE_NOT_ALLOCATED, format!("tensor '{name}' of the graph has no data")));
        }
        rest.extend(tensor.src.iter().chain([&tensor.view_src]).filter(|s| !s.is_null()));
    }
    Ok((list, index))
}

/// A copy of `graph` in the memory of `backend`.
///
/// # Safety
/// The graph, its tensors and their buffers are live.
pub unsafe fn copy_to(backend: Backend, graph: &ggml_cgraph) -> Result<GraphCopy, Error> {
    const CALL: &str = "ggml_backend_graph_copy";
    // SAFETY: the caller's promise, for all of the function.
    unsafe {
        if let Some(fault) = graph::fault(graph) {
            return Err(fault);
        }
        let nodes = graph::checked_nodes(graph)?;
        let (list, index) = reachable(nodes)?;
        let room = nodes.len().max(graph.size.max(0) as usize);
        let bytes = list.len() * TENSOR_OVERHEAD + memory::overhead(room, false);
        let mut owners = Context::new(bytes, null_mut(), true)?;
        let mut views = Context::new(list.len() * TENSOR_OVERHEAD, null_mut(), true)?;
        let mut copies = Vec::with_capacity(list.len());
        for &t in &list {
            let t = &*t;
            let ctx = if t.view_src.is_null() { &mut owners } else { &mut views };
            let copy = new_tensor(ctx, CALL, t.r#type, &t.ne);
            let c = copy.as_mut().ok_or_else(|| Error::memory("no memory for the copy of a tensor"))?;
            (c.nb, c.op, c.flags, c.op_params, c.name, c.view_offs) =
                (t.nb, t.op, t.flags, t.op_params, t.name, t.view_offs);
            copies.push(copy);
        }
        let copy_of = |t: *mut ggml_tensor| index.get(t.addr()).map_or(null_mut(), |n| copies[n as usize]);
        for (&t, &copy) in list.iter().zip(&copies) {
            (*copy).view_src = copy_of((*t).view_src);
            (*copy).src = (*t).src.map(copy_of);
        }
        let buft = backend.buft().ok_or_else(|| Error::argument("the backend has no memory"))?;
        let buffer = whole::alloc(&mut whole::tensors_of(&owners)?, buft)?;
        let mut guard = Guard(buffer);
        let buffer = buffer.ok_or_else(|| Error::argument("the graph has no data to copy"))?;
        for (&t, &copy) in list.iter().zip(&copies) {
            let t = &*t;
            let done = if !t.view_src.is_null() {
                shape::is_empty(t) || tensor_data::place_view(copy) == GGML_STATUS_SUCCESS
            } else {
                tensor_data::copy(CALL, t, copy)
            };
            if !done {
                return Err(Error::new(GGML_EXT_CODE_BACKEND, format!("tensor '{}' cannot be copied", shape::name(t))));
            }
        }
        let copied = memory::new(&mut owners, room, false)?;
        for (i, &node) in nodes.iter().enumerate() {
            *(*copied).nodes.add(i) = copy_of(node);
        }
        (*copied).n_nodes = nodes.len() as i32;
        guard.0 = None;
        Ok(GraphCopy { buffer, owners, views, graph: copied })
    }
}

unsafe fn compute(backend: Backend, graph: *mut ggml_cgraph) -> Result<(), Error> {
    // SAFETY: the promise of `compare`.
    let status = unsafe { crate::ext::compute_async(backend, graph) };
    backend.synchronize();
    match status {
        GGML_STATUS_SUCCESS => Ok(()),
        status => Err(Error::new(
            GGML_EXT_CODE_BACKEND,
            format!("backend '{}' does not compute it: {status:?}", backend.name()),
        )),
    }
}

/// Computes `graph` on `one` and a copy of it on `two`. With `wanted`, `show(index, ours, theirs)` is called for those nodes after the
/// whole graph ran; without, after each node that computes something, until it answers false.
///
/// # Safety
/// As [`copy_to`].
pub unsafe fn compare(
    one: Backend,
    two: Backend,
    graph: &mut ggml_cgraph,
    wanted: &[*const ggml_tensor],
    mut show: impl FnMut(i32, *mut ggml_tensor, *mut ggml_tensor) -> bool,
) -> Result<(), Error> {
    // SAFETY: the caller's promise, for all of the function.
    unsafe {
        let copy = copy_to(two, graph)?;
        let other = &mut *copy.graph;
        let pairs: Vec<_> = graph::nodes(graph).iter().copied().zip(graph::nodes(other).iter().copied()).collect();
        let mut body = || {
            if wanted.is_empty() {
                for (i, &(a, b)) in (0..).zip(&pairs) {
                    compute(one, &mut graph::view(graph, i, i + 1))?;
                    compute(two, &mut graph::view(other, i, i + 1))?;
                    if !shape::is_view((*a).op) && !show(i, a, b) {
                        break;
                    }
                }
                return Ok(());
            }
            compute(one, graph)?;
            compute(two, other)?;
            let mut found = false;
            for (i, &(a, b)) in (0..).zip(&pairs) {
                if wanted.contains(&a.cast_const()) {
                    show(i, a, b);
                    found = true;
                }
            }
            found.then_some(()).ok_or_else(|| Error::argument("none of the wanted nodes is in the graph"))
        };
        let result = body();
        copy.free();
        result
    }
}
