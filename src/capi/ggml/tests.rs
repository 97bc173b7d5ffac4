//! Tests of entry points that are more than a call of a rule.
#![allow(clippy::unwrap_used)]

use super::{context::*, copy::*, formats::*, matmul::*, names::*, norm::*, query::*, rope::*, unary::*};
use crate::capi::ggml_cpu_values::*;
use crate::tensor::is_poisoned;
use ggml_oxide_abi::*;
use std::ffi::{c_char, CStr};
use std::ptr::{null, null_mut};

fn text(s: *const c_char) -> &'static str {
    // SAFETY: the names are static.
    unsafe { CStr::from_ptr(s) }.to_str().unwrap()
}

struct Ctx(*mut ggml_context);
impl Ctx {
    fn new(no_alloc: bool) -> Self {
        // SAFETY: entry point.
        Ctx(unsafe { ggml_init(ggml_init_params { mem_size: 1 << 16, mem_buffer: null_mut(), no_alloc }) })
    }
}
impl Drop for Ctx {
    fn drop(&mut self) {
        // SAFETY: made by `ggml_init`.
        unsafe { ggml_free(self.0) }
    }
}

#[test]
fn names() {
    // SAFETY: entry points; only names.
    unsafe {
        assert_eq!(text(ggml_op_name(GGML_OP_MUL_MAT)), "MUL_MAT");
        assert_eq!(text(ggml_op_name(GGML_OP_GLU)), "GLU");
        assert_eq!(text(ggml_op_symbol(GGML_OP_SQRT)), "√x");
        assert_eq!(text(ggml_op_symbol(GGML_OP_IM2COL_3D)), "im2col_3d(x)");
        assert_eq!(text(ggml_unary_op_name(GGML_UNARY_OP_TRUNC)), "TRUNC");
        assert_eq!(text(ggml_glu_op_name(GGML_GLU_OP_SWIGLU_CLAMP)), "SWIGLU_CLAMP");
        assert_eq!(text(ggml_type_name(GGML_TYPE_Q4_K)), "q4_K");
        for bad in [-1, 101, i32::MIN, i32::MAX] {
            assert_eq!(text(ggml_op_name(ggml_op(bad))), "unknown");
            assert_eq!(text(ggml_op_symbol(ggml_op(bad))), "unknown");
            assert_eq!(text(ggml_unary_op_name(ggml_unary_op(bad))), "unknown");
            assert_eq!(text(ggml_type_name(ggml_type(bad))), "NONE");
            assert_eq!(text(ggml_status_to_string(ggml_status(bad.wrapping_mul(3)))), "GGML status: unknown");
        }
        let ctx = Ctx::new(true);
        let silu = ggml_silu(ctx.0, ggml_new_tensor_1d(ctx.0, GGML_TYPE_F32, 4));
        assert_eq!(text(ggml_op_desc(silu)), "SILU");
        assert_eq!(ggml_get_unary_op(silu), GGML_UNARY_OP_SILU);
        assert_eq!(ggml_get_glu_op(silu), GGML_GLU_OP_COUNT);
        assert_eq!(text(ggml_op_desc(null())), "unknown");
    }
}

#[test]
fn traits() {
    // SAFETY: entry points; the traits are static.
    unsafe {
        for id in 0..GGML_TYPE_COUNT.0 {
            let traits = &*ggml_get_type_traits(ggml_type(id));
            assert_eq!(traits.blck_size, ggml_blck_size(ggml_type(id)));
            assert_eq!(traits.type_size, ggml_type_size(ggml_type(id)));
            assert_eq!(traits.is_quantized, ggml_is_quantized(ggml_type(id)));
        }
        let has = |ty| {
            let traits = &*ggml_get_type_traits(ty);
            (traits.to_float.is_some(), traits.from_float_ref.is_some())
        };
        for ty in [GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K] {
            assert_eq!(has(ty), (true, true), "{ty:?}");
        }
        for ty in [GGML_TYPE_F32, GGML_TYPE_I32, GGML_TYPE_F64, GGML_TYPE_Q8_K] {
            assert_eq!(has(ty), (false, false), "{ty:?}");
        }
        assert_eq!(has(GGML_TYPE_Q8_1), (false, true));
        assert!(ggml_get_type_traits(ggml_type(-1)).is_null() && ggml_get_type_traits(ggml_type(1000)).is_null());

        let mut out = [0f32; 64];
        let mut packed = [0u8; 68];
        let x: Vec<f32> = (0..64).map(|i| i as f32 - 31.0).collect();
        let q8 = &*ggml_get_type_traits(GGML_TYPE_Q8_0);
        q8.from_float_ref.unwrap()(x.as_ptr(), packed.as_mut_ptr().cast(), 64);
        q8.to_float.unwrap()(packed.as_ptr().cast(), out.as_mut_ptr(), 64);
        assert!(x.iter().zip(&out).all(|(a, b)| (a - b).abs() < 0.2));
        // a count that is no whole number of blocks writes nothing
        out = [7.0; 64];
        q8.to_float.unwrap()(packed.as_ptr().cast(), out.as_mut_ptr(), 33);
        q8.to_float.unwrap()(packed.as_ptr().cast(), out.as_mut_ptr(), -32);
        q8.to_float.unwrap()(null(), out.as_mut_ptr(), 32);
        assert_eq!(out, [7.0; 64]);
    }
}

