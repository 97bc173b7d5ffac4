//! Builds a case's graph in one library: its tensors, their contents, the nodes. May import: the table of functions.

use crate::api::Api;
use crate::fill::Fill;
use ggml_oxide_abi::*;
use std::ffi::c_int;
use std::ptr::null_mut;

/// A tensor of the builder that made it.
#[derive(Clone, Copy)]
pub struct T(*mut ggml_tensor);

/// Leaves of one kind, to be held by one buffer.
pub struct Leaves {
    pub context: *mut ggml_context,
    pub fills: Vec<(*mut ggml_tensor, Fill)>,
}

/// The parts of a case under construction. Who makes one has seen to it that the contexts are of `api` and outlive it.
pub struct Builder<'a> {
    pub api: &'a Api,
    pub weights: Leaves,
    pub inputs: Leaves,
    pub nodes: *mut ggml_context,
}

/// Makes the leaves of a case, and gives the function that adds one copy of its nodes and returns their result: copies share
/// their leaves.
pub type Build = Box<dyn Fn(&mut Builder) -> Box<dyn Fn(&Builder) -> T>>;

macro_rules! operators {
    ($($method:ident($($arg:ident: $kind:ty),*) = $function:ident;)*) => {
        $(
            #[allow(clippy::too_many_arguments)]
            pub fn $method(&self, $($arg: $kind),*) -> T {
                // SAFETY: the contexts live as long as the builder, and every tensor given is one of theirs.
                T(unsafe { (self.api.$function)(self.nodes, $($arg.raw()),*) })
            }
        )*
    };
}

/// What an operator's argument is in C.
trait Raw {
    type C;
    fn raw(self) -> Self::C;
}
impl Raw for T {
    type C = *mut ggml_tensor;
    fn raw(self) -> Self::C {
        self.0
    }
}
impl Raw for Option<T> {
    type C = *mut ggml_tensor;
    fn raw(self) -> Self::C {
        self.map_or(null_mut(), |t| t.0)
    }
}
macro_rules! same_in_c {
    ($($t:ty)*) => { $(impl Raw for $t { type C = $t; fn raw(self) -> $t { self } })* };
}
same_in_c!(f32 c_int bool ggml_type ggml_scale_mode);

fn leaf(api: &Api, leaves: &mut Leaves, r#type: ggml_type, ne: [i64; 4], fill: Fill) -> T {
    // SAFETY: the context lives as long as the builder.
    let tensor = unsafe { (api.ggml_new_tensor_4d)(leaves.context, r#type, ne[0], ne[1], ne[2], ne[3]) };
    leaves.fills.push((tensor, fill));
    T(tensor)
}

impl T {
    /// The C tensor.
    pub fn pointer(self) -> *mut ggml_tensor {
        self.0
    }
}

impl Builder<'_> {
    /// A tensor whose values stay the same over all runs of a model. `ne`: low to high.
    pub fn weight(&mut self, r#type: ggml_type, ne: [i64; 4]) -> T {
        leaf(self.api, &mut self.weights, r#type, ne, Fill::Uniform)
    }

    /// A tensor that earlier nodes of a model would have computed. `ne`: low to high.
    pub fn input(&mut self, r#type: ggml_type, ne: [i64; 4], fill: Fill) -> T {
        leaf(self.api, &mut self.inputs, r#type, ne, fill)
    }

    /// An f32 tensor of activations.
    pub fn f32(&mut self, ne: [i64; 4]) -> T {
        self.input(GGML_TYPE_F32, ne, Fill::Uniform)
    }

    operators! {
        mul_mat(a: T, b: T) = ggml_mul_mat;
        im2col(k: T, x: T, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int, two: bool, t: ggml_type) = ggml_im2col;
        conv_2d(k: T, x: T, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int) = ggml_conv_2d;
        conv_2d_direct(k: T, x: T, s0: c_int, s1: c_int, p0: c_int, p1: c_int, d0: c_int, d1: c_int) = ggml_conv_2d_direct;
        flash_attn_ext(q: T, k: T, v: T, mask: Option<T>, scale: f32, bias: f32, cap: f32) = ggml_flash_attn_ext;
        rms_norm(a: T, eps: f32) = ggml_rms_norm;
        norm(a: T, eps: f32) = ggml_norm;
        group_norm(a: T, groups: c_int, eps: f32) = ggml_group_norm;
        soft_max(a: T) = ggml_soft_max;
        silu(a: T) = ggml_silu;
        gelu(a: T) = ggml_gelu;
        gelu_quick(a: T) = ggml_gelu_quick;
        scale(a: T, by: f32) = ggml_scale;
        add(a: T, b: T) = ggml_add;
        mul(a: T, b: T) = ggml_mul;
        cast(a: T, to: ggml_type) = ggml_cast;
        cont(a: T) = ggml_cont;
        permute(a: T, p0: c_int, p1: c_int, p2: c_int, p3: c_int) = ggml_permute;
        upscale(a: T, by: c_int, mode: ggml_scale_mode) = ggml_upscale;
        rope(a: T, positions: T, dims: c_int, mode: c_int) = ggml_rope;
        get_rows(a: T, rows: T) = ggml_get_rows;
        concat(a: T, b: T, dim: c_int) = ggml_concat;
        repeat(a: T, like: T) = ggml_repeat;
    }
}
