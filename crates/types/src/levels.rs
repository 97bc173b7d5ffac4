//! Tests: every instruction set level of this machine against the portable kernels.

use crate::block::{blocks_mut, BlockIQ1M};
use crate::kernels::{at_level, level, portable, Kernels, Level, Rows};
use crate::{half_fields, Type};

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn normal(&mut self) -> f32 {
        (0..12).map(|_| (self.next() >> 40) as f32 / (1u64 << 24) as f32).sum::<f32>() - 6.0
    }
}

fn is_codebook(ty: Type) -> bool {
    use Type::*;
    matches!(ty, IQ2_XXS | IQ2_XS | IQ2_S | IQ3_XXS | IQ3_S | IQ1_S | IQ1_M)
}

fn levels() -> impl Iterator<Item = Level> {
    [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|&l| l <= level())
}

/// Rows of values in turn ordinary, sparse, of steps, of mixed size, all bits, and on rounding ties.
fn values(rng: &mut Rng, kind: usize, n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| match kind {
            0 => rng.normal(),
            1 if rng.next() & 3 > 0 => 0.0,
            2 => ((rng.next() % 9) as f32 - 4.0) * 0.25,
            3 => rng.normal() * 10f32.powi(i as i32 / 16 % 13 - 6),
            4 => f32::from_bits(rng.next() as u32),
            5 => [127.0, 0.5, -0.5, 1.5, -2.5, 62.5, 0.49999997, -126.5][rng.next() as usize % 8],
            _ => rng.normal() * 1e-38,
        })
        .collect()
}

#[test]
fn codecs_agree_bit_for_bit() {
    let mut rng = Rng(42);
    let n = if cfg!(miri) { 256 } else { 2048 };
    // The searches take minutes under Miri: one ordinary row there.
    for kind in 0..if cfg!(miri) { 1 } else { 7 } {
        let x = values(&mut rng, kind, n);
        let w: Vec<f32> = (0..n).map(|_| rng.normal().abs()).collect();
        for &ty in Type::ALL {
            let base = portable(ty);
            let Some(bytes) = ty.row_bytes(n) else {
                continue;
            };
            let Some(dec) = base.decode else { continue };
            // The codebook searches are all safe code, and far too slow for Miri.
            let base_encode = base.encode.filter(|_| !(cfg!(miri) && is_codebook(ty)));
            let base_weighted = base.encode_weighted.filter(|_| !(cfg!(miri) && is_codebook(ty)));
            let mut want = vec![0; bytes];
            if let Some(f) = base_encode {
                f(&x, &mut want);
            }
            let mut want_w = vec![0; bytes];
            if let Some(f) = base_weighted {
                f(&x, &mut want_w, &w);
            }
            let mut noise: Vec<u8> = (0..bytes).map(|_| rng.next() as u8).collect();
            if kind % 2 == 0 {
                noise.copy_from_slice(if base_encode.is_some() { &want } else { &want_w });
            }
            let mut want_y = vec![0.0; n];
            dec(&noise, &mut want_y);
            // Miri has the portable level only; to run each search once is enough there.
            for level in levels().filter(|_| !cfg!(miri)) {
                let k = at_level(ty, level);
                let mut got = vec![0xff; bytes];
                assert_eq!(k.encode.is_some(), base.encode.is_some());
                if let (Some(f), Some(g)) = (base.encode_searched, k.encode_searched) {
                    let mut want = vec![0; bytes];
                    f(&x, &mut want);
                    g(&x, &mut got);
                    assert!(got == want, "{ty} searched encode at {level:?}, values {kind}");
                }
                if let Some(f) = k.encode {
                    f(&x, &mut got);
                    assert!(got == want, "{ty} encode at {level:?}, values {kind}");
                }
                let mut y = vec![1.0; n];
                k.decode.unwrap()(&noise, &mut y);
                for (a, b) in y.iter().zip(&want_y) {
                    let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                    assert!(same, "{ty} decode at {level:?}: {a} {b}");
                }
                if let Some(f) = k.encode_weighted {
                    f(&x, &mut got, &w);
                    assert!(got == want_w, "{ty} weighted encode at {level:?}, values {kind}");
                }
            }
        }
    }
}

