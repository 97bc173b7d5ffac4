//! Transposition of tiles: rows of the result are columns of the source.

/// Elements along each side of a tile of `size`-byte elements: one cache line.
pub const fn tile(size: usize) -> usize {
    64 / size
}

/// `dst[j][i] = src[i][j]` for `ni` x `nj` elements of `size` bytes (1, 2, 4 or 8); `ss` bytes between source rows (i),
/// `ds` between result rows (j).
///
/// # Safety
/// All elements are readable and writable; the two do not overlap.
pub unsafe fn transpose(size: usize, src: *const u8, ss: usize, dst: *mut u8, ds: usize, ni: usize, nj: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => scalar::<u8>(src, ss, dst, ds, ni, nj),
            2 => {
                #[cfg(target_arch = "x86_64")]
                if !ggml_oxide_types::plain::on() {
                    return halves(src, ss, dst, ds, ni, nj);
                }
                scalar::<u16>(src, ss, dst, ds, ni, nj)
            }
            8 => scalar::<u64>(src, ss, dst, ds, ni, nj),
            _ => {
                #[cfg(target_arch = "x86_64")]
                if !ggml_oxide_types::plain::on() && is_x86_feature_detected!("avx2") {
                    return words(src, ss, dst, ds, ni, nj);
                }
                scalar::<u32>(src, ss, dst, ds, ni, nj)
            }
        }
    }
}

#[inline(always)]
unsafe fn scalar<T: Copy>(src: *const u8, ss: usize, dst: *mut u8, ds: usize, ni: usize, nj: usize) {
    let size = size_of::<T>();
    for j in 0..nj {
        for i in 0..ni {
            // SAFETY: the caller's promise.
            unsafe {
                let x = src.add(i * ss + j * size).cast::<T>().read_unaligned();
                dst.add(j * ds + i * size).cast::<T>().write_unaligned(x);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn words(src: *const u8, ss: usize, dst: *mut u8, ds: usize, ni: usize, nj: usize) {
    use std::arch::x86_64::*;
    let (ti, tj) = (ni / 8 * 8, nj / 8 * 8);
    // SAFETY: the caller's promise: eight rows of eight words are there on both sides.
    unsafe {
        for i in (0..ti).step_by(8) {
            for j in (0..tj).step_by(8) {
                let row = |k: usize| _mm256_loadu_ps(src.add((i + k) * ss + j * 4).cast());
                let r = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
                let t = [
                    _mm256_unpacklo_ps(r[0], r[1]),
                    _mm256_unpackhi_ps(r[0], r[1]),
                    _mm256_unpacklo_ps(r[2], r[3]),
                    _mm256_unpackhi_ps(r[2], r[3]),
                    _mm256_unpacklo_ps(r[4], r[5]),
                    _mm256_unpackhi_ps(r[4], r[5]),
                    _mm256_unpacklo_ps(r[6], r[7]),
                    _mm256_unpackhi_ps(r[6], r[7]),
                ];
                let u = [
                    _mm256_shuffle_ps::<0x44>(t[0], t[2]),
                    _mm256_shuffle_ps::<0xee>(t[0], t[2]),
                    _mm256_shuffle_ps::<0x44>(t[1], t[3]),
                    _mm256_shuffle_ps::<0xee>(t[1], t[3]),
                    _mm256_shuffle_ps::<0x44>(t[4], t[6]),
                    _mm256_shuffle_ps::<0xee>(t[4], t[6]),
                    _mm256_shuffle_ps::<0x44>(t[5], t[7]),
                    _mm256_shuffle_ps::<0xee>(t[5], t[7]),
                ];
                for k in 0..4 {
                    let lo = _mm256_permute2f128_ps::<0x20>(u[k], u[k + 4]);
                    let hi = _mm256_permute2f128_ps::<0x31>(u[k], u[k + 4]);
                    _mm256_storeu_ps(dst.add((j + k) * ds + i * 4).cast(), lo);
                    _mm256_storeu_ps(dst.add((j + k + 4) * ds + i * 4).cast(), hi);
                }
            }
        }
        if ti < ni {
            scalar::<u32>(src.add(ti * ss), ss, dst.add(ti * 4), ds, ni - ti, tj);
        }
        if tj < nj {
            scalar::<u32>(src.add(tj * 4), ss, dst.add(tj * ds), ds, ni, nj - tj);
        }
    }
}

/// Two-byte elements; SSE2 is part of every x86-64.
#[cfg(target_arch = "x86_64")]
unsafe fn halves(src: *const u8, ss: usize, dst: *mut u8, ds: usize, ni: usize, nj: usize) {
    use std::arch::x86_64::*;
    let (ti, tj) = (ni / 8 * 8, nj / 8 * 8);
    // SAFETY: the caller's promise: eight rows of eight elements are there on both sides.
    unsafe {
        for i in (0..ti).step_by(8) {
            for j in (0..tj).step_by(8) {
                let mut r = [_mm_setzero_si128(); 8];
                for (k, r) in r.iter_mut().enumerate() {
                    *r = _mm_loadu_si128(src.add((i + k) * ss + j * 2).cast());
                }
                // Three rounds of interleaving row k with row k + 4.
                for _ in 0..3 {
                    let mut t = r;
                    for k in 0..4 {
                        t[2 * k] = _mm_unpacklo_epi16(r[k], r[k + 4]);
                        t[2 * k + 1] = _mm_unpackhi_epi16(r[k], r[k + 4]);
                    }
                    r = t;
                }
                for (k, r) in r.iter().enumerate() {
                    _mm_storeu_si128(dst.add((j + k) * ds + i * 2).cast(), *r);
                }
            }
        }
        if ti < ni {
            scalar::<u16>(src.add(ti * ss), ss, dst.add(ti * 2), ds, ni - ti, tj);
        }
        if tj < nj {
            scalar::<u16>(src.add(tj * 2), ss, dst.add(tj * ds), ds, ni, nj - tj);
        }
    }
}
