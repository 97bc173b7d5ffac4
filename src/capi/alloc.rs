//! Entry points of ggml-alloc.h, and the buffer functions that place several tensors.

use super::graph::or_report;
use super::Fallback;
use crate::alloc::{inplace, room, whole, Gallocr, Outcome};
use crate::backend::{Backend, Buffer, Buft};
use crate::entry;
use crate::error::Error;
use crate::tensor::Context;
use ggml_oxide_abi::*;
use std::ffi::c_int;
use std::ptr::null_mut;

impl Fallback for ggml_tallocr {
    fn fallback() -> Self {
        ggml_tallocr { buffer: null_mut(), base: null_mut(), alignment: 1, offset: 0 }
    }
}

unsafe fn allocator<'a>(galloc: ggml_gallocr_t) -> Result<&'a mut Gallocr, Error> {
    // SAFETY: the contract of the entry points: a handle is what `ggml_gallocr_new` made.
    unsafe { galloc.cast::<Gallocr>().as_mut() }.ok_or_else(|| Error::null("allocator"))
}

unsafe fn graph<'a>(graph: *mut ggml_cgraph) -> Result<&'a ggml_cgraph, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { graph.as_ref() }.ok_or_else(|| Error::null("graph"))
}

/// `n` buffer numbers at `ids`; NULL: none.
unsafe fn numbers<'a>(ids: *const c_int, n: c_int) -> Option<&'a [i32]> {
    // SAFETY: the contract of the entry points: a number for each node or leaf.
    (!ids.is_null()).then(|| unsafe { std::slice::from_raw_parts(ids, n.max(0) as usize) })
}

unsafe fn new_allocator(bufts: &[ggml_backend_buffer_type_t]) -> Result<ggml_gallocr_t, Error> {
    // SAFETY: the contract of the entry points.
    let bufts: Option<Vec<Buft>> = bufts.iter().map(|&b| unsafe { Buft::from_raw(b) }).collect();
    Ok(Box::into_raw(Box::new(Gallocr::new(&bufts.ok_or_else(|| Error::null("buffer type"))?))).cast())
}

unsafe fn tensors_of(ctx: *mut ggml_context) -> Result<Vec<*mut ggml_tensor>, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { Context::from_ptr(ctx) }.ok_or_else(|| Error::null("context")).and_then(|ctx| whole::tensors_of(ctx))
}

/// `n` tensors at `tensors`, none of them NULL.
unsafe fn some_tensors<'a>(tensors: *const *mut ggml_tensor, n: c_int) -> Result<&'a [*mut ggml_tensor], Error> {
    if n > 0 && tensors.is_null() {
        return Err(Error::null("list of tensors"));
    }
    // SAFETY: the contract of the entry points.
    let list = if n > 0 { unsafe { std::slice::from_raw_parts(tensors, n as usize) } } else { &[] };
    match list.iter().position(|t| t.is_null()) {
        Some(i) => Err(Error::null(&format!("tensor {i} of the list"))),
        None => Ok(list),
    }
}

unsafe fn own_list(tensors: *mut *mut ggml_tensor, n: c_int) -> Result<Vec<*mut ggml_tensor>, Error> {
    // SAFETY: the contract of the entry points.
    Ok(room::copied(unsafe { some_tensors(tensors, n) }?)?)
}

unsafe fn alloc_all(
    tensors: Result<Vec<*mut ggml_tensor>, Error>,
    buft: ggml_backend_buffer_type_t,
) -> Result<ggml_backend_buffer_t, Error> {
    // SAFETY: the contract of the entry points.
    unsafe {
        let buft = Buft::from_raw(buft).ok_or_else(|| Error::null("buffer type"))?;
        let mut tensors = tensors?;
        Ok(if tensors.is_empty() { None } else { whole::alloc(&mut tensors, buft)? }.map_or(null_mut(), Buffer::as_raw))
    }
}

unsafe fn size_all(
    tensors: Result<Vec<*mut ggml_tensor>, Error>,
    buft: ggml_backend_buffer_type_t,
) -> Result<usize, Error> {
    // SAFETY: the contract of the entry points.
    unsafe {
        let buft = Buft::from_raw(buft).ok_or_else(|| Error::null("buffer type"))?;
        let mut tensors = tensors?;
        if tensors.is_empty() {
            Ok(0)
        } else {
            whole::size(&mut tensors, buft)
        }
    }
}

