//! The integer micro-tile.

use crate::kernel::lanes::Lanes;
use crate::kernel::tile::write;

/// One register of 32-bit integers, each also four bytes.
///
/// # Safety
/// As for [`Lanes`].
#[allow(clippy::missing_safety_doc)]
pub(crate) trait IntLanes: Copy {
    /// f32 register of as many lanes.
    type F: Lanes;
    /// What [`IntLanes::load`] takes off each unsigned byte.
    const BIAS: i32 = 0;
    unsafe fn load(p: *const u8) -> Self;
    unsafe fn splat(v: i32) -> Self;
    /// Adds to each lane the products of its four (biased) bytes of `w` and signed bytes of `x`, exactly.
    unsafe fn dot4(self, w: Self, x: Self) -> Self;
    unsafe fn to_f32(self) -> Self::F;
}

/// One tile; fields as in `TileAt`. Row panel: bytes `[kc / 4][mr][4]`, scales `[group][mr]`, mins `[group][mr]`. Column
/// panel: bytes `[kc / 4][nr][4]`, scales `[kc / 32][nr]`, starts `[group][nr]` (i32), scaled sums `[group][nr]`.
pub(crate) struct Int8Tile {
    pub groups: usize,
    pub kc: usize,
    pub w: *const u8,
    pub x: *const u8,
    pub c: *mut f32,
    pub ldc: usize,
    pub rows: usize,
    pub cols: usize,
    pub add: bool,
}

/// A tile of V registers by N columns with groups of G elements.
///
/// # Safety
/// The machine has the set of `I`; panels and result are as described at [`Int8Tile`].
#[inline(always)]
pub(crate) unsafe fn tile<I: IntLanes, const V: usize, const N: usize, const G: usize, const MIN: bool>(t: &Int8Tile) {
    // SAFETY: all offsets stay inside the panels, as the caller vouches.
    unsafe {
        let lanes = I::F::LANES;
        let mr = V * lanes;
        let (mut w, mut x) = (t.w, t.x);
        let mut w_scale = t.w.add(mr * t.kc).cast::<f32>();
        let mut w_min = w_scale.add(mr * t.groups);
        let x_scale = t.x.add(N * t.kc).cast::<f32>();
        let mut x_start = x_scale.add(N * (t.kc / 32)).cast::<i32>();
        let mut x_sum = x_start.add(N * t.groups).cast::<f32>();
        let mut sums = [[I::F::zero(); V]; N];
        for g in 0..t.groups {
            let mut acc = [[I::splat(0); V]; N];
            for j in 0..N {
                acc[j] = [I::splat(*x_start.add(j)); V];
            }
            for _ in 0..G / 4 {
                let mut a = [I::splat(0); V];
                for v in 0..V {
                    a[v] = I::load(w.add(v * lanes * 4));
                }
                for j in 0..N {
                    let b = I::splat(x.add(4 * j).cast::<i32>().read_unaligned());
                    for v in 0..V {
                        acc[j][v] = acc[j][v].dot4(a[v], b);
                    }
                }
                w = w.add(mr * 4);
                x = x.add(N * 4);
            }
            let x_scale = x_scale.add(g * G / 32 * N);
            for v in 0..V {
                let scale = I::F::load(w_scale.add(v * lanes));
                for j in 0..N {
                    // The product of the scales first: it is the size of the result, the integer may be far larger.
                    let s = scale.mul(I::F::splat(*x_scale.add(j)));
                    sums[j][v] = sums[j][v].fma(acc[j][v].to_f32(), s);
                }
                if MIN {
                    let min = I::F::load(w_min.add(v * lanes));
                    for j in 0..N {
                        sums[j][v] = sums[j][v].fma(min, I::F::splat(*x_sum.add(j)));
                    }
                }
            }
            w_scale = w_scale.add(mr);
            w_min = w_min.add(mr);
            x_start = x_start.add(N);
            x_sum = x_sum.add(N);
        }
        write::<I::F, V, N>(t.c, t.ldc, t.rows, t.cols, t.add, &sums);
    }
}
