//! Calls: nodes that the caller computes, between those of the library, and work that a call shares over the run's threads.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use ggml_oxide_abi::*;
use ggml_oxide_cpu::exec::FLAG_POISONED;
use ggml_oxide_cpu::lead::{self, Refused};
use ggml_oxide_cpu::{Call, Calls, Executor, GraphRef, Pool, Stop};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

const PLAIN: [usize; 4] = [0, 1, 2, 3];
const SMALL: i64 = 20;
/// Enough elements that all threads share a node.
const LARGE: i64 = 10_000;
const FACTORS: [f32; 3] = [1.5, -0.75, 1.25];

/// A chain of scaled tensors, `ne` elements each.
fn chain(world: &mut World, steps: usize, ne: i64) {
    let mut x = world.random(GGML_TYPE_F32, [ne, 1, 1, 1], PLAIN, 0, &mut Rng(7));
    for i in 0..steps {
        let factor = FACTORS[i % 3].to_bits() as i32;
        x = world.node(GGML_OP_SCALE, GGML_TYPE_F32, [ne, 1, 1, 1], &[x], &[factor, 0]);
    }
}

fn floats(p: T) -> &'static mut [f32] {
    // SAFETY: a contiguous tensor of the test's own, which nothing else touches during a call.
    unsafe { std::slice::from_raw_parts_mut(t(p).data.cast(), t(p).ne[0] as usize) }
}

/// What the nodes of a call in a `chain` compute; only the last has memory.
fn by_hand(nodes: &[T], call: Call) {
    let mut values = floats(t(nodes[call.first]).src[0]).to_vec();
    for &n in &nodes[call.first..=call.last] {
        values.iter_mut().for_each(|v| *v *= f32::from_bits(t(n).op_params[0] as u32));
    }
    floats(nodes[call.last]).copy_from_slice(&values);
}

fn compute(world: &World, calls: Calls, pool: &Pool, exec: &mut Executor) -> Result<(), Stop> {
    let graph = GraphRef { nodes: &world.nodes, uses: None };
    exec.compute_with(&graph, calls, pool, pool.n_threads(), None, None)
}

