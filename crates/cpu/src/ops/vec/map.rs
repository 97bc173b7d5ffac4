//! Element-by-element kernels on rows of f32.

use super::{dispatch, dispatch_on, Isa, Kernel, Lanes, LANES};

/// A function of one value.
pub trait Map: Copy {
    /// The function on lanes; must be `#[inline(always)]`.
    ///
    /// # Safety
    /// The machine runs `V`.
    unsafe fn f<V: Lanes>(self, x: V) -> V;
}

/// A function of two values.
pub trait Map2: Copy {
    /// The function on lanes; must be `#[inline(always)]`.
    ///
    /// # Safety
    /// The machine runs `V`.
    unsafe fn f<V: Lanes>(self, a: V, b: V) -> V;
}

struct Row1<M> {
    m: M,
    src: *const f32,
    dst: *mut f32,
    n: usize,
}

impl<M: Map> Kernel for Row1<M> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let mut i = 0;
            while i + LANES <= self.n {
                self.m.f(V::load(self.src.add(i))).store(self.dst.add(i));
                i += LANES;
            }
            if i < self.n {
                self.m.f(V::load_n(self.src.add(i), self.n - i)).store_n(self.dst.add(i), self.n - i);
            }
        }
    }
}

struct Row2<M> {
    m: M,
    a: *const f32,
    b: *const f32,
    dst: *mut f32,
    n: usize,
}

impl<M: Map2> Kernel for Row2<M> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: reads and writes stay below n: the caller's promise.
        unsafe {
            let mut i = 0;
            while i + LANES <= self.n {
                self.m.f(V::load(self.a.add(i)), V::load(self.b.add(i))).store(self.dst.add(i));
                i += LANES;
            }
            if i < self.n {
                let n = self.n - i;
                self.m.f(V::load_n(self.a.add(i), n), V::load_n(self.b.add(i), n)).store_n(self.dst.add(i), n);
            }
        }
    }
}

/// `dst[i] = m(src[i])`
///
/// # Safety
/// `src` and `dst` are good for `n` values and equal or apart.
pub unsafe fn map<M: Map>(m: M, src: *const f32, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Row1 { m, src, dst, n }) }
}

/// As [`map`], with the instructions of `isa`.
///
/// # Safety
/// As [`map`]; `isa` is available.
pub unsafe fn map_on<M: Map>(isa: Isa, m: M, src: *const f32, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { dispatch_on(isa, Row1 { m, src, dst, n }) }
}

/// `dst[i] = m(a[i], b[i])`
///
/// # Safety
/// All are good for `n` values; `dst` equals a source or is apart from it.
pub unsafe fn map2<M: Map2>(m: M, a: *const f32, b: *const f32, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Row2 { m, a, b, dst, n }) }
}

/// `m` with the second argument fixed.
#[derive(Clone, Copy)]
pub struct With<M>(pub M, pub f32);

impl<M: Map2> Map for With<M> {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { self.0.f(x, V::splat(self.1)) }
    }
}

/// A scalar function on each lane.
#[derive(Clone, Copy)]
pub struct Scalar(pub fn(f32) -> f32);

impl Map for Scalar {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { V::from_array(x.to_array().map(self.0)) }
    }
}

/// `x * scale + bias`
#[derive(Clone, Copy)]
pub struct Affine(pub f32, pub f32);

impl Map for Affine {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.fma(V::splat(self.0), V::splat(self.1)) }
    }
}

/// `x * scale`
#[derive(Clone, Copy)]
pub struct Times(pub f32);

impl Map for Times {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.mul(V::splat(self.0)) }
    }
}

/// `a + x * scale`
#[derive(Clone, Copy)]
pub struct AddTimes(pub f32);

impl Map2 for AddTimes {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, a: V, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.fma(V::splat(self.0), a) }
    }
}

/// `(x - mean) * scale`
#[derive(Clone, Copy)]
pub struct Centre(pub f32, pub f32);

impl Map for Centre {
    #[inline(always)]
    unsafe fn f<V: Lanes>(self, x: V) -> V {
        // SAFETY: the caller's promise about V.
        unsafe { x.sub(V::splat(self.0)).mul(V::splat(self.1)) }
    }
}
