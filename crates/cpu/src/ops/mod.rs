//! Element-wise operators, copies, normalisation, softmax, rope and the like: one file per family.

use crate::table::OpEntry;
use ggml_oxide_abi::*;

/// What computes `op`, of the operators in this module.
pub fn entry(op: ggml_op) -> Option<&'static OpEntry> {
    let _ = op;
    None
}