fn text_of(stop: Result<(), Stop>) -> String {
    match stop {
        Err(Stop::Failed { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

fn singles(n: usize) -> Vec<Call> {
    (0..n).map(|i| Call { first: i, last: i }).collect()
}

#[test]
fn calls_and_nodes_run_in_order_and_see_each_others_results() {
    const STEPS: usize = 24;
    let mut rng = Rng(3);
    for (nth, ne) in [(1, SMALL), (2, SMALL), (5, SMALL), (1, LARGE), (2, LARGE), (5, LARGE)] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        for round in 0..30 {
            let mut world = World::new();
            chain(&mut world, STEPS, ne);
            world.compute(1).unwrap();
            let want = bytes(world.nodes[STEPS - 1]);
            let (mut ranges, mut at) = (Vec::new(), rng.below(3));
            while at < STEPS {
                let call = Call { first: at, last: (at + rng.below(4)).min(STEPS - 1) };
                ranges.push(call);
                at = call.last + 1 + rng.below(3);
            }
            for call in &ranges {
                for (i, &n) in world.nodes[call.first..=call.last].iter().enumerate() {
                    // Nobody looks at them.
                    match (round + i) % 3 {
                        0 => t(n).flags |= FLAG_POISONED,
                        1 => t(n).op = GGML_OP_COUNT,
                        _ => t(n).flags = 0,
                    }
                    if i < call.last - call.first {
                        t(n).data = std::ptr::null_mut();
                    }
                }
            }
            world.nodes.iter().filter(|&&n| !t(n).data.is_null()).for_each(|&n| world.spoil(n));
            let order = RefCell::new(Vec::new());
            let run = |i: usize| {
                order.borrow_mut().push(i);
                by_hand(&world.nodes, ranges[i]);
                Ok(())
            };
            compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut exec).unwrap();
            assert_eq!(bytes(world.nodes[STEPS - 1]), want, "{ranges:?}");
            assert_eq!(order.into_inner(), (0..ranges.len()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn calls_must_be_ordered_ranges_of_the_graph() {
    let mut world = World::new();
    chain(&mut world, 4, SMALL);
    let pool = Pool::new(2).unwrap();
    let bad: [&[(usize, usize)]; 6] =
        [&[(4, 4)], &[(2, 1)], &[(3, usize::MAX)], &[(1, 2), (2, 3)], &[(2, 2), (0, 0)], &[(1, 1), (1, 1)]];
    for ranges in bad {
        let ranges: Vec<Call> = ranges.iter().map(|&(first, last)| Call { first, last }).collect();
        let run = |_| panic!("it ran");
        let text = text_of(compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut Executor::new()));
        assert!(text.contains("a call of nodes"), "{text}");
        assert!(world.nodes.iter().all(|&n| bytes(n).iter().all(|&b| b == 0x5c)), "a node ran");
    }
}

#[test]
fn a_bad_node_beside_calls_means_that_nothing_runs() {
    let mut world = World::new();
    chain(&mut world, 4, SMALL);
    t(world.nodes[3]).data = std::ptr::null_mut();
    let run = |_| panic!("it ran");
    let calls = Calls { ranges: &[Call { first: 1, last: 1 }], run: &run };
    let text = text_of(compute(&world, calls, &Pool::new(2).unwrap(), &mut Executor::new()));
    assert!(text.contains("has no memory"), "{text}");
}

#[test]
fn fusion_does_not_reach_into_calls() {
    // A 1 x 1 convolution: its im2col chain is IM2COL, RESHAPE, MUL_MAT.
    let mut world = World::new();
    let mut rng = Rng(5);
    let image = world.random(GGML_TYPE_F32, [40, 30, 8, 1], PLAIN, 0, &mut rng);
    let kernel = world.random(GGML_TYPE_F16, [3, 3, 8, 16], PLAIN, 0, &mut rng);
    let params = [1, 1, 1, 1, 1, 1, 1];
    let patches = world.node(GGML_OP_IM2COL, GGML_TYPE_F16, [72, 40, 30, 1], &[kernel, image], &params);
    let rows = world.reshape(patches, [72, 1200, 1, 1]);
    let flat = world.reshape(kernel, [72, 16, 1, 1]);
    let product = world.node(GGML_OP_MUL_MAT, GGML_TYPE_F32, [1200, 16, 1, 1], &[rows, flat], &[]);
    world.node(GGML_OP_SCALE, GGML_TYPE_F32, [1200, 16, 1, 1], &[product], &[0, 0]);
    let uses = |p: *const ggml_tensor| world.uses(p);
    let graph = GraphRef { nodes: &world.nodes, uses: Some(&uses) };
    let pool = Pool::new(2).unwrap();
    let mut exec = Executor::new();
    exec.compute(&graph, &pool, 2, None, None).unwrap();
    assert_eq!(exec.chains(), 1);
    let want = bytes(world.nodes[3]);
    for i in 0..5 {
        world.spoil(world.nodes[3]);
        let run = |_| Ok(());
        let calls = Calls { ranges: &[Call { first: i, last: i }], run: &run };
        exec.compute_with(&graph, calls, &pool, 2, None, None).unwrap();
        // The reshape of the kernel is no part of the chain, but lies within it; the last node lies behind it.
        assert_eq!(exec.chains(), usize::from(i == 4), "with a call at {i}");
        if i == 3 {
            assert!(bytes(world.nodes[3]).iter().all(|&b| b == 0x5c), "the call's node was computed");
        } else if i != 0 {
            assert_eq!(bytes(world.nodes[3]), want);
        }
    }
}

#[test]
fn a_call_ends_the_graph_with_its_own_status() {
    for (nth, ne) in [(1, SMALL), (2, SMALL), (5, LARGE)] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        for stop_at in 0..3 {
            let mut world = World::new();
            chain(&mut world, 9, ne);
            let ranges = [1, 4, 7].map(|i| Call { first: i, last: i });
            let node = world.nodes[ranges[stop_at].last].cast_const();
            let stop = || Stop::Status { node, status: -7, text: "no more".into() };
            let run = |i: usize| {
                by_hand(&world.nodes, ranges[i]);
                if i == stop_at {
                    Err(stop())
                } else {
                    Ok(())
                }
            };
            let calls = Calls { ranges: &ranges, run: &run };
            assert_eq!(compute(&world, calls, &pool, &mut exec), Err(stop()));
            let ran = |&&n: &&T| bytes(n).iter().any(|&b| b != 0x5c);
            assert_eq!(world.nodes.iter().filter(ran).count(), ranges[stop_at].last + 1);
            // and the next graph runs
            compute(&world, Calls::NONE, &pool, &mut exec).unwrap();
        }
    }
}

#[test]
fn work_is_shared_by_all_threads_of_the_run_each_once() {
    for (nth, ne) in [(1, SMALL), (2, SMALL), (5, SMALL), (2, LARGE), (5, LARGE)] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        let mut world = World::new();
        chain(&mut world, 40, ne);
        world.compute(1).unwrap();
        let want = bytes(world.nodes[39]);
        // Twenty calls, among them some side by side and the first and the last node.
        let ranges: Vec<Call> =
            (0..40).filter(|i| i % 3 == 0 || i % 7 == 0).map(|i| Call { first: i, last: i }).collect();
        for _ in 0..10 {
            world.nodes.iter().for_each(|&n| world.spoil(n));
            let run = |i: usize| {
                let node = world.nodes[ranges[i].first];
                let (from, factor) = (floats(t(node).src[0]), f32::from_bits(t(node).op_params[0] as u32));
                let to = Mutex::new(floats(node));
                let seen: Vec<AtomicUsize> = (0..nth).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..i % 3 + 1 {
                    lead::parallel(&|ith, n| {
                        assert_eq!(n, nth);
                        seen[ith].fetch_add(1, Ordering::Relaxed);
                        for k in (ith..from.len()).step_by(n) {
                            to.lock().unwrap()[k] = from[k] * factor;
                        }
                    })
                    .unwrap();
                }
                assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) == i % 3 + 1));
                Ok(())
            };
            compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut exec).unwrap();
            assert_eq!(bytes(world.nodes[39]), want);
        }
    }
}

