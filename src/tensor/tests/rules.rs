//! Shape tables of the rules, with every refusal.

use super::{f32s, meta, refused, swapped};
use crate::tensor::attention::{flash_attn_ext, Sources};
use crate::tensor::misc::{arange, timestep_embedding, Custom};
use crate::tensor::rope::{rope, Rope};
use crate::tensor::{copy, elementwise, image, matmul, new, norm, reduce, view, NodeSpec, Place};
use ggml_oxide_abi::*;

fn f16s(ne: &[i64]) -> ggml_tensor {
    meta("h", GGML_TYPE_F16, ne)
}
fn i32s(ne: &[i64]) -> ggml_tensor {
    meta("i", GGML_TYPE_I32, ne)
}
fn ne(spec: Result<NodeSpec, crate::error::Error>) -> [i64; 4] {
    let spec = spec.unwrap();
    spec.layout().unwrap();
    spec.ne
}
fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

#[test]
fn leaves() {
    assert_eq!(ne(new::leaf(GGML_TYPE_F32, &[2, 3])), [2, 3, 1, 1]);
    assert_eq!(ne(new::leaf(GGML_TYPE_F32, &[2, 0, 3])), [2, 0, 3, 1]);
    assert!(refused(new::leaf(GGML_TYPE_F32, &[])).contains("0 dimensions"));
    assert!(refused(new::leaf(GGML_TYPE_F32, &[1; 5])).contains("5 dimensions"));
    let layout = |ty, ne: &[i64]| new::leaf(ty, ne).unwrap().layout().unwrap_err().text;
    assert!(layout(GGML_TYPE_F32, &[-1]).contains("negative"));
    assert!(layout(GGML_TYPE_F32, &[i64::MIN, 0]).contains("negative"));
    assert!(layout(GGML_TYPE_Q4_0, &[33]).contains("32-element blocks"));
    assert!(layout(GGML_TYPE_F32, &[1 << 62, 4]).contains("can be counted"));
    assert!(layout(GGML_TYPE_F32, &[i64::MAX]).contains("can be counted"));
    assert!(layout(GGML_TYPE_I8, &[i64::MAX, 1, 1, 2]).contains("can be counted"));
    for id in [-1, 4, 5, 31, 36, 100, i32::MAX, i32::MIN] {
        assert!(layout(ggml_type(id), &[1]).contains("no format"), "{id}");
    }
}

#[test]
fn binary() {
    let add = |a: &[i64], b: &[i64]| elementwise::binary(GGML_OP_ADD, &f32s(a), &f32s(b), false);
    assert_eq!(ne(add(&[4, 6, 2, 3], &[2, 3, 1, 3])), [4, 6, 2, 3]);
    assert_eq!(ne(add(&[0, 4], &[0, 2])), [0, 4, 1, 1]);
    assert_eq!(ne(add(&[0, 4], &[3, 2])), [0, 4, 1, 1]);
    assert_eq!(refused(add(&[4, 6], &[3])), "src1 'x' f32[3] cannot be repeated to src0 'x' f32[4,6]");
    refused(add(&[4], &[4, 2]));
    refused(add(&[4], &[0]));
    let over = elementwise::binary(GGML_OP_MUL, &swapped(&[4, 6]), &f32s(&[1]), true).unwrap();
    assert_eq!((over.place, over.nb.unwrap()), (Place::Alias { of: 0 }, swapped(&[4, 6]).nb));
}

