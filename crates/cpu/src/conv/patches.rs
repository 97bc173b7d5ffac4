//! The windows ("patches") of a convolution as rows of a matrix: one row for each output position, along it channel, depth,
//! height and width of the kernel, width fastest.

use super::round::round_to_f16;
use crate::node::src;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{ConvShape, Im2col, Type};
use ggml_oxide_types as types;

/// Sizes and strides of a convolution. Arrays are width, height, depth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Images.
    pub n: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Size of the image, the kernel and the output.
    pub size: [usize; 3],
    pub kernel: [usize; 3],
    pub out: [usize; 3],
    /// Input positions from one output position to the next, before the first, and from one kernel position to the next.
    pub stride: [i64; 3],
    pub pad: [i64; 3],
    pub dilation: [i64; 3],
    /// Bytes between positions, channels and images.
    pub nb: [usize; 3],
    pub nb_channel: usize,
    pub nb_image: usize,
}

const LIMIT: i64 = i32::MAX as i64;

impl Geometry {
    /// Of an IM2COL node.
    pub fn im2col(op: &ggml_tensor) -> Result<Geometry, &'static str> {
        let (a, b, p) = (src(op, 0)?, src(op, 1)?, &op.op_params);
        let g = if p[6] == 1 {
            if a.ne[2] != b.ne[2] {
                return Err("kernel and image must have the same channels");
            }
            Geometry {
                n: size(b.ne[3])?,
                channels: size(b.ne[2])?,
                size: [size(b.ne[0])?, size(b.ne[1])?, 1],
                kernel: [size(a.ne[0])?, size(a.ne[1])?, 1],
                out: [size(op.ne[1])?, size(op.ne[2])?, 1],
                stride: [p[0].into(), p[1].into(), 1],
                pad: [p[2].into(), p[3].into(), 0],
                dilation: [p[4].into(), p[5].into(), 1],
                nb: [b.nb[0], b.nb[1], 0],
                nb_channel: b.nb[2],
                nb_image: b.nb[3],
            }
        } else {
            if a.ne[1] != b.ne[1] || b.ne[3] != 1 {
                return Err("kernel and signal must have the same channels, and the signal no dimension 3");
            }
            Geometry {
                n: size(b.ne[2])?,
                channels: size(b.ne[1])?,
                size: [size(b.ne[0])?, 1, 1],
                kernel: [size(a.ne[0])?, 1, 1],
                out: [size(op.ne[1])?, 1, 1],
                stride: [p[0].into(), 1, 1],
                pad: [p[2].into(), 0, 0],
                dilation: [p[4].into(), 1, 1],
                nb: [b.nb[0], 0, 0],
                nb_channel: b.nb[1],
                nb_image: b.nb[2],
            }
        };
        let images = if p[6] == 1 { [g.out[1] as i64, g.n as i64] } else { [g.n as i64, 1] };
        g.check()?;
        if op.ne[0] != g.k() as i64 || [op.ne[2], op.ne[3]] != images {
            return Err("the result's shape is not that of the patches");
        }
        Ok(g)
    }

    /// Of an IM2COL_3D node.
    pub fn im2col_3d(op: &ggml_tensor) -> Result<Geometry, &'static str> {
        let g = Geometry::volume(op, i64::from(op.op_params[9]), [op.ne[1], op.ne[2], 0])?;
        let depth = size(op.ne[3])?.checked_div(g.n).unwrap_or(0);
        let g = Geometry { out: [g.out[0], g.out[1], depth], ..g };
        g.check()?;
        if op.ne[0] != g.k() as i64 || op.ne[3] != (g.n * depth) as i64 {
            return Err("the result's shape is not that of the patches");
        }
        Ok(g)
    }

    /// Of a CONV_3D node.
    pub fn conv_3d(op: &ggml_tensor) -> Result<Geometry, &'static str> {
        let p = &op.op_params;
        let g = Geometry::volume(op, i64::from(p[9]), [op.ne[0], op.ne[1], op.ne[2]])?;
        g.check()?;
        let oc = i64::from(p[11]);
        let kernels = src(op, 0)?.ne[3];
        if g.n as i64 != i64::from(p[10]) || oc < 0 || kernels != oc * g.channels as i64 || op.ne[3] != oc * g.n as i64
        {
            return Err("dimension 3 must be channels times images, kernels or both");
        }
        Ok(g)
    }

    /// Of a node with parameters s0 s1 s2 p0 p1 p2 d0 d1 d2 and channels packed into dimension 3.
    fn volume(op: &ggml_tensor, channels: i64, out: [i64; 3]) -> Result<Geometry, &'static str> {
        let (a, b, p) = (src(op, 0)?, src(op, 1)?, &op.op_params);
        if channels < 1 || b.ne[3] % channels != 0 {
            return Err("the channels must divide dimension 3 of the image");
        }
        let three = |i: usize| [p[i].into(), p[i + 1].into(), p[i + 2].into()];
        Ok(Geometry {
            n: size(b.ne[3] / channels)?,
            channels: size(channels)?,
            size: [size(b.ne[0])?, size(b.ne[1])?, size(b.ne[2])?],
            kernel: [size(a.ne[0])?, size(a.ne[1])?, size(a.ne[2])?],
            out: [size(out[0])?, size(out[1])?, size(out[2])?],
            stride: three(0),
            pad: three(3),
            dilation: three(6),
            nb: [b.nb[0], b.nb[1], b.nb[2]],
            nb_channel: b.nb[3],
            nb_image: b.nb[3].checked_mul(channels as usize).ok_or("the sizes overflow")?,
        })
    }

    /// Of a CONV_2D or CONV_2D_DW node: parameters s0 s1 p0 p1 d0 d1, kernel [w, h, ..], image [w, h, channels, n].
    pub fn conv_2d(op: &ggml_tensor) -> Result<Geometry, &'static str> {
        let (a, b, p) = (src(op, 0)?, src(op, 1)?, &op.op_params);
        let g = Geometry {
            n: size(b.ne[3])?,
            channels: size(b.ne[2])?,
            size: [size(b.ne[0])?, size(b.ne[1])?, 1],
            kernel: [size(a.ne[0])?, size(a.ne[1])?, 1],
            out: [size(op.ne[0])?, size(op.ne[1])?, 1],
            stride: [p[0].into(), p[1].into(), 1],
            pad: [p[2].into(), p[3].into(), 0],
            dilation: [p[4].into(), p[5].into(), 1],
            nb: [b.nb[0], b.nb[1], 0],
            nb_channel: b.nb[2],
            nb_image: b.nb[3],
        };
        g.check()?;
        if op.ne[3] != b.ne[3] {
            return Err("image and result must have the same dimension 3");
        }
        Ok(g)
    }

    fn check(&self) -> Result<(), &'static str> {
        let product = |v: &[usize]| v.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).filter(|&n| n as i64 >= 0);
        let patches = product(&self.out).and_then(|n| n.checked_mul(self.n));
        let k = product(&self.kernel).and_then(|n| n.checked_mul(self.channels));
        if patches.is_none() || k.is_none() {
            return Err("the sizes overflow");
        }
        if self.stride.iter().chain(&self.dilation).any(|&v| v < 1) {
            return Err("strides and dilations must be positive");
        }
        Ok(())
    }

    /// Length of a patch.
    pub fn k(&self) -> usize {
        self.kernel.iter().product::<usize>() * self.channels
    }

    /// Output positions of one image.
    pub fn positions(&self) -> usize {
        self.out.iter().product()
    }

    /// Output position number `p`, width fastest.
    pub fn unravel(&self, p: usize) -> [usize; 3] {
        let (x, rest) = (p % self.out[0], p / self.out[0]);
        [x, rest % self.out[1], rest / self.out[1]]
    }

    /// Input position under kernel position `k` at output position `o`, in dimension `d`; it may lie outside.
    pub fn input(&self, d: usize, o: usize, k: usize) -> i64 {
        o as i64 * self.stride[d] + k as i64 * self.dilation[d] - self.pad[d]
    }

    /// As [`input`](Geometry::input), if it lies in the image.
    pub fn inside(&self, d: usize, o: usize, k: usize) -> Option<usize> {
        usize::try_from(self.input(d, o, k)).ok().filter(|&i| i < self.size[d])
    }
}

