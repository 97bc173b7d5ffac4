//! Why nodes may not be replaced.

use ggml_oxide_abi::*;
use ggml_oxide_shape::op_name;
use std::fmt;

/// The rule that a proposal breaks. Nodes are positions in the portion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is no fusion.
    TooFew {
        /// Nodes proposed.
        n: usize,
    },
    /// There are not that many nodes.
    OutOfRange {
        /// Where it starts.
        first: usize,
        /// Nodes proposed.
        n: usize,
        /// Nodes that there are.
        nodes: usize,
    },
    /// The node is in the graph twice.
    Repeated {
        /// The node.
        node: usize,
    },
    /// The node is not marked to be computed.
    NotComputed {
        /// The node.
        node: usize,
    },
    /// The node is an input, a parameter or a loss.
    Flagged {
        /// The node.
        node: usize,
        /// What it is.
        flag: &'static str,
    },
    /// The operator may do more than compute its result.
    NotPure {
        /// The node.
        node: usize,
        /// Its operator.
        op: ggml_op,
    },
    /// The node writes into storage that is not its own, in a way that its operator is not known for.
    UnknownWrite {
        /// The node.
        node: usize,
        /// Its operator.
        op: ggml_op,
    },
    /// The node views storage that no earlier node of the match owns.
    ForeignView {
        /// The node.
        node: usize,
    },
    /// The node writes over storage that no earlier node of the match owns, and is no copy at the end.
    ForeignWrite {
        /// The node.
        node: usize,
    },
    /// The last node computes nothing.
    EndsInView {
        /// The node.
        node: usize,
    },
    /// The last node writes over another one of the match, but not over all of it as it lies.
    PartOfOwner {
        /// The last node.
        node: usize,
        /// What it writes over.
        owner: usize,
    },
    /// The node reads one that is computed after it.
    Order {
        /// The node.
        node: usize,
        /// What it reads.
        source: usize,
    },
    /// The node reads another one whose values a third has replaced.
    Overwritten {
        /// The node.
        node: usize,
        /// What it reads.
        source: usize,
        /// What wrote over it.
        writer: usize,
    },
    /// More tensors are read from outside than a step may have.
    TooManyInputs {
        /// The node that reads one too many.
        node: usize,
    },
    /// Somebody wants the node's result.
    Output {
        /// The node.
        node: usize,
    },
    /// Nodes outside the match read the node.
    Consumed {
        /// The node.
        node: usize,
        /// How often.
        outside: u32,
    },
    /// No later node of the match reads the node: it is a result.
    Unread {
        /// The node.
        node: usize,
    },
    /// A tensor that no edge ties to the node looks at its storage.
    Loose {
        /// The node.
        node: usize,
    },
    /// The node's storage has its place already: whoever gave it can look at it.
    Allocated {
        /// The node.
        node: usize,
    },
    /// The node holds the result, and its storage has its place already, over what the match reads from outside.
    OverInput {
        /// The node.
        node: usize,
    },
}

impl Refusal {
    /// The node concerned, by position; `None`: the proposal as a whole.
    pub fn node(&self) -> Option<usize> {
        use Refusal::*;
        match *self {
            TooFew { .. } | OutOfRange { .. } => None,
            Repeated { node }
            | NotComputed { node }
            | Flagged { node, .. }
            | NotPure { node, .. }
            | UnknownWrite { node, .. }
            | ForeignView { node }
            | ForeignWrite { node }
            | EndsInView { node }
            | PartOfOwner { node, .. }
            | Order { node, .. }
            | Overwritten { node, .. }
            | TooManyInputs { node }
            | Output { node }
            | Consumed { node, .. }
            | Unread { node }
            | Loose { node }
            | Allocated { node }
            | OverInput { node } => Some(node),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Refusal::*;
        match *self {
            TooFew { n } => write!(f, "a match of {n} nodes is no fusion, it takes two"),
            OutOfRange { first, n, nodes } => {
                write!(f, "a match of {n} nodes from node {first} on leaves the portion, which has {nodes}")
            }
            Repeated { node } => write!(f, "node {node} is in the graph more than once"),
            NotComputed { node } => write!(f, "node {node} is not marked to be computed"),
            Flagged { node, flag } => write!(f, "node {node} is flagged as {flag}"),
            NotPure { node, op } => {
                write!(f, "node {node} is {}, which is not among the pure operators that may be fused", op_name(op))
            }
            UnknownWrite { node, op } => {
                write!(
                    f,
                    "node {node} lies in storage of another tensor in a way that {} is not known for",
                    op_name(op)
                )
            }
            ForeignView { node } => write!(f, "node {node} views storage that no earlier node of the match owns"),
            ForeignWrite { node } => {
                write!(
                    f,
                    "node {node} writes over storage that no earlier node of the match owns, and is no CPY at its end"
                )
            }
            EndsInView { node } => write!(f, "node {node}, the last of the match, is a view and no result of its own"),
            PartOfOwner { node, owner } => {
                write!(f, "node {node} writes over node {owner}, but not over all of it in its shape, format, strides and offset")
            }
            Order { node, source } => write!(f, "node {node} reads node {source}, which is computed after it"),
            Overwritten { node, source, writer } => {
                write!(f, "node {node} reads node {source}, whose values node {writer} has replaced")
            }
            TooManyInputs { node } => {
                write!(
                    f,
                    "node {node} needs more than the {GGML_EXT_MAX_STEP_SRC} tensors that a step may read from outside"
                )
            }
            Output { node } => write!(f, "node {node} is flagged as an output"),
            Consumed { node, outside } => {
                write!(f, "node {node} is read from outside the match ({outside} more times than from inside)")
            }
            Unread { node } => write!(f, "node {node} is read by no later node of the match, so it is a result"),
            Loose { node } => {
                write!(f, "the storage of node {node} is looked at by a tensor that no edge of the graph ties to it")
            }
            Allocated { node } => write!(f, "node {node} has its memory already, where its values can be looked at"),
            OverInput { node } => {
                write!(f, "node {node} has its memory already, over a tensor that the match reads from outside")
            }
        }
    }
}
