//! Entry points of ggml-sd.h.

use super::attention::{Sage, SageAttrs, Sol, SolAttrs};
use super::convrot::{Quantize, QuantizeAttrs};
use super::linear_i8::{self, Linear, LinearAttrs};
use super::modulate::Modulate;
use super::operator::{self, create, Operator};
use super::rope_apply::{RopeApply, RopeAttrs};
use super::{api, linear_w4, register};
use crate::capi::graph::or_report;
use crate::entry;
use crate::error::Error;
use ggml_oxide_abi::*;
use std::ffi::{c_int, CStr};

/// The quantisation that a packed activation comes from: its node, found through copies and views that change no shape.
unsafe fn producer(input: &ggml_tensor) -> Option<&ggml_tensor> {
    let mut t = input;
    loop {
        // what `ggml_view_tensor` makes has no source
        // SAFETY: live tensors, as all that a live tensor names.
        let (name, next) = unsafe { (api::ggml_ext_op_name(t), t.src[0].as_ref().or(t.view_src.as_ref())) };
        if !name.is_null() {
            // SAFETY: names of registered operators stay.
            return (unsafe { CStr::from_ptr(name) } == Quantize::NAME).then_some(t);
        }
        let same =
            matches!(t.op, GGML_OP_DUP | GGML_OP_CPY | GGML_OP_CONT | GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_NONE);
        t = next.filter(|next| same && next.ne == t.ne && next.r#type == t.r#type)?;
    }
}

/// Dimensions 1 to 3 of the activation that a packed input is made of, which was rotated in groups of `group`.
unsafe fn unpacked(input: &ggml_tensor, group: c_int) -> Result<[i64; 3], String> {
    // SAFETY: the contract of the entry points.
    let node = unsafe { producer(input) };
    let node = node.ok_or("an I8 input without scales of its own must come from ggml_quantize_i8_convrot")?;
    let mut made = QuantizeAttrs::default();
    let at = std::ptr::from_mut(&mut made).cast();
    // SAFETY: room for the attributes; a node of the operator has one source.
    let (known, source) =
        unsafe { (api::ggml_ext_op_attrs(node, at, size_of::<QuantizeAttrs>()), node.src[0].as_ref()) };
    match source.filter(|_| known) {
        Some(_) if made.group != group => {
            Err(format!("the input was rotated in groups of {}, the weight in groups of {group}", made.group))
        }
        Some(a) => Ok([a.ne[1], a.ne[2], a.ne[3]]),
        None => Err("the input's node cannot be read".into()),
    }
}

/// What an operator's builder refuses before there is a node.
fn refused<O: Operator>(text: &str, node: *const ggml_tensor) -> Error {
    operator::error(O::NAME, GGML_EXT_CODE_BAD_SHAPE, text).at(node)
}

unsafe fn linear_i8(
    ctx: *mut ggml_context,
    [weight, input, weight_scale, bias, input_scale]: [*mut ggml_tensor; 5],
    group: c_int,
    call: &str,
) -> Result<*mut ggml_tensor, Error> {
    let mut attrs = LinearAttrs { group, ..LinearAttrs::default() };
    // SAFETY: the contract of the entry points.
    if let Some(t) = unsafe { input.as_ref() } {
        if !input_scale.is_null() {
            attrs.form = linear_i8::FORM_SCALED;
        } else if t.r#type == GGML_TYPE_I8 {
            attrs.form = linear_i8::FORM_PACKED;
            // SAFETY: as above.
            attrs.rows = unsafe { unpacked(t, group) }.map_err(|text| refused::<Linear>(&text, t))?;
        }
    }
    let mut src = vec![weight, input];
    for (t, bit) in [(weight_scale, linear_i8::HAS_WEIGHT_SCALE), (bias, linear_i8::HAS_BIAS)] {
        if !t.is_null() {
            src.push(t);
            attrs.has |= bit;
        }
    }
    if !input_scale.is_null() {
        src.push(input_scale);
    }
    // SAFETY: the contract of the entry points.
    Ok(unsafe { create::<Linear>(call, ctx, &src, &attrs) })
}

