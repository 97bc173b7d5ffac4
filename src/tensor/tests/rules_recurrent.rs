//! Shape tables of recurrent operators, windows, streams and systems of equations, with every refusal.

use super::{f32s, meta, refused, swapped};
use crate::tensor::recurrent::{gated_delta_net, gated_linear, ssm_conv, ssm_scan, wkv6, wkv7, Delta, Scan};
use crate::tensor::{conv, solve, streams, window, NodeSpec, Place};
use ggml_oxide_abi::*;

fn ne(spec: Result<NodeSpec, crate::error::Error>) -> [i64; 4] {
    let spec = spec.unwrap();
    spec.layout().unwrap();
    spec.ne
}
fn f16s(ne: &[i64]) -> ggml_tensor {
    meta("h", GGML_TYPE_F16, ne)
}
fn i32s(ne: &[i64]) -> ggml_tensor {
    meta("i", GGML_TYPE_I32, ne)
}
/// Rows further apart than they are long.
fn gaps(ne: &[i64]) -> ggml_tensor {
    let mut t = f32s(ne);
    t.nb[1..].iter_mut().for_each(|nb| *nb *= 2);
    t
}
/// Elements further apart than they are long.
fn loose(ne: &[i64]) -> ggml_tensor {
    let mut t = f32s(ne);
    t.nb.iter_mut().for_each(|nb| *nb *= 2);
    t
}

#[test]
fn state_space_convolution() {
    let conv = |sx: &[i64], c: &[i64]| ssm_conv(&f32s(sx), &f32s(c));
    assert_eq!(ne(conv(&[8, 6, 2], &[4, 6])), [6, 5, 2, 1]);
    assert_eq!(ne(conv(&[3, 6, 2], &[4, 6])), [6, 0, 2, 1]);
    assert!(refused(conv(&[2, 6, 2], &[4, 6])).contains("too short"));
    assert!(refused(conv(&[8, 6, 2, 2], &[4, 6])).contains("3 dimensions"));
    assert!(refused(conv(&[8, 6, 2], &[4, 6, 2])).contains("must be a matrix"));
    assert!(refused(conv(&[8, 6, 2], &[4, 5])).contains("ne[1] must be equal"));
    let long = meta("long", GGML_TYPE_I8, &[i64::MAX, 0]);
    let none = meta("none", GGML_TYPE_I8, &[0, 0]);
    assert!(ssm_conv(&long, &none).unwrap().layout().is_ok());
}

