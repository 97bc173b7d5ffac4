//! Properties of plans: what an independent reading of lifetimes says must hold for every graph.
#![allow(clippy::unwrap_used)]

use super::plan::plan;
use super::problem::*;

/// A small generator of numbers; the same for every run.
pub(super) struct Rng(pub u64);
impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(super) fn random_problem(seed: u64) -> Problem {
    let mut r = Rng(seed);
    for _ in 0..8 {
        r.below(2);
    }
    let n_spaces = 1 + r.below(3) as u32;
    let limited = r.one_in(3);
    let mut p = Problem {
        spaces: (0..n_spaces)
            .map(|_| SpaceRule {
                alignment: 1 << r.below(7),
                max_size: if limited { 256 + r.below(512) as usize } else { usize::MAX },
            })
            .collect(),
        ..Problem::default()
    };
    let n_leafs = 1 + r.below(6) as u32;
    for t in 0..n_leafs {
        let mut tensor = Tensor::plain(r.below(300) as usize, r.below(n_spaces.into()) as u32);
        tensor.external = r.one_in(3);
        tensor.input = r.one_in(3);
        tensor.output = r.one_in(8);
        p.tensors.push(tensor);
        if !r.one_in(5) {
            p.leafs.push(t);
        }
    }
    for _ in 0..r.below(40) {
        let n = p.tensors.len() as u64;
        let first = p.srcs.len() as u32;
        let (count, mut reuse) = (1 + r.below(3) as u32, 0);
        for i in 0..count {
            let src = if r.one_in(2) { n.saturating_sub(1 + r.below(3)) } else { r.below(n) } as u32;
            p.srcs.push(src);
            reuse |= u16::from(!r.one_in(3)) << i;
        }
        let src = p.srcs[first as usize];
        let mut tensor = Tensor::plain(r.below(300) as usize, r.below(n_spaces.into()) as u32);
        tensor.output = r.one_in(10);
        tensor.input = r.one_in(20);
        if r.one_in(3) {
            let root = p.tensors[src as usize].root;
            tensor.root = if root == NONE { src } else { root };
            tensor.at_start = r.one_in(2);
        } else if r.one_in(2) {
            tensor.size = p.tensors[src as usize].size;
        }
        p.tensors.push(tensor);
        let count = if tensor.root == NONE { count } else { 1 };
        p.srcs.truncate((first + count) as usize);
        p.nodes.push(Node { tensor: n as u32, first, count, reuse, marker: tensor.root != NONE && r.one_in(6) });
    }
    p
}

/// First and last step at which each tensor's storage holds something that is still wanted.
fn lifetimes(p: &Problem) -> Vec<Option<(u32, u32)>> {
    let owner = |t: u32| if p.tensors[t as usize].root == NONE { t } else { p.tensors[t as usize].root };
    let mut life = vec![None::<(u32, u32)>; p.tensors.len()];
    let mut reads = vec![0; p.tensors.len()];
    for &leaf in &p.leafs {
        life[leaf as usize] = Some((0, 0));
    }
    for (i, node) in p.nodes.iter().enumerate() {
        for &t in p.srcs_of(node).iter().chain([&node.tensor]) {
            let start = if p.tensors[t as usize].input { 0 } else { i as u32 };
            life[t as usize].get_or_insert((start, start));
        }
        for &src in p.srcs_of(node) {
            reads[src as usize] += 1;
            wanted(p, src, i as u32, &mut life);
        }
    }
    // what nobody reads, and what the caller wants to see, lives on; so does what its views live in
    let forever: Vec<u32> = (0..p.tensors.len() as u32)
        .filter(|&t| {
            let computed = p.nodes.iter().any(|n| n.tensor == t && !n.marker);
            let viewed = p.tensors.iter().enumerate().any(|(v, x)| x.root == t && reads[v] > 0);
            let result = reads[t as usize] == 0 && !viewed && (computed || p.tensors[t as usize].root == NONE);
            p.tensors[t as usize].output || result
        })
        .collect();
    for t in forever {
        wanted(p, owner(t), u32::MAX, &mut life);
        wanted(p, t, u32::MAX, &mut life);
    }
    life
}

