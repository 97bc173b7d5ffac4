//! Quantised rows as unsigned bytes with scales.

use crate::kernel::KC;
use ggml_oxide_types::{fp4, iq4, Type};

/// How a format maps to bytes: `value = scale * (q - offset) + min`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Elements that share a scale: 16 or 32.
    pub group: usize,
    pub offset: i32,
    /// Whether min is not always 0.
    pub min: bool,
}

impl Format {
    pub(crate) fn of(ty: Type) -> Option<Format> {
        let (group, offset, min) = match ty {
            Type::Q8_0 => (32, 128, false),
            Type::Q4_0 => (32, 8, false),
            Type::Q5_0 => (32, 16, false),
            Type::Q4_1 | Type::Q5_1 | Type::Q4_K | Type::Q5_K => (32, 0, true),
            Type::Q6_K => (16, 32, false),
            Type::Q3_K => (16, 4, false),
            Type::Q2_K => (16, 0, true),
            Type::IQ4_NL | Type::IQ4_XS => (32, 128, false),
            Type::MXFP4 => (32, 12, false),
            Type::NVFP4 => (16, 12, false),
            Type::TQ1_0 | Type::TQ2_0 | Type::Q1_0 | Type::Q2_0 => (32, 1, false),
            _ => return None,
        };
        Some(Format { group, offset, min })
    }
}

/// Up to KC elements of a row.
pub(crate) struct Row {
    pub q: [u8; KC],
    pub scale: [f32; KC / 16],
    pub min: [f32; KC / 16],
}

impl Default for Row {
    fn default() -> Self {
        Row { q: [0; KC], scale: [0.0; KC / 16], min: [0.0; KC / 16] }
    }
}

/// f16 to f32 without a branch on the machine: the exponent is rebased by a multiplication, which is exact.
#[inline(always)]
fn half(b: [u8; 2]) -> f32 {
    let h = u32::from(u16::from_le_bytes(b));
    let magnitude = (h & 0x7fff) << 13;
    let value = if magnitude >= 0x7c00 << 13 {
        f32::from_bits(magnitude | 0x7f80_0000)
    } else {
        f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)
    };
    f32::from_bits(value.to_bits() | (h & 0x8000) << 16)
}

/// Reads block `i` of N bytes.
#[inline(always)]
unsafe fn block<const N: usize>(src: *const u8, i: usize) -> [u8; N] {
    // SAFETY: the caller vouches for the block; bytes have no alignment.
    unsafe { src.add(i * N).cast::<[u8; N]>().read() }
}

#[inline(always)]
fn part<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut o = [0; N];
    o.copy_from_slice(&b[at..at + N]);
    o
}

/// Low nibbles to the first half, high nibbles to the second.
#[inline(always)]
fn nibbles<const N: usize>(qs: &[u8; N], out: &mut [u8]) {
    let (lo, hi) = out.split_at_mut(N);
    for j in 0..N {
        lo[j] = qs[j] & 15;
        hi[j] = qs[j] >> 4;
    }
}

/// Adds bit j of `qh` to element j as its bit 4.
#[inline(always)]
fn fifth_bits(qh: u32, out: &mut [u8]) {
    for (j, o) in out.iter_mut().enumerate().take(32) {
        *o |= ((qh >> j & 1) << 4) as u8;
    }
}

/// Scale and min numbers of 6 bits of group `j` of q4_K and q5_K.
#[inline(always)]
fn six_bits(s: &[u8; 12], j: usize) -> (u8, u8) {
    if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        (s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4)
    }
}

