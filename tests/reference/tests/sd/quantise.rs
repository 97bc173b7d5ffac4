//! SD-3, `sd.quantize_i8_convrot.v1`.

use super::api::*;
use super::{computed, floats, formulas};
use reference::*;

fn check(w: &mut World, ne: [usize; 4], group: usize, fill: &Fill) {
    let what = format!("SD-3: {ne:?}, group {group}, {fill:?}");
    let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, fill);
    let out = ggml_quantize_i8_convrot(w.ctx, a, group as i32);
    computed(w, out, &what);
    let (k, rows) = (ne[0], ne[1] * ne[2] * ne[3]);
    let padded = rows.div_ceil(4) * 4;
    assert_eq!(world::ne(out), [k, padded + (4 * rows).div_ceil(k), 1, 1], "{what}: shape");
    let values = floats(a);
    let mut want = vec![0u8; k * world::ne(out)[1]];
    for (r, row) in values.chunks_exact(k).enumerate() {
        let (q, scale) = formulas::quantise(row, group);
        for (i, q) in q.iter().enumerate() {
            want[r * k + i] = *q as u8;
        }
        want[k * padded + 4 * r..][..4].copy_from_slice(&scale.to_le_bytes());
    }
    let got = w.raw(out);
    let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
    assert_eq!(wrong, None, "{what}: the first byte that differs");
}

#[test]
fn sd_3_rows_of_every_group() {
    let mut n = 0;
    for k in [4, 16, 64, 252, 256, 260, 512, 768] {
        for group in [1, 4, 16, 64, 256] {
            for rows in [1, 3, 4, 5, 65] {
                if k % group == 0 {
                    World::with(4 * n, |w| check(w, [k, rows, 1, 1], group, &Fill::Range(-3.0, 3.0)));
                    n += 1;
                }
            }
        }
    }
    assert_eq!(n, 5 * (2 + 3 + 4 + 2 + 5 + 2 + 5 + 5));
    for k in [1, 2, 3, 5, 100] {
        World::with(0, |w| check(w, [k, 7, 1, 1], 1, &Fill::Range(-3.0, 3.0)));
    }
    World::with(0, |w| check(w, [256, 3, 2, 3], 256, &Fill::Range(-1e-3, 1e3)));
    World::with(0, |w| check(w, [64, 0, 2, 1], 64, &Fill::Range(-1.0, 1.0)));
}

#[test]
fn sd_3_halves_go_to_even_and_ends_are_clamped() {
    // the largest is 127: the scale is 1, and halves are met exactly
    let list: Vec<f64> =
        (-127..128).map(f64::from).chain((-254..255).map(|i| f64::from(i) / 2.0)).chain([127.0; 4]).collect();
    World::with(0, |w| check(w, [256, 3, 1, 1], 1, &Fill::List(list)));
}

#[test]
fn sd_3_zeros_nan_infinity_and_tiny_numbers() {
    let with = |x: f64| Fill::List((0..15).map(|i| f64::from(i) - 7.0).chain([x]).collect());
    for group in [1, 4, 16] {
        World::with(0, |w| check(w, [16, 5, 1, 1], group, &Fill::List(vec![0.0, -0.0])));
        for x in [f64::NAN, f64::INFINITY, 3e38] {
            World::with(0, |w| check(w, [16, 5, 1, 1], group, &with(x)));
        }
        // the reciprocal of the scale is infinite; or the scale itself is 0
        World::with(0, |w| check(w, [16, 5, 1, 1], group, &Fill::List(vec![1e-40, -3e-41, 0.0])));
        World::with(0, |w| check(w, [16, 5, 1, 1], group, &Fill::List(vec![1e-45, 0.0])));
    }
}

#[test]
fn sd_3_the_rotation_is_that_of_the_matrix() {
    for group in [4, 16, 64, 256] {
        World::with(9, |w| {
            let a = w.source(GGML_TYPE_F32, [512, 3, 1, 1], Layout::Cont, &Fill::Range(-2.0, 2.0));
            let out = ggml_quantize_i8_convrot(w.ctx, a, group as i32);
            computed(w, out, "SD-3: matrix");
            let values = floats(a);
            let bytes = w.raw(out);
            for (r, row) in values.chunks_exact(512).enumerate() {
                let scale = f32::from_le_bytes(bytes[512 * 4 + 4 * r..][..4].try_into().unwrap());
                for (i, want) in formulas::rotate_exactly(row, group).into_iter().enumerate() {
                    let got = f64::from(bytes[512 * r + i] as i8) * f64::from(scale);
                    assert!((got - want).abs() <= f64::from(scale) * 0.5001, "group {group}, {r}, {i}: {got}, {want}");
                }
            }
        });
    }
}

/// SD-3: a row of 256 rotated in every group, whose bytes differ from those of a quantiser that divides by the scale.
#[test]
fn sd_3_numbers_are_multiplied_by_the_reciprocal() {
    let mut other = 0;
    for group in [1, 256] {
        World::with(1, |w| {
            let ne = [256, 2000, 1, 1];
            let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::Range(-3.0, 3.0));
            for row in floats(a).chunks_exact(256) {
                let (q, scale) = formulas::quantise(row, group);
                let v = if group == 1 { row.to_vec() } else { formulas::rotate(row, group) };
                other += v.iter().zip(&q).filter(|(v, q)| (*v / scale).round_ties_even() != f32::from(**q)).count();
            }
        });
        World::with(1, |w| check(w, [256, 2000, 1, 1], group, &Fill::Range(-3.0, 3.0)));
    }
    assert!(other > 0, "the data tell nothing");
}

/// SD-3: what is not a number is 0, and counts for nothing in the scale of its row.
#[test]
fn sd_3_nan_leaves_the_scale_to_others() {
    World::with(0, |w| {
        let list = vec![1.0, f64::NAN, -127.0, 3.0];
        let a = w.source(GGML_TYPE_F32, [4, 1, 1, 1], Layout::Cont, &Fill::List(list));
        let out = ggml_quantize_i8_convrot(w.ctx, a, 1);
        computed(w, out, "SD-3: NaN");
        assert_eq!(super::ints(&w.raw(out)[..4]), [1, 0, -127, 3]);
        assert_eq!(w.raw(out)[16..20], 1f32.to_le_bytes());
    });
}
