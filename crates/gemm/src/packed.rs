//! Products over packed panels: which thread packs and computes what, and when.

use crate::gemm::Gemm;
use crate::kernel::KC;
use crate::operand::Panel;
use crate::plan::Blocks;
use crate::shape::Shape;
use crate::team::Team;

/// One micro-tile, for [`Engine::tile`].
pub(crate) struct TileAt {
    /// Steps of k in the panels.
    pub kc: usize,
    /// Row panel and column panel.
    pub w: *const u8,
    pub x: *const u8,
    /// First element of the result, and elements between its columns.
    pub c: *mut f32,
    pub ldc: usize,
    /// Rows and columns to write.
    pub rows: usize,
    pub cols: usize,
    /// Add to the result instead of replacing it.
    pub add: bool,
}

/// A kind of panels with its micro-kernel. A cell is one row or column at one step of k.
pub(crate) trait Engine {
    /// Bytes of `cells` cells of a column panel. Linear over panels of whole k blocks.
    fn col_bytes(&self, cells: usize) -> usize;
    /// Bytes of `cells` cells of a row panel.
    fn row_bytes(&self, cells: usize) -> usize;
    /// Packs columns.
    ///
    /// # Safety
    /// `dst` has `col_bytes(at.kc * at.width)` bytes, aligned to 4, that no other thread touches.
    unsafe fn pack_cols(&self, at: &Panel, dst: *mut u8);
    /// Packs rows.
    ///
    /// # Safety
    /// As [`Engine::pack_cols`], with `row_bytes`.
    unsafe fn pack_rows(&self, at: &Panel, dst: *mut u8);
    /// Computes one tile.
    ///
    /// # Safety
    /// The panels are packed for `kc` steps; the tile of the result is writable and no other thread touches it.
    unsafe fn tile(&self, t: &TileAt);
}

/// What is packed between two barriers: `[batch][k block][column panel]`.
struct Round {
    b0: usize,
    c0: usize,
    cs: usize,
    k_from: usize,
    k_len: usize,
}

impl Round {
    /// First cell of the block of column panel `c` at step `k` of the round; `kc` is that block's length.
    fn cell(&self, nr: usize, bt: usize, c: usize, k: usize, kc: usize) -> usize {
        (bt * self.k_len * self.cs + k * self.cs + c * kc) * nr
    }
}

/// One job as a thread sees it.
struct Job<'a, 'g, E> {
    gemm: &'a Gemm<'g>,
    engine: &'a E,
    b: &'a Blocks,
    shared: *mut u8,
    own: *mut u8,
}