#[test]
fn tasks_run_at_the_same_time() {
    let pool = Pool::new(4).unwrap();
    let mut world = World::new();
    chain(&mut world, 2, SMALL);
    let run = |_| {
        let meeting = std::sync::Barrier::new(4);
        lead::parallel(&|_, _| {
            meeting.wait();
        })
        .unwrap();
        Ok(())
    };
    compute(&world, Calls { ranges: &singles(2), run: &run }, &pool, &mut Executor::new()).unwrap();
}

#[test]
fn a_graph_may_use_fewer_threads_than_the_pool_has() {
    let pool = Pool::new(5).unwrap();
    let mut world = World::new();
    chain(&mut world, 3, LARGE);
    let graph = GraphRef { nodes: &world.nodes, uses: None };
    for nth in [1, 2, 4, 9] {
        let ran = AtomicUsize::new(0);
        let run = |_| {
            lead::parallel(&|_, n| {
                assert_eq!(n, nth.min(5));
                ran.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
            Ok(())
        };
        let calls = Calls { ranges: &[Call { first: 1, last: 1 }], run: &run };
        Executor::new().compute_with(&graph, calls, &pool, nth, None, None).unwrap();
        assert_eq!(ran.into_inner(), nth.min(5));
    }
}

#[test]
fn panics_leave_nobody_waiting_and_name_the_node() {
    for (nth, ne) in [(1, SMALL), (2, SMALL), (5, SMALL), (2, LARGE), (5, LARGE)] {
        let pool = Pool::new(nth).unwrap();
        let mut exec = Executor::new();
        let mut world = World::new();
        chain(&mut world, 6, ne);
        let ranges = [0, 2, 5].map(|i| Call { first: i, last: i });
        for at in 0..3 {
            for who in [0, nth - 1, usize::MAX] {
                let refused = RefCell::new(Vec::new());
                let run = |i: usize| {
                    by_hand(&world.nodes, ranges[i]);
                    if i == at {
                        for _ in 0..2 {
                            let done =
                                lead::parallel(&|ith, _| assert!(ith != who && who != usize::MAX, "part of a test"));
                            refused.borrow_mut().push(done);
                        }
                    }
                    Ok(())
                };
                let text = text_of(compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut exec));
                assert!(text.contains("(SCALE): a task of the function") && text.contains("panicked"), "{text}");
                assert_eq!(refused.into_inner(), [Err(Refused::Panicked); 2]);
            }
            let run = |i: usize| {
                lead::parallel(&|_, _| {}).unwrap();
                assert!(i != at, "part of a test");
                Ok(())
            };
            let text = text_of(compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut exec));
            assert!(text.contains("(SCALE): the function that computes it panicked"), "{text}");
            assert_eq!(lead::parallel(&|_, _| {}), Err(Refused::Outside), "the run is still noted");
        }
        compute(&world, Calls::NONE, &pool, &mut exec).unwrap();
    }
}