#[test]
fn arithmetic() {
    let a = f32s(&[4, 2]);
    let cast = |a: &ggml_tensor, b: &[i64]| elementwise::add_cast(a, &f32s(b), GGML_TYPE_F32);
    assert_eq!(ne(cast(&f16s(&[4, 2]), &[4])), [4, 2, 1, 1]);
    assert_eq!(ne(cast(&meta("q", GGML_TYPE_Q8_0, &[32, 2]), &[32])), [32, 2, 1, 1]);
    assert!(refused(cast(&a, &[4])).contains("quantised, f16 or bf16"));
    assert!(refused(cast(&f16s(&[4, 2]), &[2])).contains("repeated"));

    let id = |a: &[i64], b: &[i64], ids: &ggml_tensor| elementwise::add_id(&f32s(a), &f32s(b), ids);
    assert_eq!(ne(id(&[8, 2, 5], &[8, 4], &i32s(&[2, 5]))), [8, 2, 5, 1]);
    assert!(refused(id(&[8, 2, 5], &[7, 4], &i32s(&[2, 5]))).contains("ne[0] must be equal"));
    assert!(refused(id(&[8, 2, 5], &[8, 4], &i32s(&[3, 5]))).contains("an id for each row"));
    assert!(refused(id(&[8, 2, 5], &[8, 4], &i32s(&[2, 4]))).contains("an id for each row"));
    assert!(refused(id(&[8, 2, 5], &[8, 4], &f32s(&[2, 5]))).contains("must be i32"));

    assert_eq!(ne(elementwise::add1(&a, &f32s(&[1]), false)), [4, 2, 1, 1]);
    assert!(refused(elementwise::add1(&a, &f32s(&[2]), false)).contains("one element"));
    assert!(refused(elementwise::add1(&swapped(&[4, 2]), &f32s(&[1]), false)).contains("gaps"));

    let scaled = elementwise::scale(&a, 2.0, -1.0, false).unwrap();
    assert_eq!(scaled.params[..2], [bits(2.0), bits(-1.0)]);
    let mut gap = a;
    (gap.nb[1], gap.nb[2], gap.nb[3]) = (20, 40, 40);
    assert_eq!(ne(elementwise::scale(&gap, 2.0, 0.0, false)), [4, 2, 1, 1]);
    gap.nb[3] = 44;
    assert!(refused(elementwise::scale(&gap, 2.0, 0.0, true)).contains("gaps"));

    assert_eq!(elementwise::clamp(&a, 1.0, 2.0, false).unwrap().params[..2], [bits(1.0), bits(2.0)]);
    assert_eq!(elementwise::fill(&a, 3.0, true).unwrap().params[0], bits(3.0));
    assert!(refused(elementwise::fill(&i32s(&[2]), 1.0, false)).contains("f32 or f16"));
    assert!(refused(elementwise::fill(&swapped(&[4, 2]), 1.0, false)).contains("contiguous"));
}

#[test]
fn windows() {
    let a = f32s(&[8, 8]);
    let set = |b: &ggml_tensor, nb, offset, inplace| elementwise::window(GGML_OP_SET, &a, b, nb, offset, inplace);
    let spec = set(&f32s(&[4, 2]), [32, 256, 256], 36, true).unwrap();
    assert_eq!(spec.params[..5], [32, 256, 256, 36, 1]);
    assert_eq!(set(&f32s(&[4, 2]), [32, 256, 256], 36, false).unwrap().params[4], 0);
    assert!(refused(set(&f32s(&[8, 9]), [32, 256, 256], 0, false)).contains("more elements"));
    assert!(refused(set(&f32s(&[8, 2]), [32, 256, 256], 200, false)).contains("leaves"));
    assert!(refused(set(&f32s(&[4, 2]), [1 << 31, 0, 0], 0, false)).contains("below 2^31"));
    assert!(refused(set(&f32s(&[4, 2]), [0, 0, 0], usize::MAX, false)).contains("below 2^31"));
    let acc = |a: &ggml_tensor, b: &ggml_tensor| elementwise::window(GGML_OP_ACC, a, b, [32, 256, 256], 0, false);
    assert_eq!(ne(acc(&a, &f32s(&[8]))), [8, 8, 1, 1]);
    assert!(refused(acc(&f16s(&[8, 8]), &f32s(&[8]))).contains("must be f32"));
    assert!(refused(acc(&a, &f16s(&[8]))).contains("must be f32"));
    assert!(refused(acc(&swapped(&[8, 8]), &f32s(&[8]))).contains("contiguous"));
}

