//! What is known of each operator: whether computing it does anything, where it may write, whether a fusion may swallow it. An
//! operator that is in no list is unknown.

use ggml_oxide_abi::*;
use ggml_oxide_shape::is_view;

/// What computing a node does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: the result is a source's memory, or was there before.
    Nothing,
    /// It reads its sources and writes storage of its own.
    Owns,
    /// It reads its sources and writes over one of them, which has its layout.
    Over,
    /// Nobody knows.
    Unknown,
}

/// The source that the operator's in-place form writes over, for those that have one.
pub fn writes_over(op: ggml_op) -> Option<usize> {
    match op {
        GGML_OP_ADD | GGML_OP_SUB | GGML_OP_MUL | GGML_OP_DIV | GGML_OP_ADD1 | GGML_OP_ACC | GGML_OP_SET => Some(0),
        GGML_OP_DUP | GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_SIN | GGML_OP_COS | GGML_OP_UNARY => Some(0),
        GGML_OP_SCALE | GGML_OP_CLAMP | GGML_OP_FILL | GGML_OP_LEAKY_RELU | GGML_OP_ADD_REL_POS => Some(0),
        GGML_OP_NORM | GGML_OP_RMS_NORM | GGML_OP_L2_NORM | GGML_OP_GROUP_NORM | GGML_OP_ROPE => Some(0),
        GGML_OP_DIAG_MASK_INF | GGML_OP_DIAG_MASK_ZERO | GGML_OP_SOFT_MAX | GGML_OP_SOFT_MAX_BACK => Some(0),
        GGML_OP_CPY => Some(1),
        GGML_OP_SET_ROWS => Some(2),
        _ => None,
    }
}

/// Whether a fusion may swallow the operator: its result depends on its sources and parameters alone and it writes nothing else.
/// `extension`: it is one of a registered operator. Operators of training are left out, and those that carry a state from run to run.
pub fn is_pure(op: ggml_op, extension: bool) -> bool {
    is_view(op)
        || match op {
            GGML_OP_CUSTOM => extension,
            GGML_OP_DUP | GGML_OP_CPY | GGML_OP_CONT | GGML_OP_REPEAT | GGML_OP_CONCAT | GGML_OP_GET_ROWS => true,
            GGML_OP_ADD | GGML_OP_ADD_ID | GGML_OP_ADD1 | GGML_OP_SUB | GGML_OP_MUL | GGML_OP_DIV => true,
            GGML_OP_ACC | GGML_OP_SET | GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_SIN | GGML_OP_COS => true,
            GGML_OP_SUM | GGML_OP_SUM_ROWS | GGML_OP_CUMSUM | GGML_OP_MEAN | GGML_OP_ARGMAX => true,
            GGML_OP_NORM | GGML_OP_RMS_NORM | GGML_OP_GROUP_NORM | GGML_OP_L2_NORM => true,
            GGML_OP_MUL_MAT | GGML_OP_MUL_MAT_ID | GGML_OP_OUT_PROD | GGML_OP_SOLVE_TRI => true,
            GGML_OP_SCALE | GGML_OP_CLAMP | GGML_OP_FILL | GGML_OP_UNARY | GGML_OP_LEAKY_RELU | GGML_OP_GLU => true,
            GGML_OP_DIAG | GGML_OP_DIAG_MASK_INF | GGML_OP_DIAG_MASK_ZERO | GGML_OP_TRI => true,
            GGML_OP_SOFT_MAX | GGML_OP_ROPE | GGML_OP_FLASH_ATTN_EXT | GGML_OP_SSM_CONV => true,
            GGML_OP_CONV_2D | GGML_OP_CONV_3D | GGML_OP_CONV_2D_DW | GGML_OP_IM2COL | GGML_OP_IM2COL_3D => true,
            GGML_OP_CONV_TRANSPOSE_1D | GGML_OP_CONV_TRANSPOSE_2D | GGML_OP_COL2IM_1D => true,
            GGML_OP_POOL_1D | GGML_OP_POOL_2D | GGML_OP_UPSCALE | GGML_OP_PAD | GGML_OP_PAD_REFLECT_1D => true,
            GGML_OP_ROLL | GGML_OP_ARANGE | GGML_OP_TIMESTEP_EMBEDDING | GGML_OP_ARGSORT | GGML_OP_TOP_K => true,
            GGML_OP_WIN_PART | GGML_OP_WIN_UNPART | GGML_OP_GET_REL_POS | GGML_OP_ADD_REL_POS => true,
            _ => false,
        }
}

