//! Elementary functions on lanes.
//!
//! Polynomials are minimax fits in relative error made for this crate; errors given are against the exact value, measured over
//! dense samples of the whole range. Special values: NaN stays NaN, and a finite argument or an infinity never gives NaN.

use super::lanes::Lanes;

/// `(e^r - 1 - r) / r^2` for `|r|` up to half of ln 2.
const EXP: [f32; 6] = [1.979_022_3e-4, 1.394_478_4e-3, 8.333_498e-3, 4.166_629e-2, 0.166_666_66, 0.5];

/// Horner evaluation, highest coefficient first.
#[inline(always)]
unsafe fn poly<V: Lanes, const N: usize>(x: V, c: [f32; N]) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let mut r = V::splat(c[0]);
        for &k in &c[1..] {
            r = r.fma(x, V::splat(k));
        }
        r
    }
}

/// `e^x`, within 1 ulp, gradual underflow included.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn exp<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        // Beyond these bounds the result is infinity or zero anyway. The argument comes second: NaN passes through.
        let x = V::splat(90.0).min(V::splat(-110.0).max(x));
        let n = x.mul(V::splat(std::f32::consts::LOG2_E)).round_even();
        // ln 2 in two parts; the product with the first is exact.
        let r = n.fnma(V::splat(0.693_359_4), x);
        let r = n.fnma(V::splat(-2.121_944_4e-4), r);
        let p = poly(r, EXP);
        let p = p.fma(r.mul(r), r).add(V::splat(1.0));
        p.scale2(n)
    }
}

/// `1 / (1 + e^-x)`, within 2.5 ulp.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn sigmoid<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let one = V::splat(1.0);
        one.div(one.add(exp(x.neg())))
    }
}

/// `ln(1 + e^x)`, within 3 ulp; `x` itself far above zero, 0 far below.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn softplus<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        // max(x, 0) + ln(1 + u), where u = e^-|x| is at most 1 and ln(1 + u) = 2 atanh(u / (2 + u)): a series in squares up to 1/9.
        let u = exp(x.abs().neg());
        let s = u.div(V::splat(2.0).add(u));
        let z = s.mul(s);
        let p = poly(z, [1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 0.2, 1.0 / 3.0]);
        let s2 = s.add(s);
        p.mul(z).fma(s2, s2).add(x.max(V::splat(0.0)))
    }
}

/// `x / (1 + e^-z)`; -0 when z is far below zero, x = -infinity included.
#[inline(always)]
unsafe fn gated<V: Lanes>(x: V, z: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        // Minus infinity over infinity would be NaN; the largest finite number over infinity is -0.
        let x = V::splat(-f32::MAX).max(x);
        x.div(V::splat(1.0).add(exp(z.neg())))
    }
}

/// `x * sigmoid(x)`
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn silu<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe { gated(x, x) }
}

/// `x * sigmoid(alpha * x)`
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn silu_alpha<V: Lanes>(x: V, alpha: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe { gated(x, x.mul(alpha)) }
}

/// `x * sigmoid(1.702 x)`
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn gelu_quick<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe { gated(x, x.mul(V::splat(1.702))) }
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`. Written as `x * sigmoid(2 u)`: no cancellation below zero.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn gelu<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        // 2 sqrt(2/pi), and that times 0.044715. The cube overflows to an infinity of the right sign.
        let c = x.mul(x).fma(V::splat(0.071_354_814), V::splat(1.595_769_2));
        gated(x, x.mul(c))
    }
}

/// Hyperbolic tangent, within 2 ulp.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn tanh<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let a = x.abs();
        let one = V::splat(1.0);
        let big = one.sub(V::splat(2.0).div(exp(a.add(a)).add(one)));
        let z = a.mul(a);
        let p = poly(z, [-5.704_990_6e-3, 2.063_909e-2, -5.373_971_5e-2, 0.133_314_42, -0.333_332_8]);
        let small = p.mul(z).fma(a, a);
        V::select(a.lt(V::splat(0.6)), small, big).copysign(x)
    }
}

/// `e^(a^2) erfc(a)` for `a >= 0.9`
#[inline(always)]
unsafe fn erfcx<V: Lanes>(a: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let one = V::splat(1.0);
        let t = one.div(a.fma(V::splat(0.4), one));
        let p = poly(
            t,
            [
                6.322_84e-2,
                -0.232_391_09,
                0.247_986_06,
                -7.382_232e-2,
                0.176_193_43,
                0.157_910_93,
                0.209_741_4,
                0.225_488_28,
                0.225_683_02,
            ],
        );
        p.mul(t)
    }
}

/// `erfc(a)` for `a >= 0.9`
#[inline(always)]
unsafe fn erfc_tail<V: Lanes>(a: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        // Far out the square's rounding would cost many ulp: its remainder goes in by a second factor.
        let a = V::splat(11.0).min(a);
        let s = a.mul(a);
        let low = a.fma(a, s.neg());
        let e = exp(s.neg());
        erfcx(a).mul(low.fnma(e, e))
    }
}

/// `erf(a)` for `0 <= a < 0.93`
#[inline(always)]
unsafe fn erf_small<V: Lanes>(a: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let z = a.mul(a);
        let p = poly(
            z,
            [8.316_912e-5, -8.130_051e-4, 5.199_911e-3, -2.685_894_4e-2, 0.112_836_875, -0.376_126_32, 0.128_379_17],
        );
        p.fma(a, a)
    }
}

/// Error function, within 2 ulp.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn erf<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let a = x.abs();
        let big = V::splat(1.0).sub(erfc_tail(a));
        V::select(a.lt(V::splat(0.92)), erf_small(a), big).copysign(x)
    }
}

/// `0.5 x (1 + erf(x / sqrt 2))`; below zero from erfc, without cancellation.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn gelu_erf<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let x = V::splat(-f32::MAX).max(x);
        let u = x.mul(V::splat(std::f32::consts::FRAC_1_SQRT_2));
        let a = u.abs();
        let half = V::splat(0.5);
        let one = V::splat(1.0);
        let zero = V::splat(0.0);
        let tail = erfc_tail(a);
        // 11 is where the tail stops to be evaluated; what is below there is zero in f32.
        let tail = V::select(a.lt(V::splat(11.0)), tail, zero);
        let far = V::select(u.lt(zero), tail, V::splat(2.0).sub(tail));
        let near = one.add(erf_small(a).copysign(u));
        let f = V::select(a.lt(V::splat(0.92)), near, far);
        half.mul(x).mul(f)
    }
}

/// `e^x - 1`, within 2 ulp.
///
/// # Safety
/// The machine runs `V`.
#[inline(always)]
pub unsafe fn expm1<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise about V.
    unsafe {
        let one = V::splat(1.0);
        let big = exp(x);
        let x = V::splat(80.0).min(V::splat(-40.0).max(x));
        let n = x.mul(V::splat(std::f32::consts::LOG2_E)).round_even();
        let r = n.fnma(V::splat(0.693_359_4), x);
        let r = n.fnma(V::splat(-2.121_944_4e-4), r);
        let p = poly(r, EXP);
        // 2^n (e^r - 1) + (2^n - 1): no cancellation near zero, where n is 0.
        let q = p.fma(r.mul(r), r);
        let small = q.scale2(n).add(one.scale2(n).sub(one));
        V::select(V::splat(79.0).lt(x), big, small)
    }
}
