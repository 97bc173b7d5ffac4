//! Logical arrays and element values.

use crate::api::*;
use ggml_oxide_abi::*;

/// An array by logical index: dimension 0 fastest, no gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Arr {
    /// Elements in each dimension.
    pub ne: [usize; 4],
    /// The elements.
    pub v: Vec<f64>,
}

impl Arr {
    /// An array whose elements are `f` of their index.
    pub fn from_fn(ne: [usize; 4], mut f: impl FnMut([usize; 4]) -> f64) -> Arr {
        let v = each(ne).map(&mut f).collect();
        Arr { ne, v }
    }

    /// The element at an index inside the array.
    pub fn at(&self, i: [usize; 4]) -> f64 {
        assert!((0..4).all(|d| i[d] < self.ne[d]), "index {i:?} is outside {:?}", self.ne);
        self.v[((i[3] * self.ne[2] + i[2]) * self.ne[1] + i[1]) * self.ne[0] + i[0]]
    }

    /// The element at an index that goes around in each dimension, as a repeated array has it.
    pub fn rep(&self, i: [usize; 4]) -> f64 {
        self.at(std::array::from_fn(|d| i[d] % self.ne[d]))
    }

    /// The element at a signed index, or `outside`.
    pub fn or(&self, i: [i64; 4], outside: f64) -> f64 {
        if (0..4).all(|d| (0..self.ne[d] as i64).contains(&i[d])) {
            self.at(i.map(|i| i as usize))
        } else {
            outside
        }
    }

    /// An array of the same shape with `f` of each element.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Arr {
        Arr { ne: self.ne, v: self.v.iter().map(|&x| f(x)).collect() }
    }

    /// A row: dimension 0 at the given higher indices.
    pub fn row(&self, [i1, i2, i3]: [usize; 3]) -> &[f64] {
        let start = ((i3 * self.ne[2] + i2) * self.ne[1] + i1) * self.ne[0];
        &self.v[start..start + self.ne[0]]
    }

    /// An array of the same shape, each row made from the source's row and its higher indices.
    pub fn map_rows(&self, mut f: impl FnMut(&[f64], [usize; 3]) -> Vec<f64>) -> Arr {
        let mut v = Vec::with_capacity(self.v.len());
        let mut ne = self.ne;
        for [_, i1, i2, i3] in each([1, ne[1], ne[2], ne[3]]) {
            let row = f(self.row([i1, i2, i3]), [i1, i2, i3]);
            ne[0] = row.len();
            v.extend(row);
        }
        Arr { ne, v }
    }
}

/// All indices of a shape, dimension 0 fastest.
pub fn each(ne: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    (0..ne[3]).flat_map(move |d| {
        (0..ne[2]).flat_map(move |c| (0..ne[1]).flat_map(move |b| (0..ne[0]).map(move |a| [a, b, c, d])))
    })
}

/// Repeatable numbers.
pub struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Below `n`, which is above 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n
    }
}

/// What the elements of a source are.
#[derive(Clone, Debug)]
pub enum Fill {
    /// Evenly spread between two numbers.
    Range(f64, f64),
    /// Whole numbers from the first to below the second.
    Whole(i64, i64),
    /// The numbers of [`SPECIAL`] in turn, mixed with ordinary ones.
    Special,
    /// As `Special`, without infinities and NaN, and none above 10^4 in size.
    Finite,
    /// These numbers in turn.
    List(Vec<f64>),
}

/// Numbers at which element functions go wrong.
pub const SPECIAL: [f64; 64] = [
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-45,
    -1e-45,
    1e-40,
    -1e-40,
    1.2e-38,
    -1.2e-38,
    5.9e-8,
    -5.9e-8,
    6.1e-5,
    -6.1e-5,
    65504.0,
    -65504.0,
    65519.0,
    -65519.0,
    1e5,
    -1e5,
    3.3e38,
    -3.3e38,
    1e30,
    -1e30,
    1e-30,
    -1e-30,
    -13.0,
    -13.5,
    -12.9,
    -10.5,
    13.0,
    -7.5,
    -5.1,
    -3.0,
    3.0,
    5.1,
    10.1,
    20.0,
    20.1,
    -20.0,
    -50.0,
    50.0,
    87.0,
    88.6,
    88.8,
    -87.0,
    -87.5,
    -88.8,
    -103.0,
    -104.5,
    100.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -1.5,
    -2.5,
    1.0,
    -1.0,
    -0.7518,
    0.3333333,
    255.5,
    -1000.25,
];

impl Fill {
    /// Element number `i`.
    pub fn value(&self, i: usize, rng: &mut Rng) -> f64 {
        match self {
            Fill::Range(lo, hi) => lo + (hi - lo) * rng.unit(),
            Fill::Whole(lo, hi) => (lo + rng.below((hi - lo).max(1) as usize) as i64) as f64,
            Fill::Special if i % 67 == 66 => 4.0 * rng.unit() - 2.0,
            Fill::Special => SPECIAL[i % 67 % SPECIAL.len()],
            Fill::Finite => {
                let x = SPECIAL[i % SPECIAL.len()];
                if x.is_finite() && x.abs() <= 1e4 {
                    x
                } else {
                    4.0 * rng.unit() - 2.0
                }
            }
            Fill::List(list) => list[i % list.len()],
        }
    }
}

/// IEEE half precision as a number.
pub fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (e, m) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match e {
        0 => m * 2f64.powi(-24),
        31 if m == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + m) * 2f64.powi(e - 25),
    }
}

/// The 8-bit floats beyond upstream's formats.
pub const F8_E4M3: ggml_type = GGML_TYPE_F8_E4M3;
/// See [`F8_E4M3`].
pub const F8_E5M2: ggml_type = GGML_TYPE_F8_E5M2;

