//! Reading graphs, whoever made them.

use super::hash::{self, Found};
use super::is_incomplete;
use crate::error::Error;
use crate::tensor::poison;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

unsafe fn list<'a>(what: &str, items: *mut *mut ggml_tensor, n: i32) -> Result<&'a [*mut ggml_tensor], Error> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        Ok(n) if !items.is_null() => {
            // SAFETY: the caller promises `n` tensors at `items`.
            let items = unsafe { std::slice::from_raw_parts(items, n) };
            // to the end, so that several are looked at together
            if !items.iter().fold(false, |any, t| any | t.is_null()) {
                return Ok(items);
            }
            let i = items.iter().position(|t| t.is_null()).unwrap_or(n);
            Err(Error::argument(format!("{what} {i} of the graph is NULL")))
        }
        _ => Err(Error::argument(format!(
            "the graph says that it has {n} tensors in its list of {what}s, which is NULL or shorter"
        ))),
    }
}

/// The nodes in the order in which they run, none of them NULL.
///
/// # Safety
/// The graph's arrays are as large as it says, and stay so during `'a`.
pub unsafe fn checked_nodes<'a>(graph: &ggml_cgraph) -> Result<&'a [*mut ggml_tensor], Error> {
    // SAFETY: the caller's promise.
    unsafe { list("node", graph.nodes, graph.n_nodes) }
}

/// The leafs, none of them NULL.
///
/// # Safety
/// As [`checked_nodes`].
pub unsafe fn checked_leafs<'a>(graph: &ggml_cgraph) -> Result<&'a [*mut ggml_tensor], Error> {
    // SAFETY: the caller's promise.
    unsafe { list("leaf", graph.leafs, graph.n_leafs) }
}

/// Whether there are no sources from slot `n` on.
#[inline]
pub fn ends_at(srcs: &[*mut ggml_tensor; GGML_MAX_SRC], n: usize) -> bool {
    srcs[n.min(GGML_MAX_SRC)..].iter().fold(0, |all, s| all | s.addr()) == 0
}

/// The sources by slot, without most of the slots that are empty.
#[inline]
pub fn slots(srcs: &[*mut ggml_tensor; GGML_MAX_SRC]) -> &[*mut ggml_tensor] {
    const FEW: usize = 3;
    &srcs[..if ends_at(srcs, FEW) { FEW } else { GGML_MAX_SRC }]
}

/// How many of `srcs` there are.
pub fn count_sources(srcs: &[*mut ggml_tensor; GGML_MAX_SRC]) -> usize {
    srcs.iter().filter(|s| !s.is_null()).count()
}

/// Asks the processor for the fields of node `i + 8`, and of the sources of node `i + 4`, while node `i` is looked at: a pass over a
/// graph waits for little else than memory.
///
/// # Safety
/// The nodes are live.
pub unsafe fn fetch_ahead(nodes: &[*mut ggml_tensor], i: usize) {
    fetch_next(nodes, i);
    if let Some(&t) = nodes.get(i + 4) {
        // SAFETY: the caller's promise.
        for &src in unsafe { &(*t).src }.iter().take_while(|s| !s.is_null()) {
            fetch(src);
        }
    }
}

/// Asks the processor for the line of `flags`.
#[inline]
fn fetch_flags(t: *const ggml_tensor) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        let at = t.cast::<i8>().wrapping_add(std::mem::offset_of!(ggml_tensor, flags));
        // SAFETY: a hint; any address will do, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = t;
}

/// As [`fetch_ahead`], for passes that follow no pointers.
#[inline]
pub fn fetch_next(tensors: &[*mut ggml_tensor], i: usize) {
    if let Some(&t) = tensors.get(i + 8) {
        fetch(t);
    }
}

