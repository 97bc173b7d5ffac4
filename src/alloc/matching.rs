//! The check that a graph still has the shape that a plan was made for. It walks the graph in the order in which it was lowered.

use super::inplace;
use super::lower::*;
use super::problem::*;
use super::room;
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use std::ptr::null_mut;

/// What a plan was made for, to compare graphs with.
pub struct Record {
    /// The question.
    pub problem: Problem,
    /// The answer.
    pub plan: Plan,
    /// Addresses of the tensors by number.
    pub keys: Vec<usize>,
    /// There are no tensors but leafs and nodes.
    pub plain: bool,
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
    // mostly it is the graph that was planned, or one built anew in the same memory
    // SAFETY: the caller's promise.
    if record.plain && unsafe { same_graph(source, record, memory) } {
        return Ok(Some(pointers(record)?));
    }
    let mut found = room::filled(record.problem.tensors.len(), null_mut())?;
    // SAFETY: as above; what was found is the graph's.
    if !unsafe { same_edges(source, record, &mut found) && same_tensors(record, memory, &mut found) } {
        return Ok(None);
    }
    // Every number has one tensor now. That every tensor has one number is plain when they are the very same as before.
    if found.iter().zip(&record.keys).any(|(t, &key)| t.addr() != key) {
        index.try_clear(found.len())?;
        index.reserve(found.len())?;
        if found.iter().any(|t| !index.add(t.addr()).1) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// The tensors that the plan was made for.
pub fn pointers(record: &Record) -> Result<Vec<*mut ggml_tensor>, Error> {
    Ok(room::collected(record.keys.iter().map(|&t| std::ptr::with_exposed_provenance_mut(t)))?)
}

/// Whether the graph is of the very same tensors, and the plan holds for it.
///
/// # Safety
/// As [`lower`]; there are no tensors but leafs and nodes in the record.
unsafe fn same_graph(source: Source, record: &Record, memory: &Memory) -> bool {
    let problem = &record.problem;
    let is = |id: u32, t: *mut ggml_tensor| record.keys[id as usize] == t.addr();
    let good = |id: u32, t: *mut ggml_tensor| {
        // SAFETY: the caller's promise.
        is(id, t) && unsafe { same_tensor(record, memory, id, t, is) }
    };
    for (i, (&leaf, &id)) in source.leafs.iter().zip(&problem.leafs).enumerate() {
        graph::access::fetch_next(source.leafs, i);
        if !good(id, leaf) {
            return false;
        }
    }
    for (i, (&node, known)) in source.nodes.iter().zip(&problem.nodes).enumerate() {
        graph::access::fetch_next(source.nodes, i);
        // SAFETY: the caller's promise.
        if !good(known.tensor, node) || !unsafe { same_node(record, i, &*node, is) } {
            return false;
        }
    }
    true
}

/// Whether leafs, nodes and sources are where the record has them; finds them.
///
/// # Safety
/// As [`lower`].
unsafe fn same_edges(source: Source, record: &Record, found: &mut [*mut ggml_tensor]) -> bool {
    let problem = &record.problem;
    let mut bind = |id: u32, t| {
        let known = &mut found[id as usize];
        if known.is_null() {
            *known = t;
        }
        *known == t
    };
    if !source.leafs.iter().zip(&problem.leafs).all(|(&leaf, &id)| bind(id, leaf)) {
        return false;
    }
    for (i, (&node, known)) in source.nodes.iter().zip(&problem.nodes).enumerate() {
        graph::access::fetch_next(source.nodes, i);
        // SAFETY: the caller's promise.
        if !unsafe { same_node(record, i, &*node, &mut bind) } || !bind(known.tensor, node) {
            return false;
        }
    }
    true
}

/// Whether `t` can be node `i` of the record. `bind(id, t)`: whether tensor `t` can be number `id`.
///
/// # Safety
/// As [`lower`].
#[inline]
unsafe fn same_node(
    record: &Record,
    i: usize,
    t: &ggml_tensor,
    mut bind: impl FnMut(u32, *mut ggml_tensor) -> bool,
) -> bool {
    let known = &record.problem.nodes[i];
    let (ids, n) = (record.problem.srcs_of(known), known.count as usize);
    let same = if graph::access::ends_at(&t.src, n) {
        ids.iter().zip(&t.src).all(|(&id, &src)| !src.is_null() && bind(id, src))
    } else {
        let mut srcs = t.src.iter().filter(|s| !s.is_null());
        ids.iter().all(|&id| srcs.next().is_some_and(|&src| bind(id, src))) && srcs.next().is_none()
    };
    if !same {
        return false;
    }
    // SAFETY: the caller's promise.
    let took = |n| is_external(t) || unsafe { may_take(t, n) };
    is_marker(t) == known.marker && record.plan.took[i].is_none_or(took)
}

/// Whether the result of `t` may still lie over its `n`th source, NULL ones not counted.
unsafe fn may_take(t: &ggml_tensor, n: u8) -> bool {
    let source = t.src.iter().enumerate().filter(|(_, s)| !s.is_null()).nth(n.into());
    // SAFETY: the promise of `same_node`.
    source.is_some_and(|(j, &src)| inplace::sources(t.op) >> j & 1 == 1 && same_layout(t, unsafe { &*src }))
}

/// Whether each tensor found can be the one of the record; finds those that are only viewed.
///
/// # Safety
/// What is found is live, and so is what it views.
unsafe fn same_tensors(record: &Record, memory: &Memory, found: &mut [*mut ggml_tensor]) -> bool {
    for id in 0..found.len() {
        graph::access::fetch_next(found, id);
        let t = found[id];
        let bind = |root: u32, owner| {
            let known = &mut found[root as usize];
            if known.is_null() {
                *known = owner;
            }
            *known == owner
        };
        // SAFETY: the caller's promise.
        if t.is_null() || !unsafe { same_tensor(record, memory, id as u32, t, bind) } {
            return false;
        }
    }
    true
}

/// Whether `t` can be number `id` of the record. `bind(id, t)`: whether its storage `t` can be number `id`.
///
/// # Safety
/// `t` is live, and so is what it views.
#[inline]
unsafe fn same_tensor(
    record: &Record,
    memory: &Memory,
    id: u32,
    t: *mut ggml_tensor,
    bind: impl FnOnce(u32, *mut ggml_tensor) -> bool,
) -> bool {
    let known = &record.problem.tensors[id as usize];
    // SAFETY: the caller's promise.
    let (tensor, root) = unsafe { (&*t, root_of(&*t)) };
    if known.input != has(tensor, GGML_TENSOR_FLAG_INPUT)
        || known.output != has(tensor, GGML_TENSOR_FLAG_OUTPUT)
        || known.skipped != memory.skips(t, tensor)
    {
        return false;
    }
    match root {
        Err(_) => false,
        Ok(Some((owner, at_start))) => known.root != NONE && known.at_start == at_start && bind(known.root, owner),
        Ok(None) if known.root != NONE => false,
        // it has storage by now, or gets none: the plan leaves it alone
        Ok(None) if is_external(tensor) || known.skipped => true,
        Ok(None) => {
            let fits = |slot: Slot| memory.size_in(tensor, slot.space) <= slot.size;
            !known.external && record.plan.slots[id as usize].is_none_or(fits)
        }
    }
}
