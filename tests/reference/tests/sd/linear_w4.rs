//! SD-4, `sd.linear_w4_convrot.v1`.

use super::api::*;
use super::{computed, floats, formulas, same};
use reference::*;

const F8_E4M3: ggml_type = GGML_TYPE_F8_E4M3;

#[derive(Clone, Copy, Debug)]
struct Case {
    k: usize,
    n: usize,
    rows: [usize; 3],
    group: usize,
    /// By a node that the test makes; else by the one that the builder makes.
    packed: bool,
    bias: bool,
}

/// Half `k` of row `n`: the low one is the even element.
fn half(bytes: &[u8], width: usize, n: usize, k: usize) -> u8 {
    bytes[n * width / 2 + k / 2] >> (4 * (k % 2)) & 15
}

fn check(w: &mut World, kind: i32, c: Case) {
    let what = format!("SD-4: kind {kind}, {c:?}");
    let (k, n, [m, b2, b3]) = (c.k, c.n, c.rows);
    let weight = w.source(GGML_TYPE_I8, [k / 2, n, 1, 1], Layout::Cont, &Fill::Whole(-128, 128));
    let a = w.source(GGML_TYPE_F32, [k, m, b2, b3], Layout::Cont, &Fill::Range(-4.0, 4.0));
    let n_scales = if kind == 1 { n } else { 16 };
    let scales = w.source(GGML_TYPE_F32, [n_scales, 1, 1, 1], Layout::Cont, &Fill::Range(-1.0, 1.0));
    let bias = if c.bias { w.source(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont, &Fill::Range(-5.0, 5.0)) } else { NONE };
    let (mut channel, mut rel) = (NONE, NONE);
    if kind == 2 {
        channel = w.source(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont, &Fill::Range(1e-3, 1e-1));
        rel = w.leaf(F8_E4M3, [k / 16, n, 1, 1]);
        // every number but NaN
        for (i, b) in w.raw(rel).iter_mut().enumerate() {
            let byte = (i * 37 + 5) as u8;
            *b = if byte & 127 == 127 { 1 } else { byte };
        }
    }
    let input = if c.packed { ggml_quantize_i8_convrot(w.ctx, a, c.group as i32) } else { a };
    let out = ggml_mul_mat_w4_convrot(w.ctx, weight, input, scales, channel, rel, bias, kind, c.group as i32);
    computed(w, out, &what);
    assert_eq!(world::ne(out), [n, m, b2, b3], "{what}: shape");
    let bytes: Vec<u8> = w.raw(weight).to_vec();
    let scales = floats(scales);
    let bias = c.bias.then(|| floats(bias));
    let rel: Vec<f32> = if kind == 2 { w.raw(rel).iter().map(|&b| formulas::e4m3(b)).collect() } else { Vec::new() };
    let channel = if kind == 2 { floats(channel) } else { Vec::new() };
    let mut want = Vec::new();
    for row in floats(a).chunks_exact(k) {
        let (q, x_scale) = formulas::quantise(row, c.group);
        for n in 0..n {
            let bias = bias.as_ref().map(|b| b[n]);
            if kind == 1 {
                let signed = |i: usize| i8::try_from((i32::from(half(&bytes, k, n, i)) + 8) % 16 - 8).unwrap();
                let row: Vec<i8> = (0..k).map(signed).collect();
                want.push(formulas::linear(&row, &q, x_scale, Some(scales[n]), bias));
                continue;
            }
            let mut sum = 0f32;
            for i in 0..k {
                let factor = channel[n] * rel[n * (k / 16) + i / 16];
                let weight = scales[usize::from(half(&bytes, k, n, i))] * factor;
                sum += weight * f32::from(q[i]);
            }
            let v = sum * x_scale;
            want.push(bias.map_or(v, |b| v + b));
        }
    }
    same(&floats(out), &want, &what);
}

#[test]
fn sd_4_both_kinds_at_their_edges() {
    let mut seed = 0;
    for kind in [1, 2] {
        for (k, group) in [(4, 4), (16, 16), (16, 1), (48, 4), (64, 64), (256, 256), (512, 256), (768, 64)] {
            if kind == 2 && k % 16 != 0 {
                continue;
            }
            for n in [1, 3, 4, 37] {
                for m in [1, 3, 8, 9, 65] {
                    let case = Case { k, n, rows: [m, 1, 1], group, packed: seed % 2 == 0, bias: seed % 3 != 0 };
                    World::with(4 * seed, |w| check(w, kind, case));
                    seed += 1;
                }
            }
        }
        let case = Case { k: 64, n: 5, rows: [3, 2, 3], group: 16, packed: true, bias: true };
        World::with(0, |w| check(w, kind, case));
        World::with(0, |w| check(w, kind, Case { n: 300, rows: [50, 1, 1], packed: false, ..case }));
    }
}