#[inline]
fn fetch(t: *const ggml_tensor) {
    // format to shape, operator to sources, storage: the first 256 bytes
    #[cfg(target_arch = "x86_64")]
    for line in 0..4 {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a hint; any address will do, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(t.cast::<i8>().wrapping_add(line * 64)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = t;
}

/// As [`checked_nodes`]; none where that refuses. For callers behind a check with [`fault`].
///
/// # Safety
/// As [`checked_nodes`].
pub unsafe fn nodes<'a>(graph: &ggml_cgraph) -> &'a [*mut ggml_tensor] {
    // SAFETY: the caller's promise.
    unsafe { checked_nodes(graph) }.unwrap_or(&[])
}

/// Why the graph cannot be computed; `None` when nothing is wrong with it.
///
/// # Safety
/// As [`nodes`]; the nodes are live.
pub unsafe fn fault(graph: &ggml_cgraph) -> Option<Error> {
    // SAFETY: the caller's promise.
    let nodes = match unsafe { checked_nodes(graph) } {
        Ok(nodes) => nodes,
        Err(e) => return Some(e),
    };
    for (i, &node) in nodes.iter().enumerate() {
        // the flags alone are read
        if let Some(&ahead) = nodes.get(i + 16) {
            fetch_flags(ahead);
        }
        // SAFETY: the nodes are live.
        let t = unsafe { &*node };
        if poison::is_poisoned(t) {
            // SAFETY: as above; the context of a live tensor is live.
            let cause = unsafe { poison::cause(t) }.map(|c| c.to_string_lossy().into_owned());
            let text = cause.unwrap_or_else(|| format!("tensor '{}' could not be built", shape::name(t)));
            return Some(Error::shape(text).at(node));
        }
    }
    // whatever the cause was, more memory would not help this graph
    let text = "the graph is incomplete: a tensor found no room in it or was NULL when it was built";
    is_incomplete(graph).then(|| Error { status: GGML_STATUS_FAILED, ..Error::memory(text) })
}

/// The tensor that owns the storage of `t`, and how many bytes into it `t` starts; `None` when views go round in a circle.
///
/// # Safety
/// `t` is live, and so is what it views.
#[inline]
pub unsafe fn storage_of(t: *mut ggml_tensor) -> Option<(*mut ggml_tensor, usize)> {
    // views of views of views: more of them are taken for a circle
    const MAX_VIEWS: usize = 64;
    let (mut t, mut offs) = (t, 0usize);
    for _ in 0..MAX_VIEWS {
        // SAFETY: the caller's promise.
        let (next, by) = unsafe { ((*t).view_src, (*t).view_offs) };
        if next.is_null() {
            return Some((t, offs));
        }
        offs = offs.saturating_add(by);
        t = next;
    }
    None
}

/// Node `i`, or for negative `i` the one that far from the end.
///
/// # Safety
/// As [`nodes`].
pub unsafe fn node(graph: &ggml_cgraph, i: i32) -> Result<*mut ggml_tensor, Error> {
    let n = graph.n_nodes;
    let at = if i < 0 { i64::from(i) + i64::from(n) } else { i64::from(i) };
    // only this one is looked at: clients ask for node after node
    let at = usize::try_from(at).ok().filter(|&at| at < n.max(0) as usize && !graph.nodes.is_null());
    let at = at.ok_or_else(|| Error::argument(format!("the graph has {n} nodes, there is no node {i}")))?;
    // SAFETY: the caller's promise; the index is below the number of nodes.
    let node = unsafe { *graph.nodes.add(at) };
    if node.is_null() {
        return Err(Error::argument(format!("node {i} of the graph is NULL")));
    }
    Ok(node)
}

/// The leaf or node called `name`, or NULL.
///
/// # Safety
/// As [`fault`], for leafs too.
pub unsafe fn by_name(graph: &ggml_cgraph, name: &[u8]) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    let (leafs, nodes) = unsafe { (checked_leafs(graph).unwrap_or(&[]), nodes(graph)) };
    let called = |t: &&*mut ggml_tensor| {
        // SAFETY: the tensors are live.
        let has = unsafe { &(***t).name };
        has.iter().take_while(|&&c| c != 0).map(|&c| c as u8).eq(name.iter().copied())
    };
    leafs.iter().chain(nodes).find(called).copied().unwrap_or(null_mut())
}

/// What `lists` holds for `node` by hash slot, or NULL.
///
/// # Safety
/// `lists` is NULL or has a tensor for each slot of the graph's hash set.
unsafe fn by_slot(graph: &ggml_cgraph, lists: *mut *mut ggml_tensor, node: *const ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    match unsafe { hash::find(&graph.visited_hash_set, node) } {
        // SAFETY: the caller's promise.
        Found::Slot(i) if !lists.is_null() => unsafe { *lists.add(i) },
        _ => null_mut(),
    }
}

/// The gradient of `node`, or NULL.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn grad(graph: &ggml_cgraph, node: *const ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    unsafe { by_slot(graph, graph.grads, node) }
}

