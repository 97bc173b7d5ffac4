//! Rotation and rounding with the vectors of x86.

use super::rotate;
use std::arch::x86_64::*;

/// One stage on quadruples in four registers: the specification's order, where `-a + b` is `-(a - b)`.
macro_rules! quadruples {
    ($name:ident, $type:ty, $feature:literal, $add:ident, $sub:ident) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn $name([a, b, c, d]: [$type; 4]) -> [$type; 4] {
            let (t, u) = ($add(a, b), $sub(a, b));
            [$sub($add(t, c), d), $add($sub(t, c), d), $add($add(u, c), d), $add($sub(c, u), d)]
        }
    };
}
quadruples!(stage512, __m512, "avx512f,avx512bw,avx512vl,avx512dq,avx2", _mm512_add_ps, _mm512_sub_ps);
quadruples!(stage256, __m256, "avx2", _mm256_add_ps, _mm256_sub_ps);

/// Swaps the number of the register with the place in 128 bits.
macro_rules! turn {
    ($name:ident, $type:ty, $feature:literal, $low:ident, $high:ident, $low2:ident, $high2:ident, $to:ident, $from:ident) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn $name([a, b, c, d]: [$type; 4]) -> [$type; 4] {
            let (ab, ab2) = ($to($low(a, b)), $to($high(a, b)));
            let (cd, cd2) = ($to($low(c, d)), $to($high(c, d)));
            [$from($low2(ab, cd)), $from($high2(ab, cd)), $from($low2(ab2, cd2)), $from($high2(ab2, cd2))]
        }
    };
}
turn!(
    turn512,
    __m512,
    "avx512f,avx512bw,avx512vl,avx512dq,avx2",
    _mm512_unpacklo_ps,
    _mm512_unpackhi_ps,
    _mm512_unpacklo_pd,
    _mm512_unpackhi_pd,
    _mm512_castps_pd,
    _mm512_castpd_ps
);
turn!(
    turn256,
    __m256,
    "avx2",
    _mm256_unpacklo_ps,
    _mm256_unpackhi_ps,
    _mm256_unpacklo_pd,
    _mm256_unpackhi_pd,
    _mm256_castps_pd,
    _mm256_castpd_ps
);

/// Swaps the number of the register with that of the 128 bits in it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn quarters([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
    let (ab, ab2) = (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
    let (cd, cd2) = (_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xEE>(c, d));
    [
        _mm512_shuffle_f32x4::<0x88>(ab, cd),
        _mm512_shuffle_f32x4::<0xDD>(ab, cd),
        _mm512_shuffle_f32x4::<0x88>(ab2, cd2),
        _mm512_shuffle_f32x4::<0xDD>(ab2, cd2),
    ]
}

/// 64 elements, `[register][128 bits][place]`, through the stages of strides 1, 4 and 16 that the group has. They come out as
/// `[register][place][128 bits]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn rotate64(v: [__m512; 4], group: usize) -> [__m512; 4] {
    let mut v = stage512(turn512(v));
    v = quarters(v);
    if group >= 16 {
        v = stage512(v);
    }
    v = turn512(v);
    if group >= 64 {
        v = stage512(v);
    }
    v
}

/// 64 numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn load64(from: &[f32; 64]) -> [__m512; 4] {
    // SAFETY: 64 elements.
    unsafe {
        let p = from.as_ptr();
        [_mm512_loadu_ps(p), _mm512_loadu_ps(p.add(16)), _mm512_loadu_ps(p.add(32)), _mm512_loadu_ps(p.add(48))]
    }
}

/// The first numbers of `from`, zeros behind them.
#[inline]
fn padded(from: &[f32]) -> [f32; 64] {
    let mut all = [0f32; 64];
    all[..from.len()].copy_from_slice(from);
    all
}

