//! Stand-ins: what they look like, what is built on them, where they lie.

use super::Ctx;
use crate::error;
use crate::tensor::{elementwise, is_poisoned, matmul, new_tensor, node, poison, POISONED, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use std::ptr::null_mut;

fn cause(t: *mut ggml_tensor) -> String {
    // SAFETY: of a live context.
    unsafe { poison::cause(&*t) }.expect("a cause").to_str().unwrap().to_owned()
}

fn mul_mat(ctx: &Ctx, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
    // SAFETY: a live context and live or NULL tensors.
    unsafe { node(ctx.0, "ggml_mul_mat", [a, b], [], |[a, b], []| matmul::mul_mat(a, b)) }
}

#[test]
fn the_text_names_call_tensors_and_rule() {
    let ctx = Ctx::new(1 << 14, true);
    let w = ctx.tensor("w", GGML_TYPE_F32, &[64, 32]);
    let x = ctx.tensor("x", GGML_TYPE_F32, &[65, 4]);
    let y = mul_mat(&ctx, w, x);
    let text = "ggml_mul_mat: src0 'w' f32[64,32] and src1 'x' f32[65,4]: ne[0] must be equal";
    assert_eq!(cause(y), text);
    error::with_last(|error::Last { code, text: last, node, .. }| {
        assert_eq!((*code, last.to_str().unwrap(), *node), (GGML_EXT_CODE_BAD_SHAPE, text, y.cast_const()));
    })
    .expect("a recorded failure");
    // SAFETY: live tensor.
    let t = unsafe { &*y };
    assert_eq!((t.flags, t.op, t.r#type, t.ne), (POISONED, GGML_OP_CUSTOM, GGML_TYPE_F32, [1; 4]));
    assert!(t.data.is_null() && t.view_src.is_null() && t.src.iter().all(|s| s.is_null()));
    assert!(t.op_params[..14].iter().all(|&p| p == 0));
}

#[test]
fn what_is_built_on_it_has_the_first_cause() {
    let ctx = Ctx::new(1 << 14, true);
    let w = ctx.tensor("w", GGML_TYPE_F32, &[64, 32]);
    let bad = ctx.tensor("bad", GGML_TYPE_F32, &[-1]);
    let first = cause(bad);
    assert_eq!(first, "test: shape [-1] has a negative dimension");
    let mut t = mul_mat(&ctx, w, bad);
    for _ in 0..5 {
        t = mul_mat(&ctx, t, null_or(&ctx));
        assert_eq!(cause(t), first);
    }
    // a poisoned optional source poisons too
    // SAFETY: live context and tensors.
    let soft = unsafe { node(ctx.0, "s", [w], [bad], |[a], [m]| crate::tensor::norm::soft_max(a, m, 1.0, 0.0, false)) };
    assert_eq!(cause(soft), first);
}

fn null_or(ctx: &Ctx) -> *mut ggml_tensor {
    ctx.tensor("good", GGML_TYPE_F32, &[1])
}

#[test]
fn null_sources_and_contexts() {
    let ctx = Ctx::new(1 << 14, true);
    let w = ctx.tensor("w", GGML_TYPE_F32, &[64, 32]);
    assert_eq!(cause(mul_mat(&ctx, w, null_mut())), "ggml_mul_mat: source 1 is NULL");
    // SAFETY: NULL is allowed.
    let none = unsafe { node(null_mut(), "call", [w], [], |[a], []| elementwise::plain(GGML_OP_SQR, a, false)) };
    assert!(none.is_null());
    error::with_last(|error::Last { code, text, .. }| {
        assert_eq!((*code, text.as_c_str()), (GGML_EXT_CODE_NULL_ARGUMENT, c"call: the context is NULL"));
    })
    .expect("a recorded failure");
}

#[test]
fn a_full_context_gives_stand_ins_outside_of_it() {
    let ctx = Ctx::new(2 * TENSOR_OVERHEAD, true);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[4]);
    let b = ctx.tensor("b", GGML_TYPE_F32, &[4]);
    let full = ctx.get().used();
    let mut last = null_mut();
    for _ in 0..20 {
        // SAFETY: live context and tensors.
        let t =
            unsafe { node(ctx.0, "ggml_add", [a, b], [], |[a, b], []| elementwise::binary(GGML_OP_ADD, a, b, false)) };
        assert!(cause(t).starts_with("ggml_add: context is full: "), "{}", cause(t));
        // SAFETY: live tensor of this context.
        unsafe {
            assert_eq!((*t).ne, [4, 1, 1, 1], "the shape that was asked for");
            assert!(ctx.get().next_tensor(t).is_null());
        }
        assert!(t != last && ctx.get().used() == full);
        last = t;
    }
    assert_eq!(ctx.get().tensors().collect::<Vec<_>>(), [a, b]);
    ctx.get().reset();
    let again = ctx.tensor("a", GGML_TYPE_F32, &[4]);
    // SAFETY: live tensor.
    assert!(!is_poisoned(unsafe { &*again }));
}

#[test]
fn a_tensor_larger_than_the_rest_of_the_arena_leaves_room_for_its_stand_in() {
    let ctx = Ctx::new(2 * TENSOR_OVERHEAD + 64, false);
    let t = new_tensor(ctx.get(), "ggml_new_tensor_1d", GGML_TYPE_F32, &[1 << 20]);
    assert!(cause(t).starts_with("ggml_new_tensor_1d: context is full"));
    assert_eq!(ctx.get().used(), TENSOR_OVERHEAD, "in the arena, without data");
    assert_eq!(ctx.get().first_tensor(), t);
}

#[test]
fn the_shape_asked_for_is_kept_where_it_can_be() {
    let ctx = Ctx::new(1 << 14, true);
    // SAFETY: live tensors.
    unsafe {
        assert_eq!((*ctx.tensor("a", GGML_TYPE_COUNT, &[5, 6])).ne, [5, 6, 1, 1]);
        assert_eq!((*ctx.tensor("a", GGML_TYPE_Q4_0, &[31])).ne, [31, 1, 1, 1]);
        assert_eq!((*ctx.tensor("a", GGML_TYPE_F32, &[i64::MAX, 2])).ne, [1; 4]);
    }
}

#[test]
fn sound_tensors_have_no_cause() {
    let ctx = Ctx::new(1 << 14, true);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[4]);
    // SAFETY: live tensor.
    unsafe {
        assert!(poison::cause(&*a).is_none());
        (*a).flags = 0x3f;
        assert!(!is_poisoned(&*a) && poison::cause(&*a).is_none());
    }
}
