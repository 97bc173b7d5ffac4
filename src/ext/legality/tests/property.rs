//! Random proposals on random graphs.

use super::compute::Machine;
use super::draw::*;
use super::oracle;
use super::simulate;
use crate::ext::facts::{Facts, Tensor};
use crate::ext::legality::{check, Match, Refusal};
use std::collections::BTreeMap;

/// Proposals: a million and more where the compiler optimises.
const PROPOSALS: usize = if cfg!(miri) {
    60
} else if cfg!(debug_assertions) {
    120_000
} else {
    1_200_000
};
/// For each graph.
const EACH: usize = 14;

fn name(refusal: &Refusal) -> &'static str {
    use Refusal::*;
    match refusal {
        TooFew { .. } => "TooFew",
        OutOfRange { .. } => "OutOfRange",
        Repeated { .. } => "Repeated",
        NotComputed { .. } => "NotComputed",
        Flagged { .. } => "Flagged",
        NotPure { .. } => "NotPure",
        UnknownWrite { .. } => "UnknownWrite",
        ForeignView { .. } => "ForeignView",
        ForeignWrite { .. } => "ForeignWrite",
        EndsInView { .. } => "EndsInView",
        PartOfOwner { .. } => "PartOfOwner",
        Order { .. } => "Order",
        Overwritten { .. } => "Overwritten",
        TooManyInputs { .. } => "TooManyInputs",
        Output { .. } => "Output",
        Consumed { .. } => "Consumed",
        Unread { .. } => "Unread",
        Loose { .. } => "Loose",
        Allocated { .. } => "Allocated",
        OverInput { .. } => "OverInput",
    }
}
const NAMES: usize = 20;

/// Counts by name.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, [usize; 2]>);

impl Counts {
    fn add(&mut self, name: &'static str, column: usize) {
        self.0.entry(name).or_default()[column] += 1;
    }
    fn sum(&self, column: usize) -> usize {
        self.0.values().map(|n| n[column]).sum()
    }
}

/// A proposal: most are short, some start past the end or have one node.
fn propose(r: &mut Rng, nodes: usize) -> (usize, usize) {
    if nodes > 40 {
        return (r.below(3), nodes - r.below(6));
    }
    let starts = if r.chance(980) { nodes.saturating_sub(1).max(1) } else { nodes + 1 };
    let first = r.below(starts);
    let n = match r.below(40) {
        0 => r.below(3),
        1..=18 => 2,
        19..=29 => 3,
        30..=35 => 4,
        _ => 5 + r.below(4),
    };
    // those that leave the portion are soon understood
    (first, if r.chance(980) { n.min((nodes - first.min(nodes)).max(2)) } else { n })
}

fn describe(d: &Drawn) -> String {
    let mut text = String::new();
    for (i, &t) in d.nodes.iter().enumerate() {
        // SAFETY: a tensor of the drawn graph.
        let (op, flags) = unsafe { ((*t).op, (*t).flags) };
        let srcs: Vec<_> = sources(t).map(|s| number(s)).collect();
        let (kind, root, at) = (d.info(t).kind, number(root(t)), extent(t));
        text += &format!("{i}: t{} {op:?} {kind:?} flags {flags} reads {srcs:?} in t{root} at {at:?}\n", number(t));
    }
    text + &format!(
        "portion {:?}, redirected {:?}\n",
        d.portion,
        d.redirected.iter().map(|&t| number(t)).collect::<Vec<_>>()
    )
}

