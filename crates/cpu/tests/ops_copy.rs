//! Operators that move elements: every pair of formats, every layout, every thread count.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

const ORDERS: [([usize; 4], usize); 6] =
    [([0, 1, 2, 3], 0), ([1, 0, 2, 3], 0), ([0, 2, 1, 3], 0), ([2, 1, 0, 3], 0), ([0, 1, 2, 3], 3), ([3, 1, 0, 2], 1)];

fn compute(w: &World, p: T) {
    w.compute(1).unwrap();
    let first = values(p);
    for n in [2, 3] {
        w.spoil(p);
        w.compute(n).unwrap();
        assert_eq!(values(p), first, "{n} threads change {:?}", t(p).op);
    }
}

fn values(p: T) -> Vec<u64> {
    each(t(p).ne).map(|i| get(p, i).to_bits()).collect()
}

/// Logical element number `n` in flat order.
fn nth(ne: [i64; 4], n: i64) -> [i64; 4] {
    [n % ne[0], n / ne[0] % ne[1], n / ne[0] / ne[1] % ne[2], n / ne[0] / ne[1] / ne[2]]
}

fn flat(ne: [i64; 4], i: [i64; 4]) -> i64 {
    ((i[3] * ne[2] + i[2]) * ne[1] + i[1]) * ne[0] + i[0]
}

fn eps(ty: ggml_type) -> f64 {
    match ty {
        GGML_TYPE_F32 => 0.0,
        GGML_TYPE_F16 => 6e-4,
        GGML_TYPE_BF16 => 5e-3,
        GGML_TYPE_I32 => 1.0,
        GGML_TYPE_Q8_0 => 0.01,
        _ => 0.2,
    }
}

#[test]
fn cpy_between_formats_and_layouts() {
    let plain = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32];
    let mut rng = Rng(21);
    for st in plain {
        for dt in plain {
            for (so, sg) in ORDERS {
                for (d_o, dg) in ORDERS {
                    let mut w = World::new();
                    let ne = [37, 18, 3, 2];
                    let x = w.random(st, ne, so, sg, &mut rng);
                    let y = w.strided(dt, ne, d_o, dg);
                    let y = w.make_node(y, GGML_OP_CPY, &[x, y], &[]);
                    compute(&w, y);
                    close(y, eps(dt), |i| (get(x, i), 1.0), &format!("{st:?} to {dt:?}"));
                }
            }
        }
    }
}

#[test]
fn cpy_to_and_from_blocks() {
    let mut rng = Rng(22);
    for q in [GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q6_K] {
        for f in [GGML_TYPE_F32, GGML_TYPE_F16] {
            for (o, g) in ORDERS {
                let mut w = World::new();
                let ne = [512 + 256, 5, 3, 2];
                let x = w.random(f, ne, o, g, &mut rng);
                let y = w.strided(q, ne, [0, 2, 1, 3], 1);
                let y = w.make_node(y, GGML_OP_CPY, &[x, y], &[]);
                let z = w.strided(f, ne, o, g);
                let z = w.make_node(z, GGML_OP_CPY, &[y, z], &[]);
                w.compute(2).unwrap();
                close(y, eps(q), |i| if i[0] % 97 == 0 { (get(x, i), 1.0) } else { (0.0, 1e9) }, "to blocks");
                close(z, 1e-3, |i| if i[0] % 97 == 0 { (get(y, i), 1.0) } else { (0.0, 1e9) }, "from blocks");
            }
        }
    }
}

