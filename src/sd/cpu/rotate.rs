//! Rotation of rows in groups and rounding to 8 bits, for one row. The order of operations is the specification's; additions of one
//! element depend on no other, so every vector width gives the same bits.

#[cfg(target_arch = "x86_64")]
use super::rotate_x86;
use super::Level;

/// One stage on quadruples that lie `S` apart.
#[inline(always)]
pub fn stage<const S: usize>(v: &mut [f32]) {
    for block in v.chunks_exact_mut(4 * S) {
        let (ab, cd) = block.split_at_mut(2 * S);
        let ((a, b), (c, d)) = (ab.split_at_mut(S), cd.split_at_mut(S));
        for i in 0..S {
            let (w, x, y, z) = (a[i], b[i], c[i], d[i]);
            a[i] = ((w + x) + y) - z;
            b[i] = ((w + x) - y) + z;
            c[i] = ((w - x) + y) + z;
            d[i] = ((-w + x) + y) + z;
        }
    }
}

/// What a rotation multiplies by: 1/sqrt(group), a power of 2.
#[inline(always)]
pub fn factor(group: usize) -> f32 {
    1.0 / (1u32 << (group.trailing_zeros() / 2)) as f32
}

/// The scale of a row and what its elements are multiplied by.
#[inline(always)]
pub fn scales(largest: f32) -> (f32, f32) {
    let scale = largest / 127.0;
    (scale, if scale == 0.0 { 0.0 } else { 1.0 / scale })
}

/// Elements of scratch memory to rotate a row of `k`; `None`: more than there can be.
pub fn room(k: usize) -> Option<usize> {
    k.checked_next_multiple_of(64)
}

/// Rotates `from`, whole groups, into `to`.
#[inline(always)]
pub fn rotate(from: &[f32], to: &mut [f32], group: usize) {
    let factor = factor(group);
    for (from, to) in from.chunks_exact(group).zip(to.chunks_exact_mut(group)) {
        for (t, f) in to.iter_mut().zip(from) {
            *t = f * factor;
        }
        if group >= 4 {
            stage::<1>(to);
        }
        if group >= 16 {
            stage::<4>(to);
        }
        if group >= 64 {
            stage::<16>(to);
        }
        if group >= 256 {
            stage::<64>(to);
        }
    }
}

const LANES: usize = 16;

/// The largest magnitude; NaN counts for nothing.
#[inline(always)]
pub fn largest(v: &[f32]) -> f32 {
    let mut most = [0f32; LANES];
    let mut chunks = v.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (m, x) in most.iter_mut().zip(chunk) {
            let x = x.abs();
            *m = if x > *m { x } else { *m };
        }
    }
    let rest = chunks.remainder().iter().map(|x| x.abs());
    rest.chain(most).fold(0f32, |m, x| if x > m { x } else { m })
}

/// Rounds `v` into `q`; the sum of the integers.
#[inline(always)]
pub fn round(v: &[f32], q: &mut [i8], inverse: f32) -> i32 {
    let mut sum = 0i32;
    for (q, x) in q.iter_mut().zip(v) {
        // a saturating conversion: NaN becomes 0
        let n = (x * inverse).round_ties_even().clamp(-127.0, 127.0) as i32;
        sum = sum.wrapping_add(n);
        *q = n as i8;
    }
    sum
}

fn row(from: &[f32], scratch: &mut [f32], q: &mut [i8], group: usize) -> (f32, i32) {
    let v = if group > 1 {
        let v = &mut scratch[..from.len()];
        rotate(from, v, group);
        &*v
    } else {
        from
    };
    let (scale, inverse) = scales(largest(v));
    (scale, round(v, q, inverse))
}

/// Rotates one row in groups (0 and 1: not at all) and rounds it: its scale, and the sum of the integers. `scratch` has [`room`] for the
/// row when it is rotated.
pub fn quantise(level: Level, from: &[f32], scratch: &mut [f32], q: &mut [i8], group: usize) -> (f32, i32) {
    match level {
        Level::Portable => row(from, scratch, q, group),
        #[cfg(target_arch = "aarch64")]
        Level::Dot => row(from, scratch, q, group),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has what the level names.
        Level::Avx2 | Level::AvxVnni => unsafe { rotate_x86::row256(from, scratch, q, group) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Vnni => unsafe { rotate_x86::row512(from, scratch, q, group) },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// One entry of the matrix: the product over base-4 digits of the entry of the 4 by 4 matrix, which is 1 for digits of 0.
    fn entry(mut i: usize, mut j: usize) -> f64 {
        let mut sign = 1.0;
        while i + j > 0 {
            sign *= if i % 4 + j % 4 == 3 { -1.0 } else { 1.0 };
            (i, j) = (i / 4, j / 4);
        }
        sign
    }

    #[test]
    fn sd_3_rotation_is_the_kronecker_power() {
        for group in [1usize, 4, 16, 64, 256] {
            let from: Vec<f32> = (0..group).map(|i| ((i * 37 + 11) % 101) as f32 - 50.0).collect();
            let mut to = vec![0f32; group];
            rotate(&from, &mut to, group);
            // integers times a power of 2: exact
            for (i, t) in to.iter().enumerate() {
                let want: f64 =
                    (0..group).map(|j| entry(i, j) * f64::from(from[j])).sum::<f64>() / (group as f64).sqrt();
                assert_eq!(f64::from(*t), want, "group {group}, element {i}");
            }
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        for k in [1usize, 3, 4, 16, 64, 252, 256, 260, 1024] {
            for group in [0usize, 1, 4, 16, 64, 256] {
                if group > 0 && k % group != 0 {
                    continue;
                }
                let mut from: Vec<f32> = (0..k).map(|i| ((i * 7919 + 13) % 1009) as f32 * 0.37 - 180.0).collect();
                for special in [0.0, f32::NAN, f32::INFINITY, 1e-44] {
                    from[k / 2] = special;
                    let mut first = None;
                    for level in Level::all() {
                        let (mut scratch, mut q) = (vec![0f32; room(k).unwrap()], vec![0i8; k]);
                        let (scale, sum) = quantise(level, &from, &mut scratch, &mut q, group);
                        assert_eq!(sum, q.iter().map(|&q| i32::from(q)).sum::<i32>());
                        let all = (scale.to_bits(), q);
                        assert_eq!(
                            first.get_or_insert(all.clone()),
                            &all,
                            "{level:?}, k {k}, group {group}, {special}"
                        );
                    }
                }
            }
        }
    }
}
