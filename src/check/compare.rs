//! Whether results are the same: bit for bit, or as numbers with some error.

use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// The elements of a tensor, one behind the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Values {
    /// Its name.
    pub name: String,
    /// Format.
    pub ty: ggml_type,
    /// Shape.
    pub ne: [i64; GGML_MAX_DIMS],
    /// Bytes.
    pub bytes: Vec<u8>,
}

/// What may differ.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// `sum((a - b)^2) / sum(b^2)`; 0: nothing.
    pub max_nmse: f64,
    /// Numbers that differ by no more than this are the same (where there is tolerance at all).
    pub floor: f64,
    /// A finite result is good where the reference overflows.
    pub overflow: bool,
}

impl Tolerance {
    /// None.
    pub const EXACT: Tolerance = Tolerance { max_nmse: 0.0, floor: 0.0, overflow: false };
}

fn is_float(ty: ggml_type) -> bool {
    matches!(ty, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16 | GGML_TYPE_F64)
}

impl Values {
    /// As numbers.
    pub fn numbers(&self) -> Result<Vec<f64>, String> {
        fn all<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes.chunks_exact(N).filter_map(|c| c.try_into().ok()).map(f).collect()
        }
        let bytes = &self.bytes;
        Ok(match self.ty {
            GGML_TYPE_F32 => all(bytes, |b| f64::from(f32::from_le_bytes(b))),
            GGML_TYPE_F64 => all(bytes, f64::from_le_bytes),
            GGML_TYPE_I8 => all(bytes, |b| f64::from(i8::from_le_bytes(b))),
            GGML_TYPE_I16 => all(bytes, |b| f64::from(i16::from_le_bytes(b))),
            GGML_TYPE_I32 => all(bytes, |b| f64::from(i32::from_le_bytes(b))),
            GGML_TYPE_I64 => all(bytes, |b| i64::from_le_bytes(b) as f64),
            ty => {
                let n = shape::checked_nelements(&self.ne).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let mut numbers = vec![0f32; n];
                let format = shape::format_of(ty).ok_or("a format that is none")?;
                types::to_f32(format, bytes, &mut numbers).map_err(|e| e.to_string())?;
                numbers.into_iter().map(f64::from).collect()
            }
        })
    }

    /// Whether nothing can be told from it: numbers that are all zero, or none that is finite.
    pub fn is_empty_of_sense(&self) -> bool {
        !self.bytes.is_empty()
            && is_float(self.ty)
            && self.numbers().is_ok_and(|n| n.iter().all(|x| *x == 0.0) || !n.iter().any(|x| x.is_finite()))
    }

    fn place(&self, i: usize) -> String {
        let (mut rest, mut at) = (i as i64, Vec::new());
        for n in self.ne {
            at.push((rest % n.max(1)).to_string());
            rest /= n.max(1);
        }
        format!("element [{}] of '{}'", at.join(","), self.name)
    }
}

/// Whether `got` is what `want` says; if not, where and how.
pub fn same(got: &Values, want: &Values, tolerance: Tolerance) -> Result<(), String> {
    if got.ne != want.ne {
        return Err(format!("'{}' has shape {:?}, it must have {:?}", got.name, got.ne, want.ne));
    }
    if got.ty == want.ty && got.bytes == want.bytes {
        return Ok(());
    }
    if tolerance.max_nmse == 0.0 {
        return bits(got, want);
    }
    let (a, b) = (got.numbers()?, want.numbers()?);
    let (mut error, mut size, mut worst) = (0.0, 0.0, (0.0, 0));
    for (i, (&a, &b)) in a.iter().zip(&b).enumerate() {
        if a.is_finite() && b.is_finite() {
            let difference = if (a - b).abs() <= tolerance.floor { 0.0 } else { a - b };
            error += difference * difference;
            size += b * b;
            if difference.abs() > worst.0 {
                worst = (difference.abs(), i);
            }
            continue;
        }
        let alike = a == b || a.is_nan() && b.is_nan() || tolerance.overflow && a.is_finite();
        if !alike {
            return Err(format!("{} is {a}, it must be {b}", got.place(i)));
        }
    }
    let nmse = if error == 0.0 { 0.0 } else { error / size };
    if nmse <= tolerance.max_nmse {
        return Ok(());
    }
    let (i, max) = (worst.1, tolerance.max_nmse);
    let text = format!(
        "the error is {nmse:.3e}, it can be {max:.3e}; most at {}: {}, it must be {}",
        got.place(i),
        a[i],
        b[i]
    );
    Err(text)
}

