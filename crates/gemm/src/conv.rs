//! Convolution as a product without an im2col buffer: an operand that reads the image where it lies.

#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;
use crate::kernel::tile::prefetch;
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
    #[inline(always)]
    fn fill(&self, line: *const u8, x0: isize, dst: &mut [f32]) {
        let (len, step) = (dst.len() as isize, self.s.stride[0] as isize);
        let width = self.s.input[0] as isize;
        let packed = self.ty == Type::F32 && self.nb[0] * self.s.stride[0] == 4;
        if packed && x0 >= 0 && x0 + len <= width {
            let src = line.wrapping_add(x0 as usize * 4).cast::<f32>();
            // SAFETY: the creator vouched for the pixels of this row, and x0..x0 + len lie in it.
            copy(dst, unsafe { core::slice::from_raw_parts(src, len as usize) });
            return;
        }
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
        if packed {
            // SAFETY: as above, for first..first + inside.len().
            copy(inside, unsafe { core::slice::from_raw_parts(src.cast::<f32>(), inside.len()) });
        } else {
            self.gather(src, inside);
        }
    }

    /// Pixels `stride` apart, or not f32.
    fn gather(&self, src: *const u8, dst: &mut [f32]) {
        let pitch = self.nb[0] * self.s.stride[0];
        if self.ty == Type::F32 {
            for (i, o) in dst.iter_mut().enumerate() {
                // SAFETY: the caller keeps the pixels inside the row, for which the creator vouched.
                *o = unsafe { src.wrapping_add(i * pitch).cast::<f32>().read() };
            }
        } else {
            for (i, o) in dst.iter_mut().enumerate() {
                // SAFETY: as above.
                *o = unsafe { read_float(self.ty, src.wrapping_add(i * pitch)) };
            }
        }
    }

    /// The body of [`Operand::pack`], compiled once per instruction set for its copies.
    #[inline(always)]
    fn pack_body(&self, at: &Panel, panel: &mut [f32]) {
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
            let start = |d: usize, o: usize| (o * s.stride[d]) as isize - s.pad[d] as isize;
            let image = at.i2 + p / ow / oh / od;
            segments[count] = Segment {
                from: r,
                to: r + len,
                start: [start(0, x), start(1, p / ow % oh), start(2, p / ow / oh % od)],
                image: self.data.wrapping_add(image * self.nb[4]),
            };
            count += 1;
            r += len;
        }
        let segments = &segments[..count];
        let [kw, kh, kd] = s.kernel;
        let (mut x, mut y, mut z) = (at.k % kw, at.k / kw % kh, at.k / kw / kh % kd);
        let mut channel = at.k / kw / kh / kd;
        let mut k = 0;
        // One turn for each input row that kernels read: steps along the kernel's width.
        while k < at.kc {
            let steps = (kw - x).min(at.kc - k);
            let rows = &mut panel[k * at.width..][..steps * at.width];
            let offset = |d: usize, e: usize| (e * s.dilation[d]) as isize;
            for seg in segments {
                let (iy, iz) = (seg.start[1] + offset(1, y), seg.start[2] + offset(2, z));
                let inside = iy >= 0 && iy < s.input[1] as isize && iz >= 0 && iz < s.input[2] as isize;
                if !inside {
                    for step in rows.chunks_exact_mut(at.width) {
                        step[seg.from..seg.to].fill(0.0);
                    }
                    continue;
                }
                let line =
                    seg.image.wrapping_add(channel * self.nb[3] + iz as usize * self.nb[2] + iy as usize * self.nb[1]);
                // The same row of a channel further on: channels lie too far apart for the machine to foresee it.
                let ahead = line.wrapping_add(2 * self.nb[3]);
                for at in (0..(seg.to - seg.from) * self.nb[0] * s.stride[0]).step_by(64) {
                    prefetch(ahead.wrapping_offset(seg.start[0] * self.nb[0] as isize).wrapping_add(at));
                }
                for (i, step) in rows.chunks_exact_mut(at.width).enumerate() {
                    self.fill(line, seg.start[0] + offset(0, x + i), &mut step[seg.from..seg.to]);
                }
            }
            if at.rows < at.width {
                for step in rows.chunks_exact_mut(at.width) {
                    step[at.rows..].fill(0.0);
                }
            }
            k += steps;
            x = 0;
            y += 1;
            if y == kh {
                (y, z) = (0, z + 1);
                if z == kd {
                    (z, channel) = (0, channel + 1);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
    fn pack_avx512(&self, at: &Panel, panel: &mut [f32]) {
        self.pack_body(at, panel);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn pack_avx2(&self, at: &Panel, panel: &mut [f32]) {
        self.pack_body(at, panel);
    }
}

/// Short copies, of which most are as long as a panel is wide.
#[inline(always)]
pub(crate) fn copy(dst: &mut [f32], src: &[f32]) {
    if let (Ok(d), Ok(s)) = (<&mut [f32; 32]>::try_from(&mut *dst), <&[f32; 32]>::try_from(src)) {
        *d = *s;
        return;
    }
    let (d8, d1) = dst.as_chunks_mut::<8>();
    let (s8, s1) = src.as_chunks::<8>();
    for (d, s) in d8.iter_mut().zip(s8) {
        *d = *s;
    }
    for (d, s) in d1.iter_mut().zip(s1) {
        *d = *s;
    }
}

/// Positions of a panel that lie in one row of the output.
#[derive(Clone, Copy)]
struct Segment {
    /// Entries of the panel.
    from: usize,
    to: usize,
    /// Input position of kernel element 0 for the first; negative in the padding.
    start: [isize; 3],
    image: *const u8,
}

impl Default for Segment {
    fn default() -> Self {
        Segment { from: 0, to: 0, start: [0; 3], image: core::ptr::null() }
    }
}

impl Operand for Im2col {
    fn pack(&self, at: &Panel, panel: &mut [f32]) {
        assert!(at.width <= 32 && panel.len() == at.kc * at.width);
        match at.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the set in use is one of this machine.
            Isa::Avx512 => unsafe { self.pack_avx512(at, panel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2 => unsafe { self.pack_avx2(at, panel) },
            _ => self.pack_body(at, panel),
        }
        if self.via_f16 {
            round_to_f16(panel);
        }
    }
}
