//! Convolution as a product without an im2col buffer: an operand that reads the image where it lies.

use crate::operand::{read_float, round_to_f16, Operand, Panel};
use ggml_oxide_types::Type;

/// Sizes of a convolution along width, height and depth. A flat one has depth 1 everywhere (and pad 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Input size.
    pub input: [usize; 3],
    /// Kernel size.
    pub kernel: [usize; 3],
    /// Output size.
    pub output: [usize; 3],
    /// Steps between kernel positions.
    pub stride: [usize; 3],
    /// Zeros before the input.
    pub pad: [usize; 3],
    /// Steps between kernel elements.
    pub dilation: [usize; 3],
}

impl ConvShape {
    /// A flat convolution; all pairs are (width, height).
    pub fn flat(
        input: [usize; 2],
        kernel: [usize; 2],
        output: [usize; 2],
        stride: [usize; 2],
        pad: [usize; 2],
        dilation: [usize; 2],
    ) -> Self {
        let flat = |v: [usize; 2], last| [v[0], v[1], last];
        ConvShape {
            input: flat(input, 1),
            kernel: flat(kernel, 1),
            output: flat(output, 1),
            stride: flat(stride, 1),
            pad: flat(pad, 0),
            dilation: flat(dilation, 1),
        }
    }

    /// Output positions of one image.
    pub fn positions(&self) -> usize {
        self.output.iter().product()
    }
}

/// The im2col matrix of images: row `((image * OD + od) * OH + oh) * OW + ow`, element
/// `((channel * KD + kd) * KH + kh) * KW + kw`. As the first operand of a product whose second one holds kernels
/// `[K, OC]`, it gives a result `[OW, OH, OD, images, OC]`; with images as batches, `[OW, OH, OD, OC, images]`.
#[derive(Clone, Copy, Debug)]
pub struct Im2col {
    data: *const u8,
    ty: Type,
    /// Bytes between columns, rows, planes, channels and images.
    nb: [usize; 5],
    s: ConvShape,
    via_f16: bool,
}

// SAFETY: the memory is only read, and the creator vouched that it stays valid and unwritten while in use.
unsafe impl Sync for Im2col {}
// SAFETY: as above; the pointer is not tied to a thread.
unsafe impl Send for Im2col {}

impl Im2col {
    /// Images at `data` with strides `nb` in bytes: columns, rows, planes, channels, images. The batch index `i2` of a
    /// product counts images. None if a stride or kernel size is 0, if `ty` is not F32, F16 or BF16, or if sizes are so large that coordinates overflow.
    ///
    /// # Safety
    /// While a `Gemm` over it runs, every pixel of the input size in every channel and image that the product reaches is
    /// readable and aligned, and nobody writes it.
    pub unsafe fn new(data: *const u8, ty: Type, nb: [usize; 5], shape: ConvShape) -> Option<Self> {
        const LIMIT: usize = 1 << 31;
        let all = [shape.input, shape.kernel, shape.output, shape.stride, shape.pad, shape.dilation];
        let small = all.iter().flatten().all(|&v| v < LIMIT);
        let stepped = shape.stride.iter().chain(&shape.kernel).all(|&v| v > 0);
        let plain = matches!(ty, Type::F32 | Type::F16 | Type::BF16);
        (small && stepped && plain).then_some(Im2col { data, ty, nb, s: shape, via_f16: false })
    }

    /// Rounds every element to f16, as an f16 im2col buffer does.
    pub fn rounded_to_f16(mut self) -> Self {
        self.via_f16 = true;
        self
    }

