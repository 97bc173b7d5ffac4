//! The scheduler on devices of memory that only they can reach, with the host as the last backend.
#![allow(clippy::unwrap_used)]

use super::fake::*;
use super::*;
use crate::backend::tensor_data;
use crate::graph::{self, testing::*};
use ggml_oxide_abi::*;
use ggml_oxide_shape as shape;
use std::ffi::c_void;
use std::ptr::null_mut;

#[test]
fn one_backend_runs_the_graph_as_it_is() {
    let cpu = Fake::cpu();
    let mut s = sched(&[cpu], false);
    let mut b = Bench::new();
    let x = b.input(4);
    let y = b.scale(x, 2);
    let z = b.add(y, y);
    let g = b.graph(&[z]);
    // SAFETY: the bench's.
    unsafe {
        assert_eq!(s.sizes(g).unwrap(), [64], "x is read for the last time when y is written, so y takes its place");
        s.prepare(g).unwrap();
        assert!(s.prepare(g).is_err(), "it has a graph");
    }
    for _ in 0..3 {
        fill(x, &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
        assert_eq!(values(z), [4.0, 8.0, 12.0, 16.0]);
    }
    assert_eq!((s.n_splits(), s.n_copies()), (1, 1));
    assert_eq!(cpu.take_log(), ["alloc", "node_0", "node_1", "node_0", "node_1", "node_0", "node_1"]);
    assert_eq!(s.backend_of(y), Some(cpu.handle()));
    s.reset();
    assert_eq!(s.backend_of(y), None);
    let other = b.graph(&[y]);
    // SAFETY: the bench's.
    unsafe {
        s.prepare(g).unwrap();
        assert!(s.compute_async(other).is_err(), "another graph than the one at hand");
    }
}

/// Case 22 of the public reports, and a client's choice of backends.
#[test]
fn pinned_nodes_split_the_graph_and_it_runs_again_and_again() {
    let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
    let mut s = sched(&[gpu, cpu], false);
    let mut b = Bench::new();
    let w = weight(&mut b, gpu, &[1.0, 10.0, 100.0]);
    let x = b.input(3);
    let p = b.add(x, w);
    let q = b.scale(p, 3);
    let v = b.view(q, 0, 3);
    let r = b.add(v, w);
    let g = b.graph(&[r]);
    for round in 0..3 {
        if round == 2 {
            // the same graph anew: what the first split put into it is known
            s.reset();
        }
        if round != 1 {
            s.pin(q, 1);
            // SAFETY: the bench's.
            unsafe { s.prepare(g) }.unwrap();
        }
        for _ in 0..3 {
            fill(x, &[1.0, 2.0, 3.0]);
            assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
            assert_eq!(values(r), [7.0, 46.0, 409.0]);
            assert_eq!(cpu.take_log().into_iter().filter(|n| n != "alloc").collect::<Vec<_>>(), ["node_1"]);
            assert_eq!(gpu.take_log().into_iter().filter(|n| n != "alloc").collect::<Vec<_>>(), ["node_0", "node_3"]);
        }
        assert_eq!(s.n_splits(), 3);
        assert_eq!([p, q, v, r, x].map(|t| s.backend_of(t)), [gpu, cpu, cpu, gpu, cpu].map(|f| Some(f.handle())));
    }
    assert!(s.buffer_size(0) > 0 && s.buffer_size(1) > 0);
}

#[test]
fn what_a_device_cannot_run_goes_to_the_host() {
    let (gpu, cpu) = (Fake::gpu(|t| t.op != GGML_OP_SQR), Fake::cpu());
    let mut s = sched(&[gpu, cpu], false);
    let mut b = Bench::new();
    let w = weight(&mut b, gpu, &[2.0, 3.0]);
    let p = b.scale(w, 5);
    let q = b.op(GGML_OP_SQR, &[p]);
    let r = b.scale(q, 2);
    let t = b.add(r, w);
    let g = b.graph(&[t]);
    assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
    assert_eq!(values(t), [202.0, 453.0]);
    assert_eq!((cpu.take_log(), s.n_splits()), (vec!["alloc".to_string(), "node_1".to_string()], 3));
}

#[test]
fn weights_of_the_host_are_worth_a_move_where_a_device_says_so() {
    for offloads in [false, true] {
        let gpu = Fake::new(GGML_BACKEND_DEVICE_TYPE_GPU, |_| true, offloads);
        let cpu = Fake::cpu();
        let mut s = sched(&[gpu, cpu], false);
        let mut b = Bench::new();
        let w = weight(&mut b, cpu, &[2.0, 3.0]);
        let y = b.add(w, w);
        let g = b.graph(&[y]);
        assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
        assert_eq!(values(y), [4.0, 6.0]);
        assert_eq!(s.backend_of(y), Some(if offloads { gpu } else { cpu }.handle()));
    }
}

#[test]
fn nobody_can_run_it() {
    let (gpu, cpu) = (Fake::gpu(|_| false), Fake::new(GGML_BACKEND_DEVICE_TYPE_CPU, |t| t.op != GGML_OP_SQR, false));
    for team in [&[gpu, cpu][..], &[cpu]] {
        let mut s = sched(team, false);
        let mut b = Bench::new();
        let x = b.input(2);
        let y = b.op(GGML_OP_SQR, &[x]);
        let g = b.graph(&[y]);
        // SAFETY: the bench's.
        let error = unsafe { s.compute_async(g) }.unwrap_err();
        assert_eq!(error.code, GGML_EXT_CODE_NO_KERNEL);
        assert!(error.text.contains("SQR") && error.text.contains("node_0"), "{error}");
        // placed where nobody can run it
        let y = b.op(GGML_OP_SQR, &[x]);
        // SAFETY: the bench's.
        unsafe { crate::alloc::whole::alloc(&mut [y], gpu.memory()) }.unwrap().unwrap();
        let g = b.graph(&[y]);
        // SAFETY: the bench's.
        assert_eq!(unsafe { s.prepare(g) }.unwrap_err().code, GGML_EXT_CODE_NO_KERNEL);
        let y = b.scale(x, 4);
        let g = b.graph(&[y]);
        // SAFETY: the bench's.
        unsafe { s.prepare(g) }.unwrap();
        fill(x, &[1.0, 2.0]);
        assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS, "the scheduler goes on");
        assert_eq!(values(y), [4.0, 8.0]);
    }
}

