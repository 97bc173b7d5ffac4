//! `sd.modulate.v1`: `x + x * scale + shift`, operands repeated to the shape of x. Sources: x, scale, the shift if there is one.

use super::check;
use super::operator::{Check, Operator, Shape};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// The operator; no attributes.
pub struct Modulate;

impl Operator for Modulate {
    const NAME: &'static CStr = c"sd.modulate.v1";
    type Attrs = ();

    fn infer(src: &[&ggml_tensor], _: &()) -> Check<Shape> {
        if !matches!(src.len(), 2 | 3) {
            return Err(format!("there must be two or three sources, there are {}", src.len()));
        }
        for (t, what) in src.iter().zip(["x", "scale", "shift"]) {
            check::format(t, GGML_TYPE_F32, what)?;
            if !shape::can_repeat(t, src[0]) {
                return Err(format!("{what} of {:?} cannot be repeated to x of {:?}", t.ne, src[0].ne));
            }
        }
        Ok((GGML_TYPE_F32, src[0].ne))
    }
}