#[test]
fn unary() {
    for f in 0..GGML_UNARY_OP_COUNT.0 {
        assert_eq!(elementwise::unary(ggml_unary_op(f), &f32s(&[3]), false).unwrap().params[0], f);
    }
    for f in [-1, GGML_UNARY_OP_COUNT.0, i32::MAX] {
        assert!(refused(elementwise::unary(ggml_unary_op(f), &f32s(&[3]), false)).contains("no unary operator"));
    }
    assert!(refused(elementwise::unary(GGML_UNARY_OP_ABS, &swapped(&[3, 2]), false)).contains("contiguous rows"));
    let x = elementwise::xielu(&f32s(&[3]), 0.0, 30.0, 0.5, 1e-6).unwrap();
    let near = |i: usize, want: f32| assert!((f32::from_bits(x.params[i] as u32) - want).abs() <= want * 1e-6);
    assert_eq!(x.params[0], GGML_UNARY_OP_XIELU.0);
    near(1, 0.5 + std::f32::consts::LN_2);
    near(2, 30.0);
    near(3, 0.5);
    near(4, 1e-6);
    assert!(refused(elementwise::xielu(&swapped(&[3, 2]), 0.0, 0.0, 0.0, 0.0)).contains("contiguous rows"));
    assert_eq!(elementwise::leaky_relu(&f32s(&[3]), 0.1, false).unwrap().params[0], bits(0.1));
}

#[test]
fn gated_units() {
    let a = f32s(&[6, 4]);
    let glu = |a: &ggml_tensor, b: Option<&ggml_tensor>| elementwise::glu(GGML_GLU_OP_SWIGLU, a, b, true);
    let halves = glu(&a, None).unwrap();
    assert_eq!((halves.ne, halves.params[..2].to_vec()), ([3, 4, 1, 1], vec![GGML_GLU_OP_SWIGLU.0, 1]));
    assert_eq!(ne(glu(&f32s(&[7, 4]), None)), [3, 4, 1, 1]);
    assert_eq!(ne(glu(&a, Some(&a))), [6, 4, 1, 1]);
    assert!(refused(glu(&a, Some(&f32s(&[6])))).contains("one shape and format"));
    assert!(refused(glu(&a, Some(&f16s(&[6, 4])))).contains("one shape and format"));
    assert!(refused(glu(&swapped(&[6, 4]), None)).contains("gaps"));
    assert!(refused(glu(&a, Some(&swapped(&[4, 6])))).contains("gaps"));
    for f in [-1, GGML_GLU_OP_COUNT.0] {
        assert!(refused(elementwise::glu(ggml_glu_op(f), &a, None, false)).contains("no gated unit"));
    }
}

#[test]
fn reductions() {
    let a = f32s(&[5, 4, 3, 2]);
    assert_eq!(ne(reduce::sum(&a)), [1; 4]);
    assert_eq!(ne(reduce::sum_rows(&a)), [1, 4, 3, 2]);
    assert_eq!(reduce::mean(&f16s(&[5, 4])).unwrap().ty, GGML_TYPE_F32);
    assert_eq!(ne(reduce::mean(&a)), [1, 4, 3, 2]);
    assert_eq!(ne(reduce::cumsum(&a)), a.ne);
    assert!(refused(reduce::cumsum(&f16s(&[5]))).contains("must be f32"));
    let arg = reduce::argmax(&f32s(&[5, 4])).unwrap();
    assert_eq!((arg.ne, arg.ty), ([4, 1, 1, 1], GGML_TYPE_I32));
    assert!(refused(reduce::argmax(&a)).contains("matrix"));
    assert!(refused(reduce::argmax(&f32s(&[1 << 31, 1]))).contains("below 2^31"));
    let count = reduce::count_equal(&a, &a).unwrap();
    assert_eq!((count.ne, count.ty), ([1; 4], GGML_TYPE_I64));
    assert!(refused(reduce::count_equal(&a, &f32s(&[5]))).contains("one shape"));
    let sorted = reduce::argsort(&a, GGML_SORT_ORDER_DESC).unwrap();
    assert_eq!((sorted.ne, sorted.ty, sorted.params[0]), (a.ne, GGML_TYPE_I32, 1));
    assert!(refused(reduce::argsort(&a, ggml_sort_order(2))).contains("sort order"));
    assert!(refused(reduce::argsort(&f32s(&[1 << 31]), GGML_SORT_ORDER_ASC)).contains("below 2^31"));
    assert_eq!(ne(reduce::top_k(&a, 3)), [3, 4, 3, 2]);
    assert_eq!(ne(reduce::top_k(&a, 0)), [0, 4, 3, 2]);
    assert!(refused(reduce::top_k(&a, 6)).contains("k 6"));
    assert!(refused(reduce::top_k(&a, -1)).contains("k -1"));
}

