//! Case 7 (ik_llama.cpp#2016): any number of threads gives the same bytes, and nobody writes behind the work buffer.

use crate::forms::{forms, Form};
use crate::place::*;
use reference::world::{last_error, t};
use reference::*;

const GUARD: usize = 256;
const COUNTS: [i32; 7] = [1, 2, 5, 7, 16, 33, 64];

/// Computes the form with each number of threads, in a work buffer of exactly the size that the plan names.
fn counts(form: &Form, types: &[ggml_type], pools: &[*mut ggml_threadpool]) -> std::result::Result<bool, String> {
    World::with(1, |w| {
        let sources = plain(w, form, types);
        let kept: Vec<Result> = sources.iter().map(|&s| Result::of(s)).collect();
        let out = (form.build)(w.ctx, &sources);
        let device = ggml_backend_get_device(w.backend(1));
        let graph = ggml_new_graph_custom(w.ctx, 64, false);
        ggml_build_forward_expand(graph, out);
        let nodes: Vec<T> = (0..ggml_graph_n_nodes(graph)).map(|i| ggml_graph_node(graph, i)).collect();
        if ggml::tensor::is_poisoned(t(out)) || !nodes.iter().all(|&n| ggml_backend_dev_supports_op(device, n)) {
            return Ok(false);
        }
        nodes.iter().for_each(|&n| w.place(n));
        let mut first: Option<Result> = None;
        for (&n, &pool) in COUNTS.iter().zip(pools) {
            for (&s, kept) in sources.iter().zip(&kept) {
                w.set_elements(s, &kept.bytes);
            }
            let mut plan = ggml_graph_plan(graph, n, pool);
            let mut work = vec![0xa5u8; plan.work_size + GUARD];
            plan.work_data = work.as_mut_ptr();
            let status = ggml_graph_compute(graph, &mut plan);
            if status != GGML_STATUS_SUCCESS {
                return Err(format!("{n} threads: {status:?}: {}", last_error()));
            }
            if work[plan.work_size..].iter().any(|&b| b != 0xa5) {
                return Err(format!("{n} threads: written behind the work buffer of {} bytes", plan.work_size));
            }
            let got = Result::of(out);
            match &first {
                None => first = Some(got),
                Some(first) if *first == got => {}
                Some(first) => {
                    let text = got.differs(first, 0.0);
                    return Err(format!("{n} threads give other bytes than one: {text:?}"));
                }
            }
        }
        Ok(true)
    })
}

#[test]
fn case_07_threads_and_work_buffers() {
    let mut tally = Tally::default();
    let pools = COUNTS.map(|n| {
        let mut params = ggml_threadpool_params_default(n);
        params.poll = 0;
        let pool = ggml_threadpool_new(&mut params);
        assert!(!pool.is_null());
        pool
    });
    for form in forms() {
        // the usual formats, and the last ones
        let all = form.combinations();
        let some = [all.first(), all.last().filter(|_| all.len() > 1)];
        for types in some.into_iter().flatten() {
            tally.add(|| format!("{} {}", form.name, names(types)), counts(form, types, &pools));
        }
    }
    pools.into_iter().for_each(|p| ggml_threadpool_free(p));
    tally.finish("case 7", 200);
}