#[test]
fn cpy_between_shapes() {
    let mut rng = Rng(23);
    let (a, b) = ([12, 10, 3, 2], [40, 9, 2, 1]);
    for (so, sg) in ORDERS {
        for (d_o, dg) in ORDERS {
            for (st, dt) in
                [(GGML_TYPE_F32, GGML_TYPE_F32), (GGML_TYPE_F32, GGML_TYPE_F16), (GGML_TYPE_F16, GGML_TYPE_F16)]
            {
                let mut w = World::new();
                let x = w.random(st, a, so, sg, &mut rng);
                let y = w.strided(dt, b, d_o, dg);
                let y = w.make_node(y, GGML_OP_CPY, &[x, y], &[]);
                compute(&w, y);
                close(y, eps(dt), |i| (get(x, nth(a, flat(b, i))), 1.0), "shapes");
            }
        }
    }
    // Blocks that straddle rows of the source.
    let mut w = World::new();
    let x = w.random(GGML_TYPE_F32, [24, 8, 1, 1], [1, 0, 2, 3], 0, &mut rng);
    let y = w.tensor(GGML_TYPE_Q8_0, [32, 6, 1, 1]);
    let y = w.make_node(y, GGML_OP_CPY, &[x, y], &[]);
    w.compute(2).unwrap();
    close(y, 0.01, |i| (get(x, nth([24, 8, 1, 1], flat([32, 6, 1, 1], i))), 1.0), "straddling blocks");
}

#[test]
fn big_transposes() {
    let mut rng = Rng(24);
    for (ty, dt) in [
        (GGML_TYPE_F32, GGML_TYPE_F32),
        (GGML_TYPE_F16, GGML_TYPE_F16),
        (GGML_TYPE_F32, GGML_TYPE_F16),
        (GGML_TYPE_F16, GGML_TYPE_F32),
    ] {
        for ne in [[1100, 70, 1, 1], [33, 257, 2, 1], [1, 300, 5, 1], [300, 1, 2, 2]] {
            let mut w = World::new();
            let x = w.random(ty, ne, [1, 0, 2, 3], 0, &mut rng);
            let y = w.node(GGML_OP_CONT, dt, ne, &[x], &[]);
            compute(&w, y);
            close(y, eps(dt), |i| (get(x, i), 1.0), "transpose");
        }
    }
}

#[test]
fn integers_are_exact() {
    let mut w = World::new();
    let x = w.tensor(GGML_TYPE_I32, [5, 1, 1, 1]);
    let n = [0, 1, -1, 16_777_217, i32::MIN];
    for (i, v) in n.iter().enumerate() {
        // SAFETY: an element of the tensor.
        unsafe { t(x).data.cast::<i32>().add(i).write(*v) };
    }
    let y = w.node(GGML_OP_CPY, GGML_TYPE_I64, [5, 1, 1, 1], &[x], &[]);
    let z = w.node(GGML_OP_CPY, GGML_TYPE_I32, [5, 1, 1, 1], &[y], &[]);
    w.compute(2).unwrap();
    for (i, v) in n.iter().enumerate() {
        // SAFETY: elements of the tensors.
        unsafe {
            assert_eq!(t(y).data.cast::<i64>().add(i).read(), i64::from(*v));
            assert_eq!(t(z).data.cast::<i32>().add(i).read(), *v);
        }
    }
}

#[test]
fn repeat_and_concat() {
    let mut rng = Rng(25);
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I32] {
        for (o, g) in ORDERS {
            let mut w = World::new();
            let s = [3, 2, 1, 2];
            let x = w.random(ty, s, o, g, &mut rng);
            let y = w.node(GGML_OP_REPEAT, ty, [9, 4, 5, 2], &[x], &[]);
            compute(&w, y);
            close(y, 0.0, |i| (get(x, std::array::from_fn(|d| i[d] % s[d])), 1.0), "repeat");
            for dim in 0..4 {
                let mut w = World::new();
                let (mut an, mut bn) = ([7, 5, 3, 2], [7, 5, 3, 2]);
                (an[dim], bn[dim]) = (4, 6);
                let mut ne = an;
                ne[dim] = 10;
                let a = w.random(ty, an, o, g, &mut rng);
                let b = w.random(ty, bn, [0, 1, 2, 3], 2, &mut rng);
                let y = w.node(GGML_OP_CONCAT, ty, ne, &[a, b], &[dim as i32]);
                compute(&w, y);
                close(
                    y,
                    0.0,
                    |mut i| {
                        if i[dim] < 4 {
                            return (get(a, i), 1.0);
                        }
                        i[dim] -= 4;
                        (get(b, i), 1.0)
                    },
                    "concat",
                );
            }
        }
    }
    for dim in 0..2 {
        let mut w = World::new();
        let a = w.random(GGML_TYPE_Q8_0, [64, 2, 1, 1], [0, 1, 2, 3], 0, &mut rng);
        let b = w.random(GGML_TYPE_Q8_0, [64, 2, 1, 1], [0, 1, 2, 3], 0, &mut rng);
        let ne = if dim == 0 { [128, 2, 1, 1] } else { [64, 4, 1, 1] };
        let y = w.node(GGML_OP_CONCAT, GGML_TYPE_Q8_0, ne, &[a, b], &[dim as i32]);
        compute(&w, y);
        close(
            y,
            0.0,
            |mut i| {
                let half = ne[dim] / 2;
                let s = if i[dim] < half { a } else { b };
                i[dim] %= half;
                (get(s, i), 1.0)
            },
            "concat of blocks",
        );
    }
}

