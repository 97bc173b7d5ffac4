//! Entry points of ggml-graph.h: what a program needs of a graph's inside, without its layout.

use super::backend::handle;
use super::graph::{or_report, some};
use crate::backend::Backend;
use crate::entry;
use crate::error::{self, Error};
use crate::graph::public::{self, Refused};
use ggml_oxide_abi::*;
use std::ffi::c_int;

fn is_null(what: &str) -> Error {
    Error::new(GGML_EXT_CODE_NULL_ARGUMENT, format!("the {what} is NULL"))
}

/// A graph to read, or an error that says which one is missing.
unsafe fn read<'a>(graph: *const ggml_cgraph, what: &str) -> Result<&'a ggml_cgraph, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { graph.as_ref() }.ok_or_else(|| is_null(what))
}

/// As [`read`], to change it.
unsafe fn write<'a>(graph: *mut ggml_cgraph, what: &str) -> Result<&'a mut ggml_cgraph, Error> {
    // SAFETY: the contract of the entry points.
    unsafe { graph.as_mut() }.ok_or_else(|| is_null(what))
}

/// `n` tensors of the caller's.
unsafe fn list<'a>(what: &str, items: *const *mut ggml_tensor, n: c_int) -> Result<&'a [*mut ggml_tensor], Error> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        // SAFETY: the contract of the entry points.
        Ok(n) if !items.is_null() => Ok(unsafe { std::slice::from_raw_parts(items, n) }),
        Ok(_) => Err(is_null(&format!("list of {what}"))),
        Err(_) => Err(Error::argument(format!("there cannot be {n} pairs"))),
    }
}

/// Reports a refusal and stores the tensor concerned.
unsafe fn answer(call: &str, result: Result<(), Refused>, tensor: *mut *mut ggml_tensor) -> bool {
    let concerned = result.as_ref().err().map_or(std::ptr::null_mut(), |refused| refused.tensor);
    // SAFETY: the contract of the entry points.
    if let Some(out) = unsafe { tensor.as_mut() } {
        *out = concerned;
    }
    match result {
        Ok(()) => true,
        Err(Refused { error, tensor }) => {
            error::report_at(&error.within(call), tensor);
            false
        }
    }
}

/// The one way from here to a backend.
unsafe fn start(backend: Backend, graph: &mut ggml_cgraph) -> ggml_status {
    // SAFETY: the contract of the entry points.
    unsafe { crate::ext::compute_async(backend, graph) }
}

unsafe fn start_range(call: &str, backend: Backend, graph: *const ggml_cgraph, i0: c_int, i1: c_int) -> ggml_status {
    // SAFETY: the contract of the entry points.
    unsafe {
        match some(graph).and_then(|graph| public::range(graph, i0, i1)) {
            Ok(mut part) => start(backend, &mut part),
            Err(e) => or_report(call, Err(e)),
        }
    }
}

