//! Calls take no memory from the system.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::{lead, Call, Calls, Executor, GraphRef, Pool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's own, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOC: Counting = Counting;

#[test]
fn the_number_of_calls_does_not_matter() {
    let mut world = World::new();
    let x = world.random(GGML_TYPE_F32, [4, 1, 1, 1], [0, 1, 2, 3], 0, &mut Rng(1));
    for _ in 0..2000 {
        world.node(GGML_OP_SCALE, GGML_TYPE_F32, [4, 1, 1, 1], &[x], &[1f32.to_bits() as i32, 0]);
    }
    let ranges: Vec<Call> = (0..1000).map(|i| Call { first: 2 * i, last: 2 * i }).collect();
    for nth in [1, 3] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        let mut count = |calls: usize, share: bool| {
            let run = |_| {
                if share {
                    lead::parallel(&|_, _| {}).unwrap();
                }
                Ok(())
            };
            let calls = Calls { ranges: &ranges[..calls], run: &run };
            let graph = GraphRef { nodes: &world.nodes, uses: None };
            let before = COUNT.load(Ordering::Relaxed);
            exec.compute_with(&graph, calls, &pool, nth, None, None).unwrap();
            COUNT.load(Ordering::Relaxed) - before
        };
        count(1000, true);
        for share in [false, true] {
            // What entering the pool takes is not the same each time: its queues grow by blocks.
            let least = |calls: usize, count: &mut dyn FnMut(usize, bool) -> usize| {
                (0..5).map(|_| count(calls, share)).min().unwrap()
            };
            let (few, many) = (least(1, &mut count), least(1000, &mut count));
            assert_eq!(few, many, "{nth} threads, share: {share}");
            assert!(share || many == 0, "{many}");
        }
    }
}
