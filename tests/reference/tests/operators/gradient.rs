//! Gradients against differences of the operators themselves: `sum of g * f(x)`, a little before and after each element of `x`.

use super::common::*;

/// What an operator makes of its source.
type Forward<'a> = &'a dyn Fn(&mut World, T) -> T;

/// Values of an operator at `x`.
fn value(x: &Arr, forward: Forward) -> Arr {
    World::with(0, |w| {
        w.three = false;
        let a = w.leaf(GGML_TYPE_F32, x.ne);
        w.write(a, x);
        let out = forward(w, a);
        assert_eq!(w.compute(out), Ok(Outcome::Ran));
        read(out)
    })
}

/// Derivatives of `sum of g * f(x)`, by differences over `h` that are exact for polynomials of degree 4.
fn differences(x: &Arr, g: &Arr, h: f64, forward: Forward) -> Arr {
    let sum_at = |n: usize, by: f64| {
        let mut x = x.clone();
        x.v[n] += by;
        value(&x, forward).v.iter().zip(&g.v).map(|(f, g)| f * g).sum::<f64>()
    };
    let slope = |n: usize| {
        let near = sum_at(n, h) - sum_at(n, -h);
        let far = sum_at(n, 2.0 * h) - sum_at(n, -2.0 * h);
        (8.0 * near - far) / (12.0 * h)
    };
    Arr { ne: x.ne, v: (0..x.v.len()).map(slope).collect() }
}

/// Numbers that f32 holds, as do their neighbours `h` away, for an `h` of a power of two.
fn even(ne: [usize; 4], seed: usize, span: f64) -> Arr {
    let mut n = seed;
    Arr::from_fn(ne, |_| {
        n = (n * 1_103_515_245 + 12345) % (1 << 31);
        ((n >> 8) % 4096) as f64 / 2048.0 * span - span
    })
}

const H: f64 = 1.0 / 32.0;

/// `back` answers the gradient, given those of the operator's result and its source.
fn check(what: &str, x: &Arr, out: [usize; 4], h: f64, forward: Forward, back: impl Fn(&mut World, T, T) -> T) {
    let g = even(out, 77, 1.0);
    let want = differences(x, &g, h, forward);
    let got = World::with(0, |w| {
        let (a, b) = (w.leaf(GGML_TYPE_F32, out), w.leaf(GGML_TYPE_F32, x.ne));
        w.write(a, &g);
        w.write(b, x);
        let out = back(w, a, b);
        assert_eq!(w.compute(out), Ok(Outcome::Ran), "{what}");
        read(out)
    });
    assert_eq!(got.ne, x.ne, "{what}");
    let largest = want.v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    assert!(largest > 0.01, "{what}: nothing to compare");
    for (i, (g, w)) in each(x.ne).zip(got.v.iter().zip(&want.v)) {
        assert!((g - w).abs() <= 1e-3 * (largest + 0.1), "{what} {i:?}: {g} is not the difference {w}");
    }
}

const NE: [usize; 4] = [6, 3, 2, 2];

#[test]
fn of_functions_and_rows() {
    let x = even(NE, 1, 3.0);
    check("silu", &x, NE, H, &|w, a| ggml_silu(w.ctx, a), |w, g, x| ggml_silu_back(w.ctx, g, x));
    for eps in [1e-5, 1.0] {
        check("rms_norm", &x, NE, H, &|w, a| ggml_rms_norm(w.ctx, a, eps), |w, g, x| {
            ggml_rms_norm_back(w.ctx, g, x, eps)
        });
    }
    let mask = even([6, 3, 1, 1], 5, 2.0);
    for bias in [0.0, 4.0] {
        let masked = |w: &mut World, a: T| {
            let m = w.leaf(GGML_TYPE_F32, mask.ne);
            w.write(m, &mask);
            ggml_soft_max_ext(w.ctx, a, m, 0.75, bias)
        };
        check("soft_max", &x, NE, H, &masked, |w, g, x| {
            let y = masked(w, x);
            ggml_soft_max_ext_back(w.ctx, g, y, 0.75, bias)
        });
    }
}

#[test]
fn of_copies() {
    let x = even(NE, 2, 1.0);
    let large = [12, 3, 6, 2];
    check("repeat", &x, large, H, &|w, a| ggml_repeat_4d(w.ctx, a, 12, 3, 6, 2), |w, g, x| {
        ggml_repeat_back(w.ctx, g, x)
    });
    let ids = |w: &mut World| {
        w.source(GGML_TYPE_I32, [4, 2, 2, 1], Layout::Cont, &Fill::List(vec![2.0, 0.0, 2.0, 2.0, 1.0, 1.0, 0.0]))
    };
    let rows = |w: &mut World, a: T| {
        let i = ids(w);
        ggml_get_rows(w.ctx, a, i)
    };
    check("get_rows", &x, [6, 4, 2, 2], H, &rows, |w, g, x| {
        let i = ids(w);
        ggml_get_rows_back(w.ctx, g, i, x)
    });
}