entry! {
    /// Leafs in the graph: tensors that it reads and does not compute.
    pub fn ggml_graph_n_leafs(cgraph: *const ggml_cgraph) -> c_int {
        or_report("ggml_graph_n_leafs", some(cgraph).and_then(public::n_leafs))
    }

    /// Leaf `i`; -1 is the last one. NULL for an index out of range.
    pub fn ggml_graph_leaf(cgraph: *const ggml_cgraph, i: c_int) -> *mut ggml_tensor {
        or_report("ggml_graph_leaf", some(cgraph).and_then(|graph| public::leaf(graph, i)))
    }

    /// Appends `tensor` to the leafs as it stands: the graph does not look whether it has it, records no consumers for it, and leaves
    /// what it is computed from alone. With `ggml_graph_add_node` this makes a graph of a part of another one.
    /// False, and the graph is as before, when it has no room (`ggml_graph_size` is for nodes and for leafs each) or is a view.
    pub fn ggml_graph_append_leaf(cgraph: *mut ggml_cgraph, tensor: *mut ggml_tensor) -> bool {
        let done = write(cgraph, "graph").and_then(|graph| public::append_leaf(graph, tensor));
        or_report("ggml_graph_append_leaf", done.map(|()| true))
    }

    /// How many times the graph counted `tensor` as a source of its nodes. In a view, and after `ggml_graph_copy_use_counts`, that
    /// includes consumers outside of it. -1 when there is no record: the graph has not seen the tensor, or does not count.
    pub fn ggml_graph_use_count(cgraph: *const ggml_cgraph, tensor: *const ggml_tensor) -> c_int {
        let count = some(cgraph).and_then(|graph| match tensor.is_null() {
            true => Err(is_null("tensor")),
            false => Ok(public::recorded(graph, tensor).unwrap_or(-1)),
        });
        let known = count.is_ok();
        let count = or_report("ggml_graph_use_count", count);
        if known { count } else { -1 }
    }

    /// Makes `dst` the graph `src` over other tensors: `to[i]` takes the place of `from[i]`, for `n_pairs` pairs. Nodes and leafs keep
    /// their order, and each copy has the consumer count that its original has in `src`, for a view that of the whole graph. What
    /// `dst` held before is gone.
    ///
    /// The tensors in `to` are the caller's: made by the caller, who also points their sources and views at copies and gives them
    /// storage, before or after; they are not looked at here. Every node and every leaf needs a partner, its own or itself. A view reads
    /// tensors that are neither: pairs for them carry their counts over. Pairs of tensors that `src` does not know are allowed.
    ///
    /// False, and `dst` is as before: a node or leaf has no partner, a tensor is in two pairs, a pair is NULL, `src` has gradients, or
    /// `dst` has no room: its size is for nodes and for leafs each, and must be at least half the pairs too. `*missing` (`missing` may be
    /// NULL) is then the original that lacks a copy of its own, or NULL if it is not about one tensor. `ggml_ext_last_error` has it too.
    pub fn ggml_graph_copy_mapped(
        src: *const ggml_cgraph,
        dst: *mut ggml_cgraph,
        from: *const *mut ggml_tensor,
        to: *const *mut ggml_tensor,
        n_pairs: c_int,
        missing: *mut *mut ggml_tensor,
    ) -> bool {
        let copied = || {
            if std::ptr::eq(src, dst) && !src.is_null() {
                return Err(Error::argument("the source is the destination").into());
            }
            let (src, dst) = (read(src, "source")?, write(dst, "destination")?);
            public::copy_mapped(src, dst, list("originals", from, n_pairs)?, list("copies", to, n_pairs)?)
        };
        answer("ggml_graph_copy_mapped", copied(), missing)
    }

    /// Gives the nodes and leafs of `segment`, a graph made of a part of `original`, the consumer counts that they have in `original`, so
    /// that a backend fuses in the segment what it would fuse in the whole and keeps what another segment reads.
    ///
    /// False, and `segment` is as before: a node of the segment is not in `original` (`ggml_ext_last_error` names it), `original` does
    /// not count, or `segment` has no counts of its own. A leaf that `original` does not know gets no count.
    pub fn ggml_graph_copy_use_counts(original: *const ggml_cgraph, segment: *mut ggml_cgraph) -> bool {
        let copied = || {
            if std::ptr::eq(original, segment) && !original.is_null() {
                return Ok(());
            }
            public::copy_use_counts(read(original, "original")?, write(segment, "segment")?)
        };
        answer("ggml_graph_copy_use_counts", copied(), std::ptr::null_mut())
    }

    /// Computes nodes `i0` up to but not including `i1` of a graph whose tensors are allocated, and waits. The graph's consumer counts
    /// hold, so a backend fuses nothing that nodes outside the range read. An empty range is no work; one that leaves the graph is
    /// `GGML_STATUS_FAILED`.
    pub fn ggml_backend_graph_compute_range(backend: ggml_backend_t, cgraph: *mut ggml_cgraph, i0: c_int, i1: c_int) -> ggml_status {
        handle!(Backend, backend, "ggml_backend_graph_compute_range").map_or(GGML_STATUS_FAILED, |backend| {
            let status = start_range("ggml_backend_graph_compute_range", backend, cgraph, i0, i1);
            backend.synchronize();
            status
        })
    }

    /// As `ggml_backend_graph_compute_range`, without waiting where the backend works on its own.
    pub fn ggml_backend_graph_compute_range_async(backend: ggml_backend_t, cgraph: *mut ggml_cgraph, i0: c_int, i1: c_int) -> ggml_status {
        handle!(Backend, backend, "ggml_backend_graph_compute_range_async").map_or(GGML_STATUS_FAILED, |backend| {
            start_range("ggml_backend_graph_compute_range_async", backend, cgraph, i0, i1)
        })
    }
}
