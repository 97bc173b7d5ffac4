//! Products of every format, size class, stride and instruction set against plain f64 sums.
#![allow(clippy::unwrap_used)]

use ggml_oxide_gemm::*;
use ggml_oxide_types as types;

const FORMATS: [Type; 21] = [
    Type::F32,
    Type::F16,
    Type::BF16,
    Type::Q4_0,
    Type::Q4_1,
    Type::Q5_0,
    Type::Q5_1,
    Type::Q8_0,
    Type::Q2_K,
    Type::Q3_K,
    Type::Q4_K,
    Type::Q5_K,
    Type::Q6_K,
    Type::IQ4_NL,
    Type::IQ4_XS,
    Type::TQ1_0,
    Type::TQ2_0,
    Type::MXFP4,
    Type::NVFP4,
    Type::Q1_0,
    Type::Q2_0,
];

fn noise(seed: u64) -> f32 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x as u32 as f32 / u32::MAX as f32) * 2.0 - 1.0
}

/// A matrix with gaps: bytes, byte strides, and the values that the bytes stand for.
struct Rows {
    bytes: Vec<u8>,
    ty: Type,
    nb: [usize; 4],
    /// `[i3][i2][row][k]`
    values: Vec<f64>,
    dims: [usize; 4],
}

impl Rows {
    /// `dims` = [k, rows, n2, n3]. `spread` multiplies the distance of elements of a row, `gap` lengthens rows by blocks.
    fn new(ty: Type, dims: [usize; 4], spread: usize, gap: usize, seed: u64) -> Rows {
        let [k, rows, n2, n3] = dims;
        let (bs, bb) = (ty.block_size(), ty.block_bytes());
        let nb0 = bb * spread;
        let nb1 = (k / bs * spread + gap) * bb;
        let nb2 = nb1 * rows + gap * bb;
        let nb3 = nb2 * n2 + gap * bb;
        // Gaps hold NaN (all ones), so that a read outside the rows shows.
        let mut bytes = vec![0xffu8; nb3 * n3];
        let mut values = Vec::new();
        for r in 0..rows * n2 * n3 {
            let (i1, i2, i3) = (r % rows, r / rows % n2, r / rows / n2);
            let src: Vec<f32> = (0..k).map(|i| noise(seed + (r * k + i) as u64)).collect();
            let mut enc = vec![0u8; k / bs * bb];
            types::from_f32(ty, &src, &mut enc).unwrap();
            let mut dec = vec![0f32; k];
            types::to_f32(ty, &enc, &mut dec).unwrap();
            values.extend(dec.iter().map(|&v| f64::from(v)));
            for (b, block) in enc.chunks_exact(bb).enumerate() {
                let at = b * nb0 + i1 * nb1 + i2 * nb2 + i3 * nb3;
                bytes[at..at + bb].copy_from_slice(block);
            }
        }
        Rows { bytes, ty, nb: [nb0, nb1, nb2, nb3], values, dims }
    }

    /// The same f32 rows, every value times `factor`.
    fn times(mut self, factor: f32) -> Rows {
        assert_eq!(self.ty, Type::F32);
        for bytes in self.bytes.chunks_exact_mut(4) {
            let v = f32::from_le_bytes(bytes.try_into().unwrap()) * factor;
            bytes.copy_from_slice(&v.to_le_bytes());
        }
        self.values.iter_mut().for_each(|v| *v = f64::from(*v as f32 * factor));
        self
    }

    fn side(&self) -> Matrix {
        // SAFETY: the bytes outlive the products of these tests, which reach no further than dims.
        unsafe { Matrix::new(self.bytes.as_ptr(), self.ty, self.nb) }
    }

    fn row(&self, r: usize, i2: usize, i3: usize) -> &[f64] {
        let [k, rows, n2, _] = self.dims;
        let at = ((i3 * n2 + i2) * rows + r) * k;
        &self.values[at..at + k]
    }
}

/// The result buffer with guard values around every column.
struct Out {
    data: Vec<f32>,
    nb: [usize; 3],
    m: usize,
    n: usize,
}

const GUARD: f32 = -1234.5;

