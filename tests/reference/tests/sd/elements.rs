//! SD-1 and SD-5: rotation by matrices, modulation.

use super::api::*;
use super::{computed, floats, same};
use reference::values::each;
use reference::*;

/// Element of a tensor of this shape, whose elements are listed by logical index; dimensions are repeated.
fn at(v: &[f32], ne: [usize; 4], i: [usize; 4]) -> f32 {
    let i: [usize; 4] = std::array::from_fn(|d| i[d] % ne[d]);
    v[((i[3] * ne[2] + i[2]) * ne[1] + i[1]) * ne[0] + i[0]]
}

fn modulated(w: &mut World, ne: [usize; 4], ne_s: [usize; 4], layouts: [Layout; 3], shift: bool, fill: &Fill) {
    let what = format!("SD-5: {ne:?}, {ne_s:?}, {layouts:?}, shift {shift}");
    let x = w.source(GGML_TYPE_F32, ne, layouts[0], fill);
    let scale = w.source(GGML_TYPE_F32, ne_s, layouts[1], fill);
    let add = if shift { w.source(GGML_TYPE_F32, ne_s, layouts[2], fill) } else { NONE };
    let out = ggml_sd_modulate(w.ctx, x, add, scale);
    computed(w, out, &what);
    assert_eq!(world::ne(out), ne, "{what}: shape");
    let (x, scale) = (floats(x), floats(scale));
    let add = shift.then(|| floats(add));
    let one = |i: [usize; 4]| {
        let (x, s) = (at(&x, ne, i), at(&scale, ne_s, i));
        let t = x * s;
        let u = x + t;
        add.as_ref().map_or(u, |a| u + at(a, ne_s, i))
    };
    same(&floats(out), &each(ne).map(one).collect::<Vec<f32>>(), &what);
}

#[test]
fn sd_5_every_layout_and_repetition() {
    let ne = [24, 6, 4, 2];
    let shapes = [ne, [24, 1, 4, 2], [24, 1, 1, 1], [1, 6, 1, 2], [12, 3, 2, 1], [1; 4]];
    for (n, layout) in ALL.into_iter().enumerate() {
        for ne_s in shapes {
            for shift in [false, true] {
                let other = ALL[(n + 3) % ALL.len()];
                let fill = Fill::Range(-2.0, 2.0);
                World::with(0, |w| modulated(w, ne, ne_s, [layout, Layout::Cont, other], shift, &fill));
                World::with(0, |w| modulated(w, ne, ne_s, [Layout::Cont, layout, layout], shift, &fill));
            }
        }
    }
    World::with(0, |w| modulated(w, [5, 0, 1, 1], [5, 1, 1, 1], [Layout::Cont; 3], true, &Fill::Range(-1.0, 1.0)));
    World::with(0, |w| modulated(w, [3072, 5, 2, 1], [3072, 1, 2, 1], [Layout::Cont; 3], true, &Fill::Special));
}

#[test]
fn sd_5_result_over_x() {
    World::with(0, |w| {
        let x = w.source(GGML_TYPE_F32, [64, 9, 1, 1], Layout::Cont, &Fill::Range(-1.0, 1.0));
        let scale = w.source(GGML_TYPE_F32, [64, 1, 1, 1], Layout::Cont, &Fill::Range(-1.0, 1.0));
        let (was, s) = (floats(x), floats(scale));
        let out = ggml_sd_modulate(w.ctx, x, NONE, scale);
        w.place_over(out, x);
        computed(w, out, "SD-5: over x");
        let want: Vec<f32> = was.iter().enumerate().map(|(i, x)| x + x * s[i % 64]).collect();
        same(&floats(out), &want, "SD-5: over x");
    });
}

