//! Case 18 (llama.cpp#27283, #9354): an index that points outside is a failed graph with a text, and no byte outside the result changes.

use crate::forms::{forms, Content, Form};
use crate::place::*;
use reference::world::t;
use reference::*;

/// The form with one index that is `bad`, at place `at`.
fn outside(form: &Form, ty: ggml_type, k: usize, at: usize, bad: i64) -> std::result::Result<bool, String> {
    World::with(1, |w| {
        let types = form.types(k, ty);
        let sources = plain(w, form, &types);
        // SAFETY: an element of a tensor without gaps.
        unsafe {
            match ty {
                GGML_TYPE_I64 => t(sources[k]).data.cast::<i64>().add(at).write(bad),
                _ => t(sources[k]).data.cast::<i32>().add(at).write(bad as i32),
            }
        }
        let out = build(w, form, &sources);
        let device = ggml_backend_get_device(w.backend(1));
        if !ggml_backend_dev_supports_op(device, out) {
            return Ok(false);
        }
        let text = w.fails(out)?;
        if !text.contains(&bad.to_string()) {
            return Err(format!("the reason does not name the index: {text}"));
        }
        Ok(true)
    })
}

#[test]
fn case_18_indices_that_point_outside() {
    let mut tally = Tally::default();
    let mut forms_run = 0;
    for form in forms() {
        for (k, s) in form.sources.iter().enumerate() {
            let (Content::Index(below) | Content::Once(below, _)) = s.content else { continue };
            forms_run += 1;
            let n: usize = s.ne.iter().product();
            for &ty in s.types {
                let mut bad = vec![-1, below as i64, 999_999, i64::from(i32::MIN), i64::from(i32::MAX)];
                if ty == GGML_TYPE_I64 {
                    bad.extend([1 << 32, i64::MIN, i64::MAX, i64::MIN + 1]);
                }
                for bad in bad {
                    for at in [0, n / 2, n - 1] {
                        tally.add(
                            || format!("{} {} index {bad} at {at}", form.name, suite::type_name(ty)),
                            outside(form, ty, k, at, bad),
                        );
                    }
                }
            }
        }
    }
    assert!(forms_run >= 6, "{forms_run} forms have indices");
    tally.finish("case 18", 80);
}