impl Out {
    fn new(s: &Shape, gap: usize) -> Out {
        let ld = s.m + gap;
        let ld2 = ld * s.n + gap;
        let ld3 = ld2 * s.batch[0] + gap;
        Out { data: vec![GUARD; ld3 * s.batch[1] + gap + 1], nb: [ld * 4, ld2 * 4, ld3 * 4], m: s.m, n: s.n }
    }

    fn at(&self, i: usize, j: usize, i2: usize, i3: usize) -> usize {
        i + (j * self.nb[0] + i2 * self.nb[1] + i3 * self.nb[2]) / 4
    }
}

fn multiply(s: Shape, w: Side, x: Side, isa: Isa, nth: usize, gap: usize, prec: Precision) -> Out {
    let mut out = Out::new(&s, gap);
    // SAFETY: the buffer has the strides of the shape and lives until the threads have ended.
    let dst = unsafe { Dst::new(out.data.as_mut_ptr(), out.nb) }.unwrap();
    let gemm = Gemm::with_isa(s, w, x, dst, prec, isa).unwrap();
    let size = gemm.workspace_size(nth);
    let guard = 256;
    let mut scratch = vec![0xa5u8; size + guard];
    // SAFETY: scratch lives until the threads have ended.
    let ws = unsafe { Workspace::new(scratch.as_mut_ptr(), size) };
    let shared = StdShared::new(nth);
    std::thread::scope(|scope| {
        for ith in 0..nth {
            let (gemm, shared) = (&gemm, &shared);
            scope.spawn(move || gemm.run(&shared.member(ith), ws).unwrap());
        }
    });
    assert!(scratch[size..].iter().all(|&b| b == 0xa5), "workspace overrun");
    out
}

/// Normalised mean square error; also checks guards.
fn error(s: &Shape, w: &Rows, x: &Rows, out: &Out) -> f64 {
    let (mut num, mut den) = (0.0, 0.0);
    let mut inside = vec![false; out.data.len()];
    for i3 in 0..s.batch[1] {
        for i2 in 0..s.batch[0] {
            for j in 0..out.n {
                for i in 0..out.m {
                    let a = w.row(i, i2 / s.ratio[0], i3 / s.ratio[1]);
                    let b = x.row(j, i2, i3);
                    let want: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    let at = out.at(i, j, i2, i3);
                    inside[at] = true;
                    let got = f64::from(out.data[at]);
                    assert!(got.is_finite(), "({i}, {j}, {i2}, {i3}) is {got}, expected {want}");
                    num += (got - want).powi(2);
                    den += want * want;
                }
            }
        }
    }
    for (v, inside) in out.data.iter().zip(&inside) {
        assert!(*inside || *v == GUARD, "wrote outside the result");
    }
    if den == 0.0 {
        num
    } else {
        num / den
    }
}

/// Error allowed: rounding of f32 sums, or of activations to 8 bits.
fn allowed(w: Type, prec: Precision) -> f64 {
    if w.is_quantized() && prec == Precision::Default {
        2e-4
    } else {
        1e-12
    }
}

fn check(s: Shape, w: &Rows, x: &Rows, isa: Isa, nth: usize, gap: usize, prec: Precision) -> Vec<f32> {
    let out = multiply(s, Side::Matrix(w.side()), Side::Matrix(x.side()), isa, nth, gap, prec);
    let e = error(&s, w, x, &out);
    assert!(e <= allowed(w.ty, prec), "{s:?} {:?} x {:?} {isa:?} {nth} threads: error {e}", w.ty, x.ty);
    out.data
}

#[test]
fn odd_sizes_plain_formats() {
    let sizes = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257];
    for isa in Isa::available() {
        for (a, &m) in sizes.iter().enumerate() {
            for (b, &n) in sizes.iter().enumerate() {
                // Every pair of m and n, with k walking through all sizes.
                for k in [sizes[(a * 3 + b) % sizes.len()], sizes[(a + b * 5 + 7) % sizes.len()]] {
                    let ty = FORMATS[(a + b + k) % 3];
                    let s = Shape::new(m, n, k);
                    let w = Rows::new(ty, [k, m, 1, 1], 1, b % 2, 1);
                    let x = Rows::new(Type::F32, [k, n, 1, 1], 1, a % 2, 2);
                    check(s, &w, &x, isa, 1 + (a + b) % 3, (a + b) % 2 * 3, Precision::Default);
                }
            }
        }
    }
}