entry! {
    /// An allocator that places tensors one behind the other in `buffer`.
    pub fn ggml_tallocr_new(buffer: ggml_backend_buffer_t) -> ggml_tallocr {
        or_report("ggml_tallocr_new", Buffer::from_raw(buffer).ok_or_else(|| Error::null("buffer")).map(whole::begin))
    }

    /// Places `tensor`. `GGML_STATUS_ALLOC_FAILED`: it does not fit and is left as it was.
    pub fn ggml_tallocr_alloc(talloc: *mut ggml_tallocr, tensor: *mut ggml_tensor) -> ggml_status {
        let at = talloc.as_mut().ok_or_else(|| Error::null("allocator"));
        match at.and_then(|at| whole::place(at, tensor)) {
            Ok(()) => GGML_STATUS_SUCCESS,
            Err(e) => {
                let status = if e.code == GGML_EXT_CODE_OUT_OF_MEMORY { GGML_STATUS_ALLOC_FAILED } else { GGML_STATUS_FAILED };
                or_report::<()>("ggml_tallocr_alloc", Err(e));
                status
            }
        }
    }

    /// A graph allocator with one buffer of type `buft`, freed by `ggml_gallocr_free`.
    pub fn ggml_gallocr_new(buft: ggml_backend_buffer_type_t) -> ggml_gallocr_t {
        or_report("ggml_gallocr_new", new_allocator(&[buft]))
    }

    /// A graph allocator with `n_bufs` buffers; buffers of one type share their memory.
    pub fn ggml_gallocr_new_n(bufts: *mut ggml_backend_buffer_type_t, n_bufs: c_int) -> ggml_gallocr_t {
        or_report("ggml_gallocr_new_n", if bufts.is_null() || n_bufs < 1 {
            Err(Error::null("list of buffer types"))
        } else {
            new_allocator(std::slice::from_raw_parts(bufts, n_bufs as usize))
        })
    }

    /// Frees an allocator and its buffers; tensors in them have no data any more. NULL is ignored.
    pub fn ggml_gallocr_free(galloc: ggml_gallocr_t) {
        if !galloc.is_null() {
            drop(Box::from_raw(galloc.cast::<Gallocr>()));
        }
    }

    /// Lays the buffer out for `graph`, so that allocating it, or a graph of the same shape whose tensors are no larger, needs no
    /// more memory. The graph's tensors are not touched. False: the memory cannot be had; a later call may succeed.
    pub fn ggml_gallocr_reserve(galloc: ggml_gallocr_t, graph: *mut ggml_cgraph) -> bool {
        reserve("ggml_gallocr_reserve", galloc, graph, std::ptr::null(), std::ptr::null())
    }

    /// As `ggml_gallocr_reserve`, with the number of the buffer for each node and each leaf; NULL: buffer 0.
    pub fn ggml_gallocr_reserve_n(
        galloc: ggml_gallocr_t,
        graph: *mut ggml_cgraph,
        node_buffer_ids: *const c_int,
        leaf_buffer_ids: *const c_int,
    ) -> bool {
        reserve("ggml_gallocr_reserve_n", galloc, graph, node_buffer_ids, leaf_buffer_ids)
    }

    /// Writes to `sizes`, for each buffer, the bytes that `ggml_gallocr_reserve_n` would lay out. Nothing is allocated; zeros on failure.
    pub fn ggml_gallocr_reserve_n_size(
        galloc: ggml_gallocr_t,
        graph: *mut ggml_cgraph,
        node_buffer_ids: *const c_int,
        leaf_buffer_ids: *const c_int,
        sizes: *mut usize,
    ) {
        or_report("ggml_gallocr_reserve_n_size", allocator(galloc).and_then(|a| {
            if sizes.is_null() {
                return Err(Error::null("list of sizes"));
            }
            sizes.write_bytes(0, a.n_buffers());
            let g = self::graph(graph)?;
            let found = a.sizes(g, numbers(node_buffer_ids, g.n_nodes), numbers(leaf_buffer_ids, g.n_leafs))?;
            sizes.copy_from(found.as_ptr(), found.len());
            Ok(())
        }))
    }

    /// Tensors that get no memory from `ggml_gallocr_reserve*` and `ggml_gallocr_alloc_graph` from now on, in the place of those named
    /// before; `n_tensors` 0: none. They are the inner results of steps that run as one: whoever reads a skipped tensor, itself or
    /// through a view, computes it from what its node reads, and that node is not run. So
    /// - what a skipped tensor is computed from keeps its memory until the last reader of the skipped tensor was computed, through
    ///   any number of skipped tensors;
    /// - a node that reads a skipped tensor, or a view of one, never takes the memory of a source, nor does the owner of the memory
    ///   that it writes into: a fresh result overlaps nothing that it is computed from;
    /// - `data` and `buffer` of skipped tensors, and of views of them, stay NULL.
    ///
    /// A skipped tensor that has data already keeps them and is like any other. Allocating a graph fails, with a text naming the
    /// tensors, where an input or output is skipped or views a skipped one, and where a node that is not skipped writes into a
    /// skipped one. A plan holds for graphs in which the same positions are skipped, whatever the addresses. The tensors are not
    /// looked at here and the list is not kept. False: an argument is NULL or negative, or memory is short; then none is skipped.
    pub fn ggml_gallocr_set_skipped_tensors(galloc: ggml_gallocr_t, tensors: *const *mut ggml_tensor, n_tensors: c_int) -> bool {
        or_report("ggml_gallocr_set_skipped_tensors", allocator(galloc).and_then(|a| {
            a.set_skipped([])?;
            if n_tensors < 0 {
                return Err(Error::argument(format!("the list of tensors has {n_tensors} of them")));
            }
            a.set_skipped(some_tensors(tensors, n_tensors)?.iter().map(|t| t.cast_const()))?;
            Ok(true)
        }))
    }

    /// Gives every tensor of the graph that has no data its place. An allocator with one buffer lays it out anew when the graph is
    /// not the one it was laid out for; with several buffers that is an error: call `ggml_gallocr_reserve_n` first.
    pub fn ggml_gallocr_alloc_graph(galloc: ggml_gallocr_t, graph: *mut ggml_cgraph) -> bool {
        or_report("ggml_gallocr_alloc_graph", allocator(galloc).and_then(|a| match a.alloc(self::graph(graph)?)? {
            Outcome::Done => Ok(true),
            Outcome::NeedsReserve => {
                Err(Error::argument("the buffers are laid out for another graph: call ggml_gallocr_reserve_n first"))
            }
        }))
    }

    /// Bytes of a buffer; 0 when it shares the memory of an earlier one.
    pub fn ggml_gallocr_get_buffer_size(galloc: ggml_gallocr_t, buffer_id: c_int) -> usize {
        or_report("ggml_gallocr_get_buffer_size", allocator(galloc).and_then(|a| {
            let size = usize::try_from(buffer_id).ok().and_then(|id| a.buffer_size(id));
            size.ok_or_else(|| Error::argument(format!("there is no buffer {buffer_id} of {}", a.n_buffers())))
        }))
    }

    /// Whether the allocator may let the operator write over one of its sources.
    pub fn ggml_op_can_inplace(op: ggml_op) -> bool {
        inplace::sources(op) != 0
    }

    /// A buffer for all tensors of the context that have no data yet, which get their places in it. NULL when there is none such, or,
    /// with an error, when the memory cannot be had; then nothing is left allocated.
    pub fn ggml_backend_alloc_ctx_tensors_from_buft(ctx: *mut ggml_context, buft: ggml_backend_buffer_type_t) -> *mut ggml_backend_buffer {
        or_report("ggml_backend_alloc_ctx_tensors_from_buft", alloc_all(tensors_of(ctx), buft))
    }

    /// Bytes that `ggml_backend_alloc_ctx_tensors_from_buft` would allocate; 0 on failure.
    pub fn ggml_backend_alloc_ctx_tensors_from_buft_size(ctx: *mut ggml_context, buft: ggml_backend_buffer_type_t) -> usize {
        or_report("ggml_backend_alloc_ctx_tensors_from_buft_size", size_all(tensors_of(ctx), buft))
    }

    /// As `ggml_backend_alloc_ctx_tensors_from_buft`, in the memory that the backend works in.
    pub fn ggml_backend_alloc_ctx_tensors(ctx: *mut ggml_context, backend: ggml_backend_t) -> *mut ggml_backend_buffer {
        or_report("ggml_backend_alloc_ctx_tensors", Backend::from_raw(backend).ok_or_else(|| Error::null("backend")).and_then(|b| {
            alloc_all(tensors_of(ctx), b.buft().map_or(null_mut(), Buft::as_raw))
        }))
    }

    /// One buffer for those of the tensors that have no data yet, which get their places in it; NULL as for a context's tensors.
    pub fn ggml_backend_buft_alloc_buffer_n(
        buft: ggml_backend_buffer_type_t,
        tensors: *mut *mut ggml_tensor,
        n_tensors: c_int,
    ) -> ggml_backend_buffer_t {
        or_report("ggml_backend_buft_alloc_buffer_n", alloc_all(own_list(tensors, n_tensors), buft))
    }

    /// Bytes that `ggml_backend_buft_alloc_buffer_n` would allocate; 0 on failure.
    pub fn ggml_backend_buft_get_alloc_size_n(
        buft: ggml_backend_buffer_type_t,
        tensors: *mut *mut ggml_tensor,
        n_tensors: c_int,
    ) -> usize {
        or_report("ggml_backend_buft_get_alloc_size_n", size_all(own_list(tensors, n_tensors), buft))
    }
}

unsafe fn reserve(
    call: &str,
    galloc: ggml_gallocr_t,
    graph: *mut ggml_cgraph,
    nodes: *const c_int,
    leafs: *const c_int,
) -> bool {
    // SAFETY: the contract of the entry points.
    unsafe {
        or_report(
            call,
            allocator(galloc).and_then(|a| {
                let g = self::graph(graph)?;
                a.reserve(g, numbers(nodes, g.n_nodes), numbers(leafs, g.n_leafs)).map(|()| true)
            }),
        )
    }
}
