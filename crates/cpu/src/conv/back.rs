//! Gradients back through windows: of im2col and of pooling in two dimensions.
//!
//! f32 results with packed rows; sources in any layout, gradients f32, f16 or bf16.

use super::pooling::{inside, value};
use crate::entry::{no_work, tasks_by_larger, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types::float::{bf16_to_f32, f16_to_f32};

/// Gradient of patches back to the image; `src[1]` only gives the kernel's size.
pub static IM2COL_BACK: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_larger, run };
/// Gradient of POOL_2D back to its source, which is `src[1]`. Of equal elements of a window, the first is its largest.
pub static POOL_2D_BACK: OpEntry =
    OpEntry { supports: supports_pool, work: no_work, n_tasks: tasks_by_larger, run: run_pool };

type Rule = Result<(), &'static str>;

fn sources(op: &ggml_tensor) -> Result<[&ggml_tensor; 2], &'static str> {
    let grad = src(op, 0)?;
    if !matches!(grad.r#type, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16) {
        return Err("the gradient must be f32, f16 or bf16");
    }
    if op.r#type != GGML_TYPE_F32 || !shape::is_contiguous_rows(op) {
        return Err("the result must be f32 with packed rows");
    }
    for t in [op, grad, src(op, 1)?] {
        if t.nb.iter().any(|nb| nb % shape::type_size(t.r#type).max(1) != 0) {
            return Err("a stride is no multiple of the element size");
        }
        if t.ne.iter().any(|&n| n > i64::from(i32::MAX)) {
            return Err("a dimension is too large");
        }
    }
    Ok([grad, src(op, 1)?])
}

/// Taps, elements and windows along one dimension, and their stride, padding and dilation.
#[derive(Clone, Copy)]
struct Axis {
    taps: i64,
    n: i64,
    windows: i64,
    s: i64,
    p: i64,
    d: i64,
}

impl Axis {
    /// Windows that have element `x` under tap `tap`: one or none.
    fn window(&self, x: usize, tap: i64) -> Option<usize> {
        let at = x as i64 + self.p - tap * self.d;
        let window = at / self.s;
        (at >= 0 && at % self.s == 0 && window < self.windows).then_some(window as usize)
    }

    /// Windows whose tap `tap` lies on an element, and the element of the first of them.
    fn windows(&self, tap: i64) -> (std::ops::Range<usize>, usize) {
        // window w lies on element w * s + first
        let first = tap * self.d - self.p;
        let from = (-first).max(0).div_euclid(self.s) + i64::from((-first).max(0) % self.s != 0);
        let to = (self.n - first).max(0);
        let to = (to / self.s + i64::from(to % self.s != 0)).min(self.windows).max(from);
        (from as usize..to as usize, (from * self.s + first).max(0) as usize)
    }
}

/// What lies where, for one dimension of the image or two.
struct Geometry {
    x: Axis,
    y: Axis,
    channels: usize,
    images: usize,
    /// Strides of rows, channels and images of the result.
    out: [usize; 3],
    /// Strides of windows along x and y, and of images, of the gradient.
    grad: [usize; 3],
}