#[test]
fn ext_40_to_43_random_proposals() {
    let (mut d, mut machine) = (Drawn::new(), Machine::new());
    let (mut refused, mut unsafe_for, mut accepted, mut proposals) = (Counts::default(), Counts::default(), 0, 0);
    let (mut owners, mut in_place, mut copies, mut with_view) = (0, 0, 0, 0);
    let mut r = Rng(0x5eed_0003);
    while proposals < PROPOSALS {
        let seed = r.next();
        let mut g = Rng(seed);
        d.draw(&mut g);
        d.begin(machine.base());
        // SAFETY: the drawn graph.
        let facts = unsafe { Facts::read(d.portion(), &d.uses()) }.unwrap();
        let plain = simulate::plain(&d, &d.nodes);
        let mut legal: Vec<(usize, usize, Match)> = Vec::new();
        for _ in 0..EACH {
            let (first, n) = propose(&mut g, facts.len());
            proposals += 1;
            let (verdict, expected) = (check(&facts, first, n), oracle::judge(&d, first, n));
            let fail = |text: &str| {
                panic!("seed {seed:#x}, nodes {first}..+{n}: {text}\n{:?}\n{}", expected.broken, describe(&d))
            };
            let inside = n >= 2 && first + n <= facts.len();
            let (from, to) = (d.portion.start + first, (d.portion.start + first + n).saturating_sub(1));
            let difference = if inside { plain.difference(&d, from, to) } else { None };
            match verdict {
                Err(refusal) => {
                    refused.add(name(&refusal), usize::from(difference.is_some()));
                    if !expected.broken.contains(&name(&refusal)) {
                        fail(&format!("refused: {refusal}"));
                    }
                }
                Ok(found) => {
                    if !expected.broken.is_empty() {
                        fail("accepted against the rules");
                    }
                    if let Some(text) = difference {
                        unsafe_for.add(text, 0);
                        fail(&format!("accepted, but {text}"));
                    }
                    let tensor = |t: &Tensor| facts.tensor(*t);
                    let node = |at: &usize| facts.tensor(Tensor::Node(*at));
                    let same = found.skipped.iter().map(node).eq(expected.skipped.iter().copied())
                        && found.externals.iter().map(tensor).eq(expected.externals.iter().copied())
                        && found.owner.as_ref().map(node) == expected.owner;
                    if !same {
                        fail(&format!("another match: {found:?}"));
                    }
                    accepted += 1;
                    let range = &d.portion()[first..first + n];
                    owners += usize::from(found.owner.is_some());
                    copies += usize::from(root(range[n - 1]) != range[n - 1] && found.owner.is_none());
                    with_view += usize::from(range.iter().any(|&t| d.info(t).kind == Kind::View));
                    in_place +=
                        usize::from(range[..n - 1].iter().any(|&t| d.info(t).kind == Kind::Pure && root(t) != t));
                    legal.push((from, to, found));
                }
            }
            if let Some(text) = difference {
                unsafe_for.add(text, 1);
            }
        }
        if legal.is_empty() || cfg!(miri) {
            continue;
        }
        d.complete();
        machine.fill(&d, &mut g);
        let expected = machine.plain(&d.nodes);
        for (first, last, found) in legal {
            let node = |at: usize| facts.tensor(Tensor::Node(at));
            let skipped: Vec<_> = found.skipped.iter().map(|&at| node(at)).collect();
            let got = machine.replaced(&d, (first, last), &skipped, found.owner.map(node), &expected);
            assert!(got == expected, "seed {seed:#x}, nodes {first}..={last}: fused is not unfused\n{}", describe(&d));
        }
    }
    println!(
        "{proposals} proposals, {accepted} accepted and computed fused and unfused, {} refused",
        refused.sum(0) + refused.sum(1)
    );
    println!("accepted: {owners} written back to an owner, {copies} ended in a copy");
    println!("accepted: {with_view} with views, {in_place} with nodes in place");
    for (name, [safe, not]) in &refused.0 {
        println!("{:8} refused: {name} ({not} of them unsafe by simulation)", safe + not);
    }
    for (text, [_, n]) in &unsafe_for.0 {
        println!("{n:8} unsafe: {text}");
    }
    if cfg!(miri) {
        return;
    }
    assert_eq!(accepted + refused.sum(0) + refused.sum(1), proposals);
    assert_eq!(refused.0.len(), NAMES, "every refusal occurs");
    assert!(accepted * 10 > proposals, "too few of the proposals are legal");
    assert!([owners, copies, with_view, in_place].iter().all(|&n| n * 1000 > accepted), "too few of some kind");
    assert!(refused.sum(1) * 2 > refused.sum(0), "the simulation sees too little");
}
