//! Each rule by itself: what may be fused at all (EXT-40, EXT-41).

use crate::ext::facts::{Facts, Tensor, Uses};
use crate::ext::legality::{check, Match, Refusal};
use crate::graph::testing::{flag, Bench};
use crate::graph::{self, build, memory};
use ggml_oxide_abi::*;
use ggml_oxide_cpu::custom;

pub(super) type T = *mut ggml_tensor;

/// The verdict on nodes `first..first + n` of all that `graph` has.
pub(super) fn judge(graph: *mut ggml_cgraph, first: usize, n: usize) -> Result<Match, Refusal> {
    // SAFETY: a bench's graph.
    unsafe { check(&Facts::read(graph::nodes(&*graph), &Uses::of(&*graph)).unwrap(), first, n) }
}

/// The verdict on all nodes of the graph that ends in `results`.
pub(super) fn all(b: &mut Bench, results: &[T]) -> Result<Match, Refusal> {
    let graph = b.graph(results);
    // SAFETY: a bench's graph.
    let n = unsafe { (*graph).n_nodes } as usize;
    judge(graph, 0, n)
}

/// `op` over `a` in place, with another source.
pub(super) fn over(b: &mut Bench, op: ggml_op, a: T, other: Option<T>) -> T {
    // SAFETY: tensors of the bench.
    unsafe {
        let t = b.alias(op, a, &(*a).ne, Some((*a).nb), 0);
        if let Some(other) = other {
            (*t).src[1] = other;
        }
        t
    }
}

/// A copy of `a` into `to`.
pub(super) fn cpy(b: &mut Bench, a: T, to: T) -> T {
    // SAFETY: tensors of the bench.
    unsafe {
        let t = b.alias(GGML_OP_CPY, to, &(*to).ne, Some((*to).nb), 0);
        (*t).src[0] = a;
        (*t).src[1] = to;
        t
    }
}

pub(super) fn cast(b: &mut Bench, a: T) -> T {
    // SAFETY: tensors of the bench.
    unsafe {
        let t = b.node(GGML_OP_CPY, GGML_TYPE_F16, &(*a).ne, &[a]);
        (*t).src[1] = t;
        t
    }
}

/// RMS_NORM of a new leaf, and MUL of that with another; returns both nodes and the leafs.
pub(super) fn pair(b: &mut Bench) -> ([T; 2], [T; 2]) {
    let (x, w) = (b.leaf(8), b.leaf(8));
    let norm = b.op(GGML_OP_RMS_NORM, &[x]);
    let mul = b.op(GGML_OP_MUL, &[norm, w]);
    ([norm, mul], [x, w])
}

pub(super) fn legal(skipped: &[usize], externals: usize, owner: Option<usize>) -> Result<Match, Refusal> {
    Ok(Match { skipped: skipped.to_vec(), externals: (0..externals).map(Tensor::Outside).collect(), owner })
}

#[test]
fn ext_40_a_match_has_two_nodes_or_more_and_they_are_there() {
    let mut b = Bench::new();
    let ([_, mul], _) = pair(&mut b);
    let g = b.graph(&[mul]);
    assert_eq!(judge(g, 0, 2), legal(&[0], 2, None));
    assert_eq!(judge(g, 0, 0), Err(Refusal::TooFew { n: 0 }));
    assert_eq!(judge(g, 0, 1), Err(Refusal::TooFew { n: 1 }));
    for (first, n) in [(1, 2), (0, 3), (2, 2), (7, 2), (usize::MAX, 2), (1, usize::MAX)] {
        assert_eq!(judge(g, first, n), Err(Refusal::OutOfRange { first, n, nodes: 2 }));
    }
}

#[test]
fn ext_41_what_is_read_from_outside_is_told_once_in_order() {
    let mut b = Bench::new();
    let ([norm, mul], [x, w]) = pair(&mut b);
    let before = b.scale(w, 3);
    let sum = b.add(mul, before);
    let end = b.add(sum, x);
    let g = b.graph(&[before, end]);
    // SAFETY: the bench's.
    let facts = unsafe { Facts::read(graph::nodes(&*g), &Uses::of(&*g)).unwrap() };
    let m = check(&facts, 1, 4).unwrap();
    assert_eq!(m.externals.iter().map(|&t| facts.tensor(t)).collect::<Vec<_>>(), [x, w, before]);
    assert_eq!(m.externals[2], Tensor::Node(0));
    assert_eq!((m.skipped, facts.tensor(Tensor::Node(1))), (vec![1, 2, 3], norm));
    assert!(facts.tensor(Tensor::Outside(9)).is_null() && facts.tensor(Tensor::Node(9)).is_null());
}

#[test]
fn ext_41_all_nodes_are_to_be_computed() {
    for which in 0..2 {
        let mut b = Bench::new();
        let (nodes, _) = pair(&mut b);
        let g = b.graph(&[nodes[1]]);
        // SAFETY: the bench's.
        unsafe { (*nodes[which]).flags &= !GGML_TENSOR_FLAG_COMPUTE.0 };
        assert_eq!(judge(g, 0, 2), Err(Refusal::NotComputed { node: which }));
    }
}

