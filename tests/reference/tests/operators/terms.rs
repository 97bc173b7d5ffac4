//! Numbers that know the size of the terms that made them, for results of long chains of sums and products: the rounding error of a
//! chain is a small multiple of that size.

use super::common::*;
use std::ops::{Add, Div, Mul, Sub};

/// A value and the size of its terms, never less than the value's.
#[derive(Clone, Copy, Debug)]
pub struct X {
    pub v: f64,
    pub size: f64,
}

/// Infinite where it cannot be told.
fn size(m: f64) -> f64 {
    if m.is_nan() {
        f64::INFINITY
    } else {
        m
    }
}

impl From<f64> for X {
    fn from(v: f64) -> X {
        X { v, size: size(v.abs()) }
    }
}
impl Add for X {
    type Output = X;
    fn add(self, o: X) -> X {
        X { v: self.v + o.v, size: size(self.size + o.size) }
    }
}
impl Sub for X {
    type Output = X;
    fn sub(self, o: X) -> X {
        X { v: self.v - o.v, size: size(self.size + o.size) }
    }
}
impl Mul for X {
    type Output = X;
    fn mul(self, o: X) -> X {
        X { v: self.v * o.v, size: size(self.size * o.size) }
    }
}
impl Div for X {
    type Output = X;
    fn div(self, o: X) -> X {
        let part = self.size / o.v.abs() * (o.size / o.v.abs());
        X { v: self.v / o.v, size: size(part) }
    }
}

impl X {
    pub const ZERO: X = X { v: 0.0, size: 0.0 };

    /// `v`, the value of a function at it whose slope is at most `v`. At infinity nothing is rounded.
    fn function(self, v: f64) -> X {
        let terms = if self.v.is_infinite() { 1.0 } else { 1.0 + self.size };
        X { v, size: size(v * terms) }
    }

    /// `e` to the power of it.
    pub fn exp(self) -> X {
        self.function(self.v.exp())
    }

    /// The logistic function of it.
    pub fn sigmoid(self) -> X {
        self.function(1.0 / (1.0 + (-self.v).exp()))
    }

    /// `ln(1 + e^x)` of it.
    pub fn softplus(self) -> X {
        let v = self.v.max(0.0) + (-self.v.abs()).exp().ln_1p();
        self.function(if self.v.is_nan() { f64::NAN } else { v })
    }

    /// It, or zero in the place of less.
    pub fn positive(self) -> X {
        if self.v < 0.0 {
            X { v: 0.0, ..self }
        } else {
            self
        }
    }
}

impl std::iter::Sum for X {
    fn sum<I: Iterator<Item = X>>(terms: I) -> X {
        terms.fold(X::ZERO, |a, b| a + b)
    }
}

/// The element of an array.
pub fn x(a: &Arr, i: [usize; 4]) -> X {
    a.at(i).into()
}

/// What a case should give: `n` units of rounding of the terms' sizes.
pub fn want(ne: [usize; 4], values: Vec<X>, n: f64) -> Want {
    let (v, mag) = values.iter().map(|x| (x.v, x.size)).unzip();
    // numbers below the least normal one have a rounding of their own
    Want { mag: Some(mag), ..Want::new(Arr { ne, v }, Tol::terms(n).abs(1e-42)) }
}

/// NaN, infinities, both zeros and tiny numbers among ordinary ones, of which no sums of products are zero. Nothing that two factors
/// make too large for f32.
pub fn specials() -> Fill {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-39, -1e-40];
    let mut list: Vec<f64> = (0..211).map(|i| f64::from(i * 7919 % 1009) / 400.0 - 1.2613).collect();
    for (i, x) in odd.into_iter().enumerate() {
        list[29 * i + 5] = x;
    }
    Fill::List(list)
}

/// The same with infinities and zeros only.
pub fn infinities() -> Fill {
    let mut list: Vec<f64> = (0..307).map(|i| ((i * 37 % 101) as f64 + 1.0) / 40.0).collect();
    (list[100], list[200], list[250]) = (f64::INFINITY, 0.0, f64::NEG_INFINITY);
    Fill::List(list)
}