fn size(n: i64) -> Result<usize, &'static str> {
    if (0..=LIMIT).contains(&n) {
        Ok(n as usize)
    } else {
        Err("a dimension is too large")
    }
}

/// The patches of an image in memory.
#[derive(Clone, Copy)]
pub(crate) struct Patches {
    g: Geometry,
    data: *const u8,
    f16: bool,
    round: bool,
}

// SAFETY: the memory is only read; the creator vouched that nobody writes it meanwhile.
unsafe impl Sync for Patches {}

impl Patches {
    /// Patches of the image at `data`, f32 or f16 (`f16`); `round`: their values rounded to f16.
    ///
    /// # Safety
    /// While this is in use, the image that the geometry describes is readable, aligned to its elements, and unwritten.
    pub unsafe fn new(g: Geometry, data: *const u8, f16: bool, round: bool) -> Patches {
        // What is f16 already needs no rounding.
        Patches { g, data, f16, round: round && !f16 }
    }

    /// The same for the gemm crate; `None` where padding is negative, or nothing is summed.
    pub fn operand(&self) -> Option<Im2col> {
        let g = &self.g;
        let up = |v: [i64; 3]| -> Option<[usize; 3]> {
            let mut out = [0; 3];
            for (o, v) in out.iter_mut().zip(v) {
                *o = usize::try_from(v).ok()?;
            }
            Some(out)
        };
        let shape = ConvShape {
            input: g.size,
            kernel: g.kernel,
            output: g.out,
            stride: up(g.stride)?,
            pad: up(g.pad)?,
            dilation: up(g.dilation)?,
        };
        let ty = if self.f16 { Type::F16 } else { Type::F32 };
        let nb = [g.nb[0], g.nb[1], g.nb[2], g.nb_channel, g.nb_image];
        // SAFETY: the creator of this value vouched for the image.
        let all = unsafe { Im2col::new(self.data, ty, nb, shape) }?;
        Some(if self.round { all.rounded_to_f16() } else { all })
    }