#[test]
fn poisoned_and_incomplete_graphs_are_refused_with_their_cause() {
    let mut s = sched(&[Fake::cpu()], false);
    let mut b = Bench::new();
    let bad = crate::tensor::new_tensor(&mut b.ctx, "ggml_new_tensor_1d", GGML_TYPE_F32, &[-1]);
    let g = b.graph(&[bad]);
    // SAFETY: the bench's.
    unsafe {
        let error = s.compute_async(g).unwrap_err();
        assert!(error.text.contains("ggml_new_tensor_1d"), "{error}");
        let g = graph::memory::new(&mut b.ctx, 1, false).unwrap();
        let x = b.input(1);
        let mut y = b.scale(x, 1);
        y = b.scale(y, 1);
        assert!(graph::build::expand(&mut *g, y, true).is_err());
        assert!(s.compute_async(g).is_err() && s.reserve(g).is_err() && s.sizes(g).is_err() && s.split(g).is_err());
        assert!(s.compute_async(null_mut()).is_err());
    }
}

struct Watch {
    asked: Vec<String>,
    seen: Vec<(String, f32)>,
    stop_at: usize,
}

unsafe extern "C" fn watch(t: *mut ggml_tensor, ask: bool, data: *mut c_void) -> bool {
    // SAFETY: the test's own data and a live node.
    unsafe {
        let w = &mut *data.cast::<Watch>();
        let name = shape::name(&*t);
        if ask {
            w.asked.push(name.clone());
            return name.ends_with('1') || name.ends_with('3');
        }
        w.seen.push((name, values(t)[0]));
        w.seen.len() < w.stop_at
    }
}

#[test]
fn a_callback_sees_the_nodes_it_asks_for() {
    for stop_at in [99, 1] {
        let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
        let mut s = sched(&[gpu, cpu], false);
        let mut b = Bench::new();
        let w = weight(&mut b, gpu, &[1.0]);
        let mut t = w;
        for _ in 0..5 {
            t = b.scale(t, 2);
        }
        let g = b.graph(&[t]);
        // SAFETY: the bench's.
        s.pin(unsafe { graph::nodes(&*g)[4] }, 1);
        let mut data = Watch { asked: Vec::new(), seen: Vec::new(), stop_at };
        s.set_callback(Some(watch), (&raw mut data).cast());
        assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
        if stop_at == 99 {
            assert_eq!(data.asked, ["node_0", "node_1", "node_2", "node_3", "node_4"]);
            assert_eq!(data.seen, [("node_1".to_string(), 4.0), ("node_3".to_string(), 16.0)]);
            assert_eq!(values(t), [32.0]);
        } else {
            assert_eq!(data.seen.len(), 1);
            assert_eq!(cpu.take_log(), ["alloc"], "nothing runs after the callback said stop");
        }
    }
}

