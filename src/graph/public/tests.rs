//! Leafs, counts, mapped copies, segments and ranges, of graphs that the library made and of graphs put together by hand.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::testing::*;
use crate::graph::{build, checked_leafs, checked_nodes, fault, is_incomplete, memory, nodes, use_count};
use crate::tensor::new_tensor;

/// A graph put together by hand around a list of nodes: no room, no set, no counts.
fn bare(list: &mut [*mut ggml_tensor]) -> ggml_cgraph {
    ggml_cgraph {
        size: 0,
        n_nodes: list.len() as i32,
        n_leafs: 0,
        nodes: list.as_mut_ptr(),
        grads: null_mut(),
        grad_accs: null_mut(),
        leafs: null_mut(),
        use_counts: null_mut(),
        visited_hash_set: ggml_hash_set { size: 0, used: null_mut(), keys: null_mut() },
        order: GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT,
        uid: 0,
    }
}

/// All that a graph says: its lists and the counts of its tensors.
type Said = (Vec<*mut ggml_tensor>, Vec<*mut ggml_tensor>, Vec<Option<i32>>);

fn said(g: &ggml_cgraph, about: &[*mut ggml_tensor]) -> Said {
    // SAFETY: graphs of these tests.
    unsafe {
        let (nodes, leafs) = (checked_nodes(g).unwrap().to_vec(), checked_leafs(g).unwrap().to_vec());
        (nodes, leafs, about.iter().map(|&t| recorded(g, t)).collect())
    }
}

/// `x, y` leafs; `p = x * 2`, `q = p + y`, `r = q + p`; the graph and its tensors in that order.
fn sample(b: &mut Bench) -> (*mut ggml_cgraph, [*mut ggml_tensor; 5]) {
    let (x, y) = (b.leaf(4), b.leaf(4));
    let p = b.scale(x, 2);
    let q = b.add(p, y);
    let r = b.add(q, p);
    (b.graph(&[r]), [x, y, p, q, r])
}

fn copies(b: &mut Bench) -> [*mut ggml_tensor; 5] {
    std::array::from_fn(|_| new_tensor(&mut b.ctx, "copy", GGML_TYPE_F32, &[4]))
}

#[test]
fn leafs_by_number_and_appended() {
    let mut b = Bench::new();
    let (g, [x, y, p, ..]) = sample(&mut b);
    // SAFETY: the bench's.
    unsafe {
        let g = &mut *g;
        assert_eq!(n_leafs(g).unwrap(), 2);
        assert_eq!([0, 1, -1, -2].map(|i| leaf(g, i).unwrap()), [x, y, y, x]);
        for i in [2, -3, i32::MIN, i32::MAX] {
            assert!(leaf(g, i).unwrap_err().text.contains("2 leafs"), "{i}");
        }
        append_leaf(g, p).unwrap();
        append_leaf(g, x).unwrap();
        assert_eq!(checked_leafs(g).unwrap(), [x, y, p, x], "as they stand: known ones too");
        assert_eq!((recorded(g, p), recorded(g, x)), (Some(2), Some(1)));
        assert_eq!(append_leaf(g, null_mut()).unwrap_err().code, GGML_EXT_CODE_NULL_ARGUMENT);
        let z = b.leaf(4);
        append_leaf(g, z).unwrap();
        assert_eq!(recorded(g, z), None, "not recorded");

        let small = &mut *memory::new(&mut b.ctx, 1, false).unwrap();
        append_leaf(small, x).unwrap();
        let error = append_leaf(small, y).unwrap_err();
        assert_eq!(error.code, GGML_EXT_CODE_OUT_OF_MEMORY);
        assert_eq!((checked_leafs(small).unwrap(), is_incomplete(small)), (&[x][..], false));
        let mut part = memory::view(g, 0, 2);
        assert!(append_leaf(&mut part, x).is_err() && n_leafs(&part).unwrap() == 0);
    }
}

#[test]
fn leafs_of_graphs_made_by_hand() {
    let mut b = Bench::new();
    let x = b.leaf(1);
    let mut list = [x];
    let mut g = bare(&mut []);
    // SAFETY: as large as it says, except where the test is about that and nothing may be followed.
    unsafe {
        assert_eq!(n_leafs(&g).unwrap(), 0);
        assert!(append_leaf(&mut g, x).is_err());
        g.size = 4;
        assert!(append_leaf(&mut g, x).is_err(), "no list");
        for n in [-1, 3] {
            g.n_leafs = n;
            assert!(n_leafs(&g).is_err() && leaf(&g, 0).is_err() && append_leaf(&mut g, x).is_err(), "{n}");
        }
        (g.n_leafs, g.leafs) = (1, list.as_mut_ptr());
        assert_eq!(leaf(&g, 0).unwrap(), x);
        *g.leafs = null_mut();
        assert!(leaf(&g, -1).unwrap_err().text.contains("NULL"));
    }
}

