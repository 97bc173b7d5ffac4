//! The pool and the executor: order, abort, failures, unallocated data, poison, flags.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::exec::{FLAG_POISONED, POISON_TEXT};
use ggml_oxide_cpu::{work_size, Executor, GraphRef, Pool, Stop};
use std::ffi::{c_void, CStr};

const PLAIN: [usize; 4] = [0, 1, 2, 3];

/// A chain of products, each reading the one before; sizes change so that small and large steps alternate.
fn ladder(world: &mut World, steps: usize) -> T {
    let mut rng = Rng(21);
    let mut x = world.random(GGML_TYPE_F32, [16, 9, 1, 1], PLAIN, 0, &mut rng);
    for i in 0..steps {
        let (k, m) = (t(x).ne[0], if i % 3 == 0 { 700 } else { 16 });
        let w = world.random(GGML_TYPE_F32, [k, m, 1, 1], PLAIN, 0, &mut rng);
        x = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [m, 9, 1, 1], &[w, x], &[]);
    }
    x
}

fn failed(stop: Result<(), Stop>) -> (usize, String) {
    match stop {
        Err(Stop::Failed { node, text }) => (node as usize, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn steps_see_what_earlier_steps_wrote() {
    let mut world = World::new();
    let y = ladder(&mut world, 60);
    let mut first: Option<Vec<u8>> = None;
    for nth in [1, 2, 3, 5, 8] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        for _ in 0..5 {
            for &n in &world.nodes {
                world.spoil(n);
            }
            let graph = GraphRef { nodes: &world.nodes, uses: None };
            exec.compute(&graph, &pool, nth, None, None).unwrap();
            let got = bytes(y);
            assert_eq!(first.get_or_insert_with(|| got.clone()), &got);
        }
    }
}

#[test]
fn several_callers_share_a_pool() {
    let pool = Pool::new(3).unwrap();
    let want = {
        let mut world = World::new();
        let y = ladder(&mut world, 20);
        world.compute(1).unwrap();
        bytes(y)
    };
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let mut world = World::new();
                let y = ladder(&mut world, 20);
                let mut exec = Executor::new();
                for n in [3, 2, 7, 1] {
                    let graph = GraphRef { nodes: &world.nodes, uses: None };
                    exec.compute(&graph, &pool, n, None, None).unwrap();
                    assert_eq!(bytes(y), want);
                }
            });
        }
    });
}

#[test]
fn pool_parameters_are_taken() {
    // SAFETY: all zero is a valid value.
    let mut p: ggml_threadpool_params = unsafe { std::mem::zeroed() };
    p.n_threads = 3;
    p.poll = 0;
    p.paused = true;
    p.prio = GGML_SCHED_PRIO_LOW;
    p.cpumask[0] = true;
    p.strict_cpu = true;
    // On a thread of its own, since the caller's cores are set too.
    std::thread::spawn(move || {
        let pool = Pool::with_params(&p).unwrap();
        assert!(pool.is_paused());
        assert_eq!(pool.n_threads(), 3);
        let mut world = World::new();
        ladder(&mut world, 4);
        let graph = GraphRef { nodes: &world.nodes, uses: None };
        Executor::new().compute(&graph, &pool, 3, None, None).unwrap();
        assert!(!pool.is_paused());
        pool.pause();
        pool.resume();
        assert!(!pool.is_paused());
    })
    .join()
    .unwrap();
}

unsafe extern "C" fn count_down(data: *mut c_void) -> bool {
    // SAFETY: the test hands over a counter.
    let left = unsafe { &mut *data.cast::<i32>() };
    *left -= 1;
    *left < 0
}

#[test]
fn abort_is_asked_before_each_node() {
    let mut world = World::new();
    ladder(&mut world, 9);
    for nth in [1, 3] {
        let pool = Pool::new(nth).unwrap();
        for allowed in 0..=9usize {
            for &n in &world.nodes {
                world.spoil(n);
            }
            let mut left = allowed as i32;
            let graph = GraphRef { nodes: &world.nodes, uses: None };
            let abort = Some((count_down as unsafe extern "C" fn(*mut c_void) -> bool, (&raw mut left).cast()));
            let done = Executor::new().compute(&graph, &pool, nth, abort, None);
            let ran = world.nodes.iter().take_while(|&&n| bytes(n).iter().any(|&b| b != 0x5c)).count();
            assert_eq!(ran, allowed);
            assert_eq!(done, if allowed == 9 { Ok(()) } else { Err(Stop::Aborted) });
            assert!(left <= 0, "the callback was not asked before every node");
        }
    }
}

