//! What inputs hold: the author's numbers, or numbers at random, some of them special.

use super::author::Author;
use super::built::Built;
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use ggml_oxide_types as types;

/// By input: its elements one behind the other.
pub type Contents = Vec<Vec<u8>>;

/// Numbers that kernels stumble over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// No number, here and there.
    Nan,
    /// Infinities of both signs, here and there.
    Inf,
    /// Nothing but zeros of both signs and the smallest numbers.
    Tiny,
    /// Nothing but large numbers.
    Huge,
}

/// A generator of numbers: a counter, scrambled.
struct Random(u64);

impl Random {
    fn new(seed: u64, index: usize) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// From -1 to below 1.
    fn number(&mut self) -> f64 {
        (self.bits() >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    }
}

/// Whether numbers of that format can be special.
fn is_float(ty: ggml_type) -> bool {
    matches!(ty, GGML_TYPE_F32 | GGML_TYPE_F16 | GGML_TYPE_BF16 | GGML_TYPE_F64)
}

/// Contents for the inputs of `built`, the same for every layout of them. `special`: numbers of that kind in input `only` (`None`: in
/// all), where the author does not fill them. `None` when no input takes any.
///
/// # Errors
/// The format of an input has no conversion from plain numbers.
pub fn make(
    author: &Author,
    built: &Built,
    seed: u64,
    special: Option<(Special, Option<usize>)>,
) -> Result<Option<Contents>, String> {
    let mut contents = Contents::with_capacity(built.inputs.len());
    let mut taken = special.is_none();
    for (i, input) in built.inputs.iter().enumerate() {
        if let Some(twin) = input.twin {
            contents.push(contents[twin].clone());
            continue;
        }
        // SAFETY: an input of a live graph.
        let t = unsafe { &*input.tensor };
        let n = usize::try_from(shape::nelements(t)).unwrap_or(0);
        let mut bytes =
            vec![0u8; shape::contiguous_strides(t.r#type, &t.ne).map_or(0, |nb| nb[3] * t.ne[3].max(0) as usize)];
        if n > 0 {
            // SAFETY: as above; the bytes are as many as the elements take.
            let filled = unsafe { author.fill(t, i, seed, &mut bytes) };
            if !filled {
                let mut random = Random::new(seed, i);
                let special = special.filter(|&(_, only)| is_float(t.r#type) && only.is_none_or(|only| only == i));
                taken |= special.is_some();
                let exact = author.max_nmse() == 0.0;
                let mut number = |k: usize| {
                    let x = random.number();
                    special.map_or(x, |(special, _)| make_special(special, x, k, t.r#type, exact))
                };
                encode(t, n, &mut number, &mut bytes)?;
            }
        }
        contents.push(bytes);
    }
    Ok(taken.then_some(contents))
}

/// `x`, from -1 to 1, or a special number in its place; `k`: its place in the input.
fn make_special(special: Special, x: f64, k: usize, ty: ggml_type, exact: bool) -> f64 {
    // the first element and about every thirtieth
    let hit = k == 0 || (x * 4096.0).abs() as u64 % 31 == 7;
    match special {
        Special::Nan if hit => f64::NAN,
        Special::Inf if hit => f64::INFINITY.copysign(x),
        Special::Nan | Special::Inf => x,
        Special::Tiny => {
            let (least, normal) = match ty {
                GGML_TYPE_F16 => (2f64.powi(-24), 2f64.powi(-14)),
                GGML_TYPE_F64 => (f64::from_bits(1), f64::MIN_POSITIVE),
                _ => (2f64.powi(-149), 2f64.powi(-126)),
            };
            match (x * 4096.0).abs() as u64 % 4 {
                0 => 0f64.copysign(x),
                1 => least.copysign(x),
                _ => normal * x,
            }
        }
        // What rounds differently overflows differently: without room for rounding, farther up.
        Special::Huge => match (ty, exact) {
            (GGML_TYPE_F16, true) => x * 6e4,
            (GGML_TYPE_F16, false) => x * 256.0,
            (_, true) => x * 1e30,
            (_, false) => x * 1e9,
        },
    }
}

fn encode(t: &ggml_tensor, n: usize, number: &mut dyn FnMut(usize) -> f64, out: &mut [u8]) -> Result<(), String> {
    let mut put = |size: usize, f: &mut dyn FnMut(f64) -> [u8; 8]| {
        for (k, to) in out.chunks_exact_mut(size).enumerate() {
            to.copy_from_slice(&f(number(k))[..size]);
        }
    };
    let flag = |x: f64| u64::from(x >= 0.0).to_le_bytes();
    match t.r#type {
        GGML_TYPE_I8 => put(1, &mut { flag }),
        GGML_TYPE_I16 => put(2, &mut { flag }),
        GGML_TYPE_I32 => put(4, &mut { flag }),
        GGML_TYPE_I64 => put(8, &mut { flag }),
        GGML_TYPE_F64 => put(8, &mut |x| x.to_le_bytes()),
        ty => {
            let numbers: Vec<f32> = (0..n).map(|k| number(k) as f32).collect();
            let format = shape::format_of(ty).ok_or_else(|| format!("there is no format {}", ty.0))?;
            types::from_f32(format, &numbers, out).map_err(|e| {
                format!("input '{}' cannot be filled with numbers at random ({e}): give fill", shape::name(t))
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abi_5_special_numbers_are_there() {
        let all = |special, ty| -> Vec<f32> {
            let mut random = Random::new(1, 0);
            (0..500).map(|k| make_special(special, random.number(), k, ty, false) as f32).collect()
        };
        let nan = all(Special::Nan, GGML_TYPE_F32);
        let n = nan.iter().filter(|x| x.is_nan()).count();
        assert!(nan[0].is_nan() && (5..60).contains(&n), "{n}");
        let inf = all(Special::Inf, GGML_TYPE_F32);
        assert!(inf.contains(&f32::INFINITY) && inf.contains(&f32::NEG_INFINITY) && !inf.iter().any(|x| x.is_nan()));
        let tiny = all(Special::Tiny, GGML_TYPE_F32);
        assert!(tiny.iter().all(|x| x.abs() <= f32::MIN_POSITIVE));
        assert!(tiny.iter().any(|x| x.is_subnormal()) && tiny.iter().any(|x| x.to_bits() == (-0f32).to_bits()));
        assert!(all(Special::Huge, GGML_TYPE_F32).iter().any(|x| x.abs() > 1e8));
    }
}
