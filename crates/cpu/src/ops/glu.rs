//! GLU: a gate and a value, from two sources or from the halves of one.
//!
//! Rows packed, any layout above; f32, f16, bf16, one format for all.

use super::rows::{self, CHUNK};
use super::rules::*;
use super::vec::map::{map2, Map2};
use super::vec::{math, Lanes};
use crate::entry::{no_work, tasks_by_size, OpEntry};
use crate::node::{src, Node};
use crate::team::Team;
use ggml_oxide_abi::*;

macro_rules! gates {
    ($($name:ident = |$x:ident| $body:expr;)*) => {
        $(#[derive(Clone, Copy)]
        struct $name;
        impl Map2 for $name {
            #[inline(always)]
            unsafe fn f<V: Lanes>(self, $x: V, y: V) -> V {
                // SAFETY: the caller's promise about V.
                unsafe { ($body).mul(y) }
            }
        })*
    };
}

gates! {
    Reglu = |x| V::splat(0.0).max(x);
    Geglu = |x| math::gelu(x);
    Swiglu = |x| math::silu(x);
    GegluErf = |x| math::gelu_erf(x);
    GegluQuick = |x| math::gelu_quick(x);
}

/// `x = min(gate, limit)`, `y` held to +-limit: `x sigmoid(alpha x) (y + 1)`.
#[derive(Clone, Copy)]
struct SwigluOai(f32, f32);

impl Map2 for SwigluOai {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V, y: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe {
            let limit = V::splat(self.1);
            let x = limit.min(x);
            let y = limit.neg().max(limit.min(y));
            math::silu_alpha(x, V::splat(self.0)).mul(y.add(V::splat(1.0)))
        }
    }
}

/// `x = min(gate, limit)`, `y` held to +-limit: `silu(x) y`.
#[derive(Clone, Copy)]
struct SwigluClamp(f32);

impl Map2 for SwigluClamp {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V, y: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe {
            let limit = V::splat(self.0);
            math::silu(limit.min(x)).mul(limit.neg().max(limit.min(y)))
        }
    }
}

fn apply<M: Map2>(m: M, node: &Node, team: &Team) {
    let (d, a) = (node.out(), node.arg(0));
    let split = node.src_opt(1).is_some();
    let b = if split { node.arg(1) } else { a };
    let (n, ty) = (d.ne[0], d.ty);
    let size = if ty == GGML_TYPE_F32 { 4 } else { 2 };
    let (x0, y0) = match (split, node.i32(1) != 0) {
        (true, _) => (0, 0),
        (false, false) => (0, n * size),
        (false, true) => (n * size, 0),
    };
    for row in team.range(d.nrows()) {
        let i = d.unravel(row);
        // SAFETY: rows are packed and long enough (checked); this row of dst is this thread's.
        unsafe {
            let (x, y, o) = (a.row(i).add(x0), b.row(i).add(y0), d.row(i));
            if ty == GGML_TYPE_F32 {
                map2(m, x.cast(), y.cast(), o.cast(), n);
                continue;
            }
            let mut buf = [[0.0f32; CHUNK]; 2];
            let [p, q] = &mut buf;
            for i0 in (0..n).step_by(CHUNK) {
                let k = (n - i0).min(CHUNK);
                rows::load_packed(ty, x.add(i0 * size), p.as_mut_ptr(), k);
                rows::load_packed(ty, y.add(i0 * size), q.as_mut_ptr(), k);
                map2(m, p.as_ptr(), q.as_ptr(), p.as_mut_ptr(), k);
                rows::store_packed(ty, p.as_ptr(), o.add(i0 * size), k);
            }
        }
    }
}

fn run(node: &Node, team: &Team) {
    match ggml_glu_op(node.i32(0)) {
        GGML_GLU_OP_REGLU => apply(Reglu, node, team),
        GGML_GLU_OP_GEGLU => apply(Geglu, node, team),
        GGML_GLU_OP_SWIGLU => apply(Swiglu, node, team),
        GGML_GLU_OP_SWIGLU_OAI => apply(SwigluOai(node.f32(2), node.f32(3)), node, team),
        GGML_GLU_OP_GEGLU_ERF => apply(GegluErf, node, team),
        GGML_GLU_OP_GEGLU_QUICK => apply(GegluQuick, node, team),
        GGML_GLU_OP_SWIGLU_CLAMP => apply(SwigluClamp(node.f32(3)), node, team),
        other => team.fail(format!("unknown gate {}", other.0)),
    }
}

fn supports(op: &ggml_tensor) -> Rule {
    let a = src(op, 0)?;
    ensure((0..GGML_GLU_OP_COUNT.0).contains(&op.op_params[0]), "unknown gate")?;
    float(a)?;
    ensure(op.r#type == a.r#type, "source and result must have the same format")?;
    packed_rows(op)?;
    packed_rows(a)?;
    if let Ok(b) = src(op, 1) {
        packed_rows(b)?;
        ensure(b.r#type == a.r#type && b.ne == a.ne, "both sources must have the same format and shape")?;
        same_shape(op, a)
    } else {
        ensure(op.ne[0] == a.ne[0] / 2 && op.ne[1..] == a.ne[1..], "the result must have half the source's row")
    }
}

/// GLU.
pub static GLU: OpEntry = OpEntry { supports, work: no_work, n_tasks: tasks_by_size, run };
