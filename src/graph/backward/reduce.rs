//! Gradients of sums and repetitions.

use super::frame::{Flow, Frame, Node};
use crate::error::Error;
use crate::tensor::reduce;

type Answer = Result<Flow, Error>;

/// What was summed up gets the gradient of its sum.
pub fn spread(_: &mut Frame, n: &Node, _: usize) -> Answer {
    Ok(Flow::Add(n.grad))
}

pub fn mean(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let rows = n.src(0)?.ne[0];
    Ok(Flow::Add(f.scale(n.grad, (1.0 / rows as f64) as f32, 0.0)?))
}

pub fn repeat(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let src = n.src(0)?;
    Ok(Flow::Add(f.fold(n.grad, src)?))
}

/// The sum from each element on: all, less those up to it, and itself.
pub fn cumsum(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let before = f.make(reduce::cumsum(&n.grad), &[n.grad])?;
    let rest = f.sub(n.grad, before)?;
    let all = f.sum_rows(n.grad)?;
    Ok(Flow::Add(f.add(rest, all)?))
}