#[test]
fn sd_4_every_group_at_the_edges() {
    let mut ran = 0;
    for (kind, ks) in [(1, [4, 252, 256, 260]), (2, [16, 240, 256, 272])] {
        for k in ks {
            for group in [1, 4, 16, 64, 256].into_iter().filter(|group| k % group == 0) {
                for n in [1, 3, 128] {
                    for m in [1, 3, 4, 5, 65] {
                        let rows = if m == 4 { [1, 2, 2] } else { [m, 1, 1] };
                        let case = Case { k, n, rows, group, packed: ran % 2 == 0, bias: ran % 3 != 0 };
                        World::with(ran, |w| check(w, kind, case));
                        ran += 1;
                    }
                }
            }
        }
    }
    assert_eq!(ran, 15 * (2 + 2 + 5 + 2 + 3 + 3 + 5 + 3));
}

/// A sum of terms: table element, scale of the channel, scale of the group, activation.
type Sum<'a> = &'a dyn Fn(&mut dyn Iterator<Item = (f32, f32, f32, f32)>) -> f32;

/// SD-4: products of W4A8 are rounded and added up one after the other; data with which another way gives something else.
#[test]
fn sd_4_w4a8_sums_in_order_without_fma() {
    World::with(0, |w| {
        let (k, n, m) = (512, 19, 4);
        let weight = w.source(GGML_TYPE_I8, [k / 2, n, 1, 1], Layout::Cont, &Fill::Whole(-128, 128));
        let a = w.source(GGML_TYPE_F32, [k, m, 1, 1], Layout::Cont, &Fill::Range(-4.0, 4.0));
        let book = w.source(GGML_TYPE_F32, [16, 1, 1, 1], Layout::Cont, &Fill::Range(-1.0, 1.0));
        let [channel, bias] =
            [n; 2].map(|n| w.source(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont, &Fill::Range(0.1, 1.0)));
        let rel = w.leaf(F8_E4M3, [k / 16, n, 1, 1]);
        w.raw(rel).iter_mut().enumerate().for_each(|(i, b)| *b = 0x30 + (i * 7 % 13) as u8);
        let out = ggml_mul_mat_w4_convrot(w.ctx, weight, a, book, channel, rel, bias, 2, 64);
        computed(w, out, "SD-4: order");
        let bytes = w.raw(weight).to_vec();
        let rel: Vec<f32> = w.raw(rel).iter().map(|&b| formulas::e4m3(b)).collect();
        let (book, channel, bias, a) = (floats(book), floats(channel), floats(bias), floats(a));
        let all = |sum: Sum, end: &dyn Fn(f32, f32, f32) -> f32| {
            let mut v = Vec::new();
            for row in a.chunks_exact(k) {
                let (q, x) = formulas::quantise(row, 64);
                for n in 0..n {
                    let term = |i: usize| {
                        let code = usize::from(half(&bytes, k, n, i));
                        (book[code], channel[n], rel[n * (k / 16) + i / 16], f32::from(q[i]))
                    };
                    v.push(end(sum(&mut (0..k).map(term)), x, bias[n]));
                }
            }
            v
        };
        let plain_end = |s: f32, x: f32, b: f32| s * x + b;
        let want = all(&|t| t.fold(0f32, |s, (c, ch, r, q)| s + c * (ch * r) * q), &plain_end);
        assert_ne!(want, all(&|t| t.fold(0f32, |s, (c, ch, r, q)| (c * (ch * r)).mul_add(q, s)), &plain_end));
        assert_ne!(want, all(&|t| t.fold(0f32, |s, (c, ch, r, q)| s + (c * ch) * r * q), &plain_end));
        assert_ne!(
            want,
            all(
                &|t| t
                    .map(|(c, ch, r, q)| c * (ch * r) * q)
                    .collect::<Vec<_>>()
                    .chunks(8)
                    .fold(0f32, |s, p| s + p.iter().sum::<f32>()),
                &plain_end
            )
        );
        assert_ne!(want, all(&|t| t.fold(0f32, |s, (c, ch, r, q)| s + c * (ch * r) * q), &|s, x, b| s.mul_add(x, b)));
        same(&floats(out), &want, "SD-4: order");
    });
}

/// SD-4: rows that are longer than what is unpacked, or summed, at a time.
#[test]
fn sd_4_long_rows() {
    for (kind, k, m) in [(1, 2064, 5), (1, 4100, 3), (1, 16_388, 17), (2, 4112, 3), (2, 8224, 17)] {
        for n in [1, 5] {
            let case = Case { k, n, rows: [m, 1, 1], group: 4, packed: n == 1, bias: true };
            World::with(0, |w| check(w, kind, case));
        }
    }
}
