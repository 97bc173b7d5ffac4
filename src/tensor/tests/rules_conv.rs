//! Shape tables of convolutions and pooling, and of the builders that make several nodes.

use super::{f32s, meta, refused, Ctx};
use crate::tensor::conv::*;
use crate::tensor::pool::{pool_1d, pool_2d, Window};
use crate::tensor::{compose, poison, NodeSpec};
use ggml_oxide_abi::*;

const ONE: Axis = Axis { s: 1, p: 0, d: 1 };
fn f16s(ne: &[i64]) -> ggml_tensor {
    meta("k", GGML_TYPE_F16, ne)
}
fn ne(spec: Result<NodeSpec, crate::error::Error>) -> [i64; 4] {
    spec.unwrap().ne
}

#[test]
fn gathers() {
    let (a, b) = (f16s(&[3, 2, 4, 8]), f32s(&[10, 9, 4, 5]));
    let (x, y) = (Axis { s: 2, p: 1, d: 1 }, Axis { s: 1, p: 0, d: 3 });
    let spec = im2col_2d(&a, &b, x, y, GGML_TYPE_F16).unwrap();
    assert_eq!((spec.ne, spec.params[..7].to_vec()), ([24, 5, 6, 5], vec![2, 1, 1, 0, 1, 3, 1]));
    assert!(refused(im2col_2d(&a, &f32s(&[10, 9, 3, 5]), x, y, GGML_TYPE_F16)).contains("ne[2]"));
    assert!(refused(im2col_2d(&a, &f32s(&[10, 2, 4]), x, y, GGML_TYPE_F16)).contains("too small"));
    assert!(refused(im2col_2d(&a, &f32s(&[0, 9, 4]), ONE, y, GGML_TYPE_F16)).contains("too small"));
    for bad in [Axis { s: 0, ..ONE }, Axis { s: -1, ..ONE }, Axis { d: 0, ..ONE }] {
        assert!(refused(im2col_2d(&a, &b, bad, ONE, GGML_TYPE_F16)).contains("positive"));
        assert!(refused(im2col_2d(&a, &b, ONE, bad, GGML_TYPE_F16)).contains("positive"));
    }
    // divided towards zero, as graphs of programs count on
    let wide = im2col_2d(&f16s(&[4, 1]), &f32s(&[3, 1]), Axis { s: 2, ..ONE }, ONE, GGML_TYPE_F16);
    assert_eq!(ne(wide), [4, 1, 1, 1]);

    let none = Axis { s: 0, p: 0, d: 0 };
    let one = im2col_1d(&f16s(&[3, 4, 8]), &f32s(&[10, 4, 2]), x, none, GGML_TYPE_F32).unwrap();
    assert_eq!((one.ne, one.params[..7].to_vec()), ([12, 5, 2, 1], vec![2, 0, 1, 0, 1, 0, 0]));
    assert!(refused(im2col_1d(&f16s(&[3, 4]), &f32s(&[10, 5]), x, none, GGML_TYPE_F32)).contains("ne[1]"));
    assert!(refused(im2col_1d(&f16s(&[3, 4]), &f32s(&[10, 4, 1, 2]), x, none, GGML_TYPE_F32)).contains("ne[3]"));
    assert!(refused(im2col_1d(&f16s(&[9, 4]), &f32s(&[3, 4]), ONE, none, GGML_TYPE_F32)).contains("too small"));
}

#[test]
fn gathers_in_3d() {
    let (a, b) = (f16s(&[3, 3, 3, 8]), f32s(&[8, 7, 6, 12]));
    let axes = [ONE, Axis { p: 1, ..ONE }, Axis { s: 2, ..ONE }];
    let spec = im2col_3d(&a, &b, 4, axes, GGML_TYPE_F16).unwrap();
    assert_eq!((spec.ne, spec.params[..10].to_vec()), ([108, 6, 7, 6], vec![1, 1, 2, 0, 1, 0, 1, 1, 1, 4]));
    for ic in [0, -1, i64::MIN, 1 << 31] {
        assert!(refused(im2col_3d(&a, &b, ic, axes, GGML_TYPE_F16)).contains("channels"));
    }
    assert!(im2col_3d(&a, &b, 3, axes, GGML_TYPE_F16).is_ok(), "the number of kernels does not matter");
    assert!(refused(im2col_3d(&a, &b, 5, axes, GGML_TYPE_F16)).contains("multiple"));
    assert!(refused(im2col_3d(&a, &b, 8, axes, GGML_TYPE_F16)).contains("multiple"));
    assert!(refused(im2col_3d(&a, &f32s(&[8, 7, 1, 12]), 4, axes, GGML_TYPE_F16)).contains("too small"));
}