#[test]
fn counts_are_told_from_no_record() {
    let mut b = Bench::new();
    let (g, [x, y, p, q, r]) = sample(&mut b);
    let other = b.leaf(1);
    // SAFETY: the bench's.
    unsafe {
        assert_eq!([x, y, p, q, r].map(|t| recorded(&*g, t)), [1, 1, 2, 1, 0].map(Some));
        assert_eq!(recorded(&*g, other), None);
        assert_eq!(recorded(&memory::view(&*g, 1, 2), p), Some(2), "consumers outside");
        let mut list = [p];
        let mut made = bare(&mut list);
        assert_eq!(recorded(&made, p), None);
        made.visited_hash_set = (*g).visited_hash_set;
        assert_eq!(recorded(&made, p), None, "a set without counts");
        made.use_counts = (*g).use_counts;
        assert_eq!(recorded(&made, p), Some(2), "borrowed");
    }
}

#[test]
fn a_mapped_copy_is_the_same_graph() {
    let mut b = Bench::new();
    let (g, from) = sample(&mut b);
    let to = copies(&mut b);
    let [x, y, p, q, r] = to;
    let dst = memory::new(&mut b.ctx, 3, true).unwrap();
    // SAFETY: the bench's.
    unsafe {
        let dst = &mut *dst;
        dst.uid = 7;
        build::expand(dst, from[2], true).unwrap();
        copy_mapped(&*g, dst, &from, &to).unwrap();
        assert_eq!(said(dst, &to), (vec![p, q, r], vec![x, y], [1, 1, 2, 1, 0].map(Some).to_vec()));
        assert_eq!(from.map(|t| recorded(dst, t)), [None; 5], "what it held is gone");
        assert_eq!((dst.uid, is_incomplete(dst), dst.order), (0, false, (*g).order));
        assert!(to.iter().all(|&t| access_grad(dst, t).is_null()));
        // appended ones, and a tensor without a copy of its own
        append_leaf(&mut *g, from[2]).unwrap();
        let same = [x, from[1], p, q, r];
        copy_mapped(&*g, dst, &from, &same).unwrap();
        assert_eq!(said(dst, &same), (vec![p, q, r], vec![x, from[1], p], [1, 1, 2, 1, 0].map(Some).to_vec()));
        // one that lost something
        let lost = memory::new(&mut b.ctx, 1, false).unwrap();
        assert!(build::expand(&mut *lost, from[4], true).is_err());
        copy_mapped(&*lost, dst, &from, &to).unwrap();
        assert!(fault(dst).is_some());
        // nothing at all
        let empty = memory::new(&mut b.ctx, 1, false).unwrap();
        copy_mapped(&*empty, dst, &[], &[]).unwrap();
        assert_eq!(said(dst, &to[..1]), (vec![], vec![], vec![None]));
        assert!(fault(dst).is_none());
    }
}

unsafe fn access_grad(g: &ggml_cgraph, t: *mut ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: the caller's promise.
    unsafe { crate::graph::access::grad(g, t) }
}

#[test]
fn a_mapped_view_keeps_the_counts_of_the_whole() {
    let mut b = Bench::new();
    let (g, from) = sample(&mut b);
    let to = copies(&mut b);
    let dst = memory::new(&mut b.ctx, 4, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        // q alone; p is read by r too, which lies outside, and q is
        copy_mapped(&memory::view(&*g, 1, 2), &mut *dst, &from, &to).unwrap();
        assert_eq!(said(&*dst, &to), (vec![to[3]], vec![], [1, 1, 2, 1, 0].map(Some).to_vec()));
        // only what is a node needs a partner
        copy_mapped(&memory::view(&*g, 1, 2), &mut *dst, &from[3..4], &to[3..4]).unwrap();
        assert_eq!(said(&*dst, &to), (vec![to[3]], vec![], vec![None, None, None, Some(1), None]));
    }
}

