//! Convolutions without a buffer against plain sums, and against a product with an explicit im2col matrix.
#![allow(clippy::unwrap_used)]

use ggml_oxide_gemm::*;
use half::f16;

fn noise(seed: usize) -> f32 {
    let x = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

struct Case {
    shape: ConvShape,
    channels: usize,
    out_channels: usize,
    images: usize,
}

impl Case {
    fn k(&self) -> usize {
        self.channels * self.shape.kernel.iter().product::<usize>()
    }

    /// Input pixel of a row and element of the im2col matrix, None in the padding.
    fn pixel(&self, row: usize, k: usize) -> Option<usize> {
        let s = &self.shape;
        let [ow, oh, od] = s.output;
        let o = [row % ow, row / ow % oh, row / ow / oh % od];
        let image = row / ow / oh / od;
        let [kw, kh, kd] = s.kernel;
        let e = [k % kw, k / kw % kh, k / kw / kh % kd];
        let channel = k / kw / kh / kd;
        let mut p = [0; 3];
        for d in 0..3 {
            p[d] = (o[d] * s.stride[d] + e[d] * s.dilation[d]).checked_sub(s.pad[d])?;
            if p[d] >= s.input[d] {
                return None;
            }
        }
        let [iw, ih, id] = s.input;
        Some((((image * self.channels + channel) * id + p[2]) * ih + p[1]) * iw + p[0])
    }
}

fn run(g: &Gemm, nth: usize) {
    let mut scratch = vec![0u8; g.workspace_size(nth)];
    // SAFETY: scratch outlives the threads.
    let ws = unsafe { Workspace::new(scratch.as_mut_ptr(), scratch.len()) };
    let shared = StdShared::new(nth);
    std::thread::scope(|s| {
        for i in 0..nth {
            let shared = &shared;
            s.spawn(move || g.run(&shared.member(i), ws).unwrap());
        }
    });
}

fn check(c: &Case, ty: Type, as_batches: bool) {
    let s = &c.shape;
    let (k, per_image) = (c.k(), s.positions());
    let pixels = s.input.iter().product::<usize>();
    let image: Vec<f32> = (0..pixels * c.channels * c.images).map(|i| f16::from_f32(noise(i)).to_f32()).collect();
    let image16: Vec<u16> = image.iter().map(|&v| f16::from_f32(v).to_bits()).collect();
    let kernel: Vec<f32> = (0..k * c.out_channels).map(|i| noise(i + 99)).collect();
    let (data, e) = match ty {
        Type::F32 => (image.as_ptr().cast::<u8>(), 4),
        _ => (image16.as_ptr().cast::<u8>(), 2),
    };
    let [iw, ih, id] = s.input;
    let nb = [e, iw * e, iw * ih * e, iw * ih * id * e, iw * ih * id * c.channels * e];
    // SAFETY: the vectors live to the end of this function and hold what the shapes reach.
    let (w, x) = unsafe {
        (Im2col::new(data, ty, nb, *s).unwrap(), Matrix::new(kernel.as_ptr().cast(), Type::F32, [4, 4 * k, 0, 0]))
    };
    for isa in Isa::available() {
        let total = per_image * c.images;
        let mut y = vec![f32::NAN; total * c.out_channels];
        let (shape, nb) = if as_batches {
            let shape = Shape { batch: [c.images, 1], ..Shape::new(per_image, c.out_channels, k) };
            (shape, [4 * per_image, 4 * per_image * c.out_channels, 0])
        } else {
            (Shape::new(total, c.out_channels, k), [4 * total, 0, 0])
        };
        // SAFETY: as above.
        let dst = unsafe { Dst::new(y.as_mut_ptr(), nb) }.unwrap();
        let g = Gemm::with_isa(shape, Side::Custom(&w), Side::Matrix(x), dst, Precision::Default, isa).unwrap();
        run(&g, 3);
        for row in 0..total {
            for oc in 0..c.out_channels {
                let want: f64 = (0..k)
                    .filter_map(|i| Some(f64::from(image[c.pixel(row, i)?]) * f64::from(kernel[oc * k + i])))
                    .sum();
                let got = if as_batches {
                    y[row % per_image + (row / per_image * c.out_channels + oc) * per_image]
                } else {
                    y[row + oc * total]
                };
                assert!((f64::from(got) - want).abs() < 1e-4, "row {row} channel {oc}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn flat_shapes() {
    for (input, kernel, stride, pad, dilation) in [
        ([40, 7], [3, 3], [1, 1], [1, 1], [1, 1]),
        ([32, 32], [1, 1], [1, 1], [0, 0], [1, 1]),
        ([9, 8], [3, 3], [2, 2], [1, 1], [1, 1]),
        ([5, 5], [5, 5], [1, 1], [4, 4], [1, 1]),
        ([17, 6], [3, 2], [3, 1], [2, 0], [2, 3]),
        ([70, 1], [4, 1], [1, 1], [3, 0], [1, 1]),
        ([3, 3], [2, 2], [4, 4], [5, 5], [1, 1]),
    ] {
        let out = |d: usize| (input[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
        let shape = ConvShape::flat(input, kernel, [out(0), out(1)], stride, pad, dilation);
        for (channels, out_channels, images) in [(3, 5, 1), (40, 17, 2)] {
            let c = Case { shape, channels, out_channels, images };
            for ty in [Type::F32, Type::F16] {
                check(&c, ty, false);
                check(&c, ty, true);
            }
        }
    }
}

#[test]
fn with_depth() {
    let shape = ConvShape {
        input: [6, 5, 4],
        kernel: [3, 2, 3],
        output: [6, 2, 4],
        stride: [1, 2, 1],
        pad: [1, 0, 1],
        dilation: [1, 1, 1],
    };
    let c = Case { shape, channels: 4, out_channels: 20, images: 2 };
    check(&c, Type::F32, false);
    check(&c, Type::F16, true);
}

#[test]
fn rounding_equals_an_f16_buffer() {
    let shape = ConvShape::flat([20, 10], [3, 3], [20, 10], [1, 1], [1, 1], [1, 1]);
    let c = Case { shape, channels: 8, out_channels: 20, images: 1 };
    let k = c.k();
    let image: Vec<f32> = (0..20 * 10 * 8).map(noise).collect();
    let kernel: Vec<f32> = (0..k * 20).map(|i| noise(i + 99)).collect();
    let buffer: Vec<u16> = (0..200 * k)
        .map(|i| {
            let v = c.pixel(i / k, i % k).map_or(0.0, |p| image[p]);
            f16::from_f32(v).to_bits()
        })
        .collect();
    // SAFETY: the vectors live to the end of this function and hold what the shapes reach.
    let (implicit, explicit, x) = unsafe {
        (
            Im2col::new(image.as_ptr().cast(), Type::F32, [4, 80, 800, 800, 0], shape).unwrap().rounded_to_f16(),
            Matrix::new(buffer.as_ptr().cast(), Type::F16, [2, 2 * k, 0, 0]),
            Matrix::new(kernel.as_ptr().cast(), Type::F32, [4, 4 * k, 0, 0]),
        )
    };
    let product = |w: Side| {
        let mut y = vec![0f32; 200 * 20];
        // SAFETY: as above.
        let dst = unsafe { Dst::new(y.as_mut_ptr(), [800, 0, 0]) }.unwrap();
        let g = Gemm::new(Shape::new(200, 20, k), w, Side::Matrix(x), dst, Precision::Default).unwrap();
        run(&g, 2);
        y.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    assert!(product(Side::Custom(&implicit)) == product(Side::Matrix(explicit)));
}