/// Block scales of half precision neither vanish nor saturate: activations may have any size.
#[test]
fn activations_of_any_size() {
    for ty in FORMATS {
        for factor in [1e-30, 1e-20, 1e-10, 1e-5, 1e-3, 1.0, 1e4, 1e6, 1e15, 1e30] {
            for n in [1, 3, 12, 20] {
                let w = Rows::new(ty, [512, 18, 1, 1], 1, 0, 5);
                for gap in [0, 1] {
                    let x = Rows::new(Type::F32, [512, n, 1, 1], 1 + gap, 0, 6).times(factor);
                    check(Shape::new(18, n, 512), &w, &x, Isa::best(), 2, 0, Precision::Default);
                }
            }
        }
    }
}

#[test]
fn every_format_every_set() {
    for isa in Isa::available() {
        for ty in FORMATS {
            for prec in [Precision::Default, Precision::F32] {
                for (m, n, k) in
                    [(1, 1, 256), (5, 1, 512), (33, 2, 256), (70, 7, 768), (40, 9, 256), (65, 33, 512), (3, 100, 256)]
                {
                    let w = Rows::new(ty, [k, m, 1, 1], 1, 0, 3);
                    let x = Rows::new(Type::F32, [k, n, 1, 1], 1, 0, 4);
                    check(Shape::new(m, n, k), &w, &x, isa, 2, 0, prec);
                }
            }
        }
    }
}

#[test]
fn small_blocks_short_rows() {
    for isa in Isa::available() {
        for ty in FORMATS.into_iter().filter(|t| t.block_size() == 32) {
            for k in [32, 64, 96, 288, 320] {
                for n in [1, 5, 13, 30] {
                    let w = Rows::new(ty, [k, 37, 1, 1], 1, 1, 3);
                    let x = Rows::new(Type::F32, [k, n, 1, 1], 1, 1, 4);
                    check(Shape::new(37, n, k), &w, &x, isa, 3, 2, Precision::Default);
                }
            }
        }
    }
}

#[test]
fn strides_and_formats_of_both_sides() {
    for isa in Isa::available() {
        for wt in [Type::F32, Type::F16, Type::BF16, Type::Q8_0, Type::Q4_K] {
            for xt in [Type::F32, Type::F16, Type::BF16] {
                for (spread_w, spread_x) in [(1, 1), (2, 1), (1, 3), (2, 2)] {
                    for (m, n) in [(4, 3), (35, 5), (5, 35), (40, 41)] {
                        let k = 512;
                        let w = Rows::new(wt, [k, m, 1, 1], spread_w, 1, 5);
                        let x = Rows::new(xt, [k, n, 1, 1], spread_x, 2, 6);
                        check(Shape::new(m, n, k), &w, &x, isa, 2, 5, Precision::Default);
                    }
                }
            }
        }
    }
}

#[test]
fn batches_and_broadcast() {
    for isa in Isa::available() {
        for ty in [Type::F32, Type::F16, Type::Q8_0] {
            for (m, n, k) in [(9, 1, 64), (17, 6, 32), (33, 20, 96), (4, 40, 64)] {
                for ratio in [[1, 1], [2, 1], [3, 2]] {
                    let batch = [6, 2];
                    let s = Shape { m, n, k, batch, ratio };
                    let w = Rows::new(ty, [k, m, batch[0] / ratio[0], batch[1] / ratio[1]], 1, 1, 8);
                    let x = Rows::new(Type::F32, [k, n, batch[0], batch[1]], 1, 1, 9);
                    check(s, &w, &x, isa, 3, 1, Precision::Default);
                }
            }
        }
    }
}

#[test]
fn many_rounds() {
    // Larger than the shared panels, so that columns, k and batches are cut.
    for isa in Isa::available().into_iter().filter(|&i| i != Isa::Portable) {
        for (m, n, k, b) in [(40, 1100, 1100, 1), (33, 30, 40_000, 1), (9, 300, 600, 9)] {
            let s = Shape { m, n, k, batch: [b, 1], ratio: [1, 1] };
            let w = Rows::new(Type::F32, [k, m, b, 1], 1, 0, 10);
            let x = Rows::new(Type::F32, [k, n, b, 1], 1, 0, 11);
            check(s, &w, &x, isa, 3, 0, Precision::Default);
        }
    }
}

