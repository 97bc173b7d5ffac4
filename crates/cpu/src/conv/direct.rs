//! Convolutions in one node, as a product of kernels and patches that are made while packing.

use super::patches::{Geometry, Patches};
use crate::entry::OpEntry;
use crate::matmul::{elem_of, rule, workspace};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_gemm::{Dst, Error, Gemm, Matrix, Precision, Shape, Side, Type};
use ggml_oxide_shape as shape;

/// `src[0]` [kw, kh, channels, out channels], `src[1]` [w, h, channels, n] -> [ow, oh, out channels, n].
pub static CONV_2D: OpEntry = OpEntry { supports, work, n_tasks, run };
/// `src[0]` [kw, kh, kd, channels * out channels], `src[1]` [w, h, d, channels * n] -> [ow, oh, od, out channels * n].
pub static CONV_3D: OpEntry = OpEntry { supports, work, n_tasks, run };

fn geometry(op: &ggml_tensor) -> Result<Geometry, &'static str> {
    if op.op == GGML_OP_CONV_3D {
        return Geometry::conv_3d(op);
    }
    let kernel = src(op, 0)?;
    let g = Geometry::conv_2d(op)?;
    if kernel.ne[2] != g.channels as i64 || kernel.ne[3] != op.ne[2] {
        return Err("kernel, image and result must agree on channels");
    }
    Ok(g)
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let (kernel, image) = (src(op, 0)?, src(op, 1)?);
    if elem_of(kernel.r#type).is_none_or(Type::is_quantized) || !shape::is_contiguous(kernel) {
        return Err("the kernel must be contiguous f32, f16 or bf16");
    }
    if image.r#type != GGML_TYPE_F32 || op.r#type != GGML_TYPE_F32 {
        return Err("image and result must be f32");
    }
    if image.nb.iter().any(|nb| nb % 4 != 0) {
        return Err("a stride is no multiple of the element size");
    }
    if !shape::is_contiguous(op) {
        return Err("the result must be contiguous");
    }
    let g = geometry(op)?;
    if g.pad.iter().any(|&p| p < 0) {
        return Err("padding must not be negative");
    }
    if g.k() == 0 {
        return Err("the kernel has no elements");
    }
    with_gemm(&Node { dst: op }, |_| ()).map_err(rule)
}

fn with_gemm<R>(node: &Node, f: impl FnOnce(&Gemm) -> R) -> Result<R, Error> {
    let (kernel, image, out) = (node.arg(0), node.arg(1), node.out());
    let g = geometry(node.dst).map_err(|_| Error::TooLarge)?;
    let (k, positions) = (g.k(), g.positions());
    let oc = (out.ne[2] * out.ne[3]).checked_div(g.n).unwrap_or(0);
    let oc = if node.dst.op == GGML_OP_CONV_3D { out.ne[3].checked_div(g.n).unwrap_or(0) } else { oc };
    let elem = elem_of(kernel.ty).unwrap_or(Type::F32);
    let size = elem.block_bytes();
    let plane = positions.checked_mul(4).ok_or(Error::TooLarge)?;
    let image_bytes = plane.checked_mul(oc).ok_or(Error::TooLarge)?;
    // SAFETY: the executor found the memory of the image; nobody writes it while the node runs.
    let patches = unsafe { Patches::new(g, image.data, false, false) }.operand().ok_or(Error::TooLarge)?;
    // SAFETY: as above for the kernel, whose rows of k are contiguous and are read again for each image.
    let kernels = unsafe { Matrix::new(kernel.data, elem, [size, k.saturating_mul(size), 0, 0]) };
    // SAFETY: the result is contiguous, so that each image's plane of a channel is `positions` adjacent values.
    let dst = unsafe { Dst::new(out.data.cast(), [plane, image_bytes, 0]) }?;
    let shape = Shape { m: positions, n: oc, k, batch: [g.n, 1], ratio: [1, 1] };
    Ok(f(&Gemm::new(shape, Side::Custom(&patches), Side::Matrix(kernels), dst, Precision::F32)?))
}

fn work(op: &ggml_tensor, nth: usize) -> usize {
    with_gemm(&Node { dst: op }, |g| g.workspace_size(nth)).unwrap_or(usize::MAX)
}

fn n_tasks(op: &ggml_tensor, nth: usize) -> usize {
    let k = geometry(op).map_or(0, |g| g.k()) as i64;
    if shape::nelements(op).saturating_mul(k) < 100_000 {
        1
    } else {
        nth
    }
}

fn run(node: &Node, team: &Team) {
    let done = with_gemm(node, |g| g.run(team, workspace(team, 0)));
    if let Err(e) | Ok(Err(e)) = done {
        team.fail(rule(e));
    }
}
