//! Shorthands for the operators that gradients are made of.

use super::frame::{Frame, Tensor};
use crate::error::Error;
use crate::tensor::{backward, copy, elementwise, matmul, reduce, view};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

type Made = Result<Tensor, Error>;

impl Frame<'_> {
    /// `t` as f32.
    pub fn f32(&mut self, t: Tensor) -> Made {
        if t.r#type == GGML_TYPE_F32 {
            return Ok(t);
        }
        self.make(copy::cast(&t, GGML_TYPE_F32), &[t])
    }

    /// `t` without gaps.
    pub fn dense(&mut self, t: Tensor) -> Made {
        if shape::is_contiguous(&t) {
            return Ok(t);
        }
        self.make(copy::cont(&t, None), &[t])
    }

    /// `t` as contiguous f32, for operators that take nothing else.
    pub fn plain(&mut self, t: Tensor) -> Made {
        let t = self.f32(t)?;
        self.dense(t)
    }

    /// `a op b`, over `a` if `inplace`; `b` repeats.
    pub fn binary_over(&mut self, op: ggml_op, a: Tensor, b: Tensor, inplace: bool) -> Made {
        let b = self.f32(b)?;
        self.make(elementwise::binary(op, &a, &b, inplace), &[a, b])
    }

    /// `a + b`.
    pub fn add(&mut self, a: Tensor, b: Tensor) -> Made {
        self.binary_over(GGML_OP_ADD, a, b, false)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Tensor, b: Tensor) -> Made {
        self.binary_over(GGML_OP_SUB, a, b, false)
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Tensor, b: Tensor) -> Made {
        self.binary_over(GGML_OP_MUL, a, b, false)
    }

    /// `a / b`.
    pub fn div(&mut self, a: Tensor, b: Tensor) -> Made {
        self.binary_over(GGML_OP_DIV, a, b, false)
    }

    /// `a * s + b`.
    pub fn scale(&mut self, a: Tensor, s: f32, b: f32) -> Made {
        let a = self.dense(a)?;
        self.make(elementwise::scale(&a, s, b, false), &[a])
    }

    /// `-a`.
    pub fn neg(&mut self, a: Tensor) -> Made {
        self.unary(GGML_UNARY_OP_NEG, a)
    }

    /// A unary function of f32.
    pub fn unary(&mut self, f: ggml_unary_op, a: Tensor) -> Made {
        let a = self.plain(a)?;
        self.make(elementwise::unary(f, &a, false), &[a])
    }

    /// SQR, SQRT, SIN, COS ... of f32.
    pub fn function(&mut self, op: ggml_op, a: Tensor) -> Made {
        let a = self.f32(a)?;
        self.make(elementwise::plain(op, &a, false), &[a])
    }

    /// `a` between `min` and `max`.
    pub fn clamp(&mut self, a: Tensor, min: f32, max: f32) -> Made {
        let a = self.f32(a)?;
        self.make(elementwise::clamp(&a, min, max, false), &[a])
    }

    /// Zeros in the shape of `t`.
    pub fn zeros(&mut self, t: Tensor) -> Made {
        let t = self.plain(t)?;
        self.make(elementwise::fill(&t, 0.0, false), &[t])
    }

    /// `a` with `b` added to the window of `nb` and `offset`.
    pub fn acc(&mut self, a: Tensor, b: Tensor, nb: [usize; 3], offset: usize, inplace: bool) -> Made {
        self.make(elementwise::window(GGML_OP_ACC, &a, &b, nb, offset, inplace), &[a, b])
    }

    /// `a` repeated to `ne`.
    pub fn repeat(&mut self, a: Tensor, ne: [i64; GGML_MAX_DIMS]) -> Made {
        self.make(copy::repeat(&a, ne), &[a])
    }

    /// The sum of the parts of `g` that `to` was repeated to; `g` itself where nothing was repeated.
    pub fn fold(&mut self, g: Tensor, to: Tensor) -> Made {
        if shape::same_shape(&g, &to) {
            return Ok(g);
        }
        self.make(backward::repeat(&g, to.ne), &[g])
    }

    /// `a` in the shape `ne`.
    pub fn reshape(&mut self, a: Tensor, ne: [i64; GGML_MAX_DIMS]) -> Made {
        let a = self.dense(a)?;
        if a.ne == ne {
            return Ok(a);
        }
        self.make(view::reshape(&a, ne), &[a])
    }

    /// A copy of the part `ne` of `a` at `offset` with strides `nb`, in bytes.
    pub fn part(&mut self, a: Tensor, ne: [i64; GGML_MAX_DIMS], nb: [usize; 3], offset: usize) -> Made {
        let part = self.make(view::view(&a, &ne, &nb, offset), &[a])?;
        self.make(copy::cont(&part, None), &[part])
    }

    /// `a` with its first two dimensions swapped, looked at in place.
    pub fn transposed(&mut self, a: Tensor) -> Made {
        self.make(view::transpose(&a), &[a])
    }

    /// The sum of all.
    pub fn sum(&mut self, a: Tensor) -> Made {
        self.make(reduce::sum(&a), &[a])
    }

    /// The sum of each row.
    pub fn sum_rows(&mut self, a: Tensor) -> Made {
        self.make(reduce::sum_rows(&a), &[a])
    }

    /// The mean of each row.
    pub fn mean(&mut self, a: Tensor) -> Made {
        self.make(reduce::mean(&a), &[a])
    }

    /// The sum over columns of `a` times columns of `b`: [k, m] and [k', m] give [k, k'].
    pub fn out_prod(&mut self, a: Tensor, b: Tensor) -> Made {
        self.make(matmul::out_prod(&a, &b), &[a, b])
    }
}
