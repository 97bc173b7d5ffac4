//! Matrix products.

use super::common::*;
use reference::values::{block, F8_E4M3, F8_E5M2};

/// Error that a format of weights may bring: from rounding the other source to the precision of the product.
pub fn tolerance(tw: ggml_type, tx: ggml_type, k: usize) -> Tol {
    let sums = (16.0 + k as f64 / 4.0) * U32;
    let half = 1.02 / 2048.0;
    let mag = match (tw, tx) {
        // 8-bit floats are widened, and nothing else is rounded
        (GGML_TYPE_F32 | F8_E4M3 | F8_E5M2, _) => 0.0,
        (GGML_TYPE_F16, GGML_TYPE_F16) | (GGML_TYPE_BF16, GGML_TYPE_BF16) => 0.0,
        (GGML_TYPE_F16, _) => half,
        (GGML_TYPE_BF16, _) => 1.02 / 256.0,
        // eight bits for the largest element of a block, scales in half precision
        _ => 0.5 / 127.0 + 2.0 * half,
    };
    Tol { rel: U32, mag: mag + sums, abs: 1e-30 }
}

/// Dot products of the rows of `a` and `b`, the matrices of `a` repeated; the magnitude is that of the terms, for blocks that of
/// the weights times the largest element.
pub fn reference(a: &Arr, b: &Arr, blocks: bool, tol: Tol) -> Want {
    let [r2, r3] = [2, 3].map(|d| b.ne[d].checked_div(a.ne[d]).unwrap_or(1).max(1));
    Want::with_magnitude([a.ne[1], b.ne[1], b.ne[2], b.ne[3]], tol, |[i, j, k, l]| {
        let (x, y) = (a.row([i, k / r2, l / r3]), b.row([j, k, l]));
        let (v, m) = sum(x.iter().zip(y).map(|(x, y)| x * y));
        let largest = y.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
        (v, if blocks { x.iter().map(|x| x.abs()).sum::<f64>() * largest } else { m })
    })
}

fn layouts(ty: ggml_type) -> impl Iterator<Item = Layout> {
    ALL.into_iter().filter(move |la| block(ty).0 == 1 || la.packed())
}

struct Sizes {
    k: usize,
    m: usize,
    n: usize,
    a: [usize; 2],
    b: [usize; 2],
}

fn sizes(unit: usize) -> Vec<Sizes> {
    let k = |plain: usize, blocks: usize| if unit == 1 { plain } else { blocks * unit };
    vec![
        Sizes { k: k(8, 1), m: 6, n: 5, a: [4, 2], b: [4, 2] },
        Sizes { k: k(33, 3), m: 7, n: 9, a: [1, 1], b: [3, 2] },
        Sizes { k: k(1, 1), m: 1, n: 1, a: [1, 1], b: [1, 1] },
        Sizes { k: k(257, 2), m: 3, n: 33, a: [2, 1], b: [4, 1] },
        Sizes { k: k(160, 3), m: 150, n: 70, a: [1, 1], b: [1, 1] },
        Sizes { k: k(100, 2), m: 35, n: 1, a: [1, 1], b: [1, 1] },
        Sizes { k: k(64, 4), m: 40, n: 37, a: [1, 2], b: [2, 2] },
        Sizes { k: 0, m: 3, n: 2, a: [1, 1], b: [1, 1] },
        Sizes { k: k(8, 1), m: 0, n: 2, a: [1, 1], b: [1, 1] },
        Sizes { k: k(8, 1), m: 3, n: 0, a: [1, 1], b: [2, 1] },
        Sizes { k: k(8, 1), m: 3, n: 2, a: [1, 1], b: [0, 2] },
    ]
}

fn mul_mat(types: &[ggml_type], least: usize) {
    for &tw in types {
        let blocks = block(tw).0 > 1;
        let mut s = Suite::new(format!("mul_mat {}", type_name(tw)));
        for tx in FLOATS {
            for z in sizes(block(tw).0) {
                let small = z.m * z.n < 50;
                for la in layouts(tw) {
                    for lb in ALL {
                        let few = la == Layout::Cont && matches!(lb, Layout::Cont | Layout::Swap12 | Layout::Swap01);
                        // the largest is shared out among threads, and its reference is slow
                        if (!small && la != Layout::Cont && lb != Layout::Cont) || (z.m == 150 && !few) {
                            continue;
                        }
                        // upstream takes f32, or the format that the product is made in, with packed rows
                        let eight = matches!(tw, F8_E4M3 | F8_E5M2);
                        let must = la.packed() && lb.packed() && (tx == GGML_TYPE_F32 || tx == tw || eight);
                        let (na, nb) = ([z.k, z.m, z.a[0], z.a[1]], [z.k, z.n, z.b[0], z.b[1]]);
                        s.case(must, format!("{} {na:?} {nb:?} {la:?} {lb:?}", names(&[tw, tx])), |w| {
                            let (a, b) = (w.source(tw, na, la, &PLAIN), w.source(tx, nb, lb, &PLAIN));
                            let want = reference(&read(a), &read(b), blocks, tolerance(tw, tx, z.k));
                            (ggml_mul_mat(w.ctx, a, b), want)
                        });
                    }
                }
            }
        }
        s.finish(least);
    }
}

