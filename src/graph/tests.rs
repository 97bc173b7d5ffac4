//! Growing and reading graphs.
#![allow(clippy::unwrap_used)]

use super::testing::*;
use super::*;
use crate::tensor::Context;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

fn names(list: &[*mut ggml_tensor]) -> Vec<String> {
    // SAFETY: live tensors.
    list.iter().map(|&t| shape::name(unsafe { &*t })).collect()
}

#[test]
fn depth_first_left_to_right_each_once() {
    let mut b = Bench::new();
    let (x, y) = (b.leaf(4), b.leaf(4));
    let p = b.scale(x, 2);
    let q = b.add(p, y);
    let r = b.add(q, p);
    let g = b.graph(&[r]);
    // SAFETY: the bench's.
    unsafe {
        let g = &mut *g;
        assert_eq!(checked_nodes(g).unwrap(), [p, q, r]);
        assert_eq!(checked_leafs(g).unwrap(), [x, y]);
        assert_eq!(names(nodes(g)), ["node_0", "node_1", "node_2"]);
        assert_eq!(names(checked_leafs(g).unwrap()), ["leaf_0", "leaf_1"]);
        assert_eq!([x, y, p, q, r].map(|t| use_count(g, t)), [1, 1, 2, 1, 0]);
        assert!([p, q, r].iter().all(|&t| (*t).flags & GGML_TENSOR_FLAG_COMPUTE.0 != 0));
        assert_eq!((*x).flags & GGML_TENSOR_FLAG_COMPUTE.0, 0);
        assert_eq!(access::node(g, -1).unwrap(), r);
        assert!(access::node(g, 3).is_err() && access::node(g, -4).is_err());
        assert_eq!(access::by_name(g, b"node_1"), q);
        assert_eq!(access::by_name(g, b"node"), null_mut());
        // the other order
        memory::clear(g);
        g.order = GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT;
        build::expand(g, r, true).unwrap();
        assert_eq!(checked_leafs(g).unwrap(), [x, y], "p is the last source of r, so it comes first");
        assert_eq!(nodes(g), [p, q, r]);
    }
}

#[test]
fn marks_reach_what_was_only_ordered() {
    let mut b = Bench::new();
    let x = b.leaf(4);
    let p = b.scale(x, 2);
    let q = b.scale(p, 2);
    let r = b.scale(q, 2);
    let g = b.graph(&[]);
    // SAFETY: the bench's.
    unsafe {
        build::expand(&mut *g, q, false).unwrap();
        assert!([p, q].iter().all(|&t| (*t).flags == 0));
        build::expand(&mut *g, r, true).unwrap();
        assert!([p, q, r].iter().all(|&t| (*t).flags == GGML_TENSOR_FLAG_COMPUTE.0));
        assert_eq!(nodes(&*g), [p, q, r]);
        assert_eq!(use_count(&*g, q), 1);
    }
}

#[test]
fn depth_and_cycles_are_no_danger() {
    let mut b = Bench::new();
    let first = b.leaf(1);
    let mut last = first;
    for _ in 0..10_000 {
        last = b.scale(last, 1);
    }
    let g = memory::new(&mut b.ctx, 10_000, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        build::expand(&mut *g, last, true).unwrap();
        assert_eq!((*g).n_nodes, 10_000);
        (&mut (*first).src)[0] = first;
        (&mut (*first).src)[1] = last;
        build::expand(&mut *g, last, true).unwrap();
        assert_eq!(((*g).n_nodes, (*g).n_leafs), (10_000, 1));
    }
}

#[test]
fn a_full_graph_refuses_and_says_so_when_computed() {
    let mut b = Bench::new();
    let mut t = b.leaf(1);
    for _ in 0..5 {
        t = b.scale(t, 1);
    }
    let g = memory::new(&mut b.ctx, 4, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        let error = build::expand(&mut *g, t, true).unwrap_err();
        assert_eq!(error.code, GGML_EXT_CODE_OUT_OF_MEMORY);
        assert!((*g).n_nodes <= 4 && fault(&*g).is_some() && fault(&view(&*g, 0, 2)).is_some());
        memory::clear(&mut *g);
        assert!(fault(&*g).is_none());
        assert!(build::expand(&mut *g, null_mut(), true).is_err() && fault(&*g).is_some());
    }
}

