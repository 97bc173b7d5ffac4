//! Entry points of ggml.h: resizing, padding, sequences.

use crate::entry;
use crate::tensor::{image, misc, node};
use ggml_oxide_abi::*;
use std::ffi::c_int;

entry! {
    /// f32 `a` with dimensions 0 and 1 `scale_factor` times as large.
    pub fn ggml_upscale(ctx: *mut ggml_context, a: *mut ggml_tensor, scale_factor: c_int, mode: ggml_scale_mode) -> *mut ggml_tensor {
        node(ctx, "ggml_upscale", [a], [], |[a], []| image::upscale(a, scale_factor, mode))
    }

    /// f32 `a` resized to a shape.
    pub fn ggml_upscale_ext(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: c_int, ne1: c_int, ne2: c_int, ne3: c_int, mode: ggml_scale_mode) -> *mut ggml_tensor {
        let ne = [ne0, ne1, ne2, ne3].map(i64::from);
        node(ctx, "ggml_upscale_ext", [a], [], |[a], []| image::interpolate(a, ne, mode.0 as u32))
    }

    /// f32 `a` resized to a shape. `mode`: a `ggml_scale_mode` with bits of `ggml_scale_flag`; antialiasing for bilinear only.
    pub fn ggml_interpolate(ctx: *mut ggml_context, a: *mut ggml_tensor, ne0: i64, ne1: i64, ne2: i64, ne3: i64, mode: u32) -> *mut ggml_tensor {
        node(ctx, "ggml_interpolate", [a], [], |[a], []| image::interpolate(a, [ne0, ne1, ne2, ne3], mode))
    }

    /// `a` with zeros after each dimension.
    pub fn ggml_pad(ctx: *mut ggml_context, a: *mut ggml_tensor, p0: c_int, p1: c_int, p2: c_int, p3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pad", [a], [], |[a], []| image::pad(a, [0, p0, 0, p1, 0, p2, 0, p3], false))
    }

    /// `a` continued around after each dimension.
    pub fn ggml_pad_circular(ctx: *mut ggml_context, a: *mut ggml_tensor, p0: c_int, p1: c_int, p2: c_int, p3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pad_circular", [a], [], |[a], []| image::pad(a, [0, p0, 0, p1, 0, p2, 0, p3], true))
    }

    /// `a` with zeros before (lp) and after (rp) each dimension.
    pub fn ggml_pad_ext(ctx: *mut ggml_context, a: *mut ggml_tensor, lp0: c_int, rp0: c_int, lp1: c_int, rp1: c_int, lp2: c_int, rp2: c_int, lp3: c_int, rp3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pad_ext", [a], [], |[a], []| image::pad(a, [lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3], false))
    }

    /// `a` continued around before (lp) and after (rp) each dimension.
    pub fn ggml_pad_ext_circular(ctx: *mut ggml_context, a: *mut ggml_tensor, lp0: c_int, rp0: c_int, lp1: c_int, rp1: c_int, lp2: c_int, rp2: c_int, lp3: c_int, rp3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pad_ext_circular", [a], [], |[a], []| image::pad(a, [lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3], true))
    }

    /// Contiguous f32 `a`, mirrored at the ends of each row, which are not repeated: `p0` elements before, `p1` after, both below ne0.
    pub fn ggml_pad_reflect_1d(ctx: *mut ggml_context, a: *mut ggml_tensor, p0: c_int, p1: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_pad_reflect_1d", [a], [], |[a], []| image::pad_reflect_1d(a, p0, p1))
    }

    /// `a` moved on by a shift along each dimension, and around. Shifts are below the dimension.
    pub fn ggml_roll(ctx: *mut ggml_context, a: *mut ggml_tensor, shift0: c_int, shift1: c_int, shift2: c_int, shift3: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_roll", [a], [], |[a], []| image::roll(a, [shift0, shift1, shift2, shift3]))
    }
}

entry! {
    /// `start`, `start + step` and on, below `stop`: f32.
    pub fn ggml_arange(ctx: *mut ggml_context, start: f32, stop: f32, step: f32) -> *mut ggml_tensor {
        node(ctx, "ggml_arange", [], [], |[], []| misc::arange(start, stop, step))
    }

    /// Sinusoids of each of `timesteps` [n]: f32 [dim, n]; cosines in the first half of a row, sines in the second.
    pub fn ggml_timestep_embedding(ctx: *mut ggml_context, timesteps: *mut ggml_tensor, dim: c_int, max_period: c_int) -> *mut ggml_tensor {
        node(ctx, "ggml_timestep_embedding", [timesteps], [], |[timesteps], []| misc::timestep_embedding(timesteps, dim, max_period))
    }
}
