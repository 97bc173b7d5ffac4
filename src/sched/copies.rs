//! Tensors of the scheduler's own: copies of inputs, and views that stand for dependencies.
//!
//! A copy takes the place of its original among a node's sources, in the client's graph. Graphs are split again, after a reset
//! or a failure, so it is remembered for the last few graphs what stood there before.

use crate::tensor::{blank, set_name};
use ggml_oxide_abi::*;
use std::collections::{HashMap, TryReserveError, VecDeque};

/// Graphs whose originals are remembered.
const GENERATIONS: usize = 8;

/// Aligned as tensors of contexts are: hash sets count on it.
#[repr(C, align(16))]
struct Aligned {
    tensor: ggml_tensor,
}

/// The tensors, by the graph that they were made for.
#[derive(Default)]
pub struct Copies {
    generations: VecDeque<Vec<*mut Aligned>>,
    /// By address of a copy and of the node that reads it, and the number of the source: what stood there.
    replaced: HashMap<(usize, usize, u8), *mut ggml_tensor>,
    /// Lowest and highest address of the tensors: most sources lie elsewhere.
    range: (usize, usize),
}

/// What a source of a node is to the scheduler.
pub enum Origin {
    /// The client's own tensor.
    Client,
    /// A copy that an earlier split put there in the place of this one.
    Copy(*mut ggml_tensor),
    /// A copy that nobody knows the original of any more.
    Lost,
}

impl Copies {
    /// Begins a new graph.
    pub fn begin(&mut self) {
        if self.generations.front().is_some_and(Vec::is_empty) {
            return;
        }
        self.generations.push_front(Vec::new());
        if self.generations.len() > GENERATIONS {
            let old = self.generations.pop_back().unwrap_or_default();
            self.replaced.retain(|(copy, _, _), _| !old.iter().any(|t| t.addr() == *copy));
            free(old);
        }
    }

    /// Whether `t` may be a tensor of the scheduler's own.
    #[inline]
    pub fn may_own(&self, t: *mut ggml_tensor) -> bool {
        (self.range.0..=self.range.1).contains(&t.addr())
    }

    /// What source `slot` of `node`, `src`, is.
    pub fn origin(&self, node: *mut ggml_tensor, slot: u8, src: *mut ggml_tensor) -> Origin {
        if !self.may_own(src) {
            return Origin::Client;
        }
        match self.replaced.get(&(src.addr(), node.addr(), slot)) {
            Some(&original) => Origin::Copy(original),
            None if self.generations.iter().flatten().any(|t| t.addr() == src.addr()) => Origin::Lost,
            None => Origin::Client,
        }
    }

    /// Puts `copy` in the place of `original` as source `slot` of `node`.
    ///
    /// # Safety
    /// `node` is live and nobody else uses it.
    pub unsafe fn put(
        &mut self,
        node: *mut ggml_tensor,
        slot: u8,
        original: *mut ggml_tensor,
        copy: *mut ggml_tensor,
    ) -> Result<(), TryReserveError> {
        self.replaced.try_reserve(1)?;
        self.replaced.insert((copy.addr(), node.addr(), slot), original);
        // SAFETY: the caller's promise.
        unsafe { (&mut (*node).src)[slot as usize] = copy }
        Ok(())
    }

    /// A tensor of the same layout as `t`, called after `backend`, `t` and `number`.
    pub fn copy_of(
        &mut self,
        t: &ggml_tensor,
        backend: &str,
        number: usize,
    ) -> Result<*mut ggml_tensor, TryReserveError> {
        let mut copy = ggml_tensor { r#type: t.r#type, ne: t.ne, nb: t.nb, ..blank() };
        let name: Vec<u8> = t.name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
        set_name(&mut copy, [backend.as_bytes(), b"#", &name, b"#", number.to_string().as_bytes()]);
        self.keep(copy)
    }

    /// A node that computes nothing and reads `reads`, the first of which it views: they stay allocated up to it.
    ///
    /// # Safety
    /// `reads` are live, at least one and at most `GGML_MAX_SRC`.
    pub unsafe fn marker(&mut self, reads: &[*mut ggml_tensor]) -> Result<*mut ggml_tensor, TryReserveError> {
        // SAFETY: the caller's promise.
        let t = unsafe { &*reads[0] };
        let (root, offs) = if t.view_src.is_null() { (reads[0], 0) } else { (t.view_src, t.view_offs) };
        let mut marker =
            ggml_tensor { r#type: t.r#type, ne: t.ne, nb: t.nb, view_src: root, view_offs: offs, ..blank() };
        marker.src[..reads.len()].copy_from_slice(reads);
        self.keep(marker)
    }

    fn keep(&mut self, t: ggml_tensor) -> Result<*mut ggml_tensor, TryReserveError> {
        if self.generations.is_empty() {
            self.begin();
        }
        let mut kept = std::ptr::null_mut();
        if let Some(newest) = self.generations.front_mut() {
            newest.try_reserve(1)?;
            kept = Box::into_raw(Box::new(Aligned { tensor: t }));
            newest.push(kept);
        }
        let (low, high) = if self.range == (0, 0) { (usize::MAX, 0) } else { self.range };
        self.range = (low.min(kept.addr()), high.max(kept.addr()));
        // SAFETY: just made.
        Ok(unsafe { &raw mut (*kept).tensor })
    }
}

fn free(tensors: Vec<*mut Aligned>) {
    for t in tensors {
        // SAFETY: made by `keep`, and forgotten now.
        drop(unsafe { Box::from_raw(t) });
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.generations.drain(..).for_each(free);
    }
}