#[test]
fn selective_scan() {
    // d_state 16, head_dim 4, heads 6, groups 2, tokens 5, sequences 3
    let (s, x, dt) = (f32s(&[16, 4, 6, 7]), f32s(&[4, 6, 5, 3]), f32s(&[6, 5, 3]));
    let (a1, a2, b, ids) = (f32s(&[1, 6]), f32s(&[16, 6]), f32s(&[16, 2, 5, 3]), i32s(&[3]));
    let scan = Scan { s: &s, x: &x, dt: &dt, a: &a1, b: &b, c: &b, ids: &ids };
    let states = 16 * 4 * 6 * 3;
    assert_eq!(ne(ssm_scan(scan, 1)), [360 + states, 1, 1, 1]);
    assert_eq!(ne(ssm_scan(scan, 3)), [360 + 3 * states, 1, 1, 1]);
    assert_eq!(ssm_scan(scan, 3).unwrap().params[0], 3);
    assert_eq!(ne(ssm_scan(Scan { a: &a2, ..scan }, 1)), [360 + states, 1, 1, 1]);
    let wide = gaps(&[4, 6, 5, 3]);
    let mut apart = x;
    (apart.nb[2], apart.nb[3]) = (200, 1000);
    assert_eq!(ne(ssm_scan(Scan { x: &apart, ..scan }, 1)), [360 + states, 1, 1, 1]);
    for k in [0, -1, i64::MAX] {
        assert!(refused(ssm_scan(scan, k)).contains("states to keep"));
    }
    let text = |scan: Scan| refused(ssm_scan(scan, 1));
    assert!(text(Scan { s: &gaps(&[16, 4, 6, 7]), ..scan }).contains("s 'x' f32[16,4,6,7] must be contiguous"));
    assert!(text(Scan { dt: &gaps(&[6, 5, 3]), ..scan }).starts_with("dt"));
    assert!(text(Scan { a: &gaps(&[16, 6]), ..scan }).starts_with("A"));
    assert!(text(Scan { x: &wide, ..scan }).contains("no gaps"));
    assert!(text(Scan { b: &loose(&[16, 2, 5, 3]), ..scan }).contains("no gaps"));
    assert!(text(Scan { c: &gaps(&[16, 2, 5, 3]), ..scan }).starts_with("C"));
    assert!(text(Scan { c: &f32s(&[16, 1, 5, 3]), ..scan }).contains("one shape"));
    assert!(text(Scan { ids: &f32s(&[3]), ..scan }).contains("must be i32"));
    assert!(text(Scan { ids: &i32s(&[4]), ..scan }).contains("for each sequence"));
    assert!(text(Scan { ids: &i32s(&[3, 2]), ..scan }).contains("for each sequence"));
    assert!(text(Scan { dt: &f32s(&[6, 4, 3]), ..scan }).contains("[heads, tokens, sequences]"));
    assert!(text(Scan { dt: &f32s(&[6, 5, 3, 2]), ..scan }).contains("[heads, tokens, sequences]"));
    assert!(text(Scan { s: &f32s(&[16, 3, 6, 7]), ..scan }).contains("ne[1] and ne[2]"));
    assert!(text(Scan { s: &f32s(&[15, 4, 6, 7]), ..scan }).contains("must have ne[0]"));
    let short = f32s(&[16, 2, 4, 3]);
    assert!(text(Scan { b: &short, c: &short, ..scan }).contains("must have ne[0]"));
    let odd = f32s(&[16, 4, 5, 3]);
    assert!(text(Scan { b: &odd, c: &odd, ..scan }).contains("groups"));
    assert!(text(Scan { a: &f32s(&[1, 5]), ..scan }).contains("a row for each head"));
    assert!(text(Scan { a: &f32s(&[1, 6, 2]), ..scan }).contains("a row for each head"));
    assert!(text(Scan { a: &f32s(&[8, 6]), ..scan }).contains("ne[0] must be 1 or"));
    assert!(refused(ssm_scan(Scan { a: &a2, ..scan }, 2)).contains("where ne[0] is 1"));
}

#[test]
fn linear_attention() {
    let (t, f, state) = (f32s(&[8, 3, 10]), f32s(&[8, 3]), f32s(&[8 * 8 * 3, 2]));
    let (few, many, cut) = (f32s(&[8, 3, 9]), f32s(&[8, 3, 10, 2]), gaps(&[8, 3, 10]));
    let want = [24, 10 + 16, 1, 1];
    assert_eq!(ne(wkv6([&t; 4], &f, &state)), want);
    assert_eq!(ne(wkv6([&t; 4], &f32s(&[24, 2]), &f32s(&[8, 2, 8, 3]))), want);
    assert_eq!(ne(wkv7([&t; 6], &state)), want);
    let spec = gated_linear([&t; 4], &state, 0.5).unwrap();
    assert_eq!((spec.ne, spec.params[0]), (want, 0.5f32.to_bits() as i32));
    assert_eq!(ne(wkv7([&f32s(&[8, 3, 0]); 6], &state)), [24, 16, 1, 1]);

    for i in 0..6 {
        let mut all = [&t; 6];
        all[i] = &cut;
        let name = ["r ", "w ", "k ", "v ", "a ", "b "][i];
        assert!(refused(wkv7(all, &state)).starts_with(name), "{i}");
        for bad in [&few, &many] {
            all[i] = bad;
            assert!(refused(wkv7(all, &state)).contains("one shape"), "{i}");
        }
    }
    for i in 0..4 {
        let mut all = [&t; 4];
        all[i] = &cut;
        assert!(refused(wkv6(all, &f, &state)).contains("contiguous"));
        assert!(refused(gated_linear(all, &state, 1.0)).contains("contiguous"));
        all[i] = &few;
        assert!(refused(wkv6(all, &f, &state)).contains("one shape"));
        assert!(refused(gated_linear(all, &state, 1.0)).contains("one shape"));
    }
    assert!(refused(wkv6([&t; 4], &gaps(&[8, 3]), &state)).contains("tf 'x' f32[8,3] must be contiguous"));
    assert!(refused(wkv6([&t; 4], &f32s(&[8, 2]), &state)).contains("an element for each"));
    let states = |s: &ggml_tensor| refused(wkv7([&t; 6], s));
    assert!(states(&gaps(&[192, 2])).contains("contiguous"));
    assert!(states(&f32s(&[191, 2])).contains("8 * 8 * 3 elements"));
    assert!(states(&f32s(&[192, 3])).contains("multiple of the sequences"));
    assert!(states(&f32s(&[192, 20])).contains("multiple of the sequences"));
    assert!(states(&f32s(&[192, 0])).contains("multiple of the sequences"));
}

