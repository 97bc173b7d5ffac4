//! The arena: sizes as programs count them, order, fullness, reset.

use super::Ctx;
use crate::tensor::{new_tensor, Context, TENSOR_OVERHEAD};
use ggml_oxide_abi::*;
use std::mem::size_of;
use std::ptr::null_mut;

#[test]
fn overhead_is_a_header_and_a_tensor() {
    assert_eq!(TENSOR_OVERHEAD, 32 + size_of::<ggml_tensor>());
}

#[test]
fn sizes_are_padded() {
    for (asked, size) in [(0, 16), (1, 16), (16, 16), (17, 32), (1000, 1008)] {
        assert_eq!(Ctx::new(asked, true).get().size(), size);
    }
}

#[test]
fn impossible_sizes_are_errors() {
    for size in [usize::MAX, usize::MAX - 15, isize::MAX as usize] {
        // SAFETY: no caller's memory.
        assert!(unsafe { Context::new(size, null_mut(), true) }.is_err());
    }
}

#[test]
fn a_callers_memory_is_used_and_not_freed() {
    let mut memory = vec![0u128; 256];
    let base = memory.as_mut_ptr().cast::<std::ffi::c_void>();
    // SAFETY: the memory outlives the context.
    unsafe {
        let mut ctx = Context::new(255 * 16 + 5, base, false).unwrap();
        assert_eq!(ctx.size(), 255 * 16 + 5);
        assert_eq!(ctx.buffer().cast(), base);
        let t = new_tensor(&mut ctx, "test", GGML_TYPE_F32, &[3]);
        assert_eq!((*t).data.addr(), base.addr() + TENSOR_OVERHEAD);
        assert!(Context::new(100, base.byte_add(8), false).is_err());
    }
}

#[test]
fn data_lie_behind_the_tensor() {
    let ctx = Ctx::new(4096, false);
    let a = ctx.tensor("a", GGML_TYPE_F32, &[3, 2]);
    assert_eq!(ctx.get().used(), TENSOR_OVERHEAD + 32);
    // SAFETY: live tensors.
    unsafe {
        assert_eq!((*a).data.cast::<u8>(), a.add(1).cast::<u8>());
        (*a).data.cast::<f32>().write_bytes(0xff, 6);
        assert!((*ctx.tensor("empty", GGML_TYPE_F32, &[0])).data.is_null());
        assert_eq!(ctx.get().used(), 2 * TENSOR_OVERHEAD + 32);
    }
    let bare = Ctx::new(4096, true);
    // SAFETY: live tensor.
    unsafe { assert!((*bare.tensor("a", GGML_TYPE_F32, &[3, 2])).data.is_null()) };
    assert_eq!(bare.get().used(), TENSOR_OVERHEAD);
}

#[test]
fn a_context_of_the_counted_size_is_just_enough() {
    let ctx = Ctx::new(3 * TENSOR_OVERHEAD, true);
    for i in 0..4 {
        let t = ctx.tensor("t", GGML_TYPE_F32, &[1 << 40]);
        // SAFETY: live tensor.
        assert_eq!(crate::tensor::is_poisoned(unsafe { &*t }), i == 3);
    }
}

#[test]
fn tensors_come_in_the_order_of_making() {
    let ctx = Ctx::new(1 << 14, true);
    assert!(ctx.get().first_tensor().is_null());
    let buffer = ctx.get().alloc_object(GGML_OBJECT_TYPE_WORK_BUFFER, 5).unwrap();
    assert!(buffer.addr().get().is_multiple_of(16));
    let a = ctx.tensor("a", GGML_TYPE_F32, &[1]);
    ctx.get().alloc_object(GGML_OBJECT_TYPE_GRAPH, 100).unwrap();
    let b = ctx.tensor("b", GGML_TYPE_F32, &[1]);
    assert_eq!(ctx.get().tensors().collect::<Vec<_>>(), [a, b]);
    // SAFETY: of this context.
    unsafe {
        assert_eq!(ctx.get().next_tensor(a), b);
        assert!(ctx.get().next_tensor(b).is_null());
    }
    assert_eq!(ctx.get().n_objects(), 4);
    ctx.get().reset();
    assert_eq!((ctx.get().used(), ctx.get().n_objects()), (0, 0));
    assert!(ctx.get().first_tensor().is_null());
}

#[test]
fn objects_that_cannot_be_are_errors_and_cost_nothing() {
    let ctx = Ctx::new(1024, true);
    for bytes in [1024, usize::MAX, usize::MAX - 15, usize::MAX - 40, isize::MAX as usize] {
        let error = ctx.get().alloc_object(GGML_OBJECT_TYPE_GRAPH, bytes).unwrap_err();
        assert_eq!(error.code, GGML_EXT_CODE_OUT_OF_MEMORY);
        assert_eq!(ctx.get().used(), 0);
    }
    assert!(ctx.get().alloc_object(GGML_OBJECT_TYPE_GRAPH, 1024 - 32).is_ok());
}