#[test]
fn graphs_of_clients() {
    let mut b = Bench::new();
    let x = b.leaf(1);
    let p = b.scale(x, 1);
    let mut list = [p, x];
    let empty = ggml_hash_set { size: 0, used: null_mut(), keys: null_mut() };
    let mut g = ggml_cgraph {
        size: 0,
        n_nodes: 1,
        n_leafs: 0,
        nodes: list.as_mut_ptr(),
        grads: null_mut(),
        grad_accs: null_mut(),
        leafs: null_mut(),
        use_counts: null_mut(),
        visited_hash_set: empty,
        order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
        uid: 0,
    };
    // SAFETY: as large as it says.
    unsafe {
        assert_eq!(nodes(&g), [p]);
        assert!(fault(&g).is_none() && !has_use_counts(&g));
        assert_eq!((use_count(&g, p), access::grad(&g, p)), (0, null_mut()));
        assert_eq!(access::by_name(&g, b"none"), null_mut());
        assert!(build::add_node(&mut g, x).is_err() && build::expand(&mut g, x, true).is_err());
        g.order = GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT;
        g.n_nodes = -3;
        assert!(fault(&g).is_some() && nodes(&g).is_empty());
        g.n_nodes = 1;
        *g.nodes = null_mut();
        assert!(fault(&g).is_some());
        g.nodes = null_mut();
        assert!(fault(&g).is_some());
    }
}

#[test]
fn copies_are_the_same_graph() {
    let mut b = Bench::new();
    let (x, y) = (b.leaf(4), b.leaf(4));
    let p = b.add(x, y);
    let q = b.add(p, p);
    let g = b.graph(&[q]);
    let (large, small) = (memory::new(&mut b.ctx, 9000, true).unwrap(), memory::new(&mut b.ctx, 1, false).unwrap());
    // SAFETY: the bench's.
    unsafe {
        memory::copy(&*g, &mut *large).unwrap();
        assert_eq!((nodes(&*large), checked_leafs(&*large).unwrap()), (nodes(&*g), checked_leafs(&*g).unwrap()));
        assert_eq!([x, y, p, q].map(|t| use_count(&*large, t)), [1, 1, 2, 0]);
        assert!(memory::copy(&*g, &mut *small).is_err());
        let v = view(&*g, 1, 9);
        assert_eq!((nodes(&v), v.size, v.n_leafs, use_count(&v, p)), (&[q][..], 0, 0, 2));
    }
}

#[test]
fn overhead_is_what_a_graph_takes() {
    for (size, grads) in [(0, false), (1, false), (7, true), (2048, false), (8192, true)] {
        let bytes = memory::overhead(size, grads);
        // SAFETY: the context allocates its own memory.
        let mut ctx = unsafe { Context::new(bytes, null_mut(), true) }.unwrap();
        memory::new(&mut ctx, size, grads).unwrap();
        assert_eq!(ctx.used(), bytes);
        // SAFETY: as above.
        let mut ctx = unsafe { Context::new(bytes - 16, null_mut(), true) }.unwrap();
        assert!(memory::new(&mut ctx, size, grads).is_err());
    }
    assert_eq!(memory::overhead(usize::MAX, true), usize::MAX);
    assert_eq!(memory::overhead(1 << 40, false), usize::MAX);
    // what clients that were sized by upstream's function set aside
    assert_eq!([memory::overhead(2048, false), memory::overhead(16, true), memory::overhead(0, false)], UPSTREAM);
}

const UPSTREAM: [usize; 3] = [82608, 1440, 160];
