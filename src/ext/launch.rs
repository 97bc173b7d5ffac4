//! A registration in a plan: the nodes that it replaces, its prepared state, and what was known of the nodes when it was chosen.

use super::callback;
use super::profile::Time;
use super::registry::{count, InPlan, Kernel};
use ggml_oxide_abi::*;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// A registration that replaces one or more nodes.
pub struct Launch {
    /// Which.
    pub kernel: InPlan,
    /// The nodes, by number in the portion.
    pub nodes: Range<usize>,
    /// What they read from outside.
    pub srcs: Box<[*mut ggml_tensor]>,
    /// Those of the nodes that get no memory, by number.
    pub skipped: Vec<usize>,
    /// Bytes of scratch memory.
    pub workspace: usize,
    /// What it took while profiling was on.
    pub time: Time,
    /// `GGML_EXT_FORCE` names the registration.
    pub forced: bool,
    state: *mut c_void,
    prepared: bool,
    /// Of the metadata of nodes and sources.
    digest: u64,
}

impl Launch {
    /// Chooses `kernel` for `nodes`, which are among `all` and read `srcs`.
    ///
    /// # Safety
    /// The tensors are live.
    pub unsafe fn new(
        kernel: Arc<Kernel>,
        nodes: Range<usize>,
        all: &[*mut ggml_tensor],
        srcs: &[*mut ggml_tensor],
        forced: bool,
    ) -> Self {
        count(&kernel.counts.selected);
        // SAFETY: the caller's promise.
        let digest = unsafe { digest(&all[nodes.clone()], srcs) };
        Launch {
            kernel: InPlan::new(kernel),
            nodes,
            srcs: srcs.into(),
            skipped: Vec::new(),
            workspace: 0,
            time: Time::default(),
            forced,
            state: std::ptr::null_mut(),
            prepared: false,
            digest,
        }
    }

    /// Takes what `prepare` made; it is given back when the launch is dropped.
    pub fn take(&mut self, prepared: &ggml_ext_prepared) {
        (self.state, self.prepared, self.workspace) = (prepared.state, true, prepared.workspace_size);
    }

    /// What `prepare` made.
    pub fn state(&self) -> *mut c_void {
        self.state
    }

    /// Whether the nodes and what they read are as they were when the plan was made.
    ///
    /// # Safety
    /// `nodes` are the portion's nodes, live.
    pub unsafe fn holds(&self, nodes: &[*mut ggml_tensor]) -> bool {
        // SAFETY: the caller's promise; what live nodes read is live.
        nodes.get(self.nodes.clone()).is_some_and(|nodes| unsafe { digest(nodes, &self.srcs) } == self.digest)
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.prepared {
            count(&self.kernel.counts.destroyed);
        }
        if let Some(destroy) = self.kernel.calls.destroy.filter(|_| self.prepared) {
            // SAFETY: the state is what `prepare` made, and this happens once.
            callback::call(|| unsafe { destroy(self.state, self.kernel.data()) });
        }
    }
}

/// A number that differs, but for a chance of one in 2^64, when metadata do that callbacks decide by.
///
/// # Safety
/// The tensors are live.
unsafe fn digest(nodes: &[*mut ggml_tensor], srcs: &[*mut ggml_tensor]) -> u64 {
    let mut mix = Mix::default();
    for &node in nodes {
        // SAFETY: the caller's promise.
        let t = unsafe { &*node };
        mix.shape(t);
        mix.pair(node.addr() as u64, u64::from(t.op.0 as u32) << 32 | u64::from(t.flags as u32));
        for p in t.op_params.chunks_exact(4) {
            let word = |i: usize| u64::from(p[i] as u32) | u64::from(p[i + 1] as u32) << 32;
            mix.pair(word(0), word(2));
        }
        t.src.chunks_exact(2).for_each(|s| mix.pair(s[0].addr() as u64, s[1].addr() as u64));
    }
    // SAFETY: as above.
    srcs.iter().for_each(|&src| mix.shape(unsafe { &*src }));
    mix.sum
}

const _: () = assert!(GGML_MAX_OP_PARAMS.is_multiple_of(16) && GGML_MAX_SRC.is_multiple_of(2));

/// A sum of products of pairs of words, each blended with constants of its place.
#[derive(Default)]
struct Mix {
    sum: u64,
    key: u64,
}

impl Mix {
    #[inline]
    fn pair(&mut self, a: u64, b: u64) {
        // an odd step visits every key once
        self.key = self.key.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(a ^ self.key) * u128::from(b ^ self.key.rotate_left(29));
        self.sum = self.sum.wrapping_add((product ^ product >> 64) as u64);
    }

    #[inline]
    fn shape(&mut self, t: &ggml_tensor) {
        let (ne, nb) = (t.ne, t.nb);
        self.pair(ne[0] as u64, ne[1] as u64);
        self.pair(ne[2] as u64, ne[3] as u64);
        self.pair(nb[0] as u64, nb[1] as u64);
        self.pair(nb[2] as u64, nb[3] as u64);
        self.pair(t.view_src.addr() as u64, t.view_offs as u64 ^ u64::from(t.r#type.0 as u32) << 32);
    }
}

#[cfg(test)]
mod tests {
    use super::digest;
    use crate::tensor::blank;

    #[test]
    fn ext_28_every_member_counts() {
        let (mut node, mut src) = (blank(), blank());
        let mut seen = std::collections::HashSet::new();
        for member in 0..40 {
            let (n, s) = (&mut node, &mut src);
            match member {
                0..4 => n.ne[member] += 1,
                4..8 => n.nb[member - 4] += 4,
                8..24 => n.op_params[member - 8] += 1,
                24..34 => n.src[member - 24] = std::ptr::from_mut(s),
                34 => n.flags ^= 4,
                35 => n.op.0 += 1,
                36 => n.r#type.0 += 1,
                37 => n.view_offs += 8,
                38 => s.ne[0] += 1,
                _ => s.nb[3] += 1,
            }
            let (n, s) = (std::ptr::from_mut(n), std::ptr::from_mut(s));
            // SAFETY: live tensors.
            assert!(seen.insert(unsafe { digest(&[n], &[s]) }), "member {member} does not count");
        }
    }
}
