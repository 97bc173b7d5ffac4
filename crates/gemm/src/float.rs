//! Panels of f32 for operands of any format.

use crate::kernel::tile::Tile;
use crate::kernel::Kernels;
use crate::operand::Panel;
use crate::packed::{Engine, TileAt};
use crate::shape::Side;

/// Widens both operands to f32.
pub(crate) struct FloatEngine<'a> {
    w: &'a Side<'a>,
    x: &'a Side<'a>,
    kernel: unsafe fn(&Tile),
}

impl<'a> FloatEngine<'a> {
    /// For column panels of `nr`.
    pub(crate) fn new(w: &'a Side<'a>, x: &'a Side<'a>, kernels: &Kernels, nr: usize) -> Self {
        FloatEngine { w, x, kernel: kernels.tile[nr - 1] }
    }
}

/// # Safety
/// As [`Engine::pack_cols`].
unsafe fn pack(side: &Side, at: &Panel, dst: *mut u8) {
    let cells = at.kc * at.width;
    // SAFETY: the caller vouches for the region. It may not have been written before; f32 has no invalid bits, and
    // operands only write.
    let panel = unsafe { core::slice::from_raw_parts_mut(dst.cast::<f32>(), cells) };
    side.pack(at, panel);
}

impl Engine for FloatEngine<'_> {
    fn col_bytes(&self, cells: usize) -> usize {
        4 * cells
    }
    fn row_bytes(&self, cells: usize) -> usize {
        4 * cells
    }
    unsafe fn pack_cols(&self, at: &Panel, dst: *mut u8) {
        // SAFETY: the caller's contract is this method's.
        unsafe { pack(self.x, at, dst) }
    }
    unsafe fn pack_rows(&self, at: &Panel, dst: *mut u8) {
        // SAFETY: the caller's contract is this method's.
        unsafe { pack(self.w, at, dst) }
    }
    #[inline]
    unsafe fn tile(&self, t: &TileAt) {
        // SAFETY: the kernel was chosen for an available set; the caller vouches for panels and result.
        unsafe {
            (self.kernel)(&Tile {
                kc: t.kc,
                w: t.w.cast(),
                x: t.x.cast(),
                c: t.c,
                ldc: t.ldc,
                rows: t.rows,
                cols: t.cols,
                add: t.add,
            });
        }
    }
}
