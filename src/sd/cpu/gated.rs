//! Two 8-bit linear layers on one packed activation, SwiGLU of their results, and its quantisation: one launch.
//!
//! Some thousand rows at a time: where a thread has computed a panel of both layers, it gates them at once, while they are near; what
//! comes of it waits in the workspace until rows are whole, and is rotated and rounded. Of the three F32 tensors of the width inside, as
//! a rule the largest of a model, there are these rows of one. The bits are those of the single nodes.

use super::native;
use super::pack::row_units;
use super::product::{numbers, Activations, Lie, Out, Place, Product};
use super::tile::{self, Tiles, MAX_ROWS};
use super::to_i8::pad;
use super::{rotate, rows, Level};
use crate::sd::check;
use crate::sd::convrot::{Packed, Quantize};
use crate::sd::fusion::{is, reads, Fusion};
use crate::sd::kernel::{part, room, Run, Shared, Stop};
use crate::sd::linear_i8::{Linear, FORM_PACKED};
use crate::sd::operator::{Check, Node};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// Rows at a time, up to twice as many: it takes this many to be worth reading all weights.
const ROWS: usize = 1024;

/// The fusion.
pub struct Gated;

impl Fusion for Gated {
    type Last = Quantize;
    type Chain<'a> = Chain<'a>;
    const NAME: &'static CStr = c"sd.linear_swiglu_convrot.cpu";
    const FIRST: ggml_op = GGML_OP_CUSTOM;

    fn count(nodes: &[&ggml_tensor]) -> usize {
        let &[a, b, glu, quantiser] = nodes else { return 0 };
        let gate = glu.op == GGML_OP_GLU && glu.op_params[0] == GGML_GLU_OP_SWIGLU.0;
        let both = (reads(glu, 0, a) && reads(glu, 1, b)) || (reads(glu, 0, b) && reads(glu, 1, a));
        let chain = is::<Linear>(a) && is::<Linear>(b) && gate && both && is::<Quantize>(quantiser);
        if chain && reads(quantiser, 0, glu) {
            4
        } else {
            0
        }
    }

    unsafe fn read<'a>(
        before: &[&'a ggml_tensor],
        last: &Node<'a, Quantize>,
    ) -> Check<(Chain<'a>, Vec<&'a ggml_tensor>)> {
        let &[a, b, glu] = before else { return Err("there must be three nodes before the quantiser".into()) };
        // SAFETY: nodes of the layer, as they were counted.
        let (a, b) = unsafe { (Node::<Linear>::read(a)?, Node::<Linear>::read(b)?) };
        let (gate, up) = if reads(glu, 0, a.dst) { (a, b) } else { (b, a) };
        let chain = Chain { gate, up };
        check::cpu_group(last.attrs.group)?;
        chain.check(glu)?;
        let inputs = [&chain.gate, &chain.up].iter().flat_map(|layer| layer.srcs()).copied().collect();
        Ok((chain, inputs))
    }

    fn workspace(chain: &Chain, _: &Node<Quantize>) -> Check<usize> {
        Ok(place(chain, tile::integers(Level::best()))?.size)
    }

    unsafe fn execute(chain: &Chain, last: &Node<Quantize>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let tiles = tile::integers(Level::best());
        let scratch = place(chain, tiles).map_err(|text| Stop::Failed(GGML_STATUS_FAILED, text))?;
        // SAFETY: the caller's promise.
        unsafe { compute(chain, last, run, &scratch, tiles, dst) }
    }
}

/// The layers.
pub struct Chain<'a> {
    gate: Node<'a, Linear>,
    up: Node<'a, Linear>,
}

impl Chain<'_> {
    fn check(&self, glu: &ggml_tensor) -> Check {
        for layer in [&self.gate, &self.up] {
            check::cpu_group(layer.attrs.group)?;
            if layer.attrs.form != FORM_PACKED || !std::ptr::eq(layer.src(1), self.gate.src(1)) {
                return Err("the layers must read one packed activation".into());
            }
            if layer.dst.ne != glu.ne {
                return Err("shapes of the nodes differ".into());
            }
        }
        match shape::nrows(glu) < rows::MANY as i64 {
            true => Err("there are few rows: one layer after the other reads weights where they lie".into()),
            false => Ok(()),
        }
    }

    fn size(&self) -> [usize; 3] {
        let (weight, dst) = (self.gate.src(0), self.gate.dst);
        [weight.ne[0] as usize, weight.ne[1] as usize, shape::nrows(dst) as usize]
    }
}

/// Workspace: what lies where. Strips of activations are at the start.
struct Scratch {
    sums: usize,
    /// Rows of SwiGLU's results.
    inside: usize,
    /// What products need.
    panels: usize,
    /// Bytes of a panel's results of one layer.
    half: usize,
    /// Bytes of all.
    size: usize,
    /// Rows at a time.
    rows: usize,
}

fn place(chain: &Chain, tiles: &Tiles) -> Check<Scratch> {
    let [k, n, r] = chain.size();
    let rows = r.div_ceil((r / ROWS).max(1)).next_multiple_of(tiles.strip());
    let place = || {
        let next = |at: usize, bytes: usize| at.checked_add(bytes)?.checked_next_multiple_of(64);
        let sums = next(0, Activations::size(tiles, r, k)?)?;
        let inside = next(sums, r.checked_mul(4)?)?;
        let panels = next(inside, n.checked_mul(4)?.checked_mul(r.min(rows))?)?;
        let half = Product::most_rows(tiles, r.min(rows), k).checked_mul(4 * tiles.rows)?;
        let size = next(panels, Product::room(tiles, r.min(rows), k, n, half.checked_mul(2)?)?)?;
        Some(Scratch { sums, inside, panels, half, size, rows })
    };
    place().ok_or_else(|| "the workspace is larger than memory can be".into())
}