#[test]
fn direct() {
    let b = f32s(&[10, 9, 4, 5]);
    let spec = conv_2d(&f16s(&[3, 2, 4, 8]), &b, ONE, Axis { s: 2, p: 1, d: 1 }).unwrap();
    assert_eq!((spec.ne, spec.ty, spec.params[..6].to_vec()), ([8, 5, 8, 5], GGML_TYPE_F32, vec![1, 2, 0, 1, 1, 1]));
    assert!(refused(conv_2d(&f16s(&[3, 2, 5, 8]), &b, ONE, ONE)).contains("ne[2]"));
    assert!(conv_2d(&f16s(&[30, 2, 4, 8]), &b, ONE, ONE).unwrap().layout().is_err());

    let dw = |a: &[i64], b: &ggml_tensor| conv_2d_dw(&f16s(a), b, ONE, ONE);
    assert_eq!((ne(dw(&[3, 2, 1, 4], &b)), dw(&[3, 2, 1, 4], &b).unwrap().nb), ([8, 8, 4, 5], None));
    assert!(refused(dw(&[3, 2, 2, 4], &b)).contains("ne[2] must be 1"));
    assert!(refused(dw(&[3, 2, 1, 5], &b)).contains("ne[3]"));
    let mut inner = b;
    inner.nb = [16, 160, 4, 1440];
    assert_eq!(dw(&[3, 2, 1, 4], &inner).unwrap().nb, Some([16, 128, 4, 1024]));

    let axes = [ONE, ONE, ONE];
    let spec = conv_3d(&f16s(&[3, 3, 3, 8]), &f32s(&[8, 7, 6, 12]), axes, 4, 3, 2).unwrap();
    assert_eq!((spec.ne, spec.params[..12].to_vec()), ([6, 5, 4, 6], vec![1, 1, 1, 0, 0, 0, 1, 1, 1, 4, 3, 2]));
    assert!(refused(conv_3d(&f16s(&[3, 3, 3, 9]), &f32s(&[8, 7, 6, 12]), axes, 4, 3, 2)).contains("ne[3]"));
    assert!(refused(conv_3d(&f16s(&[3, 3, 3, 8]), &f32s(&[8, 7, 6, 13]), axes, 4, 3, 2)).contains("ne[3]"));
    assert!(refused(conv_3d(&f16s(&[3, 3, 3, 8]), &f32s(&[8, 7, 6, 12]), axes, -4, -3, -2)).contains("negative"));
}

#[test]
fn transposed() {
    let one = |a: &[i64], b: &[i64], axis| conv_transpose_1d(&f16s(a), &f32s(b), axis);
    let spec = one(&[4, 8, 6], &[10, 6], Axis { s: 3, ..ONE }).unwrap();
    assert_eq!((spec.ne, spec.params[..3].to_vec()), ([31, 8, 1, 1], vec![3, 0, 1]));
    assert!(refused(one(&[4, 8, 6], &[10, 6, 2], ONE)).contains("matrix"));
    assert!(refused(one(&[4, 8, 6], &[10, 5], ONE)).contains("ne[1]"));
    assert!(refused(one(&[4, 8, 6, 2], &[10, 6], ONE)).contains("ne[3]"));
    assert!(refused(one(&[4, 8, 6], &[10, 6], Axis { p: 1, ..ONE })).contains("padding"));
    assert!(refused(one(&[4, 8, 6], &[10, 6], Axis { d: 2, ..ONE })).contains("dilation"));
    assert!(refused(one(&[4, 8, 6], &[10, 6], Axis { s: 0, ..ONE })).contains("positive"));
    let two = conv_transpose_2d(&f16s(&[3, 2, 8, 6]), &f32s(&[5, 4, 6, 2]), 2).unwrap();
    assert_eq!((two.ne, two.params[0]), ([11, 8, 8, 2], 2));
    assert!(refused(conv_transpose_2d(&f16s(&[3, 2, 8, 5]), &f32s(&[5, 4, 6]), 2)).contains("ne[3]"));
    assert!(refused(conv_transpose_2d(&f16s(&[3, 2, 8, 6]), &f32s(&[5, 4, 6]), -1)).contains("positive"));
}

#[test]
fn pools() {
    let a = f32s(&[10, 9, 4, 2]);
    let spec = pool_1d(&a, GGML_OP_POOL_AVG, 3, 2, 1).unwrap();
    assert_eq!((spec.ne, spec.params[..4].to_vec()), ([5, 9, 4, 2], vec![1, 3, 2, 1]));
    let w = |k, s, p| Window { k, s, p };
    let spec = pool_2d(&a, GGML_OP_POOL_MAX, w(2, 2, 0.0), w(3, 2, 0.5)).unwrap();
    assert_eq!((spec.ne, spec.params[..7].to_vec()), ([5, 4, 4, 2], vec![0, 2, 3, 2, 2, 0, 0]));
    assert!(refused(pool_1d(&a, ggml_op_pool(2), 1, 1, 0)).contains("no pooling"));
    assert!(refused(pool_1d(&a, ggml_op_pool(-1), 1, 1, 0)).contains("no pooling"));
    assert!(refused(pool_1d(&a, GGML_OP_POOL_MAX, 0, 1, 0)).contains("positive"));
    assert!(refused(pool_1d(&a, GGML_OP_POOL_MAX, 1, 0, 0)).contains("positive"));
    assert!(refused(pool_1d(&a, GGML_OP_POOL_MAX, 13, 1, 0)).contains("too small"));
    assert!(refused(pool_2d(&a, GGML_OP_POOL_MAX, w(1, 1, f32::NAN), w(1, 1, 0.0))).contains("padding"));
    assert!(refused(pool_2d(&a, GGML_OP_POOL_MAX, w(1, 1, 0.0), w(20, 1, 0.0))).contains("too small"));
}

