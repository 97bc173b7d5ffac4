//! The matrix of patches, written out.

use super::patches::{Geometry, Patches};
use super::round::to_f16;
use crate::node::{src, Node};
use crate::table::{tasks_by_size, OpEntry};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// Patches of a signal or an image; `src[0]` only gives the kernel's size.
pub static IM2COL: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };
/// Patches of a volume.
pub static IM2COL_3D: OpEntry = OpEntry { supports, work, n_tasks: tasks_by_size, run };

pub(super) fn geometry(op: &ggml_tensor) -> Result<Geometry, &'static str> {
    if op.op == GGML_OP_IM2COL {
        Geometry::im2col(op)
    } else {
        Geometry::im2col_3d(op)
    }
}

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let image = src(op, 1)?;
    let formats = [op.r#type, image.r#type];
    if !formats.iter().all(|&f| f == GGML_TYPE_F32 || f == GGML_TYPE_F16) {
        return Err("image and result must be f32 or f16");
    }
    if formats == [GGML_TYPE_F32, GGML_TYPE_F16] {
        return Err("an f16 image gives an f16 result");
    }
    if image.nb.iter().any(|nb| nb % shape::type_size(image.r#type) != 0) {
        return Err("a stride is no multiple of the element size");
    }
    if !shape::is_contiguous(op) {
        return Err("the result must be contiguous");
    }
    geometry(op).map(|_| ())
}

/// One patch in f32 for each thread.
fn work(op: &ggml_tensor, nth: usize) -> usize {
    (op.ne[0] as usize).saturating_mul(4).saturating_add(64).saturating_mul(nth)
}

fn run(node: &Node, team: &Team) {
    let (image, out) = (node.arg(1), node.out());
    let Ok(g) = geometry(node.dst) else { return };
    let (k, positions) = (g.k(), g.positions());
    // SAFETY: the executor found the image's memory; nobody writes it while the node runs.
    let patches = unsafe { Patches::new(g, image.data, image.ty == GGML_TYPE_F16, false) };
    let own = team.scratch().0.wrapping_add(team.ith() * (k * 4).next_multiple_of(64)).cast::<f32>();
    for part in team.chunks(positions * g.n, (16 * 1024 / k.max(1)).max(1)) {
        for row in part {
            let (image, o) = (row / positions, g.unravel(row % positions));
            if out.ty == GGML_TYPE_F32 {
                // SAFETY: row number `row` of the contiguous result, written by this thread only.
                let to = unsafe { std::slice::from_raw_parts_mut(out.data.cast::<f32>().add(row * k), k) };
                patches.patch(image, o, to);
            } else {
                // SAFETY: this thread's part of the scratch memory.
                let patch = unsafe {
                    own.write_bytes(0, k);
                    std::slice::from_raw_parts_mut(own, k)
                };
                patches.patch(image, o, patch);
                // SAFETY: as for f32.
                let to = unsafe { std::slice::from_raw_parts_mut(out.data.cast::<u16>().add(row * k), k) };
                to_f16(patch, to);
            }
        }
    }
}
