//! EXT-9 and ABI-6 with threads: what is registered, asked, computed and released at once.

use ggml_oxide_abi::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use threads::api::*;
use threads::*;

/// The registrations of a test are seen by all: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[derive(Clone, Copy)]
struct Shared<T>(T);
// SAFETY: handles that the tests hand from thread to thread; the library says which uses at once are sound.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T: Copy> Shared<T> {
    fn get(&self) -> T {
        self.0
    }
}

/// Last code of this thread.
fn code() -> ggml_ext_code {
    // SAFETY: plain numbers and pointers.
    let mut error: ggml_ext_error = unsafe { std::mem::zeroed() };
    error.struct_size = size_of::<ggml_ext_error>();
    // SAFETY: a structure of this test's.
    unsafe { ggml_ext_last_error(&mut error) };
    ggml_ext_code(error.code)
}

#[test]
fn ext_9_two_schedulers_while_others_register_and_release() {
    let _turn = turn();
    let scope = Shared(register("threads.fixed"));
    let (stop, start) = (AtomicBool::new(false), Barrier::new(5));
    std::thread::scope(|s| {
        let computing: Vec<_> = (0..2)
            .map(|k| {
                let start = &start;
                s.spawn(move || {
                    let model = Model::new("threads.fixed");
                    let (backend, sched) = scheduler();
                    start.wait();
                    let mut renewed = 0;
                    // SAFETY: this thread's own handles.
                    unsafe {
                        assert!(ggml_backend_sched_alloc_graph(sched, model.graph));
                        for i in 0..40 {
                            if i % 8 == 7 {
                                ggml_backend_sched_reset(sched);
                                clear(&model);
                                assert!(ggml_backend_sched_alloc_graph(sched, model.graph));
                                renewed += 1;
                            }
                            model.compute(sched, 0.01 * (k * 40 + i) as f32);
                        }
                        assert!(renewed > 0);
                        ggml_backend_sched_free(sched);
                        ggml_backend_free(backend);
                        ggml_free(model.ctx);
                    }
                })
            })
            .collect();
        // registrations for operators that the graphs above do not have: they concern no plan of theirs
        for k in 0..2 {
            let (stop, start) = (&stop, &start);
            s.spawn(move || {
                start.wait();
                for i in 0.. {
                    unrelated(&format!("threads.other{k}.n{i}"));
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let asking = s.spawn(|| {
            let model = Model::new("threads.fixed");
            start.wait();
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: a live node.
                unsafe {
                    assert!(ggml_backend_dev_supports_op(device(), model.output));
                    assert!(!ggml_ext_dev_supports_native_op(device(), model.output));
                }
            }
            // SAFETY: this thread's own context.
            unsafe { ggml_free(model.ctx) };
        });
        let computed: Vec<_> = computing.into_iter().map(|thread| thread.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(computed.iter().all(Result::is_ok), "a computing thread");
        asking.join().expect("the asking thread");
    });
    // SAFETY: nothing uses it any more.
    assert!(unsafe { ggml_ext_scope_release(scope.get()) });
    assert_eq!(STATES.load(Ordering::Relaxed), 0);
}

/// Takes the addresses away that an allocation gave, as if the graph were new.
fn clear(model: &Model) {
    // SAFETY: a live model of this thread's.
    unsafe {
        let graph = &*model.graph;
        let list = |p: *mut *mut ggml_tensor, n: i32| (0..n as usize).map(move |i| *p.add(i));
        for t in list(graph.nodes, graph.n_nodes).chain(list(graph.leafs, graph.n_leafs)) {
            ((*t).data, (*t).buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
        }
    }
}

unsafe extern "C" fn no(_: *const ggml_ext_step, _: *mut std::ffi::c_void) -> bool {
    false
}
unsafe extern "C" fn never(_: *const ggml_ext_run, _: *mut std::ffi::c_void) -> ggml_status {
    GGML_STATUS_FAILED
}

/// Registers a kernel for an operator that no graph here has, asks, and releases it.
fn unrelated(name: &str) {
    let name = std::ffi::CString::new(name).expect("no zero");
    // SAFETY: a structure with all members set; functions of this program.
    unsafe {
        let blank: ggml_ext_kernel_desc = std::mem::zeroed();
        let desc = ggml_ext_kernel_desc {
            struct_size: size_of::<ggml_ext_kernel_desc>(),
            name: name.as_ptr(),
            op: GGML_OP_ARGSORT,
            supports: Some(no),
            execute: Some(never),
            ..blank
        };
        assert!(ggml_ext_register_kernel(device(), &desc));
        assert!(!ggml_ext_register_kernel(device(), &desc) && code() == GGML_EXT_CODE_NAME_TAKEN);
        assert!(ggml_ext_release(device(), name.as_ptr()));
        assert!(!ggml_ext_release(device(), name.as_ptr()) && code() == GGML_EXT_CODE_UNKNOWN_NAME);
    }
}

#[test]
fn ext_3_one_of_many_gets_a_name() {
    let _turn = turn();
    const THREADS: usize = 6;
    let start = Barrier::new(THREADS);
    let won: usize = std::thread::scope(|s| {
        let all: Vec<_> = (0..THREADS)
            .map(|_| {
                s.spawn(|| {
                    start.wait();
                    // SAFETY: as `unrelated`.
                    unsafe {
                        let blank: ggml_ext_kernel_desc = std::mem::zeroed();
                        let desc = ggml_ext_kernel_desc {
                            struct_size: size_of::<ggml_ext_kernel_desc>(),
                            name: c"threads.contested".as_ptr(),
                            op: GGML_OP_ARGSORT,
                            supports: Some(no),
                            execute: Some(never),
                            ..blank
                        };
                        usize::from(ggml_ext_register_kernel(device(), &desc))
                    }
                })
            })
            .collect();
        all.into_iter().map(|t| t.join().expect("a thread")).sum()
    });
    assert_eq!(won, 1);
    // SAFETY: a live registration.
    assert!(unsafe { ggml_ext_release(device(), c"threads.contested".as_ptr()) });
}

/// What a computation leaves behind, to be given back in any order.
#[derive(Clone, Copy)]
struct Left {
    scope: ggml_ext_scope_t,
    sched: ggml_backend_sched_t,
    backend: ggml_backend_t,
    ctx: *mut ggml_context,
}

#[test]
fn abi_6_destruction_in_every_order_on_any_thread() {
    let _turn = turn();
    for (round, order) in permutations().into_iter().enumerate() {
        let name = format!("threads.order{round}");
        let scope = register(&name);
        let model = Model::new(&name);
        let (backend, sched) = scheduler();
        // SAFETY: handles of this test.
        unsafe {
            assert!(ggml_backend_sched_alloc_graph(sched, model.graph));
            model.compute(sched, 0.125);
        }
        let left = Shared(Left { scope, sched, backend, ctx: model.ctx });
        let mut planned = true;
        for what in order {
            // each on a thread of its own
            let still = std::thread::scope(|s| {
                let job = s.spawn(move || {
                    let left = left.get();
                    // SAFETY: each is given back once; the plan goes with the scheduler.
                    unsafe {
                        match what {
                            0 => {
                                let released = ggml_ext_scope_release(left.scope);
                                assert_eq!(released, !planned, "a plan holds its registrations, and nothing else does");
                                if !released {
                                    assert_eq!(code(), GGML_EXT_CODE_IN_USE);
                                    ggml_backend_sched_reset(left.sched);
                                    assert!(ggml_ext_scope_release(left.scope));
                                }
                                false
                            }
                            1 => {
                                ggml_backend_sched_free(left.sched);
                                false
                            }
                            2 => {
                                ggml_backend_free(left.backend);
                                planned
                            }
                            _ => {
                                ggml_free(left.ctx);
                                planned
                            }
                        }
                    }
                });
                job.join().expect("the thread")
            });
            planned = still;
        }
        assert_eq!(STATES.load(Ordering::Relaxed), 0, "order {order:?}");
    }
}

fn permutations() -> Vec<[u8; 4]> {
    let all = |n: u32| (0..4).map(move |i| (n >> (2 * i) & 3) as u8);
    let distinct = |p: &[u8; 4]| (0..4).all(|i| p.contains(&i));
    (0..256).map(|n| std::array::from_fn(|i| all(n).nth(i).unwrap_or(0))).filter(distinct).collect()
}
