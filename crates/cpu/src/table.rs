//! The one table of operators: what it refuses is refused by capability answers and by computation alike.

use crate::node::{Node, FLAG_POISONED};
use crate::team::Team;
use crate::{conv, custom, matmul};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;

/// What the backend knows of one operator.
pub struct OpEntry {
    /// `Err` names the rule that the node breaks. Reads metadata only; sources may be missing.
    pub supports: fn(&ggml_tensor) -> Result<(), &'static str>,
    /// Bytes of scratch memory for `nth` threads. Called for supported nodes only; `usize::MAX` when it does not fit.
    pub work: fn(&ggml_tensor, nth: usize) -> usize,
    /// Threads worth using, of `nth`: 1 for nodes too small to share; anything else means all. Called for supported nodes only.
    pub n_tasks: fn(&ggml_tensor, nth: usize) -> usize,
    /// Computes the node; every thread of the team calls it.
    pub run: fn(&Node, &Team),
}

/// No scratch memory.
pub fn no_work(_: &ggml_tensor, _: usize) -> usize {
    0
}

/// Elements of the result below which sharing out costs more than it gives, for kernels of a few operations per element.
const SMALL: i64 = 8192;

/// All threads, or one for a small result: for kernels of a few operations per element.
pub fn tasks_by_size(op: &ggml_tensor, nth: usize) -> usize {
    if shape::nelements(op) < SMALL {
        1
    } else {
        nth
    }
}

/// All threads.
pub fn all_tasks(_: &ggml_tensor, nth: usize) -> usize {
    nth
}

/// What computes `op`; `None` for an operator that this backend lacks.
pub fn entry(op: ggml_op) -> Option<&'static OpEntry> {
    Some(match op {
        GGML_OP_MAP_CUSTOM1 | GGML_OP_MAP_CUSTOM2 | GGML_OP_MAP_CUSTOM3 | GGML_OP_CUSTOM => &custom::CUSTOM,
        GGML_OP_MUL_MAT => &matmul::MUL_MAT,
        GGML_OP_MUL_MAT_ID => &matmul::MUL_MAT_ID,
        GGML_OP_IM2COL => &conv::IM2COL,
        GGML_OP_IM2COL_3D => &conv::IM2COL_3D,
        GGML_OP_CONV_2D => &conv::CONV_2D,
        GGML_OP_CONV_3D => &conv::CONV_3D,
        GGML_OP_CONV_2D_DW => &conv::CONV_2D_DW,
        GGML_OP_CONV_TRANSPOSE_1D => &conv::CONV_TRANSPOSE_1D,
        GGML_OP_CONV_TRANSPOSE_2D => &conv::CONV_TRANSPOSE_2D,
        GGML_OP_POOL_1D => &conv::POOL_1D,
        GGML_OP_POOL_2D => &conv::POOL_2D,
        _ => return crate::ops::entry(op),
    })
}

/// Whether nothing is computed for the operator: its result is its source's memory.
pub fn is_view_op(op: ggml_op) -> bool {
    matches!(op, GGML_OP_NONE | GGML_OP_RESHAPE | GGML_OP_VIEW | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE)
}

/// The rule that keeps this backend from computing `op`, or `None` when it can.
pub fn refusal(op: &ggml_tensor) -> Option<&'static str> {
    check(op).err()
}

/// Whether this backend computes `op`.
pub fn supports_op(op: &ggml_tensor) -> bool {
    check(op).is_ok()
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
    (entry.supports)(op)?;
    Ok(Some(entry))
}
