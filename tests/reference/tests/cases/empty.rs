//! Case 11 (llama.cpp#26946, #26701, whisper.cpp#3864, ggml#928, #1517): tensors without elements, in every operator.

use crate::forms::{forms, Form};
use crate::place::*;
use reference::world::{last_error, t};
use reference::*;

/// As `World::compute`; an index of a tensor without rows is outside, and that is a good answer.
fn computed(w: &mut World, out: T) -> std::result::Result<world::Outcome, String> {
    match w.compute(out) {
        Err(text) if text.contains("outside the 0 ") => Ok(world::Outcome::Refused),
        answer => answer,
    }
}

/// Whether the form is computed as it is.
fn runs(form: &Form) -> bool {
    World::with(2, |w| {
        let sources = plain(w, form, &form.combinations()[0]);
        matches!(compute(w, form, &sources), Ok(Some(_)))
    })
}

/// Computes a form with dimension `d` of 0 elements: in source `k` alone, or in all that have it as long as source 0.
fn empty(form: &Form, k: Option<usize>, d: usize) -> std::result::Result<bool, String> {
    World::with(2, |w| {
        let n = form.sources[0].ne[d];
        let sources: Vec<T> = form
            .sources
            .iter()
            .enumerate()
            .map(|(i, s)| {
                let mut s = s.clone();
                if k.map_or(s.ne[d] == n, |k| k == i) {
                    s.ne[d] = 0;
                }
                put(w, &s, s.types[0], Lie::In(Layout::Cont))
            })
            .collect();
        let out = build(w, form, &sources);
        let poisoned = ggml::tensor::is_poisoned(t(out));
        if poisoned && last_error().is_empty() {
            return Err("not built, and no reason".into());
        }
        match computed(w, out)? {
            // the mean of nothing is none
            world::Outcome::Ran if form.name == "ggml_mean" => Ok(true),
            world::Outcome::Ran
                if values::precision(t(out).r#type).0 > 0.0 && Result::of(out).numbers().iter().any(|x| x.is_nan()) =>
            {
                Err("an element of the result is not written, or is made of memory that is no source's".into())
            }
            world::Outcome::Ran => Ok(true),
            // where the result has no elements there is nothing that could not be computed
            outcome if !poisoned && t(out).ne.contains(&0) => {
                Err(format!("{outcome:?}, although there is nothing to do"))
            }
            _ => Ok(false),
        }
    })
}

#[test]
fn case_11_no_elements_in_any_dimension() {
    let mut tally = Tally::default();
    for form in forms().iter().filter(|form| runs(form)) {
        for d in 0..4 {
            for k in (0..form.sources.len()).map(Some).chain((!form.sources.is_empty()).then_some(None)) {
                tally.add(|| format!("{} {k:?} dimension {d}", form.name), empty(form, k, d));
            }
        }
    }
    tally.finish("case 11", 500);
}

/// The same from views without elements, which have a place in a tensor that has some.
#[test]
fn case_11_empty_views() {
    let mut tally = Tally::default();
    for form in forms().iter().filter(|form| !form.sources.is_empty() && runs(form)) {
        for d in 1..4 {
            let result = World::with(2, |w| {
                let mut sources = plain(w, form, &form.sources.iter().map(|s| s.types[0]).collect::<Vec<_>>());
                let n = form.sources[0].ne[d];
                for (s, src) in sources.iter_mut().zip(&form.sources).filter(|(_, src)| src.ne[d] == n) {
                    let (mut ne, nb) = (t(*s).ne, t(*s).nb);
                    ne[d] = 0;
                    // at the very end of its storage
                    let end = ggml_nbytes(*s);
                    *s = ggml_view_4d(w.ctx, *s, ne[0], ne[1], ne[2], ne[3], nb[1], nb[2], nb[3], end);
                    assert_eq!(t(*s).ne[d], 0, "{} {}", form.name, src.ne[d]);
                    w.place(*s);
                }
                let out = build(w, form, &sources);
                computed(w, out).map(|outcome| outcome == world::Outcome::Ran)
            });
            tally.add(|| format!("{} dimension {d}", form.name), result);
        }
    }
    tally.finish("case 11, views", 200);
}