#[test]
fn chunks() {
    let x: Vec<f32> = (0..192).map(|i| (i as f32).sin()).collect();
    let mut whole = [0u8; 3 * 36];
    let mut parts = [0u8; 3 * 36];
    // SAFETY: entry points; the memory has the sizes told.
    unsafe {
        let q = |dst: &mut [u8], start, rows| {
            ggml_quantize_chunk(GGML_TYPE_Q4_0, x.as_ptr(), dst.as_mut_ptr().cast(), start, rows, 64, null())
        };
        assert_eq!(q(&mut whole, 0, 3), 108);
        assert_eq!(q(&mut parts, 128, 1), 36);
        assert_eq!(parts[..72], [0; 72]);
        assert_eq!(q(&mut parts, 0, 2), 72);
        assert_eq!(whole, parts);
        assert_eq!(q(&mut parts, 32, 1), 0, "not a whole number of rows");
        assert_eq!(q(&mut parts, -64, 1), 0);
        assert_eq!(q(&mut parts, 0, -1), 0);
        assert_eq!(q(&mut parts, 0, i64::MAX), 0);
        assert_eq!(whole, parts);
        let mut to = |ty, n| ggml_quantize_chunk(ty, x.as_ptr(), parts.as_mut_ptr().cast(), 0, 1, n, null());
        assert_eq!(to(GGML_TYPE_Q4_0, 33), 0, "not a whole number of blocks");
        for ty in [GGML_TYPE_I32, GGML_TYPE_Q8_K, GGML_TYPE_IQ2_XXS, ggml_type(-1), GGML_TYPE_COUNT, ggml_type(31)] {
            assert_eq!(to(ty, 32), 0, "{ty:?}");
        }
        assert_eq!(ggml_quantize_chunk(GGML_TYPE_F16, null(), parts.as_mut_ptr().cast(), 0, 1, 32, null()), 0);
        assert_eq!(ggml_quantize_chunk(GGML_TYPE_F32, x.as_ptr(), parts.as_mut_ptr().cast(), 0, 1, 8, null()), 32);
        assert_eq!(ggml_row_size(GGML_TYPE_Q4_0, 64), 36);
        assert_eq!((ggml_row_size(GGML_TYPE_Q4_0, 63), ggml_row_size(GGML_TYPE_F32, i64::MAX)), (0, 0));
    }
}