#[test]
fn same_bits_for_any_thread_count() {
    for isa in Isa::available() {
        for ty in FORMATS {
            for (m, n, k) in [(130, 3, 512), (6, 130, 512), (200, 90, 768)] {
                let w = Rows::new(ty, [k, m, 2, 1], 1, 0, 12);
                let x = Rows::new(Type::F32, [k, n, 2, 1], 1, 0, 13);
                let s = Shape { m, n, k, batch: [2, 1], ratio: [1, 1] };
                let run = |nth| {
                    let out =
                        multiply(s, Side::Matrix(w.side()), Side::Matrix(x.side()), isa, nth, 0, Precision::Default);
                    out.data.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
                };
                let one = run(1);
                for nth in [2, 3, 5] {
                    assert!(one == run(nth), "{ty:?} {m}x{n}x{k} {isa:?}: bits differ with {nth} threads");
                }
            }
        }
    }
}

#[test]
fn an_element_does_not_depend_on_its_place() {
    // The first rows and columns of a large product have the bits of a smaller one.
    let k = 600;
    let w = Rows::new(Type::F32, [k, 150, 1, 1], 1, 0, 14);
    let x = Rows::new(Type::F32, [k, 70, 1, 1], 1, 0, 15);
    for isa in Isa::available() {
        let run = |m, n| {
            multiply(Shape::new(m, n, k), Side::Matrix(w.side()), Side::Matrix(x.side()), isa, 2, 0, Precision::Default)
        };
        let all = run(150, 70);
        for (m, n) in [(150, 23), (33, 70), (20, 20), (149, 69)] {
            let part = run(m, n);
            for j in 0..n {
                for i in 0..m {
                    let (a, b) = (all.data[all.at(i, j, 0, 0)], part.data[part.at(i, j, 0, 0)]);
                    assert_eq!(a.to_bits(), b.to_bits(), "({i}, {j}) of {m}x{n} {isa:?}");
                }
            }
        }
    }
}

#[test]
fn empty_sizes() {
    let w = Rows::new(Type::F32, [8, 8, 1, 1], 1, 0, 1);
    for (m, n, k) in [(0, 5, 8), (5, 0, 8), (5, 5, 0), (0, 0, 0)] {
        let s = Shape::new(m, n, k);
        let out = multiply(s, Side::Matrix(w.side()), Side::Matrix(w.side()), Isa::best(), 2, 1, Precision::Default);
        for j in 0..n {
            for i in 0..m {
                assert_eq!(out.data[out.at(i, j, 0, 0)], 0.0);
            }
        }
        let written = out.data.iter().filter(|&&v| v != GUARD).count();
        assert_eq!(written, m * n);
    }
}

#[test]
fn refusals() {
    let w = Rows::new(Type::Q8_0, [64, 2, 1, 1], 1, 0, 1);
    let mut y = [0f32; 64];
    // SAFETY: nothing is run over it.
    let dst = |nb1| unsafe { Dst::new(y.as_ptr().cast_mut(), [nb1, 0, 0]) };
    assert_eq!(dst(7).err(), Some(Error::Stride));
    let d = dst(8).unwrap();
    let side = Side::Matrix(w.side());
    let new = |s| Gemm::new(s, side, side, d, Precision::Default).err();
    assert_eq!(new(Shape::new(2, 2, 33)), Some(Error::Block));
    assert_eq!(new(Shape { ratio: [2, 1], ..Shape::new(2, 2, 32) }), Some(Error::Ratio));
    assert_eq!(new(Shape { ratio: [0, 1], ..Shape::new(2, 2, 32) }), Some(Error::Ratio));
    assert_eq!(new(Shape::new(usize::MAX / 2, 2, 32)), Some(Error::TooLarge));
    let g = Gemm::new(Shape::new(2, 2, 64), side, side, d, Precision::Default).unwrap();
    // SAFETY: an empty workspace has no bytes to vouch for.
    let ws = unsafe { Workspace::new(y.as_mut_ptr().cast(), 0) };
    assert_eq!(g.run(&Solo::default(), ws), Err(Error::Workspace));
    assert!(y.iter().all(|&v| v == 0.0));
}