#[test]
fn a_task_cannot_share_again() {
    for nth in [1, 2, 5] {
        let pool = Pool::new(nth).unwrap();
        let mut world = World::new();
        chain(&mut world, 2, SMALL);
        let answers = Mutex::new(Vec::new());
        let run = |_| {
            lead::parallel(&|ith, _| {
                let inner = lead::parallel(&|_, _| panic!("it ran"));
                let pooled = lead::on_pool(&pool, nth, &|_, _| panic!("it ran"));
                answers.lock().unwrap().push((ith, inner, pooled));
            })
            .unwrap();
            lead::parallel(&|_, _| {}).map_err(|_| Stop::Failed { node: std::ptr::null(), text: "it is over".into() })
        };
        let calls = Calls { ranges: &singles(1), run: &run };
        compute(&world, calls, &pool, &mut Executor::new()).unwrap();
        let answers = answers.into_inner().unwrap();
        assert_eq!(answers.len(), nth);
        for (ith, inner, pooled) in answers {
            assert_eq!(inner, Err(if ith == 0 { Refused::Nested } else { Refused::Outside }));
            assert_eq!(pooled, Err(Refused::Nested));
        }
    }
}

unsafe extern "C" fn note_refusal(_: *mut ggml_tensor, ith: c_int, _: c_int, data: *mut c_void) {
    if ith == 0 {
        // SAFETY: the test hands over a cell that outlives the graph.
        unsafe { &*data.cast::<Cell<Option<Refused>>>() }.set(lead::parallel(&|_, _| {}).err());
    }
}

#[test]
fn only_calls_share_work() {
    assert_eq!(lead::parallel(&|_, _| panic!("it ran")), Err(Refused::Outside));
    for n_tasks in [1, -1] {
        let mut world = World::new();
        chain(&mut world, 1, SMALL);
        let refused = Cell::new(None);
        let custom = world.node(GGML_OP_CUSTOM, GGML_TYPE_F32, [4, 1, 1, 1], &[], &[]);
        let params = (note_refusal as *const () as usize, n_tasks as c_int, (&raw const refused) as usize);
        // SAFETY: the parameters have 64 bytes; the tuple's layout is written out as the C structure's.
        unsafe {
            let p = t(custom).op_params.as_mut_ptr();
            p.cast::<usize>().write_unaligned(params.0);
            p.add(2).write(params.1);
            p.add(4).cast::<usize>().write_unaligned(params.2);
        }
        let run = |_| {
            lead::parallel(&|_, _| {}).unwrap();
            Ok(())
        };
        let calls = Calls { ranges: &singles(1), run: &run };
        compute(&world, calls, &Pool::new(2).unwrap(), &mut Executor::new()).unwrap();
        assert_eq!(refused.get(), Some(Refused::Outside));
    }
}

