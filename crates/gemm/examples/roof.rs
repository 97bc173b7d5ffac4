//! Measures the multiply-add roof of this machine and the share of it that products reach.
//!
//! `cargo run --release -p ggml-oxide-gemm --example roof [filter]`; a filter keeps the lines that contain it.
#![allow(clippy::unwrap_used)]

use ggml_oxide_gemm::*;
use std::hint::black_box;
use std::time::Instant;

/// Independent fused multiply-adds in registers; returns operations done.
macro_rules! fma_loop {
    ($name:ident, $feat:literal, $set1:path, $fma:path, $lanes:literal, $accs:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feat)]
        unsafe fn $name(iters: usize) -> f64 {
            use core::arch::x86_64::*;
            let a = $set1(black_box(0.999_999));
            let b = $set1(black_box(1e-7));
            let mut acc = [$set1(1.0); $accs];
            for _ in 0..iters {
                for v in &mut acc {
                    *v = $fma(*v, a, b);
                }
            }
            black_box(acc);
            2.0 * $lanes as f64 * $accs as f64 * iters as f64
        }
    };
}
fma_loop!(fma512, "avx512f", _mm512_set1_ps, _mm512_fmadd_ps, 16, 16);
fma_loop!(fma256, "avx2,fma", _mm256_set1_ps, _mm256_fmadd_ps, 8, 12);

fn portable_loop(iters: usize) -> f64 {
    let a = black_box(0.999_999f32);
    let b = black_box(1e-7f32);
    let mut acc = [1.0f32; 64];
    for _ in 0..iters {
        for v in &mut acc {
            *v = *v * a + b;
        }
    }
    black_box(acc);
    2.0 * 64.0 * iters as f64
}

fn one_roof(isa: Isa, iters: usize) -> f64 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller asks for available sets only.
        Isa::Avx512 => unsafe { fma512(iters) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => unsafe { fma256(iters) },
        _ => portable_loop(iters),
    }
}

/// Best rate over short runs by processor time, in Gop/s: what the machine gives when nobody else uses it.
fn roof(isa: Isa, nth: usize) -> f64 {
    let mut best = 0f64;
    for _ in 0..12 {
        let barrier = std::sync::Barrier::new(nth);
        let rates: Vec<f64> = std::thread::scope(|s| {
            let hs: Vec<_> = (0..nth)
                .map(|_| {
                    s.spawn(|| {
                        barrier.wait();
                        let t = cpu_seconds();
                        one_roof(isa, 400_000) / (cpu_seconds() - t)
                    })
                })
                .collect();
            hs.into_iter().map(|h| h.join().unwrap()).collect()
        });
        best = best.max(rates.iter().sum());
    }
    best / 1e9
}

fn noise(i: usize) -> f32 {
    let x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x >> 40) as f32 / (1u64 << 24) as f32) - 0.5
}

/// Rows of any format with plausible contents.
fn weights(elem: Type, rows: usize, k: usize) -> Vec<u8> {
    let count = rows * k / elem.block_size() * elem.block_bytes();
    match elem {
        Type::F32 => (0..rows * k).flat_map(|i| noise(i).to_le_bytes()).collect(),
        Type::F16 => (0..rows * k)
            .flat_map(|i| half::f16::from_f32(noise(i)).to_le_bytes())
            .collect(),
        Type::BF16 => (0..rows * k)
            .flat_map(|i| half::bf16::from_f32(noise(i)).to_le_bytes())
            .collect(),
        // Bytes below 0x3c keep every f16 scale small and finite.
        _ => (0..count).map(|i| (noise(i).abs() * 118.0) as u8).collect(),
    }
}

/// Seconds that this thread has run, without the time that other programs took from it.
fn cpu_seconds() -> f64 {
    #[cfg(unix)]
    {
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: t is a valid place for the answer.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
        t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
    }
    #[cfg(not(unix))]
    {
        f64::NAN
    }
}

