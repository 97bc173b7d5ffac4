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

#[inline(always)]
fn squares<const FUSED: bool>(x: &[f32]) -> f64 {
    let add = |acc: &mut [f32; LANES], x: &[f32]| {
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc = fma::<FUSED>(x, x, *acc);
        }
    };
    let mut total = 0f64;
    for block in x.chunks(BLOCK) {
        let mut acc = [[0f32; LANES]; 4];
        let mut fours = block.chunks_exact(4 * LANES);
        for four in &mut fours {
            for (k, acc) in acc.iter_mut().enumerate() {
                add(acc, &four[k * LANES..][..LANES]);
            }
        }
        let mut ones = fours.remainder().chunks_exact(LANES);
        for (one, acc) in (&mut ones).zip(&mut acc) {
            add(acc, one);
        }
        let mut last = [0f32; LANES];
        last[..ones.remainder().len()].copy_from_slice(ones.remainder());
        add(&mut acc[3], &last);
        let mut tree: [f64; LANES] =
            std::array::from_fn(|i| f64::from((acc[0][i] + acc[1][i]) + (acc[2][i] + acc[3][i])));
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                tree[i] += tree[i + half];
            }
            half /= 2;
        }
        total += tree[0];
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn squares_avx2(x: &[f32]) -> f64 {
    squares::<true>(x)
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
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
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
