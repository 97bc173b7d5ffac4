//! Reductions of rows of f32. Their shape depends on the length alone: four accumulators of 16 lanes, folded into f64 every
//! 1024 values, so that long rows lose no more than short ones.

use super::{dispatch, part, Kernel, Lanes, LANES};

const BLOCK: usize = 1024;

/// What is added up.
trait Term: Copy {
    /// Adds the 16 terms from `i` on, or if `PART` the first `n` of them and nothing in the lanes behind.
    unsafe fn add<V: Lanes, const PART: bool>(self, i: usize, n: usize, acc: V) -> V;
}

#[derive(Clone, Copy)]
struct Plain(*const f32);
#[derive(Clone, Copy)]
struct Square(*const f32);
#[derive(Clone, Copy)]
struct SquareFrom(*const f32, f32);
#[derive(Clone, Copy)]
struct Product(*const f32, *const f32);

impl Term for Plain {
    #[inline(always)]
    unsafe fn add<V: Lanes, const PART: bool>(self, i: usize, n: usize, acc: V) -> V {
        // SAFETY: the caller's promise about V and the terms.
        unsafe { acc.add(part::load::<V, PART>(self.0.add(i), n)) }
    }
}
impl Term for Square {
    #[inline(always)]
    unsafe fn add<V: Lanes, const PART: bool>(self, i: usize, n: usize, acc: V) -> V {
        // SAFETY: as above.
        unsafe {
            let x = part::load::<V, PART>(self.0.add(i), n);
            x.fma(x, acc)
        }
    }
}
impl Term for SquareFrom {
    #[inline(always)]
    unsafe fn add<V: Lanes, const PART: bool>(self, i: usize, n: usize, acc: V) -> V {
        // SAFETY: as above.
        unsafe {
            let x = if PART {
                // what is no distance from the mean
                let mut x = [self.1; LANES];
                std::ptr::copy_nonoverlapping(self.0.add(i), x.as_mut_ptr(), n);
                V::from_array(x)
            } else {
                V::load(self.0.add(i))
            };
            let d = x.sub(V::splat(self.1));
            d.fma(d, acc)
        }
    }
}
impl Term for Product {
    #[inline(always)]
    unsafe fn add<V: Lanes, const PART: bool>(self, i: usize, n: usize, acc: V) -> V {
        // SAFETY: as above.
        unsafe { part::load::<V, PART>(self.0.add(i), n).fma(part::load::<V, PART>(self.1.add(i), n), acc) }
    }
}

struct Sum<T> {
    t: T,
    n: usize,
}

impl<T: Term> Kernel for Sum<T> {
    type Out = f64;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> f64 {
        // SAFETY: reads stay below n: the caller's promise.
        unsafe {
            let mut total = 0.0f64;
            let mut start = 0;
            while start < self.n {
                let end = (start + BLOCK).min(self.n);
                let mut acc = [V::splat(0.0); 4];
                let mut i = start;
                while i + 4 * LANES <= end {
                    for (k, acc) in acc.iter_mut().enumerate() {
                        *acc = self.t.add::<V, false>(i + k * LANES, LANES, *acc);
                    }
                    i += 4 * LANES;
                }
                let mut k = 0;
                while i + LANES <= end {
                    acc[k] = self.t.add::<V, false>(i, LANES, acc[k]);
                    i += LANES;
                    k += 1;
                }
                if i < end {
                    acc[3] = self.t.add::<V, true>(i, end - i, acc[3]);
                }
                total += acc[0].add(acc[1]).add(acc[2].add(acc[3])).sum_f64();
                start = end;
            }
            total
        }
    }
}

/// Sum of a row.
///
/// # Safety
/// `x` is good for `n` values.
pub unsafe fn sum(x: *const f32, n: usize) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Sum { t: Plain(x), n }) }
}

/// Sum of squares.
///
/// # Safety
/// `x` is good for `n` values.
pub unsafe fn sum_sq(x: *const f32, n: usize) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Sum { t: Square(x), n }) }
}

/// Sum of squared distances from `mean`.
///
/// # Safety
/// `x` is good for `n` values.
pub unsafe fn sum_sq_from(x: *const f32, n: usize, mean: f32) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Sum { t: SquareFrom(x, mean), n }) }
}

/// Sum of the products of two rows.
///
/// # Safety
/// Both are good for `n` values.
pub unsafe fn dot(x: *const f32, y: *const f32, n: usize) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Sum { t: Product(x, y), n }) }
}

struct Max {
    x: *const f32,
    n: usize,
}

impl Kernel for Max {
    type Out = f32;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> f32 {
        // SAFETY: reads stay below n: the caller's promise.
        unsafe {
            let mut acc = [V::splat(f32::NEG_INFINITY); 2];
            let mut i = 0;
            while i + 2 * LANES <= self.n {
                acc[0] = V::load(self.x.add(i)).max(acc[0]);
                acc[1] = V::load(self.x.add(i + LANES)).max(acc[1]);
                i += 2 * LANES;
            }
            if i + LANES <= self.n {
                acc[0] = V::load(self.x.add(i)).max(acc[0]);
                i += LANES;
            }
            let mut m = acc[0].max(acc[1]).hmax();
            while i < self.n {
                let v = self.x.add(i).read_unaligned();
                m = if v > m { v } else { m };
                i += 1;
            }
            m
        }
    }
}

/// Largest value of a row, NaN left out; minus infinity for none.
///
/// # Safety
/// `x` is good for `n` values.
pub unsafe fn max(x: *const f32, n: usize) -> f32 {
    // SAFETY: the caller's promise.
    unsafe { dispatch(Max { x, n }) }
}
