//! Entry points of ggml.h: gated units.

use crate::entry;
use crate::tensor::{elementwise, node};
use ggml_oxide_abi::*;

entry! {
    /// A gated unit: `f(x) * g`, where `x` and `g` are the halves of each row of `a`, or the other way round if `swapped`.
    /// [2n, ne1, ne2, ne3] gives [n, ne1, ne2, ne3]. Rows of `a` are packed.
    pub fn ggml_glu(ctx: *mut ggml_context, a: *mut ggml_tensor, op: ggml_glu_op, swapped: bool) -> *mut ggml_tensor {
        node(ctx, "ggml_glu", [a], [], |[a], []| elementwise::glu(op, a, None, swapped))
    }

    /// A gated unit of two tensors: `f(a) * b`, of one shape and format.
    pub fn ggml_glu_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, op: ggml_glu_op) -> *mut ggml_tensor {
        node(ctx, "ggml_glu_split", [a], [b], |[a], [b]| elementwise::glu(op, a, b, false))
    }

    /// `ggml_glu` with relu: the first half of a row is the value.
    pub fn ggml_reglu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_reglu", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_REGLU, a, None, false))
    }

    /// `ggml_glu` with relu: the second half of a row is the value.
    pub fn ggml_reglu_swapped(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_reglu_swapped", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_REGLU, a, None, true))
    }

    /// `ggml_glu_split` with relu.
    pub fn ggml_reglu_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_reglu_split", [a], [b], |[a], [b]| elementwise::glu(GGML_GLU_OP_REGLU, a, b, false))
    }

    /// `ggml_glu` with gelu: the first half of a row is the value.
    pub fn ggml_geglu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU, a, None, false))
    }

    /// `ggml_glu` with gelu: the second half of a row is the value.
    pub fn ggml_geglu_swapped(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_swapped", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU, a, None, true))
    }

    /// `ggml_glu_split` with gelu.
    pub fn ggml_geglu_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_split", [a], [b], |[a], [b]| elementwise::glu(GGML_GLU_OP_GEGLU, a, b, false))
    }

    /// `ggml_glu` with silu: the first half of a row is the value.
    pub fn ggml_swiglu(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_swiglu", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_SWIGLU, a, None, false))
    }

    /// `ggml_glu` with silu: the second half of a row is the value.
    pub fn ggml_swiglu_swapped(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_swiglu_swapped", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_SWIGLU, a, None, true))
    }

    /// `ggml_glu_split` with silu.
    pub fn ggml_swiglu_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_swiglu_split", [a], [b], |[a], [b]| elementwise::glu(GGML_GLU_OP_SWIGLU, a, b, false))
    }

    /// `ggml_glu` with gelu by the error function: the first half of a row is the value.
    pub fn ggml_geglu_erf(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_erf", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU_ERF, a, None, false))
    }

    /// `ggml_glu` with gelu by the error function: the second half of a row is the value.
    pub fn ggml_geglu_erf_swapped(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_erf_swapped", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU_ERF, a, None, true))
    }

    /// `ggml_glu_split` with gelu by the error function.
    pub fn ggml_geglu_erf_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_erf_split", [a], [b], |[a], [b]| elementwise::glu(GGML_GLU_OP_GEGLU_ERF, a, b, false))
    }

    /// `ggml_glu` with quick gelu: the first half of a row is the value.
    pub fn ggml_geglu_quick(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_quick", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU_QUICK, a, None, false))
    }

    /// `ggml_glu` with quick gelu: the second half of a row is the value.
    pub fn ggml_geglu_quick_swapped(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_quick_swapped", [a], [], |[a], []| elementwise::glu(GGML_GLU_OP_GEGLU_QUICK, a, None, true))
    }

    /// `ggml_glu_split` with quick gelu.
    pub fn ggml_geglu_quick_split(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_geglu_quick_split", [a], [b], |[a], [b]| elementwise::glu(GGML_GLU_OP_GEGLU_QUICK, a, b, false))
    }

    /// Gated unit of two tensors with limits: `x * sigmoid(alpha * x) * (1 + g)`, `x = min(a, limit)`, `g = clamp(b, -limit, limit)`.
    pub fn ggml_swiglu_oai(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, alpha: f32, limit: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_swiglu_oai", [a], [b], |[a], [b]| {
            Ok(elementwise::glu(GGML_GLU_OP_SWIGLU_OAI, a, b, false)?.param_f32(2, alpha).param_f32(3, limit))
        })
    }

    /// `ggml_swiglu_split` with the value not above `limit` and the gate within it.
    pub fn ggml_swiglu_clamp(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, limit: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_swiglu_clamp", [a], [b], |[a], [b]| {
            Ok(elementwise::glu(GGML_GLU_OP_SWIGLU_CLAMP, a, b, false)?.param_f32(3, limit))
        })
    }
}