#[test]
fn ext_41_a_consumer_outside_refuses() {
    let mut b = Bench::new();
    let ([norm, mul], [x, _]) = pair(&mut b);
    let other = b.add(x, norm);
    let g = b.graph(&[mul, other]);
    assert_eq!(judge(g, 0, 2), Err(Refusal::Consumed { node: 0, outside: 1 }));
    // one that reads it twice from inside is none
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let twice = b.add(norm, norm);
    let end = b.add(twice, mul);
    assert_eq!(all(&mut b, &[end]), legal(&[0, 1, 2], 2, None));
}

#[test]
fn ext_41_a_consumer_in_another_portion_counts() {
    let mut b = Bench::new();
    let ([norm, mul], [x, _]) = pair(&mut b);
    let other = b.add(x, norm);
    let g = b.graph(&[mul, other]);
    // SAFETY: the bench's, for all of the test.
    unsafe {
        let nodes = &graph::nodes(&*g)[..2];
        let refused = Err(Refusal::Consumed { node: 0, outside: 1 });
        assert_eq!(check(&Facts::read(nodes, &Uses::of(&*g)).unwrap(), 0, 2), refused);
        // a view of the graph knows by the graph's record
        assert_eq!(check(&Facts::read(nodes, &Uses::of(&memory::view(&*g, 0, 2))).unwrap(), 0, 2), refused);
        // without a record the nodes are counted
        let bare = ggml_cgraph { use_counts: std::ptr::null_mut(), ..*g };
        assert_eq!(check(&Facts::read(nodes, &Uses::of(&bare)).unwrap(), 0, 2), refused);
        // nodes that were put in by hand have consumers that the record lacks, and it knows others
        let by_hand = memory::new(&mut b.ctx, 64, false).unwrap();
        build::expand(&mut *by_hand, norm, true).unwrap();
        build::add_node(&mut *by_hand, mul).unwrap();
        build::expand(&mut *by_hand, other, true).unwrap();
        (*mul).flags |= GGML_TENSOR_FLAG_COMPUTE.0;
        let uses = Uses::of(&memory::view(&*by_hand, 0, 2));
        assert_eq!(uses.get(norm), 2);
        assert_eq!(check(&Facts::read(nodes, &uses).unwrap(), 0, 2), refused);
    }
}

#[test]
fn ext_41_a_consumer_that_was_given_a_copy_counts() {
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let g = b.graph(&[mul]);
    // SAFETY: the bench's, for all of the test.
    unsafe {
        let mut uses = Uses::of(&*g);
        assert_eq!((uses.get(norm), uses.get(mul)), (1, 0));
        uses.add(mul);
        assert!(check(&Facts::read(graph::nodes(&*g), &uses).unwrap(), 0, 2).is_ok());
        uses.add(norm);
        let verdict = check(&Facts::read(graph::nodes(&*g), &uses).unwrap(), 0, 2);
        assert_eq!(verdict, Err(Refusal::Consumed { node: 0, outside: 1 }));
    }
}

#[test]
fn ext_41_an_output_stays_unless_it_is_the_result() {
    let mut b = Bench::new();
    let ([_, mul], _) = pair(&mut b);
    flag(mul, GGML_TENSOR_FLAG_OUTPUT);
    assert!(all(&mut b, &[mul]).is_ok());
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    flag(norm, GGML_TENSOR_FLAG_OUTPUT);
    assert_eq!(all(&mut b, &[mul]), Err(Refusal::Output { node: 0 }));
}

#[test]
fn ext_41_inputs_parameters_and_losses_stay() {
    let flags = [
        (GGML_TENSOR_FLAG_INPUT, "an input"),
        (GGML_TENSOR_FLAG_PARAM, "a parameter"),
        (GGML_TENSOR_FLAG_LOSS, "a loss"),
    ];
    for (which, name) in flags {
        for node in 0..2 {
            let mut b = Bench::new();
            let (nodes, _) = pair(&mut b);
            flag(nodes[node], which);
            assert_eq!(all(&mut b, &[nodes[1]]), Err(Refusal::Flagged { node, flag: name }));
        }
        // what is read from outside may be any of them
        let mut b = Bench::new();
        let ([_, mul], [x, _]) = pair(&mut b);
        flag(x, which);
        let g = b.graph(&[mul]);
        // SAFETY: the bench's. A parameter is a node itself.
        let first = unsafe { (*g).n_nodes } as usize - 2;
        assert!(judge(g, first, 2).is_ok());
    }
}