#[test]
fn numbers() {
    let ctx = Ctx::new(false);
    // SAFETY: entry points; live tensors with data.
    unsafe {
        let formats = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_I16, GGML_TYPE_I8];
        for ty in formats {
            let t = ggml_new_tensor_3d(ctx.0, ty, 3, 4, 2);
            assert_eq!(ggml_set_i32(t, -5), t);
            assert!((0..24).all(|i| ggml_get_f32_1d(t, i) == -5.0));
            ggml_set_f32_nd(t, 1, 2, 1, 0, 3.0);
            assert_eq!((ggml_get_i32_1d(t, 19), ggml_get_i32_nd(t, 1, 2, 1, 0)), (3, 3), "{ty:?}");
            // in another order the same element has another number
            let turned = super::view::ggml_permute(ctx.0, t, 1, 0, 2, 3);
            assert_eq!((ggml_get_i32_1d(turned, 18), ggml_get_i32_nd(turned, 2, 1, 1, 0)), (3, 3));
            for outside in [-1, 24, i32::MAX, i32::MIN] {
                assert_eq!(ggml_get_i32_1d(t, outside), 0);
                ggml_set_i32_1d(t, outside, 9);
                ggml_set_f32_nd(t, 0, outside, 0, 0, 9.0);
            }
            assert!((0..24).filter(|&i| i != 19).all(|i| ggml_get_i32_1d(t, i) == -5));
        }
        let (one, two) = (ggml_new_f32(ctx.0, 1.5), ggml_new_i32(ctx.0, 7));
        assert_eq!((ggml_get_f32_1d(one, 0), ggml_get_i32_1d(two, 0)), (1.5, 7));
        assert_eq!(ggml_get_f32_1d(ggml_new_tensor_1d(ctx.0, GGML_TYPE_Q4_0, 32), 0), 0.0);
        assert_eq!(ggml_get_f32_1d(null(), 0), 0.0);
        assert_eq!(ggml_get_f32_1d(ggml_set_f32(ggml_new_tensor_1d(ctx.0, GGML_TYPE_F32, 0), 1.0), 0), 0.0);
        let bare = Ctx::new(true);
        assert!(is_poisoned(&*ggml_new_f32(bare.0, 1.0)));
        assert_eq!(ggml_get_f32_1d(ggml_set_f32(ggml_new_tensor_1d(bare.0, GGML_TYPE_F32, 2), 1.0), 1), 0.0);
    }
}

#[test]
fn coordinates() {
    let ctx = Ctx::new(true);
    // SAFETY: entry points.
    unsafe {
        let t = ggml_new_tensor_4d(ctx.0, GGML_TYPE_F32, 3, 4, 5, 6);
        let at = |t, i| {
            let mut c = [-7i64; 4];
            let [a, b, d, e] = &mut c;
            ggml_unravel_index(t, i, a, b, d, e);
            c
        };
        assert_eq!(at(t, 3 * (4 * (5 * 2 + 3) + 1) + 2), [2, 1, 3, 2]);
        assert_eq!(at(ggml_new_tensor_2d(ctx.0, GGML_TYPE_F32, 3, 0), 5), [2, 0, 0, 0]);
        assert_eq!(at(null(), 5), [0; 4]);
        ggml_unravel_index(t, 5, null_mut(), null_mut(), null_mut(), null_mut());
    }
}

#[test]
fn nodes_are_changed_only_as_their_operator_allows() {
    let ctx = Ctx::new(true);
    // SAFETY: entry points.
    unsafe {
        let a = ggml_new_tensor_2d(ctx.0, GGML_TYPE_F32, 8, 4);
        let mm = ggml_mul_mat(ctx.0, a, a);
        ggml_mul_mat_set_prec(mm, GGML_PREC_F32);
        ggml_mul_mat_set_hint(mm, GGML_HINT_SRC0_IS_HADAMARD);
        assert!(ggml_prec_set_src(mm, GGML_PREC_BF16, 1) && !ggml_prec_set_src(mm, GGML_PREC_BF16, 0));
        assert_eq!((&(*mm).op_params)[..4], [10, 1, 0, 15]);
        ggml_flash_attn_ext_set_prec(mm, GGML_PREC_F16);
        ggml_flash_attn_ext_set_n_kv_max(mm, 5);
        assert_eq!((&(*mm).op_params)[3..5], [15, 0]);
        assert!(!ggml_prec_set_acc(a, GGML_PREC_F32) && ggml_prec_set_acc(mm, GGML_PREC_F16));
        assert_eq!((*mm).op_params[0], 20);

        let soft = ggml_soft_max(ctx.0, a);
        let sinks = ggml_new_tensor_1d(ctx.0, GGML_TYPE_F32, 1);
        ggml_soft_max_add_sinks(soft, a);
        assert!((*soft).src[2].is_null(), "of the wrong size");
        ggml_soft_max_add_sinks(soft, sinks);
        assert_eq!((*soft).src[2], sinks);
        ggml_soft_max_add_sinks(soft, null_mut());
        assert!((*soft).src[2].is_null());
        ggml_soft_max_add_sinks(mm, sinks);
        assert!((*mm).src[2].is_null());

        let positions = ggml_new_tensor_1d(ctx.0, GGML_TYPE_I32, 1);
        let turned = ggml_rope(ctx.0, a, positions, 4, 0);
        assert_eq!(ggml_rope_set_offset(turned, 4), turned);
        assert_eq!((*turned).op_params[15], 4);
        ggml_rope_set_offset(turned, -1);
        assert_eq!((*turned).op_params[15], 4);

        ggml_set_input(mm);
        ggml_set_param(mm);
        ggml_set_loss(mm);
        assert_eq!((*mm).flags, 0);
        ggml_set_input(a);
        let view = ggml_view_tensor(ctx.0, a);
        ggml_set_output(view);
        assert_eq!((*a).flags, GGML_TENSOR_FLAG_INPUT.0 | GGML_TENSOR_FLAG_OUTPUT.0);
        assert_eq!((*view).flags, GGML_TENSOR_FLAG_OUTPUT.0);
        ggml_set_zero(a);
        let error = crate::error::with_last(|last| last.code).unwrap();
        assert_eq!(error, GGML_EXT_CODE_NOT_ALLOCATED);
    }
}