/// Rotates a row into `to`, [`rotate::room`] elements, in the order of [`rotate64`]; the largest magnitude, NaN counts for nothing.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn turned512(from: &[f32], to: &mut [f32], group: usize) -> f32 {
    let factor = _mm512_set1_ps(rotate::factor(group));
    let mut most = [_mm512_setzero_ps(); 4];
    let mut keep = |v: [__m512; 4], to: &mut [f32]| {
        debug_assert!(to.len() >= 64);
        for i in 0..4 {
            // the second operand is the answer where the first is NaN
            most[i] = _mm512_max_ps(_mm512_abs_ps(v[i]), most[i]);
            // SAFETY: 64 elements.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr().add(16 * i), v[i]) };
        }
    };
    let scaled = |from: &[f32; 64]| {
        let v = load64(from);
        [
            _mm512_mul_ps(v[0], factor),
            _mm512_mul_ps(v[1], factor),
            _mm512_mul_ps(v[2], factor),
            _mm512_mul_ps(v[3], factor),
        ]
    };
    if group == 256 {
        for (from, to) in from.as_chunks::<256>().0.iter().zip(to.as_chunks_mut::<256>().0) {
            let quarter = from.as_chunks::<64>().0;
            let a = rotate64(scaled(&quarter[0]), group);
            let b = rotate64(scaled(&quarter[1]), group);
            let c = rotate64(scaled(&quarter[2]), group);
            let d = rotate64(scaled(&quarter[3]), group);
            let mut all = [a, b, c, d];
            for i in 0..4 {
                let v = stage512([all[0][i], all[1][i], all[2][i], all[3][i]]);
                for (all, v) in all.iter_mut().zip(v) {
                    all[i] = v;
                }
            }
            for (v, to) in all.into_iter().zip(to.as_chunks_mut::<64>().0) {
                keep(v, to);
            }
        }
    } else {
        let (whole, rest) = from.as_chunks::<64>();
        let to = to.as_chunks_mut::<64>().0;
        for (from, to) in whole.iter().zip(&mut *to) {
            keep(rotate64(scaled(from), group), to);
        }
        if !rest.is_empty() {
            // whole groups of zeros
            keep(rotate64(scaled(&padded(rest)), group), &mut to[whole.len()]);
        }
    }
    let most = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    _mm512_reduce_max_ps(most)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn largest512(v: &[f32]) -> f32 {
    let mut most = [_mm512_setzero_ps(); 4];
    let (whole, rest) = v.as_chunks::<64>();
    let mut keep = |v: [__m512; 4]| {
        for i in 0..4 {
            most[i] = _mm512_max_ps(_mm512_abs_ps(v[i]), most[i]);
        }
    };
    for v in whole {
        keep(load64(v));
    }
    keep(load64(&padded(rest)));
    let most = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    _mm512_reduce_max_ps(most)
}

/// Rounds 64 numbers; they have the order of [`rotate64`] when they are `TURNED`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
fn round64<const TURNED: bool>(from: &[f32; 64], inverse: __m512) -> __m512i {
    let whole = |v: __m512| {
        let v = _mm512_mul_ps(v, inverse);
        let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(v, v);
        // what is too small becomes the smallest integer, what is NaN zero
        _mm512_maskz_cvtps_epi32(number, _mm512_min_ps(v, _mm512_set1_ps(127.0)))
    };
    let v = load64(from);
    let (low, high) = (_mm512_packs_epi32(whole(v[0]), whole(v[1])), _mm512_packs_epi32(whole(v[2]), whole(v[3])));
    // `[128 bits][register][place]`
    let bytes = _mm512_max_epi8(_mm512_packs_epi16(low, high), _mm512_set1_epi8(-127));
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let bytes = _mm512_permutexvar_epi32(order, bytes);
    if TURNED {
        let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(order))
    } else {
        bytes
    }
}

/// Rounds `from` into `q`; the sum of the integers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2")]
fn round512<const TURNED: bool>(from: &[f32], q: &mut [i8], inverse: f32) -> i32 {
    let (inverse, one) = (_mm512_set1_ps(inverse), _mm512_set1_epi8(1));
    let mut sum = _mm512_setzero_si512();
    let (whole, rest) = q.as_chunks_mut::<64>();
    let (chunks, last) = from.as_chunks::<64>();
    for (from, q) in chunks.iter().zip(&mut *whole) {
        let bytes = round64::<TURNED>(from, inverse);
        sum = _mm512_dpbusd_epi32(sum, one, bytes);
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(q.as_mut_ptr().cast(), bytes) };
    }
    if !rest.is_empty() {
        let last = chunks.get(whole.len()).copied().unwrap_or_else(|| padded(last));
        let bytes = round64::<TURNED>(&last, inverse);
        let mask = (1u64 << rest.len()) - 1;
        sum = _mm512_dpbusd_epi32(sum, one, _mm512_maskz_mov_epi8(mask, bytes));
        // SAFETY: the bytes of the mask.
        unsafe { _mm512_mask_storeu_epi8(rest.as_mut_ptr(), mask, bytes) };
    }
    _mm512_reduce_add_epi32(sum)
}

