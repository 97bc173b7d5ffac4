//! The two inputs of a product: plain matrices in strided memory, or anything that can fill panels.

use crate::conv::copy;
use crate::isa::Isa;
use crate::kernel::transpose::TransposeArgs;
use crate::kernel::{Float, Kernels};
use ggml_oxide_types::{kernels, Type};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// How kernels read elements of `ty` directly; None for formats that are decoded first.
pub(crate) fn float(ty: Type) -> Option<Float> {
    match ty {
        Type::F32 => Some(Float::F32),
        Type::F16 => Some(Float::F16),
        Type::BF16 => Some(Float::BF16),
        _ => None,
    }
}

/// Whether this crate multiplies with elements of `ty`.
pub fn is_supported(ty: Type) -> bool {
    float(ty).is_some() || kernels(ty).decode.is_some()
}

/// Which part of an operand goes into one panel. Only a running product makes one, so `isa` is a set of this machine.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// Batch indices of the operand (already divided by its broadcast ratio).
    pub i2: usize,
    /// See `i2`.
    pub i3: usize,
    /// First row.
    pub row: usize,
    /// Rows that exist, 1 to `width`.
    pub rows: usize,
    /// First step of k. A multiple of 256.
    pub k: usize,
    /// Steps of k, 1 to 256.
    pub kc: usize,
    /// Entries per step in the panel, at most 32.
    pub width: usize,
    /// Instruction set in use.
    pub isa: Isa,
}

/// One side of a product: rows of length k, readable in panels. A convolution implements it over its image, so that
/// no im2col buffer exists.
pub trait Operand: Sync {
    /// Writes `panel[s * width + r] = element (row + r, k + s)` for `s < kc`, `r < rows`, and 0 for `rows <= r < width`.
    /// `panel.len() == kc * width`. It is called from many threads at once, possibly more than once for one panel.
    fn pack(&self, at: &Panel, panel: &mut [f32]);
}

/// Rows of elements in memory with any strides.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    pub(crate) data: *const u8,
    pub(crate) ty: Type,
    /// Bytes between elements (blocks, for quantised formats) of a row.
    pub(crate) nb0: usize,
    /// Bytes between rows and between the two batch dimensions.
    pub(crate) nb: [usize; 3],
    pub(crate) via_f16: bool,
}

// SAFETY: the memory is only read, and the creator vouched that it stays valid and unwritten while in use.
unsafe impl Sync for Matrix {}
// SAFETY: as above; the pointer is not tied to a thread.
unsafe impl Send for Matrix {}

impl Matrix {
    /// A matrix at `data`: element (k, row, i2, i3) is at `k * nb[0] + row * nb[1] + i2 * nb[2] + i3 * nb[3]` bytes, with
    /// k counted in blocks for quantised formats. A stride of 0 repeats.
    ///
    /// # Safety
    /// For as long as a `Gemm` over this matrix runs, every element that its shape reaches is readable, aligned to the
    /// element size for plain formats and to 2 bytes for block formats, and nobody writes it.
    pub unsafe fn new(data: *const u8, ty: Type, nb: [usize; 4]) -> Self {
        Matrix { data, ty, nb0: nb[0], nb: [nb[1], nb[2], nb[3]], via_f16: false }
    }

    /// Rounds every element to f16 on the way in, as if it had been stored in an f16 buffer.
    pub fn rounded_to_f16(mut self) -> Self {
        self.via_f16 = true;
        self
    }

    /// Whether the elements of a row follow each other.
    pub(crate) fn dense_rows(&self) -> bool {
        self.nb0 == self.ty.block_bytes()
    }

    /// Whether a row is a slice of f32 as it is.
    pub(crate) fn is_plain_f32(&self) -> bool {
        self.ty == Type::F32 && self.dense_rows() && !self.via_f16
    }

    /// Address of the block that holds element `k` of a row.
    pub(crate) fn at(&self, row: usize, k: usize, i2: usize, i3: usize) -> *const u8 {
        self.data
            .wrapping_add(row * self.nb[0] + i2 * self.nb[1] + i3 * self.nb[2] + k / self.ty.block_size() * self.nb0)
    }

    /// Reads elements `k .. k + out.len()` of a row as f32. `k` starts a block.
    pub(crate) fn read_row(&self, row: usize, k: usize, i2: usize, i3: usize, out: &mut [f32]) {
        let src = self.at(row, k, i2, i3);
        if float(self.ty).is_none() {
            // SAFETY: the creator of the matrix vouched for the row.
            unsafe { read_blocks(self.ty, src, self.nb0, out) };
        } else {
            for (i, o) in out.iter_mut().enumerate() {
                // SAFETY: as above.
                *o = unsafe { read_float(self.ty, src.wrapping_add(i * self.nb0)) };
            }
        }
        if self.via_f16 {
            round_to_f16(out);
        }
    }
}