#[test]
fn norms() {
    let a = f32s(&[5, 4]);
    for op in [GGML_OP_NORM, GGML_OP_RMS_NORM, GGML_OP_L2_NORM] {
        let spec = norm::rows(op, &a, 1e-5, false).unwrap();
        assert_eq!((spec.op, spec.params[0], spec.ne), (op, bits(1e-5), a.ne));
        for eps in [-1.0, f32::NAN] {
            assert!(refused(norm::rows(op, &a, eps, true)).contains("eps"));
        }
    }
    assert_eq!(norm::group_norm(&a, 8, 1e-6, false).unwrap().params[..2], [8, bits(1e-6)]);
    assert!(refused(norm::group_norm(&a, 0, 0.0, false)).contains("groups"));
    assert!(refused(norm::group_norm(&a, 1, -1.0, false)).contains("eps"));
}

#[test]
fn softmax() {
    let a = f32s(&[8, 4, 6, 2]);
    let soft = |mask: Option<&ggml_tensor>, bias| norm::soft_max(&a, mask, 0.5, bias, false);
    assert_eq!(soft(None, 0.0).unwrap().params[..2], [bits(0.5), bits(0.0)]);
    assert_eq!(ne(soft(Some(&f16s(&[8, 5, 3, 2])), 1.0)), a.ne);
    assert_eq!(ne(soft(Some(&f32s(&[8, 4])), 0.0)), a.ne);
    assert!(refused(soft(None, 1.0)).contains("needs a mask"));
    assert!(refused(soft(None, f32::NAN)).contains("needs a mask"));
    assert!(refused(soft(Some(&i32s(&[8, 4])), 0.0)).contains("f16 or f32"));
    assert!(refused(soft(Some(&swapped(&[4, 8])), 0.0)).contains("contiguous"));
    assert!(refused(soft(Some(&f32s(&[8, 3])), 0.0)).contains("cover"));
    assert!(refused(soft(Some(&f32s(&[9, 4])), 0.0)).contains("cover"));
    assert!(refused(soft(Some(&f32s(&[8, 4, 4])), 0.0)).contains("repeated"));
    assert!(refused(soft(Some(&f32s(&[8, 4, 1, 3])), 0.0)).contains("repeated"));
    assert!(refused(norm::soft_max(&swapped(&[8, 4]), None, 1.0, 0.0, false)).contains("contiguous"));
    assert!(norm::sinks(&a, &f32s(&[6])).is_ok());
    assert!(norm::sinks(&a, &f32s(&[5])).is_err());
    assert!(norm::sinks(&a, &f16s(&[6])).is_err());
}

#[test]
fn matrix_products() {
    let mm = |a: &[i64], b: &[i64]| matmul::mul_mat(&f32s(a), &f32s(b));
    assert_eq!(ne(mm(&[8, 3, 2, 1], &[8, 5, 4, 7])), [3, 5, 4, 7]);
    assert_eq!(ne(mm(&[0, 3], &[0, 5])), [3, 5, 1, 1]);
    assert_eq!(ne(mm(&[8, 0], &[8, 5])), [0, 5, 1, 1]);
    assert!(refused(mm(&[8, 3], &[9, 5])).contains("ne[0] must be equal"));
    assert!(refused(mm(&[8, 3, 2], &[8, 5, 3])).contains("repeated"));
    assert!(refused(mm(&[8, 3, 1, 2], &[8, 5])).contains("repeated"));
    assert!(refused(mm(&[8, 3, 0], &[8, 5, 3])).contains("repeated"));
    assert!(refused(matmul::mul_mat(&swapped(&[3, 8]), &f32s(&[8, 5]))).contains("transposed"));
    assert!(mm(&[1, 1 << 60], &[1, 1 << 60]).unwrap().layout().is_err());

    let id = |a: &[i64], b: &[i64], ids: &ggml_tensor| matmul::mul_mat_id(&f32s(a), &f32s(b), ids);
    assert_eq!(ne(id(&[8, 3, 4], &[8, 1, 5], &i32s(&[2, 5]))), [3, 2, 5, 1]);
    assert!(refused(id(&[8, 3, 4], &[8, 1, 5], &f32s(&[2, 5]))).contains("i32"));
    assert!(refused(id(&[8, 3, 4, 2], &[8, 1, 5], &i32s(&[2, 5]))).contains("3 dimensions"));
    assert!(refused(id(&[8, 3, 4], &[8, 1, 5, 2], &i32s(&[2, 5]))).contains("3 dimensions"));
    assert!(refused(id(&[8, 3, 4], &[8, 1, 5], &i32s(&[2, 5, 2]))).contains("matrix"));
    assert!(refused(id(&[8, 3, 4], &[8, 1, 5], &i32s(&[2, 4]))).contains("row for each token"));
    assert!(refused(id(&[8, 3, 4], &[7, 1, 5], &i32s(&[2, 5]))).contains("ne[0]"));
    assert!(refused(id(&[8, 3, 4], &[8, 3, 5], &i32s(&[2, 5]))).contains("repeated"));
    let turned = matmul::mul_mat_id(&swapped(&[3, 8]), &f32s(&[8, 1]), &i32s(&[1]));
    assert!(refused(turned).contains("transposed"));
}