unsafe fn linear_w4(
    ctx: *mut ggml_context,
    [weight, input, weight_scales, s_channel, s_rel, bias]: [*mut ggml_tensor; 6],
    kind: c_int,
    group: c_int,
    call: &str,
) -> Result<*mut ggml_tensor, Error> {
    let mut attrs = linear_w4::LinearAttrs { group, kind, ..Default::default() };
    let w4a8 = kind == linear_w4::W4A8;
    if !w4a8 && (!s_channel.is_null() || !s_rel.is_null()) {
        return Err(refused::<linear_w4::Linear>("s_channel and s_rel go with W4A8", input));
    }
    let mut src = vec![weight, input, weight_scales];
    if !bias.is_null() {
        src.push(bias);
        attrs.has_bias = 1;
    }
    if w4a8 {
        src.extend([s_rel, s_channel]);
    }
    // SAFETY: the contract of the entry points.
    if let Some(t) = unsafe { input.as_ref() } {
        if t.r#type == GGML_TYPE_I8 {
            // SAFETY: as above.
            attrs.rows = unsafe { unpacked(t, group) }.map_err(|text| refused::<linear_w4::Linear>(&text, t))?;
        } else if !src.iter().any(|s| s.is_null()) {
            attrs.rows = [t.ne[1], t.ne[2], t.ne[3]];
            // SAFETY: as above; none is NULL.
            unsafe { would_be(&src, t, &attrs) }?;
            // SAFETY: as above.
            src[1] = unsafe { create::<Quantize>(call, ctx, &[input], &QuantizeAttrs { group }) };
            if src[1].is_null() {
                return Ok(src[1]);
            }
        }
    }
    // SAFETY: the contract of the entry points.
    Ok(unsafe { create::<linear_w4::Linear>(call, ctx, &src, &attrs) })
}

