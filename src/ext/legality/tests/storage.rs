//! Each rule by itself: storage (EXT-42 to EXT-44).

use super::rules::*;
use crate::ext::facts::Tensor;
use crate::ext::legality::{Match, Refusal};
use crate::graph::testing::{flag, Bench};
use crate::graph::{build, memory};
use ggml_oxide_abi::*;

#[test]
fn ext_42_views_of_what_the_match_computes() {
    let mut b = Bench::new();
    let ([norm, _], _) = pair(&mut b);
    let view = b.view(norm, 2, 4);
    let again = b.view(view, 1, 2);
    let end = b.scale(again, 2);
    assert_eq!(all(&mut b, &[end]), legal(&[0, 1, 2], 1, None));
    // a view of what somebody else computes
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let view = b.view(x, 0, 8);
    let end = b.add(mul, view);
    assert_eq!(all(&mut b, &[end]), Err(Refusal::ForeignView { node: 2 }));
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let view = b.view(norm, 0, 8);
    let end = b.add(mul, view);
    let g = b.graph(&[end]);
    assert_eq!(judge(g, 1, 3), Err(Refusal::ForeignView { node: 2 }), "the owner is before the match");
}

#[test]
fn ext_42_a_consumer_of_a_view_refuses() {
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let view = b.view(norm, 0, 8);
    let end = b.add(mul, view);
    let other = b.scale(view, 2);
    assert_eq!(judge(b.graph(&[end, other]), 0, 4), Err(Refusal::Consumed { node: 2, outside: 1 }));
    // the view is outside itself
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let view = b.view(norm, 0, 8);
    let other = b.scale(view, 2);
    assert_eq!(judge(b.graph(&[mul, other]), 0, 2), Err(Refusal::Consumed { node: 0, outside: 1 }));
}

#[test]
fn ext_42_a_view_without_an_edge_refuses() {
    // looked at by a node that comes later, through a tensor that is no node
    let mut b = Bench::new();
    let ([norm, mul], [x, _]) = pair(&mut b);
    let look = |b: &mut Bench, t: T| {
        let look = b.view(t, 0, 8);
        // SAFETY: the bench's.
        unsafe {
            (*look).op = GGML_OP_NONE;
            (*look).src[0] = std::ptr::null_mut();
        }
        look
    };
    let loose = look(&mut b, norm);
    let other = b.add(x, loose);
    assert_eq!(judge(b.graph(&[mul, other]), 0, 2), Err(Refusal::Loose { node: 0 }));
    // by nobody in the graph, but the graph has it
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let loose = look(&mut b, norm);
    assert_eq!(judge(b.graph(&[mul, loose]), 0, 2), Err(Refusal::Loose { node: 0 }));
    // by a node of the match, which then reads what the graph does not say
    let mut b = Bench::new();
    let ([_, mul], _) = pair(&mut b);
    let loose = look(&mut b, mul);
    let early = b.op(GGML_OP_SQR, &[loose]);
    let end = b.add(mul, early);
    assert!(matches!(judge(b.graph(&[end]), 0, 4), Err(Refusal::Loose { .. })));
}

#[test]
fn ext_42_in_place_over_an_earlier_node_of_the_match() {
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let sum = over(&mut b, GGML_OP_ADD, mul, Some(x));
    let end = b.scale(sum, 2);
    let g = b.graph(&[end]);
    assert_eq!(judge(g, 0, 4), legal(&[0, 1, 2], 2, None));
    assert_eq!(judge(g, 2, 2), Err(Refusal::ForeignWrite { node: 2 }), "the owner is before the match");
    // over a leaf
    let mut b = Bench::new();
    let x = b.leaf(8);
    let sum = over(&mut b, GGML_OP_SQR, x, None);
    let end = b.scale(sum, 2);
    assert_eq!(all(&mut b, &[end]), Err(Refusal::ForeignWrite { node: 0 }));
}

