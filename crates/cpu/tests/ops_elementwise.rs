//! Functions of one and two values against plain f64 loops, on every layout, type and thread count.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;

const LAYOUTS: [([usize; 4], usize); 4] = [([0, 1, 2, 3], 0), ([1, 0, 2, 3], 0), ([0, 2, 1, 3], 0), ([0, 1, 2, 3], 5)];
const FLOATS: [ggml_type; 3] = [GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16];

fn eps(ty: ggml_type) -> f64 {
    match ty {
        GGML_TYPE_F16 => 6e-4,
        GGML_TYPE_BF16 => 5e-3,
        _ => 4e-7,
    }
}

/// Computes with 1, 2 and 3 threads: the same bytes.
fn compute(w: &World, p: T) {
    w.compute(1).unwrap();
    let first = bytes(p);
    for n in [2, 3] {
        w.spoil(p);
        w.compute(n).unwrap();
        assert_eq!(bytes(p), first, "{n} threads change {:?}", t(p).op);
    }
}

fn erf(x: f64) -> f64 {
    // Series for small arguments, continued fraction for the rest.
    let a = x.abs();
    let r = if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        1.0 - erfc_far(a)
    };
    r.copysign(x)
}

fn erfc_far(a: f64) -> f64 {
    let mut f = 0.0;
    for k in (1..=200).rev() {
        f = k as f64 / 2.0 / (a + f);
    }
    (-a * a).exp() / std::f64::consts::PI.sqrt() / (a + f)
}

fn reference(op: i32, x: f64) -> f64 {
    let sig = |x: f64| 1.0 / (1.0 + (-x).exp());
    match ggml_unary_op(op) {
        GGML_UNARY_OP_ABS => x.abs(),
        GGML_UNARY_OP_SGN => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        GGML_UNARY_OP_NEG => -x,
        GGML_UNARY_OP_STEP => f64::from(u8::from(x > 0.0)),
        GGML_UNARY_OP_TANH => x.tanh(),
        GGML_UNARY_OP_ELU => {
            if x > 0.0 {
                x
            } else {
                x.exp_m1()
            }
        }
        GGML_UNARY_OP_RELU => x.max(0.0),
        GGML_UNARY_OP_SIGMOID => sig(x),
        GGML_UNARY_OP_GELU => x * sig(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)),
        GGML_UNARY_OP_GELU_QUICK => x * sig(1.702 * x),
        GGML_UNARY_OP_SILU => x * sig(x),
        GGML_UNARY_OP_HARDSWISH => x * ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        GGML_UNARY_OP_HARDSIGMOID => ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        GGML_UNARY_OP_EXP => x.exp(),
        GGML_UNARY_OP_EXPM1 => x.exp_m1(),
        GGML_UNARY_OP_SOFTPLUS => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        GGML_UNARY_OP_GELU_ERF => {
            let u = x / 2f64.sqrt();
            if u < -2.5 {
                0.5 * x * erfc_far(-u)
            } else {
                0.5 * x * (1.0 + erf(u))
            }
        }
        GGML_UNARY_OP_XIELU => {
            let (an, ap, b, e) = (0.8f32 as f64, 1.1f32 as f64, 0.5, -1e-6f32 as f64);
            if x > 0.0 {
                ap * x * x + b * x
            } else {
                (x.min(e).exp_m1() - x) * an + b * x
            }
        }
        GGML_UNARY_OP_FLOOR => x.floor(),
        GGML_UNARY_OP_CEIL => x.ceil(),
        GGML_UNARY_OP_ROUND => x.round(),
        GGML_UNARY_OP_TRUNC => x.trunc(),
        _ => unreachable!(),
    }
}

fn params(op: i32) -> Vec<i32> {
    let mut p = vec![op];
    if op == GGML_UNARY_OP_XIELU.0 {
        p.extend([0.8f32, 1.1, 0.5, -1e-6].map(|x| x.to_bits() as i32));
    }
    p
}

#[test]
fn unary_on_every_layout_and_type() {
    let mut rng = Rng(7);
    for op in 0..GGML_UNARY_OP_COUNT.0 {
        for ty in FLOATS {
            for (order, gap) in LAYOUTS {
                let mut w = World::new();
                let x = w.random(ty, [37, 5, 4, 3], order, gap, &mut rng);
                let y = w.node(GGML_OP_UNARY, ty, t(x).ne, &[x], &params(op));
                compute(&w, y);
                close(
                    y,
                    eps(ty),
                    |i| {
                        let r = reference(op, get(x, i));
                        (r, r.abs() + 1e-3)
                    },
                    &format!("unary {op}"),
                );
            }
        }
    }
}

