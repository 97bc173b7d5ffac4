//! Matrix multiplication against plain f64 loops.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{refusal, supports_op, Stop};

const PLAIN: [usize; 4] = [0, 1, 2, 3];

fn product(w: T, x: T, i: [i64; 4]) -> (f64, f64) {
    let (a, b) = (t(w), t(x));
    let (r2, r3) = (b.ne[2] / a.ne[2], b.ne[3] / a.ne[3]);
    (0..a.ne[0]).fold((0.0, 0.0), |(s, m), k| {
        let v = get(w, [k, i[0], i[2] / r2, i[3] / r3]) * get(x, [k, i[1], i[2], i[3]]);
        (s + v, m + v.abs())
    })
}

struct Case {
    w: ggml_type,
    x: ggml_type,
    /// m, n, k
    size: [i64; 3],
    batch: [i64; 4],
    order: [usize; 4],
    x_order: [usize; 4],
    gap: usize,
    tol: f64,
}

fn run(c: &Case) {
    let mut world = World::new();
    let mut rng = Rng(7 + c.size.iter().sum::<i64>() as u64);
    let [m, n, k] = c.size;
    let w = world.random(c.w, [k, m, c.batch[0], c.batch[1]], c.order, c.gap, &mut rng);
    let x = world.random(c.x, [k, n, c.batch[2], c.batch[3]], c.x_order, c.gap, &mut rng);
    let y = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [m, n, c.batch[2], c.batch[3]], &[w, x], &[]);
    assert!(supports_op(t(y)), "{:?}", refusal(t(y)));
    let mut first: Option<Vec<u8>> = None;
    for nth in [1, 2, 3, 5] {
        world.spoil(y);
        world.compute(nth).unwrap();
        let got = bytes(y);
        assert_eq!(first.get_or_insert_with(|| got.clone()), &got, "other bits on {nth} threads");
    }
    close(y, c.tol, |i| product(w, x, i), &format!("{:?} x {:?} {:?}", c.w, c.x, c.size));
}

#[test]
fn floats_on_odd_sizes_layouts_and_broadcast() {
    for w in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
        for x in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16] {
            for (size, batch) in [
                ([1, 1, 1], [1, 1, 1, 1]),
                ([33, 5, 70], [1, 1, 1, 1]),
                ([65, 41, 300], [1, 1, 1, 1]),
                ([17, 13, 19], [2, 1, 4, 3]),
                ([7, 1, 129], [1, 3, 2, 3]),
            ] {
                run(&Case { w, x, size, batch, order: PLAIN, x_order: PLAIN, gap: 0, tol: 1e-5 });
                run(&Case { w, x, size, batch, order: [0, 2, 1, 3], x_order: [1, 0, 3, 2], gap: 3, tol: 1e-5 });
            }
        }
    }
}

#[test]
fn block_formats() {
    for (w, k) in [
        (GGML_TYPE_Q4_0, 96),
        (GGML_TYPE_Q4_1, 96),
        (GGML_TYPE_Q5_0, 64),
        (GGML_TYPE_Q5_1, 32),
        (GGML_TYPE_Q8_0, 320),
        (GGML_TYPE_Q2_K, 256),
        (GGML_TYPE_Q3_K, 512),
        (GGML_TYPE_Q4_K, 256),
        (GGML_TYPE_Q5_K, 256),
        (GGML_TYPE_Q6_K, 512),
        (GGML_TYPE_IQ4_NL, 96),
        (GGML_TYPE_IQ4_XS, 512),
        (GGML_TYPE_TQ1_0, 256),
        (GGML_TYPE_TQ2_0, 512),
        (GGML_TYPE_MXFP4, 96),
        (GGML_TYPE_NVFP4, 192),
        (GGML_TYPE_Q1_0, 384),
        (GGML_TYPE_Q2_0, 192),
    ] {
        for size in [[5, 1, k], [37, 9, k], [64, 33, k]] {
            // The activations may be rounded to 8 bits.
            run(&Case {
                w,
                x: GGML_TYPE_F32,
                size,
                batch: [1, 1, 2, 1],
                order: PLAIN,
                x_order: PLAIN,
                gap: 0,
                tol: 1e-2,
            });
        }
        run(&Case {
            w,
            x: GGML_TYPE_F32,
            size: [9, 4, k],
            batch: [2, 1, 2, 1],
            order: [0, 2, 1, 3],
            x_order: [1, 0, 2, 3],
            gap: 1,
            tol: 1e-2,
        });
    }
}

#[test]
fn activations_may_be_blocks_too() {
    for w in [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0] {
        for size in [[5, 1, 64], [37, 40, 96]] {
            let batch = [1, 1, 2, 1];
            run(&Case { w, x: GGML_TYPE_Q8_0, size, batch, order: PLAIN, x_order: [0, 2, 1, 3], gap: 0, tol: 1e-2 });
        }
    }
}

#[test]
fn no_terms_give_zero_and_no_elements_give_nothing() {
    for (m, n, k) in [(3, 2, 0), (0, 2, 3), (3, 0, 3)] {
        let mut world = World::new();
        let w = world.tensor(GGML_TYPE_F32, [k, m, 1, 1]);
        let x = world.tensor(GGML_TYPE_F32, [k, n, 1, 1]);
        let y = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [m, n, 1, 1], &[w, x], &[]);
        world.compute(2).unwrap();
        assert!(bytes(y).iter().all(|&b| b == 0));
    }
}

