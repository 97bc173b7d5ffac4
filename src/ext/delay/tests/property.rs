//! Random moves on random graphs: each verdict against a search over all pairs of nodes, and what is moved computed before and after.

use super::*;
use crate::ext::legality::check;
use crate::ext::legality::tests::compute::Machine;
use crate::ext::legality::tests::draw::*;
use crate::ext::legality::tests::simulate;
use std::collections::BTreeMap;

const GRAPHS: usize = if cfg!(miri) {
    3
} else if cfg!(debug_assertions) {
    4_000
} else {
    40_000
};
/// Moves for each graph.
const EACH: usize = 8;

fn name(refusal: &DelayRefusal) -> &'static str {
    use DelayRefusal::*;
    match refusal {
        OutOfRange { .. } => "OutOfRange",
        Repeated { .. } => "Repeated",
        Unknown { .. } => "Unknown",
        Needs { .. } => "Needs",
        Early { .. } => "Early",
        WritesInput { .. } => "WritesInput",
        WritesResult { .. } => "WritesResult",
        ReadsResult { .. } => "ReadsResult",
    }
}
const NAMES: usize = 8;

/// The rules that a move breaks.
fn broken(d: &Drawn, nodes: &[T], first: usize, count: usize, before: usize) -> Vec<&'static str> {
    if count == 0 || first + count > before || before > nodes.len() {
        return vec!["OutOfRange"];
    }
    let (moved, crossed) = (&nodes[first..first + count], &nodes[first + count..before]);
    if crossed.is_empty() {
        return Vec::new();
    }
    let mut rules = Vec::new();
    for &t in &nodes[first..before] {
        rules.push(("Repeated", nodes[first..before].iter().filter(|&&m| m == t).count() > 1));
        rules.push(("Unknown", matches!(d.info(t).kind, Kind::Callback | Kind::Odd)));
    }
    let works = |t: T| !matches!(d.info(t).kind, Kind::View | Kind::Leaf | Kind::LooseView);
    let bytes = |t: T| {
        let start = d.info(root(t)).offset + extent(t).0;
        start..start + extent(t).1
    };
    // storage that has no place yet meets nothing but itself
    let meet = |a: T, b: T| {
        let comparable = root(a) == root(b) || d.info(root(a)).allocated && d.info(root(b)).allocated;
        comparable && bytes(a).start < bytes(b).end && bytes(b).start < bytes(a).end
    };
    for &m in moved {
        for &c in crossed {
            rules.push(("Needs", sources(c).any(|s| s == m) || root(c) == m));
            rules.push(("Early", sources(m).any(|s| s == c) || root(m) == c));
            if works(m) && works(c) {
                rules.push(("WritesInput", sources(m).any(|s| meet(s, c))));
                rules.push(("WritesResult", meet(m, c)));
                rules.push(("ReadsResult", sources(c).any(|s| meet(s, m))));
            }
        }
    }
    rules.into_iter().filter(|rule| rule.1).map(|rule| rule.0).collect()
}

fn a_move(r: &mut Rng, nodes: usize) -> (usize, usize, usize) {
    let first = r.below(nodes);
    let left = nodes - first;
    let count = if r.chance(20) { r.below(4) } else { (1 + r.below(3)).min(left.saturating_sub(1).max(1)) };
    let before = first + count + 1 + r.below(5);
    // a few stay where they are or leave the graph
    let before = if r.chance(30) { first + count } else { before };
    (first, count, if r.chance(30) { before } else { before.min(nodes) })
}

