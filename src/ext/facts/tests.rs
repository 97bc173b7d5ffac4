//! Reading portions and counting consumers.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::testing::Bench;
use crate::graph::{self, memory};

#[test]
fn a_portion_that_cannot_be_read_says_why() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let (v, w) = (b.view(x, 0, 8), b.view(x, 0, 8));
    // SAFETY: the bench's, for all of the test.
    unsafe {
        let null = Facts::read(&[x, std::ptr::null_mut()], &Uses::default());
        assert_eq!(null.err().unwrap().text, "node 1 of the graph is NULL");
        (*v).view_src = w;
        assert!(Facts::read(&[v], &Uses::default()).is_ok(), "a view of a view");
        (*w).view_src = v;
        for nodes in [[v, x], [x, w]] {
            let circle = Facts::read(&nodes, &Uses::default()).err().unwrap();
            assert!(circle.text.ends_with("is a view of a view of itself"), "{}", circle.text);
        }
        let read = b.scale(v, 2);
        assert!(Facts::read(&[read], &Uses::default()).is_err(), "a source counts too");
        let g = memory::new(&mut b.ctx, 16, false).unwrap();
        graph::build::add_node(&mut *g, read).unwrap();
        assert_eq!(Uses::of(&*g).get(v), 1, "counting follows no circle");
        let none = Facts::read(&[], &Uses::default()).unwrap();
        assert!(none.is_empty());
    }
}

#[test]
fn a_view_of_a_view_is_traced_to_its_storage() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let p = b.scale(x, 2);
    let (v, w) = (b.view(p, 2, 6), b.view(p, 1, 2));
    // SAFETY: the bench's, for all of the test.
    unsafe {
        // as clients may have it: the view of a view names the view
        (*w).view_src = v;
        let facts = Facts::read(&[p, v, w], &Uses::default()).unwrap();
        let [p, v, w] = [0, 1, 2].map(|at| *facts.at(at));
        assert_eq!([p.root, v.root, w.root], [0, 0, 0]);
        assert_eq!([p.span, v.span, w.span].map(|s| (s.lo, s.hi)), [(0, 32), (8, 32), (12, 20)]);
        assert_eq!(p.span.space, w.span.space);
        assert!(v.span.overlaps(&w.span) && !p.span.overlaps(&facts.number(3).span));
    }
}

#[test]
fn consumers_are_counted_by_source() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let p = b.scale(x, 2);
    let q = b.add(p, p);
    let r = b.add(q, p);
    let g = b.graph(&[r]);
    // SAFETY: the bench's, for all of the test.
    unsafe {
        let counts = |g: &ggml_cgraph| {
            let uses = Uses::of(g);
            [x, p, q, r].map(|t| uses.get(t))
        };
        assert_eq!(counts(&*g), [1, 3, 1, 0]);
        assert_eq!(counts(&ggml_cgraph { use_counts: std::ptr::null_mut(), ..*g }), [1, 3, 1, 0]);
        assert_eq!(counts(&memory::view(&*g, 0, 1))[1..], [3, 0, 0], "by the record");
        let empty = ggml_cgraph { nodes: std::ptr::null_mut(), ..*g };
        assert_eq!(counts(&empty), [0; 4], "a graph that is not what it says");
        let mut uses = Uses::default();
        uses.add(p);
        uses.add(p);
        assert_eq!((uses.get(p), uses.get(q), uses.is_loose(p), uses.is_repeated(p)), (2, 0, false, false));
    }
}

#[test]
fn the_record_and_the_nodes_put_in_by_hand_are_taken_together() {
    let mut b = Bench::new();
    let x = b.leaf(8);
    let p = b.scale(x, 2);
    let (q, r) = (b.scale(p, 3), b.scale(p, 4));
    let g = memory::new(&mut b.ctx, 16, false).unwrap();
    // SAFETY: the bench's, for all of the test.
    unsafe {
        graph::build::expand(&mut *g, q, true).unwrap();
        graph::build::add_node(&mut *g, r).unwrap();
        assert_eq!(Uses::of(&*g).get(p), 2);
        // nodes p and r, without q, which the record knows
        std::slice::from_raw_parts_mut((*g).nodes, 3).swap(1, 2);
        assert_eq!(Uses::of(&memory::view(&*g, 0, 2)).get(p), 2);
        graph::build::add_node(&mut *g, p).unwrap();
        let uses = Uses::of(&*g);
        assert_eq!([p, q, r].map(|t| uses.is_repeated(t)), [true, false, false]);
        assert_eq!(uses.get(p), 2);
    }
}

/// Time and memory grow with the nodes: a hundred thousand of them, proposals at each.
#[test]
fn large_portions() {
    let n = if cfg!(miri) { 50 } else { 100_000 };
    // SAFETY: the context allocates its own memory.
    let ctx = unsafe { crate::tensor::Context::new(n * 600 + (1 << 20), std::ptr::null_mut(), true) };
    let mut b = Bench { ctx: ctx.unwrap() };
    let x = b.leaf(8);
    let mut nodes = Vec::new();
    let mut last = x;
    for _ in 0..n {
        last = b.add(last, x);
        // SAFETY: the bench's.
        unsafe { (*last).flags |= GGML_TENSOR_FLAG_COMPUTE.0 };
        nodes.push(last);
    }
    let graph = ggml_cgraph { n_nodes: n as i32, nodes: nodes.as_mut_ptr(), ..empty() };
    // SAFETY: as above.
    let facts = unsafe { Facts::read(&nodes, &Uses::of(&graph)) }.unwrap();
    assert_eq!(facts.len(), n);
    let legal = |first| crate::ext::legality::check(&facts, first, 3).is_ok();
    assert!((0..n - 2).all(legal) && !legal(n - 2));
    assert_eq!(crate::ext::legality::check(&facts, 0, n).unwrap().skipped.len(), n - 1);
}

fn empty() -> ggml_cgraph {
    ggml_cgraph {
        size: 0,
        n_nodes: 0,
        n_leafs: 0,
        nodes: std::ptr::null_mut(),
        grads: std::ptr::null_mut(),
        grad_accs: std::ptr::null_mut(),
        leafs: std::ptr::null_mut(),
        use_counts: std::ptr::null_mut(),
        visited_hash_set: ggml_hash_set { size: 0, used: std::ptr::null_mut(), keys: std::ptr::null_mut() },
        order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
        uid: 0,
    }
}