/// Runs the whole product with the panels of `engine`.
///
/// # Safety
/// `shared`, the same for the team, and `own` have the sizes of `Blocks::shared_cells` and `Blocks::own_cells` in the
/// engine's bytes, and are aligned to 64 bytes.
pub(crate) unsafe fn run<T: Team + ?Sized, E: Engine>(
    gemm: &Gemm,
    engine: &E,
    team: &T,
    b: &Blocks,
    shared: *mut u8,
    own: *mut u8,
) {
    let job = Job { gemm, engine, b, shared, own };
    let Shape { k, .. } = gemm.shape;
    let batches = gemm.batches();
    let k_blocks = k.div_ceil(KC);
    // Numbers drawn from the team run through packing and computing of all rounds in turn. A number that belongs to a
    // later stage is kept until that stage.
    let mut next = team.next();
    let mut stage_start = 0;
    for b0 in (0..batches).step_by(b.batches_at_once) {
        let bs = b.batches_at_once.min(batches - b0);
        for c0 in (0..b.col_panels).step_by(b.cols_at_once) {
            let cs = b.cols_at_once.min(b.col_panels - c0);
            for k0 in (0..k_blocks).step_by(b.ks_at_once) {
                let k_from = k0 * KC;
                let k_len = (b.ks_at_once * KC).min(k - k_from);
                let round = Round { b0, c0, cs, k_from, k_len };
                // The panels of the last round are still being read until here.
                if stage_start > 0 && !team.barrier() {
                    return;
                }
                // Packing tasks of some 16 Ki cells each.
                let group = (16 * 1024 / (k_len * b.nr)).clamp(1, cs);
                let groups = cs.div_ceil(group);
                let end = stage_start + bs * groups;
                while next < end {
                    let t = next - stage_start;
                    let first = t % groups * group;
                    for c in first..(first + group).min(cs) {
                        // SAFETY: the caller vouched for the region; each panel is packed by one thread.
                        unsafe { job.pack_columns(&round, t / groups, c) };
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
                    unsafe { job.compute(&round, bt, t / chunks, t % chunks) };
                    next = team.next();
                }
                stage_start = end;
            }
        }
    }
}

impl<E: Engine> Job<'_, '_, E> {
    /// Packs all k blocks of one column panel.
    ///
    /// # Safety
    /// As [`run`]; nobody else touches this panel.
    unsafe fn pack_columns(&self, r: &Round, bt: usize, c: usize) {
        let b = self.b;
        let (i2, i3) = self.gemm.batch(r.b0 + bt);
        let col = (r.c0 + c) * b.nr;
        let mut k = 0;
        while k < r.k_len {
            let kc = KC.min(r.k_len - k);
            let at = Panel {
                i2,
                i3,
                row: col,
                rows: b.nr.min(self.gemm.shape.n - col),
                k: r.k_from + k,
                kc,
                width: b.nr,
                isa: self.gemm.isa,
            };
            let offset = self.engine.col_bytes(r.cell(b.nr, bt, c, k, kc));
            // SAFETY: the layout of `Round` keeps the panel inside the shared region.
            unsafe { self.engine.pack_cols(&at, self.shared.add(offset)) };
            k += kc;
        }
    }

    /// Computes one strip of rows by one chunk of columns over the k of the round.
    ///
    /// # Safety
    /// As [`run`]; the shared panels are complete; nobody else touches these tiles.
    unsafe fn compute(&self, r: &Round, bt: usize, strip: usize, chunk: usize) {
        let b = self.b;
        let Shape { m, n, ratio, .. } = self.gemm.shape;
        let (i2, i3) = self.gemm.batch(r.b0 + bt);
        let dst = self.gemm.dst.batch(i2, i3);
        let ldc = self.gemm.dst.ld;
        let panels = strip * b.strip..((strip + 1) * b.strip).min(b.row_panels);
        let cols = chunk * b.chunk..((chunk + 1) * b.chunk).min(r.cs);
        let mut k = 0;
        while k < r.k_len {
            let kc = KC.min(r.k_len - k);
            let row_panel = |slot: usize| {
                let offset = self.engine.row_bytes(slot * b.mr * kc);
                self.own.wrapping_add(offset)
            };
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
                    isa: self.gemm.isa,
                };
                // SAFETY: this thread's region holds a strip of panels of up to KC steps.
                unsafe { self.engine.pack_rows(&at, row_panel(slot)) };
            }
            for c in cols.clone() {
                let col = (r.c0 + c) * b.nr;
                let offset = self.engine.col_bytes(r.cell(b.nr, bt, c, k, kc));
                let x = self.shared.wrapping_add(offset);
                for (slot, p) in panels.clone().enumerate() {
                    let row = p * b.mr;
                    // SAFETY: both panels are packed; the tile lies in the result.
                    unsafe {
                        self.engine.tile(&TileAt {
                            kc,
                            w: row_panel(slot),
                            x,
                            c: dst.wrapping_add(row + col * ldc),
                            ldc,
                            rows: b.mr.min(m - row),
                            cols: b.nr.min(n - col),
                            add: r.k_from + k > 0,
                        });
                    }
                    if let Some(bias) = self.gemm.bias.filter(|_| r.k_from + k + kc == self.gemm.shape.k) {
                        let at = dst.wrapping_add(row + col * ldc);
                        // SAFETY: the tile as above, whose sums are now complete; the bias has a value for each column.
                        unsafe { add_bias(at, ldc, b.mr.min(m - row), b.nr.min(n - col), bias.add(col)) };
                    }
                }
            }
            k += kc;
        }
    }
}

/// Adds `bias[j]` to the `rows` values of column `j`.
///
/// # Safety
/// The tile is writable and no other thread touches it; `bias` has `cols` values.
unsafe fn add_bias(c: *mut f32, ldc: usize, rows: usize, cols: usize, bias: *const f32) {
    for j in 0..cols {
        // SAFETY: the caller vouches for the column and the value.
        let (column, b) = unsafe { (core::slice::from_raw_parts_mut(c.add(j * ldc), rows), bias.add(j).read()) };
        for v in column {
            *v += b;
        }
    }
}
