//! The codebook formats: special blocks, importance, error bounds, dot products, independence from grouping.
#![cfg(not(miri))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Rng, CODEBOOK_TYPES};
use ggml_oxide_types::{from_f32, kernels, quantize_rows, to_f32, vec_dot, Error, Rows, Type};

fn encode(ty: Type, x: &[f32], w: &[f32]) -> Vec<u8> {
    let mut b = vec![0x5a; ty.row_bytes(x.len()).unwrap()];
    assert_eq!(quantize_rows(ty, x, &mut b, 1, x.len(), Some(w)), Ok(b.len()));
    b
}

fn encode_plain(ty: Type, x: &[f32]) -> Option<Vec<u8>> {
    let mut b = vec![0x5a; ty.row_bytes(x.len()).unwrap()];
    match quantize_rows(ty, x, &mut b, 1, x.len(), None) {
        Ok(_) => Some(b),
        Err(e) => {
            assert_eq!(e, Error::NeedsImportance { ty });
            assert!(ty.requires_imatrix());
            None
        }
    }
}

fn decode(ty: Type, b: &[u8]) -> Vec<f32> {
    let mut y = vec![f32::NAN; b.len() / ty.block_bytes() * ty.block_size()];
    to_f32(ty, b, &mut y).unwrap();
    y
}

#[test]
fn three_formats_need_importance() {
    for &ty in CODEBOOK_TYPES {
        let needs = matches!(ty, Type::IQ2_XXS | Type::IQ2_XS | Type::IQ1_S);
        assert_eq!(encode_plain(ty, &[1.0; 256]).is_none(), needs, "{ty}");
        let got = from_f32(ty, &[1.0; 256], &mut vec![0; ty.block_bytes()]);
        assert_eq!(got, if needs { Err(Error::NeedsImportance { ty }) } else { Ok(()) });
    }
    let text = Error::NeedsImportance { ty: Type::IQ1_S }.to_string();
    assert_eq!(text, "iq1_s: conversion from f32 needs an importance matrix");
    assert_eq!(quantize_rows(Type::IQ1_S, &[], &mut [], 0, 256, Some(&[1.0; 256])), Ok(0));
}

#[test]
fn finite_blocks_decode_to_finite_values() {
    let mut rng = Rng(7);
    let noise: Vec<f32> = (0..256).map(|_| rng.normal()).collect();
    let only = |i: usize, v: f32| (0..256).map(|k| if k == i { v } else { 0.0 }).collect::<Vec<f32>>();
    let mut inputs = vec![only(0, 1e-30), only(255, -1e-8), only(17, f32::MAX), only(40, f32::from_bits(1))];
    let sizes = [0.0, -0.0, 1.0, -1.0, 1e-11, 1e-30, 1e-38, f32::from_bits(1), 65504.0, 1e9, 1e30, f32::MAX, f32::MIN];
    for v in sizes {
        inputs.push(vec![v; 256]);
        inputs.push((0..256).map(|i| if i % 2 == 0 { v } else { -v }).collect());
        inputs.push(noise.iter().map(|x| x * (v / 8.0)).collect());
        inputs.push(noise.iter().enumerate().map(|(i, x)| if i / 32 % 2 == 0 { x * v / 8.0 } else { *x }).collect());
    }
    let wide: Vec<f32> = (0..256).map(|i| 10f32.powi(i % 40 - 20)).collect();
    let weights: Vec<Vec<f32>> = vec![
        vec![1.0; 256],
        vec![0.0; 256],
        vec![-1.0; 256],
        vec![1e30; 256],
        vec![1e-30; 256],
        vec![f32::NAN; 256],
        vec![f32::INFINITY; 256],
        (0..256).map(|i| if i / 16 % 2 == 0 { 0.0 } else { 1.0 }).collect(),
        wide,
        noise.clone(),
    ];
    for x in &inputs {
        for &ty in CODEBOOK_TYPES {
            let finite = |b: &[u8]| decode(ty, b).iter().all(|v| v.is_finite());
            for (i, w) in weights.iter().enumerate() {
                assert!(finite(&encode(ty, x, w)), "{ty} of {} .. {} weights {i}", x[0], x[1]);
            }
            assert!(encode_plain(ty, x).is_none_or(|b| finite(&b)), "{ty} of {} .. {}", x[0], x[1]);
        }
    }
}