unsafe extern "C" fn stop_at_zero(data: *mut c_void) -> bool {
    // SAFETY: the test hands over a cell.
    let left = unsafe { &*data.cast::<Cell<i32>>() };
    left.set(left.get() - 1);
    left.get() < 0
}

#[test]
fn abort_is_asked_between_calls_and_before_work_is_shared() {
    for (nth, ne) in [(1, SMALL), (2, SMALL), (5, LARGE)] {
        let pool = Pool::new(nth).unwrap();
        let mut world = World::new();
        chain(&mut world, 3, ne);
        let graph = GraphRef { nodes: &world.nodes, uses: None };
        // Each of the three calls asks before it and shares once: six questions.
        for allowed in 0..=6 {
            let left = Cell::new(allowed);
            let abort =
                Some((stop_at_zero as unsafe extern "C" fn(*mut c_void) -> bool, (&raw const left) as *mut c_void));
            let (begun, shared) = (Cell::new(0), AtomicUsize::new(0));
            let run = |_| {
                begun.set(begun.get() + 1);
                let done = lead::parallel(&|_, _| {
                    shared.fetch_add(1, Ordering::Relaxed);
                });
                if allowed == 6 || begun.get() * 2 <= allowed {
                    assert_eq!(done, Ok(()));
                } else {
                    assert_eq!(done, Err(Refused::Aborted));
                    assert_eq!(lead::parallel(&|_, _| panic!("it ran")), Err(Refused::Aborted));
                }
                // What it makes of it does not matter.
                if allowed % 4 == 1 {
                    return Err(Stop::Status { node: std::ptr::null(), status: 1, text: "told to stop".into() });
                }
                Ok(())
            };
            let calls = Calls { ranges: &singles(3), run: &run };
            let done = Executor::new().compute_with(&graph, calls, &pool, nth, abort, None);
            if allowed == 5 {
                // The first call gives up by itself, before anyone says stop.
                assert!(matches!(done, Err(Stop::Status { .. })) && begun.get() == 1);
                continue;
            }
            assert_eq!(done, if allowed == 6 { Ok(()) } else { Err(Stop::Aborted) }, "{allowed} allowed");
            assert_eq!(begun.get(), (allowed + 1) / 2);
            assert_eq!(shared.into_inner(), nth * (allowed / 2) as usize);
        }
    }
}

