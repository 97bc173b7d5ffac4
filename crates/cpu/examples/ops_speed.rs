//! Speed of operators: GB/s of memory read and written, GFLOPS of attention. Arguments: threads, part of a name.
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{Executor, GraphRef, Pool};
use ggml_oxide_shape as shape;
use std::time::Instant;

struct Bench {
    threads: usize,
    only: String,
    pool: Pool,
}

impl Bench {
    fn run(&self, name: &str, work: Option<f64>, build: impl FnOnce(&mut World) -> T) {
        if !name.contains(&self.only) {
            return;
        }
        let mut w = World::new();
        let y = build(&mut w);
        let nodes = [y];
        let graph = GraphRef { nodes: &nodes, uses: None };
        let mut e = Executor::new();
        let mut best = f64::MAX;
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < 0.4 {
            let (t0, c0) = (Instant::now(), on_cpu());
            e.compute(&graph, &self.pool, self.threads, None, None).unwrap();
            let wall = t0.elapsed().as_secs_f64();
            // One thread: time on the processor, so that a busy machine does not count.
            best = best.min(if self.threads == 1 { (on_cpu() - c0).min(wall) } else { wall });
        }
        match work {
            Some(flops) => println!("{name:34} {:9.1} us {:8.1} GFLOPS", best * 1e6, flops / best / 1e9),
            None => {
                let srcs = t(y).src.iter().filter(|s| !s.is_null());
                let read: usize = srcs.map(|&s| shape::nelements(t(s)) as usize * shape::type_size(t(s).r#type)).sum();
                let bytes = read + shape::nbytes(t(y));
                println!("{name:34} {:9.1} us {:8.1} GB/s", best * 1e6, bytes as f64 / best / 1e9);
            }
        }
    }
}

/// Seconds that this thread has run.
fn on_cpu() -> f64 {
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    let mut time = [0i64; 2];
    // SAFETY: the second argument has room for a timespec of two 64-bit numbers; clock 3 is the thread's own.
    unsafe { clock_gettime(3, &mut time) };
    time[0] as f64 + time[1] as f64 * 1e-9
}

const F: ggml_type = GGML_TYPE_F32;
const H: ggml_type = GGML_TYPE_F16;

fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

fn flash(w: &mut World, d: i64, n: i64, kv: i64, heads: i64) -> T {
    let mut rng = Rng(3);
    let order = [0, 1, 2, 3];
    let q = w.random(F, [d, n, heads, 1], order, 0, &mut rng);
    let k = w.random(H, [d, kv, heads, 1], order, 0, &mut rng);
    let v = w.random(H, [d, kv, heads, 1], order, 0, &mut rng);
    w.node(GGML_OP_FLASH_ATTN_EXT, F, [d, heads, n, 1], &[q, k, v], &[bits(1.0 / (d as f32).sqrt()), 0, 0])
}

/// Operators of training, at sizes of a small language model and of a picture.
fn training(b: &Bench) {
    let order = [0, 1, 2, 3];
    let new = |w: &mut World, ty, ne, seed| w.random(ty, ne, order, 0, &mut Rng(seed));
    for (name, ty) in
        [("f32", F), ("f16", H), ("q8_0", GGML_TYPE_Q8_0), ("q4_0", GGML_TYPE_Q4_0), ("q4_K", GGML_TYPE_Q4_K)]
    {
        for (m, n, k) in [(1024, 512, 1024), (1024, 32, 1024)] {
            b.run(&format!("out_prod {name} {m}x{n}, {k}"), Some(2.0 * (m * n * k) as f64), |w| {
                let x = w.tensor(ty, [m, k, 1, 1]);
                fill(x, &mut Rng(1));
                let y = new(w, F, [n, k, 1, 1], 2);
                w.node(GGML_OP_OUT_PROD, F, [m, n, 1, 1], &[x, y], &[])
            });
        }
    }
    let rows = [1280, 1024, 1, 1];
    for (name, op, params) in [
        ("silu_back", GGML_OP_SILU_BACK, [0, 0]),
        ("rms_norm_back", GGML_OP_RMS_NORM_BACK, [bits(1e-6), 0]),
        ("soft_max_back", GGML_OP_SOFT_MAX_BACK, [bits(1.0), 0]),
    ] {
        b.run(&format!("{name} [1280,1024]"), None, |w| {
            let (g, x) = (new(w, F, rows, 1), new(w, F, rows, 2));
            w.node(op, F, rows, &[g, x], &params)
        });
    }
    for (name, op, ne) in [
        ("cross_entropy_loss", GGML_OP_CROSS_ENTROPY_LOSS, [1; 4]),
        ("cross_entropy_loss_back", GGML_OP_CROSS_ENTROPY_LOSS_BACK, [32000, 64, 1, 1]),
    ] {
        b.run(&format!("{name} [32000,64]"), None, |w| {
            let (g, x, y) = (new(w, F, [1; 4], 1), new(w, F, [32000, 64, 1, 1], 2), new(w, F, [32000, 64, 1, 1], 3));
            let all = [g, x, y];
            w.node(op, F, ne, if ne == [1; 4] { &all[1..] } else { &all }, &[])
        });
    }
    b.run("repeat_back [1280,1024]->[1280]", None, |w| {
        let x = new(w, F, rows, 1);
        w.node(GGML_OP_REPEAT_BACK, F, [1280, 1, 1, 1], &[x], &[])
    });
    b.run("get_rows_back [1024,512]->[1024,8000]", None, |w| {
        let (g, i) = (new(w, F, [1024, 512, 1, 1], 1), w.tensor(GGML_TYPE_I32, [512, 1, 1, 1]));
        for n in 0..512 {
            set(i, [n, 0, 0, 0], (n * 37 % 8000) as f32);
        }
        w.node(GGML_OP_GET_ROWS_BACK, F, [1024, 8000, 1, 1], &[g, i], &[])
    });
    b.run("im2col_back 3x3 [64,64,64]", None, |w| {
        let (g, k) = (new(w, F, [9 * 64, 64, 64, 1], 1), new(w, F, [3, 3, 64, 1], 2));
        w.node(GGML_OP_IM2COL_BACK, F, [64, 64, 64, 1], &[g, k], &[1, 1, 1, 1, 1, 1, 1])
    });
    b.run("pool_2d_back max 2x2 [256,256,64]", None, |w| {
        let (g, x) = (new(w, F, [128, 128, 64, 1], 1), new(w, F, [256, 256, 64, 1], 2));
        w.node(GGML_OP_POOL_2D_BACK, F, [256, 256, 64, 1], &[g, x], &[0, 2, 2, 2, 2, 0, 0])
    });
    b.run("opt_step_sgd [1280,1024]", None, |w| {
        let (a, g, p) = (new(w, F, rows, 1), new(w, F, rows, 2), new(w, F, [2, 1, 1, 1], 3));
        w.node(GGML_OP_OPT_STEP_SGD, F, rows, &[a, g, p], &[])
    });
    b.run("opt_step_adamw [1280,1024]", None, |w| {
        let all = [1, 2, 3, 4].map(|seed| new(w, F, rows, seed));
        let p = new(w, F, [7, 1, 1, 1], 5);
        w.node(GGML_OP_OPT_STEP_ADAMW, F, rows, &[all[0], all[1], all[2], all[3], p], &[])
    });
    let flops = 10.0 * (64 * 512 * 512 * 8) as f64;
    b.run("flash_attn_back hs64 512x512 nh8", Some(flops), |w| {
        let ne = [64, 512, 8, 1];
        let (q, k, d) = (new(w, F, ne, 1), new(w, F, ne, 2), new(w, F, ne, 3));
        let v = new(w, F, [512, 64, 8, 1], 4);
        w.node(GGML_OP_FLASH_ATTN_BACK, F, [3 * 64 * 512 * 8, 1, 1, 1], &[q, k, v, d], &[0])
    });
}

/// Relative positions of a picture's windows and of all of it.
fn positions(b: &Bench) {
    for (ty, format) in [(H, "f16"), (F, "f32")] {
        for (c, n) in [(64, 14), (80, 14), (64, 64), (80, 64)] {
            b.run(&format!("get_rel_pos {format} [{c},{n},{n}]"), None, |w| {
                let x = w.random(ty, [c, 2 * n - 1, 1, 1], [0, 1, 2, 3], 0, &mut Rng(1));
                w.node(GGML_OP_GET_REL_POS, H, [c, n, n, 1], &[x], &[])
            });
        }
    }
}

/// Operators that carry a state, at shapes of models: name, operations for each token, operator, sources for as many tokens as are
/// asked for, result for them.
fn sequences(b: &Bench) {
    type Shapes = fn(i64) -> Vec<[i64; 4]>;
    let linear = |n: usize| vec![[64, 32, 0, 1]; n];
    let cases: [(&str, f64, ggml_op, Shapes, [i64; 2]); 6] = [
        (
            "ssm_scan 128x64x80",
            5.0 * 128.0 * 64.0 * 80.0,
            GGML_OP_SSM_SCAN,
            |t| vec![[128, 64, 80, 1], [64, 80, t, 1], [80, t, 1, 1], [1, 80, 1, 1], [128, 1, t, 1], [128, 1, t, 1]],
            [64 * 80, 128 * 64 * 80],
        ),
        (
            "ssm_scan 16x1x5120",
            5.0 * 16.0 * 5120.0,
            GGML_OP_SSM_SCAN,
            |t| {
                vec![[16, 1, 5120, 1], [1, 5120, t, 1], [5120, t, 1, 1], [16, 5120, 1, 1], [16, 1, t, 1], [16, 1, t, 1]]
            },
            [5120, 16 * 5120],
        ),
        ("rwkv_wkv6 64x32", 7.0 * 64.0 * 2048.0, GGML_OP_RWKV_WKV6, |_| Vec::new(), [2048, 64 * 2048]),
        ("rwkv_wkv7 64x32", 9.0 * 64.0 * 2048.0, GGML_OP_RWKV_WKV7, |_| Vec::new(), [2048, 64 * 2048]),
        ("gated_linear_attn 64x32", 5.0 * 64.0 * 2048.0, GGML_OP_GATED_LINEAR_ATTN, |_| Vec::new(), [2048, 64 * 2048]),
        (
            "gated_delta_net 128x32",
            7.0 * 128.0 * 4096.0,
            GGML_OP_GATED_DELTA_NET,
            |t| {
                let x = [128, 32, t, 1];
                vec![x, x, x, [1, 32, t, 1], [1, 32, t, 1], [128, 128, 32, 1]]
            },
            [4096, 128 * 4096],
        ),
    ];
    for (name, flops, op, shapes, [width, state]) in cases {
        for tokens in [1, 32, 128] {
            b.run(&format!("{name} T{tokens}"), Some(flops * tokens as f64), |w| {
                let mut sources = shapes(tokens);
                if sources.is_empty() {
                    sources = linear(if op == GGML_OP_RWKV_WKV7 { 6 } else { 4 });
                    sources.iter_mut().for_each(|ne| ne[2] = tokens);
                    if op == GGML_OP_RWKV_WKV6 {
                        sources.insert(3, [64, 32, 1, 1]);
                    }
                    sources.push([state, 1, 1, 1]);
                }
                let mut sources: Vec<T> = sources
                    .iter()
                    .enumerate()
                    .map(|(i, &ne)| w.random(F, ne, [0, 1, 2, 3], 0, &mut Rng(i as u64 + 1)))
                    .collect();
                let mut ne = [width, tokens + state / width, 1, 1];
                if op == GGML_OP_SSM_SCAN {
                    let ids = w.tensor(GGML_TYPE_I32, [1, 1, 1, 1]);
                    set(ids, [0; 4], 0.0);
                    sources.push(ids);
                    ne = [width * tokens + state, 1, 1, 1];
                }
                w.node(op, F, ne, &sources, &[1])
            });
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let threads = args.next().map_or(2, |a| a.parse().unwrap());
    let b = Bench { threads, only: args.next().unwrap_or_default(), pool: Pool::new(threads).unwrap() };
    sequences(&b);
    positions(&b);
    let order = [0, 1, 2, 3];
    let img = [256, 256, 64, 1];
    let new = |w: &mut World, ty, ne, order, seed| w.random(ty, ne, order, 0, &mut Rng(seed));
    b.run("add bias [256,256,64]+[1,1,64]", None, |w| {
        let (x, y) = (new(w, F, img, order, 1), new(w, F, [1, 1, 64, 1], order, 2));
        w.node(GGML_OP_ADD, F, img, &[x, y], &[])
    });
    b.run("add [256,256,64]", None, |w| {
        let (x, y) = (new(w, F, img, order, 1), new(w, F, img, order, 2));
        w.node(GGML_OP_ADD, F, img, &[x, y], &[])
    });
    b.run("mul [2,64,608,8]*[2,64,608,1]", None, |w| {
        let (x, y) = (new(w, F, [2, 64, 608, 8], order, 1), new(w, F, [2, 64, 608, 1], order, 2));
        w.node(GGML_OP_MUL, F, [2, 64, 608, 8], &[x, y], &[])
    });
    b.run("mul [1280,1024]*[1280]", None, |w| {
        let (x, y) = (new(w, F, [1280, 1024, 1, 1], order, 1), new(w, F, [1280, 1, 1, 1], order, 2));
        w.node(GGML_OP_MUL, F, [1280, 1024, 1, 1], &[x, y], &[])
    });
    for (name, op) in [
        ("silu", GGML_UNARY_OP_SILU),
        ("gelu", GGML_UNARY_OP_GELU),
        ("gelu_erf", GGML_UNARY_OP_GELU_ERF),
        ("tanh", GGML_UNARY_OP_TANH),
    ] {
        b.run(&format!("{name} [1280,1024]"), None, |w| {
            let x = new(w, F, [1280, 1024, 1, 1], order, 1);
            w.node(GGML_OP_UNARY, F, [1280, 1024, 1, 1], &[x], &[op.0])
        });
    }
    b.run("scale [1024,1024,8]", None, |w| {
        let x = new(w, F, [1024, 1024, 8, 1], order, 1);
        w.node(GGML_OP_SCALE, F, [1024, 1024, 8, 1], &[x], &[bits(0.3), 0])
    });
    for (name, op) in [("rms_norm", GGML_OP_RMS_NORM), ("norm", GGML_OP_NORM)] {
        b.run(&format!("{name} [1280,1024]"), None, |w| {
            let x = new(w, F, [1280, 1024, 1, 1], order, 1);
            w.node(op, F, [1280, 1024, 1, 1], &[x], &[bits(1e-6)])
        });
    }
    b.run("group_norm [256,256,64]", None, |w| {
        let x = new(w, F, img, order, 1);
        w.node(GGML_OP_GROUP_NORM, F, img, &[x], &[32, bits(1e-6)])
    });
    b.run("soft_max [1024,1024,8]", None, |w| {
        let x = new(w, F, [1024, 1024, 8, 1], order, 1);
        w.node(GGML_OP_SOFT_MAX, F, [1024, 1024, 8, 1], &[x], &[bits(1.0), 0])
    });
    b.run("soft_max [77,1024,8]", None, |w| {
        let x = new(w, F, [77, 1024, 8, 1], order, 1);
        w.node(GGML_OP_SOFT_MAX, F, [77, 1024, 8, 1], &[x], &[bits(1.0), 0])
    });
    for ty in [F, H] {
        for (name, ne, o) in [
            ("cont (1,0,2,3) [1024,1024,8]", [1024, 1024, 8, 1], [1, 0, 2, 3]),
            ("cont (1,0,2,3) [65536,64]", [65536, 64, 1, 1], [1, 0, 2, 3]),
            ("cont (1,0,2,3) [1000,1000,4]", [1000, 1000, 4, 1], [1, 0, 2, 3]),
            ("cont (0,2,1,3) [64,1024,16]", [64, 1024, 16, 1], [0, 2, 1, 3]),
        ] {
            b.run(&format!("{name} {}", if ty == F { "f32" } else { "f16" }), None, |w| {
                let x = new(w, ty, ne, o, 1);
                w.node(GGML_OP_CONT, ty, ne, &[x], &[])
            });
        }
    }
    b.run("cast f32->f16 [1280,1024]", None, |w| {
        let x = new(w, F, [1280, 1024, 1, 1], order, 1);
        w.node(GGML_OP_CPY, H, [1280, 1024, 1, 1], &[x], &[])
    });
    b.run("repeat [1,1,64]->[256,256,64]", None, |w| {
        let x = new(w, F, [1, 1, 64, 1], order, 1);
        w.node(GGML_OP_REPEAT, F, img, &[x], &[])
    });
    b.run("concat dim2 [256,256,32]x2", None, |w| {
        let (x, y) = (new(w, F, [256, 256, 32, 1], order, 1), new(w, F, [256, 256, 32, 1], order, 2));
        w.node(GGML_OP_CONCAT, F, img, &[x, y], &[2])
    });
    b.run("upscale nearest x2 [128,128,64]", None, |w| {
        let x = new(w, F, [128, 128, 64, 1], order, 1);
        w.node(GGML_OP_UPSCALE, F, img, &[x], &[0])
    });
    b.run("pad [128,128,64]", None, |w| {
        let x = new(w, F, [128, 128, 64, 1], order, 1);
        w.node(GGML_OP_PAD, F, [129, 129, 64, 1], &[x], &[0, 1, 0, 1, 0, 0, 0, 0, 0])
    });
    b.run("rope [128,24,1024] normal", None, |w| {
        let x = new(w, F, [128, 24, 1024, 1], order, 1);
        let p = w.tensor(GGML_TYPE_I32, [1024, 1, 1, 1]);
        let mut params = vec![0, 128, 0, 0, 4096];
        params.extend([10000.0, 1.0, 0.0, 1.0, 32.0, 1.0].map(bits));
        for i in 0..1024 {
            set(p, [i, 0, 0, 0], i as f32);
        }
        w.node(GGML_OP_ROPE, F, [128, 24, 1024, 1], &[x, p], &params)
    });
    training(&b);
    for (d, n, kv, h) in [
        (8, 1024, 1024, 8),
        (40, 1024, 1024, 8),
        (40, 1024, 77, 8),
        (64, 1024, 1024, 8),
        (128, 608, 608, 8),
        (128, 1, 4096, 32),
    ] {
        let flops = 4.0 * (d * n * kv * h) as f64;
        b.run(&format!("flash_attn hs{d} {n}x{kv} nh{h}"), Some(flops), |w| flash(w, d, n, kv, h));
    }
}
