//! Two 8-bit linear layers on one packed activation, SwiGLU of their results, and its quantisation: one launch.
//!
//! Some hundred rows at a time are computed by both layers into the workspace, gated, rotated and rounded. Of the three F32 tensors of
//! the width inside, as a rule the largest of a model, there are those rows alone. The bits are those of the single nodes.

use super::native;
use super::pack::row_units;
use super::product::{numbers, Activations, Lie, Out, Product};
use super::tile::{self, Tiles};
use super::to_i8::{is, nodes_from, pad, reads};
use super::{rotate, rows, Level};
use crate::capi::guard;
use crate::sd::convrot::{Packed, Quantize};
use crate::sd::kernel::{aligned, apart, part, places, prepared, room, status, Entry, Run, Shared, Stop};
use crate::sd::linear_i8::{Linear, FORM_PACKED};
use crate::sd::operator::{Check, Node, Operator};
use crate::sd::{api, check};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr};

const NAME: &CStr = c"sd.linear_swiglu_convrot.cpu";

/// Rows at a time: a quarter of them, so that their results take little memory, and as many as this, so that weights are not read too
/// often.
const LEAST_ROWS: usize = 128;
/// And no more: their results are to stay near.
const MOST_ROWS: usize = 256;

/// The rule.
pub const RULE: Entry = Entry {
    op: Quantize::NAME,
    name: NAME,
    desc: || ggml_ext_kernel_desc {
        struct_size: size_of::<ggml_ext_kernel_desc>(),
        name: NAME.as_ptr(),
        op: GGML_OP_NONE,
        op_name: std::ptr::null(),
        priority: 0,
        match_op: GGML_OP_CUSTOM,
        user_data: std::ptr::null_mut(),
        supports: Some(supports),
        preferred: None,
        prepare: Some(prepare),
        execute: Some(execute),
        destroy: None,
        r#match: Some(matches),
        optimize: None,
        scope: std::ptr::null_mut(),
    },
};

unsafe extern "C" fn matches(graph: *mut ggml_cgraph, first: c_int, _: *mut c_void) -> c_int {
    guard("match", || {
        // SAFETY: the library's graph.
        let nodes = unsafe { nodes_from(graph, first) };
        let &[a, b, glu, quantiser] = &nodes[..] else { return 0 };
        let gate = glu.op == GGML_OP_GLU && glu.op_params[0] == GGML_GLU_OP_SWIGLU.0;
        let both = (reads(glu, 0, a) && reads(glu, 1, b)) || (reads(glu, 0, b) && reads(glu, 1, a));
        let chain = is::<Linear>(a) && is::<Linear>(b) && gate && both && is::<Quantize>(quantiser);
        4 * c_int::from(chain && reads(quantiser, 0, glu))
    })
}

/// The nodes of a match.
struct Chain<'a> {
    gate: Node<'a, Linear>,
    up: Node<'a, Linear>,
    quantiser: Node<'a, Quantize>,
}

impl<'a> Chain<'a> {
    /// # Safety
    /// The step is the library's, of a match.
    unsafe fn of(step: *const ggml_ext_step) -> Check<Self> {
        // SAFETY: the caller's promise.
        let (a, b, glu, quantiser) = unsafe {
            let nodes = std::slice::from_raw_parts((*step).nodes, 4);
            (Node::<Linear>::read(&*nodes[0])?, Node::<Linear>::read(&*nodes[1])?, &*nodes[2], Node::read(&*nodes[3])?)
        };
        let (gate, up) = if reads(glu, 0, a.dst) { (a, b) } else { (b, a) };
        let chain = Chain { gate, up, quantiser };
        chain.check(glu)?;
        Ok(chain)
    }