#[test]
fn attention() {
    let (q, k, v) = (f32s(&[64, 7, 8, 2]), f16s(&[64, 9, 2, 2]), f16s(&[32, 9, 4, 2]));
    let run = |q: &ggml_tensor, k: &ggml_tensor, v: &ggml_tensor, mask: Option<&ggml_tensor>, bias| {
        flash_attn_ext(Sources { q, k, v, mask }, 0.5, bias, 3.0)
    };
    let spec = run(&q, &k, &v, Some(&f16s(&[9, 7, 8, 1])), 1.0).unwrap();
    assert_eq!((spec.ne, spec.params[..4].to_vec()), ([32, 8, 7, 2], vec![bits(0.5), bits(1.0), bits(3.0), 0]));
    assert_eq!(ne(run(&q, &k, &v, Some(&f16s(&[12, 64])), 0.0)), [32, 8, 7, 2]);
    assert!(refused(run(&q, &k, &v, None, 1.0)).contains("needs a mask"));
    assert!(refused(run(&q, &f16s(&[63, 9, 2, 2]), &v, None, 0.0)).contains("ne[0]"));
    assert!(refused(run(&q, &f16s(&[64, 9, 3, 2]), &v, None, 0.0)).contains("repeated"));
    assert!(refused(run(&q, &f16s(&[64, 9, 2, 1]), &v, None, 0.0)).contains("ne[3]"));
    assert!(refused(run(&q, &k, &f16s(&[32, 9, 4, 1]), None, 0.0)).contains("ne[3]"));
    assert!(refused(run(&q, &k, &f16s(&[32, 8, 4, 2]), None, 0.0)).contains("ne[1]"));
    assert!(refused(run(&q, &k, &f16s(&[32, 9, 3, 2]), None, 0.0)).contains("heads"));
    let masked = |mask: &ggml_tensor| refused(run(&q, &k, &v, Some(mask), 0.0));
    assert!(masked(&f32s(&[9, 7])).contains("f16"));
    assert!(masked(&f16s(&[8, 7])).contains("cover"));
    assert!(masked(&f16s(&[9, 6])).contains("cover"));
    assert!(masked(&f16s(&[9, 7, 3])).contains("repeated"));
    assert!(masked(&f16s(&[9, 7, 1, 3])).contains("repeated"));
    let mut turned = f16s(&[9, 7]);
    turned.nb[1] += 2;
    assert!(masked(&turned).contains("contiguous"));
}

#[test]
fn views() {
    let a = f32s(&[4, 6]);
    assert_eq!(ne(view::reshape(&a, [8, 3, 1, 1])), [8, 3, 1, 1]);
    assert!(refused(view::reshape(&a, [8, 2, 1, 1])).contains("has 24 elements"));
    assert!(refused(view::reshape(&a, [-4, -6, 1, 1])).contains("elements"));
    assert!(refused(view::reshape(&a, [i64::MAX; 4])).contains("elements"));
    assert!(refused(view::reshape(&swapped(&[4, 6]), [24, 1, 1, 1])).contains("contiguous"));
    assert!(view::reshape(&meta("q", GGML_TYPE_Q4_0, &[64]), [16, 4, 1, 1]).unwrap().layout().is_err());

    let p = view::permute(&f32s(&[2, 3, 4, 5]), [2, 0, 3, 1]).unwrap();
    assert_eq!((p.ne, p.nb.unwrap(), p.params[..4].to_vec()), ([3, 5, 2, 4], [8, 96, 4, 24], vec![2, 0, 3, 1]));
    for axes in [[0, 1, 2, 2], [0, 1, 2, 4], [-1, 1, 2, 3], [i32::MIN; 4]] {
        assert!(refused(view::permute(&a, axes)).contains("no permutation"));
    }
    let t = view::transpose(&a).unwrap();
    assert_eq!((t.ne, t.nb.unwrap(), t.op, t.params), ([6, 4, 1, 1], [16, 4, 96, 96], GGML_OP_TRANSPOSE, [0; 16]));
}

