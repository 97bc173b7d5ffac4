//! The graph as numbers: what the passes of the scheduler look at again and again is looked up once.

use super::copies::{Copies, Origin};
use crate::error::Error;
use crate::graph::{self, index::Index};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// "No tensor" among numbers.
pub const NONE: u32 = u32::MAX;

/// A node and its sources.
#[derive(Clone, Copy)]
pub struct Node {
    /// The node itself.
    pub tensor: u32,
    /// Its sources in [`Numbering::srcs`]: first, and how many.
    pub first: u32,
    pub count: u32,
}

/// A graph as numbers.
#[derive(Default)]
pub struct Numbering {
    /// From addresses to numbers.
    pub index: Index,
    /// By number.
    pub tensors: Vec<*mut ggml_tensor>,
    /// By number: what it views, or [`NONE`].
    pub root: Vec<u32>,
    /// The graph's leafs.
    pub leafs: Vec<u32>,
    /// The graph's nodes.
    pub nodes: Vec<Node>,
    /// Number and slot of every source.
    pub srcs: Vec<(u32, u8)>,
}

impl Numbering {
    /// Reads `graph`. Copies that earlier splits put among its sources are taken out.
    ///
    /// # Safety
    /// The graph and its tensors are live and nobody else uses them.
    pub unsafe fn read(&mut self, graph: &ggml_cgraph, copies: &Copies) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let (nodes, leafs) = unsafe { (graph::checked_nodes(graph)?, graph::checked_leafs(graph)?) };
        self.index.try_clear(nodes.len() + leafs.len())?;
        self.tensors.clear();
        self.root.clear();
        self.leafs.clear();
        self.nodes.clear();
        self.srcs.clear();
        for &leaf in leafs {
            // SAFETY: as above.
            let number = unsafe { self.number(leaf) }?;
            self.leafs.push(number);
        }
        for &node in nodes {
            let first = self.srcs.len() as u32;
            for slot in 0..GGML_MAX_SRC as u8 {
                // SAFETY: as above; what a live tensor reads is live.
                unsafe {
                    let mut src = (&(*node).src)[slot as usize];
                    if src.is_null() {
                        continue;
                    }
                    match copies.origin(node, slot, src) {
                        Origin::Client => {}
                        Origin::Copy(original) => {
                            src = original;
                            (&mut (*node).src)[slot as usize] = original;
                        }
                        Origin::Lost => {
                            return Err(Error::argument(format!(
                                "node '{}' was split by this scheduler long ago and still reads its copies: build the graph anew",
                                shape::name(&*node)
                            )))
                        }
                    }
                    let number = self.number(src)?;
                    self.srcs.push((number, slot));
                }
            }
            // SAFETY: as above.
            let tensor = unsafe { self.number(node) }?;
            self.nodes.push(Node { tensor, first, count: self.srcs.len() as u32 - first });
        }
        Ok(())
    }

    unsafe fn number(&mut self, t: *mut ggml_tensor) -> Result<u32, Error> {
        let (mut number, mut new) = self.index.try_add(t.addr())?;
        let result = number;
        let mut t = t;
        // a view brings what it views; storage is no view itself, but who knows
        while new {
            // SAFETY: the promise of `read`.
            let root = unsafe { (*t).view_src };
            self.tensors.push(t);
            self.root.push(NONE);
            if root.is_null() {
                break;
            }
            let next = self.index.try_add(root.addr())?;
            self.root[number as usize] = next.0;
            (number, new) = next;
            t = root;
        }
        Ok(result)
    }

    /// Sources of `node`.
    pub fn srcs_of(&self, node: Node) -> &[(u32, u8)] {
        self.srcs.get(node.first as usize..(node.first + node.count) as usize).unwrap_or(&[])
    }

    /// Tensor number `t`.
    pub fn tensor(&self, t: u32) -> &ggml_tensor {
        // SAFETY: numbers stand for live tensors while the graph is being split, by the promise of `read`.
        unsafe { &*self.tensors[t as usize] }
    }
}
