//! Shape rules of operators that carry a state along a sequence: state space models, linear attention. The result is one matrix: what
//! the tokens give, and behind it the states after the last of them.

use super::spec::{divides, product, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

fn contiguous(role: &str, t: &ggml_tensor) -> Result<(), Error> {
    require!(shape::is_contiguous(t), "{} must be contiguous", show(role, t));
    Ok(())
}

/// SSM_CONV: `sx` [taps - 1 + tokens, channels, sequences] and `c` [taps, channels] give f32 [channels, tokens, sequences].
pub fn ssm_conv(sx: &ggml_tensor, c: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(sx.ne[3] == 1, "{} must have 3 dimensions", show("sx", sx));
    require!(c.ne[2] == 1 && c.ne[3] == 1, "{} must be a matrix", show("c", c));
    require!(sx.ne[1] == c.ne[1], "{} and {}: ne[1] must be equal", show("sx", sx), show("c", c));
    let tokens = sx.ne[0].saturating_sub(c.ne[0]).saturating_add(1);
    require!(tokens >= 0, "{} is too short for the taps of {}", show("sx", sx), show("c", c));
    Ok(NodeSpec::new(GGML_OP_SSM_CONV, GGML_TYPE_F32, [sx.ne[1], tokens, sx.ne[2], 1]))
}

/// Sources of a selective scan.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    /// States [d_state, head_dim, heads, any], contiguous.
    pub s: &'a ggml_tensor,
    /// [head_dim, heads, tokens, sequences], heads side by side.
    pub x: &'a ggml_tensor,
    /// [heads, tokens, sequences], contiguous.
    pub dt: &'a ggml_tensor,
    /// [1, heads] or [d_state, heads], contiguous.
    pub a: &'a ggml_tensor,
    /// [d_state, groups, tokens, sequences], groups side by side.
    pub b: &'a ggml_tensor,
    /// As `b`.
    pub c: &'a ggml_tensor,
    /// i32 [sequences]: which of the states each sequence starts from.
    pub ids: &'a ggml_tensor,
}