#[test]
fn copies() {
    let a = f32s(&[4, 6]);
    assert_eq!(ne(copy::cpy(&a, &f16s(&[24]))), [24, 1, 1, 1]);
    assert!(refused(copy::cpy(&a, &f16s(&[23]))).contains("as many elements"));
    assert_eq!(copy::cast(&a, GGML_TYPE_F16).unwrap().self_src, Some(1));
    assert_eq!(ne(copy::cont(&swapped(&[4, 6]), None)), [6, 4, 1, 1]);
    assert_eq!(ne(copy::cont(&a, Some([2, 12, 1, 1]))), [2, 12, 1, 1]);
    assert!(refused(copy::cont(&a, Some([2, 11, 1, 1]))).contains("elements"));
    assert_eq!(ne(copy::repeat(&a, [8, 6, 3, 1])), [8, 6, 3, 1]);
    assert!(refused(copy::repeat(&a, [6, 6, 1, 1])).contains("repeated"));
    assert!(refused(copy::repeat(&f32s(&[0]), [6, 6, 1, 1])).contains("repeated"));
    let cat = |b: &ggml_tensor, dim| copy::concat(&a, b, dim);
    assert_eq!(ne(cat(&f32s(&[4, 2]), 1)), [4, 8, 1, 1]);
    assert_eq!(ne(cat(&a, 3)), [4, 6, 1, 2]);
    assert!(refused(cat(&a, 4)).contains("no dimension"));
    assert!(refused(cat(&a, -1)).contains("no dimension"));
    assert!(refused(cat(&f16s(&[4, 6]), 0)).contains("one format"));
    assert!(refused(cat(&f32s(&[4, 7]), 0)).contains("ne[1]"));
}

#[test]
fn rows_by_index() {
    let a = meta("q", GGML_TYPE_Q4_0, &[32, 10, 3, 2]);
    let spec = copy::get_rows(&a, &i32s(&[5, 3, 2])).unwrap();
    assert_eq!((spec.ne, spec.ty), ([32, 5, 3, 2], GGML_TYPE_F32));
    assert_eq!(copy::get_rows(&i32s(&[4, 4]), &i32s(&[2])).unwrap().ty, GGML_TYPE_I32);
    assert!(refused(copy::get_rows(&a, &i32s(&[5, 2, 2]))).contains("ids for each"));
    assert!(refused(copy::get_rows(&a, &i32s(&[5, 3, 1]))).contains("ids for each"));
    assert!(refused(copy::get_rows(&a, &i32s(&[5, 3, 2, 2]))).contains("ids for each"));
    assert!(refused(copy::get_rows(&a, &f32s(&[5, 3, 2]))).contains("i32"));

    let set = |b: &ggml_tensor, ids: &ggml_tensor| copy::set_rows(b, ids, &a);
    let spec = set(&f32s(&[32, 5, 3, 2]), &meta("i", GGML_TYPE_I64, &[5, 1, 2])).unwrap();
    assert_eq!((spec.place, spec.ne, spec.ty), (Place::Alias { of: 2 }, a.ne, GGML_TYPE_Q4_0));
    assert!(refused(set(&f32s(&[32, 5, 3, 1]), &i32s(&[5]))).contains("but for ne[1]"));
    assert!(refused(set(&f32s(&[64, 5, 3, 2]), &i32s(&[5]))).contains("but for ne[1]"));
    assert!(refused(set(&f32s(&[32, 5, 3, 2]), &i32s(&[4]))).contains("rows of"));
    assert!(refused(set(&f32s(&[32, 5, 3, 2]), &i32s(&[5, 2]))).contains("rows of"));
    assert!(refused(set(&i32s(&[32, 5, 3, 2]), &i32s(&[5]))).contains("f32 or f16"));
    assert!(refused(set(&f32s(&[32, 5, 3, 2]), &f32s(&[5]))).contains("i64 or i32"));
    let turned = swapped(&[5, 32]);
    assert!(refused(copy::set_rows(&turned, &i32s(&[5]), &f32s(&[32, 9]))).contains("contiguous rows"));
    assert!(refused(copy::set_rows(&f32s(&[32, 5]), &i32s(&[5]), &swapped(&[9, 32]))).contains("contiguous rows"));
}

