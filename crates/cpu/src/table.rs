//! The one table of operators: what it refuses is refused by capability answers and by computation alike.

pub use crate::entry::is_view_op;

use crate::entry::OpEntry;
use crate::node::FLAG_POISONED;
use crate::{conv, custom, matmul};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What computes `op`; `None` for an operator that this backend lacks.
pub fn entry(op: ggml_op) -> Option<&'static OpEntry> {
    Some(match op {
        GGML_OP_MAP_CUSTOM1 | GGML_OP_MAP_CUSTOM2 | GGML_OP_MAP_CUSTOM3 | GGML_OP_CUSTOM => &custom::CUSTOM,
        GGML_OP_MUL_MAT => &matmul::MUL_MAT,
        GGML_OP_MUL_MAT_ID => &matmul::MUL_MAT_ID,
        GGML_OP_OUT_PROD => &matmul::OUT_PROD,
        GGML_OP_IM2COL => &conv::IM2COL,
        GGML_OP_IM2COL_3D => &conv::IM2COL_3D,
        GGML_OP_IM2COL_BACK => &conv::IM2COL_BACK,
        GGML_OP_CONV_2D => &conv::CONV_2D,
        GGML_OP_CONV_3D => &conv::CONV_3D,
        GGML_OP_CONV_2D_DW => &conv::CONV_2D_DW,
        GGML_OP_CONV_TRANSPOSE_1D => &conv::CONV_TRANSPOSE_1D,
        GGML_OP_CONV_TRANSPOSE_2D => &conv::CONV_TRANSPOSE_2D,
        GGML_OP_POOL_1D => &conv::POOL_1D,
        GGML_OP_POOL_2D => &conv::POOL_2D,
        GGML_OP_POOL_2D_BACK => &conv::POOL_2D_BACK,
        _ => return crate::ops::entry(op),
    })
}

/// The rule that keeps this backend from computing `op`, or `None` when it can.
pub fn refusal(op: &ggml_tensor) -> Option<&'static str> {
    check(op).err()
}

/// Whether this backend computes `op`.
pub fn supports_op(op: &ggml_tensor) -> bool {
    check(op).is_ok()
}

/// Whether there is something to compute for `op`, and this backend does it.
pub(crate) fn computes(op: &ggml_tensor) -> bool {
    check(op).is_ok_and(|entry| entry.is_some())
}

fn sane(t: &ggml_tensor) -> Result<(), &'static str> {
    shape::checked_nelements(&t.ne).ok_or("a dimension is negative, or there are too many elements")?;
    shape::checked_nbytes(t.r#type, &t.ne, &t.nb).ok_or("the format is unknown, or the size does not fit")?;
    Ok(())
}

/// The entry that computes `op` (`None`: nothing to compute), or the rule that it breaks.
pub(crate) fn check(op: &ggml_tensor) -> Result<Option<&'static OpEntry>, &'static str> {
    if op.flags & FLAG_POISONED != 0 {
        return Err("the tensor could not be built");
    }
    if is_view_op(op.op) {
        return Ok(None);
    }
    let entry = entry(op.op).ok_or("this backend has no kernel for the operator")?;
    sane(op)?;
    for i in 0..GGML_MAX_SRC {
        if let Ok(s) = crate::node::src(op, i) {
            sane(s)?;
        }
    }
    // Nothing is computed whatever the sources are like, so the answer may not depend on them either.
    if shape::is_empty(op) {
        return Ok(None);
    }
    // Which thread writes last would be left to chance.
    if shape::may_overlap_itself(op) {
        return Err("elements of the result lie over each other");
    }
    (entry.supports)(op)?;
    Ok(Some(entry))
}
