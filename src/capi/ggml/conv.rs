//! Entry points of ggml.h: convolutions and pooling. Kernels lie low to high as [KW, KH, IC, OC], pictures as [W, H, C, N].
// C names of arguments
#![allow(non_snake_case)]

use crate::entry;
use crate::tensor::conv::{self, Axis};
use crate::tensor::pool::{self, Window};
use crate::tensor::{compose, node};
use ggml_oxide_abi::*;
use std::ffi::c_int;

/// Dimension `i` of a kernel; 0 for NULL, which is refused later on.
unsafe fn dim(a: *const ggml_tensor, i: usize) -> c_int {
    // SAFETY: NULL or live, by the contract of the entry points.
    unsafe { a.as_ref() }.map_or(0, |a| c_int::try_from(a.ne[i]).unwrap_or(c_int::MAX))
}

/// Half of dimension `i` of a kernel.
unsafe fn half(a: *const ggml_tensor, i: usize) -> c_int {
    // SAFETY: as for `dim`.
    unsafe { dim(a, i) / 2 }
}

entry! {
    /// The windows of `b` as rows. In two dimensions: kernel `a` [KW, KH, IC, _], picture `b` [W, H, IC, N] give
    /// `dst_type` [IC*KH*KW, OW, OH, N]. In one: `a` [K, IC, _], `b` [L, IC, N] give [IC*K, OL, N]. s, p, d: stride, zeros on either
    /// side, dilation.
    pub fn ggml_im2col(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int, is_2D: bool, dst_type: ggml_type) -> *mut ggml_tensor {
        let (x, y) = (Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 });
        node(ctx, "ggml_im2col", [a, b], [], |[a, b], []| match is_2D {
            true => conv::im2col_2d(a, b, x, y, dst_type),
            false => conv::im2col_1d(a, b, x, y, dst_type),
        })
    }

    /// As `ggml_im2col` in three dimensions: kernel `a` [KW, KH, KD, IC*OC], volume `b` [W, H, D, IC*N] give
    /// `dst_type` [IC*KD*KH*KW, OW, OH, OD*N].
    pub fn ggml_im2col_3d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, IC: i64, s0: c_int, s1: c_int, s2: c_int, p0: c_int, p1: c_int, p2: c_int, d0: c_int, d1: c_int, d2: c_int, dst_type: ggml_type) -> *mut ggml_tensor {
        let axes = [Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 }, Axis { s: s2, p: p2, d: d2 }];
        node(ctx, "ggml_im2col_3d", [a, b], [], |[a, b], []| conv::im2col_3d(a, b, IC, axes, dst_type))
    }

    /// Sums columns back to a signal: contiguous f32, f16 or bf16 `a` [K*oc, T], the `oc` kernels of K taps that each input gives, to
    /// [(T-1)*s0 + K - 2*p0, oc] in the format of `a`. `s0`: elements from one input to the next; `p0`: elements cut off on either side.
    pub fn ggml_col2im_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, s0: c_int, oc: c_int, p0: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_col2im_1d", [a], [], |[a], []| conv::col2im_1d(a, s0, oc, p0))
    }
}

entry! {
    /// Convolution: kernel `a` [K, IC, OC], signal `b` [L, IC, N] give f32 [OL, OC, N]. Made of `ggml_im2col` and `ggml_mul_mat`.
    pub fn ggml_conv_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, p0: c_int, d0: c_int) -> *mut ggml_tensor {
        compose::conv_1d(ctx, "ggml_conv_1d", a, b, Axis { s: s0, p: p0, d: d0 })
    }

    /// As `ggml_conv_1d` with half the kernel as padding.
    pub fn ggml_conv_1d_ph(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s: c_int, d: c_int) -> *mut ggml_tensor {
        compose::conv_1d(ctx, "ggml_conv_1d_ph", a, b, Axis { s, p: half(a, 0), d })
    }

    /// Depthwise convolution: kernel `a` [K, 1, C], signal `b` [L, C] give f32 [OL, C].
    pub fn ggml_conv_1d_dw(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, p0: c_int, d0: c_int) -> *mut ggml_tensor {
        compose::conv_1d_dw(ctx, "ggml_conv_1d_dw", a, b, Axis { s: s0, p: p0, d: d0 })
    }

    /// As `ggml_conv_1d_dw` with half the kernel as padding.
    pub fn ggml_conv_1d_dw_ph(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, d0: c_int) -> *mut ggml_tensor {
        compose::conv_1d_dw(ctx, "ggml_conv_1d_dw_ph", a, b, Axis { s: s0, p: half(a, 0), d: d0 })
    }

    /// Convolution: kernel `a` [KW, KH, IC, OC], picture `b` [W, H, IC, N] give f32 [OW, OH, OC, N]. Made of `ggml_im2col` and
    /// `ggml_mul_mat`.
    pub fn ggml_conv_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int) -> *mut ggml_tensor {
        compose::conv_2d(ctx, "ggml_conv_2d", a, b, Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 })
    }

    /// As `ggml_conv_2d` with the kernel as stride and no padding.
    pub fn ggml_conv_2d_sk_p0(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        let axis = |i| Axis { s: dim(a, i), p: 0, d: 1 };
        compose::conv_2d(ctx, "ggml_conv_2d_sk_p0", a, b, axis(0), axis(1))
    }

    /// As `ggml_conv_2d` with stride 1 and half the kernel as padding.
    pub fn ggml_conv_2d_s1_ph(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        let axis = |i| Axis { s: 1, p: half(a, i), d: 1 };
        compose::conv_2d(ctx, "ggml_conv_2d_s1_ph", a, b, axis(0), axis(1))
    }

    /// Depthwise convolution: kernel `a` [KW, KH, 1, C], picture `b` [W, H, C, N] give f32 [OW, OH, C, N]. Made of `ggml_im2col` and
    /// `ggml_mul_mat`.
    pub fn ggml_conv_2d_dw(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int) -> *mut ggml_tensor {
        compose::conv_2d_dw(ctx, "ggml_conv_2d_dw", a, b, Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 })
    }

    /// Convolution: kernel `a` [KW, KH, KD, IC*OC], volume `b` [W, H, D, IC*N] give f32 [OW, OH, OD, OC*N]. Made of `ggml_im2col_3d`
    /// and `ggml_mul_mat`.
    pub fn ggml_conv_3d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, IC: i64, s0: c_int, s1: c_int, s2: c_int, p0: c_int, p1: c_int, p2: c_int, d0: c_int, d1: c_int, d2: c_int) -> *mut ggml_tensor {
        let axes = [Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 }, Axis { s: s2, p: p2, d: d2 }];
        compose::conv_3d(ctx, "ggml_conv_3d", a, b, IC, axes)
    }
}

