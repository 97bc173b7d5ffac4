//! Dot products of many plain rows with a few f32 rows: no packing, so it runs at the speed of the memory that holds
//! the rows.

use super::lanes::{Lanes, Source};

/// Steps (registers of k) that an accumulator sums before it is added to the next level.
const RUN: usize = 16;

/// `c[row * sc_row + col * sc_col] = sum_k a[row][k] * b[col][k]`.
pub(crate) struct DotArgs {
    /// Length of rows in elements.
    pub k: usize,
    /// First of the many rows.
    pub a: *const u8,
    /// Bytes between them.
    pub a_stride: usize,
    /// Number of them.
    pub rows: usize,
    /// First of the N f32 rows.
    pub b: *const f32,
    /// Bytes between them.
    pub b_stride: usize,
    /// Result and the elements between its rows and columns.
    pub c: *mut f32,
    pub sc_row: usize,
    pub sc_col: usize,
}

/// Computes `rows` x N results, R rows at a time. Each element's order of summation depends on `k`, N and
/// the format alone.
///
/// # Safety
/// The machine has the set of `L`, rows hold `k` elements, `c` is writable for `rows` x N.
#[inline(always)]
pub(crate) unsafe fn dot<L: Lanes, S: Source, const R: usize, const N: usize>(d: &DotArgs) {
    // SAFETY: row indices are clamped to the last row, k offsets stay below k.
    unsafe {
        let mut row = 0;
        while row < d.rows {
            let mut a = [d.a; R];
            for r in 0..R {
                // Past the end the last row is computed again and dropped, so that one kernel does all rows.
                a[r] = d.a.add((row + r).min(d.rows - 1) * d.a_stride);
            }
            let mut b = [d.b; N];
            for j in 0..N {
                b[j] = d.b.byte_add(j * d.b_stride);
            }
            let mut held = [[L::zero(); N]; R];
            let mut i = 0;
            while i + L::LANES <= d.k {
                let end = d.k.min(i + RUN * L::LANES);
                let mut acc = [[L::zero(); N]; R];
                // Two registers at a time; with more columns those of b would not fit.
                while N <= 2 && i + 2 * L::LANES <= end {
                    let mut vb = [(L::zero(), L::zero()); N];
                    for j in 0..N {
                        vb[j] = S::as_pair(L::load(b[j].add(i)), L::load(b[j].add(i + L::LANES)));
                    }
                    for r in 0..R {
                        let (lo, hi) = S::load_pair::<L>(a[r].add(i * S::SIZE));
                        for j in 0..N {
                            acc[r][j] = acc[r][j].fma(lo, vb[j].0).fma(hi, vb[j].1);
                        }
                    }
                    i += 2 * L::LANES;
                }
                while i + L::LANES <= end {
                    let mut va = [L::zero(); R];
                    for r in 0..R {
                        va[r] = S::load(a[r].add(i * S::SIZE));
                    }
                    for j in 0..N {
                        let vb = L::load(b[j].add(i));
                        for r in 0..R {
                            acc[r][j] = acc[r][j].fma(va[r], vb);
                        }
                    }
                    i += L::LANES;
                }
                for r in 0..R {
                    for j in 0..N {
                        held[r][j] = held[r][j].add(acc[r][j]);
                    }
                }
            }
            if i < d.k {
                let n = d.k - i;
                for r in 0..R {
                    let va: L = S::load_n(a[r].add(i * S::SIZE), n);
                    for j in 0..N {
                        held[r][j] = held[r][j].fma(va, L::load_n(b[j].add(i), n));
                    }
                }
            }
            for r in 0..R {
                if row + r < d.rows {
                    for j in 0..N {
                        *d.c.add((row + r) * d.sc_row + j * d.sc_col) = held[r][j].sum();
                    }
                }
            }
            row += R;
        }
    }
}