/// Whether the layer can be built once `input`, source 1, is quantised: what is refused leaves no node behind.
unsafe fn would_be(src: &[*mut ggml_tensor], input: &ggml_tensor, attrs: &linear_w4::LinearAttrs) -> Result<(), Error> {
    register::ensure(Quantize::NAME)?;
    register::ensure(linear_w4::Linear::NAME)?;
    let shape = Quantize::infer(&[input], &QuantizeAttrs { group: attrs.group });
    let (ty, ne) = shape.map_err(|text| refused::<Quantize>(&text, input))?;
    let too_large = || refused::<Quantize>("the result is larger than memory can be", input);
    // SAFETY: plain values, of which format, shape and strides are looked at.
    let mut packed = unsafe { std::ptr::read(input) };
    (packed.r#type, packed.ne) = (ty, ne);
    packed.nb = ggml_oxide_shape::contiguous_strides(ty, &ne).ok_or_else(too_large)?;
    // SAFETY: the contract of the entry points.
    let mut list: Vec<&ggml_tensor> = src.iter().map(|&s| unsafe { &*s }).collect();
    list[1] = &packed;
    linear_w4::Linear::infer(&list, attrs).map(|_| ()).map_err(|text| refused::<linear_w4::Linear>(&text, input))
}

entry! {
    /// Registers these operators in the process, and their kernels on a CPU device; `device` NULL: on all CPU devices. The first call of
    /// a builder below does so too, with NULL. What the application has registered under one of the names is left to it, so register
    /// your own first. False, with an error: such a name was met (its builder answers NULL from then on; everything else is registered),
    /// or there are no kernels for the device. Not from a callback of ggml-ext.h.
    pub fn ggml_sd_register_extensions(device: *mut ggml_backend_device) -> bool {
        or_report("ggml_sd_register_extensions", register::register(device).map(|()| true))
    }

    /// `sd.quantize_i8_convrot.v1`: rotates the rows of `a` and rounds them to 8-bit integers with a scale for each row.
    ///
    /// `a`: F32 [K, ...], contiguous, R rows. `group_size`: a power of 4 that divides K; the CPU rotates at most 256 together; 1 rotates
    /// nothing. Result: I8 [K, R rounded up to a multiple of 4 + ceil(4 R / K)]: R rows of integers, rows of zeros, then R scales as F32,
    /// K times the rounded number of rows bytes from the start.
    ///
    /// A group of G is multiplied with 1/sqrt(G) times the Kronecker power of the matrix with -1 on its second diagonal and 1 elsewhere.
    /// The scale is the largest magnitude of the row divided by 127; integers are rounded to even, NaN becomes 0.
    pub fn ggml_quantize_i8_convrot(ctx: *mut ggml_context, a: *mut ggml_tensor, group_size: c_int) -> *mut ggml_tensor {
        create::<Quantize>("ggml_quantize_i8_convrot", ctx, &[a], &QuantizeAttrs { group: group_size })
    }

    /// `sd.linear_i8.v1`: a linear layer with 8-bit weights.
    ///
    /// `weight`: I8 [K, N], contiguous. `input`: F32 [K, M, B2, B3], contiguous, which is rotated and rounded as by
    /// `ggml_quantize_i8_convrot`; or what that function gave with the same group size. `weight_scale`: F32, N elements, or NULL for 1.
    /// `bias`: F32, N elements, or NULL. `convrot_group_size`: a power of 4 that divides K; 0: nothing is rotated.
    /// Result: F32 [N, M, B2, B3].
    ///
    /// Sums of products are exact, in 32 bits; then they are multiplied with the row's scale and the weight's scale, and the bias is
    /// added, each step rounded to F32.
    pub fn ggml_mul_mat_i8_tensorwise(
        ctx: *mut ggml_context,
        weight: *mut ggml_tensor,
        input: *mut ggml_tensor,
        weight_scale: *mut ggml_tensor,
        bias: *mut ggml_tensor,
        convrot_group_size: c_int,
    ) -> *mut ggml_tensor {
        let call = "ggml_mul_mat_i8_tensorwise";
        let all = [weight, input, weight_scale, bias, std::ptr::null_mut()];
        or_report(call, linear_i8(ctx, all, convrot_group_size, call))
    }

    /// As `ggml_mul_mat_i8_tensorwise`, with an input that was rounded before: I8 [K, M, B2, B3], contiguous, and `input_scale`: F32, one
    /// element for each row. `input_scale` NULL: the same as that function.
    pub fn ggml_mul_mat_i8_tensorwise_scaled(
        ctx: *mut ggml_context,
        weight: *mut ggml_tensor,
        input: *mut ggml_tensor,
        weight_scale: *mut ggml_tensor,
        bias: *mut ggml_tensor,
        convrot_group_size: c_int,
        input_scale: *mut ggml_tensor,
    ) -> *mut ggml_tensor {
        let call = "ggml_mul_mat_i8_tensorwise_scaled";
        or_report(call, linear_i8(ctx, [weight, input, weight_scale, bias, input_scale], convrot_group_size, call))
    }

    /// `sd.linear_w4_convrot.v1`: a linear layer with 4-bit weights and 8-bit activations.
    ///
    /// `weight`: I8 [K/2, N], contiguous: element 2j in the low half of byte j, 2j + 1 in the high one. `kind`: a `ggml_w4_convrot_kind`.
    /// `input`: F32 [K, M, B2, B3], contiguous, for which a node of `ggml_quantize_i8_convrot` is made; or what that function gave with
    /// the same group size. `bias`: F32, N elements, or NULL. `convrot_group_size`: a power of 4 that divides K. Result: F32 [N, M, B2, B3].
    ///
    /// W4A4: halves are integers from -8 to 7; `weight_scales`: F32, N elements; `s_channel` and `s_rel` are NULL. As
    /// `ggml_mul_mat_i8_tensorwise` from there. W4A8: halves are numbers of elements of `weight_scales`, F32 of 16; `s_channel`: F32, N
    /// elements; `s_rel`: F8_E4M3 [K/16, N], contiguous. A weight is the table's element times the product of both scales; on the CPU
    /// products are added up in order, as F32.
    pub fn ggml_mul_mat_w4_convrot(
        ctx: *mut ggml_context,
        weight: *mut ggml_tensor,
        input: *mut ggml_tensor,
        weight_scales: *mut ggml_tensor,
        s_channel: *mut ggml_tensor,
        s_rel: *mut ggml_tensor,
        bias: *mut ggml_tensor,
        kind: c_int,
        convrot_group_size: c_int,
    ) -> *mut ggml_tensor {
        let call = "ggml_mul_mat_w4_convrot";
        or_report(call, linear_w4(ctx, [weight, input, weight_scales, s_channel, s_rel, bias], kind, convrot_group_size, call))
    }

    /// `sd.modulate.v1`: `x + x * scale + shift`, each step rounded to F32. `x`, `scale`, `shift`: F32 with any strides; `scale` and
    /// `shift` are repeated to the shape of `x`; `shift` NULL: `x + x * scale`. Result: F32, of the shape of `x`, contiguous.
    pub fn ggml_sd_modulate(ctx: *mut ggml_context, x: *mut ggml_tensor, shift: *mut ggml_tensor, scale: *mut ggml_tensor) -> *mut ggml_tensor {
        let src = [x, scale, shift];
        create::<Modulate>("ggml_sd_modulate", ctx, if shift.is_null() { &src[..2] } else { &src }, &())
    }

    /// `sd.rope_apply.v1`: multiplies pairs of channels with matrices.
    ///
    /// `a`: F32 [D, heads, tokens, batch], any strides, D even. `pe`: F32 [2, 2, P, tokens], any strides, P at most D/2: for each pair and
    /// token a matrix, cos, -sin, sin, cos in the order of memory. `interleaved`: pairs are channels 2j and 2j + 1, and any matrix will
    /// do; else j and j + P, and only cos and sin are read. Channels from 2P on stay. Products and sums are rounded to F32 each.
    /// Result: F32 [D, tokens, heads * batch].
    pub fn ggml_rope_apply(ctx: *mut ggml_context, a: *mut ggml_tensor, pe: *mut ggml_tensor, interleaved: bool) -> *mut ggml_tensor {
        create::<RopeApply>("ggml_rope_apply", ctx, &[a, pe], &RopeAttrs { interleaved: interleaved.into() })
    }

    /// `sd.sage_attn.v1`: attention with 8-bit queries and keys. No device of this library computes it.
    ///
    /// `q`: F32 [D, Lq, Hq, B], `k`: F32 [D, Lk, Hk, B], `v`: F16 [D, Lk, Hk, B], all contiguous, Hq a multiple of Hk. `scale`: finite,
    /// above 0. Result: F32 [D, Hq, Lq, B].
    pub fn ggml_sage_attn(
        ctx: *mut ggml_context,
        q: *mut ggml_tensor,
        k: *mut ggml_tensor,
        v: *mut ggml_tensor,
        scale: f32,
        mode: ggml_sage_attn_mode,
    ) -> *mut ggml_tensor {
        create::<Sage>("ggml_sage_attn", ctx, &[q, k, v], &SageAttrs { scale, mode: mode.0 })
    }

    /// `sd.sol_attn.v1`: attention that looks closely at blocks of keys that matter and at summaries of the others. No device of this
    /// library computes it.
    ///
    /// `q`, `k`, `v`: F32 [128, T, H, B], contiguous, T above 0. `scale`: finite, above 0. `tau`: finite. Result: F32 [128, H, T, B].
    pub fn ggml_sol_attn(
        ctx: *mut ggml_context,
        q: *mut ggml_tensor,
        k: *mut ggml_tensor,
        v: *mut ggml_tensor,
        scale: f32,
        tau: f32,
    ) -> *mut ggml_tensor {
        create::<Sol>("ggml_sol_attn", ctx, &[q, k, v], &SolAttrs { scale, tau })
    }
}
