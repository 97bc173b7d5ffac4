//! The linear layer of 4-bit weights. W4A4: weights become 8-bit integers in panels, then it is the product of those. W4A8: weights
//! become F32; sums are made in the order of the elements, in F32, one addend after the other.

use super::pack::{nibbles, units};
use super::product::{numbers, Activations, Lie, Out, Product};
use super::rows::{self, Weights};
use super::tile::{self, Tiles};
use super::Level;
use crate::sd::api::ggml_get_type_traits;
use crate::sd::check;
use crate::sd::convrot::Packed;
use crate::sd::kernel::{Kernel, Run, Shared, Stop};
use crate::sd::linear_w4::{self as op, BLOCK, F8_E4M3, W4A4};
use crate::sd::operator::{Check, Node};
use ggml_oxide_abi::GGML_STATUS_FAILED;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.linear_w4_convrot.cpu`.
pub struct Linear;

/// Bytes of activations that are made F32 at a time, about.
const FLOATS: usize = 64 << 20;
/// Elements that are unpacked at a time, at least as many as are asked for at once.
const UNPACKED: usize = 256;

fn tiles(kind: i32) -> &'static Tiles {
    match kind {
        W4A4 => tile::integers(Level::best()),
        _ => tile::floats(Level::best()),
    }
}

/// Rows of activations that are strips at the same time.
fn pass(tiles: &Tiles, kind: i32, k: usize, r: usize) -> usize {
    match kind {
        W4A4 => r,
        _ => r.min((FLOATS / 4 / k.max(1)).max(1).next_multiple_of(tiles.strip())),
    }
}

/// Workspace: what lies where. Pieces begin at multiples of 64 bytes; first are strips.
struct Scratch {
    /// Sums of the integers of a row.
    sums: usize,
    /// What the product needs.
    rest: usize,
    /// Bytes of all.
    size: usize,
}

fn place(node: &Node<op::Linear>) -> Option<Scratch> {
    let (k, r) = (usize::try_from(node.src(1).ne[0]).ok()?, usize::try_from(shape::nrows(node.dst)).ok()?);
    let kind = node.attrs.kind;
    let tiles = tiles(kind);
    let (sums, product) = match kind == W4A4 && r < rows::MANY {
        true => (0, 0),
        false => {
            let n = usize::try_from(node.dst.ne[0]).ok()?;
            let strips = Activations::size(tiles, pass(tiles, kind, k, r), k)?;
            (strips.checked_next_multiple_of(64)?, Product::room(tiles, r, k, n, 0)?)
        }
    };
    let rest = sums.checked_add(r.checked_mul(4)?)?.checked_next_multiple_of(64)?;
    Some(Scratch { sums, rest, size: rest.checked_add(product)? })
}

impl Kernel for Linear {
    type Op = op::Linear;
    const NAME: &'static CStr = c"sd.linear_w4_convrot.cpu";

    fn supports(node: &Node<Self::Op>) -> Check {
        check::cpu_group(node.attrs.group)
    }

    fn workspace(node: &Node<Self::Op>) -> Check<usize> {
        place(node).map(|s| s.size).ok_or_else(|| "the workspace is larger than memory can be".into())
    }

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let (k, n, r) = (node.src(1).ne[0] as usize, node.dst.ne[0] as usize, shape::nrows(node.dst) as usize);
        let Some(scratch) = place(node) else { return Ok(()) };
        let (q, base, attrs, w) =
            (Shared::of(node.src(1)), run.scratch(scratch.size)?, &node.attrs, Shared::of(node.src(0)));
        let scales = q.at(Packed::new(k as i64, r as i64).map_or(0, |p| p.scales));
        let (sums, scratch, tiles) = (base.at(scratch.sums), base.at(scratch.rest), tiles(attrs.kind));
        let lie = Lie { at: w, size: k / 2 };
        // SAFETY: the caller's promise; shapes are those that `infer` has checked.
        unsafe {
            let table = numbers(node.src(2));
            let bias = attrs.bias().map(|i| numbers(node.src(i)));
            let weight_scale = (attrs.kind == W4A4).then_some(table);
            let out = Out { dst, n, weight_scale, bias };
            let Some((rel, channel)) = attrs.relative() else {
                if r < rows::MANY {
                    let product = rows::Product { q, scales, sums, rows: r, k, out };
                    product.sum(run)?;
                    return product.run(run, Weights::Nibbles(w));
                }
                let x = Activations { strips: base, scales, sums, rows: r, k, tiles };
                x.pack_all(run, q)?;
                return Product { x, out, scratch, extra: 0, lie }.run(run, |n, k0, to: &mut [u32]| {
                    let count = (to.len() * tiles.per).min(k - k0);
                    let mut row = [0i8; UNPACKED];
                    nibbles(codes(w, k, n, k0, count), &mut row[..count]);
                    units(tiles, &row[..count], to);
                    to.as_ptr()
                });
            };
            let (rel, channel, codebook) =
                (Shared::of(node.src(rel)), numbers(node.src(channel)), numbers(node.src(2)));
            let factors = f8()?;
            let rows = pass(tiles, attrs.kind, k, r);
            for r0 in (0..r).step_by(rows.max(1)) {
                let scales = scales.at(4 * r0);
                let x = Activations { strips: base, scales, sums, rows: rows.min(r - r0), k, tiles };
                x.pack_all(run, q.at(k * r0))?;
                let out = Out { dst: dst.at(4 * n * r0), ..out };
                Product { x, out, scratch, extra: 0, lie }.run(run, |n, k0, to: &mut [u32]| {
                    let rel = rel.at(k / BLOCK as usize * n + k0 / BLOCK as usize).cast::<u8>();
                    let codes = codes(w, k, n, k0, to.len());
                    for (i, (to, codes)) in
                        to.chunks_mut(BLOCK as usize).zip(codes.chunks(BLOCK as usize / 2)).enumerate()
                    {
                        let factor = channel[n] * factors[usize::from(rel.add(i).read())];
                        let table: [f32; 16] = std::array::from_fn(|c| codebook[c] * factor);
                        for (pair, b) in to.chunks_exact_mut(2).zip(codes) {
                            pair[0] = table[usize::from(b & 15)].to_bits();
                            pair[1] = table[usize::from(b >> 4)].to_bits();
                        }
                    }
                    to.as_ptr()
                })?;
            }
        }
        Ok(())
    }
}

/// The bytes of `count` elements of row `n` of weights from `k0` on.
///
/// # Safety
/// They are there.
unsafe fn codes<'a>(w: Shared, k: usize, n: usize, k0: usize, count: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(w.at(k / 2 * n + k0 / 2).cast::<u8>(), count / 2) }
}

/// The numbers of all bytes of F8_E4M3.
fn f8() -> Result<[f32; 256], Stop> {
    // SAFETY: traits live for ever.
    let decode = unsafe { ggml_get_type_traits(F8_E4M3).as_ref() }.and_then(|t| t.to_float);
    let Some(decode) = decode else {
        return Err(Stop::Failed(GGML_STATUS_FAILED, "there is no decoder of F8_E4M3".into()));
    };
    let (bytes, mut numbers) = (std::array::from_fn::<u8, 256, _>(|i| i as u8), [0f32; 256]);
    // SAFETY: as many bytes as numbers.
    unsafe { decode(bytes.as_ptr().cast(), numbers.as_mut_ptr(), 256) };
    Ok(numbers)
}