fn bits(got: &Values, want: &Values) -> Result<(), String> {
    if got.ty != want.ty {
        return Err(format!("'{}' has format {}, the reference has {}: give max_nmse", got.name, got.ty.0, want.ty.0));
    }
    let size = shape::type_size(got.ty).max(1);
    let (a, b) = (got.numbers().unwrap_or_default(), want.numbers().unwrap_or_default());
    let nan =
        |i: usize| is_float(got.ty) && a.get(i).is_some_and(|x| x.is_nan()) && b.get(i).is_some_and(|x| x.is_nan());
    let pairs = got.bytes.chunks(size).zip(want.bytes.chunks(size)).enumerate();
    let differ: Vec<usize> = pairs.filter(|&(i, (x, y))| x != y && !nan(i)).map(|(i, _)| i).collect();
    let Some(&first) = differ.first() else { return Ok(()) };
    let (n, all) = (differ.len(), got.bytes.len() / size);
    let block = shape::blck_size(got.ty).max(1);
    if block > 1 {
        return Err(format!("{n} of {all} blocks of '{}' differ in their bits, first block {first}", got.name));
    }
    let text =
        format!("{} is {}, it must be {}; {n} of {all} differ", got.place(first), shown(&a, first), shown(&b, first));
    Err(text)
}

fn shown(numbers: &[f64], i: usize) -> String {
    numbers.get(i).map_or("?".into(), |x| format!("{x:e}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn f32s(list: &[f32]) -> Values {
        let bytes = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        Values { name: "x".into(), ty: GGML_TYPE_F32, ne: [list.len() as i64, 1, 1, 1], bytes }
    }

    #[test]
    fn abi_5_bits() {
        let nan = f32::from_bits(0x7fc0_1234);
        assert!(same(&f32s(&[1.0, f32::NAN]), &f32s(&[1.0, nan]), Tolerance::EXACT).is_ok());
        assert!(same(&f32s(&[0.0]), &f32s(&[-0.0]), Tolerance::EXACT).is_err());
        let text = same(&f32s(&[1.0, 2.0]), &f32s(&[1.0, 2.0000002]), Tolerance::EXACT).unwrap_err();
        assert!(text.contains("[1,0,0,0]") && text.contains("1 of 2"), "{text}");
        assert!(same(&f32s(&[1.0]), &f32s(&[1.0, 2.0]), Tolerance::EXACT).is_err());
    }

    #[test]
    fn abi_5_numbers() {
        let t = Tolerance { max_nmse: 1e-6, floor: 0.0, overflow: false };
        let check = |a: &[f32], b: &[f32], t| same(&f32s(a), &f32s(b), t).is_ok();
        assert!(check(&[1.0, 0.0001], &[1.0, 0.0], t) && !check(&[1.0, 0.01], &[1.0, 0.0], t));
        assert!(!check(&[1.0, f32::NAN], &[1.0, 0.0], t) && !check(&[1.0, 0.0], &[1.0, f32::NAN], t));
        assert!(!check(&[f32::INFINITY], &[f32::NEG_INFINITY], t) && check(&[f32::INFINITY], &[f32::INFINITY], t));
        assert!(!check(&[1e-40], &[0.0], t) && check(&[1e-40], &[0.0], Tolerance { floor: 1e-38, ..t }));
        let over = Tolerance { overflow: true, ..t };
        assert!(check(&[1e38], &[f32::INFINITY], over) && !check(&[f32::INFINITY], &[1e38], over));
        assert!(f32s(&[0.0, -0.0]).is_empty_of_sense() && f32s(&[f32::NAN]).is_empty_of_sense());
        assert!(!f32s(&[0.0, 1.0]).is_empty_of_sense() && !f32s(&[]).is_empty_of_sense());
    }
}
