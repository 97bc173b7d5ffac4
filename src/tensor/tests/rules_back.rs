//! Shape tables of the operators of training: results, parameters, places. What is refused is for the C tests.

use super::{f32s, meta, refused};
use crate::tensor::attention::flash_attn_back;
use crate::tensor::conv::{im2col_1d, im2col_2d, im2col_back, Axis};
use crate::tensor::matmul::out_prod;
use crate::tensor::pool::{pool_2d, pool_2d_back, Window};
use crate::tensor::rope::{rope, rope_back, yarn_corr_dims, Rope};
use crate::tensor::{backward, train, NodeSpec, Place};
use ggml_oxide_abi::*;

fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

#[test]
fn products() {
    let spec = out_prod(&f32s(&[7, 5, 2]), &f32s(&[3, 5, 4, 6])).unwrap();
    assert_eq!((spec.op, spec.ty, spec.ne), (GGML_OP_OUT_PROD, GGML_TYPE_F32, [7, 3, 4, 6]));
    let blocks = out_prod(&meta("q", GGML_TYPE_Q4_0, &[64, 5]), &f32s(&[3, 5])).unwrap();
    assert_eq!((blocks.ty, blocks.ne), (GGML_TYPE_F32, [64, 3, 1, 1]));
}

#[test]
fn along_rows() {
    let (g, x) = (meta("g", GGML_TYPE_F16, &[7, 5, 2]), f32s(&[7, 5, 2]));
    let spec = backward::silu(&g, &x).unwrap();
    assert_eq!((spec.op, spec.ty, spec.ne, spec.place), (GGML_OP_SILU_BACK, GGML_TYPE_F16, x.ne, Place::Own));
    let spec = backward::rms_norm(&x, &x, 0.5).unwrap();
    assert_eq!((spec.op, spec.params[0], spec.place), (GGML_OP_RMS_NORM_BACK, bits(0.5), Place::Own));
    let spec = backward::soft_max(&x, &x, 0.25, 8.0, false).unwrap();
    assert_eq!((spec.op, spec.params[..2].to_vec()), (GGML_OP_SOFT_MAX_BACK, vec![bits(0.25), bits(8.0)]));
    let spec = backward::soft_max(&x, &x, 0.25, 8.0, true).unwrap();
    assert_eq!((spec.place, spec.params[0]), (Place::Alias { of: 0 }, bits(0.25)));
    assert!(refused(backward::rms_norm(&x, &x, f32::NAN)).contains("eps"));
}

#[test]
fn to_what_was_copied() {
    let spec = backward::repeat(&meta("g", GGML_TYPE_F16, &[6, 4, 9]), [3, 4, 1, 1]).unwrap();
    assert_eq!((spec.op, spec.ty, spec.ne, spec.n_src), (GGML_OP_REPEAT_BACK, GGML_TYPE_F16, [3, 4, 1, 1], 1));
    assert_eq!(backward::repeat(&f32s(&[0, 4]), [0, 2, 1, 1]).unwrap().ne, [0, 2, 1, 1]);
    let ids = meta("i", GGML_TYPE_I32, &[9, 2]);
    let of = meta("w", GGML_TYPE_Q8_0, &[32, 100, 2]);
    let spec = backward::get_rows(&meta("g", GGML_TYPE_F16, &[32, 9, 2]), &ids, &of).unwrap();
    assert_eq!((spec.op, spec.ty, spec.ne, spec.n_src), (GGML_OP_GET_ROWS_BACK, GGML_TYPE_F32, of.ne, 2));
}

