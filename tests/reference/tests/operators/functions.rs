//! The functions of one number, as unary and gated operators have them.
//!
//! At minus infinity a product such as `x * sigmoid(x)` is taken as its limit, and NaN stays NaN.

/// The error function, to f64 precision: its series where that converges fast, else the continued fraction of erfc.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let z = x.abs();
    let value = if z < 3.0 {
        let (mut term, mut sum, mut n) = (z, z, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -z * z / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        1.0 - erfc_tail(z)
    };
    value.copysign(x)
}

/// The complement of the error function for z of at least 3.
fn erfc_tail(z: f64) -> f64 {
    if z > 27.0 {
        return 0.0;
    }
    let fraction = (1..=60).rev().fold(0.0, |f, k| f64::from(k) / 2.0 / (z + f));
    (-z * z).exp() / (z + fraction) / std::f64::consts::PI.sqrt()
}

/// The normal distribution function.
fn normal(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    if z <= -3.0 {
        0.5 * erfc_tail(-z)
    } else {
        0.5 * (1.0 + erf(z))
    }
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x * f(x)`, 0 where `f` vanishes at minus infinity.
fn gate(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    if x == f64::NEG_INFINITY {
        0.0
    } else {
        x * f(x)
    }
}

pub fn silu(x: f64) -> f64 {
    gate(x, sigmoid)
}

/// In the tanh approximation: `(1 + tanh(u)) / 2` is `sigmoid(2 u)`.
pub fn gelu(x: f64) -> f64 {
    gate(x, |x| sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * x * (1.0 + 0.044715 * x * x)))
}

pub fn gelu_erf(x: f64) -> f64 {
    gate(x, normal)
}

pub fn gelu_quick(x: f64) -> f64 {
    gate(x, |x| sigmoid(1.702 * x))
}

/// The larger of 0 and x; NaN stays.
pub fn relu(x: f64) -> f64 {
    if x < 0.0 {
        0.0
    } else {
        x
    }
}

pub fn hardsigmoid(x: f64) -> f64 {
    ((x + 3.0) / 6.0).clamp(0.0, 1.0)
}

pub fn hardswish(x: f64) -> f64 {
    gate(x, hardsigmoid)
}

pub fn softplus(x: f64) -> f64 {
    if x > 30.0 {
        x
    } else {
        x.exp().ln_1p()
    }
}

pub fn elu(x: f64) -> f64 {
    if x > 0.0 {
        x
    } else {
        x.exp_m1()
    }
}

/// -1, 0 or 1; NaN has no sign and gives 0.
pub fn sign(x: f64) -> f64 {
    f64::from(x > 0.0) - f64::from(x < 0.0)
}