#[test]
fn a_zero_block_is_zero_and_a_zero_group_keeps_its_place() {
    let mut rng = Rng(8);
    for &ty in CODEBOOK_TYPES {
        assert!(decode(ty, &encode(ty, &[0.0; 256], &[1.0; 256])).iter().all(|&v| v == 0.0), "{ty}");
        assert!(encode_plain(ty, &[0.0; 256]).is_none_or(|b| decode(ty, &b).iter().all(|&v| v == 0.0)), "{ty}");
        // The groups behind a group of zeros come out as well as those before it.
        let x: Vec<f32> = (0..256).map(|i| if i / 32 == 2 { 0.0 } else { rng.normal() }).collect();
        for b in [Some(encode(ty, &x, &[1.0; 256])), encode_plain(ty, &x)].into_iter().flatten() {
            for (x, y) in x.chunks(32).zip(decode(ty, &b).chunks(32)) {
                let err: f32 = x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum();
                let all: f32 = x.iter().map(|a| a * a).sum();
                assert!(err <= 0.6 * all.max(32.0), "{ty}: {err} of {all}");
            }
        }
    }
}

#[test]
fn values_that_are_not_finite_are_replaced() {
    let mut rng = Rng(11);
    let clean: Vec<f32> = (0..256).map(|_| rng.normal()).collect();
    let w: Vec<f32> = (0..256).map(|_| rng.unit()).collect();
    for &ty in CODEBOOK_TYPES {
        let (mut nan, mut zero) = (clean.clone(), clean.clone());
        for i in [3, 40, 200] {
            nan[i] = f32::NAN;
            zero[i] = 0.0;
        }
        assert_eq!(encode(ty, &nan, &w), encode(ty, &zero, &w), "{ty}: NaN counts as 0");
        let (mut inf, mut max) = (clean.clone(), clean.clone());
        (inf[9], inf[100]) = (f32::INFINITY, f32::NEG_INFINITY);
        (max[9], max[100]) = (f32::MAX, f32::MIN);
        assert_eq!(encode(ty, &inf, &w), encode(ty, &max, &w), "{ty}: infinity counts as the largest value");
        assert_eq!(encode_plain(ty, &inf), encode_plain(ty, &max), "{ty}");
    }
}

#[test]
fn error_is_within_the_bound() {
    let mut rng = Rng(3);
    // Relative root mean square error on normal data; measured values with a tenth on top.
    let bound = |ty: Type| match ty {
        Type::IQ3_S => 0.18,
        Type::IQ3_XXS => 0.23,
        Type::IQ2_S => 0.29,
        Type::IQ2_XS => 0.33,
        Type::IQ2_XXS => 0.38,
        Type::IQ1_M => 0.64,
        _ => 0.54,
    };
    let x: Vec<f32> = (0..4096).map(|_| rng.normal()).collect();
    let w: Vec<f32> = (0..4096).map(|_| 0.5 + rng.unit()).collect();
    for &ty in CODEBOOK_TYPES {
        for b in [Some(encode(ty, &x, &w)), encode_plain(ty, &x)].into_iter().flatten() {
            let err: f64 = x.iter().zip(&decode(ty, &b)).map(|(a, b)| ((a - b) as f64).powi(2)).sum();
            let all: f64 = x.iter().map(|a| (*a as f64).powi(2)).sum();
            let rel = (err / all).sqrt();
            assert!(rel < bound(ty) && rel > bound(ty) / 1.6, "{ty}: {rel}");
        }
    }
}

#[test]
fn importance_moves_the_error() {
    // Elements that matter a hundred times more come out better.
    let mut rng = Rng(4);
    let x: Vec<f32> = (0..4096).map(|_| rng.normal()).collect();
    let w: Vec<f32> = (0..4096).map(|i| if i % 4 == 0 { 100.0 } else { 1.0 }).collect();
    for &ty in CODEBOOK_TYPES {
        let y = decode(ty, &encode(ty, &x, &w));
        let error = |rest: usize| (0..1024).map(|i| (x[4 * i + rest] - y[4 * i + rest]).powi(2)).sum::<f32>();
        assert!(error(0) < 0.8 * error(1), "{ty}: {} {}", error(0), error(1));
    }
}

