//! Entry points of ggml-ext.h: what became of a graph.

use super::graph::or_report;
use super::sched::some;
use crate::entry;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::ffi::c_char;

/// As `snprintf`: as much of `text` as there is room for, a zero behind it; the length of all of it.
unsafe fn put(text: &str, dst: *mut c_char, size: usize) -> usize {
    if size > 0 {
        let n = text.len().min(size - 1);
        // SAFETY: the caller has `size` bytes there.
        unsafe {
            dst.cast::<u8>().copy_from(text.as_ptr(), n);
            *dst.add(n) = 0;
        }
    }
    text.len()
}

entry! {
    /// Explains the graph that a scheduler has at hand, after `ggml_backend_sched_alloc_graph` or a computation and until it is reset: for
    /// each node what computes it, which registrations were tried in vain and why, what gets no memory, scratch memory, what is copied
    /// between backends, and, while profiling is on, times. The graph and its tensors must still be there.
    ///
    /// As `snprintf`: answers the length of the text without its zero, and writes at most `size` bytes to `dst`, a zero at the end; with
    /// `dst` NULL and `size` 0 it measures. 0 with an error: there is no graph at hand, or no such format. Text is UTF-8; what of a
    /// tensor's name is none, or cannot be shown, is escaped.
    ///
    /// `GGML_EXT_EXPLAIN_JSON` is one object on one line. Keys are only added; a change that would break readers has another `version`.
    /// Nodes are numbered within their split, as in the texts of reasons, and steps through all splits.
    /// - `version`: 1.
    /// - `totals`: `splits`, `steps`, `nodes`, `launches`, `fusions` (launches for more than one node), `fused_nodes`, `native_ranges`,
    ///   `native_nodes`, `skipped` (nodes without memory), `skipped_bytes` (of those that own it), `workspace` (bytes, over all backends),
    ///   `refused` (registrations in `tried`), `mean_ns` (of one run, over all steps).
    /// - `splits`: list of `split` (number), `backend`, `device`, `stale` (null or why it must not run any more), `workspace` (bytes),
    ///   `workspace_for` (a name or null), `forbidden` and `forced` (names in `GGML_EXT_FORBID` and `GGML_EXT_FORCE`), `copied`, `steps`.
    /// - `copied`: list of `name`, `split`, `node`, `from` (a backend), `bytes`: tensors copied from other backends before the split.
    /// - `steps`: list of `step` (number), `kind` ("native", "kernel", "fusion"), `launch` (null for native code), `runs` and `ns` (how
    ///   often it was timed, nanoseconds of the calling thread in all), `nodes`.
    /// - `launch`: `registration`, `priority`, `flags` (of "capture_safe", "replay_reusable", "deterministic"), `forced`, `workspace`
    ///   (bytes), `reads`: list of `name`, `split`, `node`, `overlaps` (the result lies over bytes of it).
    /// - `nodes`: list of `node` (number), `name`, `op`, `type`, `ne` (four numbers), `bytes`, `owns` (false: they are those of the tensor that it is a
    ///   view of), `computed` (false for views, empty tensors, and nodes not flagged to be computed), `output`, `skipped`, `reads` (list of
    ///   `name`, `split`, `node`), `tried`.
    /// - `tried`: list of `registration`, `nodes` (1 for a kernel; what `match` answered for a rule, 0 when it refused by itself), `reason`.
    /// - `split` and `node` of what is read are null when it is not computed in this graph.
    pub fn ggml_ext_explain(sched: ggml_backend_sched_t, format: ggml_ext_explain_format, dst: *mut c_char, size: usize) -> usize {
        or_report("ggml_ext_explain", some(sched).and_then(|s| {
            if dst.is_null() && size > 0 {
                return Err(Error::null("destination"));
            }
            Ok(put(&s.explain()?.render(format)?, dst, size))
        }))
    }
}
