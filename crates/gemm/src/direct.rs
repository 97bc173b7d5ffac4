//! Products with few rows on one side: no packing, every row of the other side is read once where it lies.

use crate::gemm::Gemm;
use crate::kernel::dot::DotArgs;
use crate::kernel::Kernels;
use crate::operand::float;
use crate::plan::ALIGN;
use crate::shape::{Shape, Side};
use crate::team::Team;
use ggml_oxide_types::Type;

impl Gemm<'_> {
    /// Plain rows against `few` rows of the other side.
    pub(crate) fn run_dot<T: Team + ?Sized>(
        &self,
        team: &T,
        swapped: bool,
        few: usize,
        own: *mut f32,
    ) {
        let Shape {
            m,
            n,
            k,
            batch,
            ratio,
        } = self.shape;
        let (many, many_side, few_side) = if swapped {
            (n, &self.x, &self.w)
        } else {
            (m, &self.w, &self.x)
        };
        let (Side::Matrix(a), Side::Matrix(b)) = (many_side, few_side) else {
            unreachable!("the dot path is chosen for matrices only");
        };
        let Some(float) = float(a.ty) else {
            unreachable!("the dot path is chosen for plain rows only");
        };
        let kernel = Kernels::of(self.isa).dot[float as usize][few - 1];
        let in_place = b.ty == Type::F32 && b.dense_rows() && !b.via_f16;
        let batches = batch[0] * batch[1];
        // Tasks of at least 32 KiB of rows, about eight per thread.
        let least = (32 * 1024 / (k * float.size())).max(1);
        let rows = (many * batches)
            .div_ceil(8 * team.nth())
            .max(least)
            .next_multiple_of(8)
            .min(many);
        let per_batch = many.div_ceil(rows);
        let mut converted = None;
        loop {
            let task = team.next();
            if task >= per_batch * batches {
                return;
            }
            let (bt, first) = (task / per_batch, task % per_batch * rows);
            let (i2, i3) = self.batch(bt);
            let wide = (i2 / ratio[0], i3 / ratio[1]);
            let (ai, bi) = if swapped {
                ((i2, i3), wide)
            } else {
                (wide, (i2, i3))
            };
            let (b_at, b_stride) = if in_place {
                (b.at(0, 0, bi.0, bi.1).cast::<f32>(), b.nb[0])
            } else {
                let pitch = (k * 4).next_multiple_of(ALIGN);
                if converted != Some(bi) {
                    for r in 0..few {
                        // SAFETY: this thread's region holds `few` rows of `pitch` bytes.
                        let row =
                            unsafe { core::slice::from_raw_parts_mut(own.byte_add(r * pitch), k) };
                        b.read_row(r, 0, bi.0, bi.1, row);
                    }
                    converted = Some(bi);
                }
                (own.cast_const(), pitch)
            };
            let c = self.dst.batch(i2, i3);
            let (sc_row, sc_col) = if swapped {
                (self.dst.ld, 1)
            } else {
                (1, self.dst.ld)
            };
            let args = DotArgs {
                k,
                a: a.at(first, 0, ai.0, ai.1),
                a_stride: a.nb[0],
                rows: rows.min(many - first),
                b: b_at,
                b_stride,
                c: c.wrapping_add(first * sc_row),
                sc_row,
                sc_col,
            };
            // SAFETY: the set is available; operands and result are as their creators vouched; rows of one task are
            // written by one thread.
            unsafe { kernel(&args) };
        }
    }
}
