//! Numbers of the library's own nodes, by the same steps in the same order: a fusion that computes with these has the bits of the nodes
//! that it replaces (EXT-49). `tests/c/sd_fusion_i8.c` holds both to each other.

const LANES: usize = 16;
const BLOCK: usize = 1024;

/// `a * b + c`, rounded once where the library's nodes round once.
#[inline(always)]
fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    // comparisons and not `clamp`: NaN has to pass
    let x = if -110.0 > x { -110.0 } else { x };
    let x = if 90.0 < x { 90.0 } else { x };
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = fma::<FUSED>(-n, 0.693_359_4, x);
    let r = fma::<FUSED>(-n, -2.121_944_4e-4, r);
    let mut p = 1.979_022_3e-4;
    for c in [1.394_478_4e-3, 8.333_498e-3, 4.166_629e-2, 0.166_666_66, 0.5] {
        p = fma::<FUSED>(p, r, c);
    }
    let p = fma::<FUSED>(p, r * r, r) + 1.0;
    // the integer is in the low bits of a sum with 1.5 * 2^23, where a conversion would have to look for NaN; with that any will do
    let n = (n + 12_582_912.0).to_bits().cast_signed().wrapping_sub(0x4b40_0000);
    // two steps: one power of two does not reach from the largest to the smallest result
    let power = |e: i32| f32::from_bits(e.wrapping_add(127).cast_unsigned() << 23);
    p * power(n >> 1) * power(n.wrapping_sub(n >> 1))
}

#[inline(always)]
fn swiglu_row<const FUSED: bool>(gate: &[f32], up: &[f32], to: &mut [f32]) {
    for ((to, &x), &y) in to.iter_mut().zip(gate).zip(up) {
        // minus infinity over infinity would be NaN
        let top = if -f32::MAX > x { -f32::MAX } else { x };
        *to = top / (1.0 + exp::<FUSED>(-x)) * y;
    }
}

/// Four accumulators of 16 numbers.
type Sums = [[f32; LANES]; 4];

#[inline(always)]
fn add_squares<const FUSED: bool>(acc: &mut [f32; LANES], x: &[f32]) {
    for (acc, &x) in acc.iter_mut().zip(x) {
        *acc = fma::<FUSED>(x, x, *acc);
    }
}

/// Adds what is left of a block when whole fours of 16 numbers are added, and all sums.
#[inline(always)]
fn end_of_block<const FUSED: bool>(mut acc: Sums, rest: &[f32]) -> f64 {
    let mut ones = rest.chunks_exact(LANES);
    for (one, acc) in (&mut ones).zip(&mut acc) {
        add_squares::<FUSED>(acc, one);
    }
    let mut last = [0f32; LANES];
    last[..ones.remainder().len()].copy_from_slice(ones.remainder());
    add_squares::<FUSED>(&mut acc[3], &last);
    let mut tree: [f64; LANES] = std::array::from_fn(|i| f64::from((acc[0][i] + acc[1][i]) + (acc[2][i] + acc[3][i])));
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            tree[i] += tree[i + half];
        }
        half /= 2;
    }
    tree[0]
}

fn squares<const FUSED: bool>(x: &[f32]) -> f64 {
    let mut total = 0f64;
    for block in x.chunks(BLOCK) {
        let mut acc: Sums = [[0f32; LANES]; 4];
        let mut fours = block.chunks_exact(4 * LANES);
        for four in &mut fours {
            for (k, acc) in acc.iter_mut().enumerate() {
                add_squares::<FUSED>(acc, &four[k * LANES..][..LANES]);
            }
        }
        total += end_of_block::<FUSED>(acc, fours.remainder());
    }
    total
}

/// The same: compilers keep the accumulators in memory.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn squares_avx2(x: &[f32]) -> f64 {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps};
    let mut total = 0f64;
    for block in x.chunks(BLOCK) {
        let mut registers = [_mm256_setzero_ps(); 8];
        let mut fours = block.chunks_exact(4 * LANES);
        for four in &mut fours {
            for (i, acc) in registers.iter_mut().enumerate() {
                // SAFETY: eight numbers of the 64.
                let x = unsafe { _mm256_loadu_ps(four.as_ptr().add(8 * i)) };
                *acc = _mm256_fmadd_ps(x, x, *acc);
            }
        }
        let mut acc: Sums = [[0f32; LANES]; 4];
        for (to, from) in acc.as_flattened_mut().chunks_exact_mut(8).zip(registers) {
            // SAFETY: eight numbers.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), from) };
        }
        total += end_of_block::<true>(acc, fours.remainder());
    }
    total
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn swiglu_avx2(gate: &[f32], up: &[f32], to: &mut [f32]) {
    swiglu_row::<true>(gate, up, to);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
fn swiglu_avx512(gate: &[f32], up: &[f32], to: &mut [f32]) {
    swiglu_row::<true>(gate, up, to);
}

#[inline(always)]
fn scale_row(row: &mut [f32], factor: f32, weight: &[f32]) {
    for (x, w) in row.iter_mut().zip(weight) {
        *x = (*x * factor) * w;
    }
}

#[inline(always)]
fn modulate_row(row: &mut [f32], scale: &[f32], shift: Option<&[f32]>) {
    match shift {
        None => row.iter_mut().zip(scale).for_each(|(x, s)| *x += *x * s),
        Some(shift) => {
            for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *x = (*x + *x * scale) + shift;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn scale_avx2(row: &mut [f32], factor: f32, weight: &[f32]) {
    scale_row(row, factor, weight);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn modulate_avx2(row: &mut [f32], scale: &[f32], shift: Option<&[f32]>) {
    modulate_row(row, scale, shift);
}

/// Each element times the row's factor, times the channel's weight.
pub fn scale(row: &mut [f32], factor: f32, weight: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { scale_avx2(row, factor, weight) };
    }
    scale_row(row, factor, weight);
}

/// `x + x * scale + shift`, as `sd.modulate.v1` computes it.
pub fn modulate(row: &mut [f32], scale: &[f32], shift: Option<&[f32]>) {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { modulate_avx2(row, scale, shift) };
    }
    modulate_row(row, scale, shift);
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
}

#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    // the library's nodes ask for all three
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// `gate / (1 + e^-gate) * up`, as GLU computes it.
pub fn swiglu(gate: &[f32], up: &[f32], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the processor has what the functions are compiled for.
        return unsafe {
            match has_avx512() {
                true => swiglu_avx512(gate, up, to),
                false => swiglu_avx2(gate, up, to),
            }
        };
    }
    swiglu_row::<{ cfg!(target_arch = "aarch64") }>(gate, up, to);
}

/// What RMS_NORM multiplies a row with.
pub fn rms_factor(x: &[f32], eps: f32) -> f32 {
    let sum = {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        let sum = if has_fma() { unsafe { squares_avx2(x) } } else { squares::<false>(x) };
        #[cfg(not(target_arch = "x86_64"))]
        let sum = squares::<{ cfg!(target_arch = "aarch64") }>(x);
        sum
    };
    (1.0 / (sum / x.len() as f64 + f64::from(eps)).sqrt()) as f32
}