#[test]
fn null_is_answered() {
    let ctx = Ctx::new(false);
    let none = null_mut::<ggml_tensor>();
    // SAFETY: entry points take NULL.
    unsafe {
        ggml_free(null_mut());
        ggml_reset(null_mut());
        assert_eq!((ggml_used_mem(null()), ggml_get_mem_size(null())), (0, 0));
        assert!(ggml_new_tensor_1d(null_mut(), GGML_TYPE_F32, 1).is_null());
        assert!(ggml_get_first_tensor(null()).is_null() && ggml_get_next_tensor(ctx.0, none).is_null());
        assert!(ggml_get_tensor(ctx.0, null()).is_null() && ggml_get_name(none).is_null());
        assert!(ggml_set_name(none, c"x".as_ptr()).is_null());
        assert!(is_poisoned(&*ggml_new_tensor(ctx.0, GGML_TYPE_F32, 2, null())));
        assert!(is_poisoned(&*ggml_new_tensor(ctx.0, GGML_TYPE_F32, 5, [1i64; 5].as_ptr())));
        assert!(is_poisoned(&*ggml_dup_tensor(ctx.0, none)) && is_poisoned(&*ggml_cast(ctx.0, none, GGML_TYPE_F16)));
        assert!(ggml_new_buffer(ctx.0, usize::MAX).is_null() && !ggml_new_buffer(ctx.0, 10).is_null());
        assert_eq!((ggml_nelements(none), ggml_nbytes(none), ggml_nbytes_pad(none), ggml_n_dims(none)), (0, 0, 0, 0));
        assert!(ggml_is_empty(none) && !ggml_is_contiguous(none) && !ggml_can_repeat(none, none));
        ggml_mul_mat_set_prec(none, GGML_PREC_F32);
        ggml_soft_max_add_sinks(none, none);
        ggml_set_input(none);
        ggml_set_output(none);
        assert_eq!(ggml_flash_attn_ext_get_prec(none), GGML_PREC_UNDEFINED);
    }
}

#[test]
fn tensors_are_found_by_name() {
    let ctx = Ctx::new(true);
    // SAFETY: entry points.
    unsafe {
        let a = ggml_set_name(ggml_new_tensor_1d(ctx.0, GGML_TYPE_F32, 1), c"a".as_ptr());
        let b = ggml_set_name(ggml_new_tensor_1d(ctx.0, GGML_TYPE_F32, 1), c"b".as_ptr());
        assert_eq!(ggml_get_tensor(ctx.0, c"b".as_ptr()), b);
        assert!(ggml_get_tensor(ctx.0, c"c".as_ptr()).is_null());
        assert_eq!((ggml_get_first_tensor(ctx.0), ggml_get_next_tensor(ctx.0, a)), (a, b));
        // a name may be part of the tensor's own
        ggml_set_name(a, c"0123456789".as_ptr());
        ggml_set_name(a, ggml_get_name(a).add(7));
        assert_eq!(CStr::from_ptr(ggml_get_name(a)), c"789");
        let long = "n".repeat(1000) + "\0";
        ggml_set_name(a, long.as_ptr().cast());
        assert_eq!(CStr::from_ptr(ggml_get_name(a)).count_bytes(), GGML_MAX_NAME - 1);
    }
}