#[test]
fn gated_delta() {
    let (q, k, v) = (f32s(&[16, 2, 5, 1]), f32s(&[16, 2, 5, 3]), f32s(&[16, 4, 5, 3]));
    let (g, beta, state) = (f32s(&[1, 4, 5, 3]), f32s(&[1, 4, 5, 3]), f32s(&[16, 16, 4, 3]));
    let d = Delta { q: &q, k: &k, v: &v, g: &g, beta: &beta, state: &state };
    assert_eq!(ne(gated_delta_net(d, 1)), [64, 15 + 48, 1, 1]);
    let spec = gated_delta_net(Delta { g: &v, q: &gaps(&[16, 4, 5, 3]), ..d }, 4).unwrap();
    assert_eq!((spec.ne, spec.params[0]), ([64, 15 + 4 * 48, 1, 1], 4));
    for keep in [0, -3, i64::MAX] {
        assert!(refused(gated_delta_net(d, keep)).contains("states to keep"));
    }
    let text = |d: Delta| refused(gated_delta_net(d, 1));
    assert!(text(Delta { q: &f16s(&[16, 2, 5]), ..d }).contains("must be f32"));
    assert!(text(Delta { state: &f16s(&[16, 16, 4, 3]), ..d }).contains("must be f32"));
    assert!(text(Delta { k: &loose(&[16, 2, 5, 3]), ..d }).contains("contiguous rows"));
    assert!(text(Delta { q: &f32s(&[15, 2, 5]), ..d }).contains("ne[0] and ne[2]"));
    assert!(text(Delta { k: &f32s(&[16, 2, 4, 3]), ..d }).contains("ne[0] and ne[2]"));
    assert!(text(Delta { q: &f32s(&[16, 3, 5]), ..d }).contains("cannot be repeated"));
    assert!(text(Delta { k: &f32s(&[16, 2, 5, 2]), ..d }).contains("cannot be repeated"));
    assert!(text(Delta { k: &f32s(&[16, 0, 5, 3]), ..d }).contains("cannot be repeated"));
    assert!(text(Delta { g: &gaps(&[16, 4, 5, 3]), ..d }).contains("must be contiguous"));
    assert!(text(Delta { g: &f32s(&[2, 4, 5, 3]), ..d }).contains("1 or ne0"));
    assert!(text(Delta { g: &f32s(&[1, 4, 5, 1]), ..d }).contains("1 or ne0"));
    assert!(text(Delta { beta: &f32s(&[16, 4, 5, 3]), ..d }).contains("[1, ne1, ne2, ne3]"));
    assert!(text(Delta { state: &f32s(&[16, 16, 4, 2]), ..d }).contains("[ne0, ne0, ne1, ne3]"));
}

