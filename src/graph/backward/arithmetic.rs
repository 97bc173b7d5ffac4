//! Gradients of arithmetic. `y`: the result, `g`: its gradient.

use super::frame::{Flow, Frame, Node};
use crate::error::Error;
use crate::tensor::backward;
use ggml_oxide_abi::*;

type Answer = Result<Flow, Error>;

pub fn dup(_: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(n.grad))
}

pub fn add(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let src = n.src(i)?;
    Ok(Flow::Add(if i == 0 { n.grad } else { f.fold(n.grad, src)? }))
}

pub fn add1(f: &mut Frame, n: &Node, i: usize) -> Answer {
    Ok(Flow::Add(if i == 0 { n.grad } else { f.sum(n.grad)? }))
}

/// The rows of `b` by `ids` are added to [n, used, tokens]: each gathers what it was added to.
pub fn add_id(f: &mut Frame, n: &Node, i: usize) -> Answer {
    if i == 0 {
        return Ok(Flow::Add(n.grad));
    }
    let (b, ids, g) = (n.src(1)?, n.src(2)?, n.grad);
    let rows = g.ne[1].saturating_mul(g.ne[2]);
    let g = f.reshape(g, [g.ne[0], rows, 1, 1])?;
    let ids = f.reshape(ids, [rows, 1, 1, 1])?;
    Ok(Flow::Add(f.make(backward::get_rows(&g, &ids, &b), &[g, ids])?))
}

pub fn sub(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let src = n.src(i)?;
    Ok(if i == 0 { Flow::Add(n.grad) } else { Flow::Sub(f.fold(n.grad, src)?) })
}

pub fn mul(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let (a, b) = (n.src(0)?, n.src(1)?);
    if i == 0 {
        return Ok(Flow::Add(f.mul(n.grad, b)?));
    }
    let product = f.mul(n.grad, a)?;
    Ok(Flow::Add(f.fold(product, b)?))
}

/// By the denominator: `-g y / b`.
pub fn div(f: &mut Frame, n: &Node, i: usize) -> Answer {
    let b = n.src(1)?;
    if i == 0 {
        return Ok(Flow::Add(f.div(n.grad, b)?));
    }
    let product = f.mul(n.grad, n.value)?;
    let part = f.div(product, b)?;
    Ok(Flow::Sub(f.fold(part, b)?))
}

pub fn function(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (x, g) = (n.src(0)?, n.grad);
    Ok(match n.value.op {
        GGML_OP_SQR => {
            let t = f.mul(g, x)?;
            Flow::Add(f.scale(t, 2.0, 0.0)?)
        }
        GGML_OP_SQRT => {
            let t = f.div(g, n.value)?;
            Flow::Add(f.scale(t, 0.5, 0.0)?)
        }
        GGML_OP_LOG => Flow::Add(f.div(g, x)?),
        GGML_OP_SIN => {
            let t = f.function(GGML_OP_COS, x)?;
            Flow::Add(f.mul(g, t)?)
        }
        _ => {
            let t = f.function(GGML_OP_SIN, x)?;
            Flow::Sub(f.mul(g, t)?)
        }
    })
}

pub fn scale(f: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(f.scale(n.grad, n.f32(0), 0.0)?))
}

/// 1 strictly between the bounds, else 0.
pub fn clamp(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let x = n.src(0)?;
    let mut g = n.grad;
    for (sign, bound) in [(1.0, -n.f32(0)), (-1.0, n.f32(1))] {
        let x = f.f32(x)?;
        let inside = f.scale(x, sign, bound)?;
        let inside = f.unary(GGML_UNARY_OP_STEP, inside)?;
        g = f.mul(g, inside)?;
    }
    Ok(Flow::Add(g))
}

pub fn leaky_relu(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (x, slope) = (n.src(0)?, n.f32(0));
    let step = f.unary(GGML_UNARY_OP_STEP, x)?;
    let factor = f.scale(step, 1.0 - slope, slope)?;
    Ok(Flow::Add(f.mul(n.grad, factor)?))
}