/// Decodes `kc` elements, a multiple of the block of `ty`, at most KC.
///
/// # Safety
/// `src` holds the blocks, one after the other.
#[inline(always)]
pub(crate) unsafe fn unpack(ty: Type, src: *const u8, kc: usize, out: &mut Row) {
    // SAFETY: block indices stay below kc / block size.
    unsafe {
        match ty {
            Type::Q8_0 => {
                for i in 0..kc / 32 {
                    let b = block::<34>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    for j in 0..32 {
                        out.q[i * 32 + j] = b[2 + j] ^ 0x80;
                    }
                }
            }
            Type::Q4_0 => {
                for i in 0..kc / 32 {
                    let b = block::<18>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    nibbles::<16>(&part(&b, 2), &mut out.q[i * 32..][..32]);
                }
            }
            Type::Q4_1 => {
                for i in 0..kc / 32 {
                    let b = block::<20>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    out.min[i] = half([b[2], b[3]]);
                    nibbles::<16>(&part(&b, 4), &mut out.q[i * 32..][..32]);
                }
            }
            Type::Q5_0 => {
                for i in 0..kc / 32 {
                    let b = block::<22>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    let q = &mut out.q[i * 32..][..32];
                    nibbles::<16>(&part(&b, 6), q);
                    fifth_bits(u32::from_le_bytes(part(&b, 2)), q);
                }
            }
            Type::Q5_1 => {
                for i in 0..kc / 32 {
                    let b = block::<24>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    out.min[i] = half([b[2], b[3]]);
                    let q = &mut out.q[i * 32..][..32];
                    nibbles::<16>(&part(&b, 8), q);
                    fifth_bits(u32::from_le_bytes(part(&b, 4)), q);
                }
            }
            Type::Q2_K => {
                for i in 0..kc / 256 {
                    unpack_q2(&block::<84>(src, i), out);
                }
            }
            Type::Q3_K => {
                for i in 0..kc / 256 {
                    unpack_q3(&block::<110>(src, i), out);
                }
            }
            Type::Q4_K => {
                for i in 0..kc / 256 {
                    let b = block::<144>(src, i);
                    scales_k(part(&b, 0), &part(&b, 4), out);
                    for c in 0..4 {
                        nibbles::<32>(&part(&b, 16 + 32 * c), &mut out.q[64 * c..][..64]);
                    }
                }
            }
            Type::Q5_K => {
                for i in 0..kc / 256 {
                    let b = block::<176>(src, i);
                    scales_k(part(&b, 0), &part(&b, 4), out);
                    let qh: [u8; 32] = part(&b, 16);
                    for c in 0..4 {
                        let q = &mut out.q[64 * c..][..64];
                        nibbles::<32>(&part(&b, 48 + 32 * c), q);
                        for l in 0..32 {
                            q[l] |= (qh[l] >> (2 * c) & 1) << 4;
                            q[32 + l] |= (qh[l] >> (2 * c + 1) & 1) << 4;
                        }
                    }
                }
            }
            Type::Q6_K => {
                for i in 0..kc / 256 {
                    unpack_q6(&block::<210>(src, i), out);
                }
            }
            Type::IQ4_NL => {
                for i in 0..kc / 32 {
                    let b = block::<18>(src, i);
                    out.scale[i] = half([b[0], b[1]]);
                    iq4_values::<16>(&part(&b, 2), &mut out.q[i * 32..][..32]);
                }
            }
            Type::IQ4_XS => {
                for i in 0..kc / 256 {
                    unpack_iq4_xs(&block::<136>(src, i), out);
                }
            }
            Type::MXFP4 => {
                for i in 0..kc / 32 {
                    let b = block::<17>(src, i);
                    out.scale[i] = fp4::half_power(b[0]);
                    fp4_values::<16>(&part(&b, 1), &mut out.q[i * 32..][..32]);
                }
            }
            Type::NVFP4 => {
                for i in 0..kc / 64 {
                    let b = block::<36>(src, i);
                    // All nibbles at once, then to their places: groups of 8 bytes alone would make no vectors.
                    let mut v = [0; 64];
                    fp4_values::<32>(&part(&b, 4), &mut v);
                    for g in 0..4 {
                        out.scale[4 * i + g] = fp4::half_ue4m3(b[g]);
                        let q = &mut out.q[64 * i + 16 * g..][..16];
                        q[..8].copy_from_slice(&v[8 * g..][..8]);
                        q[8..].copy_from_slice(&v[32 + 8 * g..][..8]);
                    }
                }
            }
            Type::TQ1_0 => {
                for i in 0..kc / 256 {
                    unpack_tq1(&block::<54>(src, i), out);
                }
            }
            Type::TQ2_0 => {
                for i in 0..kc / 256 {
                    let b = block::<66>(src, i);
                    out.scale[..8].fill(half([b[64], b[65]]));
                    for c in 0..8 {
                        let qs: [u8; 32] = part(&b, 32 * (c / 4));
                        for l in 0..32 {
                            out.q[32 * c + l] = qs[l] >> (2 * (c % 4)) & 3;
                        }
                    }
                }
            }
            Type::Q1_0 => {
                for i in 0..kc / 128 {
                    let b = block::<18>(src, i);
                    out.scale[4 * i..][..4].fill(half([b[0], b[1]]));
                    for j in 0..128 {
                        out.q[128 * i + j] = (b[2 + j / 8] >> (j % 8) & 1) << 1;
                    }
                }
            }
            Type::Q2_0 => {
                for i in 0..kc / 64 {
                    let b = block::<18>(src, i);
                    out.scale[2 * i..][..2].fill(half([b[0], b[1]]));
                    for (q, b) in out.q[64 * i..][..64].as_chunks_mut::<4>().0.iter_mut().zip(&b[2..]) {
                        // The byte in each of four, less what lies below its two bits.
                        *q = ((u32::from(*b) | u32::from(*b) << 6 | u32::from(*b) << 12 | u32::from(*b) << 18)
                            & 0x0303_0303)
                            .to_le_bytes();
                    }
                }
            }
            _ => {}
        }
    }
}

