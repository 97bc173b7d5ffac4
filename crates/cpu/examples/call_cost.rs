//! What a call costs beside a tiny node of the library's own, and what sharing work from within one costs. Argument: threads.
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{lead, Call, Calls, Executor, GraphRef, Pool, Stop};
use std::cell::Cell;
use std::time::{Duration, Instant};

const NODES: usize = 1000;

/// The best time of one computation, in nanoseconds.
fn best(pool: &Pool, nth: usize, nodes: &[*mut ggml_tensor], calls: Calls) -> f64 {
    let (graph, mut exec) = (GraphRef { nodes, uses: None }, Executor::new());
    let (start, mut least) = (Instant::now(), f64::MAX);
    while start.elapsed() < Duration::from_millis(600) {
        let t0 = Instant::now();
        exec.compute_with(&graph, calls, pool, nth, None, None).unwrap();
        least = least.min(t0.elapsed().as_secs_f64() * 1e9);
    }
    least
}

fn main() {
    let nth = std::env::args().nth(1).map_or(2, |a| a.parse().unwrap());
    let pool = Pool::new(nth).unwrap();
    let mut w = World::new();
    let mut rng = Rng(1);
    let x = w.random(GGML_TYPE_F32, [4, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
    for _ in 0..NODES {
        w.node(GGML_OP_SCALE, GGML_TYPE_F32, [4, 1, 1, 1], &[x], &[1f32.to_bits() as i32, 0]);
    }
    let nodes = &w.nodes[..];
    let every: Vec<Call> = (0..NODES).map(|i| Call { first: i, last: i }).collect();
    let other: Vec<Call> = every.iter().copied().step_by(2).collect();
    let count = Cell::new(0usize);
    let tiny = |i: usize| -> Result<(), Stop> {
        count.set(count.get() + i);
        Ok(())
    };
    let sharing = |_: usize| -> Result<(), Stop> {
        lead::parallel(&|ith, _| {
            std::hint::black_box(ith);
        })
        .unwrap();
        Ok(())
    };
    let each = |t: f64, n: usize| t / n as f64;
    let native = best(&pool, nth, nodes, Calls::NONE);
    println!("{NODES} native nodes                      {:8.1} ns each", each(native, NODES));
    let t = best(&pool, nth, nodes, Calls { ranges: &every, run: &tiny });
    println!("{NODES} calls                             {:8.1} ns each", each(t, NODES));
    let t = best(&pool, nth, nodes, Calls { ranges: &other, run: &tiny });
    println!("calls and native nodes in turns          {:8.1} ns each", each(t, NODES));
    for n in [1, 10] {
        let some: Vec<Call> = (0..n).map(|i| Call { first: i, last: i }).collect();
        let t = best(&pool, nth, &nodes[..n], Calls::NONE);
        println!("graph of {n:2} native nodes                 {t:8.1} ns");
        let t = best(&pool, nth, &nodes[..n], Calls { ranges: &some, run: &tiny });
        println!("graph of {n:2} calls                        {t:8.1} ns");
        let t = best(&pool, nth, &nodes[..n], Calls { ranges: &some, run: &sharing });
        println!("graph of {n:2} calls that share work        {t:8.1} ns");
    }
    let mut w = World::new();
    let x = w.random(GGML_TYPE_F32, [8192, 1, 1, 1], [0, 1, 2, 3], 0, &mut rng);
    for _ in 0..NODES {
        w.node(GGML_OP_SCALE, GGML_TYPE_F32, [8192, 1, 1, 1], &[x], &[1f32.to_bits() as i32, 0]);
    }
    for n in [1, 10, NODES] {
        let t = best(&pool, nth, &w.nodes[..n], Calls::NONE);
        println!("graph of {n:2} native nodes on all threads  {t:8.1} ns");
    }
    let t = best(&pool, nth, nodes, Calls { ranges: &every, run: &sharing });
    println!("{NODES} calls that share work             {:8.1} ns each", each(t, NODES));
}
