//! What the machine can do at most, measured by loops that do nothing else. May import: nothing of this program.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Rates of all threads together, per second.
pub struct Roofs {
    /// f32 operations: a fused multiply-add counts as two.
    pub fma: f64,
    /// The instructions that `fma` was measured with.
    pub fma_name: &'static str,
    /// 8-bit integer operations, counted likewise; None where no instruction for them is known here.
    pub int8: Option<f64>,
    /// The instructions that `int8` was measured with.
    pub int8_name: &'static str,
    /// Bytes read from memory.
    pub memory: f64,
}

/// Does about a hundred thousand instructions and returns how many operations they were.
type Kernel = fn() -> u64;

impl Roofs {
    /// Measures with as many threads as the cases use; takes under two seconds.
    pub fn measure(threads: usize) -> Roofs {
        let (fma_name, fma) = fma_kernel();
        let (int8_name, int8) = int8_kernel();
        Roofs {
            fma: compute(threads, fma),
            fma_name,
            int8: int8.map(|k| compute(threads, k)),
            int8_name,
            memory: memory(threads),
        }
    }
}

/// Best sum of the threads' rates over some rounds.
fn compute(threads: usize, kernel: Kernel) -> f64 {
    (0..12).map(|_| together(threads, |_| rate(kernel, Duration::from_millis(20)))).fold(0.0, f64::max)
}

fn rate(kernel: Kernel, time: Duration) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    loop {
        done += kernel();
        let passed = start.elapsed();
        if passed >= time {
            return done as f64 / passed.as_secs_f64();
        }
    }
}

/// Starts `work` on every thread at once and adds up what they return.
fn together(threads: usize, work: impl Fn(usize) -> f64 + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let (work, barrier) = (&work, &barrier);
    std::thread::scope(|scope| {
        let run = move |i| {
            barrier.wait();
            work(i)
        };
        let handles: Vec<_> = (0..threads).map(|i| scope.spawn(move || run(i))).collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0.0)).sum()
    })
}

/// Reads a block far larger than the caches, shared out over the threads.
fn memory(threads: usize) -> f64 {
    let block = vec![1u64; (512 << 20) / 8];
    let part = block.len().div_ceil(threads);
    let parts: Vec<&[u64]> = block.chunks(part).collect();
    (0..5)
        .map(|_| {
            together(parts.len(), |i| {
                let start = Instant::now();
                let mut sums = [0u64; 16];
                for chunk in parts[i].chunks_exact(16) {
                    for (sum, value) in sums.iter_mut().zip(chunk) {
                        *sum = sum.wrapping_add(*value);
                    }
                }
                black_box(sums);
                std::mem::size_of_val(parts[i]) as f64 / start.elapsed().as_secs_f64()
            })
        })
        .fold(0.0, f64::max)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    const STEPS: u64 = 8192;

    // Twelve independent chains: more than latency times ports of any known core, and they fit AVX2's sixteen registers.
    macro_rules! chains {
        ($steps:expr, $zero:expr, $step:expr) => {{
            let mut s = [$zero; 12];
            for _ in 0..$steps {
                for x in &mut s {
                    *x = $step(*x);
                }
            }
            black_box(s);
        }};
    }

    #[target_feature(enable = "avx512f")]
    fn fma_512() -> u64 {
        let (a, b) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(0.001)));
        chains!(STEPS, _mm512_setzero_ps(), |x| _mm512_fmadd_ps(x, a, b));
        STEPS * 12 * 16 * 2
    }

    #[target_feature(enable = "avx2,fma")]
    fn fma_256() -> u64 {
        let (a, b) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
        chains!(STEPS, _mm256_setzero_ps(), |x| _mm256_fmadd_ps(x, a, b));
        STEPS * 12 * 8 * 2
    }

    #[target_feature(enable = "avx512vnni,avx512f")]
    fn vnni_512() -> u64 {
        let (a, b) = (_mm512_set1_epi32(black_box(0x0102_0304)), _mm512_set1_epi32(black_box(0x0403_0201)));
        chains!(STEPS, _mm512_setzero_si512(), |x| _mm512_dpbusd_epi32(x, a, b));
        STEPS * 12 * 64 * 2
    }

    #[target_feature(enable = "avxvnni,avx2")]
    fn vnni_256() -> u64 {
        let (a, b) = (_mm256_set1_epi32(black_box(0x0102_0304)), _mm256_set1_epi32(black_box(0x0403_0201)));
        chains!(STEPS, _mm256_setzero_si256(), |x| _mm256_dpbusd_avx_epi32(x, a, b));
        STEPS * 12 * 32 * 2
    }

    /// Without VNNI a product of bytes takes three instructions: pairs, fours, and the sum.
    #[target_feature(enable = "avx2")]
    fn maddubs_256() -> u64 {
        let (a, ones) = (_mm256_set1_epi32(black_box(0x0102_0304)), _mm256_set1_epi16(black_box(1)));
        chains!(STEPS, _mm256_setzero_si256(), |x| _mm256_add_epi32(
            x,
            _mm256_madd_epi16(_mm256_maddubs_epi16(a, x), ones)
        ));
        STEPS * 12 * 32 * 2
    }

    pub fn fma() -> Option<(&'static str, Kernel)> {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            Some(("AVX-512", || unsafe { fma_512() }))
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            Some(("AVX2", || unsafe { fma_256() }))
        } else {
            None
        }
    }

    pub fn int8() -> Option<(&'static str, Kernel)> {
        if is_x86_feature_detected!("avx512vnni") {
            // SAFETY: the processor has the instructions.
            Some(("AVX-512 VNNI", || unsafe { vnni_512() }))
        } else if is_x86_feature_detected!("avxvnni") {
            // SAFETY: the processor has the instructions.
            Some(("AVX-VNNI", || unsafe { vnni_256() }))
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the instructions.
            Some(("AVX2", || unsafe { maddubs_256() }))
        } else {
            None
        }
    }
}

fn fma_kernel() -> (&'static str, Kernel) {
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) = x86::fma() {
        return kernel;
    }
    ("the compiler's own", portable_fma)
}

fn int8_kernel() -> (&'static str, Option<Kernel>) {
    #[cfg(target_arch = "x86_64")]
    if let Some((name, kernel)) = x86::int8() {
        return (name, Some(kernel));
    }
    ("none", None)
}

/// Left to the compiler's vectoriser, which has fused multiply-adds on aarch64.
fn portable_fma() -> u64 {
    let fused = cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64");
    let (a, b) = (black_box(0.999f32), black_box(0.001f32));
    let mut s = [0f32; 64];
    for _ in 0..1024 {
        for x in &mut s {
            *x = if fused { x.mul_add(a, b) } else { *x * a + b };
        }
    }
    black_box(s);
    1024 * 64 * 2
}
