//! The node maker: storage of views, names, sources.

use super::Ctx;
use crate::error::Error;
use crate::tensor::{copy, elementwise, is_poisoned, new, node, poison, reduce, view, NodeSpec};
use ggml_oxide_abi::*;

fn name(t: *mut ggml_tensor) -> String {
    // SAFETY: live tensor.
    ggml_oxide_shape::name(unsafe { &*t })
}

fn one(ctx: &Ctx, a: *mut ggml_tensor, rule: impl FnOnce(&ggml_tensor) -> Result<NodeSpec, Error>) -> *mut ggml_tensor {
    // SAFETY: a live context and a live tensor.
    unsafe { node(ctx.0, "test", [a], [], |[a], []| rule(a)) }
}

#[test]
fn a_view_of_a_view_looks_at_the_owner() {
    let ctx = Ctx::new(1 << 14, false);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[16, 16]);
    let b = one(&ctx, a, |a| view::view(a, &[8, 8], &[64], 64));
    let c = one(&ctx, b, |b| view::view(b, &[4, 2], &[64], 16));
    // SAFETY: live tensors.
    unsafe {
        assert_eq!(((*b).view_src, (*b).view_offs), (a, 64));
        assert_eq!(((*c).view_src, (*c).view_offs, (*c).src[0]), (a, 80, b));
        assert_eq!((*c).data, (*a).data.byte_add(80));
        assert_eq!((&(*c).op_params)[..2], [16, 0]);
        assert_eq!((*c).nb, [4, 64, 128, 128]);
    }
    assert_eq!((name(b), name(c)), ("a (view)".into(), "a (view) (view)".into()));
}

#[test]
fn views_stay_inside() {
    let ctx = Ctx::new(1 << 16, true);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[16, 16]);
    let sound = |ne: &[i64], nb: &[usize], offs: usize| {
        let t = one(&ctx, a, |a| view::view(a, ne, nb, offs));
        // SAFETY: live tensor.
        !is_poisoned(unsafe { &*t })
    };
    assert!(sound(&[256], &[], 0) && !sound(&[257], &[], 0));
    assert!(sound(&[255], &[], 4) && !sound(&[256], &[], 1) && !sound(&[1], &[], 1024) && sound(&[1], &[], 1020));
    assert!(sound(&[16, 16], &[64], 0) && !sound(&[16, 16], &[65], 0) && !sound(&[16, 17], &[64], 0));
    assert!(sound(&[8, 16], &[64], 32) && !sound(&[8, 16], &[64], 36));
    assert!(sound(&[1, 16, 1], &[64, usize::MAX], 0), "a stride that is never walked");
    assert!(!sound(&[1, 2], &[usize::MAX], 0) && !sound(&[1, 3, 1, 3], &[usize::MAX / 2, 0, usize::MAX / 2], 4));
    assert!(sound(&[4, 300], &[0], 0), "a row over and over");
    assert!(!sound(&[-1], &[], 0) && !sound(&[i64::MAX, 2], &[4], 0) && !sound(&[4], &[], usize::MAX));
    assert!(sound(&[0], &[], 0) && sound(&[4, 0], &[16], 5000), "nothing is looked at");
    let t = one(&ctx, a, |a| view::view(a, &[16, 17], &[64], 0));
    // SAFETY: live tensor.
    let text = unsafe { poison::cause(&*t) }.unwrap().to_str().unwrap();
    assert_eq!(
        text,
        "test: a view [16,17] with strides [4, 64, 1088, 1088] at offset 0 leaves source 'a' f32[16,16], whose storage has 1024 bytes"
    );
}

