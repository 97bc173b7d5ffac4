//! What a family of operators tells the table of each of them.

use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What the backend knows of one operator.
pub struct OpEntry {
    /// `Err` names the rule that the node breaks. Reads metadata only; sources may be missing.
    pub supports: fn(&ggml_tensor) -> Result<(), &'static str>,
    /// Bytes of scratch memory for `nth` threads. Called for supported nodes only; `usize::MAX` when it does not fit.
    pub work: fn(&ggml_tensor, nth: usize) -> usize,
    /// Threads worth using, of `nth`: 1 for nodes too small to share; anything else means all. Called for supported nodes only.
    pub n_tasks: fn(&ggml_tensor, nth: usize) -> usize,
    /// Computes the node; every thread of the team calls it.
    pub run: fn(&Node, &Team),
}

/// No scratch memory.
pub fn no_work(_: &ggml_tensor, _: usize) -> usize {
    0
}

/// Elements below which sharing out costs more than it gives, for kernels of a few operations per element.
const SMALL: i64 = 8192;

/// All threads, or one for few elements: for kernels of a few operations per element.
pub fn tasks_for(elements: i64, nth: usize) -> usize {
    if elements < SMALL {
        1
    } else {
        nth
    }
}

/// As [`tasks_for`] the elements of the result.
pub fn tasks_by_size(op: &ggml_tensor, nth: usize) -> usize {
    tasks_for(shape::nelements(op), nth)
}

/// As [`tasks_for`] the elements of the result or of the first source, whichever has more.
pub fn tasks_by_larger(op: &ggml_tensor, nth: usize) -> usize {
    tasks_for(src(op, 0).map_or(0, shape::nelements).max(shape::nelements(op)), nth)
}

/// All threads.
pub fn all_tasks(_: &ggml_tensor, nth: usize) -> usize {
    nth
}

/// Whether nothing is computed for the operator: its result is its source's memory.
pub fn is_view_op(op: ggml_op) -> bool {
    op == GGML_OP_NONE || shape::is_view(op)
}
