//! Computes drawn graphs with the library's own kernels: node by node, and with a range replaced by a step that keeps its intermediate
//! results in memory of its own while that of the graph is spoilt.

use super::draw::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Executor, GraphRef, Pool};

/// Bytes of memory for a drawn graph.
const BYTES: usize = 128 << 10;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; 64]);

/// Aligned memory.
struct Memory(Vec<Line>);

impl Memory {
    fn new() -> Self {
        Memory(vec![Line([0; 64]); BYTES / 64])
    }
    fn base(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: lines are plain bytes.
        unsafe { std::slice::from_raw_parts_mut(self.base(), BYTES) }
    }
}

/// Memory and kernels.
pub(in crate::ext) struct Machine {
    memory: Memory,
    /// Of steps.
    own: Memory,
    executor: Executor,
    pool: Pool,
    start: Vec<u8>,
}

impl Machine {
    pub fn new() -> Self {
        let (memory, own) = (Memory::new(), Memory::new());
        Machine { memory, own, executor: Executor::new(), pool: Pool::new(1).unwrap(), start: Vec::new() }
    }

    /// Where drawn graphs lie.
    pub fn base(&mut self) -> *mut u8 {
        self.memory.base()
    }

    /// What memory holds before the graph runs: small numbers everywhere, and rows 1 and 0 where rows are picked.
    pub fn fill(&mut self, d: &Drawn, r: &mut Rng) {
        assert!(d.bytes <= BYTES, "the graph is larger than expected");
        self.start.clear();
        for _ in 0..d.bytes / 4 {
            let value = r.below(4001) as f32 / 1000.0 - 2.0;
            self.start.extend_from_slice(&value.to_ne_bytes());
        }
        for info in &d.infos {
            // SAFETY: a tensor of the drawn graph.
            if unsafe { (*info.t).r#type } == GGML_TYPE_I32 && root(info.t) == info.t {
                self.start[info.offset..info.offset + 4].copy_from_slice(&1i32.to_ne_bytes());
                self.start[info.offset + 4..info.offset + 8].copy_from_slice(&0i32.to_ne_bytes());
            }
        }
    }

    fn run(&mut self, nodes: &[*mut ggml_tensor]) {
        let graph = GraphRef { nodes, uses: None };
        self.executor.compute(&graph, &self.pool, 1, None, None).unwrap();
    }

    /// What memory holds after all of `nodes` ran in this order.
    pub fn plain(&mut self, nodes: &[*mut ggml_tensor]) -> Vec<u8> {
        let n = self.start.len();
        self.memory.bytes()[..n].copy_from_slice(&self.start);
        self.run(nodes);
        self.memory.bytes()[..n].to_vec()
    }

    /// What memory holds after the graph ran with its nodes `first..=last` replaced; `skipped` get no storage, `owner` holds the result.
    /// What the skipped ones would have had is taken from `plain`.
    pub fn replaced(
        &mut self,
        d: &Drawn,
        (first, last): (usize, usize),
        skipped: &[*mut ggml_tensor],
        owner: Option<*mut ggml_tensor>,
        plain: &[u8],
    ) -> Vec<u8> {
        let n = self.start.len();
        self.memory.bytes()[..n].copy_from_slice(&self.start);
        let gone: Vec<_> = skipped
            .iter()
            .filter(|&&t| root(t) == t)
            .map(|&t| d.info(t).offset..d.info(t).offset + extent(t).1)
            .collect();
        let spoil = |memory: &mut Memory| gone.iter().for_each(|at| memory.bytes()[at.clone()].fill(0xff));
        spoil(&mut self.memory);
        self.run(&d.nodes[..first]);
        spoil(&mut self.memory);
        self.step(&d.nodes[first..=last], owner);
        self.run(&d.nodes[last + 1..]);
        for at in gone {
            self.memory.bytes()[at.clone()].copy_from_slice(&plain[at]);
        }
        self.memory.bytes()[..n].to_vec()
    }

    /// Computes copies of `nodes` whose storage, where it is theirs, is in memory of the step's own; but the last one puts its result where
    /// that belongs.
    fn step(&mut self, nodes: &[*mut ggml_tensor], owner: Option<*mut ggml_tensor>) {
        self.own.bytes().fill(0xff);
        // SAFETY: tensors of the drawn graph.
        let mut copies: Vec<ggml_tensor> = nodes.iter().map(|&t| unsafe { *t }).collect();
        let place = |t: *mut ggml_tensor| nodes.iter().position(|&n| n == t);
        let list: Vec<*mut ggml_tensor> = copies.iter_mut().map(std::ptr::from_mut).collect();
        let result = nodes.len() - 1;
        let (mut at, own) = (0, self.own.base());
        let mut data: Vec<*mut u8> = Vec::new();
        for (i, &t) in nodes.iter().enumerate() {
            // SAFETY: copies of tensors of the drawn graph, all of them live.
            unsafe {
                let own_copy = list[i];
                let copy = &mut *own_copy;
                for src in &mut copy.src {
                    *src = place(*src).map_or(*src, |k| list[k]);
                }
                let inside = place(root(t)).filter(|&k| k < result);
                copy.view_src = place(copy.view_src).map_or(copy.view_src, |k| list[k]);
                data.push(match inside {
                    Some(k) if k == i => {
                        at += extent(t).1.next_multiple_of(64);
                        own.add(at - extent(t).1.next_multiple_of(64))
                    }
                    Some(k) => data[k].add(copy.view_offs),
                    None => copy.data.cast(),
                });
                copy.data = data[i].cast();
            }
        }
        self.run(&list);
        if let Some(owner) = owner {
            let n = extent(owner).1;
            // SAFETY: the result covers its owner, in both memories.
            unsafe {
                assert!(!(*owner).data.is_null(), "the owner has its storage");
                (*owner).data.cast::<u8>().copy_from_nonoverlapping(data[result], n);
            }
        }
    }
}