#[test]
fn what_is_refused_does_not_run() {
    let mut world = World::new();
    let w = world.tensor(GGML_TYPE_F32, [4, 3, 1, 1]);
    let x = world.tensor(GGML_TYPE_F32, [5, 2, 1, 1]);
    let y = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [3, 2, 1, 1], &[w, x], &[]);
    t(y).name[0] = b'y' as _;
    assert!(!supports_op(t(y)));
    let Err(Stop::Failed { node, text }) = world.compute(2) else { panic!("it ran") };
    assert!(std::ptr::eq(node, y));
    assert!(text.starts_with("y (MUL_MAT): the shapes do not multiply"), "{text}");
    assert!(bytes(y).iter().all(|&b| b == 0x5c));
    t(y).src[1] = std::ptr::null_mut();
    assert_eq!(refusal(t(y)), Some("a source is missing"));
    t(y).src[1] = w;
    t(y).r#type = GGML_TYPE_F16;
    assert!(!supports_op(t(y)));
    // rows of blocks with gaps between the blocks
    let q = world.strided(GGML_TYPE_Q8_0, [64, 3, 1, 1], [1, 0, 2, 3], 0);
    let x = world.tensor(GGML_TYPE_F32, [64, 2, 1, 1]);
    let z = world.bare(GGML_TYPE_F32, [3, 2, 1, 1]);
    world.make_node(z, GGML_OP_MUL_MAT, &[q, x], &[]);
    assert!(!supports_op(t(z)));
}

#[test]
fn by_id() {
    let mut rng = Rng(99);
    for (w, x) in [
        (GGML_TYPE_F32, GGML_TYPE_F32),
        (GGML_TYPE_F16, GGML_TYPE_BF16),
        (GGML_TYPE_Q8_0, GGML_TYPE_F32),
        (GGML_TYPE_Q4_K, GGML_TYPE_F16),
    ] {
        for (tokens, used, x_used, gap) in [(1, 2, 2, 0), (3, 4, 1, 2), (7, 4, 2, 1), (200, 2, 1, 0), (0, 2, 1, 0)] {
            let (experts, m, k) = (5, 35, 256);
            let mut world = World::new();
            let w = world.random(w, [k, m, experts, 1], PLAIN, 0, &mut rng);
            let x = world.random(x, [k, x_used, tokens, 1], [0, 2, 1, 3], gap, &mut rng);
            let ids = world.strided(GGML_TYPE_I32, [used, tokens, 1, 1], PLAIN, gap);
            for i in each(t(ids).ne) {
                set(ids, i, rng.below(experts as usize) as f32);
            }
            let y = world.node(GGML_OP_MUL_MAT_ID, GGML_TYPE_F32, [m, used, tokens, 1], &[w, x, ids], &[]);
            assert!(supports_op(t(y)), "{:?}", refusal(t(y)));
            let mut first: Option<Vec<u8>> = None;
            for nth in [1, 2, 3, 5] {
                world.spoil(y);
                world.compute(nth).unwrap();
                let got = bytes(y);
                assert_eq!(first.get_or_insert_with(|| got.clone()), &got);
            }
            let tol = if t(w).r#type.0 > 2 { 1e-2 } else { 1e-5 };
            close(
                y,
                tol,
                |[i, e, n, _]| {
                    let id = get(ids, [e, n, 0, 0]) as i64;
                    (0..k).fold((0.0, 0.0), |(s, a), k| {
                        let v = get(w, [k, i, id, 0]) * get(x, [k, e % x_used, n, 0]);
                        (s + v, a + v.abs())
                    })
                },
                "by id",
            );
        }
    }
}

#[test]
fn a_bad_id_stops_the_run() {
    for bad in [-1, 3, i32::MAX] {
        let mut world = World::new();
        let mut rng = Rng(3);
        let w = world.random(GGML_TYPE_F32, [8, 4, 3, 1], PLAIN, 0, &mut rng);
        let x = world.random(GGML_TYPE_F32, [8, 1, 2, 1], PLAIN, 0, &mut rng);
        let ids = world.tensor(GGML_TYPE_I32, [1, 2, 1, 1]);
        set(ids, [0, 0, 0, 0], 0.0);
        // SAFETY: the second id.
        unsafe { t(ids).data.cast::<i32>().add(1).write(bad) };
        let _y = world.node(GGML_OP_MUL_MAT_ID, GGML_TYPE_F32, [4, 1, 2, 1], &[w, x, ids], &[]);
        let next = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [4, 1, 1, 1], &[w, x], &[]);
        // three matrices do not divide two: give the follower matrices that do
        t(next).src[0] = world.random(GGML_TYPE_F32, [8, 4, 1, 1], PLAIN, 0, &mut rng);
        t(next).src[1] = world.random(GGML_TYPE_F32, [8, 1, 1, 1], PLAIN, 0, &mut rng);
        for nth in [1, 3] {
            world.spoil(next);
            let Err(Stop::Failed { text, .. }) = world.compute(nth) else { panic!("it ran") };
            assert_eq!(text, format!(" (MUL_MAT_ID): index {bad} is outside the 3 matrices of the first source"));
            assert!(bytes(next).iter().all(|&b| b == 0x5c), "nodes after the failure ran");
        }
    }
}
