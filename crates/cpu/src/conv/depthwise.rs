//! Depthwise convolution: each channel has its own kernel. Channels may be the slowest or the fastest axis in memory.

use super::patches::Geometry;
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// `src[0]` [kw, kh, 1, channels], `src[1]` [w, h, channels, n] -> [ow, oh, channels, n].
pub static CONV_2D_DW: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };

fn supports(op: &ggml_tensor) -> Result<(), &'static str> {
    let (kernel, image) = (src(op, 0)?, src(op, 1)?);
    if kernel.r#type != GGML_TYPE_F32 && kernel.r#type != GGML_TYPE_F16 {
        return Err("the kernel must be f32 or f16");
    }
    if image.r#type != GGML_TYPE_F32 || op.r#type != GGML_TYPE_F32 {
        return Err("image and result must be f32");
    }
    if [kernel, image, op].iter().any(|t| t.nb.iter().any(|nb| nb % shape::type_size(t.r#type) != 0)) {
        return Err("a stride is no multiple of the element size");
    }
    let g = Geometry::conv_2d(op)?;
    if kernel.ne[2] != 1 || kernel.ne[3] != g.channels as i64 || op.ne[2] != g.channels as i64 {
        return Err("kernel, image and result must agree on channels");
    }
    Ok(())
}

/// Kernel value at x, y of channel c.
#[inline]
fn weight(kernel: &View, x: usize, y: usize, c: usize) -> f32 {
    let p = kernel.at(x, [y, 0, c]);
    // SAFETY: an element of the kernel, whose memory and alignment were checked.
    unsafe {
        if kernel.ty == GGML_TYPE_F16 {
            types::float::f16_to_f32(p.cast::<u16>().read())
        } else {
            p.cast::<f32>().read()
        }
    }
}

fn run(node: &Node, team: &Team) {
    let (kernel, image, out) = (node.arg(0), node.arg(1), node.out());
    let Ok(g) = Geometry::conv_2d(node.dst) else { return };
    let [ow, oh, channels, n] = out.ne;
    if image.nb[2] == 4 && out.nb[2] == 4 && channels > 1 {
        // Channels adjacent: one output position at a time, all channels.
        for part in team.chunks(oh * n, 1) {
            for row in part {
                let (y, i) = (row % oh, row / oh);
                for x in 0..ow {
                    // SAFETY: all channels of one position of the result, which this thread alone writes.
                    let acc = unsafe { std::slice::from_raw_parts_mut(out.at(x, [y, 0, i]).cast::<f32>(), channels) };
                    acc.fill(0.0);
                    for ky in 0..g.kernel[1] {
                        let Some(iy) = g.inside(1, y, ky) else { continue };
                        for kx in 0..g.kernel[0] {
                            let Some(ix) = g.inside(0, x, kx) else { continue };
                            // SAFETY: all channels of one position of the image.
                            let v =
                                unsafe { std::slice::from_raw_parts(image.at(ix, [iy, 0, i]).cast::<f32>(), channels) };
                            if kernel.ty == GGML_TYPE_F32 && kernel.nb[3] == 4 {
                                // SAFETY: the kernel's channels are adjacent too.
                                let w = unsafe {
                                    std::slice::from_raw_parts(kernel.at(kx, [ky, 0, 0]).cast::<f32>(), channels)
                                };
                                acc.iter_mut().zip(v).zip(w).for_each(|((a, v), w)| *a += v * w);
                            } else {
                                acc.iter_mut()
                                    .zip(v)
                                    .enumerate()
                                    .for_each(|(c, (a, v))| *a += v * weight(&kernel, kx, ky, c));
                            }
                        }
                    }
                }
            }
        }
        return;
    }
    for part in team.chunks(oh * channels * n, (4096 / ow.max(1)).max(1)) {
        for row in part {
            let [y, c, i] = out.unravel(row);
            plane_row(&g, &kernel, &image, &out, [y, c, i]);
        }
    }
}

/// One row of one channel of the result.
fn plane_row(g: &Geometry, kernel: &View, image: &View, out: &View, [y, c, i]: [usize; 3]) {
    let (ow, to) = (out.ne[0], out.row([y, c, i]));
    let at = |x: usize| to.wrapping_add(x * out.nb[0]).cast::<f32>();
    for x in 0..ow {
        // SAFETY: an element of this thread's row.
        unsafe { at(x).write(0.0) };
    }
    for ky in 0..g.kernel[1] {
        let Some(iy) = g.inside(1, y, ky) else { continue };
        let from = image.row([iy, c, i]);
        for kx in 0..g.kernel[0] {
            let w = weight(kernel, kx, ky, c);
            // Output positions whose input position lies in the row.
            let (ix, s) = (g.input(0, 0, kx), g.stride[0]);
            let first = if ix >= 0 { 0 } else { (-ix + s - 1) / s } as usize;
            let end = if ix >= g.size[0] as i64 { 0 } else { (g.size[0] as i64 - ix + s - 1) / s } as usize;
            let (first, end) = (first.min(ow), end.min(ow));
            if first >= end {
                continue;
            }
            let start = (ix + first as i64 * s) as usize;
            if s == 1 && image.nb[0] == 4 && out.nb[0] == 4 {
                // SAFETY: both ranges lie inside their rows; the result's is this thread's alone.
                let (v, acc) = unsafe {
                    (
                        std::slice::from_raw_parts(from.cast::<f32>().add(start), end - first),
                        std::slice::from_raw_parts_mut(at(first), end - first),
                    )
                };
                acc.iter_mut().zip(v).for_each(|(a, v)| *a += v * w);
            } else {
                for x in first..end {
                    let p = from.wrapping_add((start + (x - first) * s as usize) * image.nb[0]);
                    // SAFETY: as above, one element each.
                    unsafe { *at(x) += p.cast::<f32>().read() * w };
                }
            }
        }
    }
}
