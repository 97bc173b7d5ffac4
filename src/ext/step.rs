//! A step as callbacks see it: its nodes, what it reads from outside, and what of that the result may lie over.

use crate::alloc::inplace;
use crate::backend::Device;
use crate::graph::access;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_int;
use std::ops::Range;

/// What a step reads from outside itself, each tensor once.
pub struct Srcs {
    list: [*mut ggml_tensor; GGML_EXT_MAX_STEP_SRC],
    n: usize,
}

impl Srcs {
    /// Those of a single node.
    pub fn of_node(node: &ggml_tensor) -> Self {
        let mut srcs = Srcs { list: [std::ptr::null_mut(); GGML_EXT_MAX_STEP_SRC], n: 0 };
        for &s in node.src.iter().filter(|s| !s.is_null()) {
            if !srcs.list[..srcs.n].contains(&s) {
                srcs.list[srcs.n] = s;
                srcs.n += 1;
            }
        }
        srcs
    }

    /// As a list.
    pub fn as_slice(&self) -> &[*mut ggml_tensor] {
        &self.list[..self.n]
    }
}

/// The storage that `t` lies in and its bytes there. What views itself lies in itself.
///
/// # Safety
/// `t` and what it views are live.
unsafe fn place(t: *const ggml_tensor) -> (*const ggml_tensor, Range<usize>) {
    // SAFETY: the caller's promise.
    let ((root, offs), size) =
        unsafe { (access::storage_of(t.cast_mut()).unwrap_or((t.cast_mut(), 0)), shape::nbytes(&*t)) };
    (root, offs..offs.saturating_add(size))
}

/// What is empty lies nowhere.
fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// Whether bytes of the two lie in the same place: by address where both have one, else by the storage that they view.
///
/// # Safety
/// Both and what they view are live.
pub unsafe fn overlaps(a: *const ggml_tensor, b: *const ggml_tensor) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let (da, db) = ((*a).data.addr(), (*b).data.addr());
        if da != 0 && db != 0 {
            let (na, nb) = (shape::nbytes(&*a), shape::nbytes(&*b));
            return meet(&(da..da.saturating_add(na)), &(db..db.saturating_add(nb)));
        }
        let ((ra, pa), (rb, pb)) = (place(a), place(b));
        ra == rb && meet(&pa, &pb)
    }
}

/// Whether the allocator may place the result of the single node over its source `src`, neither being placed yet.
///
/// # Safety
/// Node and source are live.
unsafe fn may_take(node: &ggml_tensor, src: *const ggml_tensor) -> bool {
    let takes = inplace::sources(node.op);
    // SAFETY: the caller's promise.
    let s = unsafe { &*src };
    node.view_src.is_null()
        && node.data.is_null()
        && s.data.is_null()
        && (s.r#type, s.ne, s.nb) == (node.r#type, node.ne, node.nb)
        && node.src.iter().enumerate().any(|(j, &n)| std::ptr::eq(n, src) && takes >> j & 1 == 1)
}

/// The step's structure. `nodes` and `srcs` outlive it.
///
/// # Safety
/// All tensors are live; there is at least one node.
pub unsafe fn describe(device: Device, nodes: &[*mut ggml_tensor], srcs: &[*mut ggml_tensor]) -> ggml_ext_step {
    let mut overlap = 0;
    if let Some(&result) = nodes.last() {
        // whose storage the allocator may take from a source: the node's, or that of the inner node that holds a fusion's result
        // SAFETY: the caller's promise.
        let owner = unsafe { (*result).view_src };
        let taker = if nodes.len() == 1 { Some(&result) } else { nodes.iter().find(|&&n| n == owner) };
        for (i, &src) in srcs.iter().enumerate().take(64) {
            // SAFETY: the caller's promise.
            let over = unsafe { overlaps(result, src) || taker.is_some_and(|&t| may_take(&*t, src)) };
            overlap |= u64::from(over) << i;
        }
    }
    ggml_ext_step {
        struct_size: size_of::<ggml_ext_step>(),
        device: device.as_raw(),
        nodes: nodes.as_ptr(),
        n_nodes: nodes.len() as c_int,
        n_srcs: srcs.len() as c_int,
        srcs: srcs.as_ptr(),
        overlap,
    }
}

impl Srcs {
    /// Those of consecutive nodes that one launch replaces. `None`: there are too many.
    ///
    /// # Safety
    /// The nodes are live.
    pub unsafe fn of_nodes(nodes: &[*mut ggml_tensor]) -> Option<Self> {
        let mut srcs = Srcs { list: [std::ptr::null_mut(); GGML_EXT_MAX_STEP_SRC], n: 0 };
        for &node in nodes {
            // SAFETY: the caller's promise.
            for &s in unsafe { &(*node).src }.iter().filter(|s| !s.is_null()) {
                if nodes.contains(&s) || srcs.list[..srcs.n].contains(&s) {
                    continue;
                }
                *srcs.list.get_mut(srcs.n)? = s;
                srcs.n += 1;
            }
        }
        Some(srcs)
    }
}
