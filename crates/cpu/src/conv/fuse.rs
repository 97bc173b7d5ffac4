//! im2col chains that run as one product.
//!
//! `ggml_conv_2d` and its kin build IM2COL -> RESHAPE -> MUL_MAT -> RESHAPE -> PERMUTE -> CONT, and models add a bias. The matrix of patches is kw * kh
//! times the image; when nothing else reads it, the patches are made while packing instead, and the product goes straight to
//! where the CONT would have put it.
//!
//! The planner of memory did not know: what is read or written earlier or later than the graph says may share memory with
//! something else. So addresses decide. The memory of the im2col node, which is free now, holds a rounded copy of the image with
//! its padding: then the image itself may be overwritten, and packing needs no rounding and no bounds.

use super::im2col::geometry;
use super::patches::{Geometry, Patches};
use super::round::round_to_f16;
use crate::entry::is_view_op;
use crate::matmul::{elem_of, precision, rule, workspace};
use crate::node::{src, View, FLAG_POISONED};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{Dst, Error, Gemm, Matrix, Precision, Shape, Side, Type};
use ggml_oxide_shape as shape;
use std::ops::Range;

/// A chain that was found, with all that running it needs.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    geometry: Geometry,
    image: *const u8,
    image_f16: bool,
    round: bool,
    /// Where the rounded copy goes; `None`: patches are read from the image.
    staged: Option<*mut u8>,
    kernel: *const u8,
    elem: Type,
    /// A value for each output channel.
    bias: Option<*const f32>,
    oc: usize,
    precision: Precision,
    /// Where the product goes.
    target: *mut u8,
    /// Where the result belongs, if that is elsewhere.
    copy_to: Option<*mut u8>,
    /// The layout of the result: images apart (CONT), or side by side in each channel (MUL_MAT).
    image_major: bool,
}

// SAFETY: the addresses are used by one run, whose threads agree on who writes where.
unsafe impl Sync for Chain {}
// SAFETY: as above.
unsafe impl Send for Chain {}

/// What was found: the chain, and the index of the last node that it covers.
pub(crate) struct Found {
    pub chain: Chain,
    pub last: usize,
}

/// Nodes after the im2col among which the rest of the chain is looked for.
const REACH: usize = 12;

struct Chaser<'a> {
    nodes: &'a [*mut ggml_tensor],
    uses: &'a dyn Fn(*const ggml_tensor) -> i32,
    /// Whether there is something to compute for a node, and we can.
    computes: fn(&ggml_tensor) -> bool,
}

impl<'a> Chaser<'a> {
    /// The only reader of `t`, as an index; `None` when there are others, or `t` is an output.
    fn only_reader(&self, t: &ggml_tensor, from: usize) -> Option<(usize, &'a ggml_tensor)> {
        if t.flags & GGML_TENSOR_FLAG_OUTPUT.0 != 0 || (self.uses)(t) != 1 {
            return None;
        }
        let end = self.nodes.len().min(from + REACH);
        for i in from..end {
            // SAFETY: the graph's nodes are tensors.
            let n = unsafe { self.nodes[i].as_ref() }?;
            if n.src.iter().any(|&s| std::ptr::eq(s, t)) {
                return (n.flags & FLAG_POISONED == 0 && n.flags & GGML_TENSOR_FLAG_COMPUTE.0 != 0).then_some((i, n));
            }
            if !is_view_op(n.op) {
                return None;
            }
        }
        None
    }

    /// As [`only_reader`](Chaser::only_reader), when the reader has the operator and reads `t` first.
    fn reader(&self, t: &ggml_tensor, from: usize, op: ggml_op) -> Option<(usize, &'a ggml_tensor)> {
        self.only_reader(t, from).filter(|(_, n)| n.op == op && std::ptr::eq(n.src[0], t))
    }
}