/// As [`rotate::quantise`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2")]
pub fn row512(from: &[f32], scratch: &mut [f32], q: &mut [i8], group: usize) -> (f32, i32) {
    if group > 1 {
        let (scale, inverse) = rotate::scales(turned512(from, scratch, group));
        (scale, round512::<true>(scratch, q, inverse))
    } else {
        let (scale, inverse) = rotate::scales(largest512(from));
        (scale, round512::<false>(from, q, inverse))
    }
}

/// Stages of strides 1 and 4 on 32 elements, scaled first.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate32(from: &[f32; 32], to: &mut [f32; 32], factor: __m256, group: usize) {
    let mut v = [factor; 4];
    for (i, v) in v.iter_mut().enumerate() {
        // SAFETY: four elements of each half.
        let (low, high) =
            unsafe { (_mm_loadu_ps(from.as_ptr().add(4 * i)), _mm_loadu_ps(from.as_ptr().add(16 + 4 * i))) };
        *v = _mm256_mul_ps(_mm256_set_m128(high, low), factor);
    }
    v = turn256(stage256(turn256(v)));
    if group >= 16 {
        v = stage256(v);
    }
    for (i, v) in v.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe {
            _mm_storeu_ps(to.as_mut_ptr().add(4 * i), _mm256_castps256_ps128(v));
            _mm_storeu_ps(to.as_mut_ptr().add(16 + 4 * i), _mm256_extractf128_ps::<1>(v));
        }
    }
}

/// Rounds `from` into `q`.
#[target_feature(enable = "avx2")]
fn round256(from: &[f32], q: &mut [i8], inverse: f32) -> i32 {
    let whole = |p: *const f32| {
        // SAFETY: eight elements of 32.
        let v = _mm256_mul_ps(unsafe { _mm256_loadu_ps(p) }, _mm256_set1_ps(inverse));
        let number = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_ORD_Q>(v, v));
        // what is too small becomes the smallest integer, what is NaN zero
        _mm256_and_si256(number, _mm256_cvtps_epi32(_mm256_min_ps(v, _mm256_set1_ps(127.0))))
    };
    let (chunks, rest) = q.as_chunks_mut::<32>();
    let (from, last) = from.as_chunks::<32>();
    let mut sum = _mm256_setzero_si256();
    for (from, q) in from.iter().zip(chunks) {
        // SAFETY: the chunk has 32 elements.
        let p = |i: usize| unsafe { from.as_ptr().add(8 * i) };
        let (low, high) = (_mm256_packs_epi32(whole(p(0)), whole(p(1))), _mm256_packs_epi32(whole(p(2)), whole(p(3))));
        let bytes = _mm256_max_epi8(_mm256_packs_epi16(low, high), _mm256_set1_epi8(-127));
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        // SAFETY: 32 bytes.
        unsafe { _mm256_storeu_si256(q.as_mut_ptr().cast(), bytes) };
    }
    let mut lanes = [0i32; 8];
    // SAFETY: eight integers.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
    lanes.iter().fold(rotate::round(last, rest, inverse), |s, l| s.wrapping_add(*l))
}

/// As [`rotate::quantise`].
#[target_feature(enable = "avx2")]
pub fn row256(from: &[f32], scratch: &mut [f32], q: &mut [i8], group: usize) -> (f32, i32) {
    let v = if group > 1 {
        let v = &mut scratch[..from.len()];
        let factor = _mm256_set1_ps(rotate::factor(group));
        let (whole, rest) = from.as_chunks::<32>();
        let (to, last) = v.as_chunks_mut::<32>();
        for (from, to) in whole.iter().zip(to) {
            rotate32(from, to, factor, group);
        }
        // the rest is whole groups of 4 or 16
        rotate::rotate(rest, last, group.min(16));
        if group >= 64 {
            rotate::stage::<16>(v);
        }
        if group >= 256 {
            rotate::stage::<64>(v);
        }
        &*v
    } else {
        from
    };
    let (scale, inverse) = rotate::scales(rotate::largest(v));
    (scale, round256(v, q, inverse))
}
