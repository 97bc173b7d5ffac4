//! Fusions that end in `sd.quantize_i8_convrot.v1`: rows are made one at a time where they are rotated and rounded, and the F32 tensor
//! of all of them is never there.
//!
//! What comes before is SwiGLU, `sd.modulate.v1`, or RMS_NORM, MUL by a weight for each channel and, if it follows, modulation. Each
//! step is rounded as the single nodes round it, in their order: the bits are the same.

use super::modulate::Scales;
use super::native;
use super::norm_rope::Norm;
use super::view::View;
use super::{rotate, Level};
use crate::capi::guard;
use crate::sd::convrot::{Packed, Quantize};
use crate::sd::fusion::{is, reads, source, Fusion, Optimize};
use crate::sd::kernel::{part, room, Run, Shared, Stop};
use crate::sd::modulate::Modulate;
use crate::sd::operator::{Check, Node};
use crate::sd::{api, check};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::{c_int, c_void, CStr};
use std::marker::PhantomData;

/// What is read from outside.
type Inputs<'a> = Vec<&'a ggml_tensor>;

/// The nodes before the quantiser.
pub trait Before: Sized + Sync + 'static {
    /// The rule's name.
    const NAME: &'static CStr;
    /// Operator of the first node.
    const FIRST: ggml_op;
    /// See [`Fusion::OPTIMIZE`].
    const OPTIMIZE: Option<Optimize> = None;
    /// How many of these nodes, which follow each other in a graph, are before a quantiser; 0: they are others.
    fn count(nodes: &[&ggml_tensor]) -> usize;
    /// Reads so many nodes; the rule that formats or shapes break.
    fn read<'a>(nodes: &[&'a ggml_tensor]) -> Check<(Self, Inputs<'a>)>;
    /// Computes a row.
    ///
    /// # Safety
    /// The nodes were read when inputs had their data, at multiples of 4 bytes; the result has the row.
    unsafe fn row(&self, i: [usize; 3], to: &mut [f32]);
}

/// SwiGLU of two tensors, or of the halves of one.
pub struct Swiglu {
    gate: View,
    /// Where it is not half of `gate`.
    up: Option<View>,
    /// The halves of `gate` are `up`, `gate`.
    swapped: bool,
}

impl Before for Swiglu {
    const NAME: &'static CStr = c"sd.swiglu_convrot.cpu";
    const FIRST: ggml_op = GGML_OP_GLU;

    fn count(nodes: &[&ggml_tensor]) -> usize {
        usize::from(nodes[0].op_params[0] == GGML_GLU_OP_SWIGLU.0)
    }

    fn read<'a>(nodes: &[&'a ggml_tensor]) -> Check<(Self, Inputs<'a>)> {
        let (dst, gate) = (nodes[0], source(nodes[0], 0)?);
        let up = source(dst, 1).ok();
        let inputs: Inputs = std::iter::once(gate).chain(up).collect();
        let mut ne = dst.ne;
        ne[0] *= if up.is_some() { 1 } else { 2 };
        for t in &inputs {
            check::format(t, GGML_TYPE_F32, "a source of GLU")?;
            if t.ne != ne {
                return Err("shapes of the nodes differ".into());
            }
            if t.nb[0] != 4 {
                return Err("elements of a row must lie side by side".into());
            }
        }
        Ok((Swiglu { gate: View::of(gate), up: up.map(View::of), swapped: dst.op_params[1] != 0 }, inputs))
    }

    unsafe fn row(&self, i: [usize; 3], to: &mut [f32]) {
        let n = to.len();
        // SAFETY: the caller's promise.
        let pair = unsafe {
            match &self.up {
                Some(up) => self.gate.row(i, n).zip(up.row(i, n)),
                None => self.gate.row(i, 2 * n).map(|both| both.split_at(n)),
            }
        };
        match pair {
            Some((up, gate)) if self.up.is_none() && self.swapped => native::swiglu(gate, up, to),
            Some((gate, up)) => native::swiglu(gate, up, to),
            // `read` refuses such rows
            None => to.fill(f32::NAN),
        }
    }
}

/// A modulation.
pub struct Modulated {
    x: View,
    scales: Scales,
}

impl Before for Modulated {
    const NAME: &'static CStr = c"sd.modulate_convrot.cpu";
    const FIRST: ggml_op = GGML_OP_CUSTOM;

    fn count(nodes: &[&ggml_tensor]) -> usize {
        usize::from(is::<Modulate>(nodes[0]))
    }

    fn read<'a>(nodes: &[&'a ggml_tensor]) -> Check<(Self, Inputs<'a>)> {
        // SAFETY: a node of the operator, as it was counted.
        let (scales, mut inputs) = unsafe { Scales::read(nodes[0])? };
        let x = source(nodes[0], 0)?;
        inputs.push(x);
        Ok((Modulated { x: View::of(x), scales }, inputs))
    }

    unsafe fn row(&self, i: [usize; 3], to: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe {
            self.x.copy(i, to);
            self.scales.apply(i, to);
        }
    }
}

/// RMS_NORM, MUL, and perhaps a modulation.
pub struct Normalised {
    x: View,
    eps: f32,
    weight: View,
    scales: Option<Scales>,
}

impl Before for Normalised {
    const NAME: &'static CStr = c"sd.rms_norm_mul_convrot.cpu";
    const FIRST: ggml_op = GGML_OP_RMS_NORM;
    const OPTIMIZE: Option<Optimize> = Some(bring_together);

    fn count(nodes: &[&ggml_tensor]) -> usize {
        match nodes {
            [norm, mul, ..] if mul.op != GGML_OP_MUL || !reads(mul, 0, norm) => 0,
            [_, mul, next, ..] if is::<Modulate>(next) && reads(next, 0, mul) => 3,
            [_, _, ..] => 2,
            _ => 0,
        }
    }