#[test]
fn graphs_run_one_behind_the_other_without_new_plans() {
    let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
    let mut s = sched(&[gpu, cpu], true);
    assert_eq!(s.n_copies(), MAX_COPIES);
    let mut weights = Bench::new();
    let w = weight(&mut weights, gpu, &[1.0, 10.0]);
    let mut places = Vec::new();
    let mut allocations = 0;
    for round in 0..10 {
        let mut b = Bench::new();
        let (x, unused) = (b.input(2), b.input(2));
        let y = b.add(x, w);
        let z = b.scale(y, 3);
        let g = b.graph(&[z, unused]);
        // SAFETY: the bench's.
        unsafe {
            s.reset();
            s.prepare(g).unwrap();
            fill(x, &[round as f32, 2.0 * round as f32]);
            places.push((*x).data);
            assert_eq!(s.compute_async(g).unwrap(), GGML_STATUS_SUCCESS);
        }
        assert_eq!(values(z), [3.0 * (round as f32 + 1.0), 3.0 * (2.0 * round as f32 + 10.0)]);
        let count = |f: &Fake| f.take_log().iter().filter(|l| *l == "alloc").count();
        allocations += count(gpu) + count(cpu);
    }
    assert_eq!(allocations, 2, "one buffer for each backend, once");
    for (i, &p) in places.iter().enumerate() {
        assert_eq!(p, places[i % MAX_COPIES], "copy {i} comes round again");
        assert_eq!(places[..MAX_COPIES].iter().filter(|&&q| q == p).count(), 1, "four places");
    }
}

#[test]
fn a_tensor_is_kept_as_long_as_the_backend_says() {
    let mut sizes = Vec::new();
    for keep in [None, Some((0, 3))] {
        let cpu = Fake::cpu();
        *cpu.keep.lock().unwrap() = keep;
        let mut s = sched(&[cpu], false);
        let mut b = Bench::new();
        let x = b.input(64);
        let mut t = b.op(GGML_OP_CONT, &[x]);
        for _ in 0..3 {
            t = b.op(GGML_OP_CONT, &[t]);
        }
        let g = b.graph(&[t]);
        // SAFETY: the bench's.
        unsafe {
            sizes.push(s.sizes(g).unwrap()[0]);
            s.prepare(g).unwrap();
            let (first, last) = (graph::nodes(&*g)[0], graph::nodes(&*g)[3]);
            let shared = (1..=3).any(|i| (*graph::nodes(&*g)[i]).data == (*first).data);
            assert_eq!(shared, keep.is_none());
            fill(x, &[7.0; 64]);
            assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
            assert_eq!(values(last)[63], 7.0);
        }
    }
    assert_eq!(sizes, [512, 768]);
}

#[test]
fn memory_that_cannot_be_had() {
    let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
    let mut s = sched(&[gpu, cpu], false);
    let mut b = Bench::new();
    let w = weight(&mut b, gpu, &[1.0, 10.0]);
    let y = b.add(w, w);
    let g = b.graph(&[y]);
    *gpu.refuse.lock().unwrap() = true;
    // SAFETY: the bench's.
    unsafe {
        assert_eq!(s.reserve(g).unwrap_err().code, GGML_EXT_CODE_OUT_OF_MEMORY);
        assert_eq!(s.compute_async(g).unwrap_err().code, GGML_EXT_CODE_OUT_OF_MEMORY);
        *gpu.refuse.lock().unwrap() = false;
        s.reserve(g).unwrap();
    }
    assert_eq!(run(&mut s, g), GGML_STATUS_SUCCESS);
    assert_eq!(values(y), [2.0, 20.0]);
}

