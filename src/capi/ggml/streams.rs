//! Entry points of ggml.h: hyper-connections, and the indexer of sparse attention.

use crate::entry;
use crate::tensor::{node, streams};
use ggml_oxide_abi::*;

entry! {
    /// Scores of keys: `sum over heads of max(q k, 0) * weight`, plus mask. f32 `q` [d, heads, tokens, b], `k` [d, 1, keys, b] of any format,
    /// f32 `weights` [heads, tokens, 1, b], f16 `mask` [keys, tokens, 1, m], b a multiple of m, give f32 [keys, tokens, 1, b].
    pub fn ggml_lightning_indexer(ctx: *mut ggml_context, q: *mut ggml_tensor, k: *mut ggml_tensor, weights: *mut ggml_tensor, mask: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_lightning_indexer", [q, k, weights, mask], [], |[q, k, weights, mask], []| {
            streams::lightning_indexer(q, k, weights, mask)
        })
    }

    /// Mixing matrices of 4 residual streams: f32 `mixes` [24, tokens], `scale` [>= 3], `base` [24] give f32 [dst 4, src 4, tokens]. Logits
    /// are `mixes[8 + dst + 4 * src] * scale[2] + base[8 + dst + 4 * src]`; softmax over dst, plus `eps`; then sums over src are divided out,
    /// and `n_iter` - 1 times sums over dst and sums over src, `eps` added to each sum.
    pub fn ggml_dsv4_hc_comb(ctx: *mut ggml_context, mixes: *mut ggml_tensor, scale: *mut ggml_tensor, base: *mut ggml_tensor, eps: f32, n_iter: i32) -> *mut ggml_tensor {
        node(ctx, "ggml_dsv4_hc_comb", [mixes, scale, base], [], |[mixes, scale, base], []| {
            streams::hc_comb(mixes, scale, base, eps, n_iter)
        })
    }

    /// One stream of several: f32 `x` [n, streams, tokens] and `weights` [streams, tokens] give f32 [n, tokens], the weighted sum.
    pub fn ggml_dsv4_hc_pre(ctx: *mut ggml_context, x: *mut ggml_tensor, weights: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_dsv4_hc_pre", [x, weights], [], |[x, weights], []| streams::hc_pre(x, weights, 1.0, false))
    }

    /// As `ggml_dsv4_hc_pre` with weights for each element: the logistic function of f32 `gate`, of the shape of `x`, times `scale`.
    pub fn ggml_dsv4_hc_pre_gated(ctx: *mut ggml_context, x: *mut ggml_tensor, gate: *mut ggml_tensor, scale: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_dsv4_hc_pre_gated", [x, gate], [], |[x, gate], []| streams::hc_pre(x, gate, scale, true))
    }

    /// Streams for the next layer: `x * post[dst] + sum over src of residual[src] * comb[dst, src]`. f32 `x` [n, tokens], `residual`
    /// [n, streams, tokens], `post` [streams, tokens], `comb` [dst, src, tokens] or NULL for each stream's own residual, give f32 of the shape
    /// of `residual`.
    pub fn ggml_dsv4_hc_post(ctx: *mut ggml_context, x: *mut ggml_tensor, residual: *mut ggml_tensor, post: *mut ggml_tensor, comb: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_dsv4_hc_post", [x, residual, post], [comb], |[x, residual, post], [comb]| {
            streams::hc_post(x, residual, post, comb)
        })
    }
}
