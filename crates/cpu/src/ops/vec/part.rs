//! Lanes of which the last may be less than all, chosen when the code is made. No closures: one that is not inlined is compiled without
//! the instructions of the function around it.

use super::lanes::Lanes;

/// Reads 16 values; if `PART`, the first `n < 16`, the other lanes are zero.
///
/// # Safety
/// The machine runs `V`; `p` is good for the values.
#[inline(always)]
pub unsafe fn load<V: Lanes, const PART: bool>(p: *const f32, n: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        if PART {
            V::load_n(p, n)
        } else {
            V::load(p)
        }
    }
}

/// Writes 16 values; if `PART`, the first `n < 16`.
///
/// # Safety
/// The machine runs `V`; `p` is good for the values.
#[inline(always)]
pub unsafe fn store<V: Lanes, const PART: bool>(v: V, p: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if PART {
            v.store_n(p, n);
        } else {
            v.store(p);
        }
    }
}

/// One value in all lanes.
///
/// # Safety
/// The machine runs `V`; `p` is good for the value.
#[inline(always)]
pub unsafe fn splat<V: Lanes>(p: *const f32) -> V {
    // SAFETY: the caller's promise.
    unsafe { V::splat(p.read_unaligned()) }
}
