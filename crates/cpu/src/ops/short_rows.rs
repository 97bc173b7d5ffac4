//! Copies of many short rows, without a call for each.

use super::vec::{dispatch, Kernel, Lanes, LANES};

/// Bytes of a row up to which this pays.
pub const SHORT: usize = 1024;

/// Rows of `n` units: `ds` and `ss` bytes from unit to unit, `d_row` and `s_row` from row to row.
pub struct Rows {
    pub n: usize,
    pub d: *mut u8,
    pub ds: usize,
    pub d_row: usize,
    pub s: *const u8,
    pub ss: usize,
    pub s_row: usize,
    pub rows: usize,
}

/// Whether [`copy`] takes units of `size` bytes at these strides: packed on both sides, or of a size that registers have.
pub fn able(size: usize, ds: usize, ss: usize) -> bool {
    (ds == size && ss == size) || matches!(size, 1 | 2 | 4 | 8)
}

/// Copies all rows; a copy onto itself is allowed.
///
/// # Safety
/// All units are readable and writable, and [`able`] said so.
pub unsafe fn copy(size: usize, r: Rows) {
    // SAFETY: the caller's promise.
    unsafe {
        if r.ds == size && r.ss == size {
            return dispatch(Packed(r, size));
        }
        match size {
            1 => dispatch(Units::<u8>(r, [])),
            2 => dispatch(Units::<u16>(r, [])),
            4 => dispatch(Units::<u32>(r, [])),
            _ => dispatch(Units::<u64>(r, [])),
        }
    }
}

/// Rows of units without gaps, and a unit's bytes.
struct Packed(Rows, usize);

const STEP: usize = 4 * LANES;

impl Kernel for Packed {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Packed(r, size) = self;
        let bytes = r.n * size;
        for row in 0..r.rows {
            let (d, s) = (r.d.wrapping_add(row * r.d_row), r.s.wrapping_add(row * r.s_row));
            // SAFETY: `bytes` are there on both sides: the caller's promise. The last step of a longer row overlaps the one
            // before, which is right for a row copied onto itself too.
            unsafe {
                if bytes >= STEP {
                    let move_step = |at: usize| V::load(s.add(at).cast()).store(d.add(at).cast());
                    let mut at = 0;
                    while at + 4 * STEP <= bytes {
                        let v: [V; 4] = std::array::from_fn(|k| V::load(s.add(at + k * STEP).cast()));
                        for (k, v) in v.into_iter().enumerate() {
                            v.store(d.add(at + k * STEP).cast());
                        }
                        at += 4 * STEP;
                    }
                    while at + STEP <= bytes {
                        move_step(at);
                        at += STEP;
                    }
                    if at < bytes {
                        move_step(bytes - STEP);
                    }
                } else {
                    few(d, s, bytes);
                }
            }
        }
    }
}

/// Copies fewer than 64 bytes.
///
/// # Safety
/// They are there on both sides.
#[inline(always)]
unsafe fn few(mut d: *mut u8, mut s: *const u8, n: usize) {
    macro_rules! part {
        ($($bytes:literal)*) => {$(
            if n & $bytes != 0 {
                // SAFETY: the parts together are n bytes.
                unsafe {
                    d.cast::<[u8; $bytes]>().write(s.cast::<[u8; $bytes]>().read());
                    (d, s) = (d.add($bytes), s.add($bytes));
                }
            }
        )*};
    }
    part!(32 16 8 4 2 1);
    let _ = (d, s);
}

/// Rows of strided or repeated units.
struct Units<T>(Rows, [T; 0]);

impl<T: Copy> Kernel for Units<T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Units(r, _) = self;
        let size = size_of::<T>();
        let repeated = r.ss == 0 && r.ds == size;
        // SAFETY: the caller's promise.
        unsafe {
            if repeated && r.d_row == r.n * size && r.s_row == size {
                match r.n {
                    2 => return each_repeated::<T, 2>(&r),
                    3 => return each_repeated::<T, 3>(&r),
                    4 => return each_repeated::<T, 4>(&r),
                    8 => return each_repeated::<T, 8>(&r),
                    _ => {}
                }
            }
            for row in 0..r.rows {
                let (d, s) = (r.d.wrapping_add(row * r.d_row), r.s.wrapping_add(row * r.s_row));
                if repeated {
                    let x = s.cast::<T>().read_unaligned();
                    for i in 0..r.n {
                        d.cast::<T>().add(i).write_unaligned(x);
                    }
                } else {
                    for i in 0..r.n {
                        d.add(i * r.ds).cast::<T>().write_unaligned(s.add(i * r.ss).cast::<T>().read_unaligned());
                    }
                }
            }
        }
    }
}

/// Packed units, each written `N` times in a row.
///
/// # Safety
/// `r.rows` units are readable, N times as many writable.
#[inline(always)]
unsafe fn each_repeated<T: Copy, const N: usize>(r: &Rows) {
    const AT_ONCE: usize = 16;
    let (s, d) = (r.s.cast::<T>(), r.d.cast::<[T; N]>());
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + AT_ONCE <= r.rows {
            let x = s.add(i).cast::<[T; AT_ONCE]>().read_unaligned();
            d.add(i).cast::<[[T; N]; AT_ONCE]>().write_unaligned(x.map(|x| [x; N]));
            i += AT_ONCE;
        }
        while i < r.rows {
            d.add(i).write_unaligned([s.add(i).read_unaligned(); N]);
            i += 1;
        }
    }
}
