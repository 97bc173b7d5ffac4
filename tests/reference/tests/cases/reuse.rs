//! Case 3 (ggml#1521): the allocator may give a source's storage to the result. Then the result is what separate storage gives, and a
//! source that is still needed is whole afterwards.

use crate::forms::{forms, Form};
use crate::place::{self, names, Result, Tally};
use reference::world::{last_error, t};
use reference::*;

/// Who needs the sources after the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Later {
    /// Nobody.
    Nobody,
    /// The caller: source k is an output.
    Output(usize),
    /// Another node: source k is read once more.
    Node(usize),
    /// Nobody, and the sources are views of what was computed.
    Views,
}

/// Computes the form on sources that are nodes, in storage of an allocator. Sources are copies of leafs, but where `leaf` says otherwise.
fn allocated(form: &Form, types: &[ggml_type], later: Later) -> std::result::Result<bool, String> {
    World::with(1, |w| {
        let leafs = place::plain(w, form, types);
        let nodes: Vec<T> = leafs
            .iter()
            .enumerate()
            .map(|(i, &leaf)| {
                // indices keep the storage they have: what fails is checked in `indices`
                let copy = ggml_cont(w.ctx, leaf);
                match later {
                    Later::Output(k) if k == i => ggml_set_output(copy),
                    Later::Views => {
                        let ne = t(copy).ne;
                        return ggml_reshape_4d(w.ctx, copy, ne[0], ne[1], ne[2], ne[3]);
                    }
                    _ => {}
                }
                copy
            })
            .collect();
        let out = (form.build)(w.ctx, &nodes);
        ggml_set_output(out);
        let graph = ggml_new_graph_custom(w.ctx, 64, false);
        ggml_build_forward_expand(graph, out);
        let mut again = std::ptr::null_mut();
        if let Later::Node(k) = later {
            again = ggml_cont(w.ctx, nodes[k]);
            ggml_set_output(again);
            ggml_build_forward_expand(graph, again);
        }
        let device = ggml_backend_get_device(w.backend(1));
        let all =
            (0..ggml_graph_n_nodes(graph)).all(|i| ggml_backend_dev_supports_op(device, ggml_graph_node(graph, i)));
        if !all || ggml::tensor::is_poisoned(t(out)) {
            return Ok(false);
        }
        let allocator = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
        let run = || {
            if !ggml_gallocr_alloc_graph(allocator, graph) {
                return Err(format!("not allocated: {}", last_error()));
            }
            let status = ggml_backend_graph_compute(w.backend(2), graph);
            if status != GGML_STATUS_SUCCESS {
                return Err(format!("{status:?}: {}", last_error()));
            }
            let kept = match later {
                // where only the shape of a source counts, nobody computes it
                Later::Output(k) if t(nodes[k]).data.is_null() => None,
                Later::Output(k) => Some((k, Result::of(nodes[k]))),
                Later::Node(k) => Some((k, Result::of(again))),
                _ => None,
            };
            // what the operator writes to its source by its meaning is no damage
            if let Some((k, kept)) = kept.filter(|(k, _)| form.written != Some(*k) && !form.writes(*k)) {
                if kept != Result::of(leafs[k]) {
                    return Err(format!("source {k} is needed, and not what it was"));
                }
            }
            Ok(Result::of(out))
        };
        let got = run();
        ggml_gallocr_free(allocator);
        let got = got?;
        let separate = place::build(w, form, &leafs);
        let want = match w.compute(separate)? {
            world::Outcome::Ran => Result::of(separate),
            other => return Err(format!("with separate storage: {other:?}")),
        };
        got.differs(&want, 0.0).map_or(Ok(true), Err)
    })
}

#[test]
fn case_03_result_in_a_sources_storage() {
    let mut tally = Tally::default();
    for form in forms() {
        for types in form.combinations() {
            let each = (0..form.sources.len()).flat_map(|k| [Later::Output(k), Later::Node(k)]);
            for later in each.chain([Later::Nobody, Later::Views]) {
                let result = allocated(form, &types, later);
                tally.add(|| format!("{} {} {later:?}", form.name, names(&types)), result);
            }
        }
    }
    tally.finish("case 3", 1000);
}
