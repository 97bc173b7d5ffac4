//! Activations as signed bytes with one scale per 32.

/// Rounds `x` (whole blocks of 32) to `q`, with `scale` per 32 and the sum of `q` per `group` (16 or 32).
///
/// Bytes lie between -127 and 127. A block of zeros, or of values too small to divide by, becomes zeros; one that holds
/// a value that is not finite gets such a scale.
#[inline(always)]
pub(crate) fn quantise(x: &[f32], group: usize, q: &mut [i8], scale: &mut [f32], sums: &mut [i32]) {
    for (b, (x, q)) in x.chunks_exact(32).zip(q.chunks_exact_mut(32)).enumerate() {
        // As integers, magnitudes keep their order, and the loop has no rule for NaN that hinders vectors.
        let most = x.iter().fold(0, |a, v| (v.to_bits() & 0x7fff_ffff).max(a));
        let most = f32::from_bits(most);
        let (d, inverse) = if most < 1e-35 { (0.0, 0.0) } else { (most / 127.0, 127.0 / most) };
        // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
        const MAGIC: f32 = 12_582_912.0;
        for j in 0..32 {
            q[j] = (x[j] * inverse + MAGIC).to_bits() as i8;
        }
        scale[b] = d;
        if group == 32 {
            sums[b] = q.iter().map(|&v| i32::from(v)).sum();
        } else {
            sums[2 * b] = q[..16].iter().map(|&v| i32::from(v)).sum();
            sums[2 * b + 1] = q[16..].iter().map(|&v| i32::from(v)).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_bytes() {
        let mut x = [0f32; 96];
        for (i, v) in x[..32].iter_mut().enumerate() {
            *v = (i as f32 - 16.0) * 0.25;
        }
        x[40] = 1e-38;
        x[70] = f32::MAX;
        x[71] = -f32::MAX;
        let (mut q, mut d, mut s) = ([0i8; 96], [0f32; 3], [0i32; 6]);
        quantise(&x, 16, &mut q, &mut d, &mut s);
        for i in 0..32 {
            assert!((f32::from(q[i]) * d[0] - x[i]).abs() <= d[0] * 0.5001);
        }
        assert_eq!(q[0], -127);
        assert_eq!(s[0], q[..16].iter().map(|&v| i32::from(v)).sum::<i32>());
        assert_eq!(d[1], 0.0);
        assert!(q[32..64].iter().all(|&v| v == 0));
        assert_eq!((q[70], q[71]), (127, -127));
        assert!(d[2].is_finite());
    }
}