#[test]
fn only_the_experts_that_are_asked_for_are_copied() {
    let gpu = Fake::new(GGML_BACKEND_DEVICE_TYPE_GPU, |_| true, true);
    let cpu = Fake::cpu();
    let mut s = sched(&[gpu, cpu], false);
    let mut b = Bench::new();
    let w = b.node(GGML_OP_NONE, GGML_TYPE_F32, &[200, 1, 6], &[]);
    // SAFETY: the bench's.
    let buffer = unsafe { crate::alloc::whole::alloc(&mut [w], cpu.memory()) }.unwrap().unwrap();
    buffer.set_usage(GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    values(w).iter_mut().enumerate().for_each(|(i, v)| *v = (i / 200) as f32 + 1.0);
    let x = b.input(200);
    let ids = flag(b.node(GGML_OP_NONE, GGML_TYPE_I32, &[2, 1], &[]), GGML_TENSOR_FLAG_INPUT);
    let y = b.node(GGML_OP_MUL_MAT_ID, GGML_TYPE_F32, &[1, 2, 1], &[w, x, ids]);
    let g = b.graph(&[y]);
    // SAFETY: the bench's.
    unsafe {
        s.prepare(g).unwrap();
        let copy = (*y).src[0];
        assert!(copy != w, "the matrices are copied");
        let mut go = |numbers: [i32; 2]| {
            values(copy).fill(-1.0);
            tensor_data::set("test", ids, numbers.as_ptr().cast(), tensor_data::Rows::range(0, 8));
            (s.compute_async(g), (0..6).map(|e| values(copy)[e * 200 + 199]).collect::<Vec<f32>>())
        };
        let (result, copied) = go([4, 1]);
        assert_eq!(result, Ok(GGML_STATUS_SUCCESS));
        assert_eq!(copied, [-1.0, 2.0, -1.0, -1.0, 5.0, -1.0]);
        let (result, copied) = go([5, 5]);
        assert_eq!((result, copied), (Ok(GGML_STATUS_SUCCESS), vec![-1.0, -1.0, -1.0, -1.0, -1.0, 6.0]));
        assert!(go([6, 0]).0.is_err() && go([-1, 0]).0.is_err(), "there is no such expert");
    }
}

#[test]
fn what_a_scheduler_cannot_be_made_of() {
    let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
    let (g, c) = (gpu.handle(), cpu.handle());
    assert!(Sched::new(&[], None, false, false).is_err());
    assert!(Sched::new(&[c, g], None, false, false).is_err(), "the last one is not the host's");
    assert!(Sched::new(&[c; 17], None, false, false).is_err());
    assert!(Sched::new(&[g, c], Some(&[cpu.memory(), cpu.memory()]), false, false).is_err(), "out of reach");
    assert!(Sched::new(&[g, c], Some(&[gpu.memory()]), false, false).is_err(), "one is missing");
    assert!(Sched::new(&[g, c], None, true, false).is_ok());
}

#[test]
fn two_backends_compute_the_same_graph() {
    let (gpu, cpu) = (Fake::gpu(|_| true), Fake::cpu());
    let mut b = Bench::new();
    let x = weight(&mut b, cpu, &[1.0, 2.0, 3.0, 4.0]);
    let v = b.view(x, 1, 2);
    let y = b.scale(v, 10);
    let z = b.add(y, y);
    let g = b.graph(&[z]);
    let mut galloc = crate::alloc::Gallocr::new(&[cpu.memory()]);
    // SAFETY: the bench's.
    unsafe {
        assert!(compare::copy_to(gpu.handle(), &*g).is_err(), "not allocated yet");
        galloc.alloc(&*g).unwrap();
        let mut seen = Vec::new();
        let mut show = |i: i32, a: T, b: T| {
            assert!(a != b && (*b).buffer != (*a).buffer);
            assert_eq!(values(a), values(b));
            seen.push((i, values(a).to_vec()));
            true
        };
        compare::compare(cpu.handle(), gpu.handle(), &mut *g, &[], &mut show).unwrap();
        compare::compare(cpu.handle(), gpu.handle(), &mut *g, &[z], &mut show).unwrap();
        assert!(compare::compare(cpu.handle(), gpu.handle(), &mut *g, &[x], &mut show).is_err());
        let expected = [(1, vec![20.0, 30.0]), (2, vec![40.0, 60.0]), (2, vec![40.0, 60.0])];
        assert_eq!(seen, expected);
    }
}