#[test]
fn bad_mappings_change_nothing_and_name_the_tensor() {
    let mut b = Bench::new();
    let (g, from) = sample(&mut b);
    let to = copies(&mut b);
    let kept = b.leaf(4);
    let result = b.scale(kept, 3);
    let dst = memory::new(&mut b.ctx, 4, false).unwrap();
    let small = memory::new(&mut b.ctx, 2, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        let (g, dst) = (&*g, &mut *dst);
        build::expand(dst, result, true).unwrap();
        dst.uid = 7;
        let everything: Vec<_> = from.iter().chain(&to).copied().chain([kept, result]).collect();
        let before = said(dst, &everything);
        let mut refuse =
            |from: &[*mut ggml_tensor], to: &[*mut ggml_tensor], code, tensor: *mut ggml_tensor, text: &str| {
                let refused = copy_mapped(g, dst, from, to).unwrap_err();
                assert!(refused.error.text.contains(text), "{}", refused.error.text);
                assert_eq!((refused.error.code, refused.tensor), (code, tensor), "{text}");
                assert_eq!(said(dst, &everything), before, "{text}");
                assert_eq!((dst.uid, is_incomplete(dst)), (7, false), "{text}");
            };
        let (argument, null) = (GGML_EXT_CODE_BAD_ARGUMENT, GGML_EXT_CODE_NULL_ARGUMENT);
        let [x, y, p, q, r] = from;
        refuse(&[], &[], argument, p, "no partner");
        refuse(&[y, p, q, r], &to[1..], argument, x, "leaf 'leaf_0' has no partner");
        refuse(&[x, y, p, r], &to[..4], argument, q, "node 'node_1' has no partner");
        refuse(&from, &[to[0], to[1], to[2], to[3], to[0]], argument, r, "stands for another");
        refuse(&[x, y, p, q, r, q], &[to[0], to[1], to[2], to[3], to[4], kept], argument, q, "an earlier pair");
        refuse(&[x, y, p, null_mut(), r], &to, null, null_mut(), "pair 3 of the mapping");
        refuse(&from, &[to[0], to[1], null_mut(), to[3], to[4]], null, p, "its copy is NULL");

        let refused = copy_mapped(g, &mut *small, &from, &to).unwrap_err();
        assert_eq!(refused.error.code, GGML_EXT_CODE_OUT_OF_MEMORY);
        assert_eq!(said(&*small, &to), (vec![], vec![], vec![None; 5]));
    }
}

#[test]
fn what_is_not_mapped_from_or_to() {
    let mut b = Bench::new();
    let (g, from) = sample(&mut b);
    let to = copies(&mut b);
    // SAFETY: the bench's; what is made by hand is as large as it says.
    unsafe {
        let refused =
            |src: &ggml_cgraph, dst: &mut ggml_cgraph| copy_mapped(src, dst, &from, &to).unwrap_err().error.text;
        let before = said(&*g, &from);
        // a view, and parts of the source itself
        assert!(refused(&*g, &mut memory::view(&*g, 0, 1)).contains("of its own"));
        let mut alias = *g;
        assert!(refused(&*g, &mut alias).contains("of its own"));
        let mut nodes_of_own = [null_mut(); 4];
        let mut leafs_of_own = [null_mut(); 4];
        (alias.nodes, alias.leafs) = (nodes_of_own.as_mut_ptr(), leafs_of_own.as_mut_ptr());
        assert!(refused(&*g, &mut alias).contains("of its own"), "the set is the source's");
        assert_eq!(said(&*g, &from), before);
        // made by hand without a set
        let mut dst = bare(&mut nodes_of_own);
        (dst.size, dst.n_nodes, dst.leafs) = (4, 0, leafs_of_own.as_mut_ptr());
        assert!(refused(&*g, &mut dst).contains("and 0 consumer counts"));
        // fine where there are no counts to keep
        let mut list = [from[2], from[3], from[4]];
        let source = bare(&mut list);
        copy_mapped(&source, &mut dst, &from, &to).unwrap();
        assert_eq!(said(&dst, &to), (to[2..].to_vec(), vec![], vec![None; 5]));
        dst.leafs = null_mut();
        assert!(refused(&*g, &mut dst).contains("cannot take"));
        // broken lists
        let (mut broken, own) = (source, &mut *memory::new(&mut b.ctx, 8, false).unwrap());
        broken.n_nodes = -1;
        assert!(refused(&broken, own).contains("-1 tensors"));
        (broken.n_nodes, broken.nodes) = (3, null_mut());
        assert!(refused(&broken, own).contains("list"));
        // gradients
        let graded = &mut *memory::new(&mut b.ctx, 8, true).unwrap();
        build::expand(graded, from[4], true).unwrap();
        copy_mapped(graded, own, &from, &to).unwrap();
        let hash::Found::Slot(at) = hash::find(&graded.visited_hash_set, from[3]) else { panic!("not there") };
        *graded.grads.add(at) = from[0];
        assert!(refused(graded, own).contains("gradient"));
    }
}

