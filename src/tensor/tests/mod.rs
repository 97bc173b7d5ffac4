//! Tests of contexts, rules and the node maker. None needs data, so all of them run under Miri.
#![allow(clippy::unwrap_used)]

mod arena;
mod nodes;
mod poisoned;
mod random;
mod rules;
mod rules_back;
mod rules_conv;
mod rules_recurrent;

use super::{blank, set_name, Context};
use ggml_oxide_abi::*;
use std::ptr::null_mut;

/// Metadata of a contiguous tensor that lies nowhere.
pub fn meta(name: &str, ty: ggml_type, ne: &[i64]) -> ggml_tensor {
    let mut t = blank();
    t.r#type = ty;
    t.ne[..ne.len()].copy_from_slice(ne);
    t.nb = ggml_oxide_shape::contiguous_strides(ty, &t.ne).unwrap();
    set_name(&mut t, [name.as_bytes()]);
    t
}

/// [`meta`] of f32.
pub fn f32s(ne: &[i64]) -> ggml_tensor {
    meta("x", GGML_TYPE_F32, ne)
}

/// [`f32s`] with dimensions 0 and 1 swapped in memory.
pub fn swapped(ne: &[i64]) -> ggml_tensor {
    let mut t = f32s(ne);
    t.ne.swap(0, 1);
    t.nb.swap(0, 1);
    t
}

/// A context handle that frees itself.
pub struct Ctx(pub *mut ggml_context);

impl Ctx {
    pub fn new(mem_size: usize, no_alloc: bool) -> Self {
        // SAFETY: no caller's memory.
        Ctx(unsafe { Context::new(mem_size, null_mut(), no_alloc) }.unwrap().into_raw())
    }
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut Context {
        // SAFETY: a live handle; each test uses one reference at a time.
        unsafe { Context::from_ptr(self.0) }.unwrap()
    }
    pub fn tensor(&self, name: &str, ty: ggml_type, ne: &[i64]) -> *mut ggml_tensor {
        let t = super::new_tensor(self.get(), "test", ty, ne);
        // SAFETY: just made.
        unsafe { set_name(&mut *t, [name.as_bytes()]) };
        t
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // SAFETY: made by `into_raw`, and not used again.
        drop(unsafe { Context::from_raw(self.0) });
    }
}

/// The text of a refusal.
pub fn refused(spec: Result<super::NodeSpec, crate::error::Error>) -> String {
    spec.expect_err("the rule should have been broken").text
}
