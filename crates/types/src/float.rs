//! Plain element formats: scalar conversions, portable row conversions and dot products.

/// f32 to f16, nearest even. Overflow gives infinity; every NaN gives the one quiet NaN with the sign kept.
pub const fn f32_to_f16(x: f32) -> u16 {
    let w = x.to_bits();
    let sign = ((w >> 16) & 0x8000) as u16;
    let a = w & 0x7fff_ffff;
    if a > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65520 is the first value that rounds to infinity.
    if a >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if a >= 0x3880_0000 {
        // Normal: rebias the exponent from 127 to 15 and round off 13 bits; a carry walks into the exponent.
        let r = a - 0x3800_0000 + 0xfff + ((a >> 13) & 1);
        return sign | (r >> 13) as u16;
    }
    if a < 0x3300_0000 {
        return sign;
    }
    // Subnormal: the mantissa with its hidden bit, shifted to units of 2^-24.
    let m = (a & 0x007f_ffff) | 0x0080_0000;
    let shift = 126 - (a >> 23);
    let half = 1u32 << (shift - 1);
    let q = m >> shift;
    let rest = m & ((1 << shift) - 1);
    let up = (rest > half || (rest == half && q & 1 == 1)) as u32;
    sign | (q + up) as u16
}

/// f16 to f32, exact. A signalling NaN becomes quiet.
pub const fn f16_to_f32(h: u16) -> f32 {
    let sign = ((h & 0x8000) as u32) << 16;
    let e = ((h >> 10) & 0x1f) as u32;
    let m = (h & 0x3ff) as u32;
    let bits = match e {
        0 if m == 0 => 0,
        0 => {
            let top = 31 - m.leading_zeros();
            ((103 + top) << 23) | ((m << (23 - top)) & 0x007f_ffff)
        }
        31 if m == 0 => 0x7f80_0000,
        31 => 0x7fc0_0000 | (m << 13),
        _ => ((e + 112) << 23) | (m << 13),
    };
    f32::from_bits(sign | bits)
}

/// f32 to bf16, nearest even; a NaN keeps its upper bits and becomes quiet.
pub const fn f32_to_bf16(x: f32) -> u16 {
    let w = x.to_bits();
    if w & 0x7fff_ffff > 0x7f80_0000 {
        return ((w >> 16) | 64) as u16;
    }
    ((w + 0x7fff + ((w >> 16) & 1)) >> 16) as u16
}

/// bf16 to f32, exact, bits kept.
pub const fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits((h as u32) << 16)
}

/// The f16 field for a scale or minimum, held inside the finite range: a block of finite values never has an infinite
/// scale.
#[inline(always)]
pub(crate) fn scale_f16(d: f32) -> [u8; 2] {
    f32_to_f16(crate::clean::limit(d)).to_ne_bytes()
}

/// The f32 value of an f16 field.
#[inline(always)]
pub(crate) fn half(b: [u8; 2]) -> f32 {
    f16_to_f32(u16::from_ne_bytes(b))
}

macro_rules! decode_plain {
    ($name:ident, $t:ty, $n:literal, $conv:expr) => {
        pub(crate) fn $name(src: &[u8], dst: &mut [f32]) {
            let conv = $conv;
            for (s, d) in src.as_chunks::<$n>().0.iter().zip(dst) {
                *d = conv(<$t>::from_ne_bytes(*s));
            }
        }
    };
}

macro_rules! encode_plain {
    ($name:ident, $n:literal, $conv:expr) => {
        pub(crate) fn $name(src: &[f32], dst: &mut [u8]) {
            let conv = $conv;
            for (s, d) in src.iter().zip(dst.as_chunks_mut::<$n>().0) {
                *d = conv(*s).to_ne_bytes();
            }
        }
    };
}

decode_plain!(decode_f32, f32, 4, |x: f32| x);
decode_plain!(decode_f16, u16, 2, f16_to_f32);
decode_plain!(decode_bf16, u16, 2, bf16_to_f32);
decode_plain!(decode_f64, f64, 8, |x: f64| x as f32);
decode_plain!(decode_i8, i8, 1, |x: i8| x as f32);
decode_plain!(decode_i16, i16, 2, |x: i16| x as f32);
decode_plain!(decode_i32, i32, 4, |x: i32| x as f32);
decode_plain!(decode_i64, i64, 8, |x: i64| x as f32);

encode_plain!(encode_f32, 4, |x: f32| x);
encode_plain!(encode_f16, 2, f32_to_f16);
encode_plain!(encode_bf16, 2, f32_to_bf16);
encode_plain!(encode_f64, 8, |x: f32| x as f64);
// Rust's conversions truncate towards zero as C's do, and saturate (NaN gives 0) where C's are undefined.
encode_plain!(encode_i8, 1, |x: f32| x as i8);
encode_plain!(encode_i16, 2, |x: f32| x as i16);
encode_plain!(encode_i32, 4, |x: f32| x as i32);
encode_plain!(encode_i64, 8, |x: f32| x as i64);

/// Lanes of the portable float dot products: enough independent sums for the vector units to work on.
const LANES: usize = 16;

macro_rules! dot_plain {
    ($name:ident, $t:ty, $n:literal, $conv:expr) => {
        pub(crate) fn $name(x: &[u8], y: &[u8]) -> f32 {
            let conv = $conv;
            let (x, y) = (x.as_chunks::<$n>().0, y.as_chunks::<$n>().0);
            let (xc, xr) = x.as_chunks::<LANES>();
            let (yc, yr) = y.as_chunks::<LANES>();
            let mut acc = [0.0f32; LANES];
            for (a, b) in xc.iter().zip(yc) {
                for l in 0..LANES {
                    acc[l] += conv(<$t>::from_ne_bytes(a[l])) * conv(<$t>::from_ne_bytes(b[l]));
                }
            }
            let mut tail = 0.0f32;
            for (a, b) in xr.iter().zip(yr) {
                tail += conv(<$t>::from_ne_bytes(*a)) * conv(<$t>::from_ne_bytes(*b));
            }
            sum_lanes(acc) + tail
        }
    };
}

fn sum_lanes(mut acc: [f32; LANES]) -> f32 {
    let mut w = LANES / 2;
    while w > 0 {
        for l in 0..w {
            acc[l] += acc[l + w];
        }
        w /= 2;
    }
    acc[0]
}

dot_plain!(dot_f32, f32, 4, |x: f32| x);
dot_plain!(dot_f16, u16, 2, f16_to_f32);
dot_plain!(dot_bf16, u16, 2, bf16_to_f32);
