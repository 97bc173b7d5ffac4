//! Shape rule of rotary position embedding.

use super::spec::{require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;

/// Arguments of the rope functions.
#[derive(Clone, Copy, Debug)]
pub struct Rope {
    /// Elements of a row that are turned.
    pub n_dims: i32,
    /// One of `GGML_ROPE_TYPE_*`.
    pub mode: i32,
    /// Context that the model was trained with (YaRN).
    pub n_ctx_orig: i32,
    /// Base, scale, YaRN mix, magnitude, and the two YaRN corrections, in the order of `op_params`.
    pub factors: [f32; 6],
    /// Widths of the position streams; used by the MROPE modes only.
    pub sections: Option<[i32; GGML_MROPE_SECTIONS]>,
}

impl Rope {
    /// The arguments of `ggml_rope`.
    pub fn simple(n_dims: i32, mode: i32) -> Self {
        Rope { n_dims, mode, n_ctx_orig: 0, factors: [10000.0, 1.0, 0.0, 1.0, 0.0, 0.0], sections: None }
    }
}

/// ROPE: `a` [n, heads, tokens, batch], `positions` i32 [tokens] (MROPE modes: [4 * tokens]), `freqs` f32 [>= n_dims / 2].
pub fn rope(
    a: &ggml_tensor,
    positions: &ggml_tensor,
    freqs: Option<&ggml_tensor>,
    args: &Rope,
    inplace: bool,
) -> Result<NodeSpec, Error> {
    let Rope { n_dims, mode, .. } = *args;
    require!(mode & 1 == 0, "mode {mode} is no longer known");
    require!(n_dims >= 0 && n_dims % 2 == 0, "n_dims {n_dims} must be even and not negative");
    require!(i64::from(n_dims) <= a.ne[0], "{}: n_dims {n_dims} must not be above ne[0]", show("src0", a));
    require!(
        positions.r#type == GGML_TYPE_I32 && positions.ne[1..] == [1, 1, 1],
        "{} must be an i32 vector",
        show("positions", positions)
    );
    let streams = mode & GGML_ROPE_TYPE_MROPE != 0;
    let per_token = if streams { 4 } else { 1 };
    require!(
        a.ne[2].checked_mul(per_token) == Some(positions.ne[0]),
        "{} must have {per_token} for each token of {}",
        show("positions", positions),
        show("src0", a)
    );
    if let Some(freqs) = freqs {
        require!(
            freqs.r#type == GGML_TYPE_F32 && freqs.ne[0] >= i64::from(n_dims / 2),
            "{} must be f32 with at least n_dims / 2 = {} elements",
            show("freqs", freqs),
            n_dims / 2
        );
    }
    let mut spec = NodeSpec::like_or_over(GGML_OP_ROPE, a, inplace).params([0, n_dims, mode, 0, args.n_ctx_orig]);
    for (i, &factor) in args.factors.iter().enumerate() {
        spec = spec.param_f32(5 + i, factor);
    }
    if let Some(sections) = args.sections.filter(|_| streams) {
        spec.params[11..15].copy_from_slice(&sections);
    }
    Ok(spec)
}

/// ROPE_BACK: gradient `a` of a [`rope`] with the same arguments back to its source.
pub fn rope_back(
    a: &ggml_tensor,
    positions: &ggml_tensor,
    freqs: Option<&ggml_tensor>,
    args: &Rope,
) -> Result<NodeSpec, Error> {
    Ok(NodeSpec { op: GGML_OP_ROPE_BACK, ..rope(a, positions, freqs, args, false)? })
}

/// The pairs of `n_dims` at which YaRN begins and ends to blend: the first not below 0, the second not above `n_dims - 1`.
pub fn yarn_corr_dims(n_dims: i32, n_ctx_orig: i32, freq_base: f32, beta_fast: f32, beta_slow: f32) -> [f32; 2] {
    // the pair that turns `beta` times over the whole context
    let pair = |beta: f32| {
        let turns = n_ctx_orig as f32 / (beta * 2.0 * std::f32::consts::PI);
        n_dims as f32 * turns.ln() / (2.0 * freq_base.ln())
    };
    // as comparisons, and not `max` and `min`, so that what is no number stays none
    let (first, last) = (pair(beta_fast).floor(), pair(beta_slow).ceil());
    let most = n_dims as f32 - 1.0;
    [if first < 0.0 { 0.0 } else { first }, if last > most { most } else { last }]
}
