//! EXT-46, EXT-47: plans in which some tensors have no storage and are computed by whoever reads them.
#![allow(clippy::unwrap_used)]

use super::plan::plan;
use super::plan_tests::{check, random_problem, Rng};
use super::problem::*;

/// A random problem in which some tensors are skipped.
fn random_skips(seed: u64) -> Problem {
    let mut p = random_problem(seed);
    let mut r = Rng(seed ^ 0x5eed);
    let often = 1 + r.below(4);
    for t in &mut p.tensors {
        t.skipped = !t.input && !t.output && !t.external && r.one_in(often);
    }
    p
}

fn solve(p: &Problem) -> Plan {
    let plan = plan(p, &mut |t, _| p.tensors[t as usize].size).unwrap();
    check(p, &plan);
    simulate(p, &plan);
    plan
}

fn owner(p: &Problem, t: u32) -> u32 {
    match p.tensors[t as usize].root {
        NONE => t,
        root => root,
    }
}

fn reads_skipped(p: &Problem, node: &Node) -> bool {
    p.srcs_of(node).iter().any(|&s| p.tensors[s as usize].skipped || p.tensors[owner(p, s) as usize].skipped)
}

/// Runs the plan on memory of bytes that say which tensor wrote them, and looks at everything that a step reads.
fn simulate(p: &Problem, plan: &Plan) {
    let mut memory: Vec<Vec<Vec<u32>>> =
        plan.chunks.iter().map(|space| space.iter().map(|&n| vec![NONE; n]).collect()).collect();
    let mut written = vec![false; p.tensors.len()];
    let range = |t: u32| {
        let slot = plan.slots[t as usize]?;
        Some((slot.space as usize, slot.place.chunk as usize, slot.place.offset..slot.place.offset + slot.size))
    };
    let is_node = |t: u32| p.nodes.iter().any(|n| n.tensor == t && !n.marker);
    // what is no step's result holds data before the first one
    for t in (0..p.tensors.len() as u32).filter(|&t| p.leafs.contains(&t) || p.tensors[t as usize].input && !is_node(t))
    {
        written[t as usize] = true;
        if let Some((s, c, bytes)) = range(t) {
            memory[s][c][bytes].fill(t);
        }
    }
    for (i, node) in p.nodes.iter().enumerate() {
        let fused = reads_skipped(p, node) && !node.marker;
        let write = |memory: &mut Vec<Vec<Vec<u32>>>| {
            if let (false, Some((s, c, bytes))) = (node.marker, range(node.tensor)) {
                memory[s][c][bytes].fill(node.tensor);
            }
        };
        if fused {
            // its order of reads and writes is its own
            write(&mut memory);
        }
        if !p.tensors[node.tensor as usize].skipped {
            let mut rest = p.srcs_of(node).to_vec();
            let mut seen = vec![false; p.tensors.len()];
            while let Some(t) = rest.pop() {
                if std::mem::replace(&mut seen[t as usize], true) {
                    continue;
                }
                let own = owner(p, t);
                for skipped in [t, own].into_iter().filter(|&t| p.tensors[t as usize].skipped) {
                    let steps = p.nodes[..i].iter().filter(|n| n.tensor == skipped && !n.marker);
                    rest.extend(steps.flat_map(|n| p.srcs_of(n)));
                }
                if let (true, Some((s, c, bytes))) = (written[own as usize], range(own)) {
                    let good = memory[s][c][bytes].iter().all(|&by| by == own);
                    assert!(good, "step {i} reads {t}, whose storage was written over\n{p:#?}\n{plan:#?}");
                }
            }
        }
        if !fused {
            write(&mut memory);
        }
        written[node.tensor as usize] |= !node.marker;
    }
}

#[test]
fn ext_46_what_skipped_tensors_are_computed_from_stays() {
    let n = if cfg!(miri) { 12 } else { 20_000 };
    let (mut fused, mut deep, mut took) = (0, 0, 0);
    for seed in 0..n {
        let p = random_skips(seed);
        let result = solve(&p);
        for (i, node) in p.nodes.iter().enumerate().filter(|(_, node)| reads_skipped(&p, node) && !node.marker) {
            assert_eq!(result.took[i], None, "a step that reads a skipped tensor takes nothing over");
            let into = p.nodes[..i].iter().position(|n| n.tensor == owner(&p, node.tensor));
            assert!(into.is_none_or(|n| result.took[n].is_none()), "nor does what it writes into");
            fused += 1;
            deep += usize::from(p.tensors[node.tensor as usize].skipped);
        }
        took += result.took.iter().flatten().count();
        for (t, tensor) in p.tensors.iter().enumerate() {
            let without = tensor.skipped || p.tensors[owner(&p, t as u32) as usize].skipped;
            assert!(!without || result.slots[t].is_none(), "a skipped tensor or a view of one has storage");
        }
    }
    let n = n as usize;
    assert!(fused > n && deep > n / 2 && took > n / 4, "the generator makes too little: {fused} {deep} {took}");
}

