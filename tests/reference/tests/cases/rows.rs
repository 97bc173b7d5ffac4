//! Cases 31 and 33 (llama.cpp#6438, pytorch#131060, burn#4697, tract#2569): a row with NaN or infinities is a matter of that row alone,
//! and a row that is masked everywhere gives zeros.

use crate::forms::{forms, Form};
use crate::place::*;
use reference::values::{block, encode};
use reference::world::t;
use reference::*;

/// Numbers that go wrong: what is not finite, what overflows when it is squared, and what vanishes.
const BAD: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3e38, -3e38, 1e-45];

/// Computes the form twice, the second time with `bad` in one row of the source whose rows count: all other rows stay what they are.
fn poisoned(form: &Form, of: usize, types: &[ggml_type], bad: f64) -> std::result::Result<bool, String> {
    World::with(2, |w| {
        let ty = types[of];
        let sources = plain(w, form, types);
        let Some(before) = compute(w, form, &sources)? else { return Ok(false) };
        let p = sources[of];
        let (ne, nb) = (form.sources[of].ne, t(p).nb);
        let (unit, _) = block(ty);
        let [i1, i2, i3] = [ne[1] / 2, ne[2] - 1, ne[3] / 2];
        // in the middle of the row
        let i0 = ne[0] / 2 / unit;
        let values = vec![bad; unit];
        let at = i0 * nb[0] + i1 * nb[1] + i2 * nb[2] + i3 * nb[3];
        // SAFETY: a block of the source.
        unsafe { encode(ty, &values, t(p).data.cast::<u8>().wrapping_add(at)) };
        let out = build(w, form, &sources);
        if w.compute(out)? != world::Outcome::Ran {
            return Err("is refused for its values".into());
        }
        let after = Result::of(out);
        // a logarithm of what vanishes, and a mask, are infinite by their meaning
        let infinite = ["ggml_log", "ggml_diag_mask_inf"].contains(&form.name);
        if bad == BAD[5] && !infinite && after.numbers().iter().any(|x| !x.is_finite()) {
            return Err("a tiny number makes what is not finite".into());
        }
        let [_, n1, n2, n3] = after.ne.map(|n| n as usize);
        let row = after.bytes.len() / (n1 * n2 * n3);
        for (r, (a, b)) in after.bytes.chunks_exact(row).zip(before.bytes.chunks_exact(row)).enumerate() {
            if r != (i3 * n2 + i2) * n1 + i1 && a != b {
                return Err(format!("row {r} changed, which has no {bad} in it"));
            }
        }
        Ok(true)
    })
}

#[test]
fn case_33_a_row_and_its_neighbours() {
    let mut tally = Tally::default();
    for form in forms().iter().filter(|form| form.written.is_none()) {
        let Some(of) = form.rows else { continue };
        for types in form.combinations() {
            let ty = types[of];
            if values::precision(ty).0 == 0.0 {
                continue;
            }
            for bad in BAD {
                let bad = if ty == GGML_TYPE_F16 && bad.abs() == 3e38 { bad.signum() * 65504.0 } else { bad };
                tally.add(|| format!("{} {} {bad}", form.name, names(&types)), poisoned(form, of, &types, bad));
            }
        }
    }
    tally.finish("case 33", 300);
}

/// What is defined for rows that have nothing in them: rows of zeros, of one value, and masked ones.
#[test]
fn case_31_rows_of_nothing() {
    type Build = fn(Ctx, T) -> T;
    const INF: f64 = f64::INFINITY;
    let rows: [(&str, Build, f64, f64); 12] = [
        ("soft_max of -inf", |c, a| ggml_soft_max(c, a), -INF, 0.0),
        ("soft_max of 0", |c, a| ggml_soft_max(c, a), 0.0, 0.25),
        ("soft_max of -3e38", |c, a| ggml_soft_max(c, a), -3e38, 0.25),
        ("soft_max of 3e38", |c, a| ggml_soft_max(c, a), 3e38, 0.25),
        ("norm of 0", |c, a| ggml_norm(c, a, 1e-6), 0.0, 0.0),
        ("norm of 5", |c, a| ggml_norm(c, a, 1e-6), 5.0, 0.0),
        ("rms_norm of 0", |c, a| ggml_rms_norm(c, a, 1e-6), 0.0, 0.0),
        ("l2_norm of 0", |c, a| ggml_l2_norm(c, a, 1e-6), 0.0, 0.0),
        ("group_norm of 5", |c, a| ggml_group_norm(c, a, 1, 1e-6), 5.0, 0.0),
        ("sum_rows of 0", |c, a| ggml_sum_rows(c, a), 0.0, 0.0),
        ("mean of -0", |c, a| ggml_mean(c, a), -0.0, 0.0),
        ("swiglu of -inf", |c, a| ggml_swiglu(c, a), -INF, f64::NAN),
    ];
    for (name, build, x, want) in rows {
        World::with(3, |w| {
            let a = w.source(GGML_TYPE_F32, [4, 3, 2, 1], Layout::Cont, &Fill::List(vec![x]));
            let out = build(w.ctx, a);
            assert_eq!(w.compute(out), Ok(world::Outcome::Ran), "{name}");
            for x in world::read(out).v {
                let right =
                    if want.is_nan() { x.is_nan() || x.is_infinite() || x == 0.0 } else { (x - want).abs() < 1e-6 };
                assert!(right, "{name}: {x}");
            }
        });
    }
}
