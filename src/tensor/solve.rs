//! Shape rule of systems of linear equations.

use super::spec::{require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// SOLVE_TRI: `a` [n, n, b2, b3] and `b` [m, n, b2, b3], both f32 and contiguous, give x of the shape of `b` with a x = b. Nodes have no
/// room for another form than `left`, `lower` and not `uni`.
pub fn solve_tri(a: &ggml_tensor, b: &ggml_tensor, left: bool, lower: bool, uni: bool) -> Result<NodeSpec, Error> {
    require!(left && lower && !uni, "there is the form left, lower, with a diagonal of its own only");
    for (role, t) in [("src0", a), ("src1", b)] {
        require!(t.r#type == GGML_TYPE_F32, "{} must be f32", show(role, t));
        require!(shape::is_contiguous(t), "{} must be contiguous", show(role, t));
    }
    require!(a.ne[0] == a.ne[1], "{} must be square", show("src0", a));
    require!(
        a.ne[1..] == b.ne[1..],
        "{} and {}: ne[1], ne[2] and ne[3] must be equal",
        show("src0", a),
        show("src1", b)
    );
    Ok(NodeSpec::like(GGML_OP_SOLVE_TRI, b))
}
