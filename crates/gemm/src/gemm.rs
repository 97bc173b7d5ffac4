//! One prepared product: which path it takes, and its execution by a team of threads.

use crate::direct::{quantised_dot, quantised_dot_region};
use crate::float::FloatEngine;
use crate::int8::{Int8Engine, Int8Kernels};
use crate::isa::Isa;
use crate::kernel::Kernels;
use crate::operand::is_supported;
use crate::packed;
use crate::plan::{dot_path, Blocks, Path, Widths, ALIGN};
use crate::shape::{Dst, Error, Precision, Shape, Side, Workspace};
use crate::team::Team;
use ggml_oxide_types::Type;

/// A prepared product.
pub struct Gemm<'a> {
    pub(crate) shape: Shape,
    pub(crate) w: Side<'a>,
    pub(crate) x: Side<'a>,
    pub(crate) dst: Dst,
    pub(crate) isa: Isa,
    precision: Precision,
    /// Added to each column of the result, as that many values.
    pub(crate) bias: Option<*const f32>,
}

// SAFETY: the bias is only read; who gave it vouched for it.
unsafe impl Sync for Gemm<'_> {}
// SAFETY: as above; the pointer is not tied to a thread.
unsafe impl Send for Gemm<'_> {}

impl<'a> Gemm<'a> {
    /// Prepares `dst = W * X` with the instruction set of this machine.
    ///
    /// # Errors
    /// [`Error`] names the rule that the sizes break.
    pub fn new(shape: Shape, w: Side<'a>, x: Side<'a>, dst: Dst, precision: Precision) -> Result<Self, Error> {
        Self::with_isa(shape, w, x, dst, precision, Isa::best())
    }

    /// As [`Gemm::new`], with a chosen instruction set.
    ///
    /// # Errors
    /// As [`Gemm::new`], and [`Error::Isa`].
    pub fn with_isa(
        shape: Shape,
        w: Side<'a>,
        x: Side<'a>,
        dst: Dst,
        precision: Precision,
        isa: Isa,
    ) -> Result<Self, Error> {
        let Shape { m, n, k, batch, ratio } = shape;
        if !isa.is_available() {
            return Err(Error::Isa);
        }
        for side in [&w, &x] {
            if side.ty().is_some_and(|ty| !is_supported(ty)) {
                return Err(Error::Type);
            }
            if side.ty().is_some_and(|ty| k % ty.block_size() != 0) {
                return Err(Error::Block);
            }
        }
        if (0..2).any(|d| ratio[d] == 0 || batch[d] % ratio[d] != 0) {
            return Err(Error::Ratio);
        }
        // A margin of 2^8 keeps every rounding up to panels below in range.
        let cells =
            |a: usize, b: usize| a.checked_mul(b)?.checked_mul(batch[0])?.checked_mul(batch[1])?.checked_mul(1 << 8);
        if cells(m, n).and(cells(m, k)).and(cells(n, k)).is_none() {
            return Err(Error::TooLarge);
        }
        Ok(Gemm { shape, w, x, dst, isa, precision, bias: None })
    }

    /// Adds `bias[j]` to column `j` of every batch of the result once its sums are complete: the bits are those of adding it
    /// afterwards. One side must be [`Side::Custom`].
    ///
    /// # Errors
    /// [`Error::Bias`] for two matrices: their direct paths do not add.
    ///
    /// # Safety
    /// While the product runs, `n` aligned values at `bias` are readable and nobody writes them.
    pub unsafe fn with_bias(self, bias: *const f32) -> Result<Self, Error> {
        if let (Side::Matrix(_), Side::Matrix(_)) = (&self.w, &self.x) {
            return Err(Error::Bias);
        }
        Ok(Gemm { bias: Some(bias), ..self })
    }

    fn path(&self, nth: usize) -> Path {
        let Shape { m, n, k, batch, .. } = self.shape;
        let batches = batch[0] * batch[1];
        if m == 0 || n == 0 || k == 0 || batches == 0 {
            return Path::Empty;
        }
        let small = |s: &Side| matches!(s, Side::Matrix(_));
        let direct = dot_path(m, n, k, self.w.direct() && small(&self.x), self.x.direct() && small(&self.w));
        if let Some(path) = direct {
            return path;
        }
        let int8 = self.int8();
        // Up to here a dot product per element beats unpacking the weights into panels.
        let few = if int8.is_some() { 12 } else { 16 };
        if let Some(ty) = self.w.ty().filter(|_| n <= few && self.may_round()) {
            if quantised_dot(ty).is_some() {
                let (at_once, _) = quantised_dot_region(ty, n, k, batches);
                return Path::QuantisedDot { at_once };
            }
        }
        if let Some(kernels) = int8 {
            let widths = Widths { mr: kernels.mr, nr: kernels.nr, pack_cost: 24.0 };
            return Path::Int8(Blocks::new(m, n, k, batches, nth, widths));
        }
        let kernels = Kernels::of(self.isa);
        let widths = Widths { mr: kernels.mr, nr: kernels.nr, pack_cost: 8.0 };
        Path::Packed(Blocks::new(m, n, k, batches, nth, widths))
    }