#[test]
fn masks_and_triangles() {
    assert_eq!(ne(copy::diag(&f32s(&[3, 1, 2]))), [3, 3, 2, 1]);
    assert!(refused(copy::diag(&f32s(&[3, 2]))).contains("ne[1]"));
    assert_eq!(copy::diag_mask(GGML_OP_DIAG_MASK_INF, &f32s(&[3]), 7, false).unwrap().params[0], 7);
    assert!(refused(copy::diag_mask(GGML_OP_DIAG_MASK_INF, &f32s(&[3]), -1, false)).contains("n_past"));
    assert_eq!(copy::tri(&f32s(&[3, 3]), GGML_TRI_TYPE_LOWER).unwrap().params[0], 3);
    assert!(refused(copy::tri(&f32s(&[3, 3]), ggml_tri_type(4))).contains("triangle"));
    assert!(refused(copy::tri(&f16s(&[3, 3]), GGML_TRI_TYPE_LOWER)).contains("f32"));
    assert!(refused(copy::tri(&f32s(&[3, 2]), GGML_TRI_TYPE_LOWER)).contains("square"));
    assert!(refused(copy::tri(&swapped(&[3, 3]), GGML_TRI_TYPE_LOWER)).contains("contiguous"));
}

#[test]
fn ropes() {
    let a = f32s(&[64, 8, 5, 2]);
    let args = Rope { n_ctx_orig: 9, factors: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ..Rope::simple(32, 0) };
    let spec = rope(&a, &i32s(&[5]), Some(&f32s(&[16])), &args, true).unwrap();
    let factors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(bits);
    assert_eq!((spec.params[..5].to_vec(), &spec.params[5..11]), (vec![0, 32, 0, 0, 9], &factors[..]));
    assert_eq!(spec.params[11..], [0; 5]);
    let multi = Rope { mode: GGML_ROPE_TYPE_MROPE, sections: Some([1, 2, 3, 4]), ..args };
    assert_eq!(rope(&a, &i32s(&[20]), None, &multi, false).unwrap().params[11..], [1, 2, 3, 4, 0]);
    let unused = Rope { sections: Some([1, 2, 3, 4]), ..args };
    assert_eq!(rope(&a, &i32s(&[5]), None, &unused, false).unwrap().params[11..], [0; 5]);
    let with = |args: Rope, p: &ggml_tensor, c: Option<&ggml_tensor>| refused(rope(&a, p, c, &args, false));
    let good = i32s(&[5]);
    assert!(with(Rope { mode: 1, ..args }, &good, None).contains("mode 1"));
    assert!(with(Rope { n_dims: 31, ..args }, &good, None).contains("even"));
    assert!(with(Rope { n_dims: -2, ..args }, &good, None).contains("negative"));
    assert!(with(Rope { n_dims: 66, ..args }, &good, None).contains("above ne[0]"));
    assert!(with(args, &f32s(&[5]), None).contains("i32 vector"));
    assert!(with(args, &i32s(&[5, 2]), None).contains("i32 vector"));
    assert!(with(args, &i32s(&[20]), None).contains("1 for each token"));
    assert!(with(multi, &good, None).contains("4 for each token"));
    assert!(with(args, &good, Some(&f32s(&[15]))).contains("n_dims / 2"));
    assert!(with(args, &good, Some(&f16s(&[16]))).contains("n_dims / 2"));
}

