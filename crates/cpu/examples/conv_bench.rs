//! Times the convolutions of a picture upscaler, fused and node by node, in processor time (all threads together): `cargo run --release --example conv_bench [threads] [fused]`.

#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Executor, GraphRef, Pool};

/// Processor time of this process so far; a busy machine disturbs it less than the clock.
fn processor_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time to `t`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn main() {
    let nth = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    let Ok(pool) = Pool::new(nth) else { return };
    let mut rng = Rng(1);
    let only: Option<i64> = std::env::var("ONLY").ok().and_then(|v| v.parse().ok());
    for (w, ic, oc, k) in [
        (96, 64, 32, 3),
        (96, 96, 32, 3),
        (96, 128, 32, 3),
        (96, 160, 32, 3),
        (96, 192, 64, 3),
        (384, 64, 64, 3),
        (384, 64, 3, 3),
        (32, 320, 320, 3),
        (64, 320, 320, 1),
    ] {
        if only.is_some_and(|o| o != oc) {
            continue;
        }
        let mut world = World::new();
        let a = world.random(GGML_TYPE_F16, [k, k, ic, oc], [0, 1, 2, 3], 0, &mut rng);
        let b = world.random(GGML_TYPE_F32, [w, w, ic, 1], [0, 1, 2, 3], 0, &mut rng);
        let pad = (k / 2) as i32;
        let kk = k * k * ic;
        let cols = world.node(GGML_OP_IM2COL, GGML_TYPE_F16, [kk, w, w, 1], &[a, b], &[1, 1, pad, pad, 1, 1, 1]);
        let rows = world.reshape(cols, [kk, w * w, 1, 1]);
        let kernels = world.reshape(a, [kk, oc, 1, 1]);
        let mm = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [w * w, oc, 1, 1], &[rows, kernels], &[]);
        let split = world.reshape(mm, [w, w, 1, oc]);
        let nb = t(split).nb;
        let swapped = world.view(GGML_OP_PERMUTE, split, [w, w, oc, 1], [nb[0], nb[1], nb[3], nb[2]]);
        world.node(GGML_OP_CONT, GGML_TYPE_F32, [w, w, oc, 1], &[swapped], &[]);
        let uses = |p: *const ggml_tensor| world.uses(p);
        let mut line = format!("{w}x{w} {ic}->{oc} {k}x{k}:");
        let which: &[bool] = if std::env::args().nth(2).is_some() { &[true] } else { &[true, false] };
        for &fuse in which {
            let graph = GraphRef { nodes: &world.nodes, uses: if fuse { Some(&uses) } else { None } };
            let mut exec = Executor::new();
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let start = processor_seconds();
                if exec.compute(&graph, &pool, nth, None, None).is_err() {
                    return;
                }
                best = best.min(processor_seconds() - start);
            }
            let flops = 2.0 * (kk * oc * w * w) as f64;
            line += &format!(
                "  {} {:.2} ms {:.0} GFLOPS",
                if fuse { "fused" } else { "nodes" },
                best * 1e3,
                flops / best / 1e9
            );
        }
        println!("{line}");
    }
}