/// Notes that `t` is read at `step`, and with it all that skipped tensors among it are computed from.
fn wanted(p: &Problem, t: u32, step: u32, life: &mut [Option<(u32, u32)>]) {
    let mut rest = vec![t];
    let mut seen = vec![false; p.tensors.len()];
    while let Some(t) = rest.pop() {
        if std::mem::replace(&mut seen[t as usize], true) {
            continue;
        }
        if let Some(l) = life[t as usize].as_mut() {
            l.1 = l.1.max(step);
        }
        if p.tensors[t as usize].root != NONE {
            rest.push(p.tensors[t as usize].root);
        }
        if p.tensors[t as usize].skipped {
            let steps = p.nodes.iter().filter(|n| n.tensor == t && !n.marker);
            rest.extend(steps.flat_map(|n| p.srcs_of(n)));
        }
    }
}

pub(super) fn check(p: &Problem, plan: &Plan) {
    let life = lifetimes(p);
    let took_at = |a: u32, b: u32, step: u32| {
        let Some(node) = p.nodes.get(step as usize) else { return false };
        let Some(Some(j)) = plan.took.get(step as usize) else { return false };
        let src = p.srcs_of(node)[*j as usize];
        assert!(node.reuse >> j & 1 == 1, "took what it must not");
        let owner = if p.tensors[src as usize].root == NONE { src } else { p.tensors[src as usize].root };
        node.tensor == a && owner == b || node.tensor == b && owner == a
    };
    let mut held = Vec::new();
    for (t, tensor) in p.tensors.iter().enumerate() {
        let named = life[t].is_some();
        assert_eq!(
            plan.slots[t].is_some(),
            named && !tensor.external && !tensor.skipped && tensor.root == NONE,
            "tensor {t}"
        );
        if let (Some(slot), Some(l)) = (plan.slots[t], life[t]) {
            let alignment = p.spaces[slot.space as usize].alignment;
            assert_eq!(slot.place.offset % alignment, 0);
            assert_eq!(slot.size, tensor.size);
            let chunk = plan.chunks[slot.space as usize][slot.place.chunk as usize];
            assert!(slot.place.offset + slot.size <= chunk, "tensor {t} leaves its chunk");
            held.push((t as u32, slot, l));
        }
    }
    for (i, &(a, sa, la)) in held.iter().enumerate() {
        for &(b, sb, lb) in &held[..i] {
            let (from, to) = (la.0.max(lb.0), la.1.min(lb.1));
            let same = sa.space == sb.space && sa.place.chunk == sb.place.chunk;
            let apart = sa.size == 0
                || sb.size == 0
                || sa.place.offset + sa.size <= sb.place.offset
                || sb.place.offset + sb.size <= sa.place.offset;
            let handed_over = from == to && took_at(a, b, from);
            assert!(
                from > to || !same || apart || handed_over,
                "{a} and {b} overlap: {sa:?} {la:?} {sb:?} {lb:?}\n{p:#?}"
            );
        }
    }
}

#[test]
fn no_two_live_tensors_overlap() {
    let n = if cfg!(miri) { 12 } else { 20_000 };
    let (mut took, mut chunked) = (0, 0);
    for seed in 0..n {
        let p = random_problem(seed);
        let result = plan(&p, &mut |t, _| p.tensors[t as usize].size).unwrap();
        check(&p, &result);
        took += result.took.iter().flatten().count();
        chunked += usize::from(result.chunks.iter().any(|c| c.len() > 1));
        assert_eq!(result, plan(&p, &mut |t, _| p.tensors[t as usize].size).unwrap(), "not deterministic");
    }
    assert!(took > n as usize / 2 && chunked >= n as usize / 20, "the generator makes too little: {took} {chunked}");
}

