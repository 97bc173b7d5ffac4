//! Operators that read or make rows of the formats with codes of four bits or fewer, of the codebook formats and of the 8-bit
//! floats: few shapes and layouts, since the other block formats go the same ways through the library with all of them.

use super::common::*;
use super::matmul::{reference, tolerance};
use reference::values::{block, stored, F8_E4M3, F8_E5M2};

/// Formats that upstream's CPU encodes rows to.
const MADE: [ggml_type; 8] = [
    GGML_TYPE_IQ4_NL,
    GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,
    GGML_TYPE_Q1_0,
    GGML_TYPE_Q2_0,
    GGML_TYPE_IQ4_XS,
    GGML_TYPE_TQ1_0,
    GGML_TYPE_TQ2_0,
];

/// Formats that it reads only.
const READ: [ggml_type; 7] = [
    GGML_TYPE_IQ1_S,
    GGML_TYPE_IQ1_M,
    GGML_TYPE_IQ2_XXS,
    GGML_TYPE_IQ2_XS,
    GGML_TYPE_IQ2_S,
    GGML_TYPE_IQ3_XXS,
    GGML_TYPE_IQ3_S,
];

const EIGHT: [ggml_type; 2] = [F8_E4M3, F8_E5M2];

fn all() -> impl Iterator<Item = ggml_type> {
    MADE.into_iter().chain(READ).chain(EIGHT)
}

/// A row of about `n` elements, whole blocks.
fn row(ty: ggml_type, n: usize) -> usize {
    n.next_multiple_of(block(ty).0)
}

#[test]
fn mul_mat() {
    let mut s = Suite::new("mul_mat of small formats");
    for tw in all() {
        let blocks = block(tw).0 > 1;
        for (k, m, n, a, b) in [(33, 7, 1, 1, 2), (300, 5, 3, 2, 2), (100, 37, 20, 1, 1), (256, 40, 37, 1, 1)] {
            let k = row(tw, k);
            for tx in [GGML_TYPE_F32, GGML_TYPE_F16] {
                for la in [Layout::Cont, Layout::RowGap] {
                    let must = tx == GGML_TYPE_F32 || tw == F8_E4M3 || tw == F8_E5M2;
                    s.case(must, format!("{} [{k},{m},{a}] [{k},{n},{b}] {la:?}", names(&[tw, tx])), |w| {
                        let x = w.source(tw, [k, m, a, 1], la, &PLAIN);
                        let y = w.source(tx, [k, n, b, 1], Layout::Cont, &PLAIN);
                        let tol = tolerance(tw, tx, k);
                        let want = reference(&read(x), &read(y), blocks, tol);
                        (ggml_mul_mat(w.ctx, x, y), want)
                    });
                }
            }
        }
    }
    s.finish(270);
}

#[test]
fn mul_mat_id() {
    let mut s = Suite::new("mul_mat_id of small formats");
    for tw in all() {
        for (m, experts, used, tokens) in [(6, 4, 2, 5), (33, 2, 2, 40)] {
            let k = row(tw, 64);
            s.case(true, format!("{} [{k},{m},{experts}] {used} {tokens}", type_name(tw)), |w| {
                let a = w.source(tw, [k, m, experts, 1], Layout::Cont, &PLAIN);
                let b = w.source(GGML_TYPE_F32, [k, 1, tokens, 1], Layout::Cont, &PLAIN);
                let ids = Fill::Whole(0, experts as i64);
                let c = w.source(GGML_TYPE_I32, [used, tokens, 1, 1], Layout::Cont, &ids);
                let (x, y, z) = (read(a), read(b), read(c));
                let tol = tolerance(tw, GGML_TYPE_F32, k);
                let want = Want::with_magnitude([m, used, tokens, 1], tol, |[i, u, t, _]| {
                    let (p, q) = (x.row([i, z.at([u, t, 0, 0]) as usize, 0]), y.row([0, t, 0]));
                    let largest = q.iter().fold(0.0, |m: f64, q| m.max(q.abs()));
                    (p.iter().zip(q).map(|(p, q)| p * q).sum(), p.iter().map(|p| p.abs()).sum::<f64>() * largest)
                });
                (ggml_mul_mat_id(w.ctx, a, b, c), want)
            });
        }
    }
    s.finish(34);
}

#[test]
fn get_and_set_rows() {
    let mut s = Suite::new("get_rows and set_rows of small formats");
    for ty in all() {
        for la in PACKED {
            let n = row(ty, 70);
            s.case(la.packed(), format!("get {} {n} {la:?}", type_name(ty)), |w| {
                let a = w.source(ty, [n, 6, 2, 1], la, &PLAIN);
                let b = w.source(GGML_TYPE_I32, [9, 2, 1, 1], Layout::Cont, &Fill::Whole(0, 6));
                let (x, k) = (read(a), read(b));
                let want = Arr::from_fn([n, 9, 2, 1], |i| x.at([i[0], k.at([i[1], i[2], 0, 0]) as usize, i[2], i[3]]));
                (ggml_get_rows(w.ctx, a, b), Want::new(want, Tol::EXACT))
            });
            if !MADE.contains(&ty) {
                continue;
            }
            s.case(true, format!("set {} {n} {la:?}", type_name(ty)), |w| {
                let a = w.source(ty, [n, 7, 2, 1], la, &PLAIN);
                let b = w.source(GGML_TYPE_F32, [n, 2, 2, 1], Layout::Cont, &PLAIN);
                let c = w.source(GGML_TYPE_I64, [2, 1, 1, 1], Layout::Cont, &Fill::List(vec![5.0, 1.0]));
                let (x, y) = (read(a), stored(ty, &read(b)));
                let want = Arr::from_fn(x.ne, |i| match i[1] {
                    5 => y.at([i[0], 0, i[2], i[3]]),
                    1 => y.at([i[0], 1, i[2], i[3]]),
                    _ => x.at(i),
                });
                (ggml_set_rows(w.ctx, a, b, c), Want::new(want, Tol::EXACT))
            });
        }
    }
    s.finish(50);
}

#[test]
fn cast_and_cpy() {
    let mut s = Suite::new("copies of small formats");
    for ty in all() {
        let ne = [row(ty, 70), 3, 4, 1];
        for float in FLOATS {
            for la in PACKED {
                // upstream decodes to f32 only, and 8-bit floats to all three
                let must = (float == GGML_TYPE_F32 || EIGHT.contains(&ty)) && la == Layout::Cont;
                s.case(must, format!("cast {} {la:?}", names(&[ty, float])), |w| {
                    let a = w.source(ty, ne, la, &PLAIN);
                    let want = stored(float, &read(a));
                    (ggml_cast(w.ctx, a, float), Want::new(want, Tol::EXACT))
                });
                if MADE.contains(&ty) {
                    s.case(la == Layout::Cont, format!("cast {} {la:?}", names(&[float, ty])), |w| {
                        let a = w.source(float, ne, la, &PLAIN);
                        let want = stored(ty, &read(a));
                        (ggml_cast(w.ctx, a, ty), Want::new(want, Tol::EXACT))
                    });
                }
            }
        }
        s.case(true, format!("cpy {} to itself", type_name(ty)), |w| {
            let (a, b) = (w.source(ty, ne, Layout::RowGap, &PLAIN), w.bare(ty, ne, Layout::Cont));
            let want = read(a);
            (ggml_cpy(w.ctx, a, b), Want::new(want, Tol::EXACT))
        });
    }
    s.finish(100);
}