#[test]
fn one_block_dots_agree_bit_for_bit() {
    // Scales of 1 keep the block's integer sum below 2^24, so every order of float sums gives the same bits.
    let one = crate::float::f32_to_f16(1.0).to_ne_bytes();
    let mut rng = Rng(9);
    for &ty in Type::ALL.iter().filter(|t| t.is_quantized()) {
        let (base, Some(ty_y)) = (portable(ty), ty.vec_dot_type()) else {
            continue;
        };
        let Some(dot) = base.dot else { continue };
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            let mut x: Vec<u8> = (0..ty.block_bytes()).map(|_| rng.next() as u8).collect();
            let mut y: Vec<u8> = (0..ty_y.block_bytes()).map(|_| rng.next() as u8).collect();
            let at = half_fields(ty);
            match ty {
                Type::MXFP4 => x[0] = 128,
                Type::NVFP4 => x[..4].fill(0x40),
                _ => (),
            }
            at.iter().for_each(|&a| x[a..a + 2].copy_from_slice(&one));
            if ty == Type::IQ1_M {
                // The nibbles of d on top of the four words of scales.
                let scales = blocks_mut::<BlockIQ1M>(&mut x)[0].scales.as_chunks_mut::<2>().0;
                for (w, nibble) in scales.iter_mut().zip([0, 0, 0xc000, 0x3000]) {
                    *w = (u16::from_ne_bytes(*w) & 0x0fff | nibble).to_ne_bytes();
                }
            }
            if ty_y == Type::Q8_K {
                y[..4].copy_from_slice(&1.0f32.to_ne_bytes());
                // A quarter of the range: the scaled sums of q6_K stay below 2^24.
                y[4..260].iter_mut().for_each(|v| *v = (*v as i8 / 4) as u8);
                let sums: Vec<i16> = y[4..260].chunks(16).map(|g| g.iter().map(|&v| v as i8 as i16).sum()).collect();
                for (s, v) in y[260..].chunks_mut(2).zip(sums) {
                    s.copy_from_slice(&v.to_ne_bytes());
                }
            } else {
                y[..2].copy_from_slice(&one);
                if ty_y == Type::Q8_1 {
                    y[2..4].copy_from_slice(&one);
                }
            }
            let n = ty.block_size();
            let y = y.repeat(n / ty_y.block_size());
            let run = |f: crate::DotTile| {
                let mut out = 0.0;
                // SAFETY: one block each, one result.
                unsafe { f(n, Rows::one(x.as_ptr()), Rows::one(y.as_ptr()), &mut out, 1) };
                out
            };
            let want = run(dot);
            for level in levels() {
                let got = at_level(ty, level).dot.map(run);
                assert_eq!(got.map(f32::to_bits), Some(want.to_bits()), "{ty} at {level:?}: {got:?} {want}");
            }
        }
    }
}

#[test]
fn long_dots_agree_within_rounding() {
    let mut rng = Rng(10);
    let n = if cfg!(miri) { 256 } else { 4096 };
    for &ty in Type::ALL {
        let (Some(dot), Some(ty_y)) = (portable(ty).dot, ty.vec_dot_type()) else {
            continue;
        };
        if cfg!(miri) && is_codebook(ty) {
            continue;
        }
        let mut row = |ty: Type| {
            let x = values(&mut rng, 0, n);
            let mut b = vec![0; ty.row_bytes(n).unwrap_or(0)];
            match portable(ty) {
                Kernels { encode: Some(f), .. } => f(&x, &mut b),
                k => k.encode_weighted.unwrap()(&x, &mut b, &vec![1.0; n]),
            }
            b
        };
        let (x, y) = (row(ty), row(ty_y));
        let run = |f: crate::DotTile| {
            let mut out = 0.0;
            // SAFETY: one row each, one result.
            unsafe { f(n, Rows::one(x.as_ptr()), Rows::one(y.as_ptr()), &mut out, 1) };
            out
        };
        let want = run(dot);
        for level in levels() {
            let got = at_level(ty, level).dot.map_or(f32::NAN, run);
            assert!((got - want).abs() < 1e-3, "{ty} at {level:?}: {got} {want}");
        }
    }
}
