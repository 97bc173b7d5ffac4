//! Transposed convolutions: every input position adds its multiple of the kernel to the output.

use crate::entry::{all_tasks, no_work, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// `src[0]` [k, out channels, channels], `src[1]` [l, channels] -> [(l - 1) s + k, out channels]. Parameter 0: s.
pub static CONV_TRANSPOSE_1D: OpEntry = OpEntry { supports: supports_1d, work: no_work, n_tasks: all_tasks, run };
/// `src[0]` [kw, kh, out channels, channels], `src[1]` [w, h, channels, n] -> [(w - 1) s + kw, (h - 1) s + kh, out channels, n].
pub static CONV_TRANSPOSE_2D: OpEntry = OpEntry { supports: supports_2d, work: no_work, n_tasks: all_tasks, run };

fn formats(op: &ggml_tensor) -> Result<(), &'static str> {
    let (kernel, input) = (src(op, 0)?, src(op, 1)?);
    if kernel.r#type != GGML_TYPE_F32 && kernel.r#type != GGML_TYPE_F16 {
        return Err("the kernel must be f32 or f16");
    }
    if input.r#type != GGML_TYPE_F32 || op.r#type != GGML_TYPE_F32 || op.nb[0] != 4 {
        return Err("input and result must be f32, the result with adjacent elements in a row");
    }
    if [kernel, input, op].iter().any(|t| t.nb.iter().any(|nb| nb % shape::type_size(t.r#type) != 0)) {
        return Err("a stride is no multiple of the element size");
    }
    if op.op_params[0] < 1 {
        return Err("the stride must be positive");
    }
    Ok(())
}

/// Whether every input position's kernel lies inside `out`.
fn fits(input: i64, kernel: i64, stride: i32, out: i64) -> bool {
    input == 0 || (input - 1).checked_mul(stride.into()).and_then(|n| n.checked_add(kernel)).is_some_and(|n| n <= out)
}

fn supports_1d(op: &ggml_tensor) -> Result<(), &'static str> {
    formats(op)?;
    let (kernel, input) = (src(op, 0)?, src(op, 1)?);
    if op.op_params[1] != 0 || op.op_params[2] != 1 {
        return Err("padding must be 0 and dilation 1");
    }
    if kernel.ne[2] != input.ne[1] || kernel.ne[3] != 1 || input.ne[2] != 1 || input.ne[3] != 1 {
        return Err("kernel and input must have the same channels, the input two dimensions");
    }
    if op.ne[1..] != [kernel.ne[1], 1, 1] || !fits(input.ne[0], kernel.ne[0], op.op_params[0], op.ne[0]) {
        return Err("the result's shape is not that of the convolution");
    }
    Ok(())
}

fn supports_2d(op: &ggml_tensor) -> Result<(), &'static str> {
    formats(op)?;
    let (kernel, input) = (src(op, 0)?, src(op, 1)?);
    if kernel.ne[3] != input.ne[2] {
        return Err("kernel and input must have the same channels");
    }
    let inside = (0..2).all(|d| fits(input.ne[d], kernel.ne[d], op.op_params[0], op.ne[d]));
    if op.ne[2..] != [kernel.ne[2], input.ne[3]] || !inside {
        return Err("the result's shape is not that of the convolution");
    }
    Ok(())
}

fn run(node: &Node, team: &Team) {
    let (mut kernel, mut input, mut out) = (node.arg(0), node.arg(1), node.out());
    if node.dst.op == GGML_OP_CONV_TRANSPOSE_1D {
        // The same with height 1.
        let flat = |v: View, d: usize| View { ne: [v.ne[0], 1, v.ne[1], d], nb: [v.nb[0], 0, v.nb[1], v.nb[2]], ..v };
        (kernel, input, out) = (flat(kernel, kernel.ne[2]), flat(input, 1), flat(out, 1));
    }
    let s = node.i32(0) as usize;
    let [ow, oh, oc, n] = out.ne;
    for part in team.chunks(oc * n, 1) {
        for plane in part {
            let (c, i) = (plane % oc, plane / oc);
            for y in 0..oh {
                // SAFETY: a row of this thread's plane.
                unsafe { out.row([y, c, i]).write_bytes(0, ow * 4) };
            }
            for ic in 0..input.ne[2] {
                for ky in 0..kernel.ne[1] {
                    for iy in 0..input.ne[1] {
                        let from = input.row([iy, ic, i]);
                        let to = out.row([iy * s + ky, c, i]).cast::<f32>();
                        for kx in 0..kernel.ne[0] {
                            let w = weight(&kernel, kx, [ky, c, ic]);
                            for ix in 0..input.ne[0] {
                                // SAFETY: both inside their rows, as `fits` checked; the result's row is this thread's.
                                unsafe {
                                    let v = from.wrapping_add(ix * input.nb[0]).cast::<f32>().read();
                                    *to.add(ix * s + kx) += v * w;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline]
fn weight(kernel: &View, x: usize, i: [usize; 3]) -> f32 {
    let p = kernel.at(x, i);
    // SAFETY: an element of the kernel, whose memory and alignment were checked.
    unsafe {
        if kernel.ty == GGML_TYPE_F16 {
            types::float::f16_to_f32(p.cast::<u16>().read())
        } else {
            p.cast::<f32>().read()
        }
    }
}
