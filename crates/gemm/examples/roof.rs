//! Measures the multiply-add roof of this machine and the share of it that products reach.
//!
//! `cargo run --release -p ggml-oxide-gemm --example roof [filter [n,n,...]]`: a filter keeps the lines that contain it.
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
        Type::F16 => (0..rows * k).flat_map(|i| half::f16::from_f32(noise(i)).to_le_bytes()).collect(),
        Type::BF16 => (0..rows * k).flat_map(|i| half::bf16::from_f32(noise(i)).to_le_bytes()).collect(),
        // Bytes below 0x3c keep every f16 scale small and finite.
        _ => (0..count).map(|i| (noise(i).abs() * 118.0) as u8).collect(),
    }
}

/// Seconds that this thread has run, without the time that other programs took from it.
fn cpu_seconds() -> f64 {
    #[cfg(unix)]
    {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
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
fn time(gemm: &Gemm, ops: f64, nth: usize) -> (f64, f64) {
    let mut scratch = vec![0u8; gemm.workspace_size(nth)];
    // SAFETY: scratch outlives the runs.
    let ws = unsafe { Workspace::new(scratch.as_mut_ptr(), scratch.len()) };
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
                    let (teams, start) = (&teams, &start);
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
            hs.into_iter().map(|h| h.join().unwrap()).fold((0f64, 0f64), |a, b| (a.0.max(b.0), a.1 + b.1 / nth as f64))
        });
        best = (best.0.min(wall), best.1.min(cpu));
    }
    (ops / best.0 / 1e9, ops / best.1 / 1e9)
}

/// A product of `batch` pairs of dense matrices.
fn product(ty: Type, m: usize, n: usize, k: usize, batch: usize, nth: usize) -> (f64, f64) {
    let w = weights(ty, m * batch, k);
    let x: Vec<f32> = (0..n * k * batch).map(|i| noise(i + 7)).collect();
    let mut y = vec![0f32; m * n * batch];
    let row = k / ty.block_size() * ty.block_bytes();
    // SAFETY: the vectors outlive the runs and have the sizes that the shape reaches.
    let (w, x, dst) = unsafe {
        (
            Matrix::new(w.as_ptr(), ty, [ty.block_bytes(), row, row * m, 0]),
            Matrix::new(x.as_ptr().cast(), Type::F32, [4, 4 * k, 4 * k * n, 0]),
            Dst::new(y.as_mut_ptr(), [4 * m, 4 * m * n, 0]).unwrap(),
        )
    };
    let shape = Shape { batch: [batch, 1], ..Shape::new(m, n, k) };
    let gemm = Gemm::new(shape, Side::Matrix(w), Side::Matrix(x), dst, Precision::Default).unwrap();
    let rates = time(&gemm, 2.0 * (m * n * k * batch) as f64, nth);
    black_box(&y);
    rates
}

/// A 3x3 convolution of a square image without an im2col buffer.
fn convolution(side: usize, channels: usize, out: usize, nth: usize) -> (f64, f64) {
    let k = 9 * channels;
    let image: Vec<f32> = (0..side * side * channels).map(noise).collect();
    let kernel: Vec<u8> = weights(Type::F16, out, k);
    let mut y = vec![0f32; side * side * out];
    let (line, plane) = (4 * side, 4 * side * side);
    let conv = ConvShape::flat([side; 2], [3; 2], [side; 2], [1; 2], [1; 2], [1; 2]);
    // SAFETY: as above.
    let (w, x, dst) = unsafe {
        (
            Im2col::new(image.as_ptr().cast(), Type::F32, [4, line, plane, plane, 0], conv).unwrap(),
            Matrix::new(kernel.as_ptr(), Type::F16, [2, 2 * k, 0, 0]),
            Dst::new(y.as_mut_ptr(), [plane, 0, 0]).unwrap(),
        )
    };
    let shape = Shape::new(side * side, out, k);
    let gemm = Gemm::new(shape, Side::Custom(&w), Side::Matrix(x), dst, Precision::Default).unwrap();
    let rates = time(&gemm, 2.0 * (side * side * out * k) as f64, nth);
    black_box(&y);
    rates
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
    let ns: Vec<usize> = match std::env::args().nth(2) {
        Some(list) => list.split(',').map(|n| n.parse().unwrap()).collect(),
        None => vec![1, 8, 77, 512, 1024],
    };
    let run = |line: String, rates: &dyn Fn(usize) -> (f64, f64)| {
        if !format!("{line} ").contains(&filter) {
            return;
        }
        let mut text = line;
        for nth in [1, 2] {
            let (wall, cpu) = rates(nth);
            let share = |g: f64| 100.0 * g / roofs[&(isa, nth)];
            let (all, own) = (share(wall), share(cpu));
            text += &format!("  {nth}t {wall:6.1} Gop/s {all:3.0}% (cpu time {own:3.0}%)");
        }
        println!("{text}");
    };
    use Type::*;
    for ty in [F32, F16, BF16, Q8_0, Q4_0, Q4_K] {
        for &n in &ns {
            run(format!("{ty:?} m=1280 n={n} k=1280"), &|nth| product(ty, 1280, n, 1280, 1, nth));
        }
    }
    for (m, n, k) in [(4096, 64, 576), (65536, 64, 576), (4096, 320, 2880)] {
        for ty in [F32, F16] {
            run(format!("{ty:?} m={m} n={n} k={k}"), &|nth| product(ty, m, n, k, 1, nth));
        }
    }
    for (m, n, k, b) in [(77, 1024, 64, 20), (1024, 1024, 64, 10), (64, 1024, 1024, 10), (16, 16, 16, 1000)] {
        run(format!("batch of {b} F32 m={m} n={n} k={k}"), &|nth| product(F32, m, n, k, b, nth));
    }
    for (side, channels, out) in [(64, 64, 64), (256, 64, 64), (64, 320, 320), (16, 1280, 1280)] {
        run(format!("conv 3x3 {side}x{side} {channels} to {out}"), &|nth| convolution(side, channels, out, nth));
    }
}
