//! The allocators on real tensors.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::backend::{host, Buft};
use crate::graph::testing::*;
use ggml_oxide_abi::*;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A buffer type over host memory that counts its buffers, refuses call number `fail_at`, and limits sizes.
struct Fake {
    calls: AtomicUsize,
    alive: AtomicUsize,
    fail_at: AtomicUsize,
    max_size: usize,
}

impl Fake {
    fn buft(max_size: usize) -> (&'static Fake, Buft) {
        let fake = Box::leak(Box::new(Fake {
            calls: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            fail_at: AtomicUsize::new(0),
            max_size,
        }));
        let raw = Box::leak(Box::new(ggml_backend_buffer_type {
            iface: ggml_backend_buffer_type_i {
                get_name: Some(name),
                alloc_buffer: Some(alloc),
                alloc_buffer_n: None,
                get_alignment: Some(alignment),
                get_max_size: Some(max),
                get_alloc_size: None,
                get_alloc_size_n: None,
                is_host: Some(yes),
            },
            device: null_mut(),
            context: std::ptr::from_ref(fake).cast_mut().cast(),
        }));
        // SAFETY: leaked.
        (fake, unsafe { Buft::from_raw(raw) }.unwrap())
    }
    /// # Safety
    /// `buft` was made by [`Fake::buft`].
    unsafe fn of<'a>(buft: ggml_backend_buffer_type_t) -> &'a Fake {
        // SAFETY: the context of a fake buffer type.
        unsafe { &*(*buft).context.cast::<Fake>() }
    }
}

unsafe extern "C" fn name(_: ggml_backend_buffer_type_t) -> *const c_char {
    c"fake".as_ptr()
}
unsafe extern "C" fn alignment(_: ggml_backend_buffer_type_t) -> usize {
    64
}
unsafe extern "C" fn max(buft: ggml_backend_buffer_type_t) -> usize {
    // SAFETY: a fake one.
    unsafe { Fake::of(buft) }.max_size
}
unsafe extern "C" fn yes(_: ggml_backend_buffer_type_t) -> bool {
    true
}
unsafe extern "C" fn alloc(buft: ggml_backend_buffer_type_t, size: usize) -> ggml_backend_buffer_t {
    // SAFETY: a fake one.
    unsafe {
        let fake = Fake::of(buft);
        if fake.calls.fetch_add(1, Ordering::Relaxed) + 1 == fake.fail_at.load(Ordering::Relaxed) {
            return null_mut();
        }
        fake.alive.fetch_add(1, Ordering::Relaxed);
        let memory = libc::aligned_alloc(64, size.next_multiple_of(64));
        let iface =
            ggml_backend_buffer_i { free_buffer: Some(free), ..host::buffer_type_cpu().alloc(64).unwrap().iface() };
        crate::backend::Buffer::new(Buft::from_raw(buft).unwrap(), iface, memory, size).as_raw()
    }
}
unsafe extern "C" fn free(buffer: ggml_backend_buffer_t) {
    // SAFETY: made by `alloc`.
    unsafe {
        Fake::of((*buffer).buft).alive.fetch_sub(1, Ordering::Relaxed);
        libc::free((*buffer).context.cast::<c_void>());
    }
}

fn cpu() -> Gallocr {
    Gallocr::new(&[host::buffer_type_cpu()])
}

/// Case 20 of the public reports: graphs of equal counts and sizes and other edges.
#[test]
fn a_graph_with_other_edges_is_planned_anew() {
    let mut galloc = cpu();
    let n = 1024;
    let mut results = Vec::new();
    for round in 0..4 {
        let mut b = Bench::new();
        let x = b.input(n);
        let n1 = b.op(GGML_OP_SQR, &[x]);
        let (n2, n3);
        if round % 2 == 0 {
            n2 = b.scale(n1, 3);
            n3 = b.add(n2, n2);
        } else {
            n2 = b.scale(x, 3);
            n3 = b.add(n1, n2);
        }
        let g = b.graph(&[n3]);
        // SAFETY: the bench's.
        let done = unsafe { galloc.alloc(&*g) };
        assert_eq!(done, Ok(Outcome::Done));
        values(x).iter_mut().enumerate().for_each(|(i, v)| *v = i as f32 - 500.0);
        // SAFETY: the bench's.
        evaluate(unsafe { &*g });
        results.push(values(n3).to_vec());
    }
    for (round, result) in results.iter().enumerate() {
        for (i, &got) in result.iter().enumerate() {
            let x = i as f32 - 500.0;
            assert_eq!(got, if round % 2 == 0 { 2.0 * (3.0 * (x * x)) } else { x * x + 3.0 * x });
        }
    }
}

