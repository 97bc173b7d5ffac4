//! Rounding to f16, with the machine's own conversion where it has one. Everything in this module's parent that rounds does it
//! here, so that a fused chain gives the bits of the same chain node by node.

use ggml_oxide_types as types;

/// Rounds values to f16 and back.
pub(crate) fn round_to_f16(values: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("f16c") {
        // SAFETY: the feature was found.
        return unsafe { x86::round(values) };
    }
    for v in values {
        *v = types::float::f16_to_f32(types::float::f32_to_f16(*v));
    }
}

/// Converts to f16. Both have the same length.
pub(crate) fn to_f16(from: &[f32], to: &mut [u16]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("f16c") {
        // SAFETY: the feature was found; the lengths are equal.
        return unsafe { x86::narrow(from, to) };
    }
    for (v, o) in from.iter().zip(to) {
        *o = types::float::f32_to_f16(*v);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

    fn tail(part: &[f32]) -> [f32; 8] {
        let mut all = [0.0; 8];
        all[..part.len()].copy_from_slice(part);
        all
    }

    /// # Safety
    /// The machine has f16c.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe fn round(values: &mut [f32]) {
        let (whole, rest) = values.as_chunks_mut::<8>();
        for v in whole {
            // SAFETY: eight values.
            unsafe {
                let h = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(v.as_ptr()));
                _mm256_storeu_ps(v.as_mut_ptr(), _mm256_cvtph_ps(h));
            }
        }
        let mut all = tail(rest);
        // SAFETY: eight values.
        unsafe {
            let h = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(all.as_ptr()));
            _mm256_storeu_ps(all.as_mut_ptr(), _mm256_cvtph_ps(h));
        }
        rest.copy_from_slice(&all[..rest.len()]);
    }

    /// # Safety
    /// The machine has f16c; the lengths are equal.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe fn narrow(from: &[f32], to: &mut [u16]) {
        let ((whole, rest), (to_whole, to_rest)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (v, o) in whole.iter().zip(to_whole) {
            // SAFETY: eight values on both sides.
            unsafe {
                let h = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(v.as_ptr()));
                _mm_storeu_si128(o.as_mut_ptr().cast(), h);
            }
        }
        let (all, mut out) = (tail(rest), [0u16; 8]);
        // SAFETY: as above.
        unsafe {
            let h = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(all.as_ptr()));
            _mm_storeu_si128(out.as_mut_ptr().cast(), h);
        }
        to_rest.copy_from_slice(&out[..to_rest.len()]);
    }
}