/// Distance in units of the last place of the f32 nearest to `want`.
fn ulps(got: f32, want: f64) -> f64 {
    let near = (want as f32).abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
    (f64::from(got) - want).abs() / ulp
}

fn run_f32(op: i32, values: &[f32]) -> Vec<f32> {
    let mut w = World::new();
    let x = w.tensor(GGML_TYPE_F32, [values.len() as i64, 1, 1, 1]);
    for (i, &v) in values.iter().enumerate() {
        set(x, [i as i64, 0, 0, 0], v);
    }
    let y = w.node(GGML_OP_UNARY, GGML_TYPE_F32, t(x).ne, &[x], &params(op));
    w.compute(1).unwrap();
    (0..values.len()).map(|i| get(y, [i as i64, 0, 0, 0]) as f32).collect()
}

#[test]
fn unary_error_in_ulps() {
    let limits = [
        (GGML_UNARY_OP_EXP, 1.1, -103.0, 88.7),
        (GGML_UNARY_OP_TANH, 2.0, -12.0, 12.0),
        (GGML_UNARY_OP_SIGMOID, 3.0, -80.0, 20.0),
        (GGML_UNARY_OP_SILU, 3.5, -80.0, 20.0),
        (GGML_UNARY_OP_EXPM1, 2.0, -20.0, 85.0),
        (GGML_UNARY_OP_GELU_QUICK, 60.0, -20.0, 20.0),
        (GGML_UNARY_OP_GELU, 64.0, -6.0, 8.0),
        // Far below zero the rounding of the argument alone counts, times twice its square.
        (GGML_UNARY_OP_GELU_ERF, 200.0, -12.0, 8.0),
        (GGML_UNARY_OP_SOFTPLUS, 2.0, -80.0, 40.0),
    ];
    for (op, limit, lo, hi) in limits {
        let n = 60_000;
        let mut x: Vec<f32> = (0..n).map(|i| (lo + (hi - lo) * f64::from(i) / f64::from(n)) as f32).collect();
        x.extend((0..3000).map(|i| 0.001 * (i as f32 - 1500.0) / 10.0));
        let y = run_f32(op.0, &x);
        let worst = x.iter().zip(&y).map(|(&x, &y)| (ulps(y, reference(op.0, f64::from(x))), x));
        let worst = worst.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
        println!("{op:?}: {:.2} ulp at {}", worst.0, worst.1);
        assert!(worst.0 <= limit, "{op:?}: {} ulp at {}", worst.0, worst.1);
    }
}

#[test]
fn unary_special_values() {
    let inf = f32::INFINITY;
    let values = [
        -inf,
        -f32::MAX,
        -1e30,
        -65504.0,
        -1e4,
        -1000.0,
        -103.9,
        -88.8,
        -50.0,
        -20.0,
        -13.7,
        -13.0,
        -10.0,
        -5.5,
        -3.0,
        -1.0,
        -0.5,
        -1e-10,
        -1e-38,
        -1e-45,
        -0.0,
        0.0,
        1e-45,
        1e-38,
        1e-10,
        0.5,
        1.0,
        3.0,
        5.5,
        9.0,
        10.0,
        13.7,
        20.0,
        21.0,
        50.0,
        88.8,
        1000.0,
        65504.0,
        1e30,
        f32::MAX,
        inf,
        f32::NAN,
    ];
    for op in 0..GGML_UNARY_OP_COUNT.0 {
        let y = run_f32(op, &values);
        let op = ggml_unary_op(op);
        for (&x, &y) in values.iter().zip(&y) {
            if x.is_nan() {
                let zero = matches!(op, GGML_UNARY_OP_SGN | GGML_UNARY_OP_STEP);
                assert!(if zero { y == 0.0 } else { y.is_nan() }, "{op:?}(NaN) = {y}");
            } else {
                // XIELU of -inf is inf - inf by its formula.
                let formula = op == GGML_UNARY_OP_XIELU && x == -inf;
                assert!(formula || !y.is_nan(), "{op:?}({x}) = {y}");
            }
        }
        if matches!(op, GGML_UNARY_OP_GELU | GGML_UNARY_OP_GELU_ERF | GGML_UNARY_OP_GELU_QUICK | GGML_UNARY_OP_SILU) {
            for i in 0..4 {
                assert_eq!(y[i], 0.0, "{op:?}({})", values[i]);
            }
            assert_eq!(y[values.len() - 2], inf);
            assert_eq!(y[values.len() - 4], 1e30);
            assert_eq!(y[20].to_bits(), (-0.0f32).to_bits());
        }
    }
}

