//! Entry points of ggml.h: windows of a picture and relative positions in them.

use crate::entry;
use crate::tensor::{node, window};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// f32 `a` [c, w, h] in windows of `w` times `w`: f32 [c, w, w, windows], windows row by row, zeros where `a` ends.
    pub fn ggml_win_part(ctx: *mut ggml_context, a: *mut ggml_tensor, w: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_win_part", [a], [], |[a], []| window::win_part(a, w))
    }

    /// Puts the windows of `ggml_win_part` together again: f32 `a` [c, w, w, windows] gives f32 [c, w0, h0].
    pub fn ggml_win_unpart(ctx: *mut ggml_context, a: *mut ggml_tensor, w0: c_int, h0: c_int, w: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_win_unpart", [a], [], |[a], []| window::win_unpart(a, w0, h0, w))
    }

    /// The rows of `a` [c, 2 * kh - 1] by distance: f16 [c, kh, qh], where [.., k, q] is row `kh - 1 - k + q`. `qh` must be `kh`.
    pub fn ggml_get_rel_pos(ctx: *mut ggml_context, a: *mut ggml_tensor, qh: c_int, kh: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_get_rel_pos", [a], [], |[a], []| window::get_rel_pos(a, qh, kh))
    }

    /// `a` [n * n, w * h, b], rows of which are pictures of n times n, with `pw[x] + ph[y]` of the same row added to element x + n * y.
    /// `pw`, `ph`: f32 [n, w, h, b]. All contiguous.
    pub fn ggml_add_rel_pos(ctx: *mut ggml_context, a: *mut ggml_tensor, pw: *mut ggml_tensor, ph: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add_rel_pos", [a, pw, ph], [], |[a, pw, ph], []| window::add_rel_pos(a, pw, ph, false))
    }

    /// As `ggml_add_rel_pos`, written over `a`.
    pub fn ggml_add_rel_pos_inplace(ctx: *mut ggml_context, a: *mut ggml_tensor, pw: *mut ggml_tensor, ph: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_add_rel_pos_inplace", [a, pw, ph], [], |[a, pw, ph], []| window::add_rel_pos(a, pw, ph, true))
    }
}
