//! A graph over copies of its nodes. A scheduler gives nodes memory and may lead them to copies of what they read; graphs that are built
//! once share nodes, so each is run as a copy, and the originals stay as they are.

use crate::error::Error;
use crate::graph::{access, memory, public};
use crate::tensor::{Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use std::collections::HashMap;
use std::ptr::null_mut;

/// A graph that the scheduler is given: the caller's own, or a copy with its tensors.
pub struct Run {
    pub graph: *mut ggml_cgraph,
    _ctx: Option<Box<Context>>,
}

impl Run {
    /// The graph itself.
    pub fn none(graph: *mut ggml_cgraph) -> Self {
        Run { graph, _ctx: None }
    }

    /// A copy. Leafs that have data are shared.
    ///
    /// # Safety
    /// The graph is whole and its tensors live; the copy is used no longer than they do.
    pub unsafe fn of(graph: &ggml_cgraph) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let (nodes, leafs) = unsafe { (access::checked_nodes(graph)?, access::checked_leafs(graph)?) };
        let n = nodes.len() + leafs.len();
        let size = graph.size.max(0) as usize;
        let bytes = n.checked_mul(TENSOR_OVERHEAD).and_then(|b| b.checked_add(memory::overhead(size, false)));
        // SAFETY: a block of its own.
        let mut ctx = unsafe { Context::new(bytes.unwrap_or(usize::MAX), null_mut(), true) }?;
        let mut to: HashMap<*mut ggml_tensor, *mut ggml_tensor> = HashMap::new();
        to.try_reserve(n)?;
        let mut pairs: (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        pairs.0.try_reserve_exact(n)?;
        pairs.1.try_reserve_exact(n)?;
        for &t in leafs.iter().chain(nodes) {
            // SAFETY: the caller's promise; the object has room for a tensor.
            let copy = unsafe {
                if (*t).op == GGML_OP_NONE && !(*t).data.is_null() {
                    t
                } else {
                    let object = ctx.alloc_object(GGML_OBJECT_TYPE_TENSOR, size_of::<ggml_tensor>())?;
                    let copy = object.cast::<ggml_tensor>().as_ptr();
                    copy.copy_from(t, 1);
                    copy
                }
            };
            to.insert(t, copy);
            pairs.0.push(t);
            pairs.1.push(copy);
        }
        for (_, &copy) in pairs.0.iter().zip(&pairs.1).filter(|(from, copy)| from != copy) {
            // SAFETY: as above; the copies are the pass's own.
            unsafe {
                let lead = |slot: &mut *mut ggml_tensor| {
                    if let Some(&copy) = to.get(slot) {
                        *slot = copy;
                    }
                };
                (*copy).src.iter_mut().for_each(lead);
                lead(&mut (*copy).view_src);
            }
        }
        let copy = memory::new(&mut ctx, size, false)?;
        let bare = ggml_cgraph { grads: null_mut(), grad_accs: null_mut(), ..*graph };
        // SAFETY: two graphs; the lists are of one length.
        unsafe { public::copy_mapped(&bare, &mut *copy, &pairs.0, &pairs.1) }.map_err(|refused| refused.error)?;
        Ok(Run { graph: copy, _ctx: Some(ctx) })
    }
}
