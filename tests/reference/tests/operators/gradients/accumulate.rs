//! Accumulators: gradients add up pass by pass until they are zeroed.

use super::*;

fn accumulators(graph: *mut ggml_cgraph, ctx: Ctx, wanted: &[T]) -> Vec<T> {
    let node = |i| ggml_graph_node(graph, i);
    (0..ggml_graph_n_nodes(graph))
        .map(|i| match wanted.contains(&node(i)) {
            // SAFETY: a node of the graph.
            true => unsafe { ggml_new_tensor(ctx, GGML_TYPE_F32, 4, (*node(i)).ne.as_ptr()) },
            false => null_mut(),
        })
        .collect()
}

#[test]
fn passes_add_up() {
    let mut c = Case::new();
    let (w, x) = (c.param(&[5, 3], UNIT), c.data(&[5, 4], UNIT));
    let unused = c.param(&[2], UNIT);
    let y = ggml_mul_mat(c.ctx, w, x);
    let square = ggml_sqr(c.ctx, y);
    let loss = ggml_sum(c.ctx, square);
    ggml_set_loss(loss);
    let graph = ggml_new_graph_custom(c.ctx, 64, true);
    ggml_build_forward_expand(graph, unused);
    ggml_build_forward_expand(graph, loss);
    let mut accs = accumulators(graph, c.ctx, &[w, y, unused]);
    ggml_build_backward_expand(c.ctx, graph, accs.as_mut_ptr());
    let acc = |t| ggml_graph_get_grad_acc(graph, t);
    assert!(accs.contains(&acc(w)) && accs.contains(&acc(y)) && accs.contains(&acc(unused)));
    assert!(!acc(loss).is_null() && acc(square).is_null() && acc(x).is_null());

    ggml_graph_reset(graph);
    assert_eq!((read(acc(w)), read(acc(loss))), (vec![0.0; 15], vec![1.0]));
    c.compute(graph, 1);
    let once = read(acc(w));
    assert!(once.iter().all(|g| g.abs() > 1e-6));
    let middle = read(acc(y));
    let values = read(y);
    assert!(middle.iter().zip(&values).all(|(g, y)| (g - 2.0 * y).abs() < 1e-5));
    assert_eq!(read(acc(unused)), [0.0; 2], "no way leads to it");

    // y's own accumulator grows too, so the second pass brings twice as much again
    c.compute(graph, 1);
    let three_times = read(acc(w));
    assert!(
        once.iter().zip(&three_times).all(|(a, b)| (3.0 * a - b).abs() < 1e-4 * a.abs()),
        "{once:?} {three_times:?}"
    );
    ggml_graph_reset(graph);
    c.compute(graph, 1);
    assert_eq!(read(acc(w)), once);
}

/// Two passes over halves of a batch sum up to one over the whole.
#[test]
fn halves_of_a_batch() {
    let [whole, halves] = [1, 2].map(gradient_in);
    assert!(whole.iter().zip(&halves).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + a.abs())), "{whole:?} {halves:?}");
}

/// The gradient of 8 rows, in so many passes.
fn gradient_in(passes: i64) -> Vec<f64> {
    let mut c = Case::new();
    let w = c.param(&[6, 3], UNIT);
    let all = c.data(&[6, 8], UNIT);
    let batch = 8 / passes;
    let x = c.data(&[6, batch], UNIT);
    let y = ggml_mul_mat(c.ctx, w, x);
    let y = ggml_silu(c.ctx, y);
    let loss = ggml_sum(c.ctx, y);
    ggml_set_loss(loss);
    let graph = ggml_new_graph_custom(c.ctx, 64, true);
    ggml_build_forward_expand(graph, loss);
    let mut accs = accumulators(graph, c.ctx, &[w]);
    ggml_build_backward_expand(c.ctx, graph, accs.as_mut_ptr());
    ggml_graph_reset(graph);
    let all = read(all);
    for part in all.chunks(6 * batch as usize) {
        write(x, part);
        c.compute(graph, 1);
    }
    read(ggml_graph_get_grad(graph, w))
}