/// Whether all that computing the operator does is known: it reads its sources and writes its result. Callbacks are not, nor are the
/// steps of optimizers, which write over several of their sources.
pub fn is_known(op: ggml_op, extension: bool) -> bool {
    is_pure(op, extension)
        || matches!(
            op,
            GGML_OP_SET_ROWS
                | GGML_OP_COUNT_EQUAL
                | GGML_OP_SSM_SCAN
                | GGML_OP_RWKV_WKV6
                | GGML_OP_RWKV_WKV7
                | GGML_OP_GATED_LINEAR_ATTN
                | GGML_OP_GATED_DELTA_NET
                | GGML_OP_LIGHTNING_INDEXER
                | GGML_OP_DSV4_HC_COMB
                | GGML_OP_DSV4_HC_PRE
                | GGML_OP_DSV4_HC_POST
                | GGML_OP_CROSS_ENTROPY_LOSS
                | GGML_OP_CROSS_ENTROPY_LOSS_BACK
                | GGML_OP_REPEAT_BACK
                | GGML_OP_SILU_BACK
                | GGML_OP_RMS_NORM_BACK
                | GGML_OP_SOFT_MAX_BACK
                | GGML_OP_ROPE_BACK
                | GGML_OP_GET_ROWS_BACK
                | GGML_OP_IM2COL_BACK
                | GGML_OP_POOL_2D_BACK
                | GGML_OP_FLASH_ATTN_BACK
        )
}

/// What a node of `op` does. `owns`: it has storage of its own; `over`: whether it lies exactly over a source.
pub fn effect(op: ggml_op, extension: bool, owns: bool, over: impl FnOnce(usize) -> bool) -> Effect {
    if op == GGML_OP_NONE || is_view(op) {
        Effect::Nothing
    } else if !is_known(op, extension) {
        Effect::Unknown
    } else if owns {
        Effect::Owns
    } else if writes_over(op).is_some_and(over) {
        Effect::Over
    } else {
        Effect::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_41_callbacks_states_and_training_are_never_swallowed() {
        let never = [
            GGML_OP_NONE,
            GGML_OP_MAP_CUSTOM1,
            GGML_OP_MAP_CUSTOM2,
            GGML_OP_MAP_CUSTOM3,
            GGML_OP_CUSTOM,
            GGML_OP_OPT_STEP_ADAMW,
            GGML_OP_OPT_STEP_SGD,
            GGML_OP_CROSS_ENTROPY_LOSS,
            GGML_OP_SET_ROWS,
            GGML_OP_SSM_SCAN,
            GGML_OP_ROPE_BACK,
            GGML_OP_COUNT,
            ggml_op(-1),
            ggml_op(1000),
        ];
        assert!(never.iter().all(|&op| !is_pure(op, false)));
        assert!(is_pure(GGML_OP_CUSTOM, true) && !is_pure(GGML_OP_MAP_CUSTOM1, true));
        assert!([GGML_OP_RMS_NORM, GGML_OP_MUL, GGML_OP_CPY, GGML_OP_VIEW].iter().all(|&op| is_pure(op, false)));
    }

    /// A list of what is unknown, so that a new operator is looked at before it gets in.
    #[test]
    fn ext_45_side_effects_that_nobody_knows() {
        let unknown: Vec<ggml_op> = (0..=GGML_OP_COUNT.0).map(ggml_op).filter(|&op| !is_known(op, false)).collect();
        let expected = [
            GGML_OP_NONE,
            GGML_OP_MAP_CUSTOM1,
            GGML_OP_MAP_CUSTOM2,
            GGML_OP_MAP_CUSTOM3,
            GGML_OP_CUSTOM,
            GGML_OP_OPT_STEP_ADAMW,
            GGML_OP_OPT_STEP_SGD,
            GGML_OP_COUNT,
        ];
        assert_eq!(unknown, expected);
        // a result that lies elsewhere than over the source that it may lie over
        assert_eq!(effect(GGML_OP_ADD, false, false, |slot| slot != 0), Effect::Unknown);
        assert_eq!(effect(GGML_OP_MUL_MAT, false, false, |_| true), Effect::Unknown);
        assert_eq!(effect(GGML_OP_CPY, false, false, |slot| slot == 1), Effect::Over);
        assert_eq!(effect(GGML_OP_CUSTOM, true, false, |_| true), Effect::Unknown);
        assert_eq!(effect(GGML_OP_NONE, false, true, |_| true), Effect::Nothing);
    }
}