    /// Reads `to.len()` values of image row `row` from input position `ix` on, `step` positions apart, 0 outside.
    #[inline]
    pub(super) fn read(&self, row: *const u8, ix: i64, step: i64, to: &mut [f32]) {
        let width = self.g.size[0] as i64;
        // the first and one past the last index of `to` whose position lies inside
        let first = if ix >= 0 { 0 } else { (-ix + step - 1) / step };
        let end = if ix >= width { 0 } else { (width - ix + step - 1) / step };
        let len = to.len() as i64;
        let (first, end) = (first.min(len) as usize, end.clamp(first.min(len), len) as usize);
        to[..first].fill(0.0);
        to[end..].fill(0.0);
        let to = &mut to[first..end];
        let nb = self.g.nb[0].wrapping_mul(step as usize);
        let from = row.wrapping_offset(((ix + first as i64 * step) * self.g.nb[0] as i64) as isize);
        if !self.f16 && nb == 4 {
            // SAFETY: `to.len()` adjacent positions inside the image.
            unsafe { copy(from.cast(), to) };
            return;
        }
        for (i, v) in to.iter_mut().enumerate() {
            let p = from.wrapping_add(i * nb);
            // SAFETY: a position inside the image.
            *v = unsafe {
                if self.f16 {
                    types::float::f16_to_f32(p.cast::<u16>().read())
                } else {
                    p.cast::<f32>().read()
                }
            };
        }
    }

    /// Address of the row of the image at channel `c`, height `y`, depth `z`.
    fn image_row(&self, image: usize, c: usize, y: usize, z: usize) -> *const u8 {
        let g = &self.g;
        self.data.wrapping_add(image * g.nb_image + c * g.nb_channel + y * g.nb[1] + z * g.nb[2])
    }

    /// Writes the whole patch of output position `o`: `to.len()` is k.
    pub fn patch(&self, image: usize, o: [usize; 3], to: &mut [f32]) {
        let g = &self.g;
        let ([kw, kh, kd], ix) = (g.kernel, g.input(0, o[0], 0));
        if kw == 0 {
            return;
        }
        for (i, part) in to.chunks_exact_mut(kw).enumerate() {
            let (y, rest) = (i % kh, i / kh);
            match (g.inside(1, o[1], y), g.inside(2, o[2], rest % kd)) {
                (Some(y), Some(z)) => self.read(self.image_row(image, rest / kd, y, z), ix, g.dilation[0], part),
                _ => part.fill(0.0),
            }
        }
        if self.round {
            round_to_f16(to);
        }
    }
}

/// Copies adjacent values; few of them without a call.
///
/// # Safety
/// `to.len()` values lie at `from`.
#[inline(always)]
unsafe fn copy(from: *const f32, to: &mut [f32]) {
    let (mut from, mut to, mut left) = (from, to.as_mut_ptr(), to.len());
    macro_rules! blocks {
        ($($n:literal)*) => {$(
            while left >= $n {
                // SAFETY: as many values are left on both sides.
                unsafe {
                    to.cast::<[f32; $n]>().write_unaligned(from.cast::<[f32; $n]>().read_unaligned());
                    (from, to) = (from.add($n), to.add($n));
                }
                left -= $n;
            }
        )*};
    }
    blocks!(32 16 8 4 2 1);
}