#[test]
fn mul_mat_f32() {
    mul_mat(&[GGML_TYPE_F32], 500);
}
#[test]
fn mul_mat_16_bits() {
    mul_mat(&[GGML_TYPE_F16, GGML_TYPE_BF16], 500);
}
#[test]
fn mul_mat_8_bits() {
    mul_mat(&[F8_E4M3, F8_E5M2], 500);
}
#[test]
fn mul_mat_blocks_of_32() {
    mul_mat(&BLOCKS[..5], 200);
}
#[test]
fn mul_mat_blocks_of_256() {
    mul_mat(&BLOCKS[5..], 200);
}

/// Extreme but finite sources: no NaN, and what is out of range is infinite with the right sign.
#[test]
fn mul_mat_of_extremes() {
    let mut s = Suite::new("mul_mat of extreme numbers");
    for tw in
        [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K]
    {
        for (wide, size) in [(1.0, 1e-30), (1e-3, 1e15), (6e4, 6e4), (1e-6, 1e-6), (0.0, 1e30), (1.0, 0.0)] {
            for n in [1, 20] {
                s.case(true, format!("{} {wide:e} {size:e} {n}", type_name(tw)), |w| {
                    let a = w.source(tw, [256, 18, 1, 1], Layout::Cont, &Fill::Range(0.1 * wide, wide));
                    let b = w.source(GGML_TYPE_F32, [256, n, 1, 1], Layout::Cont, &Fill::Range(0.5 * size, size));
                    let (x, y) = (read(a), read(b));
                    // half precision has its own range, for numbers and for scales of blocks
                    let unit = if tw == GGML_TYPE_F16 { 1.0 } else { 127.0 };
                    let half = tw == GGML_TYPE_F16 || block(tw).0 == 32;
                    let fits = !half || size == 0.0 || (size / unit <= 65504.0 && size / unit > 1e-3);
                    let want = if fits {
                        reference(&x, &y, block(tw).0 > 1, tolerance(tw, GGML_TYPE_F32, 256))
                    } else {
                        Want::by([18, n, 1, 1], |got| {
                            if got.v.iter().any(|x| x.is_nan()) {
                                Err("NaN".into())
                            } else {
                                Ok(())
                            }
                        })
                    };
                    (ggml_mul_mat(w.ctx, a, b), want)
                });
            }
        }
    }
    s.finish(80);
}

/// A permuted second source gives the bits of its contiguous copy. Block formats with rows that are not packed may be multiplied
/// in full precision instead of eight bits, which `mul_mat` above has.
#[test]
fn case_37_permuted_second_source() {
    for tw in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K] {
        for lb in ALL.into_iter().filter(|lb| block(tw).0 == 1 || lb.packed()) {
            for (a2, a3) in [(1, 1), (2, 1), (4, 2), (1, 2)] {
                World::with(4, |w| {
                    let k = block(tw).0.max(32);
                    let a = w.source(tw, [k, 9, a2, a3], Layout::Cont, &PLAIN);
                    let b = w.source(GGML_TYPE_F32, [k, 7, 4, 2], lb, &PLAIN);
                    let direct = ggml_mul_mat(w.ctx, a, b);
                    let copied = ggml_mul_mat(w.ctx, a, ggml_cont(w.ctx, b));
                    assert_eq!(w.compute(direct), Ok(Outcome::Ran), "{tw:?} {lb:?}");
                    assert_eq!(w.compute(copied), Ok(Outcome::Ran));
                    assert_eq!(read(direct), read(copied), "{tw:?} {lb:?} {a2} {a3}");
                });
            }
        }
    }
}

/// A block of q8_0: scale 1, and these numbers.
fn q8_0(q: [i8; 32]) -> Vec<u8> {
    let scale = 0x3c00u16.to_le_bytes();
    scale.into_iter().chain(q.map(|q| q as u8)).collect()
}

