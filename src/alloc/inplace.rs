//! Which operators may write their result over a source of the same layout.

use ggml_oxide_abi::*;

/// Bit `i`: the kernel of `op`, ours or a module's, reads element `n` of source `i` before it writes element `n` of the result, and
/// not after. It is a promise of the interface: modules count on it, and clients on the sizes that follow.
pub fn sources(op: ggml_op) -> u16 {
    match op {
        GGML_OP_ADD | GGML_OP_SUB | GGML_OP_MUL | GGML_OP_DIV | GGML_OP_ADD1 | GGML_OP_SILU_BACK => 0b11,
        // the mask is read row by row, as the scores are
        GGML_OP_SOFT_MAX => 0b11,
        GGML_OP_FILL | GGML_OP_SCALE | GGML_OP_CLAMP | GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_UNARY => 0b1,
        GGML_OP_DIAG_MASK_ZERO | GGML_OP_DIAG_MASK_INF | GGML_OP_ROPE | GGML_OP_ROPE_BACK | GGML_OP_RMS_NORM => 0b1,
        // rows of the second source are picked by number: one may be wanted after it was written over
        GGML_OP_ADD_ID => 0b1,
        // kernels of modules copy the one source over the result first and read the other after that
        GGML_OP_SOFT_MAX_BACK => 0b1,
        GGML_OP_RMS_NORM_BACK => 0b10,
        _ => 0,
    }
}