entry! {
    /// As `ggml_conv_2d` in one node; the result has the format of `b`.
    pub fn ggml_conv_2d_direct(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int) -> *mut ggml_tensor {
        let (x, y) = (Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 });
        node(ctx, "ggml_conv_2d_direct", [a, b], [], |[a, b], []| conv::conv_2d(a, b, x, y))
    }

    /// As `ggml_conv_2d_dw` in one node; the result has the format of `b`, and its channels lie innermost where those of `b` do.
    pub fn ggml_conv_2d_dw_direct(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, stride0: c_int, stride1: c_int, pad0: c_int, pad1: c_int, dilation0: c_int, dilation1: c_int) -> *mut ggml_tensor {
        let x = Axis { s: stride0, p: pad0, d: dilation0 };
        let y = Axis { s: stride1, p: pad1, d: dilation1 };
        node(ctx, "ggml_conv_2d_dw_direct", [a, b], [], |[a, b], []| conv::conv_2d_dw(a, b, x, y))
    }

    /// As `ggml_conv_3d` in one node: kernel `a` [KW, KH, KD, c*oc], volume `b` [W, H, D, c*n] give f32 [OW, OH, OD, oc*n].
    pub fn ggml_conv_3d_direct(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, s1: c_int, s2: c_int, p0: c_int, p1: c_int, p2: c_int, d0: c_int, d1: c_int, d2: c_int, n_channels: c_int, n_batch: c_int, n_channels_out: c_int) -> *mut ggml_tensor {
        let axes = [Axis { s: s0, p: p0, d: d0 }, Axis { s: s1, p: p1, d: d1 }, Axis { s: s2, p: p2, d: d2 }];
        node(ctx, "ggml_conv_3d_direct", [a, b], [], |[a, b], []| conv::conv_3d(a, b, axes, n_channels, n_batch, n_channels_out))
    }

    /// Transposed convolution: kernel `a` [K, OC, IC], signal `b` [L, IC] give f32 [(L-1)*s0 + K, OC]. `p0` is 0 and `d0` is 1.
    pub fn ggml_conv_transpose_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, s0: c_int, p0: c_int, d0: c_int) -> *mut ggml_tensor {
        let x = Axis { s: s0, p: p0, d: d0 };
        node(ctx, "ggml_conv_transpose_1d", [a, b], [], |[a, b], []| conv::conv_transpose_1d(a, b, x))
    }

    /// Transposed convolution: kernel `a` [KW, KH, OC, IC], picture `b` [W, H, IC, N] give f32
    /// [(W-1)*stride + KW, (H-1)*stride + KH, OC, N].
    pub fn ggml_conv_transpose_2d_p0(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor, stride: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_conv_transpose_2d_p0", [a, b], [], |[a, b], []| conv::conv_transpose_2d(a, b, stride))
    }
}

entry! {
    /// The largest or mean of each window of `k0` elements, `s0` apart, of each row: f32. `p0`: elements added on either side.
    pub fn ggml_pool_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, op: ggml_op_pool, k0: c_int, s0: c_int, p0: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pool_1d", [a], [], |[a], []| pool::pool_1d(a, op, k0, s0, p0))
    }

    /// The largest or mean of each window of `k0` times `k1` elements, `s0` and `s1` apart: f32 [OW, OH, ne2, ne3].
    pub fn ggml_pool_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, op: ggml_op_pool, k0: c_int, k1: c_int, s0: c_int, s1: c_int, p0: f32, p1: f32) -> *mut ggml_tensor {
        let x = Window { k: k0, s: s0, p: p0 };
        let y = Window { k: k1, s: s1, p: p1 };
        node(ctx, "ggml_pool_2d", [a], [], |[a], []| pool::pool_2d(a, op, x, y))
    }
}
