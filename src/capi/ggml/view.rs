//! Entry points of ggml.h: other ways to look at the same memory.

use crate::entry;
use crate::tensor::{node, view};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// The elements of `a`, contiguous, in the shape of `b`, whose data are not looked at.
    pub fn ggml_reshape(ctx: *mut ggml_context, a: *mut ggml_tensor, b: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_reshape", [a, b], [], |[a, b], []| view::reshape(a, b.ne))
    }

    /// The elements of `a`, contiguous, in a shape with as many.
    pub fn ggml_reshape_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_reshape_1d", [a], [], |[a], []| view::reshape(a, [ne0, 1, 1, 1]))
    }

    /// The elements of `a`, contiguous, in a shape with as many.
    pub fn ggml_reshape_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_reshape_2d", [a], [], |[a], []| view::reshape(a, [ne0, ne1, 1, 1]))
    }

    /// The elements of `a`, contiguous, in a shape with as many.
    pub fn ggml_reshape_3d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_reshape_3d", [a], [], |[a], []| view::reshape(a, [ne0, ne1, ne2, 1]))
    }

    /// The elements of `a`, contiguous, in a shape with as many.
    pub fn ggml_reshape_4d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, ne3: i64) -> *mut ggml_tensor {
        node(ctx, "ggml_reshape_4d", [a], [], |[a], []| view::reshape(a, [ne0, ne1, ne2, ne3]))
    }

    /// A part of the storage of `a`: elements side by side, from `offset` bytes after the first element of `a`. It stays inside.
    pub fn ggml_view_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_view_1d", [a], [], |[a], []| view::view(a, &[ne0], &[], offset))
    }

    /// A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside.
    pub fn ggml_view_2d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, nb1: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_view_2d", [a], [], |[a], []| view::view(a, &[ne0, ne1], &[nb1], offset))
    }

    /// A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside.
    pub fn ggml_view_3d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, nb1: usize, nb2: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_view_3d", [a], [], |[a], []| view::view(a, &[ne0, ne1, ne2], &[nb1, nb2], offset))
    }

    /// A part of the storage of `a`: strides in bytes, from `offset` bytes after the first element of `a`. It stays inside.
    pub fn ggml_view_4d(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, ne3: i64, nb1: usize, nb2: usize, nb3: usize, offset: usize) -> *mut ggml_tensor {
        node(ctx, "ggml_view_4d", [a], [], |[a], []| view::view(a, &[ne0, ne1, ne2, ne3], &[nb1, nb2, nb3], offset))
    }

    /// Dimension i of `a` becomes dimension `axis`i. The axes are 0 to 3, each once.
    pub fn ggml_permute(ctx: *mut ggml_context, a: *mut ggml_tensor, axis0: c_int, axis1: c_int, axis2: c_int, axis3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_permute", [a], [], |[a], []| view::permute(a, [axis0, axis1, axis2, axis3]))
    }

    /// `a` with dimensions 0 and 1 swapped.
    pub fn ggml_transpose(ctx: *mut ggml_context, a: *mut ggml_tensor) -> *mut ggml_tensor {
        node(ctx, "ggml_transpose", [a], [], |[a], []| view::transpose(a))
    }
}
