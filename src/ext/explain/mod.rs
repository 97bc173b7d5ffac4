//! A plan explained: what runs where, what each node became, what was tried and why it was refused, what gets no memory. Imports: the
//! plan and what it is made of ([`super::plan`], [`super::step`], [`super::op`], [`super::profile`], [`super::select`]).
//!
//! [`collect()`] reads plans and their graphs into a neutral model, the types here, without pointers; [`text`], [`json`] and [`dot`] render
//! it, pure functions all; [`file`] writes it where `GGML_EXT_EXPLAIN` says.

mod collect;
mod dot;
mod escape;
pub mod file;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub use collect::{collect, Copied, Portion};

use super::profile::Time;
use super::select::Tried;
use crate::error::Error;
use ggml_oxide_abi::*;

/// A tensor's name as its bytes are: not necessarily text.
pub type Name = Box<[u8]>;

/// A node, as reasons and renderers number it: its split, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The split.
    pub split: usize,
    /// The number among the split's nodes.
    pub node: usize,
}

/// What is known about the plans of a graph.
pub struct Explanation {
    /// In the order in which they run.
    pub splits: Vec<Split>,
}

/// Consecutive nodes of one backend.
pub struct Split {
    /// Number of the backend in its scheduler.
    pub number: usize,
    /// Who runs it.
    pub backend: String,
    /// Where.
    pub device: String,
    /// Why it must not run any more.
    pub stale: Option<String>,
    /// Bytes of scratch memory.
    pub workspace: usize,
    /// The registration that asked for that.
    pub workspace_for: String,
    /// Registrations of the device that `GGML_EXT_FORBID` names.
    pub forbidden: Vec<String>,
    /// Those that `GGML_EXT_FORCE` names.
    pub forced: Vec<String>,
    /// What is copied from other backends before.
    pub inputs: Vec<Input>,
    /// The steps, which cover all nodes.
    pub steps: Vec<Step>,
}

/// A tensor that is copied between backends.
pub struct Input {
    /// The tensor.
    pub source: Source,
    /// Bytes.
    pub bytes: usize,
    /// The backend that has it.
    pub from: String,
}

/// What a node reads.
#[derive(Clone)]
pub struct Source {
    /// The tensor.
    pub name: Name,
    /// Where it is computed; `None`: not in this graph.
    pub at: Option<Place>,
    /// Flagged as an input.
    pub input: bool,
}

/// Native code for some nodes, or a launch.
pub struct Step {
    /// Number of the first node in the split.
    pub first: usize,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The registration; `None`: native code.
    pub launch: Option<Launch>,
    /// What it took while profiling was on.
    pub time: Time,
}

/// A registration in a step.
pub struct Launch {
    /// Its name.
    pub registration: String,
    /// Its priority.
    pub priority: i32,
    /// Its `GGML_EXT_KERNEL_` bits.
    pub flags: u32,
    /// `GGML_EXT_FORCE` names it.
    pub forced: bool,
    /// Bytes of scratch memory that it asked for.
    pub workspace: usize,
    /// What it reads from outside, and whether the result lies over that now.
    pub reads: Vec<(Source, bool)>,
}

/// A tensor of the graph.
pub struct Node {
    /// Its name.
    pub name: Name,
    /// Its operator: of a unary or gated one the function, of a registered one its name.
    pub op: String,
    /// Its format.
    pub format: &'static str,
    /// Elements, low to high.
    pub ne: [i64; GGML_MAX_DIMS],
    /// Bytes of its data.
    pub bytes: usize,
    /// They are its own, not those of a tensor that it is a view of.
    pub owns: bool,
    /// There is something to compute: it is no view, not empty, and flagged to be computed.
    pub computed: bool,
    /// Flagged as an output.
    pub output: bool,
    /// It gets no memory.
    pub skipped: bool,
    /// What it reads, as often as it does.
    pub reads: Vec<Source>,
    /// Registrations that could have been used from this node on and are not.
    pub tried: Vec<Tried>,
}

/// Sums over an explanation.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Steps.
    pub steps: usize,
    /// Nodes.
    pub nodes: usize,
    /// Steps that are launches.
    pub launches: usize,
    /// Launches for more than one node.
    pub fusions: usize,
    /// Nodes in those.
    pub fused_nodes: usize,
    /// Steps of native code.
    pub native_ranges: usize,
    /// Nodes in those.
    pub native_nodes: usize,
    /// Nodes that get no memory.
    pub skipped: usize,
    /// Bytes of their data, of those that would own it.
    pub skipped_bytes: usize,
    /// Bytes of scratch memory of all backends: the splits of one backend share theirs.
    pub workspace: usize,
    /// Registrations that could have been used and are not, each as often as it was tried.
    pub refused: usize,
    /// Nanoseconds of the steps, the mean of what was timed.
    pub ns: u64,
}

impl Step {
    /// Whether it is a launch for more than one node.
    pub fn is_fusion(&self) -> bool {
        self.launch.is_some() && self.nodes.len() > 1
    }

    /// Mean nanoseconds of a run; `None`: none was timed.
    pub fn mean_ns(&self) -> Option<u64> {
        self.time.ns().checked_div(self.time.runs())
    }
}

impl Split {
    /// The nodes in order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.steps.iter().flat_map(|s| &s.nodes)
    }
}

impl Explanation {
    /// The sums.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        let mut workspaces = std::collections::BTreeMap::<usize, usize>::new();
        for split in &self.splits {
            let shared = workspaces.entry(split.number).or_default();
            *shared = split.workspace.max(*shared);
            for step in &split.steps {
                let n = step.nodes.len();
                sum.steps += 1;
                sum.nodes += n;
                let (steps, nodes) = match step.launch {
                    Some(_) => (&mut sum.launches, None),
                    None => (&mut sum.native_ranges, Some(&mut sum.native_nodes)),
                };
                *steps += 1;
                nodes.into_iter().for_each(|nodes| *nodes += n);
                if step.is_fusion() {
                    sum.fusions += 1;
                    sum.fused_nodes += n;
                }
                sum.ns = sum.ns.saturating_add(step.mean_ns().unwrap_or(0));
            }
            for node in split.nodes() {
                sum.refused += node.tried.len();
                if node.skipped {
                    sum.skipped += 1;
                    let saved = if node.owns { node.bytes } else { 0 };
                    sum.skipped_bytes = sum.skipped_bytes.saturating_add(saved);
                }
            }
        }
        sum.workspace = workspaces.values().fold(0, |all, w| all.saturating_add(*w));
        sum
    }

    /// The explanation in a form of the interface. Text and the graph end with a newline, JSON does not.
    pub fn render(&self, format: ggml_ext_explain_format) -> Result<String, Error> {
        match format {
            GGML_EXT_EXPLAIN_TEXT => Ok(text::render(self)),
            GGML_EXT_EXPLAIN_JSON => Ok(json::render(self)),
            GGML_EXT_EXPLAIN_DOT => Ok(dot::render(self)),
            other => Err(Error::argument(format!("there is no format {}", other.0))),
        }
    }
}
