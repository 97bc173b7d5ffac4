//! Whether one launch may replace consecutive nodes: nobody outside may miss what is no longer computed, and nothing but the last node's
//! result may change. What the launch computes is the rule's to answer for. Pure functions of [`Facts`]; the cost is linear in the match.

mod refusal;
#[cfg(test)]
pub(super) mod tests;

pub use refusal::Refusal;

use super::facts::{Fact, Facts, Span, Tensor};
use super::known::Effect;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What a match may do without, and what it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// Nodes, by position, that get no storage: all but the last and the owner.
    pub skipped: Vec<usize>,
    /// What the nodes read from outside, each tensor once, in the order in which the nodes name them.
    pub externals: Vec<Tensor>,
    /// The node whose storage holds the last one's result, when that is another node of the match.
    pub owner: Option<usize>,
}

/// Whether `n` nodes from position `first` on may be replaced by one launch whose result is the last of them.
pub fn check(facts: &Facts, first: usize, n: usize) -> Result<Match, Refusal> {
    if n < 2 {
        return Err(Refusal::TooFew { n });
    }
    let end = first.checked_add(n).filter(|&end| end <= facts.len());
    let end = end.ok_or(Refusal::OutOfRange { first, n, nodes: facts.len() })?;
    let checked = Check { facts, first, last: end - 1 };
    (first..end).try_for_each(|at| checked.alone(at))?;
    let owner = checked.result()?;
    let edges = checked.edges()?;
    (first..end - 1).try_for_each(|at| checked.dispensable(at, &edges, owner))?;
    Ok(Match {
        skipped: (first..end - 1).filter(|&at| Some(at) != owner).collect(),
        externals: edges.externals.iter().map(|&t| facts.name(t)).collect(),
        owner,
    })
}

/// By position: whether nothing outside the portion needs the node, by itself or through views, so that it may go without storage where
/// the code that computes the portion can do without its values.
pub fn inner(facts: &Facts) -> Vec<bool> {
    let mut reads = vec![0u32; facts.n_tensors()];
    for &src in (0..facts.len()).flat_map(|at| facts.sources(at)) {
        reads[src as usize] = reads[src as usize].saturating_add(1);
    }
    let wanted = |t: &Fact| has(t, GGML_TENSOR_FLAG_OUTPUT) || FLAGS.iter().any(|(flag, _)| has(t, *flag));
    let kept = |at: usize| {
        let t = facts.at(at);
        !wanted(t) && !t.repeated && !t.loose && t.uses == reads[facts.number_at(at) as usize]
    };
    let mut inner: Vec<bool> = (0..facts.len())
        .map(|at| facts.owns(at) && !facts.at(at).allocated && facts.at(at).uses > 0 && kept(at))
        .collect();
    for at in (0..facts.len()).filter(|&at| !facts.owns(at)) {
        if let Some(owner) = facts.place(facts.at(at).root) {
            inner[owner] &= facts.at(at).effect == Effect::Nothing && kept(at);
        }
    }
    inner
}

struct Check<'a> {
    facts: &'a Facts,
    first: usize,
    last: usize,
}

/// How nodes of the match read one of them.
#[derive(Clone, Default)]
struct Reads {
    /// How often it is a source.
    count: u32,
    /// By a node that comes after it.
    later: bool,
    /// What was written over its storage so far, and the last node that did so; of owners only.
    over: Option<(usize, Span)>,
}

struct Edges {
    /// By node of the match.
    reads: Vec<Reads>,
    /// Numbers.
    externals: Vec<u32>,
}

const FLAGS: [(ggml_tensor_flag, &str); 3] =
    [(GGML_TENSOR_FLAG_INPUT, "an input"), (GGML_TENSOR_FLAG_PARAM, "a parameter"), (GGML_TENSOR_FLAG_LOSS, "a loss")];

fn has(t: &Fact, flag: ggml_tensor_flag) -> bool {
    t.flags & flag.0 != 0
}

