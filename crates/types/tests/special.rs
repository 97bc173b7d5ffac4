//! Values that break careless quantisers, lengths that break careless callers, and error bounds on ordinary data.
#![allow(clippy::unwrap_used)]

mod common;

use common::{block_types, Rng, CODEBOOK_TYPES};
use ggml_oxide_types::{float, from_f32, kernels, quantize_rows, to_f32, vec_dot, vec_dot_rows, Error, Type};

fn encode(ty: Type, x: &[f32], w: Option<&[f32]>) -> Vec<u8> {
    let mut b = vec![0x5a; ty.row_bytes(x.len()).unwrap()];
    quantize_rows(ty, x, &mut b, 1, x.len(), w).unwrap();
    b
}

fn round_trip(ty: Type, x: &[f32], w: Option<&[f32]>) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len()];
    to_f32(ty, &encode(ty, x, w), &mut y).unwrap();
    y
}

#[test]
fn finite_blocks_decode_to_finite_values() {
    let n = 256;
    let mut rng = Rng(7);
    let noise: Vec<f32> = (0..n).map(|_| rng.normal()).collect();
    let only = |i: usize, v: f32| (0..n).map(|k| if k == i { v } else { 0.0 }).collect::<Vec<f32>>();
    let mut inputs: Vec<Vec<f32>> =
        vec![only(0, 1e-30), only(255, -1e-8), only(17, f32::MAX), only(40, f32::from_bits(1))];
    for v in
        [0.0, -0.0, 1.0, -1.0, 1e-11, -1e-11, 1e-38, f32::from_bits(1), 65504.0, 1e6, 1e9, 1e20, f32::MAX, f32::MIN]
    {
        inputs.push(vec![v; n]);
        inputs.push((0..n).map(|i| if i % 2 == 0 { v } else { -v }).collect());
        inputs.push(noise.iter().map(|x| x * (v / 8.0)).collect());
    }
    let ones = vec![1.0; n];
    let zeros = vec![0.0; n];
    let wide: Vec<f32> = (0..n).map(|i| 10f32.powi(i as i32 % 40 - 20)).collect();
    // One input in 13 under Miri.
    for x in inputs.iter().step_by(if cfg!(miri) { 13 } else { 1 }) {
        for ty in block_types() {
            for w in [None, Some(&ones[..]), Some(&zeros[..]), Some(&wide[..])] {
                let y = round_trip(ty, x, w);
                assert!(y.iter().all(|v| v.is_finite()), "{ty} of {} .. weights {}", x[0], w.is_some());
            }
        }
    }
}

#[test]
fn a_zero_block_is_zero() {
    for ty in block_types() {
        assert!(round_trip(ty, &[0.0; 256], None).iter().all(|&v| v == 0.0), "{ty}");
        assert!(round_trip(ty, &[0.0; 256], Some(&[1.0; 256])).iter().all(|&v| v == 0.0), "{ty} weighted");
    }
}

#[test]
fn saturation_keeps_sign_and_size() {
    for ty in block_types() {
        let x: Vec<f32> = (0..256).map(|i| if i % 2 == 0 { 1e8 } else { -1e8 }).collect();
        let y = round_trip(ty, &x, None);
        assert!(y.iter().zip(&x).all(|(y, x)| y * x > 0.0 || matches!(ty, Type::Q4_1 | Type::Q5_1)), "{ty}");
        // The scales of nvfp4 end at 448, its codes at 6.
        let most = if ty == Type::NVFP4 { 2688.0 } else { 60000.0 };
        assert!(y.iter().all(|v| v.abs() >= most), "{ty} {y:?}");
    }
}

#[test]
fn values_that_are_not_finite_are_replaced() {
    let mut rng = Rng(11);
    let clean: Vec<f32> = (0..256).map(|_| rng.normal()).collect();
    for ty in block_types() {
        let (mut nan, mut zero) = (clean.clone(), clean.clone());
        for i in [3, 40, 200] {
            nan[i] = f32::NAN;
            zero[i] = 0.0;
        }
        assert_eq!(encode(ty, &nan, None), encode(ty, &zero, None), "{ty}: NaN counts as 0");
        let (mut inf, mut max) = (clean.clone(), clean.clone());
        (inf[9], inf[100]) = (f32::INFINITY, f32::NEG_INFINITY);
        (max[9], max[100]) = (f32::MAX, f32::MIN);
        assert_eq!(encode(ty, &inf, None), encode(ty, &max, None), "{ty}: infinity counts as the largest value");
        assert_eq!(encode(ty, &inf, Some(&clean)), encode(ty, &max, Some(&clean)), "{ty} weighted");
    }
}