/// A gradient of the shape that the forward rule answers is taken, with the same parameters.
#[test]
fn windows() {
    let (x, y) = (Axis { s: 2, p: 1, d: 1 }, Axis { s: 1, p: 0, d: 3 });
    let (kernel, image) = (f32s(&[3, 2, 4, 8]), f32s(&[10, 9, 4, 5]));
    let forward = im2col_2d(&kernel, &image, x, y, GGML_TYPE_F16).unwrap();
    let spec = im2col_back(&f32s(&forward.ne), &kernel, image.ne, x, y, true).unwrap();
    assert_eq!(
        (spec.op, spec.ty, spec.ne, spec.params),
        (GGML_OP_IM2COL_BACK, GGML_TYPE_F32, image.ne, forward.params)
    );
    let (kernel, image) = (f32s(&[3, 4, 8]), f32s(&[10, 4, 2]));
    let forward = im2col_1d(&kernel, &image, x, y, GGML_TYPE_F16).unwrap();
    let spec = im2col_back(&f32s(&forward.ne), &kernel, image.ne, x, y, false).unwrap();
    assert_eq!((spec.ne, spec.params), (image.ne, forward.params));
    // divided towards zero, as the forward rule does
    let (kernel, image) = (f32s(&[4, 1, 1]), f32s(&[3, 1, 1]));
    let wide = Axis { s: 2, p: 0, d: 1 };
    let one = Axis { s: 1, p: 0, d: 1 };
    let forward = im2col_2d(&kernel, &image, wide, one, GGML_TYPE_F16).unwrap();
    assert!(im2col_back(&f32s(&forward.ne), &kernel, image.ne, wide, one, true).is_ok());

    let image = f32s(&[9, 8, 3, 2]);
    for p in [0.0, 0.5, 1.0, 1.5, 2.0] {
        let w = |p| Window { k: 3, s: 2, p };
        let forward = pool_2d(&image, GGML_OP_POOL_AVG, w(p), w(0.5)).unwrap();
        let grad = f32s(&forward.ne);
        for (px, py) in [(p, 0.5), (p.trunc(), 0.0)] {
            let spec = pool_2d_back(&grad, &image, GGML_OP_POOL_AVG, w(px), w(py)).unwrap();
            assert_eq!(
                (spec.op, spec.ty, spec.ne, spec.params),
                (GGML_OP_POOL_2D_BACK, GGML_TYPE_F32, image.ne, forward.params)
            );
        }
    }
    let w = Window { k: 3, s: 2, p: 1.0 };
    for ne in [[4, 4, 3, 2], [6, 4, 3, 2], [5, 3, 3, 2], [5, 6, 3, 2]] {
        assert!(refused(pool_2d_back(&f32s(&ne), &image, GGML_OP_POOL_MAX, w, w)).contains("windows"), "{ne:?}");
    }
}

#[test]
fn rotation() {
    let (a, pos) = (f32s(&[16, 2, 3]), meta("p", GGML_TYPE_I32, &[12]));
    let args = Rope { sections: Some([2, 3, 2, 1]), ..Rope::simple(16, GGML_ROPE_TYPE_MROPE) };
    let (forward, back) = (rope(&a, &pos, None, &args, false).unwrap(), rope_back(&a, &pos, None, &args).unwrap());
    assert_eq!(back, NodeSpec { op: GGML_OP_ROPE_BACK, ..forward });
    assert_eq!(yarn_corr_dims(128, 4096, 1e4, 32.0, 1.0), [20.0, 46.0]);
    assert!(yarn_corr_dims(128, 0, 1e4, 0.0, 1.0)[0].is_nan());
}

#[test]
fn attention() {
    let (q, k, v) = (f32s(&[5, 3, 4, 2]), f32s(&[5, 7, 2, 2]), f32s(&[7, 5, 2, 2]));
    let spec = flash_attn_back(&q, &k, &v, &q, true).unwrap();
    // 120, 140 and 140 elements
    assert_eq!((spec.op, spec.ne, spec.params[0]), (GGML_OP_FLASH_ATTN_BACK, [400, 1, 1, 1], 1));
    let (q, k, v) = (f32s(&[1, 1]), f32s(&[1, 5]), f32s(&[5, 1]));
    assert_eq!(flash_attn_back(&q, &k, &v, &q, false).unwrap().ne, [4 + 8 + 8, 1, 1, 1]);
}

#[test]
fn training() {
    let x = f32s(&[7, 5, 2]);
    let spec = train::cross_entropy_loss(&x, &x).unwrap();
    assert_eq!((spec.op, spec.ne), (GGML_OP_CROSS_ENTROPY_LOSS, [1; 4]));
    let spec = train::cross_entropy_loss_back(&f32s(&[1]), &x, &x).unwrap();
    assert_eq!((spec.op, spec.ne), (GGML_OP_CROSS_ENTROPY_LOSS_BACK, x.ne));
    let mut w = f32s(&[7, 5, 2]);
    assert!(refused(train::sgd(&w, &x, &f32s(&[2]))).contains("parameter"));
    w.flags |= GGML_TENSOR_FLAG_PARAM.0;
    let spec = train::sgd(&w, &x, &f32s(&[2])).unwrap();
    assert_eq!((spec.op, spec.place, spec.nb), (GGML_OP_OPT_STEP_SGD, Place::Alias { of: 0 }, Some(w.nb)));
    let spec = train::adamw(&w, &x, &x, &x, &f32s(&[1, 7])).unwrap();
    assert_eq!((spec.op, spec.place, spec.ne), (GGML_OP_OPT_STEP_ADAMW, Place::Alias { of: 0 }, w.ne));
}
