//! Gradients of normalisations, softmax and cross entropy. `x`: a row, `y`: the result, `g`: its gradient.

use super::frame::{Flow, Frame, Node, Tensor};
use super::rules;
use crate::error::Error;
use crate::tensor::{backward, product, train};
use ggml_oxide_abi::*;

type Answer = Result<Flow, Error>;

pub fn rms_norm(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (x, g) = (n.src(0)?, n.grad);
    let x = f.plain(x)?;
    Ok(Flow::Add(f.make(backward::rms_norm(&g, &x, n.f32(0)), &[g, x])?))
}

pub fn norm(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let x = n.src(0)?;
    Ok(Flow::Add(rows(f, x, n.value, n.grad, n.f32(0))?))
}

/// Of `y = (x - m) / s`, `s = sqrt(var + eps)`: `(g - mean(g) - y mean(g y)) / s`.
fn rows(f: &mut Frame, x: Tensor, y: Tensor, g: Tensor, eps: f32) -> Result<Tensor, Error> {
    let x = f.plain(x)?;
    let middle = f.mean(x)?;
    let centred = f.sub(x, middle)?;
    let square = f.function(GGML_OP_SQR, centred)?;
    let variance = f.mean(square)?;
    let variance = f.scale(variance, 1.0, eps)?;
    let s = f.function(GGML_OP_SQRT, variance)?;
    let gy = f.mul(g, y)?;
    let along = f.mean(gy)?;
    let along = f.mul(y, along)?;
    let level = f.mean(g)?;
    let rest = f.sub(g, level)?;
    let rest = f.sub(rest, along)?;
    f.div(rest, s)
}

/// As [`norm`], where a group of channels is one row.
pub fn group_norm(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (x, groups) = (n.src(0)?, i64::from(n.i32(0)));
    if groups <= 0 || x.ne[2] % groups != 0 {
        return Err(Error::argument(format!("{groups} groups of {} channels are not of one size", x.ne[2])));
    }
    let row = product(&[x.ne[0], x.ne[1], x.ne[2] / groups]);
    let ne = [row, groups, x.ne[3], 1];
    let (x, y, g) = (f.plain(x)?, f.plain(n.value)?, n.grad);
    let (x, y, g) = (f.reshape(x, ne)?, f.reshape(y, ne)?, f.reshape(g, ne)?);
    let dx = rows(f, x, y, g, n.f32(1))?;
    Ok(Flow::Add(f.reshape(dx, n.value.ne)?))
}

/// Of `y = x / r`, `r = max(|x|, eps)`: `(g - y sum(g y)) / r`, without the second term where `eps` is the larger.
pub fn l2_norm(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (x, y, g, eps) = (n.src(0)?, n.value, n.grad, n.f32(0));
    let square = f.function(GGML_OP_SQR, x)?;
    let length = f.sum_rows(square)?;
    let length = f.function(GGML_OP_SQRT, length)?;
    let r = f.clamp(length, eps, f32::INFINITY)?;
    let longer = f.scale(length, 1.0, -eps)?;
    let longer = f.unary(GGML_UNARY_OP_STEP, longer)?;
    let gy = f.mul(g, y)?;
    let along = f.sum_rows(gy)?;
    let along = f.mul(along, longer)?;
    let along = f.mul(y, along)?;
    let rest = f.sub(g, along)?;
    Ok(Flow::Add(f.div(rest, r)?))
}

/// Masks and slopes are added to what softmax sees, so they do not count; with sinks a row sums up to less than 1, which the formula
/// does not use.
pub fn soft_max(f: &mut Frame, n: &Node, i: usize) -> Answer {
    match i {
        0 => {
            let (y, g) = (f.plain(n.value)?, n.grad);
            Ok(Flow::Add(f.make(backward::soft_max(&g, &y, n.f32(0), 0.0, false), &[g, y])?))
        }
        1 => rules::none("mask", i),
        _ => rules::none("sinks", i),
    }
}

pub fn cross_entropy_loss(f: &mut Frame, n: &Node, i: usize) -> Answer {
    if i != 0 {
        return rules::none("labels", i);
    }
    let (x, labels, g) = (n.src(0)?, n.src(1)?, n.grad);
    let x = f.f32(x)?;
    Ok(Flow::Add(f.make(train::cross_entropy_loss_back(&g, &x, &labels), &[g, x, labels])?))
}