#[inline(always)]
fn scales_k(d: [u8; 4], s: &[u8; 12], out: &mut Row) {
    let (d, dmin) = (half([d[0], d[1]]), half([d[2], d[3]]));
    for g in 0..8 {
        let (sc, mn) = six_bits(s, g);
        out.scale[g] = d * f32::from(sc);
        out.min[g] = -dmin * f32::from(mn);
    }
}

/// Steps from one value of iq4_nl and iq4_xs to the next; the first of them, and 128, is 1.
const IQ4_STEPS: [u8; 15] = {
    let (mut steps, mut i) = ([0; 15], 0);
    while i < 15 {
        steps[i] = iq4::VALUES[i].abs_diff(iq4::VALUES[i + 1]);
        i += 1;
    }
    steps
};

/// As [`nibbles`], as values of iq4_nl and 128. Steps are added up: a table would keep the loop from becoming vectors.
#[inline(always)]
fn iq4_values<const N: usize>(qs: &[u8; N], out: &mut [u8]) {
    nibbles(qs, out);
    for q in out {
        let mut v = 1;
        for (i, &step) in IQ4_STEPS.iter().enumerate() {
            v += if usize::from(*q) > i { step } else { 0 };
        }
        *q = v;
    }
}

/// As [`nibbles`], as doubled values of 4-bit floats (0, 1, 2, 3, 4, 6, 8, 12, and with signs) and 12.
#[inline(always)]
fn fp4_values<const N: usize>(qs: &[u8; N], out: &mut [u8]) {
    nibbles(qs, out);
    for q in out {
        let m = *q & 7;
        let v = m + (m.max(4) - 4) + if m == 7 { 2 } else { 0 };
        *q = if *q > 7 { 12 - v } else { 12 + v };
    }
}

#[inline(always)]
fn unpack_iq4_xs(b: &[u8; 136], out: &mut Row) {
    let (d, high) = (half([b[0], b[1]]), u16::from_le_bytes([b[2], b[3]]));
    for g in 0..8 {
        let low = b[4 + g / 2] >> (4 * (g % 2)) & 15;
        out.scale[g] = d * f32::from((low | ((high >> (2 * g) & 3) as u8) << 4) as i8 - 32);
        iq4_values::<16>(&part(b, 8 + 16 * g), &mut out.q[32 * g..][..32]);
    }
}

/// Five digits of base 3 in each of 48 bytes (32, then 16, at a time), four in each of the last four: see the formats' crate.
#[inline(always)]
fn unpack_tq1(b: &[u8; 54], out: &mut Row) {
    out.scale[..8].fill(half([b[52], b[53]]));
    for (at, width, first, digits) in [(0, 32, 0, 5), (32, 16, 160, 5), (48, 4, 240, 4)] {
        let mut power = 1u8;
        for n in 0..digits {
            for m in 0..width {
                out.q[first + width * n + m] = ((u16::from(b[at + m].wrapping_mul(power)) * 3) >> 8) as u8;
            }
            power = power.wrapping_mul(3);
        }
    }
}