impl Check<'_> {
    /// Where tensor number `n` is in the match, if it is there.
    fn place(&self, n: u32) -> Option<usize> {
        self.facts.place(n).filter(|at| (self.first..=self.last).contains(at))
    }

    /// The node of the match that owns the storage of the one at `at`, unless that is itself or comes after it.
    fn earlier_owner(&self, at: usize) -> Option<usize> {
        self.place(self.facts.at(at).root).filter(|&owner| owner < at)
    }

    /// What the node at `at` breaks by itself.
    fn alone(&self, at: usize) -> Result<(), Refusal> {
        let t = self.facts.at(at);
        if t.repeated {
            return Err(Refusal::Repeated { node: at });
        }
        if !has(t, GGML_TENSOR_FLAG_COMPUTE) {
            return Err(Refusal::NotComputed { node: at });
        }
        if let Some(&(_, flag)) = FLAGS.iter().find(|(flag, _)| has(t, *flag)) {
            return Err(Refusal::Flagged { node: at, flag });
        }
        if !t.pure {
            return Err(Refusal::NotPure { node: at, op: t.op });
        }
        let inside = self.earlier_owner(at).is_some();
        match t.effect {
            Effect::Nothing if !inside => Err(Refusal::ForeignView { node: at }),
            // a copy keeps its destination, wherever that is, when it ends the match
            Effect::Over if !(inside || at == self.last && t.op == GGML_OP_CPY) => {
                Err(Refusal::ForeignWrite { node: at })
            }
            Effect::Unknown => Err(Refusal::UnknownWrite { node: at, op: t.op }),
            _ => Ok(()),
        }
    }

    /// Where the result is: the owner of its storage, when that is a node of the match.
    fn result(&self) -> Result<Option<usize>, Refusal> {
        let (facts, last) = (self.facts, self.last);
        let t = facts.at(last);
        if shape::is_view(t.op) {
            return Err(Refusal::EndsInView { node: last });
        }
        let owner = self.earlier_owner(last);
        match owner {
            Some(o) if !t.whole => Err(Refusal::PartOfOwner { node: last, owner: o }),
            owner => Ok(owner),
        }
    }

    /// Who reads what.
    fn edges(&self) -> Result<Edges, Refusal> {
        let (facts, first) = (self.facts, self.first);
        let mut reads = vec![Reads::default(); self.last - first + 1];
        let mut externals: Vec<u32> = Vec::new();
        for at in first..=self.last {
            let t = facts.at(at);
            for &src in facts.sources(at) {
                let Some(from) = self.place(src) else {
                    if let Some(owner) = self.place(facts.number(src).root) {
                        return Err(Refusal::Loose { node: owner });
                    }
                    if !externals.contains(&src) {
                        if externals.len() == GGML_EXT_MAX_STEP_SRC {
                            return Err(Refusal::TooManyInputs { node: at });
                        }
                        externals.push(src);
                    }
                    continue;
                };
                // a conversion names itself as what it writes to
                if from > at || from == at && t.op != GGML_OP_CPY {
                    return Err(Refusal::Order { node: at, source: from });
                }
                let read = &mut reads[from - first];
                read.count = read.count.saturating_add(1);
                read.later |= from < at;
                let source = facts.at(from);
                let over = self.place(source.root).and_then(|owner| reads[owner - first].over);
                if let Some((writer, _)) = over.filter(|(w, span)| from < *w && span.overlaps(&source.span)) {
                    return Err(Refusal::Overwritten { node: at, source: from, writer });
                }
            }
            if let (Effect::Over, Some(owner)) = (t.effect, self.earlier_owner(at)) {
                let over = &mut reads[owner - first].over;
                let before = over.map_or(t.span, |(_, span)| span);
                let span = Span { lo: before.lo.min(t.span.lo), hi: before.hi.max(t.span.hi), ..t.span };
                *over = Some((at, span));
            }
        }
        Ok(Edges { reads, externals })
    }

    /// Whether nobody outside misses the node at `at`, which is not the last.
    fn dispensable(&self, at: usize, edges: &Edges, owner: Option<usize>) -> Result<(), Refusal> {
        let t = self.facts.at(at);
        let (reads, externals) = (&edges.reads[at - self.first], &edges.externals);
        let holds_result = owner == Some(at);
        if has(t, GGML_TENSOR_FLAG_OUTPUT) && !holds_result {
            return Err(Refusal::Output { node: at });
        }
        if t.uses > reads.count {
            return Err(Refusal::Consumed { node: at, outside: t.uses - reads.count });
        }
        if !reads.later {
            return Err(Refusal::Unread { node: at });
        }
        if t.loose {
            return Err(Refusal::Loose { node: at });
        }
        if t.allocated && self.facts.owns(at) {
            if !holds_result {
                return Err(Refusal::Allocated { node: at });
            }
            // values that disappear would have been written over what a later node reads
            if externals.iter().any(|&src| self.facts.number(src).span.overlaps(&t.span)) {
                return Err(Refusal::OverInput { node: at });
            }
        }
        Ok(())
    }
}
