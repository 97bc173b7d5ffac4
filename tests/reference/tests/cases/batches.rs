//! Case 4 (ggml#1448, llama.cpp#26132): each picture of a batch is what it is alone.

use crate::forms::{forms, Form};
use crate::place::*;
use reference::world::elements;
use reference::*;

fn compare(form: &Form, types: &[ggml_type], which: &[bool]) -> std::result::Result<bool, String> {
    let (whole, bytes) = World::with(4, |w| {
        let sources = plain(w, form, types);
        let bytes: Vec<Vec<u8>> = sources.iter().map(|&s| elements(s)).collect();
        compute(w, form, &sources).map(|got| (got, bytes))
    })?;
    let Some(whole) = whole else { return Ok(false) };
    let n = form.sources.iter().zip(which).find(|(_, which)| **which).map_or(1, |(s, _)| s.ne[3]);
    let mut single = form.clone();
    single.sources.iter_mut().zip(which).filter(|(_, which)| **which).for_each(|(s, _)| s.ne[3] = 1);
    for i in 0..n {
        let want = World::with(1, |w| {
            let sources = plain(w, &single, types);
            for ((&s, bytes), &which) in sources.iter().zip(&bytes).zip(which) {
                let part = bytes.len() / n;
                w.set_elements(s, if which { &bytes[i * part..(i + 1) * part] } else { bytes });
            }
            compute(w, &single, &sources)
        })?;
        let want = want.ok_or("one alone is refused")?;
        let part = whole.bytes.len() / n;
        let [a, b, c, d] = whole.ne;
        let got =
            Result { ty: whole.ty, ne: [a, b, c, d / n as i64], bytes: whole.bytes[i * part..(i + 1) * part].to_vec() };
        if let Some(text) = got.differs(&want, form.near_of(types)) {
            return Err(format!("number {i} of {n}: {text}"));
        }
    }
    Ok(true)
}

#[test]
fn case_04_each_of_a_batch_alone() {
    let mut tally = Tally::default();
    let mut forms_run = 0;
    for form in forms() {
        let Some(which) = &form.batch else { continue };
        forms_run += 1;
        for types in form.combinations() {
            tally.add(|| format!("{} {}", form.name, names(&types)), compare(form, &types, which));
        }
    }
    assert!(forms_run > 100, "{forms_run} forms");
    tally.finish("case 4", 300);
}
