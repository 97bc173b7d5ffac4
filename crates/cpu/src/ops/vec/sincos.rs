//! Sine and cosine in f64, several at a time.
//!
//! Plain arithmetic on arrays, which every instruction set vectorises to the same bits. The error stays below 1e-12, far under
//! an f32's last bit.

use super::{dispatch, Kernel, Lanes};

/// Angles per step: one AVX-512 register.
const STEP: usize = 8;

/// Largest angle for which the reduction below is exact: quarter turns times [`QUARTER`]'s leading part must not round.
const LIMIT: f64 = 1.0e6;

/// A quarter turn: 33 leading bits, then the rest.
const QUARTER: f64 = 1.570_796_326_734_125_6;
const QUARTER_REST: f64 = 6.077_100_506_506_192e-11;

/// Added and taken away again, rounds to a whole number, which is in the low bits between the two.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// `(sin r - r) / r^3` and `(cos r - 1) / r^2` by powers of r^2, highest first: Taylor series to r^13 and r^14, of which the next
/// terms are below 1e-13 within an eighth of a turn.
const SIN: [f64; 6] =
    [1.0 / 6_227_020_800.0, -1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0];
const COS: [f64; 7] = [
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
    -1.0 / 2.0,
];

/// Sines and cosines of angles up to [`LIMIT`].
#[inline(always)]
fn reduced(x: &[f64; STEP]) -> ([f64; STEP], [f64; STEP]) {
    let (mut sin, mut cos) = ([0.0; STEP], [0.0; STEP]);
    for i in 0..STEP {
        let shifted = x[i] * std::f64::consts::FRAC_2_PI + WHOLE;
        let (turns, quadrant) = (shifted - WHOLE, shifted.to_bits());
        let r = (x[i] - turns * QUARTER) - turns * QUARTER_REST;
        let z = r * r;
        let s = r + r * z * SIN[1..].iter().fold(SIN[0], |s, c| s * z + c);
        let c = 1.0 + z * COS[1..].iter().fold(COS[0], |s, c| s * z + c);
        let odd = (quadrant & 1).wrapping_neg();
        let swap = (s.to_bits() ^ c.to_bits()) & odd;
        sin[i] = f64::from_bits((s.to_bits() ^ swap) ^ ((quadrant & 2) << 62));
        cos[i] = f64::from_bits((c.to_bits() ^ swap) ^ ((quadrant.wrapping_add(1) & 2) << 62));
    }
    (sin, cos)
}

struct SinCos {
    x: *const f64,
    sin: *mut f32,
    cos: *mut f32,
    n: usize,
    by_sin: f64,
    by_cos: f64,
}

impl Kernel for SinCos {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let mut i = 0;
        while i < self.n {
            let k = (self.n - i).min(STEP);
            let mut x = [0.0; STEP];
            // SAFETY: k angles are left: the caller's promise.
            unsafe {
                if k == STEP {
                    x = self.x.add(i).cast::<[f64; STEP]>().read_unaligned();
                } else {
                    std::ptr::copy_nonoverlapping(self.x.add(i), x.as_mut_ptr(), k);
                }
            }
            let (mut sin, mut cos) = reduced(&x);
            if !x.iter().fold(true, |all, x| all & (x.abs() <= LIMIT)) {
                for (j, x) in x.iter().enumerate() {
                    (sin[j], cos[j]) = x.sin_cos();
                }
            }
            let sin = sin.map(|v| (v * self.by_sin) as f32);
            let cos = cos.map(|v| (v * self.by_cos) as f32);
            // SAFETY: room for k values is left on both sides.
            unsafe {
                if k == STEP {
                    self.sin.add(i).cast::<[f32; STEP]>().write_unaligned(sin);
                    self.cos.add(i).cast::<[f32; STEP]>().write_unaligned(cos);
                } else {
                    std::ptr::copy_nonoverlapping(sin.as_ptr(), self.sin.add(i), k);
                    std::ptr::copy_nonoverlapping(cos.as_ptr(), self.cos.add(i), k);
                }
            }
            i += k;
        }
    }
}

/// `sin = by_sin * sin x`, `cos = by_cos * cos x`, rounded once to f32.
///
/// # Safety
/// `x` is good for `n` reads, `sin` and `cos` for `n` writes each; they do not overlap.
pub unsafe fn sin_cos(x: *const f64, n: usize, [by_sin, by_cos]: [f64; 2], sin: *mut f32, cos: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { dispatch(SinCos { x, sin, cos, n, by_sin, by_cos }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_exact_as_the_standard_library() {
        let mut x: Vec<f64> = (0..200_003).map(|i| f64::from(i - 100_000) * 0.003_141_7).collect();
        x.extend((0..2000).map(|i| f64::from(i) * 499.7 + f64::from(i % 7) * 1e-3));
        x.extend((-50..50).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_4));
        for part in x.chunks_exact(STEP) {
            let (s, c) = reduced(&std::array::from_fn(|i| part[i]));
            for i in 0..STEP {
                let (es, ec) = part[i].sin_cos();
                assert!(
                    (s[i] - es).abs() < 1e-12 && (c[i] - ec).abs() < 1e-12,
                    "{} {} {}",
                    part[i],
                    s[i] - es,
                    c[i] - ec
                );
            }
        }
    }

    #[test]
    fn far_angles_and_tails() {
        for n in [1, 7, 8, 13] {
            let x: Vec<f64> = (0..n).map(|i| f64::from(i) * 1.7e6 - 3.0e6).collect();
            let (mut s, mut c) = (vec![9.0f32; n as usize], vec![9.0f32; n as usize]);
            // SAFETY: all three hold n values.
            unsafe { sin_cos(x.as_ptr(), x.len(), [-2.0, 0.5], s.as_mut_ptr(), c.as_mut_ptr()) };
            for (i, x) in x.iter().enumerate() {
                assert!((f64::from(s[i]) + 2.0 * x.sin()).abs() < 2e-7);
                assert!((f64::from(c[i]) - 0.5 * x.cos()).abs() < 1e-7);
            }
        }
    }
}