#[test]
fn segments_have_the_counts_of_the_whole() {
    let mut b = Bench::new();
    let (g, [x, y, p, q, r]) = sample(&mut b);
    let foreign = b.leaf(4);
    let segment = memory::new(&mut b.ctx, 4, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        let s = &mut *segment;
        build::add_node(s, q).unwrap();
        for t in [p, y, foreign] {
            append_leaf(s, t).unwrap();
        }
        assert_eq!([p, q].map(|t| recorded(s, t)), [None, None]);
        copy_use_counts(&*g, s).unwrap();
        let about = [x, y, p, q, r, foreign];
        let want: Said = (vec![q], vec![p, y, foreign], vec![None, Some(1), Some(2), Some(1), None, None]);
        assert_eq!(said(s, &about), want);
        copy_use_counts(&*g, s).unwrap();
        assert_eq!(said(s, &about), want, "again is no change");
        // in the place of its own
        let own = &mut *memory::new(&mut b.ctx, 4, false).unwrap();
        build::expand(own, q, true).unwrap();
        assert_eq!(use_count(own, p), 1);
        copy_use_counts(&*g, own).unwrap();
        assert_eq!([x, p, q, y].map(|t| recorded(own, t)), [1, 2, 1, 1].map(Some));
        // of a view, of a segment
        let again = &mut *memory::new(&mut b.ctx, 4, false).unwrap();
        build::add_node(again, q).unwrap();
        copy_use_counts(&memory::view(&*g, 0, 1), again).unwrap();
        assert_eq!(recorded(again, q), Some(1));
        copy_use_counts(s, again).unwrap();
        assert_eq!(recorded(again, q), Some(1));
        copy_use_counts(again, &mut memory::view(again, 0, 1)).unwrap();
    }
}

#[test]
fn segments_that_take_no_counts() {
    let mut b = Bench::new();
    let (g, [x, _, p, q, r]) = sample(&mut b);
    let foreign = b.add(p, q);
    // SAFETY: the bench's; what is made by hand is as large as it says.
    unsafe {
        let s = &mut *memory::new(&mut b.ctx, 2, false).unwrap();
        build::add_node(s, q).unwrap();
        build::add_node(s, foreign).unwrap();
        let refused = copy_use_counts(&*g, s).unwrap_err();
        assert_eq!((refused.tensor, refused.error.code), (foreign, GGML_EXT_CODE_BAD_ARGUMENT));
        assert_eq!([p, q, foreign].map(|t| recorded(s, t)), [None; 3]);
        // graphs made by hand
        let mut list = [q];
        let mut made = bare(&mut list);
        assert!(copy_use_counts(&made, s).unwrap_err().error.text.contains("no record"));
        assert!(copy_use_counts(&*g, &mut made).unwrap_err().error.text.contains("no counts of its own"));
        made.size = 1;
        assert!(copy_use_counts(&*g, &mut made).is_err());
        (made.visited_hash_set, made.use_counts) = ((*g).visited_hash_set, (*g).use_counts);
        copy_use_counts(&*g, &mut made).unwrap();
        assert_eq!(recorded(&made, p), Some(2), "borrowed counts are the right ones");
        let mut counts = vec![0; (*g).visited_hash_set.size];
        made.use_counts = counts.as_mut_ptr();
        assert!(copy_use_counts(&*g, &mut made).is_err(), "counts of its own by the slots of another");
        made.n_nodes = -1;
        assert!(copy_use_counts(&*g, &mut made).unwrap_err().error.text.contains("-1"));
        // a set that is full of others
        let full = &mut *memory::new(&mut b.ctx, 2, false).unwrap();
        build::add_node(full, r).unwrap();
        while let hash::Found::Free(at) = hash::find(&full.visited_hash_set, null_mut()) {
            let t = b.leaf(1);
            let at = match hash::find(&full.visited_hash_set, t) {
                hash::Found::Free(at) => at,
                _ => at,
            };
            hash::take(&mut full.visited_hash_set, at, t);
        }
        let error = copy_use_counts(&*g, full).unwrap_err().error;
        assert_eq!((error.code, recorded(full, r)), (GGML_EXT_CODE_OUT_OF_MEMORY, None));
        assert_eq!(recorded(&*g, x), Some(1));
    }
}

#[test]
fn ranges_are_not_cut_to_fit() {
    let mut b = Bench::new();
    let (g, [_, _, p, q, _]) = sample(&mut b);
    // SAFETY: the bench's.
    unsafe {
        let part = range(&*g, 1, 3).unwrap();
        assert_eq!((nodes(&part).len(), nodes(&part)[0], recorded(&part, p), part.uid), (2, q, Some(2), 0));
        assert_eq!(range(&*g, 3, 3).unwrap().n_nodes, 0);
        for (i0, i1) in [(-1, 2), (2, 1), (0, 4), (4, 4), (i32::MIN, i32::MAX), (0, -1)] {
            assert!(range(&*g, i0, i1).is_err(), "{i0} {i1}");
        }
        let mut made = bare(&mut []);
        assert_eq!(range(&made, 0, 0).unwrap().n_nodes, 0);
        (made.n_nodes, made.nodes) = (2, null_mut());
        assert!(range(&made, 1, 2).is_err(), "no list to point into");
        made.n_nodes = -2;
        assert!(range(&made, 0, 0).is_err());
    }
}
