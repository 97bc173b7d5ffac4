//! Element formats that row kernels read and write directly.

use super::lanes::{Lanes, LANES};
use ggml_oxide_types::float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// A float format in memory.
pub trait Elem: Copy + 'static {
    /// What memory holds.
    type Mem: Copy + Default + Send + Sync + 'static;
    /// One value.
    fn get(m: Self::Mem) -> f32;
    /// One value, rounded to nearest even.
    fn put(x: f32) -> Self::Mem;
    /// Sixteen values.
    ///
    /// # Safety
    /// The machine runs `V`; `p` is good for 16 values.
    unsafe fn load<V: Lanes>(p: *const Self::Mem) -> V;
    /// The first `n < 16` values, other lanes zero.
    ///
    /// # Safety
    /// The machine runs `V`; `p` is good for `n` values.
    unsafe fn load_n<V: Lanes>(p: *const Self::Mem, n: usize) -> V;
    /// Writes sixteen values.
    ///
    /// # Safety
    /// The machine runs `V`; `p` is good for 16 values.
    unsafe fn store<V: Lanes>(v: V, p: *mut Self::Mem);
    /// Writes the first `n < 16` values.
    ///
    /// # Safety
    /// The machine runs `V`; `p` is good for `n` values.
    unsafe fn store_n<V: Lanes>(v: V, p: *mut Self::Mem, n: usize);
}

/// IEEE single.
#[derive(Clone, Copy)]
pub struct F32;
/// IEEE half.
#[derive(Clone, Copy)]
pub struct F16;
/// Upper half of a single.
#[derive(Clone, Copy)]
pub struct Bf16;

impl Elem for F32 {
    type Mem = f32;
    #[inline(always)]
    fn get(m: f32) -> f32 {
        m
    }
    #[inline(always)]
    fn put(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    unsafe fn load<V: Lanes>(p: *const f32) -> V {
        // SAFETY: the trait's contract.
        unsafe { V::load(p) }
    }
    #[inline(always)]
    unsafe fn load_n<V: Lanes>(p: *const f32, n: usize) -> V {
        // SAFETY: the trait's contract.
        unsafe { V::load_n(p, n) }
    }
    #[inline(always)]
    unsafe fn store<V: Lanes>(v: V, p: *mut f32) {
        // SAFETY: the trait's contract.
        unsafe { v.store(p) }
    }
    #[inline(always)]
    unsafe fn store_n<V: Lanes>(v: V, p: *mut f32, n: usize) {
        // SAFETY: the trait's contract.
        unsafe { v.store_n(p, n) }
    }
}

macro_rules! half {
    ($name:ident, $get:path, $put:path, $load:ident, $store:ident) => {
        impl Elem for $name {
            type Mem = u16;
            #[inline(always)]
            fn get(m: u16) -> f32 {
                $get(m)
            }
            #[inline(always)]
            fn put(x: f32) -> u16 {
                $put(x)
            }
            #[inline(always)]
            unsafe fn load<V: Lanes>(p: *const u16) -> V {
                // SAFETY: the trait's contract.
                unsafe { V::$load(p) }
            }
            #[inline(always)]
            unsafe fn load_n<V: Lanes>(p: *const u16, n: usize) -> V {
                let mut a = [0u16; LANES];
                // SAFETY: n < 16 values are good by the trait's contract.
                unsafe {
                    std::ptr::copy_nonoverlapping(p, a.as_mut_ptr(), n);
                    V::$load(a.as_ptr())
                }
            }
            #[inline(always)]
            unsafe fn store<V: Lanes>(v: V, p: *mut u16) {
                // SAFETY: the trait's contract.
                unsafe { v.$store(p) }
            }
            #[inline(always)]
            unsafe fn store_n<V: Lanes>(v: V, p: *mut u16, n: usize) {
                let mut a = [0u16; LANES];
                // SAFETY: n < 16 values are good by the trait's contract.
                unsafe {
                    v.$store(a.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(a.as_ptr(), p, n);
                }
            }
        }
    };
}

half!(F16, f16_to_f32, f32_to_f16, load_f16, store_f16);
half!(Bf16, bf16_to_f32, f32_to_bf16, load_bf16, store_bf16);