#[test]
fn error_is_within_the_step() {
    let mut rng = Rng(3);
    let n = if cfg!(miri) { 256 } else { 4096 };
    // Relative root mean square error on normal data; measured values with a fifth on top.
    let bound = |ty: Type| match ty {
        Type::Q8_0 | Type::Q8_1 | Type::Q8_K => 0.009,
        Type::Q6_K => 0.022,
        Type::Q5_K | Type::Q5_0 | Type::Q5_1 => 0.05,
        Type::Q4_K | Type::Q4_0 | Type::Q4_1 => 0.11,
        Type::Q3_K => 0.2,
        Type::IQ4_NL | Type::IQ4_XS => 0.09,
        Type::MXFP4 | Type::NVFP4 => 0.14,
        Type::Q1_0 => 0.71,
        // A ternary code for the largest of a block leaves most of normal data zero: close to the 1 of nothing but zeros.
        Type::Q2_0 => 0.85,
        Type::TQ1_0 | Type::TQ2_0 => 0.95,
        _ => 0.35,
    };
    for ty in block_types() {
        let x: Vec<f32> = (0..n).map(|_| rng.normal()).collect();
        let w: Vec<f32> = (0..n).map(|_| 0.5 + rng.unit()).collect();
        for w in [None, Some(&w[..])] {
            let y = round_trip(ty, &x, w);
            let err: f64 = x.iter().zip(&y).map(|(a, b)| ((a - b) as f64).powi(2)).sum();
            let all: f64 = x.iter().map(|a| (*a as f64).powi(2)).sum();
            let rel = (err / all).sqrt();
            assert!(rel < bound(ty) && rel > bound(ty) / 8.0, "{ty} weighted {}: {rel}", w.is_some());
        }
    }
}

#[test]
fn half_formats_round_to_nearest_even() {
    let f16 = |x: f32| float::f16_to_f32(float::f32_to_f16(x));
    assert_eq!(f16(2049.0), 2048.0);
    assert_eq!(f16(2051.0), 2052.0);
    assert_eq!(f16(65519.0), 65504.0);
    assert_eq!(f16(65520.0), f32::INFINITY);
    assert_eq!(f16(2f32.powi(-24)), 2f32.powi(-24));
    assert_eq!(f16(2f32.powi(-25)), 0.0);
    assert_eq!(f16(1.5 * 2f32.powi(-25)), 2f32.powi(-24));
    assert_eq!(float::f32_to_f16(f32::from_bits(0xffc1_2345)), 0xfe00);
    assert_eq!(float::f32_to_bf16(f32::from_bits(0x7f80_0001)), 0x7fc0);
    assert_eq!(float::f32_to_bf16(1.0 + 2f32.powi(-8)), 0x3f80);
    assert_eq!(float::f32_to_bf16(f32::MAX), 0x7f80);
    // Every f16 survives the way to f32 and back; the row conversions agree with the scalar ones.
    let bits: Vec<u16> = (0..=u16::MAX).step_by(if cfg!(miri) { 97 } else { 1 }).collect();
    let bytes: Vec<u8> = bits.iter().flat_map(|b| b.to_ne_bytes()).collect();
    for (ty, up, down) in [
        (Type::F16, float::f16_to_f32 as fn(u16) -> f32, float::f32_to_f16 as fn(f32) -> u16),
        (Type::BF16, float::bf16_to_f32, float::f32_to_bf16),
    ] {
        let mut x = vec![0.0; bits.len()];
        to_f32(ty, &bytes, &mut x).unwrap();
        let mut back = vec![0; bytes.len()];
        from_f32(ty, &x, &mut back).unwrap();
        for (i, &b) in bits.iter().enumerate() {
            assert_eq!(x[i].to_bits(), up(b).to_bits(), "{ty} {b:#06x}");
            let again = u16::from_ne_bytes([back[2 * i], back[2 * i + 1]]);
            assert_eq!(again, down(x[i]), "{ty} {b:#06x}");
            assert!(x[i].is_nan() || again == b, "{ty} {b:#06x}");
        }
    }
    let mut rng = Rng(5);
    let x: Vec<f32> = (0..4099).map(|_| f32::from_bits(rng.next() as u32)).collect();
    for (ty, down) in [(Type::F16, float::f32_to_f16 as fn(f32) -> u16), (Type::BF16, float::f32_to_bf16)] {
        let mut b = vec![0; 2 * x.len()];
        from_f32(ty, &x, &mut b).unwrap();
        for (v, b) in x.iter().zip(b.chunks(2)) {
            assert_eq!(u16::from_ne_bytes([b[0], b[1]]), down(*v), "{ty} {v:?}");
        }
    }
}

