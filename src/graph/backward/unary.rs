//! Gradients of unary functions.

use super::frame::{Flow, Frame, Node, Tensor};
use crate::error::Error;
use crate::tensor::backward;
use ggml_oxide_abi::*;

pub fn rule(f: &mut Frame, n: &Node, _: usize) -> Result<Flow, Error> {
    let x = n.src(0)?;
    Ok(Flow::Add(through(f, ggml_unary_op(n.i32(0)), x, Some(n.value), n.grad)?))
}

/// Beyond this the sigmoid, the normal distribution and `tanh` are constant in f32, and powers of `x` do not overflow below it.
const FLAT: f32 = 100.0;

/// `g` times the derivative of `op` at `x`; `y`: its value there, if that was computed anyway.
pub fn through(f: &mut Frame, op: ggml_unary_op, x: Tensor, y: Option<Tensor>, g: Tensor) -> Result<Tensor, Error> {
    let y = |f: &mut Frame| match y {
        Some(y) => f.f32(y),
        None => f.unary(op, x),
    };
    let factor = match op {
        GGML_UNARY_OP_ABS => f.unary(GGML_UNARY_OP_SGN, x)?,
        GGML_UNARY_OP_NEG => return f.neg(g),
        GGML_UNARY_OP_RELU => f.unary(GGML_UNARY_OP_STEP, x)?,
        GGML_UNARY_OP_SILU => {
            let (g, x) = (f.plain(g)?, f.plain(x)?);
            return f.make(backward::silu(&g, &x), &[g, x]);
        }
        GGML_UNARY_OP_EXP => y(f)?,
        GGML_UNARY_OP_EXPM1 => f.unary(GGML_UNARY_OP_EXP, x)?,
        GGML_UNARY_OP_SOFTPLUS => f.unary(GGML_UNARY_OP_SIGMOID, x)?,
        // 1 - y^2
        GGML_UNARY_OP_TANH => {
            let y = y(f)?;
            let square = f.function(GGML_OP_SQR, y)?;
            f.scale(square, -1.0, 1.0)?
        }
        GGML_UNARY_OP_SIGMOID => {
            let y = y(f)?;
            sigmoid_slope(f, y)?
        }
        // e^x below 0, 1 above
        GGML_UNARY_OP_ELU => {
            let below = f.clamp(x, f32::NEG_INFINITY, 0.0)?;
            f.unary(GGML_UNARY_OP_EXP, below)?
        }
        GGML_UNARY_OP_HARDSIGMOID => hard_slope(f, x)?,
        // h + x h'
        GGML_UNARY_OP_HARDSWISH => {
            let h = f.unary(GGML_UNARY_OP_HARDSIGMOID, x)?;
            let slope = hard_slope(f, x)?;
            let rest = f.mul(slope, x)?;
            f.add(h, rest)?
        }
        GGML_UNARY_OP_GELU => gelu(f, x)?,
        GGML_UNARY_OP_GELU_QUICK => gelu_quick(f, x)?,
        _ => return Err(Error::argument("the function has no gradient")),
    };
    f.mul(g, factor)
}

/// `y (1 - y)`.
fn sigmoid_slope(f: &mut Frame, y: Tensor) -> Result<Tensor, Error> {
    let square = f.function(GGML_OP_SQR, y)?;
    f.sub(y, square)
}

/// 1/6 strictly between -3 and 3, else 0.
fn hard_slope(f: &mut Frame, x: Tensor) -> Result<Tensor, Error> {
    let x = f.f32(x)?;
    let mut inside = |sign| {
        let t = f.scale(x, sign, 3.0)?;
        f.unary(GGML_UNARY_OP_STEP, t)
    };
    let (above, below) = (inside(1.0)?, inside(-1.0)?);
    let both = f.mul(above, below)?;
    f.scale(both, 1.0 / 6.0, 0.0)
}

/// Of `x (1 + t) / 2`, `t = tanh(c x (1 + a x^2))`: `((1 + t) + x (1 - t^2) c (1 + 3 a x^2)) / 2`.
fn gelu(f: &mut Frame, x: Tensor) -> Result<Tensor, Error> {
    const A: f32 = 0.044715;
    let c = (2.0 / std::f32::consts::PI).sqrt();
    let x = f.clamp(x, -FLAT, FLAT)?;
    let square = f.function(GGML_OP_SQR, x)?;
    let inner = f.scale(square, c * A, c)?;
    let inner = f.mul(inner, x)?;
    let t = f.unary(GGML_UNARY_OP_TANH, inner)?;
    let slope = f.scale(square, 3.0 * c * A, c)?;
    let slope = f.mul(slope, x)?;
    let bell = f.function(GGML_OP_SQR, t)?;
    let bell = f.scale(bell, -1.0, 1.0)?;
    let rest = f.mul(slope, bell)?;
    let both = f.add(t, rest)?;
    f.scale(both, 0.5, 0.5)
}

/// Of `x s`, `s = sigmoid(k x)`: `s + k x s (1 - s)`.
fn gelu_quick(f: &mut Frame, x: Tensor) -> Result<Tensor, Error> {
    const K: f32 = 1.702;
    let x = f.clamp(x, -FLAT, FLAT)?;
    let scaled = f.scale(x, K, 0.0)?;
    let s = f.unary(GGML_UNARY_OP_SIGMOID, scaled)?;
    let slope = sigmoid_slope(f, s)?;
    let rest = f.mul(slope, scaled)?;
    f.add(s, rest)
}