#[test]
fn pad_roll_reflect() {
    let mut rng = Rng(26);
    let s = [7, 5, 3, 2];
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for (o, g) in ORDERS {
            for circular in [0, 1] {
                let mut w = World::new();
                let x = w.random(ty, s, o, g, &mut rng);
                let p = [2, 3, 1, 0, 0, 2, 1, 1];
                let ne: [i64; 4] = std::array::from_fn(|d| s[d] + i64::from(p[2 * d] + p[2 * d + 1]));
                let mut params = p.to_vec();
                params.push(circular);
                let y = w.node(GGML_OP_PAD, ty, ne, &[x], &params);
                compute(&w, y);
                close(
                    y,
                    0.0,
                    |i| {
                        let j: [i64; 4] = std::array::from_fn(|d| i[d] - i64::from(p[2 * d]));
                        if circular != 0 {
                            return (get(x, std::array::from_fn(|d| j[d].rem_euclid(s[d]))), 1.0);
                        }
                        let inside = (0..4).all(|d| (0..s[d]).contains(&j[d]));
                        (if inside { get(x, j) } else { 0.0 }, 1.0)
                    },
                    "pad",
                );
            }
            let mut w = World::new();
            let x = w.random(ty, s, o, g, &mut rng);
            let sh = [3, -2, 1, -1];
            let y = w.node(GGML_OP_ROLL, ty, s, &[x], &sh);
            compute(&w, y);
            close(
                y,
                0.0,
                |i| (get(x, std::array::from_fn(|d| (i[d] - i64::from(sh[d])).rem_euclid(s[d]))), 1.0),
                "roll",
            );
            let mut w = World::new();
            let x = w.random(ty, s, o, g, &mut rng);
            let y = w.node(GGML_OP_PAD_REFLECT_1D, ty, [7 + 4 + 6, 5, 3, 2], &[x], &[4, 6]);
            compute(&w, y);
            close(
                y,
                0.0,
                |i| {
                    let mut k = (i[0] - 4).abs();
                    if k > 6 {
                        k = 12 - k;
                    }
                    (get(x, [k, i[1], i[2], i[3]]), 1.0)
                },
                "reflect",
            );
        }
    }
}

#[test]
fn acc_and_set() {
    let mut rng = Rng(27);
    for op in [GGML_OP_ACC, GGML_OP_SET] {
        for (o, g) in ORDERS {
            let mut w = World::new();
            let a = w.random(GGML_TYPE_F32, [10, 6, 4, 2], o, g, &mut rng);
            let b = w.random(GGML_TYPE_F32, [4, 3, 2, 1], [1, 0, 2, 3], 1, &mut rng);
            let y = w.bare(GGML_TYPE_F32, [10, 6, 4, 2]);
            w.alloc(y);
            let nb = t(y).nb;
            let at = 2 * nb[0] + nb[1] + nb[2] + nb[3];
            let y = w.make_node(y, op, &[a, b], &[nb[1] as i32, nb[2] as i32, nb[3] as i32, at as i32, 0]);
            compute(&w, y);
            close(
                y,
                1e-6,
                |i| {
                    let j = [i[0] - 2, i[1] - 1, i[2] - 1, i[3] - 1];
                    if !(0..4).all(|d| (0..t(b).ne[d]).contains(&j[d])) {
                        return (get(a, i), 1.0);
                    }
                    let base = if op == GGML_OP_ACC { get(a, i) } else { 0.0 };
                    (base + get(b, j), 1.0)
                },
                "window",
            );
            // Past the end: refused.
            t(y).op_params[3] = shape::nbytes(t(y)) as i32 - 8;
            assert!(format!("{:?}", w.compute(1).unwrap_err()).contains("past"));
        }
    }
}