/// SSM_SCAN: f32, one row: x's shape, then `k` times the states of all sequences.
pub fn ssm_scan(scan: Scan, k: i64) -> Result<NodeSpec, Error> {
    let Scan { s, x, dt, a, b, c, ids } = scan;
    require!(k >= 1 && k <= i32::MAX.into(), "{k} states to keep: there must be 1 to 2^31 - 1");
    contiguous("s", s)?;
    contiguous("dt", dt)?;
    contiguous("A", a)?;
    for (role, t) in [("x", x), ("B", b), ("C", c)] {
        let row = (t.ne[0] as usize).checked_mul(t.nb[0]);
        require!(
            t.nb[0] == shape::type_size(t.r#type) && Some(t.nb[1]) == row,
            "{}: dimensions 0 and 1 must have no gaps",
            show(role, t)
        );
    }
    require!(shape::same_shape(b, c), "{} and {} must have one shape", show("B", b), show("C", c));
    require!(ids.r#type == GGML_TYPE_I32, "{} must be i32", show("ids", ids));
    let [dim, heads, tokens, seqs] = x.ne;
    let state = s.ne[0];
    require!(
        dt.ne == [heads, tokens, seqs, 1],
        "{} must be [heads, tokens, sequences] of {}",
        show("dt", dt),
        show("x", x)
    );
    require!(
        s.ne[1..3] == [dim, heads],
        "{}: ne[1] and ne[2] must be ne[0] and ne[1] of {}",
        show("s", s),
        show("x", x)
    );
    require!(
        b.ne[0] == state && b.ne[2..] == [tokens, seqs],
        "{} must have ne[0] of {} and ne[2], ne[3] of {}",
        show("B", b),
        show("s", s),
        show("x", x)
    );
    require!(divides(b.ne[1], heads), "{}: the groups must divide the heads of {}", show("B", b), show("x", x));
    require!(
        ids.ne == [seqs, 1, 1, 1],
        "{}: there must be one for each sequence of {}",
        show("ids", ids),
        show("x", x)
    );
    require!(
        a.ne[1..] == [heads, 1, 1],
        "{} must be a matrix with a row for each head of {}",
        show("A", a),
        show("x", x)
    );
    if a.ne[0] != 1 {
        require!(a.ne[0] == state, "{}: ne[0] must be 1 or ne[0] of {}", show("A", a), show("s", s));
        require!(k == 1, "{}: several states can be kept where ne[0] is 1 only", show("A", a));
    }
    let n = product(&x.ne).saturating_add(product(&[k, state, dim, heads, seqs]));
    Ok(NodeSpec::new(GGML_OP_SSM_SCAN, GGML_TYPE_F32, [n, 1, 1, 1]).params([k as i32]))
}

/// The rules that RWKV and gated linear attention share: all `sources` contiguous [size, heads, tokens], `state` with
/// size * size * heads elements for each of dimension 1, which are the sequences; tokens are shared out to them evenly. The result:
/// f32 [size * heads, tokens + size * sequences].
fn linear(op: ggml_op, sources: &[(&str, &ggml_tensor)], state: &ggml_tensor) -> Result<NodeSpec, Error> {
    let (first, k) = sources[0];
    let [size, heads, tokens, _] = k.ne;
    for &(role, t) in sources {
        contiguous(role, t)?;
        require!(
            t.ne == [size, heads, tokens, 1],
            "{} and {} must have one shape of 3 dimensions",
            show(role, t),
            show(first, k)
        );
    }
    contiguous("state", state)?;
    let seqs = state.ne[1];
    require!(
        product(&state.ne) == product(&[size, size, heads, seqs]),
        "{}: there must be {size} * {size} * {heads} elements for each of dimension 1",
        show("state", state)
    );
    require!(
        divides(seqs, tokens),
        "{}: the tokens must be a multiple of the sequences of {}",
        show(first, k),
        show("state", state)
    );
    let rows = tokens.saturating_add(product(&[size, seqs]));
    Ok(NodeSpec::new(op, GGML_TYPE_F32, [product(&[size, heads]), rows, 1, 1]))
}

/// RWKV_WKV6: `sources` are k, v, r, td [size, heads, tokens]; `tf` is [size, heads].
pub fn wkv6(sources: [&ggml_tensor; 4], tf: &ggml_tensor, state: &ggml_tensor) -> Result<NodeSpec, Error> {
    let [k, v, r, td] = sources;
    contiguous("tf", tf)?;
    let spec = linear(GGML_OP_RWKV_WKV6, &[("k", k), ("v", v), ("r", r), ("td", td)], state)?;
    require!(
        product(&tf.ne) >= product(&k.ne[..2]),
        "{}: there must be an element for each of dimensions 0 and 1 of {}",
        show("tf", tf),
        show("k", k)
    );
    Ok(spec)
}

/// RWKV_WKV7: `sources` are r, w, k, v, a, b [size, heads, tokens].
pub fn wkv7(sources: [&ggml_tensor; 6], state: &ggml_tensor) -> Result<NodeSpec, Error> {
    let [r, w, k, v, a, b] = sources;
    linear(GGML_OP_RWKV_WKV7, &[("r", r), ("w", w), ("k", k), ("v", v), ("a", a), ("b", b)], state)
}

/// GATED_LINEAR_ATTN: `sources` are k, v, q, g [size, heads, tokens].
pub fn gated_linear(sources: [&ggml_tensor; 4], state: &ggml_tensor, scale: f32) -> Result<NodeSpec, Error> {
    let [k, v, q, g] = sources;
    let spec = linear(GGML_OP_GATED_LINEAR_ATTN, &[("k", k), ("v", v), ("q", q), ("g", g)], state)?;
    Ok(spec.param_f32(0, scale))
}

/// Sources of a gated delta rule; all f32.
#[derive(Clone, Copy)]
pub struct Delta<'a> {
    /// [size, q heads, tokens, q sequences] in rows without gaps.
    pub q: &'a ggml_tensor,
    /// [size, k heads, tokens, k sequences] in rows without gaps.
    pub k: &'a ggml_tensor,
    /// [size, heads, tokens, sequences] in rows without gaps; heads and sequences are multiples of those of `q` and `k`.
    pub v: &'a ggml_tensor,
    /// [1 or size, heads, tokens, sequences], contiguous.
    pub g: &'a ggml_tensor,
    /// [1, heads, tokens, sequences], contiguous.
    pub beta: &'a ggml_tensor,
    /// [size, size, heads, sequences], contiguous.
    pub state: &'a ggml_tensor,
}

/// GATED_DELTA_NET: f32 [size * heads, tokens * sequences + `keep` * size * sequences].
pub fn gated_delta_net(delta: Delta, keep: i64) -> Result<NodeSpec, Error> {
    let Delta { q, k, v, g, beta, state } = delta;
    require!(keep >= 1 && keep <= i32::MAX.into(), "{keep} states to keep: there must be 1 to 2^31 - 1");
    for (role, t) in [("q", q), ("k", k), ("v", v), ("g", g), ("beta", beta), ("state", state)] {
        require!(t.r#type == GGML_TYPE_F32, "{} must be f32", show(role, t));
    }
    let [size, heads, tokens, seqs] = v.ne;
    for (role, t) in [("q", q), ("k", k), ("v", v)] {
        require!(shape::is_contiguous_rows(t), "{} must have contiguous rows", show(role, t));
        require!(
            t.ne[0] == size && t.ne[2] == tokens,
            "{} and {}: ne[0] and ne[2] must be equal",
            show(role, t),
            show("v", v)
        );
        require!(
            divides(t.ne[1], heads) && divides(t.ne[3], seqs),
            "{} cannot be repeated along dimensions 1 and 3 of {}",
            show(role, t),
            show("v", v)
        );
    }
    for (role, t) in [("g", g), ("beta", beta), ("state", state)] {
        contiguous(role, t)?;
    }
    require!(
        (g.ne[0] == 1 || g.ne[0] == size) && g.ne[1..] == v.ne[1..],
        "{} must be [1 or ne0, ne1, ne2, ne3] of {}",
        show("g", g),
        show("v", v)
    );
    require!(
        beta.ne == [1, heads, tokens, seqs],
        "{} must be [1, ne1, ne2, ne3] of {}",
        show("beta", beta),
        show("v", v)
    );
    require!(
        state.ne == [size, size, heads, seqs],
        "{} must be [ne0, ne0, ne1, ne3] of {}",
        show("state", state),
        show("v", v)
    );
    let rows = product(&[tokens, seqs]).saturating_add(product(&[keep, size, seqs]));
    Ok(NodeSpec::new(GGML_OP_GATED_DELTA_NET, GGML_TYPE_F32, [product(&[size, heads]), rows, 1, 1])
        .params([keep as i32]))
}