#[test]
fn instruction_sets_agree() {
    use ggml_oxide_cpu::ops::vec::{map, math, Isa, Lanes};
    #[derive(Clone, Copy)]
    struct All(usize);
    impl map::Map for All {
        #[inline(always)]
        unsafe fn f<V: Lanes>(self, x: V) -> V {
            // SAFETY: run on available sets only.
            unsafe {
                match self.0 {
                    0 => math::exp(x),
                    1 => math::tanh(x),
                    2 => math::erf(x),
                    3 => math::gelu_erf(x),
                    4 => math::gelu(x),
                    5 => math::expm1(x),
                    _ => math::silu(x),
                }
            }
        }
    }
    let x: Vec<f32> = (0..20_011).map(|i| (i as f32 - 10_000.0) * 0.0117).collect();
    let wide: Vec<Isa> = Isa::available().into_iter().filter(|&i| i != Isa::Portable).collect();
    for f in 0..7 {
        let run = |isa| {
            let mut y = vec![0.0f32; x.len()];
            // SAFETY: both hold as many values; the set is available.
            unsafe { map::map_on(isa, All(f), x.as_ptr(), y.as_mut_ptr(), x.len()) };
            y
        };
        let results: Vec<Vec<u32>> = wide.iter().map(|&i| run(i).iter().map(|v| v.to_bits()).collect()).collect();
        assert!(results.windows(2).all(|w| w[0] == w[1]), "function {f}");
        let plain = run(Isa::Portable);
        for (i, (&p, &x)) in plain.iter().zip(&x).enumerate() {
            if let Some(r) = results.first() {
                let q = f32::from_bits(r[i]);
                assert!((p - q).abs() <= 1e-5 * q.abs() + 1e-30 || p == q, "function {f} of {x}: {p}, {q}");
            }
        }
    }
}

#[test]
fn single_functions() {
    let mut rng = Rng(8);
    let f = |x: f32| x.to_bits() as i32;
    type Case = (ggml_op, Vec<i32>, fn(f64) -> f64);
    let cases: [Case; 9] = [
        (GGML_OP_SQR, vec![], |x| x * x),
        (GGML_OP_SQRT, vec![], |x| x.sqrt()),
        (GGML_OP_LOG, vec![], |x| x.ln()),
        (GGML_OP_SIN, vec![], f64::sin),
        (GGML_OP_COS, vec![], f64::cos),
        (GGML_OP_CLAMP, vec![f(0.2), f(0.7)], |x| x.clamp(0.2f32 as f64, 0.7f32 as f64)),
        (GGML_OP_LEAKY_RELU, vec![f(0.1)], |x| if x > 0.0 { x } else { x * 0.1f32 as f64 }),
        (GGML_OP_SCALE, vec![f(1.5), f(0.0)], |x| x * 1.5),
        (GGML_OP_SCALE, vec![f(1.5), f(0.25)], |x| x * 1.5 + 0.25),
    ];
    for (op, params, r) in cases {
        for ty in FLOATS {
            for (order, gap) in LAYOUTS {
                let mut w = World::new();
                let x = w.random(ty, [19, 7, 3, 2], order, gap, &mut rng);
                if matches!(op, GGML_OP_SQRT | GGML_OP_LOG) {
                    for i in each(t(x).ne) {
                        set(x, i, get(x, i).abs() as f32 + 0.1);
                    }
                }
                let y = w.node(op, ty, t(x).ne, &[x], &params);
                compute(&w, y);
                close(y, eps(ty), |i| (r(get(x, i)), 1.0 + r(get(x, i)).abs()), &format!("{op:?}"));
            }
        }
    }
}