#[test]
fn ext_45_random_moves_change_no_result() {
    let (mut d, mut machine, mut r) = (Drawn::new(), Machine::new(), Rng(0x5eed_0045));
    d.chains = 250;
    let mut refused: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut moves, mut still, mut accepted, mut unsafe_ones, mut computed) = (0, 0, 0, 0, 0);
    for _ in 0..GRAPHS {
        let seed = r.next();
        let mut g = Rng(seed);
        d.draw(&mut g);
        d.begin(machine.base());
        let old = d.nodes.clone();
        let plain = simulate::plain(&d, &old);
        let mut whole = d.whole.unwrap();
        let n = whole.n_nodes as usize;
        // SAFETY: the drawn graph, here and below.
        let mut facts = unsafe { Facts::read(&old[..n], &d.uses()) }.unwrap();
        let mut now = old.clone();
        for _ in 0..EACH {
            let (first, count, before) = a_move(&mut g, n);
            moves += 1;
            let fail = |text: &str| panic!("seed {seed:#x}, {first}..+{count} before {before}: {text}");
            let expected = broken(&d, &now[..n], first, count, before);
            let verdict = may_delay(&facts, first, count, before);
            let mut next = now.clone();
            let possible = count <= before.saturating_sub(first) && before <= n;
            if possible {
                next[first..before].rotate_left(count);
            }
            let safe = possible && plain.same_in_order(&d, &old, &next);
            unsafe_ones += usize::from(possible && !safe);
            // SAFETY: as above.
            let done = unsafe { delay(&mut whole, first, count, before) };
            match verdict {
                Err(refusal) => {
                    let name = name(&refusal);
                    *refused.entry(name).or_default() += 1;
                    // a node may stand in the graph again, past the range that `delay` looks at
                    let again = matches!(refusal, DelayRefusal::Repeated { .. }) && !expected.contains(&name);
                    if !again && !expected.contains(&name) {
                        fail(&format!("refused: {refusal}, not {expected:?}"));
                    }
                    match done {
                        Ok(()) if again && expected.is_empty() => {
                            // SAFETY: as above.
                            unsafe { std::slice::from_raw_parts_mut(whole.nodes, n).copy_from_slice(&now[..n]) };
                        }
                        Err(error) if again || error.text.ends_with(&refusal.to_string()) => {}
                        other => fail(&format!("{other:?}, not {refusal}")),
                    }
                }
                Ok(()) => {
                    if !expected.is_empty() {
                        fail(&format!("accepted against {expected:?}"));
                    }
                    if !safe {
                        fail("accepted, and a node reads something else");
                    }
                    done.unwrap();
                    now = next;
                    accepted += 1;
                    still += usize::from(first + count == before);
                    facts.moved(first, count, before);
                }
            }
            // SAFETY: as above.
            assert_eq!(unsafe { graph::nodes(&whole) }, &now[..n], "the graph has another order");
        }
        // what was followed is what is read anew
        // SAFETY: as above.
        let anew = unsafe { Facts::read(&now[..n], &d.uses()) }.unwrap();
        for _ in 0..4 {
            let (first, many) = (g.below(n), 2 + g.below(3));
            let (a, b) = (check(&facts, first, many), check(&anew, first, many));
            assert_eq!(a.is_ok(), b.is_ok());
            if let (Ok(a), Ok(b)) = (&a, &b) {
                let same = |f: &Facts, m: &crate::ext::legality::Match| {
                    m.externals.iter().map(|&t| f.tensor(t)).collect::<Vec<_>>()
                };
                assert_eq!((&a.skipped, a.owner, same(&facts, a)), (&b.skipped, b.owner, same(&anew, b)));
            } else {
                assert_eq!(a.err(), b.err());
            }
        }
        if now == old || cfg!(miri) {
            continue;
        }
        d.complete();
        machine.fill(&d, &mut g);
        computed += 1;
        assert!(machine.plain(&old) == machine.plain(&now), "seed {seed:#x}: the moves changed a result");
    }
    let refusals: usize = refused.values().sum();
    println!("{moves} moves, {accepted} accepted ({still} of them move nothing), {refusals} refused, {unsafe_ones} of all unsafe");
    println!("{computed} graphs computed before and after their moves");
    refused.iter().for_each(|(name, n)| println!("{n:8} refused: {name}"));
    if cfg!(miri) {
        return;
    }
    assert_eq!(accepted + refusals, moves);
    assert_eq!(refused.len(), NAMES, "every refusal occurs");
    assert!((accepted - still) * 10 > moves && unsafe_ones * 10 > moves, "too few of some kind");
}