#[inline(always)]
fn unpack_q2(b: &[u8; 84], out: &mut Row) {
    let (d, dmin) = (half([b[80], b[81]]), half([b[82], b[83]]));
    for g in 0..16 {
        out.scale[g] = d * f32::from(b[g] & 15);
        out.min[g] = -dmin * f32::from(b[g] >> 4);
    }
    for h in 0..2 {
        let qs: [u8; 32] = part(b, 16 + 32 * h);
        for s in 0..4 {
            let q = &mut out.q[128 * h + 32 * s..][..32];
            for l in 0..32 {
                q[l] = qs[l] >> (2 * s) & 3;
            }
        }
    }
}

#[inline(always)]
fn unpack_q3(b: &[u8; 110], out: &mut Row) {
    let hmask: [u8; 32] = part(b, 0);
    let sc: [u8; 12] = part(b, 96);
    let d = half([b[108], b[109]]);
    for g in 0..16 {
        let lo = sc[g % 8] >> (g / 8 * 4) & 15;
        let hi = sc[8 + g % 4] >> (g / 4 * 2) & 3;
        out.scale[g] = d * (f32::from(lo | hi << 4) - 32.0);
    }
    for h in 0..2 {
        let qs: [u8; 32] = part(b, 32 + 32 * h);
        for s in 0..4 {
            let q = &mut out.q[128 * h + 32 * s..][..32];
            for l in 0..32 {
                q[l] = qs[l] >> (2 * s) & 3 | (hmask[l] >> (4 * h + s) & 1) << 2;
            }
        }
    }
}

#[inline(always)]
fn unpack_q6(b: &[u8; 210], out: &mut Row) {
    let d = half([b[208], b[209]]);
    for g in 0..16 {
        out.scale[g] = d * f32::from(b[192 + g] as i8);
    }
    for h in 0..2 {
        let ql: [u8; 64] = part(b, 64 * h);
        let qh: [u8; 32] = part(b, 128 + 32 * h);
        let q = &mut out.q[128 * h..][..128];
        for l in 0..32 {
            q[l] = ql[l] & 15 | (qh[l] & 3) << 4;
            q[32 + l] = ql[32 + l] & 15 | (qh[l] >> 2 & 3) << 4;
            q[64 + l] = ql[l] >> 4 | (qh[l] >> 4 & 3) << 4;
            q[96 + l] = ql[32 + l] >> 4 | (qh[l] >> 6) << 4;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_and_scales_give_the_decoded_values() {
        let all = Type::ALL.iter().copied();
        let mut seen = 0;
        for ty in all.filter(|&ty| Format::of(ty).is_some()) {
            let f = Format::of(ty).unwrap();
            for seed in 0..20u32 {
                let blocks = 256 / ty.block_size();
                let mut bytes: Vec<u8> = (0..(blocks * ty.block_bytes()) as u32)
                    .map(|i| ((i ^ seed << 20).wrapping_mul(2_654_435_761) >> 13) as u8)
                    .collect();
                // Scales that are not finite have no value to compare.
                for v in &mut bytes {
                    if *v & 0x7c == 0x7c {
                        *v &= 0xbf;
                    }
                }
                let mut want = vec![0f32; 256];
                ggml_oxide_types::to_f32(ty, &bytes, &mut want).unwrap();
                let mut row = Row::default();
                // SAFETY: bytes holds 256 elements.
                unsafe { unpack(ty, bytes.as_ptr(), 256, &mut row) };
                for (i, &w) in want.iter().enumerate() {
                    let g = i / f.group;
                    let min = if f.min { row.min[g] } else { 0.0 };
                    let v = row.scale[g] * (i32::from(row.q[i]) - f.offset) as f32 + min;
                    let tolerance = 1e-6 * (row.scale[g].abs() * 128.0 + min.abs());
                    assert!((v - w).abs() <= tolerance, "{ty:?} element {i}: {v}, not {w}");
                }
            }
            seen += 1;
        }
        assert_eq!(seen, 18);
    }
}