#[test]
fn windows() {
    let spec = window::win_part(&f32s(&[5, 9, 4]), 4).unwrap();
    assert_eq!((spec.ne, &spec.params[..3]), ([5, 4, 4, 3], &[3, 1, 4][..]));
    assert!(refused(window::win_part(&f32s(&[5, 9, 4]), 0)).contains("must be positive"));
    assert!(refused(window::win_part(&f32s(&[5, 9, 4, 2]), 4)).contains("3 dimensions"));
    assert!(refused(window::win_part(&f16s(&[5, 9, 4]), 4)).contains("must be f32"));
    assert!(refused(window::win_part(&f32s(&[0, 1 << 40]), 4)).contains("can be counted"));

    let spec = window::win_unpart(&f32s(&[5, 4, 4, 3]), 9, 4, 4).unwrap();
    assert_eq!((spec.ne, spec.params[0]), ([5, 9, 4, 1], 4));
    let text = |a: &[i64], w0, h0, w| refused(window::win_unpart(&f32s(a), w0, h0, w));
    assert!(text(&[5, 4, 4, 3], 9, 4, -1).contains("must be positive"));
    assert!(text(&[5, 4, 4, 3], -9, 4, 4).contains("not be negative"));
    assert!(text(&[5, 4, 4, 2], 9, 4, 4).contains("3 windows of 4 times 4"));
    assert!(text(&[5, 4, 3, 3], 9, 4, 4).contains("3 windows"));
    assert!(text(&[5, 3, 4, 3], 9, 4, 4).contains("3 windows"));
    assert!(refused(window::win_unpart(&f16s(&[5, 4, 4, 3]), 9, 4, 4)).contains("must be f32"));

    let spec = window::get_rel_pos(&f16s(&[5, 7]), 4, 4).unwrap();
    assert_eq!((spec.ne, spec.ty), ([5, 4, 4, 1], GGML_TYPE_F16));
    assert!(refused(window::get_rel_pos(&f16s(&[5, 7]), 3, 4)).contains("must be equal"));
    assert!(refused(window::get_rel_pos(&f16s(&[5, 8]), 4, 4)).contains("2 * 4 - 1 rows"));
    assert!(refused(window::get_rel_pos(&f16s(&[5, 7, 2]), 4, 4)).contains("must be a matrix"));
    assert!(refused(window::get_rel_pos(&f16s(&[5, 7]), i32::MIN, i32::MIN)).contains("must be a matrix"));

    let (a, p) = (f32s(&[9, 10, 2]), f32s(&[3, 2, 5, 2]));
    let spec = window::add_rel_pos(&a, &p, &p, false).unwrap();
    assert_eq!((spec.ne, spec.place, spec.params[0]), (a.ne, Place::Own, 0));
    let spec = window::add_rel_pos(&a, &p, &p, true).unwrap();
    assert_eq!((spec.ne, spec.place, spec.params[0]), (a.ne, Place::Alias { of: 0 }, 1));
    let text = |a: &ggml_tensor, pw: &ggml_tensor, ph: &ggml_tensor| refused(window::add_rel_pos(a, pw, ph, false));
    assert!(text(&a, &p, &f32s(&[3, 5, 2, 2])).contains("one shape"));
    assert!(text(&gaps(&[9, 10, 2]), &p, &p).contains("must be contiguous"));
    assert!(text(&a, &gaps(&[3, 2, 5, 2]), &p).contains("must be contiguous"));
    assert!(text(&a, &p, &f16s(&[3, 2, 5, 2])).contains("must be f32"));
    for ne in [[8, 10, 2, 1], [9, 11, 2, 1], [9, 10, 3, 1], [9, 10, 2, 2]] {
        assert!(text(&f32s(&ne), &p, &p).contains("[ne0 * ne0, ne1 * ne2, ne3]"));
    }
}