    /// Writes `dst.len()` neighbouring positions for one kernel element; `line` is the input row, `x0` the input column
    /// of the first position.
    fn fill(&self, line: *const u8, x0: isize, dst: &mut [f32]) {
        let (len, step) = (dst.len() as isize, self.s.stride[0] as isize);
        let width = self.s.input[0] as isize;
        // Positions lo..hi fall inside the row.
        let lo = if x0 < 0 { (step - 1 - x0) / step } else { 0 }.min(len);
        let hi = if x0 < width { (width - x0 + step - 1) / step } else { 0 }.clamp(lo, len);
        let (lo, hi) = (lo as usize, hi as usize);
        dst[..lo].fill(0.0);
        dst[hi..].fill(0.0);
        let inside = &mut dst[lo..hi];
        if inside.is_empty() {
            return;
        }
        let first = (x0 + lo as isize * step) as usize;
        let src = line.wrapping_add(first * self.nb[0]);
        let pitch = self.nb[0] * self.s.stride[0];
        if self.ty == Type::F32 && pitch == 4 {
            // SAFETY: the creator vouched for the pixels first..first + inside.len() of this row.
            copy(inside, unsafe { core::slice::from_raw_parts(src.cast::<f32>(), inside.len()) });
        } else if self.ty == Type::F32 {
            for (i, o) in inside.iter_mut().enumerate() {
                // SAFETY: as above.
                *o = unsafe { src.wrapping_add(i * pitch).cast::<f32>().read() };
            }
        } else {
            for (i, o) in inside.iter_mut().enumerate() {
                // SAFETY: as above.
                *o = unsafe { read_float(self.ty, src.wrapping_add(i * pitch)) };
            }
        }
    }
}

/// Short copies, of which most are as long as a panel is wide.
#[inline(always)]
pub(crate) fn copy(dst: &mut [f32], src: &[f32]) {
    if let (Some((d, [])), Some((s, []))) = (dst.split_first_chunk_mut::<32>(), src.split_first_chunk::<32>()) {
        *d = *s;
        return;
    }
    let mut d = dst.chunks_exact_mut(8);
    let mut s = src.chunks_exact(8);
    for (d, s) in d.by_ref().zip(s.by_ref()) {
        d.copy_from_slice(s);
    }
    for (d, s) in d.into_remainder().iter_mut().zip(s.remainder()) {
        *d = *s;
    }
}

/// Positions of a panel that lie in one row of the output.
#[derive(Clone, Copy, Default)]
struct Segment {
    /// Entries of the panel.
    from: usize,
    to: usize,
    /// Output position of the first, and the address of its image.
    at: [usize; 3],
    image: usize,
}

impl Operand for Im2col {
    fn pack(&self, at: &Panel, panel: &mut [f32]) {
        let s = &self.s;
        let [ow, oh, od] = s.output;
        // Panels are at most 32 wide, so there are at most as many segments.
        let mut segments = [Segment::default(); 32];
        let mut count = 0;
        let mut r = 0;
        while r < at.rows {
            let p = at.row + r;
            let x = p % ow;
            let len = (ow - x).min(at.rows - r);
            segments[count] = Segment {
                from: r,
                to: r + len,
                at: [x, p / ow % oh, p / ow / oh % od],
                image: at.i2 + p / ow / oh / od,
            };
            count += 1;
            r += len;
        }
        let [kw, kh, kd] = s.kernel;
        let mut e = [at.k % kw, at.k / kw % kh, at.k / kw / kh % kd];
        let mut channel = at.k / kw / kh / kd;
        for step in panel.chunks_exact_mut(at.width) {
            step[at.rows..].fill(0.0);
            for seg in &segments[..count] {
                let dst = &mut step[seg.from..seg.to];
                let coordinate =
                    |d: usize| (seg.at[d] * s.stride[d] + e[d] * s.dilation[d]) as isize - s.pad[d] as isize;
                let (y, z) = (coordinate(1), coordinate(2));
                if y < 0 || y >= s.input[1] as isize || z < 0 || z >= s.input[2] as isize {
                    dst.fill(0.0);
                    continue;
                }
                let line = self.data.wrapping_add(
                    y as usize * self.nb[1] + z as usize * self.nb[2] + channel * self.nb[3] + seg.image * self.nb[4],
                );
                self.fill(line, coordinate(0), dst);
            }
            e[0] += 1;
            for d in 0..2 {
                if e[d] == s.kernel[d] {
                    e[d] = 0;
                    e[d + 1] += 1;
                }
            }
            if e[2] == kd {
                e[2] = 0;
                channel += 1;
            }
        }
        if self.via_f16 {
            round_to_f16(panel);
        }
    }
}
