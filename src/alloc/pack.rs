//! Packing all storages of one kind of memory at once: largest first, each into the smallest gap among those alive with it.
//!
//! It sees the whole graph where the walk sees only the past, so it can be smaller; it need not be, so the caller keeps the
//! smaller of the two.

use super::plan::Storage;
use super::room;
use std::cmp::Reverse;
use std::collections::TryReserveError;

/// Above this count packing costs more than planning should; the walk's answer stands.
const MAX_STORAGES: usize = 2048;
/// A gain below this share of the whole is not looked for.
const WORTH: usize = 64;

/// Offsets by storage number and the bytes needed, if fewer than `total`.
pub(super) fn pack(
    storages: &[Storage],
    space: u32,
    total: usize,
) -> Result<Option<(usize, Vec<usize>)>, TryReserveError> {
    let here = |s: &Storage| s.space == space && s.size > 0;
    let n = storages.iter().filter(|s| here(s)).count();
    if !(2..=MAX_STORAGES).contains(&n) {
        return Ok(None);
    }
    let mut order = room::list(n)?;
    order.extend((0..storages.len()).filter(|&i| here(&storages[i])));
    let least = most_alive(storages, &order)?;
    let tight = |total: usize| total.saturating_sub(least) <= total / WORTH;
    // Of equal sizes the earlier first, or the longer lived first: either may leave the smaller gaps.
    let earlier = |&i: &usize| (Reverse(storages[i].size), storages[i].start, i);
    let longer = |&i: &usize| {
        let s = &storages[i];
        (Reverse(s.size), Reverse(s.end.saturating_sub(s.start)), s.start, i)
    };
    let mut best = None;
    let mut bound = total;
    for by_length in [false, true] {
        if tight(bound) {
            break;
        }
        match by_length {
            false => order.sort_unstable_by_key(earlier),
            true => order.sort_unstable_by_key(longer),
        }
        if let Some((need, offsets)) = place(storages, &order, bound)? {
            bound = need;
            best = Some((need, offsets));
        }
    }
    Ok(best)
}

/// Offsets by storage number and the bytes needed, if fewer than `total`, with storages placed in this order.
fn place(storages: &[Storage], order: &[usize], total: usize) -> Result<Option<(usize, Vec<usize>)>, TryReserveError> {
    let mut offsets = room::filled(storages.len(), 0)?;
    // (offset, end, first step, last step) by offset
    let mut placed: Vec<(usize, usize, u32, u32)> = room::list(order.len())?;
    let mut need = 0;
    for &i in order {
        let s = &storages[i];
        let (mut best, mut cursor) = (None::<(usize, usize)>, 0);
        for &(offset, end, _, _) in placed.iter().filter(|p| p.2 <= s.end && s.start <= p.3) {
            let gap = offset.saturating_sub(cursor);
            if gap >= s.size && best.is_none_or(|(g, _)| gap < g) {
                best = Some((gap, cursor));
            }
            cursor = cursor.max(end);
        }
        let offset = best.map_or(cursor, |(_, at)| at);
        let Some(end) = offset.checked_add(s.size).filter(|&end| end < total) else { return Ok(None) };
        need = need.max(end);
        offsets[i] = offset;
        let at = placed.partition_point(|p| p.0 <= offset);
        placed.insert(at, (offset, end, s.start, s.end));
    }
    Ok(Some((need, offsets)))
}

/// The most bytes in use at any step: no plan is smaller.
fn most_alive(storages: &[Storage], which: &[usize]) -> Result<usize, TryReserveError> {
    let steps = which.iter().map(|&i| storages[i].start as usize).max().unwrap_or(0) + 1;
    let (mut begins, mut ends) = (room::filled(steps, 0u128)?, room::filled(steps, 0u128)?);
    for s in which.iter().map(|&i| &storages[i]) {
        begins[s.start as usize] += s.size as u128;
        if let Some(e) = ends.get_mut(s.end as usize) {
            *e += s.size as u128;
        }
    }
    let (mut alive, mut most) = (0, 0u128);
    for (b, e) in begins.into_iter().zip(ends) {
        alive += b;
        most = most.max(alive);
        alive -= e;
    }
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}
