//! Dot products against f64, extreme codes, and independence from the grouping of rows.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Rng, CODEBOOK_TYPES};
use ggml_oxide_types::{
    float, from_f32, half_fields, kernels, to_f32, vec_dot, vec_dot_rows, Rows, Type, SIDE_BY_SIDE,
};

/// Formats with a dot product; tests/codebook.rs has the others.
fn dot_types() -> impl Iterator<Item = Type> {
    Type::ALL.iter().copied().filter(|ty| ty.vec_dot_type().is_some() && !CODEBOOK_TYPES.contains(ty))
}

fn encode(ty: Type, x: &[f32]) -> Vec<u8> {
    let mut b = vec![0; ty.row_bytes(x.len()).unwrap()];
    from_f32(ty, x, &mut b).unwrap();
    b
}

fn decode(ty: Type, b: &[u8], n: usize) -> Vec<f32> {
    let mut x = vec![0.0; n];
    to_f32(ty, b, &mut x).unwrap();
    x
}

/// The dot product of what the operands stand for, and the sum of the magnitudes.
fn exact(x: &[f32], y: &[f32]) -> (f64, f64) {
    x.iter().zip(y).fold((0.0, 0.0), |(s, m), (a, b)| {
        let p = *a as f64 * *b as f64;
        (s + p, m + p.abs())
    })
}

#[test]
fn agrees_with_f64() {
    let mut rng = Rng(1);
    for ty in dot_types() {
        let ty_y = ty.vec_dot_type().unwrap();
        let bs = ty.block_size();
        let lengths: &[usize] = if bs == 1 { &[1, 7, 16, 31, 33, 48, 100, 1000] } else { &[bs, 3 * bs, 1024] };
        for &n in lengths {
            let x: Vec<f32> = (0..n).map(|_| rng.normal() + 0.3).collect();
            let y: Vec<f32> = (0..n).map(|_| rng.normal() - 0.2).collect();
            let (xb, yb) = (encode(ty, &x), encode(ty_y, &y));
            let (want, size) = exact(&decode(ty, &xb, n), &decode(ty_y, &yb, n));
            let got = vec_dot(ty, n, &xb, &yb).unwrap() as f64;
            // q8_1 carries its code sum as f16, which the formats with a minimum multiply.
            let tolerance = if ty_y == Type::Q8_1 { 5e-4 } else { 2e-6 };
            assert!((got - want).abs() <= tolerance * size, "{ty} n {n}: {got} {want}");
        }
    }
}

#[test]
fn q8_0_is_exact_for_every_pair_of_extremes() {
    let one = float::f32_to_f16(1.0).to_ne_bytes();
    let block = |f: &dyn Fn(usize) -> i8| {
        let mut b = one.to_vec();
        b.extend((0..32).map(|i| f(i) as u8));
        b
    };
    for a in [-128i8, -127, -1, 0, 1, 127] {
        for b in [-128i8, -127, -1, 0, 1, 127] {
            let got = vec_dot(Type::Q8_0, 32, &block(&|_| a), &block(&|_| b)).unwrap();
            assert_eq!(got, 32.0 * a as f32 * b as f32, "{a} {b} everywhere");
            for at in 0..32 {
                let single = |v: i8| block(&move |i| if i == at { v } else { 0 });
                let got = vec_dot(Type::Q8_0, 32, &single(a), &single(b)).unwrap();
                assert_eq!(got, a as f32 * b as f32, "{a} {b} at {at}");
            }
        }
    }
}

#[test]
fn small_codes_are_exact_against_extreme_right_operands() {
    let one = float::f32_to_f16(1.0).to_ne_bytes();
    for ty in dot_types().filter(|t| t.is_quantized()) {
        let n = ty.block_size();
        let ty_y = ty.vec_dot_type().unwrap();
        for y in [-128i8, 127] {
            let mut yb = vec![0u8; ty_y.block_bytes()];
            match ty_y {
                Type::Q8_0 => {
                    yb[..2].copy_from_slice(&one);
                    yb[2..].fill(y as u8);
                }
                Type::Q8_1 => {
                    yb[..2].copy_from_slice(&one);
                    yb[2..4].copy_from_slice(&float::f32_to_f16(32.0 * y as f32).to_ne_bytes());
                    yb[4..].fill(y as u8);
                }
                _ => {
                    yb[..4].copy_from_slice(&1.0f32.to_ne_bytes());
                    yb[4..260].fill(y as u8);
                    for s in yb[260..].chunks_mut(2) {
                        s.copy_from_slice(&(16 * y as i16).to_ne_bytes());
                    }
                }
            }
            let yb = yb.repeat(n / ty_y.block_size());
            // All bits of the codes and scales on, or all off.
            for fill in [0u8, 0xff] {
                let mut xb = vec![fill; ty.block_bytes()];
                if ty == Type::MXFP4 {
                    xb[0] = 128;
                }
                for &a in half_fields(ty) {
                    xb[a..a + 2].copy_from_slice(&one);
                }
                let sum: f64 = decode(ty, &xb, n).iter().map(|&v| v as f64 * y as f64).sum();
                let got = vec_dot(ty, n, &xb, &yb).unwrap();
                assert_eq!(got as f64, sum, "{ty} codes {fill:#x} y {y}");
            }
        }
    }
}

#[test]
fn grouping_of_rows_does_not_show() {
    let mut rng = Rng(2);
    // Rows far apart are grouped where those close together are not.
    for (ty, pad) in dot_types().flat_map(|ty| [(ty, 3), (ty, SIDE_BY_SIDE + 3)]) {
        let n = if ty.block_size() == 1 { 333 } else { 512 };
        let ty_y = ty.vec_dot_type().unwrap();
        let (rx, ry) = (7, 6);
        let (sx, sy) = (ty.row_bytes(n).unwrap() + pad, ty_y.row_bytes(n).unwrap() + pad);
        let mut rows = |ty: Type, count: usize, stride: usize| {
            let mut all = vec![0xee; stride * count];
            for r in 0..count {
                let x: Vec<f32> = (0..n).map(|_| rng.normal()).collect();
                all[r * stride..(r + 1) * stride - pad].copy_from_slice(&encode(ty, &x));
            }
            all
        };
        let (x, y) = (rows(ty, rx, sx), rows(ty_y, ry, sy));
        let os = rx + 2;
        let mut tile = vec![f32::MAX; os * ry];
        let xr = Rows { ptr: x.as_ptr(), stride: sx, count: rx };
        let yr = Rows { ptr: y.as_ptr(), stride: sy, count: ry };
        // SAFETY: rows and results lie inside the vectors; n is whole blocks.
        unsafe { kernels(ty).dot.unwrap()(n, xr, yr, tile.as_mut_ptr(), os) };
        for c in 0..ry {
            let yrow = &y[c * sy..(c + 1) * sy - pad];
            let mut column = vec![0.0; rx];
            vec_dot_rows(ty, n, &x, sx, rx, yrow, &mut column).unwrap();
            for r in 0..rx {
                let one = vec_dot(ty, n, &x[r * sx..(r + 1) * sx - pad], yrow).unwrap();
                assert_eq!(one.to_bits(), column[r].to_bits(), "{ty} row {r} column {c}");
                assert_eq!(one.to_bits(), tile[c * os + r].to_bits(), "{ty} tile {r} {c}");
            }
            assert!(tile[c * os + rx..(c + 1) * os].iter().all(|&v| v == f32::MAX), "{ty}: written past the rows");
        }
    }
}