#[test]
fn ext_42_values_that_were_replaced_are_not_read() {
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let sum = over(&mut b, GGML_OP_ADD, mul, Some(x));
    let end = b.add(sum, mul);
    assert_eq!(all(&mut b, &[end]), Err(Refusal::Overwritten { node: 3, source: 1, writer: 2 }));
    // one half is written, the other is read
    for (from, replaced) in [(0, true), (4, false)] {
        let mut b = Bench::new();
        let ([_, mul], _) = pair(&mut b);
        let (half, other) = (b.view(mul, 0, 4), b.view(mul, from, 4));
        let sqr = over(&mut b, GGML_OP_SQR, half, None);
        let end = b.add(sqr, other);
        let g = memory::new(&mut b.ctx, 64, false).unwrap();
        // SAFETY: the bench's.
        unsafe {
            build::expand(&mut *g, other, true).unwrap();
            build::expand(&mut *g, end, true).unwrap();
        }
        let expected = Err(Refusal::Overwritten { node: 5, source: 2, writer: 4 });
        assert_eq!(judge(g, 0, 6), if replaced { expected } else { legal(&[0, 1, 2, 3, 4], 2, None) });
    }
}

#[test]
fn ext_42_in_place_only_where_the_operator_is_known_for_it() {
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    // MUL_MAT has no form in place; ADD has one over its first source only, and over all of it
    for case in 0..3 {
        let t = match case {
            0 => over(&mut b, GGML_OP_MUL_MAT, mul, Some(norm)),
            1 => {
                let t = over(&mut b, GGML_OP_ADD, mul, None);
                // SAFETY: the bench's.
                unsafe { (&mut (*t).src)[..2].copy_from_slice(&[norm, mul]) };
                t
            }
            _ => b.alias(GGML_OP_SQR, mul, &[4], None, 8),
        };
        let op = [GGML_OP_MUL_MAT, GGML_OP_ADD, GGML_OP_SQR][case];
        let end = b.op(GGML_OP_SUM, &[t]);
        assert_eq!(all(&mut b, &[end]), Err(Refusal::UnknownWrite { node: 2, op }));
    }
}

#[test]
fn ext_43_the_result_may_be_a_conversion_or_a_copy_at_the_end() {
    let mut b = Bench::new();
    let ([_, mul], _) = pair(&mut b);
    let half = cast(&mut b, mul);
    assert_eq!(all(&mut b, &[half]), legal(&[0, 1], 2, None));
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let to = b.leaf(8);
    let copy = cpy(&mut b, mul, to);
    assert_eq!(all(&mut b, &[copy]), legal(&[0, 1], 3, None));
    // over an input of the match
    let copy = cpy(&mut b, mul, x);
    assert_eq!(all(&mut b, &[copy]), legal(&[0, 1], 2, None));
    // into part of a cache
    let view = b.view(to, 0, 8);
    let copy = cpy(&mut b, mul, view);
    let g = b.graph(&[view, copy]);
    assert_eq!(judge(g, 1, 3).unwrap().owner, None);
    // not at the end
    let after = b.scale(copy, 2);
    let g = b.graph(&[view, after]);
    assert_eq!(judge(g, 1, 4), Err(Refusal::ForeignWrite { node: 3 }));
}

#[test]
fn ext_43_no_other_write_to_storage_outside() {
    let others = [GGML_OP_SET, GGML_OP_ACC, GGML_OP_ADD, GGML_OP_SCALE, GGML_OP_SOFT_MAX, GGML_OP_ROPE];
    for op in others {
        let mut b = Bench::new();
        let ([_, mul], _) = pair(&mut b);
        let to = b.leaf(8);
        let end = over(&mut b, op, to, Some(mul));
        assert_eq!(all(&mut b, &[end]), Err(Refusal::ForeignWrite { node: 2 }));
    }
    let mut b = Bench::new();
    let ([_, mul], [x, _]) = pair(&mut b);
    let to = b.leaf(8);
    let end = over(&mut b, GGML_OP_SET_ROWS, to, None);
    // SAFETY: the bench's.
    unsafe { (&mut (*end).src)[..3].copy_from_slice(&[mul, x, to]) };
    assert_eq!(all(&mut b, &[end]), Err(Refusal::NotPure { node: 2, op: GGML_OP_SET_ROWS }));
}