#[test]
fn rows_by_index() {
    let mut rng = Rng(28);
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K] {
        for (o, g) in [([0, 1, 2, 3], 0), ([0, 2, 1, 3], 1), ([1, 0, 2, 3], 0)] {
            if o[0] != 0 && shape::blck_size(ty) > 1 {
                continue;
            }
            let mut w = World::new();
            let a = w.random(ty, [256, 9, 3, 2], o, g, &mut rng);
            let ids = w.strided(GGML_TYPE_I32, [7, 3, 2, 1], [1, 0, 2, 3], 1);
            let id = |i: [i64; 3]| (i[0] * 5 + i[1] * 2 + i[2]) % 9;
            for i in each([7, 3, 2, 1]) {
                set(ids, i, id([i[0], i[1], i[2]]) as f32);
            }
            let y = w.node(GGML_OP_GET_ROWS, GGML_TYPE_F32, [256, 7, 3, 2], &[a, ids], &[]);
            compute(&w, y);
            close(
                y,
                1e-6,
                |i| {
                    if i[0] % 31 != 0 {
                        return (0.0, 1e9);
                    }
                    (get(a, [i[0], id([i[1], i[2], i[3]]), i[2], i[3]]), 1.0)
                },
                "get_rows",
            );
            for bad in [9.0, -1.0, 999_999.0] {
                set(ids, [3, 1, 1, 0], bad);
                assert!(format!("{:?}", w.compute(2).unwrap_err()).contains("outside"));
            }
        }
    }
}

#[test]
fn rows_are_set() {
    let mut rng = Rng(29);
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0] {
        for it in [GGML_TYPE_I32, GGML_TYPE_I64] {
            let mut w = World::new();
            let a = w.random(ty, [64, 9, 2, 2], [0, 1, 2, 3], 0, &mut rng);
            let before: Vec<f64> = each(t(a).ne).map(|i| get(a, i)).collect();
            let b = w.random(GGML_TYPE_F32, [64, 4, 2, 2], [0, 2, 1, 3], 2, &mut rng);
            let ids = w.tensor(it, [4, 1, 2, 1]);
            let id = |r: i64, i3: i64| (r * 2 + i3) % 9;
            for i in each([4, 1, 2, 1]) {
                let v = id(i[0], i[2]);
                let off = i[0] as usize * t(ids).nb[0] + i[2] as usize * t(ids).nb[2];
                // SAFETY: an element of the tensor.
                unsafe {
                    let p = t(ids).data.cast::<u8>().add(off);
                    if it == GGML_TYPE_I64 {
                        p.cast::<i64>().write(v);
                    } else {
                        p.cast::<i32>().write(v as i32);
                    }
                }
            }
            let (ne, nb) = (t(a).ne, t(a).nb);
            let y = w.view(GGML_OP_SET_ROWS, a, ne, nb);
            t(y).src[..3].copy_from_slice(&[b, ids, a]);
            w.compute(3).unwrap();
            for (i, old) in each(ne).zip(before) {
                let from = (0..4).find(|&r| id(r, i[3]) == i[1]);
                let (want, tol) = from.map_or((old, 0.0), |r| (get(b, [i[0], r, i[2], i[3]]), eps(ty)));
                assert!((get(y, i) - want).abs() <= tol, "{ty:?} {i:?}: {} {want}", get(y, i));
            }
        }
    }
}