#[test]
fn inplace_on_permuted_memory() {
    let mut rng = Rng(9);
    let mut w = World::new();
    let x = w.random(GGML_TYPE_F32, [13, 6, 5, 2], [1, 0, 2, 3], 3, &mut rng);
    let before: Vec<f64> = each(t(x).ne).map(|i| get(x, i)).collect();
    let (ne, nb) = (t(x).ne, t(x).nb);
    let y = w.view(GGML_OP_SQR, x, ne, nb);
    w.compute(2).unwrap();
    for (i, b) in each(ne).zip(before) {
        assert!((get(y, i) - b * b).abs() < 1e-6);
    }
}

#[test]
fn binary_broadcast_layouts_types() {
    let mut rng = Rng(10);
    let shapes: [[i64; 4]; 8] = [
        [12, 6, 4, 2],
        [1, 6, 4, 2],
        [12, 1, 4, 1],
        [1, 1, 4, 1],
        [12, 1, 1, 1],
        [1, 1, 1, 1],
        [4, 3, 2, 1],
        [12, 2, 1, 2],
    ];
    let types = [
        (GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F32),
        (GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F16),
        (GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_F16),
        (GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_F32),
        (GGML_TYPE_BF16, GGML_TYPE_F32, GGML_TYPE_BF16),
        (GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_F32),
    ];
    type Case = (ggml_op, fn(f64, f64) -> f64);
    let ops: [Case; 4] = [
        (GGML_OP_ADD, |a, b| a + b),
        (GGML_OP_SUB, |a, b| a - b),
        (GGML_OP_MUL, |a, b| a * b),
        (GGML_OP_DIV, |a, b| a / b),
    ];
    for (op, f) in ops {
        for ne in shapes {
            for (order, gap) in LAYOUTS {
                for (at, bt, dt) in types {
                    let mut w = World::new();
                    let a = w.random(at, shapes[0], order, gap, &mut rng);
                    let b = w.random(bt, ne, LAYOUTS[1].0, 1, &mut rng);
                    for i in each(ne) {
                        set(b, i, get(b, i) as f32 + 1.5);
                    }
                    let y = w.node(op, dt, shapes[0], &[a, b], &[]);
                    compute(&w, y);
                    close(
                        y,
                        eps(dt),
                        |i| {
                            let j = std::array::from_fn(|d| i[d] % ne[d]);
                            (f(get(a, i), get(b, j)), 4.0)
                        },
                        &format!("{op:?} {ne:?}"),
                    );
                }
            }
        }
    }
}

