//! Modulation, row by row: a product, and two sums, each rounded.

use super::native;
use super::view::View;
use crate::sd::kernel::{part, Kernel, Run, Shared, Stop};
use crate::sd::modulate as op;
use crate::sd::operator::Node;
use ggml_oxide_abi::ggml_tensor;
use ggml_oxide_shape as shape;
use std::ffi::CStr;

/// `sd.modulate.cpu`.
pub struct Modulate;

impl Kernel for Modulate {
    type Op = op::Modulate;
    const NAME: &'static CStr = c"sd.modulate.cpu";

    unsafe fn execute(node: &Node<Self::Op>, run: &Run, dst: Shared) -> Result<(), Stop> {
        if shape::is_empty(node.dst) {
            return Ok(());
        }
        let ne = node.dst.ne.map(|n| n as usize);
        let (x, scales) = (View::of(node.src(0)), Scales::of(node));
        let rows = ne[1] * ne[2] * ne[3];
        run.parallel(|ith, nth| {
            for row in part(rows, ith, nth) {
                let i = [row % ne[1], row / ne[1] % ne[2], row / ne[1] / ne[2]];
                // SAFETY: the caller's promise; each row is one thread's.
                unsafe {
                    let y = std::slice::from_raw_parts_mut(dst.at(4 * ne[0] * row).cast::<f32>(), ne[0]);
                    x.copy(i, y);
                    scales.apply(i, y);
                }
            }
        })
    }
}

/// Scale, and shift, of a modulation.
pub struct Scales {
    scale: View,
    shift: Option<View>,
}

impl Scales {
    /// Those of a node.
    pub fn of(node: &Node<op::Modulate>) -> Self {
        Scales { scale: View::of(node.src(1)), shift: node.srcs().get(2).map(|t| View::of(t)) }
    }

    /// As [`Scales::of`], for a node of the operator that is not read yet, with its sources but x; the rule that is broken.
    ///
    /// # Safety
    /// It is one, and its sources live.
    pub unsafe fn read(node: &ggml_tensor) -> Result<(Self, Vec<&ggml_tensor>), String> {
        // SAFETY: the caller's promise.
        let node = unsafe { Node::read(node)? };
        Ok((Scales::of(&node), node.srcs()[1..].to_vec()))
    }

    /// Modulates row `i` of x.
    ///
    /// # Safety
    /// The tensors had their data, at multiples of 4 bytes, when they were read; x has the row.
    pub unsafe fn apply(&self, i: [usize; 3], row: &mut [f32]) {
        let n = row.len();
        // SAFETY: the caller's promise.
        unsafe {
            match (self.scale.row(i, n), self.shift.as_ref().map(|s| s.row(i, n))) {
                (Some(scale), None) => native::modulate(row, scale, None),
                (Some(scale), Some(Some(shift))) => native::modulate(row, scale, Some(shift)),
                _ => {
                    for (i0, x) in row.iter_mut().enumerate() {
                        let sum = *x + *x * self.scale.at(i0, i);
                        *x = self.shift.as_ref().map_or(sum, |shift| sum + shift.at(i0, i));
                    }
                }
            }
        }
    }
}
