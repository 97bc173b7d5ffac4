//! The catalogue holds every operator, and each form of it is computed as it stands.

use crate::forms::forms;
use crate::place::*;
use reference::world::{last_error, t};
use reference::*;
use std::collections::BTreeSet;

/// Operators that have no kernel yet.
const WITHOUT_KERNEL: &[ggml_op] = &[
    GGML_OP_SSM_CONV,
    GGML_OP_SSM_SCAN,
    GGML_OP_RWKV_WKV6,
    GGML_OP_RWKV_WKV7,
    GGML_OP_GATED_LINEAR_ATTN,
    GGML_OP_GATED_DELTA_NET,
    GGML_OP_SOLVE_TRI,
    GGML_OP_WIN_PART,
    GGML_OP_WIN_UNPART,
    GGML_OP_GET_REL_POS,
    GGML_OP_ADD_REL_POS,
    GGML_OP_LIGHTNING_INDEXER,
    GGML_OP_DSV4_HC_COMB,
    GGML_OP_DSV4_HC_PRE,
    GGML_OP_DSV4_HC_POST,
    GGML_OP_COL2IM_1D,
];

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
            let without = WITHOUT_KERNEL.contains(&t(out).op);
            match compute(w, form, &sources) {
                Ok(Some(_)) if without => wrong.push(format!("{}: has a kernel now: take it off the list", form.name)),
                Ok(None) if !without => {
                    wrong.push(format!("{} {}: refused: {}", form.name, names(types), last_error()))
                }
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