#[test]
fn ext_43_written_back_to_an_owner_as_a_whole() {
    let back = |change: fn(T), flags: &[ggml_tensor_flag]| {
        let mut b = Bench::new();
        let ([norm, _], [x, w]) = pair(&mut b);
        let sqr = b.op(GGML_OP_SQR, &[w]);
        let sum = b.add(norm, sqr);
        let end = over(&mut b, GGML_OP_ADD, norm, Some(sum));
        change(end);
        flags.iter().for_each(|&f| _ = flag(norm, f));
        let after = b.add(end, x);
        judge(b.graph(&[after]), 0, 4)
    };
    let whole =
        Ok(Match { skipped: vec![1, 2], externals: vec![Tensor::Outside(0), Tensor::Outside(1)], owner: Some(0) });
    assert_eq!(back(|_| (), &[]), whole);
    assert_eq!(back(|_| (), &[GGML_TENSOR_FLAG_OUTPUT]), whole, "the owner's output flag is the result's");
    // a copy may write back too
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let end = cpy(&mut b, mul, norm);
    assert_eq!(all(&mut b, &[end]), legal(&[1], 2, Some(0)));
    // part of it, another shape of it, another place in it
    for (ne, offset) in [([4, 1], 0), ([4, 1], 16), ([4, 2], 0)] {
        let mut b = Bench::new();
        let ([norm, mul], _) = pair(&mut b);
        let view = b.alias(GGML_OP_VIEW, norm, &ne, None, offset);
        let part = b.view(mul, 0, ne[0] * ne[1]);
        let end = cpy(&mut b, part, view);
        let g = b.graph(&[view, end]);
        assert_eq!(judge(g, 0, 5), Err(Refusal::PartOfOwner { node: 4, owner: 0 }));
    }
}

#[test]
fn ext_43_the_owner_has_no_other_consumer_and_values_in_between_are_no_outputs() {
    let mut b = Bench::new();
    let ([norm, mul], [x, _]) = pair(&mut b);
    let end = over(&mut b, GGML_OP_ADD, norm, Some(mul));
    let after = b.add(x, norm);
    assert_eq!(judge(b.graph(&[end, after]), 0, 3), Err(Refusal::Consumed { node: 0, outside: 1 }));
    let mut b = Bench::new();
    let ([norm, mul], _) = pair(&mut b);
    let first = over(&mut b, GGML_OP_SQR, norm, None);
    let end = over(&mut b, GGML_OP_ADD, first, Some(mul));
    let g = memory::new(&mut b.ctx, 64, false).unwrap();
    // SAFETY: the bench's.
    unsafe {
        build::expand(&mut *g, mul, true).unwrap();
        build::expand(&mut *g, end, true).unwrap();
    }
    assert_eq!(judge(g, 0, 4), legal(&[1, 2], 2, Some(0)));
    flag(first, GGML_TENSOR_FLAG_OUTPUT);
    assert_eq!(judge(g, 0, 4), Err(Refusal::Output { node: 2 }));
}

#[test]
fn ext_43_a_view_is_no_result() {
    let mut b = Bench::new();
    let ([_, mul], _) = pair(&mut b);
    let view = b.view(mul, 0, 8);
    assert_eq!(all(&mut b, &[view]), Err(Refusal::EndsInView { node: 2 }));
}

#[test]
fn ext_44_memory_that_is_there_already() {
    let mut memory = [0f32; 32];
    let place = |t: T, at: *mut f32| {
        // SAFETY: the bench's.
        unsafe { (*t).data = at.cast() };
    };
    let at = |i: usize| memory.as_mut_ptr().wrapping_add(i);
    let mut at = at;
    let mut b = Bench::new();
    let ([norm, mul], [x, _]) = pair(&mut b);
    place(x, at(0));
    place(mul, at(2));
    let g = b.graph(&[mul]);
    assert!(judge(g, 0, 2).is_ok(), "the result may lie over an input: that is the kernel's to handle");
    place(norm, at(16));
    assert_eq!(judge(g, 0, 2), Err(Refusal::Allocated { node: 0 }));
    // the owner of the result may have its memory, but not over what is read after it was written
    for (owner_at, good) in [(16, true), (8, true), (7, false), (0, false)] {
        let mut b = Bench::new();
        let ([norm, mul], [x, w]) = pair(&mut b);
        let end = over(&mut b, GGML_OP_ADD, norm, Some(mul));
        place(x, at(24));
        place(w, at(0));
        place(norm, at(owner_at));
        let verdict = all(&mut b, &[end]);
        assert_eq!(verdict, if good { legal(&[1], 2, Some(0)) } else { Err(Refusal::OverInput { node: 0 }) });
    }
}