/// Rates in Gop/s by wall time and by processor time (mean over threads), each the best of several runs.
fn time_gemm(isa: Isa, elem: Type, m: usize, n: usize, k: usize, nth: usize) -> (f64, f64) {
    let w = weights(elem, m, k);
    let x: Vec<f32> = (0..n * k).map(|i| noise(i + 7)).collect();
    let mut y = vec![0f32; m * n];
    let row = k / elem.block_size() * elem.block_bytes();
    // SAFETY: the vectors outlive the runs and have the sizes that the shape reaches.
    let (wm, xm, dst) = unsafe {
        (
            Matrix::new(w.as_ptr(), elem, [elem.block_bytes(), row, 0, 0]),
            Matrix::new(x.as_ptr().cast(), Type::F32, [4, 4 * k, 0, 0]),
            Dst::new(y.as_mut_ptr(), [4 * m, 0, 0]).unwrap(),
        )
    };
    let shape = Shape::new(m, n, k);
    let gemm = Gemm::with_isa(
        shape,
        Side::Matrix(wm),
        Side::Matrix(xm),
        dst,
        Precision::Default,
        isa,
    )
    .unwrap();
    let mut scratch = vec![0u8; gemm.workspace_size(nth)];
    // SAFETY: scratch outlives the runs.
    let ws = unsafe { Workspace::new(scratch.as_mut_ptr(), scratch.len()) };
    let ops = 2.0 * m as f64 * n as f64 * k as f64;
    // Many products per timing when one is short; at least five timings.
    let reps = (2e8 / ops).clamp(1.0, 2000.0) as usize;
    let times = ((6e9 / (ops * reps as f64)) as usize).clamp(5, 20);
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..times {
        let teams: Vec<StdShared> = (0..reps).map(|_| StdShared::new(nth)).collect();
        let start = std::sync::Barrier::new(nth);
        let (wall, cpu) = std::thread::scope(|s| {
            let hs: Vec<_> = (0..nth)
                .map(|ith| {
                    let (teams, start, gemm) = (&teams, &start, &gemm);
                    s.spawn(move || {
                        start.wait();
                        let (t, c) = (Instant::now(), cpu_seconds());
                        for team in teams {
                            let me = team.member(ith);
                            gemm.run(&me, ws).unwrap();
                            if nth > 1 && reps > 1 {
                                me.barrier();
                            }
                        }
                        let reps = teams.len() as f64;
                        (t.elapsed().as_secs_f64() / reps, (cpu_seconds() - c) / reps)
                    })
                })
                .collect();
            hs.into_iter()
                .map(|h| h.join().unwrap())
                .fold((0f64, 0f64), |a, b| (a.0.max(b.0), a.1 + b.1 / nth as f64))
        });
        best = (best.0.min(wall), best.1.min(cpu));
    }
    black_box(&y);
    (ops / best.0 / 1e9, ops / best.1 / 1e9)
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut roofs = std::collections::HashMap::new();
    for isa in Isa::available() {
        for nth in [1, 2] {
            let r = roof(isa, nth);
            println!("roof {isa:?} {nth} threads: {r:.0} GFLOP/s");
            roofs.insert((isa, nth), r);
        }
    }
    let isa = Isa::best();
    let run = |elem: Type, m: usize, n: usize, k: usize| {
        let mut line = format!("{elem:?} m={m} n={n} k={k}");
        if !format!("{line} ").contains(&filter) {
            return;
        }
        for nth in [1, 2] {
            let (wall, cpu) = time_gemm(isa, elem, m, n, k, nth);
            let share = |g: f64| 100.0 * g / roofs[&(isa, nth)];
            line += &format!(
                "  {nth}t {wall:6.1} Gop/s {:3.0}% (cpu time {:3.0}%)",
                share(wall),
                share(cpu)
            );
        }
        println!("{line}");
    };
    for elem in [
        Type::F32,
        Type::F16,
        Type::BF16,
        Type::Q8_0,
        Type::Q4_0,
        Type::Q4_K,
    ] {
        for n in [1, 8, 77, 512, 1024] {
            run(elem, 1280, n, 1280);
        }
    }
    for (m, n, k) in [(4096, 64, 576), (65536, 64, 576), (4096, 320, 2880)] {
        run(Type::F32, m, n, k);
        run(Type::F16, m, n, k);
    }
}
