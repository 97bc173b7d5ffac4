//! Gradients of gated units: `act(x) * gate`, from two tensors or from the halves of each row of one.

use super::frame::{Flow, Frame, Node, Tensor};
use super::unary;
use crate::error::Error;
use crate::tensor::copy;
use ggml_oxide_abi::*;

fn activation(op: ggml_glu_op) -> Result<ggml_unary_op, Error> {
    Ok(match op {
        GGML_GLU_OP_REGLU => GGML_UNARY_OP_RELU,
        GGML_GLU_OP_GEGLU => GGML_UNARY_OP_GELU,
        GGML_GLU_OP_SWIGLU => GGML_UNARY_OP_SILU,
        GGML_GLU_OP_GEGLU_QUICK => GGML_UNARY_OP_GELU_QUICK,
        _ => return Err(Error::argument("the gated unit has no gradient")),
    })
}

pub fn rule(f: &mut Frame, n: &Node, i: usize) -> Result<Flow, Error> {
    let act = activation(ggml_glu_op(n.i32(0)))?;
    let a = n.src(0)?;
    if let Some(b) = n.value.src(1) {
        return Ok(Flow::Add(if i == 0 { of_value(f, act, a, b, n.grad)? } else { of_gate(f, act, a, n.grad)? }));
    }
    let swapped = n.i32(1) != 0;
    let a = f.plain(a)?;
    let half = |f: &mut Frame, second: bool| {
        let offset = if second { n.value.ne[0] as usize * 4 } else { 0 };
        f.part(a, n.value.ne, [a.nb[1], a.nb[2], a.nb[3]], offset)
    };
    let (x, gate) = (half(f, swapped)?, half(f, !swapped)?);
    let (dx, dgate) = (of_value(f, act, x, gate, n.grad)?, of_gate(f, act, x, n.grad)?);
    let (first, second) = if swapped { (dgate, dx) } else { (dx, dgate) };
    Ok(Flow::Add(f.make(copy::concat(&first, &second, 0), &[first, second])?))
}

fn of_value(f: &mut Frame, act: ggml_unary_op, x: Tensor, gate: Tensor, g: Tensor) -> Result<Tensor, Error> {
    let g = f.mul(g, gate)?;
    unary::through(f, act, x, None, g)
}

fn of_gate(f: &mut Frame, act: ggml_unary_op, x: Tensor, g: Tensor) -> Result<Tensor, Error> {
    let value = f.unary(act, x)?;
    f.mul(g, value)
}
