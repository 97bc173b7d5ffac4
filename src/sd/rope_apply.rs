//! `sd.rope_apply.v1`: pairs of channels are multiplied with 2 by 2 matrices of their position; heads and positions change places.

use super::check;
use super::operator::{Attrs, Check, Operator, Shape};
use ggml_oxide_abi::*;
use std::ffi::CStr;

/// The operator; sources a [D, heads, tokens, batch] and pe [2, 2, pairs, tokens].
pub struct RopeApply;

/// Its attributes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RopeAttrs {
    /// 1: pairs are neighbours; 0: their parts lie half the rotated width apart.
    pub interleaved: i32,
}

// SAFETY: an integer.
unsafe impl Attrs for RopeAttrs {}

impl Operator for RopeApply {
    const NAME: &'static CStr = c"sd.rope_apply.v1";
    type Attrs = RopeAttrs;

    fn infer(src: &[&ggml_tensor], attrs: &RopeAttrs) -> Check<Shape> {
        let &[a, pe] = src else { return Err(format!("there must be two sources, there are {}", src.len())) };
        if !matches!(attrs.interleaved, 0 | 1) {
            return Err(format!("interleaved is {}, it must be 0 or 1", attrs.interleaved));
        }
        check::format(a, GGML_TYPE_F32, "a")?;
        check::format(pe, GGML_TYPE_F32, "pe")?;
        let [d, heads, tokens, batch] = a.ne;
        if d % 2 != 0 {
            return Err(format!("heads of {d} channels, there must be an even number"));
        }
        if pe.ne[..2] != [2, 2] {
            return Err(format!("pe must have matrices of 2 by 2, it has {} by {}", pe.ne[0], pe.ne[1]));
        }
        if pe.ne[2] > d / 2 {
            return Err(format!("pe turns {} pairs, heads have {}", pe.ne[2], d / 2));
        }
        if pe.ne[3] != tokens {
            return Err(format!("pe has {} positions, there are {tokens}", pe.ne[3]));
        }
        let rows = heads.checked_mul(batch).ok_or("there are too many heads")?;
        Ok((GGML_TYPE_F32, [d, tokens, rows, 1]))
    }
}
