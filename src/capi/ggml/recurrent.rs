//! Entry points of ggml.h: operators that carry a state along a sequence. All compute in f32.
// C names of arguments
#![allow(non_snake_case)]

use crate::entry;
use crate::tensor::node;
use crate::tensor::recurrent::{self, Delta, Scan};
use crate::tensor::solve;
use ggml_oxide_abi::*;

entry! {
    /// Convolution of each channel along the tokens of each sequence: `sx` [taps - 1 + tokens, channels, sequences], which starts with the
    /// inputs before the first token, and `c` [taps, channels] give f32 [channels, tokens, sequences].
    pub fn ggml_ssm_conv(ctx: *mut ggml_context, sx: *mut ggml_tensor, c: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_ssm_conv", [sx, c], [], |[sx, c], []| recurrent::ssm_conv(sx, c))
    }

    /// Selective scan: with d = log(1 + exp(dt)), token by token `state = state * exp(d * A) + B * (x * d)`, `y = sum of state * C` over
    /// d_state. `s` [d_state, dim, heads, any] contiguous; `x` [dim, heads, tokens, sequences]; `dt` [heads, tokens, sequences] contiguous;
    /// `A` [1 or d_state, heads] contiguous; `B`, `C` [d_state, groups, tokens, sequences], heads a multiple of groups, of which each serves
    /// heads side by side; dimensions 0 and 1 of x, B, C without gaps; `ids` i32 [sequences]: the state of `s` that each sequence starts
    /// from. The result is f32, one row: y of the shape of x, then `K` times [d_state, dim, heads, sequences], the states after the last
    /// token, the one before it and so on; what there are too few tokens for is not written. K above 1 needs ne0 of `A` to be 1.
    pub fn ggml_ssm_scan(ctx: *mut ggml_context, s: *mut ggml_tensor, x: *mut ggml_tensor, dt: *mut ggml_tensor, A: *mut ggml_tensor, B: *mut ggml_tensor, C: *mut ggml_tensor, ids: *mut ggml_tensor, K: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_ssm_scan", [s, x, dt, A, B, C, ids], [], |[s, x, dt, a, b, c, ids], []| {
            recurrent::ssm_scan(Scan { s, x, dt, a, b, c, ids }, K)
        })
    }
}

entry! {
    /// Linear attention of RWKV 6, token by token and head by head, with states S[i][j]: `y[j] = sum over i of r[i] * (tf[i] * k[i] * v[j] +
    /// S[i][j])`, then `S[i][j] = S[i][j] * td[i] + k[i] * v[j]`. k, v, r, td [size, heads, tokens], tf [size, heads], `state` with
    /// size * size * heads elements (j fastest) for each of its dimension 1, the sequences, which share the tokens out evenly in order; all
    /// contiguous. The result is f32 [size * heads, tokens + size * sequences]: y, then the states after the last token.
    pub fn ggml_rwkv_wkv6(ctx: *mut ggml_context, k: *mut ggml_tensor, v: *mut ggml_tensor, r: *mut ggml_tensor, tf: *mut ggml_tensor, td: *mut ggml_tensor, state: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_rwkv_wkv6", [k, v, r, tf, td, state], [], |[k, v, r, tf, td, state], []| {
            recurrent::wkv6([k, v, r, td], tf, state)
        })
    }

    /// Linear attention with a gate: `S[i][j] = S[i][j] * g[i] + k[i] * v[j]`, then `y[j] = sum over i of scale * q[i] * S[i][j]`. Shapes,
    /// states and result as for `ggml_rwkv_wkv6`.
    pub fn ggml_gated_linear_attn(ctx: *mut ggml_context, k: *mut ggml_tensor, v: *mut ggml_tensor, q: *mut ggml_tensor, g: *mut ggml_tensor, state: *mut ggml_tensor, scale: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_gated_linear_attn", [k, v, q, g, state], [], |[k, v, q, g, state], []| {
            recurrent::gated_linear([k, v, q, g], state, scale)
        })
    }

    /// Linear attention of RWKV 7, with states S[i][j], j fastest: `S[i][j] = S[i][j] * w[j] + v[i] * k[j] + b[j] * (sum over m of
    /// a[m] * S[i][m])`, then `y[i] = sum over j of r[j] * S[i][j]`. Shapes, states and result as for `ggml_rwkv_wkv6`.
    pub fn ggml_rwkv_wkv7(ctx: *mut ggml_context, r: *mut ggml_tensor, w: *mut ggml_tensor, k: *mut ggml_tensor, v: *mut ggml_tensor, a: *mut ggml_tensor, b: *mut ggml_tensor, state: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_rwkv_wkv7", [r, w, k, v, a, b, state], [], |[r, w, k, v, a, b, state], []| {
            recurrent::wkv7([r, w, k, v, a, b], state)
        })
    }

    /// Gated delta rule, with states S[j][i], i fastest: `S[j][i] *= exp(g[i])`, `d[j] = beta * (v[j] - sum over i of S[j][i] * k[i])`,
    /// `S[j][i] += d[j] * k[i]`, `y[j] = sum over i of S[j][i] * q[i] / sqrt(size)`. All f32: q, k [size, heads_k, tokens, seqs_k],
    /// v [size, heads, tokens, seqs], rows without gaps; heads a multiple of heads_k, where head h of v goes with head h modulo heads_k,
    /// seqs one of seqs_k, in order; g [1 or size, heads, tokens, seqs], beta [1, heads, tokens, seqs], state [size, size, heads, seqs],
    /// contiguous. The result is [size * heads, tokens * seqs + K * size * seqs]: y, then `K` times the states, after the last token, the
    /// one before it and so on; what there are too few tokens for is not written.
    pub fn ggml_gated_delta_net(ctx: *mut ggml_context, q: *mut ggml_tensor, k: *mut ggml_tensor, v: *mut ggml_tensor, g: *mut ggml_tensor, beta: *mut ggml_tensor, state: *mut ggml_tensor, K: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_gated_delta_net", [q, k, v, g, beta, state], [], |[q, k, v, g, beta, state], []| {
            recurrent::gated_delta_net(Delta { q, k, v, g, beta, state }, K)
        })
    }

    /// The x of a x = b for lower triangular `a` [n, n, b2, b3], of which what is above the diagonal is not read, and `b` [m, n, b2, b3]:
    /// f32 of the shape of `b`. Both are f32 and contiguous. `left` and `lower` must be true, `uni` false. A zero on the diagonal divides
    /// by zero.
    pub fn ggml_solve_tri(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, left: bool, lower: bool, uni: bool) -> *mut ggml_tensor {
        node(ctx, "ggml_solve_tri", [a, b], [], |[a, b], []| solve::solve_tri(a, b, left, lower, uni))
    }
}