    /// Whether both sides are matrices whose product may be taken in integers, row by row of the weights.
    fn may_round(&self) -> bool {
        let (Side::Matrix(w), Side::Matrix(_)) = (&self.w, &self.x) else {
            return false;
        };
        self.precision == Precision::Default && w.dense_rows() && !w.via_f16
    }

    /// The integer kernels, where they may be used.
    fn int8(&self) -> Option<&'static Int8Kernels> {
        if !self.may_round() || !self.w.ty().is_some_and(Int8Engine::supports) {
            return None;
        }
        Int8Kernels::of(self.isa)
    }

    /// Bytes of the shared region, and of each thread's own.
    fn regions(&self, path: &Path) -> (usize, usize) {
        let up = |b: usize| b.next_multiple_of(ALIGN);
        let k = self.shape.k;
        match path {
            Path::Empty => (0, 0),
            Path::Dot { swapped, few } => {
                let small = if *swapped { &self.w } else { &self.x };
                let rows = if small.is_plain_f32() { 0 } else { *few };
                (0, rows * up(k * 4))
            }
            Path::QuantisedDot { .. } => {
                let Shape { n, .. } = self.shape;
                let ty = self.w.ty().unwrap_or(Type::F32);
                // A row that is gathered, or scaled before it is rounded.
                let own = up(k * 4);
                (up(quantised_dot_region(ty, n, k, self.batches()).1), own)
            }
            Path::Packed(b) => (up(b.shared_cells(k) * 4), up(b.own_cells(k) * 4)),
            Path::Int8(b) => {
                let ty = self.w.ty().unwrap_or(Type::F32);
                (up(Int8Engine::col_bytes_of(ty, b.shared_cells(k))), up(Int8Engine::row_bytes_of(ty, b.own_cells(k))))
            }
        }
    }

    /// Bytes of workspace for a team of `nth` threads.
    pub fn workspace_size(&self, nth: usize) -> usize {
        let nth = nth.max(1);
        let (shared, own) = self.regions(&self.path(nth));
        shared + own * nth + ALIGN
    }

    /// Computes the product. Every thread of the team calls it once, with equal arguments.
    ///
    /// The result is complete when all threads have returned: the caller places a barrier after it.
    ///
    /// # Errors
    /// [`Error::Workspace`], in every thread alike, before anything is written.
    pub fn run<T: Team + ?Sized>(&self, team: &T, ws: Workspace) -> Result<(), Error> {
        let path = self.path(team.nth());
        let (shared, own) = self.regions(&path);
        let pad = ws.data.align_offset(ALIGN);
        if pad.checked_add(shared + own * team.nth()).is_none_or(|need| need > ws.size) {
            return Err(Error::Workspace);
        }
        let shared_at = ws.data.wrapping_add(pad);
        let own_at = shared_at.wrapping_add(shared + own * team.ith());
        match path {
            Path::Empty => self.clear(team),
            Path::Dot { swapped, few } => self.run_dot(team, swapped, few, own_at.cast()),
            Path::QuantisedDot { at_once } => {
                self.run_quantised_dot(team, at_once, shared_at, own_at.cast());
            }
            Path::Packed(b) => {
                let kernels = Kernels::of(self.isa);
                let engine = FloatEngine::new(&self.w, &self.x, kernels, b.nr);
                // SAFETY: both regions lie in the workspace and have the sizes of `regions` for these blocks.
                unsafe { packed::run(self, &engine, team, &b, shared_at, own_at) };
            }
            Path::Int8(b) => {
                let (Side::Matrix(w), Side::Matrix(x), Some(kernels)) = (&self.w, &self.x, self.int8()) else {
                    unreachable!("the integer path is chosen when these are there");
                };
                let Some(engine) = Int8Engine::new(w, x, kernels, self.isa, b.nr) else {
                    unreachable!("the integer path is chosen for formats that it has");
                };
                // SAFETY: as above.
                unsafe { packed::run(self, &engine, team, &b, shared_at, own_at) };
            }
        }
        Ok(())
    }

    pub(crate) fn batches(&self) -> usize {
        self.shape.batch[0] * self.shape.batch[1]
    }

    pub(crate) fn batch(&self, index: usize) -> (usize, usize) {
        (index % self.shape.batch[0], index / self.shape.batch[0])
    }

    /// Sums over an empty k are 0.
    fn clear<T: Team + ?Sized>(&self, team: &T) {
        let Shape { m, n, batch, .. } = self.shape;
        for col in (team.ith()..n * batch[0] * batch[1]).step_by(team.nth()) {
            let (i2, i3) = self.batch(col / n);
            let p = self.dst.batch(i2, i3).wrapping_add(col % n * self.dst.ld);
            // SAFETY: the creator of the result vouched for its columns; each is written by one thread.
            unsafe { core::ptr::write_bytes(p, 0, m) };
        }
    }
}
