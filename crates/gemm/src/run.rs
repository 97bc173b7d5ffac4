//! One prepared product and its execution by a team of threads.

use crate::isa::Isa;
use crate::kernel::dot::DotArgs;
use crate::kernel::tile::Tile;
use crate::kernel::{Kernels, KC};
use crate::operand::{float, is_supported, Matrix, Operand, Panel};
use crate::plan::{dot_path, Blocks, Path, ALIGN};
use crate::team::Team;
use ggml_oxide_types::Type;

/// Sizes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of W (ne01), contiguous in the result.
    pub m: usize,
    /// Rows of X (ne11).
    pub n: usize,
    /// Length of all rows (ne00 = ne10).
    pub k: usize,
    /// Batch counts of X and of the result (ne12, ne13).
    pub batch: [usize; 2],
    /// Batches of X that share one of W (ne12 / ne02, ne13 / ne03), at least 1.
    pub ratio: [usize; 2],
}

impl Shape {
    /// One product without batches.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Shape {
            m,
            n,
            k,
            batch: [1, 1],
            ratio: [1, 1],
        }
    }
}

/// How exact the product of quantised weights is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// Activations may be rounded to 8 bits per value against quantised weights, as ggml does.
    #[default]
    Default,
    /// Every product and sum in f32 (GGML_PREC_F32).
    F32,
}

/// An operand of a product.
#[derive(Clone, Copy)]
pub enum Side<'a> {
    /// Elements in memory.
    Matrix(Matrix),
    /// Panels made by the caller.
    Custom(&'a dyn Operand),
}

impl Side<'_> {
    fn pack(&self, at: &Panel, panel: &mut [f32]) {
        match self {
            Side::Matrix(m) => m.pack(at, panel),
            Side::Custom(o) => o.pack(at, panel),
        }
    }

    /// A matrix whose rows the dot kernels read as they are.
    fn direct(&self) -> bool {
        matches!(self, Side::Matrix(m) if float(m.ty).is_some() && m.dense_rows() && !m.via_f16)
    }

    fn ty(&self) -> Option<Type> {
        match self {
            Side::Matrix(m) => Some(m.ty),
            Side::Custom(_) => None,
        }
    }
}

/// Where the result goes.
#[derive(Clone, Copy, Debug)]
pub struct Dst {
    data: *mut f32,
    /// Elements between columns and between the two batch dimensions.
    ld: usize,
    ld2: usize,
    ld3: usize,
}

// SAFETY: threads write disjoint elements, and the creator vouched that nobody else touches them.
unsafe impl Sync for Dst {}
// SAFETY: as above; the pointer is not tied to a thread.
unsafe impl Send for Dst {}

impl Dst {
    /// A result at `data` with byte strides `nb` = [nb1, nb2, nb3]; element (i, j, i2, i3) is at
    /// `4 * i + j * nb1 + i2 * nb2 + i3 * nb3` bytes.
    ///
    /// # Errors
    /// [`Error::Stride`] if a stride is no multiple of 4.
    ///
    /// # Safety
    /// While a `Gemm` over it runs, every element that its shape reaches is writable, aligned, distinct from every
    /// other one and from the operands, and not touched by others.
    pub unsafe fn new(data: *mut f32, nb: [usize; 3]) -> Result<Self, Error> {
        if nb.iter().any(|s| s % 4 != 0) {
            return Err(Error::Stride);
        }
        Ok(Dst {
            data,
            ld: nb[0] / 4,
            ld2: nb[1] / 4,
            ld3: nb[2] / 4,
        })
    }

    fn batch(&self, i2: usize, i3: usize) -> *mut f32 {
        self.data.wrapping_add(i2 * self.ld2 + i3 * self.ld3)
    }
}

/// Scratch memory of a job, shared by its team.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    data: *mut u8,
    size: usize,
}

// SAFETY: `Gemm::run` gives each thread its own part and orders access to the shared part with barriers.
unsafe impl Sync for Workspace {}
// SAFETY: as above.
unsafe impl Send for Workspace {}

impl Workspace {
    /// `size` bytes at `data`, at least what [`Gemm::workspace_size`] asks. Contents do not matter.
    ///
    /// # Safety
    /// While a job runs with it, the bytes are readable, writable, and touched by nobody else.
    pub unsafe fn new(data: *mut u8, size: usize) -> Self {
        Workspace { data, size }
    }
}

/// Why a product cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A stride of the result is no multiple of the size of f32.
    Stride,
    /// No conversion from an operand's format exists.
    Type,
    /// k is no multiple of the block of a quantised operand.
    Block,
    /// A broadcast ratio is 0 or does not divide its batch count.
    Ratio,
    /// Sizes overflow.
    TooLarge,
    /// The instruction set is not one of this machine.
    Isa,
    /// The workspace is smaller than `workspace_size`.
    Workspace,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Error::Stride => "result strides must be multiples of 4 bytes",
            Error::Type => "an operand has a format that cannot be decoded",
            Error::Block => {
                "row length must be a multiple of the block size of a quantised operand"
            }
            Error::Ratio => "batch counts must be multiples of their broadcast ratios",
            Error::TooLarge => "sizes overflow",
            Error::Isa => "instruction set is not available on this machine",
            Error::Workspace => "workspace is too small",
        })
    }
}