fn chain(n: u32, size: usize, reuse: u16) -> Problem {
    let mut p = Problem { spaces: vec![SpaceRule { alignment: 32, max_size: usize::MAX }], ..Problem::default() };
    p.tensors = vec![Tensor::plain(size, 0); n as usize + 1];
    p.leafs.push(0);
    for i in 0..n {
        p.srcs.push(i);
        p.nodes.push(Node { tensor: i + 1, first: i, count: 1, reuse, marker: false });
    }
    p
}

fn solve(p: &Problem) -> Plan {
    let plan = plan(p, &mut |t, _| p.tensors[t as usize].size).unwrap();
    check(p, &plan);
    plan
}

#[test]
fn a_chain_needs_two_or_one() {
    assert_eq!(solve(&chain(100, 1000, 0)).size(0), 2 * 1024);
    assert_eq!(solve(&chain(100, 1000, 1)).size(0), 1024);
}

#[test]
fn a_cast_that_names_itself_shares_memory() {
    let mut p = chain(100, 1000, 0);
    p.srcs.clear();
    for (i, node) in p.nodes.iter_mut().enumerate() {
        p.srcs.extend([i as u32, i as u32 + 1]);
        (node.first, node.count) = (2 * i as u32, 2);
    }
    let plan = plan(&p, &mut |t, _| p.tensors[t as usize].size).unwrap();
    assert_eq!(plan.size(0), 2 * 1024);
}

#[test]
fn outputs_and_skipped_tensors() {
    let mut p = chain(4, 64, 1);
    p.tensors[2].output = true;
    let plan = solve(&p);
    assert_eq!(plan.size(0), 128, "the output is kept, the rest shares");
    assert_eq!(plan.took, [Some(0), Some(0), None, Some(0)]);
    p.tensors[3].external = true;
    assert_eq!(solve(&p).slots[3], None);
}

#[test]
fn storage_is_taken_through_a_view() {
    let mut p = chain(3, 64, 1);
    p.tensors[2] = Tensor { root: 1, at_start: true, ..p.tensors[2] };
    assert_eq!(solve(&p).size(0), 64);
    p.tensors[2].at_start = false;
    assert_eq!(solve(&p).size(0), 128);
}

#[test]
fn packing_beats_the_walk_where_it_can() {
    // small, large, small, large ...: the walk leaves holes that are too small
    let mut p = Problem { spaces: vec![SpaceRule { alignment: 1, max_size: usize::MAX }], ..Problem::default() };
    p.tensors.push(Tensor { external: true, ..Tensor::plain(0, 0) });
    for (i, size) in [10usize, 20, 11, 21, 12, 40].into_iter().enumerate() {
        p.tensors.push(Tensor::plain(size, 0));
        p.srcs.push(i as u32);
        p.nodes.push(Node { tensor: i as u32 + 1, first: i as u32, count: 1, reuse: 0, marker: false });
    }
    assert_eq!(solve(&p).size(0), 52, "the last two live together: no plan is smaller");
}

#[test]
fn too_large_is_an_error() {
    let mut p = chain(3, 1 << 61, 0);
    p.tensors[0].output = true;
    p.tensors[1].output = true;
    p.tensors[2].output = true;
    p.tensors[3].size = usize::MAX - 5;
    assert_eq!(plan(&p, &mut |_, _| 0), Err(PlanError::TooLarge(3)));
    let mut sum = chain(5, 1 << 62, 0);
    sum.tensors.iter_mut().for_each(|t| t.output = true);
    assert_eq!(plan(&sum, &mut |_, _| 0), Err(PlanError::TooLarge(NONE)), "each fits, all together do not");
    p.srcs[0] = 99;
    assert_eq!(plan(&p, &mut |_, _| 0), Err(PlanError::Malformed));
}