#[test]
fn ext_41_only_pure_operators() {
    let impure = [
        GGML_OP_MAP_CUSTOM1,
        GGML_OP_MAP_CUSTOM3,
        GGML_OP_CUSTOM,
        GGML_OP_OPT_STEP_SGD,
        GGML_OP_CROSS_ENTROPY_LOSS,
        GGML_OP_SSM_SCAN,
        GGML_OP_RMS_NORM_BACK,
        ggml_op(4711),
    ];
    for op in impure {
        for node in 0..2 {
            let mut b = Bench::new();
            let (nodes, _) = pair(&mut b);
            // SAFETY: the bench's.
            unsafe { (*nodes[node]).op = op };
            assert_eq!(all(&mut b, &[nodes[1]]), Err(Refusal::NotPure { node, op }));
        }
    }
    // an operator of a registration is pure, an ordinary callback is not: the function tells
    for (function, good) in [(custom::marker as *const () as usize, true), (4096, false), (0, false)] {
        let mut b = Bench::new();
        let ([_, mul], _) = pair(&mut b);
        // SAFETY: the bench's; the parameters begin with the function.
        unsafe {
            (*mul).op = GGML_OP_CUSTOM;
            (&raw mut (*mul).op_params).cast::<usize>().write_unaligned(function);
        }
        assert_eq!(all(&mut b, &[mul]).is_ok(), good);
    }
}

#[test]
fn ext_41_a_node_that_nobody_reads_is_a_result() {
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let alone = b.scale(x, 2);
    let g = b.graph(&[alone, mul]);
    assert_eq!(judge(g, 0, 3), Err(Refusal::Unread { node: 0 }));
    assert!(judge(g, 1, 2).is_ok());
    // a conversion reads itself, which makes it no less a result
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let alone = cast(&mut b, x);
    assert_eq!(all(&mut b, &[alone, mul]), Err(Refusal::Unread { node: 0 }));
}

#[test]
fn ext_41_a_step_reads_64_tensors_at_most() {
    for leafs in [64, 65] {
        let mut b = Bench::new();
        let mut sum = b.leaf(4);
        for _ in 1..leafs {
            let leaf = b.leaf(4);
            sum = b.add(sum, leaf);
        }
        let verdict = all(&mut b, &[sum]);
        match leafs {
            64 => assert_eq!(verdict.unwrap().externals.len(), 64),
            _ => assert_eq!(verdict, Err(Refusal::TooManyInputs { node: 63 })),
        }
    }
}

#[test]
fn ext_41_the_order_of_the_nodes_is_that_of_their_edges() {
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let end = b.add(norm, mul);
    let g = b.graph(&[end]);
    // SAFETY: the bench's, for all of the test.
    unsafe {
        let swap = || (*g).nodes.swap((*g).nodes.add(1));
        swap();
        assert_eq!(judge(g, 0, 3), Err(Refusal::Order { node: 0, source: 1 }));
        swap();
        // itself is no earlier node either
        (*mul).src[1] = mul;
        assert_eq!(judge(g, 0, 3), Err(Refusal::Order { node: 1, source: 1 }));
    }
    // twice in the graph, once in the match
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let g = b.graph(&[mul]);
    // SAFETY: the bench's.
    unsafe { build::add_node(&mut *g, norm).unwrap() };
    assert_eq!(judge(g, 0, 2), Err(Refusal::Repeated { node: 0 }));
}

#[test]
fn ext_41_every_refusal_says_what_and_where() {
    let (node, op) = (17, GGML_OP_MAP_CUSTOM1);
    let refusals = [
        Refusal::Repeated { node },
        Refusal::NotComputed { node },
        Refusal::Flagged { node, flag: "a parameter" },
        Refusal::NotPure { node, op },
        Refusal::UnknownWrite { node, op },
        Refusal::ForeignView { node },
        Refusal::ForeignWrite { node },
        Refusal::EndsInView { node },
        Refusal::PartOfOwner { node, owner: 16 },
        Refusal::Order { node, source: 18 },
        Refusal::Overwritten { node, source: 15, writer: 16 },
        Refusal::TooManyInputs { node },
        Refusal::Output { node },
        Refusal::Consumed { node, outside: 2 },
        Refusal::Unread { node },
        Refusal::Loose { node },
        Refusal::Allocated { node },
        Refusal::OverInput { node },
    ];
    let texts: Vec<String> = refusals.iter().map(|r| r.to_string()).collect();
    for (i, text) in texts.iter().enumerate() {
        assert!(text.contains("node 17") && text.len() > 25 && !text.ends_with('.'), "{text}");
        assert_eq!(refusals[i].node(), Some(17));
        assert_eq!(texts.iter().filter(|t| *t == text).count(), 1);
    }
    assert!(texts[3].contains("MAP_CUSTOM1") && texts[2].contains("a parameter"));
    assert_eq!(Refusal::TooFew { n: 1 }.to_string(), "a match of 1 nodes is no fusion, it takes two");
    let text = Refusal::OutOfRange { first: 3, n: 4, nodes: 5 }.to_string();
    assert_eq!(text, "a match of 4 nodes from node 3 on leaves the portion, which has 5");
    assert_eq!(Refusal::TooFew { n: 1 }.node(), None);
}