impl std::error::Error for Error {}

/// A prepared product.
pub struct Gemm<'a> {
    shape: Shape,
    w: Side<'a>,
    x: Side<'a>,
    dst: Dst,
    isa: Isa,
}

impl<'a> Gemm<'a> {
    /// Prepares `dst = W * X` with the instruction set of this machine.
    ///
    /// # Errors
    /// [`Error`] names the rule that the sizes break.
    pub fn new(
        shape: Shape,
        w: Side<'a>,
        x: Side<'a>,
        dst: Dst,
        precision: Precision,
    ) -> Result<Self, Error> {
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
        _precision: Precision,
        isa: Isa,
    ) -> Result<Self, Error> {
        let Shape {
            m,
            n,
            k,
            batch,
            ratio,
        } = shape;
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
        let cells = |a: usize, b: usize| {
            a.checked_mul(b)?
                .checked_mul(batch[0])?
                .checked_mul(batch[1])?
                .checked_mul(1 << 8)
        };
        if cells(m, n).and(cells(m, k)).and(cells(n, k)).is_none() {
            return Err(Error::TooLarge);
        }
        Ok(Gemm {
            shape,
            w,
            x,
            dst,
            isa,
        })
    }

    fn path(&self, nth: usize) -> Path {
        let Shape { m, n, k, batch, .. } = self.shape;
        let batches = batch[0] * batch[1];
        if m == 0 || n == 0 || k == 0 || batches == 0 {
            return Path::Empty;
        }
        let small = |s: &Side| matches!(s, Side::Matrix(_));
        let direct = dot_path(
            m,
            n,
            self.w.direct() && small(&self.x),
            self.x.direct() && small(&self.w),
        );
        direct.unwrap_or_else(|| Path::Packed(Blocks::new(m, n, k, batches, nth, self.isa)))
    }

