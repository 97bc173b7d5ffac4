//! The same graph over other tensors.

use super::pairs::{Fault, Pairs};
use super::{name, shares, Refused};
use crate::error::Error;
use crate::graph::hash::{self, Found};
use crate::graph::{access, memory};
use ggml_oxide_abi::*;

/// Makes `dst` the graph `src` with `to[i]` in the place of `from[i]`: nodes and leafs in the order of `src`, and every copy has the count
/// that its original has in `src`. Pairs of tensors that `src` does not know change nothing. `src` may be a view.
///
/// A refused mapping leaves `dst` as it was; the tensor of the answer is the original without a copy of its own.
///
/// # Safety
/// Both graphs' arrays are as large as they say and nobody else uses `dst`; tensors of `src` and in `from` are live. The tensors in `to`
/// are not followed.
pub unsafe fn copy_mapped(
    src: &ggml_cgraph,
    dst: &mut ggml_cgraph,
    from: &[*mut ggml_tensor],
    to: &[*mut ggml_tensor],
) -> Result<(), Refused> {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let (nodes, leafs) = (access::checked_nodes(src)?, access::checked_leafs(src)?);
        for &node in nodes.iter().filter(|_| !src.grads.is_null()) {
            if !access::grad(src, node).is_null() {
                let text = format!("node '{}' has a gradient, and only graphs of inference are mapped", name(node));
                return Err(Refused::at(node, Error::argument(text)));
            }
        }
        let pairs = Pairs::new(from, to).map_err(|fault| explain(fault, from))?;
        for (what, list) in [("node", nodes), ("leaf", leafs)] {
            if let Some(&t) = list.iter().find(|&&t| pairs.copy_of(t).is_none()) {
                let text = format!("{what} '{}' has no partner in the mapping", name(t));
                return Err(Refused::at(t, Error::argument(text)));
            }
        }
        let set = src.visited_hash_set;
        let known = |t: *mut ggml_tensor| match hash::find(&set, t) {
            Found::Slot(i) => Some(i),
            _ => None,
        };
        let records = from.iter().filter(|&&t| known(t).is_some()).count();
        check_room(src, dst, [nodes.len(), leafs.len(), records])?;

        memory::clear(dst);
        for (list, target) in [(nodes, dst.nodes), (leafs, dst.leafs)] {
            for (i, copy) in list.iter().filter_map(|&t| pairs.copy_of(t)).enumerate() {
                *target.add(i) = copy;
            }
        }
        dst.n_nodes = nodes.len() as i32;
        dst.n_leafs = leafs.len() as i32;
        // with the mark of a graph that lost something
        dst.order = src.order;
        dst.uid = 0;
        for (&original, &copy) in from.iter().zip(to) {
            let Some(slot) = known(original) else { continue };
            if let Found::Free(at) = hash::find(&dst.visited_hash_set, copy) {
                hash::take(&mut dst.visited_hash_set, at, copy);
                if !dst.use_counts.is_null() {
                    *dst.use_counts.add(at) = if src.use_counts.is_null() { 0 } else { *src.use_counts.add(slot) };
                }
            }
        }
        for grads in [dst.grads, dst.grad_accs] {
            if !grads.is_null() {
                grads.write_bytes(0, dst.visited_hash_set.size);
            }
        }
    }
    Ok(())
}

/// Whether `dst` can take so many nodes, leafs and records without touching `src`.
fn check_room(src: &ggml_cgraph, dst: &ggml_cgraph, [nodes, leafs, records]: [usize; 3]) -> Result<(), Error> {
    let room = usize::try_from(dst.size).unwrap_or(0);
    if room == 0 || shares(src, dst) {
        return Err(Error::argument("the destination must be a graph of its own, not a view or a part of another"));
    }
    let lists = [(nodes, dst.nodes), (leafs, dst.leafs)];
    let set = &dst.visited_hash_set;
    let whole = set.size > 0 && !set.keys.is_null() && !set.used.is_null();
    let counts = src.use_counts.is_null() || !dst.use_counts.is_null();
    if lists.iter().any(|&(n, list)| n > room || n > 0 && list.is_null())
        || records > 0 && !(whole && counts && records <= set.size)
    {
        return Err(Error::memory(format!(
            "the destination has room for {room} nodes, as many leafs and {} consumer counts, and cannot take {nodes} nodes, {leafs} leafs \
             and {records} counts",
            if whole && counts { set.size } else { 0 }
        )));
    }
    Ok(())
}

/// # Safety
/// The tensors in `from` are NULL or live.
unsafe fn explain(fault: Fault, from: &[*mut ggml_tensor]) -> Refused {
    let at = |i: usize, text: &str| {
        // SAFETY: the caller's promise; the pair's original is not NULL.
        let text = format!("pair {i} of the mapping, tensor '{}': {text}", unsafe { name(from[i]) });
        Refused::at(from[i], Error::argument(text))
    };
    match fault {
        Fault::NoOriginal(i) => {
            Error::new(GGML_EXT_CODE_NULL_ARGUMENT, format!("pair {i} of the mapping has no original: it is NULL"))
                .into()
        }
        Fault::NoCopy(i) => Refused {
            error: Error::new(GGML_EXT_CODE_NULL_ARGUMENT, at(i, "its copy is NULL").error.text),
            tensor: from[i],
        },
        Fault::Shared(i) => at(i, "its copy stands for another tensor already"),
        Fault::Again(i) => at(i, "an earlier pair has it too"),
        Fault::Memory => Error::memory(format!("no memory to map {} tensors", from.len())).into(),
    }
}
