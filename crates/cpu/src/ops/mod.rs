//! Element-wise operators, copies, normalisation, softmax, rope, attention and the like: one file per family.
//!
//! `vec` has the vector arithmetic, `rows` the element formats, `loops` the walk over several tensors, `rules` what `supports`
//! functions share. A family imports those, the node, the team and the table; never the executor.

mod backward;
mod binary;
mod col2im;
mod convert;
mod copy;
mod delta;
mod flash;
mod flash_back;
mod flash_tile;
mod gather_back;
mod generate;
mod get_rows;
mod glu;
mod indexer;
mod linear;
mod loops;
mod loss;
mod norm;
mod optimise;
mod reduce;
mod rope;
mod rows;
mod rules;
mod shape_ops;
mod short_rows;
mod softmax;
mod solve;
mod sort;
mod ssm;
mod streams;
mod transpose;
mod unary;
mod upscale;
pub mod vec;
mod window;

use crate::entry::OpEntry;
use ggml_oxide_abi::*;

/// What computes `op`, of the operators in this module.
pub fn entry(op: ggml_op) -> Option<&'static OpEntry> {
    Some(match op {
        GGML_OP_DUP | GGML_OP_CPY | GGML_OP_CONT => &copy::COPY,
        GGML_OP_ADD | GGML_OP_SUB | GGML_OP_MUL | GGML_OP_DIV | GGML_OP_ADD1 => &binary::BINARY,
        GGML_OP_ADD_ID => &binary::ADD_ID,
        GGML_OP_ACC | GGML_OP_SET => &shape_ops::WINDOW,
        GGML_OP_SQR | GGML_OP_SQRT | GGML_OP_LOG | GGML_OP_SIN | GGML_OP_COS => &unary::SINGLE,
        GGML_OP_SCALE | GGML_OP_CLAMP | GGML_OP_LEAKY_RELU => &unary::SINGLE,
        GGML_OP_UNARY => &unary::UNARY,
        GGML_OP_GLU => &glu::GLU,
        GGML_OP_SUM => &reduce::SUM,
        GGML_OP_SUM_ROWS | GGML_OP_MEAN => &reduce::ROWS,
        GGML_OP_ARGMAX => &reduce::ARGMAX,
        GGML_OP_CUMSUM => &reduce::CUMSUM,
        GGML_OP_COUNT_EQUAL => &reduce::COUNT_EQUAL,
        GGML_OP_REPEAT => &shape_ops::REPEAT,
        GGML_OP_CONCAT => &shape_ops::CONCAT,
        GGML_OP_PAD => &shape_ops::PAD,
        GGML_OP_PAD_REFLECT_1D => &shape_ops::REFLECT,
        GGML_OP_ROLL => &shape_ops::ROLL,
        GGML_OP_NORM | GGML_OP_RMS_NORM | GGML_OP_L2_NORM => &norm::NORM,
        GGML_OP_GROUP_NORM => &norm::GROUP_NORM,
        GGML_OP_GET_ROWS => &get_rows::GET_ROWS,
        GGML_OP_SET_ROWS => &get_rows::SET_ROWS,
        GGML_OP_SOFT_MAX => &softmax::SOFT_MAX,
        GGML_OP_DIAG_MASK_INF | GGML_OP_DIAG_MASK_ZERO => &softmax::DIAG_MASK,
        GGML_OP_ROPE | GGML_OP_ROPE_BACK => &rope::ROPE,
        GGML_OP_UPSCALE => &upscale::UPSCALE,
        GGML_OP_ARANGE => &generate::ARANGE,
        GGML_OP_TIMESTEP_EMBEDDING => &generate::TIMESTEP,
        GGML_OP_FILL => &generate::FILL,
        GGML_OP_TRI => &generate::TRI,
        GGML_OP_DIAG => &generate::DIAG,
        GGML_OP_ARGSORT => &sort::ARGSORT,
        GGML_OP_TOP_K => &sort::TOP_K,
        GGML_OP_FLASH_ATTN_EXT => &flash::FLASH,
        GGML_OP_FLASH_ATTN_BACK => &flash_back::FLASH_BACK,
        GGML_OP_SILU_BACK => &backward::SILU_BACK,
        GGML_OP_RMS_NORM_BACK => &backward::RMS_NORM_BACK,
        GGML_OP_SOFT_MAX_BACK => &backward::SOFT_MAX_BACK,
        GGML_OP_REPEAT_BACK => &gather_back::REPEAT_BACK,
        GGML_OP_GET_ROWS_BACK => &gather_back::GET_ROWS_BACK,
        GGML_OP_CROSS_ENTROPY_LOSS => &loss::LOSS,
        GGML_OP_CROSS_ENTROPY_LOSS_BACK => &loss::LOSS_BACK,
        GGML_OP_OPT_STEP_ADAMW => &optimise::ADAMW,
        GGML_OP_OPT_STEP_SGD => &optimise::SGD,
        GGML_OP_COL2IM_1D => &col2im::COL2IM_1D,
        GGML_OP_SSM_CONV => &ssm::CONV,
        GGML_OP_SSM_SCAN => &ssm::SCAN,
        GGML_OP_RWKV_WKV6 | GGML_OP_RWKV_WKV7 | GGML_OP_GATED_LINEAR_ATTN => &linear::LINEAR,
        GGML_OP_GATED_DELTA_NET => &delta::DELTA,
        GGML_OP_SOLVE_TRI => &solve::SOLVE_TRI,
        GGML_OP_LIGHTNING_INDEXER => &indexer::INDEXER,
        GGML_OP_DSV4_HC_COMB => &streams::COMB,
        GGML_OP_DSV4_HC_PRE => &streams::PRE,
        GGML_OP_DSV4_HC_POST => &streams::POST,
        GGML_OP_WIN_PART => &window::PART,
        GGML_OP_WIN_UNPART => &window::UNPART,
        GGML_OP_GET_REL_POS => &window::GET_REL_POS,
        GGML_OP_ADD_REL_POS => &window::ADD_REL_POS,
        _ => return None,
    })
}