#[test]
fn images() {
    let a = f32s(&[4, 3, 2, 2]);
    let up = |ne, mode| image::interpolate(&a, ne, mode);
    assert_eq!(up([7, 1, 2, 2], 0x201).unwrap().params[0], 0x201);
    assert!(refused(up([7, 1, 2, 2], 3)).contains("scale mode"));
    assert!(refused(up([7, 1, 2, 2], 0x200)).contains("bilinear"));
    assert!(refused(image::interpolate(&f16s(&[4]), [8, 1, 1, 1], 0)).contains("f32"));
    assert!(refused(image::interpolate(&f32s(&[0]), [8, 1, 1, 1], 0)).contains("empty"));
    assert_eq!(ne(image::upscale(&a, 3, GGML_SCALE_MODE_NEAREST)), [12, 9, 2, 2]);
    assert!(refused(image::upscale(&a, 1, GGML_SCALE_MODE_NEAREST)).contains("above 1"));
    assert!(refused(image::upscale(&a, 2, ggml_scale_mode(-1))).contains("scale mode"));

    let pad = image::pad(&a, [1, 2, 0, 3, 4, 0, 0, 5], true).unwrap();
    assert_eq!((pad.ne, pad.params[..9].to_vec()), ([7, 6, 6, 7], vec![1, 2, 0, 3, 4, 0, 0, 5, 1]));
    assert!(image::pad(&a, [-3, -2, 0, 0, 0, 0, 0, 0], false).unwrap().layout().is_err());
    assert!(refused(image::pad(&f32s(&[0]), [1, 0, 0, 0, 0, 0, 0, 0], true)).contains("empty"));
    assert_eq!(ne(image::pad(&f32s(&[0]), [1, 0, 0, 0, 0, 0, 0, 0], false)), [1; 4]);

    assert_eq!(ne(image::pad_reflect_1d(&a, 3, 1)), [8, 3, 2, 2]);
    assert!(refused(image::pad_reflect_1d(&a, 4, 1)).contains("below ne[0]"));
    assert!(refused(image::pad_reflect_1d(&a, -1, 1)).contains("negative"));
    assert!(refused(image::pad_reflect_1d(&f16s(&[4]), 1, 1)).contains("f32"));
    assert!(refused(image::pad_reflect_1d(&swapped(&[4, 3]), 1, 1)).contains("contiguous"));

    assert_eq!(image::roll(&a, [3, -2, 1, 0]).unwrap().params[..4], [3, -2, 1, 0]);
    assert!(refused(image::roll(&a, [4, 0, 0, 0])).contains("ne[0]"));
    assert!(refused(image::roll(&a, [0, 0, 0, i32::MIN])).contains("ne[3]"));
    assert!(refused(image::roll(&swapped(&[4, 3]), [0; 4])).contains("contiguous rows"));
}

#[test]
fn sequences() {
    assert_eq!(ne(arange(0.0, 5.0, 2.0)), [3, 1, 1, 1]);
    assert_eq!(arange(1.0, 5.0, 2.0).unwrap().params[..3], [1.0, 5.0, 2.0].map(bits));
    assert!(refused(arange(1.0, 1.0, 1.0)).contains("above start"));
    assert!(refused(arange(f32::NAN, 1.0, 1.0)).contains("above start"));
    assert!(refused(arange(0.0, 1.0, 0.0)).contains("positive"));
    assert!(refused(arange(0.0, 1.0, -1.0)).contains("positive"));
    assert!(refused(arange(0.0, 1e30, 1e-30)).contains("too many"));
    assert!(arange(0.0, 3e38, 1.0).unwrap().layout().is_err());
    assert_eq!(ne(timestep_embedding(&f32s(&[3]), 320, 10000)), [320, 3, 1, 1]);
    assert!(timestep_embedding(&f32s(&[3]), -1, 10000).unwrap().layout().is_err());
}

#[test]
fn functions_of_the_callers() {
    let custom = Custom { function: 0x1234_5678_9abc, n_tasks: 4, user_data: usize::MAX };
    let spec = custom.into_spec(NodeSpec::new(GGML_OP_CUSTOM, GGML_TYPE_F32, [1; 4])).unwrap();
    if cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        assert_eq!(spec.params[..6], [0x5678_9abc, 0x1234, 4, 0, -1, -1]);
    }
    let blank = || NodeSpec::new(GGML_OP_CUSTOM, GGML_TYPE_F32, [1; 4]);
    assert!(refused(Custom { function: 0, ..custom }.into_spec(blank())).contains("NULL"));
    assert!(refused(Custom { n_tasks: 0, ..custom }.into_spec(blank())).contains("tasks"));
    assert!(refused(Custom { n_tasks: -2, ..custom }.into_spec(blank())).contains("tasks"));
    assert!(Custom { n_tasks: -1, ..custom }.into_spec(blank()).is_ok());
}
