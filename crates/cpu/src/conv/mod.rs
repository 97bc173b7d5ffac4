//! Convolutions and pooling.
//!
//! [`patches`] describes any convolution's windows and hands them to the gemm crate, so that no im2col matrix needs to exist;
//! `im2col` writes that matrix where a graph asks for it, `back` takes gradients the other way; [`fuse`] finds the chains that only
//! ask for it to multiply it.

mod back;
mod depthwise;
mod direct;
pub(crate) mod fuse;
mod im2col;
pub(crate) mod patches;
mod pooling;
mod round;
mod transpose;

pub use back::{IM2COL_BACK, POOL_2D_BACK};
pub use depthwise::CONV_2D_DW;
pub use direct::{CONV_2D, CONV_3D};
pub use im2col::{IM2COL, IM2COL_3D};
pub use pooling::{POOL_1D, POOL_2D};
pub use transpose::{CONV_TRANSPOSE_1D, CONV_TRANSPOSE_2D};