/// An 8-bit float as a number.
pub fn eight(ty: ggml_type, bits: u8) -> f64 {
    let sign = if bits >> 7 == 1 { -1.0 } else { 1.0 };
    let (digits, bias) = if ty == F8_E4M3 { (3, 7) } else { (2, 15) };
    let (e, m) = (i32::from(bits & 127) >> digits, f64::from(bits & ((1 << digits) - 1)));
    let one = f64::from(1 << digits);
    sign * match e {
        0 => m / one * 2f64.powi(1 - bias),
        15 if ty == F8_E4M3 && m == 7.0 => f64::NAN,
        31 if m == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + m / one) * 2f64.powi(e - bias),
    }
}

/// Elements that share a block, and bytes of a block.
pub fn block(ty: ggml_type) -> (usize, usize) {
    (ggml_blck_size(ty) as usize, ggml_type_size(ty))
}

/// Decodes whole blocks: plain formats by their definition, block formats by the format's own decoder.
///
/// # Safety
/// `p` points to `n` elements.
pub unsafe fn decode(ty: ggml_type, p: *const u8, n: usize) -> Vec<f64> {
    // SAFETY: the caller's promise.
    let plain = |i: usize| unsafe {
        match ty {
            GGML_TYPE_F32 => f64::from(p.cast::<f32>().add(i).read_unaligned()),
            GGML_TYPE_F16 => half(p.cast::<u16>().add(i).read_unaligned()),
            GGML_TYPE_BF16 => f64::from(f32::from_bits(u32::from(p.cast::<u16>().add(i).read_unaligned()) << 16)),
            F8_E4M3 | F8_E5M2 => eight(ty, p.add(i).read()),
            GGML_TYPE_F64 => p.cast::<f64>().add(i).read_unaligned(),
            GGML_TYPE_I8 => f64::from(p.cast::<i8>().add(i).read()),
            GGML_TYPE_I16 => f64::from(p.cast::<i16>().add(i).read_unaligned()),
            GGML_TYPE_I32 => f64::from(p.cast::<i32>().add(i).read_unaligned()),
            GGML_TYPE_I64 => p.cast::<i64>().add(i).read_unaligned() as f64,
            _ => panic!("no plain format {ty:?}"),
        }
    };
    if block(ty).0 == 1 {
        return (0..n).map(plain).collect();
    }
    let mut out = vec![0f32; n];
    // SAFETY: the table lives for ever; both places hold `n` elements.
    unsafe {
        let to_float = (*ggml_get_type_traits(ty)).to_float.expect("a block format has a decoder");
        to_float(p.cast(), out.as_mut_ptr(), n as i64);
    }
    out.into_iter().map(f64::from).collect()
}

/// Encodes whole blocks by the format's own encoder; it is tested by itself where copies are.
///
/// # Safety
/// `p` has room for `x`.
pub unsafe fn encode(ty: ggml_type, x: &[f64], p: *mut u8) {
    let f: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    // SAFETY: the caller's promise.
    unsafe {
        for (i, (&x, &x32)) in x.iter().zip(&f).enumerate() {
            match ty {
                GGML_TYPE_F32 => p.cast::<f32>().add(i).write_unaligned(x32),
                GGML_TYPE_F64 => p.cast::<f64>().add(i).write_unaligned(x),
                GGML_TYPE_I8 => p.cast::<i8>().add(i).write(x as i8),
                GGML_TYPE_I16 => p.cast::<i16>().add(i).write_unaligned(x as i16),
                GGML_TYPE_I32 => p.cast::<i32>().add(i).write_unaligned(x as i32),
                GGML_TYPE_I64 => p.cast::<i64>().add(i).write_unaligned(x as i64),
                F8_E4M3 | F8_E5M2 => {
                    let far = |b: &u8| (eight(ty, *b) - x).abs();
                    let finite = (0..=255).filter(|&b| eight(ty, b).is_finite());
                    p.add(i).write(finite.min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0));
                }
                _ => {
                    let n = f.len() as i64;
                    match (*ggml_get_type_traits(ty)).from_float_ref {
                        Some(from_float) => from_float(f.as_ptr(), p.cast(), n),
                        None => {
                            let ones = vec![1.0f32; f.len()];
                            assert_ne!(ggml_quantize_chunk(ty, f.as_ptr(), p.cast(), 0, 1, n, ones.as_ptr()), 0);
                        }
                    }
                    return;
                }
            }
        }
    }
}

/// The numbers that remain of `arr` when it is stored in format `ty`. Rows are whole blocks.
pub fn stored(ty: ggml_type, arr: &Arr) -> Arr {
    let (unit, size) = block(ty);
    let mut bytes = vec![0u8; arr.v.len() / unit * size];
    let mut v = Vec::with_capacity(arr.v.len());
    for (x, b) in arr.v.chunks(unit).zip(bytes.chunks_mut(size)) {
        // SAFETY: room for one block.
        unsafe {
            encode(ty, x, b.as_mut_ptr());
            v.extend(decode(ty, b.as_ptr(), unit));
        }
    }
    Arr { ne: arr.ne, v }
}

/// Unit roundoff, largest number and least positive number of a float format; zeros for others.
pub fn precision(ty: ggml_type) -> (f64, f64, f64) {
    match ty {
        GGML_TYPE_F32 => (2f64.powi(-24), f64::from(f32::MAX), 2f64.powi(-149)),
        GGML_TYPE_F16 => (2f64.powi(-11), 65504.0, 2f64.powi(-24)),
        GGML_TYPE_BF16 => (2f64.powi(-8), 3.389_531_389_251_535_5e38, 2f64.powi(-133)),
        _ => (0.0, f64::INFINITY, 0.0),
    }
}
