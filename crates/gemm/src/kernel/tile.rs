//! The micro-tile: a block of the result held in registers while two packed panels stream by.

use super::lanes::Lanes;
use super::{KS, NR_LIMIT};

/// One micro-tile of `c[row + col * ldc]`, `row` along the vector side.
pub(crate) struct Tile {
    /// Steps of k in the panels.
    pub kc: usize,
    /// Vector side panel, `kc` steps of `mr` values.
    pub w: *const f32,
    /// Broadcast side panel, `kc` steps of N values.
    pub x: *const f32,
    /// First element of the result.
    pub c: *mut f32,
    /// Elements between columns of the result.
    pub ldc: usize,
    /// Rows to write, 1 to `mr`.
    pub rows: usize,
    /// Columns to write, 1 to N.
    pub cols: usize,
    /// Add to what `c` holds instead of replacing it.
    pub add: bool,
}

/// Computes a tile of `V` registers by `N` columns from panels of `P` registers per step.
///
/// # Safety
/// The machine has the set of `L`; the panels hold `kc` steps; `c` is writable for `rows` x `cols`.
#[inline(always)]
pub(crate) unsafe fn tile<L: Lanes, const V: usize, const P: usize, const N: usize>(t: &Tile) {
    // SAFETY: all offsets stay inside the panels (kc steps) and the result (rows x cols), as the caller vouches.
    unsafe {
        let (mut w, mut x) = (t.w, t.x);
        for j in 0..t.cols {
            let c = t.c.add(j * t.ldc);
            prefetch(c);
            if V > 1 {
                prefetch(c.wrapping_add(L::LANES * (V - 1)));
            }
        }
        // Sums of the KS-long runs so far. Only read after it was written by the first run.
        let mut held = [[L::zero(); V]; N];
        let mut left = t.kc;
        let mut first = true;
        loop {
            let steps = left.min(KS);
            left -= steps;
            let mut acc = [[L::zero(); V]; N];
            for _ in 0..steps {
                let mut a = [L::zero(); V];
                for v in 0..V {
                    a[v] = L::load(w.add(v * L::LANES));
                }
                for j in 0..N {
                    let b = L::splat(*x.add(j));
                    for v in 0..V {
                        acc[j][v] = acc[j][v].fma(a[v], b);
                    }
                }
                w = w.add(P * L::LANES);
                x = x.add(N);
            }
            if !first {
                for j in 0..N {
                    for v in 0..V {
                        acc[j][v] = held[j][v].add(acc[j][v]);
                    }
                }
            }
            if left == 0 {
                write::<L, V, N>(t.c, t.ldc, t.rows, t.cols, t.add, &acc);
                return;
            }
            first = false;
            held = acc;
        }
    }
}

/// Stores or adds the first `rows` x `cols` of a tile.
///
/// # Safety
/// The machine has the set of `L`; `c` is writable for `rows` x `cols`.
#[inline(always)]
pub(crate) unsafe fn write<L: Lanes, const V: usize, const N: usize>(
    c: *mut f32,
    ldc: usize,
    rows: usize,
    cols: usize,
    add: bool,
    acc: &[[L; V]; N],
) {
    // SAFETY: rows and cols bound every access, as the caller of `tile` vouches.
    unsafe {
        if rows == V * L::LANES && cols == N {
            for j in 0..N {
                for v in 0..V {
                    let c = c.add(j * ldc + v * L::LANES);
                    let r = if add { L::load(c).add(acc[j][v]) } else { acc[j][v] };
                    r.store(c);
                }
            }
            return;
        }
        const { assert!(N <= NR_LIMIT) };
        for (j, col) in acc.iter().enumerate() {
            if j >= cols {
                break;
            }
            for (v, &val) in col.iter().enumerate() {
                let at = v * L::LANES;
                if at >= rows {
                    break;
                }
                let n = (rows - at).min(L::LANES);
                let c = c.add(j * ldc + at);
                let r = if add { L::load_n(c, n).add(val) } else { val };
                r.store_n(c, n);
            }
        }
    }
}

/// Asks for a cache line before it is needed. Any address will do.
#[inline(always)]
pub(crate) fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
