//! Copies between layouts and formats.

use super::common::*;
use reference::values::{block, stored};

/// Formats of whole numbers, and f64.
const OTHERS: [ggml_type; 5] = [GGML_TYPE_I8, GGML_TYPE_I16, GGML_TYPE_I32, GGML_TYPE_I64, GGML_TYPE_F64];

fn every() -> Vec<ggml_type> {
    FLOATS.into_iter().chain(BLOCKS).chain(OTHERS).collect()
}

fn layouts(ty: ggml_type) -> &'static [Layout] {
    if block(ty).0 == 1 {
        &ALL
    } else {
        &PACKED
    }
}

/// Shapes whose rows are whole blocks.
fn whole(unit: usize) -> Vec<[usize; 4]> {
    if unit == 1 {
        shapes().collect()
    } else {
        vec![[2 * unit, 6, 4, 2], [unit, 1, 1, 1], [3 * unit, 7, 3, 2], [unit, 0, 2, 2], [0, 3, 2, 1]]
    }
}

/// What the elements of `a`, in another shape of as many, are in order.
fn reshaped(a: &Arr, ne: [usize; 4]) -> Arr {
    Arr { ne, v: a.v.clone() }
}

/// Without a change of format: bits are kept, NaN and signs among them.
#[test]
fn cont_and_dup() {
    let mut s = Suite::new("cont, dup");
    for ty in every() {
        for ne in whole(block(ty).0) {
            for &la in layouts(ty) {
                let fill = if OTHERS.contains(&ty) {
                    Fill::Whole(-120, 120)
                } else if block(ty).0 > 1 {
                    PLAIN
                } else {
                    Fill::Special
                };
                s.case(true, format!("cont {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &fill);
                    (ggml_cont(w.ctx, a), Want::new(read(a), Tol::EXACT))
                });
                s.case(true, format!("dup {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &fill);
                    (ggml_dup(w.ctx, a), Want::new(read(a), Tol::EXACT))
                });
                let flat = [ne.iter().product(), 1, 1, 1];
                s.case(block(ty).0 == 1, format!("cont_1d {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &fill);
                    (ggml_cont_1d(w.ctx, a, flat[0] as i64), Want::new(reshaped(&read(a), flat), Tol::EXACT))
                });
                let swapped = [ne[0], ne[2], ne[1], ne[3]];
                s.case(true, format!("cont_4d {} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(ty, ne, la, &fill);
                    let d = dims(swapped);
                    (ggml_cont_4d(w.ctx, a, d[0], d[1], d[2], d[3]), Want::new(reshaped(&read(a), swapped), Tol::EXACT))
                });
            }
        }
    }
    s.finish(1000);
}

/// The numbers that remain of `x` in format `ty`. Whole numbers are kept exactly, so the reference needs no rounding rule.
fn converted(from: ggml_type, to: ggml_type, x: &Arr) -> Want {
    if from == to || block(to).0 == 1 {
        return Want::new(x.clone(), Tol::EXACT);
    }
    Want::new(stored(to, x), Tol::EXACT)
}

/// Formats that upstream's CPU copies to from the one given.
fn upstream_copies(from: ggml_type, to: ggml_type) -> bool {
    let encoded = [GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0];
    let float = |ty| FLOATS.contains(&ty);
    from == to || (float(from) && (float(to) || encoded.contains(&to))) || (block(from).0 > 1 && to == GGML_TYPE_F32)
}

/// All pairs of formats, from all layouts: `ggml_cast`, and `ggml_cpy` into all layouts.
#[test]
fn case_07_cast_and_cpy() {
    let mut s = Suite::new("cast, cpy");
    for from in every() {
        for to in every() {
            let unit = block(from).0.max(block(to).0);
            let plain = block(to).0 == 1;
            // the last but two is large enough to be shared out among threads
            let large = if unit == 1 { [129, 37, 2, 2] } else { [3 * unit, 30, 3, 1] };
            for ne in [[2 * unit, 6, 4, 2], [unit, 1, 1, 1], large, [unit, 0, 2, 1], [0, 2, 1, 1]] {
                if ne == large && (unit > 32 || OTHERS.contains(&to) || OTHERS.contains(&from)) {
                    continue;
                }
                let whole = OTHERS.contains(&to) || OTHERS.contains(&from);
                let fill = if whole {
                    Fill::Whole(-120, 120)
                } else if plain && block(from).0 == 1 {
                    Fill::Special
                } else {
                    PLAIN
                };
                for &la in layouts(from) {
                    // whole numbers that come out of blocks are no whole numbers
                    if OTHERS.contains(&to) && block(from).0 > 1 {
                        continue;
                    }
                    let must = upstream_copies(from, to) && (plain || la.packed());
                    s.case(must, format!("cast {} to {} {ne:?} {la:?}", type_name(from), type_name(to)), |w| {
                        let a = w.source(from, ne, la, &fill);
                        let want = converted(from, to, &read(a));
                        (ggml_cast(w.ctx, a, to), want)
                    });
                    for &lb in layouts(to) {
                        if la != Layout::Cont && lb != Layout::Cont && (ne[0] != 2 * unit || unit > 1 || whole) {
                            continue;
                        }
                        let must = must && (lb == Layout::Cont || plain);
                        s.case(
                            must,
                            format!("cpy {} to {} {ne:?} {la:?} {lb:?}", type_name(from), type_name(to)),
                            |w| {
                                let (a, b) = (w.source(from, ne, la, &fill), w.bare(to, ne, lb));
                                let want = converted(from, to, &read(a));
                                (ggml_cpy(w.ctx, a, b), want)
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(5000);
}

/// To the codebook formats that are made without importance weights; upstream refuses.
#[test]
fn cast_to_codebooks() {
    let mut s = Suite::new("cast to codebooks");
    for ty in [GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S] {
        for ne in [[512, 6, 2, 2], [256, 1, 1, 1], [256, 0, 2, 1]] {
            for la in PACKED {
                s.case(false, format!("{} {ne:?} {la:?}", type_name(ty)), |w| {
                    let a = w.source(GGML_TYPE_F32, ne, la, &PLAIN);
                    let want = converted(GGML_TYPE_F32, ty, &read(a));
                    (ggml_cast(w.ctx, a, ty), want)
                });
            }
        }
    }
    s.finish(20);
}

/// Into another shape: elements keep their order.
#[test]
fn cpy_reshapes() {
    let mut s = Suite::new("cpy to another shape");
    let (from, to) = ([6, 4, 5, 2], [8, 3, 2, 5]);
    for ta in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I32] {
        for tb in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I32] {
            for la in ALL {
                for lb in ALL {
                    s.case(ta == tb, format!("{} {la:?} {lb:?}", names(&[ta, tb])), |w| {
                        let (a, b) = (w.source(ta, from, la, &Fill::Whole(-99, 99)), w.bare(tb, to, lb));
                        (ggml_cpy(w.ctx, a, b), Want::new(reshaped(&read(a), to), Tol::EXACT))
                    });
                }
            }
        }
    }
    s.finish(300);
}
