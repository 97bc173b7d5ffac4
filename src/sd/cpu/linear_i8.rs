//! The linear layer of 8-bit integers: activations are quantised into the workspace where they are F32, then blocks of weights meet
//! strips of activations.

use super::convrot::{quantise, Rows};
use super::dot::Dot;
use super::product::{numbers, Activations, Product};
use super::Level;
use crate::sd::check;
use crate::sd::convrot::Packed;
use crate::sd::kernel::{Kernel, Run, Shared, Stop};
use crate::sd::linear_i8::{self as op, FORM_F32, FORM_PACKED};
use crate::sd::operator::{Check, Node};
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.linear_i8.cpu`.
pub struct Linear;

/// Workspace: what lies where. Pieces begin at multiples of 64 bytes.
struct Scratch {
    /// Quantised rows, when the input is F32, from the start on, and behind them their scales.
    scales: usize,
    /// Sums of the integers of a row.
    sums: usize,
    /// Bytes of all.
    size: usize,
}

fn place(node: &Node<op::Linear>) -> Option<Scratch> {
    let (k, r) = (usize::try_from(node.src(0).ne[0]).ok()?, usize::try_from(shape::nrows(node.dst)).ok()?);
    let own = node.attrs.form == FORM_F32;
    let round = |bytes: usize| bytes.checked_next_multiple_of(64);
    let numbers = round(r.checked_mul(4)?)?;
    let scales = if own { round(k.checked_mul(r)?)? } else { 0 };
    let sums = scales.checked_add(if own { numbers } else { 0 })?;
    Some(Scratch { scales, sums, size: sums.checked_add(numbers)? })
}

impl Kernel for Linear {
    type Op = op::Linear;
    const NAME: &'static CStr = c"sd.linear_i8.cpu";

    fn supports(node: &Node<Self::Op>) -> Check {
        check::cpu_group(node.attrs.group)
    }

    fn workspace(node: &Node<Self::Op>) -> Check<usize> {
        place(node).map(|s| s.size).ok_or_else(|| "the workspace is larger than memory can be".into())
    }

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let Some(scratch) = place(node) else { return Ok(()) };
        let base = run.scratch(scratch.size)?;
        let (k, n, r) = (node.src(0).ne[0] as usize, node.src(0).ne[1] as usize, shape::nrows(node.dst) as usize);
        let (attrs, input) = (&node.attrs, Shared::of(node.src(1)));
        let mut x = Activations { q: input, scales: input, sums: base.at(scratch.sums), rows: r };
        // SAFETY: the caller's promise; shapes are those that `infer` has checked, and the workspace has the bytes.
        unsafe {
            match attrs.form {
                FORM_F32 => {
                    (x.q, x.scales) = (base, base.at(scratch.scales));
                    let (to, scales, sums) = (x.q, x.scales, Some(x.sums));
                    quantise(run, &Rows { from: input, k, rows: r, group: attrs.group as usize, to, scales, sums })?;
                }
                FORM_PACKED => {
                    x.scales = input.at(Packed::new(k as i64, r as i64).map_or(0, |p| p.scales));
                    x.sum(run, k)?;
                }
                _ => {
                    x.scales = attrs.input_scale().map_or(input, |i| Shared::of(node.src(i)));
                    x.sum(run, k)?;
                }
            }
            let vector = |i: Option<usize>| i.map(|i| numbers(node.src(i)));
            let (weight_scale, bias) = (vector(attrs.weight_scale()), vector(attrs.bias()));
            let product = Product { x, weight_scale, bias, dst, k, n };
            let (dot, w) = (Dot::new(Level::best()), Shared::of(node.src(0)));
            run.parallel(|ith, nth| {
                for piece in product.pieces(ith, nth) {
                    product.piece(dot, w.at(k * piece.0.start), &piece);
                }
            })
        }
    }
}
