//! Lanes as an array, for any target; the compiler finds the vectors.

use super::lanes::{Lanes, LANES};
use ggml_oxide_types::float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// Sixteen f32 in an array.
#[derive(Clone, Copy)]
pub struct Portable([f32; LANES]);

#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    // One instruction or none: the library routine behind a missing instruction is some thirty times slower.
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

#[inline(always)]
fn zip(a: Portable, b: Portable, f: impl Fn(f32, f32) -> f32) -> Portable {
    Portable(std::array::from_fn(|i| f(a.0[i], b.0[i])))
}

#[inline(always)]
fn each(a: Portable, f: impl Fn(f32) -> f32) -> Portable {
    zip(a, a, |x, _| f(x))
}

#[inline(always)]
fn tree<T: Copy>(mut a: [T; LANES], f: impl Fn(T, T) -> T) -> T {
    let mut w = LANES / 2;
    while w > 0 {
        for i in 0..w {
            a[i] = f(a[i], a[i + w]);
        }
        w /= 2;
    }
    a[0]
}

// SAFETY for every block below: the pointers are good for the lanes touched, by the trait's contract.
impl Lanes for Portable {
    const WIDE: bool = false;
    type Mask = [bool; LANES];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Portable(unsafe { p.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_n(p: *const f32, n: usize) -> Self {
        let mut r = [0.0; LANES];
        // SAFETY: see above; n < 16.
        unsafe { std::ptr::copy_nonoverlapping(p, r.as_mut_ptr(), n) };
        Portable(r)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { p.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize) {
        // SAFETY: see above; n < 16.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), p, n) };
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: see above.
        Portable(unsafe { p.cast::<[u16; LANES]>().read_unaligned() }.map(f16_to_f32))
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        // SAFETY: see above.
        unsafe { p.cast::<[u16; LANES]>().write_unaligned(self.0.map(f32_to_f16)) }
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> Self {
        // SAFETY: see above.
        Portable(unsafe { p.cast::<[u16; LANES]>().read_unaligned() }.map(bf16_to_f32))
    }
    #[inline(always)]
    unsafe fn store_bf16(self, p: *mut u16) {
        // SAFETY: see above.
        unsafe { p.cast::<[u16; LANES]>().write_unaligned(self.0.map(f32_to_bf16)) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Portable([x; LANES])
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        zip(self, o, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        zip(self, o, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        zip(self, o, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        zip(self, o, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        Portable(std::array::from_fn(|i| fused(self.0[i], b.0[i], c.0[i])))
    }
    #[inline(always)]
    unsafe fn fnma(self, b: Self, c: Self) -> Self {
        Portable(std::array::from_fn(|i| fused(-self.0[i], b.0[i], c.0[i])))
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        zip(self, o, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        zip(self, o, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        each(self, f32::sqrt)
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        each(self, f32::abs)
    }
    #[inline(always)]
    unsafe fn neg(self) -> Self {
        each(self, |x| -x)
    }
    #[inline(always)]
    unsafe fn copysign(self, s: Self) -> Self {
        zip(self, s, f32::copysign)
    }
    #[inline(always)]
    unsafe fn round_even(self) -> Self {
        each(self, f32::round_ties_even)
    }
    #[inline(always)]
    unsafe fn floor(self) -> Self {
        each(self, f32::floor)
    }
    #[inline(always)]
    unsafe fn ceil(self) -> Self {
        each(self, f32::ceil)
    }
    #[inline(always)]
    unsafe fn trunc(self) -> Self {
        each(self, f32::trunc)
    }
    #[inline(always)]
    unsafe fn scale2(self, n: Self) -> Self {
        zip(self, n, |x, n| {
            // Two steps, since one power of two does not reach from the largest to the smallest result.
            let n = n as i32;
            let (a, b) = (n >> 1, n - (n >> 1));
            let pow = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
            x * pow(a) * pow(b)
        })
    }
    #[inline(always)]
    unsafe fn lt(self, o: Self) -> Self::Mask {
        let mut m = [false; LANES];
        for (i, m) in m.iter_mut().enumerate() {
            *m = self.0[i] < o.0[i];
        }
        m
    }
    #[inline(always)]
    unsafe fn select(m: Self::Mask, a: Self, b: Self) -> Self {
        Portable(std::array::from_fn(|i| if m[i] { a.0[i] } else { b.0[i] }))
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        tree(self.0, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sum_f64(self) -> f64 {
        tree(self.0.map(f64::from), |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn hmax(self) -> f32 {
        tree(self.0, |a, b| if a > b { a } else { b })
    }
}
