//! What the planner is asked and what it answers: numbers only, no pointers.

use super::space::Place;
use std::collections::TryReserveError;

/// "No tensor" among tensor numbers.
pub const NONE: u32 = u32::MAX;

/// A tensor as the planner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Bytes that it needs in `space`, alignment aside.
    pub size: usize,
    /// Which kind of memory it goes to.
    pub space: u32,
    /// The tensor whose storage it views, never a view itself; [`NONE`]: it has storage of its own.
    pub root: u32,
    /// It starts where `root` starts.
    pub at_start: bool,
    /// Placed before everything else, apart from all others.
    pub input: bool,
    /// Its storage is never given to another.
    pub output: bool,
    /// It has storage already: it is left alone.
    pub external: bool,
    /// It never gets storage: the step that computes it is left to those that read it. Reading it is reading what that step reads.
    pub skipped: bool,
}

impl Tensor {
    /// A tensor of `size` bytes in `space` with nothing special.
    pub fn plain(size: usize, space: u32) -> Self {
        let root = NONE;
        Tensor { size, space, root, at_start: false, input: false, output: false, external: false, skipped: false }
    }
}

/// A step of the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it computes.
    pub tensor: u32,
    /// Its sources: `srcs[first..first + count]` of the problem.
    pub first: u32,
    /// How many sources.
    pub count: u32,
    /// Bit `i`: the result may take the storage of source `i`.
    pub reuse: u16,
    /// The tensor only stands for a dependency (a view without operator); nothing reads it.
    pub marker: bool,
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRule {
    /// Power of two.
    pub alignment: usize,
    /// Bytes that one buffer may have.
    pub max_size: usize,
}

/// The whole question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Kinds of memory.
    pub spaces: Vec<SpaceRule>,
    /// Tensors by number.
    pub tensors: Vec<Tensor>,
    /// Steps in order.
    pub nodes: Vec<Node>,
    /// Sources of all nodes.
    pub srcs: Vec<u32>,
    /// Tensors that hold data before the first step.
    pub leafs: Vec<u32>,
}

impl Problem {
    /// The sources of `node`.
    pub fn srcs_of(&self, node: &Node) -> &[u32] {
        self.srcs.get(node.first as usize..(node.first + node.count) as usize).unwrap_or(&[])
    }
}

/// Where a tensor was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Kind of memory. It differs from the tensor's own where the tensor took a source's storage.
    pub space: u32,
    /// Where in it.
    pub place: Place,
    /// Bytes that it may have there.
    pub size: usize,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By tensor number; `None` for views, external and skipped tensors and those that nothing names.
    pub slots: Vec<Option<Slot>>,
    /// Bytes of each chunk of each kind of memory.
    pub chunks: Vec<Vec<usize>>,
    /// By node: the source whose storage it took, as an index into its sources.
    pub took: Vec<Option<u8>>,
}

impl Plan {
    /// Bytes of one kind of memory. The planner has checked that the sum fits.
    pub fn size(&self, space: usize) -> usize {
        self.chunks.get(space).map_or(0, |c| c.iter().sum())
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The tensor, or all up to it, is larger than an address can say.
    TooLarge(u32),
    /// A number in the problem points nowhere.
    Malformed,
    /// There is no memory for the plan itself.
    NoMemory,
}

impl From<TryReserveError> for PlanError {
    fn from(_: TryReserveError) -> Self {
        PlanError::NoMemory
    }
}
