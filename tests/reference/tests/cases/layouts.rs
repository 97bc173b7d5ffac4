//! Cases 1, 7, 37, 41: a source that lies otherwise gives what its contiguous copy gives, or `supports_op` says no.

use crate::forms::{forms, Form};
use crate::place::*;
use reference::world::elements;
use reference::*;
use std::collections::BTreeMap;

/// Computes a form with source `k` (or all) lying otherwise, and with contiguous copies.
fn compare(form: &Form, types: &[ggml_type], k: Option<usize>, lie: Lie) -> std::result::Result<bool, String> {
    let (got, bytes) = World::with(4, |w| {
        let lies = |i: usize| if k.is_none_or(|k| k == i) { lie } else { Lie::In(Layout::Cont) };
        let sources: Vec<T> =
            form.sources.iter().zip(types).enumerate().map(|(i, (s, &ty))| put(w, s, ty, lies(i))).collect();
        let bytes: Vec<Vec<u8>> = sources.iter().map(|&s| elements(s)).collect();
        compute(w, form, &sources).map(|got| (got, bytes))
    })?;
    let Some(got) = got else { return Ok(false) };
    let want = World::with(1, |w| {
        let sources = plain(w, form, types);
        sources.iter().zip(&bytes).for_each(|(&s, bytes)| w.set_elements(s, bytes));
        compute(w, form, &sources)
    })?;
    let want = want.ok_or("its contiguous copy is refused")?;
    got.differs(&want, form.near_of(types)).map_or(Ok(true), Err)
}

#[test]
fn every_form_on_every_layout() {
    let mut tally = Tally::default();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for form in forms() {
        let several = form.sources.len() > 1;
        for types in form.combinations() {
            for lie in lies() {
                for k in (0..form.sources.len()).map(Some).chain(several.then_some(None)) {
                    let touched: Vec<usize> = k.map_or((0..form.sources.len()).collect(), |k| vec![k]);
                    let blocks = touched.iter().any(|&i| ggml_blck_size(types[i]) > 1);
                    let packed = blocks || (form.packed && touched.contains(&0));
                    if packed && !lie.packed() {
                        continue;
                    }
                    let mut result = compare(form, &types, k, lie);
                    // a result whose rows lie over each other has no right values
                    let over = touched.iter().any(|&k| form.written == Some(k) || form.writes(k));
                    if lie == Lie::Still && over && result == Ok(true) {
                        result = Err("computed, although the result lies over itself".into());
                    }
                    if result == Ok(false) {
                        refused
                            .entry(format!("{} {}", form.name, names(&types)))
                            .or_default()
                            .push(format!("{k:?} {lie:?}"));
                    }
                    tally.add(|| format!("{} {} {k:?} {lie:?}", form.name, names(&types)), result);
                }
            }
        }
    }
    if std::env::var_os("CASES_LIST").is_some() {
        refused.iter().for_each(|(form, how)| println!("refused {form}: {}", how.join(", ")));
    }
    tally.finish("every form on every layout", 10_000);
}
