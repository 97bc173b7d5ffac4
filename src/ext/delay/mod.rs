//! Moving nodes behind others that do not need them. The rules are pure functions of [`Facts`]; only [`delay`] touches a graph.

mod refusal;
#[cfg(test)]
mod tests;

pub use refusal::DelayRefusal;

use super::facts::{Facts, Span, Uses};
use super::known::Effect;
use crate::error::Error;
use crate::graph;
use ggml_oxide_abi::*;

/// Whether the nodes `first..first + count` may run directly before node `before`, after all that is in between.
pub fn may_delay(facts: &Facts, first: usize, count: usize, before: usize) -> Result<(), DelayRefusal> {
    let nodes = facts.len();
    let end = first.checked_add(count).filter(|&end| count > 0 && end <= before && before <= nodes);
    let end = end.ok_or(DelayRefusal::OutOfRange { first, count, before, nodes })?;
    if end == before {
        return Ok(());
    }
    for at in first..before {
        let t = facts.at(at);
        if t.repeated {
            return Err(DelayRefusal::Repeated { node: at });
        }
        if t.effect == Effect::Unknown {
            return Err(DelayRefusal::Unknown { node: at, op: t.op });
        }
    }
    edges(facts, first, end, before)?;
    let mut moved = Memory::default();
    (first..end).for_each(|at| moved.add(facts, at));
    moved.merge();
    (end..before).try_for_each(|at| moved.cross(facts, at))
}

/// Whether the nodes in between, `end..before`, and the moved ones, `first..end`, name each other.
fn edges(facts: &Facts, first: usize, end: usize, before: usize) -> Result<(), DelayRefusal> {
    // What a node reads, and what it is a view of: that must be there before it.
    let named = |at: usize| facts.sources(at).iter().copied().chain([facts.at(at).root]).filter_map(|t| facts.place(t));
    for at in end..before {
        if let Some(moved) = named(at).find(|place| (first..end).contains(place)) {
            return Err(DelayRefusal::Needs { node: at, moved });
        }
    }
    for at in first..end {
        if let Some(node) = named(at).find(|place| (end..before).contains(place)) {
            return Err(DelayRefusal::Early { moved: at, node });
        }
    }
    Ok(())
}

/// What nodes read and write.
#[derive(Default)]
struct Memory {
    reads: Vec<Span>,
    writes: Vec<Span>,
}

impl Memory {
    fn add(&mut self, facts: &Facts, at: usize) {
        if facts.at(at).effect != Effect::Nothing {
            self.reads.extend(facts.sources(at).iter().map(|&src| facts.number(src).span));
            self.writes.push(facts.at(at).span);
        }
    }

    /// Puts the spans in order, overlapping ones together.
    fn merge(&mut self) {
        for list in [&mut self.reads, &mut self.writes] {
            list.retain(|span| span.lo < span.hi);
            list.sort_unstable();
            list.dedup_by(|next, span| {
                let joined = span.overlaps(next);
                if joined {
                    span.hi = span.hi.max(next.hi);
                }
                joined
            });
        }
    }

    /// Whether the node at `at` leaves what these nodes read and write alone, and does not read what they write.
    fn cross(&self, facts: &Facts, at: usize) -> Result<(), DelayRefusal> {
        let t = facts.at(at);
        if t.effect == Effect::Nothing {
            return Ok(());
        }
        if hits(&self.writes, &t.span) {
            return Err(DelayRefusal::WritesResult { node: at });
        }
        if hits(&self.reads, &t.span) {
            return Err(DelayRefusal::WritesInput { node: at });
        }
        if facts.sources(at).iter().any(|&src| hits(&self.writes, &facts.number(src).span)) {
            return Err(DelayRefusal::ReadsResult { node: at });
        }
        Ok(())
    }
}

/// Whether `span` meets one of `list`, which is in order and without overlaps.
fn hits(list: &[Span], span: &Span) -> bool {
    // the last one that starts before `span` ends: earlier ones end before it starts
    let after = list.partition_point(|s| (s.space, s.lo) < (span.space, span.hi));
    after > 0 && list[after - 1].overlaps(span)
}

/// Moves the nodes `first..first + count` of `graph` to directly before node `before`. Their edges and metadata stay. The cost is that of
/// sorting what they read, and linear in `before - first`.
///
/// # Safety
/// The graph's arrays are as large as it says and nobody else uses them; the nodes in the range are live, and so are their sources, what
/// those view, and their buffers.
pub unsafe fn delay(graph: &mut ggml_cgraph, first: usize, count: usize, before: usize) -> Result<(), Error> {
    let refused = |refusal: DelayRefusal| {
        let out_of_range = matches!(refusal, DelayRefusal::OutOfRange { .. });
        let code = if out_of_range { GGML_EXT_CODE_BAD_ARGUMENT } else { GGML_EXT_CODE_NOT_LEGAL };
        Error::new(code, format!("nodes {first} to {before} stay in their order: {refusal}"))
    };
    let nodes = if graph.nodes.is_null() { 0 } else { usize::try_from(graph.n_nodes).unwrap_or(0) };
    if count == 0 || before > nodes || first > before || count > before - first {
        return Err(refused(DelayRefusal::OutOfRange { first, count, before, nodes }));
    }
    // Only these are looked at: rules move many ranges of a large graph.
    // SAFETY: the caller's promise; the range is inside the list.
    let range = unsafe { std::slice::from_raw_parts(graph.nodes.add(first), before - first) };
    // SAFETY: as above.
    let facts = unsafe { Facts::read(range, &Uses::default()) }?;
    may_delay(&facts, 0, count, range.len()).map_err(|refusal| refused(refusal.shifted(first)))?;
    let n = range.len();
    // SAFETY: the range is inside the list, of which no other reference is used any more.
    unsafe { std::slice::from_raw_parts_mut(graph.nodes.add(first), n) }.rotate_left(count);
    if graph.uid != 0 && n > count {
        graph.uid = graph::next_uid();
    }
    Ok(())
}