#[test]
fn of_windows() {
    let x = even([7, 5, 2, 2], 3, 1.0);
    for (s, p, d) in [([1, 1], [1, 1], [1, 1]), ([2, 1], [0, 2], [1, 2]), ([3, 2], [2, 1], [2, 1])] {
        let kernel = |w: &mut World| w.leaf(GGML_TYPE_F16, [3, 2, 2, 1]);
        let count = |i: usize, n: i32, k: i32| ((n + 2 * p[i] - d[i] * (k - 1) - 1) / s[i] + 1) as usize;
        let out = [12, count(0, 7, 3), count(1, 5, 2), 2];
        let forward = |w: &mut World, a: T| {
            let k = kernel(w);
            ggml_im2col(w.ctx, k, a, s[0], s[1], p[0], p[1], d[0], d[1], true, GGML_TYPE_F32)
        };
        check("im2col", &x, out, H, &forward, |w, g, x| {
            let (k, mut ne) = (kernel(w), t(x).ne);
            ggml_im2col_back(w.ctx, g, k, ne.as_mut_ptr(), s[0], s[1], p[0], p[1], d[0], d[1], true)
        });
        let line = even([9, 2, 3, 1], 3, 1.0);
        let kernel = |w: &mut World| w.leaf(GGML_TYPE_F16, [3, 2, 4, 1]);
        let forward = |w: &mut World, a: T| {
            let k = kernel(w);
            ggml_im2col(w.ctx, k, a, s[0], 0, p[0], 0, d[0], 0, false, GGML_TYPE_F32)
        };
        check("im2col in one dimension", &line, [6, count(0, 9, 3), 3, 1], H, &forward, |w, g, x| {
            let (k, mut ne) = (kernel(w), t(x).ne);
            ggml_im2col_back(w.ctx, g, k, ne.as_mut_ptr(), s[0], 0, p[0], 0, d[0], 0, false)
        });
    }
    // the largest of a window stays the largest: elements are far from each other
    let far = Arr::from_fn([7, 5, 2, 2], |i| ((i[0] * 37 + i[1] * 53 + i[2] * 11 + i[3] * 71) % 101) as f64);
    for (x, op) in [(&x, GGML_OP_POOL_AVG), (&far, GGML_OP_POOL_MAX)] {
        for (k, s, p) in [([2, 2], [2, 2], [0.0, 0.0]), ([3, 2], [1, 2], [1.0, 1.0]), ([3, 3], [2, 1], [1.5, 0.5])] {
            let count = |i: usize, n: f32| ((n + 2.0 * p[i] - k[i] as f32) / s[i] as f32 + 1.0) as usize;
            check(
                "pool_2d",
                x,
                [count(0, 7.0), count(1, 5.0), 2, 2],
                H,
                &|w, a| ggml_pool_2d(w.ctx, a, op, k[0], k[1], s[0], s[1], p[0], p[1]),
                // as a node keeps its padding
                |w, g, x| ggml_pool_2d_back(w.ctx, g, x, op, k[0], k[1], s[0], s[1], p[0].trunc(), p[1].trunc()),
            );
        }
    }
}

#[test]
fn of_rope() {
    let x = even([16, 2, 3, 1], 4, 1.0);
    let positions = |w: &mut World, n| w.source(GGML_TYPE_I32, [n, 1, 1, 1], Layout::Cont, &Fill::Whole(0, 40));
    for mode in [GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX] {
        let forward = |w: &mut World, a: T| {
            let p = positions(w, 3);
            ggml_rope_ext(w.ctx, a, p, NONE, 12, mode, 128, 1e4, 0.5, 1.0, 1.5, 32.0, 1.0)
        };
        check("rope_ext", &x, x.ne, H, &forward, |w, g, _| {
            let p = positions(w, 3);
            ggml_rope_ext_back(w.ctx, g, p, NONE, 12, mode, 128, 1e4, 0.5, 1.0, 1.5, 32.0, 1.0)
        });
    }
    for (mode, n) in [(GGML_ROPE_TYPE_MROPE, 16), (GGML_ROPE_TYPE_IMROPE, 16), (GGML_ROPE_TYPE_VISION, 8)] {
        let forward = |w: &mut World, a: T| {
            let (p, mut s) = (positions(w, 12), [2, 3, 2, 1]);
            ggml_rope_multi(w.ctx, a, p, NONE, n, s.as_mut_ptr(), mode, 0, 1e4, 1.0, 0.0, 1.0, 0.0, 0.0)
        };
        check("rope_multi", &x, x.ne, H, &forward, |w, g, _| {
            let (p, mut s) = (positions(w, 12), [2, 3, 2, 1]);
            ggml_rope_multi_back(w.ctx, g, p, NONE, n, s.as_mut_ptr(), mode, 0, 1e4, 1.0, 0.0, 1.0, 0.0, 0.0)
        });
    }
}