#[test]
fn columns_to_signal() {
    let f = |a: &ggml_tensor, s, oc, p| conv::col2im_1d(a, s, oc, p);
    let a = f16s(&[12, 5]);
    let spec = f(&a, 2, 3, 1).unwrap();
    assert_eq!((spec.ne, spec.ty, &spec.params[..3]), ([10, 3, 1, 1], GGML_TYPE_F16, &[2, 3, 1][..]));
    assert!(refused(f(&f32s(&[12, 5, 2]), 2, 3, 1)).contains("must be a matrix"));
    assert!(refused(f(&swapped(&[12, 5]), 2, 3, 1)).contains("contiguous"));
    assert!(refused(f(&i32s(&[12, 5]), 2, 3, 1)).contains("f32, f16 or bf16"));
    for (s, oc, p) in [(0, 3, 0), (2, 0, 0), (2, 3, -1)] {
        assert!(refused(f(&a, s, oc, p)).contains("must be positive"));
    }
    assert!(refused(f(&a, 2, 5, 0)).contains("multiple of 5 channels"));
    assert!(refused(f(&f32s(&[0, 5]), 2, 3, 0)).contains("multiple of 3 channels"));
    assert!(refused(f(&a, 2, 3, 6)).contains("nothing is left"));
    assert!(refused(f(&f32s(&[12, 0]), 4, 3, 0)).contains("nothing is left"));
    assert!(refused(f(&a, 2, 3, i32::MAX)).contains("nothing is left"));
}

#[test]
fn triangular_systems() {
    let f = |a: &ggml_tensor, b: &ggml_tensor| solve::solve_tri(a, b, true, true, false);
    let (a, b) = (f32s(&[5, 5, 2, 3]), f32s(&[4, 5, 2, 3]));
    assert_eq!(ne(f(&a, &b)), [4, 5, 2, 3]);
    for form in [[false, true, false], [true, false, false], [true, true, true]] {
        assert!(refused(solve::solve_tri(&a, &b, form[0], form[1], form[2])).contains("form"));
    }
    assert!(refused(f(&f16s(&[5, 5, 2, 3]), &b)).contains("must be f32"));
    assert!(refused(f(&gaps(&[5, 5, 2, 3]), &b)).contains("contiguous"));
    assert!(refused(f(&a, &gaps(&[4, 5, 2, 3]))).contains("contiguous"));
    assert!(refused(f(&f32s(&[5, 4, 2, 3]), &f32s(&[4, 4, 2, 3]))).contains("square"));
    for ne in [[4, 4, 2, 3], [4, 5, 1, 3], [4, 5, 2, 1]] {
        assert!(refused(f(&a, &f32s(&ne))).contains("must be equal"));
    }
}

