//! Shape rules of hyper-connections, where several residual streams take the place of one, and of the sparse attention's indexer that
//! goes with them.

use super::spec::{divides, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;

/// Streams that DSV4_HC_COMB mixes.
pub const STREAMS: i64 = 4;

fn all_f32(sources: &[(&str, &ggml_tensor)]) -> Result<(), Error> {
    for &(role, t) in sources {
        require!(t.r#type == GGML_TYPE_F32, "{} must be f32", show(role, t));
    }
    Ok(())
}

/// DSV4_HC_COMB: f32 `mixes` [24, tokens], `scale` [>= 3], `base` [24] give [4, 4, tokens].
pub fn hc_comb(
    mixes: &ggml_tensor,
    scale: &ggml_tensor,
    base: &ggml_tensor,
    eps: f32,
    n_iter: i32,
) -> Result<NodeSpec, Error> {
    const MIXES: i64 = (2 + STREAMS) * STREAMS;
    all_f32(&[("mixes", mixes), ("scale", scale), ("base", base)])?;
    require!(n_iter > 0, "{n_iter} iterations: there must be at least one");
    require!(
        mixes.ne[0] == MIXES && mixes.ne[2] == 1 && mixes.ne[3] == 1,
        "{} must be a matrix of rows of {MIXES}",
        show("mixes", mixes)
    );
    require!(scale.ne[0] >= 3 && scale.ne[1..] == [1, 1, 1], "{} must be a row of 3 or more", show("scale", scale));
    require!(base.ne == [MIXES, 1, 1, 1], "{} must be a row of {MIXES}", show("base", base));
    let spec = NodeSpec::new(GGML_OP_DSV4_HC_COMB, GGML_TYPE_F32, [STREAMS, STREAMS, mixes.ne[1], 1]);
    Ok(spec.params([0, n_iter]).param_f32(0, eps))
}

/// DSV4_HC_PRE: f32 `x` [n, streams, tokens] and `weights`, [streams, tokens] or, where `gated`, of the shape of `x`, give [n, tokens].
pub fn hc_pre(x: &ggml_tensor, weights: &ggml_tensor, scale: f32, gated: bool) -> Result<NodeSpec, Error> {
    let role = if gated { "gate" } else { "weights" };
    all_f32(&[("x", x), (role, weights)])?;
    let [n, streams, tokens, _] = x.ne;
    require!(streams > 0 && x.ne[3] == 1, "{} must have streams and 3 dimensions", show("x", x));
    let fits = if gated { weights.ne == x.ne } else { weights.ne == [streams, tokens, 1, 1] };
    let rule = if gated { "of the shape" } else { "[ne1, ne2]" };
    require!(fits, "{} must be {rule} of {}", show(role, weights), show("x", x));
    let spec = NodeSpec::new(GGML_OP_DSV4_HC_PRE, GGML_TYPE_F32, [n, tokens, 1, 1]);
    Ok(spec.params([0, gated.into()]).param_f32(0, scale))
}

/// DSV4_HC_POST: f32 `x` [n, tokens], `residual` [n, streams, tokens], `post` [streams, tokens], `comb` [streams, streams, tokens] give
/// the shape of `residual`.
pub fn hc_post(
    x: &ggml_tensor,
    residual: &ggml_tensor,
    post: &ggml_tensor,
    comb: Option<&ggml_tensor>,
) -> Result<NodeSpec, Error> {
    all_f32(&[("x", x), ("residual", residual), ("post", post)])?;
    require!(x.ne[2] == 1 && x.ne[3] == 1, "{} must be a matrix", show("x", x));
    let [n, tokens, ..] = x.ne;
    let streams = residual.ne[1];
    require!(
        streams > 0 && residual.ne == [n, streams, tokens, 1],
        "{} must be [ne0, streams, ne1] of {}",
        show("residual", residual),
        show("x", x)
    );
    require!(
        post.ne == [streams, tokens, 1, 1],
        "{} must be [ne1, ne2] of {}",
        show("post", post),
        show("residual", residual)
    );
    if let Some(comb) = comb {
        all_f32(&[("comb", comb)])?;
        require!(
            comb.ne == [streams, streams, tokens, 1],
            "{} must be [ne1, ne1, ne2] of {}",
            show("comb", comb),
            show("residual", residual)
        );
    }
    Ok(NodeSpec::new(GGML_OP_DSV4_HC_POST, GGML_TYPE_F32, residual.ne))
}

/// LIGHTNING_INDEXER: f32 `q` [d, heads, tokens, b], `k` [d, 1, keys, b], f32 `weights` [heads, tokens, 1, b], f16 `mask`
/// [keys, tokens, 1, m], b a multiple of m, give f32 [keys, tokens, 1, b].
pub fn lightning_indexer(
    q: &ggml_tensor,
    k: &ggml_tensor,
    weights: &ggml_tensor,
    mask: &ggml_tensor,
) -> Result<NodeSpec, Error> {
    all_f32(&[("q", q), ("weights", weights)])?;
    require!(mask.r#type == GGML_TYPE_F16, "{} must be f16", show("mask", mask));
    let ([d, heads, tokens, b], keys) = (q.ne, k.ne[2]);
    require!(k.ne == [d, 1, keys, b], "{} must be [ne0, 1, keys, ne3] of {}", show("k", k), show("q", q));
    require!(
        weights.ne == [heads, tokens, 1, b],
        "{} must be [ne1, ne2, 1, ne3] of {}",
        show("weights", weights),
        show("q", q)
    );
    require!(
        mask.ne[..3] == [keys, tokens, 1],
        "{} must cover the keys of {} and the tokens of {}",
        show("mask", mask),
        show("k", k),
        show("q", q)
    );
    require!(divides(mask.ne[3], b), "{} cannot be repeated along dimension 3 of {}", show("mask", mask), show("q", q));
    Ok(NodeSpec::new(GGML_OP_LIGHTNING_INDEXER, GGML_TYPE_F32, [keys, tokens, 1, b]))
}