/// The accumulator of the gradient of `node`, or NULL.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn grad_acc(graph: &ggml_cgraph, node: *const ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    unsafe { by_slot(graph, graph.grad_accs, node) }
}

/// Whether the graph says how often its tensors are read. One that a client put together may not.
pub fn has_use_counts(graph: &ggml_cgraph) -> bool {
    let set = &graph.visited_hash_set;
    !graph.use_counts.is_null() && set.size > 0 && !set.used.is_null() && !set.keys.is_null()
}

/// How many nodes of the graph read `node`; 0 when the graph has not counted.
///
/// # Safety
/// The graph's arrays are as large as it says.
pub unsafe fn use_count(graph: &ggml_cgraph, node: *const ggml_tensor) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { hash::find(&graph.visited_hash_set, node) } {
        // SAFETY: the caller's promise.
        Found::Slot(i) if !graph.use_counts.is_null() => unsafe { *graph.use_counts.add(i) },
        _ => 0,
    }
}

/// Whether the nodes `which` have the operators `ops` and nothing but `outputs` leaves them, so that one kernel may replace them.
///
/// # Safety
/// As [`fault`].
pub unsafe fn can_fuse(graph: &ggml_cgraph, which: &[i32], ops: &[ggml_op], outputs: &[i32]) -> bool {
    // SAFETY: the caller's promise.
    let Ok(nodes) = (unsafe { checked_nodes(graph) }) else { return false };
    let at = |i: i32| usize::try_from(i).ok().and_then(|i| nodes.get(i)).copied();
    let Some(members) = which.iter().map(|&i| at(i)).collect::<Option<Vec<_>>>() else { return false };
    let is_output = |t: *mut ggml_tensor| outputs.iter().any(|&o| at(o) == Some(t));
    members.iter().zip(ops).enumerate().all(|(i, (&member, &op))| {
        // SAFETY: nodes, their sources and their storage are live.
        unsafe {
            let t = &*member;
            if t.op != op || t.flags & GGML_TENSOR_FLAG_COMPUTE.0 == 0 {
                return false;
            }
            if is_output(member) {
                return true;
            }
            let uses =
                members[i + 1..].iter().map(|&m| (*m).src.iter().filter(|&&s| s == member).count()).sum::<usize>();
            if t.flags & GGML_TENSOR_FLAG_OUTPUT.0 != 0 || uses as i32 != use_count(graph, member) {
                return false;
            }
            // a view may look out of the group only at what does not change while the graph runs
            t.view_src.as_ref().is_none_or(|storage| {
                members.iter().any(|&m| std::ptr::eq(m, storage)) || {
                    let usage = storage.buffer.as_ref().map(|b| b.usage);
                    storage.flags & GGML_TENSOR_FLAG_PARAM.0 == 0 && usage == Some(GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
                }
            })
        }
    })
}

/// Writes the graph to the log, a line for each node and leaf.
///
/// # Safety
/// As [`by_name`].
pub unsafe fn print(graph: &ggml_cgraph) {
    // SAFETY: the caller's promise.
    let (leafs, nodes) = unsafe { (checked_leafs(graph).unwrap_or(&[]), nodes(graph)) };
    let say = |text: String| crate::log::line(GGML_LOG_LEVEL_INFO, &text);
    for (what, list) in [("nodes", nodes), ("leafs", leafs)] {
        say(format!("{} {what}", list.len()));
        for (i, &t) in list.iter().enumerate() {
            // SAFETY: the tensors are live.
            let t = unsafe { &*t };
            let op = shape::op_name(t.op);
            say(format!("{i:5} {op:>20} [{}, {}, {}, {}] {}", t.ne[0], t.ne[1], t.ne[2], t.ne[3], shape::name(t)));
        }
    }
}