/// -128 and 127 as weights in each position of a block, and activations that become -127 and 127.
#[test]
fn case_34_q8_0_extremes() {
    let mut s = Suite::new("case 34");
    for at in 0..32 {
        for rest in [0i8, -128, 127] {
            for n in [1, 17] {
                for tx in [GGML_TYPE_F32, GGML_TYPE_Q8_0] {
                    s.case(tx == GGML_TYPE_F32, format!("{at} {rest} {n} {}", type_name(tx)), |w| {
                        let a = w.bare(GGML_TYPE_Q8_0, [64, 16, 1, 1], Layout::Cont);
                        let row = |first: i8| {
                            let block = |j: usize| if j == at { first } else { rest };
                            [q8_0(std::array::from_fn(block)), q8_0([-128; 32])].concat()
                        };
                        let bytes: Vec<u8> = (0..16).flat_map(|i| row(if i % 2 == 0 { -128 } else { 127 })).collect();
                        w.raw(a).copy_from_slice(&bytes);
                        let b = w.bare(tx, [64, n, 1, 1], Layout::Cont);
                        if tx == GGML_TYPE_F32 {
                            w.fill(b, &Fill::List(vec![-1.0, -1.0, 1.0, -1.0, -1.0, -1.0, 1.0]));
                        } else {
                            let bytes: Vec<u8> = (0..2 * n).flat_map(|_| q8_0([-128; 32])).collect();
                            w.raw(b).copy_from_slice(&bytes);
                        }
                        let want = reference(&read(a), &read(b), true, tolerance(GGML_TYPE_Q8_0, tx, 64));
                        (ggml_mul_mat(w.ctx, a, b), want)
                    });
                }
            }
        }
    }
    s.finish(190);
}

#[test]
fn mul_mat_id() {
    let mut s = Suite::new("mul_mat_id");
    for tw in FLOATS.into_iter().chain(BLOCKS) {
        let unit = block(tw).0;
        for (k, m, experts, b1, used, tokens) in [
            (8, 6, 4, 1, 2, 5),
            (33, 7, 3, 3, 3, 2),
            (1, 1, 1, 1, 1, 1),
            (257, 5, 8, 1, 4, 19),
            (60, 90, 3, 1, 2, 50),
            (64, 33, 2, 2, 2, 40),
            (8, 3, 2, 1, 2, 0),
            (8, 0, 2, 1, 2, 3),
            (0, 3, 2, 1, 2, 3),
        ] {
            let k = if unit == 1 { k } else { k.min(60usize).div_ceil(32) * unit };
            for la in layouts(tw) {
                for lb in ALL {
                    for li in [Layout::Cont, Layout::RowGap, Layout::Swap01] {
                        if [la, lb, li].iter().filter(|&&l| l != Layout::Cont).count() > 1 && (k, m) != (8, 6) {
                            continue;
                        }
                        let must = la.packed() && lb.packed() && li.packed();
                        s.case(
                            must,
                            format!(
                                "{} [{k},{m},{experts}] [{k},{b1},{tokens}] {used} {la:?} {lb:?} {li:?}",
                                type_name(tw)
                            ),
                            |w| {
                                let a = w.source(tw, [k, m, experts, 1], la, &PLAIN);
                                let b = w.source(GGML_TYPE_F32, [k, b1, tokens, 1], lb, &PLAIN);
                                let c =
                                    w.source(GGML_TYPE_I32, [used, tokens, 1, 1], li, &Fill::Whole(0, experts as i64));
                                let (x, y, z) = (read(a), read(b), read(c));
                                let want = Want::with_magnitude(
                                    [m, used, tokens, 1],
                                    tolerance(tw, GGML_TYPE_F32, k),
                                    |[i, u, t, _]| {
                                        let (p, q) =
                                            (x.row([i, z.at([u, t, 0, 0]) as usize, 0]), y.row([u % b1, t, 0]));
                                        let (v, mag) = sum(p.iter().zip(q).map(|(p, q)| p * q));
                                        let largest = q.iter().fold(0.0, |m: f64, q| m.max(q.abs()));
                                        (
                                            v,
                                            if unit > 1 {
                                                p.iter().map(|p| p.abs()).sum::<f64>() * largest
                                            } else {
                                                mag
                                            },
                                        )
                                    },
                                );
                                (ggml_mul_mat_id(w.ctx, a, b, c), want)
                            },
                        );
                    }
                }
            }
        }
    }
    s.finish(1000);
}

#[test]
fn case_18_mul_mat_id_out_of_range() {
    for bad in [-1, 4, 999_999, i32::MIN, i32::MAX] {
        World::with(1, |w| {
            let a = w.source(GGML_TYPE_F32, [8, 3, 4, 1], Layout::Cont, &PLAIN);
            let b = w.source(GGML_TYPE_F32, [8, 1, 2, 1], Layout::Cont, &PLAIN);
            let c =
                w.source(GGML_TYPE_I32, [2, 2, 1, 1], Layout::Cont, &Fill::List(vec![0.0, 3.0, f64::from(bad), 1.0]));
            let out = ggml_mul_mat_id(w.ctx, a, b, c);
            assert!(!w.fails(out).unwrap().is_empty(), "expert {bad} of 4");
        });
    }
}