    fn read<'a>(nodes: &[&'a ggml_tensor]) -> Check<(Self, Inputs<'a>)> {
        let Norm { x, weight, eps } = Norm::read(nodes[0], nodes[1])?;
        let mut inputs = vec![x, weight];
        // SAFETY: a node of the operator, as it was counted.
        let scales = nodes.get(2).map(|node| unsafe { Scales::read(node) }).transpose()?.map(|(scales, more)| {
            inputs.extend(more);
            scales
        });
        let (x, weight) = (View::of(x), View::of(weight));
        Ok((Normalised { x, eps, weight, scales }, inputs))
    }

    unsafe fn row(&self, i: [usize; 3], to: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe {
            self.x.copy(i, to);
            let factor = native::rms_factor(to, self.eps);
            let weight = self.weight.row([0; 3], to.len()).unwrap_or(&[]);
            native::scale(to, factor, weight);
            if let Some(scales) = &self.scales {
                scales.apply(i, to);
            }
        }
    }
}

/// Moves RMS_NORM and MUL to their modulation: what makes its scale comes between them when a graph is built.
unsafe extern "C" fn bring_together(graph: *mut ggml_cgraph, _: *mut c_void) {
    const MOST: c_int = 24;
    guard("optimize", || {
        // SAFETY: the library's graph; numbers of nodes that are there.
        unsafe {
            let n = api::ggml_graph_n_nodes(graph);
            let node = |i: c_int| &*api::ggml_graph_node(graph, i);
            for first in 0..(n - 3).max(0) {
                let (norm, mul) = (node(first), node(first + 1));
                if norm.op != GGML_OP_RMS_NORM || mul.op != GGML_OP_MUL || !reads(mul, 0, norm) {
                    continue;
                }
                // whoever reads them, or may write where they read
                let stop = |t: &ggml_tensor| {
                    let writes = !t.view_src.is_null()
                        && !matches!(t.op, GGML_OP_VIEW | GGML_OP_RESHAPE | GGML_OP_PERMUTE | GGML_OP_TRANSPOSE);
                    writes || t.src.iter().any(|&s| std::ptr::eq(s, mul) || std::ptr::eq(s, norm))
                };
                let at = (first + 2..n.min(first + 2 + MOST)).find(|&i| stop(node(i)));
                if let Some(at) = at.filter(|&i| i > first + 2 && is::<Modulate>(node(i)) && reads(node(i), 0, mul)) {
                    api::ggml_ext_graph_delay(graph, first, 2, at);
                }
            }
        }
    })
}

/// The nodes `B` and a quantiser.
pub struct ToI8<B>(PhantomData<B>);

impl<B: Before> Fusion for ToI8<B> {
    type Last = Quantize;
    type Chain<'a> = B;
    const NAME: &'static CStr = B::NAME;
    const FIRST: ggml_op = B::FIRST;
    const OPTIMIZE: Option<Optimize> = B::OPTIMIZE;

    fn count(nodes: &[&ggml_tensor]) -> usize {
        let n = if nodes.len() < 2 { 0 } else { B::count(nodes) };
        match nodes.get(n) {
            Some(last) if n > 0 && is::<Quantize>(last) && reads(last, 0, nodes[n - 1]) => n + 1,
            _ => 0,
        }
    }

    unsafe fn read<'a>(before: &[&'a ggml_tensor], last: &Node<'a, Quantize>) -> Check<(B, Vec<&'a ggml_tensor>)> {
        check::cpu_group(last.attrs.group)?;
        B::read(before)
    }

    unsafe fn execute(chain: &B, last: &Node<Quantize>, run: &Run, dst: Shared) -> Result<(), Stop> {
        let (a, group) = (last.src(0), last.attrs.group as usize);
        let Some(packed) = Packed::new(a.ne[0], shape::nrows(a)) else { return Ok(()) };
        let ne = a.ne.map(|n| n as usize);
        let (level, k) = (Level::best(), ne[0]);
        run.try_parallel(|ith, nth| {
            let mine = part(packed.rows, ith, nth);
            let n = if mine.is_empty() { 0 } else { k };
            let mut row = room::<f32>(n)?;
            let mut scratch = room::<f32>(if group > 1 { n.checked_next_multiple_of(64)? } else { 0 })?;
            for r in mine {
                // SAFETY: row `r` of the result and its scale are this thread's alone.
                unsafe {
                    chain.row([r % ne[1], r / ne[1] % ne[2], r / ne[1] / ne[2]], &mut row);
                    let to = std::slice::from_raw_parts_mut(dst.at(k * r).cast::<i8>(), k);
                    let (scale, _) = rotate::quantise(level, &row, &mut scratch, to, group);
                    dst.at(packed.scales + 4 * r).cast::<f32>().write_unaligned(scale);
                }
            }
            Some(())
        })?;
        // SAFETY: the caller's promise.
        unsafe { pad(dst, last, packed) };
        Ok(())
    }
}

/// Writes zeros where a packed activation holds nothing.
///
/// # Safety
/// `dst` has as many bytes as the node's result.
pub unsafe fn pad(dst: Shared, quantiser: &Node<Quantize>, packed: Packed) {
    let rows_end = quantiser.src(0).ne[0] as usize * packed.rows;
    let scales_end = packed.scales + 4 * packed.rows;
    // SAFETY: the result ends behind the scales.
    unsafe {
        dst.at(rows_end).0.write_bytes(0, packed.scales - rows_end);
        dst.at(scales_end).0.write_bytes(0, shape::nbytes(quantiser.dst) - scales_end);
    }
}
