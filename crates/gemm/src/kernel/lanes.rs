//! The vector operations that kernels are written in.

/// One register of f32 values. All methods are inlined into a function that enables the instruction set.
///
/// # Safety
/// Callers run on a machine that has the instruction set, and pointers are valid for the lanes touched.
#[allow(clippy::missing_safety_doc)]
pub(crate) trait Lanes: Copy {
    /// f32 values per register.
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(v: f32) -> Self;
    unsafe fn load(p: *const f32) -> Self;
    unsafe fn store(self, p: *mut f32);
    /// The first `n` lanes (`n` from 0 to `LANES`), zero above; memory past them is not touched.
    unsafe fn load_n(p: *const f32, n: usize) -> Self;
    unsafe fn store_n(self, p: *mut f32, n: usize);
    unsafe fn load_f16(p: *const u16) -> Self;
    unsafe fn load_f16_n(p: *const u16, n: usize) -> Self;
    unsafe fn load_bf16(p: *const u16) -> Self;
    unsafe fn load_bf16_n(p: *const u16, n: usize) -> Self;
    /// Two registers of bf16 values in the order of [`bf16_order`](Lanes::bf16_order): what is quickest to load.
    #[inline(always)]
    unsafe fn load_bf16_pair(p: *const u16) -> (Self, Self) {
        // SAFETY: the caller's contract is this method's.
        unsafe { (Self::load_bf16(p), Self::load_bf16(p.wrapping_add(Self::LANES))) }
    }
    /// Values in the order of memory, brought to the order of [`load_bf16_pair`](Lanes::load_bf16_pair).
    #[inline(always)]
    unsafe fn bf16_order(lo: Self, hi: Self) -> (Self, Self) {
        (lo, hi)
    }
    /// `a * b + self`, fused where the machine can.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    unsafe fn add(self, o: Self) -> Self;
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    unsafe fn mul(self, o: Self) -> Self;
    /// Sum of all lanes, in a fixed order.
    unsafe fn sum(self) -> f32;
    /// Loads row `r` by `load(r)` for `r < LANES`, transposes, and stores the first `keep` lanes of each of the first
    /// `steps` columns to `dst + column * pitch`.
    unsafe fn transpose_store(load: impl Fn(usize) -> Self, dst: *mut f32, pitch: usize, keep: usize, steps: usize);
}

/// Methods of a register type: most are one instruction.
macro_rules! lane_methods {
    ($(fn $name:ident($($arg:tt)*) $(-> $ret:ty)? $body:block)*) => { $(
        #[inline(always)]
        #[allow(unused_unsafe)]
        unsafe fn $name($($arg)*) $(-> $ret)? {
            // SAFETY: inlined into functions that enable the instruction set, whose callers vouch for the memory.
            unsafe { $body }
        }
    )* };
}
pub(crate) use lane_methods;

/// Element type of a row, as seen by generic kernels.
pub(crate) trait Source {
    /// Size in bytes.
    const SIZE: usize;
    unsafe fn load<L: Lanes>(p: *const u8) -> L;
    unsafe fn load_n<L: Lanes>(p: *const u8, n: usize) -> L;
    /// Two registers, in the order that [`as_pair`](Source::as_pair) brings values to.
    #[inline(always)]
    unsafe fn load_pair<L: Lanes>(p: *const u8) -> (L, L) {
        // SAFETY: the caller's contract is this method's.
        unsafe { (Self::load(p), Self::load(p.wrapping_add(L::LANES * Self::SIZE))) }
    }
    #[inline(always)]
    unsafe fn as_pair<L: Lanes>(lo: L, hi: L) -> (L, L) {
        (lo, hi)
    }
}

pub(crate) struct SrcF32;
pub(crate) struct SrcF16;
pub(crate) struct SrcBF16;

impl Source for SrcF32 {
    const SIZE: usize = 4;
    #[inline(always)]
    unsafe fn load<L: Lanes>(p: *const u8) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_n<L: Lanes>(p: *const u8, n: usize) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_n(p.cast(), n) }
    }
}