#[test]
fn integers_truncate_and_saturate() {
    let x = [1.9f32, -1.9, 300.0, -300.0, f32::NAN, f32::INFINITY];
    let mut b = [0; 6];
    from_f32(Type::I8, &x, &mut b).unwrap();
    assert_eq!(b.map(|v| v as i8), [1, -1, 127, -128, 0, 127]);
    let mut back = [0.0; 6];
    to_f32(Type::I8, &b, &mut back).unwrap();
    assert_eq!(back, [1.0, -1.0, 127.0, -128.0, 0.0, 127.0]);
}

#[test]
fn bad_arguments_are_refused() {
    let q = Type::Q4_0;
    let mut b = [0; 36];
    assert_eq!(from_f32(q, &[0.0; 33], &mut b), Err(Error::NotWholeBlocks { ty: q, elements: 33 }));
    assert!(matches!(from_f32(q, &[0.0; 32], &mut b), Err(Error::Length { need: 18, have: 36, .. })));
    assert!(matches!(to_f32(q, &b, &mut [0.0; 32]), Err(Error::Length { .. })));
    assert_eq!(from_f32(Type::IQ2_XS, &[], &mut []), Err(Error::NeedsImportance { ty: Type::IQ2_XS }));
    assert!(matches!(quantize_rows(q, &[], &mut [], usize::MAX, 64, None), Err(Error::Overflow { .. })));
    assert!(matches!(quantize_rows(q, &[0.0; 64], &mut [0; 36], 1, 64, Some(&[1.0])), Err(Error::Length { .. })));
    assert_eq!(quantize_rows(q, &[], &mut [], 0, 64, Some(&[1.0; 64])), Ok(0));
    assert_eq!(quantize_rows(q, &[], &mut [], 5, 0, Some(&[])), Ok(0));
    assert!(matches!(vec_dot(Type::I32, 1, &[0; 4], &[0; 4]), Err(Error::Unsupported { .. })));
    assert!(matches!(vec_dot(q, 32, &[0; 18], &[0; 33]), Err(Error::Length { .. })));
    assert!(matches!(vec_dot(q, 32, &[0; 17], &[0; 34]), Err(Error::Length { .. })));
    assert!(matches!(
        vec_dot_rows(q, 32, &[0; 36], usize::MAX, 2, &[0; 34], &mut [0.0; 2]),
        Err(Error::Overflow { .. })
    ));
    assert_eq!(vec_dot_rows(q, 32, &[], 18, 0, &[], &mut []), Ok(()));
    assert_eq!(vec_dot(Type::F32, 0, &[], &[]), Ok(0.0));
    assert_eq!(Error::Overflow { ty: q }.to_string(), "q4_0: the size of the rows overflows");
}

#[test]
fn every_format_has_its_kernels() {
    for &ty in Type::ALL {
        let k = kernels(ty);
        if CODEBOOK_TYPES.contains(&ty) {
            assert!(k.decode.is_some() && k.dot.is_some() && k.encode_weighted.is_some(), "{ty}");
            assert_eq!(k.encode.is_none(), ty.requires_imatrix() || ty == Type::IQ1_M, "{ty}");
            assert_eq!(k.encode_searched.is_some(), ty == Type::IQ1_M, "{ty}");
            continue;
        }
        let f8 = matches!(ty, Type::F8_E4M3 | Type::F8_E5M2);
        assert!(k.decode.is_some(), "{ty}");
        assert_eq!(k.encode.is_some(), !f8, "{ty}");
        assert_eq!(k.dot.is_some(), ty.vec_dot_type().is_some(), "{ty}");
        let weighted = ty.is_quantized()
            && !matches!(
                ty,
                Type::Q8_0
                    | Type::Q8_1
                    | Type::Q8_K
                    | Type::TQ1_0
                    | Type::TQ2_0
                    | Type::MXFP4
                    | Type::NVFP4
                    | Type::Q1_0
                    | Type::Q2_0
            );
        assert_eq!(k.encode_weighted.is_some(), weighted, "{ty}");
        assert_eq!(k.encode_searched.is_some(), ty == Type::IQ4_NL, "{ty}");
    }
}