fn geometry(op: &ggml_tensor, grad: &ggml_tensor, kernel: &ggml_tensor) -> Geometry {
    let [s0, s1, p0, p1, d0, d1] = std::array::from_fn(|i| i64::from(op.op_params[i]));
    let x = Axis { taps: kernel.ne[0], n: op.ne[0], windows: grad.ne[1], s: s0, p: p0, d: d0 };
    let (g, o) = (grad.nb, op.nb);
    let size = |n: i64| n.max(0) as usize;
    if op.op_params[6] == 1 {
        let y = Axis { taps: kernel.ne[1], n: op.ne[1], windows: grad.ne[2], s: s1, p: p1, d: d1 };
        let (channels, images) = (size(op.ne[2]), size(op.ne[3]));
        Geometry { x, y, channels, images, out: [o[1], o[2], o[3]], grad: [g[1], g[2], g[3]] }
    } else {
        let y = Axis { taps: 1, n: 1, windows: 1, s: 1, p: 0, d: 1 };
        Geometry { x, y, channels: size(op.ne[1]), images: size(op.ne[2]), out: [0, o[1], o[2]], grad: [g[1], 0, g[2]] }
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let [grad, kernel] = sources(op)?;
    let two = op.op_params[6] == 1;
    if op.op_params[0] < 1 || op.op_params[4] < 1 || (two && (op.op_params[1] < 1 || op.op_params[5] < 1)) {
        return Err("strides and dilations must be positive");
    }
    let g = geometry(op, grad, kernel);
    let channels = if two { kernel.ne[2] } else { kernel.ne[1] };
    if channels != g.channels as i64 || (!two && op.ne[3] != 1) {
        return Err("kernel and result must agree on the channels");
    }
    let row = g.x.taps.checked_mul(g.y.taps).and_then(|taps| taps.checked_mul(channels));
    let higher = if two { [grad.ne[3], op.ne[3]] } else { [grad.ne[2], op.ne[2]] };
    if row != Some(grad.ne[0]) || higher[0] != higher[1] || (!two && grad.ne[3] != 1) {
        return Err("the gradient must have the shape of the patches");
    }
    for (axis, used) in [(g.x, true), (g.y, two)] {
        let count = axis.n + 2 * axis.p - axis.d * (axis.taps - 1) - 1;
        // divided towards zero, as the shape of the patches is
        if used && count / axis.s + 1 != axis.windows {
            return Err("the gradient must have the shape of the patches");
        }
    }
    Ok(())
}

/// Channels whose gradients of one window are read together.
const CHANNELS: usize = 8;

fn run(node: &Node, team: &Team) {
    let (out, grad) = (node.out(), node.arg(0));
    let (Some(g), Some(k)) = (node.src_opt(0), node.src_opt(1)) else { return };
    let geometry = geometry(node.dst, g, k);
    match grad.ty {
        GGML_TYPE_F16 => image_rows(&geometry, &out, &grad, team, f16_to_f32),
        GGML_TYPE_BF16 => image_rows(&geometry, &out, &grad, team, bf16_to_f32),
        _ => image_rows(&geometry, &out, &grad, team, |x: f32| x),
    }
}

/// Rows of the image, for some channels together: each element is the sum over the taps that lie on it, in their order.
fn image_rows<T: Copy>(g: &Geometry, out: &View, grad: &View, team: &Team, value: impl Fn(T) -> f32) {
    let (rows, blocks) = (g.y.n as usize, g.channels.div_ceil(CHANNELS));
    let (kw, kh) = (g.x.taps as usize, g.y.taps as usize);
    for task in team.range(rows * blocks * g.images) {
        let (y, block, image) = (task % rows, task / rows % blocks, task / rows / blocks);
        for c in block * CHANNELS..((block + 1) * CHANNELS).min(g.channels) {
            let row = out.data.wrapping_add(y * g.out[0] + c * g.out[1] + image * g.out[2]).cast::<f32>();
            // SAFETY: a row of the result, which this thread alone writes; it is packed.
            let row = unsafe {
                row.write_bytes(0, out.ne[0]);
                std::slice::from_raw_parts_mut(row, out.ne[0])
            };
            for ty in 0..kh {
                let Some(wy) = g.y.window(y, ty as i64) else { continue };
                for tx in 0..kw {
                    let (windows, first) = g.x.windows(tx as i64);
                    let tap = ((c * kh + ty) * kw + tx) * grad.nb[0] + wy * g.grad[1] + image * g.grad[2];
                    let at = grad.data.wrapping_add(tap);
                    for (w, x) in windows.zip((first..).step_by(g.x.s as usize)) {
                        // SAFETY: an element of the gradient, whose memory and alignment were checked.
                        row[x] += value(unsafe { at.wrapping_add(w * g.grad[0]).cast::<T>().read() });
                    }
                }
            }
        }
    }
}

fn supports_pool(op: &ggml_tensor) -> Rule {
    let [grad, of] = sources(op)?;
    if !matches!(of.r#type, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16) {
        return Err("the source must be f32, f16 or bf16");
    }
    let p = &op.op_params;
    if ![GGML_OP_POOL_MAX.0, GGML_OP_POOL_AVG.0].contains(&p[0]) {
        return Err("the kind of pooling is unknown");
    }
    if p[1..5].iter().any(|&n| n < 1) {
        return Err("windows and strides must be positive");
    }
    if op.ne != of.ne || grad.ne[2..] != of.ne[2..] {
        return Err("gradient, source and result must agree on the dimensions that are not pooled");
    }
    Ok(())
}

fn run_pool(node: &Node, team: &Team) {
    let (out, grad, of) = (node.out(), node.arg(0), node.arg(1));
    let p = node.dst.op_params.map(i64::from);
    let (w0, w1) = ([p[1], p[3], p[5]], [p[2], p[4], p[6]]);
    let max = node.i32(0) == GGML_OP_POOL_MAX.0;
    let share = 1.0 / (w0[0] * w1[0]) as f32;
    for plane in team.range(out.ne[2] * out.ne[3]) {
        let (i2, i3) = (plane % out.ne[2], plane / out.ne[2]);
        for y in 0..out.ne[1] {
            // SAFETY: a row of the result, whose plane this thread alone writes; it is packed.
            unsafe { out.row([y, i2, i3]).write_bytes(0, 4 * out.ne[0]) };
        }
        let element = |v: &View, row: *mut u8, x: usize| {
            // SAFETY: an element of a source, whose memory and alignment were checked.
            unsafe { value(v.ty, row.wrapping_add(x * v.nb[0])) }
        };
        for oy in 0..grad.ne[1] {
            let (ys, row) = (inside(w1, oy, out.ne[1]), grad.row([oy, i2, i3]));
            for ox in 0..grad.ne[0] {
                let (g, xs) = (element(&grad, row, ox), inside(w0, ox, out.ne[0]));
                // of the largest: what lies outside counts as the least number, NaN is taken for the largest
                let (mut best, mut place) = (f32::MIN, std::ptr::null_mut());
                for y in ys.clone() {
                    let (from, to) = (of.row([y, i2, i3]), out.row([y, i2, i3]).cast::<f32>());
                    for x in xs.clone() {
                        let to = to.wrapping_add(x);
                        if !max {
                            // SAFETY: as above: an element of this thread's plane.
                            unsafe { *to += g * share };
                            continue;
                        }
                        let v = element(&of, from, x);
                        // no jumps: which element is the largest cannot be foreseen
                        let take = (v > best) | (v.is_nan() & !best.is_nan());
                        best = if take { v } else { best };
                        place = if take { to } else { place };
                    }
                }
                if !place.is_null() {
                    // SAFETY: as above.
                    unsafe { *place += g };
                }
            }
        }
    }
}
