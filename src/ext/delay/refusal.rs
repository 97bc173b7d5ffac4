//! Why nodes may not be moved.

use ggml_oxide_abi::*;
use ggml_oxide_shape::op_name;
use std::fmt;

/// The rule that a move breaks. Nodes are positions before the move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayRefusal {
    /// There are no such nodes, or the place is not behind them.
    OutOfRange {
        /// First of the nodes.
        first: usize,
        /// How many.
        count: usize,
        /// The node that they would run before.
        before: usize,
        /// Nodes that there are.
        nodes: usize,
    },
    /// The node is in the graph twice.
    Repeated {
        /// The node.
        node: usize,
    },
    /// Nobody knows all that the node does.
    Unknown {
        /// The node.
        node: usize,
        /// Its operator.
        op: ggml_op,
    },
    /// A node in between reads or views a moved one.
    Needs {
        /// The node.
        node: usize,
        /// The moved one.
        moved: usize,
    },
    /// A moved node reads or views one that runs after it now and would run before it.
    Early {
        /// The moved one.
        moved: usize,
        /// What it reads.
        node: usize,
    },
    /// A node in between writes where the moved ones read.
    WritesInput {
        /// The node.
        node: usize,
    },
    /// A node in between writes where the moved ones write.
    WritesResult {
        /// The node.
        node: usize,
    },
    /// A node in between reads where the moved ones write.
    ReadsResult {
        /// The node.
        node: usize,
    },
}

impl DelayRefusal {
    /// The same, where node 0 was node `by` of a larger list.
    pub(super) fn shifted(self, by: usize) -> Self {
        use DelayRefusal::*;
        match self {
            OutOfRange { first, count, before, nodes } => {
                OutOfRange { first: first + by, count, before: before + by, nodes: nodes + by }
            }
            Repeated { node } => Repeated { node: node + by },
            Unknown { node, op } => Unknown { node: node + by, op },
            Needs { node, moved } => Needs { node: node + by, moved: moved + by },
            Early { moved, node } => Early { moved: moved + by, node: node + by },
            WritesInput { node } => WritesInput { node: node + by },
            WritesResult { node } => WritesResult { node: node + by },
            ReadsResult { node } => ReadsResult { node: node + by },
        }
    }
}

impl fmt::Display for DelayRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DelayRefusal::*;
        match *self {
            OutOfRange { first, count, before, nodes } => {
                write!(f, "{count} nodes from node {first} on cannot go before node {before} of {nodes}")
            }
            Repeated { node } => write!(f, "node {node} is in the graph more than once"),
            Unknown { node, op } => {
                write!(f, "node {node} ({}) may have effects that nobody knows", op_name(op))
            }
            Needs { node, moved } => write!(f, "node {node} reads or views node {moved}, which would run after it"),
            Early { moved, node } => {
                write!(f, "node {moved} reads or views node {node}, which would run before it instead of after it")
            }
            WritesInput { node } => write!(f, "node {node} writes where the moved nodes read"),
            WritesResult { node } => write!(f, "node {node} writes where the moved nodes write"),
            ReadsResult { node } => write!(f, "node {node} reads where the moved nodes write"),
        }
    }
}
