//! Functions of one value: the UNARY family, SQR, SQRT, LOG, SIN, COS, SCALE, CLAMP, LEAKY_RELU.
//!
//! Any layout; f32, f16 and bf16 in any pairing. Computed in f32, rounded once. NaN stays NaN, except that STEP and SGN answer 0.

use super::loops::Loops;
use super::rows::{self, CHUNK};
use super::rules::*;
use super::vec::map::{map, Affine, Map, Scalar, Times};
use super::vec::{math, Lanes};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node, View};
use crate::team::Team;
use ggml_oxide_abi::*;

macro_rules! maps {
    ($($name:ident = |$x:ident| $body:expr;)*) => {
        $(#[derive(Clone, Copy)]
        struct $name;
        impl Map for $name {
            #[inline(always)]
            unsafe fn f<V: Lanes>(self, $x: V) -> V {
                // SAFETY: the caller's promise about V.
                unsafe { $body }
            }
        })*
    };
}

maps! {
    Abs = |x| x.abs();
    Sgn = |x| {
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        V::select(zero.lt(x), one, V::select(x.lt(zero), one.neg(), zero))
    };
    Neg = |x| x.neg();
    Step = |x| V::select(V::splat(0.0).lt(x), V::splat(1.0), V::splat(0.0));
    Tanh = |x| math::tanh(x);
    Elu = |x| V::select(V::splat(0.0).lt(x), x, math::expm1(x));
    Relu = |x| V::splat(0.0).max(x);
    Sigmoid = |x| math::sigmoid(x);
    Gelu = |x| math::gelu(x);
    GeluQuick = |x| math::gelu_quick(x);
    Silu = |x| math::silu(x);
    HardSwish = |x| V::splat(-f32::MAX).max(x).mul(gate(x));
    HardSigmoid = |x| gate(x);
    Exp = |x| math::exp(x);
    Expm1 = |x| math::expm1(x);
    GeluErf = |x| math::gelu_erf(x);
    Floor = |x| x.floor();
    Ceil = |x| x.ceil();
    Round = |x| {
        // Halves go away from zero; x - trunc(x) is exact.
        let t = x.trunc();
        V::select(x.sub(t).abs().lt(V::splat(0.5)), t, t.add(V::splat(1.0).copysign(x)))
    };
    Trunc = |x| x.trunc();
    Sqr = |x| x.mul(x);
    Sqrt = |x| x.sqrt();
}

/// `(x + 3) / 6`, held to 0..1.
#[inline(always)]
unsafe fn gate<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe { V::splat(1.0).min(V::splat(0.0).max(x.add(V::splat(3.0)).div(V::splat(6.0)))) }
}

#[derive(Clone, Copy)]
struct Xielu {
    alpha_n: f32,
    alpha_p: f32,
    beta: f32,
    eps: f32,
}

impl Map for Xielu {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe {
            let linear = x.mul(V::splat(self.beta));
            let pos = x.mul(V::splat(self.alpha_p)).fma(x, linear);
            let e = math::expm1(V::splat(self.eps).min(x));
            let neg = e.sub(x).fma(V::splat(self.alpha_n), linear);
            V::select(V::splat(0.0).lt(x), pos, neg)
        }
    }
}

#[derive(Clone, Copy)]
struct Clamp(f32, f32);

impl Map for Clamp {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { V::splat(self.0).max(V::splat(self.1).min(x)) }
    }
}

#[derive(Clone, Copy)]
struct Leaky(f32);

impl Map for Leaky {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { V::select(x.lt(V::splat(0.0)), x.mul(V::splat(self.0)), x) }
    }
}

