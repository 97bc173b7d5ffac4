//! Shape rules of matrix products.

use super::spec::{divides, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// The rules that `mul_mat` and attention share: rows of `a` as long as those of `b`, `a` repeats along dimensions 2 and 3.
pub fn check(roles: [&str; 2], a: &ggml_tensor, b: &ggml_tensor) -> Result<(), Error> {
    let [ra, rb] = roles;
    require!(a.ne[0] == b.ne[0], "{} and {}: ne[0] must be equal", show(ra, a), show(rb, b));
    require!(
        divides(a.ne[2], b.ne[2]) && divides(a.ne[3], b.ne[3]),
        "{} cannot be repeated along dimensions 2 and 3 of {}",
        show(ra, a),
        show(rb, b)
    );
    Ok(())
}

/// Whether rows of `a` lie across memory; those of a tensor without elements do not, whatever its strides.
fn is_transposed(a: &ggml_tensor) -> bool {
    shape::is_transposed(a) && !shape::is_empty(a)
}

/// MUL_MAT: `a` [k, m, a2, a3] and `b` [k, n, b2, b3] give f32 [m, n, b2, b3].
pub fn mul_mat(a: &ggml_tensor, b: &ggml_tensor) -> Result<NodeSpec, Error> {
    check(["src0", "src1"], a, b)?;
    require!(!is_transposed(a), "{} must not be transposed", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_MUL_MAT, GGML_TYPE_F32, [a.ne[1], b.ne[1], b.ne[2], b.ne[3]]))
}

/// OUT_PROD: `a` [m, k, a2, a3] and `b` [n, k, b2, b3] give f32 [m, n, b2, b3], sums over dimension 1; `a` repeats along dimensions 2
/// and 3.
pub fn out_prod(a: &ggml_tensor, b: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(a.ne[1] == b.ne[1], "{} and {}: ne[1] must be equal", show("src0", a), show("src1", b));
    require!(
        divides(a.ne[2], b.ne[2]) && divides(a.ne[3], b.ne[3]),
        "{} cannot be repeated along dimensions 2 and 3 of {}",
        show("src0", a),
        show("src1", b)
    );
    require!(!is_transposed(a), "{} must not be transposed", show("src0", a));
    Ok(NodeSpec::new(GGML_OP_OUT_PROD, GGML_TYPE_F32, [a.ne[0], b.ne[0], b.ne[2], b.ne[3]]))
}

/// MUL_MAT_ID: `experts` [k, m, n_expert], `b` [k, b1, tokens], `ids` i32 [used, tokens] with `used` a multiple of b1, give
/// f32 [m, used, tokens].
pub fn mul_mat_id(experts: &ggml_tensor, b: &ggml_tensor, ids: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(!is_transposed(experts), "{} must not be transposed", show("src0", experts));
    require!(ids.r#type == GGML_TYPE_I32, "{} must be i32", show("ids", ids));
    require!(experts.ne[3] == 1, "{} must have 3 dimensions", show("src0", experts));
    require!(b.ne[3] == 1, "{} must have 3 dimensions", show("src1", b));
    require!(ids.ne[2] == 1 && ids.ne[3] == 1, "{} must be a matrix", show("ids", ids));
    require!(ids.ne[1] == b.ne[2], "{} needs a row for each token of {}", show("ids", ids), show("src1", b));
    require!(experts.ne[0] == b.ne[0], "{} and {}: ne[0] must be equal", show("src0", experts), show("src1", b));
    require!(
        divides(b.ne[1], ids.ne[0]),
        "{} cannot be repeated to the experts of {}",
        show("src1", b),
        show("ids", ids)
    );
    Ok(NodeSpec::new(GGML_OP_MUL_MAT_ID, GGML_TYPE_F32, [experts.ne[1], ids.ne[0], b.ne[2], 1]))
}
