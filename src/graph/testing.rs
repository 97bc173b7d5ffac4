//! Small graphs for tests, and a plain evaluator of them on host memory.

#![allow(clippy::unwrap_used)]

use super::{build, memory};
use crate::tensor::{new_tensor, Context};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ptr::null_mut;

/// A context and what was built in it.
pub(crate) struct Bench {
    pub(crate) ctx: Box<Context>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        // SAFETY: the context allocates its own memory.
        Bench { ctx: unsafe { Context::new(8 << 20, null_mut(), true) }.unwrap() }
    }

    /// An f32 tensor of `n` elements without operator.
    pub(crate) fn leaf(&mut self, n: i64) -> *mut ggml_tensor {
        new_tensor(&mut self.ctx, "test", GGML_TYPE_F32, &[n])
    }

    pub(crate) fn input(&mut self, n: i64) -> *mut ggml_tensor {
        flag(self.leaf(n), GGML_TENSOR_FLAG_INPUT)
    }

    /// A node of any format and shape.
    pub(crate) fn node(
        &mut self,
        op: ggml_op,
        ty: ggml_type,
        ne: &[i64],
        srcs: &[*mut ggml_tensor],
    ) -> *mut ggml_tensor {
        let t = new_tensor(&mut self.ctx, "test", ty, ne);
        // SAFETY: just made.
        unsafe {
            (*t).op = op;
            (&mut (*t).src)[..srcs.len()].copy_from_slice(srcs);
        }
        t
    }

    /// A view of `a` from byte `offs`, contiguous unless strides are given.
    pub(crate) fn alias(
        &mut self,
        op: ggml_op,
        a: *mut ggml_tensor,
        ne: &[i64],
        nb: Option<[usize; 4]>,
        offs: usize,
    ) -> *mut ggml_tensor {
        // SAFETY: tensors of this bench.
        unsafe {
            let t = self.node(op, (*a).r#type, ne, &[a]);
            (*t).nb = nb.unwrap_or((*t).nb);
            (*t).view_src = if (*a).view_src.is_null() { a } else { (*a).view_src };
            (*t).view_offs = offs + (*a).view_offs;
            t
        }
    }

    /// A node of the shape of its first source.
    pub(crate) fn op(&mut self, op: ggml_op, srcs: &[*mut ggml_tensor]) -> *mut ggml_tensor {
        // SAFETY: tensors of this bench.
        let ne = unsafe { (*srcs[0]).ne };
        self.node(op, GGML_TYPE_F32, &ne, srcs)
    }

    pub(crate) fn add(&mut self, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        self.op(GGML_OP_ADD, &[a, b])
    }

    /// `a * factor`.
    pub(crate) fn scale(&mut self, a: *mut ggml_tensor, factor: i32) -> *mut ggml_tensor {
        let t = self.op(GGML_OP_SCALE, &[a]);
        // SAFETY: just made.
        unsafe { (*t).op_params[0] = factor };
        t
    }

    /// `n` elements of `a` from element `from`, as a view.
    pub(crate) fn view(&mut self, a: *mut ggml_tensor, from: usize, n: i64) -> *mut ggml_tensor {
        self.alias(GGML_OP_VIEW, a, &[n], None, from * 4)
    }

    /// A graph that ends in `results`.
    pub(crate) fn graph(&mut self, results: &[*mut ggml_tensor]) -> *mut ggml_cgraph {
        let graph = memory::new(&mut self.ctx, 8192, false).unwrap();
        for &t in results {
            // SAFETY: tensors of this bench.
            unsafe { build::expand(&mut *graph, t, true) }.unwrap();
        }
        graph
    }
}

pub(crate) fn flag(t: *mut ggml_tensor, flag: ggml_tensor_flag) -> *mut ggml_tensor {
    // SAFETY: a live tensor.
    unsafe { (*t).flags |= flag.0 };
    t
}

/// The elements of `t`, which lies in host memory.
pub(crate) fn values<'a>(t: *mut ggml_tensor) -> &'a mut [f32] {
    // SAFETY: allocated on the host; tests look at one tensor at a time.
    unsafe {
        assert!(!(*t).data.is_null(), "'{}' has no data", shape::name(&*t));
        std::slice::from_raw_parts_mut((*t).data.cast(), shape::nelements(&*t) as usize)
    }
}

/// Computes the nodes of `graph` in order.
pub(crate) fn evaluate(graph: &ggml_cgraph) {
    // SAFETY: graphs of a bench, allocated on the host.
    unsafe {
        for &node in super::nodes(graph) {
            let t = &*node;
            let at = |i: usize, n: usize| *(*t.src[i]).data.cast::<f32>().add(n);
            let value: &dyn Fn(usize) -> f32 = match t.op {
                GGML_OP_ADD => &|n| at(0, n) + at(1, n),
                GGML_OP_SQR => &|n| at(0, n) * at(0, n),
                GGML_OP_SCALE => &|n| at(0, n) * t.op_params[0] as f32,
                GGML_OP_CONT => &|n| at(0, n),
                GGML_OP_VIEW | GGML_OP_NONE | GGML_OP_MUL_MAT_ID => continue,
                op => panic!("no {op:?} here"),
            };
            for n in 0..shape::nelements(t) as usize {
                t.data.cast::<f32>().add(n).write(value(n));
            }
        }
    }
}