fn softplus(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `dst[i] = m(src[i])` over views of the same shape.
pub(super) fn apply<M: Map>(m: M, dst: &View, src: &View, team: &Team) {
    let (dt, st) = (dst.ty, src.ty);
    let loops = Loops::over([dst, src]).sort_by(0).merge();
    loops.share(team, [dst.data, src.data], |n, [d, s], [ds, ss]| {
        // SAFETY: both views are good for their shape (checked node), and no other thread has these elements.
        unsafe {
            if dt == GGML_TYPE_F32 && st == GGML_TYPE_F32 && (n == 1 || (ds == 4 && ss == 4)) {
                return map(m, s.cast(), d.cast(), n);
            }
            let mut buf = [0.0f32; CHUNK];
            let mut i = 0;
            while i < n {
                let k = (n - i).min(CHUNK);
                rows::load(st, s.add(i * ss), ss, buf.as_mut_ptr(), k);
                map(m, buf.as_ptr(), buf.as_mut_ptr(), k);
                rows::store(dt, buf.as_ptr(), d.add(i * ds), ds, k);
                i += k;
            }
        }
    });
}

fn run_unary(node: &Node, team: &Team) {
    let (d, s) = (&node.out(), &node.arg(0));
    match ggml_unary_op(node.i32(0)) {
        GGML_UNARY_OP_ABS => apply(Abs, d, s, team),
        GGML_UNARY_OP_SGN => apply(Sgn, d, s, team),
        GGML_UNARY_OP_NEG => apply(Neg, d, s, team),
        GGML_UNARY_OP_STEP => apply(Step, d, s, team),
        GGML_UNARY_OP_TANH => apply(Tanh, d, s, team),
        GGML_UNARY_OP_ELU => apply(Elu, d, s, team),
        GGML_UNARY_OP_RELU => apply(Relu, d, s, team),
        GGML_UNARY_OP_SIGMOID => apply(Sigmoid, d, s, team),
        GGML_UNARY_OP_GELU => apply(Gelu, d, s, team),
        GGML_UNARY_OP_GELU_QUICK => apply(GeluQuick, d, s, team),
        GGML_UNARY_OP_SILU => apply(Silu, d, s, team),
        GGML_UNARY_OP_HARDSWISH => apply(HardSwish, d, s, team),
        GGML_UNARY_OP_HARDSIGMOID => apply(HardSigmoid, d, s, team),
        GGML_UNARY_OP_EXP => apply(Exp, d, s, team),
        GGML_UNARY_OP_EXPM1 => apply(Expm1, d, s, team),
        GGML_UNARY_OP_SOFTPLUS => apply(Scalar(softplus), d, s, team),
        GGML_UNARY_OP_GELU_ERF => apply(GeluErf, d, s, team),
        GGML_UNARY_OP_XIELU => {
            let m = Xielu { alpha_n: node.f32(1), alpha_p: node.f32(2), beta: node.f32(3), eps: node.f32(4) };
            apply(m, d, s, team)
        }
        GGML_UNARY_OP_FLOOR => apply(Floor, d, s, team),
        GGML_UNARY_OP_CEIL => apply(Ceil, d, s, team),
        GGML_UNARY_OP_ROUND => apply(Round, d, s, team),
        GGML_UNARY_OP_TRUNC => apply(Trunc, d, s, team),
        other => team.fail(format!("unknown unary function {}", other.0)),
    }
}

fn run_single(node: &Node, team: &Team) {
    let (d, s) = (&node.out(), &node.arg(0));
    match node.dst.op {
        GGML_OP_SQR => apply(Sqr, d, s, team),
        GGML_OP_SQRT => apply(Sqrt, d, s, team),
        GGML_OP_LOG => apply(Scalar(f32::ln), d, s, team),
        GGML_OP_SIN => apply(Scalar(f32::sin), d, s, team),
        GGML_OP_COS => apply(Scalar(f32::cos), d, s, team),
        GGML_OP_CLAMP => apply(Clamp(node.f32(0), node.f32(1)), d, s, team),
        GGML_OP_LEAKY_RELU => apply(Leaky(node.f32(0)), d, s, team),
        _ => {
            let (scale, bias) = (node.f32(0), node.f32(1));
            // Without a bias, minus zero stays minus zero.
            if bias == 0.0 {
                apply(Times(scale), d, s, team)
            } else {
                apply(Affine(scale, bias), d, s, team)
            }
        }
    }
}

fn supports_float(op: &ggml_tensor) -> Result<(), &'static str> {
    let s = src(op, 0)?;
    same_shape(op, s)?;
    float(op)?;
    float(s)
}

fn supports_unary(op: &ggml_tensor) -> Result<(), &'static str> {
    if !(0..GGML_UNARY_OP_COUNT.0).contains(&op.op_params[0]) {
        return Err("unknown unary function");
    }
    supports_float(op)
}

/// UNARY.
pub static UNARY: OpEntry = OpEntry { supports: supports_unary, work: no_work, n_tasks: tasks_by_size, run: run_unary };
/// SQR, SQRT, LOG, SIN, COS, CLAMP, LEAKY_RELU, SCALE.
pub static SINGLE: OpEntry =
    OpEntry { supports: supports_float, work: no_work, n_tasks: tasks_by_size, run: run_single };
