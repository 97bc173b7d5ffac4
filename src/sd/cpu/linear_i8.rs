//! The linear layer of 8-bit integers: activations are quantised into the workspace where they are F32, and made strips there where
//! they are many, then panels of weights meet strips of activations.

use super::convrot::{self, quantise, Rows, To};
use super::pack::row_units;
use super::product::{numbers, Activations, Lie, Out, Product};
use super::rows::{self, Weights};
use super::{tile, Level};
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
    /// From the start on strips, or quantised rows when the input is F32; behind them the scales of those.
    scales: usize,
    /// Sums of the integers of a row.
    sums: usize,
    /// What the quantisation needs, and then the product.
    rest: usize,
    /// Bytes of all.
    size: usize,
}

fn place(node: &Node<op::Linear>) -> Option<Scratch> {
    let (k, r) = (usize::try_from(node.src(0).ne[0]).ok()?, usize::try_from(shape::nrows(node.dst)).ok()?);
    let (own, many) = (node.attrs.form == FORM_F32, r >= rows::MANY);
    let tiles = tile::integers(Level::best());
    let round = |bytes: usize| bytes.checked_next_multiple_of(64);
    let numbers = round(r.checked_mul(4)?)?;
    let scales = round(match (many, own) {
        (true, _) => Activations::size(tiles, r, k)?,
        (false, true) => k.checked_mul(r)?,
        (false, false) => 0,
    })?;
    let sums = scales.checked_add(if own { numbers } else { 0 })?;
    let rest = sums.checked_add(numbers)?;
    let strip = if many { tiles.strip() } else { 0 };
    let quantise = if own { convrot::room(k, r, node.attrs.group as usize, strip)? } else { 0 };
    let product = if many { Product::room(tiles, r, k, usize::try_from(node.src(0).ne[1]).ok()?, 0)? } else { 0 };
    Some(Scratch { scales, sums, rest, size: rest.checked_add(quantise.max(product))? })
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
        let (attrs, input, w) = (&node.attrs, Shared::of(node.src(1)), Shared::of(node.src(0)));
        let sums = base.at(scratch.sums);
        let scales = match attrs.form {
            FORM_F32 => base.at(scratch.scales),
            FORM_PACKED => input.at(Packed::new(k as i64, r as i64).map_or(0, |p| p.scales)),
            _ => attrs.input_scale().map_or(input, |i| Shared::of(node.src(i))),
        };
        // SAFETY: the caller's promise.
        let vector = |i: Option<usize>| i.map(|i| unsafe { numbers(node.src(i)) });
        let out = Out { dst, n, weight_scale: vector(attrs.weight_scale()), bias: vector(attrs.bias()) };
        let from_f32 = |to: To, sums: Option<Shared>| {
            let (group, scratch) = (attrs.group as usize, base.at(scratch.rest));
            Rows { from: input, k, rows: r, group, to, scales, sums, scratch }
        };
        // SAFETY: the caller's promise; shapes are those that `infer` has checked, and the workspace has the bytes.
        unsafe {
            if r < rows::MANY {
                let own = attrs.form == FORM_F32;
                let product = rows::Product { q: if own { base } else { input }, scales, sums, rows: r, k, out };
                match own {
                    true => quantise(run, &from_f32(To::Rows(base), Some(sums)))?,
                    false => product.sum(run)?,
                }
                return product.run(run, Weights::Bytes(w));
            }
            let tiles = tile::integers(Level::best());
            let x = Activations { strips: base, scales, sums, rows: r, k, tiles };
            match attrs.form {
                FORM_F32 => quantise(run, &from_f32(To::Strips(x), None))?,
                _ => x.pack_all(run, input)?,
            }
            let (scratch, lie) = (base.at(scratch.rest), Lie { at: w, size: k });
            Product { x, out, scratch, extra: 0, lie }.run(run, |n, k0, to: &mut [u32]| {
                let row = std::slice::from_raw_parts(w.at(k * n).cast::<i8>(), k);
                row_units(tiles, row, k0 / tiles.per, to)
            })
        }
    }
}
