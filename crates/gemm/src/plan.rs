//! Sizes of one product and how it is cut into tasks. Pure arithmetic: no pointer, no thread.

use crate::kernel::KC;

/// Cells of packed columns that the team shares at a time (4 MiB of f32).
const SHARED_CELLS: usize = 1 << 20;

/// Rows of the vector side that one thread packs at a time.
const STRIP_ROWS: usize = 192;

/// Alignment of every region of the workspace, in bytes.
pub(crate) const ALIGN: usize = 64;

/// Sizes of the micro-tile that a product uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widths {
    /// Rows of a row panel.
    pub mr: usize,
    /// Most columns of a column panel.
    pub nr: usize,
    /// Multiply-adds per step of the kernel, as a unit for the cost of packing.
    pub pack_cost: f64,
}

/// How the packed path walks one product. All numbers follow from the sizes and the number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Rows of a row panel and columns of a column panel.
    pub mr: usize,
    pub nr: usize,
    /// Panels in all.
    pub row_panels: usize,
    pub col_panels: usize,
    /// Batches, column panels and k blocks that are packed at a time.
    pub batches_at_once: usize,
    pub cols_at_once: usize,
    pub ks_at_once: usize,
    /// Row panels and column panels of one task.
    pub strip: usize,
    pub chunk: usize,
}

impl Blocks {
    /// Blocks for an `m` x `n` x `k` product, `batches` times, on `nth` threads. No size is 0.
    pub(crate) fn new(m: usize, n: usize, k: usize, batches: usize, nth: usize, widths: Widths) -> Self {
        let mr = widths.mr;
        // Equal panels waste fewer columns than full ones and a short rest.
        let nr = n.div_ceil(n.div_ceil(widths.nr));
        let row_panels = m.div_ceil(mr);
        let col_panels = n.div_ceil(nr);
        let k_blocks = k.div_ceil(KC);

        let block = nr * KC.min(k);
        let limit = (SHARED_CELLS / block).max(1);
        let (batches_at_once, cols_at_once, ks_at_once);
        if let Some(all) = col_panels.checked_mul(k_blocks).filter(|&all| all <= limit) {
            batches_at_once = (limit / all).min(batches);
            cols_at_once = col_panels;
            ks_at_once = k_blocks;
        } else {
            batches_at_once = 1;
            // About a thousand columns pay for packing the rows once more; the rest of the budget goes to k.
            let want_cols = col_panels.min((1024 / nr).max(1));
            let ks = even_share(k_blocks, (limit / want_cols).max(1));
            ks_at_once = ks;
            cols_at_once = even_share(col_panels, (limit / ks).max(1));
        }
        let (strip, chunk) =
            task_shape(row_panels, cols_at_once.min(col_panels), batches_at_once, mr, nr, widths.pack_cost, nth);
        Blocks { mr, nr, row_panels, col_panels, batches_at_once, cols_at_once, ks_at_once, strip, chunk }
    }

    /// Cells of the shared region.
    pub(crate) fn shared_cells(&self, k: usize) -> usize {
        let k = k.min(self.ks_at_once * KC);
        self.batches_at_once * self.cols_at_once * self.nr * k
    }

    /// Cells of each thread's own region: for the tallest strip, so that a smaller team never needs more.
    pub(crate) fn own_cells(&self, k: usize) -> usize {
        (STRIP_ROWS / self.mr).clamp(1, self.row_panels) * self.mr * KC.min(k)
    }
}

/// The largest part of `total` that is at most `limit` and leaves parts of nearly the same size.
fn even_share(total: usize, limit: usize) -> usize {
    total.div_ceil(total.div_ceil(limit.min(total)))
}

