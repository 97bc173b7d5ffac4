//! SD-2, `sd.linear_i8.v1`.

use super::api::*;
use super::{computed, floats, formulas, ints, same};
use reference::*;

/// How the activation comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// F32, rotated and quantised inside.
    F32,
    /// By a node of its own.
    Packed,
    /// As I8 with scales.
    Scaled,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    k: usize,
    n: usize,
    rows: [usize; 3],
    group: usize,
    form: Form,
    weight_scale: bool,
    bias: bool,
}

fn check(w: &mut World, c: Case) {
    let what = format!("SD-2: {c:?}");
    let (k, n, [m, b2, b3]) = (c.k, c.n, c.rows);
    let weight = w.source(GGML_TYPE_I8, [k, n, 1, 1], Layout::Cont, &Fill::Whole(-128, 128));
    let vector = |w: &mut World, have: bool, n: usize, fill: Fill| match have {
        true => w.source(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont, &fill),
        false => NONE,
    };
    let scale = vector(w, c.weight_scale, n, Fill::Range(1e-3, 1e-2));
    let bias = vector(w, c.bias, n, Fill::Range(-5.0, 5.0));
    let ne = [k, m, b2, b3];
    let (input, input_scale, rows): (T, T, Vec<(Vec<i8>, f32)>);
    if c.form == Form::Scaled {
        input = w.source(GGML_TYPE_I8, ne, Layout::Cont, &Fill::Whole(-128, 128));
        input_scale = vector(w, true, m * b2 * b3, Fill::Range(1e-3, 1.0));
        let (q, scales) = (ints(w.raw(input)), floats(input_scale));
        rows = q.chunks_exact(k).map(<[i8]>::to_vec).zip(scales).collect();
    } else {
        let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::Range(-4.0, 4.0));
        rows = floats(a).chunks_exact(k).map(|row| formulas::quantise(row, c.group)).collect();
        input = if c.form == Form::Packed { ggml_quantize_i8_convrot(w.ctx, a, c.group as i32) } else { a };
        input_scale = NONE;
    }
    let out = ggml_mul_mat_i8_tensorwise_scaled(w.ctx, weight, input, scale, bias, c.group as i32, input_scale);
    computed(w, out, &what);
    assert_eq!(world::ne(out), [n, m, b2, b3], "{what}: shape");
    let weights = ints(w.raw(weight));
    let (scale, bias) = (c.weight_scale.then(|| floats(scale)), c.bias.then(|| floats(bias)));
    let mut want = Vec::new();
    for (q, x_scale) in &rows {
        for (n, row) in weights.chunks_exact(k).enumerate() {
            want.push(formulas::linear(row, q, *x_scale, scale.as_ref().map(|s| s[n]), bias.as_ref().map(|b| b[n])));
        }
    }
    same(&floats(out), &want, &what);
}

const CASE: Case = Case { k: 256, n: 4, rows: [1, 1, 1], group: 256, form: Form::F32, weight_scale: true, bias: true };
const FORMS: [Form; 3] = [Form::F32, Form::Packed, Form::Scaled];

#[test]
fn sd_2_edges_of_k_n_and_m() {
    let mut seed = 0;
    for k in [4, 252, 256, 260, 512] {
        for n in [1, 3, 4, 5, 128] {
            for m in [1, 3, 4, 5, 6, 7, 65] {
                let form = FORMS[seed as usize % 3];
                let group = if k % 256 == 0 { 256 } else { 4 };
                World::with(4 * seed, |w| check(w, Case { k, n, rows: [m, 1, 1], group, form, ..CASE }));
                seed += 1;
            }
        }
    }
}

#[test]
fn sd_2_groups_and_forms() {
    for form in FORMS {
        for group in [0, 1, 4, 16, 64, 256] {
            for (weight_scale, bias) in [(true, true), (true, false), (false, true), (false, false)] {
                // a packed input has a group always
                if form == Form::Packed && group == 0 {
                    continue;
                }
                let case = Case { k: 512, n: 7, rows: [5, 1, 1], group, form, weight_scale, bias };
                World::with(0, |w| check(w, case));
            }
        }
    }
}

#[test]
fn sd_2_batches_and_rows_of_odd_length() {
    for form in FORMS {
        World::with(0, |w| check(w, Case { k: 64, n: 9, rows: [3, 2, 3], group: 16, form, ..CASE }));
    }
    for k in [1, 2, 3, 15, 17, 63, 65, 100, 129] {
        World::with(0, |w| check(w, Case { k, n: 6, rows: [7, 1, 1], group: 0, form: Form::Scaled, ..CASE }));
        World::with(0, |w| check(w, Case { k, n: 6, rows: [7, 1, 1], group: 1, form: Form::Packed, ..CASE }));
        World::with(0, |w| check(w, Case { k, n: 6, rows: [7, 1, 1], group: 0, form: Form::F32, ..CASE }));
    }
}

#[test]
fn sd_2_more_than_one_block_of_weights_and_strip_of_activations() {
    for form in FORMS {
        World::with(0, |w| check(w, Case { k: 256, n: 523, rows: [101, 1, 1], group: 64, form, ..CASE }));
    }
    World::with(0, |w| check(w, Case { k: 12288, n: 70, rows: [50, 1, 1], group: 256, form: Form::Packed, ..CASE }));
}