#[test]
fn add_to_blocks_and_add1() {
    let mut rng = Rng(11);
    for ty in [GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q6_K] {
        let mut w = World::new();
        let a = w.random(ty, [256 * 3, 3, 2, 1], [0, 1, 2, 3], 0, &mut rng);
        let b = w.random(GGML_TYPE_F32, [256 * 3, 1, 2, 1], [1, 0, 2, 3], 2, &mut rng);
        let y = w.node(GGML_OP_ADD, GGML_TYPE_F32, t(a).ne, &[a, b], &[]);
        let q = w.node(GGML_OP_ADD, ty, t(a).ne, &[a, b], &[]);
        let one = w.random(GGML_TYPE_F32, [1, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
        let z = w.node(GGML_OP_ADD1, GGML_TYPE_F32, t(a).ne, &[a, one], &[]);
        w.compute(2).unwrap();
        let rough = if ty == GGML_TYPE_Q4_0 { 0.15 } else { 0.05 };
        for r in each([1, 3, 2, 1]) {
            for i0 in (0..768).step_by(61) {
                let i = [i0, r[1], r[2], 0];
                let want = get(a, i) + get(b, [i0, 0, r[2], 0]);
                assert!((get(y, i) - want).abs() < 1e-6);
                assert!((get(q, i) - want).abs() < rough, "{ty:?}: {} {want}", get(q, i));
                assert!((get(z, i) - get(a, i) - get(one, [0; 4])).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn glu_gates() {
    let mut rng = Rng(12);
    for op in 0..GGML_GLU_OP_COUNT.0 {
        for split in [false, true] {
            for swapped in [false, true] {
                for ty in FLOATS {
                    let mut w = World::new();
                    let gap = if swapped { 4 } else { 0 };
                    let n = 21;
                    let rows = if split { n } else { 2 * n };
                    let a = w.random(ty, [rows, 4, 3, 2], [0, 2, 1, 3], gap, &mut rng);
                    let b = w.random(ty, [rows, 4, 3, 2], [0, 1, 2, 3], gap, &mut rng);
                    let p = [op, i32::from(swapped), 1.3f32.to_bits() as i32, 0.6f32.to_bits() as i32];
                    let srcs = if split { vec![a, b] } else { vec![a] };
                    let y = w.node(GGML_OP_GLU, ty, [n, 4, 3, 2], &srcs, &p);
                    compute(&w, y);
                    let lim = 0.6f32 as f64;
                    close(
                        y,
                        eps(ty),
                        |i| {
                            let at = |o: i64| get(a, [i[0] + o, i[1], i[2], i[3]]);
                            let (x, v) = match (split, swapped) {
                                (true, _) => (get(a, i), get(b, i)),
                                (_, false) => (at(0), at(n)),
                                _ => (at(n), at(0)),
                            };
                            let g = |k: ggml_unary_op, x| reference(k.0, x);
                            let r = match ggml_glu_op(op) {
                                GGML_GLU_OP_REGLU => g(GGML_UNARY_OP_RELU, x) * v,
                                GGML_GLU_OP_GEGLU => g(GGML_UNARY_OP_GELU, x) * v,
                                GGML_GLU_OP_SWIGLU => g(GGML_UNARY_OP_SILU, x) * v,
                                GGML_GLU_OP_GEGLU_ERF => g(GGML_UNARY_OP_GELU_ERF, x) * v,
                                GGML_GLU_OP_GEGLU_QUICK => g(GGML_UNARY_OP_GELU_QUICK, x) * v,
                                GGML_GLU_OP_SWIGLU_OAI => {
                                    let x = x.min(lim);
                                    x / (1.0 + (-1.3f32 as f64 * x).exp()) * (v.clamp(-lim, lim) + 1.0)
                                }
                                _ => g(GGML_UNARY_OP_SILU, x.min(lim)) * v.clamp(-lim, lim),
                            };
                            (r, 1.0)
                        },
                        &format!("glu {op}"),
                    );
                }
            }
        }
    }
}

#[test]
fn add_id_and_its_range() {
    let mut rng = Rng(13);
    let mut w = World::new();
    let a = w.random(GGML_TYPE_F32, [33, 3, 4, 1], [0, 2, 1, 3], 2, &mut rng);
    let b = w.random(GGML_TYPE_F32, [33, 5, 1, 1], [0, 1, 2, 3], 1, &mut rng);
    let ids = w.tensor(GGML_TYPE_I32, [3, 4, 1, 1]);
    for i in each([3, 4, 1, 1]) {
        set(ids, i, ((i[0] * 7 + i[1]) % 5) as f32);
    }
    let y = w.node(GGML_OP_ADD_ID, GGML_TYPE_F32, t(a).ne, &[a, b, ids], &[]);
    compute(&w, y);
    close(y, 1e-6, |i| (get(a, i) + get(b, [i[0], (i[1] * 7 + i[2]) % 5, 0, 0]), 1.0), "add_id");
    for bad in [5.0, -1.0] {
        set(ids, [1, 2, 0, 0], bad);
        let text = format!("{:?}", w.compute(2).unwrap_err());
        assert!(text.contains("outside"), "{text}");
    }
}

#[test]
fn empty_and_long() {
    let mut w = World::new();
    let x = w.tensor(GGML_TYPE_F32, [0, 4, 1, 1]);
    let b = w.tensor(GGML_TYPE_F32, [0, 1, 1, 1]);
    w.node(GGML_OP_SQR, GGML_TYPE_F32, [0, 4, 1, 1], &[x], &[]);
    w.node(GGML_OP_ADD, GGML_TYPE_F32, [0, 4, 1, 1], &[x, b], &[]);
    w.compute(2).unwrap();

    let mut rng = Rng(14);
    let mut w = World::new();
    let x = w.random(GGML_TYPE_F32, [30_011, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
    let y = w.node(GGML_OP_SQR, GGML_TYPE_F32, [30_011, 1, 1, 1], &[x], &[]);
    compute(&w, y);
    close(y, 1e-7, |i| (get(x, i) * get(x, i), 1.0), "long");
}
