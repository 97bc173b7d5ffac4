//! f8_e4m3 and f8_e5m2, the 8-bit floats of weights from elsewhere: read only.

use crate::float::f16_to_f32;

/// Four exponent bits (bias 7), three mantissa bits, no infinities: up to 448, and one NaN of each sign.
pub const fn e4m3_to_f32(b: u8) -> f32 {
    let sign = ((b & 0x80) as u32) << 24;
    let (e, m) = ((b >> 3 & 15) as u32, (b & 7) as u32);
    let size = match (e, m) {
        (15, 7) => 0x7fc0_0000,
        (0, _) => (m as f32 * (1.0 / 512.0)).to_bits(),
        _ => ((e + 120) << 23) | (m << 20),
    };
    f32::from_bits(sign | size)
}

/// The upper half of an f16: five exponent bits, two mantissa bits, infinities and NaN.
pub const fn e5m2_to_f32(b: u8) -> f32 {
    f16_to_f32((b as u16) << 8)
}

macro_rules! decode {
    ($name:ident, $conv:path) => {
        pub(crate) fn $name(src: &[u8], dst: &mut [f32]) {
            const TABLE: [f32; 256] = {
                let mut t = [0.0; 256];
                let mut i = 0;
                while i < 256 {
                    t[i] = $conv(i as u8);
                    i += 1;
                }
                t
            };
            for (b, y) in src.iter().zip(dst) {
                *y = TABLE[*b as usize];
            }
        }
    };
}

decode!(decode_e4m3, e4m3_to_f32);
decode!(decode_e5m2, e5m2_to_f32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_bytes() {
        for (b, want) in
            [(0, 0.0), (1, 1.0 / 512.0), (7, 7.0 / 512.0), (8, 1.0 / 64.0), (0x38, 1.0), (0xbc, -1.5), (0x7e, 448.0)]
        {
            assert_eq!(e4m3_to_f32(b), want, "{b:#x}");
        }
        assert!(e4m3_to_f32(0x7f).is_nan() && e4m3_to_f32(0xff).is_nan() && e4m3_to_f32(0x80).to_bits() == 1 << 31);
        for (b, want) in [
            (1, 2f32.powi(-16)),
            (4, 2f32.powi(-14)),
            (0x3c, 1.0),
            (0xc2, -3.0),
            (0x7b, 57344.0),
            (0x7c, f32::INFINITY),
        ] {
            assert_eq!(e5m2_to_f32(b), want, "{b:#x}");
        }
        assert!(e5m2_to_f32(0x7d).is_nan());
    }
}