    /// Bytes of the shared region, and of each thread's own.
    fn regions(&self, path: &Path) -> (usize, usize) {
        let up = |b: usize| b.next_multiple_of(ALIGN);
        let k = self.shape.k;
        match path {
            Path::Empty => (0, 0),
            Path::Dot { few, .. } => (0, few * up(k * 4)),
            Path::Packed(b) => (up(b.shared_values(k) * 4), up(b.own_values(k) * 4)),
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
        if pad
            .checked_add(shared + own * team.nth())
            .is_none_or(|need| need > ws.size)
        {
            return Err(Error::Workspace);
        }
        let shared_at = ws.data.wrapping_add(pad);
        let own_at = shared_at
            .wrapping_add(shared + own * team.ith())
            .cast::<f32>();
        match path {
            Path::Empty => self.clear(team),
            Path::Dot { swapped, few } => self.run_dot(team, swapped, few, own_at),
            // SAFETY: both regions lie in the workspace and have the size that `regions` computed for these blocks.
            Path::Packed(b) => unsafe { self.run_packed(team, &b, shared_at.cast(), own_at) },
        }
        Ok(())
    }

    fn batch(&self, index: usize) -> (usize, usize) {
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

    fn run_dot<T: Team + ?Sized>(&self, team: &T, swapped: bool, few: usize, own: *mut f32) {
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

    /// # Safety
    /// `shared` and `own` have the sizes that [`Blocks`] gives, 64-byte aligned; `shared` is the same for the team.
    unsafe fn run_packed<T: Team + ?Sized>(
        &self,
        team: &T,
        b: &Blocks,
        shared: *mut f32,
        own: *mut f32,
    ) {
        let Shape { n, k, batch, .. } = self.shape;
        let batches = batch[0] * batch[1];
        let k_blocks = k.div_ceil(KC);
        // Numbers drawn from the team run through packing and computing of all rounds in turn. A number that belongs
        // to a later stage is kept until that stage.
        let mut next = team.next();
        let mut stage_start = 0;
        for b0 in (0..batches).step_by(b.batches_at_once) {
            let bs = b.batches_at_once.min(batches - b0);
            for c0 in (0..b.col_panels).step_by(b.cols_at_once) {
                let cs = b.cols_at_once.min(b.col_panels - c0);
                for k0 in (0..k_blocks).step_by(b.ks_at_once) {
                    let k_from = k0 * KC;
                    let k_len = (b.ks_at_once * KC).min(k - k_from);
                    let round = Round {
                        b0,
                        c0,
                        cs,
                        k_from,
                        k_len,
                    };
                    if stage_start > 0 {
                        // The panels of the last round are still being read until here.
                        if !team.barrier() {
                            return;
                        }
                    }
                    // Packing tasks of some 16 Ki values each.
                    let group = (16 * 1024 / (k_len * b.nr)).clamp(1, cs);
                    let groups = cs.div_ceil(group);
                    let end = stage_start + bs * groups;
                    while next < end {
                        let t = next - stage_start;
                        let first = t % groups * group;
                        for c in first..(first + group).min(cs) {
                            // SAFETY: the caller vouched for the region; each panel is packed by one thread.
                            unsafe { self.pack_columns(b, &round, t / groups, c, n, shared) };
                        }
                        next = team.next();
                    }
                    if !team.barrier() {
                        return;
                    }
                    stage_start = end;
                    let strips = b.row_panels.div_ceil(b.strip);
                    let chunks = cs.div_ceil(b.chunk);
                    let end = stage_start + bs * strips * chunks;
                    while next < end {
                        let t = next - stage_start;
                        let (bt, t) = (t / (strips * chunks), t % (strips * chunks));
                        // SAFETY: all panels of this round were packed before the barrier; tasks write disjoint tiles.
                        unsafe { self.compute(b, &round, bt, t / chunks, t % chunks, shared, own) };
                        next = team.next();
                    }
                    stage_start = end;
                }
            }
        }
    }

    /// # Safety
    /// As [`Gemm::run_packed`]; nobody else writes this panel.
    unsafe fn pack_columns(
        &self,
        b: &Blocks,
        r: &Round,
        bt: usize,
        c: usize,
        n: usize,
        shared: *mut f32,
    ) {
        let (i2, i3) = self.batch(r.b0 + bt);
        let col = (r.c0 + c) * b.nr;
        let mut k = 0;
        while k < r.k_len {
            let kc = KC.min(r.k_len - k);
            let at = Panel {
                i2,
                i3,
                row: col,
                rows: b.nr.min(n - col),
                k: r.k_from + k,
                kc,
                width: b.nr,
                isa: self.isa,
            };
            // SAFETY: the offset and length stay inside the shared region by the layout of `Round`.
            let panel = unsafe {
                core::slice::from_raw_parts_mut(shared.add(r.at(b, bt, c, k, kc)), kc * b.nr)
            };
            self.x.pack(&at, panel);
            k += kc;
        }
    }

    /// # Safety
    /// As [`Gemm::run_packed`]; the shared panels are complete; nobody else writes these tiles.
    #[allow(clippy::too_many_arguments)]
    unsafe fn compute(
        &self,
        b: &Blocks,
        r: &Round,
        bt: usize,
        strip: usize,
        chunk: usize,
        shared: *const f32,
        own: *mut f32,
    ) {
        let Shape { m, n, ratio, .. } = self.shape;
        let (i2, i3) = self.batch(r.b0 + bt);
        let dst = self.dst.batch(i2, i3);
        let kernel = Kernels::of(self.isa).tile[b.nr - 1];
        let panels = strip * b.strip..((strip + 1) * b.strip).min(b.row_panels);
        let cols = chunk * b.chunk..((chunk + 1) * b.chunk).min(r.cs);
        let mut k = 0;
        while k < r.k_len {
            let kc = KC.min(r.k_len - k);
            for (slot, p) in panels.clone().enumerate() {
                let row = p * b.mr;
                let at = Panel {
                    i2: i2 / ratio[0],
                    i3: i3 / ratio[1],
                    row,
                    rows: b.mr.min(m - row),
                    k: r.k_from + k,
                    kc,
                    width: b.mr,
                    isa: self.isa,
                };
                // SAFETY: this thread's region holds `strip` panels of KC (or k, if less) steps.
                let panel = unsafe {
                    core::slice::from_raw_parts_mut(own.add(slot * b.mr * kc), b.mr * kc)
                };
                self.w.pack(&at, panel);
            }
            for c in cols.clone() {
                let col = (r.c0 + c) * b.nr;
                for (slot, p) in panels.clone().enumerate() {
                    let row = p * b.mr;
                    // SAFETY: panels lie in their regions; the tile lies in the result.
                    unsafe {
                        kernel(&Tile {
                            kc,
                            w: own.add(slot * b.mr * kc),
                            x: shared.add(r.at(b, bt, c, k, kc)),
                            c: dst.wrapping_add(row + col * self.dst.ld),
                            ldc: self.dst.ld,
                            rows: b.mr.min(m - row),
                            cols: b.nr.min(n - col),
                            add: r.k_from + k > 0,
                        });
                    }
                }
            }
            k += kc;
        }
    }
}

/// What is packed between two barriers: `[batch][k block][column panel][step][column]`.
struct Round {
    b0: usize,
    c0: usize,
    cs: usize,
    k_from: usize,
    k_len: usize,
}

impl Round {
    /// First value of the block of column panel `c` at step `k` of the round; `kc` is that block's length.
    fn at(&self, b: &Blocks, bt: usize, c: usize, k: usize, kc: usize) -> usize {
        (bt * self.k_len * self.cs + k * self.cs + c * kc) * b.nr
    }
}