#[test]
fn graphs_within_calls() {
    let pool = Pool::new(3).unwrap();
    let mut outer = World::new();
    chain(&mut outer, 4, LARGE);
    let mut inner = World::new();
    chain(&mut inner, 5, LARGE);
    inner.compute(1).unwrap();
    let want = bytes(inner.nodes[4]);
    let other = Pool::new(2).unwrap();
    let mut exec = Executor::new();
    let me: *const Executor = &exec;
    let run = |i: usize| {
        assert!(lead::leads(me));
        let mut nested = Executor::new();
        // The same threads: never to come.
        let done = compute(&inner, Calls::NONE, &pool, &mut nested);
        assert_eq!(done, Err(Stop::Entered));
        // Others: with calls of their own.
        inner.nodes.iter().for_each(|&n| inner.spoil(n));
        let ranges = [Call { first: 1, last: 3 }];
        let its: *const Executor = &nested;
        let within = |_| {
            assert!(lead::leads(its) && !lead::leads(me));
            by_hand(&inner.nodes, ranges[0]);
            let count = AtomicUsize::new(0);
            lead::parallel(&|_, n| {
                count.fetch_add(n, Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(count.into_inner(), 4);
            Ok(())
        };
        compute(&inner, Calls { ranges: &ranges, run: &within }, &other, &mut nested).unwrap();
        assert_eq!(bytes(inner.nodes[4]), want);
        // and this run's threads are as before
        assert!(lead::leads(me));
        let count = AtomicUsize::new(0);
        lead::parallel(&|_, n| {
            count.fetch_add(n, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(count.into_inner(), 9, "in call {i}");
        Ok(())
    };
    let ranges = [0, 2].map(|i| Call { first: i, last: i });
    compute(&outer, Calls { ranges: &ranges, run: &run }, &pool, &mut exec).unwrap();
    assert!(!lead::leads(me));
}

#[test]
fn work_outside_graphs() {
    let pool = Pool::new(4).unwrap();
    for n in [1, 3, 4, 9] {
        let seen = Mutex::new(Vec::new());
        lead::on_pool(&pool, n, &|ith, nth| seen.lock().unwrap().push((ith, nth))).unwrap();
        let (mut seen, n) = (seen.into_inner().unwrap(), n.min(4));
        seen.sort_unstable();
        assert_eq!(seen, (0..n).map(|i| (i, n)).collect::<Vec<_>>());
    }
    for who in [0, 2, 3] {
        assert_eq!(lead::on_pool(&pool, 4, &|ith, _| assert!(ith != who, "part of a test")), Err(Refused::Panicked));
    }
    let nested = Mutex::new(0);
    let task = |_: usize, _: usize| {
        assert_eq!(lead::on_pool(&pool, 2, &|_, _| panic!("it ran")), Err(Refused::Nested));
        *nested.lock().unwrap() += 1;
    };
    lead::on_pool(&pool, 4, &task).unwrap();
    assert_eq!(nested.into_inner().unwrap(), 4);
}

#[test]
fn several_threads_compute_with_calls_on_one_pool() {
    let pool = Pool::new(3).unwrap();
    let broken = AtomicBool::new(false);
    std::thread::scope(|s| {
        for seed in 0..4 {
            let (pool, broken) = (&pool, &broken);
            s.spawn(move || {
                let mut world = World::new();
                chain(&mut world, 12, if seed % 2 == 0 { SMALL } else { LARGE });
                world.compute(1).unwrap();
                let want = bytes(world.nodes[11]);
                let ranges = [1, 5, 6, 11].map(|i| Call { first: i, last: i });
                let mut exec = Executor::new();
                for _ in 0..20 {
                    let run = |i: usize| {
                        let count = AtomicUsize::new(0);
                        lead::parallel(&|_, _| {
                            count.fetch_add(1, Ordering::Relaxed);
                        })
                        .unwrap();
                        broken.fetch_or(count.into_inner() != 3, Ordering::Relaxed);
                        by_hand(&world.nodes, ranges[i]);
                        Ok(())
                    };
                    compute(&world, Calls { ranges: &ranges, run: &run }, pool, &mut exec).unwrap();
                    broken.fetch_or(bytes(world.nodes[11]) != want, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(!broken.into_inner());
}

#[test]
fn many_calls() {
    const N: usize = 20_000;
    let mut world = World::new();
    chain(&mut world, N, 4);
    let ranges = singles(N);
    for nth in [1, 2, 5] {
        let pool = Pool::new(nth).unwrap();
        let (next, tasks) = (Cell::new(0), AtomicUsize::new(0));
        let run = |i: usize| {
            assert_eq!(i, next.replace(i + 1));
            if i.is_multiple_of(50) {
                lead::parallel(&|_, _| {
                    tasks.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
            }
            Ok(())
        };
        compute(&world, Calls { ranges: &ranges, run: &run }, &pool, &mut Executor::new()).unwrap();
        assert_eq!((next.get(), tasks.into_inner()), (N, N / 50 * nth));
    }
}