/// Tensors of 64 bytes; tensor 0 is a leaf. `steps`: sources of tensors 1, 2 ...
fn steps(list: &[&[u32]], skipped: &[u32]) -> Problem {
    let mut p = Problem { spaces: vec![SpaceRule { alignment: 32, max_size: usize::MAX }], ..Problem::default() };
    p.tensors = vec![Tensor::plain(64, 0); list.len() + 1];
    p.leafs.push(0);
    for (i, srcs) in list.iter().enumerate() {
        let first = p.srcs.len() as u32;
        p.srcs.extend_from_slice(srcs);
        p.nodes.push(Node { tensor: i as u32 + 1, first, count: srcs.len() as u32, reuse: !0, marker: false });
    }
    skipped.iter().for_each(|&t| p.tensors[t as usize].skipped = true);
    p
}

#[test]
fn ext_46_through_chains_and_views() {
    let chain: [&[u32]; 5] = [&[0], &[1], &[2], &[3], &[4]];
    assert_eq!(solve(&steps(&chain, &[])).size(0), 64);
    let plan = solve(&steps(&chain, &[2, 3, 4]));
    assert_eq!(plan.size(0), 128, "the result lies beside what the first skipped step reads");
    assert_eq!(plan.took, [Some(0), None, None, None, None]);
    // 3 views 2: reading it is reading 1
    let mut p = steps(&[&[0], &[1], &[2], &[0], &[3]], &[2]);
    p.tensors[3].root = 2;
    p.tensors[0].output = true;
    let plan = solve(&p);
    assert_eq!((plan.slots[2], plan.slots[3], plan.size(0)), (None, None, 4 * 64));
    let places = [1, 4, 5].map(|t: usize| plan.slots[t].unwrap().place.offset);
    assert!(places[0] != places[1] && places[0] != places[2], "{places:?}");
    // and over when the view was read for the last time
    let mut p = steps(&[&[0], &[1], &[2], &[3], &[4, 4]], &[2]);
    p.tensors[3].root = 2;
    assert_eq!(solve(&p).size(0), 128, "the last one lies where 1 lay");
}

#[test]
fn ext_46_two_readers_and_none() {
    // 2 is skipped and read at steps 3 and 5; 1, which it is computed from, is free from then on only
    let list: [&[u32]; 7] = [&[0], &[1], &[2], &[3], &[2, 4], &[5], &[6]];
    let plan = solve(&steps(&list, &[2]));
    let place = |t: usize| plan.slots[t].unwrap().place.offset;
    assert!((3..=5).all(|t| place(t) != place(1)));
    assert_eq!(plan.took[5..], [Some(0), Some(0)]);
    // nobody reads it: it may be wanted at any time
    let plan = solve(&steps(&[&[0], &[1], &[0], &[3], &[4]], &[2]));
    assert!((3..=5).all(|t| plan.slots[t].unwrap().place.offset != plan.slots[1].unwrap().place.offset));
    // read before its step: it has no lifetime
    solve(&steps(&[&[0], &[3], &[1], &[2]], &[3]));
    // its own source, as a cast is; and nothing else's
    let plan = solve(&steps(&[&[0], &[1, 2], &[2], &[3], &[4, 4]], &[2]));
    assert_eq!(plan.took, [Some(0), None, None, Some(0), None]);
    assert_eq!(plan.size(0), 128, "the last one lies where 1 lay");
    solve(&steps(&[&[0], &[1, 2], &[1], &[3]], &[2]));
}

#[test]
fn ext_47_an_inner_owner_holds_the_result() {
    // 2 owns the storage that 4 writes, from 3, which is skipped: 2 must not lie over 1, which the whole is computed from
    let mut p = steps(&[&[0], &[1], &[2], &[2, 3]], &[3]);
    p.tensors[4].root = 2;
    let plan = solve(&p);
    assert_eq!(plan.took, [Some(0), None, None, None]);
    assert_ne!(plan.slots[2].unwrap().place, plan.slots[1].unwrap().place);
}

#[test]
fn many_skipped_tensors_cost_linear_time() {
    // every step reads the two before it: counted by paths this would be 2 to the power of 5000
    let n = if cfg!(miri) { 40 } else { 5000 };
    let list: Vec<Vec<u32>> = (0..n).map(|i: u32| vec![i, i.saturating_sub(1)]).collect();
    let list: Vec<&[u32]> = list.iter().map(Vec::as_slice).collect();
    let p = steps(&list, &(1..n).collect::<Vec<_>>());
    let plan = plan(&p, &mut |_, _| 64).unwrap();
    assert_eq!(plan.size(0), 128);
}