#[test]
fn residual_streams() {
    let (mixes, scale, base) = (f32s(&[24, 7]), f32s(&[3]), f32s(&[24]));
    let spec = streams::hc_comb(&mixes, &scale, &base, 0.5, 20).unwrap();
    assert_eq!((spec.ne, &spec.params[..2]), ([4, 4, 7, 1], &[0.5f32.to_bits() as i32, 20][..]));
    let comb = |m: &ggml_tensor, s: &ggml_tensor, b: &ggml_tensor| refused(streams::hc_comb(m, s, b, 0.5, 1));
    assert!(refused(streams::hc_comb(&mixes, &scale, &base, 0.5, 0)).contains("at least one"));
    assert!(comb(&f16s(&[24, 7]), &scale, &base).contains("must be f32"));
    assert!(comb(&f32s(&[15, 7]), &scale, &f32s(&[15])).contains("rows of 24"));
    assert!(comb(&f32s(&[24, 7, 2]), &scale, &base).contains("rows of 24"));
    assert!(comb(&mixes, &f32s(&[2]), &base).contains("3 or more"));
    assert!(comb(&mixes, &f32s(&[3, 2]), &base).contains("3 or more"));
    assert!(comb(&mixes, &scale, &f32s(&[25])).contains("row of 24"));

    let (x, w) = (f32s(&[6, 3, 7]), f32s(&[3, 7]));
    let spec = streams::hc_pre(&x, &w, 1.0, false).unwrap();
    assert_eq!((spec.ne, &spec.params[..2]), ([6, 7, 1, 1], &[1f32.to_bits() as i32, 0][..]));
    let spec = streams::hc_pre(&x, &x, 0.5, true).unwrap();
    assert_eq!((spec.ne, &spec.params[..2]), ([6, 7, 1, 1], &[0.5f32.to_bits() as i32, 1][..]));
    assert!(refused(streams::hc_pre(&x, &x, 1.0, false)).contains("weights 'x' f32[6,3,7] must be [ne1, ne2]"));
    assert!(refused(streams::hc_pre(&x, &w, 1.0, true)).contains("gate 'x' f32[3,7] must be of the shape"));
    assert!(refused(streams::hc_pre(&x, &f16s(&[3, 7]), 1.0, false)).contains("must be f32"));
    assert!(refused(streams::hc_pre(&f32s(&[6, 0, 7]), &f32s(&[0, 7]), 1.0, false)).contains("streams"));
    assert!(refused(streams::hc_pre(&f32s(&[6, 3, 7, 2]), &w, 1.0, false)).contains("3 dimensions"));

    let (y, c) = (f32s(&[6, 7]), f32s(&[3, 3, 7]));
    assert_eq!(ne(streams::hc_post(&y, &x, &w, Some(&c))), [6, 3, 7, 1]);
    assert_eq!(ne(streams::hc_post(&y, &x, &w, None)), [6, 3, 7, 1]);
    let post = |y: &ggml_tensor, x: &ggml_tensor, w: &ggml_tensor, c: &ggml_tensor| {
        refused(streams::hc_post(y, x, w, Some(c)))
    };
    assert!(post(&f32s(&[6, 7, 2]), &x, &w, &c).contains("must be a matrix"));
    assert!(post(&y, &f32s(&[6, 3, 8]), &w, &c).contains("[ne0, streams, ne1]"));
    assert!(post(&y, &f32s(&[6, 0, 7]), &w, &c).contains("[ne0, streams, ne1]"));
    assert!(post(&y, &x, &f32s(&[4, 7]), &c).contains("[ne1, ne2]"));
    assert!(post(&y, &x, &w, &f32s(&[3, 4, 7])).contains("[ne1, ne1, ne2]"));
    assert!(post(&y, &x, &w, &f16s(&[3, 3, 7])).contains("must be f32"));
}

#[test]
fn indexer() {
    let (q, k, w, m) = (f32s(&[8, 4, 5, 6]), f16s(&[8, 1, 9, 6]), f32s(&[4, 5, 1, 6]), f16s(&[9, 5, 1, 3]));
    let f = |q: &ggml_tensor, k: &ggml_tensor, w: &ggml_tensor, m: &ggml_tensor| streams::lightning_indexer(q, k, w, m);
    assert_eq!(ne(f(&q, &k, &w, &m)), [9, 5, 1, 6]);
    assert!(refused(f(&k, &k, &w, &m)).contains("must be f32"));
    assert!(refused(f(&q, &k, &m, &m)).contains("must be f32"));
    assert!(refused(f(&q, &k, &w, &f32s(&[9, 5]))).contains("must be f16"));
    assert!(refused(f(&q, &f32s(&[7, 1, 9, 6]), &w, &m)).contains("[ne0, 1, keys, ne3]"));
    assert!(refused(f(&q, &f32s(&[8, 2, 9, 6]), &w, &m)).contains("[ne0, 1, keys, ne3]"));
    assert!(refused(f(&q, &f32s(&[8, 1, 9, 1]), &w, &m)).contains("[ne0, 1, keys, ne3]"));
    assert!(refused(f(&q, &k, &f32s(&[4, 6, 1, 6]), &m)).contains("[ne1, ne2, 1, ne3]"));
    assert!(refused(f(&q, &k, &w, &f16s(&[8, 5]))).contains("must cover"));
    assert!(refused(f(&q, &k, &w, &f16s(&[9, 5, 2]))).contains("must cover"));
    assert!(refused(f(&q, &k, &w, &f16s(&[9, 5, 1, 4]))).contains("cannot be repeated"));
}
