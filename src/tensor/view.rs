//! Shape rules of operators that only look at memory in another way.

use super::spec::{dims, product, require, show, NodeSpec, Place};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// RESHAPE: `a` contiguous, as many elements in `ne`.
pub fn reshape(a: &ggml_tensor, ne: [i64; GGML_MAX_DIMS]) -> Result<NodeSpec, Error> {
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    require!(
        shape::checked_nelements(&ne) == Some(shape::nelements(a)),
        "{} has {} elements, {} has {}",
        show("src0", a),
        shape::nelements(a),
        dims(&ne),
        product(&ne)
    );
    Ok(NodeSpec { place: Place::View { of: 0, offs: 0 }, ..NodeSpec::new(GGML_OP_RESHAPE, a.r#type, ne) }
        .named(0, "reshaped")
        .keeping(1))
}

/// VIEW: up to 4 dimensions `ne`, strides of dimensions 1 and up in bytes as far as given (missing: packed after the last given
/// one), and an offset in bytes. Stays inside the storage of `a`.
pub fn view(a: &ggml_tensor, ne: &[i64], nb: &[usize], offset: usize) -> Result<NodeSpec, Error> {
    let mut all = [1; GGML_MAX_DIMS];
    all[..ne.len()].copy_from_slice(ne);
    let mut spec = NodeSpec::new(GGML_OP_VIEW, a.r#type, all);
    spec.place = Place::View { of: 0, offs: offset };
    if !nb.is_empty() {
        let (packed, _) = spec.layout()?;
        let mut strides = packed;
        for i in 1..GGML_MAX_DIMS {
            strides[i] = match nb.get(i - 1) {
                Some(&nb) => nb,
                // saturated strides are never walked: such a view leaves its storage, or has no elements
                None => strides[i - 1].saturating_mul(all[i - 1] as usize),
            };
        }
        spec.nb = Some(strides);
    }
    Ok(spec.named(0, "view").param_usize(0, offset))
}

/// PERMUTE: dimension `i` of `a` becomes dimension `axes[i]`.
pub fn permute(a: &ggml_tensor, axes: [i32; GGML_MAX_DIMS]) -> Result<NodeSpec, Error> {
    let mut spec = NodeSpec::over(GGML_OP_PERMUTE, a, 0).named(0, "permuted").params(axes);
    let mut nb = [0; GGML_MAX_DIMS];
    let mut seen = [false; GGML_MAX_DIMS];
    for (i, &axis) in axes.iter().enumerate() {
        let to = usize::try_from(axis).ok().filter(|&to| to < GGML_MAX_DIMS && !seen[to]);
        let Some(to) = to else {
            return Err(Error::argument(format!("axes {axes:?} are no permutation of 0,1,2,3")));
        };
        seen[to] = true;
        spec.ne[to] = a.ne[i];
        nb[to] = a.nb[i];
    }
    spec.nb = Some(nb);
    Ok(spec)
}

/// TRANSPOSE: dimensions 0 and 1 swapped.
pub fn transpose(a: &ggml_tensor) -> Result<NodeSpec, Error> {
    let spec = permute(a, [1, 0, 2, 3])?;
    Ok(NodeSpec { op: GGML_OP_TRANSPOSE, ..spec }.named(0, "transposed").params([0; GGML_MAX_DIMS]))
}