fn turned(w: &mut World, ne: [usize; 4], pairs: usize, interleaved: bool, layouts: [Layout; 2]) {
    let what = format!("SD-1: {ne:?}, {pairs} pairs, interleaved {interleaved}, {layouts:?}");
    let [d, heads, tokens, batch] = ne;
    let a = w.source(GGML_TYPE_F32, ne, layouts[0], &Fill::Range(-2.0, 2.0));
    // four numbers of their own: whoever reads what he should not is found out
    let pe = w.source(GGML_TYPE_F32, [2, 2, pairs, tokens], layouts[1], &Fill::Range(-1.0, 1.0));
    let out = ggml_rope_apply(w.ctx, a, pe, interleaved);
    computed(w, out, &what);
    assert_eq!(world::ne(out), [d, tokens, heads * batch, 1], "{what}: shape");
    let (a, pe) = (floats(a), floats(pe));
    let m = |c: usize, r: usize, j: usize, t: usize| at(&pe, [2, 2, pairs, tokens], [c, r, j, t]);
    let one = |[i, t, row, _]: [usize; 4]| {
        let x = |i: usize| at(&a, ne, [i, row % heads, t, row / heads]);
        if i >= 2 * pairs {
            x(i)
        } else if interleaved {
            let j = i / 2;
            let (first, second) = (x(2 * j) * m(0, i % 2, j, t), x(2 * j + 1) * m(1, i % 2, j, t));
            first + second
        } else {
            let j = i % pairs;
            let (c, s) = (m(0, 0, j, t), m(0, 1, j, t));
            let (x0, x1) = (x(j), x(j + pairs));
            if i < pairs {
                let (p, q) = (x0 * c, x1 * s);
                p - q
            } else {
                let (p, q) = (x0 * s, x1 * c);
                p + q
            }
        }
    };
    let want: Vec<f32> = each([d, tokens, heads * batch, 1]).map(one).collect();
    same(&floats(out), &want, &what);
}

#[test]
fn sd_1_every_layout_whole_and_partial() {
    for interleaved in [false, true] {
        for layout in ALL {
            for pairs in [12, 8, 1] {
                World::with(0, |w| turned(w, [24, 3, 5, 2], pairs, interleaved, [layout, Layout::Cont]));
                World::with(0, |w| turned(w, [24, 3, 5, 2], pairs, interleaved, [Layout::Cont, layout]));
            }
        }
        for (ne, pairs) in [([128, 4, 7, 1], 64), ([128, 4, 7, 1], 48), ([2, 1, 1, 1], 1), ([64, 5, 0, 1], 32)] {
            World::with(0, |w| turned(w, ne, pairs, interleaved, [Layout::Cont; 2]));
        }
    }
}

/// SD-5: products and sums are rounded each; data with which fused multiply-add would give something else.
#[test]
fn sd_5_three_roundings() {
    World::with(0, |w| {
        let fill = Fill::Range(-2.0, 2.0);
        let [x, scale, shift] = [(); 3].map(|()| w.source(GGML_TYPE_F32, [512, 3, 1, 1], Layout::Cont, &fill));
        let out = ggml_sd_modulate(w.ctx, x, shift, scale);
        let scaled = ggml_sd_modulate(w.ctx, x, NONE, scale);
        computed(w, out, "SD-5: rounding");
        computed(w, scaled, "SD-5: rounding without a shift");
        let (x, s, t) = (floats(x), floats(scale), floats(shift));
        let each =
            |f: &dyn Fn(f32, f32, f32) -> f32| -> Vec<f32> { (0..x.len()).map(|i| f(x[i], s[i], t[i])).collect() };
        let want = each(&|x, s, t| (x + x * s) + t);
        assert_ne!(want, each(&|x, s, t| x.mul_add(s, x) + t));
        assert_ne!(want, each(&|x, s, t| x * (1.0 + s) + t));
        assert_ne!(want, each(&|x, s, t| x + (x * s + t)));
        same(&floats(out), &want, "SD-5: rounding");
        let want = each(&|x, s, _| x + x * s);
        assert_ne!(want, each(&|x, s, _| x.mul_add(s, x)));
        same(&floats(scaled), &want, "SD-5: rounding without a shift");
    });
}