/// SD-2: sums that leave 32 bits wrap.
#[test]
fn sd_2_sums_are_32_bits() {
    World::with(0, |w| {
        let k = 140_000;
        let weight = w.source(GGML_TYPE_I8, [k, 1, 1, 1], Layout::Cont, &Fill::Whole(-128, -127));
        let input = w.source(GGML_TYPE_I8, [k, 1, 1, 1], Layout::Cont, &Fill::Whole(-128, -127));
        let scale = w.source(GGML_TYPE_F32, [1, 1, 1, 1], Layout::Cont, &Fill::Whole(1, 2));
        let out = ggml_mul_mat_i8_tensorwise_scaled(w.ctx, weight, input, NONE, NONE, 0, scale);
        computed(w, out, "SD-2: wrap");
        same(&floats(out), &[(128i64 * 128 * k as i64) as i32 as f32], "SD-2: wrap");
    });
}

/// SD-2: the result may lie over the input.
#[test]
fn sd_2_result_over_the_input() {
    for group in [0, 64] {
        World::with(0, |w| {
            let weight = w.source(GGML_TYPE_I8, [64, 64, 1, 1], Layout::Cont, &Fill::Whole(-127, 128));
            let input = w.source(GGML_TYPE_F32, [64, 9, 1, 1], Layout::Cont, &Fill::Range(-1.0, 1.0));
            let rows: Vec<_> = floats(input).chunks_exact(64).map(|row| formulas::quantise(row, group)).collect();
            let weights = ints(w.raw(weight));
            let out = ggml_mul_mat_i8_tensorwise(w.ctx, weight, input, NONE, NONE, group as i32);
            w.place_over(out, input);
            computed(w, out, "SD-2: over the input");
            let pairs = rows.iter().flat_map(|(q, s)| weights.chunks_exact(64).map(move |row| (row, q, *s)));
            let want: Vec<f32> = pairs.map(|(row, q, s)| formulas::linear(row, q, s, None, None)).collect();
            same(&floats(out), &want, "SD-2: over the input");
        });
    }
}

/// SD-2: K around a vector's width with each group that divides it, one row and more than a strip, for every form of input.
#[test]
fn sd_2_every_group_at_the_edges() {
    let mut ran = 0;
    for k in [4, 252, 256, 260] {
        for group in [0, 1, 4, 16, 64, 256] {
            for n in [1, 3, 128] {
                for m in [1, 3, 4, 5, 65] {
                    for form in FORMS {
                        let seed = ran as u64;
                        if group != 0 && k % group != 0 || form == Form::Packed && group == 0 {
                            continue;
                        }
                        let (weight_scale, bias) = (seed % 3 != 1, seed % 5 != 1);
                        let rows = if m == 4 { [1, 2, 2] } else { [m, 1, 1] };
                        World::with(seed, |w| check(w, Case { k, n, rows, group, form, weight_scale, bias }));
                        ran += 1;
                    }
                }
            }
        }
    }
    assert_eq!(ran, 15 * (3 * (2 * 3 + 2) + 5 * 3 + 2));
}

/// An output, from weights, activations, and the scales of both and the bias.
type Layer<'a> = &'a dyn Fn(&[i8], &[i8], f32, f32, f32) -> f32;

/// SD-2: a sum is rounded once, scales one after the other, and the bias by itself.
#[test]
fn sd_2_order_of_roundings() {
    World::with(0, |w| {
        let (k, n, m) = (4096, 37, 5);
        let weight = w.source(GGML_TYPE_I8, [k, n, 1, 1], Layout::Cont, &Fill::Whole(90, 128));
        let input = w.source(GGML_TYPE_I8, [k, m, 1, 1], Layout::Cont, &Fill::Whole(90, 128));
        let [scale, bias] =
            [n; 2].map(|n| w.source(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont, &Fill::Range(1e-3, 2.0)));
        let input_scale = w.source(GGML_TYPE_F32, [m, 1, 1, 1], Layout::Cont, &Fill::Range(1e-3, 1e-2));
        let out = ggml_mul_mat_i8_tensorwise_scaled(w.ctx, weight, input, scale, bias, 0, input_scale);
        computed(w, out, "SD-2: roundings");
        let (weight, q) = (ints(w.raw(weight)), ints(w.raw(input)));
        let (s, b, x) = (floats(scale), floats(bias), floats(input_scale));
        let all = |f: Layer| -> Vec<f32> {
            let one = |r: usize, j: usize| f(&weight[j * k..][..k], &q[r * k..][..k], x[r], s[j], b[j]);
            (0..m * n).map(|i| one(i / n, i % n)).collect()
        };
        let sum = |w: &[i8], q: &[i8]| formulas::linear(w, q, 1.0, None, None);
        let want = all(&|w, q, x, s, b| sum(w, q) * x * s + b);
        // sums beyond 24 bits, added up in F32; scales together; the bias with the product
        let floats_only =
            |w: &[i8], q: &[i8]| w.iter().zip(q).fold(0f32, |t, (&w, &q)| t + f32::from(w) * f32::from(q));
        assert_ne!(want, all(&|w, q, x, s, b| floats_only(w, q) * x * s + b));
        assert_ne!(want, all(&|w, q, x, s, b| sum(w, q) * (x * s) + b));
        assert_ne!(want, all(&|w, q, x, s, b| sum(w, q) * s * x + b));
        assert_ne!(want, all(&|w, q, x, s, b| (sum(w, q) * x).mul_add(s, b)));
        same(&floats(out), &want, "SD-2: roundings");
    });
}

/// SD-2: rows that are longer than what is summed at a time.
#[test]
fn sd_2_long_rows() {
    for form in FORMS {
        for (k, m) in [(16_388, 17), (16_388, 2), (32_800, 16)] {
            World::with(0, |w| check(w, Case { k, n: 5, rows: [m, 1, 1], group: 4, form, ..CASE }));
        }
    }
}
