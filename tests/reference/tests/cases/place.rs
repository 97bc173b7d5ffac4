//! Sources of a form in memory, and what is computed of them.

use crate::forms::{Form, Src};
use reference::values::block;
use reference::world::{dims, elements, t, Outcome};
use reference::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// How a source lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// As a client would make it.
    In(Layout),
    /// In the middle of a larger tensor: gaps before and after in all dimensions.
    Slice,
    /// All rows of a matrix are the same memory: a stride of 0.
    Still,
}

/// Every way to lie; the first is without gaps.
pub fn lies() -> Vec<Lie> {
    ALL.into_iter().map(Lie::In).chain([Lie::Slice, Lie::Still]).collect()
}

impl Lie {
    /// Whether blocks can lie so, which need rows without gaps.
    pub fn packed(self) -> bool {
        match self {
            Lie::In(layout) => layout.packed(),
            _ => true,
        }
    }
}

/// Blocks that were encoded before, by format, shape and values: some formats take long to encode.
type Encoded = HashMap<(i32, [usize; 4], String), Vec<u8>>;
thread_local! {
    static ENCODED: RefCell<Encoded> = RefCell::default();
}

/// A source with its values.
pub fn put(w: &mut World, src: &Src, ty: ggml_type, lie: Lie) -> T {
    let p = bare(w, ty, src.ne, lie);
    if block(ty).0 == 1 {
        w.fill(p, &src.fill());
        return p;
    }
    let key = (ty.0, src.ne, format!("{:?}", src.fill()));
    match ENCODED.with_borrow(|known| known.get(&key).cloned()) {
        Some(bytes) => w.set_elements(p, &bytes),
        None => {
            w.fill(p, &src.fill());
            ENCODED.with_borrow_mut(|known| known.insert(key, elements(p)));
        }
    }
    p
}

/// A source without values.
pub fn bare(w: &mut World, ty: ggml_type, ne: [usize; 4], lie: Lie) -> T {
    let (unit, size) = block(ty);
    let (base, nb1, offset) = match lie {
        Lie::In(layout) => return w.bare(ty, ne, layout),
        Lie::Slice => {
            let base = w.leaf(ty, [ne[0] + 2 * unit, ne[1] + 2, ne[2] + 2, ne[3] + 2]);
            let nb = t(base).nb;
            (base, nb[1], size + nb[1] + nb[2] + nb[3])
        }
        Lie::Still => (w.leaf(ty, [ne[0], 1, ne[2], ne[3]]), 0, 0),
    };
    let (d, nb) = (dims(ne), t(base).nb);
    let p = ggml_view_4d(w.ctx, base, d[0], d[1], d[2], d[3], nb1, nb[2], nb[3], offset);
    assert_eq!(t(p).ne, d, "{lie:?}");
    w.place(p);
    p
}

/// All sources of a form without gaps.
pub fn plain(w: &mut World, form: &Form, types: &[ggml_type]) -> Vec<T> {
    form.sources.iter().zip(types).map(|(s, &ty)| put(w, s, ty, Lie::In(Layout::Cont))).collect()
}

/// A result: its format, shape and the bytes of its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Result {
    pub ty: ggml_type,
    pub ne: [i64; 4],
    pub bytes: Vec<u8>,
}

impl Result {
    /// Of a tensor that was computed.
    pub fn of(p: T) -> Result {
        Result { ty: t(p).r#type, ne: t(p).ne, bytes: elements(p) }
    }

    /// Its elements as numbers.
    pub fn numbers(&self) -> Vec<f64> {
        let (unit, size) = block(self.ty);
        // SAFETY: whole blocks.
        self.bytes.chunks_exact(size).flat_map(|b| unsafe { values::decode(self.ty, b.as_ptr(), unit) }).collect()
    }

    /// What is different in another result, numbers being allowed to differ by `near` times the largest.
    pub fn differs(&self, other: &Result, near: f64) -> Option<String> {
        if (self.ty, self.ne) != (other.ty, other.ne) {
            return Some(format!("{:?} {:?} and {:?} {:?}", self.ty, self.ne, other.ty, other.ne));
        }
        if self.bytes == other.bytes {
            return None;
        }
        let (a, b) = (self.numbers(), other.numbers());
        let largest = b.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
        let (unit, ..) = values::precision(self.ty);
        let far = |a: f64, b: f64| match a.is_finite() && b.is_finite() {
            true => (a - b).abs() > near * largest + if near > 0.0 { 2.0 * unit * b.abs() } else { 0.0 },
            false => a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()),
        };
        let wrong: Vec<usize> = (0..a.len()).filter(|&i| far(a[i], b[i])).collect();
        let &first = wrong.first()?;
        Some(format!(
            "{} of {} elements, first number {first}: {:e} for {:e}",
            wrong.len(),
            a.len(),
            a[first],
            b[first]
        ))
    }

    /// An element of a float format that nobody has written: all bits are those of the memory before.
    pub fn unwritten(&self) -> bool {
        let (unit, size) = block(self.ty);
        unit == 1
            && values::precision(self.ty).0 > 0.0
            && self.bytes.chunks_exact(size).any(|b| b.iter().all(|&b| b == 0xff))
    }
}

/// Builds a form, and tells the world what it writes to besides its result.
pub fn build(w: &mut World, form: &Form, sources: &[T]) -> T {
    w.written = (0..sources.len()).filter(|&k| form.writes(k)).map(|k| sources[k]).collect();
    (form.build)(w.ctx, sources)
}

/// Builds and computes a form. `None`: it was refused.
pub fn compute(w: &mut World, form: &Form, sources: &[T]) -> std::result::Result<Option<Result>, String> {
    let out = build(w, form, sources);
    match w.compute(out)? {
        Outcome::Ran => {
            let result = Result::of(out);
            if result.unwritten() {
                return Err("an element of the result is not written".into());
            }
            Ok(Some(result))
        }
        _ => Ok(None),
    }
}

/// Failures of a kind of cases.
#[derive(Default)]
pub struct Tally {
    pub ran: usize,
    pub refused: usize,
    pub wrong: Vec<String>,
}

impl Tally {
    /// Adds a case: `Ok(true)` ran, `Ok(false)` was refused.
    pub fn add(&mut self, what: impl FnOnce() -> String, result: std::result::Result<bool, String>) {
        match result {
            Ok(true) => self.ran += 1,
            Ok(false) => self.refused += 1,
            Err(text) => self.wrong.push(format!("{}: {text}", what())),
        }
    }

    /// Prints the counts; panics where something was wrong, or fewer than `least` cases ran.
    pub fn finish(self, name: &str, least: usize) {
        println!("{name}: {} ran, {} refused, {} wrong", self.ran, self.refused, self.wrong.len());
        // of each form a few
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let few = self.wrong.iter().filter(|text| {
            let n = seen.entry(text.split([' ', ':']).next().unwrap_or_default()).or_default();
            *n += 1;
            *n <= 8
        });
        let first = few.cloned().collect::<Vec<_>>().join("\n  ");
        assert!(self.wrong.is_empty(), "{name}: {} wrong:\n  {first}", self.wrong.len());
        assert!(self.ran >= least, "{name}: {} cases ran, at least {least} must", self.ran);
    }
}

/// Names of formats, for the names of cases.
pub fn names(types: &[ggml_type]) -> String {
    types.iter().map(|&ty| suite::type_name(ty)).collect::<Vec<_>>().join("+")
}