impl Source for SrcF16 {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(p: *const u8) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_f16(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_n<L: Lanes>(p: *const u8, n: usize) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_f16_n(p.cast(), n) }
    }
}

impl Source for SrcBF16 {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn load<L: Lanes>(p: *const u8) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_bf16(p.cast()) }
    }
    #[inline(always)]
    unsafe fn load_n<L: Lanes>(p: *const u8, n: usize) -> L {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_bf16_n(p.cast(), n) }
    }
    #[inline(always)]
    unsafe fn load_pair<L: Lanes>(p: *const u8) -> (L, L) {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::load_bf16_pair(p.cast()) }
    }
    #[inline(always)]
    unsafe fn as_pair<L: Lanes>(lo: L, hi: L) -> (L, L) {
        // SAFETY: the caller's contract is this method's.
        unsafe { L::bf16_order(lo, hi) }
    }
}

/// Copies `n` values through a zeroed buffer; for instruction sets without masked loads.
#[inline(always)]
pub(crate) unsafe fn staged<T: Copy + Default, const L: usize>(p: *const T, n: usize) -> [T; L] {
    let mut buf = [T::default(); L];
    // SAFETY: the caller vouches for `n` readable values, and n <= L.
    unsafe { core::ptr::copy_nonoverlapping(p, buf.as_mut_ptr(), n.min(L)) };
    buf
}

/// Fills the kernel tables of one instruction set. `$lanes` is the register type, `$feat` the features to enable.
macro_rules! kernel_table {
    (lanes: $lanes:ty, $(features: $feat:literal,)? vectors: $v:literal, halves: $half:literal,
     columns: [$($n:literal),*], dot_rows: [$($r:literal / $c:literal),*]) => {
        $(#[target_feature(enable = $feat)])?
        unsafe fn tile<const N: usize>(t: &$crate::kernel::tile::Tile) {
            // SAFETY: the caller's contract is this function's.
            unsafe {
                if $half < $v && t.rows <= $half * <$lanes as $crate::kernel::lanes::Lanes>::LANES {
                    $crate::kernel::tile::tile::<$lanes, $half, $v, N>(t)
                } else {
                    $crate::kernel::tile::tile::<$lanes, $v, $v, N>(t)
                }
            }
        }
        $(#[target_feature(enable = $feat)])?
        unsafe fn dot<S: $crate::kernel::lanes::Source, const R: usize, const N: usize>(
            a: &$crate::kernel::dot::DotArgs,
        ) {
            // SAFETY: the caller's contract is this function's.
            unsafe {
                if a.a_stride < ::ggml_oxide_types::SIDE_BY_SIDE {
                    $crate::kernel::dot::dot::<$lanes, S, 1, N>(a)
                } else {
                    $crate::kernel::dot::dot::<$lanes, S, R, N>(a)
                }
            }
        }
        $(#[target_feature(enable = $feat)])?
        unsafe fn transpose<S: $crate::kernel::lanes::Source>(
            a: &$crate::kernel::transpose::TransposeArgs,
        ) {
            // SAFETY: the caller's contract is this function's.
            unsafe { $crate::kernel::transpose::transpose::<$lanes, S>(a) }
        }
        /// Kernels of this instruction set.
        pub(crate) static KERNELS: $crate::kernel::Kernels = {
            use $crate::kernel::lanes::{SrcBF16, SrcF16, SrcF32};
            $crate::kernel::Kernels {
                mr: $v * <$lanes as $crate::kernel::lanes::Lanes>::LANES,
                nr: [$($n),*].len(),
                tile: &[$(tile::<$n>),*],
                dot: [
                    &[$(dot::<SrcF32, $r, $c>),*],
                    &[$(dot::<SrcF16, $r, $c>),*],
                    &[$(dot::<SrcBF16, $r, $c>),*],
                ],
                transpose: [transpose::<SrcF32>, transpose::<SrcF16>, transpose::<SrcBF16>],
            }
        };
    };
}
pub(crate) use kernel_table;
