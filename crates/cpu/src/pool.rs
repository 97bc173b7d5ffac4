//! The threads of a backend.
//!
//! A pool of `n` has `n - 1` threads of its own: the caller is thread 0, so one thread needs no pool at all and a graph wakes
//! one thread less. Between graphs the threads sleep.

use ggml_oxide_abi::*;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Looks at a barrier before a thread sleeps, at the usual poll level of 50: some 100 microseconds on current machines.
const SPINS: u32 = 2000;
/// The same when there are more threads than cores: the late thread probably waits for this one's core.
const SPINS_CROWDED: u32 = 50;

/// Where threads run and with what priority.
#[derive(Clone)]
struct Placement {
    cores: Vec<usize>,
    strict: bool,
    prio: ggml_sched_priority,
}

/// A pool of threads. Any thread may use it; one graph runs at a time.
pub struct Pool {
    threads: Option<ThreadPool>,
    n_threads: usize,
    /// The most times a thread looks at a barrier before it sleeps, and how often it did at the end of the last graph.
    most_spins: u32,
    spins: AtomicU32,
    place: Placement,
    paused: AtomicBool,
    turn: Mutex<()>,
    /// The thread whose turn it is, as [`this_thread`] names it; 0 for none.
    owner: AtomicUsize,
}

/// The calling thread runs on the pool already, so its turn would never come.
#[derive(Debug)]
pub(crate) struct Entered;

/// Held while a thread uses the pool.
struct Turn<'a> {
    owner: &'a AtomicUsize,
    _lock: MutexGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

/// A number that no two living threads share; never 0.
fn this_thread() -> usize {
    thread_local! {
        static MARK: Cell<u8> = const { Cell::new(0) };
    }
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

impl Pool {
    /// `n_threads` threads (0 counts as 1) without wishes. `Err`: the system gives no more threads.
    pub fn new(n_threads: usize) -> Result<Pool, String> {
        Pool::build(n_threads, 50, false, Placement { cores: Vec::new(), strict: false, prio: GGML_SCHED_PRIO_NORMAL })
    }

    /// As the parameters say. Priority and cores are wishes: where the system refuses them, threads run without.
    pub fn with_params(params: &ggml_threadpool_params) -> Result<Pool, String> {
        let cores = (0..GGML_MAX_N_THREADS).filter(|&i| params.cpumask[i]).collect();
        let place = Placement { cores, strict: params.strict_cpu, prio: params.prio };
        let n = usize::try_from(params.n_threads).unwrap_or(1);
        Pool::build(n, params.poll, params.paused, place)
    }

    fn build(n_threads: usize, poll: u32, paused: bool, place: Placement) -> Result<Pool, String> {
        let n_threads = n_threads.clamp(1, GGML_MAX_N_THREADS);
        let threads = if n_threads == 1 {
            None
        } else {
            let for_workers = place.clone();
            let built = ThreadPoolBuilder::new()
                .num_threads(n_threads - 1)
                .thread_name(|i| format!("ggml-cpu-{}", i + 1))
                .start_handler(move |i| for_workers.apply(i + 1))
                .build();
            Some(built.map_err(|e| format!("cannot start {} threads: {e}", n_threads - 1))?)
        };
        let crowded = std::thread::available_parallelism().is_ok_and(|n| n.get() < n_threads);
        let full = if crowded { SPINS_CROWDED } else { SPINS };
        let spins = (u64::from(full) * u64::from(poll.min(100)) / 50) as u32;
        Ok(Pool {
            threads,
            n_threads,
            most_spins: spins,
            spins: AtomicU32::new(spins),
            place,
            paused: AtomicBool::new(paused),
            turn: Mutex::new(()),
            owner: AtomicUsize::new(0),
        })
    }

    /// Threads, the caller included.
    pub fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// How often threads look at a barrier: at most, and at first.
    pub(crate) fn spins(&self) -> [u32; 2] {
        [self.most_spins, self.spins.load(Ordering::Relaxed)]
    }

    /// What a graph's barriers came to, for the next graph.
    pub(crate) fn learn(&self, spins: u32) {
        self.spins.store(spins, Ordering::Relaxed);
    }

    /// Marks the pool as resting. Its threads sleep between graphs anyway; the next graph wakes it.
    pub fn pause(&self) {
        self.paused.store(true, Ordering::Relaxed);
    }

    /// Takes back [`pause`](Pool::pause).
    pub fn resume(&self) {
        self.paused.store(false, Ordering::Relaxed);
    }

    /// Whether the pool rests.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Waits until no other thread uses the pool.
    fn turn(&self) -> Result<Turn<'_>, Entered> {
        let me = this_thread();
        let owner = self.owner.load(Ordering::Relaxed);
        // Only this thread itself can have stored its number; the pool's own run only while a thread has the turn.
        let worker = || self.threads.as_ref().is_some_and(|threads| threads.current_thread_index().is_some());
        if owner != 0 && (owner == me || worker()) {
            return Err(Entered);
        }
        let lock = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.owner.store(me, Ordering::Relaxed);
        Ok(Turn { owner: &self.owner, _lock: lock })
    }

    /// Runs `lead` on the calling thread, and once `lead` has called its argument, at the same time `follow(1)` to `follow(n - 1)`
    /// on the pool's; returns when all have. `n` is at most the pool's number of threads. Callers take turns.
    pub(crate) fn run(
        &self,
        n: usize,
        follow: &(impl Fn(usize) + Sync),
        lead: impl FnOnce(&dyn Fn()),
    ) -> Result<(), Entered> {
        let _turn = self.turn()?;
        self.resume();
        self.place.apply(0);
        match &self.threads {
            Some(threads) if n > 1 => threads.in_place_scope(|scope| {
                let called = Cell::new(false);
                lead(&|| {
                    if !called.replace(true) {
                        scope.spawn_broadcast(move |_, worker| {
                            let ith = worker.index() + 1;
                            if ith < n {
                                follow(ith);
                            }
                        });
                    }
                });
            }),
            _ => lead(&|| ()),
        }
        Ok(())
    }
}

impl Placement {
    /// Gives the calling thread, number `ith`, its cores and priority.
    fn apply(&self, ith: usize) {
        if !self.cores.is_empty() {
            let one = [self.cores[ith % self.cores.len()]];
            bind(if self.strict { &one } else { &self.cores });
        }
        if self.prio != GGML_SCHED_PRIO_NORMAL {
            prioritise(self.prio);
        }
    }
}

#[cfg(target_os = "linux")]
fn bind(cores: &[usize]) {
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores.iter().filter(|&&core| core < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index was checked to be inside the set.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: 0 is the calling thread; the set is read only.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
}

#[cfg(not(target_os = "linux"))]
fn bind(_cores: &[usize]) {}

#[cfg(target_os = "linux")]
fn prioritise(prio: ggml_sched_priority) {
    let (policy, level) = match prio {
        GGML_SCHED_PRIO_LOW => (libc::SCHED_BATCH, 0),
        GGML_SCHED_PRIO_MEDIUM => (libc::SCHED_FIFO, 40),
        GGML_SCHED_PRIO_HIGH => (libc::SCHED_FIFO, 80),
        GGML_SCHED_PRIO_REALTIME => (libc::SCHED_FIFO, 90),
        _ => return,
    };
    // SAFETY: a sched_param is plain integers.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = level;
    // SAFETY: 0 is the calling thread; refusal for lack of rights changes nothing.
    unsafe { libc::sched_setscheduler(0, policy, &param) };
}

#[cfg(not(target_os = "linux"))]
fn prioritise(_prio: ggml_sched_priority) {}