    fn check(&self, glu: &ggml_tensor) -> Check {
        check::cpu_group(self.quantiser.attrs.group)?;
        for layer in [&self.gate, &self.up] {
            check::cpu_group(layer.attrs.group)?;
            if layer.attrs.form != FORM_PACKED || !std::ptr::eq(layer.src(1), self.gate.src(1)) {
                return Err("the layers must read one packed activation".into());
            }
            if layer.dst.ne != glu.ne {
                return Err("shapes of the nodes differ".into());
            }
            if layer.srcs().iter().any(|&t| [self.gate.dst, self.up.dst].iter().any(|&node| std::ptr::eq(t, node))) {
                return Err("an operand beside the chain is a node of it".into());
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
    gate: usize,
    up: usize,
    /// What a product needs.
    panels: usize,
    /// Bytes of all.
    size: usize,
    /// Rows at a time.
    rows: usize,
}

fn place(chain: &Chain, tiles: &Tiles) -> Check<Scratch> {
    let [k, n, r] = chain.size();
    let rows = (r / 4).clamp(LEAST_ROWS, MOST_ROWS).next_multiple_of(tiles.strip());
    let place = || {
        let next = |at: usize, bytes: usize| at.checked_add(bytes)?.checked_next_multiple_of(64);
        let sums = next(0, Activations::size(tiles, r, k)?)?;
        let gate = next(sums, r.checked_mul(4)?)?;
        let some = n.checked_mul(4)?.checked_mul(r.min(rows))?;
        let up = next(gate, some)?;
        let panels = next(up, some)?;
        Some(Scratch { sums, gate, up, panels, size: next(panels, Product::room(tiles, r.min(rows), k, n)?)?, rows })
    };
    place().ok_or_else(|| "the workspace is larger than memory can be".into())
}

unsafe extern "C" fn supports(step: *const ggml_ext_step, _: *mut c_void) -> bool {
    guard("supports", || {
        // SAFETY: the library's step, of a match.
        unsafe { Chain::of(step) }.map_or_else(|text| api::refuse(&text), |_| true)
    })
}

unsafe extern "C" fn prepare(step: *const ggml_ext_step, out: *mut ggml_ext_prepared, _: *mut c_void) -> ggml_status {
    guard("prepare", || {
        // SAFETY: the library's step, of a match, and structure.
        unsafe {
            let overlap = (*step).overlap != 0;
            let answer = Chain::of(step).and_then(|chain| {
                let own = place(&chain, tile::integers(Level::best()))?.size;
                places(own, chain.quantiser.dst, overlap)
            });
            prepared(out, answer)
        }
    })
}

unsafe extern "C" fn execute(run: *const ggml_ext_run, _: *mut c_void) -> ggml_status {
    guard("execute", || {
        let failed = |text: String| Stop::Failed(GGML_STATUS_FAILED, text);
        // SAFETY: the library's run of a match; tensors but inner nodes have their data.
        status(unsafe {
            Chain::of((*run).step)
                .and_then(|chain| {
                    [&chain.gate, &chain.up].iter().flat_map(|layer| layer.srcs()).try_for_each(|t| aligned(t))?;
                    let tiles = tile::integers(Level::best());
                    let scratch = place(&chain, tiles)?;
                    Ok((chain, scratch, tiles))
                })
                .map_err(failed)
                .and_then(|(chain, scratch, tiles)| {
                    let (overlap, run) = ((*(*run).step).overlap != 0, Run::of(&*run));
                    let to = |dst| compute(&chain, &run, &scratch, tiles, dst);
                    apart(&run, chain.quantiser.dst, scratch.size, overlap, to)
                })
        })
    })
}

/// One layer on some rows.
///
/// # Safety
/// The layer's weights are there, and so is the memory of both others.
unsafe fn layer(run: &Run, node: &Node<Linear>, x: Activations, dst: Shared, scratch: Shared) -> Result<(), Stop> {
    let (k, n, tiles, w) = (x.k, node.src(0).ne[1] as usize, x.tiles, Shared::of(node.src(0)));
    // SAFETY: the caller's promise; shapes are those that `infer` has checked.
    unsafe {
        let vector = |i: Option<usize>| i.map(|i| numbers(node.src(i)));
        let out = Out { dst, n, weight_scale: vector(node.attrs.weight_scale()), bias: vector(node.attrs.bias()) };
        Product { x, out, scratch, lie: Lie { at: w, size: k } }.run(run, |n, k0, to: &mut [u32]| {
            let row = std::slice::from_raw_parts(w.at(k * n).cast::<i8>(), k);
            row_units(tiles, row, k0 / tiles.per, to)
        })
    }
}

/// # Safety
/// Tensors but inner nodes have their data, and `dst` has as many bytes as the result.
unsafe fn compute(chain: &Chain, run: &Run, scratch: &Scratch, tiles: &'static Tiles, dst: Shared) -> Result<(), Stop> {
    let [k, n, r] = chain.size();
    let (input, group) = (Shared::of(chain.gate.src(1)), chain.quantiser.attrs.group as usize);
    let packed = |k: usize| Packed::new(k as i64, r as i64);
    let (Some(from), Some(to)) = (packed(k), packed(n)) else { return Ok(()) };
    let base = run.scratch(scratch.size)?;
    let (gate, up) = (base.at(scratch.gate), base.at(scratch.up));
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
            layer(run, &chain.gate, x, gate, base.at(scratch.panels))?;
            layer(run, &chain.up, x, up, base.at(scratch.panels))?;
        }
        run.try_parallel(|ith, nth| {
            let mine = part(rows, ith, nth);
            let length = if mine.is_empty() { 0 } else { n };
            let (mut row, mut turned) = (room::<f32>(length)?, room::<f32>(length.checked_next_multiple_of(64)?)?);
            for i in mine {
                // SAFETY: row `i` of the workspace, and its row and scale of the result, are this thread's alone.
                unsafe {
                    let of = |from: Shared| std::slice::from_raw_parts(from.at(4 * n * i).cast::<f32>(), n);
                    native::swiglu(of(gate), of(up), &mut row);
                    let q = std::slice::from_raw_parts_mut(dst.at(n * (r0 + i)).cast::<i8>(), n);
                    let (scale, _) = rotate::quantise(Level::best(), &row, &mut turned, q, group);
                    dst.at(to.scales + 4 * (r0 + i)).cast::<f32>().write_unaligned(scale);
                }
            }
            Some(())
        })?;
    }
    // SAFETY: the caller's promise.
    unsafe { pad(dst, &chain.quantiser, to) };
    Ok(())
}