/// Labels whose sums are 1, and others.
#[test]
fn of_cross_entropy() {
    let x = even(NE, 6, 3.0);
    let one = Arr::from_fn(NE, |i| if i[0] == (i[1] + i[2]) % 6 { 1.0 } else { 0.0 });
    let none = Arr::from_fn(NE, |i| if i[0] == 2 && i[1] == 1 { 1.0 } else { 0.0 });
    for labels in [one, none, even(NE, 9, 0.5)] {
        let given = |w: &mut World| {
            let l = w.leaf(GGML_TYPE_F32, NE);
            w.write(l, &labels);
            l
        };
        let forward = |w: &mut World, a: T| {
            let l = given(w);
            ggml_cross_entropy_loss(w.ctx, a, l)
        };
        check("cross_entropy_loss", &x, [1; 4], H, &forward, |w, g, x| {
            let l = given(w);
            ggml_cross_entropy_loss_back(w.ctx, g, x, l)
        });
    }
}

/// An outer product is what takes a matrix product back to its first source, and, transposed, to its second one.
#[test]
fn of_matrix_products() {
    let (x, y) = (even([5, 4, 2, 1], 7, 1.0), even([5, 3, 2, 1], 8, 1.0));
    let other = |w: &mut World, y: &Arr| {
        let b = w.leaf(GGML_TYPE_F32, y.ne);
        w.write(b, y);
        b
    };
    let forward = |w: &mut World, a: T| {
        let b = other(w, &y);
        ggml_mul_mat(w.ctx, a, b)
    };
    check("mul_mat, first", &x, [4, 3, 2, 1], H, &forward, |w, g, _| {
        let b = other(w, &y);
        ggml_out_prod(w.ctx, b, g)
    });
    let forward = |w: &mut World, b: T| {
        let a = other(w, &x);
        ggml_mul_mat(w.ctx, a, b)
    };
    check("mul_mat, second", &y, [4, 3, 2, 1], H, &forward, |w, g, _| {
        let a = other(w, &x);
        let g = ggml_transpose(w.ctx, g);
        ggml_out_prod(w.ctx, a, g)
    });
}

/// Each source of an attention made of its parts, the causal mask included.
#[test]
fn of_attention() {
    let (dim, queries, keys) = (4, 3, 5);
    let all = [even([dim, queries, 4, 2], 10, 1.5), even([dim, keys, 2, 2], 11, 1.5), even([keys, dim, 2, 2], 12, 1.5)];
    let out = all[0].ne;
    for masked in [false, true] {
        for which in 0..3 {
            let sources = |w: &mut World, x: T| {
                [0, 1, 2].map(|i| {
                    if i == which {
                        return x;
                    }
                    let a = w.leaf(GGML_TYPE_F32, all[i].ne);
                    w.write(a, &all[i]);
                    a
                })
            };
            let forward = |w: &mut World, x: T| {
                let [q, k, v] = sources(w, x);
                // heads read the keys in turn, so these are repeated as a whole
                let k = ggml_repeat_4d(w.ctx, k, dim as i64, keys as i64, 4, 2);
                let v = ggml_repeat_4d(w.ctx, v, keys as i64, dim as i64, 4, 2);
                let mut kq = ggml_mul_mat(w.ctx, k, q);
                kq = ggml_scale(w.ctx, kq, 1.0 / (dim as f32).sqrt());
                if masked {
                    kq = ggml_diag_mask_inf(w.ctx, kq, (keys - queries) as i32);
                }
                let p = ggml_soft_max(w.ctx, kq);
                ggml_mul_mat(w.ctx, v, p)
            };
            check("attention", &all[which], out, H, &forward, |w, d, x| {
                let [q, k, v] = sources(w, x);
                let grads = ggml_flash_attn_back(w.ctx, q, k, v, d, masked);
                let size = |i: usize| all[i].v.len().next_multiple_of(4) * 4;
                let at = [0, size(0), size(0) + size(1)][which];
                let ne = dims(all[which].ne);
                let nb = [1, 2, 3].map(|d| (0..d).map(|i| ne[i] as usize).product::<usize>() * 4);
                ggml_view_4d(w.ctx, grads, ne[0], ne[1], ne[2], ne[3], nb[0], nb[1], nb[2], at)
            });
        }
    }
}
