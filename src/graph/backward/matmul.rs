//! Gradients of matrix products. Dimensions 2 and 3 of the first matrix repeat: each of its matrices serves as many in a row.

use super::frame::{Flow, Frame, Node, Tensor};
use crate::error::Error;
use crate::tensor::{backward, matmul, product, view};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// `a` [k, m], `b` [k, n], `g` [m, n]: `da[k, m] = sum_n b[k, n] g[m, n]`, `db[k, n] = sum_m a[k, m] g[m, n]`.
pub fn mul_mat(f: &mut Frame, n: &Node, i: usize) -> Result<Flow, Error> {
    let (a, b, g) = (n.src(0)?, n.src(1)?, n.grad);
    if i == 0 {
        let b = f.plain(b)?;
        let per_matrix = f.out_prod(b, g)?;
        return Ok(Flow::Add(gather(f, per_matrix, a)?));
    }
    // weights are large: they stay as they lie, and the gradient is looked at the other way
    let a = match a.r#type {
        GGML_TYPE_F16 | GGML_TYPE_BF16 => f.f32(a)?,
        _ => a,
    };
    let across = f.transposed(g)?;
    Ok(Flow::Add(f.out_prod(a, across)?))
}

/// `a` [p, k], `b` [q, k], `g` [p, q]: `da[p, k] = sum_q g[p, q] b[q, k]`, `db[q, k] = sum_p g[p, q] a[p, k]`.
pub fn out_prod(f: &mut Frame, n: &Node, i: usize) -> Result<Flow, Error> {
    let (a, b, g) = (n.src(0)?, n.src(1)?, n.grad);
    if i == 0 {
        let b = f.f32(b)?;
        let across = f.transposed(b)?;
        let per_matrix = f.out_prod(g, across)?;
        return Ok(Flow::Add(gather(f, per_matrix, a)?));
    }
    let a = f.plain(a)?;
    let across = f.make(matmul::mul_mat(&a, &g), &[a, g])?;
    let across = f.transposed(across)?;
    Ok(Flow::Add(f.dense(across)?))
}

/// The sum of the matrices of `t` [k, m, b2, b3] that one of `a` [k, m, a2, a3] served.
fn gather(f: &mut Frame, t: Tensor, a: Tensor) -> Result<Tensor, Error> {
    if shape::same_shape(&t, &a) {
        return Ok(t);
    }
    let [_, _, a2, a3] = a.ne;
    let [_, _, b2, b3] = t.ne;
    let matrix = product(&t.ne[..2]);
    // [matrix, r2 | a2, b3]: first the r2 that follow each other, then the r3
    let t = run(f, t, matrix, a2, b3, b2)?;
    let t = run(f, t, product(&[matrix, a2]), a3, 1, b3)?;
    f.reshape(t, a.ne)
}

/// Sums up what `groups` groups of `n` times `size` elements repeat, for each of `outer`: [size, n, outer] gives [size, groups, outer].
fn run(f: &mut Frame, t: Tensor, size: i64, groups: i64, outer: i64, n: i64) -> Result<Tensor, Error> {
    if n == groups {
        return Ok(t);
    }
    let repeats = n / groups.max(1);
    let bytes = |n: i64| usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(4);
    let nb = [bytes(product(&[size, repeats])), bytes(product(&[size, n])), bytes(size)];
    let look = f.make(view::view(&t, &[size, groups, outer, repeats], &nb, 0), &[t])?;
    let to = [size, groups, outer, 1];
    f.make(backward::repeat(&look, to), &[look])
}
