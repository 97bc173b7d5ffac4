//! The lane trait.

/// Lanes of every [`Lanes`] type.
pub const LANES: usize = 16;

/// Sixteen f32 values. All methods are unsafe for one reason: the machine must run the type's instructions; those with pointers
/// also need them good for the lanes they touch (no alignment asked).
#[allow(clippy::missing_safety_doc)]
pub trait Lanes: Copy {
    /// Whether one value is one register and there are 32 of them.
    const WIDE: bool;
    /// Answer of a comparison.
    type Mask: Copy;

    /// Reads 16 values.
    unsafe fn load(p: *const f32) -> Self;
    /// Reads the first `n < 16` values; the other lanes are zero.
    unsafe fn load_n(p: *const f32, n: usize) -> Self;
    /// Writes 16 values.
    unsafe fn store(self, p: *mut f32);
    /// Writes the first `n < 16` values.
    unsafe fn store_n(self, p: *mut f32, n: usize);
    /// Reads 16 half-precision values.
    unsafe fn load_f16(p: *const u16) -> Self;
    /// Writes 16 half-precision values, nearest even.
    unsafe fn store_f16(self, p: *mut u16);
    /// Reads 16 bfloat16 values.
    unsafe fn load_bf16(p: *const u16) -> Self;
    /// Writes 16 bfloat16 values, nearest even, NaN kept quiet.
    unsafe fn store_bf16(self, p: *mut u16);

    /// All lanes `x`.
    unsafe fn splat(x: f32) -> Self;
    /// `self + o`
    unsafe fn add(self, o: Self) -> Self;
    /// `self - o`
    unsafe fn sub(self, o: Self) -> Self;
    /// `self * o`
    unsafe fn mul(self, o: Self) -> Self;
    /// `self / o`
    unsafe fn div(self, o: Self) -> Self;
    /// `self * b + c`, one rounding where the target has it.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// `c - self * b`, as [`Lanes::fma`].
    unsafe fn fnma(self, b: Self, c: Self) -> Self;
    /// `if self > o { self } else { o }`: `o` when either is NaN.
    unsafe fn max(self, o: Self) -> Self;
    /// `if self < o { self } else { o }`: `o` when either is NaN.
    unsafe fn min(self, o: Self) -> Self;
    /// Square root.
    unsafe fn sqrt(self) -> Self;
    /// Absolute value.
    unsafe fn abs(self) -> Self;
    /// Sign changed.
    unsafe fn neg(self) -> Self;
    /// Magnitude of `self`, sign of `s`.
    unsafe fn copysign(self, s: Self) -> Self;
    /// To the nearest integer, ties to even.
    unsafe fn round_even(self) -> Self;
    /// Down.
    unsafe fn floor(self) -> Self;
    /// Up.
    unsafe fn ceil(self) -> Self;
    /// Towards zero.
    unsafe fn trunc(self) -> Self;
    /// `self * 2^n` for whole `n` in -300..=300, rounded once.
    unsafe fn scale2(self, n: Self) -> Self;
    /// `self < o`; false with NaN.
    unsafe fn lt(self, o: Self) -> Self::Mask;
    /// `a` where the mask holds, else `b`.
    unsafe fn select(m: Self::Mask, a: Self, b: Self) -> Self;
    /// Sum of the lanes, as a tree: halves added, 8, 4, 2, 1.
    unsafe fn sum(self) -> f32;
    /// Sum of the lanes in f64, same tree.
    unsafe fn sum_f64(self) -> f64;
    /// Largest lane, with [`Lanes::max`]'s treatment of NaN.
    unsafe fn hmax(self) -> f32;
    /// The lanes as an array.
    #[inline(always)]
    unsafe fn to_array(self) -> [f32; LANES] {
        let mut a = [0.0f32; LANES];
        // SAFETY: the array holds 16 values; the instructions are the caller's promise.
        unsafe { self.store(a.as_mut_ptr()) };
        a
    }
    /// An array as lanes.
    #[inline(always)]
    unsafe fn from_array(a: [f32; LANES]) -> Self {
        // SAFETY: as in `to_array`.
        unsafe { Self::load(a.as_ptr()) }
    }
}