#[test]
fn the_plan_is_kept_for_the_same_graph_of_smaller_tensors() {
    let (fake, buft) = Fake::buft(usize::MAX);
    let mut galloc = Gallocr::new(&[buft]);
    let build = |n: i64, galloc: &mut Gallocr, wide: bool| {
        let mut b = Bench::new();
        let x = b.input(n);
        let p = b.op(GGML_OP_CONT, &[x]);
        let q = if wide { b.add(p, x) } else { b.add(p, p) };
        let g = b.graph(&[q]);
        // SAFETY: the bench's.
        assert_eq!(unsafe { galloc.alloc(&*g) }, Ok(Outcome::Done));
        (b, g, q)
    };
    let size = |g: &Gallocr| g.buffer_size(0).unwrap();
    let keep = build(1000, &mut galloc, true);
    let large = size(&galloc);
    for n in [10, 1000, 0, 999] {
        build(n, &mut galloc, true);
        build(n, &mut galloc, false);
    }
    assert_eq!((size(&galloc), fake.calls.load(Ordering::Relaxed)), (large, 1), "nothing grew");
    build(2000, &mut galloc, true);
    assert!(size(&galloc) >= 2 * large - 256);
    drop(galloc);
    assert_eq!(fake.alive.load(Ordering::Relaxed), 0);
    drop(keep);
}

#[test]
fn a_graph_that_has_its_places_keeps_them() {
    let mut b = Bench::new();
    let x = b.input(8);
    let y = b.scale(x, 2);
    let v = b.view(y, 4, 4);
    let z = b.scale(v, 5);
    let g = b.graph(&[z]);
    let mut galloc = cpu();
    // SAFETY: the bench's.
    unsafe {
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
        let at = [x, y, v, z].map(|t| (*t).data);
        assert_eq!(at[2], at[1].wrapping_byte_add(16));
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
        assert_eq!(at, [x, y, v, z].map(|t| (*t).data));
        values(x).copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        evaluate(&*g);
        assert_eq!(values(z), [50.0, 60.0, 70.0, 80.0]);
    }
}

/// Case 23: a buffer type that refuses, at every call in turn.
#[test]
fn a_refused_buffer_is_an_error_and_nothing_leaks() {
    for max_size in [usize::MAX, 8192] {
        for k in 1..=4 {
            let (fake, buft) = Fake::buft(max_size);
            fake.fail_at.store(k, Ordering::Relaxed);
            let mut b = Bench::new();
            let leafs: Vec<_> = (0..3).map(|_| b.leaf(2000)).collect();
            let sum = b.add(leafs[0], leafs[1]);
            let sum = b.add(sum, leafs[2]);
            let g = b.graph(&[sum]);
            let mut galloc = Gallocr::new(&[buft]);
            // SAFETY: the bench's.
            unsafe {
                let chunks = if max_size == usize::MAX { 1 } else { 3 };
                let first = galloc.reserve(&*g, None, None);
                assert_eq!(first.is_err(), k <= chunks, "{first:?}");
                if first.is_err() {
                    assert_eq!(fake.alive.load(Ordering::Relaxed), 0);
                    assert_eq!(galloc.buffer_size(0), Some(0));
                    assert!((*sum).data.is_null());
                }
                assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done), "later calls succeed");
                leafs.iter().enumerate().for_each(|(i, &t)| values(t).fill(i as f32 + 1.0));
                evaluate(&*g);
                assert!(values(sum).iter().all(|&v| v == 6.0));
            }
            drop(galloc);
            assert_eq!(fake.alive.load(Ordering::Relaxed), 0);
            // all tensors of a context: the same
            let (fake, buft) = Fake::buft(max_size);
            fake.fail_at.store(k, Ordering::Relaxed);
            let mut b = Bench::new();
            let mut list: Vec<_> = (0..3).map(|_| b.leaf(2000)).collect();
            list.push(b.view(list[0], 10, 10));
            // SAFETY: the bench's.
            unsafe {
                let need = whole::size(&mut list, buft).unwrap();
                assert_eq!(need, 3 * 8000);
                let result = whole::alloc(&mut list, buft);
                let chunks = if max_size == usize::MAX { 1 } else { 3 };
                assert_eq!(result.is_err(), k <= chunks);
                if result.is_err() {
                    assert!(list.iter().all(|&t| (*t).data.is_null() && (*t).buffer.is_null()));
                    assert_eq!(fake.alive.load(Ordering::Relaxed), 0);
                }
                if let Ok(Some(buffer)) = result {
                    assert_eq!((*list[3]).data, (*list[0]).data.wrapping_byte_add(40));
                    assert_eq!(buffer.size(), need);
                    assert_eq!(whole::alloc(&mut list, buft), Ok(None), "all have their places");
                    buffer.free();
                }
            }
            assert_eq!(fake.alive.load(Ordering::Relaxed), 0);
        }
    }
}