#[test]
fn several_nodes() {
    let ctx = Ctx::new(1 << 16, true);
    let out = |t: *mut ggml_tensor| {
        // SAFETY: live tensor.
        let (t, cause) = unsafe { (&*t, poison::cause(&*t)) };
        assert_eq!(cause, None);
        (t.op, t.ne)
    };
    let k2 = ctx.tensor("k", GGML_TYPE_F16, &[3, 3, 4, 8]);
    let b2 = ctx.tensor("b", GGML_TYPE_F32, &[10, 9, 4, 5]);
    let k1 = ctx.tensor("k", GGML_TYPE_BF16, &[3, 4, 8]);
    let b1 = ctx.tensor("b", GGML_TYPE_F32, &[10, 4, 5]);
    let kd = ctx.tensor("k", GGML_TYPE_F16, &[3, 3, 1, 4]);
    let k3 = ctx.tensor("k", GGML_TYPE_F16, &[3, 3, 3, 8]);
    let b3 = ctx.tensor("b", GGML_TYPE_F32, &[8, 7, 6, 12]);
    let line = ctx.tensor("k", GGML_TYPE_F16, &[3, 1, 4]);
    let rows = ctx.tensor("b", GGML_TYPE_F32, &[10, 4]);
    // SAFETY: a live context and live tensors.
    unsafe {
        assert_eq!(out(compose::conv_2d(ctx.0, "c", k2, b2, ONE, ONE)), (GGML_OP_CONT, [8, 7, 8, 5]));
        assert_eq!(out(compose::conv_1d(ctx.0, "c", k1, b1, ONE)), (GGML_OP_CONT, [8, 8, 5, 1]));
        assert_eq!(out(compose::conv_1d_dw(ctx.0, "c", line, rows, ONE)), (GGML_OP_RESHAPE, [8, 4, 1, 1]));
        assert_eq!(out(compose::conv_2d_dw(ctx.0, "c", kd, b2, ONE, ONE)), (GGML_OP_RESHAPE, [8, 7, 4, 5]));
        assert_eq!(out(compose::conv_3d(ctx.0, "c", k3, b3, 4, [ONE; 3])), (GGML_OP_RESHAPE, [6, 5, 4, 6]));
        assert_eq!(out(compose::argsort_top_k(ctx.0, "c", b2, 3)), (GGML_OP_VIEW, [3, 9, 4, 5]));
        let formats: Vec<_> = ctx.get().tensors().filter(|&t| (*t).op == GGML_OP_IM2COL).map(|t| (*t).r#type).collect();
        assert_eq!(formats, [GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_F16]);
    }
}

#[test]
fn several_nodes_keep_the_first_cause() {
    let ctx = Ctx::new(1 << 16, true);
    let k = ctx.tensor("k", GGML_TYPE_F16, &[3, 3, 4, 8]);
    let b = ctx.tensor("b", GGML_TYPE_F32, &[10, 9, 5, 5]);
    let null = std::ptr::null_mut();
    // SAFETY: a live context, live tensors or NULL.
    unsafe {
        for (t, text) in [
            (
                compose::conv_2d(ctx.0, "conv", k, b, ONE, ONE),
                "conv: src0 'k' f16[3,3,4,8] and src1 'b' f32[10,9,5,5]: ne[2] must be equal",
            ),
            (compose::conv_2d(ctx.0, "conv", null, b, ONE, ONE), "conv: source 0 is NULL"),
            (compose::conv_2d(ctx.0, "conv", k, null, ONE, ONE), "conv: source 1 is NULL"),
            (compose::conv_1d(ctx.0, "conv", null, null, ONE), "conv: source 0 is NULL"),
            (compose::conv_1d_dw(ctx.0, "conv", null, null, ONE), "conv: source 0 is NULL"),
            (compose::conv_2d_dw(ctx.0, "conv", null, null, ONE, ONE), "conv: source 0 is NULL"),
            (compose::conv_3d(ctx.0, "conv", k, null, 0, [ONE; 3]), "conv: source 1 is NULL"),
            (compose::argsort_top_k(ctx.0, "top", b, 11), "top: src0 'b' f32[10,9,5,5]: k 11 must be 0 to ne[0]"),
        ] {
            assert_eq!(poison::cause(&*t).unwrap().to_str().unwrap(), text);
        }
    }
}
