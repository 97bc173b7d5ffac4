//! Modulation, row by row: a product, and two sums, each rounded.

use super::view::View;
use crate::sd::kernel::{part, Kernel, Run, Shared, Stop};
use crate::sd::modulate as op;
use crate::sd::operator::Node;
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
        let views: Vec<View> = node.srcs().iter().map(|t| View::of(t)).collect();
        let rows = ne[1] * ne[2] * ne[3];
        run.parallel(|ith, nth| {
            for row in part(rows, ith, nth) {
                let i = [row % ne[1], row / ne[1] % ne[2], row / ne[1] / ne[2]];
                // SAFETY: the caller's promise; each row is one thread's.
                unsafe {
                    let y = std::slice::from_raw_parts_mut(dst.at(4 * ne[0] * row).cast::<f32>(), ne[0]);
                    let flat: Option<Vec<&[f32]>> = views.iter().map(|v| v.row(i, ne[0])).collect();
                    match flat.as_deref() {
                        Some([x, scale]) => {
                            for ((y, x), scale) in y.iter_mut().zip(*x).zip(*scale) {
                                *y = x + x * scale;
                            }
                        }
                        Some([x, scale, shift]) => {
                            for (((y, x), scale), shift) in y.iter_mut().zip(*x).zip(*scale).zip(*shift) {
                                *y = (x + x * scale) + shift;
                            }
                        }
                        _ => {
                            for (i0, y) in y.iter_mut().enumerate() {
                                let x = views[0].at(i0, i);
                                let sum = x + x * views[1].at(i0, i);
                                *y = views.get(2).map_or(sum, |shift| sum + shift.at(i0, i));
                            }
                        }
                    }
                }
            }
        })
    }
}