#[test]
fn several_buffers_need_a_reserve_for_each_shape() {
    let (_, one) = Fake::buft(usize::MAX);
    let (_, two) = Fake::buft(usize::MAX);
    let mut galloc = Gallocr::new(&[one, two, one]);
    let mut b = Bench::new();
    let x = b.leaf(100);
    let y = b.op(GGML_OP_CONT, &[x]);
    let z = b.op(GGML_OP_CONT, &[y]);
    let g = b.graph(&[z]);
    // SAFETY: the bench's.
    unsafe {
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::NeedsReserve));
        let sizes = galloc.sizes(&*g, Some(&[1, 2]), Some(&[0])).unwrap();
        assert_eq!(sizes, [448, 448, 448], "y goes to the second, x and then z to the first");
        assert!(galloc.reserve(&*g, Some(&[1, 3]), Some(&[0])).is_err(), "there is no buffer 3");
        assert!(galloc.reserve(&*g, Some(&[1]), None).is_err(), "a number is missing");
        galloc.reserve(&*g, Some(&[1, 2]), Some(&[0])).unwrap();
        assert_eq!([0, 1, 2].map(|i| galloc.buffer_size(i)), [Some(448), Some(448), Some(0)]);
        assert_eq!(galloc.buffer_size(3), None);
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
        assert_eq!((*(*y).buffer).buft, two.as_raw());
        assert_eq!((*x).buffer, (*z).buffer);
    }
}

#[test]
fn zero_bytes_and_skipped_tensors() {
    let mut b = Bench::new();
    let x = b.leaf(0);
    let v = b.view(x, 0, 0);
    let y = b.scale(v, 2);
    let g = b.graph(&[y]);
    let mut galloc = cpu();
    // SAFETY: the bench's.
    unsafe {
        for _ in 0..2 {
            assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
            assert!([x, v, y].iter().all(|&t| !(*t).buffer.is_null()));
        }
    }
    let mut b = Bench::new();
    let x = b.input(8);
    let y = b.op(GGML_OP_CONT, &[x]);
    let z = b.op(GGML_OP_CONT, &[y]);
    let g = b.graph(&[z]);
    galloc.set_skipped([y.cast_const()]).unwrap();
    // SAFETY: the bench's.
    unsafe {
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
        assert!((*y).data.is_null() && !(*z).data.is_null());
        galloc.set_skipped([]).unwrap();
        assert_eq!(galloc.alloc(&*g), Ok(Outcome::Done));
        assert!(!(*y).data.is_null());
    }
}

#[test]
#[cfg_attr(miri, ignore = "asks the system for more memory than there is, which Miri does not allow")]
fn tensors_too_large_are_refused() {
    let mut b = Bench::new();
    let x = b.leaf(1 << 60);
    let y = b.op(GGML_OP_CONT, &[x]);
    let z = b.op(GGML_OP_CONT, &[y]);
    let g = b.graph(&[z]);
    // SAFETY: the bench's.
    let error = unsafe { cpu().alloc(&*g) }.unwrap_err();
    assert_eq!(error.code, GGML_EXT_CODE_OUT_OF_MEMORY);
}