/// Looks for a chain that starts with the im2col at `index`, a node that can be computed.
pub(crate) fn find(
    nodes: &[*mut ggml_tensor],
    index: usize,
    uses: &dyn Fn(*const ggml_tensor) -> i32,
    computes: fn(&ggml_tensor) -> bool,
) -> Option<Found> {
    let chase = Chaser { nodes, uses, computes };
    // SAFETY: the graph's nodes are tensors.
    let im2col = unsafe { nodes[index].as_ref() }?;
    let g = geometry(im2col).ok()?;
    let (i, rows) = chase.reader(im2col, index + 1, GGML_OP_RESHAPE)?;
    let (i, mm) = chase.reader(rows, i + 1, GGML_OP_MUL_MAT)?;
    let (kernel, image) = (src(mm, 1).ok()?, src(im2col, 1).ok()?);
    let (k, m) = (g.k() as i64, (g.positions() * g.n) as i64);
    let plain = elem_of(kernel.r#type).filter(|e| !e.is_quantized())?;
    let sane = (chase.computes)(mm)
        && rows.ne == [k, m, 1, 1]
        && kernel.ne[2..] == [1, 1]
        && shape::is_contiguous(rows)
        && shape::is_contiguous(kernel)
        && shape::is_contiguous(mm)
        && !im2col.data.is_null()
        && !image.data.is_null()
        && !kernel.data.is_null()
        && !mm.data.is_null()
        && std::ptr::eq(rows.data, im2col.data)
        && !shape::is_empty(mm)
        && k > 0
        && (0..3).all(|d| g.pad[d] >= 0 && g.size[d] > 0);
    if !sane {
        return None;
    }
    let oc = kernel.ne[1] as usize;
    let mut end = tail(&chase, i, mm, &g, oc);
    let mut bias = None;
    if let Some((i, add, values)) = end.and_then(|(i, out)| biased(&chase, i, out, oc)) {
        (end, bias) = (Some((i, add)), Some(values));
    }
    let mut chain = Chain {
        geometry: g,
        image: image.data.cast(),
        image_f16: image.r#type == GGML_TYPE_F16,
        round: im2col.r#type == GGML_TYPE_F16,
        staged: None,
        kernel: kernel.data.cast(),
        elem: plain,
        bias: bias.map(|b| b.data.cast::<f32>().cast_const()),
        oc,
        precision: precision(mm),
        target: mm.data.cast(),
        copy_to: None,
        image_major: end.is_some(),
    };
    let out = end.map_or(mm, |(_, t)| t);
    place(&mut chain, im2col, image, [kernel, bias.unwrap_or(kernel)], mm, out)
        .then_some(Found { chain, last: end.map_or(i, |(i, _)| i) })
}

/// The CONT that puts images apart, if that is what follows.
fn tail<'a>(
    chase: &Chaser<'a>,
    i: usize,
    mm: &ggml_tensor,
    g: &Geometry,
    oc: usize,
) -> Option<(usize, &'a ggml_tensor)> {
    let (i, split) = chase.reader(mm, i + 1, GGML_OP_RESHAPE)?;
    let (i, swapped) = chase.reader(split, i + 1, GGML_OP_PERMUTE)?;
    let (i, out) = chase.reader(swapped, i + 1, GGML_OP_CONT)?;
    let plane = g.positions() as i64;
    // [.., .., n, oc] with the positions of one image in the first dimensions; its last two swapped.
    let split_ok = split.ne[0] * split.ne[1] == plane && split.ne[2..] == [g.n as i64, oc as i64];
    let swapped_ok = swapped.ne == [split.ne[0], split.ne[1], split.ne[3], split.ne[2]]
        && swapped.nb == [split.nb[0], split.nb[1], split.nb[3], split.nb[2]];
    let out_ok = out.r#type == GGML_TYPE_F32
        && shape::is_contiguous(out)
        && shape::nelements(out) == shape::nelements(mm)
        && out.ne == swapped.ne
        && (chase.computes)(out)
        && !out.data.is_null();
    let same_memory = std::ptr::eq(split.data, mm.data) && std::ptr::eq(swapped.data, mm.data);
    (split_ok && swapped_ok && out_ok && same_memory && shape::is_contiguous(split)).then_some((i, out))
}

