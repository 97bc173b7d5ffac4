//! Cases 31 and 33 (llama.cpp#6438, tract#2569, executorch#22323): gated units of special numbers, and NaN that must not get lost.

use reference::values::SPECIAL;
use reference::world::read;
use reference::*;

#[path = "../operators/functions.rs"]
#[allow(dead_code)]
mod functions;
use functions as f;

type Act = fn(f64) -> f64;

const GATES: [(ggml_glu_op, Act); 5] = [
    (GGML_GLU_OP_REGLU, f::relu),
    (GGML_GLU_OP_GEGLU, f::gelu),
    (GGML_GLU_OP_SWIGLU, f::silu),
    (GGML_GLU_OP_GEGLU_ERF, f::gelu_erf),
    (GGML_GLU_OP_GEGLU_QUICK, f::gelu_quick),
];

#[test]
fn case_33_gated_units() {
    let mut s = Suite::new("gated units of special numbers");
    let gates = [1.0, -2.5, 0.0, 1e4, 1e-4, f64::NAN];
    for (op, act) in GATES {
        for ty in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
            for n in [SPECIAL.len(), 63, 31, 1] {
                s.case(true, format!("{op:?} {} {n}", suite::type_name(ty)), |w| {
                    let ne = [n, gates.len(), SPECIAL.len() / n, 1];
                    let (a, b) = (w.bare(ty, ne, Layout::Cont), w.bare(ty, ne, Layout::Cont));
                    w.write(a, &Arr::from_fn(ne, |i| SPECIAL[i[0] + i[2] * n]));
                    w.write(b, &Arr::from_fn(ne, |i| gates[i[1]]));
                    let (x, g) = (read(a), read(b));
                    let tol = Tol { rel: 16.0 * suite::U32, mag: 3e-7, abs: 1.2e-38 };
                    let want = Want::with_magnitude(ne, tol, |i| (act(x.at(i)) * g.at(i), g.at(i).abs()));
                    (ggml_glu_split(w.ctx, a, b, op), want)
                });
            }
        }
    }
    s.finish(60);
}

/// One NaN in a row: where it decides, the result is NaN, wherever in the row it stands.
#[test]
fn case_31_nan_stays_nan() {
    type Build = fn(Ctx, T) -> T;
    let forms: [(&str, Build); 8] = [
        ("soft_max", |c, a| ggml_soft_max(c, a)),
        ("norm", |c, a| ggml_norm(c, a, 1e-6)),
        ("rms_norm", |c, a| ggml_rms_norm(c, a, 1e-6)),
        ("l2_norm", |c, a| ggml_l2_norm(c, a, 1e-6)),
        ("group_norm", |c, a| ggml_group_norm(c, a, 1, 1e-6)),
        ("sum_rows", |c, a| ggml_sum_rows(c, a)),
        ("mean", |c, a| ggml_mean(c, a)),
        ("sum", |c, a| ggml_sum(c, a)),
    ];
    for (name, build) in forms {
        for n in [1, 3, 16, 33, 70] {
            for at in 0..n {
                World::with(3, |w| {
                    let a = w.bare(GGML_TYPE_F32, [n, 1, 1, 1], Layout::Cont);
                    let x = |i: [usize; 4]| if i[0] == at { f64::NAN } else { i[0] as f64 - 2.0 };
                    w.write(a, &Arr::from_fn([n, 1, 1, 1], x));
                    let out = build(w.ctx, a);
                    assert_eq!(w.compute(out), Ok(world::Outcome::Ran), "{name}");
                    let got = read(out).v;
                    assert!(got.iter().all(|x| x.is_nan()), "{name} of {n}, NaN at {at}: {got:?}");
                });
            }
        }
    }
}

/// A query, a key or a value that is NaN: what reads it is NaN, and nothing else.
#[test]
fn case_31_attention_with_nan() {
    const NAN: f64 = f64::NAN;
    for ty in [GGML_TYPE_F32, GGML_TYPE_F16] {
        for (queries, keys) in [(1, 1), (3, 5), (40, 70), (1, 300)] {
            for which in 0..3 {
                World::with(3, |w| {
                    let (d, dv, heads) = (32, 32, 2);
                    let q = w.source(GGML_TYPE_F32, [d, queries, heads, 1], Layout::Cont, &Fill::Range(-2.0, 2.0));
                    let k = w.source(ty, [d, keys, heads, 1], Layout::Cont, &Fill::Range(-2.0, 2.0));
                    let v = w.source(ty, [dv, keys, heads, 1], Layout::Cont, &Fill::Range(-2.0, 2.0));
                    // of head 1: the last query, the last key, the last key's element 5
                    let (p, at) =
                        [(q, [3, queries - 1, 1, 0]), (k, [3, keys - 1, 1, 0]), (v, [5, keys - 1, 1, 0])][which];
                    let mut values = read(p);
                    let [n0, n1, n2, _] = values.ne;
                    values.v[(at[2] * n1 + at[1]) * n0 + at[0]] = NAN;
                    assert_eq!(n2, heads);
                    w.write(p, &values);
                    let out = ggml_flash_attn_ext(w.ctx, q, k, v, std::ptr::null_mut(), 0.2, 0.0, 0.0);
                    ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
                    assert_eq!(w.compute(out), Ok(world::Outcome::Ran));
                    let got = read(out);
                    for i in values::each(got.ne) {
                        let hit = i[1] == 1 && [i[2] == queries - 1, true, i[0] == 5][which];
                        let name =
                            format!("{} {queries} queries, {keys} keys, source {which}: {i:?}", suite::type_name(ty));
                        assert_eq!(got.at(i).is_nan(), hit, "{name} is {}", got.at(i));
                    }
                });
            }
        }
    }
}