/// Row and column panels of one task: the cheapest by a model of packing and of the last round of a static schedule.
fn task_shape(
    row_panels: usize,
    col_panels: usize,
    batches: usize,
    mr: usize,
    nr: usize,
    pack_cost: f64,
    nth: usize,
) -> (usize, usize) {
    let most_strip = (STRIP_ROWS / mr).min(row_panels).max(1);
    let most_cuts = col_panels.min(4 * nth);
    let mut best = (f64::INFINITY, 1, col_panels);
    let mut cuts = 1;
    while cuts <= most_cuts {
        let chunk = col_panels.div_ceil(cuts);
        for strip in (1..=most_strip).rev() {
            let tasks = batches * row_panels.div_ceil(strip) * col_panels.div_ceil(chunk);
            // Cost in multiply-add steps: the tile work, turning rows into panels once per task, and fetching column
            // panels once per strip.
            let work = (strip * mr * chunk * nr) as f64;
            let pack = pack_cost * (strip * mr) as f64;
            let fetch = 1.0 * (chunk * nr) as f64;
            // One thread may start late: count part of a round more.
            let rounds = if nth == 1 { tasks as f64 } else { tasks.div_ceil(nth) as f64 + 0.1 };
            let cost = rounds * (work + pack + fetch);
            if cost < best.0 * 0.999 {
                best = (cost, strip, chunk);
            }
        }
        // Finer steps among many cuts change little, and this runs once per thread and product.
        cuts += 1 + cuts / 4;
    }
    (best.1, best.2)
}

/// Which way a product is computed.
#[derive(Clone, Debug)]
pub(crate) enum Path {
    /// Nothing to sum or nothing to write.
    Empty,
    /// Plain rows of the first operand (of the second, if `swapped`) against a few f32 rows of the other.
    Dot { swapped: bool, few: usize },
    /// Quantised rows of the first operand against a few rounded rows of the second, `at_once` batches at a time.
    QuantisedDot { at_once: usize },
    /// Packed f32 panels.
    Packed(Blocks),
    /// Packed panels of bytes.
    Int8(Blocks),
}

/// Most rows of the small side for which plain dot products beat packing the other side.
const DOT_LIMIT: usize = 16;

/// What decides between direct and packed products. `few` rows against rows of length `k`: summing lanes costs a fixed
/// time per element of the result, packing a fixed time per element of the many rows.
pub(crate) fn dot_path(m: usize, n: usize, k: usize, w_direct: bool, x_direct: bool) -> Option<Path> {
    let pays = |few: usize| few <= 2 || few <= DOT_LIMIT && few <= k / 16;
    if pays(n) && w_direct && (m > n || !x_direct) {
        Some(Path::Dot { swapped: false, few: n })
    } else if pays(m) && x_direct {
        Some(Path::Dot { swapped: true, few: m })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_hold_and_parts_cover() {
        let sizes = [1, 5, 16, 33, 100, 1280, 4097, 70_000];
        for (mr, nr) in [(32, 12), (16, 3), (8, 4)] {
            for m in sizes {
                for n in sizes {
                    for (k, batches, nth) in [(1, 1, 1), (64, 80, 2), (700, 3, 5), (9000, 1, 32)] {
                        let widths = Widths { mr, nr, pack_cost: 8.0 };
                        let b = Blocks::new(m, n, k, batches, nth, widths);
                        assert!(b.nr <= nr && b.col_panels * b.nr >= n && b.row_panels * b.mr >= m);
                        assert!((b.col_panels - 1) * b.nr < n && (b.row_panels - 1) * b.mr < m);
                        assert!(b.shared_cells(k) <= SHARED_CELLS, "{m} {n} {k}: {b:?}");
                        assert!(b.own_cells(k) <= STRIP_ROWS * KC);
                        assert!(b.strip * b.mr * KC.min(k) <= b.own_cells(k));
                        assert!(b.chunk >= 1 && b.chunk <= b.cols_at_once);
                        assert!(b.batches_at_once <= batches && b.ks_at_once <= k.div_ceil(KC));
                    }
                }
            }
        }
    }

    #[test]
    fn a_large_product_keeps_every_thread_busy() {
        let widths = Widths { mr: 32, nr: 12, pack_cost: 8.0 };
        for nth in [2, 3, 8, 32] {
            let b = Blocks::new(1280, 1024, 1280, 1, nth, widths);
            let tasks = b.row_panels.div_ceil(b.strip) * b.cols_at_once.div_ceil(b.chunk);
            let rounds = tasks.div_ceil(nth);
            let used = b.row_panels * b.cols_at_once;
            let share = used as f64 / (rounds * nth * b.strip * b.chunk) as f64;
            assert!(share > 0.85, "{nth} threads: {share} of {b:?}");
        }
    }
}
