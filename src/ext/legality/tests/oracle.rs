//! The rules of EXT-41 to EXT-43 a second time, as plainly as they can be said: by pointers, each rule a search over all nodes.

use super::draw::*;
use ggml_oxide_abi::*;

type Node = *mut ggml_tensor;

fn flagged(t: Node, flag: ggml_tensor_flag) -> bool {
    // SAFETY: a tensor of the drawn graph.
    unsafe { (*t).flags & flag.0 != 0 }
}

fn is_copy(t: Node) -> bool {
    // SAFETY: a tensor of the drawn graph.
    unsafe { (*t).op == GGML_OP_CPY }
}

/// Format, shape, strides and offset.
fn layout(t: Node) -> (ggml_type, [i64; 4], [usize; 4], usize) {
    // SAFETY: a tensor of the drawn graph.
    unsafe { ((*t).r#type, (*t).ne, (*t).nb, (*t).view_offs) }
}

/// What the drawing says of a proposal.
pub struct Verdict {
    /// Names of the rules that it breaks; none: it is legal.
    pub broken: Vec<&'static str>,
    pub skipped: Vec<Node>,
    pub externals: Vec<Node>,
    pub owner: Option<Node>,
}

/// Judges the nodes `first..first + n` of the portion.
pub fn judge(d: &Drawn, first: usize, n: usize) -> Verdict {
    let portion = d.portion();
    let mut verdict = Verdict { broken: Vec::new(), skipped: Vec::new(), externals: Vec::new(), owner: None };
    if n < 2 {
        verdict.broken.push("TooFew");
        return verdict;
    }
    if first > portion.len() || n > portion.len() - first {
        verdict.broken.push("OutOfRange");
        return verdict;
    }
    let range = &portion[first..first + n];
    let place = |t: Node| range.iter().position(|&m| m == t);
    let writes = |t: Node| matches!(d.info(t).kind, Kind::Pure | Kind::Known | Kind::Callback | Kind::Odd);
    let owner_before = |i: usize| place(root(range[i])).filter(|&o| o < i);
    let owner = owner_before(n - 1).map(|o| range[o]);
    let whole = &d.nodes[..d.whole.as_ref().map_or(0, |g| g.n_nodes as usize)];

    let mut rules: Vec<(&'static str, bool)> = Vec::new();
    for (i, &t) in range.iter().enumerate() {
        let kind = d.info(t).kind;
        let inside = owner_before(i).is_some();
        let in_place = writes(t) && root(t) != t;
        rules.push(("Repeated", d.nodes.iter().filter(|&&m| m == t).count() > 1));
        rules.push(("NotComputed", !flagged(t, GGML_TENSOR_FLAG_COMPUTE)));
        let kept = [GGML_TENSOR_FLAG_INPUT, GGML_TENSOR_FLAG_PARAM, GGML_TENSOR_FLAG_LOSS];
        rules.push(("Flagged", kept.iter().any(|&f| flagged(t, f))));
        rules.push(("NotPure", !matches!(kind, Kind::View | Kind::Pure | Kind::Odd)));
        rules.push(("ForeignView", kind == Kind::View && !inside));
        rules.push(("UnknownWrite", kind == Kind::Odd));
        rules.push(("ForeignWrite", in_place && kind != Kind::Odd && !inside && !(i == n - 1 && is_copy(t))));
        for s in sources(t) {
            match place(s) {
                Some(k) => {
                    rules.push(("Order", k > i || k == i && !is_copy(t)));
                    let writers: Vec<Node> = range[..i]
                        .iter()
                        .copied()
                        .filter(|&w| writes(w) && d.info(w).kind != Kind::Odd && root(w) != w && root(w) == root(s))
                        .collect();
                    let low = writers.iter().map(|&w| extent(w).0).min().unwrap_or(0);
                    let high = writers.iter().map(|&w| extent(w).0 + extent(w).1).max().unwrap_or(0);
                    let later = writers.iter().any(|&w| place(w) > Some(k));
                    rules.push(("Overwritten", later && extent(s).0 < high && low < extent(s).0 + extent(s).1));
                }
                None => {
                    rules.push(("Loose", place(root(s)).is_some()));
                    if !verdict.externals.contains(&s) {
                        verdict.externals.push(s);
                    }
                }
            }
        }
        if i == n - 1 {
            rules.push(("EndsInView", kind == Kind::View));
            rules.push(("PartOfOwner", owner.is_some_and(|o| layout(o) != layout(t))));
            continue;
        }
        // nodes outside the range; those that stand in it again are outside too
        let (before, after) = (d.portion.start + first, d.portion.start + first + n);
        let outside = d.nodes[..before].iter().chain(&d.nodes[after..]);
        let read_outside = outside.copied().any(|m| sources(m).any(|s| s == t)) || d.redirected.contains(&t);
        rules.push(("Consumed", read_outside));
        rules.push(("Output", flagged(t, GGML_TENSOR_FLAG_OUTPUT) && owner != Some(t)));
        rules.push(("Unread", !range[i + 1..].iter().any(|&m| sources(m).any(|s| s == t))));
        rules.push(("Loose", is_loose(d, whole, t)));
        rules.push(("Allocated", d.info(t).allocated && root(t) == t && owner != Some(t)));
    }
    let bytes = |t: Node| d.info(root(t)).offset + extent(t).0..d.info(root(t)).offset + extent(t).0 + extent(t).1;
    if let Some(o) = owner.filter(|&o| d.info(o).allocated) {
        for &e in verdict.externals.iter().filter(|&&e| d.info(root(e)).allocated) {
            rules.push(("OverInput", bytes(e).start < bytes(o).end && bytes(o).start < bytes(e).end));
        }
    }
    rules.push(("TooManyInputs", verdict.externals.len() > 64));
    verdict.broken = rules.into_iter().filter(|rule| rule.1).map(|rule| rule.0).collect();
    verdict.skipped = range[..n - 1].iter().copied().filter(|&t| owner != Some(t)).collect();
    verdict.owner = owner;
    verdict
}

/// Whether the storage of `t` is looked at by a tensor of the graph that is no node of it or has no source with that storage.
fn is_loose(d: &Drawn, whole: &[Node], t: Node) -> bool {
    let looks = |v: Node| v != t && root(v) == t;
    let untied = |v: Node| looks(v) && !sources(v).any(|s| s != v && root(s) == t);
    let stray = |v: Node| looks(v) && !whole.contains(&v);
    // SAFETY: the leafs of the drawn graph.
    let leafs = unsafe { crate::graph::checked_leafs(d.whole.as_ref().unwrap()) }.unwrap();
    whole.iter().any(|&m| untied(m) || sources(m).any(stray)) || leafs.iter().any(|&v| stray(v))
}
