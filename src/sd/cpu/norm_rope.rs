//! RMS_NORM, MUL by a weight for each channel, `sd.rope_apply.v1`: one launch.
//!
//! Each step is rounded as the single nodes round it, in their order: the bits are the same.

use super::native;
use super::product::numbers;
use super::rope_apply::turn;
use super::view::View;
use crate::sd::check;
use crate::sd::fusion::{is, reads, source, Fusion};
use crate::sd::kernel::{Run, Shared, Stop};
use crate::sd::operator::{Check, Node};
use crate::sd::rope_apply::RopeApply;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// The fusion.
pub struct NormRope;

/// RMS_NORM and MUL by a number for each channel.
pub struct Norm<'a> {
    /// What is normalised.
    pub x: &'a ggml_tensor,
    /// The other operand of MUL.
    pub weight: &'a ggml_tensor,
    /// What is added to the mean of squares.
    pub eps: f32,
}

impl<'a> Norm<'a> {
    /// Reads both nodes; the rule that they break.
    pub fn read(norm: &'a ggml_tensor, mul: &'a ggml_tensor) -> Check<Self> {
        let (x, weight, eps) = (source(norm, 0)?, source(mul, 1)?, shape::param_f32(norm, 0));
        check::format(x, GGML_TYPE_F32, "x")?;
        check::format(weight, GGML_TYPE_F32, "the weight")?;
        if weight.ne != [x.ne[0], 1, 1, 1] || !shape::is_contiguous(weight) {
            return Err("the weight must have a number for each channel, side by side".into());
        }
        if x.ne != norm.ne || x.ne != mul.ne {
            return Err("shapes of the nodes differ".into());
        }
        match eps >= 0.0 {
            true => Ok(Norm { x, weight, eps }),
            false => Err(format!("eps is {eps}, it must not be negative")),
        }
    }
}

impl Fusion for NormRope {
    type Last = RopeApply;
    type Chain<'a> = Norm<'a>;
    const NAME: &'static CStr = c"sd.rms_norm_mul_rope.cpu";
    const FIRST: ggml_op = GGML_OP_RMS_NORM;

    fn count(nodes: &[&ggml_tensor]) -> usize {
        let &[norm, mul, rope, ..] = nodes else { return 0 };
        let chain = mul.op == GGML_OP_MUL && reads(mul, 0, norm) && is::<RopeApply>(rope) && reads(rope, 0, mul);
        if chain {
            3
        } else {
            0
        }
    }

    unsafe fn read<'a>(
        before: &[&'a ggml_tensor],
        last: &Node<'a, RopeApply>,
    ) -> Check<(Norm<'a>, Vec<&'a ggml_tensor>)> {
        let &[norm, mul] = before else { return Err("there must be two nodes before the rotation".into()) };
        let chain = Norm::read(norm, mul)?;
        let inputs = vec![chain.x, chain.weight, last.src(1)];
        Ok((chain, inputs))
    }

    unsafe fn execute(chain: &Norm, last: &Node<RopeApply>, run: &Run, dst: Shared) -> Result<(), Stop> {
        if shape::is_empty(last.dst) {
            return Ok(());
        }
        let (x, eps) = (View::of(chain.x), chain.eps);
        // SAFETY: the caller's promise.
        unsafe {
            let weight = numbers(chain.weight);
            turn(last, run, dst, |i, row| {
                x.copy(i, row);
                let factor = native::rms_factor(row, eps);
                native::scale(row, factor, weight);
            })
        }
    }
}
