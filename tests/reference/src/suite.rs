//! The cases of one operator: what ran, what was refused, and what was wrong.

use crate::api::*;
use crate::values::{each, precision, Arr};
use crate::world::{self, Outcome, World};
use ggml_oxide_abi::*;

/// How far a result may be from the reference. Rounding to the result's format is allowed besides.
#[derive(Clone, Copy, Debug)]
pub struct Tol {
    /// Relative to the reference.
    pub rel: f64,
    /// Relative to the magnitude that [`Want::with_magnitude`] gives, as the sum of the terms' sizes.
    pub mag: f64,
    /// Absolute.
    pub abs: f64,
}

/// One unit of f32 rounding.
pub const U32: f64 = 1.0 / (1 << 24) as f64;

impl Tol {
    /// Nothing but rounding to the result's format.
    pub const EXACT: Tol = Tol { rel: 0.0, mag: 0.0, abs: 0.0 };

    /// `n` units of f32 rounding, relative to the reference.
    pub const fn units(n: f64) -> Tol {
        Tol { rel: n * U32, mag: 0.0, abs: 0.0 }
    }

    /// `n` units of f32 rounding, relative to the magnitude of the terms.
    pub const fn terms(n: f64) -> Tol {
        Tol { rel: U32, mag: n * U32, abs: 0.0 }
    }

    /// The same and an absolute error.
    pub const fn abs(self, abs: f64) -> Tol {
        Tol { abs, ..self }
    }
}

/// What a case should give.
pub struct Want {
    /// The elements.
    pub arr: Arr,
    /// Size of the terms that make each element.
    pub mag: Option<Vec<f64>>,
    /// How far from them the result may be.
    pub tol: Tol,
    /// In the place of all that, for results that are not unique.
    pub rule: Option<Rule>,
}

/// What a result must be like: gets it by logical index.
pub type Rule = Box<dyn Fn(&Arr) -> Result<(), String>>;

impl Want {
    /// These elements, within a tolerance.
    pub fn new(arr: Arr, tol: Tol) -> Want {
        Want { arr, mag: None, tol, rule: None }
    }

    /// Elements and the sizes of their terms from `f`.
    pub fn with_magnitude(ne: [usize; 4], tol: Tol, mut f: impl FnMut([usize; 4]) -> (f64, f64)) -> Want {
        let (v, mag) = each(ne).map(&mut f).unzip();
        Want { arr: Arr { ne, v }, mag: Some(mag), tol, rule: None }
    }

    /// A result of this shape that keeps a rule.
    pub fn by(ne: [usize; 4], rule: impl Fn(&Arr) -> Result<(), String> + 'static) -> Want {
        let arr = Arr { ne, v: Vec::new() };
        Want { arr, mag: None, tol: Tol::EXACT, rule: Some(Box::new(rule)) }
    }

    /// The first element that is wrong, in words.
    pub fn check(&self, out: T) -> Result<(), String> {
        let got = world::read(out);
        if got.ne != self.arr.ne {
            return Err(format!("the shape is {:?}, should be {:?}", got.ne, self.arr.ne));
        }
        if let Some(rule) = &self.rule {
            return rule(&got);
        }
        let ty = world::t(out).r#type;
        for (n, i) in each(got.ne).enumerate() {
            let (g, w) = (got.v[n], self.arr.v[n]);
            let mag = self.mag.as_ref().map_or(0.0, |m| m[n]);
            if !close(ty, g, w, mag, self.tol) {
                return Err(format!("element {i:?} is {g:e}, should be {w:e}"));
            }
        }
        Ok(())
    }
}

/// Whether `got`, of format `ty`, is `want` within `tol`; NaN only for NaN, infinity where `want` is beyond the format.
pub fn close(ty: ggml_type, got: f64, want: f64, mag: f64, tol: Tol) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    let (unit, max, least) = precision(ty);
    // a result may round up to infinity where the reference is within the tolerance of the format's end
    let slack = 1.0 + tol.rel + unit;
    if got.is_infinite() || want.abs() > max * slack {
        return got.is_infinite() && got.signum() == want.signum() && want.abs() * slack >= max;
    }
    (got - want).abs() <= (tol.rel + unit) * want.abs() + tol.mag * mag + tol.abs + least / 2.0
}

/// The cases of one operator.
pub struct Suite {
    name: String,
    ran: usize,
    refused: usize,
    not_built: usize,
    failures: Vec<String>,
}

impl Suite {
    /// No cases yet.
    pub fn new(name: impl Into<String>) -> Suite {
        Suite { name: name.into(), ran: 0, refused: 0, not_built: 0, failures: Vec::new() }
    }

    /// Builds, computes and compares a case. `must`: refusing it is a failure.
    pub fn case(&mut self, must: bool, what: impl std::fmt::Display, build: impl FnOnce(&mut World) -> (T, Want)) {
        let seed = (self.ran + self.refused + self.not_built) as u64;
        let result = World::with(seed, |w| {
            let (out, want) = build(w);
            let outcome = w.compute(out)?;
            match outcome {
                Outcome::Ran => want.check(out).map(|()| outcome),
                _ if must => Err(format!("{outcome:?}: {}", world::last_error())),
                _ => Ok(outcome),
            }
        });
        match result {
            Ok(Outcome::Ran) => self.ran += 1,
            Ok(Outcome::Refused) => self.refused += 1,
            Ok(Outcome::NotBuilt) => self.not_built += 1,
            Err(text) => {
                self.ran += 1;
                self.failures.push(format!("{what}: {text}"));
            }
        }
    }

    /// Prints the counts; panics with the first failures if there are any, or if fewer than `least` cases ran.
    pub fn finish(self, least: usize) {
        let Suite { name, ran, refused, not_built, failures } = self;
        println!("{name}: {ran} ran, {refused} refused, {not_built} not built, {} wrong", failures.len());
        let first: Vec<&str> = failures.iter().take(12).map(String::as_str).collect();
        assert!(failures.is_empty(), "{name}: {} of {ran} wrong:\n  {}", failures.len(), first.join("\n  "));
        assert!(ran >= least, "{name}: {ran} cases ran, at least {least} must");
    }
}

/// Name of a format, for the names of cases.
pub fn type_name(ty: ggml_type) -> String {
    // SAFETY: a static text, never NULL.
    unsafe { std::ffi::CStr::from_ptr(ggml_type_name(ty)) }.to_string_lossy().into_owned()
}