#[test]
fn unallocated_memory_is_an_error_and_nothing_runs() {
    for which in 0..3 {
        let mut world = World::new();
        let y = ladder(&mut world, 3);
        let victim = [y, t(y).src[0], t(world.nodes[1]).src[1]][which];
        t(victim).data = std::ptr::null_mut();
        let (_, text) = failed(world.compute(2));
        assert!(text.contains("MUL_MAT") && text.contains("has no memory"), "{text}");
        if which == 1 {
            assert!(bytes(world.nodes[0]).iter().all(|&b| b == 0x5c), "a node ran");
        }
    }
    // Without elements no memory is needed.
    let mut world = World::new();
    let w = world.bare(GGML_TYPE_F32, [4, 3, 1, 1]);
    let x = world.bare(GGML_TYPE_F32, [4, 0, 1, 1]);
    let y = world.bare(GGML_TYPE_F32, [3, 0, 1, 1]);
    world.make_node(y, GGML_OP_MUL_MAT, &[w, x], &[]);
    world.compute(2).unwrap();
}

#[test]
fn misaligned_memory_is_an_error() {
    let mut world = World::new();
    let y = ladder(&mut world, 1);
    t(y).data = t(y).data.wrapping_byte_sub(2);
    let (_, text) = failed(world.compute(1));
    assert!(text.contains("not aligned"), "{text}");
}

#[test]
fn poison_says_why() {
    static WHY: &CStr = c"ggml_mul_mat: shapes do not multiply";
    let mut world = World::new();
    let y = ladder(&mut world, 2);
    t(y).flags |= FLAG_POISONED;
    let (node, text) = failed(world.compute(2));
    assert_eq!(node, y as usize);
    assert!(text.contains("impossible arguments"));
    let address = (WHY.as_ptr() as u64).to_ne_bytes();
    for (i, word) in address.as_chunks::<4>().0.iter().enumerate() {
        t(y).op_params[POISON_TEXT + i] = i32::from_ne_bytes(*word);
    }
    let (_, text) = failed(world.compute(2));
    assert!(text.ends_with(WHY.to_str().unwrap()), "{text}");
}

#[test]
fn nodes_without_the_flag_are_left_out_and_unknown_ones_refused() {
    let mut world = World::new();
    let y = ladder(&mut world, 1);
    t(y).flags = 0;
    world.compute(1).unwrap();
    assert!(bytes(y).iter().all(|&b| b == 0x5c));
    t(y).flags = GGML_TENSOR_FLAG_COMPUTE.0;
    for op in [GGML_OP_COUNT, ggml_op(-5), ggml_op(5000)] {
        t(y).op = op;
        let (_, text) = failed(world.compute(1));
        assert!(text.contains("no kernel"), "{text}");
    }
    t(y).op = GGML_OP_MUL_MAT;
    t(y).r#type = ggml_type(77);
    let (_, text) = failed(world_compute_unchecked(&world));
    assert!(text.contains("format is unknown"), "{text}");
}

/// Without the look at the guard bytes, which needs a known format.
fn world_compute_unchecked(world: &World) -> Result<(), Stop> {
    let graph = GraphRef { nodes: &world.nodes, uses: None };
    Executor::new().compute(&graph, &Pool::new(1).unwrap(), 1, None, None)
}

#[test]
fn callers_scratch_memory_is_used_when_it_is_large_enough() {
    let mut world = World::new();
    let mut rng = Rng(22);
    // large enough to be packed, which needs memory
    let w = world.random(GGML_TYPE_F32, [70, 90, 1, 1], PLAIN, 0, &mut rng);
    let x = world.random(GGML_TYPE_F32, [70, 80, 1, 1], PLAIN, 0, &mut rng);
    let y = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [90, 80, 1, 1], &[w, x], &[]);
    world.compute(2).unwrap();
    let want = bytes(y);
    let graph = GraphRef { nodes: &world.nodes, uses: None };
    let need = work_size(&graph, 2);
    assert!(need > 0);
    let pool = Pool::new(2).unwrap();
    for (len, used) in [(need, true), (need - 1, false)] {
        let mut work = vec![0x33u8; len + 64];
        world.spoil(y);
        Executor::new().compute(&graph, &pool, 2, None, Some(&mut work[32..32 + len])).unwrap();
        assert_eq!(bytes(y), want);
        assert!(work[..32].iter().chain(&work[32 + len..]).all(|&b| b == 0x33));
        assert_eq!(work.iter().any(|&b| b != 0x33), used);
    }
}

#[test]
fn an_empty_graph_is_computed() {
    World::new().compute(3).unwrap();
    assert_eq!(work_size(&GraphRef { nodes: &[], uses: None }, 4), 0);
}