/// Sets the scale of a block to 1.
fn scale_by_one(ty: Type, block: &mut [u8]) {
    if ty == Type::IQ1_M {
        // The nibbles of 1.0 on top of the words of scales, which end the block.
        for (w, nibble) in block[48..].as_chunks_mut::<2>().0.iter_mut().zip([0, 0, 0xc000, 0x3000]) {
            *w = (u16::from_ne_bytes(*w) & 0x0fff | nibble).to_ne_bytes();
        }
    } else {
        block[..2].copy_from_slice(&0x3c00u16.to_ne_bytes());
    }
}

/// Random bytes with a scale of 1, so that every code and scale occurs.
fn random_rows(ty: Type, rng: &mut Rng, blocks: usize) -> Vec<u8> {
    let mut b: Vec<u8> = (0..blocks * ty.block_bytes()).map(|_| rng.next() as u8).collect();
    b.chunks_mut(ty.block_bytes()).for_each(|b| scale_by_one(ty, b));
    b
}

fn activations(rng: &mut Rng, n: usize) -> Vec<u8> {
    let y: Vec<f32> = (0..n).map(|_| rng.normal() - 0.2).collect();
    let mut b = vec![0; Type::Q8_K.row_bytes(n).unwrap()];
    from_f32(Type::Q8_K, &y, &mut b).unwrap();
    b
}

#[test]
fn dots_agree_with_f64() {
    let mut rng = Rng(1);
    for &ty in CODEBOOK_TYPES {
        for blocks in [1, 2, 3, 7, 16] {
            let (x, y) = (random_rows(ty, &mut rng, blocks), activations(&mut rng, 256 * blocks));
            let pairs = decode(ty, &x).into_iter().zip(decode(Type::Q8_K, &y));
            let (want, size) = pairs.fold((0.0, 0.0), |(s, m), (a, b)| {
                let p = a as f64 * b as f64;
                (s + p, m + p.abs())
            });
            let got = vec_dot(ty, 256 * blocks, &x, &y).unwrap() as f64;
            assert!((got - want).abs() <= 1e-6 * size, "{ty} {blocks} blocks: {got} {want}");
        }
    }
}

#[test]
fn dots_are_exact_at_the_ends_of_the_codes() {
    for &ty in CODEBOOK_TYPES {
        for q in [-128i8, 127] {
            let mut y = vec![q as u8; 292];
            y[..4].copy_from_slice(&1.0f32.to_ne_bytes());
            y[260..].as_chunks_mut::<2>().0.fill((16 * q as i16).to_ne_bytes());
            for fill in [0u8, 0xff] {
                let mut x = vec![fill; ty.block_bytes()];
                scale_by_one(ty, &mut x);
                let want: f64 = decode(ty, &x).iter().map(|&v| v as f64 * q as f64).sum();
                assert_ne!(want, 0.0, "{ty} codes {fill:#x}");
                assert_eq!(vec_dot(ty, 256, &x, &y).unwrap() as f64, want, "{ty} codes {fill:#x} y {q}");
            }
        }
    }
}

#[test]
fn grouping_of_rows_does_not_show() {
    let mut rng = Rng(2);
    let (rows, columns, blocks) = (7, 6, 2);
    for &ty in CODEBOOK_TYPES {
        let (sx, sy) = (blocks * ty.block_bytes() + 3, blocks * 292 + 3);
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            x.extend(random_rows(ty, &mut rng, blocks));
            x.extend([0xee; 3]);
        }
        for _ in 0..columns {
            y.extend(activations(&mut rng, 256 * blocks));
            y.extend([0xee; 3]);
        }
        let mut tile = vec![f32::MAX; (rows + 2) * columns];
        let xr = Rows { ptr: x.as_ptr(), stride: sx, count: rows };
        let yr = Rows { ptr: y.as_ptr(), stride: sy, count: columns };
        // SAFETY: rows and results lie inside the vectors; n is whole blocks.
        unsafe { kernels(ty).dot.unwrap()(256 * blocks, xr, yr, tile.as_mut_ptr(), rows + 2) };
        for c in 0..columns {
            for r in 0..rows {
                let (a, b) = (&x[r * sx..(r + 1) * sx - 3], &y[c * sy..(c + 1) * sy - 3]);
                let one = vec_dot(ty, 256 * blocks, a, b).unwrap();
                assert_eq!(one.to_bits(), tile[c * (rows + 2) + r].to_bits(), "{ty} {r} {c}");
            }
            assert!(tile[c * (rows + 2) + rows..(c + 1) * (rows + 2)].iter().all(|&v| v == f32::MAX), "{ty}");
        }
    }
}
