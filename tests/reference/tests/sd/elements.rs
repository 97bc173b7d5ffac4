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
