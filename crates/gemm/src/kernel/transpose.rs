//! Rows with contiguous k to a panel `[k][width]`, widening to f32 on the way.

use super::lanes::{Lanes, Source};

/// `dst[k * pitch + r] = row r, element k`, zero for `rows <= r < width`.
pub(crate) struct TransposeArgs {
    /// First row.
    pub src: *const u8,
    /// Bytes between rows.
    pub stride: usize,
    /// Rows present, up to `width`.
    pub rows: usize,
    /// Elements of each row to take.
    pub kc: usize,
    /// Entries to write per step.
    pub width: usize,
    /// Values between steps of the panel.
    pub pitch: usize,
    /// First entry of the first step.
    pub dst: *mut f32,
}

/// # Safety
/// The machine has the set of `L`; rows hold `kc` elements; `dst` holds `kc` steps.
#[inline(always)]
pub(crate) unsafe fn transpose<L: Lanes, S: Source>(t: &TransposeArgs) {
    // SAFETY: loads stay below `kc` and `rows`, stores below `kc` steps of `width`.
    unsafe {
        let mut r0 = 0;
        while r0 < t.width {
            let keep = (t.width - r0).min(L::LANES);
            let present = t.rows.saturating_sub(r0).min(keep);
            let src = t.src.wrapping_add(r0 * t.stride);
            let mut k = 0;
            while k < t.kc {
                let steps = (t.kc - k).min(L::LANES);
                let at = src.wrapping_add(k * S::SIZE);
                let dst = t.dst.add(k * t.pitch + r0);
                if present == L::LANES && steps == L::LANES {
                    L::transpose_store(|r| S::load(at.add(r * t.stride)), dst, t.pitch, keep, steps);
                } else {
                    let load = |r: usize| {
                        if r < present {
                            S::load_n(at.add(r * t.stride), steps)
                        } else {
                            L::zero()
                        }
                    };
                    L::transpose_store(load, dst, t.pitch, keep, steps);
                }
                k += steps;
            }
            r0 += keep;
        }
    }
}