/// The ADD of one value for each output channel, if that is what follows; with those values.
fn biased<'a>(
    chase: &Chaser<'a>,
    i: usize,
    out: &ggml_tensor,
    oc: usize,
) -> Option<(usize, &'a ggml_tensor, &'a ggml_tensor)> {
    let (i, add) = chase.reader(out, i + 1, GGML_OP_ADD)?;
    // SAFETY: a source is NULL or a tensor that lives as long as the graph.
    let values = unsafe { add.src[1].as_ref() }?;
    let values_ok = values.r#type == GGML_TYPE_F32
        && values.ne == [1, 1, oc as i64, 1]
        && (values.nb[2] == 4 || oc == 1)
        && (values.data as usize).is_multiple_of(4)
        && !values.data.is_null();
    let add_ok = add.r#type == GGML_TYPE_F32
        && add.ne == out.ne
        && shape::is_contiguous(add)
        && (chase.computes)(add)
        && !add.data.is_null();
    (values_ok && add_ok).then_some((i, add, values))
}

fn bytes(t: &ggml_tensor) -> Range<usize> {
    span(t.data.cast(), shape::nbytes(t))
}

fn span(data: *const u8, len: usize) -> Range<usize> {
    data as usize..(data as usize).saturating_add(len)
}

fn apart(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// Decides where the copy of the image and the product go. False: nowhere is safe.
fn place(
    c: &mut Chain,
    im2col: &ggml_tensor,
    image: &ggml_tensor,
    weights: [&ggml_tensor; 2],
    mm: &ggml_tensor,
    out: &ggml_tensor,
) -> bool {
    let (room, weights, image) = (bytes(im2col), weights.map(bytes), bytes(image));
    let clear_of_weights = |r: &Range<usize>| weights.iter().all(|w| apart(r, w));
    // The im2col reads the image and writes its own memory in one node: apart, or the graph is wrong.
    if !apart(&room, &image) || !clear_of_weights(&room) {
        return false;
    }
    let mut choose = |reads: &Range<usize>| {
        let free = |t: &ggml_tensor| apart(&bytes(t), reads) && clear_of_weights(&bytes(t));
        if free(out) {
            (c.target, c.copy_to) = (out.data.cast(), None);
            true
        } else if free(mm) && apart(&bytes(mm), &bytes(out)) {
            (c.target, c.copy_to) = (mm.data.cast(), Some(out.data.cast()));
            true
        } else {
            false
        }
    };
    // A copy pays where every value goes into several patches.
    let len = staged_bytes(&c.geometry).filter(|_| c.geometry.kernel != [1, 1, 1]);
    if let Some(len) = len.filter(|len| len + 64 <= room.len()) {
        let low = room.start.next_multiple_of(64);
        let high = (room.end - len) / 64 * 64;
        for start in [low, high] {
            if choose(&(start..start + len)) {
                c.staged = Some(im2col.data.cast::<u8>().wrapping_add(start - room.start));
                return true;
            }
        }
    }
    choose(&image)
}

/// Size of the image with its padding, as far as patches reach.
fn staged_size(g: &Geometry) -> [usize; 3] {
    let d = |d: usize| (g.out[d] - 1) as i64 * g.stride[d] + (g.kernel[d] - 1) as i64 * g.dilation[d] + 1;
    [d(0) as usize, d(1) as usize, d(2) as usize]
}

fn staged_bytes(g: &Geometry) -> Option<usize> {
    let s = staged_size(g);
    [s[0], s[1], s[2], g.channels, g.n].iter().try_fold(4usize, |a, &b| a.checked_mul(b))
}

/// The geometry of the copy: nothing lies outside any more.
fn staged_geometry(g: &Geometry) -> Geometry {
    let size = staged_size(g);
    let plane = size[0] * size[1] * 4;
    Geometry {
        size,
        pad: [0; 3],
        nb: [4, size[0] * 4, plane],
        nb_channel: plane * size[2],
        nb_image: plane * size[2] * g.channels,
        ..*g
    }
}

impl Chain {
    fn with_gemm<R>(&self, f: impl FnOnce(&Gemm) -> R) -> Result<R, Error> {
        let g = &self.geometry;
        // SAFETY: the image, or its copy once the team has made it, is not written while the product runs: `place` saw to it.
        let patches = unsafe {
            match self.staged {
                Some(copy) => Patches::new(staged_geometry(g), copy, false, false),
                None => Patches::new(*g, self.image, self.image_f16, self.round),
            }
        };
        let patches = patches.operand().ok_or(Error::TooLarge)?;
        let (k, m, size) = (g.k(), g.positions(), self.elem.block_bytes());
        // SAFETY: the kernel is contiguous rows of k, read again for each image, and apart from the target.
        let kernels = unsafe { Matrix::new(self.kernel, self.elem, [size, k * size, 0, 0]) };
        let (channel, image) = if self.image_major { (m * 4, m * self.oc * 4) } else { (m * g.n * 4, m * 4) };
        // SAFETY: the target has room for the whole result, contiguous; `place` chose it.
        let dst = unsafe { Dst::new(self.target.cast(), [channel, image, 0]) }?;
        let shape = Shape { m, n: self.oc, k, batch: [g.n, 1], ratio: [1, 1] };
        let product = Gemm::new(shape, Side::Custom(&patches), Side::Matrix(kernels), dst, self.precision)?;
        Ok(f(&match self.bias {
            // SAFETY: a value for each output channel, apart from everything that the chain writes.
            Some(bias) => unsafe { product.with_bias(bias) }?,
            None => product,
        }))
    }

    /// Bytes of scratch memory for `nth` threads.
    pub fn work(&self, nth: usize) -> usize {
        self.with_gemm(|g| g.workspace_size(nth)).unwrap_or(usize::MAX)
    }

    /// Computes the chain; every thread of the team calls it.
    pub fn run(&self, team: &Team) {
        if let Some(copy) = self.staged {
            self.stage(team, copy);
            if !team.new_job() {
                return;
            }
        }
        let done = self.with_gemm(|g| g.run(team, workspace(team, 0)));
        if let Err(e) | Ok(Err(e)) = done {
            team.fail(rule(e));
        }
        if let Some(out) = self.copy_to {
            if !team.sync() {
                return;
            }
            let part = team.range(self.geometry.positions() * self.geometry.n * self.oc);
            let (from, len) = (part.start * 4, part.len() * 4);
            // SAFETY: target and result are apart and have the same size; the product is complete since the barrier.
            unsafe { std::ptr::copy_nonoverlapping(self.target.add(from), out.add(from), len) };
        }
    }

    /// Copies the image with its padding, rounded.
    fn stage(&self, team: &Team, copy: *mut u8) {
        let (g, s) = (&self.geometry, staged_geometry(&self.geometry));
        let image = View {
            ty: if self.image_f16 { GGML_TYPE_F16 } else { GGML_TYPE_F32 },
            ne: [g.size[0], g.size[1], g.size[2], 0],
            nb: [g.nb[0], g.nb[1], g.nb[2], 0],
            data: self.image.cast_mut(),
        };
        let rows = s.size[1] * s.size[2];
        let one_row = Geometry { kernel: [1; 3], stride: [1; 3], out: [s.size[0], 1, 1], ..*g };
        for part in team.chunks(rows * g.channels * g.n, (8192 / s.size[0]).max(1)) {
            for row in part {
                let (y, rest) = (row % s.size[1], row / s.size[1]);
                let (z, rest) = (rest % s.size[2], rest / s.size[2]);
                let (c, i) = (rest % g.channels, rest / g.channels);
                let at = i * s.nb_image + c * s.nb_channel + z * s.nb[2] + y * s.nb[1];
                // SAFETY: a row of the copy, which this thread alone writes.
                let to = unsafe {
                    let p = copy.add(at).cast::<f32>();
                    p.write_bytes(0, s.size[0]);
                    std::slice::from_raw_parts_mut(p, s.size[0])
                };
                let (iy, iz) = (y as i64 - g.pad[1], z as i64 - g.pad[2]);
                if (0..g.size[1] as i64).contains(&iy) && (0..g.size[2] as i64).contains(&iz) {
                    let from = image.row([iy as usize, iz as usize, 0]).wrapping_add(i * g.nb_image + c * g.nb_channel);
                    // SAFETY: a row of the image, which nobody writes until the copy is made.
                    let row = unsafe { Patches::new(one_row, from, self.image_f16, false) };
                    row.read(from, -g.pad[0], 1, to);
                    if self.round && !self.image_f16 {
                        round_to_f16(to);
                    }
                }
            }
        }
    }

    /// Whether the chain is worth sharing out.
    pub fn is_small(&self) -> bool {
        let g = &self.geometry;
        (g.positions() * g.n).saturating_mul(self.oc).saturating_mul(g.k()) < 100_000
    }
}
