//! Matrix products whose first operand serves several matrices, and convolutions over them.

use super::*;

#[test]
fn mul_mat() {
    // (a, b): dimensions 2 and 3 of a repeat
    let shapes: [([i64; 4], [i64; 4]); 6] = [
        ([5, 4, 1, 1], [5, 3, 1, 1]),
        ([5, 4, 2, 3], [5, 3, 2, 3]),
        ([5, 4, 1, 1], [5, 3, 2, 3]),
        ([5, 4, 2, 1], [5, 3, 4, 1]),
        ([5, 4, 1, 2], [5, 2, 3, 4]),
        ([5, 2, 2, 2], [5, 3, 4, 4]),
    ];
    for (a, b) in shapes {
        check(&format!("mul_mat {a:?} {b:?}"), |c| {
            let (a, b) = (c.param(&a, UNIT), c.param(&b, UNIT));
            ggml_mul_mat(c.ctx, a, b)
        });
    }
}

#[test]
fn out_prod() {
    for (a, b) in [([4, 3, 1, 1], [5, 3, 1, 1]), ([4, 3, 1, 2], [2, 3, 3, 2]), ([4, 3, 2, 1], [2, 3, 4, 2])] {
        check(&format!("out_prod {a:?} {b:?}"), |c| {
            let (a, b) = (c.param(&a, UNIT), c.param(&b, UNIT));
            ggml_out_prod(c.ctx, a, b)
        });
    }
}

/// The frozen weights of a model that a small part is trained on. The forward pass rounds what they are multiplied with, which
/// differences would see; the product is linear, so its gradient is known.
#[test]
fn quantised_weights() {
    for ty in [GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_F16, GGML_TYPE_BF16] {
        let mut c = Case::new();
        let (w, x) = (c.tensor(ty, &[32, 5], UNIT), c.param(&[32, 3], UNIT));
        let y = ggml_mul_mat(c.ctx, w, x);
        let weights = c.data(&[5, 3], UNIT);
        let loss = c.loss_of(y, weights);
        let graph = ggml_new_graph_custom(c.ctx, 64, true);
        ggml_build_forward_expand(graph, loss);
        ggml_build_backward_expand(c.ctx, graph, null_mut());
        ggml_graph_reset(graph);
        c.compute(graph, 1);
        let gradient = read(ggml_graph_get_grad(graph, x));
        let (w, weights) = (read(w), read(weights));
        for (i, g) in gradient.iter().enumerate() {
            let want: f64 = (0..5).map(|m| w[m * 32 + i % 32] * weights[i / 32 * 5 + m]).sum();
            assert!((g - want).abs() < 1e-5 * (1.0 + want.abs()), "{ty:?} element {i}: {g}, not {want}");
        }
    }
}

#[test]
fn im2col() {
    for (s, p, d) in [(1, 0, 1), (2, 1, 1), (1, 2, 2)] {
        check(&format!("im2col {s} {p} {d}"), |c| {
            let kernel = c.data(&[3, 2, 2, 1], UNIT);
            let x = c.param(&[6, 5, 2, 2], UNIT);
            ggml_im2col(c.ctx, kernel, x, s, s, p, p, d, d, true, GGML_TYPE_F32)
        });
        check(&format!("im2col of a signal {s} {p} {d}"), |c| {
            let kernel = c.data(&[3, 2, 1], UNIT);
            let x = c.param(&[7, 2, 2], UNIT);
            ggml_im2col(c.ctx, kernel, x, s, 0, p, 0, d, 0, false, GGML_TYPE_F32)
        });
    }
}

#[test]
fn pool_2d() {
    for (op, name) in [(GGML_OP_POOL_AVG, "avg"), (GGML_OP_POOL_MAX, "max")] {
        for (k, s, p) in [(2, 2, 0.0), (3, 1, 1.0), (3, 2, 1.0)] {
            check(&format!("pool_2d {name} {k} {s} {p}"), |c| {
                // far enough apart for the largest to stay the largest
                let x = c.param(&[6, 6, 2], UNIT);
                let n = ggml_nelements(x) as usize;
                write(x, &(0..n).map(|i| (i * 37 % n) as f64 / 8.0 - 4.0).collect::<Vec<_>>());
                ggml_pool_2d(c.ctx, x, op, k, k, s, s, p, p)
            });
        }
    }
}

#[test]
fn pool_1d() {
    for (op, name) in [(GGML_OP_POOL_AVG, "avg"), (GGML_OP_POOL_MAX, "max")] {
        for (k, s, p) in [(2, 2, 0), (3, 1, 0), (3, 2, 1)] {
            if op == GGML_OP_POOL_AVG && p != 0 {
                continue;
            }
            check(&format!("pool_1d {name} {k} {s} {p}"), |c| {
                let x = c.param(&[8, 3, 2], UNIT);
                let n = ggml_nelements(x) as usize;
                write(x, &(0..n).map(|i| (i * 29 % n) as f64 / 8.0 - 3.0).collect::<Vec<_>>());
                ggml_pool_1d(c.ctx, x, op, k, s, p)
            });
        }
    }
}
