//! The catalogue holds every operator, and each form of it is computed as it stands.

use crate::forms::forms;
use crate::place::*;
use reference::world::{last_error, t};
use reference::*;
use std::collections::BTreeSet;

/// Operators that are no operators of the CPU, or are the caller's own.
const OTHERS: &[ggml_op] = &[
    GGML_OP_NONE,
    GGML_OP_VIEW,
    GGML_OP_RESHAPE,
    GGML_OP_PERMUTE,
    GGML_OP_TRANSPOSE,
    GGML_OP_MAP_CUSTOM1,
    GGML_OP_MAP_CUSTOM2,
    GGML_OP_MAP_CUSTOM3,
    GGML_OP_CUSTOM,
    GGML_OP_COUNT,
];

#[test]
fn every_operator_has_a_form_that_runs() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for form in forms() {
        World::with(4, |w| {
            let types = &form.combinations()[0];
            let sources = plain(w, form, types);
            let out = (form.build)(w.ctx, &sources);
            if ggml::tensor::is_poisoned(t(out)) {
                wrong.push(format!("{}: {}", form.name, last_error()));
                return;
            }
            // the operators down to the sources
            let mut open = vec![out];
            while let Some(p) = open.pop().filter(|p| !p.is_null()) {
                if !sources.contains(&p) && seen.insert(t(p).op.0) || p == out {
                    open.extend(t(p).src.iter().filter(|s| !s.is_null() && **s != p));
                }
            }
            match compute(w, form, &sources) {
                Ok(None) => wrong.push(format!("{} {}: refused: {}", form.name, names(types), last_error())),
                Err(text) => wrong.push(format!("{}: {text}", form.name)),
                _ => {}
            }
        });
    }
    for (name, op) in ggml_op::NAMES {
        if !seen.contains(&op.0) && !OTHERS.contains(op) {
            wrong.push(format!("{name} has no form"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n  {}", wrong.len(), wrong.join("\n  "));
}
