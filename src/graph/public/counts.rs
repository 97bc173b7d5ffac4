//! The counts of a graph for a segment of it.

use super::{name, Refused};
use crate::error::Error;
use crate::graph::hash::{self, Found};
use crate::graph::{access, has_use_counts};
use ggml_oxide_abi::*;

/// Records in `segment` how often its nodes and leafs are sources in `original`, in the place of what it counted itself. A leaf that
/// `original` does not know gets no record. A node that it does not know is refused: what that node reads is not counted there, so a
/// backend might fuse it away.
///
/// A segment that has borrowed the counts of `original` has them already. A refusal leaves `segment` as it was.
///
/// # Safety
/// Both graphs' arrays are as large as they say and nobody else uses `segment`; its tensors are live.
pub unsafe fn copy_use_counts(original: &ggml_cgraph, segment: &mut ggml_cgraph) -> Result<(), Refused> {
    if !has_use_counts(original) {
        return Err(Error::argument("the original has no record of consumers").into());
    }
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let (nodes, leafs) = (access::checked_nodes(segment)?, access::checked_leafs(segment)?);
        let source = original.visited_hash_set;
        if let Some(&t) = nodes.iter().find(|&&t| !matches!(hash::find(&source, t), Found::Slot(_))) {
            let text = format!("the original has no record of node '{}' of the segment", name(t));
            return Err(Refused::at(t, Error::argument(text)));
        }
        let same_set = source.keys == segment.visited_hash_set.keys && source.used == segment.visited_hash_set.used;
        if same_set && original.use_counts == segment.use_counts {
            return Ok(());
        }
        if segment.size <= 0 || !has_use_counts(segment) || same_set || original.use_counts == segment.use_counts {
            return Err(Error::argument(
                "the segment has no counts of its own: it is a view or a part of another graph",
            )
            .into());
        }
        let set = segment.visited_hash_set;
        let new = nodes.iter().chain(leafs).filter(|&&t| {
            matches!(hash::find(&source, t), Found::Slot(_)) && !matches!(hash::find(&set, t), Found::Slot(_))
        });
        let (new, free) = (new.count(), free_slots(&set));
        if new > free {
            let text = format!("the segment has room for {free} more consumer counts and cannot take {new}");
            return Err(Error::memory(text).into());
        }
        for &t in nodes.iter().chain(leafs) {
            let Found::Slot(from) = hash::find(&source, t) else { continue };
            let to = match hash::find(&segment.visited_hash_set, t) {
                Found::Slot(to) => to,
                Found::Free(to) => {
                    hash::take(&mut segment.visited_hash_set, to, t);
                    to
                }
                Found::Full => continue,
            };
            *segment.use_counts.add(to) = *original.use_counts.add(from);
        }
    }
    Ok(())
}

/// # Safety
/// The set is whole.
unsafe fn free_slots(set: &ggml_hash_set) -> usize {
    // SAFETY: the bit set has one bit for each slot.
    let taken = |i: usize| unsafe { *set.used.add(i / 32) >> (i % 32) & 1 == 1 };
    (0..set.size).filter(|&i| !taken(i)).count()
}