/// One layer, on some rows.
///
/// # Safety
/// Sources have their data.
unsafe fn product<'a>(node: &Node<'a, Linear>, x: Activations, scratch: Shared, half: usize) -> Product<'a> {
    // SAFETY: the caller's promise; shapes are those that `infer` has checked.
    let vector = |i: Option<usize>| i.map(|i| unsafe { numbers(node.src(i)) });
    let (weight_scale, bias) = (vector(node.attrs.weight_scale()), vector(node.attrs.bias()));
    // results go where pieces are told
    let dst = Shared(std::ptr::null_mut());
    let out = Out { dst, n: node.src(0).ne[1] as usize, weight_scale, bias };
    Product { x, out, scratch, extra: 2 * half, lie: Lie { at: Shared::of(node.src(0)), size: x.k } }
}

/// SwiGLU of both layers of some rows, into `to`.
///
/// # Safety
/// The layers' weights are there, and so is the memory of `to` and of the scratch.
unsafe fn both(run: &Run, gate: &Product, up: &Product, half: usize, to: Shared) -> Result<(), Stop> {
    /// Rows at a time.
    const SOME: usize = 16;
    let (x, n, tiles) = (gate.x, gate.out.n, gate.x.tiles);
    let width = tiles.rows;
    gate.pieces(run, |memory, piece| {
        let (a, b) = (memory.at(gate.panel_size()), memory.at(gate.panel_size() + half));
        for (layer, to, next) in [(gate, a, (up.lie, piece.panel)), (up, b, (gate.lie, piece.next))] {
            let to = Place { at: to, pitch: width, stream: false };
            // SAFETY: the caller's promise; rows of weights lie one after the other.
            unsafe {
                layer.piece(memory, piece, to, next, &|n, k0, to: &mut [u32]| {
                    let row = std::slice::from_raw_parts(layer.lie.at.at(x.k * n).cast::<i8>(), x.k);
                    row_units(tiles, row, k0 / tiles.per, to)
                });
            }
        }
        let (first, last) = (x.strip(piece.strips.start).start, x.strip(piece.strips.end - 1).end);
        let n0 = piece.panel * width;
        let there = width.min(n - n0);
        let mut made = [0f32; SOME * MAX_ROWS];
        for r0 in (first..last).step_by(SOME) {
            let count = SOME.min(last - r0);
            let made = &mut made[..count * width];
            for r in r0..r0 + count {
                for line in (0..there).step_by(16) {
                    tile::near(to.at(4 * (n * r + n0 + line)).cast::<u8>().cast_const());
                }
            }
            // SAFETY: results of this thread's piece, and their places in `to`.
            unsafe {
                let of = |from: Shared| {
                    std::slice::from_raw_parts(from.at(4 * width * (r0 - first)).cast::<f32>(), count * width)
                };
                native::swiglu(of(a), of(b), made);
                for (r, made) in (r0..).zip(made.chunks_exact(width)) {
                    to.at(4 * (n * r + n0)).cast::<f32>().copy_from_nonoverlapping(made.as_ptr(), there);
                }
            }
        }
    })
}

/// # Safety
/// Tensors but inner nodes have their data, and `dst` has as many bytes as the result.
unsafe fn compute(
    chain: &Chain,
    quantiser: &Node<Quantize>,
    run: &Run,
    scratch: &Scratch,
    tiles: &'static Tiles,
    dst: Shared,
) -> Result<(), Stop> {
    let [k, n, r] = chain.size();
    let (input, group) = (Shared::of(chain.gate.src(1)), quantiser.attrs.group as usize);
    let packed = |k: usize| Packed::new(k as i64, r as i64);
    let (Some(from), Some(to)) = (packed(k), packed(n)) else { return Ok(()) };
    let base = run.scratch(scratch.size)?;
    let inside = base.at(scratch.inside);
    let all =
        Activations { strips: base, scales: input.at(from.scales), sums: base.at(scratch.sums), rows: r, k, tiles };
    // SAFETY: the caller's promise; the workspace has the bytes.
    unsafe { all.pack_all(run, input) }?;
    for r0 in (0..r).step_by(scratch.rows) {
        let rows = scratch.rows.min(r - r0);
        let x = Activations {
            strips: base.at(4 * all.units() * r0),
            scales: all.scales.at(4 * r0),
            sums: all.sums.at(4 * r0),
            rows,
            ..all
        };
        // SAFETY: as above.
        unsafe {
            let [gate, up] =
                [&chain.gate, &chain.up].map(|node| product(node, x, base.at(scratch.panels), scratch.half));
            both(run, &gate, &up, scratch.half, inside)?;
        }
        run.try_parallel(|ith, nth| {
            let mine = part(rows, ith, nth);
            let length = if mine.is_empty() { 0 } else { n };
            let mut turned = room::<f32>(length.checked_next_multiple_of(64)?)?;
            for i in mine {
                // SAFETY: row `i` of the workspace, and its row and scale of the result, are this thread's alone.
                unsafe {
                    let row = std::slice::from_raw_parts(inside.at(4 * n * i).cast::<f32>(), n);
                    let q = std::slice::from_raw_parts_mut(dst.at(n * (r0 + i)).cast::<i8>(), n);
                    let (scale, _) = rotate::quantise(Level::best(), row, &mut turned, q, group);
                    dst.at(to.scales + 4 * (r0 + i)).cast::<f32>().write_unaligned(scale);
                }
            }
            Some(())
        })?;
    }
    // SAFETY: the caller's promise.
    unsafe { pad(dst, quantiser, to) };
    Ok(())
}
