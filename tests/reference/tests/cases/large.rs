//! Case 25 (llama.cpp#27742, #28247): more elements than 65535 groups of 512, and dimensions above 65535.

use reference::world::{last_error, read, t};
use reference::*;

/// `ggml_fill` of many elements, the report's number among them.
#[test]
fn case_25_fill_of_33_685_504_elements() {
    let ctx = ggml_init(ggml_init_params { mem_size: 1 << 16, mem_buffer: std::ptr::null_mut(), no_alloc: true });
    let backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 2);
    for n in [33_685_504i64, (1 << 25) + 1] {
        let ne = [n, 1, 1, 1];
        let a = ggml_new_tensor(ctx, GGML_TYPE_F32, 4, ne.as_ptr());
        ggml_set_input(a);
        let out = ggml_fill(ctx, a, 2.5);
        let graph = ggml_new_graph_custom(ctx, 8, false);
        ggml_build_forward_expand(graph, out);
        let allocator = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
        assert!(ggml_gallocr_alloc_graph(allocator, graph), "{}", last_error());
        assert_eq!(ggml_backend_graph_compute(backend, graph), GGML_STATUS_SUCCESS, "{}", last_error());
        // SAFETY: the result's elements.
        let got = unsafe { std::slice::from_raw_parts(t(out).data.cast::<f32>(), n as usize) };
        assert_eq!(got.iter().position(|&x| x != 2.5), None);
        ggml_gallocr_free(allocator);
        ggml_reset(ctx);
    }
    ggml_backend_free(backend);
    ggml_free(ctx);
}

type Build = fn(Ctx, T) -> T;

/// With 70,000 in each dimension in turn: the source repeats every 7 steps along it, and so does the result.
#[test]
fn case_25_dimensions_above_65535() {
    const N: usize = 70_000;
    let forms: [(&str, Build); 16] = [
        ("add", |c, a| ggml_add(c, a, a)),
        ("sqr", |c, a| ggml_sqr(c, a)),
        ("gelu", |c, a| ggml_gelu(c, a)),
        ("scale", |c, a| ggml_scale(c, a, 2.0)),
        ("fill", |c, a| ggml_fill(c, a, 2.0)),
        ("cont", |c, a| ggml_cont(c, a)),
        ("cont of swapped", |c, a| ggml_cont(c, ggml_permute(c, a, 1, 0, 2, 3))),
        ("cast", |c, a| ggml_cast(c, a, GGML_TYPE_F16)),
        ("norm", |c, a| ggml_norm(c, a, 1e-6)),
        ("rms_norm", |c, a| ggml_rms_norm(c, a, 1e-6)),
        ("soft_max", |c, a| ggml_soft_max(c, a)),
        ("sum_rows", |c, a| ggml_sum_rows(c, a)),
        ("concat", |c, a| ggml_concat(c, a, a, 1)),
        ("pad", |c, a| ggml_pad(c, a, 1, 1, 1, 1)),
        ("roll", |c, a| ggml_roll(c, a, 1, 0, 0, 0)),
        ("argsort", |c, a| ggml_argsort(c, a, GGML_SORT_ORDER_ASC)),
    ];
    for (name, build) in forms {
        for d in 0..4 {
            let mut ne = [2, 1, 1, 1];
            ne[d] = N;
            World::with(3, |w| {
                let a = w.source(GGML_TYPE_F32, ne, Layout::Cont, &Fill::List((1..8).map(f64::from).collect()));
                let out = build(w.ctx, a);
                assert_eq!(w.compute(out), Ok(world::Outcome::Ran), "{name} {ne:?}: {}", last_error());
                let got = read(out);
                assert!(got.v.iter().all(|x| x.is_finite()), "{name} {ne:?}");
                if name == "argsort" && d == 0 {
                    let x = read(a);
                    let sorted: Vec<f64> = got.v.iter().map(|&i| x.v[i as usize]).collect();
                    assert!(sorted.is_sorted(), "{name} {ne:?}");
                    return;
                }
                let Some(along) = (0..4).find(|&d| got.ne[d] >= N) else {
                    // one sum
                    let sum: f64 = read(a).v.iter().sum();
                    assert!(name == "sum_rows" && (got.v[0] - sum).abs() <= 1e-6 * sum, "{name} {ne:?}: {:?}", got.v);
                    return;
                };
                // padding adds one at the end
                for i in values::each(got.ne).filter(|i| i[along] >= 7 && i[along] < got.ne[along] / N * N) {
                    let mut before = i;
                    before[along] -= 7;
                    let (x, y) = (got.at(i), got.at(before));
                    assert!((x - y).abs() <= 1e-6 * y.abs(), "{name} {ne:?} {i:?}: {x}, 7 steps before {y}");
                }
            });
        }
    }
}