/// SD-1: the same for both modes; the general matrix is used by one, and two of its numbers are never looked at by the other.
#[test]
fn sd_1_roundings_and_what_is_read_of_a_matrix() {
    let ne = [64, 2, 9, 1];
    for interleaved in [false, true] {
        for layout in [Layout::Cont, Layout::Swap12] {
            World::with(0, |w| {
                let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::Range(-2.0, 2.0));
                let pe = w.source(GGML_TYPE_F32, [2, 2, 32, 9], layout, &Fill::Range(-1.0, 1.0));
                let mut m = world::read(pe);
                // M10 and M11 are elements (1, 0) and (1, 1)
                for (i, m) in m.v.iter_mut().enumerate().filter(|(i, _)| !interleaved && i % 2 == 1) {
                    *m = if i % 4 == 1 { f64::NAN } else { f64::INFINITY };
                }
                w.write(pe, &m);
                let out = ggml_rope_apply(w.ctx, a, pe, interleaved);
                computed(w, out, "SD-1: rounding");
                let (a, pe) = (floats(a), floats(pe));
                let each_one = |f: &dyn Fn(f32, f32, f32, f32) -> f32| -> Vec<f32> {
                    let one = |[i, t, h, _]: [usize; 4]| {
                        let (j, second) = if interleaved { (i / 2, i % 2 == 1) } else { (i % 32, i >= 32) };
                        let m = &pe[4 * (t * 32 + j)..][..4];
                        let (m0, m1) = match (interleaved, second) {
                            (true, second) => (m[2 * usize::from(second)], m[2 * usize::from(second) + 1]),
                            (false, false) => (m[0], -m[2]),
                            (false, true) => (m[2], m[0]),
                        };
                        let x = &a[(t * 2 + h) * 64..][..64];
                        let (x0, x1) = if interleaved { (x[2 * j], x[2 * j + 1]) } else { (x[j], x[j + 32]) };
                        f(x0, x1, m0, m1)
                    };
                    each([64, 9, 2, 1]).map(one).collect()
                };
                let want = each_one(&|x0, x1, m0, m1| x0 * m0 + x1 * m1);
                assert!(want.iter().all(|x| x.is_finite()));
                assert_ne!(want, each_one(&|x0, x1, m0, m1| x0.mul_add(m0, x1 * m1)));
                assert_ne!(want, each_one(&|x0, x1, m0, m1| x1.mul_add(m1, x0 * m0)));
                same(&floats(out), &want, "SD-1: rounding");
            });
        }
    }
}

/// SD-1: channels behind the turned ones are copied bit by bit, and the partner is half the turned width away.
#[test]
fn sd_1_the_rest_is_copied() {
    for (interleaved, d, pairs) in
        [(false, 128, 48), (true, 128, 48), (false, 16, 0), (true, 16, 0), (false, 6, 1), (true, 6, 2)]
    {
        World::with(0, |w| {
            let ne = [d, 2, 3, 2];
            let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::Special);
            // a turn by 90 degrees: y0 = -x1, y1 = x0
            let pe = w.source(GGML_TYPE_F32, [2, 2, pairs, 3], Layout::Cont, &Fill::List(vec![0.0, -1.0, 1.0, 0.0]));
            let out = ggml_rope_apply(w.ctx, a, pe, interleaved);
            computed(w, out, "SD-1: the rest");
            let (a, y) = (world::elements(a), world::elements(out));
            let bits = |v: &[u8], i: usize| u32::from_le_bytes(v[4 * i..][..4].try_into().unwrap());
            for [i, t, row, _] in each([d, 3, 4, 1]) {
                let (from, to) = (((row / 2 * 3 + t) * 2 + row % 2) * d, (row * 3 + t) * d);
                if i >= 2 * pairs {
                    assert_eq!(
                        bits(&y, to + i),
                        bits(&a, from + i),
                        "interleaved {interleaved}, {pairs} pairs, channel {i}"
                    );
                    continue;
                }
                let second = if interleaved { i % 2 == 1 } else { i >= pairs };
                let partner = match (interleaved, second) {
                    (true, _) => i ^ 1,
                    (false, true) => i - pairs,
                    (false, false) => i + pairs,
                };
                let (got, x) = (f32::from_bits(bits(&y, to + i)), f32::from_bits(bits(&a, from + partner)));
                let own = f32::from_bits(bits(&a, from + i));
                if own.is_finite() && !x.is_nan() {
                    assert_eq!(
                        got,
                        if second { x } else { -x },
                        "interleaved {interleaved}, {pairs} pairs, channel {i}"
                    );
                }
            }
        });
    }
}