/// Decodes `out.len()` values from blocks `nb0` bytes apart.
///
/// # Safety
/// `src` holds the blocks.
unsafe fn read_blocks(ty: Type, src: *const u8, nb0: usize, out: &mut [f32]) {
    let Some(decode) = kernels(ty).decode else {
        unreachable!("formats without a decoder are refused when a product is prepared");
    };
    let (block, bytes) = (ty.block_size(), ty.block_bytes());
    if nb0 == bytes {
        // SAFETY: the caller vouches for the blocks, which follow each other.
        decode(unsafe { core::slice::from_raw_parts(src, out.len() / block * bytes) }, out);
        return;
    }
    for (i, o) in out.chunks_exact_mut(block).enumerate() {
        // SAFETY: the caller vouches for each block.
        decode(unsafe { core::slice::from_raw_parts(src.wrapping_add(i * nb0), bytes) }, o);
    }
}

pub(crate) unsafe fn read_float(ty: Type, p: *const u8) -> f32 {
    // SAFETY: the caller vouches for one readable element at p.
    unsafe {
        match ty {
            Type::F16 => f16::from_bits(p.cast::<u16>().read()).to_f32(),
            Type::BF16 => bf16::from_bits(p.cast::<u16>().read()).to_f32(),
            _ => p.cast::<f32>().read(),
        }
    }
}

pub(crate) fn round_to_f16(v: &mut [f32]) {
    // By slices: the machine's conversion is looked up once for each.
    let mut narrow = [f16::ZERO; 256];
    for part in v.chunks_mut(narrow.len()) {
        let narrow = &mut narrow[..part.len()];
        narrow.convert_from_f32_slice(part);
        narrow.convert_to_f32_slice(part);
    }
}

impl Operand for Matrix {
    fn pack(&self, at: &Panel, panel: &mut [f32]) {
        let (rows, kc, width) = (at.rows, at.kc, at.width);
        assert!(rows <= width && kc <= crate::kernel::KC && panel.len() == kc * width);
        let kernels = Kernels::of(at.isa);
        let src = self.at(at.row, at.k, at.i2, at.i3);
        match float(self.ty) {
            Some(float) if self.dense_rows() => {
                let args =
                    TransposeArgs { src, stride: self.nb[0], rows, kc, width, pitch: width, dst: panel.as_mut_ptr() };
                // SAFETY: the instruction set was found available; the creator vouched for the rows.
                unsafe { kernels.transpose[float as usize](&args) };
            }
            Some(Float::F32) if self.nb[0] == 4 => {
                // Columns instead of rows are contiguous: the panel is a copy.
                for (s, step) in panel.chunks_exact_mut(width).enumerate() {
                    let p = src.wrapping_add(s * self.nb0).cast::<f32>();
                    // SAFETY: the creator vouched for the elements.
                    copy(&mut step[..rows], unsafe { core::slice::from_raw_parts(p, rows) });
                    step[rows..].fill(0.0);
                }
            }
            Some(_) => {
                for (s, step) in panel.chunks_exact_mut(width).enumerate() {
                    let p = src.wrapping_add(s * self.nb0);
                    for (r, o) in step.iter_mut().enumerate() {
                        *o = if r < rows {
                            // SAFETY: the creator vouched for the element.
                            unsafe { read_float(self.ty, p.wrapping_add(r * self.nb[0])) }
                        } else {
                            0.0
                        };
                    }
                }
            }
            None => {
                // Decode a few rows into a buffer that stays in the first cache, then turn it.
                const ROWS: usize = 16;
                let mut buf = [0f32; ROWS * crate::kernel::KC];
                let mut r0 = 0;
                while r0 < width {
                    let part = (width - r0).min(ROWS);
                    let present = rows.saturating_sub(r0).min(part);
                    for (r, row) in buf.chunks_exact_mut(crate::kernel::KC).take(present).enumerate() {
                        let p = src.wrapping_add((r0 + r) * self.nb[0]);
                        // SAFETY: the creator vouched for the blocks of this row.
                        unsafe { read_blocks(self.ty, p, self.nb0, &mut row[..kc]) };
                    }
                    let args = TransposeArgs {
                        src: buf.as_ptr().cast(),
                        stride: crate::kernel::KC * 4,
                        rows: present,
                        kc,
                        width: part,
                        pitch: width,
                        dst: panel[r0..].as_mut_ptr(),
                    };
                    // SAFETY: buf holds `present` rows of kc values; the panel has kc steps of `width`.
                    unsafe { kernels.transpose[0](&args) };
                    r0 += part;
                }
            }
        }
        if self.via_f16 {
            round_to_f16(panel);
        }
    }
}
