//! Shape rules of operators that keep the shape of source 0: arithmetic, unary functions, gated units.

use super::spec::{repeats, require, show, NodeSpec};
use crate::error::Error;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// ADD, SUB, MUL, DIV: `b` repeats to the shape of `a`.
pub fn binary(op: ggml_op, a: &ggml_tensor, b: &ggml_tensor, inplace: bool) -> Result<NodeSpec, Error> {
    require!(repeats(b, &a.ne), "{} cannot be repeated to {}", show("src1", b), show("src0", a));
    Ok(NodeSpec::like_or_over(op, a, inplace))
}

/// ADD to another format: `a` quantised, f16 or bf16; rows of `b` as long as those of `a`.
pub fn add_cast(a: &ggml_tensor, b: &ggml_tensor, ty: ggml_type) -> Result<NodeSpec, Error> {
    require!(
        a.ne[0] == b.ne[0] && repeats(b, &a.ne),
        "rows of {} cannot be repeated to {}",
        show("src1", b),
        show("src0", a)
    );
    let quantised = shape::format_of(a.r#type).is_some_and(|f| f.is_quantized());
    require!(
        quantised || a.r#type == GGML_TYPE_F16 || a.r#type == GGML_TYPE_BF16,
        "{} must be quantised, f16 or bf16",
        show("src0", a)
    );
    Ok(NodeSpec::new(GGML_OP_ADD, ty, a.ne))
}

/// ADD_ID: `a` [n, used, tokens], `b` [n, ids], `ids` i32 [used, tokens].
pub fn add_id(a: &ggml_tensor, b: &ggml_tensor, ids: &ggml_tensor) -> Result<NodeSpec, Error> {
    require!(a.ne[0] == b.ne[0], "{} and {}: ne[0] must be equal", show("src0", a), show("src1", b));
    require!(
        a.ne[1] == ids.ne[0] && a.ne[2] == ids.ne[1],
        "{} needs an id for each row of {}",
        show("ids", ids),
        show("src0", a)
    );
    require!(ids.r#type == GGML_TYPE_I32, "{} must be i32", show("ids", ids));
    Ok(NodeSpec::like(GGML_OP_ADD_ID, a))
}

/// Rows packed and the only gap allowed between the elements of rows of dimension 1.
pub fn is_padded_1d(a: &ggml_tensor) -> bool {
    let step = |i: usize| a.nb[i].checked_mul(usize::try_from(a.ne[i]).ok()?);
    a.nb[0] == shape::type_size(a.r#type) && Some(a.nb[2]) == step(1) && Some(a.nb[3]) == step(2)
}

/// ADD1: `b` has one element; `a` has gaps after rows at most.
pub fn add1(a: &ggml_tensor, b: &ggml_tensor, inplace: bool) -> Result<NodeSpec, Error> {
    require!(shape::is_scalar(b), "{} must have one element", show("src1", b));
    require!(is_padded_1d(a), "{} must have no gaps but after rows: strides {:?}", show("src0", a), a.nb);
    Ok(NodeSpec::like_or_over(GGML_OP_ADD1, a, inplace))
}

/// ACC and SET: `b` goes into a window of `a` with the strides and offset given, in bytes.
pub fn window(
    op: ggml_op,
    a: &ggml_tensor,
    b: &ggml_tensor,
    nb: [usize; 3],
    offset: usize,
    inplace: bool,
) -> Result<NodeSpec, Error> {
    if op == GGML_OP_ACC {
        require!(
            a.r#type == GGML_TYPE_F32 && b.r#type == GGML_TYPE_F32,
            "{} and {} must be f32",
            show("src0", a),
            show("src1", b)
        );
        require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    }
    require!(
        shape::nelements(b) <= shape::nelements(a),
        "{} has more elements than {}",
        show("src1", b),
        show("src0", a)
    );
    let slots = [nb[0], nb[1], nb[2], offset].map(|n| i32::try_from(n).unwrap_or(-1));
    require!(!slots.contains(&-1), "strides {nb:?} and offset {offset} must be below 2^31");
    let strides = [shape::type_size(a.r#type), nb[0], nb[1], nb[2]];
    let target = NodeSpec::new(op, a.r#type, b.ne);
    require!(
        target.fits(&strides, offset, shape::nbytes(a)),
        "{} with strides {nb:?} at offset {offset} leaves {}",
        show("src1", b),
        show("src0", a)
    );
    let [nb1, nb2, nb3, offset] = slots;
    Ok(NodeSpec::like_or_over(op, a, inplace).params([nb1, nb2, nb3, offset, inplace.into()]))
}

/// Operators of one source without parameters: DUP, SQR, SQRT, LOG, SIN, COS.
pub fn plain(op: ggml_op, a: &ggml_tensor, inplace: bool) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::like_or_over(op, a, inplace))
}

/// UNARY: the elements of each row of `a` lie side by side.
pub fn unary(f: ggml_unary_op, a: &ggml_tensor, inplace: bool) -> Result<NodeSpec, Error> {
    require!((0..GGML_UNARY_OP_COUNT.0).contains(&f.0), "there is no unary operator {}", f.0);
    require!(shape::is_contiguous_rows(a), "{} must have contiguous rows", show("src0", a));
    Ok(NodeSpec::like_or_over(GGML_OP_UNARY, a, inplace).params([f.0]))
}

/// LEAKY_RELU.
pub fn leaky_relu(a: &ggml_tensor, negative_slope: f32, inplace: bool) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::like_or_over(GGML_OP_LEAKY_RELU, a, inplace).param_f32(0, negative_slope))
}

/// `ln(1 + e^x)`, which is `x` within rounding for large `x`.
fn softplus(x: f32) -> f32 {
    if x > 20.0 {
        x
    } else {
        x.exp().ln_1p()
    }
}

/// UNARY with the function XIELU; the two alphas are stored after softplus.
pub fn xielu(a: &ggml_tensor, alpha_n: f32, alpha_p: f32, beta: f32, eps: f32) -> Result<NodeSpec, Error> {
    require!(shape::is_contiguous_rows(a), "{} must have contiguous rows", show("src0", a));
    Ok(NodeSpec::like(GGML_OP_UNARY, a)
        .params([GGML_UNARY_OP_XIELU.0])
        .param_f32(1, beta + softplus(alpha_n))
        .param_f32(2, softplus(alpha_p))
        .param_f32(3, beta)
        .param_f32(4, eps))
}

/// GLU: value and gate are the halves of each row of `a`, or `a` and `b`. Rows packed; `b` of the shape and format of `a`.
pub fn glu(f: ggml_glu_op, a: &ggml_tensor, b: Option<&ggml_tensor>, swapped: bool) -> Result<NodeSpec, Error> {
    require!((0..GGML_GLU_OP_COUNT.0).contains(&f.0), "there is no gated unit {}", f.0);
    require!(shape::is_contiguous_n(a, 1), "{} may have gaps before dimension 1 only", show("src0", a));
    let mut ne = a.ne;
    match b {
        Some(b) => {
            require!(shape::is_contiguous_n(b, 1), "{} may have gaps before dimension 1 only", show("src1", b));
            require!(
                shape::same_shape(a, b) && a.r#type == b.r#type,
                "{} and {} must have one shape and format",
                show("src0", a),
                show("src1", b)
            );
        }
        None => ne[0] /= 2,
    }
    Ok(NodeSpec::new(GGML_OP_GLU, a.r#type, ne).params([f.0, swapped.into()]))
}

/// SCALE: `a * s + b`; gaps after rows at most.
pub fn scale(a: &ggml_tensor, s: f32, b: f32, inplace: bool) -> Result<NodeSpec, Error> {
    require!(is_padded_1d(a), "{} must have no gaps but after rows: strides {:?}", show("src0", a), a.nb);
    Ok(NodeSpec::like_or_over(GGML_OP_SCALE, a, inplace).param_f32(0, s).param_f32(1, b))
}

/// CLAMP.
pub fn clamp(a: &ggml_tensor, min: f32, max: f32, inplace: bool) -> Result<NodeSpec, Error> {
    Ok(NodeSpec::like_or_over(GGML_OP_CLAMP, a, inplace).param_f32(0, min).param_f32(1, max))
}

/// FILL: `a` contiguous, f32 or f16.
pub fn fill(a: &ggml_tensor, c: f32, inplace: bool) -> Result<NodeSpec, Error> {
    require!(a.r#type == GGML_TYPE_F32 || a.r#type == GGML_TYPE_F16, "{} must be f32 or f16", show("src0", a));
    require!(shape::is_contiguous(a), "{} must be contiguous", show("src0", a));
    Ok(NodeSpec::like_or_over(GGML_OP_FILL, a, inplace).param_f32(0, c))
}
