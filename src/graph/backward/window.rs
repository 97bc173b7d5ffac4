//! Gradients of gathers for convolution, of pooling, and of rotary embedding: each has an operator of its own for the way back.

use super::frame::{Flow, Frame, Node};
use super::rules;
use crate::error::Error;
use crate::tensor::conv::{self, Axis};
use crate::tensor::pool::{self, Window};
use crate::tensor::{rope as shapes, NodeSpec};
use ggml_oxide_abi::*;

type Answer = Result<Flow, Error>;

/// Turns back by the same angles. All parameters are the node's own, also those that were set after it was built.
pub fn rope(f: &mut Frame, n: &Node, i: usize) -> Answer {
    if i != 0 {
        return rules::none("divisors of the angles", i);
    }
    let (g, positions, freqs) = (n.grad, n.src(1)?, n.value.src(2));
    let args = shapes::Rope { sections: None, ..shapes::Rope::simple(n.i32(1), n.i32(2)) };
    let spec = shapes::rope_back(&g, &positions, freqs.as_deref(), &args);
    let spec = spec.map(|spec| NodeSpec { params: n.value.op_params, ..spec });
    match freqs {
        Some(freqs) => f.make(spec, &[g, positions, freqs]),
        None => f.make(spec, &[g, positions]),
    }
    .map(Flow::Add)
}

pub fn im2col(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (kernel, picture, g) = (n.src(0)?, n.src(1)?, n.grad);
    let axis = |i: usize| Axis { s: n.i32(i), p: n.i32(i + 2), d: n.i32(i + 4) };
    let spec = conv::im2col_back(&g, &kernel, picture.ne, axis(0), axis(1), n.i32(6) == 1);
    Ok(Flow::Add(f.make(spec, &[g, kernel])?))
}

/// As [`pool_2d`] with windows of one row; but its averages do not count the padding, as those of two dimensions do.
pub fn pool_1d(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (src, g) = (n.src(0)?, n.grad);
    if n.i32(0) == GGML_OP_POOL_AVG.0 && n.i32(3) != 0 {
        return Err(Error::argument("averages at a padded edge have no gradient"));
    }
    let src = f.plain(src)?;
    let x = Window { k: n.i32(1), s: n.i32(2), p: n.i32(3) as f32 };
    let spec = pool::pool_2d_back(&g, &src, ggml_op_pool(n.i32(0)), x, Window { k: 1, s: 1, p: 0.0 });
    Ok(Flow::Add(f.make(spec, &[g, src])?))
}

pub fn pool_2d(f: &mut Frame, n: &Node, _: usize) -> Answer {
    let (src, g) = (n.src(0)?, n.grad);
    let src = f.plain(src)?;
    let window = |i: usize| Window { k: n.i32(i), s: n.i32(i + 2), p: n.i32(i + 4) as f32 };
    let spec = pool::pool_2d_back(&g, &src, ggml_op_pool(n.i32(0)), window(1), window(2));
    Ok(Flow::Add(f.make(spec, &[g, src])?))
}