#[test]
fn quantised_views() {
    let ctx = Ctx::new(1 << 16, true);
    let a = ctx.tensor("a", GGML_TYPE_Q4_0, &[64, 4]);
    let sound = |ne: &[i64], nb: &[usize], offs: usize| {
        let t = one(&ctx, a, |a| view::view(a, ne, nb, offs));
        // SAFETY: live tensor.
        !is_poisoned(unsafe { &*t })
    };
    assert!(sound(&[64, 4], &[36], 0) && sound(&[32, 4], &[36], 18) && !sound(&[32, 4], &[36], 36));
    assert!(!sound(&[33], &[], 0));
    let t = one(&ctx, a, view::transpose);
    // SAFETY: live tensor.
    unsafe { assert_eq!(((*t).ne, (*t).nb, (*t).flags), ([4, 64, 1, 1], [36, 18, 144, 144], 0)) };
    let r = one(&ctx, a, |a| view::reshape(a, [32, 8, 1, 1]));
    // SAFETY: live tensor.
    unsafe { assert_eq!(((*r).nb, (*r).flags), ([18, 18, 144, 144], 0)) };
}

#[test]
fn names_are_cut_to_fit() {
    let ctx = Ctx::new(1 << 14, true);
    let long = "n".repeat(2 * GGML_MAX_NAME);
    let a = ctx.tensor(&long, GGML_TYPE_F32, &[4]);
    assert_eq!(name(a).len(), GGML_MAX_NAME - 1);
    let b = one(&ctx, a, |a| copy::cont(a, None));
    assert_eq!(name(b), "n".repeat(GGML_MAX_NAME - 1));
}

#[test]
fn names_tell_what_was_done() {
    let ctx = Ctx::new(1 << 14, true);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[4, 2]);
    let b = ctx.tensor("b", GGML_TYPE_F16, &[8]);
    let blank = ctx.tensor("", GGML_TYPE_F16, &[8]);
    assert_eq!(name(one(&ctx, a, |a| copy::cont(a, None))), "a (cont)");
    assert_eq!(name(one(&ctx, a, |a| copy::cast(a, GGML_TYPE_F16))), "a (copy)");
    assert_eq!(name(one(&ctx, a, |a| view::reshape(a, [8, 1, 1, 1]))), "a (reshaped)");
    assert_eq!(name(one(&ctx, a, |a| view::permute(a, [3, 2, 1, 0]))), "a (permuted)");
    assert_eq!(name(one(&ctx, a, view::transpose)), "a (transposed)");
    assert_eq!(name(one(&ctx, a, |a| elementwise::plain(GGML_OP_SQR, a, true))), "a (view)");
    assert_eq!(name(one(&ctx, a, |a| elementwise::plain(GGML_OP_SQR, a, false))), "");
    assert_eq!(name(one(&ctx, a, |a| Ok(new::dup_tensor(a)))), "");
    // SAFETY: live context and tensors.
    unsafe {
        let into = |b| node(ctx.0, "test", [a, b], [], |[a, b], []| copy::cpy(a, b));
        assert_eq!(name(into(b)), "b (copy of a)");
        assert_eq!(name(into(blank)), "a (copy)");
    }
}

#[test]
fn sources_are_kept_as_rules_say() {
    let ctx = Ctx::new(1 << 14, true);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[4]);
    let b = ctx.tensor("b", GGML_TYPE_F32, &[8]);
    // SAFETY: live context and tensors.
    unsafe {
        let repeated = node(ctx.0, "test", [a, b], [], |[a, b], []| copy::repeat(a, b.ne));
        assert_eq!(((*repeated).src[0], (*repeated).src[1].is_null()), (a, true));
        let cast = one(&ctx, a, |a| copy::cast(a, GGML_TYPE_F16));
        assert_eq!((&(*cast).src)[..2], [a, cast]);
        let all = one(&ctx, a, |a| Ok(new::view_tensor(a)));
        assert_eq!(((*all).op, (*all).src[0].is_null(), (*all).view_src), (GGML_OP_NONE, true, a));
        let over = node(ctx.0, "test", [a, b], [], |[_, b], []| Ok(NodeSpec::over(GGML_OP_CPY, b, 1)));
        assert_eq!(((*over).view_src, (&(*over).src)[..2].to_vec()), (b, vec![a, b]));
        let sum = one(&ctx, a, reduce::sum);
        assert_eq!(((*sum).src[0], (*sum).view_src.is_null()), (a, true));
    }
}