#[test]
fn one_behind_the_other() {
    let buffer = host::buffer_type_cpu().alloc(128).unwrap();
    let mut b = Bench::new();
    let mut at = whole::begin(buffer);
    let list = [b.leaf(3), b.leaf(9), b.leaf(16)];
    // SAFETY: the bench's.
    unsafe {
        whole::place(&mut at, list[0]).unwrap();
        whole::place(&mut at, list[1]).unwrap();
        assert_eq!(((*list[1]).data.addr() - buffer.base().addr(), at.offset), (32, 96));
        assert!(whole::place(&mut at, list[2]).is_err() && (*list[2]).data.is_null());
        assert_eq!(at.offset, 96, "a refused tensor takes no room");
        buffer.free();
    }
}

/// Graphs of the very same tensors, in which something changed, fit a plan when graphs of other tensors do.
#[test]
fn the_same_tensors_fit_as_others_do() {
    use super::lower::{lower, Memory, Source};
    use super::matching::{match_record, Record};
    let mut state = 1u64;
    let mut pick = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let (mut fits, mut not) = (0, 0);
    for _ in 0..if cfg!(miri) { 2 } else { 60 } {
        let mut b = Bench::new();
        let mut all: Vec<*mut ggml_tensor> = (0..4).map(|_| b.leaf(8)).collect();
        for _ in 0..12 {
            let (x, y) = (all[pick(all.len())], all[pick(all.len())]);
            all.push(if pick(4) == 0 { b.view(x, 0, 8) } else { b.add(x, y) });
        }
        let g = b.graph(&all[10..]);
        let mut memory = Memory::new(&[host::buffer_type_cpu()]);
        let mut index = crate::graph::index::Index::default();
        // SAFETY: tensors of the bench, which nobody else uses.
        unsafe {
            // some have a source that is in no list
            (*g).n_leafs -= i32::from((*g).n_leafs > 1 && pick(3) == 0);
            let source = || Source {
                nodes: crate::graph::nodes(&*g),
                leafs: crate::graph::checked_leafs(&*g).unwrap(),
                node_buffers: None,
                leaf_buffers: None,
            };
            let (problem, plain) = lower(source(), &memory, &mut index).unwrap();
            let plan = super::plan::plan(&problem, &mut |t, _| problem.tensors[t as usize].size).unwrap();
            let mut record = Record { problem, plan, keys: index.keys().to_vec(), plain };
            for _ in 0..if cfg!(miri) { 6 } else { 40 } {
                let t = all[pick(all.len())];
                let before = std::ptr::read(t);
                match pick(10) {
                    0 => (&mut (*t).src)[pick(3)] = all[pick(all.len())],
                    1 => (&mut (*t).src)[pick(3)] = null_mut(),
                    2 => (*t).view_src = all[pick(4)],
                    3 => (*t).flags ^= [GGML_TENSOR_FLAG_INPUT, GGML_TENSOR_FLAG_OUTPUT][pick(2)].0,
                    4 => (*t).op = [GGML_OP_NONE, GGML_OP_MUL_MAT][pick(2)],
                    5 => (*t).ne[1] = 1 + pick(2) as i64,
                    6 => (*t).data = std::ptr::without_provenance_mut(64),
                    7 => (*t).view_offs ^= 4,
                    8 => {
                        memory.skipped.forget();
                        memory.skipped.add(t.addr());
                    }
                    _ => memory.skipped.forget(),
                }
                let mut answers = [true, false].map(|quick| {
                    record.plain = plain && quick;
                    match_record(source(), &record, &memory, &mut index).unwrap()
                });
                assert_eq!(answers[0], answers[1]);
                match answers[0].take() {
                    Some(found) => {
                        assert!(found.iter().zip(&record.keys).all(|(t, &key)| t.addr() == key));
                        let same = lower(source(), &memory, &mut index).unwrap().0;
                        let steps = |p: &super::problem::Problem| {
                            let nodes = p.nodes.iter().map(|n| (n.tensor, n.first, n.count, n.marker));
                            (nodes.collect::<Vec<_>>(), p.srcs.clone(), p.leafs.clone())
                        };
                        assert_eq!(steps(&same), steps(&record.problem));
                        fits += usize::from(plain);
                    }
                    None => not += usize::from(plain),
                }
                std::ptr::write(t, before);
            }
        }
    }
    assert!(cfg!(miri) || fits > 100 && not > 100, "{fits} {not}");
}
