//! Shape rules of pooling.

use super::spec::{require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;

/// Kernel, stride and padding along one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Elements of a window.
    pub k: i32,
    /// Elements from one window to the next.
    pub s: i32,
    /// Elements left out on either side; halves count in the number of windows.
    pub p: f32,
}

fn count(w: Window, n: i64, a: &ggml_tensor) -> Result<i64, Error> {
    let Window { k, s, p } = w;
    require!(k > 0 && s > 0, "kernel {k} and stride {s} must be positive");
    require!(p.is_finite(), "padding {p} must be a number");
    // f32 throughout, as the sizes of existing graphs are counted
    let count = ((n as f32 + 2.0 * p - k as f32) / s as f32 + 1.0) as i64;
    require!(count > 0, "{} is too small for a window of {k}", show("src0", a));
    Ok(count)
}

fn known(op: ggml_op_pool) -> Result<(), Error> {
    require!((0..GGML_OP_POOL_COUNT.0).contains(&op.0), "there is no pooling {}", op.0);
    Ok(())
}

/// POOL_1D: f32 [windows, ne1, ne2, ne3].
pub fn pool_1d(a: &ggml_tensor, op: ggml_op_pool, k: i32, s: i32, p: i32) -> Result<NodeSpec, Error> {
    known(op)?;
    let n = count(Window { k, s, p: p as f32 }, a.ne[0], a)?;
    Ok(NodeSpec::new(GGML_OP_POOL_1D, GGML_TYPE_F32, [n, a.ne[1], a.ne[2], a.ne[3]]).params([op.0, k, s, p]))
}

/// POOL_2D: f32 [windows, windows, ne2, ne3]; paddings are kept as whole numbers.
pub fn pool_2d(a: &ggml_tensor, op: ggml_op_pool, x: Window, y: Window) -> Result<NodeSpec, Error> {
    known(op)?;
    let ne = [count(x, a.ne[0], a)?, count(y, a.ne[1], a)?, a.ne[2], a.ne[3]];
    Ok(NodeSpec::new(GGML_OP_POOL_2D, GGML_TYPE_F32, ne).params([op.0, x.k, y.k, x.s, y.s, x.p as i32, y.p as i32]))
}

/// POOL_2D_BACK: gradient `grad` of the windows of `of` back to it: f32. A padding may be given with the fraction cut off, as a node
/// keeps it.
pub fn pool_2d_back(
    grad: &ggml_tensor,
    of: &ggml_tensor,
    op: ggml_op_pool,
    x: Window,
    y: Window,
) -> Result<NodeSpec, Error> {
    known(op)?;
    for (i, w) in [x, y].into_iter().enumerate() {
        let windows = count(w, of.ne[i], of)?;
        // what the forward node counted with, where only the whole part of it is known
        let cut = if w.p.fract() == 0.0 { 0.99f32.copysign(w.p) } else { 0.0 };
        let others = count(Window { p: w.p + cut, ..w }, of.ne[i], of).unwrap_or(windows);
        require!(
            (windows.min(others)..=windows.max(others)).contains(&grad.ne[i]),
            "{}: ne[{i}] must be the {windows} windows of {}",
            show("gradient", grad),
            show("source", of)
        );
    }
    require!(
        grad.ne[2..] == of.ne[2..],
        "{} and {} must be equal in dimensions 2 and 3",
        show("gradient", grad),
        show("source", of)
    );
    Ok(NodeSpec::new(GGML_OP_POOL_2D_BACK, GGML_TYPE_F32, of.ne)
        .params([op.0, x.k, y.k, x.s, y.s, x.p as i32, y.p as i32]))
}
